//! `hotline report`: the figures that reports are computed from.

use clap::Subcommand;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::{companies, reports};
use serde::Serialize;

use super::database::with_database;
use super::{Failure, GlobalArgs};

#[derive(Subcommand)]
pub enum Command {
    /// Recompute the figures of reports from tickets and messages, and correct those that differ
    #[command(after_help = "The service may keep running: changes made meanwhile are counted.")]
    Rebuild {
        /// Only this company; without it, all companies
        #[arg(long, value_name = "ID")]
        company: Option<CompanyId>,
    },
}

/// How many figures of a company differed from its tickets and messages, and were corrected.
#[derive(Serialize)]
struct RebuildRow {
    company: CompanyId,
    name: String,
    tickets: u64,
    messages: u64,
    wrapups: u64,
    corrected: bool,
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    let Command::Rebuild { company } = command;
    let rows = with_database(&global.database, async |db| {
        let mut companies = companies::all(db).await?;
        companies.retain(|row| company.is_none_or(|company| company == row.id));
        if let (Some(company), true) = (company, companies.is_empty()) {
            return Err(format!("no such company: {company}").into());
        }
        let mut rows = Vec::with_capacity(companies.len());
        let mut db = db.acquire().await?;
        for company in companies {
            let difference = reports::rebuild(&mut db, company.id).await?;
            rows.push(RebuildRow {
                company: company.id,
                name: company.name,
                tickets: difference.tickets,
                messages: difference.messages,
                wrapups: difference.wrapups,
                corrected: !difference.is_none(),
            });
        }
        Ok(rows)
    })
    .await?;
    global.output.many("companies", &["company", "name", "corrected", "tickets", "messages", "wrapups"], rows)
}
