//! Pauses after failures.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Exponential backoff with full jitter: a random pause up to a bound that grows with each failure, so that messages
/// that failed together are not retried together.
/// <https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    pub(super) min: Duration,
    pub(super) max: Duration,
    pub(super) factor: u32,
}

impl Backoff {
    /// The pause after this many failures in a row, the first being 1.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        self.bound(failures).mul_f64(random())
    }

    /// As [`Backoff::pause`], but at least half of the bound: for a provider that imposes a rate limit.
    pub(super) fn patient_pause(&self, failures: u32) -> Duration {
        self.bound(failures).mul_f64(random().midpoint(1.0))
    }

    fn bound(&self, failures: u32) -> Duration {
        let growth = self.factor.checked_pow(failures.saturating_sub(1));
        growth.and_then(|growth| self.min.checked_mul(growth)).unwrap_or(self.max).min(self.max)
    }
}

/// A random number from 0 to 1. It need not be secret, so the random keys of the standard hasher suffice.
fn random() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(60), factor: 2 };

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let bounds: Vec<u64> = (1..=8).map(|failures| BACKOFF.bound(failures).as_secs()).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(BACKOFF.bound(0), BACKOFF.min);
        assert_eq!(BACKOFF.bound(u32::MAX), BACKOFF.max);
    }

    #[test]
    fn pauses_are_spread_over_the_whole_time() {
        let pauses: Vec<f64> = (0..1000).map(|_| BACKOFF.pause(4).as_secs_f64()).collect();
        assert!(pauses.iter().all(|pause| (0.0..=8.0).contains(pause)));
        for quarter in 0..4 {
            let from = f64::from(quarter) * 2.0;
            let in_quarter = pauses.iter().filter(|pause| (from..from + 2.0).contains(*pause)).count();
            assert!((150..350).contains(&in_quarter), "{in_quarter} of 1000 from {from} s");
        }
        assert!((0..100).all(|_| BACKOFF.patient_pause(4) >= Duration::from_secs(4)));
    }
}
