//! Limits token guessing: only refusals are counted, by address. A valid token is always served, even if its address
//! has sent wrong ones; otherwise one client could block everyone behind the same proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotline_actors::ttl_cache::TtlCache;

use crate::web::connections::origin::Address;

/// Default number of refusals per address and minute that are answered at once: enough for a developer who sets up a
/// client, or for a client whose token has expired.
pub const WRONG_TOKENS_PER_MINUTE: u32 = 60;

/// The time in which refusals are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// How long an address that guesses waits for each further answer, before its connection is closed: a guess then costs
/// a second and a connection. The limits on connections bound how many wait.
pub const GUESS_DELAY: Duration = Duration::from_secs(1);

/// Maximum number of counted addresses, about 100 bytes each; beyond that the least active are evicted.
const ADDRESSES_MAX: usize = 100_000;

/// Refusals by address, each counted for a minute from the address's first.
pub struct WrongTokens {
    per_minute: u32,
    refusals: TtlCache<Address, Arc<AtomicU32>>,
}

impl WrongTokens {
    /// Starts without refusals. `per_minute` 0 means no limit.
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, refusals: TtlCache::new(ADDRESSES_MAX, MINUTE) }
    }

    /// Counts a wrong token, and returns whether its address has sent too many in this minute.
    pub fn count(&self, address: Option<Address>) -> bool {
        let Some(address) = address.filter(|_| self.per_minute > 0) else { return false };
        let count_before = self.refusals.get_or_insert_with(&address, Arc::default).fetch_add(1, Ordering::Relaxed);
        count_before >= self.per_minute
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_tokens_are_counted_by_address() {
        let wrong_tokens = WrongTokens::new(2);
        let address = |last| Some(Address::of([192, 0, 2, last].into()));
        let count_three = |last| [(); 3].map(|()| wrong_tokens.count(address(last)));
        assert_eq!(count_three(1), [false, false, true]);
        assert_eq!(count_three(2), [false, false, true]);
        assert!(!wrong_tokens.count(None));
        let unlimited = WrongTokens::new(0);
        assert!(!(0..1000).any(|_| unlimited.count(address(1))));
    }
}
