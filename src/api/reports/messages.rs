//! Messages of a period.

use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::tables::reports::{self, Dimension, MessageFigures, MessageGrouping};
use serde::Serialize;
use utoipa::ToSchema;

use super::period::PeriodQuery;
use super::report::Row;
use super::{Labels, Report, ReportKey, parse_ids, with_labels};
use crate::app::App;
use crate::web::request::params::QueryParams;
use crate::web::{ApiResult, Caller, Filter, Params};

/// Messages by day, channel, user or type. Notes are not counted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageReportRow {
    pub key: Option<ReportKey>,
    /// The day or the type, or the record's name; `null` if there is none.
    #[schema(example = "2026-01-31")]
    pub label: Option<String>,
    #[schema(example = 240)]
    pub inbound: i64,
    #[schema(example = 260)]
    pub outbound: i64,
    /// Failed outbound messages, counted when they were created.
    #[schema(example = 2)]
    pub failed: i64,
}

impl MessageReportRow {
    fn of(key: Option<ReportKey>, label: Option<String>, figures: MessageFigures) -> Self {
        let MessageFigures { inbound, outbound, failed } = figures;
        Self { key, label, inbound, outbound, failed }
    }
}

impl Row for MessageReportRow {
    const COLUMNS: &'static [&'static str] = &["key", "label", "inbound", "outbound", "failed"];
}

/// The query: the period and the grouping.
pub struct MessageReportQuery {
    period: PeriodQuery,
    grouping: MessageGrouping,
}

impl Filter for MessageReportQuery {
    fn read(query: &mut Params) -> Self {
        let period = PeriodQuery::read(query);
        Self { period, grouping: query.filter("groupBy").unwrap_or(MessageGrouping::Day) }
    }
}

/// `GET /reports/messages`.
pub async fn report(
    caller: Caller,
    app: Data<App>,
    query: QueryParams<MessageReportQuery>,
) -> ApiResult<Report<MessageReportRow>> {
    let MessageReportQuery { period, grouping } = query.0;
    let (company, period) = (caller.company, period.resolve(&caller, clock::now())?);
    let db = app.engine.reads().acknowledged_tables(company).await?;
    let dimension = match grouping {
        MessageGrouping::Day => {
            let mut figures = reports::by_day(db, company, period.quarter_hours, &period.bounds()).await?;
            let row = |(index, day): (usize, String)| {
                let figures = figures.remove(&index).unwrap_or_default();
                MessageReportRow::of(Some(ReportKey::Word(day.clone())), Some(day), figures)
            };
            return Ok(period.days().map(row).collect::<Vec<_>>().into());
        }
        MessageGrouping::Channel => Dimension::Channel,
        MessageGrouping::User => Dimension::User,
        MessageGrouping::Type => Dimension::Type,
    };
    let mut figures = reports::by_key(db, company, dimension, period.quarter_hours).await?;
    figures.retain(|(_, figures)| *figures != MessageFigures::default());
    if dimension == Dimension::Type {
        figures.sort_by(|(one, _), (other, _)| one.cmp(other));
        let row = |(kind, figures): (String, _)| {
            MessageReportRow::of(Some(ReportKey::Word(kind.clone())), Some(kind), figures)
        };
        return Ok(figures.into_iter().map(row).collect::<Vec<_>>().into());
    }
    let labels = Labels::of(db, &caller, dimension).await?;
    let row = |(key, label, figures)| MessageReportRow::of(key, label, figures);
    Ok(with_labels(parse_ids(figures), &labels).into_iter().map(row).collect::<Vec<_>>().into())
}
