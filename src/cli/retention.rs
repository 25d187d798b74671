//! `hotline retention`: how long companies keep closed conversations.

use clap::Subcommand;
use hotline_persistence::tables::retentions::{self, DAYS_MAX, DAYS_MIN, Retention};
use hotline_persistence::{CompanyId, PgPool};

use super::audit::{AuditedAction, Target};
use super::database::with_database;
use super::{Failure, GlobalArgs};

#[derive(Subcommand)]
pub enum Command {
    /// Delete a company's conversations a number of days after they are closed, with their messages, files and events
    #[command(
        after_help = "Contacts and the figures of reports are kept. A running service starts within seconds, and deletes at \
        most a few hundred conversations per second. Deletion cannot be undone.\n\n\
        Example:\n  hotline retention set 1 --days 365"
    )]
    Set {
        /// Company ID
        id: CompanyId,
        /// Days for which a closed conversation is kept
        #[arg(long, value_name = "DAYS",
            value_parser = clap::value_parser!(i32).range(i64::from(DAYS_MIN)..=i64::from(DAYS_MAX)))]
        days: i32,
    },
    /// Stop deleting a company's conversations
    Off {
        /// Company ID
        id: CompanyId,
    },
    /// List companies with a retention period, and how many conversations are due for deletion
    List,
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Set { id, days } => {
            global.output.one(with_database(&global.database, async |db| set(db, id, Some(days)).await).await?)
        }
        Command::Off { id } => {
            global.output.one(with_database(&global.database, async |db| set(db, id, None).await).await?)
        }
        Command::List => {
            let all = with_database(&global.database, async |db| Ok(retentions::all(db).await?)).await?;
            global.output.many("retentions", &["company", "name", "days", "due", "removed", "lastRun"], all)
        }
    }
}

async fn set(db: &PgPool, id: CompanyId, days: Option<i32>) -> Result<Retention, Failure> {
    let audited =
        AuditedAction::of_company(Some(id), if days.is_some() { "setRetention" } else { "endRetention" }).on(id);
    audited
        .run(db, async || Ok(retentions::set(db, id, days).await?), |row| Target::named(row.company, &row.name))
        .await
}
