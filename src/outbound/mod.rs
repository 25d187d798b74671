//! The only client for URLs that the operator does not control: a file a contact sent, or any other URL from a
//! provider, a visitor or a company. Anyone may choose such a URL, so it must lead only to the public internet: not to
//! this machine, not to the operator's network, and not to a cloud's metadata service with its secrets.
//!
//! The checks, and when they happen:
//!
//! - the URL, before the request: `https`, no user or password, and a host. If the host is an IP address in any
//!   notation, it must be reachable by the rules ([`NetworkPolicy`]);
//! - the addresses of a host name, when connecting: the connector receives only permitted addresses
//!   (`FilteringResolver`), so DNS cannot give one address to the check and another one to the connection;
//! - every redirect, like the first URL, and at most `REDIRECTS_MAX` of them. A token is sent only to the origin it was
//!   meant for.
//!
//! Proxies from the environment are ignored: a proxy would connect in place of this process, and bypass all these
//! checks. The clients do not use HTTP/2: a foreign server gets only the memory that one response needs. Connections to
//! file servers are not reused; those to webhooks are, because the next delivery follows soon.
//!
//! The operator may allow networks (`--fetch-allow-network`), for a provider of their own or a stub. Within those,
//! `http` is allowed too.
//!
//! Providers at a URL from a channel's settings ([`Outbound::request`]) have their own client: the same rules,
//! reused connections, and no redirects, so that a token is sent only to the configured address.
//!
//! Webhooks ([`Outbound::post`]) have their own client with stricter rules: their own allowed networks
//! (`--webhook-allow-network`), `http` only to this machine, and no redirects.

mod network_policy;
mod resolver;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response, StatusCode};
use url::{Host, Url};

pub use self::network_policy::NetworkPolicy;
use self::resolver::{FilteringResolver, NoPermittedAddress};
pub use self::resolver::{Lookup, SystemLookup};

/// Timeout for connecting.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum number of redirects. The providers' own file servers need one.
const REDIRECTS_MAX: usize = 3;

/// Maximum length of a URL. Providers' URLs have a few hundred bytes.
const URL_BYTES_MAX: usize = 8 * 1024;

/// Maximum characters in the text of a failure. The text about a certificate contains all of its names, which the
/// foreign server chooses.
const FAILURE_CHARACTERS_MAX: usize = 300;

/// Maximum number of idle connections per host that are kept for the next request, and for how long. A busy host has
/// them open anyway; thousands of quiet ones must not occupy file descriptors.
const IDLE_PER_HOST_MAX: usize = 16;
const IDLE_TIME_MAX: Duration = Duration::from_secs(10);

/// The networks that may be reached, and the timeout.
#[derive(Clone, Debug)]
pub struct OutboundOptions {
    /// Non-public networks that may be reached, also over `http`; webhooks use `http` only to this machine.
    pub allowed_networks: Vec<IpNet>,
    /// Timeout of a call, from connecting to the end of the response. For a file, it limits the time until the response
    /// begins, and each pause in it. A redirect is another call. Default: 30 seconds.
    pub call_time_max: Duration,
}

impl Default for OutboundOptions {
    fn default() -> Self {
        Self { allowed_networks: Vec::new(), call_time_max: Duration::from_secs(30) }
    }
}

/// The guarded client. Cheap to clone.
#[derive(Clone)]
pub struct Outbound {
    /// For `https`: reaches public and allowed networks.
    https_client: Client,
    /// For `http`: reaches only allowed networks.
    http_client: Client,
    policy: Arc<NetworkPolicy>,
    call_time_max: Duration,
}

/// Sets the timeout of a client's calls.
type SetTimeout = fn(ClientBuilder, Duration) -> ClientBuilder;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The URL is not allowed, or none of its host's addresses is.
    #[error("the URL is not allowed: {0}")]
    Forbidden(&'static str),
    /// The server could not be reached, or did not respond in time.
    #[error("the request failed: {0}")]
    Unreachable(String),
    /// The response was not a success. Its body is not read.
    #[error("the host responded with status {0}")]
    Status(u16),
}

