//! Identifies contacts: finds the contact of a number or of a provider's id, and decides what changes when both are
//! known. A provider's id is that of a group, or of a person on a page or account, or it replaces a hidden number.
//!
//! A transaction that creates a contact with such a key, or adds one to a contact, holds the key's lock (`lock_keys`)
//! from the look-up until its end. So concurrent calls yield one contact for a person, in any spelling of the number.
//! All keys of a transaction are locked together, before any row.

mod changed;
mod found;
mod moved;
mod numbered;
mod view;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{ContactRef, lock_rows, record_created, track_changes};
use crate::error::{HolderQuery, TakenValue, with_timeout};
use crate::tables::text_enum;
use crate::{ChannelId, CompanyId, ContactId, Database, Error, Result, phone_numbers};

pub use changed::{IdentityChange, apply_change};
pub use found::by_number;
use found::{Matches, find};
pub(crate) use moved::{lock_contact_keys, merge_candidates, move_identities};
pub use numbered::ids_by_number;
pub use view::{ContactIdentity, MergeSuggestion};

text_enum! {
    /// What identifies a contact.
    IdentityKind {
        /// A phone number.
        Number = "number",
        /// A provider's id of a person.
        UserId = "userId",
        /// A provider's id of a group.
        GroupId = "groupId",
    }
}

/// A provider's id of a person or a group, on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    pub channel: ChannelId,
    pub value: &'a str,
    pub kind: IdentityKind,
}

/// The keys by which a person is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys<'a> {
    /// Digits, in any spelling.
    pub number: Option<&'a str>,
    pub address: Option<Address<'a>>,
}

/// What is known of a person besides the keys. A new contact is created with it.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// The name of a new contact.
    pub name: &'a str,
    /// The country of the number, ISO 3166-1 alpha-2.
    pub country: Option<&'a str>,
    pub social_username: Option<&'a str>,
    /// Where the contact came from: the kind of channel, or the API.
    pub origin: &'a str,
    /// Since when the person has the keys: a provider's report may be older than what is stored.
    pub since: DateTime<Utc>,
}

/// The contact that [`identify`] has found or created.
#[derive(Clone, Debug)]
pub struct IdentifiedContact {
    pub contact: ContactRef,
    /// Whether a contact that existed before was changed.
    pub is_changed: bool,
}

/// Number of locks that all keys of a company share, a power of two: a transaction holds at most this many, even an
/// import of a thousand numbers.
const LOCKS: i32 = 64;

/// Locks these keys until the transaction ends. To be called once in a transaction, before any row is locked.
pub(crate) async fn lock_keys(
    db: &mut PgConnection,
    company: CompanyId,
    keys: impl IntoIterator<Item = String>,
) -> Result<()> {
    let keys: Vec<String> = keys.into_iter().collect();
    // Locked in the same order everywhere, which avoids deadlocks. E-mails are matched by PostgreSQL's lower case, so
    // those that match have the same slot.
    let lock = sqlx::query(
        "select pg_advisory_xact_lock(hashtextextended('contact_identities:' || $1 || ':' || held.slot, 0))
         from (select distinct hashtext(lower(key)) & $3 as slot from unnest($2::text[]) as x (key)
             order by 1 offset 0) held",
    );
    with_timeout(lock.bind(company.to_string()).bind(keys).bind(LOCKS - 1).execute(db)).await?;
    Ok(())
}

/// The key of a number's lock: the same for every spelling.
pub(crate) fn number_key(number: &str) -> String {
    format!("number:{}", phone_numbers::shortest_spelling(number))
}

/// The key of the lock of a provider's id.
fn address_key(channel: ChannelId, value: &str) -> String {
    format!("address:{channel}:{value}")
}

/// The key of the lock of an external id, a website's own id of a visitor.
pub(super) fn external_id_key(external_id: &str) -> String {
    format!("externalId:{external_id}")
}

impl Keys<'_> {
    /// The keys of a contact that is known by a number.
    pub fn of_number(number: &str) -> Keys<'_> {
        Keys { number: Some(number), address: None }
    }

    fn locks(&self) -> BTreeSet<String> {
        let address = self.address.map(|address| address_key(address.channel, address.value));
        self.number.map(number_key).into_iter().chain(address).collect()
    }
}

