//! A single delivery to a webhook: its signature, sending, evaluation and retries. The dispatcher (`src/deliveries/`)
//! decides which deliveries are made, and in what order.
//!
//! The format is that of Standard Webhooks (<https://www.standardwebhooks.com>): a `POST` of JSON with `webhook-id`,
//! `webhook-timestamp` and `webhook-signature`.

mod address;
mod retry_policy;
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

pub use self::address::{URL_CHARACTERS_MAX, check_url_form};
pub use self::retry_policy::{PAUSES, RetryPolicy};
pub use self::signature::{new_secret, signature};
use crate::outbound::{Lookup, Outbound, OutboundError, OutboundOptions, SystemLookup};

/// Timeout for an endpoint's response.
pub const RESPONSE_TIME_MAX: Duration = Duration::from_secs(15);

/// Maximum characters of the endpoint's response that a webhook's test (`POST /webhooks/{webhookId}/test`) returns.
pub const RESPONSE_CHARACTERS_MAX: usize = 1_000;

/// Bytes of a response after which no more is read: enough for [`RESPONSE_CHARACTERS_MAX`], and usually the whole
/// response, so that the connection can be reused.
const RESPONSE_BYTES_MAX: usize = 4 * RESPONSE_CHARACTERS_MAX;

/// Timeout for reading the body; the status is already known by then.
const BODY_TIME_MAX: Duration = Duration::from_secs(1);

/// The status of an endpoint that no longer exists.
const GONE: u16 = 410;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The settings of deliveries to webhooks.
#[derive(Clone)]
pub struct WebhookOptions {
    /// Non-public networks that may be reached. Loopback addresses among them may be reached over `http`, too.
    pub allowed_networks: Vec<IpNet>,
    /// Timeout for an endpoint's response.
    pub response_time_max: Duration,
    /// When a delivery is retried, and when an endpoint is disabled.
    pub retry_policy: RetryPolicy,
    /// The resolver of host names.
    pub lookup: Arc<dyn Lookup>,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            allowed_networks: Vec::new(),
            response_time_max: RESPONSE_TIME_MAX,
            retry_policy: RetryPolicy::default(),
            lookup: Arc::new(SystemLookup),
        }
    }
}

impl fmt::Debug for WebhookOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allowed_networks, response_time_max, retry_policy, lookup: _ } = self;
        f.debug_struct("WebhookOptions")
            .field("allowed_networks", allowed_networks)
            .field("response_time_max", response_time_max)
            .field("retry_policy", retry_policy)
            .finish_non_exhaustive()
    }
}

/// The client for endpoints. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Webhooks {
    outbound: Outbound,
    /// Webhooks that are being tested: one test of each at a time.
    running_tests: Arc<DashSet<(CompanyId, WebhookId)>>,
    /// When a delivery is retried, and when an endpoint is disabled.
    pub retry_policy: Arc<RetryPolicy>,
}

/// A running test of a webhook.
pub struct RunningTest {
    running_tests: Arc<DashSet<(CompanyId, WebhookId)>>,
    key: (CompanyId, WebhookId),
}

impl Drop for RunningTest {
    fn drop(&mut self) {
        self.running_tests.remove(&self.key);
    }
}

/// Whether the endpoint has accepted a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The endpoint has accepted it.
    Accepted,
    /// The endpoint has not accepted it.
    Refused,
    /// The endpoint reports that it no longer exists.
    Gone,
}

/// The outcome of one attempt.
#[derive(Clone, Debug)]
pub struct AttemptResult {
    /// When it started.
    pub at: DateTime<Utc>,
    /// The status of the endpoint's response; `None` if there was none.
    pub status: Option<u16>,
    /// Why the delivery failed; `None` if it succeeded.
    pub error: Option<String>,
    /// How long it took.
    pub duration: Duration,
    /// The beginning of the response's body.
    pub body: String,
}

impl AttemptResult {
    /// The verdict on this outcome.
    pub fn verdict(&self) -> Verdict {
        match (self.error.is_none(), self.status) {
            (true, _) => Verdict::Accepted,
            (false, Some(GONE)) => Verdict::Gone,
            (false, _) => Verdict::Refused,
        }
    }

