//! The descriptions of operations, tags and fields, from `texts.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

/// The descriptions; they are prose, so they have their own file.
const TEXTS: &str = include_str!("texts.toml");

/// Suffixes of the names of body schemas: without its suffix, `ContactCreate` is the noun `Contact`.
const BODY_SUFFIXES: [&str; 4] = ["Create", "Update", "Form", "Ref"];

/// The descriptions of operations, tags and fields.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    operations: BTreeMap<String, String>,
    tags: BTreeMap<String, String>,
    /// By `operation.parameter`, or by the parameter's name alone.
    parameters: BTreeMap<String, String>,
    /// Descriptions of bodies; responses describe themselves.
    schemas: BTreeMap<String, String>,
    /// Examples of bodies, by operation.
    bodies: BTreeMap<String, toml::Value>,
    /// By `Schema.field`, by `Noun.field` for all bodies of a noun, or by the field's name alone.
    fields: BTreeMap<String, FieldText>,
}

/// The description of a field.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FieldText {
    Text(String),
    WithExample { text: String, example: toml::Value },
}

impl Texts {
    /// Parses `texts.toml`.
    pub fn read() -> Self {
        // The tests fail if the file cannot be parsed. A service must start anyway: its document then has no texts.
        toml::from_str(TEXTS).unwrap_or_default()
    }

    /// The description of an operation.
    pub fn operation(&self, id: &str) -> Option<&str> {
        self.operations.get(id).map(String::as_str)
    }

    /// The description of a tag.
    pub fn tag(&self, tag: &str) -> &str {
        self.tags.get(tag).map(String::as_str).unwrap_or_default()
    }

    /// An example of an operation's body.
    pub fn body_example(&self, id: &str) -> Option<Value> {
        self.bodies.get(id).map(|example| json!(example))
    }

    /// The most specific description of a parameter: that for this operation, or else that of its type, or else that of
    /// all parameters of this name.
    pub fn parameter<'a>(&'a self, operation: &str, name: &str, type_text: Option<&'a str>) -> Option<&'a str> {
        let operation_text = self.parameters.get(&format!("{operation}.{name}")).map(String::as_str);
        operation_text.or(type_text).or_else(|| self.parameters.get(name).map(String::as_str))
    }

    /// Adds the descriptions of a schema and of its fields, and the fields' examples.
    pub fn describe(&self, schema_name: &str, schema: &mut Value) {
        if let Some(text) = self.schemas.get(schema_name) {
            schema["description"] = json!(text);
        }
        if let Some(items) = schema.get_mut("items") {
            self.describe(schema_name, items);
        }
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
        for (name, property) in properties {
            self.describe(&format!("{schema_name}.{name}"), property);
            let is_described = property.get("description").is_some();
            let Some(text) = self.field(schema_name, name, is_described) else { continue };
            let (description, example) = match text {
                FieldText::Text(text) => (text, None),
                FieldText::WithExample { text, example } => (text, Some(example)),
            };
            property["description"] = json!(description);
            if let Some(example) = example {
                property["example"] = json!(example);
            }
        }
    }

