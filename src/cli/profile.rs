//! `hotline profile`: what a company's users may do.

use clap::{Args, Subcommand};
use hotline_persistence::table::{self, Columns, Table};
use hotline_persistence::tables::profiles::{self, NewProfile, ProfileRow};
use hotline_persistence::{CompanyId, Error, PgPool, ProfileId};
use serde_json::json;

use super::audit::{AuditedAction, Target};
use super::database::{read_database, with_database};
use super::permissions::parse_permissions;
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
    /// Show a permission profile
    Show(ProfileArgs),
    /// Update a permission profile; omitted options keep their values
    #[command(after_help = "Example:\n  hotline profile update 3 --permission tickets:GET,POST --sees-all-cards=false")]
    Update {
        #[command(flatten)]
        profile: ProfileArgs,
        #[command(flatten)]
        changes: Changes,
    },
    /// Delete a permission profile that is not assigned to users
    Delete(ProfileArgs),
}

/// Names a profile.
#[derive(Args, Clone, Copy)]
pub struct ProfileArgs {
    /// Profile ID
    id: ProfileId,
    /// Company ID; required if two companies have a profile with this ID, which an import may cause
    #[arg(long, value_name = "ID")]
    company: Option<CompanyId>,
}

impl ProfileArgs {
    async fn find(self, db: &PgPool) -> Result<ProfileRow, Failure> {
        let Self { id, company } = self;
        let mut found = profiles::of_id(db, id, company).await?;
        if let [one, other] = &found[..] {
            let companies = format!("companies {} and {}", one.company_id, other.company_id);
            return Err(format!("{companies} both have a profile {id}: add --company").into());
        }
        Ok(found.pop().ok_or(Error::NotFound(ProfileRow::NOUN))?)
    }
}

/// The changes of a profile; at least one is required.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub struct Changes {
    /// New name
    #[arg(long)]
    name: Option<String>,
    /// Allow everything
    #[arg(long, conflicts_with = "permission")]
    all: bool,
    /// Allow methods of a module, for example tickets:GET,POST, replacing all previous permissions (repeatable)
    #[arg(long, value_name = "MODULE:METHODS")]
    permission: Vec<String>,
    /// Let users see all cards of a board, not only their own
    #[arg(long)]
    sees_all_cards: Option<bool>,
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
            let all = read_database(&global.database, async |db| Ok(profiles::all(db, company).await?)).await?;
            global.output.many("profiles", &["id", "companyId", "name", "seesAllCards"], all)
        }
        Command::Show(profile) => {
            global.output.one(read_database(&global.database, async |db| profile.find(db).await).await?)
        }
        Command::Update { profile, changes } => {
            let columns = changes.columns()?;
            let update = with_database(&global.database, async |db| {
                let work = async |company| Ok(table::update::<ProfileRow>(db, company, profile.id, &columns).await?);
                run_audited(db, profile, "updateProfile", work).await
            });
            global.output.one(update.await?)
        }
        Command::Delete(profile) => {
            with_database(&global.database, async |db| {
                run_audited(db, profile, "deleteProfile", async |company| remove(db, company, profile.id).await).await
            })
            .await?;
            global.output.one(json!({"id": profile.id, "deleted": true}))
        }
    }
}

impl Create {
    async fn run(self, global: &GlobalArgs) -> Result<(), Failure> {
        let name = super::parse_name(self.name.get())?;
        let permissions = parse_permissions(self.all, &self.permission)?;
        let new = NewProfile { name: &name, permissions, sees_all_cards: self.sees_all_cards };
        let creation = with_database(&global.database, async |db| {
            let work = async || match profiles::insert(db, self.company, new).await {
                Err(Error::Taken(_)) => Err(format!("the company already has a profile `{name}`").into()),
                result => Ok(result?),
            };
            let audited = AuditedAction::of_company(Some(self.company), "createProfile");
            audited.run(db, work, |row| Target::named(row.id, &row.name)).await
        });
        global.output.one(creation.await?)
    }
}

impl Changes {
    fn columns(self) -> Result<Columns, Failure> {
        let mut columns = Columns::default();
        if let Some(name) = self.name {
            columns.set("name", super::parse_name(&name)?);
        }
        if self.all || !self.permission.is_empty() {
            columns.set("permissions", serde_json::to_value(parse_permissions(self.all, &self.permission)?)?);
        }
        if let Some(sees_all_cards) = self.sees_all_cards {
            columns.set("seesAllCards", sees_all_cards);
        }
        Ok(columns)
    }
}

/// Runs an action on a profile, and records it in the audit log of its company.
async fn run_audited(
    db: &PgPool,
    profile: ProfileArgs,
    action: &'static str,
    work: impl AsyncFnOnce(CompanyId) -> Result<ProfileRow, Failure>,
) -> Result<ProfileRow, Failure> {
    let company = profile.find(db).await?.company_id;
    let audited = AuditedAction::of_company(Some(company), action).on(profile.id);
    audited.run(db, async || work(company).await, |row| Target::named(row.id, &row.name)).await
}

/// Deletes a profile. Refuses one that is assigned to users, and the last one that administers its company.
async fn remove(db: &PgPool, company: CompanyId, id: ProfileId) -> Result<ProfileRow, Failure> {
    let mut transaction = db.begin().await?;
    // Serializes changes, so that two concurrent ones cannot delete the last two profiles that administer the company.
    profiles::lock(&mut transaction, company).await?;
    let row = table::find::<ProfileRow>(&mut *transaction, company, id).await?;
    let row = row.ok_or(Error::NotFound(ProfileRow::NOUN))?;
    match table::remove::<ProfileRow>(&mut *transaction, company, id).await {
        Err(Error::InUse) => return Err(format!("profile {id} is assigned to users").into()),
        result => result?,
    }
    if profiles::count_administering(&mut transaction, company).await? == 0 {
        return Err("the company must keep at least one profile that administers it".into());
    }
    transaction.commit().await?;
    Ok(row)
}
