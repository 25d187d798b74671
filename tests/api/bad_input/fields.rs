//! The fields of a body, and the values that each refuses.

use hotline::openapi::Operation;
use serde_json::{Map, Value, json};

/// Values that a field of this name refuses, although its schema does not say so.
const SPECIAL: &[(&str, &[&str])] = &[
    ("number", &["1234567890123456", "1234567", "abc"]),
    ("email", &["abc", "@", "a@", "two words@example.com"]),
    ("color", &["red", "#12345", "#12345g"]),
    ("cpfCnpj", &["abc", "123"]),
    ("shortcut", &["two words"]),
];

/// A field of a body.
#[derive(Clone, Debug)]
pub struct Field {
    /// The names from the outermost object to the field; `[0]` is the first item of a list.
    steps: Vec<String>,
    /// The schema of its values, without `null`.
    pub schema: Value,
    pub is_nullable: bool,
    pub is_required: bool,
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.steps.join(".").replace(".[", "["))
    }
}

/// Every field of the operation's body, each followed by the fields inside it.
pub fn fields(operation: &Operation) -> Vec<Field> {
    fn walk(schema: &Value, at: &[String], found: &mut Vec<Field>) {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let mut steps = at.to_vec();
            steps.push(name.clone());
            let (schema, is_nullable) = without_null(property);
            let is_required = required.contains(&name.as_str());
            found.push(Field { steps: steps.clone(), schema: schema.clone(), is_nullable, is_required });
            walk(&schema, &steps, found);
            if let Some(items) = schema.get("items") {
                steps.push("[0]".to_owned());
                walk(items, &steps, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(operation.body.as_ref().map_or(&Value::Null, |(_, schema)| schema), &[], &mut found);
    found
}

/// The schema of a value without `null`, and whether it may be `null`.
fn without_null(schema: &Value) -> (Value, bool) {
    if let Some(branches) = schema["oneOf"].as_array() {
        let one = branches.iter().find(|branch| branch["type"] != "null").expect("a value");
        return (one.clone(), branches.iter().any(|branch| branch["type"] == "null"));
    }
    let mut plain = schema.clone();
    let kinds = type_names(&schema["type"]);
    let others: Vec<&str> = kinds.iter().copied().filter(|kind| *kind != "null").collect();
    plain["type"] = json!(others);
    (plain, others.len() < kinds.len())
}

/// The names of types in a schema's `type`, which is one name or a list.
pub fn type_names(kind: &Value) -> Vec<&str> {
    match kind {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

impl Field {
    pub fn name(&self) -> &str {
        self.steps.last().expect("a name")
    }

    pub fn is_inner(&self) -> bool {
        self.steps.len() > 1
    }

    pub fn accepts_type(&self, kind: &str) -> bool {
        type_names(&self.schema["type"]).contains(&kind)
    }

    pub fn is_text(&self) -> bool {
        self.accepts_type("string") && self.schema.get("enum").is_none()
    }

    /// The body with this value in the field, or without the field if it is `None`. Missing objects and lists around
    /// the field are added.
    pub fn put(&self, body: &Value, value: Option<Value>) -> Value {
        fn put(at: &mut Value, steps: &[String], value: Option<Value>) {
            let (step, rest) = steps.split_first().expect("a step");
            if step == "[0]" {
                if at.as_array().is_none_or(Vec::is_empty) {
                    *at = json!([{}]);
                }
                return put(&mut at[0], rest, value);
            }
            if !at.is_object() {
                *at = json!({});
            }
            match (rest, value) {
                ([], Some(value)) => at[step] = value,
                ([], None) => drop(at.as_object_mut().and_then(|object| object.remove(step))),
                (rest, value) => put(&mut at[step], rest, value),
            }
        }
        let mut body = body.clone();
        put(&mut body, &self.steps, value);
        body
    }

    /// Values of types that the field refuses.
    pub fn wrong_types(&self) -> Vec<Value> {
        let kinds = [
            ("integer", json!(7)),
            ("number", json!(1.5)),
            ("string", json!("seven")),
            ("boolean", json!(true)),
            ("array", json!([7])),
            ("object", json!({"a": 7})),
        ];
        let is_accepted = |kind: &str| self.accepts_type(kind) || (kind == "integer" && self.accepts_type("number"));
        let mut wrong: Vec<Value> =
            kinds.into_iter().filter(|(kind, _)| !is_accepted(kind)).map(|(_, value)| value).collect();
        if !self.accepts_type("string") {
            // A string is never read as the number, boolean or `null` that it spells.
            wrong.extend([json!("7"), json!("true"), json!("null"), json!("")]);
        }
        wrong
    }

    /// Values of the right type that the field refuses.
    pub fn refused_values(&self) -> Vec<Value> {
        let bound = |name: &str| self.schema[name].as_u64().and_then(|bound| usize::try_from(bound).ok());
        let mut bad = Vec::new();
        if self.schema.get("enum").is_some() {
            bad.extend([json!("bogus"), json!(""), json!("te\0xt"), json!("x".repeat(100_000))]);
        } else if self.accepts_type("string") {
            // PostgreSQL's text cannot contain NUL.
            bad.push(json!("123456789\u{0}"));
            // Other control characters are refused too, at any place, even `\u{b}`, which is white space to Unicode.
            bad.extend([json!("1234\u{1}5678"), json!("123456789\u{b}"), json!("\u{1f}")]);
            bad.extend(bound("maxLength").map(|most| json!("é".repeat(most + 1))));
            bad.extend(bound("minLength").filter(|least| *least > 1).map(|least| json!("x".repeat(least - 1))));
            let is_blank_refused = !self.is_nullable && (bound("minLength").is_some() || self.is_required);
            if is_blank_refused && self.schema.get("pattern").is_some() {
                bad.extend([json!(""), json!("  \t\n ")]);
            }
            let special = SPECIAL.iter().find(|(name, _)| *name == self.name());
            bad.extend(special.into_iter().flat_map(|(_, values)| values.iter().map(|value| json!(value))));
        }
        if self.accepts_type("array") {
            bad.extend(bound("maxItems").map(|most| json!((1..=most + 1).collect::<Vec<usize>>())));
            bad.extend(bound("minItems").filter(|least| *least > 0).map(|_| json!([])));
            let wrong = ["integer", "string", "object"]
                .into_iter()
                .zip([json!(7), json!("seven"), json!({"a": 7})])
                .find(|(kind, _)| !type_names(&self.schema["items"]["type"]).contains(kind));
            bad.extend(wrong.map(|(_, item)| json!([item])));
        }
        bad
    }
}

/// Whether a field, or a part of it, is among those that a `422` names.
pub fn is_named(field: &Field, named: &[String]) -> bool {
    let path = field.to_string();
    let is_field_or_part =
        |name: &String| name.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']));
    named.iter().any(is_field_or_part)
}

/// An object of these fields.
pub fn object(fields: impl Iterator<Item = (String, Value)>) -> Value {
    Value::Object(fields.collect::<Map<_, _>>())
}
