//! The company's reactions: they are sent like messages, but are not messages.

use hotline_persistence::tables::channels::ChannelType::{Instagram, Messenger, Whatsapp};
use serde_json::{Value, json};

use super::Office;
use crate::events::{after, newest, types};
use crate::hooks::{MARIA, ProviderChannel, Setup, messages, tickets};
use crate::steps::{close, id, restarted};
use crate::support::provider::Answer;
use crate::support::provider::hooks::{events, text};
use crate::support::{check_events, eventually};

const PSID: &str = "6548123456784821";
const THUMB: &str = "\u{1F44D}";

/// Creates a phone channel and delivers a contact's message on it. Returns both.
async fn receive_message(office: &Office) -> (ProviderChannel, i64) {
    let setup = Setup { provider_url: Some(&office.provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&office.app, &office.app.company, Whatsapp, setup).await;
    let call = channel.phone_account().message(MARIA, "Maria", text("wamid.1", "hello"));
    channel.deliver(&office.app.api, &call).await;
    let message = id(&messages(&office.app.api, channel.id).await[0]);
    (channel, message)
}

impl Office {
    async fn react(&self, message: i64, emoji: &str) -> Value {
        let reply = self.app.api.put(&format!("/messages/{message}/reaction"), json!({"emoji": emoji})).await;
        reply.data(200)["reactions"].clone()
    }

    async fn reactions(&self, message: i64) -> Value {
        self.app.api.get(&format!("/messages/{message}")).await.data(200)["reactions"].clone()
    }
}

#[actix_web::test]
async fn the_company_has_one_reaction_and_the_provider_gets_its_changes_in_order() {
    let office = Office::open().await;
    let (channel, message) = receive_message(&office).await;
    let opened = id(&tickets(&office.app.api, channel.id).await[0]);
    close(&office.app.api, opened).await;
    let begin = newest(&office.app.api).await;
    let shown = office.react(message, THUMB).await;
    assert_eq!(
        (&shown[0]["emoji"], &shown[0]["by"], &shown[0]["error"]),
        (&json!(THUMB), &json!("user"), &Value::Null)
    );
    assert_eq!(office.react(message, THUMB).await, shown, "the same reaction again changed it");
    assert_eq!(office.react(message, "\u{2764}").await.as_array().map(Vec::len), Some(1));
    assert_eq!(office.app.api.delete(&format!("/messages/{message}/reaction")).await.status, 204);
    assert_eq!(office.app.api.delete(&format!("/messages/{message}/reaction")).await.status, 204);
    assert_eq!(office.reactions(message).await, json!([]));
    let calls = office.provider.accepts(&channel.account, 3).await;
    let sent: Vec<(&Value, &Value, &str)> =
        calls.iter().map(|call| (&call.body["type"], &call.body["reaction"], call.to.as_str())).collect();
    let reaction = |emoji: &str| json!({"message_id": "wamid.1", "emoji": emoji});
    let (kind, expected) = (json!("reaction"), [reaction(THUMB), reaction("\u{2764}"), reaction("")]);
    assert_eq!(sent, expected.each_ref().map(|reaction| (&kind, reaction, MARIA)));
    let logged = after(&office.app.api, begin).await;
    assert_eq!(types(&logged), ["message.reaction"; 3]);
    assert_eq!(logged[0]["by"]["type"], "integration");
    assert_eq!(logged[2]["previous"]["reactions"][0]["emoji"], "\u{2764}");
    assert_eq!(messages(&office.app.api, channel.id).await.len(), 1, "a reaction became a message");
    assert_eq!(tickets(&office.app.api, channel.id).await[0]["status"], "closed");
    eventually("every reaction was sent", || async { count_unsent(&office).await == 0 }).await;
    check_events(&office.app.db, office.app.company.id).await;
    office.close().await;
}

/// How many reactions the tables hold that were not sent.
async fn count_unsent(office: &Office) -> i64 {
    let count = sqlx::query_scalar("select count(*) from messages where company_id = $1 and revisions ? 'sending'");
    count.bind(office.app.company.id).fetch_one(&office.app.db).await.expect("count")
}

#[actix_web::test]
async fn a_refused_reaction_shows_why_and_may_be_tried_again() {
    let office = Office::open().await;
    let (channel, message) = receive_message(&office).await;
    let begin = newest(&office.app.api).await;
    office.provider.next(&channel.account, [Answer::refuse(400, 131_009, "Parameter value is not valid")]);
    office.react(message, THUMB).await;
    eventually("the reaction has failed", || async { office.reactions(message).await[0]["error"].is_object() }).await;
    let failed = office.reactions(message).await;
    assert_eq!(failed[0]["error"], json!({"code": "131009", "message": "Parameter value is not valid"}));
    let shown = office.react(message, THUMB).await;
    assert_eq!(shown[0]["error"], Value::Null);
    office.provider.accepts(&channel.account, 1).await;
    eventually("every reaction was sent", || async { count_unsent(&office).await == 0 }).await;
    let logged = after(&office.app.api, begin).await;
    assert_eq!(types(&logged), ["message.reaction"; 3], "not three events: shown, refused, and shown again");
    assert_eq!(logged[1]["by"]["type"], "system");
    // A status reports that an accepted reaction was refused after all.
    let callback =
        office.provider.calls(&channel.account).pop().expect("a call").body["biz_opaque_callback_data"].clone();
    let status = |mut body: Value| {
        body["entry"][0]["changes"][0]["value"]["statuses"][0]["biz_opaque_callback_data"] = callback.clone();
        body
    };
    let (account, at_s) = (channel.phone_account(), chrono::Utc::now().timestamp());
    channel.deliver(&office.app.api, &status(account.status("wamid.reaction", MARIA, "sent", at_s))).await;
    assert_eq!(office.reactions(message).await[0]["error"], Value::Null);
    let refused = account.failed("wamid.reaction", MARIA, 131_047, "Re-engagement message", at_s);
    channel.deliver(&office.app.api, &status(refused)).await;
    assert_eq!(office.reactions(message).await[0]["error"]["code"], "131047");
    // A reaction can be taken back although it was refused.
    assert_eq!(office.app.api.delete(&format!("/messages/{message}/reaction")).await.status, 204);
    assert_eq!(office.reactions(message).await, json!([]));
    check_events(&office.app.db, office.app.company.id).await;
    office.close().await;
}

#[actix_web::test]
async fn on_a_social_channel_a_reaction_is_a_sender_action() {
    let office = Office::open().await;
    for (kind, object) in [(Messenger, "page"), (Instagram, "instagram")] {
        let setup = Setup { provider_url: Some(&office.provider.url), ..Setup::default() };
        let channel = ProviderChannel::create(&office.app, &office.app.company, kind, setup).await;
        let hello = channel.page(object).call_body(PSID, 1_700_000_000_000, vec![events::text("m_1", "hi")]);
        channel.deliver(&office.app.api, &hello).await;
        let message = id(&messages(&office.app.api, channel.id).await[0]);
        office.react(message, THUMB).await;
        assert_eq!(office.app.api.delete(&format!("/messages/{message}/reaction")).await.status, 204);
        let calls = office.provider.accepts(&channel.account, 2).await;
        let action = |action: &str, payload: Value| json!({"recipient": {"id": PSID}, "sender_action": action, "payload": payload});
        assert_eq!(calls[0].body, action("react", json!({"message_id": "m_1", "reaction": THUMB})));
        assert_eq!(calls[1].body, action("unreact", json!({"message_id": "m_1"})));
    }
    office.close().await;
}

#[actix_web::test]
async fn only_messages_that_the_contact_sees_can_have_reactions() {
    let office = Office::open().await;
    let api = &office.app.api;
    let react = async |message: &Value, emoji: &str| {
        api.put(&format!("/messages/{message}/reaction"), json!({"emoji": emoji})).await
    };
    react(&json!(9_999_999), THUMB).await.error(404, "ERR_API_NOT_FOUND");
    api.delete("/messages/9999999/reaction").await.error(404, "ERR_API_NOT_FOUND");
    let ticket = office.app.ticket("5511900000001").await.0;
    let note =
        api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "call back"})).await.data(201)["id"].clone();
    react(&note, THUMB).await.error(422, "ERR_API_VALIDATION");
    let (_, message) = receive_message(&office).await;
    for emoji in ["", " ", "a b", &"x".repeat(33)] {
        react(&json!(message), emoji).await.error(422, "ERR_API_VALIDATION");
    }
    let call = office.app.api.put(&format!("/messages/{message}/reaction"), json!({})).await;
    call.error(422, "ERR_API_VALIDATION");
    office.close().await;
}

