//! Two documents of the API: what in the newer one breaks a caller of the older one.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

/// Who writes a value, and so how it may change: a request may be read more loosely, a response written more
/// strictly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Writer {
    Caller,
    Service,
}

struct Comparison<'a> {
    old: &'a Value,
    new: &'a Value,
    found: Vec<String>,
    /// References that are compared already, or being compared: schemas may contain themselves.
    compared: HashSet<(String, String, Writer)>,
}

/// A schema with its references resolved, and without `null`.
struct SchemaKinds<'a> {
    /// The schemas of which a value has one; several for `oneOf`.
    kinds: Vec<&'a Value>,
    nullable: bool,
}

/// The changes that break a caller of the old document's service, each with its place.
pub fn breaking_changes(old: &Value, new: &Value) -> Vec<String> {
    let mut comparison = Comparison { old, new, found: Vec::new(), compared: HashSet::new() };
    comparison.compare_operations("paths", Writer::Caller);
    comparison.compare_operations("webhooks", Writer::Service);
    comparison.found
}

/// The entries of an object; none for any other value.
fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The strings of an array; none for any other value.
fn strings(value: &Value) -> BTreeSet<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The target of a reference, or the value itself.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return value };
    let target = document.pointer(reference.trim_start_matches('#'));
    resolve(document, target.unwrap_or_else(|| panic!("{reference} has no target")))
}

/// The types of a schema without `null`; empty: any.
fn types(schema: &Value) -> BTreeSet<&str> {
    let mut types = strings(&schema["type"]);
    types.extend(schema["type"].as_str());
    types.remove("null");
    types
}

fn schema_kinds<'a>(document: &'a Value, schema: &'a Value) -> SchemaKinds<'a> {
    let schema = resolve(document, schema);
    if let Some(branches) = schema.get("oneOf").and_then(Value::as_array) {
        let parts = branches.iter().map(|branch| schema_kinds(document, branch));
        return parts.fold(SchemaKinds { kinds: Vec::new(), nullable: false }, |mut all, part| {
            all.kinds.extend(part.kinds);
            all.nullable |= part.nullable;
            all
        });
    }
    let is_null = schema["type"] == "null";
    let nullable = is_null || strings(&schema["type"]).contains("null");
    SchemaKinds { kinds: if is_null { Vec::new() } else { vec![schema] }, nullable }
}

impl<'a> Comparison<'a> {
    fn note(&mut self, place: &str, what: impl std::fmt::Display) {
        self.found.push(format!("{place}: {what}"));
    }

    /// Compares the operations of `paths`, or of `webhooks`. The service writes the requests of `webhooks`.
    fn compare_operations(&mut self, part: &str, requests: Writer) {
        let (old, new) = (self.old, self.new);
        for (path, methods) in entries(&old[part]) {
            for (method, operation) in entries(methods) {
                let place = format!("{method} {path}");
                match new[part].get(path).and_then(|methods| methods.get(method)) {
                    Some(now) => self.compare_operation(&place, operation, now, requests),
                    None => self.note(&place, "no longer exists"),
                }
            }
        }
    }

    fn compare_operation(&mut self, place: &str, old: &'a Value, new: &'a Value, requests: Writer) {
        let is_open = |operation: &Value| operation["security"].as_array().is_some_and(Vec::is_empty);
        if is_open(old) && !is_open(new) {
            self.note(place, "needs a token");
        }
        self.compare_parameters(place, old, new, requests);
        let (old_body, new_body) = (resolve(self.old, &old["requestBody"]), resolve(self.new, &new["requestBody"]));
        if new_body["required"] == true && old_body["required"] != true && requests == Writer::Caller {
            self.note(place, "needs a body");
        }
        self.compare_contents(&format!("{place} body"), old_body, new_body, requests);
        for (status, response) in entries(&old["responses"]) {
            let place = format!("{place} {status}");
            let Some(now) = new["responses"].get(status) else {
                self.note(&place, "is no longer a response");
                continue;
            };
            let (response, now) = (resolve(self.old, response), resolve(self.new, now));
            let responses = if requests == Writer::Caller { Writer::Service } else { Writer::Caller };
            self.compare_contents(&place, response, now, responses);
            for (header, _) in entries(&response["headers"]) {
                if now["headers"].get(header).is_none() {
                    self.note(&place, format!("has no header {header}"));
                }
            }
        }
    }

