//! The number of tickets of each user.

use actix_web::web::Data;
use hotline_persistence::UserId;
use hotline_persistence::tables::user_metrics::{self, UserMetricsFilter, UserMetricsRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Filter, Page, Params, Query};

/// Ticket metrics of a user.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserMetrics {
    pub user_id: UserId,
    #[schema(example = "Ana Souza")]
    pub user_name: String,
    /// Name of the user's profile; empty if there is none.
    #[schema(example = "Agent")]
    pub user_profile: String,
    /// Ids of the user's queues, comma-separated.
    #[schema(example = "7,8")]
    pub queues: String,
    /// Number of tickets assigned to the user.
    #[schema(example = 12)]
    pub count_tickets: i64,
}

impl From<UserMetricsRow> for UserMetrics {
    fn from(row: UserMetricsRow) -> Self {
        Self {
            user_id: row.user_id,
            user_name: row.user_name,
            user_profile: row.user_profile,
            queues: row.queues,
            count_tickets: row.count_tickets,
        }
    }
}

/// Filters: `from` and `to` are bounds of the tickets' opening times, `queueId` selects a queue's agents and its
/// tickets, `userId` one user.
pub struct Filters(UserMetricsFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(UserMetricsFilter {
            opened: (query.filter("from"), query.filter("to")),
            queue_id: query.filter("queueId"),
            user_id: query.filter("userId"),
        })
    }
}

/// `GET /users/metrics`.
pub async fn list_metrics(caller: Caller, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<UserMetrics>> {
    let filter = &query.filter.0;
    caller.check_queue(filter.queue_id)?;
    if filter.user_id.is_some_and(|id| !caller.organization.users.contains_key(&id)) {
        return Err(ApiError::not_found());
    }
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let rows = user_metrics::list(db, caller.company, filter, query.page).await?;
    Ok(Page::of(query.page, rows, UserMetrics::from))
}
