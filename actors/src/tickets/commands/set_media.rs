use hotline_persistence::tables::messages::{MediaRow, MessageError};
use hotline_persistence::{Change, MessageId};
use serde_json::Value;

use crate::Refusal;
use crate::tickets::{Command, Context, Ticket};

/// The file of a message the contact sent was fetched from the provider, or can never be.
#[derive(Clone, Debug)]
pub struct SetMedia {
    /// Which message of this ticket.
    pub message: MessageId,
    /// The file as it is stored, or why there is none.
    pub media: Result<Value, MessageError>,
}

impl Command for SetMedia {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let (media, error) = match self.media {
            Ok(media) => (Some(media), None),
            Err(error) => (None, serde_json::to_value(error).ok()),
        };
        // A closed ticket takes it as well: the file belongs to what was said before.
        cx.record(Change::Media(Box::new(MediaRow {
            company_id: ticket.row.company_id,
            ticket_id: ticket.row.id,
            message_id: self.message,
            media,
            error,
        })));
        Ok(())
    }
}
