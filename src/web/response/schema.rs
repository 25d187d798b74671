//! Schemas of the API document: JSON Schema (draft 2020-12), as OpenAPI 3.1 uses it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

/// Schemas by name: `components.schemas` of the API document.
pub type Schemas = BTreeMap<String, Value>;

/// A reference to the schema of a response's resource; that schema and those it refers to are added to `schemas`.
pub fn of<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let mut collected = Vec::new();
    T::schemas(&mut collected);
    collected.push((T::name().into_owned(), <T as PartialSchema>::schema()));
    let mut by_name: BTreeMap<String, Value> =
        collected.into_iter().map(|(name, schema)| (name, serde_json::to_value(schema).unwrap_or_default())).collect();
    let mut merged_names = Vec::new();
    for name in by_name.keys().cloned().collect::<Vec<_>>() {
        let flattened = by_name.get(&name).and_then(|schema| flatten(schema, &by_name, &mut merged_names));
        by_name.extend(flattened.map(|schema| (name, schema)));
    }
    by_name.retain(|name, _| !merged_names.contains(name));
    for (name, schema) in by_name {
        schemas.entry(public_name(&name)).or_insert_with(|| response_schema(schema));
    }
    reference(&public_name(&T::name()))
}

/// Merges flattened objects into the schema, because the serialized object has their fields as its own. Returns `None`
/// when nothing is flattened. `merged_names` collects the names of the merged schemas.
fn flatten(schema: &Value, by_name: &BTreeMap<String, Value>, merged_names: &mut Vec<String>) -> Option<Value> {
    let mut merged = schema.as_object()?.clone();
    let Value::Array(flattened) = merged.remove("allOf")? else { return None };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    // `utoipa` lists flattened objects before the object's own fields; here its own fields come first.
    for part in flattened.iter().rev() {
        let name = part.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        let part = name.and_then(|name| by_name.get(name)).unwrap_or(part);
        merged_names.extend(name.map(str::to_owned));
        properties.extend(
            part.get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, field)| (name.clone(), field.clone())),
        );
        required.extend(part.get("required").and_then(Value::as_array).into_iter().flatten().cloned());
    }
    merged.extend([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(properties)),
        ("required".to_owned(), Value::Array(required)),
    ]);
    Some(Value::Object(merged))
}

/// A reference to the schema of a resource's envelope, named after the resource plus `ending`.
pub fn envelope<T: ToSchema>(schemas: &mut Schemas, ending: &str, properties: &Value, description: &str) -> Value {
    let name = format!("{}{ending}", public_name(&T::name()));
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    let schema = json!({"type": "object", "description": description, "properties": properties, "required": required});
    schemas.entry(name.clone()).or_insert(schema);
    reference(&name)
}

/// The public name of a schema: `Named<QueueId>`, which is `Named_QueueId` to `utoipa`, becomes `QueueRef`.
fn public_name(name: &str) -> String {
    let noun = name.strip_prefix("Named_").and_then(|id| id.strip_suffix("Id"));
    noun.map_or_else(|| name.to_owned(), |noun| format!("{noun}Ref"))
}

/// Marks a field that may be left out, and may also be `null`.
const OPTIONAL_MARK: &str = "x-left-out";

/// Adjusts a response schema for client generators:
///
/// - A nullable field is required: serde writes `null` for `None`. A field is optional if it is an `Option` that cannot
///   be `null` (`#[schema(nullable = false)]`), or if it is marked by [`OPTIONAL_MARK`].
/// - The description of a nullable field is beside both of its alternatives, not inside one of them.
fn response_schema(mut schema: Value) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let mut nullable_names = Vec::new();
        for (name, property) in properties.iter_mut() {
            let is_optional = property.as_object_mut().is_some_and(|property| property.remove(OPTIONAL_MARK).is_some());
            *property = response_schema(property.take());
            if !is_optional && is_nullable(property) {
                nullable_names.push(json!(name));
            }
        }
        let required_names = schema.as_object_mut().map(|schema| schema.entry("required").or_insert_with(|| json!([])));
        if let Some(required_names) = required_names.and_then(Value::as_array_mut) {
            nullable_names.retain(|name| !required_names.contains(name));
            required_names.append(&mut nullable_names);
        }
    }
    if let Some(items) = schema.get_mut("items") {
        *items = response_schema(items.take());
    }
    if let Some(target) = schema.get_mut("$ref") {
        let name = target.as_str().and_then(|path| path.rsplit('/').next()).map(public_name).unwrap_or_default();
        *target = reference(&name)["$ref"].take();
    }
    if let Some(branches) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        let mut text = None;
        for branch in branches.iter_mut() {
            *branch = response_schema(branch.take());
            text = text.or_else(|| branch.as_object_mut()?.remove("description"));
        }
        if let Some(text) = text {
            schema["description"] = text;
        }
    }
    schema
}

