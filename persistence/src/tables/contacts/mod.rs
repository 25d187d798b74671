//! Contacts: the people and groups a company talks to. Transactions write them; the persister writes only their
//! referral, opt-out and last channel.

mod events;
mod find_or_create;
pub mod identities;
pub mod import;
mod last_channel;
mod list;
mod opt_out;
mod referral;
mod remove;
mod visitors;
mod write;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};

pub use events::{ContactTracker, record_created, track_changes};
pub(crate) use events::{lock_rows, record_merged, without_last_channel, write_removal_events};
pub use find_or_create::{ContactByNumber, find_or_create_by_number};
pub use identities::{address_of, by_address, replace_number_as_name};
pub use last_channel::ContactChannel;
pub(crate) use last_channel::set_last_channel;
pub use list::{list, list_of};
pub(crate) use opt_out::set_opt_out;
pub use opt_out::{OptOut, has_opted_out};
pub(crate) use referral::set_referral;
pub use referral::{Referral, ReferralRow};
pub use remove::{ContactDeletionBlockers, find_deletion_blockers, sessions};
pub(crate) use visitors::DEFAULT_NAME;
pub use visitors::{
    SignedInContact, UnverifiedContact, Visitor, VouchedContact, fill_empty_fields, find_or_create_for_visitor,
    insert_unverified, is_verified, set_verified, sign_in,
};
pub use write::{link_tag, set_custom_values, set_tags, unlink_tag};

use self::identities::{ContactIdentity, MergeSuggestion};
use super::channels::ChannelType;
use super::tags::TagId;
use crate::document;
use crate::error::with_timeout;
use crate::table::{Table, Unique};
use crate::{ChannelId, CompanyId, ContactId, Database, Readers, Result, timestamp};

/// One contact with its related data.
#[derive(Clone, Debug, Serialize, Deserialize, FromRow)]
#[serde(rename_all = "camelCase")]
pub struct ContactRow {
    pub id: ContactId,
    pub name: String,
    pub number: Option<String>,
    pub number_country: Option<String>,
    pub email: Option<String>,
    pub code: Option<String>,
    pub cpf_cnpj: Option<String>,
    pub origin: Option<String>,
    pub profile_pic_url: Option<String>,
    pub is_group: bool,
    pub social_username: Option<String>,
    pub lid: Option<String>,
    pub source_url: Option<String>,
    pub source_id: Option<String>,
    pub headline: Option<String>,
    pub media_type: Option<String>,
    pub media_url: Option<String>,
    pub utm_source: Option<String>,
    pub utm_medium: Option<String>,
    pub utm_campaign: Option<String>,
    pub utm_id: Option<String>,
    pub fbclid: Option<String>,
    pub gclid: Option<String>,
    pub ctwa_clid: Option<String>,
    pub verified: bool,
    pub marketing_opt_out: bool,
    pub tags: Json<Vec<ContactTag>>,
    pub custom_fields: Json<Vec<CustomFieldValue>>,
    pub last_channel: Option<Json<LastChannel>>,
    #[serde(default)]
    pub identities: Json<Vec<ContactIdentity>>,
    #[serde(default)]
    pub merge_suggestions: Json<Vec<MergeSuggestion>>,
    #[serde(serialize_with = "timestamp::serialize")]
    pub created_at: DateTime<Utc>,
    #[serde(serialize_with = "timestamp::serialize")]
    pub updated_at: DateTime<Utc>,
}

/// A tag on a contact.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContactTag {
    pub id: TagId,
    #[schema(example = "VIP")]
    pub name: String,
    #[schema(example = "#64748b")]
    pub color: String,
}

/// The value of a custom field.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomFieldValue {
    #[schema(example = "size")]
    pub key: Option<String>,
    #[schema(example = "42")]
    pub value: String,
    #[schema(example = 7)]
    pub custom_field_id: i64,
    #[schema(example = "Shoe size")]
    pub name: Option<String>,
    #[serde(rename = "type")]
    #[schema(example = "number")]
    pub kind: Option<String>,
}

