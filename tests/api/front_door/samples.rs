//! Bodies that an endpoint takes, made from its schema.

use std::collections::BTreeMap;
use std::fmt;

use hotline::openapi::Operation;
use serde_json::{Map, Value, json};

use super::world::{next_number, noun};

/// Fields whose texts no two records of a company may share, or that show which company wrote them.
const UNIQUE: [&str; 7] = ["name", "key", "shortcut", "label", "sku", "message", "description"];

/// Fields that are named like references but refer to no record of ours.
const NOT_REFERENCES: [&str; 4] = ["externalId", "clientId", "sourceId", "utmId"];

/// A field of a body that holds ids of records.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The names from the outermost object to the field; the items of a list add none.
    path: Vec<String>,
    /// The noun of these records.
    pub noun: String,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path.join("."))
    }
}

impl Reference {
    /// The body with this id in the field; a list then has this id alone.
    pub fn insert_into(&self, body: &Value, id: &Value) -> Value {
        fn put(place: &mut Value, path: &[String], id: &Value) {
            match (place, path) {
                (Value::Array(items), []) => *items = vec![id.clone()],
                (place, []) => *place = id.clone(),
                (Value::Array(items), path) => items.iter_mut().for_each(|item| put(item, path, id)),
                (place, [name, rest @ ..]) => put(&mut place[name], rest, id),
            }
        }
        let mut body = body.clone();
        put(&mut body, &self.path, id);
        body
    }
}

/// Every field of the operation's body that holds ids of records.
pub fn references(operation: &Operation) -> Vec<Reference> {
    fn walk(schema: &Value, path: &[String], operation_path: &str, found: &mut Vec<Reference>) {
        if let Some(items) = schema.get("items") {
            walk(items, path, operation_path, found);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path: Vec<String> = path.iter().chain([name]).cloned().collect();
            if (name.ends_with("Id") || name.ends_with("Ids")) && !NOT_REFERENCES.contains(&name.as_str()) {
                found.push(Reference { noun: noun(operation_path, name), path });
            } else {
                walk(property, &path, operation_path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(operation.body.as_ref().map_or(&Value::Null, |(_, schema)| schema), &[], &operation.path, &mut found);
    // A card stays on its board: another board is refused, whichever company has it.
    let is_change = operation.method == "PUT" && operation.path == "/crm/cards/{cardId}";
    found.retain(|reference| !(is_change && reference.to_string() == "boardId"));
    found
}

/// Values a company writes.
pub struct Samples<'a> {
    /// A word in each of its texts.
    pub mark: &'a str,
    /// By noun, the id of one of its records.
    pub ids: &'a BTreeMap<String, String>,
}

impl Samples<'_> {
    /// A body with every required field, with the texts of [`UNIQUE`] if it is a change, and with `field`.
    pub fn body(&self, operation: &Operation, field: Option<&Reference>) -> Value {
        let Some((_, schema)) = &operation.body else { return Value::Null };
        let mut body = self.object(schema, &operation.path, field.map_or(&[], |field| &field.path));
        if operation.method == "PUT" {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if UNIQUE.contains(&name.as_str()) {
                    body[name] = self.value(name, property, &operation.path);
                }
            }
        }
        body
    }

    fn object(&self, schema: &Value, operation_path: &str, field: &[String]) -> Value {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            match field {
                [first, rest @ ..] if first == name && !rest.is_empty() => {
                    let inner = property.get("items").unwrap_or(property);
                    let inner = self.object(inner, operation_path, rest);
                    let is_list = property.get("items").is_some();
                    object.insert(name.clone(), if is_list { json!([inner]) } else { inner });
                }
                _ if required.contains(&name.as_str()) || field.first() == Some(name) => {
                    object.insert(name.clone(), self.value(name, property, operation_path));
                }
                _ => {}
            }
        }
        Value::Object(object)
    }

    fn value(&self, name: &str, schema: &Value, operation_path: &str) -> Value {
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[0].as_str().unwrap_or_default(),
            kind => kind.as_str().unwrap_or_default(),
        };
        if let Some(words) = schema["enum"].as_array() {
            return words[0].clone();
        }
        let number = next_number();
        match kind {
            "array" => json!([self.value(name, &schema["items"], operation_path)]),
            "object" => self.object(schema, operation_path, &[]),
            "boolean" => json!(true),
            "integer" if name.ends_with("Id") || name.ends_with("Ids") => {
                let noun = noun(operation_path, name);
                // 0 while the company has no record of this noun.
                json!(self.ids.get(&noun).and_then(|id| id.parse::<i64>().ok()).unwrap_or_default())
            }
            _ if name == "email" => json!(format!("{}{number}@example.com", self.mark.to_lowercase())),
            _ if name == "number" => json!(format!("55119{number:08}")),
            // Without blanks, because some of these fields are keys.
            _ if UNIQUE.contains(&name) => json!(format!("{}{number}", self.mark)),
            _ => schema["example"].clone(),
        }
    }
}
