//! Reads the figures of tickets, messages and wrap-ups. A period is composed of quarters of an hour at both ends and
//! UTC days in between. Figures by local day use only quarters, since the days of every time zone consist of whole
//! quarters.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{AssertSqlSafe, FromRow};

use super::{Dimension, start_of_day};
use crate::error::with_timeout;
use crate::{CompanyId, Database, Period, QueueId, Result, WrapupTypeId};

/// Figures that are summed per day, or per key of a [`Dimension`] (a record or a type).
pub trait Figures: for<'r> FromRow<'r, sqlx::postgres::PgRow> + Send + Unpin {
    /// The table.
    const TABLE: &'static str;
    /// The columns that are summed.
    const COLUMNS: &'static [&'static str];
}

/// Ticket figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct TicketFigures {
    pub opened: i64,
    pub closed: i64,
    pub reopened: i64,
    /// Tickets that a contact opened, and that the company answered for the first time.
    pub answered: i64,
    /// Total milliseconds from opening to first answer.
    pub answer_ms: i64,
    /// Total milliseconds from opening to closing.
    pub resolution_ms: i64,
}

impl Figures for TicketFigures {
    const TABLE: &'static str = "report_tickets";
    const COLUMNS: &'static [&'static str] =
        &["opened", "closed", "reopened", "answered", "answer_ms", "resolution_ms"];
}

/// Message figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct MessageFigures {
    pub inbound: i64,
    pub outbound: i64,
    pub failed: i64,
}

impl Figures for MessageFigures {
    const TABLE: &'static str = "report_messages";
    const COLUMNS: &'static [&'static str] = &["inbound", "outbound", "failed"];
}

#[derive(FromRow)]
struct Row<K, F: Figures> {
    key: K,
    #[sqlx(flatten)]
    figures: F,
}

fn sum_columns<F: Figures>() -> String {
    F::COLUMNS.iter().map(|column| format!(", sum({column})::bigint as {column}")).collect()
}

/// The figures per day: `days` contains the start of each day, and finally the end of the last one. Days without
/// figures are missing; a day is identified by its index in `days`.
pub async fn by_day<F: Figures>(
    db: impl Database<'_>,
    company: CompanyId,
    period: Period,
    days: &[DateTime<Utc>],
) -> Result<HashMap<usize, F>> {
    let statement = format!(
        "select width_bucket(at, $4) as key{} from {}
         where company_id = $1 and dimension = 'company' and grain = 'quarter' and at >= $2 and at < $3 group by 1",
        sum_columns::<F>(),
        F::TABLE,
    );
    let rows: Vec<Row<i32, F>> = with_timeout(
        sqlx::query_as(AssertSqlSafe(statement))
            .bind(company)
            .bind(period.from)
            .bind(period.to)
            .bind(days)
            .fetch_all(db.heavy()),
    )
    .await?;
    // Bucket 1 starts at the first bound.
    let with_index = |row: Row<i32, F>| Some((usize::try_from(row.key).ok()?.checked_sub(1)?, row.figures));
    Ok(rows.into_iter().filter_map(with_index).collect())
}

/// The parts of a period: quarters before the first whole day, whole days, quarters after the last one.
struct PeriodParts {
    before: Period,
    days: Period,
    after: Period,
}

impl PeriodParts {
    fn of(period: Period) -> Self {
        let begin = start_of_day(period.from);
        let first = if begin < period.from { begin + TimeDelta::days(1) } else { begin };
        let last = start_of_day(period.to);
        if first >= last {
            let empty = Period { from: period.to, to: period.to };
            return Self { before: period, days: empty, after: empty };
        }
        Self {
            before: Period { from: period.from, to: first },
            days: Period { from: first, to: last },
            after: Period { from: last, to: period.to },
        }
    }

    /// In the order of the statements' parameters.
    fn bounds(&self) -> [DateTime<Utc>; 6] {
        [self.before.from, self.before.to, self.days.from, self.days.to, self.after.from, self.after.to]
    }
}

/// Condition for rows of any part of a period; its bounds are the third to eighth parameters of the statement.
const IN_PARTS: &str = "(grain = 'quarter' and at >= $3 and at < $4
    or grain = 'day' and at >= $5 and at < $6
    or grain = 'quarter' and at >= $7 and at < $8)";

