//! The service sees changes that others make in the database, even if their notifications are lost.

use std::time::{Duration, Instant};

use hotline::cli::everything;
use hotline_actors::EngineOptions;
use hotline_persistence::tables::tokens::NewToken;
use sqlx::AssertSqlSafe;

use super::table::{create_token, wait_until_known};
use crate::steps;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, TestApp, eventually};

/// The longest time until a change is seen on an idle machine.
const SEEN_WITHIN: Duration = Duration::from_secs(1);

/// Longer than any test: a change is seen by its notification alone.
const NEVER: Duration = Duration::from_secs(24 * 3600);

async fn sql(app: &TestApp, statement: impl Into<String>) {
    let statement = statement.into();
    sqlx::query(AssertSqlSafe(statement.as_str())).execute(&app.db).await.expect(&statement);
}

/// How long after the statement the condition came true.
async fn time_to_see<F: Future<Output = bool>>(app: &TestApp, statement: &str, seen: impl FnMut() -> F) -> Duration {
    sql(app, statement).await;
    let changed = Instant::now();
    eventually(statement, seen).await;
    changed.elapsed()
}

/// Creates a key that may do everything, and waits until the service knows it.
async fn create_key(app: &OwnApp) -> String {
    let new = NewToken { name: "another", permissions: everything(), ..NewToken::default() };
    let (_, key) = create_token(app, new).await;
    wait_until_known(app, &key).await;
    key
}

/// Turns the notifications of all tables off.
async fn disable_notifications(app: &TestApp) {
    let tables = "select tgrelid::regclass::text from pg_trigger where tgname = 'directory_changed'";
    for table in sqlx::query_scalar::<_, String>(tables).fetch_all(&app.db).await.expect("tables") {
        sql(app, format!("alter table {table} disable trigger directory_changed")).await;
    }
}

async fn start_reloading_every(reload_every: Duration) -> OwnApp {
    let defaults = TestOptions::default();
    let engine = EngineOptions { reload_every, ..defaults.engine.clone() };
    OwnApp::start_with(TestOptions { engine, ..defaults }).await
}

/// Makes every kind of change; returns how long it took until each was seen.
async fn times_to_see() -> Vec<(&'static str, Duration)> {
    let app = start_reloading_every(NEVER).await;
    let ticket = app.ticket("5511900000001").await.0;
    let api = app.api.with_key(&create_key(&app).await);
    let (api, own) = (&api, &app.api);
    let status = async |wanted: u16| api.get("/tickets").await.status.as_u16() == wanted;
    let mut times = Vec::new();
    let mut record_time = |what: &'static str, time: Duration| times.push((what, time));

    let renamed = || async { steps::ticket(own, ticket).await["channel"]["name"] == "Renamed" };
    record_time("channel", time_to_see(&app, "update channels set name = 'Renamed'", renamed).await);
    let limit = || async { api.get("/tags").await.headers.get("ratelimit-limit").is_some_and(|value| value == "77") };
    record_time("rate", time_to_see(&app, "update companies set rate_per_minute = 77", limit).await);
    sql(&app, "update companies set rate_per_minute = 0").await;
    let off = "update companies set api_enabled = false";
    record_time("api off", time_to_see(&app, off, || status(403)).await);
    record_time("api on", time_to_see(&app, "update companies set api_enabled = true", || status(200)).await);
    record_time("inactive", time_to_see(&app, "update companies set active = false", || status(403)).await);
    record_time("active", time_to_see(&app, "update companies set active = true", || status(200)).await);
    let permissions = r#"update tokens set permissions = '{"tags": ["GET"]}' where name = 'another'"#;
    record_time("permissions", time_to_see(&app, permissions, || status(403)).await);
    let give = r#"update tokens set permissions = '{"tickets": ["GET"]}' where name = 'another'"#;
    record_time("permitted", time_to_see(&app, give, || status(200)).await);
    let foreign_ip = "update tokens set allowed_ips = '{10.0.0.1}' where name = 'another'";
    record_time("allowed ips", time_to_see(&app, foreign_ip, || status(401)).await);
    let any_ip = "update tokens set allowed_ips = '{}' where name = 'another'";
    record_time("no allowed ips", time_to_see(&app, any_ip, || status(200)).await);
    let expired = "update tokens set expires_at = now() where name = 'another'";
    record_time("expired", time_to_see(&app, expired, || status(401)).await);
    let not_expired = "update tokens set expires_at = null where name = 'another'";
    record_time("not expired", time_to_see(&app, not_expired, || status(200)).await);
    let revoke = "update tokens set revoked_at = now() where name = 'another'";
    record_time("revoked", time_to_see(&app, revoke, || status(401)).await);
    let deleted = "delete from tokens where name <> 'another'";
    record_time("deleted", time_to_see(&app, deleted, || async { own.get("/tags").await.status == 401 }).await);
    app.stop().await;
    times
}

