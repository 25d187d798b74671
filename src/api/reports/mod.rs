//! Reports over a period, and dashboards of the current state. The persister counts the figures of conversations as
//! they happen; sales figures are computed from the cards.

mod dashboards;
mod messages;
mod period;
mod report;
mod sales;
mod tickets;
mod wrapups;

use std::collections::HashMap;

use hotline_persistence::tables::reports::{self, Dimension};
use hotline_persistence::{Db, UserId};
use serde::Serialize;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub use dashboards::{sales as show_sales_dashboard, service as show_service_dashboard};
pub use messages::report as report_messages;
pub use report::Report;
pub use sales::report as report_sales;
pub use tickets::report as report_tickets;
pub use wrapups::report as report_wrapups;

use crate::web::{ApiResult, Caller};

/// The key of a row: a day as `2026-01-31`, the id of a queue, channel, user, origin or product, or the type of
/// messages. The row of records that have no such value has no key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum ReportKey {
    /// The id of a record.
    Id(i64),
    /// A day, or a type of messages.
    Word(String),
}

impl PartialSchema for ReportKey {
    fn schema() -> RefOr<Schema> {
        let id = ObjectBuilder::new().schema_type(Type::Integer);
        let word = ObjectBuilder::new().schema_type(Type::String);
        OneOfBuilder::new().description(Some("The group of a row.")).item(id).item(word).into()
    }
}

impl ToSchema for ReportKey {}

/// The names of a dimension's records, including deleted ones.
struct Labels<'a> {
    caller: &'a Caller,
    dimension: Dimension,
    deleted_names: HashMap<i64, String>,
}

impl<'a> Labels<'a> {
    async fn of(db: Db<'_>, caller: &'a Caller, dimension: Dimension) -> ApiResult<Self> {
        Ok(Self { caller, dimension, deleted_names: reports::labels(db, caller.company, dimension).await? })
    }

    fn find(&self, id: i64) -> Option<String> {
        let organization = &self.caller.organization;
        let current_name = match self.dimension {
            Dimension::Queue => organization.queues.get(&id.into()).map(|queue| queue.row.name.as_str()),
            Dimension::Channel => organization.channels.get(&id.into()).map(|channel| channel.name.as_str()),
            Dimension::User => organization.user_name(UserId::new(id)),
            _ => None,
        };
        current_name.map(str::to_owned).or_else(|| self.deleted_names.get(&id).cloned())
    }
}

/// The key, the name and the figures of each row of a dimension, by id; the row without an id comes last.
fn with_labels<F>(figures: Vec<(Option<i64>, F)>, labels: &Labels<'_>) -> Vec<(Option<ReportKey>, Option<String>, F)> {
    let mut figures = figures;
    figures.sort_by_key(|(id, _)| (id.is_none(), *id));
    let row = |(id, figures): (Option<i64>, F)| (id.map(ReportKey::Id), id.and_then(|id| labels.find(id)), figures);
    figures.into_iter().map(row).collect()
}

/// Parses the keys of counted figures as ids.
fn parse_ids<F>(figures: Vec<(String, F)>) -> Vec<(Option<i64>, F)> {
    figures.into_iter().map(|(key, figures)| (key.parse().ok(), figures)).collect()
}

/// An average in seconds, to the millisecond; `None` when the count is 0.
#[allow(clippy::cast_precision_loss)] // A float is exact for sums of up to 285,000 years.
fn average_seconds(total_ms: i64, count: i64) -> Option<f64> {
    (count > 0).then(|| ((total_ms + count / 2) / count) as f64 / 1000.0)
}
