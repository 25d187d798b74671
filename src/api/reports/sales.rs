//! Sales of a period: cards that were won or lost.

use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::tables::boards::Board;
use hotline_persistence::tables::reports::sales::{self, SalesFigures, SalesGroup, SalesGrouping};
use hotline_persistence::{Amount, BoardId, table};
use serde::Serialize;
use utoipa::ToSchema;

use super::period::PeriodQuery;
use super::report::Row;
use super::{Report, ReportKey};
use crate::api::boards;
use crate::app::App;
use crate::web::request::params::QueryParams;
use crate::web::{ApiError, ApiResult, Caller, Filter, Params};

/// Won and lost cards by day, user, origin or product. For a product, values are the totals of its lines.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SalesReportRow {
    pub key: Option<ReportKey>,
    /// The day, or the record's name; `null` if there is none.
    #[schema(example = "2026-01-31")]
    pub label: Option<String>,
    #[schema(example = 4)]
    pub won_cards: i64,
    pub won_value: Amount,
    #[schema(example = 2)]
    pub lost_cards: i64,
    pub lost_value: Amount,
}

impl SalesReportRow {
    fn of(key: Option<ReportKey>, label: Option<String>, figures: SalesFigures) -> Self {
        let SalesFigures { won_cards, won_value, lost_cards, lost_value } = figures;
        Self { key, label, won_cards, won_value, lost_cards, lost_value }
    }
}

impl Row for SalesReportRow {
    const COLUMNS: &'static [&'static str] = &["key", "label", "wonCards", "wonValue", "lostCards", "lostValue"];
}

/// The query: the period, a board, and the grouping.
pub struct SalesReportQuery {
    period: PeriodQuery,
    board: Option<BoardId>,
    grouping: SalesGrouping,
}

impl Filter for SalesReportQuery {
    fn read(query: &mut Params) -> Self {
        let (period, board) = (PeriodQuery::read(query), query.filter("boardId"));
        Self { period, board, grouping: query.filter("groupBy").unwrap_or(SalesGrouping::Day) }
    }
}

/// `GET /reports/sales`.
pub async fn report(
    caller: Caller,
    app: Data<App>,
    query: QueryParams<SalesReportQuery>,
) -> ApiResult<Report<SalesReportRow>> {
    let SalesReportQuery { period, board, grouping } = query.0;
    let (company, period) = (caller.company, period.resolve(&caller, clock::now())?);
    let db = app.db(company);
    let visible_boards = boards::visible_boards(&caller, &app, board).await?;
    let visible_boards = visible_boards.as_deref();
    if let Some(board) = board
        && !table::exists::<Board>(db, company, board).await?
    {
        return Err(ApiError::not_found());
    }
    if grouping == SalesGrouping::Day {
        let mut figures = sales::by_day(db, company, visible_boards, period.quarter_hours, &period.bounds()).await?;
        let row = |(index, day): (usize, String)| {
            let figures = figures.remove(&index).unwrap_or_default();
            SalesReportRow::of(Some(ReportKey::Word(day.clone())), Some(day), figures)
        };
        return Ok(period.days().map(row).collect::<Vec<_>>().into());
    }
    let groups = sales::by_key(db, company, grouping, visible_boards, period.quarter_hours).await?;
    let row = |group: SalesGroup| SalesReportRow::of(group.key.map(ReportKey::Id), group.name, group.figures);
    Ok(groups.into_iter().map(row).collect::<Vec<_>>().into())
}
