//! The lease: how long a life may answer from memory.
//!
//! A heartbeat that found the row of its life allows answers for [`LEASE_TIME`] from the moment it was *sent*. A
//! process that deletes the row waits [`SEALED_FOR`] after the commit before it releases the life's slots. Every
//! successful heartbeat was sent before that commit. So the last answer of the old life precedes the first of the new
//! one, whatever the clocks show: only the rates of two monotonic clocks matter, and those differ little.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Moment;

/// How long a life may answer after sending a successful heartbeat: four intervals, so that one slow heartbeat does no
/// harm.
pub const LEASE_TIME: Duration = Duration::from_millis(2000);

/// How long no process serves the slots of a sealed life: longer than [`LEASE_TIME`] by the possible difference between
/// two clock rates.
pub const SEALED_FOR: Duration = Duration::from_millis(2250);

/// Possible rate error of a monotonic clock, in percent. Crystals are off by a ten-thousandth; the rest is for virtual
/// machines.
const RATE_ERROR_PERCENT: u128 = 5;

// A lease measured by the slowest clock must end before a wait measured by the fastest one.
const _: () = assert!(
    LEASE_TIME.as_nanos() * (100 + RATE_ERROR_PERCENT) < SEALED_FOR.as_nanos() * (100 - RATE_ERROR_PERCENT),
    "a life must be over before its slots are served elsewhere"
);

/// The time during which this life may answer from memory. Cheap to clone.
#[derive(Clone)]
pub struct Lease(Arc<LeaseState>);

struct LeaseState {
    created_at: Moment,
    /// When the last successful heartbeat was sent, in nanoseconds since the origin of [`Moment`]; 0 if none was.
    sent_at: AtomicU64,
}

impl Default for Lease {
    fn default() -> Self {
        Self(Arc::new(LeaseState { created_at: Moment::now(), sent_at: AtomicU64::new(0) }))
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("ends_in", &self.ends_in()).finish()
    }
}

impl Lease {
    /// Whether this life may answer now.
    pub fn holds(&self) -> bool {
        !self.ends_in().is_zero()
    }

    /// How much longer this life may answer.
    pub fn ends_in(&self) -> Duration {
        self.time_left_at(Moment::now())
    }

    /// The age of the heartbeat the lease counts from; without one, the age of this lease object.
    pub fn age(&self) -> Duration {
        let from = self.sent_at().max(self.0.created_at.since_origin());
        Moment::now().since_origin().saturating_sub(from)
    }

    /// Extends the lease after a successful heartbeat that was sent at this moment. A late reply never shortens it.
    pub fn extend(&self, sent_at: Moment) {
        // A u64 of nanoseconds lasts five hundred years; 0 means that no heartbeat was sent.
        let nanos = u64::try_from(sent_at.since_origin().as_nanos()).unwrap_or(u64::MAX).max(1);
        self.0.sent_at.fetch_max(nanos, Ordering::AcqRel);
    }

    /// Ends the lease: no answers until the next successful heartbeat.
    pub fn end(&self) {
        self.0.sent_at.store(0, Ordering::Release);
    }

    fn sent_at(&self) -> Duration {
        Duration::from_nanos(self.0.sent_at.load(Ordering::Acquire))
    }

    fn time_left_at(&self, now: Moment) -> Duration {
        time_left(self.sent_at(), now.since_origin())
    }
}

/// What remains at `now` of a lease whose heartbeat was sent at `sent_at`, which is zero if none was sent.
fn time_left(sent_at: Duration, now: Duration) -> Duration {
    if sent_at.is_zero() { Duration::ZERO } else { (sent_at + LEASE_TIME).saturating_sub(now) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE_ERROR: f64 = RATE_ERROR_PERCENT as f64 / 100.0;

    /// The time on a clock of this rate after `real_secs` seconds of real time.
    fn clock_time(real_secs: f64, rate: f64) -> Duration {
        Duration::from_secs_f64(real_secs * rate)
    }

    fn clock_rate() -> impl Strategy<Value = f64> {
        prop_oneof![Just(1.0 - RATE_ERROR), Just(1.0 + RATE_ERROR), 1.0 - RATE_ERROR..=1.0 + RATE_ERROR]
    }

    proptest! {
        /// A life sends heartbeats, some succeed, then it is sealed and its slots are opened elsewhere. All times are
        /// real time; each process sees only its own clock.
        #[test]
        fn the_last_answer_of_a_life_precedes_the_first_of_its_heir(
            owner_rate in clock_rate(), heir_rate in clock_rate(),
            beats in prop::collection::vec((0.001..1.5_f64, 0.0..5.0_f64), 1..20),
            sealed_after in 0.0..3.0_f64, notice_after in 0.0..3.0_f64, request_after in 0.0..6.0_f64,
        ) {
            let (mut sent_at, mut heartbeats) = (0.0, Vec::new());
            for (pause, delay) in beats {
                sent_at += pause;
                heartbeats.push((sent_at, sent_at + delay));
            }
            let sealed_at = heartbeats[0].0 + sealed_after;
            // Heartbeats that arrive before the deletion find the row, and none of them was sent later.
            let successful = heartbeats.iter().filter(|(_, arrived_at)| *arrived_at < sealed_at);
            let last_sent_at = successful.map(|(sent_at, _)| *sent_at).fold(0.0, f64::max);
            // The heir learns of the deletion after its commit, and waits from then on.
            let noticed_at = sealed_at + notice_after;
            let opens_at = noticed_at + SEALED_FOR.as_secs_f64() / heir_rate;
            let request_at = noticed_at + request_after;
            let time_left = time_left(clock_time(last_sent_at, owner_rate), clock_time(request_at, owner_rate));
            let (may_answer, is_open_elsewhere) = (!time_left.is_zero(), request_at >= opens_at);
            prop_assert!(!(may_answer && is_open_elsewhere), "answered at {request_at}, open elsewhere at {opens_at}");
        }

        #[test]
        fn a_late_heartbeat_does_not_shorten_the_lease(sent_at in prop::collection::vec(0..10_000_u64, 1..20)) {
            let (origin, lease) = (Moment::now(), Lease::default());
            prop_assert!(!lease.holds());
            for at in &sent_at {
                lease.extend(origin + Duration::from_millis(*at));
            }
            let last = Duration::from_millis(sent_at.iter().copied().max().unwrap_or(0));
            let time_left = lease.time_left_at(origin + last);
            prop_assert!(time_left <= LEASE_TIME + Duration::from_nanos(1) && time_left >= LEASE_TIME);
            prop_assert!(lease.time_left_at(origin + last + LEASE_TIME + Duration::from_millis(1)).is_zero());
        }
    }
}
