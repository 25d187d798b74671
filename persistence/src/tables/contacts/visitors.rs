//! Contacts of webchat visitors. Visitors for whom the company vouches are matched to existing contacts, by what the
//! company's server says or by a signed identity. Any other visitor gets a new contact, without the identifying data
//! that they claim.

use std::collections::BTreeSet;

use sqlx::{Acquire, FromRow, PgConnection, Postgres};

use super::{ContactRow, identities, record_created, track_changes};
use crate::error::with_timeout;
use crate::table::map_constraint;
use crate::{CompanyId, ContactId, Database, Db, Error, Result, phone_numbers};

/// Default name of a contact without a name.
pub(crate) const DEFAULT_NAME: &str = "Visitor";

/// The data given about a visitor.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Whether nothing identifies this visitor. Such a visitor gets a new contact whenever a session is opened.
    pub fn is_anonymous(&self) -> bool {
        identity_keys(self).is_empty()
    }

    /// Whether [`fill_empty_fields`] would add something to this contact.
    pub fn adds_to(&self, contact: &ContactRow) -> bool {
        let has_default_name = [Some(DEFAULT_NAME), contact.number.as_deref(), contact.email.as_deref()]
            .contains(&Some(contact.name.as_str()));
        let pairs = [
            (&self.email, &contact.email),
            (&self.number, &contact.number),
            (&self.source_url, &contact.source_url),
            (&self.utm_source, &contact.utm_source),
            (&self.utm_medium, &contact.utm_medium),
            (&self.utm_campaign, &contact.utm_campaign),
            (&self.utm_id, &contact.utm_id),
        ];
        self.name.as_ref().is_some_and(|name| has_default_name && *name != contact.name)
            || pairs.iter().any(|(new, current)| new.is_some() && current.is_none())
    }
}

/// The contact of a visitor for whom the company vouches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct VouchedContact {
    /// The contact.
    pub id: ContactId,
    /// Whether it is already marked as verified; if not, the caller must mark it ([`set_verified`]).
    pub verified: bool,
    /// Whether it was just created.
    pub is_new: bool,
}

/// The contact of a visitor described by the company's own server: matched by external id, then number, then e-mail;
/// otherwise created.
///
/// Concurrent calls with the same identity are serialized, so that a visitor never gets two contacts.
pub async fn find_or_create_for_visitor(
    db: impl Acquire<'_, Database = Postgres>,
    company: CompanyId,
    visitor: &Visitor,
) -> Result<VouchedContact> {
    let mut transaction = with_timeout(db.begin()).await?;
    identities::lock_keys(&mut transaction, company, identity_keys(visitor)).await?;
    let contact = with_timeout(async {
        let found: Option<VouchedContact> = sqlx::query_as(include_str!("visitor.sql"))
            .bind(company)
            .bind(&visitor.external_id)
            .bind(visitor.number.as_deref().map(phone_numbers::spellings))
            .bind(&visitor.email)
            .fetch_optional(&mut *transaction)
            .await?;
        let contact = match found {
            Some(found) => {
                remember_external_id(&mut transaction, company, found.id, visitor).await?;
                found
            }
            None => insert(&mut transaction, company, visitor, Verification::Verified).await?,
        };
        Ok(contact)
    })
    .await?;
    if contact.is_new {
        record_created(&mut transaction, company, &[contact.id]).await?;
    }
    with_timeout(transaction.commit()).await?;
    Ok(contact)
}

/// The keys to lock while a visitor's contact is matched or created.
fn identity_keys(visitor: &Visitor) -> BTreeSet<String> {
    let number = visitor.number.as_deref().map(identities::number_key);
    let email = visitor.email.as_ref().map(|email| format!("email:{email}"));
    let external_id = visitor.external_id.as_deref().map(identities::external_id_key);
    [number, email, external_id].into_iter().flatten().collect()
}

/// Sets the visitor's external id on a contact that has none.
async fn remember_external_id(
    db: &mut PgConnection,
    company: CompanyId,
    id: ContactId,
    visitor: &Visitor,
) -> std::result::Result<(), sqlx::Error> {
    if visitor.external_id.is_some() {
        sqlx::query("update contacts set external_id = $3 where company_id = $1 and id = $2 and external_id is null")
            .bind(company)
            .bind(id)
            .bind(&visitor.external_id)
            .execute(db)
            .await?;
    }
    Ok(())
}

