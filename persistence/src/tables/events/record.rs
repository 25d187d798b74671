//! The record of an event, as the log stores it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::tables::messages::{Direction, MessageStatus};
use crate::tables::schedules::ScheduleRow;
use crate::tables::tickets::{TicketRow, TicketStatus};
use crate::tables::webchat_sessions::SessionRow;
use crate::{
    CampaignId, CardId, ChannelId, ContactId, Error, MessageId, QueueId, Result, ScheduleId, SessionId, TicketId,
    UserId,
};

/// The state of a record when its event happened. The names are part of the log's format and never change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Record {
    /// A ticket.
    #[serde(rename = "t")]
    Ticket(Box<TicketSnapshot>),
    /// A message by id: its row has the content.
    #[serde(rename = "m")]
    Message(MessageSnapshot),
    /// A visitor session.
    #[serde(rename = "s")]
    Session(Box<SessionSnapshot>),
    /// A scheduled message.
    #[serde(rename = "d")]
    Schedule(Box<ScheduleSnapshot>),
    /// A contact.
    #[serde(rename = "c")]
    Contact(RecordSnapshot<ContactId>),
    /// A card.
    #[serde(rename = "k")]
    Card(RecordSnapshot<CardId>),
    /// A campaign.
    #[serde(rename = "g")]
    Campaign(RecordSnapshot<CampaignId>),
    /// A channel.
    #[serde(rename = "h")]
    Channel(RecordSnapshot<ChannelId>),
}

/// A plain record, as the API returned it at that time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordSnapshot<I> {
    #[serde(rename = "i")]
    pub id: I,
    #[serde(rename = "s")]
    pub json: Box<RawValue>,
}

impl<I> RecordSnapshot<I> {
    /// A record with its view in the API.
    ///
    /// # Errors
    /// When it cannot be serialized as JSON; no record is known to cause that.
    pub fn of(id: I, view: &impl Serialize) -> Result<Self> {
        let json = to_raw_value(view).map_err(|error| Error::Unavailable(error.to_string()))?;
        Ok(Self { id, json })
    }
}

/// The record an event belongs to. A message belongs to its ticket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
            Self::Card(card) => Subject::Card(card.id),
            Self::Campaign(campaign) => Subject::Campaign(campaign.id),
            Self::Channel(channel) => Subject::Channel(channel.id),
        }
    }
}

/// A ticket with its related data, except names of the company's own records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TicketSnapshot {
    #[serde(rename = "r")]
    pub row: TicketRow,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<ContactSnapshot>,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub last_message: Option<LastMessageSnapshot>,
    /// The ticket that was merged into this one.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub merged_from: Option<TicketId>,
}

/// A contact, as embedded in a ticket or a scheduled message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContactSnapshot {
    #[serde(rename = "n")]
    pub name: Box<str>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Box<str>>,
    #[serde(rename = "v", default, skip_serializing_if = "std::ops::Not::not")]
    pub verified: bool,
}

/// The last message of a ticket, as embedded in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LastMessageSnapshot {
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Box<str>>,
    #[serde(rename = "d")]
    pub direction: Direction,
    #[serde(rename = "a", with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
}

/// A message and its status at that time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageSnapshot {
    #[serde(rename = "i")]
    pub id: MessageId,
    #[serde(rename = "t")]
    pub ticket_id: TicketId,
    #[serde(rename = "s")]
    pub status: MessageStatus,
    /// The ticket and contact of an inbound message when it arrived.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Box<InboundSnapshot>>,
    /// When the message was changed last, in events of changes; earlier releases did not write it.
    #[serde(
        rename = "u",
        default,
        skip_serializing_if = "Option::is_none",
        with = "chrono::serde::ts_milliseconds_option"
    )]
    pub updated_at: Option<DateTime<Utc>>,
    /// The reaction that an event is about; earlier releases did not write it.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub reaction: Option<ReactionSnapshot>,
}

/// A person's reaction to a message when its event happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReactionSnapshot {
    /// The person: the key of the [`Reaction`](crate::tables::messages::Reaction).
    #[serde(rename = "k")]
    pub key: String,
    /// `None`: it was withdrawn.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
}

/// The ticket and the contact of an inbound message when it arrived.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InboundSnapshot {
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TicketStatus>,
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub queue_id: Option<QueueId>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub contact_name: Option<Box<str>>,
}

/// A visitor session with its contact, without its tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionSnapshot {
    #[serde(rename = "r")]
    pub row: SessionRow,
    /// `None` if it was deleted before the event was written.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<Value>,
}

/// A scheduled message with its contact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScheduleSnapshot {
    #[serde(rename = "r")]
    pub row: ScheduleRow,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<ContactSnapshot>,
}