    /// The duration in milliseconds.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }

    /// The attempt as it is stored and returned.
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
    /// Creates the client with these options.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(options: &WebhookOptions) -> Result<Self, reqwest::Error> {
        let outbound = OutboundOptions {
            allowed_networks: options.allowed_networks.clone(),
            call_time_max: options.response_time_max,
        };
        let outbound = Outbound::for_webhooks(&outbound, options.lookup.clone())?;
        Ok(Self { outbound, running_tests: Arc::default(), retry_policy: Arc::new(options.retry_policy.clone()) })
    }

    /// Starts a test of a webhook; `None` if one is running.
    pub fn begin_test(&self, company: CompanyId, webhook: WebhookId) -> Option<RunningTest> {
        let key = (company, webhook);
        self.running_tests.insert(key).then(|| RunningTest { running_tests: self.running_tests.clone(), key })
    }

    /// Checks a webhook's URL, without resolving its host.
    ///
    /// # Errors
    /// A phrase that follows the field's name.
    pub fn check(&self, url: &str) -> Result<(), String> {
        check_url_form(url)?;
        self.outbound.check_url(url).map_err(|error| match error {
            OutboundError::Forbidden(why) => format!("is not allowed: {why}"),
            error => error.to_string(),
        })
    }

    /// Sends JSON to a URL, signed with every valid secret, with an id that is the same in every attempt. Failures are
    /// part of the result.
    pub async fn deliver(&self, url: &str, secrets: &[Secret], id: &str, json: Bytes) -> AttemptResult {
        let (at, started) = (clock::now(), Instant::now());
        let attempt_result = |status: Option<u16>, error: Option<String>| AttemptResult {
            at,
            status,
            error,
            duration: started.elapsed(),
            body: String::new(),
        };
        let headers = match headers(secrets, id, at, &json) {
            Ok(headers) => headers,
            Err(error) => return attempt_result(None, Some(error)),
        };
        match self.outbound.post(url, headers, json).await {
            Err(error) => attempt_result(None, Some(error.to_string())),
            Ok(response) => {
                let status = response.status();
                let result = attempt_result(Some(status.as_u16()), status_error(status.as_u16()));
                AttemptResult { body: body_start(response).await, ..result }
            }
        }
    }
}

/// Why a status does not count as delivered; `None` if it does.
fn status_error(status: u16) -> Option<String> {
    match status {
        200..=299 => None,
        300..=399 => Some(format!("the endpoint responded with {status}; redirects are not followed")),
        GONE => Some("the endpoint responded with 410 Gone".to_owned()),
        status => Some(format!("the endpoint responded with {status}")),
    }
}

fn headers(secrets: &[Secret], id: &str, at: DateTime<Utc>, json: &[u8]) -> Result<HeaderMap, String> {
    let timestamp = at.timestamp();
    let signatures: Result<Vec<String>, String> =
        secrets.iter().map(|secret| signature(secret, id, timestamp, json)).collect();
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| "could not build a header".to_owned());
    Ok(HeaderMap::from_iter([
        (ID, value(id)?),
        (TIMESTAMP, HeaderValue::from(timestamp)),
        (SIGNATURE, value(&signatures?.join(" "))?),
    ]))
}

/// The beginning of a response's body. If the body is read to its end, the connection can be reused.
async fn body_start(response: Response) -> String {
    let mut body = Vec::new();
    let mut stream = response.bytes_stream();
    let read_chunks = async {
        while let Some(Ok(chunk)) = stream.next().await {
            body.extend_from_slice(&chunk);
            if body.len() >= RESPONSE_BYTES_MAX {
                break;
            }
        }
    };
    // After the timeout, the bytes received so far are used.
    drop(tokio::time::timeout(BODY_TIME_MAX, read_chunks).await);
    String::from_utf8_lossy(&body).chars().take(RESPONSE_CHARACTERS_MAX).collect()
}
