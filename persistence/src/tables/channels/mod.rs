//! Channels: where contacts write. Plain; made on the command line, read over the API.

mod settings;

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{FromRow, PgPool};

pub use settings::{ChannelSettings, Position, PreChatField, Secret};

use super::words;
use crate::key::new_key;
use crate::select::{Listed, Page, Select};
use crate::{ChannelId, CompanyId, Database, Error, QueueId, Result};

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
#[derive(Clone, Serialize, FromRow)]
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
    /// As stored, secrets and all; [`ChannelRow::settings`] reads it.
    #[serde(skip)]
    pub settings: Value,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl fmt::Debug for ChannelRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whatever else a log may hold of a channel, its settings are not for it.
        f.debug_struct("ChannelRow")
            .field("id", &self.id)
            .field("company_id", &self.company_id)
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("status", &self.status)
            .field("last_error", &self.last_error)
            .finish_non_exhaustive()
    }
}

impl ChannelRow {
    /// What the channel needs besides its name.
    ///
    /// # Errors
    /// [`Error::Database`] when what is stored is nothing this release writes.
    pub fn settings(&self) -> Result<ChannelSettings> {
        ChannelSettings::read(&self.settings)
    }
}

/// What a new channel is.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct NewChannel<'a> {
    pub name: &'a str,
    pub kind: ChannelType,
    pub number: Option<&'a str>,
    pub queue_id: Option<QueueId>,
    pub settings: ChannelSettings,
}

/// Creates a channel. It is connected once it has what its type needs; a webchat needs nothing.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such company or queue.
pub async fn insert(db: impl Database<'_>, company: CompanyId, new: NewChannel<'_>) -> Result<ChannelRow> {
    let status = if new.settings.are_enough(new.kind) { ChannelStatus::Connected } else { ChannelStatus::Disconnected };
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
    .bind(Json(new.settings))
    .fetch_one(db)
    .await
    .map_err(refused)
}

fn refused(error: sqlx::Error) -> Error {
    let known = [
        ("channels_company_id_fkey", Error::NotFound("company")),
        ("channels_company_id_queue_id_fkey", Error::NotFound("queue")),
    ];
    Error::of_constraint(error, known)
}

/// Changes a channel's name, status, number, queue, last error and settings, whatever `change` makes of them; nobody
/// else changes them meanwhile. When `change` fails, nothing is changed.
///
/// # Errors
/// What `change` says; when the database cannot answer; [`Error::NotFound`] when there is no such channel or queue.
pub async fn update<E: From<Error>>(
    db: &PgPool,
    id: ChannelId,
    change: impl FnOnce(&mut ChannelRow, &mut ChannelSettings) -> std::result::Result<(), E>,
) -> std::result::Result<ChannelRow, E> {
    let mut transaction = db.begin().await.map_err(Error::from)?;
    let mut row: ChannelRow = sqlx::query_as("select * from channels where id = $1 for update")
        .bind(id)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(Error::from)?
        .ok_or(Error::NotFound("channel"))?;
    let mut settings = row.settings()?;
    change(&mut row, &mut settings)?;
    let row = sqlx::query_as(
        "update channels set name = $3, status = $4, number = $5, queue_id = $6, last_error = $7, settings = $8,
             updated_at = now()
         where company_id = $1 and id = $2 returning *",
    )
    .bind(row.company_id)
    .bind(row.id)
    .bind(row.name)
    .bind(row.status)
    .bind(row.number)
    .bind(row.queue_id)
    .bind(row.last_error)
    .bind(Json(settings))
    .fetch_one(&mut *transaction)
    .await
    .map_err(refused)?;
    transaction.commit().await.map_err(Error::from)?;
    Ok(row)
}

/// Notes that the provider does not accept a channel's token, unless that was renewed meanwhile or is noted already.
///
/// # Errors
/// When the database cannot answer.
pub async fn refuse_token(
    db: impl Database<'_>,
    company: CompanyId,
    id: ChannelId,
    access_token: &Secret,
    reason: &str,
) -> Result<()> {
    crate::error::within(
        sqlx::query(
            "update channels set status = 'error', last_error = $4, updated_at = now()
             where company_id = $1 and id = $2 and status = 'connected' and settings ->> 'accessToken' = $3",
        )
        .bind(company)
        .bind(id)
        .bind(&access_token.0)
        .bind(reason)
        .execute(db),
    )
    .await?;
    Ok(())
}

/// Channels in the order they were made: of one company, or all.
///
/// # Errors
/// When the database cannot answer.
pub async fn all(db: impl Database<'_>, company: Option<CompanyId>) -> Result<Vec<ChannelRow>> {
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
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &ChannelFilter,
    page: Page,
) -> Result<Listed<ChannelRow>> {
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
pub async fn find(db: impl Database<'_>, company: CompanyId, id: ChannelId) -> Result<Option<ChannelRow>> {
    crate::error::within(
        sqlx::query_as("select * from channels where company_id = $1 and id = $2")
            .bind(company)
            .bind(id)
            .fetch_optional(db),
    )
    .await
}
