//! The results of functions, methods and macros that the texts of statements are built with.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use proc_macro2::LineColumn;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Expr, Token};

use super::evaluator::{Evaluated, Evaluator, Frame, Halt, Value, equal, unknown};
use super::sources::{Function, root, segments};

/// Functions and methods that return what they get.
const IDENTITIES: [&str; 19] = [
    "as_deref",
    "as_ref",
    "as_str",
    "borrow",
    "clone",
    "cloned",
    "collect",
    "copied",
    "from",
    "into",
    "into_iter",
    "into_sql_str",
    "iter",
    "new",
    "to_owned",
    "to_string",
    "trim",
    "unwrap_or_default",
    "to_vec",
];

impl<'a> Evaluator<'a> {
    pub fn call(&mut self, expr: &syn::ExprCall, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let Expr::Path(called) = &*expr.func else { return unknown("a call of another kind") };
        let words = segments(&called.path);
        let name = words.last().cloned().unwrap_or_default();
        let path = match words.as_slice() {
            [kind, name] => match self.generic(kind, frame) {
                Some(owner) => format!("{owner}::{name}"),
                None => self.called(&words, &frame.module, frame.owner.as_deref()),
            },
            _ => self.called(&words, &frame.module, frame.owner.as_deref()),
        };
        let sources = self.sources;
        if let Some(function) = sources.functions.get(&path) {
            let mut arguments = self.arguments(&expr.args, frame)?;
            let has_receiver = function.signature.receiver().is_some();
            let receiver = has_receiver.then(|| arguments.remove(0));
            let generics = self.generics(function, &called.path, frame);
            return self.invoke(function, receiver, arguments, generics);
        }
        if words.len() == 1
            && let Ok(Value::Closure(closure, scope)) = self.path(&called.path, frame)
        {
            let arguments = self.arguments(&expr.args, frame)?;
            return self.apply(&closure, &scope, arguments);
        }
        let is_variant = words.len() > 1 && name.starts_with(char::is_uppercase) && name != "AssertSqlSafe";
        if is_variant {
            let values = self.arguments(&expr.args, frame)?;
            let kind = path.rsplit_once("::").map(|(kind, _)| kind.to_owned()).unwrap_or_default();
            return Ok(Value::Variant { kind, name, values });
        }
        self.standard_call(&words, expr, frame)
    }

    /// What functions of the standard library and of sqlx return.
    fn standard_call(&mut self, words: &[String], expr: &syn::ExprCall, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let name = words.last().map(String::as_str).unwrap_or_default();
        if words == ["LazyLock", "new"] {
            return match self.evaluate(&expr.args[0], frame)? {
                Value::Closure(closure, scope) => self.apply(&closure, &scope, Vec::new()),
                _ => unknown("a lazy value of another kind"),
            };
        }
        if name == "AssertSqlSafe"
            || ["Some", "Ok"].contains(&name)
            || ["String", "QueryBuilder"].contains(&words[0].as_str()) && IDENTITIES.contains(&name)
        {
            return match expr.args.first() {
                Some(argument) => self.evaluate(argument, frame),
                None => Ok(Value::Text(String::new())),
            };
        }
        unknown(format!("{} is not found", words.join("::")))
    }

    /// The values of arguments. An unknown one may not matter.
    fn arguments(
        &mut self,
        arguments: &Punctuated<Expr, Token![,]>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Vec<Value<'a>>, Halt> {
        let values = arguments.iter().map(|argument| match self.evaluate(argument, frame) {
            Err(Halt::Unknown(reason)) => Ok(Value::Open { kind: None, key: reason }),
            value => value,
        });
        values.collect()
    }

    fn generics(
        &mut self,
        function: &Function<'a>,
        path: &syn::Path,
        frame: &Rc<Frame<'a>>,
    ) -> HashMap<String, String> {
        let arguments = path.segments.last().map(|segment| &segment.arguments);
        let mut generics = HashMap::new();
        let Some(syn::PathArguments::AngleBracketed(arguments)) = arguments else { return generics };
        for (parameter, argument) in function.signature.generics.type_params().zip(&arguments.args) {
            let syn::GenericArgument::Type(kind @ syn::Type::Path(path)) = argument else { continue };
            let known = path.path.get_ident().and_then(|name| self.generic(&name.to_string(), frame));
            let kind = known.or_else(|| self.sources.type_path(&frame.module, frame.owner.as_deref(), kind));
            generics.extend(kind.map(|kind| (parameter.ident.to_string(), kind)));
        }
        generics
    }

