//! Background work is done only for companies that this process serves.

use hotline_actors::clock;
use hotline_persistence::key::hash;
use hotline_persistence::tables::tokens;
use serde_json::{Value, json};

use crate::support::service::TestOptions;
use crate::support::{Api, Company, OwnApp, TestApp, eventually};

async fn open_session(api: &Api, company: &Company) -> String {
    let body = json!({"channelId": company.webchat, "visitor": {"externalId": "v-1"}});
    api.post("/webchat/sessions", body).await.data(201)["id"].as_str().expect("id").to_owned()
}

async fn status(app: &TestApp, session: &str) -> String {
    let found = sqlx::query_scalar("select status from webchat_sessions where id = $1").bind(session);
    found.fetch_optional(&app.db).await.expect("session").unwrap_or_default()
}

#[actix_web::test]
async fn no_sweep_changes_a_company_that_is_closed() {
    let options = TestOptions::default();
    let idle_after = options.engine.session_idle_after;
    let app = OwnApp::start_with(options).await;
    let (other, other_api) = app.another_company().await;
    let (session, other_session) = (open_session(&app.api, &app.company).await, open_session(&other_api, &other).await);
    let log = &app.service.app.engine.store().log;
    log.wait_until_flushed(log.appended()).await.expect("the tables have both sessions");
    let closed = log.ownership().close(app.company.id).await.expect("no request is under way");
    let engine = &app.service.app.engine;
    assert!(!engine.owns(app.company.id) && engine.owns(other.id));

    let token = engine.directory().token(&hash(&app.company.key)).expect("token");
    let last_used_at = async || tokens::find(&app.db, token.row.id).await.expect("token").expect("token").last_used_at;
    clock::advance(idle_after);
    eventually("the other company's session has ended", || async { status(&app, &other_session).await == "ended" })
        .await;
    // By now a sweep that began before the company was closed has ended.
    let before = last_used_at().await;
    token.record_use(clock::now() + chrono::TimeDelta::seconds(1));
    // Another sweep ends the other company's next session.
    let next = open_session(&other_api, &other).await;
    clock::advance(idle_after);
    eventually("the other company's next session has ended", || async { status(&app, &next).await == "ended" }).await;
    assert_eq!(status(&app, &session).await, "active", "a sweep ended a session of the closed company");
    assert_eq!(last_used_at().await, before, "a sweep wrote a use of the closed company's token");

    drop(closed);
    eventually("the session ends once the company is open again", || async { status(&app, &session).await == "ended" })
        .await;
    eventually("the use is written", || async { last_used_at().await > before }).await;
    let shown: Value = app.api.get(&format!("/webchat/sessions/{session}")).await.data(200).clone();
    assert_eq!(shown["status"], "ended");
    app.stop().await;
}
