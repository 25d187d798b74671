//! How much is on its way to providers, and what they have said so far.

use std::sync::atomic::{AtomicU64, Ordering};

use super::held::OutboxState;
use crate::channels::SendFailure;

/// How an attempt to hand a message over may end, by the word it is shown under.
const ENDS: [&str; 6] = ["taken", "failed", "retried", "channel_paced", "recipient_paced", "token_refused"];

/// Counts how attempts ended.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    ends: [AtomicU64; ENDS.len()],
    given_up: AtomicU64,
}

impl Attempts {
    /// The provider has the message.
    pub(super) fn taken(&self) {
        self.count(0);
    }

    /// It has it not.
    pub(super) fn not_taken(&self, failure: &SendFailure) {
        self.count(match failure {
            SendFailure::Failed(_) => 1,
            SendFailure::Retry { .. } => 2,
            SendFailure::ChannelPaced { .. } => 3,
            SendFailure::RecipientPaced { .. } => 4,
            SendFailure::TokenRefused { .. } => 5,
        });
    }

    /// A message is too old to be tried again.
    pub(super) fn gave_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self, end: usize) {
        self.ends[end].fetch_add(1, Ordering::Relaxed);
    }
}

/// Attempts that ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// In which: `taken`, `failed`, `retried`, `channel_paced`, `recipient_paced`, `token_refused`.
    pub end: &'static str,
    /// How many, since the start.
    pub count: u64,
}

/// The outboxes of every channel together, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendingFigures {
    /// Messages in memory that wait for their turn.
    pub waiting: usize,
    /// Messages that are being handed over.
    pub calling: usize,
    /// Messages the provider has decided about, and the disk is to know of.
    pub noting: usize,
    /// Channels of which the tables hold more than memory does.
    pub channels_behind: usize,
    /// Channels that have messages and may send none: not connected, or their token is refused.
    pub channels_held: usize,
    /// How attempts ended.
    pub attempts: Vec<Attempted>,
    /// Messages that were given up for their age.
    pub given_up: u64,
}

impl SendingFigures {
    pub(super) fn of(attempts: &Attempts, outboxes: impl Iterator<Item = OutboxState>) -> Self {
        let ends = ENDS.iter().zip(&attempts.ends);
        let mut figures = Self {
            attempts: ends.map(|(end, count)| Attempted { end, count: count.load(Ordering::Relaxed) }).collect(),
            given_up: attempts.given_up.load(Ordering::Relaxed),
            ..Self::default()
        };
        for shown in outboxes {
            figures.waiting += shown.count.saturating_sub(shown.calls + shown.unnoted);
            figures.calling += shown.calls;
            figures.noting += shown.unnoted;
            figures.channels_behind += usize::from(shown.is_behind);
            figures.channels_held += usize::from(shown.is_held && (shown.count > 0 || shown.is_behind));
        }
        figures
    }
}
