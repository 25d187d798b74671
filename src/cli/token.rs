//! `hotline token`: manages API tokens.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use hotline_actors::clock;
use hotline_persistence::tables::tokens::{self, NewToken, TOKENS_MAX, TokenRow, TokenStatus};
use hotline_persistence::{CompanyId, Error, PgPool, TokenId};
use serde::Serialize;
use serde_json::json;

use super::audit::{AuditedAction, Target};
use super::database::{read_database, with_database};
use super::permissions::parse_permissions;
use super::subject::NameArgs;
use super::{Failure, GlobalArgs};
use crate::config::{DAY, HOUR, durations};
use crate::web::request::addresses::{AddressRange, allowed_ips};
use crate::web::request::values::FromField;

/// Upper bound of an expiry that is given as a duration: a hundred years.
const EXPIRY_MAX: Duration = Duration::from_secs(36_500 * 24 * 3600);

#[derive(Subcommand)]
pub enum Command {
    /// Create a token; its key is printed once
    Create(Create),
    /// List tokens, with their status, expiry, allowed addresses and last use
    List {
        /// Show only the tokens of this company
        #[arg(long, value_name = "ID")]
        company: Option<CompanyId>,
    },
    /// Show a token, with its permissions
    Show(TokenArgs),
    /// Replace the key of a token; the new key is printed once, the old one stops working at once
    Rotate(TokenArgs),
    /// Revoke a token permanently
    Revoke(TokenArgs),
}

#[derive(Args)]
#[command(
    override_usage = "hotline token create <NAME> --company <ID> [OPTIONS]",
    after_help = "Examples:
  hotline token create crm --company 1 --all
  hotline token create shop --company 1 --permission contacts:GET,POST --permission tickets:GET \\
      --expires 2031-01-31T00:00:00Z --allow-ip 203.0.113.0/24"
)]
pub struct Create {
    #[command(flatten)]
    name: NameArgs,
    /// Company ID
    #[arg(long, value_name = "ID")]
    company: CompanyId,
    /// Allow everything
    #[arg(long, conflicts_with = "permission")]
    all: bool,
    /// Allow methods of a module, for example tickets:GET,POST (repeatable)
    #[arg(long, value_name = "MODULE:METHODS")]
    permission: Vec<String>,
    /// Expiry, as a time (2031-01-31T00:00:00Z) or as a duration from now (90d); without it, the token does not expire
    #[arg(long, value_name = "TIME|DURATION", value_parser = parse_expiry)]
    expires: Option<DateTime<Utc>>,
    /// IPv4 address or range from which the token may be used (repeatable, at most 50); without it, any
    #[arg(long, value_name = "CIDR", value_parser = parse_range)]
    allow_ip: Vec<AddressRange>,
}

/// One token.
#[derive(Args)]
pub struct TokenArgs {
    /// Token ID
    id: TokenId,
}

/// A token with its present status, as it is printed.
#[derive(Serialize)]
struct PrintedToken {
    #[serde(flatten)]
    row: TokenRow,
    status: TokenStatus,
}

impl PrintedToken {
    fn of(row: TokenRow) -> Self {
        let status = row.status(clock::now());
        Self { row, status }
    }
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.run(global).await,
        Command::List { company } => {
            let all = read_database(&global.database, async |db| Ok(tokens::all(db, company).await?)).await?;
            let all: Vec<PrintedToken> = all.into_iter().map(PrintedToken::of).collect();
            let columns = ["id", "companyId", "prefix", "name", "status", "expiresAt", "allowedIps", "lastUsedAt"];
            global.output.many("tokens", &columns, all)
        }
        Command::Show(token) => {
            let found = read_database(&global.database, async |db| Ok(tokens::find(db, token.id).await?)).await?;
            global.output.one(PrintedToken::of(found.ok_or(Error::NotFound("token"))?))
        }
        Command::Rotate(token) => token.rotate(global).await,
        Command::Revoke(token) => {
            let revocation = with_database(&global.database, async |db| {
                let audited = token.audited_action(db, "revokeToken").await?;
                audited.run(db, async || Ok(tokens::revoke(db, token.id).await?), target).await
            });
            let row = revocation.await?;
            global.output.one(PrintedToken::of(row))
        }
    }
}

