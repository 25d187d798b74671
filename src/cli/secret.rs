//! `hotline secret`: the keys that encrypt the credentials of channels.

use clap::Subcommand;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::secret_keys;
use hotline_persistence::{Error, PgPool};
use serde_json::json;

use super::audit::{AuditedAction, Target};
use super::database::{with_secrets, with_unchecked_keys};
use super::{Failure, GlobalArgs};
use crate::webhooks::new_secret;

#[derive(Subcommand)]
pub enum Command {
    /// List the keys: when each was created, whether the key file contains it, and how many secrets it encrypts
    List,
    /// Create a new key and encrypt all secrets with it; old keys stay in the key file
    Rotate,
    /// Encrypt all secrets with the first key of the key file, for example after adding a key by hand
    #[command(alias = "reseal")]
    Reencrypt,
    /// Give up a lost key: the credentials that it encrypts are deleted
    #[command(after_help = "\
Channels lose these credentials and are disconnected; webhooks get a new secret and are disabled until it is rotated; \
people whose second factor is encrypted with the key sign in with their password and set it up again; addresses of files \
and cursors of lists from before the next start of the service become invalid.

A key that the key file contains is not given up. Use `hotline secret list` for the IDs of missing keys (inFile: false).")]
    Abandon {
        /// Key ID, as shown by `hotline secret list`
        id: String,
        /// Confirm: this cannot be undone
        #[arg(long)]
        yes: bool,
    },
    /// Delete an unused key from the key file
    #[command(
        alias = "forget",
        after_help = "Backups of the database from before the rotation can only be decrypted with the old key: keep a copy."
    )]
    Delete {
        /// Key ID, as shown by `hotline secret list`
        id: String,
    },
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::List => list(global).await,
        Command::Rotate => rotate(global).await,
        Command::Reencrypt => reencrypt(global).await,
        Command::Abandon { id, yes } => abandon(id, yes, global).await,
        Command::Delete { id } => delete(id, global).await,
    }
}

async fn list(global: &GlobalArgs) -> Result<(), Failure> {
    let listing = with_unchecked_keys(&global.database, async |db, keys, _| {
        keys.load()?;
        let file_keys = keys.ids();
        let all_keys = secret_keys::all(db).await?;
        Ok(all_keys
            .into_iter()
            .map(|key| {
                json!({"id": key.id, "createdAt": key.created_at, "secretCount": key.sealed,
                    "inFile": file_keys.contains(&key.id), "current": file_keys.first() == Some(&key.id)})
            })
            .collect::<Vec<_>>())
    });
    global.output.many("keys", &["id", "createdAt", "inFile", "current", "secretCount"], listing.await?)
}

async fn rotate(global: &GlobalArgs) -> Result<(), Failure> {
    let rotation = with_secrets(&global.database, async |db, keys| {
        let audited = AuditedAction::of_installation("rotateSecretKey");
        audited.run(db, async || Ok(secret_keys::rotate(db, keys).await?), |_| current_key(keys)).await
    });
    global.output.one(rotation.await?)
}

async fn reencrypt(global: &GlobalArgs) -> Result<(), Failure> {
    let reencryption = with_secrets(&global.database, async |db, keys| {
        let audited = AuditedAction::of_installation("resealSecrets");
        let work = async || Ok(secret_keys::reseal(db, keys).await?);
        let secret_count = audited.run(db, work, |_| current_key(keys)).await?;
        Ok(json!({"id": keys.ids().first(), "reencrypted": secret_count}))
    });
    global.output.one(reencryption.await?)
}

async fn abandon(id: String, yes: bool, global: &GlobalArgs) -> Result<(), Failure> {
    let abandonment = with_unchecked_keys(&global.database, async |db, keys, new_file| {
        if !yes {
            return Err(unconfirmed_message(db, keys, &id).await?.into());
        }
        let work = async || match secret_keys::abandon(db, keys, (&id, new_file), new_secret).await {
            Err(Error::InUse) => Err(not_lost_message(keys, &id).into()),
            outcome => Ok(outcome?),
        };
        AuditedAction::of_installation("abandonSecretKey").on(&id).run(db, work, |_| Target::of(&id)).await
    });
    global.output.one(abandonment.await?)
}

async fn delete(id: String, global: &GlobalArgs) -> Result<(), Failure> {
    let deletion = with_secrets(&global.database, async |db, keys| {
        let work = async || match secret_keys::forget(db, keys, &id).await {
            Err(Error::InUse) => {
                let message = format!("key {id} encrypts secrets; run `hotline secret rotate` first");
                Err(message.into())
            }
            outcome => Ok(outcome?),
        };
        AuditedAction::of_installation("forgetSecretKey").on(&id).run(db, work, |_| Target::of(&id)).await
    });
    deletion.await?;
    global.output.one(json!({"id": id}))
}

/// The key that now encrypts new secrets, as the target of an action in the audit log.
fn current_key(keys: &Keyring) -> Target {
    Target::of(keys.ids().into_iter().next().unwrap_or_default())
}

/// Why giving up a key without `--yes` is refused: the key is not lost, or what would be deleted.
async fn unconfirmed_message(db: &PgPool, keys: &Keyring, id: &str) -> Result<String, Failure> {
    keys.load()?;
    let all_keys = secret_keys::all(db).await?;
    let key = all_keys.iter().find(|key| key.id == id).ok_or(Error::NotFound("key"))?;
    if keys.ids().contains(&key.id) {
        return Ok(not_lost_message(keys, id));
    }
    Ok(format!(
        "this permanently deletes {} secrets, which are encrypted with the key {id}; add --yes to confirm, or restore {} if \
         you have a copy",
        key.sealed,
        keys.path().display()
    ))
}

fn not_lost_message(keys: &Keyring, id: &str) -> String {
    format!(
        "key {id} is not lost: {} contains it. To replace it, run `hotline secret rotate`, then `hotline secret delete {id}`",
        keys.path().display()
    )
}
