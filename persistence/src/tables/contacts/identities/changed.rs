//! Changes of a person's keys that a provider reports: another number, another id.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::found::{Matches, find};
use super::{Address, ContactRef, Keys, add_address, lock_keys, lock_rows, suggest_merge, track_changes};
use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Database, Result, phone_numbers};

/// The old and the new keys of a person.
#[derive(Clone, Copy, Debug)]
pub struct IdentityChange<'a> {
    pub old: Keys<'a>,
    pub new: Keys<'a>,
    /// The country of the new number, ISO 3166-1 alpha-2.
    pub country: Option<&'a str>,
    /// When the change happened. A change that arrives after a later one of the same contact has no effect.
    pub at: DateTime<Utc>,
}

/// Applies a change to the contact that the change's keys find, and returns the contact's id; `None` when no contact
/// has any of the keys. The contact does not take keys that other contacts have; merging it with each of these contacts
/// is suggested.
pub async fn apply_change(
    db: impl Database<'_>,
    company: CompanyId,
    change: &IdentityChange<'_>,
) -> Result<Option<ContactId>> {
    let IdentityChange { old, new, at, .. } = *change;
    let mut transaction = db.transaction().await?;
    let connection = transaction.connection()?;
    let mut keys = old.locks();
    keys.extend(new.locks());
    lock_keys(connection, company, keys).await?;
    let old_matches = find(&mut *connection, company, &old).await?;
    let new_matches = find(&mut *connection, company, &new).await?;
    // A contact that no longer had the new number at the time of the change is not its owner: the number is free.
    let owner = new_matches.by_address.as_ref().or(new_matches.by_number.as_ref()).or(new_matches.former_owner(at));
    let Some(contact) = old_matches.nearest().or(owner).cloned() else { return Ok(None) };
    let others = old_matches.owners(&old, at).chain(new_matches.owners(&new, at)).filter(|(id, _)| *id != contact.id);
    let others: Vec<_> = others.collect();
    let changed: Vec<ContactId> = others.iter().map(|(id, _)| *id).chain([contact.id]).collect();
    lock_rows(&mut *connection, company, &changed).await?;
    for (other, key) in others {
        suggest_merge(&mut *connection, company, [contact.id, other], key).await?;
    }
    let tracker = track_changes(&mut *connection, company, &[contact.id]).await?.into_identification();
    update_keys(&mut *connection, company, &contact, change, (&old_matches, &new_matches)).await?;
    tracker.record(connection, &[contact.id]).await?;
    transaction.commit().await?;
    Ok(Some(contact.id))
}

/// Gives a contact the new keys, except for those that another contact has. The old keys still find the contact.
async fn update_keys(
    db: &mut PgConnection,
    company: CompanyId,
    contact: &ContactRef,
    change: &IdentityChange<'_>,
    (old_matches, new_matches): (&Matches, &Matches),
) -> Result<()> {
    let IdentityChange { old, new, country, at } = *change;
    let is_other_contact = |owner: Option<&ContactRef>| owner.is_some_and(|owner| owner.id != contact.id);
    let is_replaced = |old: &Address<'_>| new.address.is_some_and(|address| address.value != old.value);
    let ended_address = old.address.filter(is_replaced).filter(|_| !is_other_contact(old_matches.by_address.as_ref()));
    if let Some(ended) = ended_address {
        end_address(&mut *db, company, contact.id, ended, at).await?;
    }
    // Without a new address the old one stays: it is added if no contact has it yet.
    let unchanged_address = old.address.filter(|_| new.address.is_none() && old_matches.by_address.is_none());
    let new_address = new.address.filter(|_| !is_other_contact(new_matches.by_address.as_ref()));
    for address in unchanged_address.into_iter().chain(new_address) {
        add_address(&mut *db, company, contact.id, address, at).await?;
    }
    let is_number_free =
        !is_other_contact(new_matches.by_number.as_ref()) && !is_other_contact(new_matches.former_owner(at));
    // The contact's current number is ended by `set_number`.
    let is_current =
        |number: &str| contact.number.as_deref().is_some_and(|current| phone_numbers::is_same(current, number));
    let replaced = old.number.zip(new.number).filter(|(old, new)| !phone_numbers::is_same(old, new));
    let ended_number = replaced.map(|(old, _)| old).filter(|old| !is_current(old));
    if let Some(ended) = ended_number.filter(|_| !is_other_contact(old_matches.by_number.as_ref())) {
        end_number(&mut *db, company, contact.id, ended, at).await?;
    }
    if let Some(number) = new.number.filter(|_| is_number_free) {
        set_number(&mut *db, company, contact, (number, country), at).await?;
    }
    Ok(())
}

