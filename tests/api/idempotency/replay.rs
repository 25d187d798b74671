//! Which answers are replayed, and which are not.

use hotline::routes;
use hotline::web::response::schema::Schemas;
use hotline_persistence::QueueId;
use hotline_persistence::tables::idempotency_keys::Digest;
use hotline_persistence::tables::tokens::{self, NewToken};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Call, KEYS, TAG_UPDATES, TAGS, assert_replayed, count, create_tag, every_call, send_again, send_first, started,
};
use crate::steps::{NOBODY, close, restarted};
use crate::support::{OwnApp, Person, Reply, eventually};

#[actix_web::test]
async fn a_retry_of_any_operation_gets_the_first_answer_and_has_no_further_effect() {
    let app = started().await;
    for (number, call) in every_call(&app, 1).await.iter().enumerate() {
        let key = format!("key-{number}");
        let first = send_first(&app, call, &key).await;
        send_again(&app, call, &key, &first).await;
        send_again(&app, call, &key, &first).await;
    }
    app.stop().await;
}

#[test]
fn every_post_and_put_takes_a_key() {
    let operations = routes::operations(&mut Schemas::new());
    assert!(operations.iter().any(|operation| operation.is_idempotent));
    for operation in operations {
        let takes_key = matches!(operation.method, "POST" | "PUT");
        assert_eq!(operation.is_idempotent, takes_key, "{} {}", operation.method, operation.path);
    }
}

