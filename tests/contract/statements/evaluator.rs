//! Computes the texts that an expression may have, as far as the sources say. Whatever depends on a value that is only
//! known at run time (a condition, the variant of an enum, the type of a generic parameter, the caller) is tried with
//! every outcome.

use std::collections::HashMap;
use std::rc::Rc;

use syn::spanned::Spanned;
use syn::{Block, Expr, Pat, Stmt};

use super::bindings::Body;
use super::choices::Choices;
use super::sources::{Constant, Function, Sources, segments};

/// Calls within calls are followed up to this depth.
const DEPTH_MAX: usize = 60;

#[derive(Clone)]
pub enum Value<'a> {
    Text(String),
    Number(i128),
    Bool(bool),
    List(Vec<Value<'a>>),
    Record {
        kind: String,
        fields: HashMap<String, Value<'a>>,
    },
    Variant {
        kind: String,
        name: String,
        values: Vec<Value<'a>>,
    },
    Closure(Rc<syn::ExprClosure>, Rc<Frame<'a>>),
    /// Known only at run time: its type if that is known, and a key, which is the same for the same value.
    Open {
        kind: Option<String>,
        key: String,
    },
}

/// Why there is no value.
pub enum Halt {
    Unknown(String),
    /// The combination of outcomes does not occur.
    Impossible,
}

pub type Evaluated<'a> = Result<Value<'a>, Halt>;

pub fn unknown<T>(reason: impl Into<String>) -> Result<T, Halt> {
    Err(Halt::Unknown(reason.into()))
}

/// Where an expression stands, and what is known there.
#[derive(Clone)]
pub struct Frame<'a> {
    pub module: String,
    pub owner: Option<String>,
    pub file: &'a str,
    pub function: Option<&'a Function<'a>>,
    pub body: Option<Rc<Body<'a>>>,
    /// `None`: the caller is not known.
    pub arguments: Option<HashMap<String, Value<'a>>>,
    pub receiver: Option<Value<'a>>,
    pub generics: HashMap<String, String>,
    /// What patterns of closures and arms bind.
    pub locals: HashMap<String, Value<'a>>,
}

pub struct Evaluator<'a> {
    pub sources: &'a Sources<'a>,
    pub choices: Choices,
    pub bodies: HashMap<&'a str, Rc<Body<'a>>>,
    /// By the name of the called function: the caller, and which of its calls it is.
    pub callers: HashMap<String, Vec<(&'a str, usize)>>,
    instances: HashMap<String, Rc<Vec<Value<'a>>>>,
    depth: usize,
}

impl<'a> Frame<'a> {
    pub fn of_constant(constant: &'a Constant<'a>) -> Self {
        Self {
            module: constant.module.clone(),
            owner: constant.owner.clone(),
            file: constant.file,
            function: None,
            body: None,
            arguments: None,
            receiver: None,
            generics: HashMap::new(),
            locals: HashMap::new(),
        }
    }
}

impl<'a> Evaluator<'a> {
    pub fn new(sources: &'a Sources<'a>) -> Self {
        let (mut bodies, mut callers) = (HashMap::new(), HashMap::<String, Vec<_>>::new());
        let mut functions: Vec<&'a Function<'a>> = sources.functions.values().collect();
        functions.sort_by_key(|function| &function.path);
        for function in functions {
            let body = Body::of(function.block);
            for (index, call) in body.calls.iter().enumerate() {
                let name = call.path.last().cloned().unwrap_or_default();
                callers.entry(name).or_default().push((function.path.as_str(), index));
            }
            bodies.insert(function.path.as_str(), Rc::new(body));
        }
        Self { sources, choices: Choices::default(), bodies, callers, instances: HashMap::new(), depth: 0 }
    }

