//! Checks answers and examples against the API document's schemas, with as much of JSON Schema as these use.

use chrono::DateTime;
use serde_json::Value;

/// The API document, against whose schemas values are checked.
#[derive(Clone, Copy)]
pub struct Schemas<'a>(pub &'a Value);

/// Keywords that do not limit valid values, and those that are not checked here.
const UNCHECKED: &[&str] = &[
    "description",
    "example",
    "default",
    "pattern",
    "title",
    "propertyNames",
    "contentMediaType",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Keywords that are checked separately.
const APPLICATORS: &[&str] = &["$ref", "allOf", "properties", "additionalProperties", "items"];

impl<'a> Schemas<'a> {
    /// The target of a reference.
    pub fn target(self, reference: &str) -> &'a Value {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leaves the document"));
        self.0.pointer(pointer).unwrap_or_else(|| panic!("{reference} does not exist"))
    }

    /// What is wrong with a value, each with its place; empty if it is valid.
    pub fn errors(self, schema: &'a Value, value: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(schema, value, "", &mut errors);
        errors
    }

    fn check(self, schema: &'a Value, value: &Value, at: &str, errors: &mut Vec<String>) {
        let keywords = schema.as_object().unwrap_or_else(|| panic!("{at}: this is not a schema: {schema}"));
        let mut wrong = |text: String| errors.push(format!("{at}: {text}: {value}"));
        for (keyword, wanted) in keywords {
            match keyword.as_str() {
                "type" if !is_of_type(wanted, value) => wrong(format!("is not {wanted}")),
                "enum" if !wanted.as_array().expect("a list").contains(value) => wrong(format!("is not in {wanted}")),
                "format" if !has_format(wanted, value) => wrong(format!("does not have the format {wanted}")),
                "minLength" | "maxLength" | "minItems" | "maxItems" if !has_allowed_size(keyword, wanted, value) => {
                    wrong(format!("violates {keyword} {wanted}"));
                }
                "required" => {
                    let names = wanted.as_array().expect("a list").iter().filter_map(Value::as_str);
                    let missing = names.filter(|name| value.is_object() && value.get(name).is_none());
                    missing.for_each(|name| wrong(format!("lacks {name}")));
                }
                "oneOf" | "anyOf" => {
                    let valid = self.branches(wanted).filter(|one| self.errors(one, value).is_empty()).count();
                    if valid == 0 || (keyword == "oneOf" && valid > 1) {
                        wrong(format!("is valid for {valid} of {wanted}"));
                    }
                }
                "const" if value != wanted => wrong(format!("is not {wanted}")),
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
                    if value.as_f64().is_some_and(|number| !is_in_range(keyword, wanted, number)) =>
                {
                    wrong(format!("is outside {keyword} {wanted}"));
                }
                "uniqueItems" => {
                    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                    if items.iter().enumerate().any(|(index, item)| items[..index].contains(item)) {
                        wrong("has an item twice".to_owned());
                    }
                }
                "type" | "enum" | "const" | "format" | "minLength" | "maxLength" | "minItems" | "maxItems"
                | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {}
                other if UNCHECKED.contains(&other) || APPLICATORS.contains(&other) => {}
                unknown => panic!("the check does not know the keyword {unknown}: {schema}"),
            }
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            self.check(self.target(reference), value, at, errors);
        }
        for branch in schema.get("allOf").into_iter().flat_map(|all| self.branches(all)) {
            self.check(branch, value, at, errors);
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(value) = value.get(name) {
                self.check(property, value, &format!("{at}/{name}"), errors);
            }
        }
        if let (Some(rest), Some(values)) = (schema.get("additionalProperties"), value.as_object()) {
            let is_declared =
                |name: &str| schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
            for (name, value) in values.iter().filter(|(name, _)| !is_declared(name)) {
                match rest {
                    Value::Bool(true) => {}
                    Value::Bool(false) => errors.push(format!("{at}: has {name}")),
                    rest => self.check(rest, value, &format!("{at}/{name}"), errors),
                }
            }
        }
        if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
            for (index, value) in values.iter().enumerate() {
                self.check(items, value, &format!("{at}/{index}"), errors);
            }
        }
    }

    fn branches(self, list: &'a Value) -> impl Iterator<Item = &'a Value> {
        list.as_array().expect("a list").iter()
    }
}

/// The words of `type`: one, or a list.
pub fn types(wanted: &Value) -> Vec<&str> {
    match wanted {
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    types(wanted).into_iter().any(|word| match word {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("{unknown} is not a type"),
    })
}

fn has_format(wanted: &Value, value: &Value) -> bool {
    let text = value.as_str();
    match wanted.as_str() {
        Some("date-time") => text.is_none_or(|text| DateTime::parse_from_rfc3339(text).is_ok()),
        Some("email") => text.is_none_or(|text| text.contains('@')),
        Some("int64") => !value.is_number() || value.is_i64(),
        Some("int32") => value.as_i64().is_none_or(|number| i32::try_from(number).is_ok()),
        // The others say what is meant, not what is valid.
        _ => true,
    }
}

fn is_in_range(keyword: &str, wanted: &Value, number: f64) -> bool {
    let limit = wanted.as_f64().expect("a number");
    match keyword {
        "minimum" => number >= limit,
        "maximum" => number <= limit,
        "exclusiveMinimum" => number > limit,
        _ => number < limit,
    }
}

fn has_allowed_size(keyword: &str, wanted: &Value, value: &Value) -> bool {
    let limit = usize::try_from(wanted.as_u64().expect("a number")).expect("a size");
    let size = match (keyword.ends_with("Length"), value) {
        (true, Value::String(text)) => text.chars().count(),
        (false, Value::Array(items)) => items.len(),
        _ => return true,
    };
    if keyword.starts_with("min") { size >= limit } else { size <= limit }
}

mod tests {
    use serde_json::json;

    use super::Schemas;

    #[test]
    fn the_check_finds_what_is_wrong_and_only_that() {
        let document = json!({"components": {"schemas": {"Id": {"type": "integer", "example": 7}}}});
        let schemas = Schemas(&document);
        let schema = json!({
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"$ref": "#/components/schemas/Id"},
                "kind": {"type": ["string", "null"], "enum": ["a", null]},
                "names": {"type": "array", "items": {"type": "string", "minLength": 1}},
                "other": {"oneOf": [{"$ref": "#/components/schemas/Id"}, {"type": "null"}]},
            },
        });
        let errors = |value| schemas.errors(&schema, &value).len();
        assert_eq!(errors(json!({"id": 1, "kind": null, "names": ["x"], "other": null, "more": 1})), 0);
        assert_eq!(errors(json!({"kind": "b", "names": [""], "other": "x"})), 4);
        assert_eq!(errors(json!([])), 1);
    }
}
