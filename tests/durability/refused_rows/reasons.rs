//! A row that is refused for any reason is set aside alone; a fault of a whole table sets none aside.

use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::support::{OwnApp, eventually};

/// At least one code of each class that is not an outage (PostgreSQL 15, Appendix A), and the common ones.
const ERROR_CODES: &[&str] = &[
    "03000", "0A000", "0B000", "0F001", "0LP01", "0P000", "0Z002", "20000", "21000", "22000", "22P05", "23000",
    "23502", "23505", "23514", "24000", "26000", "27000", "2B000", "2D000", "2F005", "34000", "38001", "39P01",
    "3B001", "3F000", "42501", "42601", "42703", "42804", "42883", "42P01", "42P10", "44000", "54000", "54001",
    "54023", "HV000", "P0001", "P0004", "XX000", "XX001", "XX002",
];

/// A trigger that refuses a row whose text names an error code: `insert-XXXXX` when it is inserted.
const TRIGGER: &str = "create function refuse() returns trigger language plpgsql as $$
declare code text := substring(new::text from lower(tg_op) || '-([0-9A-Z]{5})');
begin
    if code is not null then raise exception 'refused for a test' using errcode = code; end if;
    return new;
end $$";

#[actix_web::test]
async fn a_row_refused_with_any_error_code_is_set_aside_alone() {
    let app = OwnApp::start().await;
    let db = &app.db;
    sqlx::query(TRIGGER).execute(db).await.expect("function");
    for table in ["messages", "contacts", "webchat_sessions", "idempotency_keys", "ticket_events", "tickets"] {
        let sql =
            format!("create trigger refuse before insert or update on {table} for each row execute function refuse()");
        sqlx::query(AssertSqlSafe(sql)).execute(db).await.expect("trigger");
    }
    let store = app.service.app.engine.store();
    let ticket = app.ticket("5511900000001").await;
    let mut expected = vec!["first".to_owned()];
    app.api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "first"})).await.data(202);
    for code in ERROR_CODES {
        for body in [format!("insert-{code}"), format!("beside {code}")] {
            app.api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": body})).await.data(202);
        }
        expected.push(format!("beside {code}"));
    }
    // Each refused row needs statements of its own, and a list waits only seconds for what was accepted before it.
    eventually("all is written or set aside", || async { store.log.flushed() == store.log.appended() }).await;
    let stored = app.api.all(&format!("/tickets/{ticket}/messages")).await;
    let bodies: Vec<&str> = stored.iter().map(|message| message["body"].as_str().expect("body")).collect();
    assert_eq!(bodies, expected);
    let refused: Vec<String> = sqlx::query_scalar("select change ->> 'body' from rejected_changes order by id")
        .fetch_all(db)
        .await
        .expect("rejected");
    assert_eq!(refused, ERROR_CODES.iter().map(|code| format!("insert-{code}")).collect::<Vec<_>>());
    // A kind of change whose rows have no text: the last channel of a contact.
    let refuse_all = "create function refuse_all() returns trigger language plpgsql as $$
         begin raise exception 'refused for a test' using errcode = 'XX000'; end $$;
         create trigger refuse before insert on contact_last_channels for each row execute function refuse_all()";
    sqlx::raw_sql(refuse_all).execute(db).await.expect("trigger");
    app.ticket("5511900000077").await;
    assert_eq!(app.api.all("/tickets").await.len(), 2, "a ticket whose contact's last channel was refused is missing");
    let kinds: Vec<String> = sqlx::query_scalar("select kind from rejected_changes where kind <> 'message'")
        .fetch_all(db)
        .await
        .expect("rejected");
    assert_eq!(kinds, ["contact_channel"]);
    sqlx::query("delete from rejected_changes").execute(db).await.expect("delete");
    app.stop().await;
}

#[actix_web::test]
async fn a_table_that_takes_no_row_at_all_is_waited_for_and_nothing_is_set_aside() {
    let app = OwnApp::start().await;
    let db = &app.db;
    let ticket = app.ticket("5511900000001").await;
    let store = app.service.app.engine.store();
    eventually("the ticket is written", || async { store.log.flushed() == store.log.appended() }).await;
    for (table, reason) in [("messages", "42P01"), ("ticket_events", "42P01")] {
        let away = format!("alter table {table} rename to {table}_away");
        sqlx::query(AssertSqlSafe(away)).execute(db).await.expect(reason);
        app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": table})).await.data(201);
        eventually("the log has noticed that the database takes no rows", || async { !store.log.queue().is_up() })
            .await;
        let rejected: i64 =
            sqlx::query_scalar("select count(*) from rejected_changes").fetch_one(db).await.expect("count");
        assert_eq!(rejected, 0, "rows were set aside for a fault of the whole table");
        assert!(store.log.flushed() < store.log.appended());
        let back = format!("alter table {table}_away rename to {table}");
        sqlx::query(AssertSqlSafe(back)).execute(db).await.expect("back");
        eventually("all is written", || async { store.log.flushed() == store.log.appended() }).await;
    }
    assert_eq!(app.api.all(&format!("/tickets/{ticket}/messages")).await.len(), 2);
    app.stop().await;
}