    pub fn body(&self, function: &str) -> Rc<Body<'a>> {
        self.bodies[function].clone()
    }

    /// The frame of a function of which no call is known.
    pub fn open_frame(&self, function: &'a Function<'a>) -> Rc<Frame<'a>> {
        Rc::new(Frame {
            module: function.module.clone(),
            owner: function.owner.clone(),
            file: function.file,
            body: Some(self.body(&function.path)),
            function: Some(function),
            arguments: None,
            receiver: None,
            generics: HashMap::new(),
            locals: HashMap::new(),
        })
    }

    /// The value of an expression of a frame.
    pub fn evaluate(&mut self, expr: &Expr, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        if self.depth == DEPTH_MAX {
            return unknown("too deep");
        }
        self.depth += 1;
        let value = self.evaluate_kind(expr, frame);
        self.depth -= 1;
        value
    }

    fn evaluate_kind(&mut self, expr: &Expr, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        match expr {
            Expr::Lit(expr) => literal(&expr.lit),
            Expr::Paren(expr) => self.evaluate(&expr.expr, frame),
            Expr::Group(expr) => self.evaluate(&expr.expr, frame),
            Expr::Reference(expr) => self.evaluate(&expr.expr, frame),
            Expr::Cast(expr) => self.evaluate(&expr.expr, frame),
            Expr::Try(expr) => self.evaluate(&expr.expr, frame),
            Expr::Await(expr) => self.evaluate(&expr.base, frame),
            Expr::Unary(expr) => match (&expr.op, self.evaluate(&expr.expr, frame)?) {
                (syn::UnOp::Deref(_), value) => Ok(value),
                (syn::UnOp::Not(_), value) => Ok(Value::Bool(!self.decide(value)?)),
                _ => unknown("an operator"),
            },
            Expr::Array(expr) => self.list(&expr.elems, frame),
            Expr::Tuple(expr) => self.list(&expr.elems, frame),
            Expr::Block(expr) => self.block(&expr.block, frame),
            Expr::If(expr) => self.condition(expr, frame),
            Expr::Match(expr) => self.arms(expr, frame),
            Expr::Binary(expr) => self.operator(expr, frame),
            Expr::Macro(expr) => self.expand(&expr.mac, expr.span().start(), frame),
            Expr::Path(expr) => self.path(&expr.path, frame),
            Expr::Field(expr) => {
                let base = self.evaluate(&expr.base, frame)?;
                match &expr.member {
                    syn::Member::Named(name) => self.field(base, &name.to_string()),
                    syn::Member::Unnamed(index) => self.field(base, &index.index.to_string()),
                }
            }
            Expr::Struct(expr) => self.record(expr, frame),
            Expr::Closure(expr) => Ok(Value::Closure(Rc::new(expr.clone()), frame.clone())),
            Expr::Call(expr) => self.call(expr, frame),
            Expr::MethodCall(expr) => self.method(expr, frame),
            _ => unknown("an expression of another kind"),
        }
    }

    pub fn list<'e>(&mut self, elements: impl IntoIterator<Item = &'e Expr>, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let values = elements.into_iter().map(|element| match self.evaluate(element, frame) {
            Err(Halt::Unknown(reason)) => Ok(Value::Open { kind: None, key: reason }),
            value => value,
        });
        Ok(Value::List(values.collect::<Result<_, Halt>>()?))
    }

    /// The value of a block is that of its last expression.
    pub fn block(&mut self, block: &Block, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        match block.stmts.last() {
            Some(Stmt::Expr(expr, None)) => self.evaluate(expr, frame),
            Some(Stmt::Macro(last)) if last.semi_token.is_none() => self.expand(&last.mac, last.span().start(), frame),
            _ => unknown("a block without a value"),
        }
    }

    fn condition(&mut self, expr: &syn::ExprIf, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let is_met = match self.evaluate(&expr.cond, frame) {
            Ok(value) => self.decide(value)?,
            Err(Halt::Unknown(_)) => {
                let key = format!("{} {:?}", frame.file, expr.span().start());
                self.choices.choose(&key, 2) == 1
            }
            Err(halt) => return Err(halt),
        };
        match &expr.else_branch {
            _ if is_met => self.block(&expr.then_branch, frame),
            Some((_, other)) => self.evaluate(other, frame),
            None => unknown("an `if` without `else`"),
        }
    }

    /// The truth value of a value; an open one is tried as `true` and as `false`.
    pub fn decide(&mut self, value: Value<'a>) -> Result<bool, Halt> {
        match value {
            Value::Bool(value) => Ok(value),
            Value::Open { key, .. } => Ok(self.choices.choose(&key, 2) == 1),
            _ => unknown("not a truth value"),
        }
    }

    fn arms(&mut self, expr: &syn::ExprMatch, frame: &Rc<Frame<'a>>) -> Evaluated<'a> {
        let value = match self.evaluate(&expr.expr, frame) {
            Err(Halt::Impossible) => return Err(Halt::Impossible),
            Ok(value) => Some(self.vary(value)),
            Err(Halt::Unknown(_)) => None,
        };
        for arm in value.iter().flat_map(|_| &expr.arms) {
            let mut locals = frame.locals.clone();
            let Some(value) = value.as_ref().filter(|value| !matches!(value, Value::Open { .. })) else { break };
            match self.matches(&arm.pat, value, &mut locals) {
                Some(false) => continue,
                Some(true) => {
                    let frame = Rc::new(Frame { locals, ..Frame::clone(frame) });
                    return self.evaluate(&arm.body, &frame);
                }
                None => break,
            }
        }
        let key = format!("{} {:?}", frame.file, expr.span().start());
        let arm = self.choices.choose(&key, expr.arms.len());
        self.evaluate(&expr.arms[arm].body, frame)
    }

    /// One of the variants of an open enum; any other value is unchanged.
    pub fn vary(&mut self, value: Value<'a>) -> Value<'a> {
        match value {
            Value::Open { kind: Some(kind), key } if kind == "bool" => Value::Bool(self.choices.choose(&key, 2) == 1),
            Value::Open { kind: Some(kind), key } => match self.sources.enums.get(&kind) {
                Some(item) => {
                    let variant = &item.variants[self.choices.choose(&key, item.variants.len())];
                    let open = |_| Value::Open { kind: None, key: key.clone() };
                    let values = (0..variant.fields.len()).map(open).collect();
                    Value::Variant { kind, name: variant.ident.to_string(), values }
                }
                None => Value::Open { kind: Some(kind), key },
            },
            value => value,
        }
    }

    /// Whether a value matches a pattern, whose names it binds; `None`: unknown.
    pub fn matches(
        &mut self,
        pattern: &Pat,
        value: &Value<'a>,
        names: &mut HashMap<String, Value<'a>>,
    ) -> Option<bool> {
        match (pattern, value) {
            (Pat::Wild(_) | Pat::Rest(_), _) => Some(true),
            (Pat::Reference(pattern), value) => self.matches(&pattern.pat, value, names),
            (Pat::Paren(pattern), value) => self.matches(&pattern.pat, value, names),
            (Pat::Type(pattern), value) => self.matches(&pattern.pat, value, names),
            (Pat::Or(pattern), value) => {
                let results: Option<Vec<bool>> =
                    pattern.cases.iter().map(|case| self.matches(case, value, names)).collect();
                results.map(|results| results.contains(&true))
            }
            (Pat::Ident(pattern), value) if pattern.ident == "None" => {
                let is_open = matches!(value, Value::Open { .. });
                (!is_open).then(|| is_none(value))
            }
            (Pat::Ident(pattern), value) => {
                names.insert(pattern.ident.to_string(), value.clone());
                Some(true)
            }
            (Pat::Path(pattern), value) => is_variant(&pattern.path, value),
            (Pat::TupleStruct(pattern), value) => self.matches_tuple(pattern, value, names),
            (Pat::Struct(pattern), Value::Variant { .. }) => is_variant(&pattern.path, value),
            (Pat::Struct(pattern), value) => {
                for field in &pattern.fields {
                    let syn::Member::Named(name) = &field.member else { return None };
                    let value = self.field(value.clone(), &name.to_string()).ok();
                    let value = value.unwrap_or(Value::Open { kind: None, key: name.to_string() });
                    self.matches(&field.pat, &value, names);
                }
                Some(true)
            }
            (Pat::Tuple(pattern), Value::List(values)) => self.match_all(&pattern.elems, values, names),
            (Pat::Lit(pattern), value) => equal(&literal(&pattern.lit).ok()?, value),
            _ => None,
        }
    }

    fn match_all<'p>(
        &mut self,
        patterns: impl IntoIterator<Item = &'p Pat>,
        values: &[Value<'a>],
        names: &mut HashMap<String, Value<'a>>,
    ) -> Option<bool> {
        let pairs = patterns.into_iter().zip(values);
        // The least result: unknown, else no match, else a match.
        pairs.map(|(pattern, value)| self.matches(pattern, value, names)).min().unwrap_or(Some(true))
    }

    fn matches_tuple(
        &mut self,
        pattern: &syn::PatTupleStruct,
        value: &Value<'a>,
        names: &mut HashMap<String, Value<'a>>,
    ) -> Option<bool> {
        // `Some(x)` and `Ok(x)` are evaluated as `x`.
        if pattern.path.is_ident("Some") || pattern.path.is_ident("Ok") {
            if is_none(value) {
                return Some(false);
            }
            let is_match = self.matches(pattern.elems.first()?, value, names);
            return is_match.filter(|_| !matches!(value, Value::Open { .. }));
        }
        match value {
            Value::Variant { values, .. } if is_variant(&pattern.path, value) == Some(true) => {
                self.match_all(&pattern.elems, values, names)
            }
            value => is_variant(&pattern.path, value),
        }
    }

    /// A field of a value.
    pub fn field(&mut self, value: Value<'a>, name: &str) -> Evaluated<'a> {
        match value {
            Value::Record { kind, fields } => match fields.get(name) {
                Some(value) => Ok(value.clone()),
                None => unknown(format!("no field {name} of {kind}")),
            },
            Value::List(values) => match name.parse().ok().and_then(|index: usize| values.get(index)) {
                Some(value) => Ok(value.clone()),
                None => unknown("no such element"),
            },
            Value::Open { kind: Some(kind), key } => {
                let instances = self.instances(&kind);
                if !instances.is_empty() {
                    let instance = self.choices.choose(&key, instances.len());
                    return self.field(instances[instance].clone(), name);
                }
                let Some((module, item)) = self.sources.structs.get(&kind) else { return unknown(key) };
                let field = item.fields.iter().find(|field| field.ident.as_ref().is_some_and(|ident| ident == name));
                let kind = field.and_then(|field| self.sources.type_path(module, Some(&kind), &field.ty));
                Ok(Value::Open { kind, key: format!("{key}.{name}") })
            }
            _ => unknown(format!("a field {name} of a value of another kind")),
        }
    }

    /// The constants of a type.
    fn instances(&mut self, kind: &str) -> Rc<Vec<Value<'a>>> {
        if let Some(instances) = self.instances.get(kind) {
            return instances.clone();
        }
        let instances = Rc::new(self.find_instances(kind));
        self.instances.insert(kind.to_owned(), instances.clone());
        instances
    }

    fn find_instances(&mut self, kind: &str) -> Vec<Value<'a>> {
        let is_of = |constant: &&'a Constant<'a>| {
            let owner = constant.owner.as_deref();
            self.sources.type_path(&constant.module, owner, constant.kind).as_deref() == Some(kind)
        };
        if !self.sources.structs.contains_key(kind) {
            return Vec::new();
        }
        let mut constants: Vec<(&String, &'a Constant<'a>)> =
            self.sources.constants.iter().filter(|(_, constant)| is_of(constant)).collect();
        constants.sort_by_key(|(path, _)| *path);
        let values = constants.into_iter().map(|(_, constant)| self.constant(constant));
        let mut instances = Vec::new();
        for value in values.collect::<Vec<_>>().into_iter().flatten() {
            match value {
                Value::List(values) => instances.extend(values),
                value => instances.push(value),
            }
        }
        instances.retain(|value| matches!(value, Value::Record { .. }));
        instances
    }

    pub fn constant(&mut self, constant: &'a Constant<'a>) -> Evaluated<'a> {
        self.evaluate(constant.value, &Rc::new(Frame::of_constant(constant)))
    }
}

