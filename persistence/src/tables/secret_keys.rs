//! The keys that seal a database's secrets ([`crate::sealed`]), and the values sealed with them.
//!
//! All tables with sealed values are listed here and nowhere else: `USES` finds their keys, [`reseal`] reseals them. A
//! test searches every column of every table for secrets.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgPool};

use super::people::factors;
use super::{channels, installation_keys, webhooks};
use crate::error::with_timeout;
use crate::sealed::{KeyError, Keyring, Secret};
use crate::{ChannelId, Error, Result};

/// The key id of every sealed value.
const USES: &str = r#"
    select split_part(value #>> '{}', '.', 2) as id
    from channels, jsonb_path_query(settings, 'strict $.**."$sealed"', silent => true) value
    union all
    select split_part(convert_from(key, 'UTF8'), '.', 2) from installation_keys where length(key) <> 64
    union all
    select split_part(value, '.', 2) from webhooks, unnest(array[secret, old_secret]) value where value is not null
    union all
    select split_part(secret, '.', 2) from second_factors"#;

/// A key as listed.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRow {
    pub id: String,
    /// When the database first recorded it.
    pub created_at: Option<DateTime<Utc>>,
    /// Number of values sealed with it.
    pub sealed: i64,
}

/// Every key the database knows, newest first.
pub async fn all(db: &PgPool) -> Result<Vec<SecretKeyRow>> {
    let statement = format!(
        "with uses as (select id, count(*) as sealed from ({USES}) used group by id)
         select id, k.created_at, coalesce(u.sealed, 0) as sealed
         from secret_keys k full join uses u using (id) order by k.position desc nulls last, id"
    );
    with_timeout(sqlx::query_as(sqlx::AssertSqlSafe(statement)).fetch_all(db)).await
}

/// Whether to create a missing key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewFile {
    /// Create it, unless the database has a key already.
    Create,
    /// Do not create it: this is not the path of the service's file.
    Refuse,
}

/// Reconciles keyring and database, at every start and before a command that seals or opens: all needed keys must be
/// available, the sealing key is recorded, and unsealed values are sealed.
///
/// # Errors
/// [`Error::Key`] when a needed key is missing; other errors when the database cannot answer.
pub async fn begin(db: &PgPool, keys: &Keyring, new_file: NewFile) -> Result<()> {
    match reconcile(db, keys, new_file).await?.ids.first() {
        Some(id) => Err(keys.missing_key_error(id).into()),
        None => Ok(()),
    }
}

/// As [`begin`], for a service that shares its database with no other process: it may run without needed keys. Returns
/// the missing ones, which the keyring remembers (`Keyring::run_without`).
///
/// # Errors
/// When the key file cannot be read or written, or the database cannot answer.
pub async fn begin_service(db: &PgPool, keys: &Keyring) -> Result<Vec<String>> {
    let UnavailableKeys { ids, sealing } = reconcile(db, keys, NewFile::Create).await?;
    if !ids.is_empty() {
        keys.run_without(ids.clone(), sealing)?;
    }
    Ok(ids)
}

/// The keys that the database needs and the keyring lacks.
#[derive(Default)]
struct UnavailableKeys {
    ids: Vec<String>,
    /// The sealing key, if it is one of them.
    sealing: Option<String>,
}

/// Reconciles keyring and database, and returns the missing keys. If there are any, nothing is changed.
async fn reconcile(db: &PgPool, keys: &Keyring, new_file: NewFile) -> Result<UnavailableKeys> {
    let mut transaction = db.begin().await?;
    // Serialize this: two concurrent starts would each record a different key.
    lock_keys(&mut transaction).await?;
    let recorded = all(db).await?;
    let file_exists = keys.load()?;
    let available = keys.ids();
    // The newest recorded key is needed, even if it has sealed nothing yet, and so is every key with sealed values.
    let needed =
        recorded.iter().enumerate().filter(|(index, key)| *index == 0 || key.sealed > 0).map(|(_, key)| &key.id);
    let ids: Vec<String> = needed.filter(|id| !available.contains(id)).cloned().collect();
    if !ids.is_empty() {
        let sealing = recorded.first().map(|key| key.id.clone()).filter(|id| ids.contains(id));
        return Ok(UnavailableKeys { ids, sealing });
    }
    if !file_exists {
        if new_file == NewFile::Refuse {
            return Err(KeyError::NoKey { path: keys.path().to_owned() }.into());
        }
        keys.load_or_create()?;
    }
    if let Some(first) = keys.ids().first() {
        record_key(&mut transaction, first).await?;
    }
    transaction.commit().await?;
    channels::reseal(db, keys, channels::ResealScope::Unsealed).await?;
    let only_unsealed = true;
    installation_keys::reseal(db, keys, only_unsealed).await?;
    Ok(UnavailableKeys::default())
}

/// What was sealed with a key that was given up.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Abandoned {
    /// The key.
    pub id: String,
    /// The key that seals from now on.
    pub current: Option<String>,
    /// Channels that lost credentials.
    pub channels: Vec<ChannelId>,
    /// The number of these credentials.
    pub channel_secrets: u64,
    /// Webhooks that lost their secret, and must rotate it, or lost only their old secret.
    pub webhooks: Vec<webhooks::WebhookId>,
    /// Second factors that were removed: their owners sign in with their password.
    pub second_factors: u64,
    /// Secrets of the installation, which are created again.
    pub installation_secrets: u64,
}

