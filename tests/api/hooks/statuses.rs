//! Statuses of the company's messages, as the provider reports them: in any order, early and late.

use chrono::Utc;
use hotline_actors::tickets::UpdateDeliveryStatus;
use hotline_persistence::tables::channels::ChannelType::Whatsapp;
use hotline_persistence::tables::messages::DeliveryStatus;
use hotline_persistence::{MessageId, TicketId};
use serde_json::{Value, json};

use super::{MARIA, ProviderChannel, Setup, Tally, all_taken, messages};
use crate::events::{after, newest};
use crate::steps::restarted;
use crate::support::provider::Provider;
use crate::support::provider::hooks::text;
use crate::support::{OwnApp, TestApp, eventually};

/// Sends a message, which waits for a provider, and returns it.
pub async fn queued(app: &TestApp, channel: &ProviderChannel, contact: &Value, body: &str) -> Value {
    let send = json!({"channelId": channel.id, "contactId": contact, "type": "text", "body": body});
    crate::steps::sent(&app.api, send).await
}

/// Records, as the outbox does, that the provider has accepted a message under this id.
pub async fn record_accepted(app: &OwnApp, message: &Value, provider_id: &str) {
    let sent = UpdateDeliveryStatus {
        message: MessageId::new(message["id"].as_i64().expect("id")),
        delivery_status: DeliveryStatus::Sent,
        at: Utc::now(),
        provider_message_id: Some(provider_id.to_owned()),
    };
    let ticket = TicketId::new(message["ticketId"].as_i64().expect("ticket"));
    app.service.app.engine.tickets.ask(app.company.id, ticket, sent).await.expect("recorded");
}

/// Sends a message, records that the provider has accepted it under `provider_id`, and returns our id of it.
pub async fn sent(app: &OwnApp, channel: &ProviderChannel, contact: &Value, body: &str, provider_id: &str) -> i64 {
    let message = queued(app, channel, contact, body).await;
    record_accepted(app, &message, provider_id).await;
    message["id"].as_i64().expect("id")
}

async fn message(app: &TestApp, id: i64) -> Value {
    app.api.get(&format!("/messages/{id}")).await.data(200).clone()
}

async fn status(app: &TestApp, id: i64) -> String {
    message(app, id).await["status"].as_str().expect("status").to_owned()
}

/// Delivers a contact's first message, and returns the contact's id.
async fn contact_who_wrote(app: &TestApp, channel: &ProviderChannel) -> Value {
    let call = channel.phone_account().message(MARIA, "Maria", text("wamid.first", "hi"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    messages(&app.api, channel.id).await[0]["contactId"].clone()
}

#[actix_web::test]
async fn statuses_in_any_order_leave_a_message_at_the_furthest_one() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let maria = contact_who_wrote(&app, &channel).await;
    let steps = ["sent", "delivered", "read"];
    for (number, order) in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]].iter().enumerate() {
        let name = format!("wamid.ours.{number}");
        let id = sent(&app, &channel, &maria, "hello", &name).await;
        for step in order {
            let call = phone.status(&name, MARIA, steps[*step], 1_700_000_000 + *step as i64);
            assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
        }
        let shown = message(&app, id).await;
        assert_eq!(shown["status"], "read", "{order:?}");
        // The provider's clock is years behind: no time is before the message's creation.
        for at in ["sentAt", "deliveredAt", "readAt"] {
            assert_eq!(shown[at], shown["createdAt"], "{order:?}: {at}");
        }
    }
    // Several in one call: a status of an unknown message is taken as well, and an unknown status is ignored.
    let id = sent(&app, &channel, &maria, "hello", "wamid.many").await;
    let call = phone.statuses(&[
        ("wamid.many", MARIA, "delivered", 1_700_000_001),
        ("wamid.nobody's", MARIA, "delivered", 1_700_000_001),
        ("wamid.many", MARIA, "sent", 1_700_000_000),
        ("wamid.many", MARIA, "deleted", 1_700_000_002),
    ]);
    assert_eq!(channel.deliver(&app.api, &call).await, Tally { taken: 3, ignored: 1, ..Tally::default() });
    assert_eq!(status(&app, id).await, "delivered");
    app.stop().await;
}

/// A message's id, its status, and when it was changed.
fn dated(message: &Value) -> (Value, Value, Value) {
    (message["id"].clone(), message["status"].clone(), message["updatedAt"].clone())
}

