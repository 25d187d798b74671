//! Metrics of the hooks.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// The possible outcomes of an event in a call, as label values.
const OUTCOMES: [&str; 5] = ["taken", "repeated", "ignored", "unreadable", "refused"];

/// The result of a call, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = HookReport)]
pub struct Tally {
    /// Processed now.
    pub taken: usize,
    /// Processed before: the provider has repeated the call, or a part of it.
    pub repeated: usize,
    /// Ignored, because conversations do not support them.
    pub ignored: usize,
    /// Could not be read.
    pub unreadable: usize,
}

/// Counts the events in calls. A call may contain many.
#[derive(Debug, Default)]
pub struct HookMetrics {
    events: [AtomicU64; OUTCOMES.len()],
}

impl HookMetrics {
    /// Counts the events of one call by outcome.
    pub fn add_events(&self, tally: &Tally) {
        let Tally { taken, repeated, ignored, unreadable } = *tally;
        for (outcome, count) in [taken, repeated, ignored, unreadable].into_iter().enumerate() {
            self.events[outcome].fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// Counts a call that was answered with an error, such as one without a valid signature. It counts once, whatever
    /// its content.
    pub fn add_refused(&self) {
        self.events[OUTCOMES.len() - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// The totals by outcome.
    pub fn events(&self) -> impl Iterator<Item = (&'static str, u64)> {
        OUTCOMES.into_iter().zip(&self.events).map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}
