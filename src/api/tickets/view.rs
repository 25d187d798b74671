//! How a ticket and its events are shown.

use hotline_actors::Organization;
use hotline_actors::tickets;
use hotline_persistence::tables::messages::Direction;
use hotline_persistence::tables::ticket_events::{EventRow, EventType};
use hotline_persistence::tables::tickets::{Source, TicketStatus};
use hotline_persistence::{ContactId, EventId, MessageId, QueueId, TicketId, UserId, WrapupTypeId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::named::{self, Named, NamedChannel};
use crate::web::Timestamp;

/// A conversation with one contact on one channel.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Ticket {
    pub id: TicketId,
    pub status: TicketStatus,
    pub channel: Option<NamedChannel>,
    pub contact: Contact,
    pub queue: Option<Named<QueueId>>,
    pub assigned_to: Option<Named<UserId>>,
    /// Who caused it to open.
    pub creation_source: Source,
    /// The contact's messages that nobody has read.
    #[schema(example = 2)]
    pub unread_count: i32,
    pub last_message: Option<LastMessage>,
    pub wrapup_type: Option<Named<WrapupTypeId>>,
    #[schema(example = "Sent a new one.")]
    pub wrapup_note: Option<String>,
    #[schema(example = 0)]
    pub reopen_count: i32,
    /// When it was last opened.
    pub opened_at: Timestamp,
    /// The company's first message since it was opened.
    pub first_response_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Whom a ticket is with.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TicketContact)]
#[allow(missing_docs)]
pub struct Contact {
    pub id: ContactId,
    #[schema(example = "Maria Lima")]
    pub name: String,
    #[schema(example = "5511987654321")]
    pub number: Option<String>,
}

/// What was said last in a ticket.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct LastMessage {
    pub id: MessageId,
    #[schema(example = "Hello, where is my order?")]
    pub body: Option<String>,
    pub direction: Direction,
    pub created_at: Timestamp,
}

impl Ticket {
    /// With the names of the company's directory.
    pub fn of(organization: &Organization, ticket: &tickets::Ticket) -> Self {
        let row = &ticket.row;
        Self {
            id: row.id,
            status: row.status,
            channel: named::channel(organization, row.channel_id),
            contact: Contact {
                id: ticket.contact.id,
                name: ticket.contact.name.clone(),
                number: ticket.contact.number.clone(),
            },
            queue: named::queue(organization, row.queue_id),
            assigned_to: named::user(organization, row.user_id),
            creation_source: row.creation_source,
            unread_count: row.unread_count,
            last_message: ticket.last_message.as_ref().map(|message| LastMessage {
                id: message.id,
                body: message.body.clone(),
                direction: message.direction,
                created_at: message.created_at.into(),
            }),
            wrapup_type: named::wrapup_type(organization, row.wrapup_type_id),
            wrapup_note: row.wrapup_note.clone(),
            reopen_count: row.reopen_count,
            opened_at: row.opened_at.into(),
            first_response_at: row.first_response_at.map(Timestamp),
            closed_at: row.closed_at.map(Timestamp),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// A change of a ticket: what it was, what it became, and who did it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Event {
    pub id: EventId,
    #[serde(rename = "type")]
    pub kind: EventType,
    /// What changed, as it was before: `{"queue": null, "assignedTo": null}` of a transfer.
    #[schema(value_type = Option<Object>)]
    pub from: Option<Value>,
    /// The same, as it was after: `{"queue": {"id": 7, "name": "Support"}, "assignedTo": null}`.
    #[schema(value_type = Option<Object>)]
    pub to: Option<Value>,
    pub user: Option<EventUser>,
    pub source: Source,
    pub created_at: Timestamp,
}

/// Who caused an event, with the name they had then.
#[derive(Debug, Serialize, ToSchema)]
#[allow(missing_docs)]
pub struct EventUser {
    pub id: UserId,
    #[schema(example = "Ana Souza")]
    pub name: Option<String>,
}

impl From<EventRow> for Event {
    fn from(row: EventRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            from: row.from,
            to: row.to,
            user: row.user_id.map(|id| EventUser { id, name: row.user_name }),
            source: row.source,
            created_at: row.created_at.into(),
        }
    }
}
