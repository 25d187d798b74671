//! Calls from the providers of social channels.

use chrono::Utc;
use hotline_persistence::tables::channels::ChannelType::{self, Instagram, Messenger};
use serde_json::{Value, json};

use super::statuses::{queued, sent};
use super::{ProviderChannel, Setup, Tally, all_taken, contact, messages, tickets};
use crate::steps::restarted;
use crate::support::provider::hooks::events;
use crate::support::{OwnApp, TestApp};

const PSID: &str = "6548123456784821";

async fn social_channel(app: &TestApp, kind: ChannelType) -> ProviderChannel {
    ProviderChannel::create(app, &app.company, kind, Setup::default()).await
}

#[actix_web::test]
async fn both_social_channels_take_every_kind_of_message() {
    let app = TestApp::shared().await;
    for (kind, object, name) in [(Messenger, "page", "Messenger 4821"), (Instagram, "instagram", "Instagram 4821")] {
        let channel = social_channel(&app, kind).await;
        let page = channel.page(object);
        let story = json!({"message": {"mid": "m_8", "text": "nice", "reply_to": {"story": {"url": "https://cdn.example/story", "id": "1"}}}});
        let shared = json!({"message": {"mid": "m_9", "attachments": [
            {"type": "share", "payload": {"url": "https://example.com/post", "title": "A post"}}]}});
        let place = json!({"message": {"mid": "m_10", "attachments": [
            {"type": "location", "title": "Office", "payload": {"coordinates": {"lat": 1.5, "long": 2.5}}}]}});
        let call = page.call_body(
            PSID,
            1_700_000_000_500,
            vec![
                events::text("m_1", "hello"),
                events::quick_reply("m_2", "RED", "Red"),
                events::reply("m_3", "m_1", "as I said"),
                events::postback("m_4", "START", "Get started"),
                story,
                shared,
                place,
                json!({"message": {"mid": "m_11", "is_unsupported": true}}),
                events::echo("m_12", "what we said"),
                json!({"nothing": 1}),
            ],
        );
        let tally = channel.deliver(&app.api, &call).await;
        assert_eq!(tally, Tally { taken: 9, ignored: 1, ..Tally::default() }, "{object}");
        let mut all = messages(&app.api, channel.id).await;
        let echo = all.pop().expect("what another app has sent");
        assert_eq!((&echo["body"], &echo["direction"]), (&json!("what we said"), &json!("outbound")));
        let first = &all[0]["id"];
        let stored: Vec<(&Value, &Value)> =
            all.iter().map(|message| (&message["body"], &message["quotedMessageId"])).collect();
        let none = &Value::Null;
        assert_eq!(
            stored,
            [
                (&json!("hello"), none),
                (&json!("Red"), none),
                (&json!("as I said"), first),
                (&json!("Get started"), none),
                (&json!("[story] https://cdn.example/story\nnice"), none),
                (&json!("[share] A post https://example.com/post"), none),
                (&json!("Office\nhttps://www.google.com/maps?q=1.5,2.5"), none),
                (&json!("[unsupported]"), none),
            ]
        );
        let chosen = |payload: &str, title: &str| {
            let reply = json!({"id": payload, "payload": payload, "title": title});
            json!({"kind": "reply", "reply": reply})
        };
        let contents: Vec<&Value> = all.iter().map(|message| &message["content"]).collect();
        let (quick, pressed) = (chosen("RED", "Red"), chosen("START", "Get started"));
        let story = json!({"kind": "story", "story": {"id": "1", "mediaId": null, "url": "https://cdn.example/story"}});
        let at = json!({"latitude": 1.5, "longitude": 2.5, "name": "Office", "address": null, "url": null});
        let place = json!({"kind": "location", "location": at});
        assert_eq!(contents, [none, &quick, none, &pressed, &story, none, &place, none]);
        assert_eq!(all[0]["sentAt"], all[0]["createdAt"], "the message was sent before it was created");
        assert_eq!(tickets(&app.api, channel.id).await.len(), 1);
        let contact = contact(&app.api, &all[0]["contactId"]).await;
        assert_eq!((&contact["name"], &contact["number"]), (&json!(name), none));
        assert_eq!(channel.deliver(&app.api, &call).await, Tally { repeated: 9, ignored: 1, ..Tally::default() });
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_stays_one_across_a_restart_and_is_another_on_another_channel() {
    let app = OwnApp::start().await;
    let page = social_channel(&app, Messenger).await;
    let other = social_channel(&app, Messenger).await;
    let call_of = |channel: &ProviderChannel, mid: &str| {
        channel.page("page").call_body(PSID, 1_700_000_000_000, vec![events::text(mid, "hi")])
    };
    let deliveries = futures_util::future::join_all((0..10).map(|number| {
        let (app, page, call) = (&app, &page, call_of(&page, &format!("m_{number}")));
        async move { page.deliver(&app.api, &call).await }
    }));
    assert!(deliveries.await.iter().all(|tally| *tally == all_taken(1)));
    other.deliver(&app.api, &call_of(&other, "m_1")).await;
    let app = restarted(app).await;
    page.deliver(&app.api, &call_of(&page, "m_late")).await;
    assert_eq!(app.api.all("/contacts").await.len(), 2, "not one contact for each page");
    assert_eq!(tickets(&app.api, page.id).await.len(), 1);
    assert_eq!(messages(&app.api, page.id).await.len(), 11);
    app.stop().await;
}

#[actix_web::test]
async fn delivery_and_read_receipts_of_a_contact_change_the_status_of_messages() {
    let app = OwnApp::start().await;
    let channel = social_channel(&app, Messenger).await;
    let page = channel.page("page");
    channel.deliver(&app.api, &page.call_body(PSID, 1_700_000_000_000, vec![events::text("m_1", "hi")])).await;
    let contact = messages(&app.api, channel.id).await[0]["contactId"].clone();
    let first = sent(&app, &channel, &contact, "one", "m_ours.1").await;
    let second = sent(&app, &channel, &contact, "two", "m_ours.2").await;
    let waiting = queued(&app, &channel, &contact, "three").await;
    let status = async |id: i64| {
        let message = app.api.get(&format!("/messages/{id}")).await;
        message.data(200)["status"].as_str().expect("status").to_owned()
    };
    let now_ms = Utc::now().timestamp_millis();
    let report = async |event: Value| channel.deliver(&app.api, &page.call_body(PSID, now_ms, vec![event])).await;
    assert_eq!(report(events::delivered(&["m_ours.1"], now_ms)).await, all_taken(1));
    assert_eq!((status(first).await.as_str(), status(second).await.as_str()), ("delivered", "sent"));
    // A delivery receipt without ids counts for all earlier messages.
    assert_eq!(report(events::delivered(&[], now_ms)).await, all_taken(1));
    assert_eq!(status(second).await, "delivered");
    assert_eq!(report(events::read(now_ms)).await, all_taken(1));
    assert_eq!((status(first).await.as_str(), status(second).await.as_str()), ("read", "read"));
    assert_eq!(
        status(waiting["id"].as_i64().expect("id")).await,
        "queued",
        "a receipt changed a message that was not sent yet"
    );
    // A read receipt from an unknown contact changes nothing.
    let stranger = page.call_body("1", now_ms, vec![events::read(now_ms)]);
    assert_eq!(channel.deliver(&app.api, &stranger).await, all_taken(1));
    // Instagram names the message that was read.
    assert_eq!(report(json!({"read": {"mid": "m_ours.1"}})).await, all_taken(1));
    app.stop().await;
}

#[actix_web::test]
async fn the_referral_of_a_message_a_button_or_a_visit_is_stored_with_the_contact() {
    let app = TestApp::shared().await;
    let channel = social_channel(&app, Messenger).await;
    let page = channel.page("page");
    let report =
        async |event: Value| channel.deliver(&app.api, &page.call_body(PSID, 1_700_000_000_000, vec![event])).await;
    // Without a contact there is nothing to keep the referral with.
    assert_eq!(report(events::referral("promo", "ad 0")).await, all_taken(1));
    assert_eq!(app.api.all("/contacts").await, [Value::Null; 0]);

    let ad = json!({"ref": "promo", "ad_id": "ad 1", "source": "ADS", "type": "OPEN_THREAD",
        "ads_context_data": {"ad_title": "Half price", "photo_url": "https://cdn.example/ad.jpg", "post_id": "9"}});
    assert_eq!(report(json!({"message": {"mid": "m_1", "text": "hi", "referral": ad}})).await, all_taken(1));
    let id = messages(&app.api, channel.id).await[0]["contactId"].clone();
    let shown = contact(&app.api, &id).await;
    let fields =
        ["sourceId", "headline", "mediaType", "mediaUrl"].map(|field| shown[field].as_str().unwrap_or_default());
    assert_eq!(fields, ["ad 1", "Half price", "image", "https://cdn.example/ad.jpg"]);
    assert_eq!(report(events::referral("promo", "ad 2")).await, all_taken(1));
    assert_eq!(contact(&app.api, &id).await["sourceId"], "ad 2");
    let mut pressed = events::postback("m_2", "START", "Get started");
    pressed["postback"]["referral"] = json!({"ref": "summer", "source": "SHORTLINK", "type": "OPEN_THREAD"});
    assert_eq!(report(pressed).await, all_taken(1));
    assert_eq!(contact(&app.api, &id).await["sourceId"], "summer");
    app.stop().await;
}
