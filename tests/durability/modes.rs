//! The two settings beside `journal`.

use hotline_persistence::Durability;
use serde_json::json;

use crate::support::TestApp;
use crate::support::service::TestOptions;

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
