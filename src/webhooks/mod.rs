//! One delivery to a webhook: how it is signed, sent and judged, and when it is tried again. Which ones there are, and in
//! what order, is the dispatcher's (`src/deliveries/`).
//!
//! The format is that of Standard Webhooks (<https://www.standardwebhooks.com>): a `POST` of JSON with `webhook-id`,
//! `webhook-timestamp` and `webhook-signature`.

mod address;
mod plan;
mod signature;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use dashmap::DashSet;
use futures_util::StreamExt;
use hotline_actors::clock;
use hotline_persistence::CompanyId;
use hotline_persistence::sealed::Secret;
use hotline_persistence::tables::webhooks::WebhookId;
use hotline_persistence::tables::webhooks::deliveries::Attempt;
use ipnet::IpNet;
use reqwest::Response;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

pub use self::address::{ADDRESS_CHARACTERS_MAX, check_address};
pub use self::plan::{PAUSES, Plan};
pub use self::signature::{new_secret, signature};
use crate::outbound::{Lookup, Outbound, OutboundError, OutboundOptions, SystemLookup};

/// How long an endpoint may take to answer.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);

/// Characters of an answer that a test shows.
pub const ANSWER_CHARACTERS_MAX: usize = 1_000;

/// Bytes of an answer that are read: enough for those characters, and for the connection to be free for the next one.
const ANSWER_BYTES_MAX: usize = 4 * ANSWER_CHARACTERS_MAX;

/// How long they may take, once the status has said what counts.
const REST_TIME_MAX: Duration = Duration::from_secs(1);

/// The status that says that nobody is there any more.
const GONE: u16 = 410;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// How webhooks are delivered to.
#[derive(Clone)]
pub struct WebhookOptions {
    /// Networks that may be reached although they are not public; of them this machine's own also over `http`.
    pub allowed_networks: Vec<IpNet>,
    /// How long an endpoint may take to answer.
    pub answer_time_max: Duration,
    /// When a delivery is tried again, and when an endpoint is switched off.
    pub plan: Plan,
    /// Where names are looked up.
    pub lookup: Arc<dyn Lookup>,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            allowed_networks: Vec::new(),
            answer_time_max: ANSWER_TIME_MAX,
            plan: Plan::default(),
            lookup: Arc::new(SystemLookup),
        }
    }
}

impl fmt::Debug for WebhookOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allowed_networks, answer_time_max, plan, lookup: _ } = self;
        f.debug_struct("WebhookOptions")
            .field("allowed_networks", allowed_networks)
            .field("answer_time_max", answer_time_max)
            .field("plan", plan)
            .finish_non_exhaustive()
    }
}

/// The way to the endpoints. Cheap to clone; a clone uses the same connections.
#[derive(Clone)]
pub struct Webhooks {
    outbound: Outbound,
    /// Webhooks that are being tested: one test of each at a time.
    tests: Arc<DashSet<(CompanyId, WebhookId)>>,
    /// When a delivery is tried again, and when an endpoint is switched off.
    pub plan: Arc<Plan>,
}

/// A test of a webhook, while it is under way.
pub struct Turn {
    tests: Arc<DashSet<(CompanyId, WebhookId)>>,
    key: (CompanyId, WebhookId),
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.tests.remove(&self.key);
    }
}

/// What an endpoint made of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has taken it.
    Taken,
    /// It has not.
    Refused,
    /// It is there no more, and says so.
    Gone,
}

/// How one attempt went.
#[derive(Clone, Debug)]
pub struct Tried {
    /// When it began.
    pub at: DateTime<Utc>,
    /// What the endpoint answered.
    pub status: Option<u16>,
    /// Why it does not count as delivered.
    pub error: Option<String>,
    /// How long it took until that was known.
    pub duration: Duration,
    /// The beginning of what it said.
    pub body: String,
}

impl Tried {
    /// What it means.
    pub fn verdict(&self) -> Verdict {
        match (self.error.is_none(), self.status) {
            (true, _) => Verdict::Taken,
            (false, Some(GONE)) => Verdict::Gone,
            (false, _) => Verdict::Refused,
        }
    }

