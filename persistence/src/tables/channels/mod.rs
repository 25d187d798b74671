//! Channels through which contacts write. Changed by transactions, not by actors.

mod missing_keys;
mod news;
mod reseal;
mod settings;

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, PgPool};

pub use crate::sealed::Secret;
pub use missing_keys::{abandon, disconnect_unreadable, reconnect_readable};
pub use news::{ChangedTemplate, PhoneNews, add_alert, add_template_change, reinstate, set_phone_news};
pub use reseal::{ResealScope, reseal};
pub use settings::{ChannelSettings, Position, PreChatField};

use super::events::{self, EventKind, NewEvent, Record, RecordSnapshot};
use super::text_enum;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::key::new_key;
use crate::sealed::{self, KeyError, Keyring, Location};
use crate::select::{Page, PageRequest, Select};
use crate::table;
use crate::{ChannelId, CompanyId, Database, Error, QueueId, Result, Timestamp};

text_enum! {
    /// The type of a channel. `whatsapp` is a phone channel; `messenger` and `instagram` are social channels.
    ChannelType {
        Whatsapp = "whatsapp",
        Messenger = "messenger",
        Instagram = "instagram",
        Webchat = "webchat",
    }
}

text_enum! {
    /// Whether a channel delivers messages.
    ChannelStatus { Connected = "connected", Disconnected = "disconnected", Error = "error" }
}

text_enum! {
    /// The quality of a phone number's messages, as its recipients rate them at the provider.
    ChannelQuality {
        /// Not low.
        Normal = "normal",
        /// Many recipients have blocked or reported the number; the provider may lower its limit.
        Low = "low",
    }
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
    // The command line also reads the previous release's schema, which lacks `quality` and `messaging_limit`.
    #[sqlx(default)]
    pub quality: Option<ChannelQuality>,
    /// As the provider names it.
    #[sqlx(default)]
    pub messaging_limit: Option<String>,
    pub public_key: String,
    /// As stored, with sealed secrets until [`ChannelRow::open`]; [`ChannelRow::settings`] decodes it.
    #[serde(skip)]
    #[sqlx(try_from = "Document")]
    pub settings: Value,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl fmt::Debug for ChannelRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings must never appear in a log.
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
    /// Opens the channel's secrets for use. A secret that cannot be opened is logged and left out: the channel then
    /// works without it, and other channels are not affected.
    pub fn open(&mut self, keys: &Keyring) {
        let row_id = self.id.to_string();
        for lost in keys.open_json(&location_of(self.company_id, &row_id), &mut self.settings) {
            // A missing key is reported once, at the start.
            if !keys.is_reported(&lost.error) {
                tracing::error!(channel.id = %self.id, company.id = %self.company_id, field = lost.field,
                    error = %lost.error, "could not decrypt a channel's secret; the channel is used without it: check the secrets key");
            }
        }
    }

    /// The settings without secrets, whether these are open or sealed; `None` if this release cannot read the settings.
    pub fn visible_settings(&self) -> Option<ChannelSettings> {
        ChannelSettings::read(&sealed::without_secrets(&self.settings)).ok().map(ChannelSettings::into_visible)
    }

    /// Derives the status from changed credentials. An error stays until the token is replaced: only the provider knows
    /// whether other credentials fix it.
    pub fn update_status(&mut self, settings: &ChannelSettings, is_token_new: bool) {
        self.status = match self.status {
            _ if !settings.has_required_credentials(self.kind) => ChannelStatus::Disconnected,
            ChannelStatus::Error if !is_token_new => ChannelStatus::Error,
            _ => ChannelStatus::Connected,
        };
        if self.status == ChannelStatus::Connected {
            self.last_error = None;
        }
    }

    /// The settings of an opened row.
    ///
    /// # Errors
    /// [`Error::Database`] when this release cannot read the stored settings.
    pub fn settings(&self) -> Result<ChannelSettings> {
        ChannelSettings::read(&self.settings)
    }
}

