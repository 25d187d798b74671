//! The log of events, serialized for delivery as the API returns them.

use std::collections::HashSet;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use hotline_persistence::tables::events::{self, After, EventKind, ReadLimits, StoredEvent, Subject};
use hotline_persistence::tables::webhooks::Endpoint;
use hotline_persistence::tables::webhooks::deliveries::{self, DueDelivery};
use hotline_persistence::{CompanyId, LoggedEventId};

use super::queue::OutgoingEvent;
use crate::api::events::{SerializedEvent, serialize_events, serialize_page};
use crate::api::messages::ViewContext;
use crate::app::App;

/// Maximum bytes of the events that are serialized together: about as many as a queue holds before reading stops.
const BYTES_AT_ONCE: usize = 1 << 20;

/// The next events of the log.
pub(super) struct EventBatch {
    pub(super) events: Vec<OutgoingEvent>,
    /// The position for the next read.
    pub(super) next: After,
    pub(super) has_more: bool,
    /// The lanes of these events that have a waiting delivery in the table.
    pub(super) busy: HashSet<String>,
}

/// Why the log cannot be read now.
pub(super) type EventReadError = String;

/// The next events for an endpoint, at most `limit`. `may_have_waiting`: the table may contain waiting deliveries of
/// the endpoint.
pub(super) async fn page(
    app: &App,
    endpoint: &Endpoint,
    after: After,
    limit: usize,
    may_have_waiting: bool,
) -> Result<EventBatch, EventReadError> {
    hotline_persistence::fail_point!("courier_read");
    let company = endpoint.company;
    let kinds: Vec<EventKind> = endpoint.types.iter().filter_map(|kind| kind.parse().ok()).collect();
    if kinds.is_empty() && !endpoint.types.is_empty() {
        // Only types of a newer release: this one knows none of them.
        return Err("the webhook has event types that this release does not support".to_owned());
    }
    let limits = ReadLimits { events: limit, bytes: BYTES_AT_ONCE };
    let stored_page = events::read(app.db(company), company, after, &kinds, limits).await.map_err(reason)?;
    let heads = event_heads(&stored_page.events);
    let page = serialize_page(app.db(company), company, stored_page, &view_context(app, company)?, BYTES_AT_ONCE).await;
    let page = page.map_err(reason)?;
    let events = outgoing_events(heads, page.events);
    let mut busy = HashSet::new();
    if may_have_waiting && !events.is_empty() {
        let lanes: Vec<String> = events.iter().map(|event| event.lane.clone()).collect();
        let busy_lanes = deliveries::busy_lanes(app.db(company), company, endpoint.id, &lanes, after.id.0).await;
        busy.extend(busy_lanes.map_err(reason)?);
    }
    Ok(EventBatch { events, next: page.next, has_more: page.has_more, busy })
}

/// The events of due deliveries; `None` if the event has expired. Deliveries beyond the size limit are omitted and stay
/// due.
pub(super) async fn due_events(
    app: &App,
    company: CompanyId,
    due: Vec<DueDelivery>,
) -> Result<Vec<(DueDelivery, Option<OutgoingEvent>)>, EventReadError> {
    let mut stored_events = Vec::with_capacity(due.len());
    for delivery in &due {
        let id = LoggedEventId::new(delivery.event_id);
        stored_events.extend(events::find(app.db(company), company, id, delivery.created_at).await.map_err(reason)?);
    }
    let heads = event_heads(&stored_events);
    let stored_ids: HashSet<i64> = stored_events.iter().map(|event| event.id.0).collect();
    let serialized_events =
        serialize_events(app.db(company), company, stored_events, &view_context(app, company)?, BYTES_AT_ONCE).await;
    let mut events = outgoing_events(heads, serialized_events.map_err(reason)?);
    let with_event = |delivery: DueDelivery| {
        let index = events.iter().position(|event| event.id == delivery.event_id);
        let event = index.map(|index| events.swap_remove(index));
        (event.is_some() || !stored_ids.contains(&delivery.event_id)).then_some((delivery, event))
    };
    Ok(due.into_iter().filter_map(with_event).collect())
}

fn view_context(app: &App, company: CompanyId) -> Result<ViewContext, EventReadError> {
    let organization = app.engine.directory().company(company).ok_or("the company no longer exists")?;
    Ok(ViewContext::new(organization, app.media.links().clone()))
}

/// The lane and creation time of a stored event.
type Head = (String, DateTime<Utc>);

fn event_heads(events: &[StoredEvent]) -> Vec<Head> {
    events.iter().map(|event| (lane(&event.subject()), event.created_at)).collect()
}

/// Combines each serialized event with its head. Both are in the same order; heads beyond the last event are dropped.
fn outgoing_events(heads: Vec<Head>, events: Vec<SerializedEvent>) -> Vec<OutgoingEvent> {
    let combine = |((lane, created_at), event): (Head, SerializedEvent)| {
        let json = Box::<str>::from(event.json).into_boxed_bytes();
        OutgoingEvent {
            id: event.id.0,
            kind: event.kind.as_str().to_owned(),
            lane,
            created_at,
            json: Bytes::from(json),
        }
    };
    heads.into_iter().zip(events).map(combine).collect()
}

/// The lane of an event: events of a lane are delivered in order.
fn lane(subject: &Subject) -> String {
    match subject {
        Subject::Ticket(id) => format!("ticket:{id}"),
        Subject::Session(id) => format!("session:{}", id.0),
        Subject::Schedule(id) => format!("schedule:{id}"),
        Subject::Contact(id) => format!("contact:{id}"),
        Subject::Card(id) => format!("card:{id}"),
        Subject::Campaign(id) => format!("campaign:{id}"),
        Subject::Channel(id) => format!("channel:{id}"),
    }
}

fn reason(error: impl std::fmt::Display) -> EventReadError {
    error.to_string()
}
