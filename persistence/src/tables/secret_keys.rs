//! Which keys seal a database's secrets ([`crate::sealed`]), and what is sealed with them.
//!
//! The tables that keep sealed values are named here and nowhere else: `USES` finds their keys, [`reseal`] seals them
//! anew. A test looks for secrets in every column of every table.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgPool};

use super::people::factors;
use super::{channels, installation_keys, webhooks};
use crate::error::with_timeout;
use crate::sealed::{KeyError, Keyring};
use crate::{Error, Result};

/// The id of the key of every sealed value.
const USES: &str = r#"
    select split_part(value #>> '{}', '.', 2) as id
    from channels, jsonb_path_query(settings, 'strict $.**."$sealed"', silent => true) value
    union all
    select split_part(convert_from(key, 'UTF8'), '.', 2) from installation_keys where length(key) <> 64
    union all
    select split_part(value, '.', 2) from webhooks, unnest(array[secret, old_secret]) value where value is not null
    union all
    select split_part(secret, '.', 2) from second_factors"#;

/// A key, as it is listed.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct SecretKeyRow {
    pub id: String,
    /// When the database first heard of it.
    pub created_at: Option<DateTime<Utc>>,
    /// Values sealed with it.
    pub sealed: i64,
}

/// Every key the database knows, the last one first.
///
/// # Errors
/// When the database cannot answer.
pub async fn all(db: &PgPool) -> Result<Vec<SecretKeyRow>> {
    let statement = format!(
        "with uses as (select id, count(*) as sealed from ({USES}) used group by id)
         select id, k.created_at, coalesce(u.sealed, 0) as sealed
         from secret_keys k full join uses u using (id) order by k.position desc nulls last, id"
    );
    with_timeout(sqlx::query_as(sqlx::AssertSqlSafe(statement)).fetch_all(db)).await
}

/// Whether a key file may be made where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewFile {
    /// It may, unless the database has a key already.
    Made,
    /// It may not: this is not where the service's file is.
    Refused,
}

/// Brings keyring and database together, at every start and before a command that seals or opens: every key that is
/// needed is there, the key that seals is noted, and what was stored in clear is sealed.
///
/// # Errors
/// [`Error::Key`] when a key is needed that is not there; when the database cannot answer.
pub async fn begin(db: &PgPool, keys: &Keyring, new_file: NewFile) -> Result<()> {
    let mut transaction = db.begin().await?;
    // One at a time: two who begin at once would each note a key of their own.
    sqlx::query("lock table secret_keys in exclusive mode").execute(&mut *transaction).await?;
    let known = all(db).await?;
    let is_there = keys.load()?;
    let held = keys.ids();
    // The last one noted, for a database without a secret yet, and whatever else something is sealed with.
    let needed = known.iter().enumerate().filter(|(index, key)| *index == 0 || key.sealed > 0).map(|(_, key)| &key.id);
    if let Some(id) = needed.into_iter().find(|id| !held.contains(id)) {
        return Err(keys.lacks(id).into());
    }
    if !is_there {
        if new_file == NewFile::Refused {
            return Err(KeyError::NoKey { path: keys.path().to_owned() }.into());
        }
        keys.load_or_create()?;
    }
    if let Some(first) = keys.ids().first() {
        note(&mut transaction, first).await?;
    }
    transaction.commit().await?;
    channels::reseal(db, keys, channels::Reseal::Plain).await?;
    installation_keys::reseal(db, keys, true).await?;
    Ok(())
}

async fn note(connection: &mut sqlx::PgConnection, id: &str) -> Result<()> {
    sqlx::query("insert into secret_keys (id) values ($1) on conflict do nothing").bind(id).execute(connection).await?;
    Ok(())
}

/// What a rotation did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotated {
    /// The key that seals from now on.
    pub id: String,
    /// Values that were sealed anew.
    pub resealed: u64,
}

/// Makes a new key, which seals from now on, and seals everything anew with it. The old keys stay in the file: they open
/// what an old backup holds.
///
/// # Errors
/// When the key file cannot be written, the database cannot answer, or something does not open.
pub async fn rotate(db: &PgPool, keys: &Keyring) -> Result<Rotated> {
    let mut transaction = db.begin().await?;
    sqlx::query("lock table secret_keys in exclusive mode").execute(&mut *transaction).await?;
    // In the file first: a running service looks there once it sees a value of a key it does not know.
    let id = keys.add_key()?;
    note(&mut transaction, &id).await?;
    transaction.commit().await?;
    let resealed = reseal(db, keys).await?;
    Ok(Rotated { id, resealed })
}

/// Seals everything anew with the first key of the file; answers how many values that were.
///
/// # Errors
/// When the database cannot answer, or something does not open.
pub async fn reseal(db: &PgPool, keys: &Keyring) -> Result<u64> {
    let channels = channels::reseal(db, keys, channels::Reseal::All).await?;
    let installation = installation_keys::reseal(db, keys, false).await?;
    let factors = factors::reseal(db, keys).await?;
    Ok(channels + installation + factors + webhooks::reseal(db, keys).await?)
}

/// Takes a key that seals nothing any more out of database and file.
///
/// # Errors
/// [`Error::InUse`] when something is sealed with it or it is the one that seals; [`Error::NotFound`] when there is no
/// such key; when the file cannot be written or the database cannot answer.
pub async fn forget(db: &PgPool, keys: &Keyring, id: &str) -> Result<()> {
    let mut transaction = db.begin().await?;
    sqlx::query("lock table secret_keys in exclusive mode").execute(&mut *transaction).await?;
    let known = all(db).await?;
    let key = known.iter().find(|key| key.id == id);
    let held = keys.ids();
    if key.is_none() && !held.iter().any(|held| held == id) {
        return Err(Error::NotFound("key"));
    }
    if key.is_some_and(|key| key.sealed > 0) || held.first().is_some_and(|first| first == id) {
        return Err(Error::InUse);
    }
    sqlx::query("delete from secret_keys where id = $1").bind(id).execute(&mut *transaction).await?;
    keys.remove_key(id)?;
    transaction.commit().await?;
    Ok(())
}
