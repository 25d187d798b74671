//! Outcomes of recipients and of their messages.

use std::sync::atomic::Ordering;

use actix::{AsyncContext, Context as Mailbox, Handler, Message};
use hotline_persistence::tables::campaigns::{self, RecipientRow, RecipientStatus};
use hotline_persistence::tables::messages::MessageError;
use serde_json::json;

use super::super::recipient_queue::NextRecipient;
use super::send::{Disposition, RecipientDecided, SendReport};
use super::{CampaignRunner, OUTAGE_PAUSE};
use crate::Refusal;
use crate::base::due_work::DueWork;
use crate::base::retry::while_unavailable;
use crate::channels::TransitEnded;
use crate::clock::now;

/// A send to a recipient has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct RecipientSendEnded(pub(super) SendReport);

/// The tables were checked for whether a recipient of unknown outcome is still pending.
#[derive(Message)]
#[rtype(result = "()")]
struct PendingChecked {
    report: SendReport,
    refusal: Refusal,
    is_waiting: Result<bool, Refusal>,
}

impl CampaignRunner {
    fn settle(&mut self, report: SendReport, cx: &mut Mailbox<Self>) {
        match (&report.outcome, report.message) {
            (Ok(Disposition::OptedOut), _) => {
                self.finish_send(&report.recipient);
                self.record_unsent(report.recipient, RecipientStatus::Skipped, &MessageError::opted_out());
            }
            (Ok(Disposition::Sent), _) => {
                self.scope.handed_over.fetch_add(1, Ordering::Relaxed);
                self.finish_send(&report.recipient);
            }
            (Err(refusal), Some(_)) => {
                let refusal = refusal.clone();
                self.check(report, refusal, cx);
            }
            (Err(refusal), None) => {
                let refusal = refusal.clone();
                self.handle_refusal(report.recipient, &refusal);
            }
        }
    }

    /// Looks up a recipient of unknown outcome in the tables, once these have all earlier decisions. Until then no
    /// other recipient is written to.
    fn check(&mut self, report: SendReport, refusal: Refusal, cx: &mut Mailbox<Self>) {
        let (scope, company, id, runner) = (self.scope.clone(), self.company, self.id, cx.address());
        actix::spawn(async move {
            let contact = report.recipient.contact_id;
            let query = || async {
                let db = scope.base.reads().tables(company).await?;
                Ok(campaigns::is_waiting(db, company, id, contact).await?)
            };
            let is_waiting = while_unavailable(OUTAGE_PAUSE, query).await;
            runner.do_send(PendingChecked { report, refusal, is_waiting });
        });
    }

    fn handle_check(&mut self, PendingChecked { report, refusal, is_waiting }: PendingChecked) {
        match is_waiting {
            Ok(false) => {
                self.scope.handed_over.fetch_add(1, Ordering::Relaxed);
                self.finish_send(&report.recipient);
            }
            is_waiting => {
                if let Some(message) = report.message.filter(|message| self.in_transit.remove(message)) {
                    self.scope.in_transit.forget(self.company, message);
                }
                // The tables cannot be read because of a defect: the queue restarts later.
                if is_waiting.is_err() {
                    self.finish_send(&report.recipient);
                    self.recipients.restart();
                    return self.pause(OUTAGE_PAUSE);
                }
                self.handle_refusal(report.recipient, &refusal);
            }
        }
    }

    fn finish_send(&mut self, recipient: &NextRecipient) {
        self.pending_sends.remove(&recipient.contact_id);
        self.deciding = self.deciding.filter(|contact| *contact != recipient.contact_id);
    }

    /// Handles a refused send: the recipient is skipped or has failed, or is retried first after an outage.
    fn handle_refusal(&mut self, recipient: NextRecipient, refusal: &Refusal) {
        self.finish_send(&recipient);
        if !refusal.is_transient() {
            let is_skipped =
                matches!(refusal, Refusal::ContactUnreachable(_) | Refusal::WindowClosed(_) | Refusal::ContactNotFound);
            let status = if is_skipped { RecipientStatus::Skipped } else { RecipientStatus::Failed };
            tracing::debug!(%refusal, company.id = %self.company, campaign.id = %self.id, "campaign recipient skipped or failed");
            return self.record_unsent(recipient, status, &refusal.to_message_error("the channel was deleted"));
        }
        self.recipients.push_front(recipient);
        self.pause(OUTAGE_PAUSE);
    }

    /// Records that a recipient is not written to, in an entry of its own; while the log is full it is retried first.
    pub(super) fn record_unsent(&mut self, recipient: NextRecipient, status: RecipientStatus, error: &MessageError) {
        let row = RecipientRow {
            company_id: self.company,
            campaign_id: self.id,
            contact_id: recipient.contact_id,
            status,
            message_id: None,
            error: Some(json!(error)),
            updated_at: now(),
        };
        if self.append(row).is_ok() {
            let is_skipped = status == RecipientStatus::Skipped;
            let count = if is_skipped { &self.scope.skipped } else { &self.scope.failed };
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.recipients.push_front(recipient);
        self.pause(OUTAGE_PAUSE);
    }
}

impl Handler<RecipientDecided> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, decided: RecipientDecided, cx: &mut Self::Context) {
        self.supervise(cx, |this, _| {
            this.deciding = this.deciding.filter(|contact| *contact != decided.contact);
            // If the actor has retired since, the message is no longer tracked.
            match decided.in_transit {
                Some(message) if this.work_state.is_retired() => this.scope.in_transit.forget(this.company, message),
                Some(message) => {
                    this.in_transit.insert(message);
                }
                // It was not queued, so it has arrived already.
                None => this.count_for_rate(),
            }
        });
    }
}

impl Handler<TransitEnded> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, TransitEnded(message): TransitEnded, cx: &mut Self::Context) {
        self.supervise(cx, |this, _| this.end_transit(message));
    }
}

impl Handler<RecipientSendEnded> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, RecipientSendEnded(report): RecipientSendEnded, cx: &mut Self::Context) {
        self.supervise(cx, |this, cx| {
            if !this.work_state.is_retired() {
                this.settle(report, cx);
            }
        });
    }
}

impl Handler<PendingChecked> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, checked: PendingChecked, cx: &mut Self::Context) {
        self.supervise(cx, |this, _| {
            if !this.work_state.is_retired() {
                this.handle_check(checked);
            }
        });
    }
}
