//! The period of a report.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use hotline_actors::FieldError;
use hotline_persistence::tables::reports;

use crate::web::request::calendar::Zone;
use crate::web::{ApiError, ApiResult, Caller, Params};

/// Maximum number of days of a report: a leap year.
const DAYS_MAX: i64 = 366;

/// Default number of days of a report.
const DAYS_DEFAULT: i64 = 30;

/// The period in a query: `from`, `to` and `timeZone`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeriodQuery {
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    zone: Option<Zone>,
}

/// The period of a report.
#[derive(Debug)]
pub(super) struct Period {
    /// The quarter hours it covers.
    pub(super) quarter_hours: hotline_persistence::Period,
    /// The days of the period, with the time each begins.
    days: Vec<(NaiveDate, DateTime<Utc>)>,
}

impl PeriodQuery {
    pub(super) fn read(query: &mut Params) -> Self {
        Self { from: query.filter("from"), to: query.filter("to"), zone: query.filter("timeZone") }
    }

    /// Resolves the period. `to` defaults to now, or to `from` if that is later; `from` to
    /// [`DAYS_DEFAULT`] days before `to`.
    pub(super) fn resolve(self, caller: &Caller, now: DateTime<Utc>) -> ApiResult<Period> {
        let to = self.to.unwrap_or_else(|| now.max(self.from.unwrap_or(now)));
        let from = self.from.unwrap_or(to - TimeDelta::days(DAYS_DEFAULT));
        let invalid =
            |field: &str, reason: String| Err(ApiError::validation(&[FieldError { field: field.to_owned(), reason }]));
        if from > to {
            return invalid("to", "must not be before from".to_owned());
        }
        if to - from > TimeDelta::days(DAYS_MAX) {
            return invalid("from", format!("must be at most {DAYS_MAX} days before to"));
        }
        let zone = self.zone.unwrap_or_else(|| Zone::of_company(&caller.organization.company.time_zone));
        let quarter_hours = reports::widen_to_quarter_hours(from, to);
        Ok(Period { quarter_hours, days: zone.days(quarter_hours.from, quarter_hours.to) })
    }
}

impl Period {
    /// The start of each day, and the end of the period.
    pub(super) fn bounds(&self) -> Vec<DateTime<Utc>> {
        self.days.iter().map(|(_, begin)| *begin).chain([self.quarter_hours.to]).collect()
    }

    /// Each day with its index.
    pub(super) fn days(&self) -> impl Iterator<Item = (usize, String)> {
        self.days.iter().enumerate().map(|(index, (day, _))| (index, day.to_string()))
    }
}
