//! The handlers of plain nouns, whose records are rows of a table that SQL reads and writes.
//!
//! A noun defines its row in its [`Table`], and its fields here in its [`Plain`]. A noun with special needs for one
//! verb implements that handler itself and uses the others.

mod blockers;
mod body;
mod filters;

use actix_web::web::Data;
use futures_util::future::Either;
use hotline_actors::{Conflict, FieldError, Refusal};
use hotline_persistence::table::{self, Columns, Table};
use hotline_persistence::tables::cascades::{self, Cascade};
use hotline_persistence::{CompanyId, Db};
use serde::Serialize;
use sqlx::PgConnection;
use utoipa::ToSchema;

pub use blockers::DeletionBlocker;
pub use body::{BodyColumns, Change, FIXED, New};
pub use filters::{Filters, ListFilter, PlainFilter};

use super::directory::refresh_after;
use crate::app::App;
use crate::web::request::params::PathValue;
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Idempotency, Json, NoContent, Page, PathId, Query};

/// A noun of the API that is a row of a table. The row is also the response.
pub trait Plain: Table<Id: PathValue> + Serialize + ToSchema + 'static {
    /// Whether the directory contains the records: then the response to a change waits until the directory has it.
    const IS_IN_DIRECTORY: bool = false;

    /// Maximum number of a company's records in the directory, which is in memory and read whole after each change.
    const IN_DIRECTORY_MAX: i64 = 1_000;

    /// The fields of the bodies of `POST` and `PUT`; errors are reported in this order. Empty for a noun that is
    /// read-only or reads its bodies itself.
    fn fields(_: &mut BodyColumns<'_, '_>) {}

    /// The cascade of a deletion, if other records show the deleted one: they change too.
    fn cascade(_: Self::Id) -> Option<Cascade> {
        None
    }

    /// The filters of the list, besides the search and the time spans.
    fn filters(_: &mut Filters<'_>) {}
}

/// The noun with its article: `article` is `A` or `a`.
pub fn with_article(article: &str, noun: &str) -> String {
    let n = if noun.starts_with(['a', 'e', 'i', 'o']) { "n" } else { "" };
    format!("{article}{n} {noun}")
}

/// `GET` of the list.
pub async fn list<T: Plain>(caller: Caller, app: Data<App>, query: Query<PlainFilter<T>>) -> ApiResult<Page<T>> {
    let rows = table::list(app.db(caller.company), caller.company, &query.filter.filter, query.page).await?;
    Ok(Page::of(query.page, rows, |row| row))
}

/// `GET` of one record.
pub async fn show<T: Plain>(caller: Caller, app: Data<App>, id: PathId<T::Id>) -> ApiResult<Json<T>> {
    let row: Option<T> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Json::of(row.ok_or_else(ApiError::not_found)?))
}

/// `POST`.
pub async fn create<T: Plain>(
    caller: Caller,
    app: Data<App>,
    body: Body<New<T>>,
    idempotency: Idempotency,
) -> ApiResult<Created<T>> {
    let columns = body.0.columns;
    let insert = idempotency.transaction(app.db(caller.company), async |db| {
        check_count::<T>(&mut *db, caller.company).await?;
        Ok(Created::of(table::insert::<T>(db, caller.company, &columns).await?))
    });
    run_change::<T, _>(&app, &caller, insert).await
}

/// Checks that one more record can be in the directory.
///
/// # Errors
/// `409` with the limit.
pub async fn check_count<T: Plain>(db: &mut PgConnection, company: CompanyId) -> ApiResult<()> {
    if !T::IS_IN_DIRECTORY || !table::has_at_least(db, company, T::NAME, T::IN_DIRECTORY_MAX).await? {
        return Ok(());
    }
    let state = "the company has reached its maximum number of these records";
    Err(Refusal::Conflict(Conflict::used_by(state, "limit", [(T::NOUN, T::IN_DIRECTORY_MAX)])).into())
}

