//! Calls of the Graph API: the address, the token, the answer, the error.

use std::sync::Arc;
use std::time::Duration;

use hotline_actors::channels::Account;
use reqwest::header::RETRY_AFTER;
use reqwest::multipart::Form;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ProviderOptions;

/// How long a connection may take to be made. A call's whole time is [`ProviderOptions::call_time_max`].
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a connection is kept for the next call.
const IDLE_CONNECTION_TIME_MAX: Duration = Duration::from_secs(60);

/// Bytes of an answer that are read: a page of templates is some hundred KiB, every other answer far less.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Bytes of all pages of an account's templates: 6,000 of them have half as many.
const TEMPLATES_BYTES_MAX: usize = 16 << 20;

/// Characters of a provider's message that are kept.
const MESSAGE_CHARACTERS_MAX: usize = 500;

/// Templates asked for at a time, and pages read at most: the provider allows an account 6,000 templates.
const TEMPLATES_PER_PAGE: usize = 250;
const TEMPLATE_PAGES_MAX: usize = 24;

/// The Graph API. Cheap to clone.
#[derive(Clone)]
pub struct Graph {
    client: Client,
    url: Arc<str>,
    version: Arc<str>,
}

/// Why a call did not bring what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Nobody was there, or no answer came in time. Whether the call had its effect is unknown.
    #[error("the provider is not reached: {0}")]
    Unreachable(String),
    /// The provider refused.
    #[error("the provider answered {status}: {message}")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// The provider's own code, where it gave one.
        code: Option<i64>,
        /// Whether the provider says that it may work later.
        is_transient: bool,
        /// In its words.
        message: String,
        /// Not before this time has passed.
        retry_after: Option<Duration>,
    },
}

/// A refusal as the Graph API writes it.
/// <https://developers.facebook.com/docs/graph-api/guides/error-handling>
#[derive(Deserialize)]
struct Refused {
    error: Reason,
}

#[derive(Deserialize)]
struct Reason {
    code: Option<i64>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    is_transient: bool,
    error_data: Option<Value>,
}

