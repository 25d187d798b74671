use chrono::{DateTime, Utc};
use hotline_persistence::tables::contacts::OptOut;
use hotline_persistence::tables::messages::{DeliveryStatus, DeliveryStatusRow};
use hotline_persistence::{Change, MessageId};

use super::{Close, Transfer};
use crate::Refusal;
use crate::tickets::{Command, Context, FollowUp, Ticket};

/// Records a new status of an outbound message: the outcome of its sending, or a status that the provider reports.
///
/// Statuses only move forward, so they may arrive twice and in any order. The first status executes the message's
/// follow-up action, unless the message has failed. A failure because the recipient has stopped marketing messages at
/// the provider also records the contact's opt-out, in the same entry, so that neither is durable without the other.
#[derive(Clone, Debug)]
pub struct UpdateDeliveryStatus {
    /// Which message of this ticket.
    pub message: MessageId,
    /// The new status.
    pub delivery_status: DeliveryStatus,
    /// The time of the status.
    pub at: DateTime<Utc>,
    /// The provider's id of the message, if known.
    pub provider_message_id: Option<String>,
}

impl Command for UpdateDeliveryStatus {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let follow_up = ticket.take_follow_up(self.message);
        let has_failed = matches!(self.delivery_status, DeliveryStatus::Failed(_));
        let is_opt_out = self.delivery_status.is_opt_out();
        cx.record(Change::Progress(Box::new(DeliveryStatusRow {
            company_id: ticket.row.company_id,
            ticket_id: ticket.row.id,
            message_id: self.message,
            delivery_status: self.delivery_status,
            at: self.at,
            provider_message_id: self.provider_message_id,
            noted_at: Some(cx.now),
        })));
        if is_opt_out {
            let (company_id, contact_id) = (ticket.row.company_id, ticket.row.contact_id);
            cx.record(Change::OptOut(OptOut { company_id, contact_id, at: cx.now }));
        }
        match follow_up {
            Some(follow_up) if !has_failed => follow_up.execute(self.message, ticket, cx),
            _ => Ok(()),
        }
    }
}

impl FollowUp {
    /// Records the answer, transfers, then closes. The latter two were checked when the message was created. A step
    /// that has become impossible since, because the queue was deleted or the ticket was closed, is skipped.
    fn execute(self, message: MessageId, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let Self { after, author, written_at } = self;
        if after.answers {
            ticket.record_answer(message, written_at);
            cx.touch(ticket);
        }
        if after.queue_id.is_some() {
            let transfer = Transfer { queue: after.queue_id, user: None, author: author.clone() };
            skip_if_impossible(transfer.decide(ticket, cx))?;
        }
        if after.close_ticket {
            let close = Close { wrapup_type: after.wrapup_type_id, wrapup_note: after.wrapup_note, author };
            skip_if_impossible(close.decide(ticket, cx))?;
        }
        Ok(())
    }
}

/// Ignores refusals, which change nothing. Temporary failures are returned, so that the command is retried.
fn skip_if_impossible(outcome: Result<Ticket, Refusal>) -> Result<(), Refusal> {
    match outcome {
        Err(refusal @ (Refusal::Unavailable(_) | Refusal::Unknown(_))) => Err(refusal),
        Err(_) | Ok(_) => Ok(()),
    }
}
