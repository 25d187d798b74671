//! Whatever is sent, the answer is an envelope that says what is wrong: never a defect, never silence.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::{NOBODY, close, id, sent};
use crate::support::{Company, Reply, TestApp, eventually};

/// A value that is well formed and names nothing.
const FAR: i64 = i64::MAX;

/// What a body's field takes.
#[derive(Clone, Copy)]
enum Takes {
    /// An id of this company; the other company's id of the same kind, and the code that answers it.
    Id {
        foreign: i64,
        code: &'static str,
    },
    /// Text: a value that is just too long.
    Text {
        too_long: fn() -> String,
    },
    /// One of some words.
    Word,
    /// `true` or `false`.
    Bool,
    Object,
}

/// A field of a body, by its path.
struct Field {
    path: &'static str,
    takes: Takes,
    /// What is named when it is missing; none when it may be.
    required: Option<&'static str>,
}

/// An endpoint that takes a body.
struct Endpoint {
    method: Method,
    path: String,
    body: Value,
    status: u16,
    /// What an empty object lacks.
    lacks: Vec<&'static str>,
    fields: Vec<Field>,
    may_be_empty: bool,
}

fn optional(path: &'static str, takes: Takes) -> Field {
    Field { path, takes, required: None }
}

fn required(path: &'static str, takes: Takes) -> Field {
    Field { path, takes, required: Some(path) }
}

fn some_id(foreign: i64) -> Takes {
    Takes::Id { foreign, code: "ERR_API_NOT_FOUND" }
}

const NAME: Takes = Takes::Text { too_long: || "é".repeat(256) };
const TEXT: Takes = Takes::Text { too_long: || "é".repeat(10_001) };
/// Cut, and never too long: what is not accepted of it is what PostgreSQL cannot store.
const CUT: Takes = Takes::Text { too_long: || "\0".to_owned() };
const BODY: Takes = Takes::Text { too_long: || "é".repeat(32_769) };
const NUMBER: Takes = Takes::Text { too_long: || "1234567890123456".to_owned() };
const EMAIL: Takes = Takes::Text { too_long: || format!("{}@example.com", "a".repeat(255)) };
const CLIENT_ID: Takes = Takes::Text { too_long: || "é".repeat(65) };

/// Two companies: everything of the second is foreign to the first, which asks.
struct Scene {
    app: TestApp,
    other: Company,
    other_contact: i64,
    other_ticket: i64,
    other_message: i64,
    other_session: String,
}

impl Scene {
    async fn set() -> Self {
        let app = TestApp::start().await;
        let (other, api) = app.another_company().await;
        let message =
            sent(&api, json!({"channelId": other.phone, "number": "5511900000009", "type": "text", "body": "x"})).await;
        let session = api.post("/webchat/sessions", json!({"channelId": other.webchat})).await;
        let other_session = session.data(201)["id"].as_str().expect("id").to_owned();
        Self {
            other_contact: message["contactId"].as_i64().expect("contact"),
            other_ticket: message["ticketId"].as_i64().expect("ticket"),
            other_message: id(&message),
            other_session,
            app,
            other,
        }
    }

