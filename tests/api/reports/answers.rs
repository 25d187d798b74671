//! What counts as an answer: one definition for the ticket, the reports and the service desk.

use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::reports;
use serde_json::{Value, json};

use crate::campaigns::{create_campaign, fast, list, post_verb, wait_for_status};
use crate::hooks::{MARIA, ProviderChannel, Setup, all_taken, tickets};
use crate::steps::id;
use crate::support::provider::Answer;
use crate::support::provider::hooks::text;
use crate::support::{OwnApp, Provider, TestApp, eventually};

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is not a time"))
}

/// The time of a ticket's first response, how many tickets wait for an agent, and the average first response time of
/// the ticket's channel, as the ticket, the dashboard and the report show them.
async fn response_figures(app: &TestApp, ticket: i64) -> (Value, Value, Value) {
    let api = &app.api;
    let shown = api.get(&format!("/tickets/{ticket}")).await.data(200).clone();
    let dashboard = api.get("/dashboards/service").await.data(200).clone();
    let report = api.get("/reports/tickets?groupBy=channel").await.data(200).clone();
    let row = report.as_array().expect("rows").iter().find(|row| row["key"] == shown["channel"]["id"]);
    let average = row.map_or(Value::Null, |row| row["avgFirstResponseSeconds"].clone());
    (shown["firstResponseAt"].clone(), dashboard["waitingAgent"].clone(), average)
}

/// Sends a text in a ticket; returns the message's id.
async fn send_text(app: &TestApp, ticket: i64, body: &str) -> i64 {
    let send = json!({"ticketId": ticket, "type": "text", "body": body});
    let job = app.api.post("/messages", send).await.data(202)["jobId"].as_str().expect("a job").to_owned();
    id(&json!({"id": app.api.get(&format!("/messages/jobs/{job}")).await.data(200)["messageId"]}))
}

async fn until_message_is(app: &TestApp, message: i64, status: &str) -> Value {
    let path = format!("/messages/{message}");
    let is = || async { app.api.get(&path).await.data(200)["status"] == status };
    eventually(&format!("the message is {status}"), is).await;
    app.api.get(&path).await.data(200).clone()
}

#[actix_web::test]
async fn a_message_counts_as_soon_as_the_provider_has_it_and_a_failed_one_never_does() {
    let app = TestApp::shared().await;
    let provider = Provider::start().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, ChannelType::Whatsapp, setup).await;
    let hello = channel.phone_account().message(MARIA, "Maria", text("wamid.answers.1", "hello"));
    assert_eq!(channel.deliver(&app.api, &hello).await, all_taken(1));
    let ticket = id(&tickets(&app.api, channel.id).await[0]);
    let unanswered = (Value::Null, json!(1), Value::Null);
    assert_eq!(response_figures(&app, ticket).await, unanswered);

    provider.next(&channel.account, [Answer::refuse(400, 131_026, "undeliverable")]);
    let lost = send_text(&app, ticket, "lost").await;
    until_message_is(&app, lost, "failed").await;
    assert_eq!(response_figures(&app, ticket).await, unanswered);

    provider.always(&channel.account, Answer::Accept.held());
    let message = send_text(&app, ticket, "hello Maria").await;
    provider.called_times(&channel.account, 2).await;
    assert_eq!(response_figures(&app, ticket).await, unanswered, "a message that the provider does not have counts");
    provider.release();
    let message = until_message_is(&app, message, "sent").await;
    let (first, waiting, average) = response_figures(&app, ticket).await;
    assert_eq!((&first, waiting), (&message["createdAt"], json!(0)));
    let opened = time(&app.api.get(&format!("/tickets/{ticket}")).await.data(200)["openedAt"]);
    let took = (time(&first) - opened).num_milliseconds();
    let seconds: f64 = format!("{}.{:03}", took / 1000, took % 1000).parse().expect("seconds");
    assert_eq!(average.as_f64(), Some(seconds));
    app.stop().await;
}

