//! `hotline admin`: the administrators of the installation.

use std::io::{BufRead, Read};

use clap::{Args, Subcommand};
use hotline_persistence::password::{self, Password};
use hotline_persistence::tables::admins::{self, AdminRow};
use hotline_persistence::{Error, PgPool};
use serde::Serialize;
use serde_json::json;

use super::audit::{AuditedAction, Target};
use super::database::{read_database, with_database, with_new_database};
use super::{Failure, GlobalArgs};
use crate::web::request::values::{FromField, SignInEmail};

#[derive(Subcommand)]
pub enum Command {
    /// Create an administrator; prints a generated password unless --password-stdin is given
    Create(Create),
    /// List administrators, with their second factor and when they were last seen
    List,
    /// Show an administrator
    Show {
        /// E-mail address of the administrator
        email: String,
    },
    /// Delete an administrator, and end all their sessions; the last one cannot be deleted
    Delete {
        /// E-mail address of the administrator
        email: String,
    },
    /// Reset an administrator's password; prints a generated one unless --password-stdin is given
    #[command(alias = "reset")]
    ResetPassword(ResetPassword),
}

#[derive(Args)]
#[command(after_help = "Examples:
  hotline admin create ana@example.com
  hotline admin create ana@example.com --password-stdin < password.txt")]
pub struct Create {
    /// E-mail address of the administrator
    email: String,
    /// Read the password (at least 12 characters) from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hotline admin reset-password ana@example.com
  hotline admin reset-password ana@example.com --remove-second-factor

This ends all sessions of the administrator.")]
pub struct ResetPassword {
    /// E-mail address of the administrator
    email: String,
    /// Read the password (at least 12 characters) from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
    /// Also remove the second factor, with its recovery codes
    #[arg(long, alias = "second-factor")]
    remove_second_factor: bool,
}

/// A created or changed administrator, as the command prints it.
#[derive(Serialize)]
struct AdminWithPassword {
    #[serde(flatten)]
    row: AdminRow,
    /// A generated password, shown only once; `None` if it was read from standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.run(global).await,
        Command::List => {
            let rows = read_database(&global.database, async |db| Ok(admins::all(db, None).await?)).await?;
            global.output.many("admins", &["id", "email", "name", "secondFactor", "lastSeenAt", "createdAt"], rows)
        }
        Command::Show { email } => {
            let matching = read_database(&global.database, async |db| Ok(admins::all(db, Some(&email)).await?)).await?;
            global.output.one(matching.first().ok_or_else(|| format!("no such administrator: {email}"))?)
        }
        Command::Delete { email } => {
            let removal = with_database(&global.database, async |db| {
                AuditedAction::of_installation("deleteAdmin").run(db, async || remove(db, &email).await, target).await
            });
            global.output.one(json!({"id": removal.await?.id, "deleted": true}))
        }
        Command::ResetPassword(reset) => reset.run(global).await,
    }
}

impl Create {
    async fn run(self, global: &GlobalArgs) -> Result<(), Failure> {
        let email = SignInEmail::from_text(&self.email).map_err(|reason| format!("the e-mail {reason}"))?.0;
        let (hash, generated_password) = hash_password(self.password_stdin, &email)?;
        let insertion = with_new_database(&global.database, async |db| {
            let insert = async || match admins::insert(db, &email, &hash).await {
                Err(Error::Taken(_)) => Err(format!("the administrator {email} already exists").into()),
                created => Ok(created?),
            };
            AuditedAction::of_installation("createAdmin").run(db, insert, target).await
        });
        global.output.one(AdminWithPassword { row: insertion.await?, password: generated_password })
    }
}

impl ResetPassword {
    async fn run(self, global: &GlobalArgs) -> Result<(), Failure> {
        let (hash, generated_password) = hash_password(self.password_stdin, &self.email)?;
        let change = with_database(&global.database, async |db| {
            let reset = async || {
                let mut transaction = db.begin().await?;
                let row = match admins::reset_password(&mut transaction, &self.email, &hash, self.remove_second_factor)
                    .await
                {
                    Err(Error::NotFound(_)) => {
                        return Err(format!("no such administrator: {}", self.email).into());
                    }
                    row => row?,
                };
                transaction.commit().await?;
                Ok(row)
            };
            AuditedAction::of_installation("resetAdmin").run(db, reset, target).await
        });
        global.output.one(AdminWithPassword { row: change.await?, password: generated_password })
    }
}

async fn remove(db: &PgPool, email: &str) -> Result<AdminRow, Failure> {
    let mut transaction = db.begin().await?;
    let removed = match admins::remove(&mut transaction, email).await {
        Err(Error::NotFound(_)) => return Err(format!("no such administrator: {email}").into()),
        removed => removed?,
    };
    let row = removed.ok_or_else(|| format!("{email} is the last administrator; create another one first"))?;
    transaction.commit().await?;
    Ok(row)
}

fn target(row: &AdminRow) -> Target {
    Target::named(row.id, &row.email)
}

/// The hash of a password that is read from standard input or generated, and the password itself if it was generated.
fn hash_password(from_stdin: bool, email: &str) -> Result<(String, Option<String>), Failure> {
    let password = if from_stdin { read_password()? } else { Password::random() };
    password.check_owner(email, "").map_err(|reason| format!("the password {reason}"))?;
    let hash = password.hash().map_err(|error| format!("the password cannot be hashed: {error}"))?;
    Ok((hash, (!from_stdin).then(|| password.as_str().to_owned())))
}

fn read_password() -> Result<Password, Failure> {
    let mut line = String::new();
    // Enough bytes for the longest password, its line end, and one more that shows that it is too long.
    let bytes_max = password::BYTES_MAX as u64 + 3;
    std::io::stdin().lock().take(bytes_max).read_line(&mut line)?;
    let text = line.trim_end_matches(['\n', '\r']);
    Ok(Password::parse(text.to_owned()).map_err(|reason| format!("the password {reason}"))?)
}
