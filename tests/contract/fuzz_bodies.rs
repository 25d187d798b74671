//! Bodies nobody would send, to every operation that takes one: whatever comes, the answer is a documented one.
//!
//! `PROPTEST_CASES` is the number of bodies for each operation.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{TestCaseError, TestRunner};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::schema::{Schemas, types};
use crate::support::{Reply, TestApp};

/// Bodies for each operation, unless the environment says otherwise: `make test` spends some seconds here.
const CASES: u32 = 48;

/// Stands in a body for text that no JSON value can hold.
const PLACE: &str = "@place@";

/// An operation with a body, and requests it would take.
struct Target {
    method: Method,
    /// With ids that exist; more than one, since a request may use one up.
    paths: Vec<String>,
    body: Value,
    operation: Value,
    /// Whether any body was taken.
    taken: Cell<bool>,
}

/// What is done to a body that would be taken.
#[derive(Clone, Debug)]
enum Mutation {
    /// Puts this text, JSON or not, in the place of a value.
    Replace(Index, String),
    Remove(Index),
    /// Gives an object's field a second time.
    Repeat(Index, String),
    /// Wraps a value into so many lists.
    Nest(Index, usize),
    /// Cuts the text, or changes a byte of it.
    Cut(Index),
    Byte(Index, u8),
}

#[derive(Clone, Debug)]
enum Sent {
    /// Any JSON at all.
    Anything(Value),
    /// A body that would be taken, without the fields whose bits are set, mutated.
    Almost(u32, Vec<Mutation>),
}

/// Texts of values that are easily got wrong.
fn nasty() -> impl Strategy<Value = String> {
    let known = select(vec![
        "null",
        "true",
        "false",
        "[]",
        "{}",
        "[null]",
        "{\"id\":null}",
        "0",
        "-1",
        "1",
        "2",
        "3",
        "1.5",
        "-0.0",
        "1e308",
        "1e400",
        "-9223372036854775808",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "123456789012345678901234567890",
        "0.1e-400",
        "NaN",
        "01",
        "\"\"",
        "\" \"",
        "\"\\u0000\"",
        "\"a\\u0000b\"",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "\"\u{202e}\u{feff}\u{200b}\"",
        "\"\\n\\r\\t\"",
        "\"'; drop table tickets; --\"",
        "\"{{name}}\"",
        "\"%00\"",
        "\"7\"",
        "\"null\"",
        "\"#ffffff\"",
        "\"a@b\"",
        "\"11987654321\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"9999-12-31T23:59:59.999Z\"",
        "\"2026-01-31T12:00:00+23:59\"",
        "{\"a\":1,\"a\":2}",
        "[[[[[[]]]]]]",
        "'x'",
        "",
    ]);
    let long = (select(vec!["x", "é", "😀", " ", "9", "\\u0001"]), select(vec![64, 255, 256, 10_001, 65_537]));
    prop_oneof![
        6 => known.prop_map(str::to_owned),
        1 => long.prop_map(|(text, times)| format!("\"{}\"", text.repeat(times))),
        1 => (1usize..1200).prop_map(|items| format!("[{}]", vec!["1"; items].join(","))),
        2 => any::<String>().prop_map(|text| json!(text).to_string()),
        1 => any::<f64>().prop_map(|number| json!(number).to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
    ]
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            vec((any::<String>(), inner), 0..8).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn sent() -> impl Strategy<Value = Sent> {
    let mutation = prop_oneof![
        8 => (any::<Index>(), nasty()).prop_map(|(at, text)| Mutation::Replace(at, text)),
        3 => any::<Index>().prop_map(Mutation::Remove),
        2 => (any::<Index>(), nasty()).prop_map(|(at, text)| Mutation::Repeat(at, text)),
        1 => (any::<Index>(), select(vec![1, 2, 100, 127, 200, 50_000])).prop_map(|(at, times)| Mutation::Nest(at, times)),
        1 => any::<Index>().prop_map(Mutation::Cut),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
    ];
    let left_out = prop_oneof![2 => Just(0), 3 => any::<u32>()];
    let almost = (left_out, vec(mutation, 0..4)).prop_map(|(left_out, mutations)| Sent::Almost(left_out, mutations));
    prop_oneof![1 => anything().prop_map(Sent::Anything), 6 => almost]
}

/// Where the values of a body are.
fn places(value: &Value) -> Vec<String> {
    fn visit(value: &Value, at: &str, places: &mut Vec<String>) {
        let mut inside = |name: &str, inner: &Value| {
            let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            places.push(place.clone());
            visit(inner, &place, places);
        };
        match value {
            Value::Object(object) => object.iter().for_each(|(name, inner)| inside(name, inner)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, inner)| inside(&index.to_string(), inner));
            }
            _ => {}
        }
    }
    let mut places = vec![String::new()];
    visit(value, "", &mut places);
    places
}