/// Gives up a lost key with everything that is sealed with it. If it is the sealing key, a new one is created.
///
/// # Errors
/// [`Error::NotFound`] when the database does not know the key; [`Error::InUse`] when the key file contains it;
/// [`Error::Key`] when the file cannot be read or written; other errors when the database cannot answer.
pub async fn abandon(
    db: &PgPool,
    keys: &Keyring,
    (id, new_file): (&str, NewFile),
    new_webhook_secret: impl Fn() -> Secret,
) -> Result<Abandoned> {
    let mut transaction = db.begin().await?;
    lock_keys(&mut transaction).await?;
    let recorded = all(db).await?;
    let file_exists = keys.load()?;
    if !recorded.iter().any(|key| key.id == id) {
        return Err(Error::NotFound("key"));
    }
    if keys.ids().iter().any(|available| available == id) {
        return Err(Error::InUse);
    }
    let is_sealing = recorded.first().is_some_and(|key| key.id == id);
    match (file_exists, new_file) {
        (false, NewFile::Refuse) => return Err(KeyError::NoKey { path: keys.path().to_owned() }.into()),
        (false, NewFile::Create) => keys.load_or_create()?,
        // The file's first key would become the sealing key, but it may belong to another database.
        (true, _) if is_sealing => drop(keys.add_key()?),
        (true, _) => {}
    }
    let current = keys.ids().into_iter().next();
    if let Some(current) = &current {
        record_key(&mut transaction, current).await?;
    }
    let (channels, channel_secrets) = channels::abandon(&mut transaction, id).await?;
    let webhooks = webhooks::abandon(&mut transaction, keys, id, new_webhook_secret).await?;
    let second_factors = factors::remove_sealed_with(&mut transaction, id).await?;
    let installation_secrets = installation_keys::abandon(&mut transaction, id).await?;
    with_timeout(sqlx::query("delete from secret_keys where id = $1").bind(id).execute(&mut *transaction)).await?;
    transaction.commit().await?;
    let id = id.to_owned();
    Ok(Abandoned { id, current, channels, channel_secrets, webhooks, second_factors, installation_secrets })
}

/// Disconnects the channels and disables the webhooks whose secrets cannot be opened, and undoes this for those whose
/// key was found. To be called only by the process that may write. Returns the numbers of channels and of webhooks
/// whose secrets cannot be opened.
///
/// # Errors
/// When the database cannot answer.
pub async fn update_dependents(db: &PgPool, keys: &Keyring) -> Result<(u64, u64)> {
    channels::reconnect_readable(db, keys).await?;
    webhooks::enable_readable(db, keys).await?;
    Ok((channels::disconnect_unreadable(db, keys).await?, webhooks::disable_unreadable(db, keys).await?))
}

/// Waits for other changes of the keys, and keeps them out until the transaction ends.
async fn lock_keys(connection: &mut sqlx::PgConnection) -> Result<()> {
    with_timeout(sqlx::query("lock table secret_keys in exclusive mode").execute(connection)).await.map(drop)
}

async fn record_key(connection: &mut sqlx::PgConnection, id: &str) -> Result<()> {
    let insert = sqlx::query("insert into secret_keys (id) values ($1) on conflict do nothing").bind(id);
    with_timeout(insert.execute(connection)).await.map(drop)
}

/// The result of a rotation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotated {
    /// The key that seals from now on.
    pub id: String,
    /// Number of values that are sealed again.
    #[serde(rename = "reencrypted")]
    pub resealed: u64,
}

/// Creates a new sealing key, and reseals everything with it. Old keys stay in the file: they open values in old
/// backups.
///
/// # Errors
/// When the key file cannot be written, the database cannot answer, or a value cannot be opened.
pub async fn rotate(db: &PgPool, keys: &Keyring) -> Result<Rotated> {
    let mut transaction = db.begin().await?;
    lock_keys(&mut transaction).await?;
    // Write the file first: a running service reads it when it sees a value with an unknown key.
    let id = keys.add_key()?;
    record_key(&mut transaction, &id).await?;
    transaction.commit().await?;
    let resealed = reseal(db, keys).await?;
    Ok(Rotated { id, resealed })
}

/// Reseals everything with the first key of the file; returns the number of values.
///
/// # Errors
/// When the database cannot answer, or a value cannot be opened.
pub async fn reseal(db: &PgPool, keys: &Keyring) -> Result<u64> {
    let channels = channels::reseal(db, keys, channels::ResealScope::All).await?;
    let only_unsealed = false;
    let installation = installation_keys::reseal(db, keys, only_unsealed).await?;
    let factors = factors::reseal(db, keys).await?;
    Ok(channels + installation + factors + webhooks::reseal(db, keys).await?)
}

/// Removes an unused key from database and file.
///
/// # Errors
/// [`Error::InUse`] when values are sealed with it or it is the sealing key; [`Error::NotFound`] when the key does not
/// exist; other errors when the file cannot be written or the database cannot answer.
pub async fn forget(db: &PgPool, keys: &Keyring, id: &str) -> Result<()> {
    let mut transaction = db.begin().await?;
    lock_keys(&mut transaction).await?;
    let recorded = all(db).await?;
    let key = recorded.iter().find(|key| key.id == id);
    let available = keys.ids();
    if key.is_none() && !available.iter().any(|available_id| available_id == id) {
        return Err(Error::NotFound("key"));
    }
    if key.is_some_and(|key| key.sealed > 0) || available.first().is_some_and(|first| first == id) {
        return Err(Error::InUse);
    }
    with_timeout(sqlx::query("delete from secret_keys where id = $1").bind(id).execute(&mut *transaction)).await?;
    keys.remove_key(id)?;
    transaction.commit().await?;
    Ok(())
}