    /// Milliseconds it took.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }

    /// As it is kept and shown.
    pub fn attempt(&self) -> Attempt {
        Attempt {
            at: self.at.to_rfc3339_opts(SecondsFormat::Millis, true),
            status: self.status,
            error: self.error.clone(),
            duration_ms: self.duration_ms(),
        }
    }
}

impl Webhooks {
    /// With these options.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub fn new(options: &WebhookOptions) -> Result<Self, reqwest::Error> {
        let outbound = OutboundOptions {
            allowed_networks: options.allowed_networks.clone(),
            call_time_max: options.answer_time_max,
        };
        let outbound = Outbound::of_webhooks(&outbound, options.lookup.clone())?;
        Ok(Self { outbound, tests: Arc::default(), plan: Arc::new(options.plan.clone()) })
    }

    /// Begins a test of a webhook, unless one is under way.
    pub fn begin_test(&self, company: CompanyId, webhook: WebhookId) -> Option<Turn> {
        let key = (company, webhook);
        self.tests.insert(key).then(|| Turn { tests: self.tests.clone(), key })
    }

    /// Whether an address may be a webhook's, as far as it says by itself.
    ///
    /// # Errors
    /// Why it may not, as a phrase that follows the field's name.
    pub fn check(&self, url: &str) -> Result<(), String> {
        check_address(url)?;
        self.outbound.may_call(url).map_err(|error| match error {
            OutboundError::Forbidden(why) => format!("is not allowed: {why}"),
            error => error.to_string(),
        })
    }

    /// Sends JSON to an address, signed with every secret that is good, under an id that is the same each time. However
    /// that goes, it is told in what is answered.
    pub async fn deliver(&self, url: &str, secrets: &[Secret], id: &str, json: Bytes) -> Tried {
        let (at, begun) = (clock::now(), Instant::now());
        let tried = |status: Option<u16>, error: Option<String>| Tried {
            at,
            status,
            error,
            duration: begun.elapsed(),
            body: String::new(),
        };
        let headers = match headers(secrets, id, at, &json) {
            Ok(headers) => headers,
            Err(error) => return tried(None, Some(error)),
        };
        match self.outbound.post(url, headers, json).await {
            Err(error) => tried(None, Some(error.to_string())),
            Ok(response) => {
                let status = response.status();
                let tried = tried(Some(status.as_u16()), refused(status.as_u16()));
                Tried { body: beginning(response).await, ..tried }
            }
        }
    }
}

/// Why a status does not count as delivered.
fn refused(status: u16) -> Option<String> {
    match status {
        200..=299 => None,
        300..=399 => Some(format!("the endpoint answered {status}; no redirect is followed")),
        GONE => Some("the endpoint answered 410 Gone".to_owned()),
        status => Some(format!("the endpoint answered {status}")),
    }
}

fn headers(secrets: &[Secret], id: &str, at: DateTime<Utc>, json: &[u8]) -> Result<HeaderMap, String> {
    let timestamp = at.timestamp();
    let signatures: Result<Vec<String>, String> =
        secrets.iter().map(|secret| signature(secret, id, timestamp, json)).collect();
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| "a header cannot be written".to_owned());
    Ok(HeaderMap::from_iter([
        (ID, value(id)?),
        (TIMESTAMP, HeaderValue::from(timestamp)),
        (SIGNATURE, value(&signatures?.join(" "))?),
    ]))
}

/// The beginning of an answer. Read to its end the connection serves the next delivery.
async fn beginning(response: Response) -> String {
    let mut read = Vec::new();
    let mut stream = response.bytes_stream();
    let reading = async {
        while let Some(Ok(chunk)) = stream.next().await {
            read.extend_from_slice(&chunk);
            if read.len() >= ANSWER_BYTES_MAX {
                break;
            }
        }
    };
    // What has come by then is the beginning.
    drop(tokio::time::timeout(REST_TIME_MAX, reading).await);
    String::from_utf8_lossy(&read).chars().take(ANSWER_CHARACTERS_MAX).collect()
}
