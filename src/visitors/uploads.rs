//! Limits on the bytes that visitors send, by session, address and company. Each limit is a token bucket that refills
//! evenly within an hour. Bytes count when they arrive: a refused file has cost as much as a stored one.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use dashmap::DashMap;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use hotline_persistence::{CompanyId, SessionId};

use super::limit_keys::{CLEANUP_INTERVAL, KEYS_MAX};
use crate::web::admission::rate::{LimitClock, RateExceeded};
use crate::web::connections::origin::Address;

/// Bytes per counted unit. Part of a unit counts as a whole one, so that no body is free.
const UNIT_BYTES: usize = 1024;

/// Limits on what visitors may send per hour, in MiB; 0: no limit.
#[derive(Clone, Copy, Debug)]
pub struct UploadOptions {
    /// Per session.
    pub session_mib_per_hour: u32,
    /// For all sessions of one address.
    pub address_mib_per_hour: u32,
    /// For all sessions of one company.
    pub company_mib_per_hour: u32,
}

impl UploadOptions {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        // Eight files of maximum size, or a hundred photographs.
        session_mib_per_hour: 128,
        // An office behind one address.
        address_mib_per_hour: 1024,
        // Thousands of visitors; fills a disk of 100 GiB in ten hours.
        company_mib_per_hour: 10 * 1024,
    };

    /// No limits.
    pub const NONE: Self = Self { session_mib_per_hour: 0, address_mib_per_hour: 0, company_mib_per_hour: 0 };
}

type KeyedLimiter<K> = RateLimiter<K, DefaultKeyedStateStore<K>, LimitClock, NoOpMiddleware<Instant>>;
type DirectLimiter = RateLimiter<NotKeyed, InMemoryState, LimitClock, NoOpMiddleware<Instant>>;

struct UploadLimit<K: Clone + std::hash::Hash + Eq> {
    mib_per_hour: u32,
    limiter: Option<KeyedLimiter<K>>,
}

impl<K: Clone + std::hash::Hash + Eq> UploadLimit<K> {
    fn new(mib_per_hour: u32) -> Self {
        let kib = mib_per_hour.saturating_mul(1024);
        let quota = NonZeroU32::new(kib).map(Quota::per_hour);
        let new_limiter = |quota| RateLimiter::new(quota, DefaultKeyedStateStore::default(), LimitClock);
        Self { mib_per_hour, limiter: quota.map(new_limiter) }
    }

    fn take(&self, key: &K, units: NonZeroU32) -> Result<(), RateExceeded> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if limiter.len() >= KEYS_MAX {
            return Err(RateExceeded::after(self.mib_per_hour, CLEANUP_INTERVAL));
        }
        match limiter.check_key_n(key, units) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(RateExceeded::after(self.mib_per_hour, error.wait_time_from(LimitClock.now()))),
            // One chunk exceeds the allowance of a whole hour.
            Err(_) => Err(RateExceeded::after(self.mib_per_hour, std::time::Duration::from_secs(3600))),
        }
    }

    fn remove_refilled(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

/// Like [`UploadLimit`], for companies. Each company has a limiter of its own, so that
/// [`UploadAllowances::forget_company`] can drop it. The number of limiters needs no maximum:
/// it is at most that of companies.
struct CompanyLimit {
    mib_per_hour: u32,
    quota: Option<Quota>,
    limiters: DashMap<CompanyId, Arc<DirectLimiter>>,
}

impl CompanyLimit {
    fn new(mib_per_hour: u32) -> Self {
        let quota = NonZeroU32::new(mib_per_hour.saturating_mul(1024)).map(Quota::per_hour);
        Self { mib_per_hour, quota, limiters: DashMap::new() }
    }

    fn take(&self, company: CompanyId, units: NonZeroU32) -> Result<(), RateExceeded> {
        let Some(quota) = self.quota else { return Ok(()) };
        let new_limiter = || Arc::new(DirectLimiter::direct_with_clock(quota, LimitClock));
        let limiter = self.limiters.entry(company).or_insert_with(new_limiter).clone();
        match limiter.check_n(units) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(RateExceeded::after(self.mib_per_hour, error.wait_time_from(LimitClock.now()))),
            // One chunk exceeds the allowance of a whole hour.
            Err(_) => Err(RateExceeded::after(self.mib_per_hour, std::time::Duration::from_secs(3600))),
        }
    }
}

/// The remaining allowance of every session, address and company.
pub(super) struct UploadAllowances {
    sessions: UploadLimit<SessionId>,
    addresses: UploadLimit<Address>,
    companies: CompanyLimit,
}

impl UploadAllowances {
    pub(super) fn new(options: UploadOptions) -> Self {
        Self {
            sessions: UploadLimit::new(options.session_mib_per_hour),
            addresses: UploadLimit::new(options.address_mib_per_hour),
            companies: CompanyLimit::new(options.company_mib_per_hour),
        }
    }

