//! Events of messages and their statuses, of campaigns, and of the channels that send them.

use std::collections::{BTreeMap, BTreeSet};

use hotline_persistence::Error;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelStatus};
use serde_json::{Value, json};

use super::after;
use crate::campaigns::{contacts, create_campaign, fast, list, post_verb};
use crate::outbox::Office;
use crate::support::provider::Answer;
use crate::support::{eventually, keys};

/// Types of which there must be events.
const EXPECTED_TYPES: [&str; 11] = [
    "message.created",
    "message.sent",
    "message.failed",
    "campaign.started",
    "campaign.paused",
    "campaign.resumed",
    "campaign.completed",
    "campaign.canceled",
    "channel.connected",
    "channel.disconnected",
    "channel.error",
];

#[actix_web::test]
async fn the_last_event_of_each_message_campaign_and_channel_is_what_the_api_shows() {
    let office = Office::open().await;
    let (app, api) = (&office.app, &office.app.api);
    let (good, bad, third) = (office.phone("2301").await, office.phone("2302").await, office.phone("2303").await);
    let all = contacts(app, 6).await;
    let everybody = list(api, &all).await;

    // One campaign completes, after a pause and with one message refused; another is canceled. The provider's
    // answers are held until then, so that neither is over before its next command.
    office.provider.next("2301", [Answer::refuse(400, 131_026, "Message undeliverable").held()]);
    office.provider.always("2301", Answer::Accept.held());
    let mut body = fast(everybody, good.0, "hello");
    body["ratePerMinute"] = json!(600);
    let completed = create_campaign(api, body.clone()).await;
    post_verb(api, completed, "start").await;
    post_verb(api, completed, "pause").await;
    post_verb(api, completed, "resume").await;
    office.provider.always("2301", Answer::Accept);
    let shown = async |campaign: i64| api.get(&format!("/campaigns/{campaign}")).await.data(200).clone();
    eventually("it is completed", || async {
        office.provider.release();
        shown(completed).await["status"] == "completed"
    })
    .await;
    office.provider.always("2301", Answer::Accept.held());
    let canceled = create_campaign(api, body).await;
    post_verb(api, canceled, "start").await;
    post_verb(api, canceled, "cancel").await;
    office.provider.always("2301", Answer::Accept);
    eventually("no recipient of it is pending", || async {
        office.provider.release();
        shown(canceled).await["counts"]["pending"] == 0
    })
    .await;
    // One channel's token is refused; another channel is disconnected, connected and disconnected again.
    office.provider.always("2302", Answer::token_refused());
    let waits = json!({"channelId": bad, "contactId": all[0], "type": "text", "body": "waits"});
    api.post("/messages", waits).await.data(202);
    eventually("the channel is in error", || async {
        api.get(&format!("/channels/{bad}")).await.data(200)["status"] == "error"
    })
    .await;
    for status in [ChannelStatus::Disconnected, ChannelStatus::Connected, ChannelStatus::Disconnected] {
        // As the command `hotline channel` does.
        let change = |row: &mut ChannelRow, _: &mut ChannelSettings| {
            row.status = status;
            Ok::<_, Error>(())
        };
        channels::update(&app.db, &keys(), app.company.id, third, change).await.expect("changed");
    }
    eventually("the log is flushed", || async {
        let log = &app.service.app.engine.store().log;
        log.flushed() == log.appended()
    })
    .await;

    let mut last_data: BTreeMap<(&str, i64), Value> = BTreeMap::new();
    let mut seen_types = BTreeSet::new();
    let events = after(api, 0).await;
    for event in &events {
        let kind = event["type"].as_str().expect("a type");
        let noun = kind.split_once('.').expect("a noun and a verb").0;
        seen_types.insert(kind);
        last_data.insert((noun, event["data"]["id"].as_i64().expect("an id")), event["data"].clone());
    }
    for kind in EXPECTED_TYPES {
        assert!(seen_types.contains(kind), "no event of type {kind}: {seen_types:?}");
    }
    let statuses: BTreeSet<String> =
        api.all("/messages").await.iter().filter_map(|message| message["status"].as_str().map(str::to_owned)).collect();
    assert!(["sent", "failed", "queued"].iter().all(|status| statuses.contains(*status)), "{statuses:?}");
    for (noun, path) in [("message", "/messages"), ("campaign", "/campaigns"), ("channel", "/channels")] {
        let mut shown = api.all(path).await;
        // A channel that was never connected has no events: the company's own channel has no credentials.
        shown.retain(|record| noun != "channel" || record["id"] != app.company.phone.0);
        let of_noun = last_data.keys().filter(|(of, _)| *of == noun).count();
        assert_eq!(of_noun, shown.len(), "the events and the list have different {noun}s");
        for mut record in shown {
            let mut from_event = last_data[&(noun, record["id"].as_i64().expect("an id"))].clone();
            if noun == "campaign" {
                // A campaign's counts follow from its messages.
                for record in [&mut record, &mut from_event] {
                    let fields = record.as_object_mut().expect("a campaign");
                    assert!(fields.remove("counts").is_some() && fields.remove("updatedAt").is_some());
                }
            }
            assert_eq!(from_event, record, "{noun}");
        }
    }
    office.close().await;
}
