//! Quick messages: answers a company keeps at hand, each under a shortcut. Plain.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::table::{Table, Unique, explain_taken};
use crate::{CompanyId, Database, Error, QuickMessageId, Result};

/// One quick message as stored.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct QuickMessageRow {
    pub id: QuickMessageId,
    pub shortcut: String,
    pub message: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for QuickMessageRow {
    const NAME: &'static str = "quick_messages";
    const SELECT: &'static str = "select * from quick_messages";
    type Id = QuickMessageId;
}

const UNIQUE: Unique = Unique {
    constraint: "quick_messages_company_id_shortcut_key",
    field: "shortcut",
    holder: "select id from quick_messages where company_id = $1 and shortcut = $2",
};

/// What the list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct QuickMessageFilter {
    pub search: Option<String>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of quick messages.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &QuickMessageFilter,
    page: Page,
) -> Result<Listed<QuickMessageRow>> {
    Select::new(QuickMessageRow::SELECT, "company_id", company)
        .any_contains(&["hotline_fold(shortcut)", "hotline_fold(message)"], filter.search.as_deref())
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// Creates a quick message.
///
/// # Errors
/// [`Error::Taken`] when the shortcut is.
pub async fn insert(
    db: &mut PgConnection,
    company: CompanyId,
    shortcut: &str,
    message: &str,
) -> Result<QuickMessageRow> {
    within(
        sqlx::query_as("insert into quick_messages (company_id, shortcut, message) values ($1, $2, $3) returning *")
            .bind(company)
            .bind(shortcut)
            .bind(message)
            .fetch_one(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, Some(shortcut)))
}

/// Changes what is given.
///
/// # Errors
/// [`Error::NotFound`] when there is no such quick message; [`Error::Taken`] when the shortcut is.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    id: QuickMessageId,
    shortcut: Option<&str>,
    message: Option<&str>,
) -> Result<QuickMessageRow> {
    within(
        sqlx::query_as(
            "update quick_messages set shortcut = coalesce($3, shortcut), message = coalesce($4, message),
                 updated_at = now()
             where company_id = $1 and id = $2 returning *",
        )
        .bind(company)
        .bind(id)
        .bind(shortcut)
        .bind(message)
        .fetch_optional(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, shortcut))?
    .ok_or(Error::NotFound("quick message"))
}
