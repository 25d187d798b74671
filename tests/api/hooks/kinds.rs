//! Every kind of inbound message of a phone channel.

use serde_json::{Value, json};

use super::{MARIA, ProviderChannel, all_taken, contact, messages, tickets};
use crate::steps::{assert_timestamp, history, id, ticket};
use crate::support::provider::hooks::{
    Message, button_reply, contacts, image, list_reply, location, template_button, text, unsupported,
};
use crate::support::{OwnApp, TestApp, eventually};

#[actix_web::test]
async fn a_text_opens_a_ticket_in_the_queue_of_its_channel() {
    use hotline_persistence::tables::channels::ChannelType::Whatsapp;

    use super::Setup;
    let app = TestApp::shared().await;
    let setup = Setup { queue: Some(app.company.sales), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    let call = channel.phone_account().message(MARIA, "Maria Silva", text("wamid.1", "Is it open?").at(1_700_000_000));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));

    let all = messages(&app.api, channel.id).await;
    let [message] = all.as_slice() else { panic!("not exactly one message: {all:?}") };
    assert_timestamp(&message["createdAt"]);
    assert_eq!(
        message,
        &json!({
            "id": message["id"], "jobId": null, "ticketId": message["ticketId"], "contactId": message["contactId"],
            "channelId": channel.id, "direction": "inbound", "type": "text", "body": "Is it open?", "media": null,
            "template": null, "interactive": null, "content": null, "author": null, "editedAt": null, "edits": [], "deletedAt": null,
            "reactions": [], "quotedMessageId": null, "status": "received", "error": null,
            "user": null, "integration": null, "source": "contact", "via": null, "app": null, "createdAt": message["createdAt"],
            "updatedAt": message["createdAt"],
            // The provider dates it long ago, but no message is sent before it is created.
            "sentAt": message["createdAt"], "deliveredAt": null, "readAt": null,
        })
    );
    let opened = ticket(&app.api, message["ticketId"].as_i64().expect("ticket")).await;
    assert_eq!(opened["status"], "open");
    assert_eq!(opened["creationSource"], "contact");
    assert_eq!(opened["unreadCount"], 1);
    assert_eq!(opened["queue"]["id"], json!(app.company.sales));
    assert_eq!(opened["contact"], json!({"id": message["contactId"], "name": "Maria Silva", "number": MARIA}));
    assert_eq!(opened["lastMessage"]["body"], "Is it open?");
    assert_eq!(history(&app.api, id(&opened)).await.len(), 1, "more than the opening");
    let contact = contact(&app.api, &message["contactId"]).await;
    assert_eq!(contact["numberCountry"], "BR");
    assert_eq!(contact["origin"], "whatsapp");
    assert_eq!(contact["lastChannel"]["id"], json!(channel.id));
    app.stop().await;
}

