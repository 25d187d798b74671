//! Rate limits by the generic cell rate algorithm, which stores one instant for each limit.
//! <https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm>

use std::collections::HashMap;
use std::time::Duration;

use hotline_persistence::ContactId;
use hotline_persistence::tables::channels::ChannelSettings;
use tokio::time::Instant;

use crate::base::SendingOptions;

/// A rate: one event in each interval on average, and a burst after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateLimit {
    /// Zero: without limit.
    pub(super) interval: Duration,
    pub(super) burst: u32,
}

/// The rates of a channel, and of each of its recipients.
pub(super) struct RateLimits {
    pub(super) channel: RateLimit,
    pub(super) recipient: RateLimit,
}

impl RateLimits {
    pub(super) fn of(options: &SendingOptions, settings: &ChannelSettings) -> Self {
        let interval = settings.recipient_interval_ms.map(|ms| Duration::from_millis(ms.into()));
        Self {
            channel: RateLimit::per_second(settings.sends_per_second.unwrap_or(options.per_second)),
            recipient: RateLimit {
                interval: interval.unwrap_or(options.recipient_interval),
                burst: settings.recipient_burst.unwrap_or(options.recipient_burst).max(1),
            },
        }
    }
}

impl RateLimit {
    /// At most `count` events in any second, 0: without limit. A provider refuses more, and a refusal delays the whole
    /// channel. So the steady rate is a twentieth lower; this twentieth is the burst, which makes up for a late timer.
    pub(super) fn per_second(count: u32) -> Self {
        let spare = count / 20;
        let interval = Duration::from_secs(1).checked_div(count - spare).unwrap_or_default();
        Self { interval, burst: spare.max(1) }
    }

    /// When the next event is allowed, given the time up to which earlier events have used the rate.
    fn next_at(&self, used_until: Option<Instant>, now: Instant) -> Instant {
        let burst_time = self.interval.saturating_mul(self.burst.saturating_sub(1));
        used_until.and_then(|until| until.checked_sub(burst_time)).map_or(now, |next| next.max(now))
    }

    /// The time up to which the rate is used after an event now.
    fn advance(&self, used_until: Option<Instant>, now: Instant) -> Instant {
        used_until.map_or(now, |until| until.max(now)) + self.interval
    }
}

/// The use of one limit.
#[derive(Debug, Default)]
pub(super) struct RateUsage {
    used_until: Option<Instant>,
}

impl RateUsage {
    pub(super) fn next_at(&self, limit: RateLimit, now: Instant) -> Instant {
        limit.next_at(self.used_until, now)
    }

    pub(super) fn record(&mut self, limit: RateLimit, now: Instant) {
        self.used_until = Some(limit.advance(self.used_until, now));
    }
}

/// The lowest threshold of [`RecipientUsage`]: fewer recipients are never searched for expired ones.
const SWEEP_THRESHOLD_MIN: usize = 1024;

/// The use of a channel's limit by recipient. Recipients who have received nothing for a while take no memory.
#[derive(Debug)]
pub(super) struct RecipientUsage {
    used_until: HashMap<ContactId, Instant>,
    /// The number of recipients above which expired ones are removed: twice as many as the last removal left.
    sweep_threshold: usize,
}

impl Default for RecipientUsage {
    fn default() -> Self {
        Self { used_until: HashMap::new(), sweep_threshold: SWEEP_THRESHOLD_MIN }
    }
}

impl RecipientUsage {
    pub(super) fn next_at(&self, limit: RateLimit, contact: ContactId, now: Instant) -> Instant {
        limit.next_at(self.used_until.get(&contact).copied(), now)
    }

    pub(super) fn record(&mut self, limit: RateLimit, contact: ContactId, now: Instant) {
        if limit.interval.is_zero() {
            return;
        }
        let until = limit.advance(self.used_until.get(&contact).copied(), now);
        self.used_until.insert(contact, until);
        if self.used_until.len() > self.sweep_threshold {
            self.used_until.retain(|_, until| *until > now);
            self.sweep_threshold = (self.used_until.len() * 2).max(SWEEP_THRESHOLD_MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The times of this many events that are all due now, in milliseconds.
    fn schedule(limit: RateLimit, count: usize) -> Vec<u128> {
        let (begin, mut usage) = (Instant::now(), RateUsage::default());
        let mut now = begin;
        let mut next_event = || {
            now = usage.next_at(limit, now);
            usage.record(limit, now);
            (now - begin).as_millis()
        };
        (0..count).map(|_| next_event()).collect()
    }

    #[test]
    fn a_burst_is_sent_at_once_and_uses_up_the_time_after_it() {
        let limit = RateLimit { interval: 6 * SECOND, burst: 3 };
        assert_eq!(schedule(limit, 6), [0, 0, 0, 6000, 12000, 18000]);
        let (now, mut recipient) = (Instant::now(), RateUsage::default());
        (0..3).for_each(|_| recipient.record(limit, now));
        // Two intervals later two events are allowed, and no third.
        let later = now + 12 * SECOND;
        (0..2).for_each(|_| {
            assert_eq!(recipient.next_at(limit, later), later);
            recipient.record(limit, later);
        });
        assert_eq!(recipient.next_at(limit, later), later + 6 * SECOND);
    }

    #[test]
    fn a_rate_per_second_holds_in_any_second() {
        assert_eq!(schedule(RateLimit::per_second(0), 3), [0, 0, 0]);
        assert_eq!(schedule(RateLimit::per_second(10), 4), [0, 100, 200, 300]);
        let busy = schedule(RateLimit::per_second(80), 200);
        let count_from = |from: u128| busy.iter().filter(|at| (from..from + 1000).contains(*at)).count();
        let most = busy.iter().map(|at| count_from(*at)).max();
        assert_eq!((most, count_from(1000)), (Some(80), 76), "with the burst, and at the steady rate");
    }

    #[test]
    fn recipients_are_limited_separately_and_dropped_when_their_time_has_passed() {
        let limit = RateLimit { interval: SECOND, burst: 1 };
        let (now, mut recipients) = (Instant::now(), RecipientUsage::default());
        for contact in 0..SWEEP_THRESHOLD_MIN as i64 {
            recipients.record(limit, ContactId::new(contact), now);
        }
        assert_eq!(recipients.next_at(limit, ContactId::new(7), now), now + SECOND);
        assert_eq!(recipients.next_at(limit, ContactId::new(-1), now), now);
        let later = now + 2 * SECOND;
        recipients.record(limit, ContactId::new(7), later);
        recipients.record(limit, ContactId::new(-1), later);
        assert_eq!(recipients.used_until.len(), 2);
        assert_eq!(recipients.next_at(limit, ContactId::new(7), later), later + SECOND);
    }
}
