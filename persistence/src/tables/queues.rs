//! Queues and who works in them. Plain.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgPool};

use super::words;
use crate::{CompanyId, QueueId, Result, UserId};

words! {
    /// How new tickets of a queue find an agent.
    Distribution { Manual = "manual", RoundRobin = "round_robin", LeastBusy = "least_busy" }
}

/// One queue as stored.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct QueueRow {
    pub id: QueueId,
    #[serde(skip)]
    pub company_id: CompanyId,
    pub name: String,
    pub color: String,
    pub greeting: Option<String>,
    pub distribution: Distribution,
    pub wrapup_required: bool,
    pub active: bool,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Creates a queue.
///
/// # Errors
/// When the database cannot answer or the name is taken.
pub async fn insert(db: &PgPool, company: CompanyId, name: &str, wrapup_required: bool) -> Result<QueueRow> {
    Ok(sqlx::query_as("insert into queues (company_id, name, wrapup_required) values ($1, $2, $3) returning *")
        .bind(company)
        .bind(name)
        .bind(wrapup_required)
        .fetch_one(db)
        .await?)
}

/// Makes a user an agent of a queue; being one already is no error.
///
/// # Errors
/// When the database cannot answer, or one of them is not the company's.
pub async fn add_user(db: &PgPool, company: CompanyId, queue: QueueId, user: UserId) -> Result<()> {
    sqlx::query("insert into queue_users (company_id, queue_id, user_id) values ($1, $2, $3) on conflict do nothing")
        .bind(company)
        .bind(queue)
        .bind(user)
        .execute(db)
        .await?;
    Ok(())
}
