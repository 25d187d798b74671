//! What a name or a path stands for at a place, and what a function returns.

use std::collections::HashMap;
use std::rc::Rc;

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::{FnArg, Pat, Type};

use super::bindings::{Origin, binds};
use super::evaluator::{Evaluated, Evaluator, Frame, Halt, Value, unknown};
use super::rows::returned_type;
use super::sources::{Function, segments};

impl<'a> Evaluator<'a> {
    /// What a name stands for at a place.
    pub fn name(&mut self, name: &str, position: LineColumn, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        if let Some(value) = frame.locals.get(name) {
            return Ok(value.clone());
        }
        if let Some(body) = frame.body.clone()
            && let Some(binding) = body.binding(name, position)
        {
            let value = match binding.origin {
                Origin::Value(value) => self.evaluate(value, frame)?,
                Origin::Element(list) => {
                    let Value::List(values) = self.evaluate(list, frame)? else { return unknown("no list") };
                    let key = format!("{} {:?}", frame.file, list.span().start());
                    match values.len() {
                        0 => return Err(Halt::Impossible),
                        count => values[self.choices.choose(&key, count)].clone(),
                    }
                }
                Origin::Unknown => return unknown(format!("{name} is known at run time")),
            };
            let value = if matches!(binding.pattern, Pat::TupleStruct(_)) { self.vary(value) } else { value };
            let mut names = HashMap::new();
            return match self.matches(binding.pattern, &value, &mut names) {
                Some(false) => Err(Halt::Impossible),
                _ => match names.remove(name) {
                    Some(value) => Ok(value),
                    None => unknown(format!("{name} is known at run time")),
                },
            };
        }
        if name == "self" {
            return self.receiver(frame);
        }
        match frame.function.filter(|function| parameter(function, name).is_some()) {
            Some(function) => self.argument(function, name, frame),
            None => unknown(format!("{name} is not found")),
        }
    }

    fn receiver(&mut self, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        match (&frame.receiver, &frame.owner) {
            (Some(value), _) => Ok(value.clone()),
            (None, Some(owner)) => Ok(Value::Open { kind: Some(owner.clone()), key: format!("self of {owner}") }),
            (None, None) => unknown("no `self`"),
        }
    }

    /// The value of a parameter: that of the call, or those of all calls.
    fn argument(&mut self, function: &'a Function<'a>, name: &str, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let Some((index, kind)) = parameter(function, name) else { return unknown(name) };
        if let Some(arguments) = &frame.arguments {
            return arguments.get(name).cloned().map_or_else(|| unknown(format!("{name} is known at run time")), Ok);
        }
        let path = self.sources.type_path(&function.module, function.owner.as_deref(), kind);
        let is_text = path.as_deref() == Some("str");
        if !is_text {
            return Ok(Value::Open { kind: path, key: format!("{} of {}", name, function.path) });
        }
        let calls = self.calls_of(function);
        if calls.is_empty() {
            return unknown(format!("no call of {} is found", function.path));
        }
        let (caller, call) = calls[self.choices.choose(&format!("call of {}", function.path), calls.len())];
        let body = self.body(caller);
        let call = &body.calls[call];
        let caller = self.open_frame(&self.sources.functions[caller]);
        // A method may be called by its path, with its receiver as the first argument.
        let is_by_path = !call.is_method && function.signature.receiver().is_some();
        let value = match call.arguments.get(index + usize::from(is_by_path)) {
            Some(argument) => self.evaluate(argument, &caller)?,
            None => return unknown("a call with fewer arguments"),
        };
        let Some(pattern) = pattern_of(function, index) else { return Ok(value) };
        let mut names = HashMap::new();
        self.matches(pattern, &value, &mut names);
        names.remove(name).map_or_else(|| unknown(name), Ok)
    }

    /// The calls of a function outside tests.
    fn calls_of(&self, function: &Function<'a>) -> Vec<(&'a str, usize)> {
        let name = function.signature.ident.to_string();
        let found = self.callers.get(&name).into_iter().flatten().copied().filter(|(caller, index)| {
            let caller = &self.sources.functions[*caller];
            let call = &self.bodies[caller.path.as_str()].calls[*index];
            if call.is_method {
                return function.signature.receiver().is_some()
                    && (caller.owner == function.owner || self.is_only_method(&name));
            }
            self.called(&call.path, &caller.module, caller.owner.as_deref()) == function.path
        });
        found.collect()
    }

    fn is_only_method(&self, name: &str) -> bool {
        let methods = self.sources.functions.values();
        methods.filter(|function| function.owner.is_some() && function.signature.ident == name).count() == 1
    }

    /// The absolute path of what is called.
    pub fn called(&self, path: &[String], module: &str, owner: Option<&str>) -> String {
        match (path, owner) {
            ([first, name], Some(owner)) if first == "Self" => format!("{owner}::{name}"),
            _ => self.sources.resolve(module, path),
        }
    }

