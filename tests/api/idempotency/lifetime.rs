//! How long an answer is kept, also across restarts and with database durability.

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_persistence::Durability;
use hotline_persistence::tables::idempotency_keys::{self, Digest, RETENTION};
use reqwest::Method;
use serde_json::json;

use super::{
    Call, KEYS, MESSAGES, TAG_UPDATES, TAGS, count, create_tag, every_call, send_again, send_first, started,
    started_with,
};
use crate::steps::restarted;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, eventually};

/// Makes every answer this much older.
async fn age_answers(app: &OwnApp, by: &str) {
    // Only answers that are in the table can be aged.
    count(app, KEYS).await;
    sqlx::query("update idempotency_keys set created_at = created_at - $1::interval")
        .bind(by)
        .execute(&app.db)
        .await
        .expect("aged");
}

/// Sweeps the table as the service does; again if a sweep of the service itself keeps it locked for too long.
async fn sweep(app: &OwnApp, now: DateTime<Utc>, before: DateTime<Utc>) {
    let housekeeping = app.service.app.engine.store().housekeeper();
    eventually("the table is swept", || async { idempotency_keys::sweep(housekeeping, now, before).await.is_ok() })
        .await;
}

#[actix_web::test]
async fn after_a_clean_restart_a_retry_replays() {
    let mut app = started().await;
    let calls = every_call(&app, 1).await;
    let refused = Call::post("/tags", json!({}), 422, TAGS);
    let mut first = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        first.push(send_first(&app, call, &format!("key-{number}")).await);
    }
    let refusal = refused.send(&app.api, "refused").await;
    for _ in 0..2 {
        app = restarted(app).await;
        for (number, call) in calls.iter().enumerate() {
            send_again(&app, call, &format!("key-{number}"), &first[number]).await;
        }
        send_again(&app, &refused, "refused", &refusal).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn after_a_day_a_key_is_new_again() {
    // With the clock stopped, the minute before the end of the day does not pass.
    clock::stop();
    let app = started().await;
    let ticket = app.ticket("5511900000001").await;
    let tag = create_tag(&app, "before").await;
    let send = Call::post("/messages", json!({"ticketId": ticket, "type": "text", "body": "hi"}), 202, MESSAGES);
    let put = Call::of(Method::PUT, format!("/tags/{tag}"), json!({"name": "after"}), 200, TAG_UPDATES);
    let sent = send_first(&app, &send, "send").await;
    let changed = send_first(&app, &put, "put").await;

    // A minute before, it still replays.
    age_answers(&app, "23 hours 59 minutes").await;
    let app = restarted(app).await;
    send_again(&app, &send, "send", &sent).await;
    send_again(&app, &put, "put", &changed).await;

    age_answers(&app, "2 minutes").await;
    let app = restarted(app).await;
    let resent = send_first(&app, &send, "send").await;
    assert_ne!(resent.bytes, sent.bytes, "the same job");
    let changed = send_first(&app, &put, "put").await;
    // The new answer under the same key is kept for a day of its own.
    send_again(&app, &send, "send", &resent).await;
    send_again(&app, &put, "put", &changed).await;
    let app = restarted(app).await;
    send_again(&app, &send, "send", &resent).await;
    send_again(&app, &put, "put", &changed).await;
    assert_eq!(count(&app, KEYS).await, 2);
    app.stop().await;
}

#[actix_web::test]
async fn an_expired_key_is_free_for_another_request() {
    let app = started().await;
    let (a, b) = (json!({"name": "a"}), json!({"name": "b"}));
    send_first(&app, &Call::post("/tags", a, 201, TAGS), "one").await;
    age_answers(&app, "25 hours").await;
    let app = restarted(app).await;
    let other = Call::post("/tags", b, 201, TAGS);
    let first = send_first(&app, &other, "one").await;
    send_again(&app, &other, "one", &first).await;
    app.stop().await;
}

#[actix_web::test]
async fn sweeping_removes_what_has_expired_and_nothing_else() {
    let app = started().await;
    let expired = Call::post("/tags", json!({"name": "a"}), 201, TAGS);
    let fresh = Call::post("/tags", json!({"name": "b"}), 201, TAGS);
    send_first(&app, &expired, "expired").await;
    age_answers(&app, "25 hours").await;
    let first = send_first(&app, &fresh, "fresh").await;
    // Waits until the fresh key is in the table. The service may have swept already.
    count(&app, KEYS).await;
    // A sweep does nothing while one of the service itself keeps the table locked.
    eventually("only the fresh answer is left", || async {
        app.service.keys.sweep(app.service.app.engine.store().housekeeper()).await;
        let keys_left: Vec<Digest> =
            sqlx::query_scalar("select key from idempotency_keys").fetch_all(&app.db).await.expect("keys");
        keys_left == [Digest::of(&[b"fresh"])]
    })
    .await;
    send_again(&app, &fresh, "fresh", &first).await;
    let app = restarted(app).await;
    send_again(&app, &fresh, "fresh", &first).await;
    app.stop().await;
}

#[actix_web::test]
async fn with_database_durability_a_retry_replays() {
    let app = started_with(TestOptions { durability: Durability::Database, ..TestOptions::default() }).await;
    let calls = every_call(&app, 1).await;
    let refused = Call::post("/tags", json!({}), 422, TAGS);
    let mut first = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let key = format!("key-{number}");
        first.push(send_first(&app, call, &key).await);
        send_again(&app, call, &key, &first[number]).await;
    }
    let refusal = refused.send(&app.api, "refused").await;
    send_again(&app, &refused, "refused", &refusal).await;
    let app = restarted(app).await;
    for (number, call) in calls.iter().enumerate() {
        send_again(&app, call, &format!("key-{number}"), &first[number]).await;
    }
    send_again(&app, &refused, "refused", &refusal).await;
    app.stop().await;
}

