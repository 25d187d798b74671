//! `hotline retention`: how long companies keep closed conversations.

use std::time::Duration;

use clap::{Args, Subcommand};
use hotline_persistence::tables::retentions::{self, DAYS_MAX, DAYS_MIN, Retention};
use hotline_persistence::{CompanyId, PgPool};

use super::audit::{AuditedAction, Target};
use super::database::{read_database, with_database};
use super::{Failure, GlobalArgs};
use crate::config::{DAY, days};

#[derive(Subcommand)]
pub enum Command {
    /// Delete a company's conversations some days after they are closed, with their messages, files and events
    #[command(
        override_usage = "hotline retention set --company <ID> --after <DURATION> [OPTIONS]",
        after_help = "Contacts and the figures of reports are kept. A running service starts within seconds, and deletes at \
        most about two thousand conversations per second. Deletion cannot be undone.\n\n\
        Example:\n  hotline retention set --company 1 --after 365d"
    )]
    Set {
        #[command(flatten)]
        company: CompanyArgs,
        #[command(flatten)]
        period: PeriodArgs,
    },
    /// Show the retention of a company, and how many of its conversations are due for deletion
    #[command(override_usage = "hotline retention show --company <ID> [OPTIONS]")]
    Show {
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Stop deleting a company's conversations
    #[command(alias = "off", override_usage = "hotline retention delete --company <ID> [OPTIONS]")]
    Delete {
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// List companies with a retention period, and how many conversations are due for deletion
    List,
}

/// The company, given by `--company` or, in the old spelling, as a positional argument.
#[derive(Args)]
pub struct CompanyArgs {
    /// Company ID
    #[arg(long, value_name = "ID", required_unless_present = "id")]
    company: Option<CompanyId>,
    /// Old spelling of --company
    #[arg(value_name = "ID", hide = true, conflicts_with = "company")]
    id: Option<CompanyId>,
}

impl CompanyArgs {
    fn id(&self) -> Result<CompanyId, Failure> {
        Ok(self.company.or(self.id).ok_or("--company is required")?)
    }
}

/// The retention period, given by `--after` or, in the old spelling, by `--days`.
#[derive(Args)]
pub struct PeriodArgs {
    /// Time for which a closed conversation is kept, in whole days
    #[arg(long, value_name = "DURATION", required_unless_present = "days", value_parser = days(duration_of(DAYS_MIN)..=duration_of(DAYS_MAX)))]
    after: Option<Duration>,
    /// Old spelling of --after
    #[arg(long, value_name = "DAYS", hide = true, conflicts_with = "after",
        value_parser = clap::value_parser!(i32).range(i64::from(DAYS_MIN)..=i64::from(DAYS_MAX)))]
    days: Option<i32>,
}

impl PeriodArgs {
    fn days(&self) -> Result<i32, Failure> {
        let after = self.after.map(|after| i32::try_from(after.as_secs() / DAY.as_secs())).transpose()?;
        Ok(after.or(self.days).ok_or("--after is required")?)
    }
}

fn duration_of(days: i32) -> Duration {
    DAY * days.unsigned_abs()
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Set { company, period } => {
            let (id, days) = (company.id()?, period.days()?);
            global
                .output
                .one(with_database(&global.database, async |db| set_retention(db, id, Some(days)).await).await?)
        }
        Command::Show { company } => {
            let id = company.id()?;
            let all = read_database(&global.database, async |db| Ok(retentions::all(db).await?)).await?;
            let found = all.into_iter().find(|retention| retention.company == id);
            global.output.one(found.ok_or_else(|| format!("company {id} has no retention"))?)
        }
        Command::Delete { company } => {
            let id = company.id()?;
            global.output.one(with_database(&global.database, async |db| set_retention(db, id, None).await).await?)
        }
        Command::List => {
            let all = read_database(&global.database, async |db| Ok(retentions::all(db).await?)).await?;
            global.output.many("retentions", &["company", "name", "days", "pending", "deleted", "lastRunAt"], all)
        }
    }
}

async fn set_retention(db: &PgPool, id: CompanyId, days: Option<i32>) -> Result<Retention, Failure> {
    let audited =
        AuditedAction::of_company(Some(id), if days.is_some() { "setRetention" } else { "endRetention" }).on(id);
    audited
        .run(db, async || Ok(retentions::set(db, id, days).await?), |row| Target::named(row.company, &row.name))
        .await
}
