//! The company writes to a contact.

mod after;
mod content;

use hotline_persistence::Change;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus};
use hotline_persistence::tables::source::Source;

use content::Part;
pub use content::{Check, Content};

use super::receive::say;
use super::{Close, Reopen};
use crate::Refusal;
use crate::tickets::{AfterSend, Author, Command, Context, Follows, Heard, Knowledge, Needs, Ticket};
use crate::variables::{ContactValues, Values, names};

/// The company writes to the contact.
#[derive(Clone, Debug)]
pub struct Send {
    /// What it writes.
    pub content: Content,
    /// Whether a closed ticket is reopened for it.
    pub reopen: bool,
    /// What was found of its contact.
    pub known: Knowledge,
    /// What follows the send.
    pub after: AfterSend,
    /// Whether a ticket that is opened for it is closed again at once.
    pub keep_closed: bool,
    /// Who writes.
    pub author: Author,
}

impl Send {
    /// Writes this, in the open ticket, and nothing follows.
    pub fn new(content: Content, author: Author) -> Self {
        let (known, after) = (Knowledge::default(), AfterSend::default());
        Self { content, reopen: false, known, after, keep_closed: false, author }
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

    fn keeps_closed(&self) -> bool {
        self.keep_closed
    }

    fn needs(&self, channel: ChannelType) -> Needs {
        Needs {
            reachable: !channel.has_phone(),
            last_inbound: channel.has_phone() && !self.content.is_template(),
            values: self.content.texts().into_iter().any(|text| names(text).any(ContactValues::are_asked_for)),
        }
    }

    fn learn(&mut self, knowledge: Knowledge) {
        self.known = knowledge;
    }

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        let channel = cx.organization.channels.get(&ticket.row.channel_id).ok_or(Refusal::NotFound)?.kind;
        self.check(ticket, channel, cx)?;
        let Self { content, known, after, keep_closed, author, .. } = self;
        // What was opened at another moment has been talked in, or waits for somebody.
        let keeps_closed = keep_closed && ticket.row.created_at == cx.now && ticket.row.last_message_id.is_none();
        if ticket.is_closed() {
            Reopen { author: author.clone() }.decide(ticket, cx)?;
        }
        let values = Values { ticket, organization: cx.organization, now: cx.now, contact: &known.values };
        let parts = content.rendered(&values)?;
        let mut messages = say_all(parts, ticket, cx, &author)?;
        ticket.row.first_response_at.get_or_insert(cx.now);
        answer(ticket, &messages, &author);
        cx.touch(ticket);
        if channel == ChannelType::Webchat {
            hand_over_at_once(&mut messages, cx);
            after.carry_out(ticket, cx, &author)?;
        } else if after != AfterSend::default() {
            after.check(ticket, cx, &author)?;
            keep_for_later(&mut messages, ticket, after, author.clone());
        }
        if keeps_closed {
            Close::unheard(author, ticket, cx)?;
        }
        for message in &messages {
            cx.record(Change::Message(Box::new(message.clone())));
        }
        messages.into_iter().next().ok_or_else(|| Refusal::Defect("a send without a message".to_owned()))
    }
}

impl Send {
    /// Whether it may be sent: the ticket is open or is to be, the channel reaches the contact, and takes this content.
    fn check(&self, ticket: &mut Ticket, channel: ChannelType, cx: &Context<'_>) -> Result<(), Refusal> {
        if ticket.is_closed() && !self.reopen {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        ticket.reachable |= self.known.reachable;
        let reaches = if channel.has_phone() { ticket.contact.number.is_some() } else { ticket.reachable };
        if !reaches {
            return Err(Refusal::ContactUnreachable(channel.into()));
        }
        ticket.heard = ticket.heard.max(self.known.heard);
        if channel.has_phone() && !self.content.is_template() && !is_within_window(ticket, cx) {
            return Err(Refusal::WindowClosed);
        }
        Ok(())
    }
}

/// What the company's people and integrations write answers a contact who waits. What goes out by itself (a greeting, a
/// campaign, a bot's words) does not: the contact still waits for somebody.
fn answer(ticket: &mut Ticket, messages: &[MessageRow], author: &Author) {
    if !matches!(author.source, Source::Api | Source::User) {
        return;
    }
    ticket.row.waiting_since = None;
    if ticket.row.creation_source == Source::Contact {
        ticket.row.answer_id = ticket.row.answer_id.or(messages.first().map(|message| message.id));
    }
}

/// A message for each part, in order, of one job.
fn say_all(
    parts: Vec<Part>,
    ticket: &mut Ticket,
    cx: &Context<'_>,
    author: &Author,
) -> Result<Vec<MessageRow>, Refusal> {
    let mut messages: Vec<MessageRow> = Vec::with_capacity(parts.len());
    for part in parts {
        let mut message = cx.message(ticket, Direction::Outbound, author, "")?;
        message.job_id = Some(messages.first().map_or(message.id, |first| first.id));
        message.kind = part.kind;
        message.body = part.body;
        message.media = part.media;
        message.template = part.template;
        message.interactive = part.interactive;
        say(ticket, &message);
        messages.push(message);
    }
    Ok(messages)
}

/// A webchat is our own: what is durable is handed over, and visitors fetch it. So what follows a send follows at once,
/// in the same entry.
fn hand_over_at_once(messages: &mut [MessageRow], cx: &Context<'_>) {
    for message in messages {
        message.status = MessageStatus::Sent;
        message.sent_at = Some(cx.now);
    }
}

/// What follows the last of several messages is kept until its provider has it.
fn keep_for_later(messages: &mut [MessageRow], ticket: &mut Ticket, after: AfterSend, author: Author) {
    if let Some(last) = messages.last_mut() {
        last.after_send = serde_json::to_value(&after).ok();
        ticket.follow(last.id, Follows { after, author });
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