    pub fn method(&mut self, expr: &syn::ExprMethodCall, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let name = expr.method.to_string();
        let receiver = self.evaluate(&expr.receiver, frame)?;
        let kind = match &receiver {
            Value::Record { kind, .. } | Value::Variant { kind, .. } | Value::Open { kind: Some(kind), .. } => {
                Some(kind)
            }
            _ => None,
        };
        let sources = self.sources;
        if let Some(function) = kind.and_then(|kind| sources.functions.get(&format!("{kind}::{name}"))) {
            let arguments = self.arguments(&expr.args, frame)?;
            return self.invoke(function, Some(receiver), arguments, HashMap::new());
        }
        match (receiver, name.as_str()) {
            (Value::List(values), "map") => {
                let Value::Closure(closure, scope) = self.evaluate(&expr.args[0], frame)? else {
                    return unknown("a map without a closure");
                };
                let mapped = values.into_iter().map(|value| self.apply(&closure, &scope, vec![value]));
                Ok(Value::List(mapped.collect::<Result<_, Halt>>()?))
            }
            (Value::List(values), "enumerate") => {
                let pair = |(index, value)| Value::List(vec![Value::Number(index as i128), value]);
                Ok(Value::List(values.into_iter().enumerate().map(pair).collect()))
            }
            (Value::List(values), "len") => Ok(Value::Number(values.len() as i128)),
            (Value::List(values), "join" | "concat") => {
                let texts = values.iter().map(display).collect::<Result<Vec<_>, Halt>>()?;
                let separator = match expr.args.first() {
                    Some(separator) => display(&self.evaluate(separator, frame)?)?,
                    None => String::new(),
                };
                Ok(Value::Text(texts.join(&separator)))
            }
            (Value::Text(text), "replace") => {
                let arguments = self.arguments(&expr.args, frame)?;
                let texts = arguments.iter().map(display).collect::<Result<Vec<_>, Halt>>()?;
                Ok(Value::Text(text.replace(&texts[0], &texts[1])))
            }
            (value, name) if IDENTITIES.contains(&name) => Ok(value),
            (_, name) => unknown(format!("what {name} returns")),
        }
    }

    pub fn record(&mut self, expr: &syn::ExprStruct, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let words = segments(&expr.path);
        let kind = match (words.as_slice(), &frame.owner) {
            ([word], Some(owner)) if word == "Self" => owner.clone(),
            _ => self.sources.resolve(&frame.module, &words),
        };
        let mut fields = match &expr.rest {
            Some(rest) => match self.evaluate(rest, frame)? {
                Value::Record { fields, .. } => fields,
                _ => return unknown("a record of another kind"),
            },
            None => HashMap::new(),
        };
        for field in &expr.fields {
            let syn::Member::Named(name) = &field.member else { continue };
            // An unknown field may not matter.
            if let Ok(value) = self.evaluate(&field.expr, frame) {
                fields.insert(name.to_string(), value);
            }
        }
        Ok(Value::Record { kind, fields })
    }

    pub fn operator(&mut self, expr: &syn::ExprBinary, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let left = self.evaluate(&expr.left, frame)?;
        match &expr.op {
            syn::BinOp::And(_) => {
                let is_met = self.decide(left)? && {
                    let right = self.evaluate(&expr.right, frame)?;
                    self.decide(right)?
                };
                return Ok(Value::Bool(is_met));
            }
            syn::BinOp::Or(_) => {
                let is_met = self.decide(left)? || {
                    let right = self.evaluate(&expr.right, frame)?;
                    self.decide(right)?
                };
                return Ok(Value::Bool(is_met));
            }
            _ => {}
        }
        let right = self.evaluate(&expr.right, frame)?;
        let (left, right) = (self.vary(left), self.vary(right));
        match (&expr.op, equal(&left, &right), left, right) {
            (syn::BinOp::Eq(_), Some(is_equal), ..) => Ok(Value::Bool(is_equal)),
            (syn::BinOp::Ne(_), Some(is_equal), ..) => Ok(Value::Bool(!is_equal)),
            (syn::BinOp::Add(_), _, Value::Number(left), Value::Number(right)) => Ok(Value::Number(left + right)),
            (syn::BinOp::Add(_), _, Value::Text(left), Value::Text(right)) => Ok(Value::Text(left + &right)),
            (syn::BinOp::Mul(_), _, Value::Number(left), Value::Number(right)) => Ok(Value::Number(left * right)),
            _ => unknown("an operator of open values"),
        }
    }