/// Records that a contact had this address until `at`. The address still finds the contact.
async fn end_address(
    db: &mut PgConnection,
    company: CompanyId,
    contact: ContactId,
    Address { channel, value, kind }: Address<'_>,
    at: DateTime<Utc>,
) -> Result<()> {
    let end = sqlx::query(
        "insert into contact_addresses as a (company_id, channel_id, address, contact_id, kind, created_at, until)
         values ($1, $2, $3, $4, $5, $6, $6)
         on conflict (company_id, channel_id, address) do update set until = excluded.until
         where a.contact_id = excluded.contact_id and a.until is null and a.created_at <= excluded.until",
    );
    let end = end.bind(company).bind(channel).bind(value).bind(contact).bind(kind).bind(at);
    with_timeout(end.execute(db)).await.map_err(crate::table::map_constraint(&[]))?;
    Ok(())
}

/// Records that a contact had this number until `at`. The number still finds the contact.
async fn end_number(
    db: &mut PgConnection,
    company: CompanyId,
    contact: ContactId,
    number: &str,
    at: DateTime<Utc>,
) -> Result<()> {
    let end = sqlx::query(
        "insert into contact_numbers as n (company_id, number, contact_id, until) values ($1, $2, $3, $4)
         on conflict (company_id, number, contact_id) do update set until = excluded.until
         where n.until is null and coalesce(n.since, excluded.until) <= excluded.until",
    );
    with_timeout(end.bind(company).bind(number).bind(contact).bind(at).execute(db)).await?;
    Ok(())
}

/// Makes a number that a merge has ended current again, because the contact writes from it: replies go there from now
/// on. The number that was current until now counts as ended by the merge, so that it can become current again in the
/// same way.
pub(super) async fn use_merged_number(
    db: &mut PgConnection,
    company: CompanyId,
    contact: &ContactRef,
    number_and_country: (&str, Option<&str>),
) -> Result<()> {
    set_number(&mut *db, company, contact, number_and_country, crate::clock::now()).await?;
    let merged = sqlx::query(
        "update contact_numbers set merged = true where company_id = $1 and contact_id = $2 and number = $3 and not merged",
    );
    with_timeout(merged.bind(company).bind(contact.id).bind(contact.number.as_deref()).execute(db)).await?;
    Ok(())
}

/// Gives a contact a number that is free, and whose lock is held. The contact's former number still finds it.
pub(super) async fn set_number(
    db: &mut PgConnection,
    company: CompanyId,
    contact: &ContactRef,
    (number, country): (&str, Option<&str>),
    at: DateTime<Utc>,
) -> Result<()> {
    let current = contact.number.as_deref();
    if current.is_some_and(|current| phone_numbers::is_same(current, number)) {
        return Ok(());
    }
    let spellings = phone_numbers::spellings(number);
    // Whether a later change is known: to the contact's current number, or away from the new one.
    let later = sqlx::query_scalar(
        "select exists (select from contact_numbers where company_id = $1 and contact_id = $2
             and (number = any ($3) and until >= $4 or number = $5 and until is null and since > $4))",
    );
    let is_outdated: bool =
        with_timeout(later.bind(company).bind(contact.id).bind(&spellings).bind(at).bind(current).fetch_one(&mut *db))
            .await?;
    if is_outdated {
        return Ok(());
    }
    if let Some(current) = current {
        end_number(&mut *db, company, contact.id, current, at).await?;
    }
    let update = sqlx::query(
        "update contacts set number = $3, number_country = $4, name = case when name = number then $3 else name end,
             updated_at = now() where company_id = $1 and id = $2",
    );
    let update = update.bind(company).bind(contact.id).bind(number).bind(country);
    let updated = with_timeout(update.execute(&mut *db)).await;
    updated.map_err(crate::table::map_constraint(super::super::write::UNIQUE))?;
    let begin = sqlx::query(
        "insert into contact_numbers (company_id, number, contact_id, since) values ($1, $2, $3, $4)
         on conflict (company_id, number, contact_id) do update set since = excluded.since, until = null",
    );
    with_timeout(begin.bind(company).bind(number).bind(contact.id).bind(at).execute(db)).await?;
    Ok(())
}
