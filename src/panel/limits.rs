//! Limits of sign-in attempts, of requests per person, and of e-mails per company. They are in memory, where each
//! process counts on its own, and are not dropped when a company moves to another process.

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

use super::device::{DeviceId, KnownDevice};
use crate::web::admission::rate::{Allowance, Limit, RateExceeded};
use crate::web::connections::origin::Address;
use crate::web::{ApiError, ApiResult};

/// The same key for all e-mails that may be of one account: those with the same lower case in some locale of
/// PostgreSQL. Otherwise each spelling would have attempts of its own.
pub(super) fn account_key(email: &str) -> String {
    // Letter by letter: the lower case of a whole text distinguishes `σ` and `ς`. That of `İ` is an `i` with a dot, in
    // some locales a plain `i`; that of `I` is in others an `ı`.
    let lower = email.chars().flat_map(char::to_lowercase).filter(|letter| *letter != '\u{307}');
    let fold = |letter| match letter {
        'ς' => 'σ',
        'ı' => 'i',
        _ => letter,
    };
    lower.map(fold).collect()
}

/// A limit per minute, which is also the burst.
const fn per_minute(count: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(count.saturating_sub(1))
}

/// Attempts per account or person, from all addresses together; and per address, with passwords, codes and links
/// together: enough for people who mistype, and far too few to guess a password.
const ACCOUNT_ATTEMPTS: NonZeroU32 = per_minute(10);
const ADDRESS_ATTEMPTS: NonZeroU32 = per_minute(30);

/// Attempts of one person on one device that is known for them, and on all such devices together: the cookies of many
/// devices allow no more guesses than those of three.
const DEVICE_ATTEMPTS: NonZeroU32 = per_minute(10);
const ALL_DEVICES_ATTEMPTS: NonZeroU32 = per_minute(30);

/// Look-ups per address of session cookies that this installation has not signed. People's own cookies are among these
/// only after the key that signed them was deleted.
const COOKIE_LOOK_UPS: NonZeroU32 = per_minute(60);

/// How long an ended session is cached, and how many are at most, about 100 bytes each. An ended session never becomes
/// valid again, so the cache only saves the look-ups for a browser that still sends its cookie.
const ENDED_SESSION_TIME: Duration = Duration::from_secs(60);
const ENDED_SESSIONS_MAX: usize = 20_000;

/// Maximum wrong codes of a person's authenticator app in a day. Without it, a stranger who knows the password and
/// tries ten a minute would guess one of the three valid codes within weeks. Recovery codes are not affected.
const CODES_PER_DAY: u32 = 50;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Requests of a person's sessions that wait for the second factor. The page that asks for it makes a few.
const HALF_OPEN_REQUESTS: NonZeroU32 = per_minute(30);

/// Requests of one person: a page makes about ten, and searches send one per keystroke.
const PERSON_REQUESTS: NonZeroU32 = per_minute(600);

/// Maximum number of counted accounts, addresses and persons, about 200 bytes each; beyond that the least active are
/// evicted.
const REMEMBERED_MAX: usize = 100_000;

/// How long counted accounts, addresses and persons are remembered. An allowance is full again after a minute.
const REMEMBERED_TIME: Duration = Duration::from_secs(600);

/// What attempts are counted by.
#[derive(Clone, PartialEq, Eq, Hash)]
enum AttemptKey {
    /// The e-mail of attempts on devices that are not known.
    Account(String),
    /// A device that is known for this person.
    Device(PersonId, DeviceId),
    /// All devices that are known for this person.
    AllDevices(PersonId),
    Password(PersonId),
    Code(PersonId),
    Address(Address),
    /// Requests of sessions that wait for the second factor.
    HalfOpen(PersonId),
    /// Cookies that this installation has not signed.
    Cookie(Address),
}

/// Maximum e-mails of a company in an hour: enough to invite a team, and too few to abuse the installation's relay for
/// spam. Further links must be passed on by hand.
const EMAILS_PER_HOUR: u32 = 50;

/// How many of a company's e-mails per hour may be requested at the sign-in page. Strangers who know addresses of its
/// people can use up only these.
const REQUESTED_EMAILS_PER_HOUR: u32 = 20;
const HOUR: Duration = Duration::from_secs(3600);

/// Maximum number of companies whose e-mails are counted, about 100 bytes each: those that sent any in the last hour.
const COMPANIES_MAX: usize = 100_000;

/// A count, and when it began.
struct Counter {
    started: Instant,
    count: AtomicU32,
}

impl Counter {
    fn new() -> Self {
        Self { started: clock::instant(), count: AtomicU32::new(0) }
    }

    /// Increments the count, and returns whether it was below the maximum. To be called before the action, so that
    /// concurrent actions are counted.
    fn try_increment(&self, max: u32) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed) < max
    }

    /// Whether the count is below the maximum.
    fn is_below(&self, max: u32) -> bool {
        self.count.load(Ordering::Relaxed) < max
    }
}

