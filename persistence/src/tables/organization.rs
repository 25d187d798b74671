//! A company's directory: what actors cache in memory to decide without querying the database.

use std::collections::{HashMap, HashSet};

use sqlx::Row;

use super::channels::{self, ChannelRow};
use super::companies::{self, CompanyRow};
use super::global_variables;
use super::queues;
use super::tokens::{self, TokenRow};
use crate::document;
use crate::error::with_timeout;
use crate::sealed::Keyring;
use crate::{ChannelId, CompanyId, Database, QueueId, Result, UserId, WrapupTypeId};

/// All small data of a company: loaded and replaced as a whole.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Organization {
    /// Changes with each load; not stored.
    pub version: u64,
    pub company: CompanyRow,
    pub tokens: Vec<TokenRow>,
    pub channels: HashMap<ChannelId, ChannelRow>,
    pub queues: HashMap<QueueId, Queue>,
    pub users: HashMap<UserId, User>,
    /// Names of users who have left, to whom closed tickets are still assigned.
    pub former_users: HashMap<UserId, String>,
    pub wrapup_types: HashMap<WrapupTypeId, WrapupType>,
    /// The value of every key.
    pub global_variables: HashMap<String, String>,
}

impl Organization {
    /// A user's name, or the last one of a user who has left.
    pub fn user_name(&self, id: UserId) -> Option<&str> {
        let working = self.users.get(&id).map(|user| &user.name);
        working.or_else(|| self.former_users.get(&id)).map(String::as_str)
    }
}

/// A queue with its agents.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Queue {
    pub row: queues::Queue,
    pub users: HashSet<UserId>,
}

/// The parts of a user that conversations need.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct User {
    pub name: String,
    pub active: bool,
}

/// A wrap-up type with the queues it is linked to.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct WrapupType {
    pub name: String,
    pub active: bool,
    pub queues: HashSet<QueueId>,
}

/// Loads a company's directory and opens the secrets of its channels; `None` if the company does not exist.
///
/// # Errors
/// When the database cannot answer.
pub async fn load(db: impl Database<'_>, keys: &Keyring, id: CompanyId) -> Result<Option<Organization>> {
    let Some(company) = companies::find(db, id).await? else { return Ok(None) };
    let tokens = tokens::all(db, Some(id)).await?;
    let mut channels = channels::all(db, Some(id)).await?;
    channels.iter_mut().for_each(|channel| channel.open(keys));
    let queues = with_timeout(sqlx::query("select * from queues where company_id = $1").bind(id).fetch_all(db)).await?;
    let queues: Vec<queues::Queue> = document::read_all(&queues);
    let members: Vec<(QueueId, UserId)> = with_timeout(
        sqlx::query_as("select queue_id, user_id from queue_users where company_id = $1").bind(id).fetch_all(db),
    )
    .await?;
    let users =
        with_timeout(sqlx::query("select id, name, active from users where company_id = $1").bind(id).fetch_all(db));
    let types = with_timeout(
        sqlx::query(
            "select t.id, t.name, t.active, array(select queue_id from wrapup_type_queues q
             where q.company_id = t.company_id and q.wrapup_type_id = t.id) as queues
         from wrapup_types t where t.company_id = $1",
        )
        .bind(id)
        .fetch_all(db),
    );

    let mut organization = Organization {
        version: 0,
        company,
        tokens,
        channels: channels.into_iter().map(|row| (row.id, row)).collect(),
        queues: queues.into_iter().map(|row| (row.id, Queue { row, users: HashSet::new() })).collect(),
        users: HashMap::new(),
        former_users: HashMap::new(),
        wrapup_types: HashMap::new(),
        global_variables: global_variables::all(db, id).await?,
    };
    for (queue, user) in members {
        if let Some(queue) = organization.queues.get_mut(&queue) {
            queue.users.insert(user);
        }
    }
    for row in users.await? {
        let user = User { name: row.try_get("name")?, active: row.try_get("active")? };
        organization.users.insert(row.try_get("id")?, user);
    }
    let left: Vec<(UserId, String)> =
        with_timeout(sqlx::query_as("select id, name from former_users where company_id = $1").bind(id).fetch_all(db))
            .await?;
    organization.former_users.extend(left);
    for row in types.await? {
        let queues: Vec<QueueId> = row.try_get("queues")?;
        let wrapup_type = WrapupType {
            name: row.try_get("name")?,
            active: row.try_get("active")?,
            queues: queues.into_iter().collect(),
        };
        organization.wrapup_types.insert(row.try_get("id")?, wrapup_type);
    }
    Ok(Some(organization))
}
