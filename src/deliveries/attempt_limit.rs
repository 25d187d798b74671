//! Limits concurrent attempts. A company whose endpoints hang uses up only its share: the last quarter of all permits is
//! reserved for companies that have none.

use hotline_persistence::CompanyId;
use hotline_persistence::limits::{KeyedPermit, KeyedPermits, PermitLimits};

/// Concurrent attempts of all companies: each has a connection, and its event in memory.
const ALL_MAX: usize = 512;

/// Concurrent attempts per company: three times the maximum of one endpoint.
const COMPANY_MAX: usize = 96;

/// A permit for an attempt.
pub(super) type AttemptPermit = KeyedPermit<CompanyId>;

/// The permits of all companies.
pub(super) fn attempt_limit() -> KeyedPermits<CompanyId> {
    KeyedPermits::new(PermitLimits::new(ALL_MAX, COMPANY_MAX).reserve(ALL_MAX / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companies_at_their_limit_leave_permits_for_others() {
        let limit = attempt_limit();
        let mut permits = Vec::new();
        for company in 1..=100 {
            while let Some(permit) = limit.try_acquire(CompanyId::new(company)) {
                permits.push(permit);
            }
        }
        let of_first = permits.iter().filter(|permit| *permit.key() == CompanyId::new(1)).count();
        assert_eq!(of_first, COMPANY_MAX);
        assert!(permits.len() < ALL_MAX, "no permit is left");
        assert!(limit.try_acquire(CompanyId::new(1_000)).is_some());
        drop(permits);
        assert_eq!((limit.in_use(), limit.keys()), (0, 0));
    }
}
