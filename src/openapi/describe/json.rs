//! The operation as JSON in the document.

use serde_json::{Map, Value, json};

use super::errors::{REFUSED, error_name, header_references, response_headers};
use super::form::form_name;
use super::{Access, Operation};
use crate::openapi::texts::Texts;
use crate::web::admission::idempotency::KEY_CHARACTERS_MAX;
use crate::web::response::schema::reference;

impl Operation {
    /// Converts the operation to its JSON in the document.
    pub fn into_value(self, texts: &Texts) -> Value {
        let mut description = texts.operation(&self.id).unwrap_or(&self.text).to_owned();
        let module = self.module();
        if let Some(module) = module {
            description.push_str(&format!(" Requires the permission `{module}` `{}`.", self.method));
        }
        if let Some(bytes) = self.body_bytes_max {
            description.push_str(&format!(" The body can be up to {bytes} bytes."));
        }
        let mut value = json!({
            "operationId": self.id,
            "summary": self.summary,
            "description": description,
            "tags": [self.tag_name()],
            "responses": self.responses(),
        });
        match (module, self.access) {
            (Some(module), _) => value["x-permission"] = json!({"module": module, "method": self.method}),
            // The document's default applies.
            (None, Access::Person) => {}
            (None, Access::Visitor) => value["security"] = json!([{"visitor": []}]),
            (None, Access::VisitorOrAnonymous) => value["security"] = json!([{"visitor": []}, {}]),
            (None, _) => value["security"] = json!([]),
        }
        if self.is_idempotent {
            value["x-idempotency-key"] = json!(true);
        }
        if self.has_cursor() {
            value["x-pagination"] = json!({"parameter": "cursor", "next": "meta.nextCursor"});
        }
        let parameters = self.parameters(texts);
        if !parameters.is_empty() {
            value["parameters"] = json!(parameters);
        }
        if let Some(body) = self.into_request_body(texts) {
            value["requestBody"] = body;
        }
        value
    }

    /// Converts the body to its JSON in the document; `None`: there is no body.
    fn into_request_body(self, texts: &Texts) -> Option<Value> {
        let (name, _) = self.body.as_ref()?;
        let mut content = json!({"application/json": {"schema": reference(name)}});
        add_examples(&mut content["application/json"], self.examples);
        if let Some(example) = texts.body_example(&self.id) {
            content["application/json"]["example"] = example;
        }
        if self.takes_files {
            content["multipart/form-data"] = json!({"schema": reference(&form_name(name))});
            add_examples(&mut content["multipart/form-data"], self.form_examples);
        }
        Some(json!({"required": !self.body_is_optional, "content": content}))
    }

    fn parameters(&self, texts: &Texts) -> Vec<Value> {
        let mut parameters: Vec<Value> = self
            .path_names()
            .zip(&self.path_ids)
            .map(|(name, schema)| json!({"name": name, "in": "path", "required": true, "schema": schema}))
            .collect();
        parameters
            .extend(self.query.iter().map(|(name, schema)| json!({"name": name, "in": "query", "schema": schema})));
        parameters.extend(self.parameters.iter().cloned());
        for parameter in &mut parameters {
            // Readers of the document expect the description at the parameter, not in its schema.
            let type_text = parameter.get("description").or_else(|| parameter["schema"].get("description"));
            let type_text = type_text.and_then(Value::as_str);
            let name = parameter["name"].as_str().unwrap_or_default();
            let text = texts.parameter(&self.id, name, type_text).map(str::to_owned);
            if let Some(text) = text {
                parameter["description"] = json!(text);
            }
        }
        if self.is_idempotent {
            parameters.push(json!({
                "name": "Idempotency-Key",
                "in": "header",
                "description": "Makes retries safe: a request with the same key takes effect once within 24 hours.",
                "schema": {"type": "string", "minLength": 1, "maxLength": KEY_CHARACTERS_MAX, "pattern": "^[!-~]+$"},
                "example": "7f0c9a2e-order-4711",
            }));
        }
        parameters
    }

    /// Whether it lists records page by page with a cursor.
    fn has_cursor(&self) -> bool {
        self.query.iter().any(|(name, _)| name == "cursor")
    }

    /// The description of a success, from the summary: `List campaigns` becomes `A page of campaigns.`
    fn success_text(&self) -> String {
        let (verb, object) = self.summary.split_once(' ').unwrap_or((&self.summary, ""));
        let with_article = |object: &str| {
            let noun = ["a ", "an ", "the "].iter().find_map(|article| object.strip_prefix(article));
            format!("the {}", noun.unwrap_or(object))
        };
        let (status, schema) = &self.success;
        let text = match verb {
            "List" if self.has_cursor() => format!("a page of {object}"),
            "List" | "Get" => with_article(object),
            "Create" if *status == 201 => format!("{}, as created", with_article(object)),
            "Update" if schema.is_some() => format!("{}, as changed", with_article(object)),
            "Delete" => format!("{} is deleted", with_article(object)),
            _ => return self.summary.to_string(),
        };
        let mut letters = text.chars();
        letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str())).unwrap_or_default()
    }

    fn responses(&self) -> Map<String, Value> {
        let (status, schema) = &self.success;
        let headers = |names: &[&str]| {
            if self.is_rate_limited { response_headers(names) } else { header_references(&["X-Request-Id"]) }
        };
        let success_headers = [(self.is_idempotent, "Idempotent-Replay"), (self.has_etag, "ETag")];
        let success_headers: Vec<&str> =
            success_headers.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect();
        let mut success = json!({"description": self.success_text(), "headers": headers(&success_headers)});
        if let Some(schema) = schema {
            success["content"] = json!({self.content_type: {"schema": schema}});
        }
        if self.is_table {
            success["content"]["text/csv"] = json!({"schema": {"type": "string"}});
        }
        let mut responses = Map::new();
        responses.insert(status.to_string(), success);
        for (status, text, schema) in &self.other_responses {
            let content = json!({"application/json": {"schema": schema}});
            let response = json!({"description": text, "headers": headers(&[]), "content": content});
            responses.insert(status.to_string(), response);
        }
        for status in &self.errors {
            let name = if *status == 422 && self.may_be_refused { REFUSED } else { error_name(*status) };
            responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{name}")}));
        }
        responses
    }
}

fn add_examples(content: &mut Value, examples: Vec<(&'static str, Value)>) {
    if !examples.is_empty() {
        let named = examples.into_iter().map(|(name, value)| (name.to_owned(), json!({"value": value})));
        content["examples"] = Value::Object(named.collect());
    }
}