/// The location of a channel's secrets.
fn location_of(company: CompanyId, channel: &str) -> Location<'_> {
    Location { column: "channels.settings", company, row: channel }
}

/// Maximum channels of a company: every process has them in memory, and reads them again at each change.
pub const CHANNELS_MAX: i64 = 1_000;

/// Whether a company has the maximum number of channels; other transactions that create one wait until the caller's
/// ends.
pub async fn has_max_channels(db: &mut PgConnection, company: CompanyId) -> Result<bool> {
    table::has_at_least(db, company, "channels", CHANNELS_MAX).await
}

/// The data of a new channel.
#[derive(Clone, Debug)]
pub struct NewChannel<'a> {
    pub name: &'a str,
    pub kind: ChannelType,
    pub number: Option<&'a str>,
    pub queue_id: Option<QueueId>,
    pub settings: ChannelSettings,
}

/// Creates a channel. It is connected once it has the settings its type requires; a webchat requires none.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when the company or queue does not exist; [`Error::Key`] when a
/// secret cannot be sealed.
pub async fn insert(
    db: impl Database<'_>,
    keys: &Keyring,
    company: CompanyId,
    new: NewChannel<'_>,
) -> Result<ChannelRow> {
    let mut transaction = db.transaction().await?;
    let row = insert_in(transaction.connection()?, keys, company, new).await?;
    transaction.commit().await?;
    Ok(row)
}

/// Creates a channel in an open transaction.
///
/// # Errors
/// As [`insert`].
pub async fn insert_in(
    db: &mut PgConnection,
    keys: &Keyring,
    company: CompanyId,
    new: NewChannel<'_>,
) -> Result<ChannelRow> {
    // Its secrets are bound to its id, so the id is assigned first.
    let id = sqlx::query_scalar("select nextval(pg_get_serial_sequence('channels', 'id'))");
    let id: i64 = with_timeout(id.fetch_one(&mut *db)).await?;
    let settings = keys.seal_json(&location_of(company, &id.to_string()), &new.settings)?;
    let status = if new.settings.has_required_credentials(new.kind) {
        ChannelStatus::Connected
    } else {
        ChannelStatus::Disconnected
    };
    let insert = sqlx::query_as(
        "insert into channels (company_id, name, type, status, number, queue_id, public_key, settings, id)
         overriding system value values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning *",
    )
    .bind(company)
    .bind(new.name)
    .bind(new.kind)
    .bind(status)
    .bind(new.number)
    .bind(new.queue_id)
    .bind(new_key("ch_"))
    .bind(Json(settings))
    .bind(id);
    let row: ChannelRow = with_timeout(insert.fetch_one(&mut *db)).await.map_err(map_constraint_error)?;
    write_event(db, None, &row).await?;
    Ok(row)
}

/// Writes the event of a changed status; a new channel that is not connected has none.
async fn write_event(db: &mut PgConnection, previous_status: Option<ChannelStatus>, row: &ChannelRow) -> Result<()> {
    if previous_status.unwrap_or(ChannelStatus::Disconnected) == row.status {
        return Ok(());
    }
    let kind = match row.status {
        ChannelStatus::Connected => EventKind::ChannelConnected,
        ChannelStatus::Disconnected => EventKind::ChannelDisconnected,
        ChannelStatus::Error => EventKind::ChannelError,
    };
    let previous = previous_status.map(|status| json!({"status": status}));
    add_event(db, kind, row.updated_at, row, None, previous).await
}

