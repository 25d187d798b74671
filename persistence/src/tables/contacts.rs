//! Contacts: the people and groups a company talks to. Plain.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, PgPool};

use super::channels::ChannelType;
use super::tickets::Source;
use crate::change::ContactChannel;
use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::{ChannelId, CompanyId, ContactId, Result, TagId};

/// One contact with what is shown beside it.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
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
    pub tags: Json<Vec<ContactTag>>,
    pub custom_fields: Json<Vec<CustomFieldValue>>,
    pub last_channel: Option<Json<LastChannel>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A tag on a contact.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[allow(missing_docs)]
pub struct ContactTag {
    pub id: TagId,
    pub name: String,
    pub color: String,
}

/// A custom field's value.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct CustomFieldValue {
    pub key: Option<String>,
    pub value: String,
    pub custom_field_id: i64,
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

/// The channel a contact was last talked to on.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[allow(missing_docs)]
pub struct LastChannel {
    pub id: ChannelId,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ChannelType,
}

/// Columns of [`ContactRow`]: what belongs to a contact comes with it, without a statement a row.
const SHOWN: &str = include_str!("contacts_select.sql");

/// What a conversation needs to know of its contact.
#[derive(Clone, Debug, PartialEq, FromRow)]
#[allow(missing_docs)]
pub struct ContactRef {
    pub id: ContactId,
    pub name: String,
    pub number: Option<String>,
}

/// What the API's list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct ContactFilter {
    pub search: Option<String>,
    pub number: Option<String>,
    pub email: Option<String>,
    pub tag_id: Option<TagId>,
    pub channel_id: Option<ChannelId>,
    pub origin: Option<String>,
    pub is_group: Option<bool>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of a company's contacts.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(db: &PgPool, company: CompanyId, filter: &ContactFilter, page: Page) -> Result<Listed<ContactRow>> {
    Select::new(SHOWN, "c.company_id", company)
        .contains("c.search", filter.search.as_deref())
        .equals("c.number", filter.number.as_deref())
        .equals("lower(c.email)", filter.email.as_deref().map(str::to_lowercase))
        .equals("c.last_channel_id", filter.channel_id)
        .equals("c.origin", filter.origin.as_deref())
        .equals("c.is_group", filter.is_group)
        .related(
            "select from contact_tags x where x.company_id = c.company_id and x.contact_id = c.id and x.tag_id",
            filter.tag_id,
        )
        .between("c.created_at", filter.created)
        .between("c.updated_at", filter.updated)
        .page(db, "c.id", page)
        .await
}

/// One contact, or none.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(db: &PgPool, company: CompanyId, id: ContactId) -> Result<Option<ContactRow>> {
    let sql = sqlx::AssertSqlSafe(format!("{SHOWN} where c.company_id = $1 and c.id = $2"));
    within(sqlx::query_as(sql).bind(company).bind(id).fetch_optional(db)).await
}

/// What a conversation needs to know of a contact, or none.
///
/// # Errors
/// When the database cannot answer.
pub async fn find_ref(db: &PgPool, company: CompanyId, id: ContactId) -> Result<Option<ContactRef>> {
    within(
        sqlx::query_as("select id, name, number from contacts where company_id = $1 and id = $2")
            .bind(company)
            .bind(id)
            .fetch_optional(db),
    )
    .await
}

/// A contact known by its number, as far as a send knows it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Numbered<'a> {
    pub number: &'a str,
    /// What the contact is called if it is created; the number when nothing is said.
    pub name: Option<&'a str>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<&'a str>,
}

/// The contact with this number: found, or created. At any concurrency there is one.
///
/// # Errors
/// When the database cannot answer.
pub async fn find_or_create_by_number(
    db: &PgPool,
    company: CompanyId,
    new: Numbered<'_>,
    origin: Source,
) -> Result<ContactRef> {
    if let Some(contact) = by_number(db, company, new.number).await? {
        return Ok(contact);
    }
    let created: Option<ContactRef> = within(
        sqlx::query_as(
            "insert into contacts (company_id, name, number, number_country, origin) values ($1, $2, $3, $4, $5)
             on conflict (company_id, number) do nothing returning id, name, number",
        )
        .bind(company)
        .bind(new.name.unwrap_or(new.number))
        .bind(new.number)
        .bind(new.country)
        .bind(origin.as_str())
        .fetch_optional(db),
    )
    .await?;
    match created {
        Some(contact) => Ok(contact),
        None => by_number(db, company, new.number).await?.ok_or(crate::Error::NotFound("contact")),
    }
}