    fn compare_parameters(&mut self, place: &str, old: &'a Value, new: &'a Value, requests: Writer) {
        fn of<'a>(document: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
            let all = operation["parameters"].as_array().into_iter().flatten();
            all.map(|parameter| resolve(document, parameter)).collect()
        }
        let (before, now) = (of(self.old, old), of(self.new, new));
        let key = |parameter: &'a Value| (parameter["in"].as_str(), parameter["name"].as_str());
        for parameter in &before {
            let place = format!("{place} {}", parameter["name"].as_str().unwrap_or_default());
            match now.iter().find(|other| key(other) == key(parameter)) {
                Some(other) => self.compare_schema(&place, &parameter["schema"], &other["schema"], requests),
                None => self.note(&place, "no longer exists"),
            }
        }
        for parameter in now.iter().filter(|parameter| parameter["required"] == true && requests == Writer::Caller) {
            let was = before.iter().find(|other| key(other) == key(parameter));
            if was.is_none_or(|was| was["required"] != true) {
                self.note(place, format!("needs the parameter {}", parameter["name"]));
            }
        }
    }

    fn compare_contents(&mut self, place: &str, old: &'a Value, new: &'a Value, writer: Writer) {
        for (kind, content) in entries(&old["content"]) {
            match new["content"].get(kind) {
                Some(now) => self.compare_schema(place, &content["schema"], &now["schema"], writer),
                None => self.note(place, format!("is no longer {kind}")),
            }
        }
    }

    fn compare_schema(&mut self, place: &str, old: &'a Value, new: &'a Value, writer: Writer) {
        if let (Some(old), Some(new)) = (old["$ref"].as_str(), new["$ref"].as_str())
            && !self.compared.insert((old.to_owned(), new.to_owned(), writer))
        {
            return;
        }
        let (before, now) = (schema_kinds(self.old, old), schema_kinds(self.new, new));
        match writer {
            Writer::Caller if before.nullable && !now.nullable => self.note(place, "no longer takes null"),
            Writer::Service if now.nullable && !before.nullable => self.note(place, "may be null"),
            _ => {}
        }
        match (&before.kinds[..], &now.kinds[..]) {
            ([], _) => {}
            ([old], [new]) => self.compare_kind(place, old, new, writer),
            ([_], _) if writer == Writer::Service => self.note(place, "may be of other kinds"),
            (all, kinds) => {
                for old in all {
                    if !kinds.iter().any(|new| self.is_compatible(old, new, writer)) {
                        self.note(place, format!("is no longer one of its kinds: {old}"));
                    }
                }
            }
        }
    }

    /// Whether the change from one kind to the other breaks no caller.
    fn is_compatible(&self, old: &'a Value, new: &'a Value, writer: Writer) -> bool {
        let compared = self.compared.clone();
        let mut trial = Comparison { old: self.old, new: self.new, found: Vec::new(), compared };
        trial.compare_kind("", old, new, writer);
        trial.found.is_empty()
    }

    fn compare_kind(&mut self, place: &str, old: &'a Value, new: &'a Value, writer: Writer) {
        let (wide, narrow) = match writer {
            Writer::Caller => (types(new), types(old)),
            Writer::Service => (types(old), types(new)),
        };
        let is_within = |kind: &&str| wide.contains(kind) || (*kind == "integer" && wide.contains("number"));
        if !wide.is_empty() && (narrow.is_empty() || !narrow.iter().all(is_within)) {
            return self.note(place, format!("was {}, and is {}", old["type"], new["type"]));
        }
        if !old["format"].is_null() && old["format"] != new["format"] {
            self.note(place, format!("was {}, and is {}", old["format"], new["format"]));
        }
        self.compare_values(place, old, new, writer);
        if writer == Writer::Caller {
            self.compare_limits(place, old, new);
        }
        self.compare_fields(place, old, new, writer);
        for part in ["items", "additionalProperties"] {
            if let (Some(old), Some(new)) = (old.get(part), new.get(part))
                && old.is_object()
                && new.is_object()
            {
                self.compare_schema(&format!("{place}[]"), old, new, writer);
            }
        }
    }

    fn compare_values(&mut self, place: &str, old: &'a Value, new: &'a Value, writer: Writer) {
        match (old["enum"].as_array(), new["enum"].as_array()) {
            (Some(old), Some(new)) => {
                for value in old.iter().filter(|value| !new.contains(value)) {
                    self.note(place, format!("is no longer {value}"));
                }
            }
            (None, Some(_)) if writer == Writer::Caller => self.note(place, "takes only some values"),
            _ => {}
        }
    }

    /// A limit of a request may not become stricter.
    fn compare_limits(&mut self, place: &str, old: &'a Value, new: &'a Value) {
        for (name, is_maximum) in [
            ("maxLength", true),
            ("maxItems", true),
            ("maximum", true),
            ("minLength", false),
            ("minItems", false),
            ("minimum", false),
            ("exclusiveMinimum", false),
        ] {
            let Some(now) = new[name].as_f64() else { continue };
            let is_kept =
                old[name].as_f64().is_some_and(|before| if is_maximum { now >= before } else { now <= before });
            if !is_kept {
                self.note(place, format!("has {name} {now}, and had {}", old[name]));
            }
        }
        for name in ["pattern", "uniqueItems"] {
            if !new[name].is_null() && new[name] != old[name] {
                self.note(place, format!("has {name} {}, and had {}", new[name], old[name]));
            }
        }
    }

    fn compare_fields(&mut self, place: &str, old: &'a Value, new: &'a Value, writer: Writer) {
        for (name, field) in entries(&old["properties"]) {
            let place = format!("{place}.{name}");
            match new["properties"].get(name) {
                Some(other) => self.compare_schema(&place, field, other, writer),
                None => self.note(&place, "no longer exists"),
            }
        }
        let (before, after) = (strings(&old["required"]), strings(&new["required"]));
        let (changed, what) = match writer {
            Writer::Caller => (after.difference(&before), "is required"),
            Writer::Service => (before.difference(&after), "may be missing"),
        };
        for name in changed {
            self.note(&format!("{place}.{name}"), what);
        }
    }
}