impl Outbound {
    /// The client for files, with the system's resolver.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(options: &OutboundOptions) -> Result<Self, reqwest::Error> {
        Self::with_lookup(options, Arc::new(SystemLookup))
    }

    /// The client for files, with another resolver.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn with_lookup(options: &OutboundOptions, lookup: Arc<dyn Lookup>) -> Result<Self, reqwest::Error> {
        let policy = NetworkPolicy::new(options.allowed_networks.clone());
        // A large file may take long, so only pauses are limited. The caller enforces a minimum rate.
        Self::build(options, lookup, policy, 0, ClientBuilder::read_timeout)
    }

    /// The client for webhooks: without TLS only to this machine, if the operator has allowed that.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn for_webhooks(options: &OutboundOptions, lookup: Arc<dyn Lookup>) -> Result<Self, reqwest::Error> {
        let policy = NetworkPolicy::strict(options.allowed_networks.clone());
        Self::build(options, lookup, policy, IDLE_PER_HOST_MAX, ClientBuilder::timeout)
    }

    /// The client for providers at a URL from a channel's settings.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn for_providers(options: &OutboundOptions) -> Result<Self, reqwest::Error> {
        let policy = NetworkPolicy::new(options.allowed_networks.clone());
        Self::build(options, Arc::new(SystemLookup), policy, IDLE_PER_HOST_MAX, ClientBuilder::timeout)
    }

    fn build(
        options: &OutboundOptions,
        lookup: Arc<dyn Lookup>,
        policy: NetworkPolicy,
        idle_per_host_max: usize,
        set_timeout: SetTimeout,
    ) -> Result<Self, reqwest::Error> {
        let policy = Arc::new(policy);
        let build_client = |is_secure: bool| {
            let resolver = FilteringResolver::new(lookup.clone(), policy.clone(), is_secure);
            set_timeout(crate::tls::http1_client(), options.call_time_max)
                .user_agent(concat!("hotline/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIME_MAX)
                .pool_max_idle_per_host(idle_per_host_max)
                .pool_idle_timeout(IDLE_TIME_MAX)
                .tcp_nodelay(true)
                .https_only(is_secure)
                .no_proxy()
                .redirect(Policy::none())
                .referer(false)
                .dns_resolver(Arc::new(resolver))
                .build()
        };
        Ok(Self {
            https_client: build_client(true)?,
            http_client: build_client(false)?,
            policy,
            call_time_max: options.call_time_max,
        })
    }

    /// The timeout of a call.
    pub fn call_time_max(&self) -> Duration {
        self.call_time_max
    }

    /// Requests a URL, and follows redirects. The response's body is not read yet; the caller must limit its size and
    /// time.
    ///
    /// # Errors
    /// Why the call failed.
    pub async fn get(&self, url: &str, bearer: Option<&str>) -> Result<Response, OutboundError> {
        let mut url = parse(url)?;
        let first_origin = url.origin();
        for _ in 0..=REDIRECTS_MAX {
            let client = self.client_for(&url)?;
            // The token is sent only to the origin it was meant for.
            let token = bearer.filter(|_| url.origin() == first_origin);
            let request = client.get(url.clone());
            let request = match token {
                Some(token) => request.bearer_auth(token),
                None => request,
            };
            let response = request.send().await.map_err(describe_failure)?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            match redirect_location(status, response.headers()) {
                Some(location) => url = parse_redirect(&url, location)?,
                None => return Err(OutboundError::Status(status.as_u16())),
            }
        }
        Err(OutboundError::Unreachable(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// Checks a URL without resolving its host, which is checked when connecting.
    ///
    /// # Errors
    /// [`OutboundError::Forbidden`] when the URL is not allowed.
    pub fn check_url(&self, url: &str) -> Result<(), OutboundError> {
        self.client_for(&parse(url)?).map(|_| ())
    }

    /// Sends JSON to a URL, and returns any response without following redirects. The response's body is not read yet;
    /// the caller must limit it.
    ///
    /// # Errors
    /// Why there was no response.
    pub async fn post(&self, url: &str, headers: HeaderMap, json: Bytes) -> Result<Response, OutboundError> {
        let url = parse(url)?;
        let request = self.client_for(&url)?.post(url).header(CONTENT_TYPE, "application/json").headers(headers);
        request.body(json).send().await.map_err(describe_failure)
    }

    /// A request to a URL that follows no redirect. [`describe_failure`] says why it got no response.
    ///
    /// # Errors
    /// [`OutboundError::Forbidden`] when the URL is not allowed.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, OutboundError> {
        let url = parse(url)?;
        Ok(self.client_for(&url)?.request(method, url))
    }

    /// Checks a URL, and returns the client for it.
    fn client_for(&self, url: &Url) -> Result<&Client, OutboundError> {
        let is_secure = match url.scheme() {
            "https" => true,
            "http" if self.policy.has_allowed_networks() => false,
            "http" => return Err(OutboundError::Forbidden("it must start with https://")),
            _ => return Err(OutboundError::Forbidden("it is not a valid URL")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutboundError::Forbidden("it contains credentials"));
        }
        // An IP address as host needs no resolver, so it must be checked here.
        let address = match url.host() {
            Some(Host::Domain(_)) => None,
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            None => return Err(OutboundError::Forbidden("it has no host")),
        };
        if address.is_some_and(|address| !self.policy.permits(address, is_secure)) {
            return Err(OutboundError::Forbidden("it points to a private network"));
        }
        Ok(if is_secure { &self.https_client } else { &self.http_client })
    }
}

fn parse(text: &str) -> Result<Url, OutboundError> {
    if text.len() > URL_BYTES_MAX {
        return Err(OutboundError::Forbidden("it is too long"));
    }
    Url::parse(text).map_err(|_| OutboundError::Forbidden("it is not a valid URL"))
}

fn parse_redirect(base: &Url, location: &str) -> Result<Url, OutboundError> {
    if location.len() > URL_BYTES_MAX {
        return Err(OutboundError::Forbidden("it is too long"));
    }
    base.join(location).map_err(|_| OutboundError::Forbidden("it redirects to an invalid URL"))
}

fn redirect_location(status: StatusCode, headers: &HeaderMap) -> Option<&str> {
    let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    headers.get(LOCATION).filter(|_| is_redirect)?.to_str().ok()
}

/// Why a request got no response. The text appears in logs and in stored errors, so it must not contain the URL, which
/// may be secret.
pub fn describe_failure(error: reqwest::Error) -> OutboundError {
    let error = error.without_url();
    let mut source = Some(&error as &dyn Error);
    let mut last_cause = String::new();
    while let Some(cause) = source {
        if cause.is::<NoPermittedAddress>() {
            return OutboundError::Forbidden("its host resolves to a private network");
        }
        last_cause = cause.to_string().chars().take(FAILURE_CHARACTERS_MAX).collect();
        source = cause.source();
    }
    OutboundError::Unreachable(if error.is_timeout() { "no response in time".to_owned() } else { last_cause })
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic)] // A test that meets the unexpected fails loudly.
mod tests;
