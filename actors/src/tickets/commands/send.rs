use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus};
use hotline_persistence::{Change, QueueId, WrapupTypeId};
use serde::{Deserialize, Serialize};

use super::receive::say;
use super::{Close, Reopen, Transfer};
use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// The company writes to the contact.
#[derive(Clone, Debug)]
pub struct Send {
    /// What it writes.
    pub body: String,
    /// Whether a closed ticket is reopened for it.
    pub reopen: bool,
    /// Whether the caller has found that the channel reaches the contact.
    pub reachable: bool,
    /// What follows the send.
    pub after: AfterSend,
    /// Who writes.
    pub author: Author,
}

/// What follows once the channel has taken a message: transfer, then close.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterSend {
    /// Moves the ticket to this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_id: Option<QueueId>,
    /// Closes the ticket.
    #[serde(default)]
    pub close_ticket: bool,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_type_id: Option<WrapupTypeId>,
    /// In the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_note: Option<String>,
}

impl Command for Send {
    type Reply = MessageRow;

    fn opens(&self) -> bool {
        self.reopen
    }

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        if ticket.is_closed() && !self.reopen {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        let channel = cx.organization.channels.get(&ticket.row.channel_id).ok_or(Refusal::NotFound)?;
        ticket.reachable |= self.reachable;
        let reaches = if channel.kind.has_phone() { ticket.contact.number.is_some() } else { ticket.reachable };
        if !reaches {
            return Err(Refusal::ContactUnreachable);
        }
        if ticket.is_closed() {
            Reopen { author: self.author.clone() }.decide(ticket, cx)?;
        }
        let mut message = cx.message(ticket, Direction::Outbound, &self.author, &self.body)?;
        message.job_id = Some(message.id);
        ticket.row.first_response_at.get_or_insert(cx.now);
        say(ticket, &message);
        cx.touch(ticket);
        if channel.kind == ChannelType::Webchat {
            // A webchat is our own: what is durable is handed over, and visitors fetch it. So what follows a send
            // follows at once, in the same entry.
            message.status = MessageStatus::Sent;
            message.sent_at = Some(cx.now);
            self.after.carry_out(ticket, cx, &self.author)?;
        } else if self.after != AfterSend::default() {
            // Checked on a copy now, carried out when the provider has taken the message.
            let ids = hotline_persistence::id_blocks::IdBlocks::unbacked();
            let mut trial = Context::new(cx.now, cx.organization, &ids);
            self.after.clone().carry_out(&mut ticket.clone(), &mut trial, &self.author)?;
            message.after_send = serde_json::to_value(&self.after).ok();
        }
        cx.record(Change::Message(Box::new(message.clone())));
        Ok(message)
    }
}

impl AfterSend {
    /// Transfers, then closes.
    pub(crate) fn carry_out(self, ticket: &mut Ticket, cx: &mut Context<'_>, author: &Author) -> Result<(), Refusal> {
        if self.queue_id.is_some() {
            Transfer { queue: self.queue_id, user: None, author: author.clone() }.decide(ticket, cx)?;
        }
        if self.close_ticket {
            let close =
                Close { wrapup_type: self.wrapup_type_id, wrapup_note: self.wrapup_note, author: author.clone() };
            close.decide(ticket, cx)?;
        }
        Ok(())
    }
}
