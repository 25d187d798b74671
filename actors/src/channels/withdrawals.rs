//! Detects that a campaign's message may have been withdrawn: its contact has opted out of campaigns, or was merged or
//! deleted, or its campaign was held for a change, which may have canceled it.
//!
//! The tables are checked some time before such a message is decided or sent. A [`WithdrawalVersion`] is read before
//! that check, and compared in the step that decides or sends. Every withdrawal changes the version before it is
//! acknowledged. So the check is repeated after a withdrawal, and only then.

use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use hotline_persistence::{Change, CompanyId};

/// Maximum checks of one message in a row. If each is outdated by another change, as during an import of contacts, the
/// message is retried later.
pub(crate) const CHECKS_MAX: usize = 64;

/// The version of a company's withdrawals. No two changes have the same one, across all companies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WithdrawalVersion(u64);

/// The current version of each company that has campaigns in memory.
#[derive(Default)]
pub(crate) struct Withdrawals {
    companies: DashMap<CompanyId, WithdrawalVersion>,
    last_version: AtomicU64,
}

impl Withdrawals {
    /// The current version. To be read before the tables are checked; these must have every change logged before the
    /// version was read.
    pub(crate) fn version(&self, company: CompanyId) -> WithdrawalVersion {
        *self.companies.entry(company).or_insert_with(|| self.next_version())
    }

    /// Changes the version after a possible withdrawal. To be called once the tables or the log have the withdrawal,
    /// and before it is acknowledged. Never waits.
    pub(crate) fn invalidate(&self, company: CompanyId) {
        // Without a version, nothing was checked yet.
        if let Some(mut version) = self.companies.get_mut(&company) {
            *version = self.next_version();
        }
    }

    /// Whether nothing has changed since this version was read.
    pub(crate) fn is_current(&self, company: CompanyId, version: WithdrawalVersion) -> bool {
        self.companies.get(&company).is_some_and(|current| *current == version)
    }

    /// Handles opt-outs that are durable. Runs on the log's thread, so it must not block.
    pub(crate) fn on_commit(&self, changes: &[Change]) {
        for change in changes {
            if let Change::OptOut(row) = change {
                self.invalidate(row.company_id);
            }
        }
    }

    /// Drops a company: all its versions become stale.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { companies, last_version: _ } = self;
        companies.remove(&company);
    }

    fn next_version(&self) -> WithdrawalVersion {
        WithdrawalVersion(self.last_version.fetch_add(1, Ordering::AcqRel) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: CompanyId = CompanyId::new(1);
    const OTHER: CompanyId = CompanyId::new(2);

    #[test]
    fn a_version_is_current_until_something_changes_in_its_company() {
        let withdrawals = Withdrawals::default();
        let (one, other) = (withdrawals.version(ONE), withdrawals.version(OTHER));
        assert!(withdrawals.is_current(ONE, one) && withdrawals.is_current(OTHER, other));
        assert_eq!(withdrawals.version(ONE), one);
        withdrawals.invalidate(ONE);
        assert!(!withdrawals.is_current(ONE, one) && withdrawals.is_current(OTHER, other));
        let again = withdrawals.version(ONE);
        withdrawals.forget_company(ONE);
        assert!(!withdrawals.is_current(ONE, again));
        withdrawals.version(ONE);
        assert!(!withdrawals.is_current(ONE, again), "no version is used twice");
    }
}
