//! A company's currently open tickets, for overviews.

use chrono::{DateTime, Utc};
use sqlx::FromRow;

use crate::error::with_timeout;
use crate::{ChannelId, CompanyId, Database, QueueId, Result, TicketId, UserId};

/// The open tickets of one queue and user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct OpenTicketCounts {
    pub queue_id: Option<QueueId>,
    pub user_id: Option<UserId>,
    pub open: i64,
    /// The number of open tickets in which the contact waits for an answer.
    pub waiting: i64,
    /// When the longest of these waits began; `None` if no contact waits.
    pub waiting_since: Option<DateTime<Utc>>,
}

/// The numbers of a company's open tickets, by queue and user.
pub async fn open_ticket_counts(db: impl Database<'_>, company: CompanyId) -> Result<Vec<OpenTicketCounts>> {
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

/// An open ticket, with the columns that overviews count and list it by.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct OpenTicket {
    pub id: TicketId,
    pub queue_id: Option<QueueId>,
    pub user_id: Option<UserId>,
    pub channel_id: ChannelId,
    pub waiting_since: Option<DateTime<Utc>>,
    /// When it was opened or its last message was written, whichever is later.
    pub last_activity_at: DateTime<Utc>,
}

/// Which of these tickets are open.
pub async fn find_open(db: impl Database<'_>, company: CompanyId, tickets: &[TicketId]) -> Result<Vec<OpenTicket>> {
    select_open(db, company, TicketId::new(0), None, Some(tickets)).await
}

/// The first `limit` open tickets of a company after `after`, by id.
pub async fn open_page(
    db: impl Database<'_>,
    company: CompanyId,
    after: TicketId,
    limit: i64,
) -> Result<Vec<OpenTicket>> {
    select_open(db.heavy(), company, after, Some(limit), None).await
}

/// Open tickets after `after`; with `tickets`, only these.
async fn select_open(
    db: impl Database<'_>,
    company: CompanyId,
    after: TicketId,
    limit: Option<i64>,
    tickets: Option<&[TicketId]>,
) -> Result<Vec<OpenTicket>> {
    with_timeout(
        sqlx::query_as(
            "select id, queue_id, user_id, channel_id, waiting_since,
                 greatest(opened_at, (select created_at from messages
                     where company_id = t.company_id and id = t.last_message_id)) as last_activity_at
             from tickets t
             where company_id = $1 and status = 'open' and id > $2 and ($4::bigint[] is null or id = any ($4))
             order by id limit $3",
        )
        .bind(company)
        .bind(after)
        .bind(limit)
        .bind(tickets)
        .fetch_all(db),
    )
    .await
}
