//! A token's last use is written in the background, and only if the token was accepted.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use hotline::cli::everything;
use hotline_persistence::TokenId;
use hotline_persistence::key::hash;
use hotline_persistence::tables::tokens::{self, NewToken};

use super::table::{create_token, wait_until_known};
use crate::support::{OwnApp, TestApp, eventually, until_blocked};

/// More than a request takes that waits for no lock.
const UNBLOCKED_TIME_MAX: Duration = Duration::from_secs(1);

async fn last_used(app: &TestApp, id: TokenId) -> Option<DateTime<Utc>> {
    tokens::find(&app.db, id).await.expect("token").expect("token").last_used_at
}

fn own_token(app: &OwnApp) -> TokenId {
    app.service.app.engine.directory().token(&hash(&app.company.key)).expect("token").row.id
}

#[actix_web::test]
async fn a_use_is_written_and_a_refusal_is_not() {
    let app = OwnApp::start().await;
    let new = || NewToken { name: "another", permissions: everything(), ..NewToken::default() };
    let (used, used_key) = create_token(&app, new()).await;
    let (revoked, revoked_key) = create_token(&app, new()).await;
    let past = Utc::now() - TimeDelta::seconds(1);
    let (expired, expired_key) = create_token(&app, NewToken { expires_at: Some(past), ..new() }).await;
    let elsewhere = vec!["10.0.0.1".to_owned()];
    let (far, far_key) = create_token(&app, NewToken { allowed_ips: elsewhere, ..new() }).await;
    let (idle, idle_key) = create_token(&app, new()).await;
    wait_until_known(&app, &idle_key).await;
    // A token that was used, and then revoked.
    app.api.with_key(&revoked_key).get("/tickets").await.data(200);
    eventually("the use is written", || async { last_used(&app, revoked.id).await.is_some() }).await;
    tokens::revoke(&app.db, revoked.id).await.expect("revoked");
    let revoked_api = app.api.with_key(&revoked_key);
    eventually("it is revoked", || async { revoked_api.get("/tickets").await.status == 401 }).await;
    app.service.app.engine.directory().write_uses(&app.db, |_| true).await.expect("uses");
    let revoked_before = last_used(&app, revoked.id).await;

    for key in [&revoked_key, &expired_key, &far_key] {
        app.api.with_key(key).get("/tickets").await.error(401, "ERR_API_UNAUTHORIZED");
    }
    let before = Utc::now();
    app.api.with_key(&used_key).get("/tickets").await.data(200);
    let after = Utc::now();
    eventually("the use is written", || async { last_used(&app, used.id).await.is_some() }).await;
    let at = last_used(&app, used.id).await.expect("time");
    // The table holds milliseconds.
    assert!(at >= before - TimeDelta::milliseconds(1) && at <= after, "used at {at}, not {before} to {after}");
    // All uses are written together: these had none.
    assert_eq!(last_used(&app, revoked.id).await, revoked_before);
    for id in [expired.id, far.id, idle.id] {
        assert_eq!(last_used(&app, id).await, None, "a refused token counts as used");
    }
    // The next use is written too: writing one does not make the directory load the token again.
    app.api.with_key(&used_key).get("/tickets").await.data(200);
    eventually("the next use is written", || async { last_used(&app, used.id).await > Some(at) }).await;
    app.stop().await;
}

/// Sends requests while the table of tokens is locked and the writing of uses waits for it; returns how long the
/// slowest request took.
async fn slowest_while_locked(app: &OwnApp) -> Duration {
    app.api.get("/tickets").await.data(200);
    let own = own_token(app);
    eventually("the use is written", || async { last_used(app, own).await.is_some() }).await;
    let used_before = last_used(app, own).await;
    let mut transaction = app.db.begin().await.expect("transaction");
    sqlx::query("lock table tokens in access exclusive mode").execute(&mut *transaction).await.expect("lock");
    let mut slowest = Duration::ZERO;
    app.api.get("/tickets").await.data(200);
    // The write of the use waits for the lock.
    until_blocked(1, &mut transaction, &app.db).await;
    for _ in 0..50 {
        let asked = Instant::now();
        app.api.get("/tickets").await.data(200);
        slowest = slowest.max(asked.elapsed());
    }
    transaction.rollback().await.expect("rollback");
    eventually("the use is written after all", || async { last_used(app, own).await > used_before }).await;
    slowest
}

#[actix_web::test]
async fn requests_are_answered_while_the_table_of_tokens_is_locked() {
    let app = OwnApp::start().await;
    slowest_while_locked(&app).await;
    app.stop().await;
}

#[actix_web::test]
async fn no_request_waits_for_the_table_of_tokens_measured() {
    let app = OwnApp::start().await;
    let slowest = slowest_while_locked(&app).await;
    assert!(slowest < UNBLOCKED_TIME_MAX, "a request took {slowest:?} while the table was locked");
    app.stop().await;
}