    /// Every endpoint that takes a body, with a body it takes.
    async fn endpoints(&self) -> Vec<Endpoint> {
        let Self { app, other, .. } = self;
        let company = &app.company;
        let contact = app.contact("5511900000001").await;
        let (transferred, closed) = (app.ticket("5511900000002").await, app.ticket("5511900000003").await);
        let (noted, wrapped) = (app.ticket("5511900000004").await, app.ticket("5511900000005").await);
        let sent_in = app.ticket("5511900000006").await;
        close(&app.api, wrapped.0).await;
        let (session, visitor) = app.session("visitor").await;
        let said = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
        let question = interactive(app, said.data(201)).await;
        let queue = || some_id(other.support.0);
        let user = || some_id(other.ana.0);
        let wrapup = || some_id(other.sold.0);
        let send_fields = |recipient: Field| {
            vec![
                recipient,
                required("type", Takes::Word),
                required("body", BODY),
                optional("reopenTicket", Takes::Bool),
                optional("queueId", queue()),
                optional("closeTicket", Takes::Bool),
                optional("wrapupTypeId", wrapup()),
                optional("wrapupNote", TEXT),
            ]
        };
        let send = |recipient: Value| {
            let mut body = json!({
                "type": "text", "body": "hello", "reopenTicket": true, "queueId": company.sales, "closeTicket": true,
                "wrapupTypeId": company.sold, "wrapupNote": "done",
            });
            body.as_object_mut().expect("object").extend(recipient.as_object().expect("object").clone());
            body
        };
        let messages_lack = vec!["channelId", "type"];
        let endpoint = |method: Method, path: String, status, body, lacks: Vec<&'static str>, fields| Endpoint {
            method,
            path,
            status,
            body,
            lacks,
            fields,
            may_be_empty: false,
        };
        let mut by_number = send_fields(optional("number", NUMBER));
        by_number.push(required("channelId", some_id(other.phone.0)));
        by_number.push(optional("contactName", NAME));
        let mut by_contact = send_fields(optional(
            "contactId",
            Takes::Id { foreign: self.other_contact, code: "ERR_API_CONTACT_NOT_FOUND" },
        ));
        by_contact.push(required("channelId", some_id(other.webchat.0)));
        let mut by_ticket =
            send_fields(Field { required: Some("channelId"), ..optional("ticketId", some_id(self.other_ticket)) });
        by_ticket.push(optional("channelId", some_id(other.phone.0)));
        vec![
            endpoint(
                Method::POST,
                "/tickets".to_owned(),
                201,
                json!({"channelId": company.phone, "contactId": contact, "queueId": company.sales, "userId": company.ben}),
                vec!["channelId", "contactId"],
                vec![
                    required("channelId", some_id(other.phone.0)),
                    required("contactId", some_id(self.other_contact)),
                    optional("queueId", queue()),
                    optional("userId", user()),
                ],
            ),
            endpoint(
                Method::POST,
                format!("/tickets/{transferred}/transfer"),
                200,
                json!({"queueId": company.sales, "userId": company.ben}),
                vec!["queueId"],
                vec![optional("queueId", queue()), optional("userId", user())],
            ),
            Endpoint {
                may_be_empty: true,
                ..endpoint(
                    Method::POST,
                    format!("/tickets/{closed}/close"),
                    200,
                    json!({"wrapupTypeId": company.sold, "wrapupNote": "done"}),
                    vec![],
                    vec![optional("wrapupTypeId", wrapup()), optional("wrapupNote", TEXT)],
                )
            },
            endpoint(
                Method::PUT,
                format!("/tickets/{wrapped}/wrapup"),
                200,
                json!({"wrapupTypeId": company.sold, "wrapupNote": "done"}),
                vec!["wrapupTypeId"],
                vec![required("wrapupTypeId", wrapup()), optional("wrapupNote", TEXT)],
            ),
            endpoint(
                Method::POST,
                format!("/tickets/{noted}/notes"),
                201,
                json!({"body": "a note"}),
                vec!["body"],
                vec![required("body", BODY)],
            ),
            endpoint(
                Method::POST,
                "/messages".to_owned(),
                202,
                send(json!({"channelId": company.phone, "number": "5511900000007", "contactName": "Seven"})),
                messages_lack.clone(),
                by_number,
            ),
            endpoint(
                Method::POST,
                "/messages".to_owned(),
                202,
                send(json!({"channelId": company.webchat, "contactId": visitor})),
                messages_lack.clone(),
                by_contact,
            ),
            endpoint(
                Method::POST,
                "/messages".to_owned(),
                202,
                send(json!({"channelId": company.phone, "ticketId": sent_in})),
                messages_lack,
                by_ticket.into_iter().filter(|field| field.path != "ticketId").collect(),
            ),
            endpoint(
                Method::POST,
                "/messages".to_owned(),
                202,
                json!({"ticketId": sent_in, "type": "text", "body": "hello"}),
                vec!["channelId", "type"],
                vec![Field { required: Some("channelId"), ..optional("ticketId", some_id(self.other_ticket)) }],
            ),
            endpoint(
                Method::POST,
                "/webchat/sessions".to_owned(),
                201,
                json!({
                    "channelId": company.webchat,
                    "visitor": {"name": "Vera", "email": "vera@example.com", "number": "5511900000008", "externalId": "v"},
                    "page": {"url": "https://example.com/", "title": "Home", "referrer": "https://example.org/"},
                    "utm": {"source": "s", "medium": "m", "campaign": "c", "id": "i"},
                }),
                vec!["channelId"],
                vec![
                    required("channelId", some_id(other.webchat.0)),
                    optional("visitor", Takes::Object),
                    optional("visitor.name", NAME),
                    optional("visitor.email", EMAIL),
                    optional("visitor.number", NUMBER),
                    optional("visitor.externalId", NAME),
                    optional("page", Takes::Object),
                    optional("page.url", CUT),
                    optional("page.title", CUT),
                    optional("page.referrer", CUT),
                    optional("utm", Takes::Object),
                    optional("utm.source", CUT),
                    optional("utm.medium", CUT),
                    optional("utm.campaign", CUT),
                    optional("utm.id", CUT),
                ],
            ),
            endpoint(
                Method::POST,
                "/webchat/sessions".to_owned(),
                201,
                json!({"channelId": company.webchat, "contactId": contact}),
                vec!["channelId"],
                vec![
                    required("channelId", some_id(other.webchat.0)),
                    optional("contactId", some_id(self.other_contact)),
                ],
            ),
            endpoint(
                Method::POST,
                format!("/webchat/sessions/{session}/messages"),
                201,
                json!({"body": "hello", "clientId": "c1"}),
                vec!["body"],
                vec![required("body", BODY), optional("clientId", CLIENT_ID)],
            ),
            endpoint(
                Method::POST,
                format!("/webchat/sessions/{session}/messages"),
                201,
                json!({"reply": {"messageId": question, "id": "yes"}}),
                vec!["body"],
                vec![
                    Field { required: Some("body"), ..optional("reply", Takes::Object) },
                    required("reply.messageId", some_id(self.other_message)),
                    required("reply.id", Takes::Text { too_long: || "x".repeat(257) }),
                ],
            ),
        ]
    }

    async fn ask(&self, endpoint: &Endpoint, body: &Value) -> Reply {
        let request = self.app.api.request(endpoint.method.clone(), &endpoint.path).json(body);
        checked(Reply::of(request).await)
    }

    async fn ask_raw(&self, endpoint: &Endpoint, kind: Option<&str>, body: impl Into<reqwest::Body>) -> Reply {
        let mut request = self.app.api.request(endpoint.method.clone(), &endpoint.path).body(body);
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        checked(Reply::of(request).await)
    }
}