#[actix_web::test]
async fn a_greeting_or_a_campaign_is_not_an_answer() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let webchat = app.company.webchat;
    let queue = id(api.post("/queues", json!({"name": "Greets", "greeting": "Welcome"})).await.data(201));
    sqlx::query("update channels set queue_id = $1 where id = $2")
        .bind(queue)
        .bind(webchat)
        .execute(&app.db)
        .await
        .expect("set");
    app.refreshed().await;
    let session = api.post("/webchat/sessions", json!({"channelId": webchat})).await.data(201).clone();
    let path = format!("/webchat/sessions/{}/messages", session["id"].as_str().expect("id"));
    api.post(&path, json!({"body": "hi"})).await.data(201);
    let ticket = id(&tickets(api, webchat).await[0]);
    let everybody = list(api, &[id(&session["contact"])]).await;
    let campaign = create_campaign(api, fast(everybody, webchat.0, "Spring sale")).await;
    post_verb(api, campaign, "start").await;
    wait_for_status(api, campaign, "completed").await;
    let bodies: Vec<Value> =
        api.all(&format!("/messages?ticketId={ticket}")).await.iter().map(|message| message["body"].clone()).collect();
    assert_eq!(bodies, ["hi", "Welcome", "Spring sale"]);
    assert_eq!(response_figures(&app, ticket).await, (Value::Null, json!(1), Value::Null));
    app.stop().await;
}

#[actix_web::test]
async fn a_reopened_tickets_response_time_counts_from_its_reopening_everywhere() {
    let app = OwnApp::start().await;
    let api = &app.api;
    clock::stop();
    let (session, _) = app.session("visitor").await;
    let path = format!("/webchat/sessions/{}/messages", session.0);
    api.post(&path, json!({"body": "hi"})).await.data(201);
    let ticket = id(&tickets(api, app.company.webchat).await[0]);
    clock::advance(Duration::from_secs(5));
    send_text(&app, ticket, "hello").await;
    assert_eq!(response_figures(&app, ticket).await.2, json!(5.0));
    clock::advance(Duration::from_secs(60));
    api.post(&format!("/tickets/{ticket}/close"), json!({"wrapupTypeId": app.company.solved})).await.data(200);
    clock::advance(Duration::from_secs(60));
    api.post(&format!("/tickets/{ticket}/reopen"), json!({})).await.data(200);
    assert_eq!(response_figures(&app, ticket).await, (Value::Null, json!(0), json!(5.0)));
    clock::advance(Duration::from_secs(3));
    send_text(&app, ticket, "hello again").await;
    let (first, _, average) = response_figures(&app, ticket).await;
    let opened = time(&api.get(&format!("/tickets/{ticket}")).await.data(200)["openedAt"]);
    assert_eq!((time(&first) - opened).num_milliseconds(), 3000);
    assert_eq!(average, json!(4.0), "the average of five and three seconds");
    let mut db = app.db.acquire().await.expect("connection");
    assert!(reports::rebuild(&mut db, app.company.id).await.expect("rebuilt").is_none());
    drop(db);
    app.stop().await;
}

#[actix_web::test]
async fn an_echo_from_another_app_is_an_answer_unless_it_is_older_than_the_contacts_message() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let (phone, now) = (channel.phone_account(), Utc::now().timestamp());
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", text("wamid.1", "hello").at(now))).await;
    let ticket = id(&tickets(&app.api, channel.id).await[0]);
    let deliver_echo = async |message_id: &str, at_s: i64| {
        let call = phone.echoes(MARIA, vec![text(message_id, "hello Maria").at(at_s)]);
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    };
    deliver_echo("wamid.2", now - 60).await;
    assert_eq!(response_figures(&app, ticket).await, (Value::Null, json!(1), Value::Null));
    deliver_echo("wamid.3", now).await;
    let (first, waiting, average) = response_figures(&app, ticket).await;
    assert!(first.is_string() && average.is_number(), "{first} {average}");
    assert_eq!(waiting, 0);
    let mut db = app.db.acquire().await.expect("connection");
    assert!(reports::rebuild(&mut db, app.company.id).await.expect("rebuilt").is_none());
    drop(db);
    app.stop().await;
}
