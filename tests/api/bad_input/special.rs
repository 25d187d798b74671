//! Refusals that the schemas do not describe, or not as clearly.

use reqwest::Method;
use serde_json::{Value, json};

use super::{checked, world};
use crate::front_door::table::name;
use crate::front_door::world::World;
use crate::support::{Reply, TestApp, eventually};

/// Asserts that the body is refused for this field alone.
async fn assert_refused(app: &TestApp, path: &str, body: Value, field: &str) {
    let reply = checked(app.api.post(path, body.clone()).await);
    let shown: String = body.to_string().chars().take(80).collect();
    assert_eq!(reply.invalid_fields(), [field], "{path}: {shown}");
}

#[actix_web::test]
async fn a_text_is_limited_by_its_bytes_where_a_channel_counts_bytes() {
    let app = TestApp::shared().await;
    let ticket = app.ticket("5511900000001").await;
    let (session, _) = app.session("visitor").await;
    // 32,769 letters of two bytes each.
    let long = "é".repeat(32_769);
    assert_refused(&app, "/messages", json!({"ticketId": ticket, "type": "text", "body": long}), "body").await;
    assert_refused(&app, &format!("/tickets/{ticket}/notes"), json!({"body": long}), "body").await;
    assert_refused(&app, &format!("/webchat/sessions/{session}/messages"), json!({"body": long}), "body").await;
    let longest = "é".repeat(32_768);
    app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": longest})).await.data(201);
    app.stop().await;
}

#[actix_web::test]
async fn a_required_text_must_not_be_blank() {
    let app = TestApp::shared().await;
    let ticket = app.ticket("5511900000001").await;
    let (session, _) = app.session("visitor").await;
    for blank in ["", "  \t\n "] {
        assert_refused(&app, "/messages", json!({"ticketId": ticket, "type": "text", "body": blank}), "body").await;
        assert_refused(&app, &format!("/tickets/{ticket}/notes"), json!({"body": blank}), "body").await;
        assert_refused(&app, &format!("/webchat/sessions/{session}/messages"), json!({"body": blank}), "body").await;
        assert_refused(&app, "/tags", json!({"name": blank}), "name").await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn json_is_accepted_under_any_spelling_of_its_content_type() {
    let app = TestApp::shared().await;
    let ticket = app.ticket("5511900000001").await;
    let path = format!("/tickets/{ticket}/notes");
    for kind in
        ["application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"]
    {
        let request = app.api.request(Method::POST, &path).header("content-type", kind).body(r#"{"body": "x"}"#);
        assert_eq!(checked(Reply::of(request).await).status, 201, "{kind}");
    }
    // A body without a type is read as JSON; a type that the endpoint does not take is refused.
    let untyped = app.api.request(Method::POST, &path).body(r#"{"body": "x"}"#);
    assert_eq!(checked(Reply::of(untyped).await).status, 201);
    let other = app.api.request(Method::POST, &path).header("content-type", "text/json").body(r#"{"body": "x"}"#);
    checked(Reply::of(other).await).error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
    app.stop().await;
}

#[actix_web::test]
async fn a_body_of_exactly_a_mebibyte_is_accepted() {
    const MEBIBYTE: usize = 1 << 20;
    let app = TestApp::shared().await;
    let ticket = app.ticket("5511900000010").await;
    let text = "x".repeat(MEBIBYTE - r#"{"body":"x","unknown":""}"#.len());
    let body = format!(r#"{{"body":"x","unknown":"{text}"}}"#);
    assert_eq!(body.len(), MEBIBYTE);
    let request = app.api.request(Method::POST, &format!("/tickets/{ticket}/notes"));
    let reply = Reply::of(request.header("content-type", "application/json").body(body)).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    app.stop().await;
}

#[actix_web::test]
async fn a_body_sent_to_an_operation_without_one_does_no_harm() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let mut count = 0;
    for operation in &world.operations {
        if operation.body.is_some() || operation.method == "GET" {
            continue;
        }
        for (kind, body) in [("application/json", "{"), ("text/plain", "hello"), ("application/json", "[1]")] {
            let path = World::path(operation, &world.targets(operation).await);
            let request = app.api.request(operation.method.parse().expect("a method"), &path);
            checked(Reply::of(request.header("content-type", kind).body(body)).await);
        }
        let targets = world.targets(operation).await;
        let plain = checked(world.ask(operation, &targets, &Value::Null).await);
        assert_eq!(plain.status.as_u16(), operation.success.0, "{}: {}", name(operation), plain.body);
        count += 1;
    }
    assert!(count >= 10, "too few operations have no body: {count}");
    app.stop().await;
}

#[actix_web::test]
async fn another_spelling_of_a_path_does_not_bypass_the_tokens_permissions() {
    let app = TestApp::shared().await;
    let permissions = [("tickets".to_owned(), ["GET".to_owned()].into())].into();
    let new = hotline_persistence::tables::tokens::NewToken { name: "reader", permissions, ..Default::default() };
    let (_, key) = hotline_persistence::tables::tokens::insert(&app.db, app.company.id, new).await.expect("token");
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
