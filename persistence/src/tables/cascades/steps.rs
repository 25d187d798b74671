//! The deletion of a record that others show. Some references are removed at once; a row of `cascades` records that
//! others remain, and steps remove those.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor, Row as _};

use super::{Cascade, RecordKind, Reference, When};
use crate::cluster::SlotFilter;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::tables::cards::{self, LoadedCard};
use crate::tables::contacts::{self, ContactRow, CustomFieldValue};
use crate::tables::events::{By, act_as, current_author};
use crate::tables::schedules::DeletedContact;
use crate::{CardId, CompanyId, ContactId, Result, TicketId};

/// Maximum records of a kind that one step changes: few, because it locks them, and holds the events of contacts.
pub const STEP_RECORDS: i64 = 50;

/// A deleted record that others may still refer to.
#[derive(Clone, Debug)]
pub struct DeletedRecord {
    /// The company it belonged to.
    pub company: CompanyId,
    /// The deleted record.
    pub cascade: Cascade,
    /// Who deleted it.
    pub by: By,
    /// What other records show of it, as JSON, or null if unreadable: then those records change without an event.
    view: Value,
}

impl DeletedRecord {
    /// The deleted contact, as scheduled messages to it showed it; `None` if unreadable.
    pub fn deleted_contact(&self) -> Option<DeletedContact> {
        serde_json::from_value(self.view.clone()).ok()
    }

    fn parse_view<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(self.view.clone()).ok()
    }

    /// The value of the deleted custom field on a record. `event_data` is that of the record's references.
    fn custom_field_value(&self, event_data: &[Option<String>]) -> Option<CustomFieldValue> {
        let Value::Object(mut field) = self.view.clone() else { return None };
        field.insert("value".to_owned(), json!(event_data.first()?.as_ref()?));
        serde_json::from_value(Value::Object(field)).ok()
    }

    /// Puts the deleted record back on a contact. `event_data` is that of the contact's references.
    fn restore_on_contact(&self, row: &mut ContactRow, event_data: &[Option<String>]) {
        match self.cascade {
            Cascade::Tag(_) => {
                row.tags.extend(self.parse_view::<contacts::ContactTag>());
                row.tags.sort_by_key(|tag| tag.id);
            }
            Cascade::CustomField(_) => row.custom_fields.extend(self.custom_field_value(event_data)),
            _ => {}
        }
    }

    /// Puts the deleted record back on a card. `event_data` is that of the card's references.
    fn restore_on_card(&self, LoadedCard { card, contacts }: &mut LoadedCard, event_data: &[Option<String>]) {
        match self.cascade {
            Cascade::CardStatus(_) => card.status = self.parse_view().map(Json),
            Cascade::Business(_) => card.business = self.parse_view().map(Json),
            Cascade::CardOrigin(_) => card.origin = self.parse_view().map(Json),
            Cascade::User(_) => card.assigned_to = self.parse_view().map(Json),
            Cascade::CustomField(_) => card.custom_fields.extend(self.custom_field_value(event_data)),
            Cascade::Product(id) => {
                let lines: Vec<i64> = event_data.iter().flatten().filter_map(|line| line.parse().ok()).collect();
                for line in card.products.iter_mut().filter(|line| lines.contains(&line.id.0)) {
                    line.product_id = Some(id);
                }
            }
            Cascade::Contact(_) => {
                contacts.extend(self.parse_view::<ContactRow>().map(Arc::new));
                contacts.sort_by_key(|contact| contact.id);
            }
            Cascade::Tag(_) | Cascade::ProductCategory(_) | Cascade::Queue(_) => {}
        }
    }
}

/// Locks a record that is being deleted, so that no new reference to it is added. Returns what other records show of
/// it, as JSON; `None` if there is no such record.
pub async fn lock_record(db: &mut PgConnection, company: CompanyId, cascade: Cascade) -> Result<Option<Value>> {
    let lock = sqlx::query_scalar(AssertSqlSafe(cascade.lock_sql())).bind(company).bind(cascade.id());
    with_timeout(lock.fetch_optional(db)).await
}

/// Removes the references to a record from the tables in which a company has few rows ([`When::AtOnce`]).
pub async fn remove_references_at_once(db: &mut PgConnection, company: CompanyId, cascade: Cascade) -> Result<()> {
    for reference in cascade.references_when(When::AtOnce) {
        while let ReferringIds { ids, has_more } = next_ids(&mut *db, company, cascade, reference).await?
            && !ids.is_empty()
        {
            lock_owners(&mut *db, company, reference, &ids).await?;
            remove_references(&mut *db, company, cascade, reference, &ids).await?;
            touch(&mut *db, company, reference, &ids).await?;
            if !has_more {
                break;
            }
        }
    }
    Ok(())
}

