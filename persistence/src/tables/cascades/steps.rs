//! The deletion of a record that others show: what goes with it, the note of what is left, and the steps.

use std::collections::{BTreeMap, HashMap};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor, Row as _};

use super::{Cascade, Of, Shown, When};
use crate::cluster::OfSlots;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::table::CHANGED_AT;
use crate::tables::cards::{self, LoadedCard};
use crate::tables::contacts::{self, ContactRow, CustomFieldValue};
use crate::tables::events::{By, acting, current};
use crate::tables::schedules::ContactWas;
use crate::{CardId, CompanyId, ContactId, Result, TicketId};

/// Maximum records of a kind that one step changes: a card may show a hundred contacts.
pub const STEP_RECORDS: i64 = 50;

/// A deleted record that others may still refer to.
#[derive(Clone, Debug)]
pub struct Gone {
    /// Whose it was.
    pub company: CompanyId,
    /// What it was.
    pub cascade: Cascade,
    /// Who deleted it.
    pub by: By,
    /// How others showed it; null when that cannot be read: then they change without an event.
    shown: Value,
}

impl Gone {
    /// A contact, as scheduled messages to it showed it.
    pub fn contact_was(&self) -> Option<ContactWas> {
        serde_json::from_value(self.shown.clone()).ok()
    }

    fn shown<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(self.shown.clone()).ok()
    }

    /// The value that a record had of this custom field.
    fn value(&self, with: &[Option<String>]) -> Option<CustomFieldValue> {
        let Value::Object(mut field) = self.shown.clone() else { return None };
        field.insert("value".to_owned(), json!(with.first()?.as_ref()?));
        serde_json::from_value(Value::Object(field)).ok()
    }

    /// Shows it on a contact again. `with` is what its references had.
    fn put_on_contact(&self, row: &mut ContactRow, with: &[Option<String>]) {
        match self.cascade {
            Cascade::Tag(_) => {
                row.tags.extend(self.shown::<contacts::ContactTag>());
                row.tags.sort_by_key(|tag| tag.id);
            }
            Cascade::CustomField(_) => row.custom_fields.extend(self.value(with)),
            _ => {}
        }
    }

    /// Shows it on a card again. `with` is what its references had.
    fn put_on_card(&self, LoadedCard { card, contacts }: &mut LoadedCard, with: &[Option<String>]) {
        match self.cascade {
            Cascade::CardStatus(_) => card.status = self.shown().map(Json),
            Cascade::Business(_) => card.business = self.shown().map(Json),
            Cascade::CardOrigin(_) => card.origin = self.shown().map(Json),
            Cascade::User(_) => card.assigned_to = self.shown().map(Json),
            Cascade::CustomField(_) => card.custom_fields.extend(self.value(with)),
            Cascade::Product(id) => {
                let lines: Vec<i64> = with.iter().flatten().filter_map(|line| line.parse().ok()).collect();
                for line in card.products.iter_mut().filter(|line| lines.contains(&line.id.0)) {
                    line.product_id = Some(id);
                }
            }
            Cascade::Contact(_) => {
                contacts.extend(self.shown::<ContactRow>());
                contacts.sort_by_key(|contact| contact.id);
            }
            Cascade::Tag(_) | Cascade::ProductCategory(_) | Cascade::Queue(_) => {}
        }
    }
}

/// Locks a record that is being deleted, so that no other begins to refer to it, and returns how others show it; `None` if
/// there is no such record.
///
/// # Errors
/// When the database cannot answer.
pub async fn hold(db: &mut PgConnection, company: CompanyId, cascade: Cascade) -> Result<Option<Value>> {
    let held =
        format!("select {} from {} where company_id = $1 and id = $2 for update", cascade.as_shown(), cascade.table());
    let held = sqlx::query_scalar(AssertSqlSafe(held)).bind(company).bind(cascade.id());
    with_timeout(held.fetch_optional(db)).await
}

/// Takes a record from those of which a company has few ([`When::AtOnce`]).
///
/// # Errors
/// When the database cannot answer.
pub async fn take_at_once(db: &mut PgConnection, company: CompanyId, cascade: Cascade) -> Result<()> {
    for shown in cascade.shown_when(When::AtOnce) {
        while let Found { ids, has_more } = found(&mut *db, company, cascade, shown).await?
            && !ids.is_empty()
        {
            take(&mut *db, company, cascade, shown, &ids).await?;
            date(&mut *db, company, shown, &ids).await?;
            if !has_more {
                break;
            }
        }
    }
    Ok(())
}

