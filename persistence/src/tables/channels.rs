//! Channels: where contacts write. Plain; made on the command line, read over the API.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, PgPool};

use super::words;
use crate::key::new_key;
use crate::select::{Listed, Page, Select};
use crate::{ChannelId, CompanyId, Error, QueueId, Result};

words! {
    /// What a channel speaks. `whatsapp` is the phone channel, `messenger` and `instagram` the social ones.
    ChannelType {
        Whatsapp = "whatsapp",
        Messenger = "messenger",
        Instagram = "instagram",
        Webchat = "webchat",
    }
}

words! {
    /// Whether a channel delivers.
    ChannelStatus { Connected = "connected", Disconnected = "disconnected", Error = "error" }
}

impl ChannelType {
    /// Whether contacts are addressed by their phone number.
    pub fn has_phone(self) -> bool {
        self == Self::Whatsapp
    }
}

/// One channel as stored.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ChannelRow {
    pub id: ChannelId,
    pub company_id: CompanyId,
    pub name: String,
    #[sqlx(rename = "type")]
    #[serde(rename = "type")]
    pub kind: ChannelType,
    pub status: ChannelStatus,
    pub number: Option<String>,
    pub queue_id: Option<QueueId>,
    pub last_error: Option<String>,
    pub public_key: String,
    #[serde(skip)]
    pub settings: Value,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// What a new channel is.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct NewChannel<'a> {
    pub name: &'a str,
    pub kind: ChannelType,
    pub number: Option<&'a str>,
    pub queue_id: Option<QueueId>,
    pub settings: Value,
}

/// Creates a channel. A webchat is connected at once; the others wait for their provider.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such company or queue.
pub async fn insert(db: &PgPool, company: CompanyId, new: NewChannel<'_>) -> Result<ChannelRow> {
    let status = match new.kind {
        ChannelType::Webchat => ChannelStatus::Connected,
        _ => ChannelStatus::Disconnected,
    };
    sqlx::query_as(
        "insert into channels (company_id, name, type, status, number, queue_id, public_key, settings)
         values ($1, $2, $3, $4, $5, $6, $7, $8) returning *",
    )
    .bind(company)
    .bind(new.name)
    .bind(new.kind)
    .bind(status)
    .bind(new.number)
    .bind(new.queue_id)
    .bind(new_key("ch_"))
    .bind(new.settings)
    .fetch_one(db)
    .await
    .map_err(|error| match error.as_database_error().and_then(|error| error.constraint()) {
        Some("channels_company_id_fkey") => Error::NotFound("company"),
        Some("channels_company_id_queue_id_fkey") => Error::NotFound("queue"),
        _ => error.into(),
    })
}

/// Channels in the order they were made: of one company, or all.
///
/// # Errors
/// When the database cannot answer.
pub async fn all(db: &PgPool, company: Option<CompanyId>) -> Result<Vec<ChannelRow>> {
    Ok(sqlx::query_as("select * from channels where company_id = coalesce($1, company_id) order by id")
        .bind(company)
        .fetch_all(db)
        .await?)
}

/// What the API's list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct ChannelFilter {
    pub kind: Option<ChannelType>,
    pub status: Option<ChannelStatus>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of a company's channels.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(db: &PgPool, company: CompanyId, filter: &ChannelFilter, page: Page) -> Result<Listed<ChannelRow>> {
    Select::new("select * from channels", "company_id", company)
        .equals("type", filter.kind)
        .equals("status", filter.status)
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// One channel, or none.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(db: &PgPool, company: CompanyId, id: ChannelId) -> Result<Option<ChannelRow>> {
    crate::error::within(
        sqlx::query_as("select * from channels where company_id = $1 and id = $2")
            .bind(company)
            .bind(id)
            .fetch_optional(db),
    )
    .await
}