/// The channel of a contact's latest message.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LastChannel {
    pub id: ChannelId,
    #[schema(example = "Website")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ChannelType,
}

/// Selects the columns of [`ContactRow`], including related data, without a statement per row.
const SELECT: &str = include_str!("select.sql");

/// The fields of a contact that conversations need.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct ContactRef {
    pub id: ContactId,
    pub name: Box<str>,
    pub number: Option<Box<str>>,
    pub verified: bool,
}

/// The table of contacts; related data is in other tables.
impl Table for ContactRef {
    const NAME: &'static str = "contacts";
    const NOUN: &'static str = "contact";
    const COLUMNS: &'static str = "id, name, number, verified";
    const UNIQUE: &'static [Unique] = &[Unique::new("contacts_number", "number")];
    type Id = ContactId;
}

/// The conditions of the API's list of contacts.
#[derive(Clone, Debug, Default)]
pub struct ContactFilter {
    pub search: Option<String>,
    /// The current or a former number of the contacts, in any spelling.
    pub number: Option<String>,
    /// The contacts that have or had `number`. Set by [`list()`].
    pub number_owner_ids: Option<Vec<ContactId>>,
    pub email: Option<String>,
    pub code: Option<String>,
    pub tag_id: Option<TagId>,
    pub channel_id: Option<ChannelId>,
    pub origin: Option<String>,
    pub is_group: Option<bool>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

impl ContactFilter {
    /// Sets `number_owner_ids`, if the filter has a number.
    async fn resolve_number(mut self, db: impl Database<'_>, company: CompanyId) -> Result<Self> {
        if let Some(number) = &self.number {
            self.number_owner_ids = Some(identities::ids_by_number(db, company, number).await?);
        }
        Ok(self)
    }
}

/// One contact, or `None`.
pub async fn find(db: impl PgExecutor<'_>, company: CompanyId, id: ContactId) -> Result<Option<ContactRow>> {
    let sql = AssertSqlSafe(format!("{SELECT} where c.company_id = $1 and c.id = $2"));
    with_timeout(sqlx::query_as(sql).bind(company).bind(id).fetch_optional(db)).await
}

/// Several contacts; those that do not exist are missing from the result.
pub async fn find_all(db: impl PgExecutor<'_>, company: CompanyId, ids: &[ContactId]) -> Result<Vec<ContactRow>> {
    let sql = AssertSqlSafe(format!("{SELECT} where c.company_id = $1 and c.id = any ($2)"));
    let rows = with_timeout(sqlx::query(sql).bind(company).bind(ids).fetch_all(db)).await?;
    Ok(document::read_all(&rows))
}

/// Locks contacts against deletion until the transaction ends; returns whether all of them exist.
pub async fn lock_against_deletion(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<bool> {
    let mut distinct = ids.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let lock = sqlx::query("select from contacts where company_id = $1 and id = any ($2) order by id for key share")
        .bind(company);
    Ok(with_timeout(lock.bind(&distinct).fetch_all(db)).await?.len() == distinct.len())
}

/// The fields of a contact that conversations need, or `None`.
pub async fn find_ref(readers: &Readers, company: CompanyId, id: ContactId) -> Result<Option<ContactRef>> {
    const FIND: &str = "select id, name, number, verified from contacts where company_id = $1 and id = $2";
    readers.read(company, move |db| sqlx::query_as(FIND).bind(company).bind(id).fetch_optional(db).boxed()).await
}

/// As [`find_ref`], for several contacts; returns those that exist. With `settled`, it waits for open transactions that
/// change these contacts: a commit on a broken connection may still be running, and its outcome is unknown.
pub async fn find_refs(
    db: impl Database<'_>,
    company: CompanyId,
    ids: &[ContactId],
    settled: bool,
) -> Result<Vec<ContactRef>> {
    let lock = if settled { " for share" } else { "" };
    let sql = format!("select id, name, number, verified from contacts where company_id = $1 and id = any ($2){lock}");
    with_timeout(sqlx::query_as(AssertSqlSafe(sql)).bind(company).bind(ids).fetch_all(db)).await
}
