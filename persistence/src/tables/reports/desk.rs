//! The service desk as it is now.

use chrono::{DateTime, Utc};
use sqlx::FromRow;

use crate::error::with_timeout;
use crate::{CompanyId, Database, QueueId, Result, TicketId, UserId};

/// The open tickets of one queue and user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
#[allow(missing_docs)]
pub struct OpenTickets {
    pub queue_id: Option<QueueId>,
    pub user_id: Option<UserId>,
    pub open: i64,
    /// Those of them in which the contact waits for the company.
    pub waiting: i64,
    /// Since when the longest of them waits.
    pub waiting_since: Option<DateTime<Utc>>,
}

/// The open tickets of a company, by queue and user.
///
/// # Errors
/// When the database cannot answer.
pub async fn open_tickets(db: impl Database<'_>, company: CompanyId) -> Result<Vec<OpenTickets>> {
    with_timeout(
        sqlx::query_as(
            "select queue_id, user_id, count(*) as open, count(waiting_since) as waiting,
                 min(waiting_since) as waiting_since
             from tickets where company_id = $1 and status = 'open' group by queue_id, user_id",
        )
        .bind(company)
        .fetch_all(db.heavy()),
    )
    .await
}

/// An open ticket, and where it is.
#[derive(Clone, Copy, Debug, FromRow)]
#[allow(missing_docs)]
pub struct OpenTicket {
    pub id: TicketId,
    pub queue_id: Option<QueueId>,
    pub user_id: Option<UserId>,
    pub waiting_since: Option<DateTime<Utc>>,
}

/// Each open ticket of a company, as far as there are no more than `limit`.
///
/// # Errors
/// When the database cannot answer.
pub async fn each_open(db: impl Database<'_>, company: CompanyId, limit: i64) -> Result<Vec<OpenTicket>> {
    with_timeout(
        sqlx::query_as(
            "select id, queue_id, user_id, waiting_since from tickets
             where company_id = $1 and status = 'open' limit $2",
        )
        .bind(company)
        .bind(limit)
        .fetch_all(db.heavy()),
    )
    .await
}
