//! `hotline secrets`: the keys that seal the credentials of channels.

use clap::{Args, Subcommand};
use hotline_persistence::Error;
use hotline_persistence::tables::secret_keys;
use serde_json::json;

use super::Failure;
use super::audit::{Act, Target};
use super::database::with_secrets;
use super::output::OutputArgs;
use crate::config::DatabaseArgs;

#[derive(Subcommand)]
pub enum Command {
    /// List the keys: since when the database knows them, whether the key file has them, and what is sealed with each
    List(Where),
    /// Make a new key, which seals from now on, and seal everything anew with it; old keys stay in the file
    Rotate(Where),
    /// Seal everything anew with the first key of the file, for instance after a line was put there by hand
    Reseal(Where),
    /// Take a key that seals nothing any more out of the file
    #[command(
        after_help = "A backup of the database from before the rotation opens with the old key only: keep a copy."
    )]
    Forget {
        /// Its id, as `hotline secrets list` shows it
        id: String,
        #[command(flatten)]
        place: Where,
    },
}

/// Which installation, and how to answer.
#[derive(Args)]
pub struct Where {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(Where { database, output }) => {
            let keys = with_secrets(&database, async |db, keys| {
                let held = keys.ids();
                let known = secret_keys::all(db).await?;
                Ok(known
                    .into_iter()
                    .map(|key| {
                        json!({"id": key.id, "createdAt": key.created_at, "sealed": key.sealed,
                            "inFile": held.contains(&key.id), "seals": held.first() == Some(&key.id)})
                    })
                    .collect::<Vec<_>>())
            });
            output.many("keys", &["id", "createdAt", "inFile", "seals", "sealed"], keys.await?)
        }
        Command::Rotate(Where { database, output }) => {
            let rotated = with_secrets(&database, async |db, keys| {
                let act = Act::of_installation("rotateSecretKey");
                let made = |_: &_| Target::of(keys.ids().into_iter().next().unwrap_or_default());
                act.kept(db, async || Ok(secret_keys::rotate(db, keys).await?), made).await
            });
            output.one(rotated.await?)
        }
        Command::Reseal(Where { database, output }) => {
            let resealed = with_secrets(&database, async |db, keys| {
                let act = Act::of_installation("resealSecrets");
                let made = |_: &_| Target::of(keys.ids().into_iter().next().unwrap_or_default());
                let resealed = act.kept(db, async || Ok(secret_keys::reseal(db, keys).await?), made).await?;
                Ok(json!({"id": keys.ids().first(), "resealed": resealed}))
            });
            output.one(resealed.await?)
        }
        Command::Forget { id, place: Where { database, output } } => {
            let forgotten = with_secrets(&database, async |db, keys| {
                let work = async || match secret_keys::forget(db, keys, &id).await {
                    Err(Error::InUse) => {
                        let refused =
                            format!("the key {id} seals secrets; `hotline secrets rotate` makes another one first");
                        Err(refused.into())
                    }
                    done => Ok(done?),
                };
                Act::of_installation("forgetSecretKey").on(&id).kept(db, work, |_| Target::of(&id)).await
            });
            forgotten.await?;
            output.one(json!({"id": id}))
        }
    }
}
