//! The same request many times at once (twins), and callers that disconnect.

use futures_util::future::{join, join_all};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Call, MESSAGES, TAGS, assert_same, count, every_call, started};
use crate::steps::{id, restarted};
use crate::support::{Reply, TestApp, eventually};

const TWINS: usize = 50;

/// How many requests may wait for another one with their key.
const WAITING_MAX: usize = 64;

async fn all_at_once(app: &TestApp, call: &Call, key: &str) -> Vec<Reply> {
    join_all((0..TWINS).map(|_| call.send(&app.api, key))).await
}

#[actix_web::test]
async fn fifty_twins_have_one_effect_and_one_answer() {
    let app = started().await;
    for (number, call) in every_call(&app, 2).await.iter().enumerate() {
        let before = count(&app, call.effects).await;
        let replies = all_at_once(&app, call, &format!("key-{number}")).await;
        for reply in &replies {
            assert_eq!(reply.status, call.status, "{}: {}", call.name(), reply.body);
            assert_same(&call.name(), &replies[0], reply);
        }
        let replays = replies.iter().filter(|reply| reply.is_replay()).count();
        assert_eq!(replays, TWINS - 1, "{}", call.name());
        assert_eq!(count(&app, call.effects).await, before + 1, "{}", call.name());
    }
    app.stop().await;
}

#[actix_web::test]
async fn fifty_twins_that_are_refused_get_one_answer() {
    let app = started().await;
    let replies = all_at_once(&app, &Call::post("/tags", json!({}), 422, TAGS), "one").await;
    for reply in &replies {
        reply.error(422, "ERR_API_VALIDATION");
        assert_same("refused", &replies[0], reply);
    }
    assert_eq!(replies.iter().filter(|reply| reply.is_replay()).count(), TWINS - 1);
    app.stop().await;
}

#[actix_web::test]
async fn of_fifty_rivals_under_one_key_one_wins_and_the_others_conflict() {
    let app = started().await;
    let ticket = app.ticket("5511900000001").await;
    let rivals = (0..TWINS).map(|rival| {
        let send = json!({"ticketId": ticket, "type": "text", "body": format!("{rival}")});
        let app = &app;
        async move { Call::post("/messages", send, 202, MESSAGES).send(&app.api, "one").await }
    });
    let replies = join_all(rivals).await;
    let (won, lost): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 202);
    assert_eq!(won.len(), 1);
    for reply in lost {
        reply.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    }
    assert_eq!(count(&app, MESSAGES).await, 1);
    app.stop().await;
}

#[actix_web::test]
async fn after_a_defect_the_next_twin_is_served_and_the_others_replay_it() {
    let app = started().await;
    let ticket = app.ticket("5511900000001").await;
    let send = json!({"ticketId": ticket, "type": "text", "body": "hello"});
    for (number, (point, call)) in [
        ("once_written", Call::post("/tags", json!({"name": "a"}), 201, TAGS)),
        ("ticket_decided", Call::post("/messages", send, 202, MESSAGES)),
    ]
    .into_iter()
    .enumerate()
    {
        let before = count(&app, call.effects).await;
        fail::cfg(point, "3*panic(a defect)").expect("failpoint");
        let replies = all_at_once(&app, &call, &format!("key-{number}")).await;
        let (served, broken): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == call.status);
        assert_eq!(broken.len(), 3, "{}", call.name());
        for reply in broken {
            reply.error(500, "ERR_API_INTERNAL");
            assert!(!reply.is_replay());
        }
        for reply in &served {
            assert_same(&call.name(), served[0], reply);
        }
        assert_eq!(served.iter().filter(|reply| reply.is_replay()).count(), TWINS - 4, "{}", call.name());
        assert_eq!(count(&app, call.effects).await, before + 1, "{}", call.name());
    }
    app.stop().await;
}

#[actix_web::test]
async fn indistinguishable_visitors_are_one_under_one_key_and_two_under_two_keys() {
    let app = started().await;
    let body = json!({"channelId": app.company.webchat, "visitor": {"name": "Vera"}});
    let call = Call::post("/webchat/sessions", body, 201, super::SESSIONS);
    let contacts = "select count(*) from contacts where name = 'Vera'";
    // The contact is made, the session is not.
    let fail_once = || fail::cfg("once_part_lost", "1*return").expect("failpoint");
    fail_once();
    call.send(&app.api, "one").await.error(503, "ERR_API_UNAVAILABLE");
    assert_eq!(count(&app, contacts).await, 1);
    assert_eq!(count(&app, super::SESSIONS).await, 0);
    let opened = all_at_once(&app, &call, "one").await;
    for reply in &opened {
        assert_same("opened", &opened[0], reply);
    }
    opened[0].data(201);
    assert_eq!(count(&app, contacts).await, 1);
    call.send(&app.api, "two").await.data(201);
    assert_eq!(count(&app, contacts).await, 2);
    // Another request under the key of a failed one is another visitor.
    fail_once();
    call.send(&app.api, "three").await.error(503, "ERR_API_UNAVAILABLE");
    let other = Call { body: call.body.replace("Vera", "Vera "), ..call };
    other.send(&app.api, "three").await.data(201);
    assert_eq!(count(&app, contacts).await, 4);
    assert_eq!(count(&app, super::SESSIONS).await, 3);
    app.stop().await;
}

/// Sends the request and disconnects before its answer.
async fn send_and_leave(app: &TestApp, call: &Call, key: &str) {
    let request = format!(
        "{} /api/v1{} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nidempotency-key: {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
        call.method,
        call.path,
        app.company.key,
        call.body.len(),
        call.body
    );
    let mut stream = TcpStream::connect(app.address).await.expect("connect");
    stream.write_all(request.as_bytes()).await.expect("sent");
}

