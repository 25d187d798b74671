use chrono::{DateTime, Utc};
use hotline_persistence::Change;
use hotline_persistence::tables::messages::{Direction, MessageOrigin, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::tickets::HandledBy;

use super::Receive;
use super::receive::set_last_message;
use crate::Refusal;
use crate::tickets::{Author, Command, Context, LastInbound, Ticket};

/// The company has written to the contact in another app: the provider's own, or one that is connected to the account.
/// The provider has the message already. The message answers the contact, like one that was sent through Hotline.
#[derive(Clone, Debug)]
pub struct ReceiveEcho {
    /// The message.
    pub message: Receive,
    /// The app in which it was written.
    pub origin: MessageOrigin,
}

impl Command for ReceiveEcho {
    type Reply = MessageRow;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        if ticket.is_closed() {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        let Self { message: echo, origin } = self;
        let app_id = origin.app.id.clone();
        let precedes_inbound = echo.written_at.is_some_and(|at| precedes_last_inbound(ticket, at));
        // Written before the ticket was opened: it answers nothing.
        let is_late = precedes_inbound && echo.written_at.is_some_and(|at| at < ticket.row.opened_at);
        let mut message = cx.new_message(ticket, Direction::Outbound, &Author::OTHER_APP, "")?;
        message.kind = if echo.media.is_some() { MessageType::Media } else { MessageType::Text };
        message.body = echo.body;
        message.media = echo.media;
        message.content = MessageOrigin { late: is_late, ..origin }.add_to_content(echo.content);
        message.quoted_message_id = echo.quoted;
        message.provider_message_id = echo.provider_message_id;
        message.status = MessageStatus::Sent;
        // Capped at now: the provider's clock may be ahead.
        message.sent_at = Some(echo.written_at.map_or(cx.now, |at| at.min(cx.now)));
        if !is_late && ticket.awaits_answer() {
            // A contact who has written after this message still waits.
            let waiting_since = ticket.row.waiting_since.filter(|_| precedes_inbound);
            ticket.record_answer(message.id, message.created_at);
            ticket.row.waiting_since = ticket.row.waiting_since.or(waiting_since);
        }
        if echo.standby {
            ticket.row.handled_by = HandledBy::app(app_id.as_deref());
        }
        set_last_message(ticket, &message);
        cx.touch(ticket);
        cx.record(Change::Message(Box::new(message.clone())));
        Ok(message)
    }
}

/// Whether the contact has written after this time: reports may arrive in any order. Compared in seconds, because some
/// providers report no smaller unit.
fn precedes_last_inbound(ticket: &Ticket, written_at: DateTime<Utc>) -> bool {
    let last_inbound = match ticket.last_inbound {
        LastInbound::At(at) => Some(at),
        LastInbound::Unknown | LastInbound::Never => {
            ticket.last_message.as_ref().filter(|last| last.direction == Direction::Inbound).map(|last| last.created_at)
        }
    };
    last_inbound.is_some_and(|at| written_at.timestamp() < at.timestamp())
}
