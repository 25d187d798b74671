//! Messages of campaigns that their providers do not have yet. A campaign has only a few in transit at a time, so they
//! take little memory, and each is checked separately for a withdrawal: its contact may have opted out, or its campaign
//! may be canceled.

use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Message, Recipient};
use dashmap::DashMap;
use hotline_persistence::tables::campaigns::PausedReason;
use hotline_persistence::tables::messages::DeliveryStatus;
use hotline_persistence::{Change, CompanyId, MessageId};

use super::withdrawals::{WithdrawalVersion, Withdrawals};

/// A campaign's message is no longer in transit: its provider has it, will never have it, or the outcome is unknown.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct TransitEnded {
    pub(crate) message: MessageId,
    /// Why the provider refuses the campaign's template; `None` if it did not refuse the message for its template.
    pub(crate) template_refusal: Option<PausedReason>,
}

/// All campaign messages in transit.
#[derive(Default)]
pub(crate) struct InTransit {
    messages: DashMap<(CompanyId, MessageId), Entry>,
    count: AtomicUsize,
    /// The versions that show whether a check for a withdrawal is still current.
    pub(crate) withdrawals: Withdrawals,
}

struct Entry {
    listener: Recipient<TransitEnded>,
    /// The version of the last check for a withdrawal, if known.
    withdrawal_version: Option<WithdrawalVersion>,
}

impl InTransit {
    /// Tracks a message that is about to be in transit; `listener` is notified when its transit has ended.
    pub(crate) fn begin(
        &self,
        company: CompanyId,
        message: MessageId,
        withdrawal_version: Option<WithdrawalVersion>,
        listener: Recipient<TransitEnded>,
    ) {
        if self.messages.insert((company, message), Entry { listener, withdrawal_version }).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Drops a message without a notification.
    pub(crate) fn forget(&self, company: CompanyId, message: MessageId) {
        self.remove(company, message);
    }

    /// Drops a message that was deleted with its contact, and notifies its campaign.
    pub(crate) fn end(&self, company: CompanyId, message: MessageId) {
        if let Some(entry) = self.remove(company, message) {
            entry.listener.do_send(TransitEnded { message, template_refusal: None });
        }
    }

    /// The version of the last check of a message for a withdrawal, if known.
    pub(crate) fn checked_version(&self, company: CompanyId, message: MessageId) -> Option<WithdrawalVersion> {
        self.messages.get(&(company, message))?.withdrawal_version
    }

    /// Records that a message was checked at this version, and is not withdrawn.
    pub(crate) fn record_check(&self, company: CompanyId, message: MessageId, version: WithdrawalVersion) {
        if let Some(mut entry) = self.messages.get_mut(&(company, message)) {
            entry.withdrawal_version = Some(version);
        }
    }

    /// Notifies campaigns of messages whose outcome is durable. Runs on the log's thread, so it must not block.
    pub(crate) fn on_commit(&self, changes: &[Change]) {
        self.withdrawals.on_commit(changes);
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for change in changes {
            let (company, message, template_refusal) = match change {
                Change::Progress(row) => {
                    let template_refusal = match &row.delivery_status {
                        DeliveryStatus::Failed(error) => PausedReason::of_refusal(error),
                        DeliveryStatus::Sent | DeliveryStatus::Delivered | DeliveryStatus::Read => None,
                    };
                    (row.company_id, row.message_id, template_refusal)
                }
                Change::Attempt(row) if row.attempts.unknown_at.is_some() => (row.company_id, row.message_id, None),
                _ => continue,
            };
            if let Some(entry) = self.remove(company, message) {
                entry.listener.do_send(TransitEnded { message, template_refusal });
            }
        }
    }

    fn remove(&self, company: CompanyId, message: MessageId) -> Option<Entry> {
        let (_, entry) = self.messages.remove(&(company, message))?;
        self.count.fetch_sub(1, Ordering::AcqRel);
        Some(entry)
    }
}
