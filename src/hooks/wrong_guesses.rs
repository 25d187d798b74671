//! Limits guessing at the hooks. Calls of providers are not limited: a refused call is repeated, so its messages would
//! arrive late. Only wrong guesses count, and never against a call with a valid signature, even from the same address:
//! behind a proxy that is not configured as trusted, all clients have the same address.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotline_actors::ttl_cache::TtlCache;
use hotline_persistence::CompanyId;

use super::budget::ChannelKey;
use crate::web::connections::origin::Address;
use crate::web::{ApiError, ApiResult};

/// Wrong guesses of one kind per address and minute; further ones get `429`. Enough for setting up a channel. Each
/// channel counts separately, because a provider calls for many channels from one address.
const GUESSES_PER_MINUTE_MAX: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// Maximum number of counters, about 100 bytes each.
const COUNTERS_MAX: usize = 10_000;

/// What is guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum GuessKind {
    /// A channel's public key.
    Key,
    /// The signature of a call.
    Signature(ChannelKey),
    /// The verify token.
    Token(ChannelKey),
}

/// Recent wrong guesses.
pub(super) struct WrongGuesses {
    counters: TtlCache<(Option<Address>, GuessKind), Arc<AtomicU32>>,
}

impl Default for WrongGuesses {
    fn default() -> Self {
        Self { counters: TtlCache::new(COUNTERS_MAX, MINUTE) }
    }
}

impl WrongGuesses {
    /// Drops the guesses at a company's channels.
    pub(super) fn forget(&self, company: CompanyId) {
        let Self { counters } = self;
        counters.remove_where(|(_, guess)| match guess {
            GuessKind::Key => false,
            GuessKind::Signature((owner, _)) | GuessKind::Token((owner, _)) => *owner == company,
        });
    }

    /// Refuses callers with too many wrong guesses. To be used only where this cannot stop a call with a valid
    /// signature.
    ///
    /// # Errors
    /// `429`.
    pub(super) fn check(&self, address: Option<Address>, guess: GuessKind) -> ApiResult<()> {
        let count = self.counters.get(&(address, guess)).map_or(0, |count| count.load(Ordering::Relaxed));
        if count < GUESSES_PER_MINUTE_MAX { Ok(()) } else { Err(ApiError::rate_limited(MINUTE.as_secs())) }
    }

    /// Counts a wrong guess and returns the response: `refusal`, or `429` when there were too many.
    pub(super) fn refuse(&self, address: Option<Address>, guess: GuessKind, refusal: ApiError) -> ApiError {
        if let Err(limited) = self.check(address, guess) {
            return limited;
        }
        self.counters.get_or_insert_with(&(address, guess), Arc::default).fetch_add(1, Ordering::Relaxed);
        refusal
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use std::net::IpAddr;

    use hotline_persistence::ChannelId;

    use super::*;

    const CHANNEL: ChannelKey = (CompanyId::new(1), ChannelId::new(2));

    #[test]
    fn only_the_address_that_guesses_too_often_is_limited() {
        let wrong_guesses = WrongGuesses::default();
        let address = |last| Some(Address::of(IpAddr::from([192, 0, 2, last])));
        let guess = GuessKind::Signature(CHANNEL);
        let refuse = |address, guess| wrong_guesses.refuse(address, guess, ApiError::unauthorized());
        for _ in 0..GUESSES_PER_MINUTE_MAX {
            assert_eq!(refuse(address(7), guess).status.as_u16(), 401);
        }
        let refused = refuse(address(7), guess);
        assert_eq!((refused.status.as_u16(), refused.retry_after_s), (429, Some(60)));
        assert!(wrong_guesses.check(address(7), guess).is_err());
        for other in
            [GuessKind::Key, GuessKind::Token(CHANNEL), GuessKind::Signature((CompanyId::new(1), ChannelId::new(3)))]
        {
            assert_eq!(refuse(address(7), other).status.as_u16(), 401, "{other:?}");
        }
        assert_eq!(refuse(address(8), guess).status.as_u16(), 401, "another address");
    }
}