/// Fields whose values are unique in a company.
const UNIQUE: &[&str] = &["name", "shortcut", "key", "email", "sku"];

/// The body, with values nobody has yet where they must be unique.
fn fresh(body: &Value) -> Value {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut body = body.clone();
    for (name, value) in body.as_object_mut().into_iter().flatten() {
        if let Value::String(text) = value
            && UNIQUE.contains(&name.as_str())
        {
            text.push_str(&number.to_string());
        }
    }
    body
}

impl Sent {
    /// The bytes of the body.
    fn bytes(&self, valid: &Value) -> Vec<u8> {
        match self {
            Self::Anything(value) => value.to_string().into_bytes(),
            Self::Almost(left_out, mutations) => {
                let mut value = valid.clone();
                if let Some(fields) = value.as_object_mut() {
                    let mut index = 0;
                    fields.retain(|_, _| {
                        index += 1;
                        left_out >> ((index - 1) % 32) & 1 == 0
                    });
                }
                let mut texts = Vec::new();
                let mut bytes = None;
                for mutation in mutations {
                    mutation.apply(&mut value, &mut texts);
                }
                for mutation in mutations {
                    let bytes = bytes.get_or_insert_with(|| written(&value, &texts));
                    mutation.damage(bytes);
                }
                bytes.unwrap_or_else(|| written(&value, &texts))
            }
        }
    }
}

fn place(texts: &mut Vec<String>, text: String) -> Value {
    texts.push(text);
    json!(format!("{PLACE}{}", texts.len() - 1))
}

/// With every text in its place. The later ones are put first: they may stand around an earlier one.
fn written(value: &Value, texts: &[String]) -> Vec<u8> {
    let mut whole = value.to_string();
    for (index, text) in texts.iter().enumerate().rev() {
        whole = whole.replace(&format!("\"{PLACE}{index}\""), text);
    }
    whole.into_bytes()
}

impl Mutation {
    fn apply(&self, value: &mut Value, texts: &mut Vec<String>) {
        let places = places(value);
        let chosen = |at: &Index| at.get(&places).as_str();
        match self {
            Self::Replace(at, text) => {
                if let Some(found) = value.pointer_mut(chosen(at)) {
                    *found = place(texts, text.clone());
                }
            }
            Self::Remove(at) => {
                let (parent, name) = chosen(at).rsplit_once('/').unwrap_or(("", ""));
                match value.pointer_mut(parent) {
                    Some(Value::Object(object)) => drop(object.remove(name)),
                    Some(Value::Array(items)) => drop(items.pop()),
                    _ => {}
                }
            }
            Self::Repeat(at, text) => {
                let (parent, name) = chosen(at).rsplit_once('/').unwrap_or(("", ""));
                if let Some(Value::Object(object)) = value.pointer_mut(parent)
                    && let Some(known) = object.get(name)
                {
                    let twice = place(texts, format!("{known},{}:{text}", json!(name)));
                    object.insert(name.to_owned(), twice);
                }
            }
            Self::Nest(at, times) => {
                if let Some(found) = value.pointer_mut(chosen(at)) {
                    let nested = format!("{}{found}{}", "[".repeat(*times), "]".repeat(*times));
                    *found = place(texts, nested);
                }
            }
            Self::Cut(_) | Self::Byte(..) => {}
        }
    }

    fn damage(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Self::Byte(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            _ => {}
        }
    }
}

/// A value of a schema, made of its examples; ids are those that exist.
fn example(schemas: Schemas<'_>, name: &str, schema: &Value, ids: &BTreeMap<String, Value>) -> Value {
    let one = name.strip_suffix('s').unwrap_or(name);
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
        Some(&"array") => json!([example(schemas, one, &schema["items"], ids)]),
        Some(&"boolean") => json!(true),
        Some(&"integer" | &"number") => json!(1),
        Some(&"string") => json!("x"),
        _ => Value::Null,
    }
}

/// A service with something of everything a request may name.
struct Scene {
    app: TestApp,
    document: Value,
    /// Ids that exist, by the name of the field.
    ids: BTreeMap<String, Value>,
    /// The visitor's session.
    session: String,
}

