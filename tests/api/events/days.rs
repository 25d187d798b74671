//! Events are kept for some days, and each day is dropped as a whole.

use chrono::{DateTime, TimeDelta, Utc};
use hotline::service::EventOptions;
use hotline_persistence::tables::events::{self, After, ReadLimits};
use hotline_persistence::{Error, LoggedEventId, PgPool};
use serde_json::json;

use super::{after, ids, newest};
use crate::support::service::TestOptions;
use crate::support::{Company, OwnApp, TestDatabase, empty_folder, eventually};

/// Creates the missing partitions, one for each day from this time on.
pub async fn create_partitions(db: &PgPool, from: DateTime<Utc>) {
    eventually("the days are there", || async { is_done(events::create_partitions(db, from).await) }).await;
}

/// Drops the partitions of the days that ended before this time.
pub async fn drop_expired(db: &PgPool, before: DateTime<Utc>) {
    eventually("the days are dropped", || async { is_done(events::drop_expired(db, before).await) }).await;
}

/// Whether a change of the partitions succeeded. One that has waited too long for its lock, which a statement of the
/// service may hold, is to be repeated, as in the service. Any other error fails the test.
fn is_done(change: hotline_persistence::Result<()>) -> bool {
    match change {
        Ok(()) => true,
        Err(Error::Unavailable(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[actix_web::test]
async fn expired_days_are_dropped_and_readers_continue_with_the_rest() {
    // No other test's statements lock the tables, and the service itself drops none of these days.
    let events = EventOptions { retention_days: 366, ..EventOptions::default() };
    let app = OwnApp::start_with(TestOptions { events, ..TestOptions::default() }).await;
    let db = &app.db;
    for name in ["A", "B", "C"] {
        app.api.post("/contacts", json!({"name": name})).await.data(201);
    }
    let last = newest(&app.api).await;
    assert!(last >= 3);
    let days_ago = |days| Utc::now() - TimeDelta::days(days);
    create_partitions(db, days_ago(40)).await;
    // All of them exist already.
    create_partitions(db, days_ago(40)).await;
    // The first event is of an old day.
    let moved = sqlx::query("update events set created_at = $2 where company_id = $1 and first_id = 1");
    let moved = moved.bind(app.company.id).bind(days_ago(40)).execute(db).await.expect("moved");
    assert_eq!(moved.rows_affected(), 1);
    let all: Vec<i64> = (1..=last).collect();
    assert_eq!(ids(&after(&app.api, 0).await), all, "an event is missing, or out of order");
    // No event is that old.
    drop_expired(db, days_ago(45)).await;
    assert_eq!(ids(&after(&app.api, 0).await), all);
    drop_expired(db, days_ago(30)).await;
    assert_eq!(ids(&after(&app.api, 0).await), (2..=last).collect::<Vec<_>>());
    // No older day is left.
    drop_expired(db, days_ago(30)).await;
    // A reader whose last event is no longer kept learns that they have missed some.
    let meta = async |query: &str| app.api.get(&format!("/events?limit=1&{query}")).await.body["meta"].clone();
    for (query, gap) in
        [("after=0", true), ("after=1", false), ("after=2", false), ("", false), ("after=latest", false)]
    {
        let meta = meta(query).await;
        assert_eq!((&meta["oldestId"], &meta["gap"]), (&json!(2), &json!(gap)), "{query}");
    }
    assert_eq!(meta("after=latest").await, json!({"lastId": last, "hasMore": false, "oldestId": 2, "gap": false}));
    assert_eq!(app.api.get("/events?after=newest").await.invalid_fields(), ["after"]);
    create_partitions(db, days_ago(40)).await;
    let moved = sqlx::query("update events set created_at = $2 where company_id = $1");
    moved.bind(app.company.id).bind(days_ago(40)).execute(db).await.expect("moved");
    drop_expired(db, days_ago(30)).await;
    let all_expired = json!({"lastId": 2, "hasMore": false, "oldestId": null, "gap": true});
    assert_eq!(meta("after=2").await, all_expired, "the answer once every event has expired");
    assert_eq!(meta(&format!("after={last}")).await["gap"], false);
    assert_eq!(meta("after=latest").await["lastId"], last);
    app.stop().await;
}

#[actix_web::test]
async fn expired_days_are_dropped_even_while_the_audit_log_is_locked() {
    let database = TestDatabase::migrated().await;
    let db = database.db.clone();
    let company = Company::create(&db, "Acme").await;
    let old = Utc::now() - TimeDelta::days(40);
    create_partitions(&db, old).await;
    let day = format!("events_p{}_00", old.format("%Y%m%d"));
    let exists = async || -> bool {
        let exists = sqlx::query_scalar("select to_regclass($1) is not null").bind(&day);
        exists.fetch_one(&db).await.expect("an answer")
    };
    assert!(exists().await, "{day}");
    let mut held = db.begin().await.expect("a transaction");
    sqlx::query("lock table audit_log in access exclusive mode").execute(&mut *held).await.expect("a lock");
    let app = OwnApp::serve(&TestOptions::default(), database, empty_folder(), company).await;
    eventually("the old day is dropped", || async { !exists().await }).await;
    held.rollback().await.expect("unlocked");
    app.stop().await;
}

#[actix_web::test]
async fn events_are_found_after_the_clock_was_ahead() {
    let app = OwnApp::start().await;
    let (db, company) = (&app.db, app.company.id);
    for name in ["A", "B"] {
        app.api.post("/contacts", json!({"name": name})).await.data(201);
    }
    let last = newest(&app.api).await;
    let ahead = Utc::now() + TimeDelta::days(3);
    // The position of a reader who has read a row of that time.
    let after = After { id: LoggedEventId::new(last - 1), since: ahead };
    let page = events::read(db, company, after, &[], ReadLimits { events: 10, bytes: 1 << 20 }).await.expect("a page");
    assert_eq!(page.events.iter().map(|event| event.id.0).collect::<Vec<_>>(), [last]);
    // An event is never dated earlier than the one before it.
    let found = events::find(db, company, LoggedEventId::new(last), ahead).await.expect("an answer");
    assert_eq!(found.map(|event| event.id.0), Some(last));
    let none = events::find(db, company, LoggedEventId::new(last + 1), ahead).await.expect("an answer");
    assert!(none.is_none());
    app.stop().await;
}
