//! Many contacts at once, in a handful of statements.
//!
//! Each looks its rows up by their keys, one after the other: what an import reads grows with its rows, and never with
//! the contacts the company, or another one, has. `offset 0` keeps a look-up from being joined in any other way.

use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

use super::write::{COLUMNS, UNIQUE};
use crate::error::with_timeout;
use crate::table::{Columns, map_constraint};
use crate::tables::tags::TagId;
use crate::{CompanyId, ContactId, Result};

/// A contact that a row of an import may mean.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct Candidate {
    pub id: ContactId,
    pub number: Option<String>,
    pub email: Option<String>,
    pub code: Option<String>,
}

/// Contacts of one statement: with the largest import, some 2 MiB of JSON, which take the thread that writes them a few
/// milliseconds.
const WRITTEN_AT_ONCE: usize = 100;

/// Imports of one company take turns: two of them would wait for each other's numbers in a circle.
///
/// # Errors
/// When the database cannot answer.
pub async fn take_turn(db: &mut PgConnection, company: CompanyId) -> Result<()> {
    // What an import changes it finds by key. A join of another kind reads all the company has first, and whether that
    // is little only the statistics say.
    let by_key = "select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
        set_config('enable_seqscan', 'off', true)";
    with_timeout(sqlx::query(by_key).execute(&mut *db)).await?;
    with_timeout(
        sqlx::query("select pg_advisory_xact_lock(hashtextextended('contacts_import:' || $1, 0))")
            .bind(company.to_string())
            .execute(db),
    )
    .await?;
    Ok(())
}

/// Every contact with one of these numbers, e-mails (in lower case) or codes, by id. Until the transaction ends
/// nobody else changes them.
///
/// # Errors
/// When the database cannot answer.
pub async fn candidates(
    db: &mut PgConnection,
    company: CompanyId,
    numbers: &[&str],
    emails: &[String],
    codes: &[&str],
) -> Result<Vec<Candidate>> {
    with_timeout(
        sqlx::query_as(
            // Rows are locked in one order by all.
            "select c.id, c.number, c.email, c.code from (
                 select distinct x.id from (
                     select y.id from (select distinct unnest($2) as text) said cross join lateral (
                         select id from contacts where company_id = $1 and number = said.text offset 0) y
                     union all select y.id from (select distinct unnest($3) as text) said cross join lateral (
                         select id from contacts where company_id = $1 and lower(email) = said.text offset 0) y
                     union all select y.id from (select distinct unnest($4) as text) said cross join lateral (
                         select id from contacts where company_id = $1 and code = said.text offset 0) y) x
                 order by x.id) found
             cross join lateral (select id, number, email, code from contacts
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

/// Those of these tags that exist. None of them goes until the transaction ends.
///
/// # Errors
/// When the database cannot answer.
pub async fn known_tags(db: &mut PgConnection, company: CompanyId, tags: &[TagId]) -> Result<Vec<TagId>> {
    with_timeout(
        sqlx::query_scalar(
            "select t.id from (select distinct unnest($2) as id order by 1) said
             cross join lateral (select id from tags where company_id = $1 and id = said.id offset 0 for key share) t
             order by t.id",
        )
        .bind(company)
        .bind(tags)
        .fetch_all(db),
    )
    .await
}

/// Ids for as many new contacts, in ascending order.
///
/// # Errors
/// When the database cannot answer.
pub async fn take_ids(db: &mut PgConnection, count: usize) -> Result<Vec<ContactId>> {
    let ids = sqlx::query_scalar(
        "select nextval(pg_get_serial_sequence('contacts', 'id')) from generate_series(1, $1) order by 1",
    );
    with_timeout(ids.bind(i64::try_from(count).unwrap_or(i64::MAX)).fetch_all(db)).await
}

/// Creates contacts under ids that were taken for them.
///
/// # Errors
/// [`crate::Error::Taken`] when a number is.
pub async fn insert_all(db: &mut PgConnection, company: CompanyId, contacts: &[(ContactId, Columns)]) -> Result<()> {
    let sql = format!(
        "insert into contacts (company_id, id, {COLUMNS}) overriding system value select $1, new_id, {COLUMNS}
         from unnest($2::bigint[], $3::jsonb[]) as x (new_id, columns),
             jsonb_populate_record(null::contacts, '{{\"is_group\": false, \"marketing_opt_out\": false}}' || columns)
         order by new_id"
    );
    write(db, company, sql, contacts).await
}

/// Takes their numbers from contacts, which [`candidates`] has locked: they are where they are found.
///
/// # Errors
/// When the database cannot answer.
pub async fn clear_numbers(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let cleared = sqlx::query(
        "update contacts c set number = null from unnest($2) as x (cleared_id)
         cross join lateral (
             select ctid as place from contacts where company_id = $1 and id = x.cleared_id offset 0) held
         where c.ctid = held.place",
    );
    with_timeout(cleared.bind(company).bind(ids).execute(db)).await?;
    Ok(())
}

/// Changes contacts, each as far as is given; they are locked, as with [`clear_numbers`].
///
/// # Errors
/// [`crate::Error::Taken`] when a number is.
pub async fn update_all(db: &mut PgConnection, company: CompanyId, contacts: &[(ContactId, Columns)]) -> Result<()> {
    let sql = format!(
        "update contacts c set updated_at = now(),
             ({COLUMNS}) = (select {COLUMNS} from jsonb_populate_record(c, x.columns))
         from unnest($2::bigint[], $3::jsonb[]) as x (changed_id, columns)
         cross join lateral (
             select ctid as place from contacts where company_id = $1 and id = x.changed_id offset 0) held
         where c.ctid = held.place"
    );
    write(db, company, sql, contacts).await
}

async fn write(
    db: &mut PgConnection,
    company: CompanyId,
    sql: String,
    contacts: &[(ContactId, Columns)],
) -> Result<()> {
    for contacts in contacts.chunks(WRITTEN_AT_ONCE) {
        let (ids, columns): (Vec<ContactId>, Vec<Value>) =
            contacts.iter().map(|(id, columns)| (*id, columns.to_value())).unzip();
        let written = sqlx::query(AssertSqlSafe(sql.as_str())).bind(company).bind(ids).bind(columns);
        with_timeout(written.execute(&mut *db)).await.map_err(map_constraint(UNIQUE))?;
    }
    Ok(())
}
