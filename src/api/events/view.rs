//! Events as the API returns them: each with the state of its record at that time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_actors::Organization;
use hotline_actors::tickets::{self, LastInbound, LastMessage, ReceiptPositions};
use hotline_persistence::table::Named;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::events::{
    self, After, By, ByKind, EventKind, MessageSnapshot, ReactionSnapshot, Record, RecordSnapshot, ScheduleSnapshot,
    StoredEvent, StoredEventPage, TicketSnapshot,
};
use hotline_persistence::tables::messages::{self, Direction, EDIT_ID, MessageRow, MessageStatus};
use hotline_persistence::tables::schedules::ListedSchedule;
use hotline_persistence::{CompanyId, Db, LoggedEventId, MessageId, Timestamp, TokenId};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::data::{EventData, EventMessage, GoneMessage, GoneSession, MergedTicket, ReceivedIn, StoredJson};
use crate::api::messages::{Message, ViewContext};
use crate::api::references;
use crate::api::schedules::Schedule;
use crate::api::tickets::Ticket;
use crate::api::webchat::Session;
use crate::web::{ApiError, ApiResult};

/// A change of a record.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CompanyEvent)]
pub struct CompanyEvent {
    /// Increases by one per event within the company.
    #[schema(example = 4711)]
    pub id: LoggedEventId,
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// When it happened.
    pub created_at: Timestamp,
    /// Who caused it.
    pub by: EventAuthor,
    /// The record at that time.
    pub data: EventData,
    /// The previous values of the changed fields; `null` if there are none.
    #[schema(value_type = Option<Object>)]
    pub previous: Option<Value>,
}

/// Who caused an event; `id` and `name` are `null` for Hotline itself.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventAuthor {
    #[serde(rename = "type")]
    pub kind: ByKind,
    #[schema(example = 3)]
    pub id: Option<i64>,
    #[schema(example = "Ana Souza")]
    pub name: Option<String>,
}

impl EventAuthor {
    fn of(by: By, organization: &Organization) -> Self {
        let By { kind, id, name } = by;
        let token_name = || references::integration(organization, id.map(TokenId::new)).map(|token| token.name);
        let name = if kind == ByKind::Integration { name.or_else(token_name) } else { name };
        Self { kind, id, name }
    }
}

/// Where to continue reading events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventMeta {
    /// The value for the next `after`.
    #[schema(example = 4711)]
    pub last_id: LoggedEventId,
    /// Whether more events are available now.
    #[schema(example = false)]
    pub has_more: bool,
    /// The oldest event kept; `null` if there is none.
    #[schema(example = 17)]
    pub oldest_id: Option<LoggedEventId>,
    /// Whether events after the given `after` have expired, or the log, restored from a backup, ends before it. If so,
    /// read the current records instead.
    #[schema(example = false)]
    pub gap: bool,
}

impl EventMeta {
    /// The `meta` of a response with the events after `after`, up to `last_id`. `after` is `None` if the request named
    /// no event. Call it after the events were read: then no gap is missed, though events that expire in between may
    /// count as a gap.
    pub async fn of(
        db: Db<'_>,
        company: CompanyId,
        after: Option<LoggedEventId>,
        last_id: LoggedEventId,
        has_more: bool,
    ) -> ApiResult<Self> {
        let oldest_id = events::first_id(db, company).await?;
        let Some(after) = after else { return Ok(Self { last_id, has_more, oldest_id, gap: false }) };
        // If no event was read, all later events may have expired, or the log ends before `after`.
        let end = if last_id > after { last_id } else { events::last_id(db, company).await? };
        let first_available = oldest_id.map_or(end.0 + 1, |oldest| oldest.0);
        let gap = after > end || after.0 < first_available.saturating_sub(1);
        Ok(Self { last_id: last_id.min(end), has_more, oldest_id, gap })
    }
}

/// A serialized event, which several responses may contain.
#[derive(Debug)]
pub struct SerializedEvent {
    pub id: LoggedEventId,
    pub kind: EventKind,
    /// The whole event, with id and type.
    pub json: Box<RawValue>,
}

impl Serialize for SerializedEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// Serialized events, and the position where the next page begins.
#[derive(Debug)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<SerializedEvent>,
    /// The position up to which all events were read.
    pub next: After,
    /// Whether there are more events.
    pub has_more: bool,
}

