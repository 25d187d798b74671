//! Encrypting the stored secrets of channels with the current key.

use serde_json::Value;
use sqlx::types::Json;
use sqlx::{FromRow, PgPool};

use super::{ChannelSettings, location_of, lock_and_open};
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::sealed::{self, Keyring};
use crate::{ChannelId, CompanyId, Result};

/// The stored settings of a channel.
#[derive(FromRow)]
struct StoredSettings {
    id: ChannelId,
    company_id: CompanyId,
    #[sqlx(try_from = "Document")]
    settings: Value,
}

/// Which channels to reseal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResealScope {
    /// Those with an unsealed secret, as earlier releases stored them.
    Unsealed,
    /// Those with any secret.
    All,
}

/// Reseals the secrets of channels with the current key; returns the number of secrets. The channels' `updated_at`
/// stays.
///
/// # Errors
/// When the database cannot answer; [`crate::Error::Key`] when a key is missing or cannot be used.
pub async fn reseal(db: &PgPool, keys: &Keyring, scope: ResealScope) -> Result<u64> {
    let rows =
        with_timeout(sqlx::query("select id, company_id, settings from channels order by id").fetch_all(db)).await?;
    // An unreadable row is left unchanged and does not block the others.
    let channels = document::read_all::<StoredSettings>(&rows);
    let is_due = |stored: &Value| {
        // Earlier releases stored a secret as plain text, which `without_secrets` leaves. Settings that this release
        // cannot read count as having none.
        let settings = ChannelSettings::read(&sealed::without_secrets(stored));
        let unsealed = settings.map_or(0, |settings| sealed::count_unsealed(&settings));
        unsealed > 0 || scope == ResealScope::All && sealed::count_sealed(stored) > 0
    };
    let mut resealed = 0;
    for StoredSettings { id, company_id, .. } in channels.into_iter().filter(|channel| is_due(&channel.settings)) {
        let mut transaction = db.begin().await?;
        let Some(row) = lock_and_open(&mut transaction, keys, company_id, id).await? else { continue };
        let settings = keys.seal_json(&location_of(company_id, &id.to_string()), &row.settings()?)?;
        resealed += sealed::count_sealed(&settings) as u64;
        let statement = "update channels set settings = $3 where company_id = $1 and id = $2";
        let update = sqlx::query(statement).bind(company_id).bind(id).bind(Json(settings));
        with_timeout(update.execute(&mut *transaction)).await?;
        transaction.commit().await?;
    }
    Ok(resealed)
}
