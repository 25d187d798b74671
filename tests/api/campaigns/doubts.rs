//! Messages in doubt that a search settles, because the process missed the status that names them.

use serde_json::json;

use super::{create_campaign, list, text};
use crate::steps::{id, sent};
use crate::support::{OwnApp, eventually};

/// Maximum messages that one search settles.
const SETTLED_MAX: i64 = 500;

#[actix_web::test]
async fn messages_that_cannot_be_settled_do_not_keep_later_ones_in_doubt() {
    let app = OwnApp::start().await;
    let (other, other_api) = app.another_company().await;
    assert!(other.id > app.company.id, "the messages of the other company must come later");
    let campaign = create_campaign(&app.api, text(list(&app.api, &[]).await, app.company.phone.0, "hello")).await;
    // These messages cannot be settled: without a ticket nothing can be recorded about them.
    for statement in [
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status, source,
             created_at)
         select company_id, 1000000000 + k, -1, -1, channel_id, 'outbound', 'text', 'x', 'queued', 'campaign', now()
         from campaigns, generate_series(1, $2) k where id = $1",
        "insert into campaign_recipients (company_id, campaign_id, contact_id, status, message_id)
         select company_id, id, 1000000000 + k, 'unknown', 1000000000 + k
         from campaigns, generate_series(1, $2) k where id = $1",
        "insert into early_statuses (company_id, channel_id, provider_message_id, status, at, names)
         select company_id, channel_id, 'wamid.' || k, 'sent', now(), 1000000000 + k
         from campaigns, generate_series(1, $2) k where id = $1",
    ] {
        sqlx::query(statement).bind(campaign).bind(SETTLED_MAX).execute(&app.db).await.expect(statement);
    }

    let send = json!({"channelId": other.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    let message = sent(&other_api, send).await;
    let campaign = create_campaign(&other_api, text(list(&other_api, &[]).await, other.phone.0, "hello")).await;
    sqlx::query(
        "insert into campaign_recipients (company_id, campaign_id, contact_id, status, message_id)
         values ($1, $2, $3, 'unknown', $4)",
    )
    .bind(other.id)
    .bind(campaign)
    .bind(message["contactId"].as_i64())
    .bind(id(&message))
    .execute(&app.db)
    .await
    .expect("a recipient");
    sqlx::query(
        "insert into early_statuses (company_id, channel_id, provider_message_id, status, at, names)
         values ($1, $2, 'wamid.other', 'sent', now(), $3)",
    )
    .bind(other.id)
    .bind(other.phone)
    .bind(id(&message))
    .execute(&app.db)
    .await
    .expect("a status");
    let path = format!("/messages/{}", id(&message));
    let is_sent = || async { other_api.get(&path).await.data(200)["status"] == "sent" };
    eventually("the message of the other company is settled", is_sent).await;
    app.stop().await;
}