async fn by_number(db: &PgPool, company: CompanyId, number: &str) -> Result<Option<ContactRef>> {
    within(
        sqlx::query_as("select id, name, number from contacts where company_id = $1 and number = $2")
            .bind(company)
            .bind(number)
            .fetch_optional(db),
    )
    .await
}

/// What a website says of its visitor.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Visitor {
    pub name: Option<String>,
    pub email: Option<String>,
    pub number: Option<String>,
    pub number_country: Option<String>,
    pub external_id: Option<String>,
    pub source_url: Option<String>,
    pub utm_source: Option<String>,
    pub utm_medium: Option<String>,
    pub utm_campaign: Option<String>,
    pub utm_id: Option<String>,
}

/// The contact of a visitor: found by external id, then number, then e-mail; else created.
///
/// Openings of one company with the same identity wait for each other, so that one visitor is one contact.
///
/// # Errors
/// When the database cannot answer.
pub async fn find_or_create_visitor(db: &PgPool, company: CompanyId, visitor: &Visitor) -> Result<ContactId> {
    within(async {
        let mut transaction = db.begin().await?;
        for identity in identities(visitor) {
            sqlx::query("select pg_advisory_xact_lock(hashtextextended($1 || ':' || $2, 0))")
                .bind(company.to_string())
                .bind(identity)
                .execute(&mut *transaction)
                .await?;
        }
        let found: Option<ContactId> = sqlx::query_scalar(include_str!("contacts_visitor.sql"))
            .bind(company)
            .bind(&visitor.external_id)
            .bind(&visitor.number)
            .bind(&visitor.email)
            .fetch_optional(&mut *transaction)
            .await?;
        let id = match found {
            Some(id) => remember_external_id(&mut transaction, company, id, visitor).await?,
            None => insert_visitor(&mut transaction, company, visitor).await?,
        };
        transaction.commit().await?;
        Ok(id)
    })
    .await
}

/// What a visitor is known by, in one order for all: two openings that share identities crosswise must not wait for
/// each other in a circle.
fn identities(visitor: &Visitor) -> BTreeSet<String> {
    [&visitor.external_id, &visitor.number, &visitor.email]
        .into_iter()
        .flatten()
        .map(|text| text.to_lowercase())
        .collect()
}

/// A contact that came in another way is known by the website's id from now on.
async fn remember_external_id(
    db: &mut PgConnection,
    company: CompanyId,
    id: ContactId,
    visitor: &Visitor,
) -> std::result::Result<ContactId, sqlx::Error> {
    if visitor.external_id.is_some() {
        sqlx::query("update contacts set external_id = $3 where company_id = $1 and id = $2 and external_id is null")
            .bind(company)
            .bind(id)
            .bind(&visitor.external_id)
            .execute(db)
            .await?;
    }
    Ok(id)
}

async fn insert_visitor(
    db: &mut PgConnection,
    company: CompanyId,
    visitor: &Visitor,
) -> std::result::Result<ContactId, sqlx::Error> {
    let name = visitor.name.as_ref().or(visitor.number.as_ref()).or(visitor.email.as_ref());
    sqlx::query_scalar(
        "insert into contacts (company_id, name, number, email, external_id, origin, source_url, utm_source,
             utm_medium, utm_campaign, utm_id, number_country)
         values ($1, coalesce($2, 'Visitor'), $3, $4, $5, 'webchat', $6, $7, $8, $9, $10, $11)
         -- A send may have created the number's contact since the look-up.
         on conflict (company_id, number) do update set updated_at = now() returning id",
    )
    .bind(company)
    .bind(name)
    .bind(&visitor.number)
    .bind(&visitor.email)
    .bind(&visitor.external_id)
    .bind(&visitor.source_url)
    .bind(&visitor.utm_source)
    .bind(&visitor.utm_medium)
    .bind(&visitor.utm_campaign)
    .bind(&visitor.utm_id)
    .bind(&visitor.number_country)
    .fetch_one(db)
    .await
}

/// Notes where contacts were last talked to. A contact that is gone stays gone.
pub(crate) async fn set_last_channel(
    db: &mut PgConnection,
    changes: &[&ContactChannel],
) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        "update contacts c set last_channel_id = x.channel, updated_at = x.at
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) as x (company, contact, channel, at)
         where c.company_id = x.company and c.id = x.contact",
    )
    .bind(changes.iter().map(|change| change.company_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.contact_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.channel_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// Whether the company has this tag.
///
/// # Errors
/// When the database cannot answer.
pub async fn tag_exists(db: &PgPool, company: CompanyId, tag: TagId) -> Result<bool> {
    within(
        sqlx::query_scalar("select exists (select from tags where company_id = $1 and id = $2)")
            .bind(company)
            .bind(tag)
            .fetch_one(db),
    )
    .await
}
