//! How contacts come to be without being created: a send to a number, a visitor who opens a session.

use std::collections::BTreeSet;

use sqlx::{Acquire, PgConnection, Postgres};

use super::ContactRef;
use crate::error::within;
use crate::tables::tickets::Source;
use crate::{CompanyId, ContactId, Database, Result};

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
    db: impl Database<'_>,
    company: CompanyId,
    new: Numbered<'_>,
    origin: Source,
) -> Result<ContactRef> {
    find_or_create_by_any_number(db, company, new, &[], origin.as_str()).await
}

/// The same for a number that has other spellings, each of which may be what a contact is known by.
///
/// # Errors
/// When the database cannot answer.
pub async fn find_or_create_by_any_number(
    db: impl Database<'_>,
    company: CompanyId,
    new: Numbered<'_>,
    others: &[String],
    origin: &str,
) -> Result<ContactRef> {
    if let Some(contact) = by_number(db, company, new.number, others).await? {
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
        .bind(origin)
        .fetch_optional(db),
    )
    .await?;
    match created {
        Some(contact) => Ok(contact),
        None => by_number(db, company, new.number, others).await?.ok_or(crate::Error::NotFound("contact")),
    }
}

async fn by_number(
    db: impl Database<'_>,
    company: CompanyId,
    number: &str,
    others: &[String],
) -> Result<Option<ContactRef>> {
    within(
        sqlx::query_as(
            "select id, name, number from contacts where company_id = $1 and (number = $2 or number = any($3))
             order by number = $2 desc, id limit 1",
        )
        .bind(company)
        .bind(number)
        .bind(others)
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

impl Visitor {
    /// Whether nothing tells this visitor from another: every opening makes a contact of its own then.
    pub fn is_anonymous(&self) -> bool {
        identities(self).is_empty()
    }
}

/// The contact of a visitor: found by external id, then number, then e-mail; else created.
///
/// Openings of one company with the same identity wait for each other, so that one visitor is one contact.
///
/// # Errors
/// When the database cannot answer.
pub async fn find_or_create_visitor(
    db: impl Acquire<'_, Database = Postgres>,
    company: CompanyId,
    visitor: &Visitor,
) -> Result<ContactId> {
    within(async {
        let mut transaction = db.begin().await?;
        for identity in identities(visitor) {
            sqlx::query("select pg_advisory_xact_lock(hashtextextended($1 || ':' || $2, 0))")
                .bind(company.to_string())
                .bind(identity)
                .execute(&mut *transaction)
                .await?;
        }
        let found: Option<ContactId> = sqlx::query_scalar(include_str!("visitor.sql"))
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
