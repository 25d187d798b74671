//! When a campaign starts by itself, and how evenly it is sent.

use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{becomes, counts, does, fast, list, made, office, shown, text};
use crate::steps::restarted;
use crate::support::provider::Answer;
use crate::support::{TestApp, eventually};

fn in_ms(milliseconds: i64) -> String {
    (Utc::now() + TimeDelta::milliseconds(milliseconds)).to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(super) fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no time: {value}"))
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
async fn a_campaign_starts_by_itself_when_its_time_comes_wherever_it_was_moved() {
    let app = TestApp::start().await;
    let api = &app.api;
    let (_, contact) = app.session("visitor").await;
    let everybody = list(api, &[contact.0]).await;
    let at = in_ms(2000);
    let mut body = fast(everybody, app.company.webchat.0, "hello");
    body["scheduledAt"] = json!(at);
    let soon = made(api, body.clone()).await;
    let later = made(api, fast(everybody, app.company.webchat.0, "moved here")).await;
    let canceled = made(api, body.clone()).await;
    let away = made(api, body).await;
    api.put(&format!("/campaigns/{later}"), json!({"scheduledAt": at})).await.data(200);
    api.put(&format!("/campaigns/{away}"), json!({"scheduledAt": super::LATER})).await.data(200);
    does(api, canceled, "cancel").await;
    for campaign in [soon, later] {
        let done = becomes(api, campaign, "completed").await;
        assert_eq!((counts(&done), &done["scheduledAt"]), (json!({"sent": 1}), &json!(at)));
    }
    let messages = written(&app, app.company.webchat.0).await;
    assert!(messages.iter().all(|written| *written >= time(&json!(at))), "{messages:?}");
    assert_eq!(messages.len(), 2);
    assert_eq!(shown(api, away).await["status"], "scheduled");
    assert_eq!(shown(api, canceled).await["status"], "canceled");
    app.stop().await;
}

#[actix_web::test]
async fn what_was_due_while_nobody_served_starts_at_the_start_and_a_paused_one_stays_paused() {
    let app = TestApp::start().await;
    let (_, contact) = app.session("visitor").await;
    let everybody = list(&app.api, &[contact.0]).await;
    let due = made(&app.api, text(everybody, app.company.webchat.0, "hello")).await;
    let paused = made(&app.api, text(everybody, app.company.phone.0, "hello")).await;
    does(&app.api, paused, "start").await;
    does(&app.api, paused, "pause").await;
    sqlx::query("update campaigns set scheduled_at = now() - interval '7 days' where id = $1")
        .bind(due)
        .execute(&app.database.db)
        .await
        .expect("moved");
    let app = restarted(app).await;
    assert_eq!(counts(&becomes(&app.api, due, "completed").await), json!({"sent": 1}));
    assert_eq!(shown(&app.api, paused).await["status"], "paused");
    app.stop().await;
}

#[actix_web::test]
async fn the_rate_is_spread_evenly_and_a_wait_is_not_made_up_for() {
    const RATE: i64 = 600;
    let interval = TimeDelta::milliseconds(60_000 / RATE);
    let (office, channel, all, everybody) = office("1901", 60).await;
    let (app, api) = (&office.app, &office.app.api);
    let another = office.phone("1902").await.0;
    let mut body = fast(everybody, channel, "hello");
    body["ratePerMinute"] = json!(RATE);
    let campaign = made(api, body.clone()).await;
    does(api, campaign, "start").await;
    office.provider.accepts("1901", 20).await;
    does(api, campaign, "pause").await;
    // Ten could have been sent: another campaign of the same rate sends as many.
    (body["contactListId"], body["channelId"]) = (json!(list(api, &all[..11]).await), json!(another));
    let other = made(api, body).await;
    does(api, other, "start").await;
    becomes(api, other, "completed").await;
    does(api, campaign, "resume").await;
    becomes(api, campaign, "completed").await;
    let times = written(app, channel).await;
    assert_eq!(times.len(), 60);
    let begun = times[0];
    for (number, at) in times.iter().enumerate() {
        // Nobody comes before their place in the row; a machine that does other things as well makes some late.
        let place = interval * i32::try_from(number).expect("few");
        assert!(*at - begun >= place - interval, "message {number} after {}", *at - begun);
    }
    // Nowhere are there more than the rate allows, but for the one a late look lets follow.
    for window in times.windows(11) {
        assert!(window[10] - window[0] >= interval * 9, "{window:?}");
    }
    let even = times[19] - times[0];
    assert!(even <= interval * 19 * 2, "twenty took {even}");
    office.close().await;
}

#[actix_web::test]
async fn what_waited_while_the_provider_was_away_does_not_reach_it_in_a_burst() {
    const RATE: i64 = 60;
    let (office, channel, _, everybody) = office("1903", 7).await;
    let api = &office.app.api;
    let mut body = fast(everybody, channel, "hello");
    body["ratePerMinute"] = json!(RATE);
    let campaign = made(api, body).await;
    does(api, campaign, "start").await;
    office.provider.accepts("1903", 2).await;
    office.provider.always("1903", Answer::refuse(503, 2, "not now"));
    // Away for longer than three of them take: only one waits.
    let refused = office.provider.calls("1903").len();
    let is_over = |since: Instant| since.elapsed() > Duration::from_secs(4);
    let since = Instant::now();
    eventually("three could have been sent", || async { is_over(since) }).await;
    assert!(office.provider.calls("1903").len() > refused);
    assert_eq!(api.all("/messages?status=queued").await.len(), 1);
    office.provider.always("1903", Answer::Accept);
    becomes(api, campaign, "completed").await;
    let arrived: Vec<Instant> = office.provider.accepted("1903").into_iter().map(|call| call.at).collect();
    assert_eq!(arrived.len(), 7);
    // A message may be on its way for longer than the one that follows.
    let gaps: Vec<Duration> = arrived.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| *gap >= Duration::from_millis(700)), "{gaps:?}");
    office.close().await;
}
