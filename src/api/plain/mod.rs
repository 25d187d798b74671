//! The handlers of a plain noun: one that is a row of a table, read and written by SQL.
//!
//! A noun says what is its own in two places: its row in its [`Table`], and its fields here in its [`Plain`]. One that
//! needs more for a verb writes that handler itself and keeps the others.

mod body;
mod filters;
mod kept;

use actix_web::web::Data;
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

/// A noun of the API that is a row of a table. The row is what is answered.
pub trait Plain: Table<Id: PathValue> + Serialize + ToSchema + 'static {
    /// Whether the directory holds it: then a change is answered once the directory has it.
    const IS_IN_DIRECTORY: bool = false;

    /// The fields of both bodies, in the order in which what is wrong with them is named. A noun that is only read, or
    /// reads its bodies itself, has none here.
    fn fields(_: &mut BodyColumns<'_, '_>) {}

    /// What the list is narrowed by, beside a search and times.
    fn filters(_: &mut Filters<'_>) {}
}

/// What a record is called, with its article: `article` is one `A` or `a`.
pub fn with_article(article: &str, noun: &str) -> String {
    let n = if noun.starts_with(['a', 'e', 'i', 'o']) { "n" } else { "" };
    format!("{article}{n} {noun}")
}

/// `GET` of all.
pub async fn list<T: Plain>(caller: Caller, app: Data<App>, query: Query<PlainFilter<T>>) -> ApiResult<Page<T>> {
    let rows = table::list(app.db(caller.company), caller.company, &query.filter.filter, query.page).await?;
    Ok(Page::of(query.page, rows, |row| row))
}

/// `GET` of one.
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

/// A change, answered once the directory that decisions use has it.
async fn settled<T: Plain, R>(app: &App, caller: &Caller, change: impl Future<Output = ApiResult<R>>) -> ApiResult<R> {
    if T::IS_IN_DIRECTORY { changed(app, caller.company, change).await } else { change.await }
}
