//! Accepted messages reach their channel's provider: in order, at its pace, and also after failed attempts.

mod after_send;
mod echoes;
mod failures;
mod files;
mod hang;
pub mod metrics;
mod moved;
mod order;
mod pace;
mod reactions;
mod removed;
mod social;
pub mod statuses;
mod unknown;
mod unreadable;
mod upgraded;

use std::time::Duration;

use hotline::providers::ProviderOptions;
use hotline_actors::EngineOptions;
use hotline_actors::channels::SendingOptions;
use hotline_persistence::ChannelId;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelType, NewChannel};
use serde_json::{Value, json};

use crate::support::seed::provided_settings;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Provider, TestApp, eventually, keys};

/// A service whose channels have a provider.
pub struct Office {
    pub app: OwnApp,
    pub provider: Provider,
}

/// The default of tests: a call ends when the provider answers it, however long a busy machine takes until then.
pub fn patient() -> ProviderOptions {
    TestOptions::default().provider
}

/// Without rate limits, and with retries after a few milliseconds.
pub fn fast() -> SendingOptions {
    SendingOptions {
        per_second: 0,
        recipient_interval: Duration::ZERO,
        retry_pause_min: Duration::from_millis(5),
        retry_pause_max: Duration::from_millis(20),
        outcome_wait: Duration::from_millis(20),
        ..SendingOptions::default()
    }
}

impl Office {
    pub async fn open() -> Self {
        Self::open_with(fast(), patient()).await
    }

    pub async fn open_with(sending: SendingOptions, provider: ProviderOptions) -> Self {
        Self::open_as(TestOptions::default(), sending, provider).await
    }

    pub async fn open_with_metrics(sending: SendingOptions, provider: ProviderOptions) -> Self {
        Self::open_as(TestOptions { metrics: true, ..TestOptions::default() }, sending, provider).await
    }

    pub async fn open_as(options: TestOptions, sending: SendingOptions, provider: ProviderOptions) -> Self {
        let engine = EngineOptions { sending, ..options.engine.clone() };
        let app = OwnApp::start_with(TestOptions { engine, provider, ..options }).await;
        Self { app, provider: Provider::start().await }
    }

    /// Creates a phone channel, and waits until the service knows it.
    pub async fn phone(&self, account: &str) -> ChannelId {
        self.channel(ChannelType::Whatsapp, account, |_| {}).await.id
    }

    pub async fn channel(
        &self,
        kind: ChannelType,
        account: &str,
        change: impl FnOnce(&mut channels::ChannelSettings),
    ) -> ChannelRow {
        let mut settings = provided_settings(kind, account, &self.provider.url);
        change(&mut settings);
        let company = self.app.company.id;
        let new = NewChannel { name: account, kind, number: None, queue_id: None, settings };
        let row = channels::insert(&self.app.db, &keys(), company, new).await.expect("channel");
        self.app.refreshed().await;
        row
    }

    /// Sends a text to a number; returns the job's id.
    async fn text(&self, channel: ChannelId, number: &str, body: &str) -> String {
        self.send(json!({"channelId": channel, "number": number, "type": "text", "body": body})).await
    }

    async fn send(&self, body: Value) -> String {
        let reply = self.app.api.post("/messages", body).await;
        reply.data(202)["jobId"].as_str().expect("a job").to_owned()
    }

    async fn job(&self, job: &str) -> Value {
        self.app.api.get(&format!("/messages/jobs/{job}")).await.data(200).clone()
    }

    /// The message of a job.
    async fn message(&self, job: &str) -> Value {
        let id = self.job(job).await["messageId"].clone();
        self.app.api.get(&format!("/messages/{id}")).await.data(200).clone()
    }

    /// Waits until a job has this status; returns its message.
    async fn wait_for_status(&self, job: &str, status: &str) -> Value {
        eventually(&format!("{job} is {status}"), || async { self.job(job).await["status"] == status }).await;
        self.message(job).await
    }

    /// Waits until every message is sent, and checks that each has the provider's id.
    async fn wait_until_all_sent(&self) {
        eventually("no message is queued", || async {
            self.app.api.get("/messages?status=queued").await.data(200) == &json!([])
        })
        .await;
        let not_sent: i64 = sqlx::query_scalar(
            "select count(*) from messages where company_id = $1 and (status <> 'sent' or provider_message_id is null)",
        )
        .bind(self.app.company.id)
        .fetch_one(&self.app.db)
        .await
        .expect("count");
        assert_eq!(not_sent, 0, "messages are not sent, or have no id of the provider");
    }

    pub async fn close(self) {
        drop(self.provider);
        self.app.stop().await;
    }
}

/// A different number for each index.
pub fn number(index: usize) -> String {
    format!("55119{index:08}")
}
