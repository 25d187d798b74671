//! Operations common to all plain tables: finding, listing, writing and deleting a row.
//!
//! A noun (a kind of record) declares its specifics in its [`Table`]: columns, unique values and searched texts. A
//! noun's other statements are in its own file.

mod columns;
mod expected;
mod filter;
mod links;
mod ordered;
mod unique;

use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Encode, FromRow, PgConnection, PgExecutor, Postgres, Type};
use utoipa::ToSchema;

pub use columns::Columns;
pub use expected::{Expected, state_of};
pub use filter::{Filter, Span};
pub use links::Links;
pub use ordered::{Ordered, all_of, lock_all_of, lock_order, next_position, reorder};
pub use unique::{Unique, map_constraint};

use crate::document;
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::timestamp::Timestamp;
use crate::{CompanyId, Database, Error, Id, Result};

/// A table whose rows belong to one company and have one typed id.
pub trait Table: for<'r> FromRow<'r, PgRow> + Send + Unpin {
    /// Its name.
    const NAME: &'static str;
    /// The noun for one of its records.
    const NOUN: &'static str;
    /// The selected columns, and expressions that may name the table.
    const COLUMNS: &'static str = "*";
    /// Values that no two records of a company share.
    const UNIQUE: &'static [Unique] = &[];
    /// Folded texts that a search covers, as their indexes store them: each word must occur in one of them.
    const SEARCH: &'static [&'static str] = &[];
    /// The columns a list is sorted by; together they are unique within a company.
    const ORDER: &'static [&'static str] = &["id"];
    /// The type of its id.
    type Id: Copy + Send + for<'q> Encode<'q, Postgres> + Type<Postgres> + 'static;
}

/// When a record was created and changed last: columns of every plain table, fields of every noun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stamps {
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Stamps {
    /// Stamps of a record created at that time and unchanged since.
    pub fn of(created_at: Timestamp) -> Self {
        Self { created_at, updated_at: created_at }
    }
}

/// A reference to a record, by id and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Named<I> {
    pub id: I,
    #[schema(example = "Support")]
    pub name: String,
}

/// The start of a statement that reads rows.
fn select<T: Table>() -> String {
    format!("select {} from {}", T::COLUMNS, T::NAME)
}

/// One row, or `None`.
pub async fn find<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, id: T::Id) -> Result<Option<T>> {
    let statement = format!("{} where company_id = $1 and id = $2", select::<T>());
    let found = with_timeout(sqlx::query(AssertSqlSafe(statement)).bind(company).bind(id).fetch_optional(db)).await?;
    Ok(found.as_ref().map(document::read).transpose()?)
}

/// Whether the row exists.
pub async fn exists<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, id: T::Id) -> Result<bool> {
    exists_in(db, T::NAME, company, id).await
}

async fn exists_in<'q>(
    db: impl PgExecutor<'_>,
    table: &str,
    company: CompanyId,
    id: impl Encode<'q, Postgres> + Type<Postgres> + 'q,
) -> Result<bool> {
    let statement = format!("select exists (select from {table} where company_id = $1 and id = $2)");
    with_timeout(sqlx::query_scalar(AssertSqlSafe(statement)).bind(company).bind(id).fetch_one(db)).await
}

/// A page of rows.
///
/// # Errors
/// [`Error::NotFound`] when the company has no record that the filter refers to.
pub async fn list<T: Table>(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &Filter,
    page: PageRequest,
) -> Result<Page<T>> {
    filter.check_references(db, company).await?;
    let list = Select::new(&select::<T>(), "company_id", company).any_contains(T::SEARCH, filter.search.as_deref());
    filter.apply(list).page_by(db, T::ORDER, page).await
}

/// Creates a row. Columns that are not given get the table's defaults.
///
/// # Errors
/// [`Error::Taken`] when a unique value is taken; [`Error::NotFound`] when the company has no record that the row
/// refers to.
pub async fn insert<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, columns: &Columns) -> Result<T> {
    let (table, names) = (T::NAME, columns.appended_names());
    let statement = format!(
        "insert into {table} (company_id{names})
         select $1{names} from jsonb_populate_record(null::{table}, $2) returning {}",
        T::COLUMNS
    );
    let insert = sqlx::query(AssertSqlSafe(statement)).bind(company).bind(columns.to_value());
    let inserted = with_timeout(insert.fetch_one(db)).await.map_err(unique::map_taken::<T>(company, columns))?;
    Ok(document::read(&inserted)?)
}