#[actix_web::test]
async fn an_event_has_the_status_and_update_time_of_its_message_at_that_moment() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let maria = contact_who_wrote(&app, &channel).await;
    let begin = newest(&app.api).await;
    let mut shown = Vec::new();
    // The provider's clock is years behind, then right.
    for (name, at_s) in [("wamid.behind", 1_700_000_000), ("wamid.now", Utc::now().timestamp())] {
        let id = sent(&app, &channel, &maria, "hello", name).await;
        shown.push(dated(&message(&app, id).await));
        for step in ["delivered", "read"] {
            assert_eq!(channel.deliver(&app.api, &phone.status(name, MARIA, step, at_s)).await, all_taken(1));
            shown.push(dated(&message(&app, id).await));
        }
    }
    let id = sent(&app, &channel, &maria, "hello", "wamid.failed").await;
    shown.push(dated(&message(&app, id).await));
    let failed = phone.failed("wamid.failed", MARIA, 131_026, "Message undeliverable", 1_700_000_001);
    assert_eq!(channel.deliver(&app.api, &failed).await, all_taken(1));
    shown.push(dated(&message(&app, id).await));
    // A message that a visitor was shown is delivered.
    let (session, _) = app.session("visitor").await;
    let said = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hi"})).await;
    let ticket = &said.data(201)["ticketId"];
    app.api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "hello"})).await.data(202);
    let answers = app.api.all(&format!("/tickets/{ticket}/messages")).await;
    let answer = answers.iter().find(|message| message["body"] == "hello").expect("the answer");
    let id = answer["id"].as_i64().expect("id");
    app.api.get(&format!("/webchat/sessions/{session}/messages")).await.data(200);
    eventually("it is delivered", || async { status(&app, id).await == "delivered" }).await;
    shown.push(dated(&message(&app, id).await));

    let kinds = ["message.sent", "message.delivered", "message.read", "message.failed"];
    let events = after(&app.api, begin).await;
    let reported = events.iter().filter(|event| kinds.contains(&event["type"].as_str().unwrap_or_default()));
    let reported: Vec<_> = reported.map(|event| dated(&event["data"])).collect();
    assert_eq!(reported, shown);
    app.stop().await;
}

#[actix_web::test]
async fn a_failed_message_shows_why_and_stays_failed() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let maria = contact_who_wrote(&app, &channel).await;
    let id = sent(&app, &channel, &maria, "hello", "wamid.ours").await;
    let failed = phone.failed("wamid.ours", MARIA, 131_026, "Message undeliverable", 1_700_000_001);
    assert_eq!(channel.deliver(&app.api, &failed).await, all_taken(1));
    channel.deliver(&app.api, &phone.status("wamid.ours", MARIA, "read", 1_700_000_002)).await;
    let shown = message(&app, id).await;
    assert_eq!(shown["status"], "failed");
    assert_eq!(shown["error"], json!({"code": "131026", "message": "Message undeliverable"}));
    // A delivered message does not fail.
    let id = sent(&app, &channel, &maria, "hello", "wamid.other").await;
    channel.deliver(&app.api, &phone.status("wamid.other", MARIA, "delivered", 1_700_000_001)).await;
    channel.deliver(&app.api, &phone.failed("wamid.other", MARIA, 131_026, "no", 1_700_000_002)).await;
    assert_eq!(status(&app, id).await, "delivered");
    app.stop().await;
}

#[actix_web::test]
async fn an_old_message_is_found_when_nothing_of_it_is_in_memory() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let maria = contact_who_wrote(&app, &channel).await;
    let id = sent(&app, &channel, &maria, "hello", "wamid.ours").await;
    let ticket = message(&app, id).await["ticketId"].as_i64().expect("ticket");
    crate::steps::close(&app.api, ticket).await;
    let app = restarted(app).await;
    let call = channel.phone_account().status("wamid.ours", MARIA, "read", 1_700_000_002);
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(status(&app, id).await, "read");
    app.stop().await;
}

