//! The options for sending messages to providers.

use std::time::Duration;

use chrono::TimeDelta;
use clap::Args;
use hotline_actors::channels::SendingOptions;
use ipnet::IpNet;

use super::units::{self, HOUR, MILLISECOND, SECOND};
use crate::outbound::OutboundOptions;
use crate::providers::ProviderOptions;
use crate::web_address;

/// Upper bound of intervals, delays and the time to give up: 8 days. A longer one is probably a mistake.
const TIME_MAX: Duration = Duration::from_secs(8 * 24 * 3600);

/// Upper bound of the timeout of a call to a provider.
const CALL_TIME_MAX: Duration = Duration::from_secs(600);

/// Upper bound of the conversation window: a leap year.
const CONVERSATION_WINDOW_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

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
    /// Timeout of a call to a provider
    #[arg(long, alias = "provider-timeout-s", env = "HOTLINE_PROVIDER_TIMEOUT", default_value = "30s",
        value_name = "DURATION", value_parser = units::durations(SECOND, SECOND..=CALL_TIME_MAX))]
    pub provider_timeout: Duration,
    /// Time after a contact's last message in which a phone channel accepts any message; afterwards only templates.
    /// 0 for providers without such a window
    #[arg(long, alias = "conversation-window-hours", env = "HOTLINE_CONVERSATION_WINDOW", default_value = "24h",
        value_name = "DURATION", value_parser = units::durations(HOUR, Duration::ZERO..=CONVERSATION_WINDOW_MAX))]
    pub conversation_window: Duration,
    /// Maximum messages per second and channel; 0 for no limit
    #[arg(long, env = "HOTLINE_SENDS_PER_SECOND", default_value_t = 80, value_name = "COUNT")]
    pub sends_per_second: u32,
    /// Minimum time between messages of a channel to the same recipient; 0 for none
    #[arg(long, alias = "recipient-interval-ms", env = "HOTLINE_RECIPIENT_INTERVAL", default_value = "6s",
        value_name = "DURATION", value_parser = units::durations(MILLISECOND, Duration::ZERO..=TIME_MAX))]
    pub recipient_interval: Duration,
    /// Maximum messages sent at once to the same recipient after a pause; they use up the intervals that follow
    #[arg(long, env = "HOTLINE_RECIPIENT_BURST", default_value_t = 45, value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub recipient_burst: u32,
    /// Maximum concurrent provider calls per channel. After a crash, these and up to 256 more messages may be sent
    /// twice
    #[arg(long, alias = "sends-in-flight-max", env = "HOTLINE_MAX_SENDS_IN_FLIGHT", default_value_t = 64,
        value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_sends_in_flight: u32,
    /// Maximum delay before the first retry of a send; doubled after each further failure
    #[arg(long, alias = "send-retry-ms", env = "HOTLINE_SEND_RETRY_DELAY", default_value = "1s",
        value_name = "DURATION", value_parser = units::durations(MILLISECOND, MILLISECOND..=TIME_MAX))]
    pub send_retry_delay: Duration,
    /// Maximum delay between two retries
    #[arg(long, alias = "send-retry-max-ms", env = "HOTLINE_SEND_RETRY_MAX_DELAY", default_value = "1m",
        value_name = "DURATION", value_parser = units::durations(MILLISECOND, MILLISECOND..=TIME_MAX))]
    pub send_retry_max_delay: Duration,
    /// Time after which an unsent message is marked as failed
    #[arg(long, alias = "send-give-up-after-s", env = "HOTLINE_SEND_GIVE_UP_AFTER", default_value = "24h",
        value_name = "DURATION", value_parser = units::durations(SECOND, Duration::ZERO..=TIME_MAX))]
    pub send_give_up_after: Duration,
}

impl SendingArgs {
    /// The settings of the senders.
    pub fn sending(&self) -> SendingOptions {
        SendingOptions {
            per_second: self.sends_per_second,
            recipient_interval: self.recipient_interval,
            recipient_burst: self.recipient_burst,
            in_flight_max: usize::try_from(self.max_sends_in_flight).unwrap_or(usize::MAX),
            retry_pause_min: self.send_retry_delay,
            retry_pause_max: self.send_retry_max_delay.max(self.send_retry_delay),
            give_up_after: self.send_give_up_after,
            ..SendingOptions::default()
        }
    }

    /// The conversation window; `None`: there is none.
    ///
    /// # Errors
    /// When it is too long, which cannot happen: the parser has refused such a value.
    pub fn conversation_window(&self) -> Result<Option<TimeDelta>, String> {
        let window = Some(self.conversation_window).filter(|window| !window.is_zero()).map(TimeDelta::from_std);
        window.transpose().map_err(|error| format!("--conversation-window: {error}"))
    }

    /// The settings for calling providers.
    pub fn provider(&self) -> ProviderOptions {
        ProviderOptions {
            url: self.provider_url.clone(),
            version: self.provider_version.clone(),
            call_time_max: self.provider_timeout,
        }
    }

    /// The settings for calling URLs that the operator does not control.
    pub fn outbound(&self, networks: &[IpNet]) -> OutboundOptions {
        OutboundOptions { allowed_networks: networks.to_vec(), call_time_max: self.provider_timeout }
    }
}

/// Parses the URL of a provider. Paths are appended to it, so trailing slashes are removed.
fn provider_url(text: &str) -> Result<String, String> {
    let url = web_address::parse(text).ok().filter(|url| url.query().is_none() && url.fragment().is_none());
    match url {
        Some(url) => Ok(url.as_str().trim_end_matches('/').to_owned()),
        None => Err("must be an http or https URL without a query".to_owned()),
    }
}

/// Parses the version of a provider's API: a single path segment.
fn version(text: &str) -> Result<String, String> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    if is_valid { Ok(text.to_owned()) } else { Err("must consist of letters, digits, `.`, `-` and `_`".to_owned()) }
}
