//! The two settings beside `journal`.

use std::time::Duration;

use actix_web::rt::spawn;
use actix_web::rt::time::timeout;
use hotline_persistence::Durability;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Postgres, Transaction};

use crate::support::service::TestOptions;
use crate::support::{TestApp, eventually};

/// How long an answer is waited for that must not come.
const SILENCE: Duration = Duration::from_millis(500);

#[actix_web::test]
async fn with_database_durability_an_answer_means_the_row_is_committed() {
    let app = TestApp::start_with(TestOptions { durability: Durability::Database, ..TestOptions::default() }).await;
    let ticket = app.ticket("5511900000001").await;
    for round in 0..20 {
        let send = json!({"ticketId": ticket, "type": "text", "body": format!("{round}")});
        app.api.post("/messages", send).await.data(202);
        let stored: i64 = sqlx::query_scalar("select count(*) from messages where company_id = $1")
            .bind(app.company.id)
            .fetch_one(&app.database.db)
            .await
            .expect("count");
        assert_eq!(stored, round + 1, "answered before it was committed");
    }
    app.stop().await;
}

/// Keeps everybody from writing to a table.
async fn held(app: &TestApp, table: &str) -> Transaction<'static, Postgres> {
    let mut held = app.database.db.begin().await.expect("a transaction");
    let lock = AssertSqlSafe(format!("lock table {table} in share mode"));
    sqlx::query(lock).execute(&mut *held).await.expect("a lock");
    held
}

async fn is_waited_for(app: &TestApp, table: &str) {
    eventually("what was decided is being written", || async {
        let waits = "select exists (select from pg_locks where not granted and relation = to_regclass($1))";
        sqlx::query_scalar(waits).bind(table).fetch_one(&app.database.db).await.expect("locks")
    })
    .await;
}

/// Makes a decision that cannot be committed, asks for what it forbids, and returns both answers: the second tells of the first, so
/// it must not come before.
async fn told_of(app: &TestApp, table: &str, first: (String, Value), second: (String, Value)) -> (Value, Value) {
    let held = held(app, table).await;
    let ask = |(path, body): (String, Value)| {
        let api = app.api.clone();
        spawn(async move { api.post(&path, body).await })
    };
    let first = ask(first);
    is_waited_for(app, table).await;
    let mut second = ask(second);
    let early = timeout(SILENCE, &mut second).await;
    assert!(early.is_err(), "told before it was committed: {early:?}");
    assert!(!first.is_finished(), "answered before it was committed");
    held.rollback().await.expect("released");
    let (first, second) = (first.await.expect("an answer"), second.await.expect("an answer"));
    assert_eq!(second.status, 409, "{}", second.body);
    (first.body["data"].clone(), second.body["error"]["details"].clone())
}

#[actix_web::test]
async fn a_refusal_tells_of_nothing_that_may_still_be_lost() {
    let app = TestApp::start_with(TestOptions { durability: Durability::Database, ..TestOptions::default() }).await;
    let contact = app.contact("5511900000001").await;
    let open = || ("/tickets".to_owned(), json!({"channelId": app.company.phone, "contactId": contact}));
    let (opened, conflict) = told_of(&app, "tickets", open(), open()).await;
    assert_eq!(conflict["id"], opened["id"]);

    let close = format!("/tickets/{}/close", opened["id"]);
    app.api.post(&close, json!({})).await.data(200);
    let reopen = (format!("/tickets/{}/reopen", opened["id"]), json!({}));
    let (other, conflict) = told_of(&app, "tickets", open(), reopen).await;
    assert_eq!(conflict["id"], other["id"]);
    assert_ne!(other["id"], opened["id"]);

    let (session, _) = app.session("anna").await;
    let path = |verb: &str| format!("/webchat/sessions/{}/{verb}", session.0);
    let end = (path("end"), json!({}));
    let (ended, conflict) = told_of(&app, "webchat_sessions", end, (path("messages"), json!({"body": "Hello?"}))).await;
    assert_eq!((&ended["status"], &conflict["id"]), (&json!("ended"), &json!(session.0)));
    app.stop().await;
}

#[actix_web::test]
async fn with_memory_durability_lists_still_show_what_was_acknowledged() {
    let app = TestApp::start_with(TestOptions { durability: Durability::Memory, ..TestOptions::default() }).await;
    let ticket = app.ticket("5511900000001").await;
    for round in 0..20 {
        let send = json!({"ticketId": ticket, "type": "text", "body": format!("{round}")});
        app.api.post("/messages", send).await.data(202);
        assert_eq!(app.api.all(&format!("/tickets/{ticket}/messages")).await.len(), round + 1);
    }
    app.stop().await;
}
