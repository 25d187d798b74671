//! The endpoint that providers call: each message of a contact is stored once, and is durable before the reply.

mod account;
mod contacts;
mod controls;
mod door;
mod echoes;
mod files;
mod fuzz;
mod hidden;
mod identities;
mod kinds;
mod metrics;
mod news;
mod opt_out;
mod repeated;
mod social;
pub mod statuses;
mod structure;
mod window;

use std::sync::atomic::{AtomicUsize, Ordering};

use hotline_persistence::tables::channels::{self, ChannelSettings, ChannelType, NewChannel, Secret};
use hotline_persistence::{ChannelId, QueueId};
use reqwest::Method;
use serde_json::Value;

use crate::support::provider::hooks::{Page, Phone, signature};
use crate::support::service::refresh;
use crate::support::{Api, Company, Reply, TestApp, keys};

/// The number of the contact who writes in most tests.
pub const MARIA: &str = "5511987654321";

/// A channel that a provider calls.
#[derive(Clone, Debug)]
pub struct ProviderChannel {
    pub id: ChannelId,
    pub public_key: String,
    pub app_secret: String,
    pub account: String,
}

/// The settings of a new channel, besides its kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<'a> {
    /// The URL of its provider; without one it cannot send.
    pub provider_url: Option<&'a str>,
    pub queue: Option<QueueId>,
    /// The id of its number or page; `None` for a new one.
    pub account: Option<&'a str>,
    /// The app secret, which signs the calls; `None` for a new one.
    pub app_secret: Option<&'a str>,
}

impl ProviderChannel {
    /// Creates a phone channel that only receives.
    pub async fn phone(app: &TestApp) -> Self {
        Self::create(app, &app.company, ChannelType::Whatsapp, Setup::default()).await
    }

    /// Creates a channel, and waits until the service knows it.
    pub async fn create(app: &TestApp, company: &Company, kind: ChannelType, setup: Setup<'_>) -> Self {
        static CHANNELS: AtomicUsize = AtomicUsize::new(1);
        let serial = CHANNELS.fetch_add(1, Ordering::Relaxed);
        let account = setup.account.map_or_else(|| format!("10654035224{serial:04}"), str::to_owned);
        let app_secret = setup.app_secret.map_or_else(|| format!("app secret {serial}"), str::to_owned);
        let is_phone = kind == ChannelType::Whatsapp;
        let settings = ChannelSettings {
            phone_number_id: is_phone.then(|| account.clone()),
            page_id: (!is_phone).then(|| account.clone()),
            access_token: setup.provider_url.map(|_| Secret("access token".to_owned())),
            app_secret: Some(Secret(app_secret.clone())),
            verify_token: Some(Secret("verify token".to_owned())),
            provider_url: setup.provider_url.map(str::to_owned),
            ..ChannelSettings::default()
        };
        let new = NewChannel { name: "Provider", kind, number: None, queue_id: setup.queue, settings };
        let row = channels::insert(&app.db, &keys(), company.id, new).await.expect("channel");
        refresh(&app.api, company).await;
        Self { id: row.id, public_key: row.public_key, app_secret, account }
    }

    /// The builder of the provider's calls for a phone channel.
    pub fn phone_account(&self) -> Phone {
        Phone { id: self.account.clone(), number: "15550783881".to_owned() }
    }

    pub fn page(&self, object: &'static str) -> Page {
        Page { object, id: self.account.clone() }
    }

    pub fn path(&self) -> String {
        format!("/hooks/{}", self.public_key)
    }

    /// Makes a call with these bytes and this signature.
    pub async fn call(&self, api: &Api, bytes: impl Into<Vec<u8>>, signature: Option<&str>) -> Reply {
        let mut request = api.anonymous(Method::POST, &self.path()).header("content-type", "application/json");
        if let Some(signature) = signature {
            request = request.header("x-hub-signature-256", signature);
        }
        Reply::of(request.body(bytes.into())).await
    }

    /// Makes a call with a valid signature.
    pub async fn call_signed(&self, api: &Api, body: &Value) -> Reply {
        let bytes = body.to_string().into_bytes();
        let signature = signature(&self.app_secret, &bytes);
        self.call(api, bytes, Some(&signature)).await
    }

    /// Makes a signed call, which must be accepted, and returns the counts of its parts.
    pub async fn deliver(&self, api: &Api, body: &Value) -> Tally {
        let reply = self.call_signed(api, body).await;
        let count = |part: &str| reply.data(200)[part].as_u64().unwrap_or_else(|| panic!("{}", reply.body));
        Tally {
            taken: count("taken"),
            repeated: count("repeated"),
            ignored: count("ignored"),
            unreadable: count("unreadable"),
        }
    }
}

/// How many parts of a call were taken, repeated, ignored or unreadable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub taken: u64,
    pub repeated: u64,
    pub ignored: u64,
    pub unreadable: u64,
}

/// The tally of a call of which all parts were taken.
pub fn all_taken(taken: u64) -> Tally {
    Tally { taken, ..Tally::default() }
}

/// The messages of a channel, in order.
pub async fn messages(api: &Api, channel: ChannelId) -> Vec<Value> {
    api.all(&format!("/messages?channelId={channel}")).await
}

/// The tickets of a channel, in order.
pub async fn tickets(api: &Api, channel: ChannelId) -> Vec<Value> {
    api.all(&format!("/tickets?channelId={channel}")).await
}

/// A contact as the API shows it.
pub async fn contact(api: &Api, id: &Value) -> Value {
    api.get(&format!("/contacts/{id}")).await.data(200).clone()
}
