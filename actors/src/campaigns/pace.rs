//! When the next recipient may be written to: a campaign's rate, spread evenly, and never exceeded over a minute.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The unit of rates.
const MINUTE: Duration = Duration::from_secs(60);

/// Messages of a campaign that are decided, and that their provider does not have yet, at the fastest rates: what one
/// channel is given at once.
const UNDER_WAY_MAX: usize = 64;

/// Longest that a look at the clock may come late without delaying all who follow: what timers and a busy machine cost.
const LATE_MAX: Duration = Duration::from_millis(50);

/// Messages that arrive within this time are remembered as one: so much longer than a minute they may count.
const GRAIN: Duration = Duration::from_millis(100);

/// A rate whose next moment was over for longer, when a message arrives, was held up: by a provider that was away.
const HELD_UP_AFTER: Duration = Duration::from_secs(2);

/// A rate, and the time of the next send.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    per_minute: usize,
    interval: Duration,
    next_at: Instant,
    /// Messages that have arrived within a minute, the oldest first.
    arrived: VecDeque<Arrived>,
    /// How many those are.
    in_minute: usize,
}

/// Messages that have arrived about together.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    first: Instant,
    last: Instant,
    count: usize,
}

/// Messages of a campaign of this rate that are under way at once: what it sends in a second. So what a provider that was
/// away receives at once is no more than that.
pub(super) fn under_way_max(per_minute: i32) -> usize {
    usize::try_from(per_minute).unwrap_or(1).div_ceil(60).clamp(1, UNDER_WAY_MAX)
}

impl Pace {
    /// The first send is allowed at once, or after an interval if the campaign may just have sent.
    pub(super) fn new(per_minute: i32, now: Instant, has_begun: bool) -> Self {
        let per_minute = u32::try_from(per_minute).unwrap_or(1).max(1);
        let interval = MINUTE / per_minute;
        let next_at = if has_begun { now + interval } else { now };
        let per_minute = usize::try_from(per_minute).unwrap_or(usize::MAX);
        Self { per_minute, interval, next_at, arrived: VecDeque::new(), in_minute: 0 }
    }

    /// When the next one may be written to while so many are under way; none: not before one of those has arrived.
    ///
    /// Those under way may arrive at any time. So with them and all that have arrived, none of any minute is too many.
    pub(super) fn next_at(&mut self, under_way: usize, now: Instant) -> Option<Instant> {
        while let Some(oldest) = self.arrived.front().filter(|oldest| oldest.last + MINUTE <= now) {
            self.in_minute -= oldest.count;
            self.arrived.pop_front();
        }
        let mut too_many = (self.in_minute + under_way + 1).saturating_sub(self.per_minute);
        if too_many == 0 {
            return Some(self.next_at);
        }
        let frees = self.arrived.iter().find(|arrived| {
            too_many = too_many.saturating_sub(arrived.count);
            too_many == 0
        });
        frees.map(|arrived| self.next_at.max(arrived.last + MINUTE))
    }

    /// One is written to. What is late by a little does not delay the others, and nothing else is made up for: so a wait is
    /// not followed by a burst, and never do two follow each other at once.
    pub(super) fn used(&mut self, now: Instant) {
        let late = now.saturating_duration_since(self.next_at);
        let is_on_time = late < LATE_MAX.min(self.interval / 2);
        self.next_at = if is_on_time { self.next_at } else { now } + self.interval;
    }

    /// A provider has a message.
    pub(super) fn arrived(&mut self, now: Instant) {
        self.in_minute += 1;
        match self.arrived.back_mut().filter(|last| now.saturating_duration_since(last.first) < GRAIN) {
            Some(together) => {
                together.count += 1;
                together.last = now;
            }
            None => self.arrived.push_back(Arrived { first: now, last: now, count: 1 }),
        }
        // The next one does not follow at once the one that took so long.
        if now.saturating_duration_since(self.next_at) > HELD_UP_AFTER {
            self.next_at = now + self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_rate_is_spread_evenly_and_a_wait_is_not_made_up_for() {
        let start = Instant::now();
        let mut pace = Pace::new(600, start, false);
        let mut at = start;
        let mut times = Vec::new();
        for _ in 0..50 {
            at = at.max(pace.next_at) + 7 * MS;
            pace.used(at);
            times.push(at);
        }
        let spread = times[49] - times[0];
        assert_eq!(spread, Duration::from_millis(4900), "being late by a little slows nothing");
        // The provider was unavailable for a minute.
        let later = at + Duration::from_secs(60);
        pace.used(later);
        assert_eq!(pace.next_at - later, Duration::from_millis(100));
        let resumed = Pace::new(6, start, true);
        assert_eq!(resumed.next_at - start, Duration::from_secs(10));
    }

    #[test]
    fn at_a_low_rate_no_two_follow_each_other_however_late_one_is() {
        let start = Instant::now();
        let mut pace = Pace::new(1, start, false);
        pace.used(start + Duration::from_secs(59));
        assert_eq!(pace.next_at - start, Duration::from_secs(119));
    }

    #[test]
    fn as_many_are_under_way_as_leave_in_a_second() {
        assert_eq!([1, 60, 61, 600, 3840, 6000].map(under_way_max), [1, 1, 2, 10, 64, 64]);
    }

    /// When messages arrive at a provider that takes each after `takes`, is away from one second to another, and is
    /// given them by a pace; looked at every other millisecond.
    fn arrivals(per_minute: i32, seconds: u32, takes: impl Fn(u32) -> Duration, away: (u32, u32)) -> Vec<Duration> {
        let start = Instant::now();
        let (from, until) = (Duration::from_secs(away.0.into()), Duration::from_secs(away.1.into()));
        let mut pace = Pace::new(per_minute, start, false);
        let (mut under_way, mut arrived): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
        for tick in 0..seconds * 500 {
            let since = 2 * MS * tick;
            let now = start + since;
            under_way.retain(|at| {
                if *at <= since {
                    arrived.push(*at);
                    pace.arrived(now);
                }
                *at > since
            });
            if under_way.len() < under_way_max(per_minute)
                && pace.next_at(under_way.len(), now).is_some_and(|at| at <= now)
            {
                pace.used(now);
                let at = since + takes(tick);
                under_way.push(if at >= from && at < until { until } else { at });
            }
        }
        arrived.sort_unstable();
        arrived
    }

    #[test]
    fn no_minute_has_more_than_the_rate_also_after_the_provider_was_away() {
        for (per_minute, away) in [(1, (30, 600)), (7, (100, 101)), (60, (90, 700)), (600, (61, 62)), (6000, (70, 130))]
        {
            let times = arrivals(per_minute, 900, |tick| MS * (tick * 7919 % 97), away);
            let rate = usize::try_from(per_minute).expect("a rate");
            for minute in times.windows(rate + 1) {
                let span = minute[rate] - minute[0];
                assert!(span >= MINUTE, "{} within {span:?} at {per_minute} a minute", rate + 1);
            }
            let sent_for = 900 - (away.1 - away.0);
            let share = 60.0 * times.len() as f64 / f64::from(sent_for) / f64::from(per_minute);
            assert!(share > 0.9, "{share} of {per_minute} a minute");
        }
    }

    #[test]
    fn what_waited_for_the_provider_is_followed_by_the_next_one_in_its_time() {
        let times = arrivals(60, 120, |_| 20 * MS, (10, 60));
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().all(|gap| gap >= Duration::from_millis(950)), "{:?}", gaps.min());
    }
}
