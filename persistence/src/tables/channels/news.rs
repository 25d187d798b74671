//! What a provider reports about a channel's account: its templates, its quality, its limit, and alerts.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sqlx::Row;
use utoipa::ToSchema;

use super::{ChannelQuality, ChannelRow, ChannelStatus, add_event, write_event};
use crate::document;
use crate::error::with_timeout;
use crate::tables::events::EventKind;
use crate::{ChannelId, CompanyId, Database, Result};

/// What a provider has changed of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedTemplate {
    /// The name.
    #[schema(example = "order_shipped")]
    pub name: String,
    /// The language, in the provider's format.
    #[schema(example = "en_US")]
    pub language: Option<String>,
    /// The new state, as the provider names it; `null` if something else has changed.
    #[schema(example = "PAUSED")]
    pub status: Option<String>,
    /// The new category.
    #[schema(example = "MARKETING")]
    pub category: Option<String>,
    /// The new quality, as the provider names it.
    #[schema(example = "RED")]
    pub quality: Option<String>,
    /// The provider's reason.
    #[schema(example = "LOW_QUALITY")]
    pub reason: Option<String>,
}

/// What a provider has changed about a phone number; `None` for what it has not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhoneNews {
    pub quality: Option<ChannelQuality>,
    pub messaging_limit: Option<String>,
}

/// Writes the event of a changed template for each of these channels.
pub async fn add_template_change(
    db: impl Database<'_>,
    company: CompanyId,
    channels: &[ChannelId],
    template: &ChangedTemplate,
    at: DateTime<Utc>,
) -> Result<()> {
    let mut transaction = db.transaction().await?;
    let select = sqlx::query("select * from channels where company_id = $1 and id = any($2) order by id");
    let rows = with_timeout(select.bind(company).bind(channels).fetch_all(transaction.connection()?)).await?;
    for row in document::read_all::<ChannelRow>(&rows) {
        let kind = EventKind::ChannelTemplateChanged;
        add_event(transaction.connection()?, kind, at, &row, Some(template), None).await?;
    }
    transaction.commit().await
}

/// Stores what has changed of a channel's phone number.
pub async fn set_phone_news(db: impl Database<'_>, company: CompanyId, id: ChannelId, news: &PhoneNews) -> Result<()> {
    let update = sqlx::query(
        "update channels set quality = coalesce($3, quality), messaging_limit = coalesce($4, messaging_limit),
             updated_at = now()
         where company_id = $1 and id = $2
           and (coalesce($3, quality), coalesce($4, messaging_limit)) is distinct from (quality, messaging_limit)",
    );
    let update = update.bind(company).bind(id).bind(news.quality).bind(&news.messaging_limit);
    with_timeout(update.execute(db)).await?;
    Ok(())
}

/// Stores an alert of the provider as the channel's last error, with its event. The channel stays connected.
pub async fn add_alert(db: impl Database<'_>, company: CompanyId, id: ChannelId, alert: &str) -> Result<()> {
    let mut transaction = db.transaction().await?;
    let update = sqlx::query(
        "with before as (
             select last_error from channels where company_id = $1 and id = $2 for no key update
         )
         update channels c set last_error = $3, updated_at = now() from before
         where c.company_id = $1 and c.id = $2 and c.status = 'connected' and c.last_error is distinct from $3
         returning c.*, before.last_error as previous_error",
    );
    let update = update.bind(company).bind(id).bind(alert).fetch_optional(transaction.connection()?);
    if let Some(changed) = with_timeout(update).await? {
        let previous: Option<String> = changed.try_get("previous_error")?;
        let row: ChannelRow = document::read(&changed)?;
        let (kind, previous) = (EventKind::ChannelError, json!({"lastError": previous}));
        add_event(transaction.connection()?, kind, row.updated_at, &row, None, Some(previous)).await?;
    }
    transaction.commit().await
}

/// Reconnects a channel in status `error` whose last error is this one.
pub async fn reinstate(db: impl Database<'_>, company: CompanyId, id: ChannelId, error: &str) -> Result<()> {
    let mut transaction = db.transaction().await?;
    let update = sqlx::query(
        "update channels set status = 'connected', last_error = null, updated_at = now()
         where company_id = $1 and id = $2 and status = 'error' and last_error = $3 returning *",
    );
    let update = update.bind(company).bind(id).bind(error).fetch_optional(transaction.connection()?);
    if let Some(changed) = with_timeout(update).await? {
        write_event(transaction.connection()?, Some(ChannelStatus::Error), &document::read(&changed)?).await?;
    }
    transaction.commit().await
}
