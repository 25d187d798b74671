//! Messages of campaigns that their providers do not have yet. A campaign has only a few in transit at a time: so
//! canceling it can withdraw them, and messages that wait for a provider take little memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Message, Recipient};
use dashmap::DashMap;
use hotline_persistence::{Change, CompanyId, MessageId};

/// A campaign's message is no longer in transit: its provider has it, or never will.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct Landed(pub(crate) MessageId);

/// All campaign messages in transit. Each campaign has at most its limit of messages under way.
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
    /// A message is about to be in transit; `home` is notified when that has ended.
    pub(crate) fn begin(&self, company: CompanyId, message: MessageId, home: Recipient<Landed>) {
        if self.messages.insert((company, message), Entry { home, is_withdrawn: false }).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Drops a message without a notification.
    pub(crate) fn forget(&self, company: CompanyId, message: MessageId) {
        self.take(company, message);
    }

    /// Withdraws a message: it is not sent, unless it just was.
    pub(crate) fn withdraw(&self, company: CompanyId, message: MessageId) {
        if let Some(mut entry) = self.messages.get_mut(&(company, message)) {
            entry.is_withdrawn = true;
        }
    }

    /// Whether a message was withdrawn.
    pub(crate) fn is_withdrawn(&self, company: CompanyId, message: MessageId) -> bool {
        self.messages.get(&(company, message)).is_some_and(|entry| entry.is_withdrawn)
    }

    /// Notifies campaigns of messages whose outcome is durable. Runs on the log's thread, so it must not block.
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