pub fn literal<'a>(lit: &syn::Lit) -> Evaluated<'a> {
    match lit {
        syn::Lit::Str(lit) => Ok(Value::Text(lit.value())),
        syn::Lit::Char(lit) => Ok(Value::Text(lit.value().to_string())),
        syn::Lit::Bool(lit) => Ok(Value::Bool(lit.value)),
        syn::Lit::Int(lit) => lit.base10_parse().map(Value::Number).or_else(|_| unknown("a number")),
        _ => unknown("a literal of another kind"),
    }
}

fn is_none(value: &Value<'_>) -> bool {
    matches!(value, Value::Variant { kind, .. } if kind == "Option")
}

/// Whether a value is the variant that a path names; `None`: unknown.
fn is_variant(path: &syn::Path, value: &Value<'_>) -> Option<bool> {
    match value {
        Value::Variant { name, .. } => Some(segments(path).last() == Some(name)),
        _ => None,
    }
}

/// Whether two values are equal; `None`: unknown.
pub fn equal(one: &Value<'_>, other: &Value<'_>) -> Option<bool> {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => Some(one == other),
        (Value::Number(one), Value::Number(other)) => Some(one == other),
        (Value::Bool(one), Value::Bool(other)) => Some(one == other),
        (Value::Variant { name: one, .. }, Value::Variant { name: other, .. }) => Some(one == other),
        _ => None,
    }
}
