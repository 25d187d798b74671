//! Limits token guessing: refusals are counted by address, and nothing else is. A valid token is always served,
//! whatever else its address has sent; otherwise one client could block everyone behind the same proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotline_actors::ttl_cache::TtlCache;

use super::ApiError;
use super::origin::Address;

/// Default number of refusals per address and minute that state the reason: enough for somebody who sets up a client,
/// or runs one whose token has expired.
pub const WRONG_TOKENS_PER_MINUTE: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// Maximum number of counted addresses, some 100 bytes each; beyond that the least active are evicted.
const ADDRESSES_MAX: usize = 100_000;

/// Refusals per address, in the minute since its first.
pub struct WrongTokens {
    per_minute: u32,
    refused: TtlCache<Address, Arc<AtomicU32>>,
}

impl WrongTokens {
    /// Starts with no refusals; 0: no limit.
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, refused: TtlCache::new(ADDRESSES_MAX, MINUTE) }
    }

    /// Counts a wrong token and returns the response: `401`, or `429` when there were too many.
    pub fn refuse(&self, address: Option<Address>) -> ApiError {
        let Some(address) = address.filter(|_| self.per_minute > 0) else { return ApiError::unauthorized() };
        let before = self.refused.get_or_insert_with(&address, Arc::default).fetch_add(1, Ordering::Relaxed);
        if before < self.per_minute { ApiError::unauthorized() } else { ApiError::rate_limited(MINUTE.as_secs()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_so_often_and_another_its_own() {
        let wrong = WrongTokens::new(2);
        let address = |last| Some(Address::of([192, 0, 2, last].into()));
        let statuses = |last| [(); 3].map(|()| wrong.refuse(address(last)).status.as_u16());
        assert_eq!(statuses(1), [401, 401, 429]);
        assert_eq!(statuses(2), [401, 401, 429]);
        assert_eq!(wrong.refuse(None).status.as_u16(), 401);
        let unlimited = WrongTokens::new(0);
        assert!((0..1000).all(|_| unlimited.refuse(address(1)).status.as_u16() == 401));
    }
}
