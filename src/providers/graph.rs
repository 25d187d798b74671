//! Calls to the Graph API: URLs, tokens, responses and errors.
//!
//! The installation's own address (`--provider-url`), and one that the command line gave a channel, are the operator's
//! and are called without restrictions. Any other address of a channel is called through [`Outbound`], which reaches
//! only public networks and those that the operator allows. Ids become parts of the path only after a check of their
//! characters, so that none can change the rest of the path.

use std::sync::Arc;
use std::time::Duration;

use hotline_actors::channels::Account;
use hotline_persistence::controls;
use reqwest::header::RETRY_AFTER;
use reqwest::multipart::Form;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ProviderOptions;
use crate::outbound::{self, Outbound, OutboundError, OutboundOptions};

/// Timeout for connecting. The timeout of a whole call is [`ProviderOptions::call_time_max`].
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long an idle connection is kept for reuse: less than providers keep it. If a provider closes a connection at the
/// moment of a call, it is unknown whether the message was sent.
const IDLE_CONNECTION_TIME_MAX: Duration = Duration::from_secs(20);

/// Maximum size of a response: a page of templates is a few hundred KiB, every other response far less.
const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// Maximum size of all pages of an account's templates: twice what 6,000 templates need.
pub const TEMPLATES_BYTES_MAX: usize = 16 << 20;

/// Maximum length of the stored part of a provider's message.
const MESSAGE_CHARACTERS_MAX: usize = 500;

/// The message of a refusal without one. The status is shown or stored beside it.
const NO_REASON: &str = "no reason given";

/// Maximum pause that a `Retry-After` can cause: a provider's mistake must not stop a channel for longer.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// Templates per page, and maximum number of pages: the provider allows an account 6,000 templates.
const TEMPLATES_PER_PAGE: usize = 250;
const TEMPLATE_PAGES_MAX: usize = 24;

/// The Graph API. Cheap to clone.
#[derive(Clone)]
pub struct Graph {
    /// For addresses of the operator.
    client: Client,
    /// For every other address.
    restricted_client: Outbound,
    url: Arc<str>,
    version: Arc<str>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The server could not be reached: the call had no effect.
    #[error("the request to the provider failed: {0}")]
    Unreachable(String),
    /// The server was reached and gave no answer, or not in time: it is unknown whether the call took effect.
    #[error("the request to the provider failed: {0}")]
    Unanswered(String),
    /// The URL, or an id in it, is not allowed: nothing was sent.
    #[error("the provider's URL is not allowed: {0}")]
    Forbidden(&'static str),
    /// The provider refused.
    #[error("the provider responded with status {status}: {message}")]
    Refused {
        /// The status of the response.
        status: u16,
        /// The provider's own code, if it gave one.
        code: Option<i64>,
        /// Whether the provider says that a retry may succeed.
        is_transient: bool,
        /// The provider's message.
        message: String,
        /// The minimum time to wait before a retry.
        retry_after: Option<Duration>,
    },
}

/// A refusal in the format of the Graph API. <https://developers.facebook.com/docs/graph-api/guides/error-handling>
#[derive(Deserialize)]
struct ErrorResponse {
    error: ErrorDetails,
}

#[derive(Deserialize)]
struct ErrorDetails {
    code: Option<i64>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    is_transient: bool,
    error_data: Option<Value>,
}

impl GraphError {
    /// Whether the provider may have executed the call: there was no answer, or only that of a proxy in front of the
    /// provider.
    pub fn leaves_doubt(&self) -> bool {
        matches!(self, Self::Unanswered(_) | Self::Refused { status: 408 | 502 | 504, code: None, .. })
    }
}

impl Graph {
    /// Creates the clients; `outbound` restricts the networks of addresses that are not the operator's.
    ///
    /// # Errors
    /// When an HTTP client cannot be created.
    pub fn new(options: &ProviderOptions, outbound: &OutboundOptions) -> Result<Self, reqwest::Error> {
        let client = crate::tls::client()
            .user_agent(concat!("hotline/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIME_MAX)
            .timeout(options.call_time_max)
            .pool_idle_timeout(IDLE_CONNECTION_TIME_MAX)
            // A token must not be sent to any URL but the intended one.
            .redirect(Policy::none())
            .build()?;
        let url = options.url.trim_end_matches('/').into();
        let outbound = OutboundOptions { call_time_max: options.call_time_max, ..outbound.clone() };
        let restricted_client = Outbound::for_providers(&outbound)?;
        Ok(Self { client, restricted_client, url, version: options.version.as_str().into() })
    }

    /// Posts JSON to an edge of the account. `None`: it succeeded, but the response cannot be parsed.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn post<A: DeserializeOwned>(
        &self,
        account: &Account,
        edge: &str,
        body: &impl Serialize,
    ) -> Result<Option<A>, GraphError> {
        let path = format!("{}/{edge}", checked_account_id(&account.id)?);
        send_and_parse(self.request(Method::POST, account, &path)?.json(body)).await
    }

    /// Posts a form with a file to an edge of the account.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn post_form(&self, account: &Account, edge: &str, form: Form) -> Result<Option<Value>, GraphError> {
        let path = format!("{}/{edge}", checked_account_id(&account.id)?);
        send_and_parse(self.request(Method::POST, account, &path)?.multipart(form)).await
    }

    /// Reads the account's own node, which succeeds if its id and token are valid.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn check_account(&self, account: &Account) -> Result<(), GraphError> {
        let path = format!("{}?fields=id", checked_account_id(&account.id)?);
        send_for_body(self.request(Method::GET, account, &path)?).await.map(drop)
    }

