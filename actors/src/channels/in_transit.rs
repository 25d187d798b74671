//! Messages of campaigns that their providers do not have yet. A campaign has only a few in transit at a time: so
//! canceling it can withdraw them, and messages that wait for a provider take little memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Message, Recipient};
use dashmap::DashMap;
use hotline_persistence::tables::messages::MessageError;
use hotline_persistence::{Change, CompanyId, ContactId, MessageId};

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
    contact: ContactId,
    withdrawn: Option<Withdrawal>,
}

/// Why a message is not to leave.
#[derive(Clone, Copy, Debug)]
enum Withdrawal {
    Canceled,
    OptedOut,
}

impl InTransit {
    /// A message is about to be in transit; `home` is notified when that has ended.
    pub(crate) fn begin(&self, company: CompanyId, message: MessageId, contact: ContactId, home: Recipient<Landed>) {
        if self.messages.insert((company, message), Entry { home, contact, withdrawn: None }).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Drops a message without a notification.
    pub(crate) fn forget(&self, company: CompanyId, message: MessageId) {
        self.take(company, message);
    }

    /// The campaign of a message was canceled: it is not to leave, unless it just has.
    pub(crate) fn withdraw(&self, company: CompanyId, message: MessageId) {
        if let Some(mut entry) = self.messages.get_mut(&(company, message)) {
            entry.withdrawn = Some(Withdrawal::Canceled);
        }
    }

    /// A contact wants no campaigns: what is on its way to them is not to leave, unless it just has. Never waits.
    pub(crate) fn opt_out(&self, company: CompanyId, contact: ContactId) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for mut entry in self.messages.iter_mut() {
            if entry.key().0 == company && entry.contact == contact {
                entry.withdrawn.get_or_insert(Withdrawal::OptedOut);
            }
        }
    }

    /// Why a message is not to leave; none: it may.
    pub(crate) fn withdrawn(&self, company: CompanyId, message: MessageId) -> Option<MessageError> {
        let entry = self.messages.get(&(company, message))?;
        entry.withdrawn.map(|withdrawal| match withdrawal {
            Withdrawal::Canceled => MessageError::campaign_canceled(),
            Withdrawal::OptedOut => MessageError::opted_out(),
        })
    }

    /// Notifies campaigns of messages whose outcome is durable. Runs on the log's thread, so it must not block.
    pub(crate) fn tell(&self, changes: &[Change]) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for change in changes {
            match change {
                Change::Progress(row) => {
                    if let Some(entry) = self.take(row.company_id, row.message_id) {
                        entry.home.do_send(Landed(row.message_id));
                    }
                }
                Change::OptOut(row) => self.opt_out(row.company_id, row.contact_id),
                _ => {}
            }
        }
    }

    fn take(&self, company: CompanyId, message: MessageId) -> Option<Entry> {
        let (_, entry) = self.messages.remove(&(company, message))?;
        self.count.fetch_sub(1, Ordering::AcqRel);
        Some(entry)
    }
}
