//! When a campaign starts by itself, and how evenly it is sent.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use hotline_actors::clock;
use serde_json::{Value, json};

use super::{counts, create_campaign, fast, list, office, post_verb, shown, text, wait_for_status};
use crate::steps::{id, restarted};
use crate::support::provider::Answer;
use crate::support::{OwnApp, Person, TestApp, eventually};

fn in_ms(milliseconds: i64) -> String {
    (clock::now() + TimeDelta::milliseconds(milliseconds)).to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(super) fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("not a time: {value}"))
}

/// How long after the first message each message of a channel was written, in milliseconds, in order.
async fn written_offsets_ms(app: &TestApp, channel: i64) -> Vec<i64> {
    let written = written(app, channel).await;
    written.iter().map(|at| (*at - written[0]).num_milliseconds()).collect()
}

/// When the messages of a channel were written, in order.
async fn written(app: &TestApp, channel: i64) -> Vec<DateTime<Utc>> {
    app.api
        .all(&format!("/messages?channelId={channel}"))
        .await
        .iter()
        .map(|message| time(&message["createdAt"]))
        .collect()
}

#[actix_web::test]
async fn a_campaign_starts_by_itself_at_its_time_even_if_that_was_changed() {
    let app = OwnApp::start().await;
    let api = &app.api;
    let (_, contact) = app.session("visitor").await;
    let everybody = list(api, &[contact.0]).await;
    let at = in_ms(600_000);
    let mut body = fast(everybody, app.company.webchat.0, "hello");
    body["scheduledAt"] = json!(at);
    let soon = create_campaign(api, body.clone()).await;
    let later = create_campaign(api, fast(everybody, app.company.webchat.0, "moved here")).await;
    let canceled = create_campaign(api, body.clone()).await;
    let postponed = create_campaign(api, body).await;
    api.put(&format!("/campaigns/{later}"), json!({"scheduledAt": at})).await.data(200);
    api.put(&format!("/campaigns/{postponed}"), json!({"scheduledAt": super::LATER})).await.data(200);
    post_verb(api, canceled, "cancel").await;
    clock::stop();
    clock::advance((time(&json!(at)) - clock::now()).to_std().expect("a future time"));
    for campaign in [soon, later] {
        let done = wait_for_status(api, campaign, "completed").await;
        assert_eq!((counts(&done), &done["scheduledAt"]), (json!({"sent": 1}), &json!(at)));
    }
    let messages = written(&app, app.company.webchat.0).await;
    assert_eq!(messages, [time(&json!(at)); 2]);
    assert_eq!(shown(api, postponed).await["status"], "scheduled");
    assert_eq!(shown(api, canceled).await["status"], "canceled");
    app.stop().await;
}

