//! The directory of a company: its settings, which actors cache in memory to decide without a query to the database.

use std::collections::{HashMap, HashSet};

use sqlx::FromRow;

use super::channels::{self, ChannelRow};
use super::companies::{self, CompanyRow};
use super::global_variables;
use super::queues;
use super::tokens::{self, TokenRow};
use crate::document;
use crate::error::with_timeout;
use crate::sealed::Keyring;
use crate::{ChannelId, CompanyId, Database, QueueId, Result, UserId, WrapupTypeId};

/// The directory of a company, which is loaded and replaced as a whole.
#[derive(Clone, Debug)]
pub struct Organization {
    /// A new number for each load, set by the caller; not stored.
    pub version: u64,
    pub company: CompanyRow,
    pub tokens: Vec<TokenRow>,
    pub channels: HashMap<ChannelId, ChannelRow>,
    pub queues: HashMap<QueueId, DirectoryQueue>,
    pub users: HashMap<UserId, DirectoryUser>,
    /// Names of former users to whom closed tickets are still assigned, or who have scheduled messages.
    pub former_users: HashMap<UserId, String>,
    pub wrapup_types: HashMap<WrapupTypeId, DirectoryWrapupType>,
    /// Values by their keys.
    pub global_variables: HashMap<String, String>,
}

impl Organization {
    /// A company without any data.
    fn new(company: CompanyRow) -> Self {
        Self {
            version: 0,
            company,
            tokens: Vec::new(),
            channels: HashMap::new(),
            queues: HashMap::new(),
            users: HashMap::new(),
            former_users: HashMap::new(),
            wrapup_types: HashMap::new(),
            global_variables: HashMap::new(),
        }
    }

    /// The name of a user or of a former user.
    pub fn user_name(&self, id: UserId) -> Option<&str> {
        let current = self.users.get(&id).map(|user| &user.name);
        current.or_else(|| self.former_users.get(&id)).map(String::as_str)
    }
}

/// A queue with its members.
#[derive(Clone, Debug)]
pub struct DirectoryQueue {
    pub row: queues::Queue,
    pub users: HashSet<UserId>,
}

/// The parts of a user that conversations need.
#[derive(Clone, Debug)]
pub struct DirectoryUser {
    pub name: String,
    pub active: bool,
}

/// A wrap-up type with the queues it is linked to.
#[derive(Clone, Debug)]
pub struct DirectoryWrapupType {
    pub name: String,
    pub active: bool,
    pub queues: HashSet<QueueId>,
}

type Organizations = HashMap<CompanyId, Organization>;

/// Loads a company's directory and opens the secrets of its channels; `None` if the company does not exist.
pub async fn load(db: impl Database<'_>, keys: &Keyring, id: CompanyId) -> Result<Option<Organization>> {
    Ok(load_all(db, keys, &[id]).await?.pop())
}

/// Loads the directories of companies and opens the secrets of their channels, with as many statements as for one
/// company. Companies that do not exist are left out.
pub async fn load_all(db: impl Database<'_>, keys: &Keyring, ids: &[CompanyId]) -> Result<Vec<Organization>> {
    let companies = companies::find_all(db, ids).await?;
    let mut organizations: Organizations =
        companies.into_iter().map(|company| (company.id, Organization::new(company))).collect();
    for token in tokens::of_companies(db, ids).await? {
        if let Some(organization) = organizations.get_mut(&token.company_id) {
            organization.tokens.push(token);
        }
    }
    for mut channel in channels::of_companies(db, ids).await? {
        channel.open(keys);
        if let Some(organization) = organizations.get_mut(&channel.company_id) {
            organization.channels.insert(channel.id, channel);
        }
    }
    load_queues(db, ids, &mut organizations).await?;
    load_users(db, ids, &mut organizations).await?;
    load_wrapup_types(db, ids, &mut organizations).await?;
    for (company, key, value) in global_variables::of_companies(db, ids).await? {
        if let Some(organization) = organizations.get_mut(&company) {
            organization.global_variables.insert(key, value);
        }
    }
    Ok(organizations.into_values().collect())
}

async fn load_queues(db: impl Database<'_>, ids: &[CompanyId], organizations: &mut Organizations) -> Result<()> {
    let queues = sqlx::query("select * from queues where company_id = any($1)").bind(ids).fetch_all(db);
    let queues: Vec<CompanyRecord<queues::Queue>> = document::read_all(&with_timeout(queues).await?);
    for CompanyRecord { company_id, row } in queues {
        if let Some(organization) = organizations.get_mut(&company_id) {
            organization.queues.insert(row.id, DirectoryQueue { row, users: HashSet::new() });
        }
    }
    let members = "select company_id, queue_id, user_id from queue_users where company_id = any($1)";
    let members: Vec<(CompanyId, QueueId, UserId)> =
        with_timeout(sqlx::query_as(members).bind(ids).fetch_all(db)).await?;
    for (company, queue, user) in members {
        let organization = organizations.get_mut(&company);
        if let Some(queue) = organization.and_then(|organization| organization.queues.get_mut(&queue)) {
            queue.users.insert(user);
        }
    }
    Ok(())
}

async fn load_users(db: impl Database<'_>, ids: &[CompanyId], organizations: &mut Organizations) -> Result<()> {
    let users = "select company_id, id, name, active from users where company_id = any($1)";
    let users: Vec<(CompanyId, UserId, String, bool)> =
        with_timeout(sqlx::query_as(users).bind(ids).fetch_all(db)).await?;
    for (company, id, name, active) in users {
        if let Some(organization) = organizations.get_mut(&company) {
            organization.users.insert(id, DirectoryUser { name, active });
        }
    }
    let former_users = "select company_id, id, name from former_users where company_id = any($1)";
    let former_users: Vec<(CompanyId, UserId, String)> =
        with_timeout(sqlx::query_as(former_users).bind(ids).fetch_all(db)).await?;
    for (company, id, name) in former_users {
        if let Some(organization) = organizations.get_mut(&company) {
            organization.former_users.insert(id, name);
        }
    }
    Ok(())
}

async fn load_wrapup_types(db: impl Database<'_>, ids: &[CompanyId], organizations: &mut Organizations) -> Result<()> {
    let types = "select t.company_id, t.id, t.name, t.active, array(select queue_id from wrapup_type_queues q
             where q.company_id = t.company_id and q.wrapup_type_id = t.id) as queues
         from wrapup_types t where t.company_id = any($1)";
    let types: Vec<(CompanyId, WrapupTypeId, String, bool, Vec<QueueId>)> =
        with_timeout(sqlx::query_as(types).bind(ids).fetch_all(db)).await?;
    for (company, id, name, active, queues) in types {
        if let Some(organization) = organizations.get_mut(&company) {
            let wrapup_type = DirectoryWrapupType { name, active, queues: queues.into_iter().collect() };
            organization.wrapup_types.insert(id, wrapup_type);
        }
    }
    Ok(())
}

/// A row with its company.
#[derive(FromRow)]
struct CompanyRecord<T> {
    company_id: CompanyId,
    #[sqlx(flatten)]
    row: T,
}
