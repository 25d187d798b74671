//! Webhooks whose secret is encrypted with a missing key. They are disabled, and enabled again once the key is found:
//! deliveries then continue where they stopped. If the key is given up instead, they get new secrets.

use sqlx::{PgConnection, PgPool};

use super::{WebhookId, old_secret_at, open_secret, replays, secret_at};
use crate::error::with_timeout;
use crate::sealed::{Keyring, Secret, is_sealed_with};
use crate::{CompanyId, Error, Result};

/// Why a webhook whose key is missing is disabled. Once the key is found, the webhooks with this reason are enabled.
const MISSING: &str = "the key that encrypts its secret is missing";

/// Why a webhook with a new secret is disabled: its receiver does not know the secret.
const ABANDONED: &str = "the key that encrypted its secret is lost; rotate the secret, then enable the webhook";

/// The company, the id, the secret and the old secret of a webhook, as stored.
type StoredSecrets = (CompanyId, WebhookId, String, Option<String>);

/// Disables the active webhooks whose secret cannot be opened, because its key is missing; returns how many have such a
/// secret, active or not.
///
/// # Errors
/// When the database cannot answer.
pub async fn disable_unreadable(db: &PgPool, keys: &Keyring) -> Result<u64> {
    let all = sqlx::query_as("select company_id, id, secret, old_secret from webhooks order by id");
    let all: Vec<StoredSecrets> = with_timeout(all.fetch_all(db)).await?;
    let mut unreadable = 0;
    for &(company, id, ..) in all.iter().filter(|webhook| lacks_key(keys, webhook)) {
        unreadable += 1;
        let disable = sqlx::query(
            "update webhooks set active = false, disabled_reason = $3, updated_at = now()
             where company_id = $1 and id = $2 and active",
        );
        with_timeout(disable.bind(company).bind(id).bind(MISSING).execute(db)).await?;
    }
    Ok(unreadable)
}

/// Enables again those webhooks whose missing key was found.
///
/// # Errors
/// When the database cannot answer.
pub async fn enable_readable(db: &PgPool, keys: &Keyring) -> Result<()> {
    let disabled = sqlx::query_as(
        "select company_id, id, secret, old_secret from webhooks where not active and disabled_reason = $1 order by id",
    );
    let disabled: Vec<StoredSecrets> = with_timeout(disabled.bind(MISSING).fetch_all(db)).await?;
    for &(company, id, ..) in disabled.iter().filter(|webhook| !lacks_key(keys, webhook)) {
        let mut transaction = db.begin().await?;
        let enable = sqlx::query(
            "update webhooks set active = true, disabled_reason = null, failing_since = null, updated_at = now()
             where company_id = $1 and id = $2 and not active and disabled_reason = $3",
        );
        with_timeout(enable.bind(company).bind(id).bind(MISSING).execute(&mut *transaction)).await?;
        replays::make_due(&mut transaction, company, id).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Gives each webhook whose secret is sealed with this key a new secret, and disables it until the secret is rotated.
/// An old secret that is sealed with the key is deleted. Returns the webhooks that lost either secret.
///
/// # Errors
/// When the database cannot answer; [`Error::Key`] when a secret cannot be sealed.
pub async fn abandon(
    db: &mut PgConnection,
    keys: &Keyring,
    key: &str,
    new_secret: impl Fn() -> Secret,
) -> Result<Vec<WebhookId>> {
    let all = sqlx::query_as("select company_id, id, secret, old_secret from webhooks order by id for update");
    let all: Vec<StoredSecrets> = with_timeout(all.fetch_all(&mut *db)).await?;
    let mut abandoned = Vec::new();
    for (company, id, secret, old) in all {
        if is_sealed_with(&secret, key) {
            let sealed = keys.seal(&secret_at(company, &id.to_string()), new_secret().0.as_bytes())?;
            let update = sqlx::query(
                "update webhooks set secret = $3, old_secret = null, old_secret_until = null, active = false,
                     disabled_reason = $4, updated_at = now()
                 where company_id = $1 and id = $2",
            );
            with_timeout(update.bind(company).bind(id).bind(sealed).bind(ABANDONED).execute(&mut *db)).await?;
        } else if old.is_some_and(|old| is_sealed_with(&old, key)) {
            let update = sqlx::query(
                "update webhooks set old_secret = null, old_secret_until = null where company_id = $1 and id = $2",
            );
            with_timeout(update.bind(company).bind(id).execute(&mut *db)).await?;
        } else {
            continue;
        }
        abandoned.push(id);
    }
    Ok(abandoned)
}

fn lacks_key(keys: &Keyring, (company, id, secret, old): &StoredSecrets) -> bool {
    let row = id.to_string();
    let lacks = |result: Result<Secret>| matches!(result, Err(Error::Key(error)) if error.missing_key().is_some());
    lacks(open_secret(keys, &secret_at(*company, &row), secret))
        || old.as_ref().is_some_and(|old| lacks(open_secret(keys, &old_secret_at(*company, &row), old)))
}
