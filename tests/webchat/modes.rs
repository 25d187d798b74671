//! Pushes with durability `database`.

use hotline_persistence::Durability;

use crate::door::{answer, only_ticket};
use crate::support::OwnApp;
use crate::support::service::TestOptions;
use crate::visitor::Browser;

#[actix_web::test]
async fn with_database_durability_what_is_pushed_is_committed() {
    let app = OwnApp::start_with(TestOptions { durability: Durability::Database, ..TestOptions::default() }).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut socket = browser.socket(&session).await;
    for round in 0..10 {
        let sent = browser.say(&session, &format!("said-{round}")).await;
        assert_eq!(socket.message().await, sent);
        answer(&app.api, only_ticket(&app.api).await, &format!("answered-{round}")).await;
        let pushed = socket.message().await;
        assert_eq!(pushed["body"], format!("answered-{round}"));
        let stored: i64 = sqlx::query_scalar("select count(*) from messages where company_id = $1 and id = $2")
            .bind(app.company.id)
            .bind(pushed["id"].as_i64())
            .fetch_one(&app.db)
            .await
            .expect("count");
        assert_eq!(stored, 1, "pushed before it was committed");
    }
    app.stop().await;
}