/// No request starts the campaign, yet its event names its creator.
#[actix_web::test]
async fn the_start_event_of_a_scheduled_campaign_names_its_creator() {
    let app = OwnApp::start().await;
    let api = &app.api;
    Person::give_profile(&app, app.company.ana, "Administrator").await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let (_, contact) = app.session("visitor").await;
    let everybody = list(api, &[contact.0]).await;
    let at = in_ms(600_000);
    let mut body = fast(everybody, app.company.webchat.0, "hello");
    body["scheduledAt"] = json!(at);
    let token_campaign = create_campaign(api, body.clone()).await;
    let ana_campaign = id(ana.post("/campaigns", body).await.data(201));
    clock::stop();
    clock::advance((time(&json!(at)) - clock::now()).to_std().expect("a future time"));
    for campaign in [token_campaign, ana_campaign] {
        wait_for_status(api, campaign, "completed").await;
    }
    let listed = async || api.get("/events?types=campaign.started").await.data(200).clone();
    let are_listed = || async { listed().await.as_array().is_some_and(|events| events.len() == 2) };
    eventually("both starts are listed", are_listed).await;
    for event in listed().await.as_array().expect("a list") {
        assert_eq!(event["previous"], json!({"status": "scheduled"}));
        if event["data"]["id"] == ana_campaign {
            assert_eq!(event["by"], json!({"type": "user", "id": app.company.ana, "name": "Ana"}));
        } else {
            assert_eq!(
                (&event["by"]["type"], &event["by"]["name"]),
                (&json!("integration"), &json!("test")),
                "{event}"
            );
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_campaign_due_while_the_service_was_down_starts_with_it_and_a_paused_one_stays_paused() {
    let app = OwnApp::start().await;
    let (_, contact) = app.session("visitor").await;
    let everybody = list(&app.api, &[contact.0]).await;
    let due = create_campaign(&app.api, text(everybody, app.company.webchat.0, "hello")).await;
    let paused = create_campaign(&app.api, text(everybody, app.company.phone.0, "hello")).await;
    post_verb(&app.api, paused, "start").await;
    post_verb(&app.api, paused, "pause").await;
    sqlx::query("update campaigns set scheduled_at = now() - interval '7 days' where id = $1")
        .bind(due)
        .execute(&app.db)
        .await
        .expect("moved");
    let app = restarted(app).await;
    assert_eq!(counts(&wait_for_status(&app.api, due, "completed").await), json!({"sent": 1}));
    assert_eq!(shown(&app.api, paused).await["status"], "paused");
    app.stop().await;
}

#[actix_web::test]
async fn messages_are_spread_evenly_and_a_pause_is_not_made_up_for() {
    const RATE: i64 = 600;
    const INTERVAL_MS: i64 = 60_000 / RATE;
    const HALF: usize = 15;
    let interval = Duration::from_millis(INTERVAL_MS.unsigned_abs());
    let (office, channel, _, everybody) = office("1901", 2 * HALF as i64).await;
    let (app, api) = (&office.app, &office.app.api);
    let engine = &app.service.app.engine;
    let mut body = fast(everybody, channel, "hello");
    body["ratePerMinute"] = json!(RATE);
    let campaign = create_campaign(api, body).await;
    // The clock stands still while a message is sent: each is sent at its own time, however slow the machine is.
    clock::stop();
    post_verb(api, campaign, "start").await;
    for sent in 1..HALF {
        office.provider.accepts("1901", sent).await;
        clock::advance(interval);
    }
    office.provider.accepts("1901", HALF).await;
    post_verb(api, campaign, "pause").await;
    eventually("the paused campaign leaves memory", || async { engine.stats().campaigns.hot == 0 }).await;
    // Time for ten messages, which are not made up for.
    clock::advance(interval * 10);
    post_verb(api, campaign, "resume").await;
    eventually("the next recipients are in memory", || async { engine.campaigns.stats().recipients > 0 }).await;
    for sent in HALF + 1..=2 * HALF {
        clock::advance(interval);
        office.provider.accepts("1901", sent).await;
    }
    wait_for_status(api, campaign, "completed").await;
    let places = (0..2 * HALF as i64).map(|place| if place < HALF as i64 { place } else { place + 10 });
    let expected: Vec<i64> = places.map(|place| place * INTERVAL_MS).collect();
    assert_eq!(written_offsets_ms(app, channel).await, expected);
    office.close().await;
}

#[actix_web::test]
async fn the_rate_is_met_evenly_measured() {
    const RATE: i64 = 600;
    let interval = TimeDelta::milliseconds(60_000 / RATE);
    let (office, channel, _, everybody) = office("1902", 40).await;
    let (app, api) = (&office.app, &office.app.api);
    let mut body = fast(everybody, channel, "hello");
    body["ratePerMinute"] = json!(RATE);
    let campaign = create_campaign(api, body).await;
    post_verb(api, campaign, "start").await;
    wait_for_status(api, campaign, "completed").await;
    let times = written(app, channel).await;
    assert_eq!(times.len(), 40);
    for (number, at) in times.iter().enumerate() {
        // No message is written more than one interval before its time.
        let place = interval * i32::try_from(number).expect("few");
        assert!(*at - times[0] >= place - interval, "message {number} after {}", *at - times[0]);
    }
    // Eleven messages take ten intervals, or nine if the first of them was late.
    for window in times.windows(11) {
        assert!(window[10] - window[0] >= interval * 9, "{window:?}");
    }
    let twenty = times[19] - times[0];
    assert!(twenty <= interval * 19 * 2, "twenty took {twenty}");
    office.close().await;
}

#[actix_web::test]
async fn what_waited_while_the_provider_was_away_does_not_reach_it_in_a_burst() {
    const RATE: i64 = 60;
    let (office, channel, _, everybody) = office("1903", 7).await;
    let api = &office.app.api;
    let mut body = fast(everybody, channel, "hello");
    body["ratePerMinute"] = json!(RATE);
    let campaign = create_campaign(api, body).await;
    let interval = Duration::from_secs(1);
    clock::stop();
    post_verb(api, campaign, "start").await;
    office.provider.accepts("1903", 1).await;
    clock::advance(interval);
    office.provider.accepts("1903", 2).await;
    office.provider.always("1903", Answer::refuse(503, 2, "not now"));
    clock::advance(interval);
    // The message that is refused is tried again and again.
    office.provider.called_times("1903", 5).await;
    // The provider is away for more than three intervals, yet only one message waits.
    clock::advance(interval * 4);
    office.provider.called_times("1903", office.provider.calls("1903").len() + 2).await;
    assert_eq!(api.all("/messages?status=queued").await.len(), 1);
    office.provider.always("1903", Answer::Accept);
    office.provider.accepts("1903", 3).await;
    let engine = &office.app.service.app.engine;
    eventually("no message is in transit", || async { engine.campaigns.stats().in_transit == 0 }).await;
    for sent in 4..=7 {
        clock::advance(interval);
        office.provider.accepts("1903", sent).await;
    }
    wait_for_status(api, campaign, "completed").await;
    assert_eq!(office.provider.accepted_count("1903"), 7);
    // The one that waited was written at its time; the others follow from the time it arrived.
    let written = written_offsets_ms(&office.app, channel).await;
    assert_eq!(written, [0, 1000, 2000, 7000, 8000, 9000, 10_000]);
    office.close().await;
}
