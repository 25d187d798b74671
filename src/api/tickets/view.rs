//! Tickets and their events as the API returns them.

use std::sync::Arc;

use hotline_actors::Organization;
use hotline_actors::tickets;
use hotline_persistence::table::Named;
use hotline_persistence::tables::messages::{Direction, MessageApp};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::ticket_events::{EventRow, EventType};
use hotline_persistence::tables::tickets::TicketStatus;
use hotline_persistence::{ContactId, EventId, MessageId, QueueId, TicketId, Timestamp, TokenId, UserId, WrapupTypeId};
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::rendered::{RenderedTicket, RenderedTickets};
use crate::api::references::{self, NamedChannel, NamedRef};

/// A ticket in a response. It is serialized directly from memory, without a copy, because most responses are a ticket
/// or a hundred tickets.
#[derive(Clone, Debug)]
pub enum Ticket {
    /// To be serialized with the names of the company's directory.
    Live(Arc<Organization>, Arc<tickets::Ticket>),
    /// Already serialized.
    Rendered(Arc<RenderedTicket>),
}

impl Ticket {
    /// A ticket with the names of the company's directory.
    pub fn of(organization: &Arc<Organization>, ticket: Arc<tickets::Ticket>) -> Self {
        Self::Live(organization.clone(), ticket)
    }

    /// Like `of`. The JSON of a hot ticket is taken from the cache, or rendered for it.
    pub(super) fn cached(
        cache: &RenderedTickets,
        organization: &Arc<Organization>,
        ticket: Arc<tickets::Ticket>,
    ) -> Self {
        // A ticket read from the tables has no other owner and is not cached: the next read makes a new one.
        let is_hot = Arc::strong_count(&ticket) > 1;
        let view = || View::of(organization, &ticket);
        let rendered = if is_hot { cache.render(organization, &ticket, view) } else { None };
        rendered.map_or_else(|| Self::of(organization, ticket), Self::Rendered)
    }
}

impl Serialize for Ticket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Live(organization, ticket) => View::of(organization, ticket).serialize(serializer),
            Self::Rendered(rendered) => rendered.serialize(serializer),
        }
    }
}

impl PartialSchema for Ticket {
    fn schema() -> RefOr<Schema> {
        View::schema()
    }
}

impl ToSchema for Ticket {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        View::schemas(schemas);
    }
}

/// A ticket: a case in a conversation with a contact on a channel.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    id: TicketId,
    status: TicketStatus,
    channel: Option<NamedChannel<'a>>,
    contact: TicketContact<'a>,
    /// Whether the contact is verified: a webchat visitor's identity was confirmed by the company or by an identity it
    /// signed.
    #[schema(example = false)]
    verified: bool,
    #[schema(value_type = Option<Named<QueueId>>)]
    queue: Option<NamedRef<'a, QueueId>>,
    #[schema(value_type = Option<Named<UserId>>)]
    assigned_to: Option<NamedRef<'a, UserId>>,
    /// The app of the provider that handles the conversation, if it is not Hotline: the provider may refuse the company's
    /// messages meanwhile.
    handled_by: Option<TicketHandler>,
    /// Who opened the ticket.
    creation_source: Source,
    /// Number of unread messages from the contact.
    #[schema(example = 2)]
    unread_count: i32,
    last_message: Option<LastMessage<'a>>,
    #[schema(value_type = Option<Named<WrapupTypeId>>)]
    wrapup_type: Option<NamedRef<'a, WrapupTypeId>>,
    #[schema(example = "Sent a new one.")]
    wrapup_note: Option<&'a str>,
    #[schema(example = 0)]
    reopen_count: i32,
    /// When it was last opened.
    opened_at: Timestamp,
    /// When the first reply since the opening was sent: by a user, an integration or a chatbot.
    first_response_at: Option<Timestamp>,
    closed_at: Option<Timestamp>,
    /// When it was last opened, its last message was written, or it was closed.
    last_activity_at: Timestamp,
    /// Since when the contact has been waiting for an answer; `null`: no one waits.
    waiting_since: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Who handles a conversation in place of Hotline.
#[derive(Debug, Serialize, ToSchema)]
struct TicketHandler {
    app: MessageApp,
}

/// The contact of a ticket.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TicketContact)]
struct TicketContact<'a> {
    id: ContactId,
    #[schema(example = "Maria Lima")]
    name: &'a str,
    #[schema(example = "5511987654321")]
    number: Option<&'a str>,
}

/// The latest message of a ticket.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastMessage<'a> {
    id: MessageId,
    #[schema(example = "Hello, where is my order?")]
    body: Option<&'a str>,
    direction: Direction,
    created_at: Timestamp,
}

impl<'a> View<'a> {
    fn of(organization: &'a Organization, ticket: &'a tickets::Ticket) -> Self {
        let row = &ticket.row;
        Self {
            id: row.id,
            status: row.status,
            channel: references::channel(organization, row.channel_id),
            contact: TicketContact {
                id: ticket.contact.id,
                name: &ticket.contact.name,
                number: ticket.contact.number.as_deref(),
            },
            verified: ticket.contact.verified,
            queue: references::queue(organization, row.queue_id),
            assigned_to: references::user(organization, row.user_id),
            handled_by: row.handled_by.as_app().map(|id| TicketHandler { app: MessageApp::of_id(id) }),
            creation_source: row.creation_source,
            unread_count: row.unread_count,
            last_message: row.last_message_id.zip(ticket.last_message.as_ref()).map(|(id, message)| LastMessage {
                id,
                body: message.body.as_deref(),
                direction: message.direction,
                created_at: message.created_at.into(),
            }),
            wrapup_type: references::wrapup_type(organization, row.wrapup_type_id),
            wrapup_note: row.wrapup_note.as_deref(),
            reopen_count: row.reopen_count,
            opened_at: row.opened_at.into(),
            first_response_at: row.first_response_at.map(Timestamp),
            closed_at: row.closed_at.map(Timestamp),
            last_activity_at: ticket.last_activity_at().into(),
            waiting_since: row.waiting_since.map(Timestamp),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// A change of a ticket, with its author and the values before and after.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TicketEvent)]
pub struct TicketEvent {
    pub id: EventId,
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The changed values before: for example `{"queue": null, "assignedTo": null}` for a transfer.
    #[schema(value_type = Option<Object>)]
    pub from: Option<Value>,
    /// The changed values after: for example `{"queue": {"id": 7, "name": "Support"}, "assignedTo": null}`.
    #[schema(value_type = Option<Object>)]
    pub to: Option<Value>,
    pub user: Option<EventUser>,
    /// The API token that caused it.
    pub integration: Option<Named<TokenId>>,
    pub source: Source,
    pub created_at: Timestamp,
}

/// Who caused an event, with their name at that time.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventUser {
    pub id: UserId,
    #[schema(example = "Ana Souza")]
    pub name: Option<String>,
}

impl TicketEvent {
    /// An event with the names of the company's directory.
    pub fn of(row: EventRow, organization: &Organization) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            from: row.from,
            to: row.to,
            user: row.user_id.map(|id| EventUser { id, name: row.user_name }),
            integration: references::integration(organization, row.integration_id),
            source: row.source,
            created_at: row.created_at.into(),
        }
    }
}
