//! Whether anything has happened that may keep a campaign's message from leaving: a contact has opted out of campaigns, or
//! a campaign was held or canceled.
//!
//! Who decides or sends such a message has looked at the tables some time before. A [`Stamp`] is taken before that look,
//! and is checked in the very step that decides or sends. What was acknowledged in between has changed the stamp before it
//! was acknowledged, so it is looked for again; without a change no second look is needed.

use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use hotline_persistence::{Change, CompanyId};

/// How often one message is looked at again because something changes meanwhile: more changes in a row than that are an
/// import of single contacts, and the message is tried later.
pub(crate) const LOOKS_MAX: usize = 64;

/// When the tables were looked at. No two changes have the same one, in all companies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

/// The last change of each company that has campaigns in memory.
#[derive(Default)]
pub(crate) struct Withdrawals {
    companies: DashMap<CompanyId, Stamp>,
    last: AtomicU64,
}

impl Withdrawals {
    /// To be taken before the tables are looked at, with every change that was in the log before.
    pub(crate) fn stamp(&self, company: CompanyId) -> Stamp {
        *self.companies.entry(company).or_insert_with(|| self.next())
    }

    /// Something may keep a message of this company from leaving. To be called once the tables or the log have it, and
    /// before it is acknowledged. Never waits.
    pub(crate) fn changed(&self, company: CompanyId) {
        // Where there is none, nobody has looked.
        if let Some(mut stamp) = self.companies.get_mut(&company) {
            *stamp = self.next();
        }
    }

    /// Whether nothing has changed since.
    pub(crate) fn is_current(&self, company: CompanyId, stamp: Stamp) -> bool {
        self.companies.get(&company).is_some_and(|last| *last == stamp)
    }

    /// Notes opt-outs that are durable. Runs on the log's thread, so it must not block.
    pub(crate) fn tell(&self, changes: &[Change]) {
        for change in changes {
            if let Change::OptOut(row) = change {
                self.changed(row.company_id);
            }
        }
    }

    /// Drops a company: all stamps of it are out of date.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { companies, last: _ } = self;
        companies.remove(&company);
    }

    fn next(&self) -> Stamp {
        Stamp(self.last.fetch_add(1, Ordering::AcqRel) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: CompanyId = CompanyId::new(1);
    const OTHER: CompanyId = CompanyId::new(2);

    #[test]
    fn a_look_is_current_until_something_changes_in_its_company() {
        let withdrawals = Withdrawals::default();
        let (one, other) = (withdrawals.stamp(ONE), withdrawals.stamp(OTHER));
        assert!(withdrawals.is_current(ONE, one) && withdrawals.is_current(OTHER, other));
        assert_eq!(withdrawals.stamp(ONE), one);
        withdrawals.changed(ONE);
        assert!(!withdrawals.is_current(ONE, one) && withdrawals.is_current(OTHER, other));
        let again = withdrawals.stamp(ONE);
        withdrawals.forget_company(ONE);
        assert!(!withdrawals.is_current(ONE, again));
        withdrawals.stamp(ONE);
        assert!(!withdrawals.is_current(ONE, again), "no stamp is used twice");
    }
}
