//! What is the same for every plain table: finding a row and removing it. Inserts and updates never are.

use serde::Deserialize;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Encode, FromRow, PgExecutor, Postgres, Type};

use crate::document;
use crate::error::within;
use crate::error::{Holder, Taken};
use crate::{CompanyId, Error, Result};

/// A table whose rows belong to one company and are addressed by one typed id.
pub trait Table: for<'r> FromRow<'r, PgRow> + Send + Unpin {
    /// Its name.
    const NAME: &'static str;
    /// Everything a row is made of: a `select … from …` of the table under its own name.
    const SELECT: &'static str;
    /// The type of its id.
    type Id: Copy + Send + for<'q> Encode<'q, Postgres> + Type<Postgres> + 'static;
}

/// Another record, by id and name, as a row has it embedded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub struct Named<I> {
    pub id: I,
    pub name: String,
}

/// One row, or none.
///
/// # Errors
/// When the database cannot answer.
pub async fn find<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, id: T::Id) -> Result<Option<T>> {
    let statement = format!("{} where {name}.company_id = $1 and {name}.id = $2", T::SELECT, name = T::NAME);
    let found = within(sqlx::query(AssertSqlSafe(statement)).bind(company).bind(id).fetch_optional(db)).await?;
    Ok(found.as_ref().map(document::read).transpose()?)
}

/// Whether there is such a row.
///
/// # Errors
/// When the database cannot answer.
pub async fn exists<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, id: T::Id) -> Result<bool> {
    let statement = format!("select exists (select from {} where company_id = $1 and id = $2)", T::NAME);
    within(sqlx::query_scalar(AssertSqlSafe(statement)).bind(company).bind(id).fetch_one(db)).await
}

/// Removes one row.
///
/// # Errors
/// [`Error::NotFound`] when there is no such row; [`Error::InUse`] when others refer to it.
pub async fn remove<T: Table>(db: impl PgExecutor<'_>, company: CompanyId, id: T::Id) -> Result<()> {
    let statement = format!("delete from {} where company_id = $1 and id = $2", T::NAME);
    match within(sqlx::query(AssertSqlSafe(statement)).bind(company).bind(id).execute(db)).await {
        Ok(removed) if removed.rows_affected() == 0 => Err(Error::NotFound(T::NAME)),
        Ok(_) => Ok(()),
        Err(Error::Database(error)) if is_foreign_key(&error) => Err(Error::InUse),
        Err(error) => Err(error),
    }
}

fn is_foreign_key(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_foreign_key_violation())
}

/// What a violated constraint means to the caller: `fields` names the field behind each unique one.
pub fn explain(fields: &'static [(&'static str, &'static str)]) -> impl Fn(Error) -> Error {
    move |error| match error {
        // What was named is gone since it was looked at.
        Error::Database(refused) if is_foreign_key(&refused) => Error::NotFound("record"),
        Error::Database(refused) => {
            let taken = fields.iter().map(|(constraint, field)| (*constraint, Error::Taken(Taken::from(*field))));
            Error::of_constraint(refused, taken)
        }
        error => error,
    }
}

/// A value that no two records of a company have.
#[derive(Debug)]
pub struct Unique {
    /// What PostgreSQL calls the rule.
    pub constraint: &'static str,
    /// The field the value is given in.
    pub field: &'static str,
    /// Finds the record that has it: `$1` is the company, `$2` the value.
    pub holder: &'static str,
}

/// The same as [`explain`] for a value that must be unique: the record that has it can be found.
pub fn explain_taken(unique: &'static Unique, company: CompanyId, value: Option<&str>) -> impl Fn(Error) -> Error {
    let holder = value.map(|value| Holder { statement: unique.holder, company, value: value.to_owned() });
    move |error| match explain(&[])(error) {
        Error::Database(refused) => {
            let taken = Taken { field: unique.field, holder: holder.clone() };
            Error::of_constraint(refused, [(unique.constraint, Error::Taken(taken))])
        }
        error => error,
    }
}