    fn take(&self, sender: &Sender, units: NonZeroU32) -> Result<(), RateExceeded> {
        if let Some(session) = &sender.session {
            self.sessions.take(session, units)?;
        }
        if let Some(address) = &sender.address {
            self.addresses.take(address, units)?;
        }
        self.companies.take(sender.company, units)
    }

    /// Removes sessions and addresses whose allowances are full again.
    pub(super) fn remove_refilled(&self) {
        self.sessions.remove_refilled();
        self.addresses.remove_refilled();
    }

    /// Drops a company's limiter, so its allowance is full again. Sessions and addresses are dropped once theirs are.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self { sessions: _, addresses: _, companies } = self;
        companies.limiters.remove(&company);
    }
}

/// The session, address and company that a body counts against.
#[derive(Clone)]
struct Sender {
    /// `None` while the session is being opened.
    session: Option<SessionId>,
    address: Option<Address>,
    company: CompanyId,
}

/// Counts the bytes of one body.
pub(super) struct UploadMeter {
    uploads: Arc<UploadAllowances>,
    sender: Sender,
    /// Bytes of the last counted unit that have not arrived yet.
    prepaid_bytes: usize,
}

impl UploadMeter {
    pub(super) fn of(
        uploads: Arc<UploadAllowances>,
        company: CompanyId,
        session: Option<&SessionId>,
        address: Option<Address>,
    ) -> Self {
        let sender = Sender { session: session.cloned(), address, company };
        Self { uploads, sender, prepaid_bytes: 0 }
    }

    /// Counts this many further bytes; refuses them when a limit is exceeded.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), RateExceeded> {
        let uncounted_bytes = bytes.saturating_sub(self.prepaid_bytes);
        let units = uncounted_bytes.div_ceil(UNIT_BYTES);
        if let Some(units) = NonZeroU32::new(u32::try_from(units).unwrap_or(u32::MAX)) {
            self.uploads.take(&self.sender, units)?;
        }
        self.prepaid_bytes = (self.prepaid_bytes + units * UNIT_BYTES).saturating_sub(bytes);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn meter(uploads: &Arc<UploadAllowances>, session: &str, last_octet: u8, company: i64) -> UploadMeter {
        let address = Some(Address::of([192, 0, 2, last_octet].into()));
        let session = Some(SessionId(session.to_owned()));
        let sender = Sender { session, address, company: CompanyId::new(company) };
        UploadMeter { uploads: uploads.clone(), sender, prepaid_bytes: 0 }
    }

    #[test]
    fn sessions_addresses_and_companies_have_separate_limits() {
        let uploads = Arc::new(UploadAllowances::new(UploadOptions {
            session_mib_per_hour: 1,
            address_mib_per_hour: 2,
            company_mib_per_hour: 3,
        }));
        assert!(meter(&uploads, "a", 1, 1).take(MIB).is_ok());
        let error = meter(&uploads, "a", 1, 1).take(MIB / 2).expect_err("above the session's limit");
        assert_eq!(error.allowance.limit, 1);
        assert!((1500..=1800).contains(&error.retry_after_s), "{error:?}");
        assert!(meter(&uploads, "b", 1, 1).take(MIB).is_ok());
        let error = meter(&uploads, "c", 1, 1).take(MIB / 2).expect_err("above the address's limit");
        assert_eq!(error.allowance.limit, 2);
        assert!(meter(&uploads, "d", 2, 1).take(MIB).is_ok());
        let error = meter(&uploads, "e", 3, 1).take(MIB / 2).expect_err("above the company's limit");
        assert_eq!(error.allowance.limit, 3);
        assert!(meter(&uploads, "f", 4, 2).take(MIB).is_ok(), "another company has its own limit");
    }

    #[test]
    fn bytes_count_the_same_in_one_chunk_and_in_many() {
        // The limit refills by a unit every few seconds, and a slow machine takes long to send byte by byte.
        #[cfg(feature = "failpoints")]
        hotline_actors::clock::stop();
        let options = UploadOptions { session_mib_per_hour: 1, ..UploadOptions::NONE };
        let uploads = Arc::new(UploadAllowances::new(options));
        let mut byte_by_byte = meter(&uploads, "a", 1, 1);
        for _ in 0..MIB / 2 {
            byte_by_byte.take(1).expect("half of the limit");
        }
        let mut in_chunks = meter(&uploads, "a", 1, 1);
        in_chunks.take(MIB / 2 + 8 * UNIT_BYTES).expect_err("more than remains");
        in_chunks.take(MIB / 2 - UNIT_BYTES).expect("less than remains");
        let unlimited = Arc::new(UploadAllowances::new(UploadOptions::NONE));
        assert!(meter(&unlimited, "a", 1, 1).take(usize::MAX / 2).is_ok());
    }
}
