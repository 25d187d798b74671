//! Settings for sending messages to providers.

use std::time::Duration;

/// How messages are sent to providers. A channel's own rate limits take precedence.
#[derive(Clone, Debug)]
pub struct SendingOptions {
    /// Maximum messages of one channel in any second; 0: without limit. Default 80, the limit of a phone number.
    pub per_second: u32,
    /// Minimum time between messages to one recipient; zero: none. Default 6 seconds, the provider's limit for a pair
    /// of numbers.
    pub recipient_interval: Duration,
    /// Maximum messages to one recipient sent at once after a pause; they use up the intervals that follow. Default 45,
    /// the provider's limit for a pair of numbers within 6 seconds.
    pub recipient_burst: u32,
    /// Maximum concurrent calls of one channel. Default 64: enough for the default rate while a call takes up to 0.8
    /// seconds.
    pub in_flight_max: usize,
    /// Maximum messages of one channel whose outcome is decided but not yet durable. These and the concurrent calls are
    /// the messages that may be sent twice after a crash. Default 256: a disk that takes 10 ms for a sync delays
    /// nothing below 20,000 messages a second. At the default rate there is rarely more than one.
    pub unrecorded_max: usize,
    /// Maximum messages of one channel in memory; further ones wait in the tables. Default 2,000.
    pub memory_messages_max: usize,
    /// Maximum bytes in memory of one channel's messages. Default 4 MiB.
    pub memory_bytes_max: usize,
    /// The longest random pause after a message's first failed attempt; it doubles with each further failure. Default 1
    /// second.
    pub retry_pause_min: Duration,
    /// The longest pause after any number of failures. Default 1 minute.
    pub retry_pause_max: Duration,
    /// How long a message whose answer was lost waits for a status that names it, before it is sent again. Default 1
    /// minute: statuses follow within seconds.
    pub outcome_wait: Duration,
    /// Age from which a message is given up when an attempt fails. Default 24 hours.
    pub give_up_after: Duration,
}

impl Default for SendingOptions {
    fn default() -> Self {
        Self {
            per_second: 80,
            recipient_interval: Duration::from_secs(6),
            recipient_burst: 45,
            in_flight_max: 64,
            unrecorded_max: 256,
            memory_messages_max: 2000,
            memory_bytes_max: 4 << 20,
            retry_pause_min: Duration::from_secs(1),
            retry_pause_max: Duration::from_secs(60),
            outcome_wait: Duration::from_secs(60),
            give_up_after: Duration::from_secs(24 * 3600),
        }
    }
}
