//! When the next recipient may be written to: a campaign's rate, spread evenly, and never exceeded in any minute.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The unit of rates.
const MINUTE: Duration = Duration::from_secs(60);

/// Maximum messages of a campaign in transit to their provider, at the fastest rates: the default concurrency of one
/// channel.
const IN_TRANSIT_MAX: usize = 64;

/// A send that is late by less than this does not delay the sends after it: timers and busy machines cause such delays.
const LATE_MAX: Duration = Duration::from_millis(50);

/// Messages that arrive within this time of the first are counted as one group, which expires a minute after its last
/// message. The others of the group count up to this much longer.
const ARRIVAL_GRAIN: Duration = Duration::from_millis(100);

/// If the next send has been overdue for longer than this when a message arrives, the provider was unavailable.
const STALLED_AFTER: Duration = Duration::from_secs(2);

/// A rate, and the time of the next send.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    per_minute: usize,
    interval: Duration,
    /// The end of the interval that follows the last send.
    interval_ends_at: Instant,
    /// Arrivals of the last minute, the oldest first.
    arrivals: VecDeque<ArrivalGroup>,
    /// The number of messages in `arrivals`.
    arrived_count: usize,
}

/// Messages that arrived at about the same time.
#[derive(Clone, Copy, Debug)]
struct ArrivalGroup {
    first: Instant,
    last: Instant,
    count: usize,
}

/// Maximum messages in transit of a campaign of this rate: one second of sends. After an outage the provider receives
/// no more than that at once.
pub(super) fn in_transit_max(per_minute: i32) -> usize {
    usize::try_from(per_minute).unwrap_or(1).div_ceil(60).clamp(1, IN_TRANSIT_MAX)
}

impl Pace {
    /// The first send is allowed at once, or after an interval if the campaign has begun: it may have just sent a
    /// message.
    pub(super) fn new(per_minute: i32, now: Instant, has_begun: bool) -> Self {
        let per_minute = u32::try_from(per_minute).unwrap_or(1).max(1);
        let interval = MINUTE / per_minute;
        let interval_ends_at = if has_begun { now + interval } else { now };
        let per_minute = usize::try_from(per_minute).unwrap_or(usize::MAX);
        Self { per_minute, interval, interval_ends_at, arrivals: VecDeque::new(), arrived_count: 0 }
    }

    /// When the next message may be sent, given the number in transit; `None`: not before one of them has arrived.
    ///
    /// Messages in transit may arrive at any time, so they count as if they arrived now: no minute exceeds the rate.
    pub(super) fn next_at(&mut self, in_transit: usize, now: Instant) -> Option<Instant> {
        while let Some(oldest) = self.arrivals.front().filter(|oldest| oldest.last + MINUTE <= now) {
            self.arrived_count -= oldest.count;
            self.arrivals.pop_front();
        }
        // How many messages must expire before another one is sent.
        let mut excess = (self.arrived_count + in_transit + 1).saturating_sub(self.per_minute);
        if excess == 0 {
            return Some(self.interval_ends_at);
        }
        // The send is allowed once this group and all older ones have expired.
        let last_to_expire = self.arrivals.iter().find(|group| {
            excess = excess.saturating_sub(group.count);
            excess == 0
        });
        last_to_expire.map(|group| self.interval_ends_at.max(group.last + MINUTE))
    }

    /// Records a send. A short delay does not delay the following sends, and a longer one is not made up for: no burst
    /// follows a wait, and no two sends follow each other immediately.
    pub(super) fn record_send(&mut self, now: Instant) {
        let delay = now.saturating_duration_since(self.interval_ends_at);
        let is_on_time = delay < LATE_MAX.min(self.interval / 2);
        self.interval_ends_at = if is_on_time { self.interval_ends_at } else { now } + self.interval;
    }

