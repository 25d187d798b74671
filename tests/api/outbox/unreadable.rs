//! A stored message that the service cannot read fails, and blocks no other.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Number;

use super::*;
use crate::steps::restarted;

/// Sets a channel's status, and waits until the service has it.
async fn set_status(app: &TestApp, channel: ChannelId, status: &'static str) {
    sqlx::query("update channels set status = $2, updated_at = now() where id = $1")
        .bind(channel)
        .bind(status)
        .execute(&app.db)
        .await
        .expect("status");
    app.refreshed().await;
}

#[actix_web::test]
async fn a_message_that_cannot_be_read_fails_and_later_ones_are_sent() {
    let office = Office::open().await;
    let phone = office.phone("1901").await;
    set_status(&office.app, phone, "disconnected").await;
    let question = json!({"type": "button", "body": {"text": "Sure?"}});
    let interactive =
        json!({"channelId": phone, "number": number(1), "type": "interactive", "interactive": question.clone()});
    let unreadable = office.send(interactive.clone()).await;
    let later = [office.text(phone, &number(1), "same contact").await, office.text(phone, &number(2), "another").await];
    let closing = office
        .send(
            json!({"channelId": phone, "number": number(3), "type": "text", "body": "and close", "closeTicket": true}),
        )
        .await;
    let unknown = office.text(phone, &number(4), "of another release").await;
    let waiting = office.job(&unreadable).await["waitingFor"].clone();
    assert_eq!(waiting["code"], "channel_disconnected", "the message does not wait for its channel");

    // A list waits until the tables have all messages.
    assert_eq!(office.app.api.get("/messages").await.data(200).as_array().map(Vec::len), Some(5));
    let db = office.app.db.clone();
    // PostgreSQL writes the number below in 309 digits, which parse as infinity.
    let id = async |job: &str| office.job(job).await["messageId"].as_i64().expect("an id");
    for (statement, id) in [
        (
            "update messages set interactive = jsonb_build_object('a', 1.7976931348623157e308) where id = $1",
            id(&unreadable).await,
        ),
        (
            "update messages set after_send = jsonb_build_object('a', 1.7976931348623157e308) where id = $1",
            id(&closing).await,
        ),
        ("update messages set type = 'hologram' where id = $1", id(&unknown).await),
    ] {
        sqlx::query(statement).bind(id).execute(&db).await.expect(statement);
    }
    let Office { app, provider } = office;
    let office = Office { app: restarted(app).await, provider };
    let listed = office.app.api.get("/messages").await;
    let listed = listed.data(200).as_array().expect("a list");
    assert_eq!(listed.len(), 4, "the list does not leave out exactly what it cannot read");
    assert_eq!(listed[0]["interactive"], Value::Null);

    set_status(&office.app, phone, "connected").await;
    for job in &later {
        let sent = office.wait_for_status(job, "sent").await;
        assert_eq!(sent["error"], Value::Null);
    }
    for job in [&unreadable, &closing] {
        let failed = office.wait_for_status(job, "failed").await;
        assert_eq!(failed["error"]["code"], "ERR_UNREADABLE");
        assert_eq!(office.job(job).await["waitingFor"], Value::Null);
    }
    let status: String = sqlx::query_scalar("select status from messages where type = 'hologram'")
        .fetch_one(&db)
        .await
        .expect("the row");
    assert_eq!(status, "failed");
    assert_eq!(office.provider.accepted_count("1901"), 2, "an unreadable message was sent");
    office.close().await;
}

/// Numbers as callers may write them: of any size, with and without a fraction.
fn numbers() -> impl Strategy<Value = Value> {
    let float = |number: f64| Number::from_f64(number).map_or(Value::Null, Value::Number);
    prop_oneof![
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(float),
        (-1e6..1e6).prop_map(float),
        prop::sample::select(vec![
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            1e22,
            1e300,
            -0.0,
            9007199254740993.0
        ])
        .prop_map(float),
    ]
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        numbers(),
        any::<bool>().prop_map(|flag| json!(flag)),
        Just(Value::Null),
        any::<String>().prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| json!(items)),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|object| json!(object)),
        ]
    })
}

/// Whether two values are equal, except for rounding of numbers.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().expect("a number"), other.as_f64().expect("a number"));
            (one - other).abs() <= one.abs() * 1e-12
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, inner)| other.get(key).is_some_and(|other| is_same(inner, other)))
        }
        (one, other) => one == other,
    }
}

#[actix_web::test]
async fn an_accepted_object_is_listed_and_sent_and_a_refused_one_names_its_field() {
    const CASES: usize = 150;
    let office = Office::open().await;
    let phone = office.phone("1902").await;
    // The next start reads waiting messages from the tables.
    set_status(&office.app, phone, "disconnected").await;
    let mut runner = TestRunner::deterministic();
    let mut accepted = Vec::new();
    for case in 0..CASES {
        let inner = documents().new_tree(&mut runner).expect("a document").current();
        // Some documents are nested too deeply.
        let depth = if case % 10 == 0 { case } else { 1 };
        let interactive = (0..depth).fold(inner, |inner, _| json!({"in": inner}));
        let body = json!({
            "channelId": phone, "number": number(case), "type": "interactive", "interactive": interactive.clone(),
        });
        let reply = office.app.api.post("/messages", body.clone()).await;
        match reply.status.as_u16() {
            202 => accepted.push(interactive),
            // Too deep to be parsed.
            400 => assert!(depth > 100, "{}", reply.body),
            _ => assert_eq!(reply.invalid_fields(), ["interactive"], "{body}"),
        }
    }
    assert!(accepted.len() > CASES / 2, "too few were accepted: {}", accepted.len());
    let Office { app, provider } = office;
    let office = Office { app: restarted(app).await, provider };
    let listed = office.app.api.all("/messages").await;
    assert_eq!(listed.len(), accepted.len());
    for (message, interactive) in listed.iter().zip(&accepted) {
        assert!(is_same(&message["interactive"], interactive), "{} is not {interactive}", message["interactive"]);
    }
    set_status(&office.app, phone, "connected").await;
    office.wait_until_all_sent().await;
    assert_eq!(office.provider.accepted_count("1902"), accepted.len());
    office.close().await;
}
