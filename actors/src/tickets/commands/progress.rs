use chrono::{DateTime, Utc};
use hotline_persistence::tables::messages::{DeliveryStatus, DeliveryStatusRow};
use hotline_persistence::{Change, MessageId};

use super::{Close, Transfer};
use crate::Refusal;
use crate::tickets::{Command, Context, Follows, Ticket};

/// A message to the contact has come further: the outbox has handed it over, or the provider tells of it.
///
/// Statuses only move forward, so this may come twice and in any order. What follows the send is done with the first
/// one that says the provider has the message.
#[derive(Clone, Debug)]
pub struct UpdateDeliveryStatus {
    /// Which message of this ticket.
    pub message: MessageId,
    /// How far.
    pub milestone: DeliveryStatus,
    /// Since when.
    pub at: DateTime<Utc>,
    /// What the provider calls the message, where that is known.
    pub provider_message_id: Option<String>,
}

impl Command for UpdateDeliveryStatus {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let follows = ticket.followed(self.message);
        let has_failed = matches!(self.milestone, DeliveryStatus::Failed(_));
        cx.record(Change::Progress(Box::new(DeliveryStatusRow {
            company_id: ticket.row.company_id,
            ticket_id: ticket.row.id,
            message_id: self.message,
            milestone: self.milestone,
            at: self.at,
            provider_message_id: self.provider_message_id,
        })));
        match follows {
            Some(follows) if !has_failed => follows.carry_out(ticket, cx),
            _ => Ok(()),
        }
    }
}

impl Follows {
    /// Transfers, then closes. It was checked when the message was accepted; what has become impossible since, because
    /// the queue is gone or somebody has closed the ticket, is left out.
    fn carry_out(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let Self { after, author } = self;
        if after.queue_id.is_some() {
            let transfer = Transfer { queue: after.queue_id, user: None, author: author.clone() };
            if_possible(transfer.decide(ticket, cx))?;
        }
        if after.close_ticket {
            let close = Close { wrapup_type: after.wrapup_type_id, wrapup_note: after.wrapup_note, author };
            if_possible(close.decide(ticket, cx))?;
        }
        Ok(())
    }
}

/// A refused command has changed nothing; one that could not be carried out now is carried out later.
fn if_possible(outcome: Result<Ticket, Refusal>) -> Result<(), Refusal> {
    match outcome {
        Err(refusal @ (Refusal::Unavailable(_) | Refusal::Unknown(_))) => Err(refusal),
        Err(_) | Ok(_) => Ok(()),
    }
}