/// Whether the schema accepts `null`.
fn is_nullable(schema: &Value) -> bool {
    let names_null =
        |kind: &Value| kind == "null" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("null")));
    let branches = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    schema.get("type").is_some_and(names_null) || branches.into_iter().any(is_nullable)
}

/// A reference to a named schema.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The schema of a value that may also be `null`.
pub fn nullable(mut schema: Value) -> Value {
    // Most client generators cannot handle `null` among the values of an enum.
    if schema.get("$ref").is_some() || schema.get("type").is_none() || schema.get("enum").is_some() {
        let text = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let mut alternatives = json!({"oneOf": [schema, {"type": "null"}]});
        if let Some(text) = text {
            alternatives["description"] = text;
        }
        return alternatives;
    }
    let kind = schema["type"].take();
    schema["type"] = match kind {
        Value::Array(mut kinds) => {
            kinds.push(json!("null"));
            Value::Array(kinds)
        }
        kind => json!([kind, "null"]),
    };
    schema
}

/// The schema of a string that may be blank; a blank one counts as `null`.
pub fn or_blank(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("minLength");
        if let Some(pattern) = object.get_mut("pattern") {
            *pattern = json!(format!("^\\s*$|{}", pattern.as_str().unwrap_or_default()));
        }
        // A format would refuse a blank string, so it is removed. Only the format of a time is kept: callers need it
        // more than they need to know that a blank string is accepted.
        let is_time = object.get("format").is_some_and(|format| format == "date-time");
        if !is_time && object.remove("format").is_some_and(|format| format == "email") {
            object.insert("pattern".to_owned(), json!(r"^\s*$|^\s*[^@\s]+@[^@\s]+\s*$"));
        }
    }
    schema
}

/// The fields of a request object, declared by the code that parses them.
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

    /// Converts the fields into a schema.
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
    fn a_flattened_struct_is_merged_into_the_schema() {
        #[derive(ToSchema)]
        #[allow(dead_code)]
        struct Inner {
            when: String,
        }
        #[derive(ToSchema)]
        #[allow(dead_code)]
        struct Outer {
            name: String,
            note: Option<String>,
            #[serde(flatten)]
            inner: Inner,
        }
        let mut schemas = Schemas::new();
        assert_eq!(of::<Outer>(&mut schemas), reference("Outer"));
        assert_eq!(schemas.keys().collect::<Vec<_>>(), ["Outer"]);
        assert_eq!(schemas["Outer"]["required"], json!(["name", "when", "note"]));
        assert_eq!(schemas["Outer"]["properties"]["when"], json!({"type": "string"}));
        assert!(schemas["Outer"].get("allOf").is_none());
    }

    #[test]
    fn nullable_adds_null_to_every_kind_of_schema() {
        assert_eq!(nullable(json!({"type": "string"})), json!({"type": ["string", "null"]}));
        assert_eq!(nullable(json!({"type": "string", "enum": ["a"]}))["oneOf"][1], json!({"type": "null"}));
        assert_eq!(nullable(reference("Tag"))["oneOf"][1], json!({"type": "null"}));
        assert_eq!(nullable(json!({}))["oneOf"][0], json!({}));
    }

    #[test]
    fn a_property_is_required_unless_it_may_be_omitted() {
        let schema = response_schema(json!({
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "integer"},
                "note": {"type": ["string", "null"]},
                "queue": {"oneOf": [{"$ref": "#/components/schemas/Named_QueueId", "description": "Where"}, {"type": "null"}]},
                "token": {"type": "string"},
                "secret": {"type": ["string", "null"], "x-left-out": true},
            },
        }));
        assert_eq!(schema["required"], json!(["id", "note", "queue"]));
        assert_eq!(schema["properties"]["secret"], json!({"type": ["string", "null"]}));
        let queue = json!({"description": "Where", "oneOf": [reference("QueueRef"), {"type": "null"}]});
        assert_eq!(schema["properties"]["queue"], queue);
    }
}