/// Records the deletion of a locked record, in the transaction that deletes it, if others still refer to it; returns
/// whether it was recorded. The deletion of a contact is always recorded, because its scheduled messages
/// fail only later.
pub async fn record_deletion(
    db: &mut PgConnection,
    company: CompanyId,
    cascade: Cascade,
    view: &Value,
) -> Result<bool> {
    let mut is_referred_to = matches!(cascade, Cascade::Contact(_));
    for reference in cascade.references_when(When::InSteps) {
        is_referred_to = is_referred_to || !find_ids(&mut *db, company, cascade, reference, 1).await?.is_empty();
    }
    if is_referred_to {
        let insert = sqlx::query(
            "insert into cascades (company_id, noun, id, shown, by) values ($1, $2, $3, $4, $5) on conflict do nothing",
        );
        let insert =
            insert.bind(company).bind(cascade.noun()).bind(cascade.id()).bind(view).bind(Json(current_author()));
        with_timeout(insert.execute(db)).await?;
    }
    Ok(is_referred_to)
}

/// Up to `limit` companies with deleted records that others may still refer to: those after `after` first.
pub async fn companies(
    db: impl PgExecutor<'_>,
    slots: &SlotFilter,
    after: CompanyId,
    limit: i64,
) -> Result<Vec<CompanyId>> {
    let in_slots = SlotFilter::condition("company_id", 3);
    let select = format!(
        "select company_id from cascades where {in_slots}
         group by company_id order by company_id <= $1, company_id limit $2"
    );
    let select = sqlx::query_scalar(AssertSqlSafe(select)).bind(after).bind(limit).bind(slots.numbers());
    with_timeout(select.fetch_all(db)).await
}

#[derive(FromRow)]
struct CascadeRow {
    noun: String,
    id: i64,
    #[sqlx(rename = "shown", try_from = "Document")]
    view: Value,
    #[sqlx(try_from = "Document")]
    by: Value,
}

/// Up to `limit` deleted records of a company that others may still refer to: those with the fewest failed steps first,
/// then those that were deleted first.
pub async fn unfinished(db: impl PgExecutor<'_>, company: CompanyId, limit: i64) -> Result<Vec<DeletedRecord>> {
    let select = sqlx::query(
        "select noun, id, shown, by from cascades where company_id = $1 order by failures, created_at, noun, id limit $2",
    );
    let found = with_timeout(select.bind(company).bind(limit).fetch_all(db)).await?;
    Ok(parse_rows(company, &found))
}

/// The recorded deletion of a record; `None` when no reference to it is left.
pub async fn find(db: impl PgExecutor<'_>, company: CompanyId, cascade: Cascade) -> Result<Option<DeletedRecord>> {
    let select =
        sqlx::query("select noun, id, shown, by from cascades where company_id = $1 and noun = $2 and id = $3");
    let select = select.bind(company).bind(cascade.noun()).bind(cascade.id());
    Ok(parse_rows(company, &with_timeout(select.fetch_all(db)).await?).pop())
}

/// Finds the contacts among `ids` that are deleted and that others may still refer to. For the persister, which writes
/// for many companies.
pub(crate) async fn deleted_contacts(
    db: &mut PgConnection,
    ids: Vec<(CompanyId, ContactId)>,
) -> sqlx::Result<HashMap<(CompanyId, ContactId), DeletedRecord>> {
    let mut found = HashMap::new();
    let (companies, ids): (Vec<_>, Vec<_>) = ids.into_iter().unzip();
    if ids.is_empty() {
        return Ok(found);
    }
    let select = sqlx::query(
        "select g.company_id, g.noun, g.id, g.shown, g.by from unnest($1::bigint[], $2::bigint[]) as x (company, contact)
         join cascades g on g.company_id = x.company and g.noun = 'contact' and g.id = x.contact",
    );
    for row in select.bind(companies).bind(ids).fetch_all(db).await? {
        let company: CompanyId = row.try_get("company_id")?;
        for record in parse_rows(company, std::slice::from_ref(&row)) {
            if let Cascade::Contact(contact) = record.cascade {
                found.insert((company, contact), record);
            }
        }
    }
    Ok(found)
}

