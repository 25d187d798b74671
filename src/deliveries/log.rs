//! The log of events, serialized for delivery as the API returns them.

use std::collections::HashSet;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use hotline_persistence::tables::events::{self, After, EventKind, Portion, StoredEvent, Subject};
use hotline_persistence::tables::webhooks::Endpoint;
use hotline_persistence::tables::webhooks::deliveries::{self, Due};
use hotline_persistence::{CompanyId, LoggedEventId};

use super::line::Letter;
use crate::api::events::{ShownEvent, show_all, show_page};
use crate::api::messages::Showing;
use crate::app::App;

/// Bytes of the events that are shown at once: about as many as a line holds before it asks for no more.
const BYTES_AT_ONCE: usize = 1 << 20;

/// The next events of the log.
pub(super) struct Page {
    pub(super) letters: Vec<Letter>,
    /// The position for the next read.
    pub(super) next: After,
    pub(super) has_more: bool,
    /// The records among these that have a waiting delivery in the table.
    pub(super) busy: HashSet<String>,
}

/// Why the log cannot be read now.
pub(super) type Unread = String;

/// The next events for an endpoint, at most `limit`. `may_wait`: its table may contain waiting deliveries.
pub(super) async fn page(
    app: &App,
    endpoint: &Endpoint,
    after: After,
    limit: usize,
    may_wait: bool,
) -> Result<Page, Unread> {
    let company = endpoint.company;
    let kinds: Vec<EventKind> = endpoint.types.iter().filter_map(|kind| kind.parse().ok()).collect();
    if kinds.is_empty() && !endpoint.types.is_empty() {
        // Only types of a newer release: this one knows none of them.
        return Err("the webhook has event types that this release does not support".to_owned());
    }
    let portion = Portion { events: limit, bytes: BYTES_AT_ONCE };
    let read = events::read(app.db(company), company, after, &kinds, portion).await.map_err(in_words)?;
    let heads = heads(&read.events);
    let page = show_page(app.db(company), company, read, &showing(app, company)?, BYTES_AT_ONCE).await;
    let page = page.map_err(in_words)?;
    let letters = letters(heads, page.events);
    let mut busy = HashSet::new();
    if may_wait && !letters.is_empty() {
        let lanes: Vec<String> = letters.iter().map(|letter| letter.lane.clone()).collect();
        let found = deliveries::busy_lanes(app.db(company), company, endpoint.id, &lanes, after.id.0).await;
        busy.extend(found.map_err(in_words)?);
    }
    Ok(Page { letters, next: page.next, has_more: page.has_more, busy })
}

/// The events of deliveries that are due; none of one that is no longer kept. Those that are too much at once are left out:
/// they stay due.
pub(super) async fn of_due(app: &App, company: CompanyId, due: Vec<Due>) -> Result<Vec<(Due, Option<Letter>)>, Unread> {
    let mut found = Vec::with_capacity(due.len());
    for delivery in &due {
        let id = LoggedEventId::new(delivery.event_id);
        found.extend(events::find(app.db(company), company, id, delivery.created_at).await.map_err(in_words)?);
    }
    let heads = heads(&found);
    let kept: HashSet<i64> = found.iter().map(|event| event.id.0).collect();
    let shown = show_all(app.db(company), company, found, &showing(app, company)?, BYTES_AT_ONCE).await;
    let mut letters = letters(heads, shown.map_err(in_words)?);
    let with_letter = |delivery: Due| {
        let index = letters.iter().position(|letter| letter.event == delivery.event_id);
        let letter = index.map(|index| letters.swap_remove(index));
        (letter.is_some() || !kept.contains(&delivery.event_id)).then_some((delivery, letter))
    };
    Ok(due.into_iter().filter_map(with_letter).collect())
}

fn showing(app: &App, company: CompanyId) -> Result<Showing, Unread> {
    let organization = app.engine.directory().company(company).ok_or("the company no longer exists")?;
    Ok(Showing::new(organization, app.media.links().clone()))
}

/// What a letter has beside what is shown.
type Head = (String, DateTime<Utc>);

fn heads(events: &[StoredEvent]) -> Vec<Head> {
    events.iter().map(|event| (lane(&event.subject()), event.created_at)).collect()
}

/// The letters of the first of these, as many as were shown.
fn letters(heads: Vec<Head>, shown: Vec<ShownEvent>) -> Vec<Letter> {
    let letter = |((lane, created_at), shown): (Head, ShownEvent)| {
        let json = Box::<str>::from(shown.json).into_boxed_bytes();
        Letter { event: shown.id.0, kind: shown.kind.as_str().to_owned(), lane, created_at, json: Bytes::from(json) }
    };
    heads.into_iter().zip(shown).map(letter).collect()
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

fn in_words(error: impl std::fmt::Display) -> Unread {
    error.to_string()
}
