//! Messages of campaigns that their providers do not have yet. A campaign has only a few in transit at a time: so
//! messages that wait for a provider take little memory, and what keeps one from leaving is looked up one by one.

use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Message, Recipient};
use dashmap::DashMap;
use hotline_persistence::{Change, CompanyId, MessageId};

use super::withdrawals::{Stamp, Withdrawals};

/// A campaign's message is no longer in transit: its provider has it, or never will.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct Landed(pub(crate) MessageId);

/// All campaign messages in transit. Each campaign has at most its limit of messages under way.
#[derive(Default)]
pub(crate) struct InTransit {
    messages: DashMap<(CompanyId, MessageId), Entry>,
    count: AtomicUsize,
    /// What may keep them from leaving.
    pub(crate) withdrawals: Withdrawals,
}

struct Entry {
    home: Recipient<Landed>,
    /// The last look at whether the message may leave; none: it is not known when that was.
    looked: Option<Stamp>,
}

impl InTransit {
    /// A message is about to be in transit; `home` is notified when that has ended.
    pub(crate) fn begin(&self, company: CompanyId, message: MessageId, looked: Option<Stamp>, home: Recipient<Landed>) {
        if self.messages.insert((company, message), Entry { home, looked }).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Drops a message without a notification.
    pub(crate) fn forget(&self, company: CompanyId, message: MessageId) {
        self.take(company, message);
    }

    /// The last look at whether a message may leave, if that is known.
    pub(crate) fn looked(&self, company: CompanyId, message: MessageId) -> Option<Stamp> {
        self.messages.get(&(company, message))?.looked
    }

    /// A message was looked at, and may leave.
    pub(crate) fn has_looked(&self, company: CompanyId, message: MessageId, stamp: Stamp) {
        if let Some(mut entry) = self.messages.get_mut(&(company, message)) {
            entry.looked = Some(stamp);
        }
    }

    /// Notifies campaigns of messages whose outcome is durable. Runs on the log's thread, so it must not block.
    pub(crate) fn tell(&self, changes: &[Change]) {
        self.withdrawals.tell(changes);
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
