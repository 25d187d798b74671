//! Secrets of the installation: each is made once, by whoever needs it first, and all processes share it.

use rand::Rng;
use sqlx::PgPool;

use crate::Result;
use crate::error::within;

/// A secret from the operating system's random source: as many bytes as HMAC-SHA-256 takes at once.
pub type InstallationKey = [u8; 64];

/// The secret of this name.
///
/// # Errors
/// When the database cannot answer.
pub async fn find_or_create(db: &PgPool, name: &str) -> Result<InstallationKey> {
    let mut fresh: InstallationKey = [0; 64];
    // `rand::rng` is a cryptographic generator seeded, and seeded anew, by the operating system.
    rand::rng().fill_bytes(&mut fresh);
    within(
        sqlx::query_scalar(
            // Who comes second reads the first one's: an update that changes nothing returns it.
            "insert into installation_keys (name, key) values ($1, $2)
             on conflict (name) do update set key = installation_keys.key returning key",
        )
        .bind(name)
        .bind(fresh)
        .fetch_one(db),
    )
    .await
}