#[actix_web::test]
async fn a_reaction_that_was_not_sent_is_sent_after_a_restart() {
    let office = Office::open().await;
    let (channel, message) = receive_message(&office).await;
    office.provider.always(&channel.account, Answer::status(503));
    office.react(message, THUMB).await;
    office.provider.called_times(&channel.account, 1).await;
    let Office { app, provider } = office;
    let app = restarted(app).await;
    provider.always(&channel.account, Answer::Accept);
    let office = Office { app, provider };
    let accepted = office.provider.accepts(&channel.account, 1).await;
    assert_eq!(accepted[0].body["reaction"]["emoji"], THUMB);
    eventually("every reaction was sent", || async { count_unsent(&office).await == 0 }).await;
    assert_eq!(office.reactions(message).await[0]["error"], Value::Null);
    office.close().await;
}

#[actix_web::test]
async fn a_reaction_does_not_overtake_a_message_after_a_restart() {
    let office = Office::open().await;
    let (channel, message) = receive_message(&office).await;
    office.provider.always(&channel.account, Answer::status(503));
    office.send(json!({"channelId": channel.id, "number": MARIA, "type": "text", "body": "first"})).await;
    office.react(message, THUMB).await;
    office.provider.called_times(&channel.account, 1).await;
    let Office { app, provider } = office;
    let app = restarted(app).await;
    provider.always(&channel.account, Answer::Accept);
    let accepted = provider.accepts(&channel.account, 2).await;
    assert_eq!((accepted[0].text(), &accepted[1].body["reaction"]["emoji"]), ("first", &json!(THUMB)));
    Office { app, provider }.close().await;
}
