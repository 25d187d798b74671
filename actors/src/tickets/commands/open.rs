use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_persistence::tables::channels::ChannelRow;
use hotline_persistence::tables::contacts::ContactChannel;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::tables::tickets::{HandledBy, TicketRow, TicketStatus};
use hotline_persistence::{Change, ChannelId, CompanyId, QueueId, TicketId, UserId};
use serde_json::json;

use super::{check_queue, check_user, named_queue, named_user};
use crate::Refusal;
use crate::tickets::{Author, Context, LastInbound, ReceiptPositions, Ticket};

/// The queue for a channel's new tickets, if it is active.
pub(crate) fn default_queue(organization: &Organization, channel: &ChannelRow) -> Option<QueueId> {
    channel.queue_id.filter(|queue| organization.queues.get(queue).is_some_and(|queue| queue.row.active))
}

/// Opens a new ticket. Not a [`crate::tickets::Command`]: there is no ticket yet.
#[derive(Clone, Debug)]
pub struct Open {
    /// The company.
    pub company: CompanyId,
    /// The channel of the conversation.
    pub channel: ChannelId,
    /// The contact.
    pub contact: Arc<ContactRef>,
    /// Whether the contact is known to have written on this channel.
    pub reachable: bool,
    /// The queue the ticket waits in; the channel's queue when unset.
    pub queue: Option<QueueId>,
    /// The agent the ticket is assigned to.
    pub user: Option<UserId>,
    /// Who opens it.
    pub author: Author,
}

impl Open {
    /// Decides the new ticket.
    ///
    /// # Errors
    /// When the channel, queue or user does not exist, or the queue or user may not have the ticket.
    pub fn decide(self, id: TicketId, cx: &mut Context<'_>) -> Result<Ticket, Refusal> {
        let channel = cx.organization.channels.get(&self.channel).ok_or(Refusal::NotFound)?;
        if let Some(queue) = self.queue {
            check_queue(cx.organization, queue)?;
        }
        let queue = self.queue.or(default_queue(cx.organization, channel));
        if let Some(user) = self.user {
            check_user(cx.organization, user, queue)?;
        }
        let mut ticket = Ticket {
            row: self.row(id, queue, cx.now),
            contact: self.contact,
            last_message: None,
            reachable: self.reachable,
            last_inbound: LastInbound::Unknown,
            follow_ups: None,
            receipts: ReceiptPositions::default(),
        };
        let to = json!({
            "status": "open",
            "queue": named_queue(cx.organization, queue),
            "assignedTo": named_user(cx.organization, self.user),
        });
        cx.touch(&mut ticket);
        cx.record_event(&ticket, EventType::Opened, &self.author, None, Some(to))?;
        cx.record(Change::ContactChannel(ContactChannel {
            company_id: self.company,
            contact_id: ticket.contact.id,
            channel_id: self.channel,
            at: cx.now,
        }));
        Ok(ticket)
    }

    /// The new ticket's row.
    fn row(&self, id: TicketId, queue: Option<QueueId>, now: DateTime<Utc>) -> TicketRow {
        TicketRow {
            company_id: self.company,
            id,
            channel_id: self.channel,
            contact_id: self.contact.id,
            queue_id: queue,
            user_id: self.user,
            status: TicketStatus::Open,
            creation_source: self.author.source,
            unread_count: 0,
            last_message_id: None,
            wrapup_type_id: None,
            wrapup_note: None,
            reopen_count: 0,
            opened_at: now,
            first_response_at: None,
            closed_at: None,
            waiting_since: None,
            answer_id: None,
            handled_by: HandledBy::default(),
            created_at: now,
            updated_at: now,
        }
    }
}