/// The figures per key of a dimension; the key is empty for rows without one.
pub async fn by_key<F: Figures>(
    db: impl Database<'_>,
    company: CompanyId,
    dimension: Dimension,
    period: Period,
) -> Result<Vec<(String, F)>> {
    let statement = format!(
        "select key{} from {} where company_id = $1 and dimension = $2 and {IN_PARTS} group by key",
        sum_columns::<F>(),
        F::TABLE,
    );
    let mut query = sqlx::query_as(AssertSqlSafe(statement)).bind(company).bind(dimension);
    for bound in PeriodParts::of(period).bounds() {
        query = query.bind(bound);
    }
    let rows: Vec<Row<String, F>> = with_timeout(query.fetch_all(db.heavy())).await?;
    Ok(rows.into_iter().map(|row| (row.key, row.figures)).collect())
}

/// The total figures of a period.
pub async fn total<F: Figures + Default>(db: impl Database<'_>, company: CompanyId, period: Period) -> Result<F> {
    Ok(by_key(db, company, Dimension::Company, period).await?.pop().map(|(_, figures)| figures).unwrap_or_default())
}

/// Number of tickets closed with a wrap-up type.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct WrapupFigures {
    pub wrapup_type_id: WrapupTypeId,
    /// `None` if the type was deleted.
    pub category_id: Option<crate::tables::wrapup_categories::WrapupCategoryId>,
    /// The type's name, or its last one if it was deleted.
    pub name: Option<String>,
    pub count: i64,
}

/// The wrap-up types with which tickets of one queue, or of all, were closed, in the order of their ids.
pub async fn wrapups(
    db: impl Database<'_>,
    company: CompanyId,
    queue: Option<QueueId>,
    period: Period,
) -> Result<Vec<WrapupFigures>> {
    let statement = format!(
        "select c.wrapup_type_id, c.count, t.category_id, coalesce(t.name, l.label) as name
         from (select wrapup_type_id, sum(count)::bigint as count from report_wrapups
             where company_id = $1 and ($2::bigint is null or queue_id = $2) and {IN_PARTS}
             group by wrapup_type_id having sum(count) > 0) c
         left join wrapup_types t on t.company_id = $1 and t.id = c.wrapup_type_id
         left join report_labels l on l.company_id = $1 and l.dimension = 'wrapup' and l.key = c.wrapup_type_id
         order by c.wrapup_type_id"
    );
    let mut query = sqlx::query_as(AssertSqlSafe(statement)).bind(company).bind(queue);
    for bound in PeriodParts::of(period).bounds() {
        query = query.bind(bound);
    }
    with_timeout(query.fetch_all(db.heavy())).await
}

/// The last names of a dimension's deleted records.
pub async fn labels(db: impl Database<'_>, company: CompanyId, dimension: Dimension) -> Result<HashMap<i64, String>> {
    let labels: Vec<(i64, String)> = with_timeout(
        sqlx::query_as("select key, label from report_labels where company_id = $1 and dimension = $2")
            .bind(company)
            .bind(dimension)
            .fetch_all(db),
    )
    .await?;
    Ok(labels.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap_or_default()
    }

    #[test]
    fn a_period_consists_of_whole_days_and_quarters_around_them() {
        let parts = |from, to| PeriodParts::of(Period { from: at(from), to: at(to) }).bounds();
        let [a, b, c, d, e, f] = ["05T22:15", "06T00:00", "06T00:00", "09T00:00", "09T00:00", "09T03:45"]
            .map(|text| at(&format!("2026-03-{text}:00Z")));
        assert_eq!(parts("2026-03-05T22:15:00Z", "2026-03-09T03:45:00Z"), [a, b, c, d, e, f]);
        assert_eq!(parts("2026-03-06T00:00:00Z", "2026-03-09T00:00:00Z"), [b, b, c, d, d, d]);
        let short = parts("2026-03-05T22:15:00Z", "2026-03-06T03:45:00Z");
        assert_eq!(short[..2], [a, at("2026-03-06T03:45:00Z")], "quarters only, without a whole day");
        assert!(short[2..].windows(2).all(|bounds| bounds[0] == bounds[1]), "{short:?}");
    }
}
