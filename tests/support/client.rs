//! A client of the API.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use hotline::web::response::error::{OTHER_REASON, reason_codes};
use reqwest::header::HeaderMap;
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, StatusCode};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

/// Speaks to a service with one token.
#[derive(Clone)]
pub struct Api {
    client: Client,
    base: String,
    pub key: String,
    timeout: Duration,
}

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause before a request that was answered with `503` is sent again.
const PAUSE: Duration = Duration::from_millis(50);

/// For how long a request that is answered with `503` is sent again.
const BUSY_TIME_MAX: Duration = Duration::from_secs(240);

/// A builder of clients for plain HTTP: the system's certificates, about a hundred files, are not read.
#[allow(clippy::disallowed_methods)] // Plain HTTP needs no roots.
fn plain_http() -> ClientBuilder {
    static TLS_CONFIG: LazyLock<ClientConfig> = LazyLock::new(|| {
        hotline::tls::install();
        ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    });
    Client::builder().tls_backend_preconfigured(TLS_CONFIG.clone())
}

/// What the service answered.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
    /// The body as it was received.
    pub bytes: Vec<u8>,
}

impl Api {
    pub fn new(address: std::net::SocketAddr, key: &str) -> Self {
        let client = plain_http().timeout(super::patience(PATIENCE)).pool_max_idle_per_host(128).build();
        Self {
            client: client.expect("client"),
            base: format!("http://{address}"),
            key: key.to_owned(),
            timeout: super::patience(PATIENCE),
        }
    }

    /// A client of the service at this base (`https://…`) which calls through the given HTTP client, as behind a proxy.
    pub fn through(client: Client, base: &str, key: &str) -> Self {
        Self { client, base: base.to_owned(), key: key.to_owned(), timeout: super::patience(PATIENCE) }
    }

    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// The same client, for the process at this address.
    pub fn at(&self, address: std::net::SocketAddr) -> Self {
        Self { base: format!("http://{address}"), ..self.clone() }
    }

    /// The same client, whose connections come from another address of this machine.
    pub fn calling_from(&self, address: &str) -> Self {
        let client = plain_http().timeout(super::patience(PATIENCE));
        let client = client.local_address(Some(address.parse().expect("an address"))).build();
        Self { client: client.expect("client"), ..self.clone() }
    }

    /// The token.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The same client, but it waits this long for each answer.
    pub fn within(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// A request to a path under `/api/v1`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/api/v1{path}", self.base)).bearer_auth(&self.key).timeout(self.timeout)
    }

    /// A request with an idempotency key.
    pub fn keyed(&self, method: Method, path: &str, key: &str, body: impl Into<String>) -> RequestBuilder {
        let request = self.request(method, path).header("idempotency-key", key);
        request.header("content-type", "application/json").body(body.into())
    }

    /// A request to any path, or address of this service, without a token.
    pub fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        let path = path.strip_prefix(&self.base).unwrap_or(path);
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub async fn get(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        Reply::of(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        Reply::of(self.request(Method::PUT, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::DELETE, path)).await
    }

    /// The answer; `None` if there was none: no connection, or no answer in time.
    pub async fn try_post(&self, path: &str, body: &Value) -> Option<Reply> {
        Reply::try_of(self.request(Method::POST, path).json(body)).await
    }

    /// As [`Reply::retried_while_busy`].
    pub async fn retry_while_busy(&self, request: impl Fn() -> RequestBuilder) -> Reply {
        Reply::retried_while_busy(request).await
    }

    /// As [`Api::get`], with [`Reply::retried_while_busy`].
    pub async fn get_while_busy(&self, path: &str) -> Reply {
        self.retry_while_busy(|| self.request(Method::GET, path)).await
    }

    /// As [`Api::post`], with [`Reply::retried_while_busy`].
    pub async fn post_while_busy(&self, path: &str, body: &Value) -> Reply {
        self.retry_while_busy(|| self.request(Method::POST, path).json(body)).await
    }

    /// As [`Api::try_post`], with [`Reply::try_retried_while_busy`].
    pub async fn try_post_while_busy(&self, path: &str, body: &Value) -> Option<Reply> {
        Reply::try_retried_while_busy(|| self.request(Method::POST, path).json(body)).await
    }

    /// As [`Api::put`], with [`Reply::retried_while_busy`].
    pub async fn put_while_busy(&self, path: &str, body: &Value) -> Reply {
        self.retry_while_busy(|| self.request(Method::PUT, path).json(body)).await
    }

    /// As [`Api::delete`], with [`Reply::retried_while_busy`].
    pub async fn delete_while_busy(&self, path: &str) -> Reply {
        self.retry_while_busy(|| self.request(Method::DELETE, path)).await
    }

    pub async fn try_get(&self, path: &str) -> Option<Reply> {
        Reply::try_of(self.request(Method::GET, path)).await
    }

    /// Every row of a list, over all its pages.
    pub async fn all(&self, path: &str) -> Vec<Value> {
        let mut rows = Vec::new();
        let separator = if path.contains('?') { '&' } else { '?' };
        for page in 1.. {
            let mut reply = self.get_while_busy(&format!("{path}{separator}page={page}")).await;
            assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.body);
            rows.append(reply.body["data"].as_array_mut().expect("data is a list"));
            if reply.body["meta"]["hasMore"] == false {
                break;
            }
        }
        rows
    }
}

