//! The one way to an address that is not the operator's own: a file a contact sent, or whatever else a provider, a
//! visitor or a company names. Such an address may be anybody's choice, so it must lead nowhere but to the public
//! internet: not to this machine, not to the operator's network, not to the address where a cloud tells its secrets.
//!
//! What is checked, and when:
//!
//! - the address, before anything is asked for: `https`, no user or password in it, a host, and if the host is an IP
//!   address however it is spelled, one that may be reached ([`Reach`]);
//! - what a name means, in the moment of the connection: only the addresses that may be reached are handed to the
//!   connector (`Guarded`), so nobody can answer one address to the check and another one to the connection;
//! - every redirect, as if it were the first address, and at most `REDIRECTS_MAX` of them. A token goes to the origin
//!   it was meant for and to no other.
//!
//! No proxy of the environment is used: it would connect in place of this process, and none of this would hold. None
//! speaks HTTP/2: a stranger's server gets what one answer needs. Of a file's server no connection is kept for the next
//! call; those that are told of events have the next one soon.
//!
//! The operator may open networks (`--fetch-allow-network`): a provider of their own, or a stub of one. Within those
//! `http` is allowed too.
//!
//! Webhooks ([`Outbound::post`]) have a client of their own with stricter rules: networks of their own
//! (`--webhook-allow-network`), `http` to this machine alone, and no redirects.

mod reach;
mod resolver;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use url::{Host, Url};

pub use self::reach::Reach;
use self::resolver::{Guarded, NotReached};
pub use self::resolver::{Lookup, SystemLookup};

/// How long a connection may take to be made.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Redirects that are followed. The providers' own file servers need one.
const REDIRECTS_MAX: usize = 3;

/// Bytes of an address. Those of the providers have some hundred.
const URL_BYTES_MAX: usize = 8 * 1024;

/// Connections to one address that are kept for the next delivery, and for how long: an endpoint that is told much has
/// them open anyway, and of thousands that are told little none may hold file descriptors.
const KEPT_PER_HOST: usize = 16;
const KEPT_FOR: Duration = Duration::from_secs(10);

/// What may be fetched, and how long that may take.
#[derive(Clone, Debug)]
pub struct OutboundOptions {
    /// Networks that may be reached although they are not public, also over `http`.
    pub allowed_networks: Vec<IpNet>,
    /// Longest a call may take, from the connection to the end of the answer. Default 30 seconds.
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
    /// Reaches what is public, and what the operator opened.
    secure: Client,
    /// Reaches what the operator opened.
    plain: Client,
    reach: Arc<Reach>,
}

/// Why an address did not bring what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// It is none that is ever asked.
    #[error("the address is not allowed: {0}")]
    Forbidden(&'static str),
    /// Nobody was there, or no answer came in time.
    #[error("the address is not reached: {0}")]
    Unreachable(String),
    /// The answer was no success. Of what it says nothing is read.
    #[error("the address answered {0}")]
    Status(u16),
}