    /// Reads a file's node: the response contains its URL.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn file(&self, account: &Account, id: &str) -> Result<Option<Value>, GraphError> {
        send_and_parse(self.request(Method::GET, account, checked_file_id(id)?)?).await
    }

    /// The templates of a business account, as the provider describes them, and whether the list is complete: beyond
    /// the limits, the rest is not read. If the business account is not known (`None`), they are requested under the
    /// number's id.
    /// <https://developers.facebook.com/docs/graph-api/reference/whats-app-business-account/message_templates>
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn templates(
        &self,
        account: &Account,
        business_account: Option<&str>,
    ) -> Result<(Vec<Value>, bool), GraphError> {
        let owner = checked_account_id(business_account.unwrap_or(&account.id))?;
        let fields = "name,language,category,status,components";
        let first_path = format!("{owner}/message_templates?fields={fields}&limit={TEMPLATES_PER_PAGE}");
        let mut templates = Vec::new();
        let mut next_path = first_path.clone();
        let mut remaining_bytes = TEMPLATES_BYTES_MAX;
        for _ in 0..TEMPLATE_PAGES_MAX {
            let body = send_for_body(self.request(Method::GET, account, &next_path)?).await?;
            let body = body.ok_or_else(unreadable_templates)?;
            remaining_bytes = match remaining_bytes.checked_sub(body.len()) {
                Some(remaining_bytes) => remaining_bytes,
                None => break,
            };
            let mut page: Value = serde_json::from_slice(&body).map_err(|_| unreadable_templates())?;
            if let Some(Value::Array(rows)) = page.get_mut("data").map(Value::take) {
                templates.extend(rows.into_iter().map(without_control_characters));
            }
            let has_next = page["paging"]["next"].is_string();
            match page["paging"]["cursors"]["after"].as_str().filter(|_| has_next) {
                Some(after) => next_path = format!("{first_path}&after={}", url_encoded(after)),
                None => return Ok((templates, !has_next)),
            }
        }
        tracing::warn!(channel.id = %account.channel, "account has more templates than the limit; the rest are ignored");
        Ok((templates, false))
    }

    /// A request to a path of the account's provider, with its token.
    fn request(&self, method: Method, account: &Account, path: &str) -> Result<RequestBuilder, GraphError> {
        let request = match account.provider_url.as_deref() {
            Some(base) if !account.is_url_from_operator => {
                self.restricted_client.request(method, &format!("{base}/{}/{path}", self.version))?
            }
            base => self.client.request(method, format!("{}/{}/{path}", base.unwrap_or(&self.url), self.version)),
        };
        Ok(request.bearer_auth(&account.access_token.0))
    }
}

/// Checks the id of an account, which comes from the channel's settings: the provider's ids of accounts consist of
/// digits.
fn checked_account_id(id: &str) -> Result<&str, GraphError> {
    if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(id)
    } else {
        Err(GraphError::Forbidden("an id of the account is not a number"))
    }
}

/// Checks the id of a file, which comes from a provider's webhook: one segment of a path, without characters that end
/// it.
fn checked_file_id(id: &str) -> Result<&str, GraphError> {
    if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        Ok(id)
    } else {
        Err(GraphError::Forbidden("the id of a file is invalid"))
    }
}

impl From<OutboundError> for GraphError {
    fn from(error: OutboundError) -> Self {
        match error {
            OutboundError::Forbidden(reason) => Self::Forbidden(reason),
            OutboundError::Unreachable(reason) => Self::Unreachable(reason),
            status @ OutboundError::Status(_) => Self::Unreachable(status.to_string()),
        }
    }
}

/// The error for a page of templates that cannot be read: an empty list would mean that the account has no templates.
fn unreadable_templates() -> GraphError {
    GraphError::Unanswered("a page of templates is truncated, too large or not JSON".to_owned())
}

/// Removes control characters, which messages must not contain: a template's text becomes a message's.
fn without_control_characters(mut template: Value) -> Value {
    controls::remove_from_value(&mut template);
    template
}

fn url_encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Sends a request, and parses the response. `None`: it succeeded, but the response cannot be parsed.
async fn send_and_parse<A: DeserializeOwned>(request: RequestBuilder) -> Result<Option<A>, GraphError> {
    let body = send_for_body(request).await?;
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
}

/// Sends a request, and returns the body of a successful response; `None` when the body cannot be read.
async fn send_for_body(request: RequestBuilder) -> Result<Option<Vec<u8>>, GraphError> {
    let response = request.send().await.map_err(transport_error)?;
    if response.status().is_success() { Ok(read_body(response).await) } else { Err(refusal_of(response).await) }
}

fn transport_error(error: reqwest::Error) -> GraphError {
    let has_connected = !error.is_connect() && !error.is_builder();
    match outbound::describe_failure(error).into() {
        GraphError::Unreachable(reason) if has_connected => GraphError::Unanswered(reason),
        failure => failure,
    }
}

async fn refusal_of(response: Response) -> GraphError {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
    let body = read_body(response).await.unwrap_or_default();
    let Ok(ErrorResponse { error }) = serde_json::from_slice(&body) else {
        let message = NO_REASON.to_owned();
        return GraphError::Refused { status, code: None, is_transient: false, message, retry_after };
    };
    // The details name the actual problem, the message only its category.
    let details = error.error_data.as_ref().and_then(|data| data["details"].as_str());
    let message =
        [details.unwrap_or_default(), error.message.as_str(), NO_REASON].into_iter().find(|text| !text.is_empty());
    let message = message.unwrap_or_default().chars().take(MESSAGE_CHARACTERS_MAX).collect();
    GraphError::Refused { status, code: error.code, is_transient: error.is_transient, message, retry_after }
}

/// The body of a response; `None` when it is truncated or exceeds the maximum size.
async fn read_body(mut response: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > RESPONSE_BYTES_MAX {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body)
}