/// Puts a question with one option into a visitor's conversation.
async fn interactive(app: &TestApp, said: &Value) -> i64 {
    app.api.get("/messages").await.data(200);
    let question = 1_000_000_000_i64;
    sqlx::query(
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, interactive, status,
             source, created_at)
         values ($1, $2, $3, $4, $5, 'outbound', 'interactive', $6, 'sent', 'api', now())",
    )
    .bind(app.company.id)
    .bind(question)
    .bind(said["ticketId"].as_i64())
    .bind(said["contactId"].as_i64())
    .bind(said["channelId"].as_i64())
    .bind(json!({
        "type": "button", "body": {"text": "Sure?"},
        "action": {"buttons": [{"type": "reply", "reply": {"id": "yes", "title": "Yes"}}]},
    }))
    .execute(&app.database.db)
    .await
    .expect("a question");
    question
}

/// What every answer has, whatever was asked.
#[track_caller]
fn checked(reply: Reply) -> Reply {
    assert!(!reply.status.is_server_error(), "a defect shows: {} {}", reply.status, reply.body);
    assert!(reply.headers.contains_key("x-request-id"), "no request id: {}", reply.body);
    if !reply.status.is_success() {
        assert!(
            reply.body["error"]["code"].as_str().is_some_and(|code| code.starts_with("ERR_API_")),
            "{}",
            reply.body
        );
        assert!(reply.body["error"]["message"].is_string(), "{}", reply.body);
        assert_eq!(reply.headers["content-type"], "application/json", "{}", reply.body);
    }
    reply
}

/// The body with another value at a path; none takes the field away.
fn with(body: &Value, path: &str, value: Option<Value>) -> Value {
    let mut body = body.clone();
    let (parent, name) = match path.split_once('.') {
        Some((parent, name)) => (&mut body[parent], name),
        None => (&mut body, path),
    };
    let object = parent.as_object_mut().expect("object");
    match value {
        Some(value) => object.insert(name.to_owned(), value),
        None => object.remove(name),
    };
    body
}

