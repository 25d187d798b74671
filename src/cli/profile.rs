//! `hotline profile`: what a company's users may do.

use clap::{Args, Subcommand};
use hotline_persistence::tables::profiles::{self, NewProfile};
use hotline_persistence::{CompanyId, Error};

use super::audit::{AuditedAction, Target};
use super::database::with_database;
use super::permissions::permissions;
use super::subject::NameArgs;
use super::{Failure, GlobalArgs};

#[derive(Subcommand)]
pub enum Command {
    /// Create a permission profile; without --all and --permission, it allows nothing
    Create(Create),
    /// List permission profiles
    List {
        /// Show only the profiles of this company
        #[arg(long, value_name = "ID")]
        company: Option<CompanyId>,
    },
}

#[derive(Args)]
#[command(
    override_usage = "hotline profile create <NAME> --company <ID> [OPTIONS]",
    after_help = "Example:
  hotline profile create Sales --company 1 --permission crm:GET,POST,PUT --permission contacts:GET

A new company has three profiles:
  Administrator  everything; all cards
  Supervisor     everything except DELETE; users and profiles read-only; all cards
  Agent          contacts, tickets, messages, webchat and crm except DELETE; tags, queues, wrapupTypes, users,
                 channels, quickMessages and customFields read-only; own cards only"
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
    /// Let users see all cards of a board, not only their own
    #[arg(long)]
    sees_all_cards: bool,
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.run(global).await,
        Command::List { company } => {
            let all = with_database(&global.database, async |db| Ok(profiles::all(db, company).await?)).await?;
            global.output.many("profiles", &["id", "companyId", "name", "seesAllCards"], all)
        }
    }
}

impl Create {
    async fn run(self, global: &GlobalArgs) -> Result<(), Failure> {
        let name = super::parse_name(self.name.get())?;
        let permissions = permissions(self.all, &self.permission)?;
        let new = NewProfile { name: &name, permissions, sees_all_cards: self.sees_all_cards };
        let created = with_database(&global.database, async |db| {
            let work = async || match profiles::insert(db, self.company, new).await {
                Err(Error::Taken(_)) => Err(format!("the company already has a profile `{name}`").into()),
                created => Ok(created?),
            };
            let audited = AuditedAction::of_company(Some(self.company), "createProfile");
            audited.run(db, work, |row| Target::named(row.id, &row.name)).await
        });
        global.output.one(created.await?)
    }
}