/// Notes that a held record is deleted, in the transaction that deletes it, if others still refer to it; returns whether.
/// Of a contact this is always noted: its scheduled messages fail behind it.
///
/// # Errors
/// When the database cannot answer.
pub async fn note(db: &mut PgConnection, company: CompanyId, cascade: Cascade, shown: &Value) -> Result<bool> {
    let mut is_left = matches!(cascade, Cascade::Contact(_));
    for shown in cascade.shown_when(When::InSteps) {
        is_left = is_left || !some(&mut *db, company, cascade, shown, 1).await?.is_empty();
    }
    if is_left {
        let note = sqlx::query(
            "insert into cascades (company_id, noun, id, shown, by) values ($1, $2, $3, $4, $5) on conflict do nothing",
        );
        let note = note.bind(company).bind(cascade.noun()).bind(cascade.id()).bind(shown).bind(Json(current()));
        with_timeout(note.execute(db)).await?;
    }
    Ok(is_left)
}

/// Up to `limit` companies with deleted records that others may still refer to: those after `after` first.
///
/// # Errors
/// When the database cannot answer.
pub async fn companies(db: impl PgExecutor<'_>, of: &OfSlots, after: CompanyId, limit: i64) -> Result<Vec<CompanyId>> {
    let holds = OfSlots::holds("company_id", 3);
    let companies = format!(
        "select company_id from cascades where {holds} group by company_id order by company_id <= $1, company_id limit $2"
    );
    let companies = sqlx::query_scalar(AssertSqlSafe(companies)).bind(after).bind(limit).bind(of.numbers());
    with_timeout(companies.fetch_all(db)).await
}

#[derive(FromRow)]
struct Row {
    noun: String,
    id: i64,
    #[sqlx(try_from = "Document")]
    shown: Value,
    #[sqlx(try_from = "Document")]
    by: Value,
}

/// Up to `limit` deleted records of a company that others may still refer to: those with the fewest failed steps first, then
/// those that were deleted first.
///
/// # Errors
/// When the database cannot answer.
pub async fn unfinished(db: impl PgExecutor<'_>, company: CompanyId, limit: i64) -> Result<Vec<Gone>> {
    let found = sqlx::query(
        "select noun, id, shown, by from cascades where company_id = $1 order by failures, created_at, noun, id limit $2",
    );
    let found = with_timeout(found.bind(company).bind(limit).fetch_all(db)).await?;
    Ok(read(company, &found))
}

/// What is noted of a deleted record; `None` when nothing is left.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(db: impl PgExecutor<'_>, company: CompanyId, cascade: Cascade) -> Result<Option<Gone>> {
    let found = sqlx::query("select noun, id, shown, by from cascades where company_id = $1 and noun = $2 and id = $3");
    let found = found.bind(company).bind(cascade.noun()).bind(cascade.id());
    Ok(read(company, &with_timeout(found.fetch_all(db)).await?).pop())
}

/// What is noted of those of these contacts that were deleted, and that others may still refer to. For the persister, which
/// writes for many companies.
pub(crate) async fn deleted_contacts(
    db: &mut PgConnection,
    ids: Vec<(CompanyId, ContactId)>,
) -> sqlx::Result<HashMap<(CompanyId, ContactId), Gone>> {
    let mut found = HashMap::new();
    let (companies, ids): (Vec<_>, Vec<_>) = ids.into_iter().unzip();
    if ids.is_empty() {
        return Ok(found);
    }
    let rows = sqlx::query(
        "select g.company_id, g.noun, g.id, g.shown, g.by from unnest($1::bigint[], $2::bigint[]) as x (company, contact)
         join cascades g on g.company_id = x.company and g.noun = 'contact' and g.id = x.contact",
    );
    for row in rows.bind(companies).bind(ids).fetch_all(db).await? {
        let company: CompanyId = row.try_get("company_id")?;
        for gone in read(company, std::slice::from_ref(&row)) {
            if let Cascade::Contact(contact) = gone.cascade {
                found.insert((company, contact), gone);
            }
        }
    }
    Ok(found)
}

