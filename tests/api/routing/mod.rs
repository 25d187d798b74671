//! The queue, the agent and the greeting of a new ticket, however it is opened.

mod greeting;
mod loads;
mod queue;
mod turns;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use futures_util::future::join_all;
use hotline_actors::EngineOptions;
use hotline_actors::channels::SendingOptions;
use hotline_persistence::QueueId;
use hotline_persistence::tables::channels::ChannelType;
use reqwest::Method;
use serde_json::{Value, json};

use crate::hooks::{ProviderChannel, Setup};
use crate::plain::created;
use crate::steps::{id, ticket};
use crate::support::provider::hooks;
use crate::support::service::TestOptions;
use crate::support::service::refresh;
use crate::support::{Api, Company, OwnApp, Provider, TestApp, seed};

/// A service that sends messages as fast as possible.
async fn start() -> OwnApp {
    let sending = SendingOptions {
        per_second: 0,
        recipient_interval: Duration::ZERO,
        retry_pause_min: Duration::from_millis(5),
        retry_pause_max: Duration::from_millis(20),
        ..SendingOptions::default()
    };
    let options = TestOptions::default();
    let engine = EngineOptions { sending, ..options.engine.clone() };
    OwnApp::start_with(TestOptions { engine, ..options }).await
}

/// A queue with agents.
struct Team {
    queue: i64,
    /// In the order of their ids.
    agents: Vec<i64>,
}

impl Team {
    async fn of<const N: usize>(api: &Api, distribution: &str, names: [&str; N]) -> Self {
        let queue = json!({"name": format!("Team {}", names.join(" ")), "distribution": distribution});
        let queue = created(api, "/queues", queue).await;
        let mut team = Self { queue, agents: Vec::new() };
        for name in names {
            let agent = create_agent(api, name).await;
            team.add(api, agent).await;
            team.agents.push(agent);
        }
        team
    }

    async fn add(&self, api: &Api, agent: i64) {
        let reply = api.put(&format!("/queues/{}/users/{agent}", self.queue), json!({})).await;
        assert!(reply.status.is_success(), "{}", reply.body);
    }

    async fn remove(&self, api: &Api, agent: i64) {
        let reply = api.delete(&format!("/queues/{}/users/{agent}", self.queue)).await;
        assert!(reply.status.is_success(), "{}", reply.body);
    }

    /// How many open tickets each agent has, as the list's filter finds them.
    async fn loads(&self, api: &Api) -> Vec<usize> {
        let counts = self.agents.iter().map(async |agent| {
            let held = api.all(&format!("/tickets?status=open&userId={agent}")).await;
            assert!(
                held.iter().all(|ticket| ticket["assignedTo"]["id"] == *agent),
                "the filter found another agent's ticket"
            );
            held.len()
        });
        join_all(counts).await
    }
}

async fn create_agent(api: &Api, name: &str) -> i64 {
    let email = format!("{}@example.com", name.to_lowercase());
    created(api, "/users", json!({"name": name, "email": email})).await
}

/// Creates a channel whose tickets go to a queue, and waits until the service knows it.
async fn channel(app: &TestApp, company: &Company, name: &str, kind: ChannelType, queue: i64) -> i64 {
    let id = seed::channel(&app.db, company.id, name, kind, Some(QueueId::new(queue))).await;
    refresh(&app.api, company).await;
    id.0
}

/// A phone channel with a provider, whose tickets go to a queue.
async fn provider_channel(app: &TestApp, provider: &Provider, queue: i64) -> ProviderChannel {
    let setup = Setup { provider_url: Some(&provider.url), queue: Some(QueueId::new(queue)), ..Setup::default() };
    ProviderChannel::create(app, &app.company, ChannelType::Whatsapp, setup).await
}

/// A different number for each index.
fn number(index: usize) -> String {
    format!("55119{index:08}")
}

/// The company writes to a number; returns the ticket.
async fn write_to(api: &Api, channel: i64, number: &str) -> i64 {
    let body = json!({"channelId": channel, "number": number, "type": "text", "body": "Hello"});
    let (key, body) = (hotline_persistence::key::new_key("write_"), body.to_string());
    let reply = api.retry_while_busy(|| api.keyed(Method::POST, "/messages", &key, body.as_str())).await;
    let job = reply.data(202)["jobId"].as_str().expect("a job");
    let job = api.get_while_busy(&format!("/messages/jobs/{job}")).await;
    job.data(200)["ticketId"].as_i64().expect("a ticket")
}

/// A visitor's session in a webchat.
async fn visitor(api: &Api, channel: i64, visitor: Value) -> String {
    let reply = api.post_while_busy("/webchat/sessions", &json!({"channelId": channel, "visitor": visitor})).await;
    reply.data(201)["id"].as_str().expect("a session").to_owned()
}

/// The visitor writes; returns the ticket.
async fn write_as_visitor(api: &Api, session: &str, body: &str) -> i64 {
    let reply = api.post_while_busy(&format!("/webchat/sessions/{session}/messages"), &json!({"body": body})).await;
    reply.data(201)["ticketId"].as_i64().expect("a ticket")
}

/// A contact writes over the provider; returns the ticket.
async fn write_as_contact(app: &TestApp, channel: &ProviderChannel, from: &str, id: &str, body: &str) -> i64 {
    let call = channel.phone_account().message(from, "Maria Silva", hooks::text(id, body).at(Utc::now().timestamp()));
    assert_eq!(channel.deliver(&app.api, &call).await, crate::hooks::all_taken(1));
    let messages = crate::hooks::messages(&app.api, channel.id).await;
    let theirs = messages.iter().rfind(|message| message["body"] == body && message["direction"] == "inbound");
    theirs.and_then(|message| message["ticketId"].as_i64()).expect("the message is there")
}

/// The agent of a ticket, if it has one.
async fn holder(api: &Api, id: i64) -> Option<i64> {
    ticket(api, id).await["assignedTo"]["id"].as_i64()
}

/// The queue and the agent in a ticket's `opened` event.
async fn opening(api: &Api, ticket: i64) -> Value {
    let events = api.all(&format!("/tickets/{ticket}/events")).await;
    let opened: Vec<_> = events.into_iter().filter(|event| event["type"] == "opened").collect();
    assert_eq!(opened.len(), 1);
    opened[0]["to"].clone()
}

/// The messages of a ticket: direction, source, text.
async fn dialogue(api: &Api, ticket: i64) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut messages: BTreeMap<i64, _> = BTreeMap::new();
    for message in api.all(&format!("/tickets/{ticket}/messages")).await {
        let said = (text(&message["direction"]), text(&message["source"]), text(&message["body"]));
        messages.insert(id(&message), said);
    }
    messages.into_values().collect()
}
