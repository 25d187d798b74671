//! Contact lists: contacts that are messaged together. Changed by transactions, not by actors.

use std::time::Duration;

use serde::Serialize;
use sqlx::{FromRow, PgConnection};
use utoipa::ToSchema;

use super::tags::TagId;
use crate::error::{set_statement_timeout, with_timeout, with_timeout_of};
use crate::noun;
use crate::table::{self, Links, Stamps, Table, map_constraint};
use crate::{CompanyId, ContactId, Error, Id, Result};

/// Time limit for adding contacts to a list: a hundred thousand take a few seconds, because each contact is locked
/// against deletion.
const ADD_TIME_MAX: Duration = Duration::from_secs(60);

/// The id of a contact list.
pub type ContactListId = Id<ContactList>;

/// A list of contacts for campaigns.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
// A page of contacts is called `ContactList` in the API document.
#[schema(as = RecipientList)]
pub struct ContactList {
    pub id: ContactListId,
    #[schema(example = "Newsletter")]
    pub name: String,
    /// Number of contacts.
    #[schema(example = 250)]
    pub contacts_count: i64,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for ContactList {
    const NAME: &'static str = "contact_lists";
    const NOUN: &'static str = "contact list";
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = ContactListId;
}

/// The contacts of each list.
pub const CONTACTS: Links<ContactList, noun::Contact> =
    Links::new("contact_list_contacts", "contact_list_id", "contact_id");

/// The result of adding contacts to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Added)]
pub struct AddedContacts {
    /// Contacts that were added.
    #[schema(example = 240)]
    pub added: i64,
    /// Contacts that were already in the list.
    #[schema(example = 10)]
    pub already_there: i64,
}

/// Adds these contacts, and all contacts with `tag`, to a list in one statement.
///
/// # Errors
/// [`Error::NotFound`] when the list or a contact does not belong to the company.
pub async fn add(
    db: &mut PgConnection,
    company: CompanyId,
    list: ContactListId,
    contacts: &[ContactId],
    tag: Option<TagId>,
) -> Result<AddedContacts> {
    // With the lock, a concurrent deletion of the list comes before or after this.
    let select = sqlx::query("select from contact_lists where company_id = $1 and id = $2 for key share");
    let row = with_timeout(select.bind(company).bind(list).fetch_optional(&mut *db)).await?;
    row.ok_or(Error::NotFound(ContactList::NOUN))?;
    set_statement_timeout(db, ADD_TIME_MAX).await?;
    let insert = with_timeout_of(
        ADD_TIME_MAX,
        sqlx::query_as(
            "with wanted as (
                 select id from unnest($3::bigint[]) as id
                 union select contact_id from contact_tags where company_id = $1 and tag_id = $4),
             inserted as (
                 insert into contact_list_contacts (company_id, contact_list_id, contact_id)
                 select $1, $2, id from wanted order by id on conflict do nothing returning 1)
             select (select count(*) from inserted) as added,
                 (select count(*) from wanted) - (select count(*) from inserted) as already_there",
        )
        .bind(company)
        .bind(list)
        .bind(contacts)
        .bind(tag)
        .fetch_one(db),
    );
    insert.await.map_err(map_constraint(&[]))
}

/// Deletes a contact list, unless campaigns that are neither completed nor canceled refer to it; returns the number of
/// such campaigns.
///
/// # Errors
/// [`Error::NotFound`] when the list does not exist.
pub async fn remove(db: &mut PgConnection, company: CompanyId, id: ContactListId) -> Result<i64> {
    // With the lock, a concurrently created campaign is counted, or fails because the list is deleted.
    let select = sqlx::query("select from contact_lists where company_id = $1 and id = $2 for update");
    let row = with_timeout(select.bind(company).bind(id).fetch_optional(&mut *db)).await?;
    row.ok_or(Error::NotFound(ContactList::NOUN))?;
    let count = "select count(*) from (select from campaigns where company_id = $1 and contact_list_id = $2
         and status in ('scheduled', 'processing', 'paused') limit $3) counted";
    let count = sqlx::query_scalar(count).bind(company).bind(id).bind(table::COUNTED_MAX);
    let campaigns = with_timeout(count.fetch_one(&mut *db)).await?;
    if campaigns == 0 {
        table::remove::<ContactList>(db, company, id).await?;
    }
    Ok(campaigns)
}
