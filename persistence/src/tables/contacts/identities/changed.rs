//! What a provider says of somebody's keys: another number, another id.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::found::find;
use super::{Address, ContactRef, IdentityKind, Keys, add_address, lock, suggest, watch};
use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Database, Result, phone_numbers};

/// A person has other keys from now on.
#[derive(Clone, Copy, Debug)]
pub struct IdentityChange<'a> {
    pub old: Keys<'a>,
    pub new: Keys<'a>,
    /// The country of the new number, ISO 3166-1 alpha-2.
    pub country: Option<&'a str>,
    /// When it happened. A change that arrives after a later one of the same contact changes nothing.
    pub at: DateTime<Utc>,
}

/// Applies a change to the contact of its keys, and returns it; `None` when nobody has any of them. If two contacts have them,
/// both get a suggestion to merge them.
pub async fn change(
    db: impl Database<'_>,
    company: CompanyId,
    change: &IdentityChange<'_>,
) -> Result<Option<ContactId>> {
    let IdentityChange { old, new, country, at } = *change;
    let mut transaction = db.transaction().await?;
    let connection = transaction.connection()?;
    let mut keys = old.locks();
    keys.extend(new.locks());
    lock(connection, company, keys).await?;
    let (of_old, of_new) = (find(&mut *connection, company, &old).await?, find(&mut *connection, company, &new).await?);
    // A number that somebody had before is free for its next owner.
    let owner = of_new.by_address.as_ref().or(of_new.by_number.as_ref());
    let contact = match (of_old.any(), owner) {
        (None, None) => return Ok(None),
        (Some(one), Some(other)) if one.id != other.id => {
            let key = match (new.number, new.address) {
                (Some(number), _) => (IdentityKind::Number, number),
                (None, Some(address)) => (address.kind, address.value),
                (None, None) => return Ok(None),
            };
            suggest(connection, company, [one.id, other.id], key).await?;
            let id = one.id;
            transaction.commit().await?;
            return Ok(Some(id));
        }
        (Some(contact), _) | (None, Some(contact)) => contact.clone(),
    };
    let tracker = watch(&mut *connection, company, &[contact.id]).await?.identified();
    end_old(connection, company, contact.id, &old, &new, at).await?;
    if let Some(address) = new.address {
        add_address(&mut *connection, company, contact.id, address, at).await?;
    }
    if let Some(number) = new.number {
        set_number(&mut *connection, company, &contact, (number, country), at).await?;
    }
    tracker.record(connection, &[contact.id]).await?;
    transaction.commit().await?;
    Ok(Some(contact.id))
}

/// Ends the old keys that have a successor: they find the contact still.
async fn end_old(
    db: &mut PgConnection,
    company: CompanyId,
    contact: ContactId,
    old: &Keys<'_>,
    new: &Keys<'_>,
    at: DateTime<Utc>,
) -> Result<()> {
    if let Some((Address { channel, value, kind }, _)) =
        old.address.zip(new.address).filter(|(old, new)| old.value != new.value)
    {
        let end = sqlx::query(
            "insert into contact_addresses as a (company_id, channel_id, address, contact_id, kind, created_at, until)
             values ($1, $2, $3, $4, $5, $6, $6)
             on conflict (company_id, channel_id, address) do update set until = excluded.until
             where a.contact_id = excluded.contact_id and a.until is null
               -- The provider's clock may be behind.
               and a.created_at <= excluded.until + interval '10 minutes'",
        );
        let end = end.bind(company).bind(channel).bind(value).bind(contact).bind(kind).bind(at);
        with_timeout(end.execute(&mut *db)).await.map_err(crate::table::map_constraint(&[]))?;
    }
    match old.number.zip(new.number).filter(|(old, new)| !phone_numbers::is_same(old, new)) {
        Some((number, _)) => end_number(db, company, contact, number, at).await,
        None => Ok(()),
    }
}

/// A contact had this number until then.
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
         where n.until is null and coalesce(n.since, excluded.until) <= excluded.until + interval '10 minutes'",
    );
    with_timeout(end.bind(company).bind(number).bind(contact).bind(at).execute(db)).await?;
    Ok(())
}

/// Gives a contact a number that is free, and whose lock is held. Its former number finds it still.
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
    // A later change is known: of the contact's current number, or away from this one.
    let later = sqlx::query_scalar(
        "select exists (select from contact_numbers where company_id = $1 and contact_id = $2
             and (number = any ($3) and until >= $4 or number = $5 and until is null and since > $4 + interval '10 minutes'))",
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
