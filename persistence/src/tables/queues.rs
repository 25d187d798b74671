//! Queues and who works in them. Plain.

use serde::Serialize;
use sqlx::{FromRow, PgExecutor};
use utoipa::ToSchema;

use super::words;
use crate::error::with_timeout;
use crate::table::{Stamps, Table, Unique, map_constraint};
use crate::{CompanyId, QueueId, Result, UserId};

words! {
    /// Who of a queue's active users gets its new tickets: nobody, each in turn, or who has the fewest open ones.
    Distribution { Manual = "manual", RoundRobin = "round_robin", LeastBusy = "least_busy" }
}

/// Where tickets wait for an agent.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Queue {
    pub id: QueueId,
    #[schema(example = "Support")]
    pub name: String,
    #[schema(example = "#64748b")]
    pub color: String,
    /// Sent when a contact opens a ticket in the queue.
    #[schema(example = "Hello, we are with you in a moment.")]
    pub greeting: Option<String>,
    /// How new tickets find an agent.
    pub distribution: Distribution,
    /// Whether a ticket is closed only with a wrap-up type.
    #[schema(example = true)]
    pub wrapup_required: bool,
    #[schema(example = true)]
    pub active: bool,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for Queue {
    const NAME: &'static str = "queues";
    const NOUN: &'static str = "queue";
    const UNIQUE: &'static [Unique] = &[Unique::new("queues_company_id_name_key", "name")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = QueueId;
}

/// Makes a user an agent of a queue; being one already is no error.
///
/// # Errors
/// [`crate::Error::NotFound`] when one of them is not the company's.
pub async fn add_user(db: impl PgExecutor<'_>, company: CompanyId, queue: QueueId, user: UserId) -> Result<()> {
    let add = sqlx::query(
        "insert into queue_users (company_id, queue_id, user_id) values ($1, $2, $3) on conflict do nothing",
    );
    with_timeout(add.bind(company).bind(queue).bind(user).execute(db)).await.map_err(map_constraint(&[]))?;
    Ok(())
}

/// Ends a user's work in a queue; one who does not work there is no error.
///
/// # Errors
/// When the database cannot answer.
pub async fn remove_user(db: impl PgExecutor<'_>, company: CompanyId, queue: QueueId, user: UserId) -> Result<()> {
    let remove = sqlx::query("delete from queue_users where company_id = $1 and queue_id = $2 and user_id = $3");
    with_timeout(remove.bind(company).bind(queue).bind(user).execute(db)).await?;
    Ok(())
}
