//! Durability `database`: an answer means a commit, and no refusal reveals a change that may still be lost.

use std::time::{Duration, Instant};

use actix_web::rt::spawn;
use hotline_persistence::Durability;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Postgres, Transaction};

use crate::support::service::TestOptions;
use crate::support::{OwnApp, TestApp, eventually};

/// How many unrelated refusals the test waits for, to see that one is held back: each takes as long as that one would.
const UNRELATED_REFUSALS: usize = 20;

/// After this time the test waits for no further one: the change itself waits only five seconds for its commit.
const UNRELATED_TIME_MAX: Duration = Duration::from_secs(1);

#[actix_web::test]
async fn with_database_durability_an_answer_means_the_row_is_committed() {
    let app = OwnApp::start_with(TestOptions { durability: Durability::Database, ..TestOptions::default() }).await;
    let ticket = app.ticket("5511900000001").await;
    for round in 0..20 {
        let send = json!({"ticketId": ticket, "type": "text", "body": format!("{round}")});
        app.api.post("/messages", send).await.data(202);
        let stored: i64 = sqlx::query_scalar("select count(*) from messages where company_id = $1")
            .bind(app.company.id)
            .fetch_one(&app.db)
            .await
            .expect("count");
        assert_eq!(stored, round + 1, "answered before it was committed");
    }
    app.stop().await;
}

/// Keeps all others from writing to a table while the transaction is open.
async fn lock_table(app: &TestApp, table: &str) -> Transaction<'static, Postgres> {
    let mut held = app.db.begin().await.expect("a transaction");
    let lock = AssertSqlSafe(format!("lock table {table} in share mode"));
    sqlx::query(lock).execute(&mut *held).await.expect("a lock");
    held
}

async fn wait_until_blocked(app: &TestApp, table: &str) {
    eventually("a write waits for the table", || async {
        let waits = "select exists (select from pg_locks where not granted and relation = to_regclass($1))";
        sqlx::query_scalar(waits).bind(table).fetch_one(&app.db).await.expect("locks")
    })
    .await;
}

/// Requests `first`, whose change cannot be committed yet, and then `second`, which that change forbids. The refusal of
/// `second` reveals the change, so it must not come before the commit. Meanwhile `unrelated` is refused because of
/// what is committed. Returns the data of the first answer, and the details of the refusal.
async fn answers_of(
    app: &TestApp,
    table: &str,
    first: (String, Value),
    second: (String, Value),
    unrelated: &(String, Value),
) -> (Value, Value) {
    let held = lock_table(app, table).await;
    let ask = |(path, body): (String, Value)| {
        let api = app.api.clone();
        spawn(async move { api.post(&path, body).await })
    };
    let first = ask(first);
    wait_until_blocked(app, table).await;
    let second = ask(second);
    let begun = Instant::now();
    for _ in 0..UNRELATED_REFUSALS {
        assert_eq!(ask(unrelated.clone()).await.expect("an answer").status, 409);
        if begun.elapsed() > UNRELATED_TIME_MAX {
            break;
        }
    }
    assert!(!second.is_finished(), "refused before the change was committed");
    assert!(!first.is_finished(), "answered before it was committed");
    held.rollback().await.expect("released");
    let (first, second) = (first.await.expect("an answer"), second.await.expect("an answer"));
    assert_eq!(second.status, 409, "{}", second.body);
    (first.body["data"].clone(), second.body["error"]["details"].clone())
}

#[actix_web::test]
async fn a_refusal_reveals_nothing_that_may_still_be_lost() {
    let app = OwnApp::start_with(TestOptions { durability: Durability::Database, ..TestOptions::default() }).await;
    let contact = app.contact("5511900000001").await;
    let other = app.contact("5511900000002").await;
    let open_for = |contact| ("/tickets".to_owned(), json!({"channelId": app.company.phone, "contactId": contact}));
    let (open, open_other) = (|| open_for(contact), open_for(other));
    let other_ticket = app.api.post(&open_other.0, open_other.1).await.data(201)["id"].clone();
    // Refused, since that ticket is open, which is committed.
    let unrelated = (format!("/tickets/{other_ticket}/reopen"), json!({}));
    let (opened, conflict) = answers_of(&app, "tickets", open(), open(), &unrelated).await;
    assert_eq!(conflict["id"], opened["id"]);

    let close = format!("/tickets/{}/close", opened["id"]);
    app.api.post(&close, json!({})).await.data(200);
    let reopen = (format!("/tickets/{}/reopen", opened["id"]), json!({}));
    let (newer, conflict) = answers_of(&app, "tickets", open(), reopen, &unrelated).await;
    assert_eq!(conflict["id"], newer["id"]);
    assert_ne!(newer["id"], opened["id"]);

    let (session, _) = app.session("anna").await;
    let path = |verb: &str| format!("/webchat/sessions/{}/{verb}", session.0);
    let end = (path("end"), json!({}));
    let say = (path("messages"), json!({"body": "Hello?"}));
    let (ended, conflict) = answers_of(&app, "webchat_sessions", end, say, &unrelated).await;
    assert_eq!((&ended["status"], &conflict["id"]), (&json!("ended"), &json!(session.0)));
    app.stop().await;
}