    /// Records that a provider has a message.
    pub(super) fn record_arrival(&mut self, now: Instant) {
        self.arrived_count += 1;
        match self.arrivals.back_mut().filter(|last| now.saturating_duration_since(last.first) < ARRIVAL_GRAIN) {
            Some(group) => {
                group.count += 1;
                group.last = now;
            }
            None => self.arrivals.push_back(ArrivalGroup { first: now, last: now, count: 1 }),
        }
        // The next send does not immediately follow a message that took so long.
        if now.saturating_duration_since(self.interval_ends_at) > STALLED_AFTER {
            self.interval_ends_at = now + self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    const NOT_BEGUN: bool = false;
    const HAS_BEGUN: bool = true;

    #[test]
    fn a_rate_is_spread_evenly_and_lost_time_is_not_compensated() {
        let start = Instant::now();
        let mut pace = Pace::new(600, start, NOT_BEGUN);
        let mut at = start;
        let mut times = Vec::new();
        for _ in 0..50 {
            at = at.max(pace.interval_ends_at) + 7 * MS;
            pace.record_send(at);
            times.push(at);
        }
        let spread = times[49] - times[0];
        assert_eq!(spread, Duration::from_millis(4900), "small delays do not add up");
        // The provider was unavailable for a minute.
        let later = at + Duration::from_secs(60);
        pace.record_send(later);
        assert_eq!(pace.interval_ends_at - later, Duration::from_millis(100));
        let resumed = Pace::new(6, start, HAS_BEGUN);
        assert_eq!(resumed.interval_ends_at - start, Duration::from_secs(10));
    }

    #[test]
    fn at_a_low_rate_the_next_send_waits_a_whole_interval_after_a_late_one() {
        let start = Instant::now();
        let mut pace = Pace::new(1, start, NOT_BEGUN);
        pace.record_send(start + Duration::from_secs(59));
        assert_eq!(pace.interval_ends_at - start, Duration::from_secs(119));
    }

    #[test]
    fn one_second_of_sends_is_in_transit_at_most() {
        assert_eq!([1, 60, 61, 600, 3840, 6000].map(in_transit_max), [1, 1, 2, 10, 64, 64]);
    }

    /// Arrival times at a provider with this `latency` (by the number of the poll) that is unavailable during `outage`,
    /// given by the seconds of its start and end. The pace is polled every other millisecond.
    fn arrivals(per_minute: i32, seconds: u32, latency: impl Fn(u32) -> Duration, outage: (u32, u32)) -> Vec<Duration> {
        let start = Instant::now();
        let (from, until) = (Duration::from_secs(outage.0.into()), Duration::from_secs(outage.1.into()));
        let mut pace = Pace::new(per_minute, start, NOT_BEGUN);
        let (mut in_transit, mut arrived): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
        for tick in 0..seconds * 500 {
            let elapsed = 2 * MS * tick;
            let now = start + elapsed;
            in_transit.retain(|at| {
                if *at <= elapsed {
                    arrived.push(*at);
                    pace.record_arrival(now);
                }
                *at > elapsed
            });
            if in_transit.len() < in_transit_max(per_minute)
                && pace.next_at(in_transit.len(), now).is_some_and(|at| at <= now)
            {
                pace.record_send(now);
                let at = elapsed + latency(tick);
                in_transit.push(if at >= from && at < until { until } else { at });
            }
        }
        arrived.sort_unstable();
        arrived
    }

    #[test]
    fn no_minute_exceeds_the_rate_even_after_an_outage() {
        for (per_minute, outage) in
            [(1, (30, 600)), (7, (100, 101)), (60, (90, 700)), (600, (61, 62)), (6000, (70, 130))]
        {
            let times = arrivals(per_minute, 900, |tick| MS * (tick * 7919 % 97), outage);
            let rate = usize::try_from(per_minute).expect("a rate");
            for minute in times.windows(rate + 1) {
                let span = minute[rate] - minute[0];
                assert!(span >= MINUTE, "{} within {span:?} at {per_minute} a minute", rate + 1);
            }
            let available_seconds = 900 - (outage.1 - outage.0);
            let share = 60.0 * times.len() as f64 / f64::from(available_seconds) / f64::from(per_minute);
            assert!(share > 0.9, "{share} of {per_minute} a minute");
        }
    }

    #[test]
    fn an_outage_is_not_followed_by_a_burst() {
        let times = arrivals(60, 120, |_| 20 * MS, (10, 60));
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().all(|gap| gap >= Duration::from_millis(950)), "{:?}", gaps.min());
    }
}
