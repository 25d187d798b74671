//! Changes to a contact's tags and custom values; the columns and constraints that other writers of contacts use.

use sqlx::PgConnection;

use super::track_changes;
use crate::error::with_timeout;
use crate::table::{Links, map_constraint};
use crate::tables::custom_fields::{CONTACT_VALUES, CustomFieldId};
use crate::tables::tags::{Tag, TagId};
use crate::{CompanyId, ContactId, Error, Result, noun};

/// The columns that an import writes, in the order that all its statements use.
pub(super) const COLUMNS: &str = "name, number, number_country, email, code, cpf_cnpj, origin, profile_pic_url, \
    is_group, social_username, lid, source_url, source_id, headline, media_type, media_url, utm_source, utm_medium, \
    utm_campaign, utm_id, fbclid, gclid, ctwa_clid, marketing_opt_out";

/// The tags of a contact. Deleted ones are removed in steps ([`crate::tables::cascades`]).
const TAGS: Links<noun::Contact, Tag> = Links::new("contact_tags", "contact_id", "tag_id")
    .replacing("tag_id <> all (array(select id from cascades where company_id = $1 and noun = 'tag'))");

/// The field of each unique constraint.
pub(super) const UNIQUE: &[(&str, &str)] = &[("contacts_number", "number")];

/// Replaces the tags of contacts by those in `contact_tags`.
///
/// # Errors
/// [`Error::NotFound`] when a tag does not exist.
pub async fn set_tags(
    db: &mut PgConnection,
    company: CompanyId,
    contacts: &[ContactId],
    contact_tags: &[(ContactId, TagId)],
) -> Result<()> {
    let (ids, tags): (Vec<_>, Vec<_>) = contact_tags.iter().copied().unzip();
    with_timeout(async {
        sqlx::query(
            // Deletes the links that are not in `contact_tags`. `offset 0` makes PostgreSQL find the links of each
            // contact by the primary key, whatever its statistics say. Deleting them by `ctid` is safe because links
            // are never updated, only inserted and deleted. Links to a deleted tag stay: its deletion removes them in
            // steps.
            "delete from contact_tags where ctid = any (array(
                 select link.row_id from unnest($2::bigint[]) as changed (contact) cross join lateral (
                     select ctid as row_id, contact_id, tag_id from contact_tags
                     where company_id = $1 and contact_id = changed.contact offset 0) link
                 where link.tag_id <> all (array(select id from cascades where company_id = $1 and noun = 'tag'))
                     and (link.contact_id, link.tag_id) not in (
                     select contact, tag from unnest($3::bigint[], $4::bigint[]) as wanted (contact, tag))))",
        )
        .bind(company)
        .bind(contacts)
        .bind(&ids)
        .bind(&tags)
        .execute(&mut *db)
        .await?;
        insert_links(db, company, &ids, &tags).await
    })
    .await
    .map_err(map_constraint(&[]))
}

/// Links each contact to the tag at the same place, unless it has it already.
async fn insert_links(
    db: &mut PgConnection,
    company: CompanyId,
    contacts: &[ContactId],
    tags: &[TagId],
) -> sqlx::Result<()> {
    // Every insert locks its tag, so all transactions insert in the same order.
    let insert = sqlx::query(
        "insert into contact_tags (company_id, contact_id, tag_id)
         select $1, contact, tag from unnest($2::bigint[], $3::bigint[]) as x (contact, tag)
         order by contact, tag on conflict do nothing",
    );
    insert.bind(company).bind(contacts).bind(tags).execute(db).await?;
    Ok(())
}

/// Sets values of custom fields and deletes those that are `None`; all others stay.
///
/// # Errors
/// [`Error::NotFound`] when a custom field does not exist.
pub async fn set_custom_values(
    db: &mut PgConnection,
    company: CompanyId,
    values: &[(ContactId, CustomFieldId, Option<String>)],
) -> Result<()> {
    CONTACT_VALUES.set(db, company, values).await
}

/// Adds a tag to a contact, unless it has it already.
///
/// # Errors
/// [`Error::NotFound`] when the contact or the tag does not exist.
pub async fn link_tag(db: &mut PgConnection, company: CompanyId, contact: ContactId, tag: TagId) -> Result<()> {
    let tracker = track_changes(&mut *db, company, &[contact]).await?;
    if !TAGS.add(&mut *db, company, contact, tag).await? {
        return Ok(());
    }
    tracker.record(db, &[contact]).await
}

/// Removes a tag from a contact; it is not an error if the contact does not have it.
///
/// # Errors
/// [`Error::NotFound`] when the contact or the tag does not exist.
pub async fn unlink_tag(db: &mut PgConnection, company: CompanyId, contact: ContactId, tag: TagId) -> Result<()> {
    let tracker = track_changes(&mut *db, company, &[contact]).await?;
    if TAGS.remove(&mut *db, company, contact, tag).await? {
        return tracker.record(db, &[contact]).await;
    }
    let both_exist: bool = with_timeout(
        sqlx::query_scalar(
            "select exists (select from contacts where company_id = $1 and id = $2)
                and exists (select from tags where company_id = $1 and id = $3)",
        )
        .bind(company)
        .bind(contact)
        .bind(tag)
        .fetch_one(db),
    )
    .await?;
    if both_exist { Ok(()) } else { Err(Error::NotFound("record")) }
}
