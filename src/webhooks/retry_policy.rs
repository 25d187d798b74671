//! When a delivery is retried, and when an endpoint is disabled.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rand::RngExt;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// The pause after each failed attempt. If the attempt after the last pause fails too, the delivery has failed
/// permanently.
pub const PAUSES: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_secs(5 * MINUTE),
    Duration::from_secs(30 * MINUTE),
    Duration::from_secs(2 * HOUR),
    Duration::from_secs(5 * HOUR),
    Duration::from_secs(10 * HOUR),
    Duration::from_secs(14 * HOUR),
    Duration::from_secs(20 * HOUR),
    Duration::from_secs(24 * HOUR),
];

/// The relative jitter of a pause, so that deliveries that failed together are not retried together.
const JITTER: f64 = 0.1;

/// How long an endpoint may fail before it is disabled.
const FAILING_MAX: TimeDelta = TimeDelta::days(5);

/// Maximum time between two failures of the same period of failure: somewhat longer than the longest pause between two
/// attempts. After a longer gap without deliveries, it is unknown whether the endpoint was failing in between.
const GAP_MAX: TimeDelta = TimeDelta::hours(30);

/// When a delivery is retried, and when an endpoint is disabled.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// The pause after each failed attempt.
    pub pauses: Vec<Duration>,
    /// An endpoint that has accepted nothing for this long is disabled.
    pub failing_max: TimeDelta,
    /// A failure that follows the previous one after more than this time begins a new period.
    pub gap_max: TimeDelta,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { pauses: PAUSES.into(), failing_max: FAILING_MAX, gap_max: GAP_MAX }
    }
}

impl RetryPolicy {
    /// When a delivery with this many failed attempts is retried; `None` when it has failed permanently.
    pub fn next_attempt_at(&self, failures: i32, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let index = usize::try_from(failures).ok()?.checked_sub(1)?;
        let pause = self.pauses.get(index)?.mul_f64(rand::rng().random_range(1.0 - JITTER..=1.0 + JITTER));
        Some(now + TimeDelta::from_std(pause).ok()?)
    }

    /// Whether a failure now belongs to the same period as the failure at `failed_at`.
    pub fn is_same_period(&self, failed_at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        now - failed_at <= self.gap_max
    }

    /// Whether an endpoint that has failed since `failing_since` is disabled.
    pub fn must_disable(&self, failing_since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        now - failing_since >= self.failing_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_are_those_of_the_contract_with_a_tenth_of_jitter() {
        let (retry_policy, now) = (RetryPolicy::default(), DateTime::UNIX_EPOCH);
        let seconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
        for (failures, seconds) in (1..).zip(seconds) {
            let pauses: Vec<TimeDelta> =
                (0..200).map(|_| retry_policy.next_attempt_at(failures, now).expect("another attempt") - now).collect();
            let (minimum, maximum) = (TimeDelta::milliseconds(seconds * 900), TimeDelta::milliseconds(seconds * 1_100));
            assert!(pauses.iter().all(|pause| (minimum..=maximum).contains(pause)), "failures {failures}: {pauses:?}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "no jitter after {failures} failures");
        }
        assert_eq!([10, 0, -1].map(|failures| retry_policy.next_attempt_at(failures, now)), [None, None, None]);
    }

    #[test]
    fn an_endpoint_is_disabled_after_five_days_and_not_before() {
        let (retry_policy, now) = (RetryPolicy::default(), Utc::now());
        assert!(!retry_policy.must_disable(now - TimeDelta::days(5) + TimeDelta::seconds(1), now));
        assert!(retry_policy.must_disable(now - TimeDelta::days(5), now));
    }

    #[test]
    fn failures_before_and_after_a_pause_belong_to_the_same_period() {
        let (retry_policy, now) = (RetryPolicy::default(), Utc::now());
        for pause in PAUSES {
            let longest = TimeDelta::from_std(pause.mul_f64(1.0 + JITTER)).expect("a valid duration");
            assert!(retry_policy.is_same_period(now - longest, now), "{pause:?}");
        }
        assert!(!retry_policy.is_same_period(now - TimeDelta::days(2), now));
    }
}