/// Finds the contact of these keys, or creates it. New keys are added to the contact; if two contacts have the keys,
/// both get a suggestion to merge them, and the one with the address is returned.
pub async fn identify(
    db: impl Database<'_>,
    company: CompanyId,
    keys: &Keys<'_>,
    profile: &Profile<'_>,
) -> Result<IdentifiedContact> {
    if let Some(contact) = find(db, company, keys).await?.settled_contact(keys) {
        return Ok(IdentifiedContact { contact, is_changed: false });
    }
    let mut transaction = db.transaction().await?;
    let connection = transaction.connection()?;
    lock_keys(connection, company, keys.locks()).await?;
    let matches = find(&mut *connection, company, keys).await?;
    if let Some(contact) = matches.settled_contact(keys) {
        return Ok(IdentifiedContact { contact, is_changed: false });
    }
    let mut identified = match matches.nearest() {
        None => {
            IdentifiedContact { contact: create_contact(connection, company, keys, profile).await?, is_changed: false }
        }
        Some(contact) => {
            let contact = contact.clone();
            add_keys(connection, company, &matches, &contact, keys, profile).await?;
            IdentifiedContact { contact, is_changed: true }
        }
    };
    if identified.is_changed {
        let found = found::by_id(connection, company, identified.contact.id).await?;
        identified.contact = found.ok_or(Error::NotFound("contact"))?;
    }
    transaction.commit().await?;
    Ok(identified)
}

/// Adds new keys to an existing contact, or suggests merging it with the contact that has the number.
async fn add_keys(
    db: &mut PgConnection,
    company: CompanyId,
    matches: &Matches,
    contact: &ContactRef,
    keys: &Keys<'_>,
    profile: &Profile<'_>,
) -> Result<()> {
    let at = profile.since;
    if let Some((other, number)) = matches.conflict().zip(keys.number) {
        return suggest_merge(db, company, [contact.id, other.id], (IdentityKind::Number, number)).await;
    }
    let former_owner = matches.former_owner(at).filter(|former| former.id != contact.id);
    if let Some((other, number)) = former_owner.zip(keys.number) {
        suggest_merge(&mut *db, company, [contact.id, other.id], (IdentityKind::Number, number)).await?;
    }
    let tracker = track_changes(&mut *db, company, &[contact.id]).await?.into_identification();
    if let Some(address) = keys.address.filter(|_| matches.by_address.is_none()) {
        add_address(&mut *db, company, contact.id, address, at).await?;
    }
    if let Some(number) = keys.number.filter(|_| matches.lacks_number()) {
        changed::set_number(&mut *db, company, contact, (number, profile.country), at).await?;
    }
    if let Some(number) = keys.number.filter(|_| matches.is_merged_number()) {
        changed::use_merged_number(&mut *db, company, contact, (number, profile.country)).await?;
    }
    tracker.record(db, &[contact.id]).await
}

async fn create_contact(
    db: &mut PgConnection,
    company: CompanyId,
    keys: &Keys<'_>,
    profile: &Profile<'_>,
) -> Result<ContactRef> {
    let is_group = keys.address.is_some_and(|address| address.kind == IdentityKind::GroupId);
    let contact: ContactRef = with_timeout(
        sqlx::query_as(
            "insert into contacts (company_id, name, number, number_country, social_username, origin, is_group)
             values ($1, $2, $3, $4, $5, $6, $7) returning id, name, number, verified",
        )
        .bind(company)
        .bind(profile.name)
        .bind(keys.number)
        .bind(profile.country)
        .bind(profile.social_username)
        .bind(profile.origin)
        .bind(is_group)
        .fetch_one(&mut *db),
    )
    .await
    .map_err(crate::table::map_constraint(super::write::UNIQUE))?;
    if let Some(address) = keys.address {
        add_address(&mut *db, company, contact.id, address, profile.since).await?;
    }
    record_created(db, company, &[contact.id]).await?;
    Ok(contact)
}

/// Adds an address to a contact, or makes its former address current again. Another contact's address is not changed.
async fn add_address(
    db: &mut PgConnection,
    company: CompanyId,
    contact: ContactId,
    address: Address<'_>,
    at: DateTime<Utc>,
) -> Result<()> {
    let insert = sqlx::query(
        "insert into contact_addresses as a (company_id, channel_id, address, contact_id, kind, created_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (company_id, channel_id, address) do update set until = null, created_at = excluded.created_at
         where a.contact_id = excluded.contact_id and a.until < excluded.created_at",
    )
    .bind(company)
    .bind(address.channel)
    .bind(address.value)
    .bind(contact)
    .bind(address.kind)
    .bind(at);
    with_timeout(insert.execute(db)).await.map_err(crate::table::map_constraint(&[]))?;
    Ok(())
}

/// Suggests merging two contacts, on both of them.
async fn suggest_merge(
    db: &mut PgConnection,
    company: CompanyId,
    contacts: [ContactId; 2],
    (kind, value): (IdentityKind, &str),
) -> Result<()> {
    let tracker = track_changes(&mut *db, company, &contacts).await?;
    let [first, second] = contacts;
    let insert = sqlx::query(
        "insert into contact_merge_suggestions (company_id, contact_id, other_id, kind, value)
         values ($1, $2, $3, $4, $5), ($1, $3, $2, $4, $5) on conflict (company_id, contact_id, other_id) do nothing",
    )
    .bind(company)
    .bind(first)
    .bind(second)
    .bind(kind)
    .bind(value);
    with_timeout(insert.execute(&mut *db)).await?;
    tracker.record(db, &contacts).await
}

