//! The command that sends a message to a contact.

mod after_send;
mod content;
mod fill;
mod parameters;

use hotline_persistence::Change;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus};

use content::RenderedMessage;
pub use content::{Content, InteractiveCheck};
pub use parameters::check_parameter_text;

use super::receive::set_last_message;
use super::{Close, Reopen};
use crate::Refusal;
use crate::tickets::{AfterSend, Author, Command, ContactFacts, Context, FollowUp, LastInbound, RequiredFacts, Ticket};
use crate::variables::{ContactValues, Values, variable_names};

/// Sends a message to the contact.
#[derive(Clone, Debug)]
pub struct Send {
    /// The content.
    pub content: Content,
    /// Whether a closed ticket is reopened first.
    pub reopen: bool,
    /// The values loaded for [`Send::required_facts`].
    pub facts: ContactFacts,
    /// The follow-up action.
    pub after: AfterSend,
    /// Whether a ticket that is created for this send is closed at once.
    pub keep_closed: bool,
    /// The sender.
    pub author: Author,
}

impl Send {
    /// A send in the open ticket, without a follow-up action.
    pub fn new(content: Content, author: Author) -> Self {
        let (facts, after) = (ContactFacts::default(), AfterSend::default());
        Self { content, reopen: false, facts, after, keep_closed: false, author }
    }

    /// A text message in the open ticket, without a follow-up action.
    pub fn text(body: impl Into<String>, author: Author) -> Self {
        Self::new(Content::Text { body: body.into() }, author)
    }

    /// The facts of the contact that this send requires. The ticket may lack them, so the service loads them before it
    /// sends the command.
    pub fn required_facts(&self, channel_type: ChannelType) -> RequiredFacts {
        RequiredFacts {
            reachable: !channel_type.has_phone(),
            last_inbound: channel_type.has_phone() && !self.content.is_template(),
            values: self.content.texts().into_iter().any(|text| variable_names(text).any(ContactValues::may_include)),
        }
    }
}

impl Command for Send {
    /// The first message; its id is the job's id.
    type Reply = MessageRow;

    fn opens(&self) -> bool {
        self.reopen
    }

    fn keeps_closed(&self) -> bool {
        self.keep_closed
    }

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        let channel_type = cx.organization.channels.get(&ticket.row.channel_id).ok_or(Refusal::NotFound)?.kind;
        self.add_facts_and_check(ticket, channel_type, cx)?;
        let Self { content, facts, after, keep_closed, author, .. } = self;
        // Only a new ticket is closed: an earlier one already has a conversation, or waits for an agent.
        let closes_ticket = keep_closed && ticket.row.created_at == cx.now && ticket.row.last_message_id.is_none();
        if ticket.is_closed() {
            Reopen { author: author.clone() }.decide(ticket, cx)?;
        }
        let rendered_messages = content.render(&values_of(ticket, &facts, cx))?;
        let mut messages = create_messages(rendered_messages, ticket, cx, &author)?;
        cx.touch(ticket);
        let is_answer = author.source.answers() && ticket.awaits_answer();
        if channel_type == ChannelType::Webchat {
            mark_sent(&mut messages, cx);
            // Nothing is left to wait for, so the follow-up action is executed in the same entry.
            if let Some(first) = messages.first().filter(|_| is_answer) {
                ticket.record_answer(first.id, first.created_at);
            }
            after.execute(ticket, cx, &author)?;
        } else {
            // Executed once the provider has accepted the message; checked now, so that the sender learns of a refusal.
            if after != AfterSend::default() {
                after.check(ticket, cx, &author)?;
            }
            store_follow_ups(&mut messages, ticket, &AfterSend { answers: is_answer, ..after }, &author);
        }
        if closes_ticket {
            Close::without_wrapup(author, ticket, cx)?;
        }
        for message in &messages {
            cx.record(Change::Message(Box::new(message.clone())));
        }
        messages.into_iter().next().ok_or_else(|| Refusal::Defect("a send without a message".to_owned()))
    }
}

