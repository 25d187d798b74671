//! Limits of attempts to sign in, and of requests per person. They are in memory, by account, address and person: none
//! of them belongs to a company, so none is dropped with one.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hotline_actors::clock;
use hotline_actors::ttl_cache::TtlCache;
use hotline_persistence::tables::people::PersonId;

use crate::web::origin::Address;
use crate::web::rate::{Allowance, Limit, TooMany};
use crate::web::{ApiError, ApiResult};

/// Attempts per account, from anywhere, and per address, for any purpose: the burst, and the rate per minute. People
/// mistype three times; guessing needs millions of attempts.
const ACCOUNT_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const ADDRESS_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// Codes of one person's authenticator app in a day that are looked at, until a right one: who knows the password and tries
/// ten a minute would meet one of the three that are good at a time within weeks. A recovery code is another way in meanwhile.
const CODES_PER_DAY: u32 = 50;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Requests of one person per minute: a page makes about ten, and searches send one per keystroke.
const PERSON_REQUESTS: NonZeroU32 = NonZeroU32::MIN.saturating_add(599);

/// Maximum number of counted accounts, addresses and persons, some 200 bytes each; beyond that the least active are
/// evicted.
const REMEMBERED_MAX: usize = 100_000;

/// How long they are kept. A limit is full again after a minute.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// What attempts are counted by.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Tried {
    Account(String),
    /// A device that is known for its account.
    Device(String),
    Password(PersonId),
    Code(PersonId),
    Address(Address),
}

/// The codes that were tried since a first one.
struct Codes {
    began: Instant,
    tried: AtomicU32,
}

/// All limits for people.
pub(super) struct PeopleLimits {
    codes: TtlCache<PersonId, Arc<Codes>>,
    tries: TtlCache<Tried, Arc<Limit>>,
    persons: TtlCache<PersonId, Arc<Limit>>,
}

impl Default for PeopleLimits {
    fn default() -> Self {
        Self {
            codes: TtlCache::new(REMEMBERED_MAX, DAY),
            tries: TtlCache::new(REMEMBERED_MAX, REMEMBERED_FOR),
            persons: TtlCache::new(REMEMBERED_MAX, REMEMBERED_FOR),
        }
    }
}

impl PeopleLimits {
    /// Counts an attempt to sign in, whether the account exists or not. A known device, identified by its cookie, has
    /// its own limit: neither strangers nor others at its address use it up.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_account(&self, email: &str, address: Option<Address>, device: Option<&str>) -> ApiResult<()> {
        if let Some(device) = device {
            return self.attempt(Tried::Device(device.to_owned()), ACCOUNT_TRIES);
        }
        self.try_from_address(address)?;
        self.attempt(Tried::Account(email.to_lowercase()), ACCOUNT_TRIES)
    }

    /// Counts an attempt with their own password by a person who has signed in.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_own_password(&self, person: PersonId) -> ApiResult<()> {
        self.attempt(Tried::Password(person), ACCOUNT_TRIES)
    }

    /// Counts an attempt with a code of a person's second factor.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_code(&self, person: PersonId, address: Option<Address>) -> ApiResult<()> {
        self.try_from_address(address)?;
        self.attempt(Tried::Code(person), ACCOUNT_TRIES)
    }

    /// Takes one of the day's tries with a code of a person's authenticator app; a right one gives them all back.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_code_of_day(&self, person: PersonId) -> ApiResult<()> {
        let new = || Arc::new(Codes { began: clock::instant(), tried: AtomicU32::new(0) });
        let codes = self.codes.get_or_insert_with(&person, new);
        // Counted before it is looked at: of many at once none is left out.
        if codes.tried.fetch_add(1, Ordering::Relaxed) < CODES_PER_DAY {
            return Ok(());
        }
        let passed = clock::instant().saturating_duration_since(codes.began);
        Err(ApiError::too_many_tries(DAY.saturating_sub(passed).as_secs().max(1)))
    }

    /// Notes that a person has given their second factor.
    pub(super) fn note_factor(&self, person: PersonId) {
        self.codes.remove(&person);
    }

    /// Counts an attempt that is limited only by address: with a link.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_from_address(&self, address: Option<Address>) -> ApiResult<()> {
        address.map_or(Ok(()), |address| self.attempt(Tried::Address(address), ADDRESS_TRIES))
    }

    fn attempt(&self, tried: Tried, per_minute: NonZeroU32) -> ApiResult<()> {
        let limit = self.tries.get_or_insert_with(&tried, || Limit::new(per_minute));
        let taken = limit.take();
        taken.map(drop).map_err(|refused| ApiError::too_many_tries(refused.retry_after_s))
    }

    /// Takes a request from a person's allowance.
    ///
    /// # Errors
    /// When none is left.
    pub(super) fn take(&self, person: PersonId) -> Result<Allowance, TooMany> {
        self.persons.get_or_insert_with(&person, || Limit::new(PERSON_REQUESTS)).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_has_so_many_codes_in_a_day_and_all_of_them_again_after_a_right_one() {
        let limits = PeopleLimits::default();
        let person = |id: i64| PersonId::User(7.into(), id.into());
        let taken = |id| limits.try_code_of_day(person(id));
        assert!((0..CODES_PER_DAY).all(|_| taken(1).is_ok()));
        let refused = taken(1).expect_err("one too many");
        assert_eq!(refused.status.as_u16(), 429);
        assert!(refused.retry_after_s.is_some_and(|wait| wait > 23 * 3600 && wait <= 24 * 3600));
        assert!(taken(2).is_ok());
        limits.note_factor(person(1));
        assert!((0..CODES_PER_DAY).all(|_| taken(1).is_ok()));
        assert!(taken(1).is_err());
    }

    #[test]
    fn an_account_and_an_address_have_so_many_tries_and_another_its_own() {
        let limits = PeopleLimits::default();
        let address = |last| Some(Address::of([192, 0, 2, last].into()));
        let served = |email: &str, last| limits.try_account(email, address(last), None).is_ok();
        let mixed = ["ana@example.com", "ANA@example.com"];
        let tried: Vec<bool> = (0..12).map(|turn| served(mixed[turn % 2], u8::try_from(turn).unwrap_or(0))).collect();
        assert_eq!(tried.iter().filter(|served| **served).count(), 10, "from any address");
        assert!(served("ben@example.com", 0));
        let of_address: Vec<bool> = (0..40).map(|turn| served(&format!("{turn}@example.com"), 200)).collect();
        assert_eq!(of_address.iter().filter(|served| **served).count(), 30);
        assert_eq!(limits.try_from_address(address(200)).expect_err("used up").status.as_u16(), 429);
        // A known device of the same account, at the same address.
        let of_device: Vec<bool> =
            (0..12).map(|_| limits.try_account(mixed[0], address(200), Some("v1.a")).is_ok()).collect();
        assert_eq!(of_device.iter().filter(|served| **served).count(), 10);
        assert!(limits.try_account(mixed[0], address(200), Some("v1.b")).is_ok());
    }
}
