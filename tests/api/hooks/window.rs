//! A contact's message opens the window in which a phone channel takes any message.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{MARIA, ProviderChannel, all_taken, messages};
use crate::steps::{close, id};
use crate::support::provider::hooks::text;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply, TestApp};

async fn send(app: &TestApp, channel: &ProviderChannel, contact: &Value) -> Reply {
    let body = json!({"channelId": channel.id, "contactId": contact, "type": "text", "body": "hello"});
    app.api.post("/messages", body).await
}

#[actix_web::test]
async fn the_window_counts_from_when_the_contact_wrote_not_from_when_the_call_arrived() {
    let options = TestOptions::default();
    let app = OwnApp::start_with(options.clone()).await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    // The provider had to repeat the call for a day and an hour.
    let written_at = (Utc::now() - TimeDelta::hours(25)).timestamp();
    assert_eq!(
        channel.deliver(&app.api, &phone.message(MARIA, "Maria", text("wamid.1", "hi").at(written_at))).await,
        all_taken(1)
    );
    let maria = messages(&app.api, channel.id).await[0]["contactId"].clone();
    let refused = send(&app, &channel, &maria).await;
    refused.error(422, "ERR_API_WINDOW_CLOSED");
    // The window ended a day after the contact wrote.
    let closed_at = DateTime::from_timestamp(written_at, 0).expect("a time") + TimeDelta::hours(24);
    let closed_at = closed_at.to_rfc3339_opts(SecondsFormat::Millis, true);
    assert_eq!(refused.body["error"]["details"], json!({"closedAt": closed_at}));

    let now = Utc::now().timestamp();
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", text("wamid.2", "now").at(now))).await;
    send(&app, &channel, &maria).await.data(202);
    // The window is open in a new ticket too, and after a restart.
    let opened = super::tickets(&app.api, channel.id).await;
    close(&app.api, id(&opened[0])).await;
    send(&app, &channel, &maria).await.data(202);
    let app = app.restarted(&options, async |_| {}).await;
    send(&app, &channel, &maria).await.data(202);
    app.stop().await;
}