#[actix_web::test]
async fn a_status_that_arrives_before_the_providers_id_is_recorded_is_kept_for_its_message() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let maria = contact_who_wrote(&app, &channel).await;
    let early = queued(&app, &channel, &maria, "hello").await;
    for step in ["delivered", "sent"] {
        let call = phone.status("wamid.early", MARIA, step, 1_700_000_001);
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    }
    let id = early["id"].as_i64().expect("id");
    assert_eq!(status(&app, id).await, "queued");
    record_accepted(&app, &early, "wamid.early").await;
    eventually("the early status is applied", || async { status(&app, id).await == "delivered" }).await;
    eventually("no early status is kept any longer", || async { count_early_statuses(&app).await == 0 }).await;

    // The same with a restart before the provider's id is recorded, and with one after it.
    let early = queued(&app, &channel, &maria, "and again").await;
    let id = early["id"].as_i64().expect("id");
    let failed = phone.failed("wamid.again", MARIA, 131_026, "Message undeliverable", 1_700_000_001);
    assert_eq!(channel.deliver(&app.api, &failed).await, all_taken(1));
    let app = restarted(app).await;
    assert_eq!(count_early_statuses(&app).await, 1);
    record_accepted(&app, &early, "wamid.again").await;
    eventually("the early failure is applied", || async { status(&app, id).await == "failed" }).await;
    assert_eq!(message(&app, id).await["error"]["code"], "131026");

    let early = queued(&app, &channel, &maria, "once more").await;
    let id = early["id"].as_i64().expect("id");
    channel.deliver(&app.api, &phone.status("wamid.more", MARIA, "read", 1_700_000_001)).await;
    // The id is recorded in the table only, as if the process had ended right after; the message must be there first.
    let log = &app.service.app.engine.store().log;
    log.wait_until_flushed(log.appended()).await.expect("it is in the table");
    let sql = "update messages set provider_message_id = 'wamid.more', status = 'sent', sent_at = now() where id = $1";
    let rows = sqlx::query(sql).bind(id).execute(&app.db).await.expect("recorded").rows_affected();
    assert_eq!(rows, 1);
    let app = restarted(app).await;
    eventually("the early status is applied at the start", || async { status(&app, id).await == "read" }).await;
    app.stop().await;
}

async fn count_early_statuses(app: &TestApp) -> i64 {
    let count = "select count(*) from early_statuses where company_id = $1";
    sqlx::query_scalar(count).bind(app.company.id).fetch_one(&app.db).await.expect("count")
}

#[actix_web::test]
async fn a_status_on_another_channel_does_not_change_a_message() {
    let app = OwnApp::start().await;
    let (ours, theirs) = (ProviderChannel::phone(&app).await, ProviderChannel::phone(&app).await);
    let maria = contact_who_wrote(&app, &ours).await;
    let id = sent(&app, &ours, &maria, "hello", "wamid.ours").await;
    let call = theirs.phone_account().status("wamid.ours", MARIA, "read", 1_700_000_001);
    assert_eq!(theirs.deliver(&app.api, &call).await, all_taken(1), "not kept for later");
    assert_eq!(status(&app, id).await, "sent");
    app.stop().await;
}

#[actix_web::test]
async fn a_message_that_its_provider_accepts_is_read_once_the_provider_reports_it() {
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    let phone = channel.phone_account();
    let maria = contact_who_wrote(&app, &channel).await;
    let message = queued(&app, &channel, &maria, "hello").await;
    let id = message["id"].as_i64().expect("id");
    let accepted = provider.accepts(&channel.account, 1).await;
    let name = accepted[0].accepted.clone().expect("accepted");
    for step in ["read", "delivered", "sent"] {
        assert_eq!(
            channel.deliver(&app.api, &phone.status(&name, MARIA, step, Utc::now().timestamp())).await,
            all_taken(1)
        );
    }
    eventually("the message is read", || async { status(&app, id).await == "read" }).await;
    app.stop().await;
}

#[actix_web::test]
async fn events_have_the_time_of_hotlines_clock_whatever_a_providers_clock_says() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let maria = contact_who_wrote(&app, &channel).await;
    for (nth, (status, seconds)) in [("delivered", -300), ("read", 300)].into_iter().enumerate() {
        let name = format!("wamid.clock.{nth}");
        let id = sent(&app, &channel, &maria, "hello", &name).await;
        let call = channel.phone_account().status(&name, MARIA, status, Utc::now().timestamp() + seconds);
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
        // `after` asserts that times never go back.
        let events = crate::events::after(&app.api, 0).await;
        let event = events.iter().rev().find(|event| event["data"]["id"] == id).expect("the status");
        assert_eq!(event["type"], format!("message.{status}"));
        let at: chrono::DateTime<Utc> = event["createdAt"].as_str().and_then(|at| at.parse().ok()).expect("a time");
        assert!((Utc::now() - at).num_seconds().abs() < 200, "{event}");
        assert!(event["createdAt"].as_str() >= message(&app, id).await["createdAt"].as_str(), "{event}");
    }
    app.stop().await;
}
