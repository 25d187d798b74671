//! Events as they happen: answers held until there is an event, and streams.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::{after, ids, newest, types};
use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, Reader, TestApp, eventually};

pub async fn create_contact(api: &Api, name: &str) -> Value {
    api.post("/contacts", json!({"name": name})).await.data(201).clone()
}

#[actix_web::test]
async fn an_answer_is_held_until_something_happens() {
    let app = OwnApp::start().await;
    let last = newest(&app.api).await;
    let nothing = app.api.get(&format!("/events?after={last}&wait=1")).await;
    assert_eq!(nothing.data(200), &json!([]));
    assert_eq!(nothing.body["meta"], json!({"lastId": last, "hasMore": false, "oldestId": 1, "gap": false}));
    let held = tokio::spawn({
        let api = app.api.clone();
        async move { api.get(&format!("/events?after={last}&wait=30&types=contact.deleted,contact.created")).await }
    });
    let news = app.service.app.engine.store().events.clone().expect("events are kept");
    let company = app.company.id;
    eventually("the answer is held", || async { news.has_listener(company) }).await;
    let made = create_contact(&app.api, "Maria").await;
    let held = held.await.expect("an answer");
    assert_eq!(held.data(200)[0]["data"], made);
    assert_eq!(held.body["meta"], json!({"lastId": last + 1, "hasMore": false, "oldestId": 1, "gap": false}));
    eventually("no answer is held", || async { !news.has_listener(company) }).await;

    // A session is live: the event of its start does not wait to be gathered with others.
    let held = tokio::spawn({
        let api = app.api.clone();
        async move { api.get(&format!("/events?after={}&wait=30&types=session.started", last + 1)).await }
    });
    eventually("the answer is held", || async { news.has_listener(company) }).await;
    let (session, _) = app.session("visitor").await;
    assert_eq!(held.await.expect("an answer").data(200)[0]["data"]["id"], session.0);

    // A queue that is created after the request is shown with its name.
    let contact = app.contact("5511900000001").await;
    let last = newest(&app.api).await;
    eventually("no answer is held", || async { !news.has_listener(company) }).await;
    let held = tokio::spawn({
        let api = app.api.clone();
        async move { api.get(&format!("/events?after={last}&wait=30&types=ticket.opened")).await }
    });
    eventually("the answer is held", || async { news.has_listener(company) }).await;
    let queue = app.api.post("/queues", json!({"name": "Billing"})).await.data(201)["id"].clone();
    let opened = json!({"channelId": app.company.phone, "contactId": contact, "queueId": queue});
    app.api.post("/tickets", opened).await.data(201);
    let held = held.await.expect("an answer");
    assert_eq!(held.data(200)[0]["data"]["queue"], json!({"id": queue, "name": "Billing"}));
    app.stop().await;
}

#[actix_web::test]
async fn a_stream_sends_each_event_once_and_continues_after_a_given_id() {
    let app = OwnApp::start().await;
    let mut live = Reader::open(&app.api, "", None).await;
    let last = newest(&app.api).await;
    let mut sent = Vec::new();
    for name in ["A", "B", "C"] {
        sent.push(create_contact(&app.api, name).await);
    }
    let received = live.take(3).await;
    assert_eq!(
        ids(&received),
        [last + 1, last + 2, last + 3],
        "the stream did not send exactly the events since it began"
    );
    assert_eq!(received.iter().map(|event| &event["data"]).collect::<Vec<_>>(), sent.iter().collect::<Vec<_>>());
    assert_eq!(received, after(&app.api, last).await, "the stream and the list differ");

    // Readers who return, by the header or by the query; the header takes precedence.
    let mut resumed = Reader::open(&app.api, "?after=0", Some(last + 1)).await;
    assert_eq!(ids(&resumed.take(2).await), [last + 2, last + 3]);
    let mut all = Reader::open(&app.api, "?after=0", None).await;
    assert_eq!(all.take(usize::try_from(last + 3).expect("few")).await, after(&app.api, 0).await);
    // This reader gets events of some types only.
    let mut filtered = Reader::open(&app.api, "?types=session.started,%20contact.deleted", None).await;
    create_contact(&app.api, "D").await;
    app.session("visitor").await;
    assert_eq!(types(&filtered.take(1).await), ["session.started"]);
    assert_eq!(types(&live.take(3).await), ["contact.created", "contact.created", "session.started"]);
    assert_eq!(
        resumed.take(3).await,
        after(&app.api, last + 3).await,
        "streams that share a read got different events"
    );
    drop((live, resumed, all, filtered));
    let metrics = app.service.app.metrics.clone();
    // A closed stream is noticed when something is sent on it: each is sent one of these two events.
    eventually("the streams are closed", || async {
        let made = create_contact(&app.api, "E").await;
        app.api.delete(&format!("/contacts/{}", made["id"])).await;
        metrics.events.open() == 0
    })
    .await;
    assert!(metrics.events.sent() >= 12, "{}", metrics.events.sent());
    app.stop().await;
}

