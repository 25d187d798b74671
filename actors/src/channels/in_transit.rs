//! Messages of campaigns that their providers do not have yet: so few of each campaign that calling it off takes them
//! back, and that what waits for a provider takes no memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Message, Recipient};
use dashmap::DashMap;
use hotline_persistence::{Change, CompanyId, MessageId};

/// A campaign's message is not on its way any more: its provider has it, or never will.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct Landed(pub(crate) MessageId);

/// Every message of a campaign that is on its way. Of a campaign they are as many as may be under way at once.
#[derive(Default)]
pub(crate) struct InTransit {
    messages: DashMap<(CompanyId, MessageId), Entry>,
    count: AtomicUsize,
}

struct Entry {
    home: Recipient<Landed>,
    is_withdrawn: bool,
}

impl InTransit {
    /// A message is about to be on its way; `home` is told once that has ended.
    pub(crate) fn begin(&self, company: CompanyId, message: MessageId, home: Recipient<Landed>) {
        if self.messages.insert((company, message), Entry { home, is_withdrawn: false }).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Nobody needs to know of a message any more.
    pub(crate) fn forget(&self, company: CompanyId, message: MessageId) {
        self.take(company, message);
    }

    /// A message is not to leave, unless it just has.
    pub(crate) fn withdraw(&self, company: CompanyId, message: MessageId) {
        if let Some(mut entry) = self.messages.get_mut(&(company, message)) {
            entry.is_withdrawn = true;
        }
    }

    /// Whether a message is not to leave.
    pub(crate) fn is_withdrawn(&self, company: CompanyId, message: MessageId) -> bool {
        self.messages.get(&(company, message)).is_some_and(|entry| entry.is_withdrawn)
    }

    /// Tells of what a durable decision ends. Runs on the log's thread: it never waits.
    pub(crate) fn tell(&self, changes: &[Change]) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for change in changes {
            if let Change::Progress(row) = change
                && let Some(entry) = self.take(row.company_id, row.message_id)
            {
                entry.home.do_send(Landed(row.message_id));
            }
        }
    }

    fn take(&self, company: CompanyId, message: MessageId) -> Option<Entry> {
        let (_, entry) = self.messages.remove(&(company, message))?;
        self.count.fetch_sub(1, Ordering::AcqRel);
        Some(entry)
    }
}
