//! A missing row is written whole by the next change of its record. Lists are answered after their database connections
//! have died.

use serde_json::json;

use crate::support::{OwnApp, eventually};

#[actix_web::test]
async fn a_ticket_whose_row_is_missing_is_written_whole_by_its_next_change() {
    let app = OwnApp::start().await;
    let (missing, other) = (app.ticket("5511900000001").await, app.ticket("5511900000002").await);
    let listed_before = app.api.all("/tickets").await;
    assert_eq!(listed_before.len(), 2);
    let deleted =
        sqlx::query("delete from tickets where id = $1").bind(missing).execute(&app.db).await.expect("delete");
    assert_eq!(deleted.rows_affected(), 1);
    for ticket in [missing, other] {
        let send = json!({"ticketId": ticket, "type": "text", "body": "hello"});
        app.api.post("/messages", send).await.data(202);
    }
    let listed_after = app.api.all("/tickets").await;
    assert_eq!(listed_after.len(), 2);
    for (before, after) in listed_before.iter().zip(&listed_after) {
        assert_eq!(after["lastMessage"]["body"], "hello");
        for field in ["id", "contact", "channel", "queue", "status", "creationSource", "createdAt", "openedAt"] {
            assert_eq!(after[field], before[field], "{field}");
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_list_whose_connections_have_died_is_answered_over_new_ones() {
    let app = OwnApp::start().await;
    app.ticket("5511900000001").await;
    let listed = app.api.all("/tickets").await;
    assert_eq!(listed.len(), 1);
    // The connections whose last statement read a page of tickets.
    let of_list_connections =
        "from pg_stat_activity where datname = current_database() and query like 'with page as (select t.%'";
    let count = || async {
        let sql = sqlx::AssertSqlSafe(format!("select count(*) {of_list_connections}"));
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&app.db).await.expect("count")
    };
    assert!(count().await >= 1);
    let terminate = sqlx::AssertSqlSafe(format!("select pg_terminate_backend(pid) {of_list_connections}"));
    sqlx::query(terminate).execute(&app.db).await.expect("terminate");
    eventually("the connections have ended", || async { count().await == 0 }).await;
    assert_eq!(app.api.all("/tickets").await, listed);
    assert!(count().await >= 1);
    app.stop().await;
}