#[actix_web::test]
async fn a_change_made_in_the_database_is_seen() {
    times_to_see().await;
}

#[actix_web::test]
async fn a_change_made_in_the_database_is_seen_within_a_second_measured() {
    let times = times_to_see().await;
    assert!(times.iter().all(|(_, time)| *time < SEEN_WITHIN), "{times:?}");
}

#[actix_web::test]
async fn without_its_notification_a_change_is_not_seen() {
    let app = start_reloading_every(NEVER).await;
    let api = app.api.with_key(&create_key(&app).await);
    // Notifications arrive in order: once that of this company has arrived, all before it have.
    let (company, other) = app.another_company().await;
    sql(&app, "alter table tokens disable trigger directory_changed").await;
    sql(&app, "update tokens set revoked_at = now() where name = 'another'").await;
    sql(&app, format!("update companies set rate_per_minute = 77 where id = {}", company.id)).await;
    eventually("the later notification has arrived", || async {
        other.get("/tags").await.headers.get("ratelimit-limit").is_some_and(|value| value == "77")
    })
    .await;
    assert_eq!(api.get("/tags").await.status, 200, "the service saw a change without its notification");
    app.stop().await;
}

#[actix_web::test]
async fn a_change_whose_notification_is_lost_is_seen_at_the_next_full_reload() {
    let app = start_reloading_every(Duration::from_millis(300)).await;
    let api = app.api.with_key(&create_key(&app).await);
    disable_notifications(&app).await;
    sql(&app, "update tokens set revoked_at = now() where name = 'another'").await;
    eventually("the revocation is seen", || async { api.get("/tags").await.status == 401 }).await;
    // A deleted company is no longer known.
    sql(&app, "delete from companies").await;
    eventually("the company is gone", || async { app.api.get("/tags").await.status == 401 }).await;
    app.stop().await;
}

#[actix_web::test]
async fn other_notifications_do_not_delay_the_full_reload() {
    let app = start_reloading_every(Duration::from_millis(300)).await;
    let api = app.api.with_key(&create_key(&app).await);
    sql(&app, "alter table tokens disable trigger directory_changed").await;
    sql(&app, "insert into companies (name) values ('Busy')").await;
    sql(&app, "update tokens set revoked_at = now() where name = 'another'").await;
    // Notifications come more often than full reloads.
    eventually("the revocation is seen", || async {
        sql(&app, "update companies set updated_at = now() where name = 'Busy'").await;
        api.get("/tags").await.status == 401
    })
    .await;
    app.stop().await;
}

/// Cuts the listening connection three times; returns how long it then took until a change was seen.
async fn time_to_see_after_cuts() -> Duration {
    let app = start_reloading_every(NEVER).await;
    let first = app.api.with_key(&create_key(&app).await);
    // Ends the connection and waits, up to a minute, until it has ended.
    // A member of a cluster has another connection, which listens to the placement.
    let cut = "select pg_terminate_backend(pid, 60000) from pg_stat_activity
        where datname = current_database() and query ilike 'listen %' and query not ilike '%placement%'
            and pid <> pg_backend_pid()";
    for round in 0..3 {
        let cut: Vec<bool> = sqlx::query_scalar(cut).fetch_all(&app.db).await.expect("cut");
        assert_eq!(cut, [true], "not exactly one connection listened");
        // No connection listens at this moment.
        sql(&app, format!("update companies set rate_per_minute = {}", 1000 + round)).await;
        let limit = (1000 + round).to_string();
        let seen = || async {
            first.get("/tags").await.headers.get("ratelimit-limit").is_some_and(|value| value == limit.as_str())
        };
        eventually("the change that was made without a listener is seen", seen).await;
    }
    let revoke = "update tokens set revoked_at = now() where name = 'another'";
    let time = time_to_see(&app, revoke, || async { first.get("/tags").await.status == 401 }).await;
    app.stop().await;
    time
}

#[actix_web::test]
async fn a_change_is_seen_after_the_listening_connection_was_cut() {
    time_to_see_after_cuts().await;
}

#[actix_web::test]
async fn a_change_is_seen_within_a_second_after_the_listening_connection_was_cut_measured() {
    let time = time_to_see_after_cuts().await;
    assert!(time < SEEN_WITHIN, "{time:?} after it listens again");
}