fn parse_rows(company: CompanyId, rows: &[PgRow]) -> Vec<DeletedRecord> {
    let parse = |CascadeRow { noun, id, view, by }| {
        let by = serde_json::from_value(by).unwrap_or_default();
        Some(DeletedRecord { company, cascade: Cascade::of(&noun, id)?, by, view })
    };
    document::read_all::<CascadeRow>(rows).into_iter().filter_map(parse).collect()
}

/// Removes a deleted record from up to [`STEP_RECORDS`] others of each kind, and writes their events. Returns whether
/// there may be more.
pub async fn step(db: &mut PgConnection, record: &DeletedRecord) -> Result<bool> {
    let DeletedRecord { company, cascade, .. } = record;
    // The lock serializes the steps, even those of two processes.
    let lock = sqlx::query("select from cascades where company_id = $1 and noun = $2 and id = $3 for update");
    let lock = lock.bind(company).bind(cascade.noun()).bind(cascade.id()).fetch_optional(&mut *db);
    if with_timeout(lock).await?.is_none() {
        return Ok(false);
    }
    let mut has_more = false;
    for reference in cascade.references_when(When::InSteps) {
        has_more |= remove_from_next(&mut *db, record, reference).await?;
    }
    Ok(has_more)
}

/// Removes deleted records from a locked card and its products, so that a change of the card does not include these
/// removals.
pub async fn settle(db: &mut PgConnection, company: CompanyId, card: CardId) -> Result<()> {
    let select = sqlx::query(
        "select g.noun, g.id, g.shown, g.by from cascades g join cards k on k.company_id = g.company_id and k.id = $2
         where g.company_id = $1 and (
             g.noun = 'card_status' and g.id = k.status_id or g.noun = 'business' and g.id = k.business_id
             or g.noun = 'card_origin' and g.id = k.origin_id or g.noun = 'user' and g.id = k.assigned_user_id
             or g.noun = 'product' and exists (
                 select from card_products p where p.company_id = $1 and p.card_id = $2 and p.product_id = g.id))
         order by g.created_at, g.noun, g.id",
    );
    let found = with_timeout(select.bind(company).bind(card).fetch_all(&mut *db)).await?;
    for record in parse_rows(company, &found) {
        for reference in
            record.cascade.references_when(When::InSteps).filter(|reference| reference.owner == RecordKind::Cards)
        {
            act_as(record.by.clone(), remove_from_records(&mut *db, &record, reference, &[card.0])).await?;
        }
    }
    Ok(())
}

/// Counts a failed step of a deleted record; returns how many have failed. `None`: the deletion is complete.
pub async fn count_failure(db: impl PgExecutor<'_>, record: &DeletedRecord) -> Result<Option<i32>> {
    let count = sqlx::query_scalar(
        "update cascades set failures = failures + 1 where company_id = $1 and noun = $2 and id = $3 returning failures",
    );
    let count = count.bind(record.company).bind(record.cascade.noun()).bind(record.cascade.id());
    with_timeout(count.fetch_optional(db)).await
}

/// Deletes the row of a deletion that is complete.
pub async fn finish(db: impl PgExecutor<'_>, record: &DeletedRecord) -> Result<()> {
    let delete = sqlx::query("delete from cascades where company_id = $1 and noun = $2 and id = $3");
    with_timeout(delete.bind(record.company).bind(record.cascade.noun()).bind(record.cascade.id()).execute(db)).await?;
    Ok(())
}

/// Ids of records that show a deleted one.
struct ReferringIds {
    /// In ascending order, without duplicates.
    ids: Vec<i64>,
    /// Whether there may be more of them.
    has_more: bool,
}

async fn find_ids(
    db: &mut PgConnection,
    company: CompanyId,
    cascade: Cascade,
    reference: &Reference,
    limit: i64,
) -> Result<Vec<i64>> {
    let find = sqlx::query_scalar(AssertSqlSafe(reference.find_sql())).bind(company).bind(cascade.id()).bind(limit);
    with_timeout(find.fetch_all(db)).await
}

async fn next_ids(
    db: &mut PgConnection,
    company: CompanyId,
    cascade: Cascade,
    reference: &Reference,
) -> Result<ReferringIds> {
    let mut ids = find_ids(db, company, cascade, reference, STEP_RECORDS).await?;
    let has_more = i64::try_from(ids.len()).unwrap_or(i64::MAX) >= STEP_RECORDS;
    ids.sort_unstable();
    ids.dedup();
    Ok(ReferringIds { ids, has_more })
}

