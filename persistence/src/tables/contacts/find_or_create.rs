//! Contacts that are created implicitly, by a message to or from a number.

use super::{ContactRef, record_created};
use crate::error::with_timeout;
use crate::tables::source::Source;
use crate::{CompanyId, Database, Error, Result};

/// A contact identified by its number, with the details for its creation.
#[derive(Clone, Copy, Debug)]
pub struct ContactByNumber<'a> {
    pub number: &'a str,
    /// The name of a newly created contact; by default the number.
    pub name: Option<&'a str>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<&'a str>,
}

/// Finds or creates the contact with this number. Concurrent calls yield the same contact.
pub async fn find_or_create_by_number(
    db: impl Database<'_>,
    company: CompanyId,
    new: ContactByNumber<'_>,
    origin: Source,
) -> Result<ContactRef> {
    find_or_create_by_any_number(db, company, new, &[], origin.as_str()).await
}

/// As [`find_or_create_by_number`], for a number with other spellings, any of which may identify the contact. The
/// contact is created with the number itself.
pub async fn find_or_create_by_any_number(
    db: impl Database<'_>,
    company: CompanyId,
    new: ContactByNumber<'_>,
    other_spellings: &[String],
    origin: &str,
) -> Result<ContactRef> {
    if let Some(contact) = find_by_number(db, company, new.number, other_spellings).await? {
        return Ok(contact);
    }
    let mut transaction = db.transaction().await?;
    let created: Option<ContactRef> = with_timeout(
        sqlx::query_as(
            "insert into contacts (company_id, name, number, number_country, origin) values ($1, $2, $3, $4, $5)
             on conflict (company_id, number) do nothing returning id, name, number, verified",
        )
        .bind(company)
        .bind(new.name.unwrap_or(new.number))
        .bind(new.number)
        .bind(new.country)
        .bind(origin)
        .fetch_optional(transaction.connection()?),
    )
    .await?;
    if let Some(contact) = &created {
        record_created(transaction.connection()?, company, &[contact.id]).await?;
    }
    transaction.commit().await?;
    match created {
        Some(contact) => Ok(contact),
        // A concurrent call has created it.
        None => find_by_number(db, company, new.number, other_spellings).await?.ok_or(Error::NotFound("contact")),
    }
}

async fn find_by_number(
    db: impl Database<'_>,
    company: CompanyId,
    number: &str,
    other_spellings: &[String],
) -> Result<Option<ContactRef>> {
    with_timeout(
        sqlx::query_as(
            "select id, name, number, verified from contacts where company_id = $1 and (number = $2 or number = any($3))
             order by number = $2 desc, id limit 1",
        )
        .bind(company)
        .bind(number)
        .bind(other_spellings)
        .fetch_optional(db),
    )
    .await
}
