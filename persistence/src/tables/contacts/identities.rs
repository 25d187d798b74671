//! Contacts known by a provider's own id: page-scoped, account-scoped, or in place of a hidden number.

use super::{ContactRef, record_created, watch};
use crate::error::with_timeout;
use crate::{ChannelId, CompanyId, ContactId, Database, Db, Result};

/// A contact identified by a provider's id, with the details for its creation.
#[derive(Clone, Copy, Debug)]
pub struct ContactByAddress<'a> {
    pub channel: ChannelId,
    pub address: &'a str,
    /// The name of a newly created contact.
    pub name: &'a str,
    pub social_username: Option<&'a str>,
    /// The kind of channel through which the contact came.
    pub origin: &'a str,
}

/// The contact with this address on a channel, or `None`.
pub async fn by_address(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    address: &str,
) -> Result<Option<ContactRef>> {
    with_timeout(
        sqlx::query_as(
            "select c.id, c.name, c.number, c.verified from contact_addresses a
             join contacts c on c.company_id = a.company_id and c.id = a.contact_id
             where a.company_id = $1 and a.channel_id = $2 and a.address = $3",
        )
        .bind(company)
        .bind(channel)
        .bind(address)
        .fetch_optional(db),
    )
    .await
}

/// Finds or creates the contact with this address. Concurrent calls yield the same contact.
pub async fn find_or_create_by_address(
    db: Db<'_>,
    company: CompanyId,
    new: ContactByAddress<'_>,
) -> Result<ContactRef> {
    if let Some(contact) = by_address(db, company, new.channel, new.address).await? {
        return Ok(contact);
    }
    let mut transaction = db.begin().await?;
    let connection = transaction.connection()?;
    let created = with_timeout(async {
        let contact: ContactRef = sqlx::query_as(
            "insert into contacts (company_id, name, social_username, origin) values ($1, $2, $3, $4)
             returning id, name, number, verified",
        )
        .bind(company)
        .bind(new.name)
        .bind(new.social_username)
        .bind(new.origin)
        .fetch_one(&mut *connection)
        .await?;
        let inserted = sqlx::query(
            "insert into contact_addresses (company_id, channel_id, address, contact_id) values ($1, $2, $3, $4)
             on conflict (company_id, channel_id, address) do nothing",
        )
        .bind(company)
        .bind(new.channel)
        .bind(new.address)
        .bind(contact.id)
        .execute(&mut *connection)
        .await?;
        if inserted.rows_affected() == 0 {
            // A concurrent call was first; use its contact.
            return Ok(None);
        }
        Ok(Some(contact))
    })
    .await?;
    match created {
        Some(contact) => {
            record_created(transaction.connection()?, company, &[contact.id]).await?;
            transaction.commit().await?;
            Ok(contact)
        }
        None => {
            drop(transaction);
            by_address(db, company, new.channel, new.address).await?.ok_or(crate::Error::NotFound("contact"))
        }
    }
}

/// Sets the name of a contact that was named by its number.
pub async fn name_numbered(db: impl Database<'_>, company: CompanyId, contact: ContactId, name: &str) -> Result<()> {
    let update =
        "update contacts set name = $3, updated_at = now() where company_id = $1 and id = $2 and name = number";
    let mut transaction = db.transaction().await?;
    let tracker = watch(transaction.connection()?, company, &[contact]).await?;
    let update = sqlx::query(update).bind(company).bind(contact).bind(name);
    with_timeout(update.execute(transaction.connection()?)).await?;
    tracker.record(transaction.connection()?, &[contact]).await?;
    transaction.commit().await
}

/// Stores a channel address for an existing contact; an address that belongs to another contact stays there.
///
/// # Errors
/// When the database cannot answer; [`crate::Error::NotFound`] when the contact was deleted.
pub async fn record_address(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    address: &str,
    contact: ContactId,
) -> Result<()> {
    with_timeout(
        sqlx::query(
            "insert into contact_addresses (company_id, channel_id, address, contact_id) values ($1, $2, $3, $4)
             on conflict (company_id, channel_id, address) do nothing",
        )
        .bind(company)
        .bind(channel)
        .bind(address)
        .bind(contact)
        .execute(db),
    )
    .await
    .map_err(crate::table::map_constraint(&[]))?;
    Ok(())
}

/// A contact's address on a channel, as the provider used it last; `None` if it never did.
pub async fn address_of(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    contact: ContactId,
) -> Result<Option<String>> {
    with_timeout(
        sqlx::query_scalar(
            "select address from contact_addresses where company_id = $1 and contact_id = $2 and channel_id = $3
             order by created_at desc limit 1",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .fetch_optional(db),
    )
    .await
}
