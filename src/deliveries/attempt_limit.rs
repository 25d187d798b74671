//! Limits concurrent attempts. A company whose endpoints hang uses up only its share: the last quarter of all permits is
//! reserved for companies that have none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotline_persistence::CompanyId;
use tokio::sync::Notify;

/// Concurrent attempts of all companies: each has a connection, and its event in memory.
const ALL_MAX: usize = 512;

/// Concurrent attempts per company: three times the maximum of one endpoint.
const COMPANY_MAX: usize = 96;

/// The permits. Clones share the same state.
#[derive(Clone, Default)]
pub(super) struct AttemptLimit(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The permits in use.
    counts: Mutex<PermitCounts>,
    released: Notify,
}

#[derive(Default)]
struct PermitCounts {
    all: usize,
    by_company: HashMap<CompanyId, usize>,
}

/// A permit; released when dropped.
pub(super) struct AttemptPermit {
    limit: AttemptLimit,
    company: CompanyId,
}

impl Drop for AttemptPermit {
    fn drop(&mut self) {
        let mut counts = self.limit.counts();
        counts.all = counts.all.saturating_sub(1);
        if let Some(of_company) = counts.by_company.get_mut(&self.company) {
            *of_company -= 1;
            if *of_company == 0 {
                counts.by_company.remove(&self.company);
            }
        }
        drop(counts);
        self.limit.0.released.notify_waiters();
    }
}

impl AttemptLimit {
    fn counts(&self) -> MutexGuard<'_, PermitCounts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for an attempt of a company, if one is available.
    pub(super) fn try_acquire(&self, company: CompanyId) -> Option<AttemptPermit> {
        let mut counts = self.counts();
        let of_company = counts.by_company.get(&company).copied().unwrap_or_default();
        let most = if of_company == 0 { ALL_MAX } else { ALL_MAX / 4 * 3 };
        if of_company >= COMPANY_MAX || counts.all >= most {
            return None;
        }
        counts.all += 1;
        *counts.by_company.entry(company).or_default() += 1;
        Some(AttemptPermit { limit: self.clone(), company })
    }

    /// Notified when a permit is released. It must be enabled before [`AttemptLimit::try_acquire`] is called.
    pub(super) fn released(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.released.notified()
    }

    /// The number of permits in use.
    pub(super) fn count(&self) -> usize {
        self.counts().all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companies_at_their_limit_leave_permits_for_others() {
        let limit = AttemptLimit::default();
        let mut permits = Vec::new();
        for company in 1..=100 {
            while let Some(permit) = limit.try_acquire(CompanyId::new(company)) {
                permits.push(permit);
            }
        }
        let of_first = permits.iter().filter(|permit| permit.company == CompanyId::new(1)).count();
        assert_eq!(of_first, COMPANY_MAX);
        assert!(permits.len() < ALL_MAX, "no permit is left");
        assert!(limit.try_acquire(CompanyId::new(1_000)).is_some());
        drop(permits);
        assert_eq!(limit.count(), 0);
        assert!(limit.counts().by_company.is_empty());
    }
}
