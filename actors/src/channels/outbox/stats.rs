//! Statistics of messages on their way to providers, and of the providers' answers.

use std::sync::atomic::{AtomicU64, Ordering};

use super::channel_outbox::OutboxSnapshot;
use crate::channels::SendFailure;

/// The ways in which an attempt can end, as labels of their metric.
const LABELS: [&str; 6] = ["taken", "failed", "retried", "channel_paced", "recipient_paced", "token_refused"];

/// Counts attempts by how they ended.
#[derive(Debug, Default)]
pub(super) struct AttemptCounters {
    ends: [AtomicU64; LABELS.len()],
    given_up: AtomicU64,
}

impl AttemptCounters {
    /// The provider has accepted the message.
    pub(super) fn count_accepted(&self) {
        self.increment(0);
    }

    /// The provider has not accepted the message.
    pub(super) fn count_failure(&self, failure: &SendFailure) {
        self.increment(match failure {
            SendFailure::Failed(_) => 1,
            SendFailure::Retry { .. } | SendFailure::Unknown { .. } => 2,
            SendFailure::ChannelRateLimited { .. } => 3,
            SendFailure::RecipientRateLimited { .. } => 4,
            SendFailure::TokenRefused { .. } => 5,
        });
    }

    /// A message was given up because of its age.
    pub(super) fn count_given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an attempt; `label` is an index into [`LABELS`].
    fn increment(&self, label: usize) {
        self.ends[label].fetch_add(1, Ordering::Relaxed);
    }
}

/// Attempts that ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptCount {
    /// One of `taken`, `failed`, `retried`, `channel_paced`, `recipient_paced`, `token_refused`.
    pub end: &'static str,
    /// How many, since the process started.
    pub count: u64,
}

/// The outboxes of all channels together, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendingStats {
    /// Messages in memory that wait for their turn.
    pub waiting: usize,
    /// Messages whose attempt is under way: its start is being made durable, or the provider is being called.
    pub calling: usize,
    /// Messages whose outcome is decided but not yet durable.
    pub recording: usize,
    /// Channels with messages that are only in the tables.
    pub channels_behind: usize,
    /// Channels that have messages but may send none: not connected, or their token was refused.
    pub channels_held: usize,
    /// Attempts by their end.
    pub attempts: Vec<AttemptCount>,
    /// Messages that were given up because of their age.
    pub given_up: u64,
}

impl SendingStats {
    pub(super) fn of(attempts: &AttemptCounters, outboxes: impl Iterator<Item = OutboxSnapshot>) -> Self {
        let ends = LABELS.iter().zip(&attempts.ends);
        let mut stats = Self {
            attempts: ends.map(|(end, count)| AttemptCount { end, count: count.load(Ordering::Relaxed) }).collect(),
            given_up: attempts.given_up.load(Ordering::Relaxed),
            ..Self::default()
        };
        for outbox in outboxes {
            stats.waiting += outbox.count.saturating_sub(outbox.calls + outbox.unrecorded);
            stats.calling += outbox.calls;
            stats.recording += outbox.unrecorded;
            stats.channels_behind += usize::from(outbox.has_backlog);
            stats.channels_held += usize::from(outbox.is_blocked && (outbox.count > 0 || outbox.has_backlog));
        }
        stats
    }
}
