//! `hotline company`: the tenants.

use clap::Subcommand;
use hotline_persistence::tables::companies;

use super::Failure;
use super::database::with_database;
use super::output::OutputArgs;
use crate::config::DatabaseArgs;

#[derive(Subcommand)]
pub enum Command {
    /// Make a company
    Create {
        /// Its name
        name: String,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the companies
    List {
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
}

pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, database, output } => {
            let name = super::named(&name)?;
            let company = with_database(&database, async |db| Ok(companies::insert(db, &name).await?)).await?;
            output.one(company)
        }
        Command::List { database, output } => {
            let all = with_database(&database, async |db| Ok(companies::all(db).await?)).await?;
            output.many("companies", &["id", "name", "active"], all)
        }
    }
}
