//! Wrap-ups of a period.

use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::tables::reports::{self, WrapupFigures};
use hotline_persistence::tables::wrapup_categories::WrapupCategoryId;
use hotline_persistence::{QueueId, WrapupTypeId};
use serde::Serialize;
use utoipa::ToSchema;

use super::Report;
use super::period::PeriodQuery;
use super::report::Row;
use crate::app::App;
use crate::web::request::params::QueryParams;
use crate::web::{ApiResult, Caller, Filter, Params};

/// Closings with a wrap-up type.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrapupReportRow {
    pub wrapup_type_id: WrapupTypeId,
    #[schema(example = "Solved")]
    pub name: Option<String>,
    /// The category; `null` if the type has been deleted.
    pub category_id: Option<WrapupCategoryId>,
    /// Number of closings with this type; of a ticket that was reopened, with the type it had then.
    #[schema(example = 30)]
    pub count: i64,
    /// Share of the closings with a wrap-up type, from 0 to 1, to four decimals.
    #[schema(example = 0.6)]
    pub share: f64,
}

impl Row for WrapupReportRow {
    const COLUMNS: &'static [&'static str] = &["wrapupTypeId", "name", "categoryId", "count", "share"];
}

/// The query: the period and a queue.
pub struct WrapupReportQuery {
    period: PeriodQuery,
    queue: Option<QueueId>,
}

impl Filter for WrapupReportQuery {
    fn read(query: &mut Params) -> Self {
        Self { period: PeriodQuery::read(query), queue: query.filter("queueId") }
    }
}

/// `GET /reports/wrapups`.
pub async fn report(
    caller: Caller,
    app: Data<App>,
    query: QueryParams<WrapupReportQuery>,
) -> ApiResult<Report<WrapupReportRow>> {
    let WrapupReportQuery { period, queue } = query.0;
    caller.check_queue(queue)?;
    let period = period.resolve(&caller, clock::now())?;
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let rows = reports::wrapups(db, caller.company, queue, period.quarter_hours).await?;
    let total: i64 = rows.iter().map(|row| row.count).sum();
    Ok(rows.into_iter().map(|row| with_share(row, total)).collect::<Vec<_>>().into())
}

#[allow(clippy::cast_precision_loss)] // A float is exact for more tickets than a company closes.
fn with_share(row: WrapupFigures, total: i64) -> WrapupReportRow {
    let WrapupFigures { wrapup_type_id, category_id, name, count } = row;
    let share = (count as f64 / total as f64 * 10_000.0).round() / 10_000.0;
    WrapupReportRow { wrapup_type_id, name, category_id, count, share }
}
