//! Bulk import of contacts in a handful of statements.
//!
//! Each statement looks up its rows by key, one after the other: the cost of an import grows with its own rows, never
//! with the number of contacts of a company. The `offset 0` in the statements prevents other join methods.

use std::collections::HashMap;

use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

use super::identities;
use super::write::{COLUMNS, UNIQUE};
use crate::error::with_timeout;
use crate::table::{Columns, map_constraint};
use crate::tables::tags::TagId;
use crate::{CompanyId, ContactId, Result, phone_numbers};

/// An existing contact that matches a row of an import.
#[derive(Clone, Debug, FromRow)]
pub struct Candidate {
    pub id: ContactId,
    pub number: Option<String>,
    /// In lower case, as [`lower_case`] returns it.
    pub email: Option<String>,
    pub code: Option<String>,
}

/// Contacts per statement: in the largest import about 2 MiB of JSON, whose serialization occupies its thread for a few
/// milliseconds.
const CONTACTS_PER_STATEMENT: usize = 100;

/// Locks a company against other imports until the transaction ends: two concurrent ones could deadlock on each other's
/// numbers. Also sets planner options for the transaction's later statements.
pub async fn begin_import(db: &mut PgConnection, company: CompanyId) -> Result<()> {
    // An import finds the rows it changes by key. Other join methods would read all contacts of the company first, and
    // the planner knows only from statistics whether those are few.
    let planner = "select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
        set_config('enable_seqscan', 'off', true)";
    with_timeout(sqlx::query(planner).execute(&mut *db)).await?;
    with_timeout(
        sqlx::query("select pg_advisory_xact_lock(hashtextextended('contacts_import:' || $1, 0))")
            .bind(company.to_string())
            .execute(db),
    )
    .await?;
    Ok(())
}

/// The lower case of each of these texts by PostgreSQL, whose index of e-mails has it: it depends on the locale, and
/// differs from Rust's.
pub async fn lower_case(db: &mut PgConnection, texts: &[&str]) -> Result<HashMap<String, String>> {
    let select = sqlx::query_as("select x.text, lower(x.text) from (select distinct unnest($1::text[]) as text) x");
    let pairs: Vec<(String, String)> = with_timeout(select.bind(texts).fetch_all(db)).await?;
    Ok(pairs.into_iter().collect())
}

/// Locks and returns every contact with one of these numbers (in any spelling), e-mails (in any case) or codes, by id.
/// No other transaction can change them until this one ends.
pub async fn lock_candidates(
    db: &mut PgConnection,
    company: CompanyId,
    numbers: &[&str],
    emails: &[&str],
    codes: &[&str],
) -> Result<Vec<Candidate>> {
    identities::lock_keys(&mut *db, company, numbers.iter().map(|number| identities::number_key(number))).await?;
    let numbers: Vec<String> = numbers.iter().flat_map(|number| phone_numbers::spellings(number)).collect();
    with_timeout(
        sqlx::query_as(
            // Rows are locked in the same order everywhere.
            "select c.id, c.number, c.email, c.code from (
                 select distinct x.id from (
                     select y.id from (select distinct unnest($2::text[]) as text) wanted cross join lateral (
                         select id from contacts where company_id = $1 and number = wanted.text offset 0) y
                     union all select y.id from (select distinct unnest($3::text[]) as text) wanted cross join lateral (
                         select id from contacts where company_id = $1 and lower(email) = lower(wanted.text) offset 0) y
                     union all select y.id from (select distinct unnest($4::text[]) as text) wanted cross join lateral (
                         select id from contacts where company_id = $1 and code = wanted.text offset 0) y) x
                 order by x.id) found
             cross join lateral (select id, number, lower(email) as email, code from contacts
                 where company_id = $1 and id = found.id offset 0 for no key update) c
             order by c.id",
        )
        .bind(company)
        .bind(numbers)
        .bind(emails)
        .bind(codes)
        .fetch_all(db),
    )
    .await
}