/// Locks records before their references are removed, as every change of these records does: their references are final
/// then, and another order could deadlock.
async fn lock_owners(db: &mut PgConnection, company: CompanyId, reference: &Reference, ids: &[i64]) -> Result<()> {
    let lock = sqlx::query(AssertSqlSafe(reference.lock_owners_sql())).bind(company).bind(ids);
    with_timeout(lock.execute(db)).await?;
    Ok(())
}

/// Removes the references to a deleted record from the records `ids`; returns the ids of those that had references,
/// with the `event_data` of those references.
async fn remove_references(
    db: &mut PgConnection,
    company: CompanyId,
    cascade: Cascade,
    reference: &Reference,
    ids: &[i64],
) -> Result<BTreeMap<i64, Vec<Option<String>>>> {
    let delete = sqlx::query_as(AssertSqlSafe(reference.remove_sql())).bind(company).bind(cascade.id()).bind(ids);
    let mut removed: BTreeMap<i64, Vec<Option<String>>> = BTreeMap::new();
    let rows: Vec<(i64, Option<String>)> = with_timeout(delete.fetch_all(db)).await?;
    for (id, event_data) in rows {
        removed.entry(id).or_default().push(event_data);
    }
    Ok(removed)
}

/// Sets the `updated_at` of records without events.
async fn touch(db: &mut PgConnection, company: CompanyId, reference: &Reference, ids: &[i64]) -> Result<()> {
    let Some(update) = reference.touch_sql() else { return Ok(()) };
    with_timeout(sqlx::query(AssertSqlSafe(update)).bind(company).bind(ids).execute(db)).await?;
    Ok(())
}

async fn remove_from_next(db: &mut PgConnection, record: &DeletedRecord, reference: &Reference) -> Result<bool> {
    let DeletedRecord { company, cascade, .. } = *record;
    let ReferringIds { ids, has_more } = next_ids(&mut *db, company, cascade, reference).await?;
    if ids.is_empty() {
        return Ok(false);
    }
    lock_owners(&mut *db, company, reference, &ids).await?;
    remove_from_records(db, record, reference, &ids).await?;
    Ok(has_more)
}

/// Removes a deleted record from the locked records `ids` that still show it, and writes their events.
async fn remove_from_records(
    db: &mut PgConnection,
    record: &DeletedRecord,
    reference: &Reference,
    ids: &[i64],
) -> Result<()> {
    let DeletedRecord { company, cascade, .. } = *record;
    let removed = remove_references(&mut *db, company, cascade, reference, ids).await?;
    let ids: Vec<i64> = removed.keys().copied().collect();
    let event_data_of = |id: i64| removed.get(&id).map(Vec::as_slice).unwrap_or_default();
    match reference.owner {
        RecordKind::Contacts => {
            let contacts: Vec<ContactId> = ids.into_iter().map(ContactId::new).collect();
            let restore = |row: &mut ContactRow| {
                let event_data = event_data_of(row.id.0);
                record.restore_on_contact(row, event_data);
            };
            contacts::write_removal_events(db, company, &contacts, restore).await?;
        }
        RecordKind::Cards => {
            let cards: Vec<CardId> = ids.into_iter().map(CardId::new).collect();
            let restore = |card: &mut LoadedCard| {
                let event_data = event_data_of(card.card.id.0);
                record.restore_on_card(card, event_data);
            };
            cards::events::write_update_events(db, company, &cards, restore).await?;
        }
        RecordKind::Others(_) => touch(db, company, reference, &ids).await?,
    }
    Ok(())
}

/// Removes deleted tickets from the cards that were created from them, and writes the cards' events.
pub(crate) async fn unlink_tickets(db: &mut PgConnection, company: CompanyId, tickets: &[TicketId]) -> Result<()> {
    loop {
        let find = sqlx::query_scalar(
            "select id from cards where company_id = $1 and ticket_id = any ($2) order by id limit $3",
        );
        let find = find.bind(company).bind(tickets).bind(STEP_RECORDS).fetch_all(&mut *db);
        let ids: Vec<CardId> = with_timeout(find).await?;
        if ids.is_empty() {
            return Ok(());
        }
        let tracker = cards::events::track(&mut *db, company, &ids, &[]).await?;
        let update = sqlx::query("update cards set ticket_id = null where company_id = $1 and id = any ($2)");
        with_timeout(update.bind(company).bind(&ids).execute(&mut *db)).await?;
        tracker.write_events(&mut *db).await?;
    }
}