impl Send {
    /// Checks that the ticket is open or may be reopened, and that the channel reaches the contact and accepts this
    /// content. Adds the loaded facts to the ticket.
    fn add_facts_and_check(
        &self,
        ticket: &mut Ticket,
        channel_type: ChannelType,
        cx: &Context<'_>,
    ) -> Result<(), Refusal> {
        if ticket.is_closed() && !self.reopen {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        ticket.reachable |= self.facts.reachable;
        // On a phone channel, a contact with a number is always reachable.
        let is_reachable = ticket.reachable || channel_type.has_phone() && ticket.contact.number.is_some();
        if !is_reachable {
            return Err(Refusal::ContactUnreachable(channel_type.into()));
        }
        ticket.last_inbound = ticket.last_inbound.max(self.facts.last_inbound);
        if channel_type.has_phone() && !self.content.is_template() { check_window(ticket, cx) } else { Ok(()) }
    }
}

/// The values of the variables in the content.
fn values_of<'a>(ticket: &'a Ticket, facts: &'a ContactFacts, cx: &'a Context<'_>) -> Values<'a> {
    Values {
        ticket: &ticket.row,
        contact: &ticket.contact,
        organization: cx.organization,
        now: cx.now,
        contact_values: &facts.values,
    }
}

/// Creates the rows of these messages, in order, all of one job.
fn create_messages(
    rendered_messages: Vec<RenderedMessage>,
    ticket: &mut Ticket,
    cx: &Context<'_>,
    author: &Author,
) -> Result<Vec<MessageRow>, Refusal> {
    let mut messages: Vec<MessageRow> = Vec::with_capacity(rendered_messages.len());
    for rendered in rendered_messages {
        let mut message = cx.new_message(ticket, Direction::Outbound, author, "")?;
        message.job_id = Some(messages.first().map_or(message.id, |first| first.id));
        message.kind = rendered.kind;
        message.body = rendered.body;
        message.media = rendered.media;
        message.template = rendered.template;
        message.interactive = rendered.interactive;
        set_last_message(ticket, &message);
        messages.push(message);
    }
    Ok(messages)
}

/// A webchat has no provider: a message counts as sent once it is durable.
fn mark_sent(messages: &mut [MessageRow], cx: &Context<'_>) {
    for message in messages {
        message.status = MessageStatus::Sent;
        message.sent_at = Some(cx.now);
    }
}

/// Stores with each message what follows once the provider has accepted it. Any of them may be the first one accepted,
/// and so the answer; the transfer and the close follow only the last message.
fn store_follow_ups(messages: &mut [MessageRow], ticket: &mut Ticket, after: &AfterSend, author: &Author) {
    let last = messages.last().map(|message| message.id);
    for message in messages {
        let after = if Some(message.id) == last {
            after.clone()
        } else {
            AfterSend { answers: after.answers, ..AfterSend::default() }
        };
        if after != AfterSend::default() {
            message.after_send = serde_json::to_value(&after).ok();
            ticket
                .add_follow_up(message.id, FollowUp { after, author: author.clone(), written_at: message.created_at });
        }
    }
}

/// Checks that the conversation window is open; only templates may be sent outside it. If the contact never wrote, the
/// provider decides. `Unknown` counts as closed: the service looks up the time before it sends the command.
fn check_window(ticket: &Ticket, cx: &Context<'_>) -> Result<(), Refusal> {
    match (cx.window, ticket.last_inbound) {
        (None, _) | (_, LastInbound::Never) => Ok(()),
        (Some(window), LastInbound::At(at)) if cx.now - at <= window => Ok(()),
        (Some(window), LastInbound::At(at)) => Err(Refusal::WindowClosed(at.checked_add_signed(window))),
        (Some(_), LastInbound::Unknown) => Err(Refusal::WindowClosed(None)),
    }
}
