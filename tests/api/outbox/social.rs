//! The calls that each provider receives: the cloud API of phone channels, the send API of Messenger and Instagram.

use std::time::Duration;

use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts;
use hotline_persistence::{ChannelId, ContactId};
use serde_json::{Value, json};

use super::statuses::call_hook;
use super::{Office, number};
use crate::support::provider::Answer;
use crate::support::provider::hooks::{Page, events, signature};
use crate::support::seed::APP_SECRET;

impl Office {
    /// Delivers a contact's message to a page, so that the contact can be answered; returns the contact.
    pub(super) async fn receive_from_contact(
        &self,
        channel: &hotline_persistence::tables::channels::ChannelRow,
        account: &str,
    ) -> ContactId {
        let object = if channel.kind == ChannelType::Instagram { "instagram" } else { "page" };
        let page = Page { object, id: account.to_owned() };
        let now = chrono::Utc::now().timestamp_millis();
        let body = page.call_body("psid-7", now, vec![events::text(&format!("mid-{account}"), "hi")]).to_string();
        let request = self
            .app
            .api
            .anonymous(reqwest::Method::POST, &format!("/hooks/{}", channel.public_key))
            .header("x-hub-signature-256", signature(APP_SECRET, body.as_bytes()))
            .header("content-type", "application/json")
            .body(body);
        assert_eq!(request.send().await.expect("the hook answers").status(), 200);
        let found = contacts::by_address(&self.app.db, self.app.company.id, channel.id, "psid-7").await;
        found.expect("looked up").expect("a contact").id
    }

    async fn reply(&self, channel: ChannelId, contact: ContactId, mut content: Value) -> String {
        content["channelId"] = json!(channel);
        content["contactId"] = json!(contact);
        self.send(content).await
    }
}

#[actix_web::test]
async fn a_phone_channel_speaks_the_cloud_api() {
    let office = Office::open().await;
    let channel = office.phone("1601").await;
    let interactive = json!({"type": "button", "body": {"text": "Shall we?"}, "action": {"buttons": [
        {"type": "reply", "reply": {"id": "y", "title": "Yes"}}]}});
    let text = office.text(channel, &number(1), "hello").await;
    let buttons = office
        .send(json!({"channelId": channel, "number": number(1), "type": "interactive", "interactive": interactive}))
        .await;
    let accepted = office.provider.accepts("1601", 2).await;
    let id = |message: &Value| message["id"].to_string();
    let common = |message: &Value| {
        json!({"messaging_product": "whatsapp", "recipient_type": "individual", "to": number(1),
            "biz_opaque_callback_data": id(message)})
    };
    let mut expected = common(&office.message(&text).await);
    expected["type"] = json!("text");
    expected["text"] = json!({"body": "hello"});
    assert_eq!(accepted[0].body, expected);
    let mut expected = common(&office.message(&buttons).await);
    expected["type"] = json!("interactive");
    expected["interactive"] = interactive;
    assert_eq!(accepted[1].body, expected);
    office.close().await;
}

#[actix_web::test]
async fn a_message_that_was_read_before_the_provider_answered_is_read() {
    let office = Office::open().await;
    let channel = office.channel(ChannelType::Messenger, "1608", |_| {}).await;
    let contact = office.receive_from_contact(&channel, "1608").await;
    // The contact has the message long before the service knows that the provider has it.
    office.provider.next("1608", [Answer::Accept.after(Duration::from_millis(1500))]);
    let job = office.reply(channel.id, contact, json!({"type": "text", "body": "hello"})).await;
    office.provider.called_times("1608", 1).await;
    let read_ms = chrono::Utc::now().timestamp_millis() + 1;
    office.wait_for_status(&job, "sent").await;
    let page = Page { object: "page", id: "1608".to_owned() };
    call_hook(&office, &channel.public_key, &page.call_body("psid-7", read_ms, vec![events::read(read_ms)])).await;
    office.wait_for_status(&job, "read").await;
    // A message that was sent after the contact has read the others is not read.
    let next = office.reply(channel.id, contact, json!({"type": "text", "body": "again"})).await;
    office.wait_for_status(&next, "sent").await;
    call_hook(&office, &channel.public_key, &page.call_body("psid-7", read_ms, vec![events::read(read_ms)])).await;
    assert_eq!(office.message(&next).await["status"], "sent");
    office.close().await;
}

#[actix_web::test]
async fn social_channels_speak_the_send_api_to_contacts_that_wrote_before() {
    for kind in [ChannelType::Messenger, ChannelType::Instagram] {
        let office = Office::open().await;
        let channel = office.channel(kind, "1602", |_| {}).await;
        let contact = office.receive_from_contact(&channel, "1602").await;
        let job = office.reply(channel.id, contact, json!({"type": "text", "body": "hello"})).await;
        let accepted = office.provider.accepts("1602", 1).await;
        let message = office.wait_for_status(&job, "sent").await;
        let expected = if kind == ChannelType::Messenger {
            json!({"recipient": {"id": "psid-7"}, "messaging_type": "RESPONSE",
                "message": {"text": "hello", "metadata": message["id"].to_string()}})
        } else {
            json!({"recipient": {"id": "psid-7"}, "message": {"text": "hello"}})
        };
        assert_eq!(accepted[0].body, expected, "{kind:?}");
        // A message of a type that social channels do not have fails.
        let flow = json!({"type": "flow", "body": {"text": "x"}, "action": {}});
        let job = office.reply(channel.id, contact, json!({"type": "interactive", "interactive": flow})).await;
        assert_eq!(office.wait_for_status(&job, "failed").await["error"]["code"], "ERR_UNSUPPORTED");
        office.close().await;
    }
}