impl Create {
    async fn run(self, global: &GlobalArgs) -> Result<(), Failure> {
        if !self.all && self.permission.is_empty() {
            return Err("a token needs permissions: use --permission MODULE:METHODS for each module, for example \
                        --permission tickets:GET,POST, or --all to allow everything"
                .into());
        }
        let new = NewToken {
            name: &super::parse_name(self.name.get())?,
            permissions: parse_permissions(self.all, &self.permission)?,
            allowed_ips: allowed_ips(&self.allow_ip).map_err(|reason| format!("--allow-ip {reason}"))?,
            expires_at: self.expires,
        };
        let creation = with_database(&global.database, async |db| {
            let audited = AuditedAction::of_company(Some(self.company), "createToken");
            let work = async || {
                let mut transaction = db.begin().await?;
                if tokens::has_max_tokens(&mut transaction, self.company).await? {
                    let message = format!("the company has reached its maximum number of tokens ({TOKENS_MAX})");
                    return Err(message.into());
                }
                let inserted = tokens::insert(&mut *transaction, self.company, new).await?;
                transaction.commit().await?;
                Ok(inserted)
            };
            audited.run(db, work, |(row, _)| target(row)).await
        });
        let (row, key) = creation.await?;
        print_key(global, &row, &key)
    }
}

impl TokenArgs {
    /// An action on the token, for the audit log of its company.
    async fn audited_action(&self, db: &PgPool, action: &'static str) -> Result<AuditedAction, Failure> {
        let token = tokens::find(db, self.id).await?;
        Ok(AuditedAction::of_company(token.map(|token| token.company_id), action).on(self.id))
    }

    async fn rotate(self, global: &GlobalArgs) -> Result<(), Failure> {
        let rotation = with_database(&global.database, async |db| {
            let work = async || {
                let token = tokens::find(db, self.id).await?;
                if token.is_some_and(|token| token.revoked_at.is_some()) {
                    let message = format!("token {} is revoked and cannot be rotated; create a new one", self.id);
                    return Err(message.into());
                }
                Ok(tokens::rotate(db, self.id).await?)
            };
            self.audited_action(db, "rotateToken").await?.run(db, work, |(row, _)| target(row)).await
        });
        let (row, key) = rotation.await?;
        print_key(global, &row, &key)
    }
}

fn target(row: &TokenRow) -> Target {
    Target::named(row.id, &row.name)
}

/// Prints the key, which is shown only once.
fn print_key(global: &GlobalArgs, row: &TokenRow, key: &str) -> Result<(), Failure> {
    global
        .output
        .one(json!({"id": row.id, "key": key, "prefix": row.prefix, "companyId": row.company_id, "name": row.name}))
}

fn parse_expiry(text: &str) -> Result<DateTime<Utc>, String> {
    let now = clock::now();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let time = match durations(DAY, HOUR..=EXPIRY_MAX)(text) {
        // Digits alone are refused as a duration: they may be meant as a year.
        Ok(duration) if !is_number => now + duration,
        _ => DateTime::<Utc>::from_text(text)?,
    };
    if time > now { Ok(time) } else { Err("must be in the future".to_owned()) }
}

fn parse_range(text: &str) -> Result<AddressRange, String> {
    AddressRange::from_text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_time_or_a_duration_from_now() {
        let time = parse_expiry("2099-01-31T00:00:00Z").expect("a time");
        assert_eq!(time.timestamp(), 4_073_500_800);
        let before = clock::now();
        let time = parse_expiry("90d").expect("a duration");
        assert!(time >= before + 90 * DAY && time <= clock::now() + 90 * DAY, "{time}");
        for bad in ["2099", "90", "0d", "30m", "200000d", "2001-01-31T00:00:00Z", "tomorrow"] {
            assert!(parse_expiry(bad).is_err(), "{bad}");
        }
    }
}
