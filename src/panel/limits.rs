//! How often somebody may try to sign in, and how much a person may ask for. In memory, by account, address and person:
//! nothing of it is a company's, so nothing of it is dropped with one.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::DefaultClock;
use hotline_actors::ttl_cache::TtlCache;
use hotline_persistence::tables::people::PersonId;

use crate::web::origin::Address;
use crate::web::rate::{Allowance, Limit, TooMany};
use crate::web::{ApiError, ApiResult};

/// Tries for one account, whoever makes them, and from one address, whatever they are for: so many at once, and as many in
/// each minute. People mistype three times; who guesses needs millions.
const ACCOUNT_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const ADDRESS_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// Requests of one person in a minute: a page asks for some ten things, and lists are typed into.
const PERSON_REQUESTS: NonZeroU32 = NonZeroU32::MIN.saturating_add(599);

/// Accounts, addresses and persons that are remembered, some 200 bytes each; of more the least busy are forgotten.
const REMEMBERED_MAX: usize = 100_000;

/// How long. A limit is whole again after a minute.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// Whose tries are counted.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Tried {
    Account(String),
    /// A device from which somebody has signed in to the account it names.
    Device(String),
    Password(PersonId),
    Code(PersonId),
    Address(Address),
}

/// Every limit of people.
pub(super) struct PeopleLimits {
    tries: TtlCache<Tried, Arc<Limit>>,
    persons: TtlCache<PersonId, Arc<Limit>>,
    clock: DefaultClock,
}

impl Default for PeopleLimits {
    fn default() -> Self {
        Self {
            tries: TtlCache::new(REMEMBERED_MAX, REMEMBERED_FOR),
            persons: TtlCache::new(REMEMBERED_MAX, REMEMBERED_FOR),
            clock: DefaultClock::default(),
        }
    }
}

impl PeopleLimits {
    /// Takes a try to sign in. What is counted does not depend on whether there is such an account. A device that is known
    /// for it, by what it shows, has tries of its own: neither strangers nor who shares its address use them up.
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

    /// Takes a try with a person's own password, of who has signed in as them.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_own_password(&self, person: PersonId) -> ApiResult<()> {
        self.attempt(Tried::Password(person), ACCOUNT_TRIES)
    }

    /// Takes a try with a code of a person's second factor.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_code(&self, person: PersonId, address: Option<Address>) -> ApiResult<()> {
        self.try_from_address(address)?;
        self.attempt(Tried::Code(person), ACCOUNT_TRIES)
    }

    /// Takes a try with what only this address is asked for: a link.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_from_address(&self, address: Option<Address>) -> ApiResult<()> {
        address.map_or(Ok(()), |address| self.attempt(Tried::Address(address), ADDRESS_TRIES))
    }

    fn attempt(&self, tried: Tried, per_minute: NonZeroU32) -> ApiResult<()> {
        let limit = self.tries.get_or_insert_with(&tried, || Limit::new(per_minute));
        let taken = limit.take(&self.clock);
        taken.map(drop).map_err(|refused| ApiError::too_many_tries(refused.retry_after_s))
    }

    /// Takes a request of a person.
    ///
    /// # Errors
    /// When none is left.
    pub(super) fn take(&self, person: PersonId) -> Result<Allowance, TooMany> {
        self.persons.get_or_insert_with(&person, || Limit::new(PERSON_REQUESTS)).take(&self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
