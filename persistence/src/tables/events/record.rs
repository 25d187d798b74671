//! What an event is of, as the log keeps it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::tables::campaigns::Campaign;
use crate::tables::cards::{Card, LoadedCard};
use crate::tables::channels::{ChannelRow, ChannelStatus, ChannelType};
use crate::tables::contacts::{ContactRef, ContactRow};
use crate::tables::messages::{Direction, MessageStatus};
use crate::tables::schedules::ScheduleRow;
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::SessionRow;
use crate::{CampaignId, CardId, ChannelId, ContactId, MessageId, QueueId, ScheduleId, SessionId, TicketId};

/// A record as it was when its event happened. Names are part of the log's format and never change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Record {
    /// A ticket.
    #[serde(rename = "t")]
    Ticket(Box<TicketThen>),
    /// A message, by its id: its row knows the rest.
    #[serde(rename = "m")]
    Message(MessageThen),
    /// A visitor session.
    #[serde(rename = "s")]
    Session(Box<SessionThen>),
    /// A scheduled message.
    #[serde(rename = "d")]
    Schedule(Box<ScheduleThen>),
    /// A contact.
    #[serde(rename = "c")]
    Contact(Box<ContactRow>),
    /// A card.
    #[serde(rename = "k")]
    Card(Box<CardThen>),
    /// A campaign.
    #[serde(rename = "g")]
    Campaign(Box<Campaign>),
    /// A channel.
    #[serde(rename = "h")]
    Channel(Box<ChannelThen>),
}

/// Which record an event is of. A message belongs to its ticket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Subject {
    Ticket(TicketId),
    Session(SessionId),
    Schedule(ScheduleId),
    Contact(ContactId),
    Card(CardId),
    Campaign(CampaignId),
    Channel(ChannelId),
}

impl Record {
    pub(super) fn subject(&self) -> Subject {
        match self {
            Self::Ticket(ticket) => Subject::Ticket(ticket.row.id),
            Self::Message(message) => Subject::Ticket(message.ticket_id),
            Self::Session(session) => Subject::Session(session.row.id.clone()),
            Self::Schedule(schedule) => Subject::Schedule(schedule.row.id),
            Self::Contact(contact) => Subject::Contact(contact.id),
            Self::Card(card) => Subject::Card(card.card.id),
            Self::Campaign(campaign) => Subject::Campaign(campaign.id),
            Self::Channel(channel) => Subject::Channel(channel.id),
        }
    }
}

/// A ticket with what is shown beside it, but for names of the company's own records.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TicketThen {
    #[serde(rename = "r")]
    pub row: TicketRow,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<PersonThen>,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub last_message: Option<SaidLast>,
}

/// A contact, as a ticket or a scheduled message shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PersonThen {
    #[serde(rename = "n")]
    pub name: String,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    #[serde(rename = "v", default, skip_serializing_if = "std::ops::Not::not")]
    pub verified: bool,
}

impl From<ContactRef> for PersonThen {
    fn from(contact: ContactRef) -> Self {
        Self { name: contact.name, number: contact.number, verified: contact.verified }
    }
}

/// The last message of a ticket, as that shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SaidLast {
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    #[serde(rename = "d")]
    pub direction: Direction,
    #[serde(rename = "a", with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
}

/// Which message, and how far it had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct MessageThen {
    #[serde(rename = "i")]
    pub id: MessageId,
    #[serde(rename = "t")]
    pub ticket_id: TicketId,
    #[serde(rename = "s")]
    pub status: MessageStatus,
}

/// A visitor session with its contact. It holds none of its tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SessionThen {
    #[serde(rename = "r")]
    pub row: SessionRow,
    /// None that was deleted before this could be told.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<ContactRow>,
}

/// A scheduled message with its contact.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ScheduleThen {
    #[serde(rename = "r")]
    pub row: ScheduleRow,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<PersonThen>,
}

/// A card with its contacts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct CardThen {
    #[serde(rename = "k")]
    pub card: Card,
    #[serde(rename = "c")]
    pub contacts: Vec<ContactRow>,
}

impl From<LoadedCard> for CardThen {
    fn from(LoadedCard { card, contacts }: LoadedCard) -> Self {
        Self { card, contacts }
    }
}

impl From<CardThen> for LoadedCard {
    fn from(CardThen { card, contacts }: CardThen) -> Self {
        Self { card, contacts }
    }
}

/// What is shown of a channel. It holds nothing of its settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ChannelThen {
    pub id: ChannelId,
    pub name: String,
    pub kind: ChannelType,
    pub status: ChannelStatus,
    pub number: Option<String>,
    pub queue_id: Option<QueueId>,
    pub last_error: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl From<&ChannelRow> for ChannelThen {
    fn from(row: &ChannelRow) -> Self {
        Self {
            id: row.id,
            name: row.name.clone(),
            kind: row.kind,
            status: row.status,
            number: row.number.clone(),
            queue_id: row.queue_id,
            last_error: row.last_error.clone(),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}