fn read(company: CompanyId, rows: &[PgRow]) -> Vec<Gone> {
    let gone = |Row { noun, id, shown, by }| {
        let by = serde_json::from_value(by).unwrap_or_default();
        Some(Gone { company, cascade: Cascade::of(&noun, id)?, by, shown })
    };
    document::read_all::<Row>(rows).into_iter().filter_map(gone).collect()
}

/// Takes a deleted record from up to [`STEP_RECORDS`] others of each kind, with their events. Returns whether that may not
/// have been all.
///
/// # Errors
/// When the database cannot answer.
pub async fn step(db: &mut PgConnection, gone: &Gone) -> Result<bool> {
    let Gone { company, cascade, .. } = gone;
    // One step after the other, also of two processes.
    let held = sqlx::query("select from cascades where company_id = $1 and noun = $2 and id = $3 for update");
    let held = held.bind(company).bind(cascade.noun()).bind(cascade.id()).fetch_optional(&mut *db);
    if with_timeout(held).await?.is_none() {
        return Ok(false);
    }
    let mut has_more = false;
    for shown in cascade.shown_when(When::InSteps) {
        has_more |= take_some(&mut *db, gone, shown).await?;
    }
    Ok(has_more)
}

/// Takes deleted records out of the columns of a held card and of its lines, so that a change of the card that writes these
/// does not hide theirs.
///
/// # Errors
/// When the database cannot answer.
pub async fn settle(db: &mut PgConnection, company: CompanyId, card: CardId) -> Result<()> {
    let found = sqlx::query(
        "select g.noun, g.id, g.shown, g.by from cascades g join cards k on k.company_id = g.company_id and k.id = $2
         where g.company_id = $1 and (
             g.noun = 'card_status' and g.id = k.status_id or g.noun = 'business' and g.id = k.business_id
             or g.noun = 'card_origin' and g.id = k.origin_id or g.noun = 'user' and g.id = k.assigned_user_id
             or g.noun = 'product' and exists (
                 select from card_products p where p.company_id = $1 and p.card_id = $2 and p.product_id = g.id))
         order by g.created_at, g.noun, g.id",
    );
    let found = with_timeout(found.bind(company).bind(card).fetch_all(&mut *db)).await?;
    for gone in read(company, &found) {
        for shown in gone.cascade.shown_when(When::InSteps).filter(|shown| shown.of == Of::Cards) {
            acting(gone.by.clone(), take_from(&mut *db, &gone, shown, &[card.0])).await?;
        }
    }
    Ok(())
}

/// Counts a step of a deleted record that failed; returns how many have. None: nothing is left of it.
///
/// # Errors
/// When the database cannot answer.
pub async fn count_failure(db: impl PgExecutor<'_>, gone: &Gone) -> Result<Option<i32>> {
    let count = sqlx::query_scalar(
        "update cascades set failures = failures + 1 where company_id = $1 and noun = $2 and id = $3 returning failures",
    );
    let count = count.bind(gone.company).bind(gone.cascade.noun()).bind(gone.cascade.id());
    with_timeout(count.fetch_optional(db)).await
}

/// Forgets a deleted record that no other refers to any more.
///
/// # Errors
/// When the database cannot answer.
pub async fn end(db: impl PgExecutor<'_>, gone: &Gone) -> Result<()> {
    let end = sqlx::query("delete from cascades where company_id = $1 and noun = $2 and id = $3");
    with_timeout(end.bind(gone.company).bind(gone.cascade.noun()).bind(gone.cascade.id()).execute(db)).await?;
    Ok(())
}

/// Those that show a record.
struct Found {
    /// In order.
    ids: Vec<i64>,
    /// Whether there may be more of them.
    has_more: bool,
}

async fn some(
    db: &mut PgConnection,
    company: CompanyId,
    cascade: Cascade,
    shown: &Shown,
    limit: i64,
) -> Result<Vec<i64>> {
    let find = sqlx::query_scalar(AssertSqlSafe(shown.find())).bind(company).bind(cascade.id()).bind(limit);
    with_timeout(find.fetch_all(db)).await
}

async fn found(db: &mut PgConnection, company: CompanyId, cascade: Cascade, shown: &Shown) -> Result<Found> {
    let mut ids = some(db, company, cascade, shown, STEP_RECORDS).await?;
    let has_more = i64::try_from(ids.len()).unwrap_or(i64::MAX) >= STEP_RECORDS;
    ids.sort_unstable();
    ids.dedup();
    Ok(Found { ids, has_more })
}

