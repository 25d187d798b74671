//! The rate of each company: its requests per minute.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use dashmap::DashMap;
use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use hotline_actors::clock;
use hotline_persistence::CompanyId;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Represents no limit: more than anyone can use.
const NO_LIMIT: u32 = i32::MAX as u32;

/// The service's clock, for rate limiters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitClock;

impl Clock for LimitClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        clock::instant()
    }
}

/// The limits of all companies that have called.
pub struct RateLimits {
    /// Requests per minute of a company without its own limit; 0: no limit.
    default_per_minute: u32,
    companies: DashMap<CompanyId, Arc<Limit>>,
    /// The limits of companies' people, shared by all people of a company.
    people: DashMap<CompanyId, Arc<Limit>>,
}

/// Minimum requests per minute of a company's people, even if its tokens have fewer: enough for two people who work at
/// full speed, or twenty who open six pages a minute each.
const PEOPLE_PER_MINUTE_MIN: u32 = 1_200;

/// A rate limit and its usage.
pub(crate) struct Limit {
    per_minute: u32,
    limiter: RateLimiter<NotKeyed, InMemoryState, LimitClock, StateInformationMiddleware>,
}

/// Marks a request without a limit: its response has no rate headers.
#[derive(Clone, Copy, Debug)]
pub struct Unlimited;

/// A caller's remaining allowance, as the response headers report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Requests per minute.
    pub limit: u32,
    /// Requests available now.
    pub remaining: u32,
    /// Seconds until the full allowance is available again.
    pub reset_s: u32,
}

/// The limit is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateExceeded {
    /// The remaining allowance.
    pub allowance: Allowance,
    /// Seconds until the next request is served, rounded up; at least one.
    pub retry_after_s: u64,
}

/// Minimum of [`RateExceeded::retry_after_s`]. The wait may have ended since the request was refused, and zero would
/// ask callers to repeat it without a pause.
const RETRY_AFTER_S_MIN: u64 = 1;

impl RateExceeded {
    /// Nothing remains of this limit until `wait` has passed.
    pub(crate) fn after(limit: u32, wait: Duration) -> Self {
        let retry_after_s = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(RETRY_AFTER_S_MIN);
        Self { allowance: allowance(limit, 0), retry_after_s }
    }
}

impl RateLimits {
    /// Limits with a default.
    pub fn new(default_per_minute: u32) -> Self {
        Self { default_per_minute, companies: DashMap::new(), people: DashMap::new() }
    }

    /// The allowance reported to a caller without a company: the default, unused.
    pub fn default_allowance(&self) -> Allowance {
        full_allowance(self.default_per_minute)
    }

    /// Drops a company's limit: it starts again with a full minute.
    pub fn forget(&self, company: CompanyId) {
        let Self { default_per_minute: _, companies, people } = self;
        companies.remove(&company);
        people.remove(&company);
    }

    /// Takes one request from a company's allowance; `per_minute` is the company's own limit, if it has one.
    ///
    /// # Errors
    /// When no request is left.
    pub fn take(&self, company: CompanyId, per_minute: Option<i32>) -> Result<Allowance, RateExceeded> {
        let Some(rate) = self.rate_of(per_minute) else { return Ok(full_allowance(0)) };
        limit_of(&self.companies, company, rate).take()
    }

    /// Takes one request from the allowance of a company's people, which is as large as its tokens' but at least
    /// `PEOPLE_PER_MINUTE_MIN`. It is separate, so that integrations and people do not block each other.
    ///
    /// # Errors
    /// When no request is left.
    pub fn take_for_people(&self, company: CompanyId, per_minute: Option<i32>) -> Result<Allowance, RateExceeded> {
        let Some(rate) = self.rate_of(per_minute) else { return Ok(full_allowance(0)) };
        let rate_min = NonZeroU32::new(PEOPLE_PER_MINUTE_MIN).unwrap_or(rate);
        limit_of(&self.people, company, rate.max(rate_min)).take()
    }

    /// The company's own rate, or the default; `None`: no limit.
    fn rate_of(&self, per_minute: Option<i32>) -> Option<NonZeroU32> {
        NonZeroU32::new(per_minute.and_then(|own| u32::try_from(own).ok()).unwrap_or(self.default_per_minute))
    }
}

fn limit_of(limits: &DashMap<CompanyId, Arc<Limit>>, company: CompanyId, rate: NonZeroU32) -> Arc<Limit> {
    if let Some(limit) = limits.get(&company)
        && limit.per_minute == rate.get()
    {
        return limit.clone();
    }
    // Checked again under the lock, so that concurrent requests share the same limiter.
    let mut limit = limits.entry(company).or_insert_with(|| Limit::new(rate));
    if limit.per_minute != rate.get() {
        *limit = Limit::new(rate);
    }
    limit.clone()
}

impl Limit {
    /// An unused limit, for a new company or a changed rate.
    pub(crate) fn new(rate: NonZeroU32) -> Arc<Self> {
        let limiter = RateLimiter::direct_with_clock(Quota::per_minute(rate), LimitClock).with_middleware();
        Arc::new(Self { per_minute: rate.get(), limiter })
    }

