//! What providers have told since the start.

use std::sync::atomic::{AtomicU64, Ordering};

use super::intake::Tally;

/// What may become of one thing a provider tells, by the word it is shown under.
const ENDS: [&str; 5] = ["taken", "repeated", "ignored", "unreadable", "refused"];

/// Counts what was told. A call may tell of many things.
#[derive(Debug, Default)]
pub struct HookFigures {
    notices: [AtomicU64; ENDS.len()],
}

impl HookFigures {
    /// What became of the notices of one call.
    pub(super) fn told(&self, tally: &Tally) {
        let Tally { taken, repeated, ignored, unreadable } = *tally;
        for (end, count) in [taken, repeated, ignored, unreadable].into_iter().enumerate() {
            self.notices[end].fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// A call of which nobody knows what it tells, or which could not be taken whole and comes again.
    pub(super) fn refused(&self) {
        self.notices[ENDS.len() - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were, by what became of them.
    pub fn notices(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ENDS.into_iter().zip(&self.notices).map(|(end, count)| (end, count.load(Ordering::Relaxed)))
    }
}