#[actix_web::test]
async fn every_kind_is_taken_and_one_without_content_shows_its_name_in_brackets() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let order = json!({"catalog_id": "1", "text": "for Friday", "product_items": [
        {"product_retailer_id": "SKU-1", "quantity": "2", "item_price": "9.9", "currency": "BRL"}]});
    let flow = json!({"type": "nfm_reply",
        "nfm_reply": {"name": "flow", "body": "Sent", "response_json": "{\"day\":\"Friday\"}"}});
    let other = |kind: &str, part: Value| Message(json!({"id": format!("wamid.{kind}"), "type": kind, kind: part}));
    let card = "Ana Souza, +5511911111111, someone@example.com";
    let inbound: Vec<(Message, &str)> = vec![
        (text("wamid.1", "line 1\nline 2 \u{1F600}"), "line 1\nline 2 \u{1F600}"),
        (
            location("wamid.2", -23.55, -46.63, Some("Office")),
            "Office\n1 Hacker Way, Menlo Park\nhttps://www.google.com/maps?q=-23.55,-46.63",
        ),
        (location("wamid.3", 1.0, 2.5, None), "https://www.google.com/maps?q=1,2.5"),
        (contacts("wamid.4", "Ana Souza", "+5511911111111"), card),
        (button_reply("wamid.5", "yes", "Yes, please"), "Yes, please"),
        (list_reply("wamid.6", "second", "The second"), "The second"),
        (template_button("wamid.7", "payload", "Stop"), "Stop"),
        (other("order", order), "for Friday\n2 × SKU-1 (9.9 BRL)"),
        (other("interactive", flow), "Sent\n{\"day\":\"Friday\"}"),
        (unsupported("wamid.8"), "[unsupported] Message type unknown"),
        (other("text", json!({})), "[text]"),
        (Message(json!({"id": "wamid.10", "type": "image", "image": {"mime_type": "image/png"}})), "[image]"),
    ];
    let (calls, bodies): (Vec<Message>, Vec<&str>) = inbound.into_iter().unzip();
    let count = calls.len() as u64;
    assert_eq!(
        channel.deliver(&app.api, &channel.phone_account().messages(MARIA, "Maria", calls)).await,
        all_taken(count)
    );
    let all = messages(&app.api, channel.id).await;
    let stored: Vec<&Value> = all.iter().map(|message| &message["body"]).collect();
    assert_eq!(stored, bodies, "not all, or not in the order of the call");
    assert!(all.iter().all(|message| message["type"] == "text" && message["direction"] == "inbound"));
    assert_eq!(tickets(&app.api, channel.id).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn replies_and_choices_quote_the_message_they_answer() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", text("wamid.1", "hello"))).await;
    let first = messages(&app.api, channel.id).await;
    let offered = super::statuses::sent(&app, &channel, &first[0]["contactId"], "Which one?", "wamid.ours").await;

    let inbound = vec![
        button_reply("wamid.2", "a", "The first").replying_to(&phone.number, "wamid.ours"),
        template_button("wamid.3", "b", "The second").replying_to(&phone.number, "wamid.ours"),
        text("wamid.6", "as I said").replying_to(MARIA, "wamid.1"),
        text("wamid.7", "to nobody").replying_to(MARIA, "wamid.of another year"),
    ];
    let tally = channel.deliver(&app.api, &phone.messages(MARIA, "Maria", inbound)).await;
    assert_eq!(tally, all_taken(4));
    let all = messages(&app.api, channel.id).await;
    let quoted: Vec<(&Value, &Value)> =
        all[2..].iter().map(|message| (&message["body"], &message["quotedMessageId"])).collect();
    let (offered, first) = (json!(offered), first[0]["id"].clone());
    assert_eq!(
        quoted,
        [
            (&json!("The first"), &offered),
            (&json!("The second"), &offered),
            (&json!("as I said"), &first),
            (&json!("to nobody"), &Value::Null),
        ]
    );
    app.stop().await;
}

/// Options with the same title are distinguished by their ids, also in the event of the message.
#[actix_web::test]
async fn a_chosen_option_has_its_id_in_the_message_and_in_its_event() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let inbound = vec![
        button_reply("wamid.1", "a", "Other"),
        list_reply("wamid.2", "b", "Other"),
        template_button("wamid.3", "c", "Other"),
        text("wamid.4", "Other"),
    ];
    channel.deliver(&app.api, &channel.phone_account().messages(MARIA, "Maria", inbound)).await;
    let all = messages(&app.api, channel.id).await;
    let ids: Vec<&Value> = all.iter().map(|message| &message["content"]["reply"]["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!("b"), &json!("c"), &Value::Null]);
    eventually("the events are there", || async { received_events(&app).await.len() == all.len() }).await;
    for (event, message) in received_events(&app).await.iter().zip(&all) {
        let data = &event["data"];
        assert_eq!((&data["id"], &data["content"]), (&message["id"], &message["content"]));
        assert_eq!(data.get("reply"), message["content"].get("reply"), "{event}");
    }
    app.stop().await;
}

async fn received_events(app: &TestApp) -> Vec<Value> {
    let events = app.api.get("/events?types=message.received").await;
    events.data(200).as_array().expect("a list").clone()
}

#[actix_web::test]
async fn the_advertisement_of_a_message_is_stored_with_the_contact() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let from_ad = text("wamid.1", "hi").referred("ad 1", "https://fb.me/ad1", "Half price", "click 1");
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", from_ad)).await;
    let id = messages(&app.api, channel.id).await[0]["contactId"].clone();
    let fields = ["ctwaClid", "sourceId", "sourceUrl", "headline", "mediaType", "mediaUrl"];
    let stored = async || {
        let contact = contact(&app.api, &id).await;
        fields.map(|field| contact[field].as_str().unwrap_or_default().to_owned())
    };
    let picture = "https://ads.example/picture.jpg";
    assert_eq!(stored().await, ["click 1", "ad 1", "https://fb.me/ad1", "Half price", "image", picture]);
    // A message without an advertisement keeps the stored one; the next advertisement replaces it.
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", text("wamid.2", "and?"))).await;
    assert_eq!(stored().await[0], "click 1");
    let from_next_ad = image("wamid.3", "no file", None).referred("ad 2", "https://fb.me/ad2", "Free", "click 2");
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", from_next_ad)).await;
    assert_eq!(stored().await, ["click 2", "ad 2", "https://fb.me/ad2", "Free", "image", picture]);
    app.stop().await;
}
