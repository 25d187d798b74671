use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_persistence::tables::contacts::OptOut;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::tickets::HandledBy;
use hotline_persistence::{Change, MessageId, SessionId, stop_words};
use serde_json::Value;

use crate::Refusal;
use crate::tickets::{Author, Command, Context, LastInbound, LastMessage, Ticket};

/// The contact has written.
///
/// A text that equals one of the company's stop words opts its contact out of campaigns. The opt-out is recorded here,
/// in one entry with the message: so every channel is covered, it is applied exactly once even after a crash or a
/// replay, and the words come from the directory in memory. A scan of the message table would read each message once
/// more, and would repeat the opt-out of a contact who has opted in since.
#[derive(Clone, Debug, Default)]
pub struct Receive {
    /// The text, or the caption of the file.
    pub body: Option<String>,
    /// The file they sent: its description, or what must be fetched from the provider.
    pub media: Option<Value>,
    /// A form that they submitted, as the provider sent it.
    pub interactive: Option<Value>,
    /// The content besides the text.
    pub content: Option<Value>,
    /// The message they reply to.
    pub quoted: Option<MessageId>,
    /// The visitor's session, on a webchat.
    pub session: Option<SessionId>,
    /// The id that the visitor's client gave the message.
    pub client_id: Option<String>,
    /// The provider's id of the message.
    pub provider_message_id: Option<String>,
    /// When they wrote it, by the provider's clock; shown as `sentAt`. The provider's call may arrive late.
    pub written_at: Option<DateTime<Utc>>,
    /// Whether it went to another app, which handles the conversation: the contact does not wait for the company.
    pub standby: bool,
}

impl Receive {
    /// A text message with no other field set.
    pub fn text(body: impl Into<String>) -> Self {
        Self { body: Some(body.into()), ..Self::default() }
    }
}

impl Command for Receive {
    type Reply = MessageRow;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        if ticket.is_closed() {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        let mut message = cx.new_message(ticket, Direction::Inbound, &Author::CONTACT, "")?;
        message.status = MessageStatus::Received;
        message.kind = if self.media.is_some() { MessageType::Media } else { MessageType::Text };
        message.body = self.body;
        message.media = self.media;
        message.interactive = self.interactive;
        message.content = self.content;
        message.quoted_message_id = self.quoted;
        message.session_id = self.session;
        message.client_id = self.client_id;
        message.provider_message_id = self.provider_message_id;
        // Capped at now: the provider's clock may be ahead.
        message.sent_at = self.written_at.map(|at| at.min(cx.now));
        ticket.row.unread_count += 1;
        if !self.standby {
            ticket.row.waiting_since.get_or_insert(cx.now);
            ticket.row.handled_by = HandledBy::default();
        } else if ticket.row.handled_by.is_none() {
            ticket.row.handled_by = HandledBy::app(None);
        }
        // On a phone channel, a contact without a number is answered at the id from which they wrote.
        let channel = cx.organization.channels.get(&ticket.row.channel_id);
        let has_phone = channel.is_some_and(|channel| channel.kind.has_phone());
        ticket.reachable |= !has_phone || ticket.contact.number.is_none();
        ticket.last_inbound = ticket.last_inbound.max(LastInbound::At(message.sent_at.unwrap_or(cx.now)));
        set_last_message(ticket, &message);
        cx.touch(ticket);
        cx.record(Change::Message(Box::new(message.clone())));
        if is_stop_word(&message, cx) {
            let (company_id, contact_id) = (message.company_id, message.contact_id);
            cx.record(Change::OptOut(OptOut { company_id, contact_id, at: cx.now }));
        }
        Ok(message)
    }
}

/// Whether a message is a text that equals one of the company's stop words.
fn is_stop_word(message: &MessageRow, cx: &Context<'_>) -> bool {
    let text = message.body.as_deref().filter(|_| message.kind == MessageType::Text);
    stop_words::is_one_of(&cx.organization.company.stop_words, text.unwrap_or_default())
}

/// Makes a message the last one of its ticket.
pub(super) fn set_last_message(ticket: &mut Ticket, message: &MessageRow) {
    ticket.row.last_message_id = Some(message.id);
    ticket.last_message = Some(Arc::new(LastMessage {
        body: message.body.as_deref().map(Box::from),
        direction: message.direction,
        created_at: message.created_at,
    }));
}
