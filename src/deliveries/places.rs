//! Limits concurrent attempts. A company whose endpoints hang uses up only its share: the last quarter of all places is
//! reserved for companies that have none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotline_persistence::CompanyId;
use tokio::sync::Notify;

/// Concurrent attempts of all companies: each has a connection, and its event in memory.
const ALL_MAX: usize = 512;

/// Concurrent attempts per company: three times the maximum of one endpoint.
const COMPANY_MAX: usize = 96;

/// The places. Clones share the same state.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The places taken, by company.
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_company: HashMap<CompanyId, usize>,
}

/// A place; released when dropped.
pub(super) struct Place {
    places: Places,
    company: CompanyId,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all = taken.all.saturating_sub(1);
        if let Some(own) = taken.by_company.get_mut(&self.company) {
            *own -= 1;
            if *own == 0 {
                taken.by_company.remove(&self.company);
            }
        }
        drop(taken);
        self.places.0.freed.notify_waiters();
    }
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for an attempt of a company, if one is available.
    pub(super) fn take(&self, company: CompanyId) -> Option<Place> {
        let mut taken = self.taken();
        let own = taken.by_company.get(&company).copied().unwrap_or_default();
        let most = if own == 0 { ALL_MAX } else { ALL_MAX / 4 * 3 };
        if own >= COMPANY_MAX || taken.all >= most {
            return None;
        }
        taken.all += 1;
        *taken.by_company.entry(company).or_default() += 1;
        Some(Place { places: self.clone(), company })
    }

    /// Notified when a place is released. It must be enabled before [`Places::take`] is called.
    pub(super) fn freed(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.freed.notified()
    }

    /// The number of places taken.
    pub(super) fn count(&self) -> usize {
        self.taken().all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companies_that_take_all_they_may_leave_places_for_one_that_has_none() {
        let places = Places::default();
        let mut held = Vec::new();
        for company in 1..=100 {
            while let Some(place) = places.take(CompanyId::new(company)) {
                held.push(place);
            }
        }
        let of_first = held.iter().filter(|place| place.company == CompanyId::new(1)).count();
        assert_eq!(of_first, COMPANY_MAX);
        assert!(held.len() < ALL_MAX, "nothing is left");
        assert!(places.take(CompanyId::new(1_000)).is_some());
        drop(held);
        assert_eq!(places.count(), 0);
        assert!(places.taken().by_company.is_empty());
    }
}
