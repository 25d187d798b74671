//! Moments of a clock that goes on while the machine sleeps.
//!
//! [`Instant`] stands still meanwhile on Linux: a lease that was counted by it would hold when the machine wakes, however long
//! others have gone on without it.

use std::ops::Add;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
/// Elsewhere this is the one that goes on.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// For a system without such a clock, which none is that this runs on.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A moment, as this machine counts them. Those of two machines say nothing of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The present one.
    pub fn now() -> Self {
        Self(clock_gettime(CLOCK).map_or_else(|_| ORIGIN.elapsed(), Duration::from))
    }

    /// Time since the first one there was.
    pub(super) fn since_first(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_follow_each_other() {
        let (first, instant) = (Moment::now(), Instant::now());
        std::thread::sleep(Duration::from_millis(2));
        let passed = Moment::now().since_first() - first.since_first();
        assert!(passed >= Duration::from_millis(2), "{passed:?}");
        assert!(passed <= instant.elapsed() + Duration::from_millis(100), "{passed:?}");
    }
}
