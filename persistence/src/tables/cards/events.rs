//! Events of cards that change because another record is changed or deleted.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

use super::loading::load_in;
use super::{CardId, CardProduct, CardSource, LoadedCard, NamedStatus, find_cards};
use crate::error::with_timeout;
use crate::table::{CHANGED_AT, Named};
use crate::tables::businesses::BusinessId;
use crate::tables::card_origins::CardOriginId;
use crate::tables::contacts::{self, ContactRow, CustomFieldValue};
use crate::tables::events::{self, EventKind, NewEvent, Record, RecordSnapshot};
use crate::{Amount, BoardId, BoardListId, CompanyId, ContactId, Error, Result, TicketId, Timestamp, UserId};

/// Maximum cards that are in memory at a time: many cards may show a record.
const CARDS_MAX: usize = 50;

/// Maximum bytes of the contacts of the cards whose events are in memory at a time, unless a single card has more: an
/// event contains its card's contacts, and is in memory several times while it is written.
const EVENT_CONTACT_BYTES_MAX: usize = 1 << 20;

/// A card as the API shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CardView<'a> {
    id: CardId,
    name: &'a str,
    description: Option<&'a str>,
    won: bool,
    won_date: Option<Timestamp>,
    lost: bool,
    lost_date: Option<Timestamp>,
    status_reason: Option<&'a str>,
    board_id: BoardId,
    list: Option<&'a Named<BoardListId>>,
    status: Option<&'a NamedStatus>,
    business: Option<&'a Named<BusinessId>>,
    origin: Option<&'a Named<CardOriginId>>,
    assigned_to: Option<&'a Named<UserId>>,
    contacts: &'a [Arc<ContactRow>],
    products: &'a [CardProduct],
    products_total: Amount,
    custom_fields: &'a [CustomFieldValue],
    creation_source: CardSource,
    due: Option<Timestamp>,
    ticket_id: Option<TicketId>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl<'a> CardView<'a> {
    fn of(LoadedCard { card, contacts }: &'a LoadedCard) -> Self {
        Self {
            id: card.id,
            name: &card.name,
            description: card.description.as_deref(),
            won: card.won,
            won_date: card.won_at.map(Timestamp),
            lost: card.lost,
            lost_date: card.lost_at.map(Timestamp),
            status_reason: card.status_reason.as_deref(),
            board_id: card.board_id,
            list: card.list.as_deref(),
            status: card.status.as_deref(),
            business: card.business.as_deref(),
            origin: card.origin.as_deref(),
            assigned_to: card.assigned_to.as_deref(),
            contacts,
            products: &card.products,
            products_total: card.products_total,
            custom_fields: &card.custom_fields,
            creation_source: card.creation_source,
            due: card.due.map(Timestamp),
            ticket_id: card.ticket_id,
            created_at: Timestamp(card.created_at),
            updated_at: Timestamp(card.updated_at),
        }
    }
}

/// What a merge of contacts or tickets, or a deletion of tickets, changes in cards, as it was before: what differs
/// afterwards becomes their events. The cards are locked, so all else stays; their contacts together may be gigabytes.
pub(crate) struct CardTracker {
    company: CompanyId,
    links: HashMap<CardId, CardLinks>,
    /// The contacts that are changed or deleted.
    contacts: HashMap<ContactId, Arc<ContactRow>>,
}

/// The contacts and the ticket of a card.
#[derive(FromRow)]
struct CardLinks {
    id: CardId,
    contact_ids: Vec<ContactId>,
    ticket_id: Option<TicketId>,
}

