//! Channels whose secrets are encrypted with a missing key: they are disconnected until the key is found, or given up.

use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};

use super::{ChannelRow, ChannelSettings, ChannelStatus, location_of, write_event};
use crate::document;
use crate::error::with_timeout;
use crate::sealed::{self, KeyError, Keyring};
use crate::{ChannelId, Result};

/// The last error of a channel whose key is missing, by which [`reconnect_readable`] finds such channels.
const MISSING_KEY_ERROR: &str = "the key that encrypts its credentials is missing";

/// The last error of a channel that needs its credentials again.
const ABANDONED_KEY_ERROR: &str = "the key that encrypted its credentials is lost; enter them again";

/// Disconnects the channels that need a secret whose key is missing. A webchat needs no secret, so it stays connected.
/// Returns the number of channels with such a secret, whether disconnected or not.
///
/// # Errors
/// When the database cannot answer.
pub async fn disconnect_unreadable(db: &PgPool, keys: &Keyring) -> Result<u64> {
    let statement = "select id from channels where settings @? 'strict $.**.\"$sealed\"' order by id";
    let ids: Vec<ChannelId> = with_timeout(sqlx::query_scalar(statement).fetch_all(db)).await?;
    let mut unreadable = 0;
    for id in ids {
        let mut transaction = db.begin().await?;
        let Some(mut row) = lock(&mut transaction, id).await? else { continue };
        let is_key_missing = open_secrets(&mut row, keys);
        if !is_key_missing {
            continue;
        }
        unreadable += 1;
        // With settings of a newer release, which this one cannot read, the status stays.
        let has_credentials = row.settings().map_or(true, |settings| settings.has_required_credentials(row.kind));
        let status = if has_credentials { row.status } else { ChannelStatus::Disconnected };
        if row.last_error.as_deref() != Some(MISSING_KEY_ERROR) || row.status != status {
            set_status(&mut transaction, &row, status, Some(MISSING_KEY_ERROR)).await?;
        }
        transaction.commit().await?;
    }
    Ok(unreadable)
}

/// Reconnects the channels whose missing key was found.
///
/// # Errors
/// When the database cannot answer.
pub async fn reconnect_readable(db: &PgPool, keys: &Keyring) -> Result<()> {
    let ids = sqlx::query_scalar("select id from channels where last_error = $1 order by id").bind(MISSING_KEY_ERROR);
    let ids: Vec<ChannelId> = with_timeout(ids.fetch_all(db)).await?;
    for id in ids {
        let mut transaction = db.begin().await?;
        let Some(mut row) = lock(&mut transaction, id).await? else { continue };
        let is_key_missing = open_secrets(&mut row, keys);
        if is_key_missing || row.last_error.as_deref() != Some(MISSING_KEY_ERROR) {
            continue;
        }
        let has_credentials = row.settings().is_ok_and(|settings| settings.has_required_credentials(row.kind));
        let status = if has_credentials { ChannelStatus::Connected } else { ChannelStatus::Disconnected };
        set_status(&mut transaction, &row, status, None).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Removes every secret that is sealed with this key, and disconnects the channels that need such a secret. Returns the
/// channels from which secrets were removed, and the number of these secrets.
///
/// # Errors
/// When the database cannot answer.
pub async fn abandon(db: &mut PgConnection, key: &str) -> Result<(Vec<ChannelId>, u64)> {
    let statement = "select id from channels where settings @? 'strict $.**.\"$sealed\"' order by id";
    let ids: Vec<ChannelId> = with_timeout(sqlx::query_scalar(statement).fetch_all(&mut *db)).await?;
    let (mut channels, mut secrets) = (Vec::new(), 0);
    for id in ids {
        let Some(mut row) = lock(&mut *db, id).await? else { continue };
        let removed = sealed::remove_sealed(&mut row.settings, key);
        if removed == 0 {
            continue;
        }
        channels.push(id);
        secrets += removed as u64;
        let update = sqlx::query("update channels set settings = $3 where company_id = $1 and id = $2");
        with_timeout(update.bind(row.company_id).bind(id).bind(Json(&row.settings)).execute(&mut *db)).await?;
        // Secrets that other keys seal stay, and count as set.
        let settings = ChannelSettings::read(&sealed::mark_as_unsealed(&row.settings));
        let has_credentials = settings.map_or(true, |settings| settings.has_required_credentials(row.kind));
        let (status, error) =
            if has_credentials { (row.status, None) } else { (ChannelStatus::Disconnected, Some(ABANDONED_KEY_ERROR)) };
        set_status(&mut *db, &row, status, error).await?;
    }
    Ok((channels, secrets))
}

async fn lock(db: &mut PgConnection, id: ChannelId) -> Result<Option<ChannelRow>> {
    let row = sqlx::query("select * from channels where id = $1 for update").bind(id);
    // An unreadable row counts as missing, so that it does not block the others.
    Ok(document::read_all(with_timeout(row.fetch_optional(db)).await?.as_slice()).pop())
}

/// Opens the secrets, and leaves out those that cannot be opened; returns whether the key of one is missing.
fn open_secrets(row: &mut ChannelRow, keys: &Keyring) -> bool {
    let id = row.id.to_string();
    let lost_secrets = keys.open_json(&location_of(row.company_id, &id), &mut row.settings);
    lost_secrets.iter().any(|secret| KeyError::missing_key(&secret.error).is_some())
}

async fn set_status(
    db: &mut PgConnection,
    row: &ChannelRow,
    status: ChannelStatus,
    last_error: Option<&str>,
) -> Result<()> {
    let update = sqlx::query(
        "update channels set status = $3, last_error = $4, updated_at = now() where company_id = $1 and id = $2
         returning *",
    );
    let update = update.bind(row.company_id).bind(row.id).bind(status).bind(last_error).fetch_one(&mut *db);
    let updated = document::read(&with_timeout(update).await?)?;
    write_event(db, Some(row.status), &updated).await
}