/// Values of the kinds a field does not take.
fn wrong_kinds(takes: Takes) -> Vec<Value> {
    let (number, text, boolean, array, object) = (json!(7), json!("seven"), json!(true), json!([7]), json!({"a": 7}));
    match takes {
        Takes::Id { .. } => vec![text, boolean, array, object, json!("7"), json!(1.5)],
        Takes::Text { .. } => vec![number, boolean, array, object],
        Takes::Word => {
            vec![number, text, boolean, array, object, json!(""), json!("te\0xt"), json!("x".repeat(100_000))]
        }
        Takes::Bool => vec![number, text, array, object, json!("true"), json!(0)],
        Takes::Object => vec![number, text, boolean, array],
    }
}

#[actix_web::test]
async fn a_field_of_the_wrong_kind_is_named_on_every_endpoint() {
    let scene = Scene::set().await;
    for endpoint in scene.endpoints().await {
        for field in &endpoint.fields {
            let mut values = wrong_kinds(field.takes);
            if let Takes::Text { too_long } = field.takes {
                values.push(json!(too_long()));
                values.push(json!("123456789\u{0}"));
            }
            for value in values {
                let reply = scene.ask(&endpoint, &with(&endpoint.body, field.path, Some(value.clone()))).await;
                let named: BTreeSet<String> = reply.invalid_fields().into_iter().collect();
                let shown: String = value.to_string().chars().take(60).collect();
                assert_eq!(named, [field.path.to_owned()].into(), "{} {}: {shown}", endpoint.path, field.path);
            }
        }
        // The body itself is good: it was the field each time.
        let reply = scene.ask(&endpoint, &endpoint.body).await;
        assert_eq!(reply.status, endpoint.status, "{}: {}", endpoint.path, reply.body);
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn blank_text_is_refused_where_text_is_required() {
    let scene = Scene::set().await;
    let mut tried = 0;
    for endpoint in scene.endpoints().await {
        for field in &endpoint.fields {
            if let (Takes::Text { .. }, Some(_)) = (field.takes, field.required) {
                for blank in ["", "  \t\n "] {
                    let reply = scene.ask(&endpoint, &with(&endpoint.body, field.path, Some(json!(blank)))).await;
                    assert_eq!(reply.invalid_fields(), [field.path], "{}", endpoint.path);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried >= 10, "nothing was tried");
    scene.app.stop().await;
}

#[actix_web::test]
async fn every_missing_field_is_named_at_once() {
    let scene = Scene::set().await;
    for endpoint in scene.endpoints().await {
        for field in &endpoint.fields {
            let Some(named) = field.required else { continue };
            for value in [None, Some(Value::Null)] {
                let reply = scene.ask(&endpoint, &with(&endpoint.body, field.path, value)).await;
                assert_eq!(reply.invalid_fields(), [named], "{} without {}", endpoint.path, field.path);
            }
        }
        if !endpoint.lacks.is_empty() {
            let mut named = scene.ask(&endpoint, &json!({})).await.invalid_fields();
            named.sort();
            assert_eq!(named, endpoint.lacks, "{}", endpoint.path);
        }
        let everything_wrong = endpoint.fields.iter().filter(|field| !field.path.contains('.'));
        let body: Value = everything_wrong
            .clone()
            .map(|field| (field.path.to_owned(), wrong_kinds(field.takes)[0].clone()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut expected: Vec<&str> = everything_wrong.map(|field| field.path).collect();
        expected.sort_unstable();
        let named: BTreeSet<String> = scene.ask(&endpoint, &body).await.invalid_fields().into_iter().collect();
        for wrong in expected {
            assert!(named.contains(wrong), "{}: {wrong} is not among {named:?}", endpoint.path);
        }
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn null_is_as_good_as_absent_where_a_field_may_be_absent() {
    let scene = Scene::set().await;
    for endpoint in scene.endpoints().await {
        let mut body = endpoint.body.clone();
        for field in &endpoint.fields {
            // Of queueId and userId a transfer needs one.
            let is_recipient = matches!(field.path, "number" | "contactId" | "queueId");
            if field.required.is_none() && !is_recipient && !field.path.contains('.') {
                body = with(&body, field.path, Some(Value::Null));
            }
        }
        // What must be said of a visitor, a page or a campaign: nothing.
        for field in endpoint.fields.iter().filter(|field| field.path.contains('.') && field.required.is_none()) {
            let parent = field.path.split('.').next().expect("parent");
            if body[parent].is_null() {
                body[parent] = json!({});
            }
            body = with(&body, field.path, Some(Value::Null));
        }
        let reply = scene.ask(&endpoint, &body).await;
        assert_eq!(reply.status, endpoint.status, "{} {body}: {}", endpoint.path, reply.body);
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn blank_text_is_as_good_as_null_where_text_may_be_absent() {
    let scene = Scene::set().await;
    let mut blanked = 0;
    for endpoint in scene.endpoints().await {
        let mut body = endpoint.body.clone();
        for field in &endpoint.fields {
            // The number is whom it is for.
            if matches!(field.takes, Takes::Text { .. }) && field.required.is_none() && field.path != "number" {
                body = with(&body, field.path, Some(json!(" \t\n")));
                blanked += 1;
            }
        }
        let reply = scene.ask(&endpoint, &body).await;
        assert_eq!(reply.status, endpoint.status, "{} {body}: {}", endpoint.path, reply.body);
    }
    assert!(blanked >= 15, "hardly anything was blank: {blanked}");
    scene.app.stop().await;
}

#[actix_web::test]
async fn an_id_of_another_company_in_a_body_is_the_404_of_an_id_nobody_has() {
    let scene = Scene::set().await;
    for endpoint in scene.endpoints().await {
        for field in &endpoint.fields {
            let Takes::Id { foreign, code } = field.takes else { continue };
            let ask = async |id: Value| {
                let reply = scene.ask(&endpoint, &with(&endpoint.body, field.path, Some(id))).await;
                reply.error(404, code);
                reply.body
            };
            let nobody = ask(json!(NOBODY)).await;
            for absent in [foreign, FAR, 0, -1, i64::MIN] {
                assert_eq!(ask(json!(absent)).await, nobody, "{} {}: {absent}", endpoint.path, field.path);
            }
            // Too large to exist.
            for beyond in [json!(9_223_372_036_854_775_808_u64), json!(1e30), json!(-1e30), json!(f64::MAX)] {
                assert_eq!(ask(beyond.clone()).await, nobody, "{} {}: {beyond}", endpoint.path, field.path);
            }
        }
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn unknown_fields_are_ignored() {
    let scene = Scene::set().await;
    for endpoint in scene.endpoints().await {
        let mut body = endpoint.body.clone();
        for (name, value) in
            [("companyId", json!(scene.other.id)), ("id", json!("x")), ("unknown\u{0}", json!({"a": [null]}))]
        {
            body[name] = value;
        }
        let reply = scene.ask(&endpoint, &body).await;
        assert_eq!(reply.status, endpoint.status, "{}: {}", endpoint.path, reply.body);
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn a_body_that_is_no_json_object_is_told_why() {
    let scene = Scene::set().await;
    const JSON: Option<&str> = Some("application/json");
    for endpoint in scene.endpoints().await {
        let nested = "[".repeat(100_000);
        let broken: [&[u8]; 9] = [
            b"{",
            b"{\"body\":",
            b"{'a': 1}",
            b"hello",
            b"{} {}",
            b"\xff\xfe",
            b"{\"body\": \"\\ud800\"}",
            b"{\"body\": NaN}",
            nested.as_bytes(),
        ];
        for bytes in broken {
            let reply = scene.ask_raw(&endpoint, JSON, bytes.to_vec()).await;
            reply.error(400, "ERR_API_BAD_REQUEST");
        }
        if !endpoint.may_be_empty {
            scene.ask_raw(&endpoint, JSON, "").await.error(400, "ERR_API_BAD_REQUEST");
            scene.ask_raw(&endpoint, None, "").await.error(400, "ERR_API_BAD_REQUEST");
        }
        for other in ["[]", "\"text\"", "7", "null", "true", "[{}]"] {
            let reply = scene.ask_raw(&endpoint, JSON, other).await;
            assert_eq!(reply.invalid_fields().len(), 1, "{}: {other}", endpoint.path);
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/xml", "json", "application/jsonp"]
        {
            let reply = scene.ask_raw(&endpoint, Some(kind), endpoint.body.to_string()).await;
            reply.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
        }
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn json_by_any_spelling_of_its_content_type_is_taken() {
    let scene = Scene::set().await;
    let ticket = scene.app.ticket("5511900000001").await;
    let path = format!("/tickets/{ticket}/notes");
    for kind in
        ["application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"]
    {
        let request = scene.app.api.request(Method::POST, &path).header("content-type", kind).body(r#"{"body": "x"}"#);
        assert_eq!(checked(Reply::of(request).await).status, 201, "{kind}");
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn a_body_above_one_mebibyte_is_refused_and_the_client_hears_of_it() {
    let scene = Scene::set().await;
    const MEBIBYTE: usize = 1 << 20;
    for endpoint in scene.endpoints().await {
        for size in [MEBIBYTE + 1, 2 * MEBIBYTE] {
            let mut body = with(&endpoint.body, "filler", Some(json!(""))).to_string();
            let filler = "x".repeat(size - body.len());
            body = body.replace(r#""filler":"""#, &format!(r#""filler":"{filler}""#));
            assert_eq!(body.len(), size);
            scene.ask_raw(&endpoint, Some("application/json"), body).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
        }
    }
    let ticket = scene.app.ticket("5511900000010").await;
    let text = "x".repeat(MEBIBYTE - r#"{"body":"","unknown":""}"#.len() - 1);
    let body = format!(r#"{{"body":"x","unknown":"{text}"}}"#);
    assert_eq!(body.len(), MEBIBYTE);
    let request = scene.app.api.request(Method::POST, &format!("/tickets/{ticket}/notes"));
    let reply = Reply::of(request.header("content-type", "application/json").body(body)).await;
    assert_eq!(reply.status, 201, "a mebibyte is not above one: {}", reply.body);
    scene.app.stop().await;
}

#[actix_web::test]
async fn what_is_sent_to_an_endpoint_without_a_body_does_no_harm() {
    let scene = Scene::set().await;
    let app = &scene.app;
    let ticket = app.ticket("5511900000001").await;
    let (session, _) = app.session("visitor").await;
    for path in [
        format!("/tickets/{ticket}/read"),
        format!("/tickets/{ticket}/reopen"),
        format!("/webchat/sessions/{session}/end"),
    ] {
        for (kind, body) in [("application/json", "{"), ("text/plain", "hello"), ("application/json", "[1]")] {
            let request = app.api.request(Method::POST, &path).header("content-type", kind).body(body);
            checked(Reply::of(request).await);
        }
        let plain = checked(Reply::of(app.api.request(Method::POST, &path)).await);
        let expected = if path.ends_with("reopen") { 409 } else { 200 };
        assert_eq!(plain.status, expected, "{path}: {}", plain.body);
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn a_path_id_that_is_none_is_the_404_of_an_id_nobody_has() {
    let scene = Scene::set().await;
    let app = &scene.app;
    let nobody = app.api.get(&format!("/tickets/{NOBODY}")).await.body;
    let wrapup = json!({"wrapupTypeId": app.company.sold});
    let routes = [
        (Method::GET, "/contacts/{}", Value::Null, scene.other_contact.to_string()),
        (Method::GET, "/tickets/{}", Value::Null, scene.other_ticket.to_string()),
        (Method::POST, "/tickets/{}/transfer", json!({"userId": null}), scene.other_ticket.to_string()),
        (Method::POST, "/tickets/{}/close", json!({}), scene.other_ticket.to_string()),
        (Method::POST, "/tickets/{}/reopen", json!({}), scene.other_ticket.to_string()),
        (Method::PUT, "/tickets/{}/wrapup", wrapup, scene.other_ticket.to_string()),
        (Method::POST, "/tickets/{}/read", json!({}), scene.other_ticket.to_string()),
        (Method::GET, "/tickets/{}/messages", Value::Null, scene.other_ticket.to_string()),
        (Method::GET, "/tickets/{}/events", Value::Null, scene.other_ticket.to_string()),
        (Method::POST, "/tickets/{}/notes", json!({"body": "x"}), scene.other_ticket.to_string()),
        (Method::GET, "/messages/jobs/{}", Value::Null, format!("job_{}", scene.other_message)),
        (Method::GET, "/messages/{}", Value::Null, scene.other_message.to_string()),
        (Method::GET, "/channels/{}", Value::Null, scene.other.phone.to_string()),
        (Method::GET, "/webchat/sessions/{}", Value::Null, scene.other_session.clone()),
        (Method::GET, "/webchat/sessions/{}/messages", Value::Null, scene.other_session.clone()),
        (Method::POST, "/webchat/sessions/{}/messages", json!({"body": "x"}), scene.other_session.clone()),
        (Method::POST, "/webchat/sessions/{}/end", json!({}), scene.other_session.clone()),
    ];
    let bad = [
        "abc",
        "0",
        "-1",
        "99999999999999999999",
        "%00",
        "1%00",
        "1%2F2",
        "1.0",
        "1e3",
        "0x1",
        "%20",
        "%FF",
        "%C3%A9",
        "%25",
        "job_",
        "job_0",
        "job_01",
        "job_+1",
        "job_-1",
        "job_99999999999999999999",
        "job_abc",
        "..%2F1",
        "'",
        "ws_",
        "null",
        "%F0%9F%98%80",
        "9223372036854775807",
        "-9223372036854775808",
        "999999999",
    ];
    let mut wrong = Vec::new();
    for (method, template, body, foreign) in routes {
        for id in bad.iter().copied().chain([foreign.as_str(), "a".repeat(4000).as_str()]) {
            let mut request = app.api.request(method.clone(), &template.replace("{}", id));
            if !body.is_null() {
                request = request.json(&body);
            }
            let reply = Reply::of(request).await;
            if reply.status != 404 || reply.body != nobody || !reply.headers.contains_key("x-request-id") {
                wrong.push(format!("{method} {template} with {id:.40}: {} {}", reply.status, reply.body));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    scene.app.stop().await;
}

#[actix_web::test]
async fn a_filter_that_is_not_accepted_is_named_on_every_list() {
    let scene = Scene::set().await;
    let app = &scene.app;
    let ticket = app.ticket("5511900000001").await;
    let (session, _) = app.session("visitor").await;
    const IDS: &[&str] = &["abc", "", "1.5", "1e3", "%00", "1,2", "null", "%FF"];
    const WORDS: &[&str] = &["bogus", "", "%00", "Open;", "open,closed", "%FF"];
    const BOOLS: &[&str] = &["maybe", "", "1", "yes", "%00"];
    const TIMES: &[&str] =
        &["yesterday", "", "2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "%00", "99999-01-01T00:00:00Z"];
    let long = "x".repeat(256);
    let texts = ["%00", "a%00b", long.as_str()];
    let numbers = ["abc", "", "1234567", "1234567890123456", "%00"];
    let emails = ["abc", "", "@", "a%40b%40c", "%00"];
    let created: [(&str, &[&str]); 2] = [("createdFrom", TIMES), ("createdTo", TIMES)];
    let updated: [(&str, &[&str]); 2] = [("updatedFrom", TIMES), ("updatedTo", TIMES)];
    let tickets: [(&str, &[&str]); 12] = [
        ("status", WORDS),
        ("queueId", IDS),
        ("userId", IDS),
        ("contactId", IDS),
        ("channelId", IDS),
        ("wrapupTypeId", IDS),
        ("unassigned", BOOLS),
        ("search", &texts),
        ("openedFrom", TIMES),
        ("openedTo", TIMES),
        ("closedFrom", TIMES),
        ("closedTo", TIMES),
    ];
    let messages: [(&str, &[&str]); 6] = [
        ("ticketId", IDS),
        ("contactId", IDS),
        ("channelId", IDS),
        ("direction", WORDS),
        ("type", WORDS),
        ("status", WORDS),
    ];
    let contacts: [(&str, &[&str]); 7] = [
        ("search", &texts),
        ("number", &numbers),
        ("email", &emails),
        ("tagId", IDS),
        ("channelId", IDS),
        ("origin", &texts),
        ("isGroup", BOOLS),
    ];
    let lists = [
        ("/tickets".to_owned(), [&tickets[..], &created, &updated].concat()),
        (format!("/tickets/{ticket}/messages"), created.to_vec()),
        (format!("/tickets/{ticket}/events"), created.to_vec()),
        ("/messages".to_owned(), [&messages[..], &created].concat()),
        ("/contacts".to_owned(), [&contacts[..], &created, &updated].concat()),
        ("/channels".to_owned(), [&[("type", WORDS), ("status", WORDS)], &created[..], &updated].concat()),
        (format!("/webchat/sessions/{session}/messages"), vec![("after", IDS)]),
    ];
    for (path, filters) in lists {
        for (filter, values) in &filters {
            for value in *values {
                let reply = checked(app.api.get(&format!("{path}?{filter}={value}")).await);
                assert_eq!(reply.invalid_fields(), [*filter], "{path}?{filter}={value}");
            }
        }
        let all: Vec<String> = filters.iter().map(|(filter, values)| format!("{filter}={}", values[0])).collect();
        let mut named = checked(app.api.get(&format!("{path}?order=up&{}", all.join("&"))).await).invalid_fields();
        named.sort();
        let mut expected: Vec<&str> = filters.iter().map(|(filter, _)| *filter).chain(["order"]).collect();
        expected.sort_unstable();
        assert_eq!(named, expected, "{path}");
        for (filter, values) in
            filters.iter().map(|(filter, values)| (*filter, *values)).chain([("order", &["asc"][..])])
        {
            let reply = checked(app.api.get(&format!("{path}?{filter}={0}&{filter}={0}", values[0])).await);
            assert_eq!(reply.invalid_fields(), [filter], "{path}: given twice");
        }
        for odd in ["%", "%zz", "&&&", "=", "a=b=c", "%00=%00", "page=%00&perPage=%FF", "status"] {
            let reply = checked(app.api.get(&format!("{path}?{odd}")).await);
            assert!([200, 422].contains(&reply.status.as_u16()), "{path}?{odd}: {}", reply.body);
        }
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn an_id_in_a_filter_that_is_not_the_companys_is_a_404() {
    let scene = Scene::set().await;
    let (app, other) = (&scene.app, &scene.other);
    let nobody = app.api.get(&format!("/tickets/{NOBODY}")).await.body;
    let tag: i64 = sqlx::query_scalar("insert into tags (company_id, name) values ($1, 'Foreign') returning id")
        .bind(other.id)
        .fetch_one(&app.database.db)
        .await
        .expect("tag");
    for (filter, foreign) in [
        ("/tickets?queueId", other.support.0),
        ("/tickets?userId", other.ana.0),
        ("/tickets?contactId", scene.other_contact),
        ("/tickets?channelId", other.phone.0),
        ("/tickets?wrapupTypeId", other.sold.0),
        ("/messages?ticketId", scene.other_ticket),
        ("/messages?contactId", scene.other_contact),
        ("/messages?channelId", other.phone.0),
        ("/contacts?tagId", tag),
        ("/contacts?channelId", other.phone.0),
    ] {
        let known = [foreign, NOBODY, 0, -1, i64::MAX, i64::MIN].map(|id| id.to_string());
        for absent in known.iter().map(String::as_str).chain(["99999999999999999999", "-99999999999999999999"]) {
            let reply = checked(app.api.get(&format!("{filter}={absent}")).await);
            reply.error(404, "ERR_API_NOT_FOUND");
            assert_eq!(reply.body, nobody, "{filter}={absent}");
        }
    }
    scene.app.stop().await;
}

#[actix_web::test]
async fn another_spelling_of_a_path_is_no_way_around_the_tokens_permissions() {
    let app = TestApp::start().await;
    let permissions = [("tickets".to_owned(), ["GET".to_owned()].into())].into();
    let new = hotline_persistence::tables::tokens::NewToken { name: "reader", permissions, ..Default::default() };
    let (_, key) =
        hotline_persistence::tables::tokens::insert(&app.database.db, app.company.id, new).await.expect("token");
    let reader = app.api.with_key(&key);
    eventually("the token is seen", || async { reader.get("/tickets").await.status == 200 }).await;
    let contact = app.contact("5511900000001").await;
    let mut wrong = Vec::new();
    let mut expect = |what: &str, reply: Reply, statuses: [u16; 2]| {
        if !statuses.contains(&reply.status.as_u16()) {
            wrong.push(format!("{what}: {} {:.80}", reply.status, reply.body.to_string()));
        }
    };
    for path in [
        "/%63ontacts",
        "/c%6Fntacts",
        "/%6Dessages",
        "/%63hannels",
        "//contacts",
        "/./contacts",
        "/tickets/../contacts",
    ] {
        expect(path, reader.get(path).await, [403, 404]);
    }
    let open = json!({"channelId": app.company.phone, "contactId": contact});
    expect("POST /%74ickets", reader.post("/%74ickets", open).await, [403, 404]);
    for path in ["/api%2Fv1/contacts", "/%61pi/v1/contacts", "/api/%761/contacts", "/%61pi/v1/%63ontacts"] {
        let request = reader.anonymous(Method::GET, path).bearer_auth(&key);
        expect(path, Reply::of(request).await, [403, 404]);
        expect(path, Reply::of(reader.anonymous(Method::GET, path)).await, [401, 404]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    app.stop().await;
}