/// Serializes the events of a stored page, up to `bytes_max`. Further events belong to the next page.
///
/// # Errors
/// As [`serialize_events`].
pub async fn serialize_page(
    db: Db<'_>,
    company: CompanyId,
    stored_page: StoredEventPage,
    context: &ViewContext,
    bytes_max: usize,
) -> ApiResult<EventPage> {
    let StoredEventPage { events, next, has_more } = stored_page;
    let positions: Vec<After> = events.iter().map(StoredEvent::position).collect();
    let events = serialize_events(db, company, events, context, bytes_max).await?;
    if events.len() == positions.len() {
        return Ok(EventPage { events, next, has_more });
    }
    let last_position = events.len().checked_sub(1).map_or(next, |last| positions[last]);
    Ok(EventPage { events, next: last_position, has_more: true })
}

/// Serializes events in their order, up to `bytes_max`. The first is serialized even if it is larger.
///
/// # Errors
/// When the database cannot answer: the events' messages are read from it.
pub async fn serialize_events(
    db: Db<'_>,
    company: CompanyId,
    events: Vec<StoredEvent>,
    context: &ViewContext,
    bytes_max: usize,
) -> ApiResult<Vec<SerializedEvent>> {
    let ids: Vec<MessageId> = events.iter().filter_map(message_id).collect();
    let (rows, is_complete) =
        if ids.is_empty() { (Vec::new(), true) } else { messages::find_within(db, company, &ids, bytes_max).await? };
    let last_loaded = last_loaded_index(events.iter().map(message_id), rows.iter().map(|row| row.id));
    let rows: HashMap<MessageId, MessageRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    let embedded: Vec<MessageId> = events.iter().filter_map(embedded_message_id).collect();
    let undeleted =
        if embedded.is_empty() { HashSet::new() } else { messages::undeleted(db, company, &embedded).await? };
    let existing = ExistingMessages { rows, undeleted };
    let (mut serialized_events, mut bytes) = (Vec::new(), 0);
    for (index, event) in events.into_iter().enumerate() {
        // A missing message after the last loaded one was deleted, or was not loaded because of `bytes_max`: the page
        // ends here, and the next one tries again.
        let is_missing = message_id(&event).is_some_and(|id| !existing.rows.contains_key(&id));
        let may_be_unloaded = !is_complete && last_loaded < Some(index) && is_missing;
        if !serialized_events.is_empty() && (bytes >= bytes_max || may_be_unloaded) {
            break;
        }
        let (id, kind) = (event.id, event.kind);
        let json = to_raw_value(&event_view(event, &existing, context)).map_err(ApiError::internal)?;
        bytes += json.get().len();
        serialized_events.push(SerializedEvent { id, kind, json });
    }
    Ok(serialized_events)
}

/// The index of the last event whose message was loaded within the size limit. `messages` are the messages of all
/// events. `loaded` are those that exist, in the same order and with repetitions, cut off at the limit. A message may
/// occur both before and after it: an event after it must not count as loaded just because an earlier one has
/// the same message.
fn last_loaded_index(
    messages: impl Iterator<Item = Option<MessageId>>,
    loaded: impl Iterator<Item = MessageId>,
) -> Option<usize> {
    let mut loaded = loaded.peekable();
    let mut last = None;
    for (index, message) in messages.enumerate() {
        if loaded.next_if(|next| message == Some(*next)).is_some() {
            last = Some(index);
        }
    }
    last
}

/// The messages of a page's events that still exist.
struct ExistingMessages {
    /// The messages of message events.
    rows: HashMap<MessageId, MessageRow>,
    /// Of the last messages in ticket events, those that were not deleted.
    undeleted: HashSet<MessageId>,
}

fn event_view(event: StoredEvent, messages: &ExistingMessages, context: &ViewContext) -> CompanyEvent {
    let organization = context.organization();
    let previous = previous_values(&event, &messages.rows);
    let data = match event.record {
        Record::Ticket(snapshot) => {
            let merged_from = snapshot.merged_from;
            let ticket = Ticket::of(organization, Arc::new(restore_ticket(*snapshot, &messages.undeleted)));
            match merged_from {
                Some(merged_from) => EventData::MergedTicket(Box::new(MergedTicket { ticket, merged_from })),
                None => EventData::Ticket(Box::new(ticket)),
            }
        }
        Record::Message(snapshot) => match messages.rows.get(&snapshot.id) {
            Some(row) => {
                let row = restore_content(row, event.kind, event.created_at, event.previous.as_ref(), &snapshot);
                message_data(row, event.kind, snapshot, context)
            }
            None => {
                EventData::GoneMessage(GoneMessage { id: snapshot.id, ticket_id: snapshot.ticket_id, deleted: true })
            }
        },
        Record::Session(snapshot) => match snapshot.contact.and_then(|contact| serde_json::from_value(contact).ok()) {
            Some(contact) => EventData::Session(Box::new(Session::of(snapshot.row, contact))),
            None => EventData::GoneSession(GoneSession { id: snapshot.row.id, deleted: true }),
        },
        Record::Contact(RecordSnapshot { json, .. }) if event.kind == EventKind::ContactMerged => {
            EventData::MergedContact(StoredJson::of(json))
        }
        Record::Contact(RecordSnapshot { json, .. }) => EventData::Contact(StoredJson::of(json)),
        Record::Card(RecordSnapshot { json, .. }) => EventData::Card(StoredJson::of(json)),
        Record::Campaign(RecordSnapshot { json, .. }) => EventData::Campaign(StoredJson::of(json)),
        Record::Channel(RecordSnapshot { json, .. }) => match event.kind {
            EventKind::ChannelTemplateChanged => EventData::Template(StoredJson::of(json)),
            _ => EventData::Channel(StoredJson::of(json)),
        },
        Record::Schedule(snapshot) => EventData::Schedule(Box::new(restore_schedule(*snapshot, organization))),
    };
    let by = EventAuthor::of(event.by, organization);
    CompanyEvent { id: event.id, kind: event.kind, created_at: event.created_at.into(), by, data, previous }
}

