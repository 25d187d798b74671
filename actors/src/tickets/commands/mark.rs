use chrono::{DateTime, Utc};
use hotline_persistence::tables::messages::DeliveryReceipt;
use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::{Change, MessageId};
use serde_json::json;

use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// The company has read the contact's messages.
#[derive(Clone, Debug)]
pub struct MarkRead {
    /// Who read them.
    pub author: Author,
}

impl Command for MarkRead {
    type Reply = Ticket;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<Ticket, Refusal> {
        if ticket.row.unread_count > 0 {
            let from = json!({"unreadCount": ticket.row.unread_count});
            ticket.row.unread_count = 0;
            cx.touch(ticket);
            cx.record_event(ticket, EventType::Read, &self.author, Some(from), Some(json!({"unreadCount": 0})))?;
            if let Some(up_to) = ticket.row.last_message_id {
                cx.record(Change::Read(receipt(ticket, up_to, None, cx)));
            }
        }
        Ok(ticket.clone())
    }
}

/// The visitor has received the company's messages up to one of them.
#[derive(Clone, Debug)]
pub struct MarkDelivered {
    /// The last message delivered.
    pub up_to: MessageId,
    /// Since when the visitor's session shows messages; `None`: all of them.
    pub since: Option<DateTime<Utc>>,
}

impl Command for MarkDelivered {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        // Capped at the last message: a later one cannot have been delivered.
        let Some(last) = ticket.row.last_message_id else { return Ok(()) };
        let up_to = self.up_to.min(last);
        let positions = ticket.receipts.of_messages_since(self.since);
        if positions.delivered.max(positions.seen) < up_to.into() {
            positions.delivered = up_to.into();
            cx.record(Change::Delivered(receipt(ticket, up_to, self.since, cx)));
        }
        Ok(())
    }
}

/// The visitor has read the company's messages up to one of them. This is called "seen", because [`MarkRead`] is about
/// the company.
#[derive(Clone, Debug)]
pub struct MarkSeen {
    /// The last message read.
    pub up_to: MessageId,
    /// Since when the visitor's session shows messages; `None`: all of them.
    pub since: Option<DateTime<Utc>>,
}

impl Command for MarkSeen {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        // Capped at the last message: a later one cannot have been read.
        let Some(last) = ticket.row.last_message_id else { return Ok(()) };
        let up_to = self.up_to.min(last);
        let positions = ticket.receipts.of_messages_since(self.since);
        if positions.seen < up_to.into() {
            positions.seen = up_to.into();
            cx.record(Change::Seen(receipt(ticket, up_to, self.since, cx)));
        }
        Ok(())
    }
}

fn receipt(ticket: &Ticket, up_to: MessageId, since: Option<DateTime<Utc>>, cx: &Context<'_>) -> DeliveryReceipt {
    DeliveryReceipt {
        company_id: ticket.row.company_id,
        ticket_id: ticket.row.id,
        conversation: Some((ticket.row.channel_id, ticket.row.contact_id)),
        up_to,
        since,
        at: cx.now,
    }
}
