//! The handlers of plain nouns, whose records are rows of a table that SQL reads and writes.
//!
//! A noun defines its row in its [`Table`], and its fields here in its [`Plain`]. A noun with special needs for one
//! verb implements that handler itself and uses the others.

mod body;
mod filters;
mod kept;

use actix_web::web::Data;
use futures_util::future::Either;
use hotline_persistence::table::{self, Table};
use serde::Serialize;
use utoipa::ToSchema;

pub use body::{BodyColumns, Change, New};
pub use filters::{Filters, ListFilter, PlainFilter};
pub use kept::KeptBy;

use super::directory::changed;
use crate::app::App;
use crate::web::params::PathValue;
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Idempotency, Json, NoContent, Page, PathId, Query};

/// A noun of the API that is a row of a table. The row is also the response.
pub trait Plain: Table<Id: PathValue> + Serialize + ToSchema + 'static {
    /// Whether the directory contains it: then a change is answered once the directory has it.
    const IS_IN_DIRECTORY: bool = false;

    /// The fields of both bodies; errors are reported in this order. Empty for a noun that is read-only or reads its
    /// bodies itself.
    fn fields(_: &mut BodyColumns<'_, '_>) {}

    /// The filters of the list, besides the search and the time spans.
    fn filters(_: &mut Filters<'_>) {}
}

/// The noun with its article: `article` is one `A` or `a`.
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
    once: Idempotency,
) -> ApiResult<Created<T>> {
    let columns = body.0.columns;
    let insert = once.transaction(app.db(caller.company), async |db| {
        Ok(Created::of(table::insert::<T>(db, caller.company, &columns).await?))
    });
    settled::<T, _>(&app, &caller, insert).await
}

/// `PUT`.
pub async fn update<T: Plain>(
    caller: Caller,
    app: Data<App>,
    id: PathId<T::Id>,
    body: Body<Change<T>>,
    once: Idempotency,
) -> ApiResult<Json<T>> {
    let columns = body.0.columns;
    let update = once.transaction(app.db(caller.company), async |db| {
        Ok(Json::of(table::update::<T>(db, caller.company, id.0, &columns).await?))
    });
    settled::<T, _>(&app, &caller, update).await
}

/// `DELETE`.
pub async fn remove<T: Plain>(caller: Caller, app: Data<App>, id: PathId<T::Id>) -> ApiResult<NoContent> {
    let remove = async {
        table::remove::<T>(app.db(caller.company), caller.company, id.0).await?;
        Ok(NoContent)
    };
    settled::<T, _>(&app, &caller, remove).await
}

/// Runs a change, and returns once the directory used for decisions has it.
fn settled<T: Plain, R>(
    app: &App,
    caller: &Caller,
    change: impl Future<Output = ApiResult<R>>,
) -> impl Future<Output = ApiResult<R>> {
    if T::IS_IN_DIRECTORY { Either::Left(changed(app, caller.company, change)) } else { Either::Right(change) }
}