/// The e-mails of a company in an hour.
struct EmailCounters {
    total: Counter,
    /// E-mails that were requested at the sign-in page.
    requested: Counter,
}

impl EmailCounters {
    fn new() -> Arc<Self> {
        Arc::new(Self { total: Counter::new(), requested: Counter::new() })
    }
}

/// All limits for people.
pub(super) struct PeopleLimits {
    daily_codes: TtlCache<PersonId, Arc<Counter>>,
    emails: TtlCache<CompanyId, Arc<EmailCounters>>,
    attempts: TtlCache<AttemptKey, Arc<Limit>>,
    person_requests: TtlCache<PersonId, Arc<Limit>>,
    ended_sessions: TtlCache<KeyHash, ()>,
}

impl Default for PeopleLimits {
    fn default() -> Self {
        Self {
            daily_codes: TtlCache::new(REMEMBERED_MAX, DAY),
            emails: TtlCache::new(COMPANIES_MAX, HOUR),
            attempts: TtlCache::new(REMEMBERED_MAX, REMEMBERED_TIME),
            person_requests: TtlCache::new(REMEMBERED_MAX, REMEMBERED_TIME),
            ended_sessions: TtlCache::new(ENDED_SESSIONS_MAX, ENDED_SESSION_TIME),
        }
    }
}

