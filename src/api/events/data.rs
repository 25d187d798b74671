//! The records that events are about, as they were at the time of the event.

use std::marker::PhantomData;

use hotline_persistence::table::Named;
use hotline_persistence::tables::campaigns::Campaign;
use hotline_persistence::tables::channels::ChangedTemplate;
use hotline_persistence::tables::messages::ChosenOption;
use hotline_persistence::tables::tickets::TicketStatus;
use hotline_persistence::{ContactId, MessageId, QueueId, SessionId, TicketId, UserId};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::cards::Card;
use crate::api::channels::Channel;
use crate::api::contacts::Contact;
use crate::api::messages::Message;
use crate::api::schedules::Schedule;
use crate::api::tickets::Ticket;
use crate::api::webchat::Session;

/// A message. For `message.received`, also the ticket and the contact at that time, and the chosen option.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventMessage {
    #[serde(flatten)]
    pub message: Message,
    /// The ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ticket: Option<ReceivedIn>,
    /// The sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub contact: Option<Named<ContactId>>,
    /// The chosen option, as in the message's `content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reply: Option<ChosenOption>,
}

/// A channel of which a template has changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventTemplate {
    #[serde(flatten)]
    pub channel: Channel,
    /// The provider's change of the template.
    pub template: ChangedTemplate,
}

/// A ticket that another one was merged into.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergedTicket {
    #[serde(flatten)]
    pub ticket: Ticket,
    /// The id of the other ticket, which no longer exists.
    #[schema(example = 12)]
    pub merged_from: TicketId,
}

/// A contact that another one was merged into.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergedContact {
    #[serde(flatten)]
    pub contact: Contact,
    /// The id of the other contact, which no longer exists. Records that referred to it refer to this one.
    #[schema(example = 12)]
    pub merged_from: ContactId,
}

/// The ticket of a received message at that time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedIn {
    pub id: TicketId,
    pub status: Option<TicketStatus>,
    pub queue: Option<Named<QueueId>>,
    pub assigned_to: Option<Named<UserId>>,
}

/// The record, as its own endpoint returns it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum EventData {
    Ticket(Box<Ticket>),
    MergedTicket(Box<MergedTicket>),
    Message(Box<EventMessage>),
    GoneMessage(GoneMessage),
    Session(Box<Session>),
    GoneSession(GoneSession),
    #[schema(value_type = Contact)]
    Contact(StoredJson<Contact>),
    #[schema(value_type = MergedContact)]
    MergedContact(StoredJson<MergedContact>),
    #[schema(value_type = Card)]
    Card(StoredJson<Card>),
    Schedule(Box<Schedule>),
    #[schema(value_type = Campaign)]
    Campaign(StoredJson<Campaign>),
    #[schema(value_type = Channel)]
    Channel(StoredJson<Channel>),
    #[schema(value_type = EventTemplate)]
    Template(StoredJson<EventTemplate>),
}

/// A record that was serialized as a `T`.
#[derive(Debug)]
pub struct StoredJson<T>(Box<RawValue>, PhantomData<T>);

impl<T> StoredJson<T> {
    pub(super) fn of(serialized: Box<RawValue>) -> Self {
        Self(serialized, PhantomData)
    }
}

impl<T> Serialize for StoredJson<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A message that was later deleted with its contact; its content is no longer available.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoneMessage {
    pub id: MessageId,
    pub ticket_id: TicketId,
    /// Always true.
    #[schema(example = true)]
    pub deleted: bool,
}

/// A session that was deleted with its contact before the event was written.
#[derive(Debug, Serialize, ToSchema)]
pub struct GoneSession {
    pub id: SessionId,
    /// Always true.
    #[schema(example = true)]
    pub deleted: bool,
}