/// The message of an event.
fn message_id(event: &StoredEvent) -> Option<MessageId> {
    match &event.record {
        Record::Message(message) => Some(message.id),
        _ => None,
    }
}

/// The last message of an event's ticket, if the event has its text.
fn embedded_message_id(event: &StoredEvent) -> Option<MessageId> {
    match &event.record {
        Record::Ticket(ticket) if ticket.last_message.as_ref().is_some_and(|message| message.body.is_some()) => {
            ticket.row.last_message_id
        }
        _ => None,
    }
}

/// The previous values of an event. For an edit, they include the earlier text only as long as the message stores it.
fn previous_values(event: &StoredEvent, messages: &HashMap<MessageId, MessageRow>) -> Option<Value> {
    let mut previous = event.previous.clone()?;
    if let Some(edit) = previous.as_object_mut().and_then(|previous| previous.remove(EDIT_ID)) {
        let row = message_id(event).and_then(|id| messages.get(&id));
        let stored_edit = row.and_then(|row| row.revisions().edits.into_iter().find(|stored| edit == stored.id));
        previous["body"] = stored_edit.and_then(|stored| stored.body).into();
    }
    Some(previous)
}

/// The scheduled message at the time of the event.
fn restore_schedule(snapshot: ScheduleSnapshot, organization: &Organization) -> Schedule {
    let (contact_name, contact_number) = snapshot.contact.map(|contact| (contact.name, contact.number)).unzip();
    let schedule = ListedSchedule { schedule: snapshot.row, contact_name, contact_number: contact_number.flatten() };
    Schedule::of_listed(schedule, organization)
}

/// A message with its text and reaction at the time of an event, which has these previous values. If its content was
/// deleted later, it stays deleted.
fn restore_content(
    row: &MessageRow,
    kind: EventKind,
    created_at: DateTime<Utc>,
    previous: Option<&Value>,
    snapshot: &MessageSnapshot,
) -> MessageRow {
    let mut row = row.clone();
    let mut revisions = row.revisions();
    if row.revisions.is_none() || revisions.deleted_at.is_some() {
        return row;
    }
    let is_first = is_first_event(kind);
    let is_before_event =
        |noted_at: DateTime<Utc>| !is_first && noted_at.timestamp_millis() <= created_at.timestamp_millis();
    // Edits are in the order of the log, also if the clocks of processes differ.
    let edits_before_event =
        || revisions.edits.iter().rposition(|edit| is_before_event(edit.noted_at)).map_or(0, |last| last + 1);
    // The event of an edit shows the text right after it, also if another edit has the same time.
    let own_edit = previous
        .and_then(|previous| previous.get(EDIT_ID))
        .and_then(|edit_id| revisions.edits.iter().position(|edit| *edit_id == edit.id));
    let earlier_edits = own_edit.map_or_else(edits_before_event, |own_edit| own_edit + 1);
    // An edit stores the text that it replaced, so the first later edit has the text at the time of the event.
    let next_edit = revisions.edits.drain(earlier_edits..).next();
    if let Some(next_edit) = next_edit {
        row.body = next_edit.body;
        revisions.edited_at = revisions.edits.last().map(|edit| edit.at);
    }
    if is_first {
        revisions.reactions.clear();
    } else if let Some(ReactionSnapshot { key, emoji }) = &snapshot.reaction
        && let Some(later) = revisions.reactions.iter_mut().find(|later| later.key == *key && later.emoji != *emoji)
    {
        later.emoji.clone_from(emoji);
        later.error = None;
    }
    row.revisions = serde_json::to_value(revisions).ok();
    row
}

