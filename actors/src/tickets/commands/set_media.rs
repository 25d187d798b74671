use hotline_persistence::tables::messages::{MediaRow, MessageError};
use hotline_persistence::{Change, MessageId};
use serde_json::Value;

use crate::Refusal;
use crate::tickets::{Command, Context, Ticket};

/// The file of an inbound message was fetched from the provider, or never will be.
#[derive(Clone, Debug)]
pub struct SetMedia {
    /// Which message of this ticket.
    pub message: MessageId,
    /// The stored file, or the reason why there is none.
    pub media: Result<Value, MessageError>,
}

impl Command for SetMedia {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let (media, error) = match self.media {
            Ok(media) => (Some(media), None),
            Err(error) => (None, serde_json::to_value(error).ok()),
        };
        // Recorded on a closed ticket too: the file belongs to an earlier message.
        cx.record(Change::Media(Box::new(MediaRow {
            company_id: ticket.row.company_id,
            ticket_id: ticket.row.id,
            message_id: self.message,
            media,
            error,
            is_text_error: false,
            noted_at: Some(cx.now),
        })));
        Ok(())
    }
}

/// The text of an outbound message, sent after its file, has failed, although the provider had accepted it.
/// The file was sent, so the message keeps its status, and shows the error.
#[derive(Clone, Debug)]
pub struct FailText {
    /// Which message of this ticket.
    pub message: MessageId,
    /// Why its text has failed.
    pub error: MessageError,
}

impl Command for FailText {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        cx.record(Change::Media(Box::new(MediaRow {
            company_id: ticket.row.company_id,
            ticket_id: ticket.row.id,
            message_id: self.message,
            media: None,
            error: serde_json::to_value(self.error).ok(),
            is_text_error: true,
            noted_at: Some(cx.now),
        })));
        Ok(())
    }
}