impl Outbound {
    /// With the names of the system.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub fn new(options: &OutboundOptions) -> Result<Self, reqwest::Error> {
        Self::with_lookup(options, Arc::new(SystemLookup))
    }

    /// With other names.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub fn with_lookup(options: &OutboundOptions, lookup: Arc<dyn Lookup>) -> Result<Self, reqwest::Error> {
        Self::build(options, lookup, Reach::new(options.allowed_networks.clone()), 0)
    }

    /// The same for webhooks: only within this machine without TLS, where the operator opened that.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub fn of_webhooks(options: &OutboundOptions, lookup: Arc<dyn Lookup>) -> Result<Self, reqwest::Error> {
        Self::build(options, lookup, Reach::strict(options.allowed_networks.clone()), KEPT_PER_HOST)
    }

    fn build(
        options: &OutboundOptions,
        lookup: Arc<dyn Lookup>,
        reach: Reach,
        kept_per_host: usize,
    ) -> Result<Self, reqwest::Error> {
        let reach = Arc::new(reach);
        let client = |is_secure: bool| {
            let guarded = Guarded::new(lookup.clone(), reach.clone(), is_secure);
            crate::tls::client()
                .user_agent(concat!("hotline/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIME_MAX)
                .timeout(options.call_time_max)
                .pool_max_idle_per_host(kept_per_host)
                .pool_idle_timeout(KEPT_FOR)
                .tcp_nodelay(true)
                .http1_only()
                .https_only(is_secure)
                .no_proxy()
                .redirect(Policy::none())
                .referer(false)
                .dns_resolver(Arc::new(guarded))
                .build()
        };
        Ok(Self { secure: client(true)?, plain: client(false)?, reach })
    }

    /// Begins to read what lies at an address. The answer's body is not read yet: whoever does bounds it.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub async fn get(&self, address: &str, bearer: Option<&str>) -> Result<Response, OutboundError> {
        let mut url = parse(address)?;
        let asked = url.origin();
        for _ in 0..=REDIRECTS_MAX {
            let client = self.check(&url)?;
            // A token is shown to the address it was meant for, and to no other.
            let shown = bearer.filter(|_| url.origin() == asked);
            let request = client.get(url.clone());
            let request = match shown {
                Some(token) => request.bearer_auth(token),
                None => request,
            };
            let response = request.send().await.map_err(failure)?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            match elsewhere(status, response.headers()) {
                Some(location) => url = parse_from(&url, location)?,
                None => return Err(OutboundError::Status(status.as_u16())),
            }
        }
        Err(OutboundError::Unreachable(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// Whether an address may be called, as far as it says by itself: what its name means is seen when it is.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_call(&self, address: &str) -> Result<(), OutboundError> {
        self.check(&parse(address)?).map(|_| ())
    }

    /// Sends JSON to an address, and answers whatever comes back: no redirect is followed. The answer's body is not read
    /// yet: whoever does bounds it.
    ///
    /// # Errors
    /// Why nothing came back.
    pub async fn post(&self, address: &str, headers: HeaderMap, json: Bytes) -> Result<Response, OutboundError> {
        let url = parse(address)?;
        let request = self.check(&url)?.post(url).header(CONTENT_TYPE, "application/json").headers(headers);
        request.body(json).send().await.map_err(failure)
    }

    /// The client that may be used for an address.
    fn check(&self, url: &Url) -> Result<&Client, OutboundError> {
        let is_secure = match url.scheme() {
            "https" => true,
            "http" if self.reach.has_allowed() => false,
            "http" => return Err(OutboundError::Forbidden("it must begin with https://")),
            _ => return Err(OutboundError::Forbidden("it is no address of the web")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutboundError::Forbidden("it names a user"));
        }
        // For these no name is looked up, so nobody else would look at them.
        let address = match url.host() {
            Some(Host::Domain(_)) => None,
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            None => return Err(OutboundError::Forbidden("it names no host")),
        };
        if address.is_some_and(|address| !self.reach.permits(address, is_secure)) {
            return Err(OutboundError::Forbidden("it leads into a network that is not public"));
        }
        Ok(if is_secure { &self.secure } else { &self.plain })
    }
}

fn parse(address: &str) -> Result<Url, OutboundError> {
    if address.len() > URL_BYTES_MAX {
        return Err(OutboundError::Forbidden("it is too long"));
    }
    Url::parse(address).map_err(|_| OutboundError::Forbidden("it is no address of the web"))
}

fn parse_from(base: &Url, location: &str) -> Result<Url, OutboundError> {
    if location.len() > URL_BYTES_MAX {
        return Err(OutboundError::Forbidden("it is too long"));
    }
    base.join(location).map_err(|_| OutboundError::Forbidden("it leads to no address of the web"))
}

fn elsewhere(status: StatusCode, headers: &HeaderMap) -> Option<&str> {
    let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    headers.get(LOCATION).filter(|_| is_redirect)?.to_str().ok()
}

/// What is told of it goes into logs and messages: no address, which may hold what nobody else should know.
fn failure(error: reqwest::Error) -> OutboundError {
    let error = error.without_url();
    let mut source = Some(&error as &dyn Error);
    let mut last = String::new();
    while let Some(cause) = source {
        if cause.is::<NotReached>() {
            return OutboundError::Forbidden("its name leads into a network that is not public");
        }
        last = cause.to_string();
        source = cause.source();
    }
    OutboundError::Unreachable(if error.is_timeout() { "no answer in time".to_owned() } else { last })
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic)] // A test that meets the unexpected fails loudly.
mod tests;