impl Graph {
    /// Ready to call.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub fn new(options: &ProviderOptions) -> Result<Self, reqwest::Error> {
        let client = crate::tls::client()
            .user_agent(concat!("hotline/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIME_MAX)
            .timeout(options.call_time_max)
            .pool_idle_timeout(IDLE_CONNECTION_TIME_MAX)
            // A token is shown to the address that was named, and to no other.
            .redirect(Policy::none())
            .build()?;
        let url = options.url.trim_end_matches('/').into();
        Ok(Self { client, url, version: options.version.as_str().into() })
    }

    /// Posts JSON to an edge of the account. None: it succeeded, and the answer cannot be read.
    ///
    /// # Errors
    /// Why it did not succeed.
    pub async fn post<A: DeserializeOwned>(
        &self,
        account: &Account,
        edge: &str,
        body: &impl Serialize,
    ) -> Result<Option<A>, GraphError> {
        let url = self.address(account, &format!("{}/{edge}", account.id));
        read(self.request(Method::POST, account, &url).json(body)).await
    }

    /// Posts a form with a file to an edge of the account.
    ///
    /// # Errors
    /// Why it did not succeed.
    pub async fn post_form(&self, account: &Account, edge: &str, form: Form) -> Result<Option<Value>, GraphError> {
        let url = self.address(account, &format!("{}/{edge}", account.id));
        read(self.request(Method::POST, account, &url).multipart(form)).await
    }

    /// Reads a node, for instance a file's: its address is in the answer.
    ///
    /// # Errors
    /// Why it did not succeed.
    pub async fn get(&self, account: &Account, node: &str) -> Result<Option<Value>, GraphError> {
        read(self.request(Method::GET, account, &self.address(account, node))).await
    }

    /// The templates of a business account, as the provider describes them. Asked for under the number's id when the
    /// business account is not known.
    /// <https://developers.facebook.com/docs/graph-api/reference/whats-app-business-account/message_templates>
    ///
    /// # Errors
    /// Why they cannot be read.
    pub async fn templates(&self, account: &Account, business_account: Option<&str>) -> Result<Vec<Value>, GraphError> {
        let owner = business_account.unwrap_or(&account.id);
        let fields = "name,language,category,status,components";
        let first = format!("{owner}/message_templates?fields={fields}&limit={TEMPLATES_PER_PAGE}");
        let mut templates = Vec::new();
        let mut next = first.clone();
        let mut left = TEMPLATES_BYTES_MAX;
        for _ in 0..TEMPLATE_PAGES_MAX {
            let body = answer(self.request(Method::GET, account, &self.address(account, &next))).await?;
            let body = body.unwrap_or_default();
            left = match left.checked_sub(body.len()) {
                Some(left) => left,
                None => {
                    tracing::warn!(channel.id = %account.channel, "an account has more templates than are read");
                    break;
                }
            };
            let mut page: Value = serde_json::from_slice(&body).unwrap_or_default();
            if let Some(Value::Array(rows)) = page.get_mut("data").map(Value::take) {
                templates.extend(rows.into_iter().map(storable));
            }
            let has_next = page["paging"]["next"].is_string();
            match page["paging"]["cursors"]["after"].as_str().filter(|_| has_next) {
                Some(after) => next = format!("{first}&after={}", encoded(after)),
                None => break,
            }
        }
        Ok(templates)
    }

    fn address(&self, account: &Account, path: &str) -> String {
        let base = account.provider_url.as_deref().unwrap_or(&self.url);
        format!("{base}/{}/{path}", self.version)
    }

    fn request(&self, method: Method, account: &Account, url: &str) -> RequestBuilder {
        self.client.request(method, url).bearer_auth(&account.access_token.0)
    }
}

/// Without U+0000, which no table takes: a template's text becomes a message's.
fn storable(told: Value) -> Value {
    match told {
        Value::String(text) => Value::String(text.replace('\0', "")),
        Value::Array(values) => Value::Array(values.into_iter().map(storable).collect()),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, storable(value))).collect(),
        other => other,
    }
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

async fn read<A: DeserializeOwned>(request: RequestBuilder) -> Result<Option<A>, GraphError> {
    let body = answer(request).await?;
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
}

/// The body of an answer that is a success. None when it cannot be read.
async fn answer(request: RequestBuilder) -> Result<Option<Vec<u8>>, GraphError> {
    let response = request.send().await.map_err(unreachable)?;
    if response.status().is_success() { Ok(body(response).await) } else { Err(refused(response).await) }
}

async fn refused(response: Response) -> GraphError {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let retry_after = retry_after.map(Duration::from_secs);
    let body = body(response).await.unwrap_or_default();
    let Ok(Refused { error }) = serde_json::from_slice(&body) else {
        let message = format!("status {status}");
        return GraphError::Refused { status, code: None, is_transient: false, message, retry_after };
    };
    // The details say what is wrong, the message only which kind of wrong it is.
    let details = error.error_data.as_ref().and_then(|data| data["details"].as_str());
    let message = details.unwrap_or(&error.message).chars().take(MESSAGE_CHARACTERS_MAX).collect();
    GraphError::Refused { status, code: error.code, is_transient: error.is_transient, message, retry_after }
}

/// None when it is cut off or longer than any answer is.
async fn body(mut response: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body)
}

/// What is told of it goes into logs and messages: no address, which may hold what nobody else should know.
fn unreachable(error: reqwest::Error) -> GraphError {
    let error = error.without_url();
    let reason = if error.is_timeout() {
        "no answer in time".to_owned()
    } else {
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
            .last()
            .map_or_else(|| error.to_string(), ToString::to_string)
    };
    GraphError::Unreachable(reason)
}
