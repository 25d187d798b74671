//! The structure of messages, beside their readable text: in the messages and in their events.

use hotline_persistence::tables::channels::ChannelType::{Instagram, Messenger};
use serde_json::{Value, json};

use super::{MARIA, ProviderChannel, Setup, all_taken, contact, messages};
use crate::steps::restarted;
use crate::support::provider::Provider;
use crate::support::provider::hooks::{Message, button_reply, contacts, list_reply, location, template_button, text};
use crate::support::{OwnApp, TestApp, eventually};

const PSID: &str = "6548123456784821";
const PNG: &[u8] = &[
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1F, 0x15, 0xC4, 0x89,
];

fn raw_message(id: &str, kind: &str, part: Value) -> Message {
    Message(json!({"id": id, "type": kind, kind: part}))
}

fn with_context(mut message: Message, context: Value) -> Message {
    message.0["context"] = context;
    message
}

/// Inbound messages of a phone, each with the `content` that it is shown with.
fn structured_messages() -> Vec<(Message, Value)> {
    let order = json!({"catalog_id": "cat 7", "text": "for Friday", "product_items": [
        {"product_retailer_id": "SKU-1", "quantity": "2", "item_price": 9.9, "currency": "BRL"},
        {"product_retailer_id": "SKU-2", "quantity": 1}]});
    let items = json!([
        {"retailerId": "SKU-1", "quantity": 2.0, "price": "9.9", "currency": "BRL"},
        {"retailerId": "SKU-2", "quantity": 1.0, "price": null, "currency": null}]);
    let form = json!({"type": "nfm_reply", "nfm_reply": {"name": "flow", "body": "Sent",
        "response_json": "{\"flow_token\":\"t\",\"size\":\"XL\"}"}});
    let reply = |value: Value| json!({"kind": "reply", "reply": value});
    let place = json!({"latitude": -23.55, "longitude": -46.63, "name": "Office",
        "address": "1 Hacker Way, Menlo Park", "url": null});
    let card = json!({"name": {"formattedName": "Ana Souza", "firstName": "Ana Souza"},
        "phones": [{"phone": "+5511911111111", "waId": "5511911111111", "type": "CELL"}],
        "emails": [{"email": "someone@example.com", "type": "WORK"}]});
    let product = json!({"referred_product": {"catalog_id": "cat 7", "product_retailer_id": "SKU-1"}});
    vec![
        (text("wamid.1", "plain"), Value::Null),
        (button_reply("wamid.2", "a", "A"), reply(json!({"id": "a", "payload": null, "title": "A"}))),
        (
            list_reply("wamid.3", "b", "B"),
            reply(json!({"id": "b", "payload": null, "title": "B", "description": "the second"})),
        ),
        (template_button("wamid.4", "p", "C"), reply(json!({"id": "p", "payload": "p", "title": "C"}))),
        (
            raw_message("wamid.5", "order", order),
            json!({"kind": "order", "order": {"catalogId": "cat 7", "text": "for Friday", "items": items}}),
        ),
        (
            raw_message("wamid.6", "interactive", form),
            json!({"kind": "form", "form": {"name": "flow", "answers": {"flow_token": "t", "size": "XL"}}}),
        ),
        (location("wamid.7", -23.55, -46.63, Some("Office")), json!({"kind": "location", "location": place})),
        (contacts("wamid.8", "Ana Souza", "+5511911111111"), json!({"kind": "contacts", "contacts": [card]})),
        (
            with_context(text("wamid.9", "look"), json!({"forwarded": true, "frequently_forwarded": true})),
            json!({"kind": "forwarded", "forwarded": true, "frequentlyForwarded": true}),
        ),
        (
            with_context(text("wamid.10", "in red?"), product),
            json!({"kind": "product", "product": {"catalogId": "cat 7", "retailerId": "SKU-1"}}),
        ),
    ]
}

#[actix_web::test]
async fn every_kind_keeps_its_structure_in_its_message_and_event() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let (inbound, contents): (Vec<Message>, Vec<Value>) = structured_messages().into_iter().unzip();
    let count = inbound.len();
    let tally = channel.deliver(&app.api, &channel.phone_account().messages(MARIA, "Maria", inbound)).await;
    assert_eq!(tally, all_taken(count as u64));
    let all = messages(&app.api, channel.id).await;
    let stored: Vec<Value> = all.iter().map(|message| message["content"].clone()).collect();
    assert_eq!(stored, contents);
    assert_eq!(all[5]["interactive"]["nfm_reply"]["name"], "flow", "the original form is missing");
    let others = all.iter().enumerate().filter(|(index, _)| *index != 5);
    assert!(others.into_iter().all(|(_, message)| message["interactive"].is_null()));
    let received = async || {
        let events = app.api.get("/events?types=message.received&limit=100").await;
        events.data(200).as_array().expect("events").clone()
    };
    eventually("the events are there", || async { received().await.len() == count }).await;
    for (event, content) in received().await.iter().zip(&contents) {
        assert_eq!(&event["data"]["content"], content);
        assert_eq!(event["data"].get("reply"), content.get("reply"), "{event}");
    }
    let app = restarted(app).await;
    assert_eq!(messages(&app.api, channel.id).await, all);
    app.stop().await;
}