    /// A constant, a variant, or a local name.
    pub fn path(&mut self, path: &syn::Path, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let words = segments(path);
        if let [name] = words.as_slice() {
            match self.name(name, path.span().start(), frame) {
                Err(Halt::Unknown(reason)) if reason.ends_with("is not found") => {}
                value => return value,
            }
        }
        let mut scopes: Vec<String> = frame.function.iter().map(|function| function.path.clone()).collect();
        scopes.push(frame.module.clone());
        for scope in scopes {
            if let Some(constant) = self.sources.constants.get(&self.sources.resolve(&scope, &words)) {
                return self.constant(constant);
            }
        }
        if words == ["None"] {
            return Ok(Value::Variant { kind: "Option".to_owned(), name: "None".to_owned(), values: Vec::new() });
        }
        let [first @ .., name] = words.as_slice() else { return unknown("no path") };
        let owner = match first {
            [] => return unknown(format!("{name} is not found")),
            [first] => match self.generic(first, frame) {
                Some(owner) => owner,
                None => self.called(std::slice::from_ref(first), &frame.module, None),
            },
            _ => self.sources.resolve(&frame.module, first),
        };
        if let Some(constant) = self.sources.constant_of(&owner, name) {
            let frame = Frame { owner: Some(owner), ..Frame::of_constant(constant) };
            return self.evaluate(constant.value, &Rc::new(frame));
        }
        match self.sources.enums.get(&owner) {
            Some(item) if item.variants.iter().any(|variant| variant.ident == name) => {
                Ok(Value::Variant { kind: owner, name: name.clone(), values: Vec::new() })
            }
            _ => unknown(format!("{} is not found", words.join("::"))),
        }
    }

    /// The type that a generic parameter, or `Self`, stands for.
    pub fn generic(&mut self, name: &str, frame: &Rc<Frame<'a>>) -> Option<String> {
        if name == "Self" {
            return frame.owner.clone();
        }
        if let Some(kind) = frame.generics.get(name) {
            return Some(kind.clone());
        }
        let function = frame.function?;
        let types = self.sources.types_of(function, name);
        if types.is_empty() {
            return None;
        }
        Some(types[self.choices.choose(&format!("{name} of {}", function.path), types.len())].to_owned())
    }
}

/// The index and the type of a parameter.
fn parameter<'f>(function: &'f Function<'_>, name: &str) -> Option<(usize, &'f Type)> {
    let typed = function.signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) => Some(input),
        FnArg::Receiver(_) => None,
    });
    let mut found = typed.enumerate().filter(|(_, input)| binds(&input.pat, name));
    found.next().map(|(index, input)| (index, &*input.ty))
}

fn pattern_of<'f>(function: &'f Function<'_>, index: usize) -> Option<&'f Pat> {
    let mut typed = function.signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) => Some(&*input.pat),
        FnArg::Receiver(_) => None,
    });
    typed.nth(index)
}

/// The type within `Result`, `Option` and `Vec`.
fn inner_type(kind: &Type) -> &Type {
    let Type::Path(path) = kind else { return kind };
    let Some(last) = path.path.segments.last() else { return kind };
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return kind };
    match arguments.args.first() {
        Some(syn::GenericArgument::Type(inner))
            if ["Result", "Option", "Vec"].iter().any(|name| last.ident == name) =>
        {
            inner_type(inner)
        }
        _ => kind,
    }
}

/// Calls of functions and closures.
impl<'a> Evaluator<'a> {
    /// What a function returns; if it is only known at run time, any value of its type.
    pub fn invoke(
        &mut self,
        function: &'a Function<'a>,
        receiver: Option<Value<'a>>,
        arguments: Vec<Value<'a>>,
        generics: HashMap<String, String>,
    ) -> Evaluated<'a> {
        let reason = match self.compute(function, receiver, arguments, generics) {
            Err(Halt::Unknown(reason)) => reason,
            value => return value,
        };
        let kind = returned_type(function).map(inner_type);
        let kind = kind.and_then(|kind| self.sources.type_path(&function.module, function.owner.as_deref(), kind));
        match kind.filter(|kind| kind != "str") {
            Some(kind) => Ok(Value::Open { kind: Some(kind), key: format!("{} returns: {reason}", function.path) }),
            None => unknown(reason),
        }
    }

    fn compute(
        &mut self,
        function: &'a Function<'a>,
        receiver: Option<Value<'a>>,
        arguments: Vec<Value<'a>>,
        generics: HashMap<String, String>,
    ) -> Evaluated<'a> {
        let body = self.body(&function.path);
        if body.returns_early {
            return unknown(format!("{} returns before its end", function.path));
        }
        let mut names = HashMap::new();
        for (index, value) in arguments.into_iter().enumerate() {
            if let Some(pattern) = pattern_of(function, index) {
                self.matches(pattern, &value, &mut names);
            }
        }
        let mut frame = Frame::clone(&self.open_frame(function));
        frame.arguments = Some(names);
        frame.receiver = receiver;
        frame.generics = generics;
        self.block(function.block, &Rc::new(frame))
    }

    pub fn apply(
        &mut self,
        closure: &syn::ExprClosure,
        frame: &Rc<Frame<'a>>,
        values: Vec<Value<'a>>,
    ) -> Evaluated<'a> {
        let mut locals = frame.locals.clone();
        for (pattern, value) in closure.inputs.iter().zip(values) {
            self.matches(pattern, &value, &mut locals);
        }
        self.evaluate(&closure.body, &Rc::new(Frame { locals, ..Frame::clone(frame) }))
    }
}
