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
use crate::sealed::{KeyError, Keyring};
use crate::{Error, Result};

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
    Made,
    /// Do not create it: this is not the path of the service's file.
    Refused,
}

/// Reconciles keyring and database, at every start and before a command that seals or opens: all needed keys must be
/// available, the sealing key is recorded, and unsealed values are sealed.
///
/// # Errors
/// [`Error::Key`] when a needed key is missing; other errors when the database cannot answer.
pub async fn begin(db: &PgPool, keys: &Keyring, new_file: NewFile) -> Result<()> {
    let mut transaction = db.begin().await?;
    // Serialize this: two concurrent starts would each record a different key.
    sqlx::query("lock table secret_keys in exclusive mode").execute(&mut *transaction).await?;
    let recorded = all(db).await?;
    let exists = keys.load()?;
    let available = keys.ids();
    // Needed are the last recorded key, even if nothing is sealed yet, and every key with sealed values.
    let needed =
        recorded.iter().enumerate().filter(|(index, key)| *index == 0 || key.sealed > 0).map(|(_, key)| &key.id);
    if let Some(id) = needed.into_iter().find(|id| !available.contains(id)) {
        return Err(keys.lacks(id).into());
    }
    if !exists {
        if new_file == NewFile::Refused {
            return Err(KeyError::NoKey { path: keys.path().to_owned() }.into());
        }
        keys.load_or_create()?;
    }
    if let Some(first) = keys.ids().first() {
        record(&mut transaction, first).await?;
    }
    transaction.commit().await?;
    channels::reseal(db, keys, channels::ResealScope::Unsealed).await?;
    installation_keys::reseal(db, keys, true).await?;
    Ok(())
}

async fn record(connection: &mut sqlx::PgConnection, id: &str) -> Result<()> {
    sqlx::query("insert into secret_keys (id) values ($1) on conflict do nothing").bind(id).execute(connection).await?;
    Ok(())
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
    sqlx::query("lock table secret_keys in exclusive mode").execute(&mut *transaction).await?;
    // Write the file first: a running service reads it when it sees a value with an unknown key.
    let id = keys.add_key()?;
    record(&mut transaction, &id).await?;
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
    let installation = installation_keys::reseal(db, keys, false).await?;
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
    sqlx::query("lock table secret_keys in exclusive mode").execute(&mut *transaction).await?;
    let recorded = all(db).await?;
    let key = recorded.iter().find(|key| key.id == id);
    let available = keys.ids();
    if key.is_none() && !available.iter().any(|available_id| available_id == id) {
        return Err(Error::NotFound("key"));
    }
    if key.is_some_and(|key| key.sealed > 0) || available.first().is_some_and(|first| first == id) {
        return Err(Error::InUse);
    }
    sqlx::query("delete from secret_keys where id = $1").bind(id).execute(&mut *transaction).await?;
    keys.remove_key(id)?;
    transaction.commit().await?;
    Ok(())
}