    /// The most specific description of a field: that of the schema's own field, or else that of its noun's field. If
    /// the field has no description yet, the last resort is that of all fields of this name.
    fn field(&self, schema: &str, name: &str, is_described: bool) -> Option<&FieldText> {
        let (root, rest) = schema.split_once('.').unwrap_or((schema, ""));
        let noun = BODY_SUFFIXES.iter().find_map(|suffix| root.strip_suffix(suffix)).unwrap_or(root);
        let path = if rest.is_empty() { noun.to_owned() } else { format!("{noun}.{rest}") };
        let specific_keys = [format!("{schema}.{name}"), format!("{path}.{name}")];
        let specific_text = specific_keys.iter().find_map(|key| self.fields.get(key));
        specific_text.or_else(|| self.fields.get(name).filter(|_| !is_described))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::routes;

    /// The OpenAPI documents of the API and of the panel.
    fn documents() -> [Value; 2] {
        [routes::document(), routes::panel_document()]
    }

    /// The operations of these documents.
    fn operations(documents: &[Value]) -> impl Iterator<Item = &Value> {
        let paths = documents.iter().flat_map(|document| document["paths"].as_object().expect("paths").values());
        paths.flat_map(|path| path.as_object().expect("methods").values())
    }

    /// The schemas of these documents.
    fn schemas(documents: &[Value]) -> impl Iterator<Item = (&String, &Value)> {
        documents.iter().flat_map(|document| document["components"]["schemas"].as_object().expect("schemas"))
    }

    fn texts() -> Texts {
        toml::from_str(TEXTS).expect("texts.toml can be read")
    }

    #[test]
    fn texts_describe_existing_elements() {
        let (texts, documents) = (texts(), documents());
        let operations: BTreeSet<String> = operations(&documents)
            .filter_map(|operation| operation["operationId"].as_str().map(str::to_owned))
            .collect();
        let operation_names: BTreeSet<String> = texts.operations.keys().chain(texts.bodies.keys()).cloned().collect();
        let stale: Vec<&String> = operation_names.difference(&operations).collect();
        assert!(stale.is_empty(), "there are no such operations: {stale:?}");
        let schemas: BTreeMap<&String, &Value> = schemas(&documents).collect();
        let stale: Vec<&String> = texts.schemas.keys().filter(|name| !schemas.contains_key(*name)).collect();
        assert!(stale.is_empty(), "there are no such schemas: {stale:?}");
        let mut fields = BTreeSet::new();
        let mut visit = |schema: &str, name: &str, _: &Value| {
            let (root, rest) = schema.split_once('.').unwrap_or((schema, ""));
            let noun = BODY_SUFFIXES.iter().find_map(|suffix| root.strip_suffix(suffix)).unwrap_or(root);
            let rest = if rest.is_empty() { String::new() } else { format!(".{rest}") };
            fields.extend([name.to_owned(), format!("{root}{rest}.{name}"), format!("{noun}{rest}.{name}")]);
        };
        for (name, schema) in schemas {
            visit_fields(name, schema, &mut visit);
        }
        let stale: Vec<&String> = texts.fields.keys().filter(|key| !fields.contains(*key)).collect();
        assert!(stale.is_empty(), "there are no such fields: {stale:?}");
    }

    #[test]
    fn every_parameter_has_a_description() {
        let (texts, documents) = (texts(), documents());
        let (mut undescribed, mut existing) = (BTreeSet::new(), BTreeSet::new());
        for operation in operations(&documents) {
            let id = operation["operationId"].as_str().expect("an id");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().expect("a name");
                existing.extend([name.to_owned(), format!("{id}.{name}")]);
                if parameter["description"].as_str().is_none_or(|text| text.trim().is_empty()) {
                    undescribed.insert(format!("{id}.{name}"));
                }
            }
        }
        assert!(
            undescribed.is_empty(),
            "no description of:\n{}",
            undescribed.into_iter().collect::<Vec<_>>().join("\n")
        );
        let stale: Vec<&String> = texts.parameters.keys().filter(|key| !existing.contains(*key)).collect();
        assert!(stale.is_empty(), "there are no such parameters: {stale:?}");
    }

    #[test]
    fn no_schema_uses_multiple_of() {
        // For validators that use binary floating point, 19.9 is not a multiple of 0.0001.
        for document in documents() {
            assert!(!document.to_string().contains("multipleOf"));
        }
    }

    #[test]
    fn every_operation_has_a_description() {
        for operation in operations(&documents()) {
            let text = operation["description"].as_str().expect("a description");
            // The required permission is appended even to an empty description.
            assert!(
                !text.is_empty() && !text.starts_with(" Requires"),
                "no description of {}",
                operation["operationId"]
            );
        }
    }

    #[test]
    fn every_body_of_the_api_has_an_example() {
        for operation in operations(&[routes::document()]) {
            let body = &operation["requestBody"]["content"]["application/json"];
            let has_example = body["example"].is_object() || body["examples"].is_object();
            assert!(has_example || body.is_null(), "no example of the body of {}", operation["operationId"]);
        }
    }

    #[test]
    fn every_field_has_a_description() {
        let documents = documents();
        let mut undescribed = BTreeSet::new();
        for (name, schema) in schemas(&documents) {
            visit_fields(name, schema, &mut |schema, name, property| {
                if property.get("description").is_none() {
                    undescribed.insert(format!("{schema}.{name}"));
                }
            });
        }
        assert!(
            undescribed.is_empty(),
            "no description of:\n{}",
            undescribed.into_iter().collect::<Vec<_>>().join("\n")
        );
    }

    /// Calls `visit` for each field, including nested ones, with the path of its schema, its name and its JSON.
    fn visit_fields(name: &str, schema: &Value, visit: &mut impl FnMut(&str, &str, &Value)) {
        if let Some(items) = schema.get("items") {
            visit_fields(name, items, visit);
        }
        for (field, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            visit(name, field, property);
            visit_fields(&format!("{name}.{field}"), property, visit);
        }
    }
}