/// The path with ids that no record has.
fn with_absent_ids(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { NOBODY.to_string() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[actix_web::test]
async fn a_refusal_of_every_operation_is_replayed() {
    let app = OwnApp::start().await;
    let operations = routes::operations(&mut Schemas::new()).into_iter().filter(|operation| operation.is_idempotent);
    for (number, operation) in operations.enumerate() {
        let method: Method = operation.method.parse().expect("method");
        let call = Call::of(method, with_absent_ids(&operation.path), json!([]), 400, KEYS);
        let key = format!("key-{number}");
        let first = call.send(&app.api, &key).await;
        assert!(first.status.is_client_error(), "{}: {} {}", call.name(), first.status, first.body);
        assert!(!first.is_replay(), "{}", call.name());
        assert_replayed(&call.name(), &first, &call.send(&app.api, &key).await);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_refusal_is_replayed_even_when_its_reason_is_gone() {
    let app = started().await;
    let taken = create_tag(&app, "taken").await;
    let closed = app.ticket("5511900000001").await.0;
    close(&app.api, closed).await;
    let contact = app.contact("5511900000002").await;
    let opened = app.ticket("5511900000002").await.0;
    let same_name = json!({"name": "taken"});
    let refused = [
        (Call::post("/tags", json!({}), 422, TAGS), "ERR_API_VALIDATION"),
        (Call::post("/tags", same_name.clone(), 409, TAGS), "ERR_API_CONFLICT"),
        (Call::of(Method::PUT, format!("/tags/{NOBODY}"), same_name.clone(), 404, TAG_UPDATES), "ERR_API_NOT_FOUND"),
        (Call::post(format!("/tickets/{closed}/close"), Value::Null, 409, TAGS), "ERR_API_TICKET_CLOSED"),
        (Call::post(format!("/tickets/{NOBODY}/close"), Value::Null, 404, TAGS), "ERR_API_NOT_FOUND"),
        (
            Call::post("/tickets", json!({"channelId": app.company.phone, "contactId": contact}), 409, TAGS),
            "ERR_API_CONFLICT",
        ),
        (
            Call::post("/messages", json!({"ticketId": closed, "type": "text", "body": "late"}), 409, TAGS),
            "ERR_API_TICKET_CLOSED",
        ),
        (Call::post("/messages", json!({"type": "text", "body": "to nobody"}), 422, TAGS), "ERR_API_VALIDATION"),
        (Call::post("/no-such-route", json!({}), 404, TAGS), "ERR_API_NOT_FOUND"),
    ];
    let mut first = Vec::new();
    for (number, (call, code)) in refused.iter().enumerate() {
        let reply = call.send(&app.api, &format!("key-{number}")).await;
        reply.error(call.status, code);
        assert!(!reply.is_replay(), "{}", call.name());
        first.push(reply);
    }
    // The reasons are removed.
    Reply::of(app.api.request(Method::DELETE, &format!("/tags/{taken}"))).await;
    close(&app.api, opened).await;
    app.api.post(&format!("/tickets/{closed}/reopen"), json!({})).await.data(200);
    let before = count(&app, TAGS).await;
    for (number, (call, _)) in refused.iter().enumerate() {
        assert_replayed(&call.name(), &first[number], &call.send(&app.api, &format!("key-{number}")).await);
    }
    assert_eq!(count(&app, TAGS).await, before);
    // And under new keys the same requests are served.
    refused[1].0.send(&app.api, "another").await.data(201);
    refused[3].0.send(&app.api, "yet-another").await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_success_that_changed_nothing_is_replayed_as_well() {
    let app = started().await;
    let (session, _) = app.session("visitor").await;
    let end = Call::post(format!("/webchat/sessions/{session}/end"), Value::Null, 200, KEYS);
    app.api.post(&end.path, json!({})).await.data(200);
    let ticket = app.ticket("5511900000001").await;
    let read = Call::post(format!("/tickets/{ticket}/read"), Value::Null, 200, KEYS);
    for call in [end, read] {
        let first = send_first(&app, &call, &call.path.replace('/', "-")).await;
        send_again(&app, &call, &call.path.replace('/', "-"), &first).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_change_whose_response_cannot_be_recorded_is_not_made() {
    let app = started().await;
    for (number, call) in every_call(&app, 1).await.iter().enumerate() {
        let key = format!("key-{number}");
        let before = count(&app, call.effects).await;
        fail::cfg("once_unencoded", "1*return").expect("failpoint");
        call.send(&app.api, &key).await.error(500, "ERR_API_INTERNAL");
        assert_eq!(count(&app, call.effects).await, before, "{}: it was made without its record", call.name());
        let first = send_first(&app, call, &key).await;
        send_again(&app, call, &key, &first).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_response_whose_body_cannot_be_read_is_not_recorded_and_the_retry_is_served() {
    let app = started().await;
    let ticket = app.ticket("5511900000001").await;
    let read = Call::post(format!("/tickets/{ticket}/read"), Value::Null, 200, KEYS);
    fail::cfg("once_body_lost", "1*return").expect("failpoint");
    read.send(&app.api, "read").await.error(500, "ERR_API_INTERNAL");
    let first = send_first(&app, &read, "read").await;
    send_again(&app, &read, "read", &first).await;
    app.stop().await;
}

#[actix_web::test]
async fn refusals_because_of_token_plan_scope_or_rate_are_not_recorded() {
    let app = started().await;
    let db = &app.db;
    let call = Call::post("/tags", json!({"name": "a"}), 201, TAGS);

    let unknown_token = app.api.with_key("sk_live_00000000000000000000000000000000");
    call.send(&unknown_token, "one").await.error(401, "ERR_API_UNAUTHORIZED");
    let permissions = [("tags".to_owned(), ["GET".to_owned()].into())].into();
    let new = NewToken { name: "reader", permissions, ..NewToken::default() };
    let (_, key) = tokens::insert(db, app.company.id, new).await.expect("token");
    let reader = app.api.with_key(&key);
    eventually("the service knows the token", || async { reader.get("/tags").await.status == 200 }).await;
    call.send(&reader, "one").await.error(403, "ERR_API_FORBIDDEN_SCOPE");

    let change_companies = async |change: &'static str, status: u16| {
        sqlx::query(change).execute(db).await.expect(change);
        eventually(change, || async { app.api.get("/tags").await.status == status }).await;
    };
    change_companies("update companies set api_enabled = false", 403).await;
    call.send(&app.api, "one").await.error(403, "ERR_API_NOT_ENABLED");
    change_companies("update companies set api_enabled = true, active = false", 403).await;
    eventually("inactive", || async { app.api.get("/tags").await.body["error"]["code"] == "ERR_API_COMPANY_INACTIVE" })
        .await;
    call.send(&app.api, "one").await.error(403, "ERR_API_COMPANY_INACTIVE");
    change_companies("update companies set active = true", 200).await;
    change_companies("update companies set rate_per_minute = 1", 429).await;
    let limited = call.send(&app.api, "one").await;
    limited.error(429, "ERR_API_RATE_LIMITED");
    change_companies("update companies set rate_per_minute = null", 200).await;

    assert_eq!(count(&app, KEYS).await, 0);
    let first = send_first(&app, &call, "one").await;
    // A key is the company's, not the token's; but a caller without permission learns nothing of it.
    assert_replayed("the same company", &first, &call.send(&app.api, "one").await);
    call.send(&reader, "one").await.error(403, "ERR_API_FORBIDDEN_SCOPE");

    // A handler's refusal because of the scope is not recorded either: the call may be permitted later.
    Person::give_profile(&app, app.company.ana, "Administrator").await;
    let path = format!("/users/{}", app.company.ana);
    let change = async || Reply::of(app.api.keyed(Method::PUT, &path, "two", r#"{"active": false}"#)).await;
    change().await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    Person::give_profile(&app, app.company.ana, "Agent").await;
    assert_eq!(change().await.data(200)["active"], false);
    app.stop().await;
}

#[actix_web::test]
async fn a_wrong_method_is_answered_with_the_allowed_ones_every_time() {
    let app = OwnApp::start().await;
    for _ in 0..2 {
        let reply = Reply::of(app.api.keyed(Method::PUT, "/tags", "one", "{}")).await;
        reply.error(405, "ERR_API_METHOD_NOT_ALLOWED");
        assert!(!reply.is_replay());
        assert_eq!(reply.headers["allow"], "GET, HEAD, POST");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_defect_is_not_recorded_and_the_retry_is_served() {
    let app = started().await;
    let ticket = app.ticket("5511900000001").await;
    let contact = app.contact("5511900000002").await;
    let send = json!({"ticketId": ticket, "type": "text", "body": "hello"});
    for (number, (point, call)) in [
        ("once_written", Call::post("/tags", json!({"name": "a"}), 201, TAGS)),
        ("ticket_decided", Call::post("/messages", send, 202, super::MESSAGES)),
        (
            "ticket_opened",
            Call::post("/tickets", json!({"channelId": app.company.phone, "contactId": contact}), 201, super::TICKETS),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("key-{number}");
        let before = count(&app, call.effects).await;
        fail::cfg(point, "1*panic(a defect)").expect("failpoint");
        let broken = call.send(&app.api, &key).await;
        broken.error(500, "ERR_API_INTERNAL");
        let id = broken.headers["x-request-id"].to_str().expect("text");
        assert!(broken.body["error"]["message"].as_str().is_some_and(|text| text.contains(id)), "{}", broken.body);
        assert!(!broken.body.to_string().contains("a defect"), "the defect shows: {}", broken.body);
        assert_eq!(count(&app, call.effects).await, before, "{}", call.name());
        let first = send_first(&app, &call, &key).await;
        send_again(&app, &call, &key, &first).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_commit_whose_answer_was_lost_is_replayed() {
    let app = started().await;
    let tag = create_tag(&app, "before").await;
    for (number, call) in [
        Call::post("/tags", json!({"name": "a"}), 201, TAGS),
        Call::of(Method::PUT, format!("/tags/{tag}"), json!({"name": "after"}), 200, TAG_UPDATES),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("key-{number}");
        let before = count(&app, call.effects).await;
        fail::cfg("once_commit_lost", "1*return").expect("failpoint");
        call.send(&app.api, &key).await.error(503, "ERR_API_UNAVAILABLE");
        assert_eq!(count(&app, call.effects).await, before + 1, "it was not committed");
        let again = call.send(&app.api, &key).await;
        assert_eq!(again.status, call.status, "{}", again.body);
        assert!(again.is_replay(), "{}", again.body);
        assert_eq!(count(&app, call.effects).await, before + 1, "{}: happened twice", call.name());
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_success_without_an_effect_is_not_answered_before_it_is_recorded() {
    let app = started().await;
    let ticket = app.ticket("5511900000001").await;
    let transferred = "select count(*) from ticket_events where type = 'transferred'";
    let path = format!("/tickets/{ticket}/transfer");
    let transfer_to = |queue: QueueId| Call::post(&path, json!({"queueId": queue}), 200, transferred);
    let (home, away) = (transfer_to(app.company.support), transfer_to(app.company.sales));
    home.send(&app.api, "there").await.data(200);
    fail::cfg("once_alone_lost", "1*return").expect("failpoint");
    home.send(&app.api, "again").await.error(503, "ERR_API_UNAVAILABLE");
    let first = home.send(&app.api, "again").await;
    assert!(first.status == 200 && !first.is_replay(), "{} {}", first.status, first.body);
    away.send(&app.api, "away").await.data(200);
    send_again(&app, &home, "again", &first).await;
    let shown = app.api.get(&format!("/tickets/{ticket}")).await;
    assert_eq!(shown.data(200)["queue"]["id"], app.company.sales.0, "a retry has transferred it");
    app.stop().await;
}

#[actix_web::test]
async fn an_answer_that_appears_in_the_table_after_the_lookup_is_found_by_the_next_attempt() {
    let app = started().await;
    let tag = create_tag(&app, "before").await;
    let calls = [
        Call::post("/tags", json!({"name": "a"}), 201, TAGS),
        Call::of(Method::PUT, format!("/tags/{tag}"), json!({"name": "after"}), 200, TAG_UPDATES),
    ];
    for (number, call) in calls.iter().enumerate() {
        // As if another process had served the call: this one's memory does not have the key.
        let (key, copy) = (format!("key-{number}"), format!("copy-{number}"));
        send_first(&app, call, &copy).await;
        sqlx::query("update idempotency_keys set key = $1 where key = $2")
            .bind(Digest::of(&[key.as_bytes()]))
            .bind(Digest::of(&[copy.as_bytes()]))
            .execute(&app.db)
            .await
            .expect("moved");
        let before = count(&app, call.effects).await;
        call.send(&app.api, &key).await.error(503, "ERR_API_UNAVAILABLE");
        let again = call.send(&app.api, &key).await;
        assert_eq!(again.status, call.status, "{}: {}", call.name(), again.body);
        assert!(again.is_replay(), "{}: {}", call.name(), again.body);
        assert_eq!(count(&app, call.effects).await, before, "{}: happened twice", call.name());
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_refusal_never_replaces_a_recorded_answer() {
    let app = started().await;
    let call = Call::post("/tags", json!({"name": "a"}), 201, TAGS);
    let first = send_first(&app, &call, "copy").await;
    // Another process has used this key; here an invalid request is refused before the key is looked up.
    sqlx::query("update idempotency_keys set key = $1")
        .bind(Digest::of(&[b"one"]))
        .execute(&app.db)
        .await
        .expect("moved");
    Call::post("/tags", json!({}), 422, TAGS).send(&app.api, "one").await.error(422, "ERR_API_VALIDATION");
    let app = restarted(app).await;
    send_again(&app, &call, "one", &first).await;
    app.stop().await;
}