/// Reserves a number for `contact` until the transaction ends; `None`: for a new contact.
///
/// # Errors
/// [`Error::Taken`] when another contact has the number, in any spelling.
pub async fn hold_number(
    db: &mut PgConnection,
    company: CompanyId,
    number: &str,
    contact: Option<ContactId>,
) -> Result<()> {
    lock_keys(&mut *db, company, [number_key(number)]).await?;
    let spellings = phone_numbers::spellings(number);
    let holder = sqlx::query_scalar(
        "select id from contacts where company_id = $1 and number = any ($2) and id is distinct from $3 order by id limit 1",
    );
    let holder: Option<ContactId> =
        with_timeout(holder.bind(company).bind(spellings).bind(contact).fetch_optional(db)).await?;
    match holder {
        None => Ok(()),
        Some(id) => {
            let statement = "select id from contacts where company_id = $1 and id = $2::bigint".to_owned();
            let holder = Some(HolderQuery { statement, company, value: id.to_string() });
            Err(Error::Taken(TakenValue { field: "number", holder }))
        }
    }
}

/// Deletes the former numbers and the merge suggestions of a contact that is being deleted.
pub(crate) async fn remove_for_contact(db: &mut PgConnection, company: CompanyId, id: ContactId) -> Result<()> {
    let others = merge_candidates(&mut *db, company, id).await?;
    let tracker = track_changes(&mut *db, company, &others).await?;
    for statement in [
        "delete from contact_numbers where company_id = $1 and contact_id = $2",
        "delete from contact_merge_suggestions where company_id = $1 and contact_id = $2",
    ] {
        with_timeout(sqlx::query(statement).bind(company).bind(id).execute(&mut *db)).await?;
    }
    let mirrored = sqlx::query(
        "delete from contact_merge_suggestions where company_id = $1 and contact_id = any ($3) and other_id = $2",
    );
    with_timeout(mirrored.bind(company).bind(id).bind(&others).execute(&mut *db)).await?;
    tracker.record(db, &others).await
}

/// The contact with this address on a channel, or `None`.
pub async fn by_address(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    address: &str,
) -> Result<Option<ContactRef>> {
    with_timeout(
        sqlx::query_as(
            "select c.id, c.name, c.number, c.verified from contact_addresses a
             join contacts c on c.company_id = a.company_id and c.id = a.contact_id
             where a.company_id = $1 and a.channel_id = $2 and a.address = $3",
        )
        .bind(company)
        .bind(channel)
        .bind(address)
        .fetch_optional(db),
    )
    .await
}

/// Records that a contact has written from an address. If the contact has several addresses on the channel, replies go
/// to this one from now on.
pub async fn record_use(db: impl Database<'_>, company: CompanyId, channel: ChannelId, address: &str) -> Result<()> {
    let update = sqlx::query(
        "update contact_addresses a set used_at = $4 where a.company_id = $1 and a.channel_id = $2 and a.address = $3
             and exists (select from contact_addresses o where o.company_id = $1 and o.contact_id = a.contact_id
                 and o.channel_id = $2 and o.address <> $3 and o.until is null
                 and coalesce(o.used_at, o.created_at) >= coalesce(a.used_at, a.created_at))",
    );
    let update = update.bind(company).bind(channel).bind(address).bind(crate::clock::now());
    with_timeout(update.execute(db)).await?;
    Ok(())
}

/// Sets the name of a contact that was named by its number.
pub async fn replace_number_as_name(
    db: impl Database<'_>,
    company: CompanyId,
    contact: ContactId,
    name: &str,
) -> Result<()> {
    let update =
        "update contacts set name = $3, updated_at = now() where company_id = $1 and id = $2 and name = number";
    let mut transaction = db.transaction().await?;
    let tracker = track_changes(transaction.connection()?, company, &[contact]).await?;
    let update = sqlx::query(update).bind(company).bind(contact).bind(name);
    with_timeout(update.execute(transaction.connection()?)).await?;
    tracker.record(transaction.connection()?, &[contact]).await?;
    transaction.commit().await
}

/// A contact's address on a channel: the current one that was used last, or else the former one that was used last.
/// `None` if the contact has none. A message that was written to a contact before a merge goes to an address of the
/// contact that took it over.
pub async fn address_of(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    contact: ContactId,
) -> Result<Option<(String, IdentityKind)>> {
    with_timeout(
        sqlx::query_as(
            "select address, coalesce(kind, 'userId') from contact_addresses
             where company_id = $1 and channel_id = $3 and contact_id = coalesce((
                 select into_id from merges where company_id = $1 and noun = 'contact' and id = $2), $2)
             order by until is null desc, coalesce(used_at, created_at) desc limit 1",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .fetch_optional(db),
    )
    .await
}
