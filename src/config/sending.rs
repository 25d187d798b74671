//! The options for sending messages to providers.

use std::time::Duration;

use clap::Args;
use hotline_actors::channels::SendingOptions;
use ipnet::IpNet;

use crate::outbound::OutboundOptions;
use crate::providers::ProviderOptions;
use crate::web_address;

/// Upper bounds of times: more than a week is an error.
const SECONDS_MAX: u64 = 8 * 24 * 3600;
const MILLISECONDS_MAX: u64 = SECONDS_MAX * 1000;

/// The providers, and the pace and retries of sending. Settings of a channel take precedence.
#[derive(Args, Clone, Debug)]
pub struct SendingArgs {
    /// URL of the providers' Graph API, for channels without their own
    #[arg(long, env = "HOTLINE_PROVIDER_URL", default_value = "https://graph.facebook.com", value_name = "URL",
        value_parser = provider_url)]
    pub provider_url: String,
    /// Version of the Graph API, the first segment of every path
    #[arg(long, env = "HOTLINE_PROVIDER_VERSION", default_value = "v23.0", value_name = "VERSION",
        value_parser = version)]
    pub provider_version: String,
    /// Timeout of a call to a provider, in seconds
    #[arg(long, env = "HOTLINE_PROVIDER_TIMEOUT_S", default_value_t = 30, value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=600))]
    pub provider_timeout_s: u64,
    /// Private network that files may be fetched from and that a provider URL set in the panel may point to, also
    /// over http (repeatable or comma-separated)
    #[arg(long, env = "HOTLINE_FETCH_ALLOW_NETWORK", value_delimiter = ',', value_parser = super::network,
        value_name = "IP|CIDR")]
    pub fetch_allow_network: Vec<IpNet>,
    /// Maximum messages per second and channel; 0 for no limit
    #[arg(long, env = "HOTLINE_SENDS_PER_SECOND", default_value_t = 80, value_name = "MESSAGES")]
    pub sends_per_second: u32,
    /// Minimum milliseconds between messages of a channel to the same recipient; 0 for none
    #[arg(long, env = "HOTLINE_RECIPIENT_INTERVAL_MS", default_value_t = 6000, value_name = "MILLISECONDS",
        value_parser = clap::value_parser!(u64).range(..=MILLISECONDS_MAX))]
    pub recipient_interval_ms: u64,
    /// Maximum messages sent at once to the same recipient after a pause; they use up the intervals that follow
    #[arg(long, env = "HOTLINE_RECIPIENT_BURST", default_value_t = 45, value_name = "MESSAGES",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub recipient_burst: u32,
    /// Maximum concurrent provider calls per channel. After a crash, these and up to 256 more messages may be sent
    /// twice
    #[arg(long, env = "HOTLINE_SENDS_IN_FLIGHT_MAX", default_value_t = 64, value_name = "MESSAGES",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sends_in_flight_max: u32,
    /// Maximum delay before the first retry of a send, in milliseconds; doubled after each further failure
    #[arg(long, env = "HOTLINE_SEND_RETRY_MS", default_value_t = 1000, value_name = "MILLISECONDS",
        value_parser = clap::value_parser!(u64).range(1..=MILLISECONDS_MAX))]
    pub send_retry_ms: u64,
    /// Maximum delay between two retries, in milliseconds
    #[arg(long, env = "HOTLINE_SEND_RETRY_MAX_MS", default_value_t = 60_000, value_name = "MILLISECONDS",
        value_parser = clap::value_parser!(u64).range(1..=MILLISECONDS_MAX))]
    pub send_retry_max_ms: u64,
    /// Seconds after which an unsent message is marked as failed
    #[arg(long, env = "HOTLINE_SEND_GIVE_UP_AFTER_S", default_value_t = 86_400, value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(..=SECONDS_MAX))]
    pub send_give_up_after_s: u64,
}

impl SendingArgs {
    /// The settings of the senders.
    pub fn sending(&self) -> SendingOptions {
        SendingOptions {
            per_second: self.sends_per_second,
            recipient_interval: Duration::from_millis(self.recipient_interval_ms),
            recipient_burst: self.recipient_burst,
            in_flight_max: usize::try_from(self.sends_in_flight_max).unwrap_or(usize::MAX),
            retry_pause_min: Duration::from_millis(self.send_retry_ms),
            retry_pause_max: Duration::from_millis(self.send_retry_max_ms.max(self.send_retry_ms)),
            give_up_after: Duration::from_secs(self.send_give_up_after_s),
            ..SendingOptions::default()
        }
    }

    /// The settings for calling providers.
    pub fn provider(&self) -> ProviderOptions {
        ProviderOptions {
            url: self.provider_url.clone(),
            version: self.provider_version.clone(),
            call_time_max: Duration::from_secs(self.provider_timeout_s),
        }
    }

    /// The settings for calling URLs that the operator does not control.
    pub fn outbound(&self) -> OutboundOptions {
        OutboundOptions {
            allowed_networks: self.fetch_allow_network.clone(),
            call_time_max: Duration::from_secs(self.provider_timeout_s),
        }
    }
}

/// Paths are appended to the URL, so it must end without a slash.
fn provider_url(text: &str) -> Result<String, String> {
    let url = web_address::parse(text).ok().filter(|url| url.query().is_none() && url.fragment().is_none());
    match url {
        Some(url) => Ok(url.as_str().trim_end_matches('/').to_owned()),
        None => Err("must be an http or https URL without a query".to_owned()),
    }
}

/// A single path segment.
fn version(text: &str) -> Result<String, String> {
    let is_one = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    if is_one { Ok(text.to_owned()) } else { Err("must consist of letters, digits, `.`, `-` and `_`".to_owned()) }
}