#[actix_web::test]
async fn an_idle_stream_sends_a_comment_and_ends_with_the_service_or_its_token() {
    let app = OwnApp::start().await;
    let (_, other) = app.another_company().await;
    let mut theirs = Reader::open(&other, "", None).await;
    // After fifteen seconds without an event, a stream sends a comment with the id it has reached.
    let waited = Instant::now();
    let mut stream = Reader::open(&app.api, "", None).await;
    let comment = stream.next_block().await.expect("a comment");
    assert!(comment.starts_with(":\nid: "), "{comment}");
    assert!(waited.elapsed() > Duration::from_secs(10), "{:?}", waited.elapsed());
    // A company's events do not reach another's stream.
    create_contact(&app.api, "Maria").await;
    assert_eq!(types(&stream.take(1).await), ["contact.created"]);
    let revoke = "update tokens set revoked_at = now() where company_id <> $1";
    sqlx::query(revoke).bind(app.company.id).execute(&app.db).await.expect("revoked");
    assert!(theirs.next().await.is_none(), "the stream of a revoked token is still open");
    let end = tokio::spawn(async move { stream.next().await.is_none() });
    app.stop().await;
    assert!(end.await.expect("the stream's end"));
}

#[actix_web::test]
async fn invalid_queries_are_refused_and_without_a_log_every_event_endpoint_is_a_404() {
    let app = TestApp::shared().await;
    for (query, field) in [
        ("after=-1", "after"),
        ("after=x", "after"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("wait=31", "wait"),
        ("types=ticket.opened,ticket.lost", "types"),
    ] {
        assert_eq!(app.api.get(&format!("/events?{query}")).await.invalid_fields(), [field], "{query}");
    }
    assert_eq!(app.api.get("/events/stream?types=x&after=y").await.invalid_fields(), ["after", "types"]);
    let wrong = app.api.request(Method::GET, "/events/stream").header("last-event-id", "x");
    crate::support::Reply::of(wrong).await.error(400, "ERR_API_BAD_REQUEST");
    let beyond = app.api.get("/events?after=99999999999999999999").await;
    assert_eq!((beyond.data(200), &beyond.body["meta"]["gap"]), (&json!([]), &json!(true)));
    app.stop().await;

    let mut options = TestOptions::default();
    options.events.enabled = false;
    let app = OwnApp::start_with(options).await;
    app.api.get("/events").await.error(404, "ERR_API_NOT_FOUND");
    app.api.get("/events/stream").await.error(404, "ERR_API_NOT_FOUND");
    // Without the log there are no webhooks either, although the table has one.
    let insert = "insert into webhooks (company_id, id, url, secret) overriding system value values ($1, 7, 'x', 'x')";
    sqlx::query(insert).bind(app.company.id).execute(&app.db).await.expect("a webhook");
    let url = json!({"url": "https://example.com/hotline"});
    for (method, path) in [
        (Method::GET, "/webhooks"),
        (Method::POST, "/webhooks"),
        (Method::GET, "/webhooks/7"),
        (Method::PUT, "/webhooks/7"),
        (Method::DELETE, "/webhooks/7"),
        (Method::POST, "/webhooks/7/rotate-secret"),
        (Method::POST, "/webhooks/7/test"),
        (Method::GET, "/webhooks/7/deliveries"),
        (Method::POST, "/webhooks/7/replay"),
    ] {
        let reply = crate::support::Reply::of(app.api.request(method.clone(), path).json(&url)).await;
        assert_eq!(reply.error(404, "ERR_API_NOT_FOUND"), &Value::Null, "{method} {path}");
    }
    create_contact(&app.api, "Maria").await;
    app.session("visitor").await;
    eventually("all is written", || async {
        let log = &app.service.app.engine.store().log;
        log.flushed() == log.appended()
    })
    .await;
    // Events of channels are left out: these were created before the service started.
    let kept = "select count(*) from events where types & ~(7::bigint << 39) <> 0";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(&app.db).await.expect("a count");
    assert_eq!(kept, 0);
    app.stop().await;
}

#[actix_web::test]
async fn a_position_beyond_the_end_of_the_log_is_a_gap_and_is_not_waited_for() {
    let app = TestApp::shared().await;
    create_contact(&app.api, "Maria").await;
    let last = newest(&app.api).await;
    let meta = json!({"lastId": last, "hasMore": false, "oldestId": 1, "gap": true});
    for query in ["", "&wait=30", "&wait=30&types=contact.deleted"] {
        let took = async || {
            let begun = Instant::now();
            let reply = app.api.get(&format!("/events?after={}{query}", last + 1)).await;
            assert_eq!((reply.data(200), &reply.body["meta"]), (&json!([]), &meta), "{query}");
            begun.elapsed()
        };
        // A machine that stalls may delay one answer, but a wait would delay every one.
        let what = format!("an answer is not held: {query}");
        eventually(&what, || async { took().await < Duration::from_secs(15) }).await;
    }
    assert_eq!(app.api.get(&format!("/events?after={last}")).await.body["meta"]["gap"], false);
    app.stop().await;
}
