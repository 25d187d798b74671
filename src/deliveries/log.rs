//! The log of events, serialized for delivery as the API returns them.

use std::collections::HashSet;

use bytes::Bytes;
use hotline_persistence::tables::events::{self, After, EventKind, StoredEvent, Subject};
use hotline_persistence::tables::webhooks::Endpoint;
use hotline_persistence::tables::webhooks::deliveries::{self, Due};
use hotline_persistence::{CompanyId, LoggedEventId};

use super::line::Letter;
use crate::api::events::show_all;
use crate::api::messages::Showing;
use crate::app::App;

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
        return Err("the webhook is for types of events that this release does not know".to_owned());
    }
    let read = events::read(app.db(company), company, after, &kinds, limit).await.map_err(in_words)?;
    let letters = shown(app, company, read.events).await?;
    let mut busy = HashSet::new();
    if may_wait && !letters.is_empty() {
        let lanes: Vec<String> = letters.iter().map(|letter| letter.lane.clone()).collect();
        let found = deliveries::busy_lanes(app.db(company), company, endpoint.id, &lanes, after.id.0).await;
        busy.extend(found.map_err(in_words)?);
    }
    Ok(Page { letters, next: read.next, has_more: read.has_more, busy })
}

/// The events of due deliveries; `None` for those that are no longer kept.
pub(super) async fn of_due(app: &App, company: CompanyId, due: Vec<Due>) -> Result<Vec<(Due, Option<Letter>)>, Unread> {
    let mut found = Vec::with_capacity(due.len());
    for delivery in &due {
        let id = LoggedEventId::new(delivery.event_id);
        found.extend(events::find(app.db(company), company, id, delivery.created_at).await.map_err(in_words)?);
    }
    let mut letters = shown(app, company, found).await?;
    let with_letter = |delivery: Due| {
        let index = letters.iter().position(|letter| letter.event == delivery.event_id);
        (delivery, index.map(|index| letters.swap_remove(index)))
    };
    Ok(due.into_iter().map(with_letter).collect())
}

async fn shown(app: &App, company: CompanyId, events: Vec<StoredEvent>) -> Result<Vec<Letter>, Unread> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let organization = app.engine.directory().company(company).ok_or("the company is gone")?;
    let showing = Showing::new(organization, app.media.links().clone());
    let heads: Vec<_> =
        events.iter().map(|event| (event.id.0, event.kind, lane(&event.subject()), event.created_at)).collect();
    let shown = show_all(app.db(company), company, events, &showing).await.map_err(in_words)?;
    let letter = |((event, kind, lane, created_at), shown): ((i64, EventKind, String, _), _)| {
        let json = serde_json::to_vec(&shown).map_err(in_words)?;
        Ok(Letter { event, kind: kind.as_str().to_owned(), lane, created_at, json: Bytes::from(json) })
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
