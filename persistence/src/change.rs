//! Every possible change to a live row, and the encoding of journal entries.

use serde::{Deserialize, Serialize};

use crate::journal::Seq;
use crate::tables::campaigns::RecipientRow;
use crate::tables::contacts::{ContactChannel, OptOut, ReferralRow};
use crate::tables::idempotency_keys::AnswerRow;
use crate::tables::messages::{AttemptRow, DeliveryReceipt, DeliveryStatusRow, MediaRow, MessageRow, RevisionRow};
use crate::tables::schedules::ScheduleRow;
use crate::tables::ticket_events::EventRow;
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::SessionRow;
use crate::{CompanyId, Error, Result};

/// One change of one live row. Rows are complete, so writing one twice changes nothing.
///
/// Entries are MessagePack with field names: a later release may add a variant or an optional field and still read
/// entries of this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// The new state of a ticket.
    Ticket(TicketRow),
    /// An event of a ticket.
    Event(EventRow),
    /// A new message.
    Message(Box<MessageRow>),
    /// A message has reached a status.
    Progress(Box<DeliveryStatusRow>),
    /// An attempt to send a message is about to start, or its outcome is unknown.
    Attempt(Box<AttemptRow>),
    /// The file of a message was stored or is lost.
    Media(Box<MediaRow>),
    /// A message was edited or deleted, or somebody has reacted to it.
    Revision(Box<RevisionRow>),
    /// The visitor has received the company's messages up to this one.
    Delivered(DeliveryReceipt),
    /// The visitor has read the company's messages up to this one.
    Seen(DeliveryReceipt),
    /// The company has read the contact's messages up to this one.
    Read(DeliveryReceipt),
    /// The new state of a session.
    Session(Box<SessionRow>),
    /// The channel of a contact's latest message.
    ContactChannel(ContactChannel),
    /// The advertisement or link that brought the contact.
    Referral(Box<ReferralRow>),
    /// The contact opted out of campaigns.
    OptOut(OptOut),
    /// The new state of a scheduled message.
    Schedule(Box<ScheduleRow>),
    /// The outcome for a campaign's recipient.
    Recipient(Box<RecipientRow>),
    /// The recorded answer to a request with an idempotency key.
    Answer(Box<AnswerRow>),
}

impl Change {
    /// The company the row belongs to.
    pub fn company(&self) -> CompanyId {
        match self {
            Self::Ticket(row) => row.company_id,
            Self::Event(row) => row.company_id,
            Self::Message(row) => row.company_id,
            Self::Progress(row) => row.company_id,
            Self::Attempt(row) => row.company_id,
            Self::Media(row) => row.company_id,
            Self::Revision(row) => row.company_id,
            Self::Delivered(receipt) | Self::Seen(receipt) | Self::Read(receipt) => receipt.company_id,
            Self::Session(row) => row.company_id,
            Self::ContactChannel(change) => change.company_id,
            Self::Referral(row) => row.company_id,
            Self::OptOut(row) => row.company_id,
            Self::Schedule(row) => row.company_id,
            Self::Recipient(row) => row.company_id,
            Self::Answer(row) => row.company_id,
        }
    }
}

/// Encodes one entry: the changes of one decision, which become durable together or not at all.
///
/// # Errors
/// [`Error::InvalidEntry`] when a value cannot be encoded; no value of these types is known to cause that.
pub fn encode(changes: &[Change]) -> Result<Vec<u8>> {
    // Most entries are a few hundred bytes, so one allocation is enough.
    let mut bytes = Vec::with_capacity(512);
    changes
        .serialize(&mut rmp_serde::Serializer::new(&mut bytes).with_struct_map())
        .map_err(|error| Error::InvalidEntry(error.to_string()))?;
    Ok(bytes)
}

/// Decodes what [`encode`] wrote.
///
/// # Errors
/// [`Error::UndecodableEntry`] when this release cannot decode the bytes.
pub fn decode(seq: Seq, bytes: &[u8]) -> Result<Vec<Change>> {
    rmp_serde::from_slice(bytes).map_err(|error| Error::UndecodableEntry { seq, reason: error.to_string() })
}
