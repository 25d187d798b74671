//! The identities of a contact that is merged into another.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{external_id_key, lock_keys, number_key};
use crate::error::with_timeout;
use crate::{ChannelId, CompanyId, ContactId, Result, phone_numbers};

/// Locks all keys of these contacts until the transaction ends: a message with one of these keys finds the contacts
/// either as they were, or merged.
pub(crate) async fn lock_contact_keys(db: &mut PgConnection, company: CompanyId, contacts: &[ContactId]) -> Result<()> {
    let numbers = sqlx::query_scalar(
        "select number from contacts where company_id = $1 and id = any ($2) and number is not null
         union select number from contact_numbers where company_id = $1 and contact_id = any ($2)",
    );
    let numbers: Vec<String> = with_timeout(numbers.bind(company).bind(contacts).fetch_all(&mut *db)).await?;
    let addresses = sqlx::query_as(
        "select channel_id, address from contact_addresses where company_id = $1 and contact_id = any ($2)",
    );
    let addresses: Vec<(ChannelId, String)> =
        with_timeout(addresses.bind(company).bind(contacts).fetch_all(&mut *db)).await?;
    let external_ids = sqlx::query_scalar(
        "select external_id from contacts where company_id = $1 and id = any ($2) and external_id is not null",
    );
    let external_ids: Vec<String> = with_timeout(external_ids.bind(company).bind(contacts).fetch_all(&mut *db)).await?;
    let numbers = numbers.iter().map(|number| number_key(number));
    let addresses = addresses.iter().map(|(channel, value)| super::address_key(*channel, value));
    let external_ids = external_ids.iter().map(|id| external_id_key(id));
    lock_keys(db, company, numbers.chain(addresses).chain(external_ids)).await
}

/// Contacts that are suggested for merging with this one.
pub(crate) async fn merge_candidates(
    db: &mut PgConnection,
    company: CompanyId,
    contact: ContactId,
) -> Result<Vec<ContactId>> {
    let others = sqlx::query_scalar(
        "select other_id from contact_merge_suggestions where company_id = $1 and contact_id = $2 order by other_id",
    );
    with_timeout(others.bind(company).bind(contact).fetch_all(db)).await
}

/// Moves the identities of the contact `from` to `into`. `adopted_number` is the number of `from` that becomes the
/// current one of `into`; another current number of `from` becomes a former one of `into`.
pub(crate) async fn move_identities(
    db: &mut PgConnection,
    company: CompanyId,
    (from, into): (ContactId, ContactId),
    adopted_number: Option<&str>,
    at: DateTime<Utc>,
) -> Result<()> {
    move_numbers(&mut *db, company, (from, into), adopted_number, at).await?;
    for statement in [
        "update contact_addresses set contact_id = $3 where company_id = $1 and contact_id = $2",
        "insert into contact_merge_suggestions (company_id, contact_id, other_id, kind, value, created_at)
         select company_id, $3::bigint, other_id, kind, value, created_at from contact_merge_suggestions
             where company_id = $1 and contact_id = $2 and other_id <> $3::bigint
         union all select company_id, other_id, $3::bigint, kind, value, created_at from contact_merge_suggestions
             where company_id = $1 and contact_id = $2 and other_id <> $3::bigint
         on conflict (company_id, contact_id, other_id) do nothing",
        // Suggestions are stored in pairs: this deletes the opposite of each suggestion of `from`.
        "delete from contact_merge_suggestions s using contact_merge_suggestions own
         where own.company_id = $1 and own.contact_id = $2 and s.company_id = own.company_id
             and s.contact_id in (own.other_id, $3) and s.other_id = own.contact_id",
    ] {
        with_timeout(sqlx::query(statement).bind(company).bind(from).bind(into).execute(&mut *db)).await?;
    }
    let delete = sqlx::query("delete from contact_merge_suggestions where company_id = $1 and contact_id = $2");
    with_timeout(delete.bind(company).bind(from).execute(db)).await?;
    Ok(())
}

async fn move_numbers(
    db: &mut PgConnection,
    company: CompanyId,
    (from, into): (ContactId, ContactId),
    adopted_number: Option<&str>,
    at: DateTime<Utc>,
) -> Result<()> {
    let current = sqlx::query_as(
        "select f.number, i.number from contacts f join contacts i on i.company_id = f.company_id and i.id = $3
         where f.company_id = $1 and f.id = $2",
    );
    let (from_number, into_number): (Option<String>, Option<String>) =
        with_timeout(current.bind(company).bind(from).bind(into).fetch_one(&mut *db)).await?;
    let moved = sqlx::query(
        "insert into contact_numbers (company_id, number, contact_id, since, until, merged)
         select company_id, number, $3::bigint, since, case when number = $4 then until else coalesce(until, $5) end,
             merged or until is null
         from contact_numbers where company_id = $1 and contact_id = $2
         on conflict (company_id, number, contact_id) do nothing",
    );
    let moved = moved.bind(company).bind(from).bind(into).bind(adopted_number).bind(at);
    with_timeout(moved.execute(&mut *db)).await?;
    let former = from_number.zip(into_number).filter(|(number, current)| !phone_numbers::is_same(number, current));
    if let Some((number, _)) = former {
        let end = sqlx::query(
            "insert into contact_numbers (company_id, number, contact_id, until, merged) values ($1, $2, $3, $4, true)
             on conflict (company_id, number, contact_id) do nothing",
        );
        with_timeout(end.bind(company).bind(number).bind(into).bind(at).execute(&mut *db)).await?;
    }
    let delete = sqlx::query("delete from contact_numbers where company_id = $1 and contact_id = $2");
    with_timeout(delete.bind(company).bind(from).execute(db)).await?;
    Ok(())
}
