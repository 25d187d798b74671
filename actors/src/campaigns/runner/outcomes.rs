//! Handles the outcomes of sends to recipients, and of their messages.

use std::sync::atomic::Ordering;

use actix::{AsyncContext, Context as Mailbox, Handler};
use hotline_persistence::tables::campaigns::{self, RecipientRow, RecipientStatus};
use hotline_persistence::tables::messages::MessageError;
use hotline_persistence::{ContactId, MessageId};
use serde_json::json;

use super::super::recipient_queue::NextRecipient;
use super::send::{Disposition, SendProgress};
use super::{CampaignRunner, OUTAGE_PAUSE};
use crate::Refusal;
use crate::base::due_work::{DueWork, catch_panic};
use crate::base::retry::while_unavailable;
use crate::channels::TransitEnded;
use crate::clock::now;

impl CampaignRunner {
    /// Tracks a message that was decided, and lets the next recipient follow.
    fn handle_decision(&mut self, contact: ContactId, message: MessageId, is_queued: bool) {
        if let Some(pending_message) = self.pending_sends.get_mut(&contact) {
            *pending_message = Some(message);
        }
        self.deciding = self.deciding.filter(|deciding| *deciding != contact);
        if !is_queued {
            // No `TransitEnded` follows for a message that was never queued.
            self.count_for_rate();
        } else if self.work_state.is_retired() {
            // The message is no longer tracked.
            self.scope.in_transit.forget(self.company, message);
        } else {
            self.in_transit.insert(message);
        }
    }

    /// The recipient's message, which may be in the log; `None` before it is decided.
    fn decided_message(&self, recipient: &NextRecipient) -> Option<MessageId> {
        self.pending_sends.get(&recipient.contact_id).copied().flatten()
    }

    fn handle_send_end(
        &mut self,
        recipient: NextRecipient,
        outcome: Result<Disposition, Refusal>,
        cx: &mut Mailbox<Self>,
    ) {
        match outcome {
            Ok(Disposition::Sent) => self.record_sent(&recipient),
            Ok(Disposition::Merged) => self.finish_send(&recipient),
            Ok(Disposition::OptedOut) => {
                self.finish_send(&recipient);
                self.record_unsent(recipient, RecipientStatus::Skipped, &MessageError::opted_out());
            }
            Err(refusal) if self.decided_message(&recipient).is_some() => self.check_outcome(recipient, refusal, cx),
            Err(refusal) => self.handle_refusal(recipient, &refusal),
        }
    }

    fn record_sent(&mut self, recipient: &NextRecipient) {
        self.scope.handed_over.fetch_add(1, Ordering::Relaxed);
        self.finish_send(recipient);
    }

    /// Looks up in the tables, once they have all earlier decisions, whether a refused send was recorded after all.
    /// Meanwhile the send stays pending.
    fn check_outcome(&mut self, recipient: NextRecipient, refusal: Refusal, cx: &mut Mailbox<Self>) {
        let (scope, company, id, runner) = (self.scope.clone(), self.company, self.id, cx.address());
        actix::spawn(async move {
            let contact = recipient.contact_id;
            let query = || async {
                let db = scope.base.reads().tables(company).await?;
                Ok(campaigns::is_waiting(db, company, id, contact).await?)
            };
            let look_up = while_unavailable(OUTAGE_PAUSE, query);
            let is_waiting = catch_panic("reading a campaign's recipient", look_up).await;
            runner.do_send(SendProgress::Checked { recipient, refusal, is_waiting });
        });
    }

    fn handle_check(&mut self, recipient: NextRecipient, refusal: &Refusal, is_waiting: Result<bool, Refusal>) {
        // The tables have the message, so it is sent in spite of the refusal.
        if is_waiting == Ok(false) {
            return self.record_sent(&recipient);
        }
        if let Some(message) = self.decided_message(&recipient).filter(|message| self.in_transit.remove(message)) {
            self.scope.in_transit.forget(self.company, message);
        }
        // A refused look-up is a defect: outages are retried. The recipients are loaded again after a pause.
        if is_waiting.is_err() {
            self.finish_send(&recipient);
            self.recipients.restart();
            return self.pause(OUTAGE_PAUSE);
        }
        self.handle_refusal(recipient, refusal);
    }

    fn finish_send(&mut self, recipient: &NextRecipient) {
        self.pending_sends.remove(&recipient.contact_id);
        self.deciding = self.deciding.filter(|contact| *contact != recipient.contact_id);
    }

    /// Handles a refused send: the recipient is skipped or has failed or, after an outage, is retried before all
    /// others.
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

    /// Records that a recipient is not written to, in an entry of its own. If the log refuses that, the recipient is
    /// retried before all others.
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
        if self.append_status(row).is_ok() {
            let is_skipped = status == RecipientStatus::Skipped;
            let count = if is_skipped { &self.scope.skipped } else { &self.scope.failed };
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.recipients.push_front(recipient);
        self.pause(OUTAGE_PAUSE);
    }
}

impl Handler<SendProgress> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, progress: SendProgress, cx: &mut Self::Context) {
        self.supervise(cx, |this, cx| match progress {
            SendProgress::Decided { contact, message, is_queued } => this.handle_decision(contact, message, is_queued),
            _ if this.work_state.is_retired() => {}
            SendProgress::Ended { recipient, outcome } => this.handle_send_end(recipient, outcome, cx),
            SendProgress::Checked { recipient, refusal, is_waiting } => {
                this.handle_check(recipient, &refusal, is_waiting);
            }
        });
    }
}

impl Handler<TransitEnded> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, TransitEnded { message, template_refusal }: TransitEnded, cx: &mut Self::Context) {
        self.supervise(cx, |this, _| {
            this.template_refusal = this.template_refusal.or(template_refusal);
            this.end_transit(message);
        });
    }
}