/// Writes an event of a channel. Its record shows the channel, and the changed template if there is one.
async fn add_event(
    db: &mut PgConnection,
    kind: EventKind,
    at: DateTime<Utc>,
    row: &ChannelRow,
    template: Option<&ChangedTemplate>,
    previous: Option<Value>,
) -> Result<()> {
    let select = sqlx::query_scalar("select name from queues where company_id = $1 and id = $2");
    let queue: Option<String> =
        with_timeout(select.bind(row.company_id).bind(row.queue_id).fetch_optional(&mut *db)).await?;
    // As the API shows it, without fields that are hidden from integrations.
    let mut channel = json!({
        "id": row.id, "name": row.name, "type": row.kind, "status": row.status, "number": row.number,
        "queue": row.queue_id.zip(queue).map(|(id, name)| json!({"id": id, "name": name})),
        "lastError": row.last_error, "quality": row.quality, "messagingLimit": row.messaging_limit,
        "createdAt": Timestamp(row.created_at), "updatedAt": Timestamp(row.updated_at),
    });
    if let Some(template) = template {
        channel["template"] = json!(template);
    }
    let record = Record::Channel(RecordSnapshot::of(row.id, &channel)?);
    events::draft(db, row.company_id, &[NewEvent::plain(kind, at, record, previous)]).await
}

fn map_constraint_error(error: Error) -> Error {
    error.map_constraint([
        ("channels_company_id_fkey", Error::NotFound("company")),
        ("channels_company_id_queue_id_fkey", Error::NotFound("queue")),
    ])
}

/// Updates a channel's name, status, number, queue, last error and settings with `change`, under a lock. If `change`
/// fails, nothing is changed.
///
/// # Errors
/// The error of `change`; when the database cannot answer; [`Error::NotFound`] when the channel or queue does not
/// exist; [`Error::Key`] when the key of a secret is missing.
pub async fn update<E: From<Error>>(
    db: impl Database<'_>,
    keys: &Keyring,
    company: CompanyId,
    id: ChannelId,
    change: impl FnOnce(&mut ChannelRow, &mut ChannelSettings) -> std::result::Result<(), E>,
) -> std::result::Result<ChannelRow, E> {
    let mut transaction = db.transaction().await?;
    let row = update_in(transaction.connection()?, keys, company, id, change).await?;
    transaction.commit().await?;
    Ok(row)
}

