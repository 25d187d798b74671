//! What the calls share.

use hotline_persistence::CompanyId;

use super::downloads::Downloads;
use super::guard::Guard;
use super::seats::Seats;

/// What the calls share.
pub struct Hooks {
    pub(super) guard: Guard,
    pub(super) seats: Seats,
    /// Files that are fetched from the providers.
    pub downloads: Downloads,
}

impl Hooks {
    /// With files fetched so.
    pub fn new(downloads: Downloads) -> Self {
        Self { guard: Guard::default(), seats: Seats::default(), downloads }
    }

    /// Drops what is known of a company.
    pub fn forget(&self, company: CompanyId) {
        // Calls have seats while they are there.
        let Self { guard, seats: _, downloads } = self;
        guard.forget(company);
        downloads.forget(company);
    }
}
