//! The shared state of the hooks.

use hotline_persistence::CompanyId;

use super::downloads::Downloads;
use super::guard::Guard;
use super::seats::Seats;

/// The shared state of the hooks.
pub struct Hooks {
    pub(super) guard: Guard,
    pub(super) seats: Seats,
    /// Downloads of files from the providers.
    pub downloads: Downloads,
}

impl Hooks {
    /// Creates the state with these downloads.
    pub fn new(downloads: Downloads) -> Self {
        Self { guard: Guard::default(), seats: Seats::default(), downloads }
    }

    /// Drops everything known of a company.
    pub fn forget(&self, company: CompanyId) {
        // Calls have seats only while they are running.
        let Self { guard, seats: _, downloads } = self;
        guard.forget(company);
        downloads.forget(company);
    }
}