    /// Takes one request.
    pub(crate) fn take(&self) -> Result<Allowance, RateExceeded> {
        match self.limiter.check() {
            Ok(state) => Ok(allowance(self.per_minute, state.remaining_burst_capacity())),
            Err(refused) => Err(RateExceeded::after(self.per_minute, refused.wait_time_from(LimitClock.now()))),
        }
    }
}

/// The full allowance; without a limit, more than anyone can use.
pub(crate) fn full_allowance(per_minute: u32) -> Allowance {
    let limit = if per_minute == 0 { NO_LIMIT } else { per_minute };
    Allowance { limit, remaining: limit, reset_s: 0 }
}

/// An allowance with `remaining` requests.
pub(crate) fn allowance(limit: u32, remaining: u32) -> Allowance {
    let used = u64::from(limit.saturating_sub(remaining));
    let reset_s = (used * 60).div_ceil(u64::from(limit.max(1)));
    Allowance { limit, remaining, reset_s: u32::try_from(reset_s).unwrap_or(u32::MAX) }
}

impl Allowance {
    /// The smaller of two allowances.
    #[must_use]
    pub fn tighter(self, other: Self) -> Self {
        if other.is_limited() && other.remaining < self.remaining { other } else { self }
    }

    /// Whether there is a limit at all.
    pub fn is_limited(self) -> bool {
        self.limit != NO_LIMIT
    }

    /// Writes the rate headers; without a limit it writes none.
    pub fn write(self, headers: &mut HeaderMap) {
        if !self.is_limited() {
            return;
        }
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(self.reset_s));
    }

    /// Writes the rate headers unless they are already present.
    pub fn write_if_missing(self, headers: &mut HeaderMap) {
        if !headers.contains_key(LIMIT) {
            self.write(headers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stops the clock of the limits: none refills while a slow machine takes from it.
    fn stop_clock() {
        #[cfg(feature = "failpoints")]
        clock::stop();
    }

    #[test]
    fn each_company_has_a_limit_of_its_own() {
        stop_clock();
        let limits = RateLimits::new(2);
        let (a, b) = (CompanyId::new(1), CompanyId::new(2));
        assert_eq!(limits.take(a, None), Ok(Allowance { limit: 2, remaining: 1, reset_s: 30 }));
        assert_eq!(limits.take(a, None), Ok(Allowance { limit: 2, remaining: 0, reset_s: 60 }));
        let refused = limits.take(a, None).expect_err("the third request exceeds the limit");
        assert!((1..=30).contains(&refused.retry_after_s), "{refused:?}");
        assert_eq!(limits.take(b, Some(3)).map(|allowance| allowance.remaining), Ok(2));
        // A raised limit takes effect at once, and 0 means no limit.
        assert_eq!(limits.take(a, Some(100)).map(|allowance| allowance.remaining), Ok(99));
        assert!(limits.take(a, Some(0)).is_ok_and(|allowance| !allowance.is_limited()));
    }

    #[test]
    fn the_wait_after_a_refusal_is_in_whole_seconds_and_at_least_one() {
        for (wait_ms, retry_after_s) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (60_000, 60)] {
            let refused = RateExceeded::after(1, Duration::from_millis(wait_ms));
            assert_eq!(refused.retry_after_s, retry_after_s, "{wait_ms} ms");
        }
    }

    #[test]
    fn the_people_of_a_company_have_a_limit_of_their_own_with_a_minimum() {
        stop_clock();
        let limits = RateLimits::new(2);
        let company = CompanyId::new(1);
        let take_all =
            |limits: &RateLimits, own| (0..10_000).take_while(|_| limits.take_for_people(company, own).is_ok()).count();
        let least = PEOPLE_PER_MINUTE_MIN as usize;
        assert!((least..least + 100).contains(&take_all(&limits, None)), "the minimum applies");
        assert!(limits.take(company, None).is_ok(), "the tokens have their own limit");
        assert!(take_all(&limits, Some(5_000)) >= 5_000);
        assert!(limits.take_for_people(company, Some(0)).is_ok_and(|allowance| !allowance.is_limited()));
        limits.forget(company);
        assert!(limits.people.is_empty() && limits.companies.is_empty());
        let (large, small) = (allowance(600, 500), allowance(1_200, 3));
        assert_eq!((large.tighter(small), small.tighter(large)), (small, small));
        assert_eq!(large.tighter(full_allowance(0)), large);
    }

    #[test]
    fn concurrent_first_requests_of_a_company_share_one_limit() {
        const THREADS: usize = 4;
        for round in 1..=500 {
            let (limits, barrier) = (RateLimits::new(1), std::sync::Barrier::new(THREADS));
            let served = std::thread::scope(|scope| {
                let take = || {
                    barrier.wait();
                    i64::from(limits.take(CompanyId::new(round), None).is_ok())
                };
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(take)).collect();
                threads.into_iter().map(|thread| thread.join().expect("thread")).sum::<i64>()
            });
            assert_eq!(served, 1, "round {round}");
        }
    }
}
