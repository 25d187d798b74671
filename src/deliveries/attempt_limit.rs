//! Limits concurrent attempts. A company whose endpoints hang uses up only its share: the last quarter of all permits
//! is reserved for companies that have none. Likewise, the last permits of a company are reserved for those of its
//! endpoints that have none.

use hotline_persistence::CompanyId;
use hotline_persistence::limits::{KeyedPermit, KeyedPermits, PermitLimits};
use hotline_persistence::tables::webhooks::WEBHOOKS_MAX;
use tokio::sync::futures::Notified;

/// Concurrent attempts of all companies: each has a connection, and its event in memory.
const ALL_MAX: usize = 512;

/// Concurrent attempts per company: three times the maximum of one endpoint.
const COMPANY_MAX: usize = 96;

/// Concurrent attempts per company besides the first one of each endpoint.
const FURTHER_MAX: usize = COMPANY_MAX - WEBHOOKS_MAX as usize;

/// The permits of all companies.
pub(super) struct AttemptLimit {
    /// Every attempt has one of these.
    all: KeyedPermits<CompanyId>,
    /// Every attempt but the first of its endpoint also has one of these.
    further: KeyedPermits<CompanyId>,
}

/// A permit for an attempt.
pub(super) struct AttemptPermit {
    /// Released before `_permit`, whose release notifies those who wait: they must find both free.
    _further: Option<KeyedPermit<CompanyId>>,
    _permit: KeyedPermit<CompanyId>,
}

impl AttemptLimit {
    pub(super) fn new() -> Self {
        let all = PermitLimits::new(ALL_MAX, COMPANY_MAX).reserve(ALL_MAX / 4);
        Self { all: KeyedPermits::new(all), further: KeyedPermits::new(PermitLimits::of_key(FURTHER_MAX)) }
    }

    /// A permit for an endpoint of a company, if one is free now. `is_first`: the endpoint has none.
    pub(super) fn try_acquire(&self, company: CompanyId, is_first: bool) -> Option<AttemptPermit> {
        let further = if is_first { None } else { Some(self.further.try_acquire(company)?) };
        Some(AttemptPermit { _further: further, _permit: self.all.try_acquire(company)? })
    }

    /// Notified when a permit is released. It must be created before [`AttemptLimit::try_acquire`] is called.
    pub(super) fn released(&self) -> Notified<'_> {
        self.all.released()
    }

    /// The number of permits in use.
    pub(super) fn in_use(&self) -> usize {
        self.all.in_use()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// All permits that an endpoint of a company gets.
    fn all_of_endpoint(limit: &AttemptLimit, company: CompanyId) -> Vec<AttemptPermit> {
        let mut permits: Vec<_> = limit.try_acquire(company, true).into_iter().collect();
        while let Some(permit) = limit.try_acquire(company, permits.is_empty()) {
            permits.push(permit);
        }
        permits
    }

    #[test]
    fn companies_at_their_limit_leave_permits_for_others() {
        let limit = AttemptLimit::new();
        let mut permits = Vec::new();
        for company in 1..=100 {
            for _ in 0..WEBHOOKS_MAX {
                permits.extend(all_of_endpoint(&limit, CompanyId::new(company)));
            }
            assert!(company > 1 || permits.len() == COMPANY_MAX);
        }
        assert!(permits.len() < ALL_MAX, "no permit is left");
        assert!(limit.try_acquire(CompanyId::new(1_000), true).is_some());
        drop(permits);
        assert_eq!((limit.in_use(), limit.all.key_count(), limit.further.key_count()), (0, 0, 0));
    }

    #[test]
    fn slow_endpoints_leave_a_permit_for_each_other_endpoint_of_their_company() {
        let (limit, company) = (AttemptLimit::new(), CompanyId::new(1));
        let slow: Vec<_> = (0..3).map(|_| all_of_endpoint(&limit, company)).collect();
        assert!(limit.try_acquire(company, false).is_none(), "the rest is for the first attempts of others");
        let others: Vec<_> = (3..WEBHOOKS_MAX).map_while(|_| limit.try_acquire(company, true)).collect();
        assert_eq!(others.len(), 17);
        let released = limit.released();
        drop(slow);
        assert!(released.now_or_never().is_some());
        assert!(limit.try_acquire(company, false).is_some());
    }
}