/// Whether an event of this type is the first of its message: all changes of the message were later.
fn is_first_event(kind: EventKind) -> bool {
    matches!(kind, EventKind::MessageReceived | EventKind::MessageCreated | EventKind::NoteAdded)
}

/// The data of a message's event. For a received message it includes the ticket and the contact.
fn message_data(row: MessageRow, kind: EventKind, snapshot: MessageSnapshot, context: &ViewContext) -> EventData {
    let contact_id = row.contact_id;
    let received = snapshot.received.clone();
    let ticket_id = snapshot.ticket_id;
    let message = Message::of(restore_message(row, kind, snapshot), context);
    let Some(received) = received else {
        return EventData::Message(Box::new(EventMessage { message, ticket: None, contact: None, reply: None }));
    };
    let organization = context.organization();
    let ticket = ReceivedIn {
        id: ticket_id,
        status: received.status,
        queue: references::queue(organization, received.queue_id).map(Named::from),
        assigned_to: references::user(organization, received.user_id).map(Named::from),
    };
    let contact = Named { id: contact_id, name: received.contact_name.map(String::from).unwrap_or_default() };
    let reply = message.content.as_ref().and_then(|content| content.reply.clone());
    EventData::Message(Box::new(EventMessage { message, ticket: Some(ticket), contact: Some(contact), reply }))
}

/// The ticket at the time of the event, without the text of its last message if that was deleted later.
fn restore_ticket(snapshot: TicketSnapshot, undeleted: &HashSet<MessageId>) -> tickets::Ticket {
    let TicketSnapshot { row, contact, last_message, merged_from: _ } = snapshot;
    let is_undeleted = row.last_message_id.is_some_and(|id| undeleted.contains(&id));
    let last_message = last_message.map(|message| {
        let body = message.body.filter(|_| is_undeleted);
        Arc::new(LastMessage { body, direction: message.direction, created_at: message.created_at })
    });
    let contact = contact.map_or_else(
        || ContactRef { id: row.contact_id, name: Box::default(), number: None, verified: false },
        |contact| ContactRef {
            id: row.contact_id,
            name: contact.name,
            number: contact.number,
            verified: contact.verified,
        },
    );
    tickets::Ticket {
        row,
        contact: Arc::new(contact),
        last_message,
        reachable: false,
        last_inbound: LastInbound::Unknown,
        follow_ups: None,
        receipts: ReceiptPositions::default(),
    }
}

/// The message at the time of the event: later changes are removed.
fn restore_message(row: MessageRow, kind: EventKind, snapshot: MessageSnapshot) -> MessageRow {
    let has_failed = snapshot.status == MessageStatus::Failed;
    let is_inbound = row.direction == Direction::Inbound;
    let has_reached = |status: MessageStatus| is_inbound || snapshot.status.has_reached(status);
    let sent_at = row.sent_at.filter(|_| has_failed || has_reached(MessageStatus::Sent));
    let delivered_at = row.delivered_at.filter(|_| has_reached(MessageStatus::Delivered));
    // An inbound message stays `received` when it is read, so its snapshot cannot tell whether it had been read.
    let read_at = row.read_at.filter(|_| !is_inbound && has_reached(MessageStatus::Read));
    let updated_at = match snapshot.updated_at {
        Some(at) => Some(at),
        None if is_first_event(kind) => None,
        // Without a time in the snapshot, nothing had changed the message before the event, or an earlier release did
        // not record the time.
        None if snapshot.status == row.status && row.read_at == read_at => row.updated_at,
        None => [sent_at, delivered_at, read_at].into_iter().flatten().filter(|_| !is_inbound).max(),
    };
    MessageRow {
        status: snapshot.status,
        error: row.error.filter(|_| has_failed || kind == EventKind::MessageUpdated),
        sent_at,
        delivered_at,
        read_at,
        updated_at,
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_message_after_the_limit_does_not_count_as_loaded() {
        let last_index = |events: &[i64], loaded: &[i64]| {
            // 0: an event without a message.
            let messages = events.iter().map(|id| Some(*id).filter(|id| *id != 0).map(MessageId::new));
            last_loaded_index(messages, loaded.iter().copied().map(MessageId::new))
        };
        assert_eq!(last_index(&[1, 2, 1, 1], &[1]), Some(0));
        assert_eq!(last_index(&[0, 1, 0, 1, 2, 1], &[1, 1]), Some(3));
        // The message 3 was deleted.
        assert_eq!(last_index(&[3, 1, 3, 2, 3, 1], &[1, 2]), Some(3));
        assert_eq!(last_index(&[1, 2], &[1, 2]), Some(1));
        assert_eq!(last_index(&[0, 3], &[]), None);
    }
}