impl Reply {
    pub async fn of(request: RequestBuilder) -> Self {
        Self::try_of(request).await.expect("the service answers")
    }

    pub async fn try_of(request: RequestBuilder) -> Option<Self> {
        Self::result_of(request).await.ok()
    }

    /// Sends a request, and again while it is answered with `503`. Returns the last answer. On a slow machine some of
    /// many parallel requests get a `503`: a request waits three seconds for a connection to the database, and five for
    /// a lock or a statement. A plain change may have been made nevertheless, if its commit was not answered in time.
    pub async fn retried_while_busy(request: impl Fn() -> RequestBuilder) -> Self {
        Self::try_retried_while_busy(request).await.expect("the service answers")
    }

    /// The same; `None` once the service does not answer.
    pub async fn try_retried_while_busy(request: impl Fn() -> RequestBuilder) -> Option<Self> {
        let deadline = Instant::now() + super::patience(BUSY_TIME_MAX);
        loop {
            let is_late = Instant::now() >= deadline;
            let reply = Self::try_of(request()).await?;
            if reply.status != StatusCode::SERVICE_UNAVAILABLE || is_late {
                return Some(reply);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends a request. The error says why there is no answer.
    pub async fn result_of(request: RequestBuilder) -> reqwest::Result<Self> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        // A stream has no end: its body is not read here.
        let is_stream = headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let bytes = if is_stream { Default::default() } else { response.bytes().await? };
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|error| panic!("not JSON ({error}): {}", String::from_utf8_lossy(&bytes)))
        };
        Ok(Self { status, headers, body, bytes: bytes.to_vec() })
    }

    /// Whether this repeats the stored answer of an earlier request with the same idempotency key.
    pub fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replay").is_some_and(|header| header == "true")
    }

    /// The resource in the body. Fails if the status differs.
    #[track_caller]
    pub fn data(&self, status: u16) -> &Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        &self.body["data"]
    }

    /// The details of an error. Fails if the status or the code differs.
    #[track_caller]
    pub fn error(&self, status: u16, code: &str) -> &Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        assert_eq!(self.body["error"]["code"], code, "{}", self.body);
        assert!(self.body["error"]["message"].is_string(), "{}", self.body);
        &self.body["error"]["details"]
    }

    /// The fields a 422 names.
    #[track_caller]
    pub fn invalid_fields(&self) -> Vec<String> {
        let details = self.error(422, "ERR_API_VALIDATION").as_array().expect("details are a list");
        details
            .iter()
            .map(|detail| {
                assert!(detail["reason"].is_string() && detail["params"].is_object(), "{detail}");
                let code = detail["code"].as_str().unwrap_or_else(|| panic!("no code: {detail}"));
                assert!(reason_codes().contains(&code) && code != OTHER_REASON, "{detail} needs a form in reasons.rs");
                detail["field"].as_str().expect("a field is named").to_owned()
            })
            .collect()
    }
}
