//! Secrets of the installation: the process that first needs a secret creates it, and all processes share it. They are
//! stored sealed ([`crate::sealed`]).

use rand::Rng;
use sqlx::{PgConnection, PgPool};

use crate::error::with_timeout;
use crate::sealed::{KeyError, Keyring, Location};
use crate::{CompanyId, Database, Error, Result};

/// A random secret from the operating system: one block of HMAC-SHA-256.
pub type InstallationKey = [u8; 64];

/// Length of an unsealed secret, as earlier releases stored it; a sealed one is longer.
const KEY_BYTES: usize = size_of::<InstallationKey>();

fn location_of(name: &str) -> Location<'_> {
    Location { column: "installation_keys.key", company: CompanyId::new(0), row: name }
}

/// Finds or creates the secret of this name.
///
/// # Errors
/// When the database cannot answer; [`crate::Error::Key`] when it cannot be sealed or opened.
pub async fn find_or_create(db: impl Database<'_>, keys: &Keyring, name: &str) -> Result<InstallationKey> {
    let mut new_key: InstallationKey = [0; KEY_BYTES];
    // `rand::rng` is a cryptographic generator, seeded and reseeded by the operating system.
    rand::rng().fill_bytes(&mut new_key);
    let sealed = keys.seal(&location_of(name), &new_key)?;
    let stored: Vec<u8> = with_timeout(
        sqlx::query_scalar(
            // If another process inserted first, return its key: a no-op update makes `returning` work.
            "insert into installation_keys (name, key) values ($1, $2)
             on conflict (name) do update set key = installation_keys.key returning key",
        )
        .bind(name)
        .bind(sealed.into_bytes())
        .fetch_one(db),
    )
    .await?;
    open(keys, name, &stored)
}

/// As [`find_or_create`]; if the key that seals the secret is missing, returns a secret that is valid until this
/// process ends. Only for a process that shares the secret with no other.
///
/// # Errors
/// As [`find_or_create`].
pub async fn find_or_create_temporary(db: impl Database<'_>, keys: &Keyring, name: &str) -> Result<InstallationKey> {
    match find_or_create(db, keys, name).await {
        Err(Error::Key(error)) if keys.is_reported(&error) => {
            let mut temporary_key: InstallationKey = [0; KEY_BYTES];
            rand::rng().fill_bytes(&mut temporary_key);
            Ok(temporary_key)
        }
        found => found,
    }
}

/// Removes the secrets that are sealed with the key of this id; each is created again by the process that needs it
/// first. Returns how many there were.
///
/// # Errors
/// When the database cannot answer.
pub async fn abandon(db: &mut PgConnection, key_id: &str) -> Result<u64> {
    let remove = sqlx::query(
        // An unsealed secret is not text. `case` excludes it: the conditions of an `and` are evaluated in any order.
        "delete from installation_keys
         where split_part(case when length(key) <> $2 then convert_from(key, 'UTF8') end, '.', 2) = $1",
    );
    let unsealed_bytes = i32::try_from(KEY_BYTES).unwrap_or(i32::MAX);
    Ok(with_timeout(remove.bind(key_id).bind(unsealed_bytes).execute(db)).await?.rows_affected())
}

fn open(keys: &Keyring, name: &str, stored: &[u8]) -> Result<InstallationKey> {
    if let Ok(key) = InstallationKey::try_from(stored) {
        return Ok(key);
    }
    let sealed = std::str::from_utf8(stored).map_err(|_| KeyError::Damaged)?;
    let key = keys.open(&location_of(name), sealed)?;
    InstallationKey::try_from(key.as_slice()).map_err(|_| KeyError::Damaged.into())
}

/// Reseals all secrets with the current key, or only unsealed ones; returns how many.
///
/// # Errors
/// When the database cannot answer; [`crate::Error::Key`] when one cannot be opened.
pub async fn reseal(db: &PgPool, keys: &Keyring, only_unsealed: bool) -> Result<u64> {
    let statement = "select name, key from installation_keys order by name";
    let all: Vec<(String, Vec<u8>)> = with_timeout(sqlx::query_as(statement).fetch_all(db)).await?;
    let mut resealed = 0;
    for (name, stored) in all.iter().filter(|(_, stored)| !only_unsealed || stored.len() == KEY_BYTES) {
        let sealed = keys.seal(&location_of(name), &open(keys, name, stored)?)?;
        // Secrets never change, so if another process has resealed this one meanwhile, it has sealed the same value.
        let update = sqlx::query("update installation_keys set key = $3 where name = $1 and key = $2");
        with_timeout(update.bind(name).bind(stored).bind(sealed.into_bytes()).execute(db)).await?;
        resealed += 1;
    }
    Ok(resealed)
}