/// Locks these tags against deletion until the transaction ends; returns those that exist.
pub async fn lock_existing_tags(db: &mut PgConnection, company: CompanyId, tags: &[TagId]) -> Result<Vec<TagId>> {
    with_timeout(
        sqlx::query_scalar(
            "select t.id from (select distinct unnest($2::bigint[]) as id order by 1) wanted
             cross join lateral (select id from tags where company_id = $1 and id = wanted.id offset 0 for key share) t
             order by t.id",
        )
        .bind(company)
        .bind(tags)
        .fetch_all(db),
    )
    .await
}

/// Reserves ids for new contacts, in ascending order.
pub async fn reserve_ids(db: &mut PgConnection, count: usize) -> Result<Vec<ContactId>> {
    let ids = sqlx::query_scalar(
        "select nextval(pg_get_serial_sequence('contacts', 'id')) from generate_series(1, $1) order by 1",
    );
    with_timeout(ids.bind(i64::try_from(count).unwrap_or(i64::MAX)).fetch_all(db)).await
}

/// Creates contacts under reserved ids.
///
/// # Errors
/// [`crate::Error::Taken`] when a number is taken.
pub async fn insert_all(db: &mut PgConnection, company: CompanyId, contacts: &[(ContactId, Columns)]) -> Result<()> {
    let sql = format!(
        "insert into contacts (company_id, id, {COLUMNS}) overriding system value select $1, new_id, {COLUMNS}
         from unnest($2::bigint[], $3::jsonb[]) as x (new_id, columns),
             jsonb_populate_record(null::contacts, '{{\"is_group\": false, \"marketing_opt_out\": false}}' || columns)
         order by new_id"
    );
    execute_in_chunks(db, company, sql, contacts).await
}

/// Clears the numbers of contacts. [`lock_candidates`] must have locked them: rows are updated by their location, which
/// a concurrent update would change.
pub async fn clear_numbers(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let update = sqlx::query(
        "update contacts c set number = null from unnest($2::bigint[]) as x (cleared_id)
         cross join lateral (
             select ctid as place from contacts where company_id = $1 and id = x.cleared_id offset 0) held
         where c.ctid = held.place",
    );
    with_timeout(update.bind(company).bind(ids).execute(db)).await?;
    Ok(())
}

/// Updates columns of contacts, locked as for [`clear_numbers`]. [`super::ContactTracker::record`] sets `updated_at` of
/// those that have changed.
///
/// # Errors
/// [`crate::Error::Taken`] when a number is taken.
pub async fn update_all(db: &mut PgConnection, company: CompanyId, contacts: &[(ContactId, Columns)]) -> Result<()> {
    let sql = format!(
        "update contacts c set
             ({COLUMNS}) = (select {COLUMNS} from jsonb_populate_record(c, x.columns))
         from unnest($2::bigint[], $3::jsonb[]) as x (changed_id, columns)
         cross join lateral (
             select ctid as place from contacts where company_id = $1 and id = x.changed_id offset 0) held
         where c.ctid = held.place"
    );
    execute_in_chunks(db, company, sql, contacts).await
}

/// Runs a statement for [`CONTACTS_PER_STATEMENT`] contacts at a time, and binds their ids and columns.
async fn execute_in_chunks(
    db: &mut PgConnection,
    company: CompanyId,
    sql: String,
    contacts: &[(ContactId, Columns)],
) -> Result<()> {
    for chunk in contacts.chunks(CONTACTS_PER_STATEMENT) {
        let (ids, columns): (Vec<ContactId>, Vec<Value>) =
            chunk.iter().map(|(id, columns)| (*id, columns.to_value())).unzip();
        let statement = sqlx::query(AssertSqlSafe(sql.as_str())).bind(company).bind(ids).bind(columns);
        with_timeout(statement.execute(&mut *db)).await.map_err(map_constraint(UNIQUE))?;
    }
    Ok(())
}
