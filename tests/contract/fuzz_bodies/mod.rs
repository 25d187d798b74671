//! Sends unusual bodies to every operation that takes one: the answer is always a documented one.
//!
//! `PROPTEST_CASES` is the number of bodies for each operation.

mod bodies;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use reqwest::Method;
use serde_json::{Map, Value, json};

use self::bodies::{RequestBody, request_body, with_unique_values};
use crate::schema::{Schemas, types};
use crate::support::{OwnApp, Reply};

/// Bodies for each operation, unless the environment sets another number: `make test` spends a few seconds here.
const CASES: u32 = 32;

/// An operation with a body, and valid requests for it.
struct Target {
    method: Method,
    /// Paths with ids that exist; several, since a request may use one up.
    paths: Vec<String>,
    body: Value,
    operation: Value,
    /// Whether any body was accepted.
    has_accepted: Cell<bool>,
}

/// A value of a schema, made of its examples; ids are those that exist.
fn example(schemas: Schemas<'_>, name: &str, schema: &Value, ids: &BTreeMap<String, Value>) -> Value {
    let singular = name.strip_suffix('s').unwrap_or(name);
    if let Some(id) = ids.get(name) {
        return id.clone();
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return example(schemas, name, schemas.target(reference), ids);
    }
    if let Some(example) = schema.get("example").or_else(|| schema.get("enum")?.get(0)) {
        return example.clone();
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        if let Some(branch) = schema.get(list).and_then(|branches| branches.get(0)) {
            return example(schemas, name, branch, ids);
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let fields = properties.iter().map(|(name, schema)| (name.clone(), example(schemas, name, schema, ids)));
        return Value::Object(fields.collect());
    }
    match types(&schema["type"]).first() {
        Some(&"array") => json!([example(schemas, singular, &schema["items"], ids)]),
        Some(&"boolean") => json!(true),
        Some(&"integer" | &"number") => json!(1),
        Some(&"string") => json!("x"),
        _ => Value::Null,
    }
}

/// A service with a record of each kind that a request may name.
struct Fuzzer {
    app: OwnApp,
    document: Value,
    /// Ids that exist, by the name of the field.
    ids: BTreeMap<String, Value>,
    /// The visitor's session.
    session: String,
}

impl Fuzzer {
    async fn start() -> Self {
        let app = OwnApp::start().await;
        let company = &app.company;
        let (contact, ticket) = (app.contact("5511900000001").await, app.ticket("5511900000002").await);
        let (session, _) = app.session("visitor").await;
        let message = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
        let ids = [
            ("channelId", json!(company.phone)),
            ("queueId", json!(company.support)),
            ("userId", json!(company.ana)),
            ("wrapupTypeId", json!(company.solved)),
            ("contactId", json!(contact)),
            ("ticketId", json!(ticket)),
            ("messageId", message.data(201)["id"].clone()),
        ];
        let ids = ids.map(|(name, id)| (name.to_owned(), id)).into();
        let mut document = hotline::routes::document();
        // The tests' clients put `/api/v1` before each path.
        if let Some(paths) = document["paths"].as_object_mut() {
            let without_prefix =
                |(path, methods): (String, Value)| Some((path.strip_prefix("/api/v1")?.to_owned(), methods));
            *paths = std::mem::take(paths).into_iter().filter_map(without_prefix).collect();
        }
        Self { document, ids, session: session.0, app }
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        self.document["paths"].get(path)?.get(method)
    }

    fn body(&self, operation: &Value) -> Option<Value> {
        let schema = operation.get("requestBody")?.pointer("/content/application~1json/schema")?;
        Some(example(Schemas(&self.document), "", schema, &self.ids))
    }

    /// The required fields of the body of a `POST`.
    fn required(&self, template: &str) -> Vec<&str> {
        let operation = self.operation("post", template).expect("an operation");
        let schema = operation.pointer("/requestBody/content/application~1json/schema/$ref").and_then(Value::as_str);
        let required = schema.and_then(|name| Schemas(&self.document).target(name).get("required"));
        required.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Creates a record in every list, and keeps its id under its name in the path.
    async fn fill(&mut self) {
        let paths: Vec<String> = self.document["paths"].as_object().expect("paths").keys().cloned().collect();
        for path in &paths {
            let Some((list, last)) = path.rsplit_once('/') else { continue };
            if let Some(name) = last.strip_prefix('{').and_then(|name| name.strip_suffix('}'))
                && !list.contains('{')
                && self.operation("get", list).is_some()
            {
                let id = self.record(list, list, name).await;
                self.ids.insert(name.to_owned(), id);
            }
        }
    }

    /// Every operation that takes JSON.
    async fn targets(&mut self) -> Vec<Target> {
        self.fill().await;
        let mut targets = Vec::new();
        let paths: Vec<(String, Map<String, Value>)> = self.document["paths"]
            .as_object()
            .expect("paths")
            .iter()
            .map(|(path, methods)| (path.clone(), methods.as_object().expect("methods").clone()))
            .collect();
        for (template, methods) in paths {
            for (method, operation) in methods {
                let Some(mut body) = self.body(&operation) else { continue };
                if template.starts_with("/webchat") && body.get("channelId").is_some() {
                    body["channelId"] = json!(self.app.company.webchat);
                }
                let mut paths = Vec::new();
                for _ in 0..3 {
                    paths.push(self.path(&template).await);
                }
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
                targets.push(Target { method, paths, body, operation, has_accepted: Cell::new(false) });
            }
        }
        targets
    }

    /// A path with ids that exist, as far as they can be made.
    async fn path(&mut self, template: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut list_template = String::new();
        let mut path = String::new();
        for part in template.split('/').skip(1) {
            let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else {
                list_template = format!("{list_template}/{part}");
                path = format!("{path}/{part}");
                continue;
            };
            let id = match name {
                "sessionId" => json!(self.session),
                "ticketId" => {
                    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                    let ticket = self.app.ticket(&format!("55118{number:08}")).await;
                    if template.ends_with("/wrapup") {
                        self.app.api.post(&format!("/tickets/{ticket}/close"), json!({})).await.data(200);
                    }
                    json!(ticket)
                }
                _ => self.record(&list_template, &path, name).await,
            };
            let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            list_template = format!("{list_template}/{part}");
            path = format!("{path}/{id}");
        }
        path
    }

    /// The id of a record of a list: an existing one, or a new one.
    async fn record(&mut self, template: &str, path: &str, name: &str) -> Value {
        if let Some(id) = self.ids.get(name) {
            return id.clone();
        }
        let mut found = Value::Null;
        if let Some(body) = self.operation("post", template).and_then(|operation| self.body(operation)) {
            let required = self.required(template);
            let mut minimal = body.clone();
            minimal.as_object_mut().expect("an object").retain(|name, _| required.contains(&name.as_str()));
            for body in [&body, &minimal] {
                if found.is_null() {
                    found = self.app.api.post(path, with_unique_values(body)).await.body["data"]["id"].clone();
                }
            }
        }
        if found.is_null() && self.operation("get", template).is_some() {
            found = self.app.api.get(path).await.body["data"][0]["id"].clone();
        }
        if found.is_null() { json!(7) } else { found }
    }

    /// Sends a body, and compares the answer with the document.
    async fn check(
        &self,
        target: &Target,
        sent: &RequestBody,
        path_index: usize,
        key: Option<u64>,
    ) -> Result<(), TestCaseError> {
        let path = &target.paths[path_index];
        let bytes = sent.bytes(&with_unique_values(&target.body));
        let mut request = self.app.api.request(target.method.clone(), path).header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", format!("fuzz-{key}"));
        }
        let reply = Reply::of(request.body(bytes.clone())).await;
        let about = || {
            let shown = String::from_utf8_lossy(&bytes);
            format!("{} {path} {shown:.400}: {} {:.400}", target.method, reply.status, reply.body.to_string())
        };
        let status = reply.status.as_u16();
        target.has_accepted.set(target.has_accepted.get() || reply.status.is_success());
        prop_assert!(status < 500, "a server error: {}", about());
        let schemas = Schemas(&self.document);
        let documented = target.operation["responses"].get(reply.status.as_str());
        prop_assert!(documented.is_some(), "not a documented status: {}", about());
        let mut documented = documented.expect("checked");
        if let Some(reference) = documented.get("$ref").and_then(Value::as_str) {
            documented = schemas.target(reference);
        }
        match documented.pointer("/content/application~1json/schema") {
            Some(schema) => {
                let errors = schemas.errors(schema, &reply.body);
                prop_assert!(errors.is_empty(), "not as documented: {errors:?}: {}", about());
            }
            None => prop_assert!(reply.body.is_null(), "a body where none is documented: {}", about()),
        }
        for header in documented["headers"].as_object().into_iter().flat_map(Map::keys) {
            // No caller here has a rate limit.
            let may_be_missing = header == "Idempotent-Replay" || header.starts_with("RateLimit-");
            prop_assert!(may_be_missing || reply.headers.contains_key(header.as_str()), "no {header}: {}", about());
        }
        if status >= 400 {
            let code = reply.body["error"]["code"].as_str().unwrap_or_default();
            prop_assert!(code.starts_with("ERR_API_") && status != 405, "{}", about());
        }
        Ok(())
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

#[test]
fn whatever_body_is_sent_the_answer_is_a_documented_one() {
    let system = actix_web::rt::System::new();
    let mut fuzzer = system.block_on(Fuzzer::start());
    let targets = system.block_on(fuzzer.targets());
    assert!(targets.len() >= 9, "only {} operations take a body", targets.len());
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let mut failures = Vec::new();
    for target in &targets {
        let case = (request_body(), 0..target.paths.len(), proptest::option::weighted(0.2, any::<u64>()));
        let outcome = TestRunner::new(config.clone())
            .run(&case, |(sent, path, key)| system.block_on(fuzzer.check(target, &sent, path, key)));
        if let Err(failure) = outcome {
            failures.push(format!("{} {}: {failure}", target.method, target.paths[0]));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    // Bodies that are all refused at the first field would show little.
    let accepting = targets.iter().filter(|target| target.has_accepted.get()).count();
    println!("{accepting} of {} operations took a body at least once", targets.len());
    for target in targets.iter().filter(|target| !target.has_accepted.get()) {
        println!("never: {} {} {}", target.method, target.paths[0], target.body);
    }
    assert!(accepting * 2 >= targets.len(), "only {accepting} of {} operations ever took a body", targets.len());
    system.block_on(fuzzer.app.stop());
}