/// `PUT`.
pub async fn update<T: Plain>(
    caller: Caller,
    app: Data<App>,
    id: PathId<T::Id>,
    body: Body<Change<T>>,
    idempotency: Idempotency,
) -> ApiResult<Json<T>> {
    let Change { columns, fixed, .. } = body.0;
    let update = idempotency.transaction(app.db(caller.company), async |db| {
        check_fixed::<T>(&mut *db, caller.company, id.0, &fixed).await?;
        Ok(Json::of(table::update::<T>(db, caller.company, id.0, &columns).await?))
    });
    run_change::<T, _>(&app, &caller, update).await
}

/// Checks that the fixed fields in a change, if any, have the record's current values.
///
/// # Errors
/// `422` naming each field that differs; `404` when there is no such record.
pub async fn check_fixed<T: Plain>(
    db: &mut PgConnection,
    company: CompanyId,
    id: T::Id,
    fixed: &Columns,
) -> ApiResult<()> {
    if fixed.is_empty() {
        return Ok(());
    }
    let row: T = table::find(db, company, id).await?.ok_or_else(ApiError::not_found)?;
    let current = serde_json::to_value(row).map_err(ApiError::internal)?;
    let differs = fixed.fields().filter(|(field, value)| current.get(field) != Some(*value));
    let errors = differs.map(|(field, _)| FieldError { field: field.to_owned(), reason: FIXED.to_owned() });
    let errors: Vec<FieldError> = errors.collect();
    if errors.is_empty() { Ok(()) } else { Err(ApiError::validation(&errors)) }
}

/// `DELETE`.
pub async fn remove<T: Plain>(caller: Caller, app: Data<App>, id: PathId<T::Id>) -> ApiResult<NoContent> {
    let remove = async {
        match T::cascade(id.0) {
            Some(cascade) => {
                let (db, company) = (app.db(caller.company), caller.company);
                let remove = async |db: &mut PgConnection| Ok(table::remove::<T>(db, company, id.0).await?);
                remove_referenced(db, company, cascade, remove).await?;
                app.engine.cascades.begin(company, cascade).await;
            }
            None => table::remove::<T>(app.db(caller.company), caller.company, id.0).await?,
        }
        Ok(NoContent)
    };
    run_change::<T, _>(&app, &caller, remove).await
}

/// Deletes a record that other records show. If a company has only a few records of a kind, this transaction also
/// changes those that show the deleted one. `Cascades::begin` changes the others: before the response if they are few,
/// else after it.
///
/// # Errors
/// `404` when there is no such record, or the error of `remove`; nothing has changed then.
pub async fn remove_referenced(
    db: Db<'_>,
    company: CompanyId,
    cascade: Cascade,
    remove: impl AsyncFnOnce(&mut PgConnection) -> ApiResult<()>,
) -> ApiResult<()> {
    let mut transaction = db.begin().await?;
    let connection = transaction.connection()?;
    // The others are locked before this record, as by a change that makes them show it: another order could deadlock.
    cascades::remove_references_at_once(&mut *connection, company, cascade).await?;
    let shown_values =
        cascades::lock_record(&mut *connection, company, cascade).await?.ok_or_else(ApiError::not_found)?;
    // Again, for records that began to show this one before it was locked.
    cascades::remove_references_at_once(&mut *connection, company, cascade).await?;
    remove(&mut *connection).await?;
    cascades::record_deletion(connection, company, cascade, &shown_values).await?;
    Ok(transaction.commit().await?)
}

/// Runs a change. If the directory contains such records, returns once the directory used for decisions has the change.
fn run_change<T: Plain, R>(
    app: &App,
    caller: &Caller,
    change: impl Future<Output = ApiResult<R>>,
) -> impl Future<Output = ApiResult<R>> {
    if T::IS_IN_DIRECTORY { Either::Left(refresh_after(app, caller.company, change)) } else { Either::Right(change) }
}