#[actix_web::test]
async fn a_call_that_is_retried_after_its_caller_disconnected_has_one_effect() {
    let app = started().await;
    for seed in 3..6 {
        for (number, call) in every_call(&app, seed).await.iter().enumerate() {
            let before = count(&app, call.effects).await;
            let key = format!("key-{seed}-{number}");
            send_and_leave(&app, call, &key).await;
            let reply = call.send(&app.api, &key).await;
            assert_eq!(reply.status, call.status, "{}: {}", call.name(), reply.body);
            assert_eq!(count(&app, call.effects).await, before + 1, "{}", call.name());
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_request_finishes_although_its_caller_disconnected_and_the_retry_waits_for_it() {
    let app = started().await;
    let list = id(app.api.post("/contact-lists", json!({"name": "Everybody"})).await.data(201));
    let (path, contact) = (format!("/contact-lists/{list}/contacts"), app.contact("5511900000001").await);
    let members = "select count(*) from contact_list_contacts";
    let call = Call::post(path, json!({"contactIds": [contact]}), 200, members);
    // A lock on the table stops the first try halfway, for up to a minute: for other tables it would give up sooner.
    let mut table_lock = app.db.begin().await.expect("transaction");
    let lock = sqlx::query("lock table contact_list_contacts in exclusive mode");
    lock.execute(&mut *table_lock).await.expect("locked");
    send_and_leave(&app, &call, "one").await;
    eventually("the first try waits for the table", || async {
        let waits = "select count(*) from pg_locks where not granted and relation = 'contact_list_contacts'::regclass";
        sqlx::query_scalar::<_, i64>(waits).fetch_one(&app.db).await.expect("locks") == 1
    })
    .await;
    let release = async {
        eventually("the retry is on its way", || async { app.service.keys.in_use() == 2 }).await;
        table_lock.rollback().await.expect("released");
    };
    let (reply, ()) = join(call.send(&app.api, "one"), release).await;
    assert!(reply.is_replay(), "{}", reply.body);
    assert_eq!(reply.data(200), &json!({"added": 1, "alreadyThere": 0}));
    assert_eq!(count(&app, members).await, 1);
    app.stop().await;
}

#[actix_web::test]
async fn twins_wait_up_to_the_maximum_and_one_more_is_refused() {
    let app = started().await;
    let list = id(app.api.post("/contact-lists", json!({"name": "Everybody"})).await.data(201));
    let (path, contact) = (format!("/contact-lists/{list}/contacts"), app.contact("5511900000001").await);
    let members = "select count(*) from contact_list_contacts";
    let call = Call::post(path, json!({"contactIds": [contact]}), 200, members);
    // A lock on the table stops the first try halfway, for up to a minute.
    let mut table_lock = app.db.begin().await.expect("transaction");
    let lock = sqlx::query("lock table contact_list_contacts in exclusive mode");
    lock.execute(&mut *table_lock).await.expect("locked");
    let send_twins = join_all((0..=WAITING_MAX).map(|_| call.send(&app.api, "one")));
    let send_one_more = async {
        eventually("one is served and the others wait", || async { app.service.keys.in_use() > WAITING_MAX }).await;
        let refused = call.send(&app.api, "one").await;
        let other = Call::post("/tags", json!({"name": "a"}), 201, TAGS).send(&app.api, "two").await;
        table_lock.rollback().await.expect("released");
        (refused, other)
    };
    let (twins, (refused, other)) = join(send_twins, send_one_more).await;
    refused.error(503, "ERR_API_UNAVAILABLE");
    assert!(refused.headers.contains_key("retry-after"), "{:?}", refused.headers);
    assert_eq!(other.status, 201, "another key has no room of its own: {}", other.body);
    for twin in &twins {
        assert_same(&call.name(), &twins[0], twin);
    }
    assert_eq!(twins.iter().filter(|twin| twin.is_replay()).count(), WAITING_MAX, "not exactly one took effect");
    assert!(call.send(&app.api, "one").await.is_replay(), "the refused one does not find the response later");
    assert_eq!(count(&app, call.effects).await, 1, "it did not take effect exactly once");
    app.stop().await;
}

#[actix_web::test]
async fn calls_whose_callers_disconnect_while_the_service_stops_have_one_effect_after_the_start() {
    let mut app = started().await;
    for seed in 10..12 {
        let calls = every_call(&app, seed).await;
        let mut before = Vec::new();
        for call in &calls {
            before.push(count(&app, call.effects).await);
        }
        join_all(calls.iter().enumerate().map(|(number, call)| {
            let (app, key) = (&app, format!("key-{seed}-{number}"));
            async move { send_and_leave(app, call, &key).await }
        }))
        .await;
        app = restarted(app).await;
        for (number, call) in calls.iter().enumerate() {
            let reply = call.send(&app.api, &format!("key-{seed}-{number}")).await;
            assert_eq!(reply.status, call.status, "{}: {}", call.name(), reply.body);
        }
        // Several calls of the set may have the same effects, which are counted together.
        for (call, before) in calls.iter().zip(before) {
            let with_same_effects = calls.iter().filter(|other| other.effects == call.effects).count();
            // Two messages of the set open a ticket each.
            let opened_by_messages = if call.effects == super::TICKETS { 2 } else { 0 };
            let expected = before + i64::try_from(with_same_effects + opened_by_messages).expect("small");
            assert_eq!(count(&app, call.effects).await, expected, "{}", call.name());
        }
    }
    app.stop().await;
}