impl PeopleLimits {
    /// Counts an attempt of a person to sign in on a device that is known for them. Strangers and people at the same
    /// address cannot use up these attempts.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_device(&self, known_device: &KnownDevice) -> ApiResult<()> {
        let KnownDevice { person, device } = known_device;
        self.count_attempt(AttemptKey::Device(*person, device.clone()), DEVICE_ATTEMPTS)?;
        self.count_attempt(AttemptKey::AllDevices(*person), ALL_DEVICES_ATTEMPTS)
    }

    /// Counts an attempt to sign in on a device that is not known, whether the account exists or not.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_account(&self, email: &str, address: Option<Address>) -> ApiResult<()> {
        self.try_from_address(address)?;
        self.count_attempt(AttemptKey::Account(account_key(email)), ACCOUNT_ATTEMPTS)
    }

    /// Counts an attempt of a signed-in person with their own password.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_own_password(&self, person: PersonId) -> ApiResult<()> {
        self.count_attempt(AttemptKey::Password(person), ACCOUNT_ATTEMPTS)
    }

    /// Counts an attempt with a code of a person's second factor.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_code(&self, person: PersonId, address: Option<Address>) -> ApiResult<()> {
        self.try_from_address(address)?;
        self.count_attempt(AttemptKey::Code(person), ACCOUNT_ATTEMPTS)
    }

    /// Counts an attempt with a code of a person's authenticator app towards the day's limit; a correct code resets the
    /// count.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_daily_code(&self, person: PersonId) -> ApiResult<()> {
        let codes = self.daily_codes.get_or_insert_with(&person, || Arc::new(Counter::new()));
        if codes.try_increment(CODES_PER_DAY) {
            return Ok(());
        }
        let elapsed = clock::instant().saturating_duration_since(codes.started);
        Err(ApiError::too_many_attempts(DAY.saturating_sub(elapsed).as_secs().max(1)))
    }

    /// Resets the count of codes after a correct one.
    pub(super) fn reset_codes(&self, person: PersonId) {
        self.daily_codes.remove(&person);
    }

    /// Whether an e-mail of a company may be requested at the sign-in page now. Counts nothing: this is checked before
    /// a link is created, and [`PeopleLimits::take_requested_email`] counts the e-mail.
    pub(super) fn may_request_email(&self, company: CompanyId) -> bool {
        let is_available = |emails: &EmailCounters| {
            emails.requested.is_below(REQUESTED_EMAILS_PER_HOUR) && emails.total.is_below(EMAILS_PER_HOUR)
        };
        self.emails.get(&company).is_none_or(|emails| is_available(&emails))
    }

    /// Counts an e-mail that was requested at the sign-in page; `false` when the limit is reached. E-mails to
    /// administrators of the installation have the limit of one company.
    pub(super) fn take_requested_email(&self, company: CompanyId) -> bool {
        let emails = self.emails.get_or_insert_with(&company, EmailCounters::new);
        emails.requested.try_increment(REQUESTED_EMAILS_PER_HOUR) && emails.total.try_increment(EMAILS_PER_HOUR)
    }

    /// Counts an e-mail that an administrator has requested; `false` when the limit is reached.
    pub(super) fn take_email(&self, company: CompanyId) -> bool {
        self.emails.get_or_insert_with(&company, EmailCounters::new).total.try_increment(EMAILS_PER_HOUR)
    }

    /// Counts an attempt of any kind from an address. Attempts with a link have no other limit.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_from_address(&self, address: Option<Address>) -> ApiResult<()> {
        address.map_or(Ok(()), |address| self.count_attempt(AttemptKey::Address(address), ADDRESS_ATTEMPTS))
    }

    /// Counts a request of a session that waits for the second factor. It leaves the allowance of the person's open
    /// sessions unchanged.
    ///
    /// # Errors
    /// `429` when there were too many.
    pub(super) fn try_half_open(&self, person: PersonId) -> ApiResult<()> {
        self.count_attempt(AttemptKey::HalfOpen(person), HALF_OPEN_REQUESTS)
    }

    fn count_attempt(&self, key: AttemptKey, per_minute: NonZeroU32) -> ApiResult<()> {
        let limit = self.attempts.get_or_insert_with(&key, || Limit::new(per_minute));
        let result = limit.take();
        result.map(drop).map_err(|exceeded| ApiError::too_many_attempts(exceeded.retry_after_s))
    }

    /// Counts a look-up of a cookie that this installation has not signed; `false` when the limit is reached.
    pub(super) fn take_cookie_look_up(&self, address: Option<Address>) -> bool {
        address.is_none_or(|address| self.count_attempt(AttemptKey::Cookie(address), COOKIE_LOOK_UPS).is_ok())
    }

    /// Whether the session is cached as ended.
    pub(super) fn has_ended(&self, key: &SessionKey) -> bool {
        self.ended_sessions.get(&key.hash()).is_some()
    }

    /// Caches the session as ended.
    pub(super) fn record_ended(&self, key: &SessionKey) {
        self.ended_sessions.insert(key.hash(), ());
    }

    /// Takes a request from a person's allowance.
    ///
    /// # Errors
    /// When none is left.
    pub(super) fn take_request(&self, person: PersonId) -> Result<Allowance, RateExceeded> {
        self.person_requests.get_or_insert_with(&person, || Limit::new(PERSON_REQUESTS)).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stops the clock of the limits: none refills while a slow machine makes its attempts.
    fn stop_clock() {
        #[cfg(feature = "failpoints")]
        clock::stop();
    }

    #[test]
    fn codes_are_limited_per_day_and_reset_by_a_correct_one() {
        let limits = PeopleLimits::default();
        let person = |id: i64| PersonId::User(7.into(), id.into());
        let try_code = |id| limits.try_daily_code(person(id));
        assert!((0..CODES_PER_DAY).all(|_| try_code(1).is_ok()));
        let error = try_code(1).expect_err("one too many");
        assert_eq!(error.status.as_u16(), 429);
        assert!(error.retry_after_s.is_some_and(|wait| wait > 23 * 3600 && wait <= 24 * 3600));
        assert!(try_code(2).is_ok());
        limits.reset_codes(person(1));
        assert!((0..CODES_PER_DAY).all(|_| try_code(1).is_ok()));
        assert!(try_code(1).is_err());
    }

    #[test]
    fn attempts_are_limited_per_account_and_per_address() {
        stop_clock();
        let limits = PeopleLimits::default();
        let address = |last| Some(Address::of([192, 0, 2, last].into()));
        let is_admitted = |email: &str, last| limits.try_account(email, address(last)).is_ok();
        let spellings = ["ana@example.com", "ANA@example.com"];
        let admitted: Vec<bool> =
            (0..12).map(|turn| is_admitted(spellings[turn % 2], u8::try_from(turn).unwrap_or(0))).collect();
        assert_eq!(admitted.iter().filter(|is_admitted| **is_admitted).count(), 10, "whatever the address");
        for spelling in ["\u{130}r\u{130}s", "iris", "IRIS", "\u{131}r\u{131}s", "i\u{307}ris"] {
            let email = format!("{spelling}@example.com");
            assert!((0..2).all(|turn| is_admitted(&email, 100 + turn)), "{spelling}");
        }
        assert!(!is_admitted("ir\u{130}s@example.com", 102), "another spelling");
        assert_eq!(account_key("ΝΙΚΟΣ@x.example"), account_key("νικος@x.example"));
        assert_eq!(account_key("ΝΙΚΟΣ@x.example"), account_key("νικοσ@x.example"));
        assert!(is_admitted("ben@example.com", 0));
        let from_one_address: Vec<bool> =
            (0..40).map(|turn| is_admitted(&format!("{turn}@example.com"), 200)).collect();
        assert_eq!(from_one_address.iter().filter(|is_admitted| **is_admitted).count(), 30);
        assert_eq!(limits.try_from_address(address(200)).expect_err("used up").status.as_u16(), 429);
    }

    #[test]
    fn attempts_are_limited_per_known_device_and_for_all_of_a_person() {
        stop_clock();
        let limits = PeopleLimits::default();
        let attempts = |person: i64, device: &str, count: usize| {
            let known_device =
                KnownDevice { person: PersonId::User(7.into(), person.into()), device: device.to_owned() };
            (0..count).filter(|_| limits.try_device(&known_device).is_ok()).count()
        };
        assert_eq!(attempts(1, "a", 12), 10);
        assert_eq!((attempts(1, "b", 12), attempts(1, "c", 12), attempts(1, "d", 12)), (10, 10, 0));
        assert_eq!(attempts(2, "a", 12), 10, "the same device, another person");
    }
}
