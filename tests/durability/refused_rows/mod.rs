//! A row that PostgreSQL refuses is set aside, and everything else continues.

mod cases;
mod reasons;
mod replayed;
mod samples;

use crate::support::{OwnApp, eventually};
use serde_json::json;

#[actix_web::test]
async fn a_refused_row_is_kept_with_its_reason_and_blocks_nothing() {
    let app = OwnApp::start().await;
    sqlx::query("alter table messages add constraint no_poison check (body <> 'poison')")
        .execute(&app.db)
        .await
        .expect("constraint");
    let ticket = app.ticket("5511900000001").await;
    for body in ["before", "poison", "after"] {
        let send = json!({"ticketId": ticket, "type": "text", "body": body});
        app.api.post("/messages", send).await.data(202);
    }
    let stored = app.api.all(&format!("/tickets/{ticket}/messages")).await;
    let bodies: Vec<&str> = stored.iter().map(|message| message["body"].as_str().expect("body")).collect();
    assert_eq!(bodies, ["before", "after"]);
    let rejected: Vec<(String, serde_json::Value, String)> =
        sqlx::query_as("select kind, change, reason from rejected_changes where company_id = $1")
            .bind(app.company.id)
            .fetch_all(&app.db)
            .await
            .expect("rejected");
    assert_eq!(rejected.len(), 1, "{rejected:?}");
    let (kind, change, reason) = &rejected[0];
    assert_eq!(kind, "message");
    assert_eq!(change["body"], "poison");
    assert!(reason.contains("no_poison"), "{reason}");
    eventually("the journal is empty", || async {
        let log = &app.service.app.engine.store().log;
        log.flushed() == log.appended()
    })
    .await;
    sqlx::query("delete from rejected_changes").execute(&app.db).await.expect("delete");
    app.stop().await;
}