    /// The value of a macro call at a position.
    pub fn expand(&mut self, mac: &syn::Macro, position: LineColumn, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let name = segments(&mac.path).pop().unwrap_or_default();
        if name == "matches" {
            return self.matches_macro(mac, frame);
        }
        let Ok(arguments) = mac.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) else {
            return unknown(format!("{name}!"));
        };
        match name.as_str() {
            "format" => self.format(&arguments, position, frame),
            "concat" => {
                let texts = arguments.iter().map(|argument| display(&self.evaluate(argument, frame)?));
                Ok(Value::Text(texts.collect::<Result<_, Halt>>()?))
            }
            "include_str" => {
                let Value::Text(name) = self.evaluate(&arguments[0], frame)? else { return unknown("a file") };
                let folder = Path::new(frame.file).parent().expect("a folder");
                let text = fs::read_to_string(root().join(folder).join(&name));
                text.map(Value::Text).or_else(|error| unknown(format!("{name}: {error}")))
            }
            "vec" => self.list(&arguments, frame),
            _ => unknown(format!("{name}!")),
        }
    }

    fn matches_macro(&mut self, mac: &syn::Macro, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let parsed = mac.parse_body_with(|input: ParseStream<'_>| -> syn::Result<(Expr, syn::Pat)> {
            let value: Expr = input.parse()?;
            input.parse::<Token![,]>()?;
            Ok((value, syn::Pat::parse_multi_with_leading_vert(input)?))
        });
        let Ok((value, pattern)) = parsed else { return unknown("matches!") };
        let value = self.evaluate(&value, frame)?;
        let value = self.vary(value);
        match self.matches(&pattern, &value, &mut HashMap::new()) {
            Some(is_match) => Ok(Value::Bool(is_match)),
            None => unknown("matches!"),
        }
    }

    fn format(
        &mut self,
        arguments: &Punctuated<Expr, Token![,]>,
        position: LineColumn,
        frame: &Rc<Frame<'a>>,
    ) -> Evaluated<'a> {
        let mut arguments = arguments.iter();
        let Some(Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(pattern), .. })) = arguments.next() else {
            return unknown("format!");
        };
        if arguments.clone().any(|argument| matches!(argument, Expr::Assign(_))) {
            return unknown("a format with named arguments");
        }
        let (pattern, mut text) = (pattern.value(), String::new());
        let mut rest = pattern.as_str();
        while let Some(brace) = rest.find(['{', '}']) {
            text.push_str(&rest[..brace]);
            let sign = &rest[brace..=brace];
            if rest[brace + 1..].starts_with(sign) {
                text.push_str(sign);
                rest = &rest[brace + 2..];
                continue;
            }
            let Some(end) = rest[brace..].find('}') else { return unknown("format!") };
            let name = &rest[brace + 1..brace + end];
            rest = &rest[brace + end + 1..];
            let value = if name.is_empty() {
                let Some(argument) = arguments.next() else { return unknown("format!") };
                self.evaluate(argument, frame)?
            } else if syn::parse_str::<syn::Ident>(name).is_ok() {
                self.captured(name, position, frame)?
            } else {
                return unknown("a format of another kind");
            };
            text.push_str(&display(&value)?);
        }
        text.push_str(rest);
        Ok(Value::Text(text))
    }

    /// What a name within the text of a `format!` stands for.
    fn captured(&mut self, name: &str, position: LineColumn, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        match self.name(name, position, frame) {
            Err(Halt::Unknown(reason)) if reason.ends_with("is not found") => {}
            value => return value,
        }
        let path: syn::Path = syn::parse_str(name).expect("a name");
        self.evaluate(&Expr::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path }), frame)
    }
}

/// A value as a text.
pub fn display(value: &Value<'_>) -> Result<String, Halt> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(value) => Ok(value.to_string()),
        // Texts that are collected into one.
        Value::List(values) => values.iter().map(display).collect(),
        Value::Open { key, .. } => unknown(key.clone()),
        _ => unknown("a value that is not a text"),
    }
}
