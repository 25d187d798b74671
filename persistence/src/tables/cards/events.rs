//! Events of cards that change because another record is changed or deleted.

use serde::Serialize;
use sqlx::{AssertSqlSafe, PgConnection};

use super::{Card, CardId, CardProduct, CardSource, LoadedCard, NamedStatus, SELECT, load_contacts};
use crate::document;
use crate::error::with_timeout;
use crate::table::{CHANGED_AT, Named};
use crate::tables::businesses::BusinessId;
use crate::tables::card_origins::CardOriginId;
use crate::tables::contacts::{ContactRow, CustomFieldValue};
use crate::tables::events::{self, EventKind, NewEvent, Record, RecordSnapshot};
use crate::{Amount, BoardId, BoardListId, CompanyId, Error, Result, TicketId, Timestamp, UserId};

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
    contacts: &'a [ContactRow],
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

/// Cards as they were before a change: what differs afterwards becomes their events.
pub(crate) struct CardTracker {
    company: CompanyId,
    before: Vec<LoadedCard>,
}

/// Locks cards, and reads them before they change.
pub(crate) async fn track(db: &mut PgConnection, company: CompanyId, ids: &[CardId]) -> Result<CardTracker> {
    let lock = sqlx::query("select from cards where company_id = $1 and id = any ($2) order by id for no key update");
    with_timeout(lock.bind(company).bind(ids).execute(&mut *db)).await?;
    Ok(CardTracker { company, before: find_all(db, company, ids).await? })
}

async fn find_all(db: &mut PgConnection, company: CompanyId, ids: &[CardId]) -> Result<Vec<LoadedCard>> {
    let sql = AssertSqlSafe(format!("{SELECT} where k.company_id = $1 and k.id = any ($2) order by k.id"));
    let rows = with_timeout(sqlx::query(sql).bind(company).bind(ids).fetch_all(&mut *db)).await?;
    load_contacts(db, company, document::read_all::<Card>(&rows)).await
}

/// Sets the `updated_at` of locked cards from which a deleted record was removed, and writes their events. `restore`
/// turns a card into what it was before: it puts the deleted record back.
pub(crate) async fn write_removal_events(
    db: &mut PgConnection,
    company: CompanyId,
    ids: &[CardId],
    restore: impl Fn(&mut LoadedCard),
) -> Result<()> {
    touch(&mut *db, company, ids).await?;
    let mut events = Vec::with_capacity(ids.len());
    for after in find_all(&mut *db, company, ids).await? {
        let mut before = after.clone();
        restore(&mut before);
        events.extend(card_updated_event(&before, &after)?);
    }
    events::draft(db, company, &events).await
}

async fn touch(db: &mut PgConnection, company: CompanyId, ids: &[CardId]) -> Result<()> {
    let update = format!("update cards set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2)");
    with_timeout(sqlx::query(AssertSqlSafe(update)).bind(company).bind(ids).execute(db)).await?;
    Ok(())
}

/// The event of a card; `None` if nothing that the API shows has changed.
fn card_updated_event(before: &LoadedCard, after: &LoadedCard) -> Result<Option<NewEvent>> {
    let json = |card: &LoadedCard| {
        serde_json::to_value(CardView::of(card)).map_err(|error| Error::Unavailable(error.to_string()))
    };
    let Some(previous) = events::previous_values(&json(before)?, &json(after)?) else { return Ok(None) };
    let record = Record::Card(RecordSnapshot::of(after.card.id, &CardView::of(after))?);
    Ok(Some(NewEvent::plain(EventKind::CardUpdated, after.card.updated_at, record, Some(previous))))
}

impl CardTracker {
    /// Sets the `updated_at` of all tracked cards, and writes the events of those that have changed.
    pub(crate) async fn write_events(self, db: &mut PgConnection) -> Result<()> {
        let Self { company, before } = self;
        let ids: Vec<CardId> = before.iter().map(|card| card.card.id).collect();
        touch(&mut *db, company, &ids).await?;
        let mut events = Vec::with_capacity(before.len());
        for after in find_all(&mut *db, company, &ids).await? {
            if let Some(before) = before.iter().find(|before| before.card.id == after.card.id) {
                events.extend(card_updated_event(before, &after)?);
            }
        }
        events::draft(db, company, &events).await
    }
}
