//! The shared state of the hooks.

use hotline_persistence::CompanyId;

use super::budget::CallBudget;
use super::downloads::Downloads;
use super::wrong_guesses::WrongGuesses;

/// The shared state of the hooks.
pub struct Hooks {
    pub(super) wrong_guesses: WrongGuesses,
    pub(super) budget: CallBudget,
    /// Downloads of files from the providers.
    pub downloads: Downloads,
}

impl Hooks {
    /// Creates the state with these downloads.
    pub fn new(downloads: Downloads) -> Self {
        Self { wrong_guesses: WrongGuesses::default(), budget: CallBudget::default(), downloads }
    }

    /// Drops everything known about a company.
    pub fn forget(&self, company: CompanyId) {
        // Calls have permits only while they run.
        let Self { wrong_guesses, budget: _, downloads } = self;
        wrong_guesses.forget(company);
        downloads.forget(company);
    }
}
