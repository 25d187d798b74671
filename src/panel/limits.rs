//! Limits of attempts to sign in, of requests per person, and of letters per company. They are in memory, and none is dropped
//! with a company that another process serves: each process counts what it does itself.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hotline_actors::clock;
use hotline_actors::ttl_cache::TtlCache;
use hotline_persistence::CompanyId;
use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::people::sessions::SessionKey;

use super::device::{DeviceId, Known};
use crate::web::origin::Address;
use crate::web::rate::{Allowance, Limit, RateExceeded};
use crate::web::{ApiError, ApiResult};

/// Attempts per account, from anywhere, and per address, for any purpose: the burst, and the rate per minute. People
/// mistype three times; guessing needs millions of attempts.
const ACCOUNT_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const ADDRESS_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// Attempts of one person on one device that is known for them, and on all of these together, per minute: who could take a
/// cookie of each would guess no faster than from three devices.
const DEVICE_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const DEVICES_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// Cookies of sessions from one address that this installation has not made and that are looked up, per minute: those of a
/// release before, of some people behind one address. Nobody else has any.
const COOKIE_LOOK_UPS: NonZeroU32 = NonZeroU32::MIN.saturating_add(59);

/// Sessions that were looked up and have ended: how long that is remembered, and of how many, some 100 bytes each. None begins
/// again, so this only bounds how often a browser that goes on to show one is looked up.
const ENDED_FOR: Duration = Duration::from_secs(60);
const ENDED_MAX: usize = 20_000;

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
    /// An e-mail, from devices that are not known.
    Account(String),
    /// A device that is known for this person.
    Device(PersonId, DeviceId),
    /// All devices that are known for this person.
    Devices(PersonId),
    Password(PersonId),
    Code(PersonId),
    Address(Address),
    /// Cookies that this installation has not made.
    Cookie(Address),
}

/// Letters that are sent for one company in an hour, whoever asks for them: a company invites a team at a time, and the
/// installation's relay is nobody's means to write to strangers. Further links are passed on by hand.
const LETTERS_PER_HOUR: u32 = 50;

/// How many of these may be asked for at the sign-in page. Strangers who know the addresses of a company's people use up these
/// alone, and leave the others to who has signed in.
const ASKED_LETTERS_PER_HOUR: u32 = 20;
const HOUR: Duration = Duration::from_secs(3600);

/// Maximum number of companies whose letters are counted, some 100 bytes each: those that sent any in the last hour.
const COMPANIES_MAX: usize = 100_000;

/// What was counted since a first one.
struct Counted {
    began: Instant,
    times: AtomicU32,
}

impl Counted {
    fn new() -> Self {
        Self { began: clock::instant(), times: AtomicU32::new(0) }
    }

    /// Counts one more, before it is done: of many at once none is left out. Returns whether it is at most so many.
    fn take(&self, most: u32) -> bool {
        self.times.fetch_add(1, Ordering::Relaxed) < most
    }

    /// Whether one more would be at most so many.
    fn has(&self, most: u32) -> bool {
        self.times.load(Ordering::Relaxed) < most
    }
}

/// The letters of a company in an hour.
struct Letters {
    all: Counted,
    /// Those that were asked for at the sign-in page.
    asked: Counted,
}

impl Letters {
    fn new() -> Arc<Self> {
        Arc::new(Self { all: Counted::new(), asked: Counted::new() })
    }
}

/// All limits for people.
pub(super) struct PeopleLimits {
    codes: TtlCache<PersonId, Arc<Counted>>,
    letters: TtlCache<CompanyId, Arc<Letters>>,
    tries: TtlCache<Tried, Arc<Limit>>,
    persons: TtlCache<PersonId, Arc<Limit>>,
    ended: TtlCache<KeyHash, ()>,
}

impl Default for PeopleLimits {
    fn default() -> Self {
        Self {
            codes: TtlCache::new(REMEMBERED_MAX, DAY),
            letters: TtlCache::new(COMPANIES_MAX, HOUR),
            tries: TtlCache::new(REMEMBERED_MAX, REMEMBERED_FOR),
            persons: TtlCache::new(REMEMBERED_MAX, REMEMBERED_FOR),
            ended: TtlCache::new(ENDED_MAX, ENDED_FOR),
        }
    }
}