/// SQL for the time of a change: always later than that of the previous change, so that no two states of a record have
/// the same `updated_at`.
pub(crate) const CHANGED_AT: &str = "greatest(now(), updated_at + interval '1 millisecond')";

/// Updates the given columns. If they have these values already, nothing changes, not even `updated_at`.
///
/// # Errors
/// As [`insert`], and [`Error::NotFound`] when the row does not exist.
pub async fn update<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, id: T::Id, columns: &Columns) -> Result<T> {
    let (table, names) = (T::NAME, columns.appended_names());
    let is_changed = if columns.is_empty() {
        "false".to_owned()
    } else {
        format!("row({}) is distinct from row({})", columns.names_of(table), columns.names_of("x"))
    };
    let statement = format!(
        "update {table} set (updated_at{names}) = (
             select case when {is_changed} then greatest(now(), {table}.updated_at + interval '1 millisecond')
                 else {table}.updated_at end{}
             from jsonb_populate_record(null::{table}, $3) x)
         where company_id = $1 and id = $2 returning {}",
        columns.appended_names_of("x"),
        T::COLUMNS
    );
    let update = sqlx::query(AssertSqlSafe(statement)).bind(company).bind(id).bind(columns.to_value());
    let updated = with_timeout(update.fetch_optional(db)).await.map_err(unique::map_taken::<T>(company, columns))?;
    Ok(document::read(&updated.ok_or(Error::NotFound(T::NOUN))?)?)
}

/// Updates `updated_at` of a record after only its links have changed.
pub async fn touch<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, id: T::Id) -> Result<()> {
    let statement = format!("update {} set updated_at = {CHANGED_AT} where company_id = $1 and id = $2", T::NAME);
    with_timeout(sqlx::query(AssertSqlSafe(statement)).bind(company).bind(id).execute(db)).await?;
    Ok(())
}

/// Whether a company has at least `count` rows of a table. A concurrent call for the same table and company waits until
/// the caller's transaction ends, so that together they do not exceed a limit.
///
/// The name becomes part of a statement, so it must come from the code.
pub async fn has_at_least(db: &mut PgConnection, company: CompanyId, table: &'static str, count: i64) -> Result<bool> {
    let lock = sqlx::query("select pg_advisory_xact_lock(hashtextextended($1 || ':' || $2::text, 0))");
    with_timeout(lock.bind(table).bind(company).execute(&mut *db)).await?;
    let statement = format!("select exists (select from {table} where company_id = $1 offset $2 - 1)");
    with_timeout(sqlx::query_scalar(AssertSqlSafe(statement)).bind(company).bind(count).fetch_one(db)).await
}

/// Maximum count of the records that block a change: a larger count would not help the caller.
pub const COUNTED_MAX: i64 = 10_000;

/// How many rows of a table refer to a record by a column, at most [`COUNTED_MAX`].
///
/// The names become part of a statement, so they must come from the code.
pub async fn count_referring<N>(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    (table, column): (&'static str, &'static str),
    id: Id<N>,
) -> Result<i64> {
    let statement = format!(
        "select count(*) from (select from {table} where company_id = $1 and {column} = $2 limit {COUNTED_MAX}) counted"
    );
    with_timeout(sqlx::query_scalar(AssertSqlSafe(statement)).bind(company).bind(id).fetch_one(db)).await
}

/// Deletes one row.
///
/// # Errors
/// [`Error::NotFound`] when the row does not exist; [`Error::InUse`] when others refer to it.
pub async fn remove<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, id: T::Id) -> Result<()> {
    let statement = format!("delete from {} where company_id = $1 and id = $2", T::NAME);
    match with_timeout(sqlx::query(AssertSqlSafe(statement)).bind(company).bind(id).execute(db)).await {
        Ok(removed) if removed.rows_affected() == 0 => Err(Error::NotFound(T::NOUN)),
        Ok(_) => Ok(()),
        Err(Error::Database(error)) if unique::is_foreign_key(&error) => Err(Error::InUse),
        Err(error) => Err(error),
    }
}