/// Whether the company vouches for the identity of a new contact.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verification {
    Verified,
    Unverified,
}

async fn insert(
    db: &mut PgConnection,
    company: CompanyId,
    visitor: &Visitor,
    verification: Verification,
) -> std::result::Result<VouchedContact, sqlx::Error> {
    let name = visitor.name.as_ref().or(visitor.number.as_ref()).or(visitor.email.as_ref());
    sqlx::query_as(
        "insert into contacts (company_id, name, number, email, external_id, origin, source_url, utm_source,
             utm_medium, utm_campaign, utm_id, number_country, verified)
         values ($1, coalesce($2, $13), $3, $4, $5, 'webchat', $6, $7, $8, $9, $10, $11, $12)
         -- A send may have created the number's contact since the look-up.
         on conflict (company_id, number) do update set updated_at = now()
         returning id, verified, xmax = 0 as is_new",
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
    .bind(verification == Verification::Verified)
    .bind(DEFAULT_NAME)
    .fetch_one(db)
    .await
}

/// Creates a separate contact for a visitor without a signed identity. It gets the claimed name, but not the external
/// id, number or e-mail: each of them could match another person's contact.
pub async fn insert_unverified(db: &mut PgConnection, company: CompanyId, visitor: &Visitor) -> Result<ContactId> {
    let without_identities =
        Visitor { email: None, number: None, number_country: None, external_id: None, ..visitor.clone() };
    let id = with_timeout(insert(&mut *db, company, &without_identities, Verification::Unverified)).await?.id;
    record_created(db, company, &[id]).await?;
    Ok(id)
}

/// The contact of a signed identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedInContact {
    /// The contact.
    pub id: ContactId,
    /// Whether it was just created.
    pub is_new: bool,
}

/// The contact of a session whose visitor had no signed identity yet; usually [`insert_unverified`] created it.
#[derive(Clone, Copy, Debug)]
pub struct UnverifiedContact<'a> {
    /// The contact.
    pub id: ContactId,
    /// The name its visitor claimed; a signed name replaces it.
    pub claimed_name: Option<&'a str>,
}

/// The contact of a signed identity: the verified contact with its external id; otherwise `session_contact`, which gets
/// the external id and becomes verified; otherwise a new one. Only the external id is matched. Earlier releases may
/// have left that external id on an unverified contact; it is cleared there.
pub async fn sign_in(
    db: Db<'_>,
    company: CompanyId,
    external_id: &str,
    visitor: &Visitor,
    session_contact: Option<UnverifiedContact<'_>>,
) -> Result<SignedInContact> {
    let mut transaction = db.begin().await?;
    identities::lock_keys(transaction.connection()?, company, [identities::external_id_key(external_id)]).await?;
    let tracked: Vec<ContactId> = session_contact.iter().map(|contact| contact.id).collect();
    let tracker = track_changes(transaction.connection()?, company, &tracked).await?;
    let signed_in = with_timeout(async {
        let connection = transaction.connection().map_err(|_| sqlx::Error::PoolClosed)?;
        if let Some(id) = find_verified(&mut *connection, company, external_id).await? {
            return Ok(SignedInContact { id, is_new: false });
        }
        let clear = sqlx::query("update contacts set external_id = null where company_id = $1 and external_id = $2");
        clear.bind(company).bind(external_id).execute(&mut *connection).await?;
        let verify = sqlx::query_scalar(
            "update contacts set external_id = $3, verified = true, updated_at = now(),
                 name = case when name = $5 then coalesce($4, name) else name end
             where company_id = $1 and id = $2 and not verified and external_id is null returning id",
        );
        let verify = verify.bind(company).bind(session_contact.map(|contact| contact.id)).bind(external_id);
        let verify = verify.bind(&visitor.name).bind(session_contact.and_then(|contact| contact.claimed_name));
        let verified: Option<ContactId> = verify.fetch_optional(&mut *connection).await?;
        match verified {
            Some(id) => Ok(SignedInContact { id, is_new: false }),
            None => insert_signed_in(connection, company, external_id, visitor).await,
        }
    })
    .await?;
    if signed_in.is_new {
        record_created(transaction.connection()?, company, &[signed_in.id]).await?;
    } else {
        tracker.record(transaction.connection()?, &tracked).await?;
    }
    transaction.commit().await?;
    Ok(signed_in)
}