impl Scene {
    async fn set() -> Self {
        let app = TestApp::start().await;
        let company = &app.company;
        let (contact, ticket) = (app.contact("5511900000001").await, app.ticket("5511900000002").await);
        let (session, _) = app.session("visitor").await;
        let said = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
        let ids = [
            ("channelId", json!(company.phone)),
            ("queueId", json!(company.support)),
            ("userId", json!(company.ana)),
            ("wrapupTypeId", json!(company.solved)),
            ("contactId", json!(contact)),
            ("ticketId", json!(ticket)),
            ("messageId", said.data(201)["id"].clone()),
        ];
        let ids = ids.map(|(name, id)| (name.to_owned(), id)).into();
        let mut document = hotline::routes::document();
        // The tests' clients are given the address of the API.
        if let Some(paths) = document["paths"].as_object_mut() {
            let below = |(path, methods): (String, Value)| Some((path.strip_prefix("/api/v1")?.to_owned(), methods));
            *paths = std::mem::take(paths).into_iter().filter_map(below).collect();
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

    /// What the body of a `POST` must have.
    fn required(&self, template: &str) -> Vec<&str> {
        let operation = self.operation("post", template).expect("an operation");
        let schema = operation.pointer("/requestBody/content/application~1json/schema/$ref").and_then(Value::as_str);
        let required = schema.and_then(|name| Schemas(&self.document).target(name).get("required"));
        required.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Makes a record of every list there is, and keeps its id by the name it has in the path.
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
                targets.push(Target { method, paths, body, operation, taken: Cell::new(false) });
            }
        }
        targets
    }

    /// A path with ids that exist, as far as one can be had.
    async fn path(&mut self, template: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut known_as = String::new();
        let mut path = String::new();
        for part in template.split('/').skip(1) {
            let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else {
                known_as = format!("{known_as}/{part}");
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
                _ => self.record(&known_as, &path, name).await,
            };
            let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            known_as = format!("{known_as}/{part}");
            path = format!("{path}/{id}");
        }
        path
    }

    /// The id of a record of a list: one that is there, or one that is made.
    async fn record(&mut self, template: &str, path: &str, name: &str) -> Value {
        if let Some(id) = self.ids.get(name) {
            return id.clone();
        }
        let mut found = Value::Null;
        if let Some(body) = self.operation("post", template).and_then(|operation| self.body(operation)) {
            let required = self.required(template);
            let mut least = body.clone();
            least.as_object_mut().expect("an object").retain(|name, _| required.contains(&name.as_str()));
            for body in [&body, &least] {
                if found.is_null() {
                    found = self.app.api.post(path, fresh(body)).await.body["data"]["id"].clone();
                }
            }
        }
        if found.is_null() && self.operation("get", template).is_some() {
            found = self.app.api.get(path).await.body["data"][0]["id"].clone();
        }
        if found.is_null() { json!(7) } else { found }
    }

    /// Sends a body and holds the answer against the document.
    async fn check(&self, target: &Target, sent: &Sent, path: usize, key: Option<u64>) -> Result<(), TestCaseError> {
        let path = &target.paths[path];
        let bytes = sent.bytes(&fresh(&target.body));
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
        target.taken.set(target.taken.get() || reply.status.is_success());
        prop_assert!(status < 500, "a defect: {}", about());
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
            // Nobody here has a limit.
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
    let mut scene = system.block_on(Scene::set());
    let targets = system.block_on(scene.targets());
    assert!(targets.len() >= 9, "only {} operations take a body", targets.len());
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let mut failures = Vec::new();
    for target in &targets {
        let case = (sent(), 0..target.paths.len(), proptest::option::weighted(0.2, any::<u64>()));
        let outcome = TestRunner::new(config.clone())
            .run(&case, |(sent, path, key)| system.block_on(scene.check(target, &sent, path, key)));
        if let Err(failure) = outcome {
            failures.push(format!("{} {}: {failure}", target.method, target.paths[0]));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    // Bodies that are all refused at the first field would show little.
    let taken = targets.iter().filter(|target| target.taken.get()).count();
    println!("{taken} of {} operations took a body at least once", targets.len());
    for target in targets.iter().filter(|target| !target.taken.get()) {
        println!("never: {} {} {}", target.method, target.paths[0], target.body);
    }
    assert!(taken * 2 >= targets.len(), "only {taken} of {} operations ever took a body", targets.len());
    system.block_on(scene.app.stop());
}
