//! Many contacts at once, in a handful of statements.

use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

use super::ContactColumns;
use super::write::{COLUMNS, UNIQUE};
use crate::error::within;
use crate::table::explain;
use crate::{CompanyId, ContactId, Result, TagId};

/// A contact that a row of an import may mean.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct Candidate {
    pub id: ContactId,
    pub number: Option<String>,
    pub email: Option<String>,
    pub code: Option<String>,
}

/// Imports of one company take turns: two of them would wait for each other's numbers in a circle.
///
/// # Errors
/// When the database cannot answer.
pub async fn take_turn(db: &mut PgConnection, company: CompanyId) -> Result<()> {
    within(
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
    within(
        sqlx::query_as(
            "select id, number, email, code from contacts where company_id = $1 and id in (
                 select id from contacts where company_id = $1 and number = any ($2)
                 union all select id from contacts where company_id = $1 and lower(email) = any ($3)
                 union all select id from contacts where company_id = $1 and code = any ($4))
             order by id for no key update",
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
    within(
        sqlx::query_scalar("select id from tags where company_id = $1 and id = any ($2) order by id for key share")
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
    within(ids.bind(i64::try_from(count).unwrap_or(i64::MAX)).fetch_all(db)).await
}

/// Creates contacts under ids that were taken for them.
///
/// # Errors
/// [`crate::Error::Taken`] when a number is.
pub async fn insert_all(
    db: &mut PgConnection,
    company: CompanyId,
    contacts: &[(ContactId, ContactColumns)],
) -> Result<()> {
    let sql = format!(
        "insert into contacts (company_id, id, {COLUMNS}) overriding system value select $1, new_id, {COLUMNS}
         from unnest($2::bigint[], $3::jsonb[]) as x (new_id, columns),
             jsonb_populate_record(null::contacts, '{{\"is_group\": false}}' || columns)
         order by new_id"
    );
    write(db, company, sql, contacts).await
}

/// Takes their numbers from contacts.
///
/// # Errors
/// When the database cannot answer.
pub async fn clear_numbers(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let cleared = sqlx::query("update contacts set number = null where company_id = $1 and id = any ($2)");
    within(cleared.bind(company).bind(ids).execute(db)).await?;
    Ok(())
}

/// Changes contacts, each as far as is given.
///
/// # Errors
/// [`crate::Error::Taken`] when a number is.
pub async fn update_all(
    db: &mut PgConnection,
    company: CompanyId,
    contacts: &[(ContactId, ContactColumns)],
) -> Result<()> {
    let sql = format!(
        "update contacts c set updated_at = now(),
             ({COLUMNS}) = (select {COLUMNS} from jsonb_populate_record(c, x.columns))
         from unnest($2::bigint[], $3::jsonb[]) as x (changed_id, columns)
         where c.company_id = $1 and c.id = x.changed_id"
    );
    write(db, company, sql, contacts).await
}

async fn write(
    db: &mut PgConnection,
    company: CompanyId,
    sql: String,
    contacts: &[(ContactId, ContactColumns)],
) -> Result<()> {
    if contacts.is_empty() {
        return Ok(());
    }
    let (ids, columns): (Vec<ContactId>, Vec<Value>) =
        contacts.iter().map(|(id, columns)| (*id, columns.to_value())).unzip();
    within(sqlx::query(AssertSqlSafe(sql)).bind(company).bind(ids).bind(columns).execute(db))
        .await
        .map_err(explain(UNIQUE))?;
    Ok(())
}
