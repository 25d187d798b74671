//! Settings of sending.

use std::time::Duration;

/// How messages are handed over to providers. What a channel's own settings say of pace comes first.
#[derive(Clone, Debug)]
pub struct SendingOptions {
    /// Messages a second of one channel, 0: as many as go. Default 80, what a phone number may send.
    pub per_second: u32,
    /// Time between messages to one recipient, zero: none. Default 6 seconds, what a phone number may send to another.
    pub recipient_interval: Duration,
    /// Messages to one recipient that may go at once after a pause; they use up the time that follows. Default 45, what
    /// a phone number may send to another within 6 seconds.
    pub recipient_burst: u32,
    /// Calls of one channel that are under way at once. Default 64: enough for the default pace while the provider
    /// takes most of a second.
    pub in_flight_max: usize,
    /// Messages of one channel that the provider has, and that the disk is to know of next. Together with the calls
    /// under way they are what a kill may double. Default 256: a disk that takes 10 ms for a sync holds up nobody below
    /// 20,000 messages a second, and at the usual pace there is hardly ever more than one.
    pub unnoted_max: usize,
    /// Messages of one channel in memory; the others wait in the tables. Default 2,000.
    pub held_max: usize,
    /// Bytes of their texts. Default 4 MiB.
    pub held_bytes_max: usize,
    /// Longest pause after the first failure of an attempt; it doubles with each. Default a second.
    pub retry_pause_min: Duration,
    /// Longest pause there is. Default a minute.
    pub retry_pause_max: Duration,
    /// How old a message may be when an attempt fails for it to be tried again. Default 24 hours.
    pub give_up_after: Duration,
}

impl Default for SendingOptions {
    fn default() -> Self {
        Self {
            per_second: 80,
            recipient_interval: Duration::from_secs(6),
            recipient_burst: 45,
            in_flight_max: 64,
            unnoted_max: 256,
            held_max: 2000,
            held_bytes_max: 4 << 20,
            retry_pause_min: Duration::from_secs(1),
            retry_pause_max: Duration::from_secs(60),
            give_up_after: Duration::from_secs(24 * 3600),
        }
    }
}
