//! A campaign's rate limit: its rate, spread evenly.

use std::time::{Duration, Instant};

/// The unit of rates.
const MINUTE: Duration = Duration::from_secs(60);

/// A rate, and the time of the next send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    interval: Duration,
    next_at: Instant,
}

impl Pace {
    /// The first send is allowed at once, or after an interval if the campaign may just have sent.
    pub(super) fn new(per_minute: i32, now: Instant, has_begun: bool) -> Self {
        let interval = MINUTE / u32::try_from(per_minute).unwrap_or(1).max(1);
        Self { interval, next_at: if has_begun { now + interval } else { now } }
    }

    /// When the next send is allowed.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Records a send. A delay of less than an interval is made up for; a longer one is not, so that no wait is
    /// followed by a burst.
    pub(super) fn used(&mut self, now: Instant) {
        let late = now.saturating_duration_since(self.next_at);
        self.next_at = if late < self.interval { self.next_at + self.interval } else { now + self.interval };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_spread_evenly_and_a_wait_is_not_made_up_for() {
        let start = Instant::now();
        let mut pace = Pace::new(600, start, false);
        let mut at = start;
        let mut times = Vec::new();
        for _ in 0..50 {
            at = at.max(pace.next_at()) + Duration::from_millis(7);
            pace.used(at);
            times.push(at);
        }
        let spread = times[49] - times[0];
        assert_eq!(spread, Duration::from_millis(4900), "being late by a little slows nothing");
        // The provider was unavailable for a minute.
        let later = at + Duration::from_secs(60);
        pace.used(later);
        assert_eq!(pace.next_at() - later, Duration::from_millis(100));
        let resumed = Pace::new(6, start, true);
        assert_eq!(resumed.next_at() - start, Duration::from_secs(10));
    }
}