/// Takes the record from some of those that show it; returns from which, with what the references had.
async fn take(
    db: &mut PgConnection,
    company: CompanyId,
    cascade: Cascade,
    shown: &Shown,
    ids: &[i64],
) -> Result<BTreeMap<i64, Vec<Option<String>>>> {
    let take = sqlx::query_as(AssertSqlSafe(shown.take())).bind(company).bind(cascade.id()).bind(ids);
    let mut taken: BTreeMap<i64, Vec<Option<String>>> = BTreeMap::new();
    let rows: Vec<(i64, Option<String>)> = with_timeout(take.fetch_all(db)).await?;
    for (id, with) in rows {
        taken.entry(id).or_default().push(with);
    }
    Ok(taken)
}

/// Moves the `updated_at` of records without events.
async fn date(db: &mut PgConnection, company: CompanyId, shown: &Shown, ids: &[i64]) -> Result<()> {
    let Of::Others(table) = shown.of else { return Ok(()) };
    let date = format!("update {table} set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2)");
    with_timeout(sqlx::query(AssertSqlSafe(date)).bind(company).bind(ids).execute(db)).await?;
    Ok(())
}

async fn take_some(db: &mut PgConnection, gone: &Gone, shown: &Shown) -> Result<bool> {
    let Gone { company, cascade, .. } = *gone;
    let Found { ids, has_more } = found(&mut *db, company, cascade, shown).await?;
    if ids.is_empty() {
        return Ok(false);
    }
    // Each change of them locks them: what is taken is what they have once they are locked.
    let held = match shown.of {
        Of::Contacts => "select from contacts where company_id = $1 and id = any ($2) order by id for no key update",
        Of::Cards => "select from cards where company_id = $1 and id = any ($2) order by id for no key update",
        Of::Others(_) => "",
    };
    if !held.is_empty() {
        with_timeout(sqlx::query(held).bind(company).bind(&ids).execute(&mut *db)).await?;
    }
    take_from(db, gone, shown, &ids).await?;
    Ok(has_more)
}

/// Takes it from those of these that still show it, which are held, with their events.
async fn take_from(db: &mut PgConnection, gone: &Gone, shown: &Shown, ids: &[i64]) -> Result<()> {
    let Gone { company, cascade, .. } = *gone;
    let taken = take(&mut *db, company, cascade, shown, ids).await?;
    let ids: Vec<i64> = taken.keys().copied().collect();
    let had = |id: i64| taken.get(&id).map(Vec::as_slice).unwrap_or_default();
    match shown.of {
        Of::Contacts => {
            let contacts: Vec<ContactId> = ids.into_iter().map(ContactId::new).collect();
            let put_back = |row: &mut ContactRow| {
                let with = had(row.id.0);
                gone.put_on_contact(row, with);
            };
            contacts::tell_lost(db, company, &contacts, put_back).await?;
        }
        Of::Cards => {
            let cards: Vec<CardId> = ids.into_iter().map(CardId::new).collect();
            let put_back = |card: &mut LoadedCard| {
                let with = had(card.card.id.0);
                gone.put_on_card(card, with);
            };
            cards::told::tell_lost(db, company, &cards, put_back).await?;
        }
        Of::Others(_) => date(db, company, shown, &ids).await?,
    }
    Ok(())
}

/// Takes deleted tickets from the cards that were made from them, with their events.
///
/// # Errors
/// When the database cannot answer.
pub(crate) async fn forget_tickets(db: &mut PgConnection, company: CompanyId, tickets: &[TicketId]) -> Result<()> {
    loop {
        let find = sqlx::query_scalar(
            "select id from cards where company_id = $1 and ticket_id = any ($2) order by id limit $3",
        );
        let find = find.bind(company).bind(tickets).bind(STEP_RECORDS).fetch_all(&mut *db);
        let ids: Vec<CardId> = with_timeout(find).await?;
        if ids.is_empty() {
            return Ok(());
        }
        let watched = cards::told::watch(&mut *db, company, &ids).await?;
        let free = sqlx::query("update cards set ticket_id = null where company_id = $1 and id = any ($2)");
        with_timeout(free.bind(company).bind(&ids).execute(&mut *db)).await?;
        watched.tell(&mut *db).await?;
    }
}
