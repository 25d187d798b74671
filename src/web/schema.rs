//! What the API document says of a value: JSON Schema (draft 2020-12), the form of OpenAPI 3.1.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

/// Schemas that are named once and referred to everywhere: `components.schemas`.
pub type Schemas = BTreeMap<String, Value>;

/// The schema of an answer's resource, by reference; what it refers to is added to `schemas`.
pub fn of<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let mut found = Vec::new();
    T::schemas(&mut found);
    let mut keep = |name: String, schema: &utoipa::openapi::RefOr<utoipa::openapi::Schema>| {
        schemas.entry(name).or_insert_with(|| serde_json::to_value(schema).unwrap_or_default());
    };
    for (name, schema) in &found {
        keep(name.clone(), schema);
    }
    let name = T::name().into_owned();
    keep(name.clone(), &<T as PartialSchema>::schema());
    reference(&name)
}

/// A reference to a named schema.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The same, or `null`.
pub fn nullable(mut schema: Value) -> Value {
    if schema.get("$ref").is_some() || schema.get("type").is_none() {
        return json!({"oneOf": [schema, {"type": "null"}]});
    }
    let kind = schema["type"].take();
    schema["type"] = match kind {
        Value::Array(mut kinds) => {
            kinds.push(json!("null"));
            Value::Array(kinds)
        }
        one => json!([one, "null"]),
    };
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema
}

/// The fields of an object, as the code that reads them names them.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Shape {
    /// Adds a field.
    pub fn property(&mut self, name: &str, schema: Value, required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if required {
            self.required.push(name.to_owned());
        }
    }

    /// As a schema.
    pub fn into_schema(self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_null_says_so_in_every_form() {
        assert_eq!(nullable(json!({"type": "string"})), json!({"type": ["string", "null"]}));
        assert_eq!(nullable(json!({"type": "string", "enum": ["a"]}))["enum"], json!(["a", null]));
        assert_eq!(nullable(reference("Tag"))["oneOf"][1], json!({"type": "null"}));
        assert_eq!(nullable(json!({}))["oneOf"][0], json!({}));
    }
}