#[actix_web::test]
async fn malformed_or_too_large_parts_of_a_structure_are_left_out() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let form = |id: &str, json: String| {
        raw_message(
            id,
            "interactive",
            json!({"type": "nfm_reply", "nfm_reply": {"name": "flow", "body": "Sent", "response_json": json}}),
        )
    };
    let large = format!("{{\"a\":{}}}", json!(vec!["x".repeat(9000); 9]));
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(20), "]".repeat(20));
    let inbound = vec![
        form("wamid.1", "not JSON".to_owned()),
        form("wamid.2", large),
        form("wamid.3", deep),
        raw_message("wamid.4", "order", json!({"product_items": [{"quantity": "many"}, 7, null]})),
        raw_message("wamid.5", "location", json!({"latitude": "north", "name": "Somewhere"})),
        Message(json!({"id": "wamid.6", "type": "contacts", "contacts": [7, null, {"name": "x\u{0}"}]})),
        with_context(text("wamid.7", "hi"), json!({"referred_product": 7, "forwarded": "yes"})),
    ];
    let count = inbound.len();
    let tally = channel.deliver(&app.api, &channel.phone_account().messages(MARIA, "Maria", inbound)).await;
    assert_eq!(tally, all_taken(count as u64));
    let all = messages(&app.api, channel.id).await;
    assert_eq!(all.len(), count);
    for form in &all[..3] {
        assert_eq!(form["content"], json!({"kind": "form", "form": {"name": "flow", "answers": null}}));
        assert!(form["body"].as_str().is_some_and(|body| body.starts_with("Sent\n")), "{form}");
    }
    assert_eq!(all[3]["content"]["order"]["items"][0]["quantity"], Value::Null);
    assert_eq!(all[4]["content"]["location"]["latitude"], Value::Null);
    assert_eq!(all[5]["content"]["contacts"][2], json!({"name": "x"}));
    assert_eq!(all[6]["content"], Value::Null);
    app.stop().await;
}

#[actix_web::test]
async fn each_message_keeps_the_advertisement_that_brought_it() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let from_ad = |id: &str, number: u8| {
        text(id, "hi").referred(&format!("ad {number}"), "https://fb.me/ad", "Half price", &format!("click {number}"))
    };
    let inbound = vec![from_ad("wamid.1", 1), from_ad("wamid.2", 2), text("wamid.3", "and?")];
    assert_eq!(channel.deliver(&app.api, &phone.messages(MARIA, "Maria", inbound)).await, all_taken(3));
    let all = messages(&app.api, channel.id).await;
    let referral = json!({"ctwaClid": "click 1", "sourceUrl": "https://fb.me/ad", "sourceId": "ad 1", "sourceType": "ad",
        "reference": null, "headline": "Half price", "body": "Ask us anything", "mediaType": "image",
        "mediaUrl": "https://ads.example/picture.jpg"});
    assert_eq!(all[0]["content"], json!({"kind": "referral", "referral": referral}));
    assert_eq!(all[1]["content"]["referral"]["ctwaClid"], "click 2");
    assert_eq!(all[2]["content"], Value::Null);
    assert_eq!(contact(&app.api, &all[0]["contactId"]).await["ctwaClid"], "click 2", "not the last one");
    // On a social channel, with the product that the question is about.
    let channel = ProviderChannel::create(&app, &app.company, Messenger, Setup::default()).await;
    let referral = json!({"ref": "promo", "ad_id": "ad 3", "source": "ADS", "product": {"id": "SKU-9"}});
    let question = json!({"message": {"mid": "m_1", "text": "in red?", "referral": referral}});
    channel.deliver(&app.api, &channel.page("page").call_body(PSID, 1_700_000_000_000, vec![question])).await;
    let content = messages(&app.api, channel.id).await[0]["content"].clone();
    assert_eq!((&content["kind"], &content["product"]["retailerId"]), (&json!("product"), &json!("SKU-9")));
    let referral = &content["referral"];
    assert_eq!(
        (&referral["sourceId"], &referral["reference"], &referral["sourceType"]),
        (&json!("ad 3"), &json!("promo"), &json!("ADS"))
    );
    app.stop().await;
}

#[actix_web::test]
async fn the_picture_of_a_story_is_fetched_and_stored() {
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Instagram, setup).await;
    let offered = || provider.file_url(&provider.offer("image/png", PNG));
    let (reply_url, mention_url, share_url) = (offered(), offered(), offered());
    let reply =
        json!({"message": {"mid": "m_1", "text": "Love it", "reply_to": {"story": {"id": "st 1", "url": reply_url}}}});
    let mention = json!({"message": {"mid": "m_2", "attachments": [
        {"type": "story_mention", "payload": {"url": mention_url, "id": "st 2"}}]}});
    let share = json!({"message": {"mid": "m_3", "attachments": [
        {"type": "ig_story", "payload": {"story_media_url": share_url, "story_media_id": "media 3"}}]}});
    let without_url = json!({"message": {"mid": "m_4", "text": "and this?", "reply_to": {"story": {"id": "st 4"}}}});
    let call = channel.page("instagram").call_body(PSID, 1_700_000_000_000, vec![reply, mention, share, without_url]);
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(4));
    let count_with_file = async || {
        let all = messages(&app.api, channel.id).await;
        all.iter().filter(|message| message["media"].is_object()).count()
    };
    eventually("three pictures are there", || async { count_with_file().await == 3 }).await;
    let all = messages(&app.api, channel.id).await;
    let stories: Vec<Value> = all.iter().map(|message| message["content"]["story"].clone()).collect();
    assert_eq!(
        stories,
        [
            json!({"id": "st 1", "mediaId": null, "url": reply_url}),
            json!({"id": "st 2", "mediaId": null, "url": mention_url}),
            json!({"id": null, "mediaId": "media 3", "url": share_url}),
            json!({"id": "st 4", "mediaId": null, "url": null}),
        ]
    );
    assert_eq!(all[0]["body"], format!("[story] {reply_url}\nLove it"));
    assert_eq!((&all[0]["type"], &all[0]["media"]["mimeType"]), (&json!("media"), &json!("image/png")));
    assert_eq!((&all[3]["type"], &all[3]["body"]), (&json!("text"), &json!("and this?")));
    app.stop().await;
}
