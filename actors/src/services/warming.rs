//! How many tickets a company's lists may bring into memory.
//!
//! An agent's inbox requests the first page of its list every few seconds. Its tickets are read from their actors if
//! these are hot, else from the tables each time. So the actors of a first page are started, as if its tickets were in
//! use. A program that lists all tickets requests each page once, so later pages are not brought into memory.

use std::time::{Duration, Instant};

/// Maximum actors that a company's lists start within the time after which an idle actor is unloaded: one request may
/// start a hundred. So at most twice as many of them are hot at once, about 20 MiB.
const STARTED_MAX: usize = 5_000;

/// Lists start no actors while at least this many tickets of all companies are hot, about 330 MiB.
pub(super) const HOT_MAX: usize = 200_000;

/// The actors that a company's lists have started recently.
pub(super) struct WarmingBudget {
    began_at: Instant,
    started: usize,
}

impl WarmingBudget {
    pub(super) const fn new(now: Instant) -> Self {
        Self { began_at: now, started: 0 }
    }

    /// Whether this many more actors may be started now, of which the idle ones are unloaded after `idle_after`. If so,
    /// they are counted.
    pub(super) fn try_spend(&mut self, actors: usize, now: Instant, idle_after: Duration) -> bool {
        if now.saturating_duration_since(self.began_at) >= idle_after {
            *self = Self::new(now);
        }
        let started = self.started.saturating_add(actors);
        let is_allowed = started <= STARTED_MAX;
        if is_allowed {
            self.started = started;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_start_a_limited_number_of_actors_until_these_are_idle() {
        let (now, idle_after) = (Instant::now(), Duration::from_secs(300));
        let mut budget = WarmingBudget::new(now);
        assert!(budget.try_spend(STARTED_MAX - 1, now, idle_after));
        assert!(!budget.try_spend(2, now, idle_after));
        assert!(budget.try_spend(1, now, idle_after), "refused starts do not count");
        let later = now + idle_after;
        assert!(!budget.try_spend(1, later - Duration::from_millis(1), idle_after));
        assert!(budget.try_spend(STARTED_MAX, later, idle_after));
        assert!(!budget.try_spend(1, later, idle_after));
    }
}