/// Updates a channel in an open transaction, which the caller rolls back if this fails.
///
/// # Errors
/// As [`update`].
pub async fn update_in<E: From<Error>>(
    db: &mut PgConnection,
    keys: &Keyring,
    company: CompanyId,
    id: ChannelId,
    change: impl FnOnce(&mut ChannelRow, &mut ChannelSettings) -> std::result::Result<(), E>,
) -> std::result::Result<ChannelRow, E> {
    let mut row = lock_and_open(&mut *db, keys, company, id).await?.ok_or(Error::NotFound("channel"))?;
    let mut settings = row.settings()?;
    let previous_status = row.status;
    change(&mut row, &mut settings)?;
    let settings = keys.seal_json(&location_of(row.company_id, &row.id.to_string()), &settings).map_err(Error::from)?;
    let update = sqlx::query_as(
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
    .bind(Json(settings));
    let row: ChannelRow = with_timeout(update.fetch_one(&mut *db)).await.map_err(map_constraint_error)?;
    write_event(db, Some(previous_status), &row).await?;
    Ok(row)
}

/// Locks a channel and opens its secrets. Fails if a key is missing, because a change of the channel would lose the
/// secret. A damaged secret cannot be opened with any key, so it may be dropped.
async fn lock_and_open(
    connection: &mut PgConnection,
    keys: &Keyring,
    company: CompanyId,
    id: ChannelId,
) -> Result<Option<ChannelRow>> {
    let select = sqlx::query_as("select * from channels where company_id = $1 and id = $2 for update");
    let row: Option<ChannelRow> = with_timeout(select.bind(company).bind(id).fetch_optional(connection)).await?;
    let Some(mut row) = row else { return Ok(None) };
    let row_id = row.id.to_string();
    for lost in keys.open_json(&location_of(row.company_id, &row_id), &mut row.settings) {
        match lost.error {
            KeyError::Damaged => {
                tracing::warn!(channel.id = %row.id, company.id = %row.company_id, field = lost.field,
                "a channel's damaged secret was cleared; set it again")
            }
            error => return Err(error.into()),
        }
    }
    Ok(Some(row))
}

/// Records that the provider rejected a channel's token, unless the token was replaced meanwhile or the rejection is
/// recorded already.
pub async fn record_token_refusal(
    db: impl Database<'_>,
    keys: &Keyring,
    company: CompanyId,
    id: ChannelId,
    access_token: &Secret,
    reason: &str,
) -> Result<()> {
    loop {
        let select = "select * from channels where company_id = $1 and id = $2 and status = 'connected'";
        let row: Option<ChannelRow> =
            with_timeout(sqlx::query_as(select).bind(company).bind(id).fetch_optional(db)).await?;
        let Some(mut row) = row else { return Ok(()) };
        let stored = row.settings.clone();
        row.open(keys);
        if row.settings()?.access_token.as_ref() != Some(access_token) {
            return Ok(());
        }
        let update = sqlx::query(
            "update channels set status = 'error', last_error = $3, updated_at = now()
             where company_id = $1 and id = $2 and status = 'connected' and settings = $4 returning *",
        );
        let update = update.bind(company).bind(id).bind(reason).bind(Json(stored));
        let mut transaction = db.transaction().await?;
        // No row: the settings were changed or resealed meanwhile, perhaps with a new token. Check again.
        if let Some(changed) = with_timeout(update.fetch_optional(transaction.connection()?)).await? {
            write_event(transaction.connection()?, Some(ChannelStatus::Connected), &document::read(&changed)?).await?;
            return transaction.commit().await;
        }
    }
}

/// Channels by creation, of one company or of all.
pub async fn all(db: impl Database<'_>, company: Option<CompanyId>) -> Result<Vec<ChannelRow>> {
    let all = sqlx::query("select * from channels where company_id = coalesce($1, company_id) order by id");
    Ok(document::read_all(&with_timeout(all.bind(company).fetch_all(db)).await?))
}

/// The channels of these companies.
pub async fn of_companies(db: impl Database<'_>, companies: &[CompanyId]) -> Result<Vec<ChannelRow>> {
    let select = sqlx::query("select * from channels where company_id = any($1)").bind(companies);
    Ok(document::read_all(&with_timeout(select.fetch_all(db)).await?))
}

/// The conditions of the API's list of channels.
#[derive(Clone, Debug, Default)]
pub struct ChannelFilter {
    pub search: Option<String>,
    pub kind: Option<ChannelType>,
    pub status: Option<ChannelStatus>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of a company's channels.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &ChannelFilter,
    page: PageRequest,
) -> Result<Page<ChannelRow>> {
    Select::new("select * from channels", "company_id", company)
        .contains("hotline_fold(name || E'\\n' || coalesce(number, ''))", filter.search.as_deref())
        .equals("type", filter.kind)
        .equals("status", filter.status)
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// One channel, or `None`.
pub async fn find(db: impl Database<'_>, company: CompanyId, id: ChannelId) -> Result<Option<ChannelRow>> {
    let found = sqlx::query("select * from channels where company_id = $1 and id = $2").bind(company).bind(id);
    Ok(with_timeout(found.fetch_optional(db)).await?.as_ref().map(document::read).transpose()?)
}

/// The company of a channel, for the command line, where no company is given.
///
/// # Errors
/// [`Error::NotFound`] when the channel does not exist; other errors when the database cannot answer.
pub async fn company_of(db: &PgPool, id: ChannelId) -> Result<CompanyId> {
    let company = sqlx::query_scalar("select company_id from channels where id = $1").bind(id);
    with_timeout(company.fetch_optional(db)).await?.ok_or(Error::NotFound("channel"))
}

/// Number of channels that use a queue.
pub async fn count_with_queue(db: impl Database<'_>, company: CompanyId, queue: QueueId) -> Result<i64> {
    let count = sqlx::query_scalar("select count(*) from channels where company_id = $1 and queue_id = $2");
    with_timeout(count.bind(company).bind(queue).fetch_one(db)).await
}