#[actix_web::test]
async fn expired_answers_are_dropped_with_their_partition_and_later_partitions_exist_ahead() {
    // Partitions span six hours: none of them ends while the clock stands still.
    clock::stop();
    let app = started().await;
    let db = &app.db;
    let first = send_first(&app, &Call::post("/tags", json!({"name": "a"}), 201, TAGS), "kept").await;
    count(&app, KEYS).await;
    // With their object ids: a sweep of the service itself may create one of the same name again.
    let partitions = async || -> Vec<(i64, String)> {
        let sql = "select inhrelid::bigint, inhrelid::regclass::text from pg_inherits
             where inhparent = 'idempotency_keys'::regclass order by 2";
        sqlx::query_as(sql).fetch_all(db).await.expect("partitions")
    };
    let before = partitions().await;
    assert_eq!(before.len(), 4, "not the present one, two to come, and the default one: {before:?}");
    let strays: i64 =
        sqlx::query_scalar("select count(*) from idempotency_keys_default").fetch_one(db).await.expect("count");
    assert_eq!(strays, 0, "an answer is in the default partition");
    // What is only inserted, and dropped whole, gives autovacuum nothing to do.
    let vacuumed_partitions = "select count(*) from pg_inherits join pg_class on oid = inhrelid
         where inhparent = 'idempotency_keys'::regclass and not relname::text like '%_default'
             and not coalesce(reloptions @> array['autovacuum_vacuum_insert_threshold=-1'], false)";
    assert_eq!(count(&app, vacuumed_partitions).await, 0);
    let now = clock::now();
    // A day later not every answer of the partition has expired; another day later all have.
    sweep(&app, now + RETENTION, now).await;
    assert_eq!(partitions().await.len(), 7, "three partitions of the next day are missing");
    send_again(&app, &Call::post("/tags", json!({"name": "a"}), 201, TAGS), "kept", &first).await;
    sweep(&app, now + RETENTION * 2, now + RETENTION).await;
    let after = partitions().await;
    let is_dropped = |partition: &(i64, String)| !after.contains(partition);
    assert!(before.iter().all(|one| one.1.ends_with("_default") || is_dropped(one)), "{before:?}, {after:?}");
    assert_eq!(count(&app, "select count(*) from idempotency_keys").await, 0);
    app.stop().await;
}

#[actix_web::test]
async fn an_answer_recorded_before_its_partition_exists_is_moved_into_it() {
    let app = started().await;
    let db = &app.db;
    let call = Call::post("/tags", json!({"name": "a"}), 201, TAGS);
    let first = send_first(&app, &call, "kept").await;
    let now = clock::now();
    // Every partition is dropped, as if a start replayed answers whose partition does not exist yet.
    sweep(&app, now, now + RETENTION * 9).await;
    let (key, at) = (Digest::of(&[b"early"]), now - RETENTION / 3);
    sqlx::query("insert into idempotency_keys values ($1, $2, $2, 201, $3, $4)")
        .bind(app.company.id)
        .bind(key)
        .bind(String::from_utf8(first.bytes.to_vec()).expect("text"))
        .bind(at)
        .execute(db)
        .await
        .expect("inserted");
    let partition = "select tableoid::regclass::text from idempotency_keys where key = $1";
    let partition =
        async || -> String { sqlx::query_scalar(partition).bind(key).fetch_one(db).await.expect("the row") };
    assert_eq!(partition().await, "idempotency_keys_default");
    sweep(&app, at, now - RETENTION).await;
    assert_ne!(partition().await, "idempotency_keys_default");
    app.stop().await;
}
