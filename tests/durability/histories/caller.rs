//! The calls of a provider and a company to a service that may be killed: each call is repeated until it is answered.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use hotline_persistence::PgPool;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::channels::{self, ChannelSettings, ChannelType, NewChannel, Secret};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::history::{Act, History};
use super::person::Key;
use crate::support::provider::hooks::{Phone, signature};
use crate::support::service::refresh;
use crate::support::{Api, Company, Reply, eventually};

const SECRET: &str = "app secret";

/// Maximum concurrent merges.
const MERGES_AT_ONCE: usize = 8;

/// Makes the calls of one company, and of the provider of its only channel: a phone channel that only receives.
pub struct Caller {
    api: RefCell<Api>,
    hook: String,
    phone: Phone,
    /// Calls of the provider that were answered.
    answered: Cell<usize>,
    pub company: Company,
}

impl Caller {
    /// Creates a company with a channel, and its caller.
    pub async fn open(api: Api, db: &PgPool, keys: &Keyring) -> Self {
        let company = Company::create(db, "Acme").await;
        let api = api.with_key(&company.key);
        eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
        let phone = Phone { id: "106540352242922".to_owned(), number: "15550783881".to_owned() };
        let settings = ChannelSettings {
            phone_number_id: Some(phone.id.clone()),
            app_secret: Some(Secret(SECRET.to_owned())),
            ..ChannelSettings::default()
        };
        let kind = ChannelType::Whatsapp;
        let new = NewChannel { name: "Phone", kind, number: None, queue_id: None, settings };
        let channel = channels::insert(db, keys, company.id, new).await.expect("channel");
        refresh(&api, &company).await;
        let hook = format!("/hooks/{}", channel.public_key);
        Self { api: RefCell::new(api), hook, phone, answered: Cell::new(0), company }
    }

    /// Sends further calls to another process of the service.
    pub fn move_to(&self, api: &Api) {
        self.api.replace(api.with_key(&self.company.key));
    }

    pub fn api(&self) -> Api {
        self.api.borrow().clone()
    }

    pub fn answered(&self) -> usize {
        self.answered.get()
    }

    /// Makes the calls of a whole history, wave by wave.
    pub async fn run(&self, history: &History) {
        for wave in &history.waves {
            join_all(wave.iter().map(|step| self.step(history, *step))).await;
        }
    }

    async fn step(&self, history: &History, step: usize) {
        match history.call(&self.phone, step) {
            Some(call) => self.call(&call, history.person.seed).await,
            // A step without a call of the provider merges contacts.
            None => self.merge_known(history).await,
        }
    }

    /// Repeats a call of the provider until it is answered.
    async fn call(&self, body: &Value, seed: u64) {
        let bytes = body.to_string();
        let signature = signature(SECRET, bytes.as_bytes());
        let request = |api: &Api| {
            let request = api.anonymous(Method::POST, &self.hook).header("content-type", "application/json");
            request.header("x-hub-signature-256", signature.clone()).body(bytes.clone())
        };
        let reply = self.retry(request).await;
        let unreadable = reply.data(200)["unreadable"].clone();
        assert_eq!(unreadable, 0, "history {seed}: {bytes}");
        self.answered.set(self.answered.get() + 1);
    }

    /// The answer to a request, repeated until there is one: the service may be down or busy.
    async fn retry(&self, request: impl Fn(&Api) -> RequestBuilder) -> Reply {
        let answer = RefCell::new(None);
        eventually("the request is answered", || async {
            let attempt = request(&self.api());
            let reply = Reply::try_of(attempt).await.filter(|reply| reply.status != 503);
            let is_answered = reply.is_some();
            answer.replace(reply);
            is_answered
        })
        .await;
        answer.into_inner().expect("an answer")
    }

    /// Merges the suggested pairs among the contacts that have the person's numbers.
    async fn merge_known(&self, history: &History) {
        let numbers = history.steps.iter().flat_map(Act::linked).filter(|key| matches!(key, Key::Number(_)));
        for number in numbers.collect::<BTreeSet<_>>() {
            let spelling = history.person.spellings(number).pop_first().expect("a spelling");
            let path = format!("/contacts?number={spelling}");
            let found = self.retry(|api| api.request(Method::GET, &path)).await;
            for (one, other) in suggested_pairs(found.data(200).as_array().expect("contacts")) {
                self.merge(one, other).await;
            }
        }
    }

    /// Merges all suggested pairs, until none is left.
    pub async fn merge_all(&self) {
        loop {
            let suggested = suggested_pairs(&self.api().all("/contacts").await);
            if suggested.is_empty() {
                return;
            }
            let merges = stream::iter(suggested).map(|(one, other)| self.merge(one, other));
            merges.buffer_unordered(MERGES_AT_ONCE).collect::<()>().await;
        }
    }

    /// Merges two contacts. The one that stays is the older one in some pairs, and the newer one in others.
    async fn merge(&self, one: i64, other: i64) {
        let (into, from) = if (one + other) % 2 == 0 { (one, other) } else { (other, one) };
        let (path, body) = (format!("/contacts/{into}/merge"), json!({"fromContactId": from}));
        let reply = self.retry(|api| api.request(Method::POST, &path).json(&body)).await;
        // 404: the contact was merged before, perhaps by this call, whose answer was lost.
        if reply.status != 404 {
            reply.data(200);
        }
    }
}

/// Pairs of contacts that are to be merged, each contact once.
fn suggested_pairs(contacts: &[Value]) -> Vec<(i64, i64)> {
    let mut paired = BTreeSet::new();
    let mut pairs = Vec::new();
    for contact in contacts {
        let one = contact["id"].as_i64().expect("an id");
        let suggestions = contact["mergeSuggestions"].as_array().expect("suggestions").iter();
        for other in suggestions.map(|suggestion| suggestion["contactId"].as_i64().expect("an id")) {
            if !paired.contains(&one) && !paired.contains(&other) {
                paired.extend([one, other]);
                pairs.push((one.min(other), one.max(other)));
            }
        }
    }
    pairs
}