impl PeopleLimits {
    /// Counts an attempt of a person to sign in on a device that is known for them: neither strangers nor others at its
    /// address use these up.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_device(&self, known: &Known) -> ApiResult<()> {
        self.attempt(Tried::Device(known.person, known.device.clone()), DEVICE_TRIES)?;
        self.attempt(Tried::Devices(known.person), DEVICES_TRIES)
    }

    /// Counts an attempt to sign in on a device that is not known, whether the account exists or not.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_account(&self, email: &str, address: Option<Address>) -> ApiResult<()> {
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
        let codes = self.codes.get_or_insert_with(&person, || Arc::new(Counted::new()));
        if codes.take(CODES_PER_DAY) {
            return Ok(());
        }
        let passed = clock::instant().saturating_duration_since(codes.began);
        Err(ApiError::too_many_attempts(DAY.saturating_sub(passed).as_secs().max(1)))
    }

    /// Notes that a person has given their second factor.
    pub(super) fn note_factor(&self, person: PersonId) {
        self.codes.remove(&person);
    }

    /// Whether a company has letters left in this hour for who asks at the sign-in page: nothing is made for a letter that
    /// would not be sent.
    pub(super) fn has_asked_letters(&self, company: CompanyId) -> bool {
        let left = |letters: &Letters| letters.asked.has(ASKED_LETTERS_PER_HOUR) && letters.all.has(LETTERS_PER_HOUR);
        self.letters.get(&company).is_none_or(|letters| left(&letters))
    }

    /// Takes one of a company's letters of this hour for who asks at the sign-in page, if one is left for them. The
    /// installation's own people have as many.
    pub(super) fn may_write_asked(&self, company: CompanyId) -> bool {
        let letters = self.letters.get_or_insert_with(&company, Letters::new);
        letters.asked.take(ASKED_LETTERS_PER_HOUR) && letters.all.take(LETTERS_PER_HOUR)
    }

    /// Takes one of a company's letters of this hour for its administrator, if one is left.
    pub(super) fn may_write(&self, company: CompanyId) -> bool {
        self.letters.get_or_insert_with(&company, Letters::new).all.take(LETTERS_PER_HOUR)
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
        taken.map(drop).map_err(|refused| ApiError::too_many_attempts(refused.retry_after_s))
    }

    /// Whether a cookie that this installation has not made may be looked up; each is counted.
    pub(super) fn may_look_up_cookie(&self, address: Option<Address>) -> bool {
        address.is_none_or(|address| self.attempt(Tried::Cookie(address), COOKIE_LOOK_UPS).is_ok())
    }

    /// Whether a session was looked up and had ended.
    pub(super) fn has_ended(&self, key: &SessionKey) -> bool {
        self.ended.get(&key.hash()).is_some()
    }

    /// Notes that a session has ended.
    pub(super) fn note_ended(&self, key: &SessionKey) {
        self.ended.insert(key.hash(), ());
    }

    /// Takes a request from a person's allowance.
    ///
    /// # Errors
    /// When none is left.
    pub(super) fn take(&self, person: PersonId) -> Result<Allowance, RateExceeded> {
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
        let served = |email: &str, last| limits.try_account(email, address(last)).is_ok();
        let mixed = ["ana@example.com", "ANA@example.com"];
        let tried: Vec<bool> = (0..12).map(|turn| served(mixed[turn % 2], u8::try_from(turn).unwrap_or(0))).collect();
        assert_eq!(tried.iter().filter(|served| **served).count(), 10, "from any address");
        assert!(served("ben@example.com", 0));
        let of_address: Vec<bool> = (0..40).map(|turn| served(&format!("{turn}@example.com"), 200)).collect();
        assert_eq!(of_address.iter().filter(|served| **served).count(), 30);
        assert_eq!(limits.try_from_address(address(200)).expect_err("used up").status.as_u16(), 429);
    }

    #[test]
    fn a_known_device_has_so_many_tries_and_all_of_a_person_have_so_many() {
        let limits = PeopleLimits::default();
        let taken = |person: i64, device: &str, times: usize| {
            let known = Known { person: PersonId::User(7.into(), person.into()), device: device.to_owned() };
            (0..times).filter(|_| limits.try_device(&known).is_ok()).count()
        };
        assert_eq!(taken(1, "a", 12), 10);
        assert_eq!((taken(1, "b", 12), taken(1, "c", 12), taken(1, "d", 12)), (10, 10, 0));
        assert_eq!(taken(2, "a", 12), 10, "the same device, another person");
    }
}
