//! `hotline retention`: how long companies keep closed conversations.

use clap::Subcommand;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::retentions::{self, DAYS_MAX, DAYS_MIN};

use super::Failure;
use super::database::with_database;
use super::output::OutputArgs;
use crate::config::DatabaseArgs;

#[derive(Subcommand)]
pub enum Command {
    /// Remove a company's conversations some days after they were closed, with their messages, files and events
    #[command(
        after_help = "Contacts stay, and figures of reports. A running service begins within seconds, and removes some \
        hundreds of conversations a second at most. What is removed is gone.\n\n\
        Example:\n  hotline retention set 1 --days 365"
    )]
    Set {
        /// Its id
        id: CompanyId,
        /// How long a conversation is kept once it is closed
        #[arg(long, value_name = "DAYS",
            value_parser = clap::value_parser!(i32).range(i64::from(DAYS_MIN)..=i64::from(DAYS_MAX)))]
        days: i32,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Keep a company's conversations for ever, from now on
    Off {
        /// Its id
        id: CompanyId,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the companies that do not keep everything, and what is older and still there
    List {
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
}

pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Set { id, days, database, output } => {
            output.one(with_database(&database, async |db| Ok(retentions::set(db, id, Some(days)).await?)).await?)
        }
        Command::Off { id, database, output } => {
            output.one(with_database(&database, async |db| Ok(retentions::set(db, id, None).await?)).await?)
        }
        Command::List { database, output } => {
            let all = with_database(&database, async |db| Ok(retentions::all(db).await?)).await?;
            output.many("retentions", &["company", "name", "days", "due", "removed", "lastRun"], all)
        }
    }
}