async fn find_verified(
    db: &mut PgConnection,
    company: CompanyId,
    external_id: &str,
) -> std::result::Result<Option<ContactId>, sqlx::Error> {
    let find = sqlx::query_scalar("select id from contacts where company_id = $1 and external_id = $2 and verified");
    find.bind(company).bind(external_id).fetch_optional(db).await
}

/// Creates a contact for a signed identity. The caller of [`sign_in`] adds the number with [`fill_empty_fields`],
/// unless it belongs to another contact.
async fn insert_signed_in(
    db: &mut PgConnection,
    company: CompanyId,
    external_id: &str,
    visitor: &Visitor,
) -> std::result::Result<SignedInContact, sqlx::Error> {
    let external_id = Some(external_id.to_owned());
    let visitor = Visitor { number: None, number_country: None, external_id, ..visitor.clone() };
    let created = insert(db, company, &visitor, Verification::Verified).await?;
    Ok(SignedInContact { id: created.id, is_new: true })
}

/// Fills empty fields of a contact with the visitor's data; a default name counts as empty. A number that belongs to
/// another contact is skipped.
pub async fn fill_empty_fields(
    db: impl Database<'_>,
    company: CompanyId,
    id: ContactId,
    visitor: &Visitor,
) -> Result<()> {
    match try_fill_empty_fields(db, company, id, visitor, visitor.number.as_deref()).await {
        // The number was taken meanwhile.
        Err(Error::Taken(_)) => try_fill_empty_fields(db, company, id, visitor, None).await,
        result => result,
    }
}

async fn try_fill_empty_fields(
    db: impl Database<'_>,
    company: CompanyId,
    id: ContactId,
    visitor: &Visitor,
    number: Option<&str>,
) -> Result<()> {
    let mut transaction = db.transaction().await?;
    if let Some(number) = number {
        identities::lock_keys(transaction.connection()?, company, [identities::number_key(number)]).await?;
    }
    let tracker = track_changes(transaction.connection()?, company, &[id]).await?;
    let update = sqlx::query(
        "update contacts c set updated_at = now(),
             name = case when c.name in ($12, c.number, c.email) then coalesce($3, c.name) else c.name end,
             email = coalesce(c.email, $4),
             number = coalesce(c.number, free.number),
             number_country = case when c.number is null and free.number is not null then $6 else c.number_country end,
             source_url = coalesce(c.source_url, $7), utm_source = coalesce(c.utm_source, $8),
             utm_medium = coalesce(c.utm_medium, $9), utm_campaign = coalesce(c.utm_campaign, $10),
             utm_id = coalesce(c.utm_id, $11)
         from (select case when exists (select from contacts o where o.company_id = $1 and o.number = any ($13) and o.id <> $2)
                   then null else $5::text end as number) free
         where c.company_id = $1 and c.id = $2",
    );
    let update = update.bind(company).bind(id).bind(&visitor.name).bind(&visitor.email);
    let update = update.bind(number).bind(&visitor.number_country).bind(&visitor.source_url);
    let update = update.bind(&visitor.utm_source).bind(&visitor.utm_medium).bind(&visitor.utm_campaign);
    let spellings = number.map(phone_numbers::spellings).unwrap_or_default();
    let update = update.bind(&visitor.utm_id).bind(DEFAULT_NAME).bind(spellings);
    with_timeout(update.execute(transaction.connection()?)).await.map_err(map_constraint(super::write::UNIQUE))?;
    tracker.record(transaction.connection()?, &[id]).await?;
    transaction.commit().await
}

/// Whether a contact is verified; `None` if it does not exist.
pub async fn is_verified(db: impl Database<'_>, company: CompanyId, id: ContactId) -> Result<Option<bool>> {
    let verified = sqlx::query_scalar("select verified from contacts where company_id = $1 and id = $2");
    with_timeout(verified.bind(company).bind(id).fetch_optional(db)).await
}

/// Marks a contact as verified.
pub async fn set_verified(db: impl Database<'_>, company: CompanyId, id: ContactId) -> Result<()> {
    let update = sqlx::query(
        "update contacts set verified = true, updated_at = now() where company_id = $1 and id = $2 and not verified",
    );
    let mut transaction = db.transaction().await?;
    let tracker = track_changes(transaction.connection()?, company, &[id]).await?;
    with_timeout(update.bind(company).bind(id).execute(transaction.connection()?)).await?;
    tracker.record(transaction.connection()?, &[id]).await?;
    transaction.commit().await
}
