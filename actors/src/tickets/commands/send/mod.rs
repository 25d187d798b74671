//! The company writes to a contact.

mod after;
mod content;

use hotline_persistence::Change;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus};

pub use content::{Check, Content};

use super::Reopen;
use super::receive::say;
use crate::Refusal;
use crate::tickets::{AfterSend, Author, Command, Context, Follows, Heard, Ticket};
use crate::variables::{ContactValues, Values};

/// The company writes to the contact.
#[derive(Clone, Debug)]
pub struct Send {
    /// What it writes.
    pub content: Content,
    /// What the contact has for variables in it.
    pub values: ContactValues,
    /// Whether a closed ticket is reopened for it.
    pub reopen: bool,
    /// Whether the caller has found that the channel reaches the contact.
    pub reachable: bool,
    /// When the contact last wrote on the channel, where the caller has looked it up.
    pub heard: Heard,
    /// What follows the send.
    pub after: AfterSend,
    /// Who writes.
    pub author: Author,
}

impl Send {
    /// Writes this, in the open ticket, and nothing follows.
    pub fn new(content: Content, author: Author) -> Self {
        let (values, after) = (ContactValues::default(), AfterSend::default());
        Self { content, values, reopen: false, reachable: false, heard: Heard::Unknown, after, author }
    }

    /// Writes a text.
    pub fn text(body: impl Into<String>, author: Author) -> Self {
        Self::new(Content::Text { body: body.into() }, author)
    }
}

impl Command for Send {
    /// The first message, whose id is the job's.
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
            return Err(Refusal::ContactUnreachable(channel.kind.into()));
        }
        ticket.heard = ticket.heard.max(self.heard);
        if channel.kind.has_phone() && !self.content.is_template() && !is_within_window(ticket, cx) {
            return Err(Refusal::WindowClosed);
        }
        if ticket.is_closed() {
            Reopen { author: self.author.clone() }.decide(ticket, cx)?;
        }
        let values = Values { ticket, organization: cx.organization, now: cx.now, contact: &self.values };
        let parts = self.content.rendered(&values)?;
        let mut messages = Vec::with_capacity(parts.len());
        for part in parts {
            let mut message = cx.message(ticket, Direction::Outbound, &self.author, "")?;
            message.job_id = Some(messages.first().map_or(message.id, |first: &MessageRow| first.id));
            message.kind = part.kind;
            message.body = part.body;
            message.media = part.media;
            message.template = part.template;
            message.interactive = part.interactive;
            say(ticket, &message);
            messages.push(message);
        }
        ticket.row.first_response_at.get_or_insert(cx.now);
        cx.touch(ticket);
        if channel.kind == ChannelType::Webchat {
            // A webchat is our own: what is durable is handed over, and visitors fetch it. So what follows a send
            // follows at once, in the same entry.
            for message in &mut messages {
                message.status = MessageStatus::Sent;
                message.sent_at = Some(cx.now);
            }
            self.after.carry_out(ticket, cx, &self.author)?;
        } else if self.after != AfterSend::default() {
            self.after.check(ticket, cx, &self.author)?;
            // Of several messages it follows the last.
            if let Some(last) = messages.last_mut() {
                last.after_send = serde_json::to_value(&self.after).ok();
                ticket.follow(last.id, Follows { after: self.after, author: self.author });
            }
        }
        for message in &messages {
            cx.record(Change::Message(Box::new(message.clone())));
        }
        messages.into_iter().next().ok_or_else(|| Refusal::Defect("a send without a message".to_owned()))
    }
}

/// Whether the contact has written lately enough for anything but a template. To one who never wrote, the provider has
/// the last word; one of whom nothing is known is looked up first.
fn is_within_window(ticket: &Ticket, cx: &Context<'_>) -> bool {
    match (cx.window, ticket.heard) {
        (None, _) | (_, Heard::Never) => true,
        (Some(window), Heard::At(at)) => cx.now - at <= window,
        (Some(_), Heard::Unknown) => false,
    }
}
