//! Outcomes of recipients and of their messages.

use std::sync::atomic::Ordering;

use actix::{AsyncContext, Context as Mailbox, Handler, Message};
use hotline_persistence::tables::campaigns::{self, RecipientRow, RecipientStatus};
use hotline_persistence::tables::messages::MessageError;
use serde_json::json;

use super::super::line::NextRecipient;
use super::leaving::{Decided, Departure, Left};
use super::{CampaignRunner, OUTAGE_PAUSE};
use crate::Refusal;
use crate::base::retry::while_unavailable;
use crate::channels::Landed;
use crate::clock::now;

/// A send to a recipient has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct HasLeft(pub(super) Left);

/// Whether a recipient of unknown outcome is still pending.
#[derive(Message)]
#[rtype(result = "()")]
struct Checked {
    left: Left,
    refusal: Refusal,
    is_waiting: Result<bool, Refusal>,
}

impl CampaignRunner {
    fn settle(&mut self, left: Left, cx: &mut Mailbox<Self>) {
        match (&left.outcome, left.message) {
            (Ok(Departure::OptedOut), _) => {
                self.has_left(&left.recipient);
                self.pass_over(left.recipient, RecipientStatus::Skipped, &MessageError::opted_out());
            }
            (Ok(Departure::Written), _) => {
                self.scope.handed_over.fetch_add(1, Ordering::Relaxed);
                self.has_left(&left.recipient);
            }
            (Err(refusal), Some(_)) => {
                let refusal = refusal.clone();
                self.check(left, refusal, cx);
            }
            (Err(refusal), None) => {
                let refusal = refusal.clone();
                self.has_not_left(left.recipient, &refusal);
            }
        }
    }

    /// Looks up a recipient of unknown outcome in the tables, once these have all earlier decisions. Until then no
    /// other recipient is written to.
    fn check(&mut self, left: Left, refusal: Refusal, cx: &mut Mailbox<Self>) {
        let (scope, company, id, home) = (self.scope.clone(), self.company, self.id, cx.address());
        actix::spawn(async move {
            let contact = left.recipient.contact_id;
            let look = || async {
                let db = scope.base.reads().tables(company).await?;
                Ok(campaigns::is_waiting(db, company, id, contact).await?)
            };
            let is_waiting = while_unavailable(OUTAGE_PAUSE, look).await;
            home.do_send(Checked { left, refusal, is_waiting });
        });
    }

    fn checked(&mut self, Checked { left, refusal, is_waiting }: Checked) {
        match is_waiting {
            Ok(false) => {
                self.scope.handed_over.fetch_add(1, Ordering::Relaxed);
                self.has_left(&left.recipient);
            }
            is_waiting => {
                if let Some(message) = left.message.filter(|message| self.in_transit.remove(message)) {
                    self.scope.in_transit.forget(self.company, message);
                }
                // The tables cannot be read because of a defect: the line restarts later.
                if is_waiting.is_err() {
                    self.has_left(&left.recipient);
                    self.line.begin_anew();
                    return self.rest(OUTAGE_PAUSE);
                }
                self.has_not_left(left.recipient, &refusal);
            }
        }
    }

    fn has_left(&mut self, recipient: &NextRecipient) {
        self.leaving.remove(&recipient.contact_id);
        self.deciding = self.deciding.filter(|contact| *contact != recipient.contact_id);
    }

    /// Handles a refused send: the recipient is skipped or has failed, or is retried first after an outage.
    fn has_not_left(&mut self, recipient: NextRecipient, refusal: &Refusal) {
        self.has_left(&recipient);
        if !refusal.is_passing() {
            let is_skipped =
                matches!(refusal, Refusal::ContactUnreachable(_) | Refusal::WindowClosed(_) | Refusal::ContactNotFound);
            let status = if is_skipped { RecipientStatus::Skipped } else { RecipientStatus::Failed };
            tracing::debug!(%refusal, company.id = %self.company, campaign.id = %self.id, "campaign recipient skipped or failed");
            return self.pass_over(recipient, status, &refusal.as_failure("the channel was deleted"));
        }
        self.line.put_back(recipient);
        self.rest(OUTAGE_PAUSE);
    }

    /// Records that a recipient is not written to, in an entry of its own; while the log is full it is retried first.
    pub(super) fn pass_over(&mut self, recipient: NextRecipient, status: RecipientStatus, error: &MessageError) {
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
        self.line.put_back(recipient);
        self.rest(OUTAGE_PAUSE);
    }
}

impl Handler<Decided> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, decided: Decided, cx: &mut Self::Context) {
        self.guarded(cx, |this, _| {
            this.deciding = this.deciding.filter(|contact| *contact != decided.contact);
            // If the actor has retired since, the message is not tracked any more.
            match decided.in_transit {
                Some(message) if this.retired => this.scope.in_transit.forget(this.company, message),
                Some(message) => {
                    this.in_transit.insert(message);
                }
                // Whoever sees it has it.
                None => this.counts(),
            }
        });
    }
}

impl Handler<Landed> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, Landed(message): Landed, cx: &mut Self::Context) {
        self.guarded(cx, |this, _| this.has_arrived(message));
    }
}

impl Handler<HasLeft> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, HasLeft(left): HasLeft, cx: &mut Self::Context) {
        self.guarded(cx, |this, cx| {
            if !this.retired {
                this.settle(left, cx);
            }
        });
    }
}

impl Handler<Checked> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, checked: Checked, cx: &mut Self::Context) {
        self.guarded(cx, |this, _| {
            if !this.retired {
                this.checked(checked);
            }
        });
    }
}