/// Locks cards, and reads their links before they change. `contacts`: those that are changed or deleted with them.
pub(crate) async fn track(
    db: &mut PgConnection,
    company: CompanyId,
    ids: &[CardId],
    contacts: &[ContactId],
) -> Result<CardTracker> {
    let lock = sqlx::query("select from cards where company_id = $1 and id = any ($2) order by id for no key update");
    with_timeout(lock.bind(company).bind(ids).execute(&mut *db)).await?;
    let select = sqlx::query_as(
        "select k.id, k.ticket_id, array(select x.contact_id from card_contacts x
             where x.company_id = k.company_id and x.card_id = k.id order by x.contact_id) as contact_ids
         from cards k where k.company_id = $1 and k.id = any ($2)",
    );
    let links: Vec<CardLinks> = with_timeout(select.bind(company).bind(ids).fetch_all(&mut *db)).await?;
    let has_contacts = !contacts.is_empty() && !links.is_empty();
    let rows = if has_contacts { contacts::find_all(db, company, contacts).await? } else { Vec::new() };
    Ok(CardTracker {
        company,
        links: links.into_iter().map(|links| (links.id, links)).collect(),
        contacts: rows.into_iter().map(|row| (row.id, Arc::new(row))).collect(),
    })
}

/// Sets the `updated_at` of locked cards that were changed with another record, and writes their events, of a few cards
/// at a time. `restore` turns a card into what it was before: it puts a deleted record back.
pub(crate) async fn write_update_events(
    db: &mut PgConnection,
    company: CompanyId,
    ids: &[CardId],
    restore: impl Fn(&mut LoadedCard),
) -> Result<()> {
    touch(&mut *db, company, ids).await?;
    for ids in ids.chunks(CARDS_MAX) {
        let mut cards = find_cards(&mut *db, company, ids).await?;
        while !cards.is_empty() {
            let (loaded, rest) = load_in(&mut *db, company, cards, EVENT_CONTACT_BYTES_MAX).await?;
            cards = rest;
            let mut events = Vec::with_capacity(loaded.len());
            for after in loaded {
                let mut before = after.clone();
                restore(&mut before);
                events.extend(card_updated_event(&before, &after)?);
            }
            events::draft(&mut *db, company, &events).await?;
        }
    }
    Ok(())
}

async fn touch(db: &mut PgConnection, company: CompanyId, ids: &[CardId]) -> Result<()> {
    let update = format!("update cards set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2)");
    with_timeout(sqlx::query(AssertSqlSafe(update)).bind(company).bind(ids).execute(db)).await?;
    Ok(())
}

/// The event of a card; `None` if nothing that the API shows has changed.
fn card_updated_event(before: &LoadedCard, after: &LoadedCard) -> Result<Option<NewEvent>> {
    let has_same_contacts = before.contacts.len() == after.contacts.len()
        && before.contacts.iter().zip(&after.contacts).all(|(before, after)| Arc::ptr_eq(before, after));
    let json = |card: &LoadedCard| {
        let mut view = CardView::of(card);
        if has_same_contacts {
            // They may be megabytes.
            view.contacts = &[];
        }
        serde_json::to_value(view).map_err(|error| Error::Unavailable(error.to_string()))
    };
    let Some(previous) = events::previous_values(&json(before)?, &json(after)?) else { return Ok(None) };
    let record = Record::Card(RecordSnapshot::of(after.card.id, &CardView::of(after))?);
    Ok(Some(NewEvent::plain(EventKind::CardUpdated, after.card.updated_at, record, Some(previous))))
}

impl CardTracker {
    /// Sets the `updated_at` of all tracked cards, and writes the events of those that have changed.
    pub(crate) async fn write_events(self, db: &mut PgConnection) -> Result<()> {
        let mut ids: Vec<CardId> = self.links.keys().copied().collect();
        ids.sort_unstable();
        write_update_events(db, self.company, &ids, |card| self.restore(card)).await
    }

    /// Turns a card into what it was before.
    fn restore(&self, LoadedCard { card, contacts }: &mut LoadedCard) {
        let Some(links) = self.links.get(&card.id) else { return };
        card.ticket_id = links.ticket_id;
        let unchanged: HashMap<ContactId, Arc<ContactRow>> =
            contacts.drain(..).map(|contact| (contact.id, contact)).collect();
        let contact = |id: &ContactId| self.contacts.get(id).or_else(|| unchanged.get(id)).cloned();
        contacts.extend(links.contact_ids.iter().filter_map(contact));
    }
}
