//! What providers have told since the start.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// What may become of one thing a provider tells, by the word it is shown under.
const ENDS: [&str; 5] = ["taken", "repeated", "ignored", "unreadable", "refused"];

/// What became of a call's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = HookReport)]
pub struct Tally {
    /// Taken now.
    pub taken: usize,
    /// Taken before: the call, or a part of it, is a repetition.
    pub repeated: usize,
    /// Nothing a conversation has a place for.
    pub ignored: usize,
    /// Nothing anybody can read.
    pub unreadable: usize,
}

/// Counts the parts of a call. A call may have many.
#[derive(Debug, Default)]
pub struct HookFigures {
    notices: [AtomicU64; ENDS.len()],
}

impl HookFigures {
    /// What became of the notices of one call.
    pub fn told(&self, tally: &Tally) {
        let Tally { taken, repeated, ignored, unreadable } = *tally;
        for (end, count) in [taken, repeated, ignored, unreadable].into_iter().enumerate() {
            self.notices[end].fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// A call of which nobody knows what it tells, or which could not be taken whole and comes again.
    pub fn refused(&self) {
        self.notices[ENDS.len() - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were, by what became of them.
    pub fn notices(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ENDS.into_iter().zip(&self.notices).map(|(end, count)| (end, count.load(Ordering::Relaxed)))
    }
}
