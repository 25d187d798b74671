//! Everything that can happen to a live row, and how an entry of the journal is written.

use serde::{Deserialize, Serialize};

use crate::journal::Seq;
use crate::tables::campaigns::RecipientRow;
use crate::tables::contacts::{ContactChannel, OptOut, ReferralRow};
use crate::tables::idempotency_keys::AnswerRow;
use crate::tables::messages::{DeliveryReceipt, DeliveryStatusRow, MediaRow, MessageRow};
use crate::tables::schedules::ScheduleRow;
use crate::tables::ticket_events::EventRow;
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::SessionRow;
use crate::{CompanyId, Error, Result};

/// One change to one live row. Rows travel whole, so that writing one twice changes nothing.
///
/// Entries are MessagePack with field names: a later release may add a variant or an optional field and still
/// read what this one left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// The ticket is now this.
    Ticket(TicketRow),
    /// This happened to a ticket.
    Event(EventRow),
    /// This was said.
    Message(Box<MessageRow>),
    /// A message has come this far.
    Progress(Box<DeliveryStatusRow>),
    /// The file of a message is there, or lost.
    Media(Box<MediaRow>),
    /// The visitor has received the company's messages up to here.
    Delivered(DeliveryReceipt),
    /// The visitor has read the company's messages up to here.
    Seen(DeliveryReceipt),
    /// The company has read the contact's messages up to here.
    Read(DeliveryReceipt),
    /// The session is now this.
    Session(Box<SessionRow>),
    /// The contact was last talked to here.
    ContactChannel(ContactChannel),
    /// The contact came by this advertisement or link.
    Referral(Box<ReferralRow>),
    /// The contact wants no campaigns.
    OptOut(OptOut),
    /// The scheduled message is now this.
    Schedule(Box<ScheduleRow>),
    /// This has become of a campaign's recipient.
    Recipient(Box<RecipientRow>),
    /// A request with an idempotency key was answered so.
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
            Self::Media(row) => row.company_id,
            Self::Delivered(mark) | Self::Seen(mark) | Self::Read(mark) => mark.company_id,
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

/// The bytes of one entry: the changes of one decision, which become durable together or not at all.
///
/// # Errors
/// [`Error::Entry`] when a value cannot be written, which no value of these types is known to do.
pub fn encode(changes: &[Change]) -> Result<Vec<u8>> {
    // An entry is some hundred bytes; one allocation serves most.
    let mut bytes = Vec::with_capacity(512);
    changes
        .serialize(&mut rmp_serde::Serializer::new(&mut bytes).with_struct_map())
        .map_err(|error| Error::Entry { seq: 0, reason: error.to_string() })?;
    Ok(bytes)
}

/// The mirror of [`encode`].
///
/// # Errors
/// [`Error::Entry`] when the bytes are no entry this release understands.
pub fn decode(seq: Seq, bytes: &[u8]) -> Result<Vec<Change>> {
    rmp_serde::from_slice(bytes).map_err(|error| Error::Entry { seq, reason: error.to_string() })
}
