//! Number of assigned tickets per user, counted on request.

use sqlx::{FromRow, Postgres, QueryBuilder};

use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::table::Span;
use crate::{CompanyId, Database, QueueId, Result, UserId};

/// A user with the number of their assigned tickets.
#[derive(Clone, Debug, FromRow)]
pub struct UserMetricsRow {
    pub user_id: UserId,
    pub user_name: String,
    /// Empty if the user has none.
    pub user_profile: String,
    /// Ids, comma-separated.
    pub queues: String,
    pub count_tickets: i64,
}

/// Filters for users and their tickets.
#[derive(Clone, Debug, Default)]
pub struct UserMetricsFilter {
    /// Only tickets opened in this period.
    pub opened: Span,
    /// Only the agents of this queue, and its tickets.
    pub queue_id: Option<QueueId>,
    pub user_id: Option<UserId>,
}

/// A page of users, each with the number of their assigned tickets.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &UserMetricsFilter,
    page: PageRequest,
) -> Result<Page<UserMetricsRow>> {
    let list = Select::with_query(statement_start(filter), "users.company_id", company)
        .equals("users.id", filter.user_id)
        .has_related(
            "select from queue_users m where m.company_id = users.company_id and m.user_id = users.id and m.queue_id",
            filter.queue_id,
        );
    with_timeout(list.page_of_subquery(db.heavy(), "users.id", page, ") users")).await
}

/// The start of the list's statement: a subquery finds the users of the page, so that only their tickets are counted.
/// The subquery is left open for the list's filters.
fn statement_start(filter: &UserMetricsFilter) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "select users.id, users.id as user_id, users.name as user_name,
            coalesce((select p.name from profiles p
                where p.company_id = users.company_id and p.id = users.profile_id), '') as user_profile,
            coalesce((select string_agg(m.queue_id::text, ',' order by m.queue_id) from queue_users m
                where m.company_id = users.company_id and m.user_id = users.id), '') as queues,
            (select count(*) from tickets t where t.company_id = users.company_id and t.user_id = users.id",
    );
    let (from, to) = filter.opened;
    if let Some(from) = from {
        query.push(" and t.opened_at >= ").push_bind(from);
    }
    if let Some(to) = to {
        query.push(" and t.opened_at <= ").push_bind(to);
    }
    if let Some(queue) = filter.queue_id {
        query.push(" and t.queue_id = ").push_bind(queue);
    }
    query.push(") as count_tickets from (select users.* from users");
    query
}
