//! Moments of a clock that keeps running while the machine is suspended.
//!
//! [`Instant`] stops during suspend on Linux: a lease measured by it would still be valid after a resume, however long
//! other members have continued without this machine.

use std::ops::Add;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
/// On other systems the monotonic clock keeps running.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// Fallback for systems without such a clock; no supported system lacks it.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A moment on this machine's clock. Moments of two machines cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The current moment.
    pub fn now() -> Self {
        Self(clock_gettime(CLOCK).map_or_else(|_| ORIGIN.elapsed(), Duration::from))
    }

    /// Time since the clock's origin.
    pub(super) fn since_origin(self) -> Duration {
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
    fn later_moments_are_greater() {
        let (instant, first) = (Instant::now(), Moment::now());
        std::thread::sleep(Duration::from_millis(2));
        let elapsed = Moment::now().since_origin() - first.since_origin();
        assert!(elapsed >= Duration::from_millis(2), "{elapsed:?}");
        assert!(elapsed <= instant.elapsed() + Duration::from_millis(100), "{elapsed:?}");
    }
}
