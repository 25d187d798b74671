//! Tickets of a period.

use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::tables::reports::{self, Dimension, TicketFigures, TicketGrouping};
use serde::Serialize;
use utoipa::ToSchema;

use super::period::PeriodQuery;
use super::report::Row;
use super::{Labels, Report, ReportKey, average_seconds, parse_ids, with_labels};
use crate::app::App;
use crate::web::request::params::QueryParams;
use crate::web::{ApiResult, Caller, Filter, Params};

/// Tickets by day, queue, channel or user.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TicketReportRow {
    pub key: Option<ReportKey>,
    /// The day, or the record's name; `null` if there is none.
    #[schema(example = "2026-01-31")]
    pub label: Option<String>,
    #[schema(example = 12)]
    pub opened: i64,
    #[schema(example = 11)]
    pub closed: i64,
    #[schema(example = 1)]
    pub reopened: i64,
    /// Average time from the opening or last reopening of a ticket to its first response (`firstResponseAt`). Only
    /// openings by contacts count, at the time of the response; failed messages, greetings, scheduled messages and
    /// campaigns are not responses. `null` if there are none.
    #[schema(example = 93.5)]
    pub avg_first_response_seconds: Option<f64>,
    /// Average time from the opening or last reopening of a ticket to its closing, counted at each closing. `null` if
    /// there are none.
    #[schema(example = 5400.0)]
    pub avg_resolution_seconds: Option<f64>,
}

impl TicketReportRow {
    fn of(key: Option<ReportKey>, label: Option<String>, figures: TicketFigures) -> Self {
        Self {
            key,
            label,
            opened: figures.opened,
            closed: figures.closed,
            reopened: figures.reopened,
            avg_first_response_seconds: average_seconds(figures.answer_ms, figures.answered),
            avg_resolution_seconds: average_seconds(figures.resolution_ms, figures.closed),
        }
    }
}

impl Row for TicketReportRow {
    const COLUMNS: &'static [&'static str] =
        &["key", "label", "opened", "closed", "reopened", "avgFirstResponseSeconds", "avgResolutionSeconds"];
}

/// The query: the period and the grouping.
pub struct TicketReportQuery {
    period: PeriodQuery,
    grouping: TicketGrouping,
}

impl Filter for TicketReportQuery {
    fn read(query: &mut Params) -> Self {
        let period = PeriodQuery::read(query);
        Self { period, grouping: query.filter("groupBy").unwrap_or(TicketGrouping::Day) }
    }
}

/// `GET /reports/tickets`.
pub async fn report(
    caller: Caller,
    app: Data<App>,
    query: QueryParams<TicketReportQuery>,
) -> ApiResult<Report<TicketReportRow>> {
    let TicketReportQuery { period, grouping } = query.0;
    let (company, period) = (caller.company, period.resolve(&caller, clock::now())?);
    let db = app.engine.reads().acknowledged_tables(company).await?;
    let dimension = match grouping {
        TicketGrouping::Day => {
            let mut figures = reports::by_day(db, company, period.quarter_hours, &period.bounds()).await?;
            let row = |(index, day): (usize, String)| {
                let figures = figures.remove(&index).unwrap_or_default();
                TicketReportRow::of(Some(ReportKey::Word(day.clone())), Some(day), figures)
            };
            return Ok(period.days().map(row).collect::<Vec<_>>().into());
        }
        TicketGrouping::Queue => Dimension::Queue,
        TicketGrouping::Channel => Dimension::Channel,
        TicketGrouping::User => Dimension::User,
    };
    let mut figures = reports::by_key(db, company, dimension, period.quarter_hours).await?;
    figures.retain(|(_, figures)| *figures != TicketFigures::default());
    let labels = Labels::of(db, &caller, dimension).await?;
    let row = |(key, label, figures)| TicketReportRow::of(key, label, figures);
    Ok(with_labels(parse_ids(figures), &labels).into_iter().map(row).collect::<Vec<_>>().into())
}
