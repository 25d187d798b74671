//! Queues and who works in them. Plain.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgExecutor};

use super::words;
use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::table::{Table, Unique, explain, explain_taken};
use crate::{CompanyId, Database, Error, QueueId, Result, UserId};

words! {
    /// Who of a queue's active users gets its new tickets: nobody, each in turn, or who has the fewest open ones.
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

impl Table for QueueRow {
    const NAME: &'static str = "queues";
    const SELECT: &'static str = "select * from queues";
    type Id = QueueId;
}

const UNIQUE: Unique = Unique {
    constraint: "queues_company_id_name_key",
    field: "name",
    holder: "select id from queues where company_id = $1 and name = $2",
};

/// What the list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct QueueFilter {
    pub search: Option<String>,
    pub active: Option<bool>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// What is written of a queue beside its name. A new one takes the table's defaults for what is not given.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct QueueFields<'a> {
    pub color: Option<&'a str>,
    /// `Some(None)` clears it.
    pub greeting: Option<Option<&'a str>>,
    pub distribution: Option<Distribution>,
    pub wrapup_required: Option<bool>,
    pub active: Option<bool>,
}

/// A page of queues.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &QueueFilter,
    page: Page,
) -> Result<Listed<QueueRow>> {
    Select::new(QueueRow::SELECT, "company_id", company)
        .contains("hotline_fold(name)", filter.search.as_deref())
        .equals("active", filter.active)
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// Creates a queue.
///
/// # Errors
/// [`Error::Taken`] when the name is.
pub async fn insert(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    name: &str,
    fields: QueueFields<'_>,
) -> Result<QueueRow> {
    within(
        sqlx::query_as(
            "insert into queues (company_id, name, color, greeting, distribution, wrapup_required, active)
             values ($1, $2, coalesce($3, '#64748b'), $4, coalesce($5, 'manual'), coalesce($6, false),
                 coalesce($7, true))
             returning *",
        )
        .bind(company)
        .bind(name)
        .bind(fields.color)
        .bind(fields.greeting.flatten())
        .bind(fields.distribution.map(Distribution::as_str))
        .bind(fields.wrapup_required)
        .bind(fields.active)
        .fetch_one(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, Some(name)))
}

/// Changes what is given.
///
/// # Errors
/// [`Error::NotFound`] when there is no such queue; [`Error::Taken`] when the name is.
pub async fn update(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: QueueId,
    name: Option<&str>,
    fields: QueueFields<'_>,
) -> Result<QueueRow> {
    within(
        sqlx::query_as(
            "update queues set name = coalesce($3, name), color = coalesce($4, color),
                 greeting = case when $5 then $6 else greeting end,
                 distribution = coalesce($7, distribution),
                 wrapup_required = coalesce($8, wrapup_required),
                 active = coalesce($9, active),
                 updated_at = now()
             where company_id = $1 and id = $2 returning *",
        )
        .bind(company)
        .bind(id)
        .bind(name)
        .bind(fields.color)
        .bind(fields.greeting.is_some())
        .bind(fields.greeting.flatten())
        .bind(fields.distribution.map(Distribution::as_str))
        .bind(fields.wrapup_required)
        .bind(fields.active)
        .fetch_optional(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, name))?
    .ok_or(Error::NotFound("queue"))
}

/// Makes a user an agent of a queue; being one already is no error.
///
/// # Errors
/// [`Error::NotFound`] when one of them is not the company's.
pub async fn add_user(db: impl PgExecutor<'_>, company: CompanyId, queue: QueueId, user: UserId) -> Result<()> {
    let add = sqlx::query(
        "insert into queue_users (company_id, queue_id, user_id) values ($1, $2, $3) on conflict do nothing",
    );
    within(add.bind(company).bind(queue).bind(user).execute(db)).await.map_err(explain(&[]))?;
    Ok(())
}

/// Ends a user's work in a queue; one who does not work there is no error.
///
/// # Errors
/// When the database cannot answer.
pub async fn remove_user(db: impl PgExecutor<'_>, company: CompanyId, queue: QueueId, user: UserId) -> Result<()> {
    let remove = sqlx::query("delete from queue_users where company_id = $1 and queue_id = $2 and user_id = $3");
    within(remove.bind(company).bind(queue).bind(user).execute(db)).await?;
    Ok(())
}
