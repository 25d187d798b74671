//! Links with which a person sets a password: an invitation, or a reset. A person has one at a time; only its hash is
//! stored.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection, PgExecutor};

use super::PersonId;
use crate::error::with_timeout;
use crate::key::{hash, new_key};
use crate::tables::text_enum;
use crate::{CompanyId, Error, Result};

text_enum! {
    /// The purpose of a link.
    LinkKind {
        /// To a new person, for 7 days.
        Invitation = "invitation",
        /// To a person who has forgotten their password, for an hour.
        Reset = "reset",
    }
}

impl LinkKind {
    /// Its validity as an `interval`.
    fn validity(self) -> &'static str {
        match self {
            Self::Invitation => "7 days",
            Self::Reset => "1 hour",
        }
    }
}

/// Separates the company's id and the random key in a token.
const SEPARATOR: char = '.';

/// Creates a link for a person, replacing the previous one; returns its token and its expiry.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when the person does not exist.
pub async fn make(db: impl PgExecutor<'_>, person: PersonId, kind: LinkKind) -> Result<(String, DateTime<Utc>)> {
    let token = new_key(&format!("{}{SEPARATOR}", person.company()));
    let statement = format!(
        "insert into person_links (company_id, person_id, kind, hash, expires_at)
         select $1, id, $3, $4, now() + $5::text::interval from {} where {}
         on conflict (company_id, person_id) do update
             set kind = excluded.kind, hash = excluded.hash, expires_at = excluded.expires_at, created_at = now()
         returning expires_at",
        person.table(),
        person.condition()
    );
    let insert = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(person.company()).bind(person.id());
    let expires_at =
        with_timeout(insert.bind(kind).bind(hash(&token)).bind(kind.validity()).fetch_optional(db)).await?;
    Ok((token, expires_at.ok_or(Error::NotFound("person"))?))
}

/// Minimum age of the previous link before a requested one replaces it, as an `interval`, so that a mailbox
/// is not flooded when its address is entered repeatedly.
const REQUEST_INTERVAL: &str = "5 minutes";

/// Creates a link that resets a password, on request; returns its token and kind, or `None` if the previous link is
/// recent or the person does not exist. A valid invitation is replaced by a new invitation, not by a reset: anyone may
/// request a link, and must not shorten the validity of an invitation that way.
pub async fn request_reset(db: impl PgExecutor<'_>, person: PersonId) -> Result<Option<(String, LinkKind)>> {
    let token = new_key(&format!("{}{SEPARATOR}", person.company()));
    let statement = format!(
        "insert into person_links as l (company_id, person_id, kind, hash, expires_at)
         select $1, id, 'reset', $3, now() + $5::text::interval from {} where {}
         on conflict (company_id, person_id) do update
             set kind = case when l.kind = 'invitation' and l.expires_at > now() then l.kind else excluded.kind end,
                 hash = excluded.hash, created_at = now(),
                 expires_at = case when l.kind = 'invitation' and l.expires_at > now() then now() + $4::text::interval
                     else excluded.expires_at end
             where l.created_at <= now() - $6::text::interval
         returning kind",
        person.table(),
        person.condition()
    );
    let insert = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(person.company()).bind(person.id());
    let insert = insert.bind(hash(&token)).bind(LinkKind::Invitation.validity()).bind(LinkKind::Reset.validity());
    let kind: Option<LinkKind> = with_timeout(insert.bind(REQUEST_INTERVAL).fetch_optional(db)).await?;
    Ok(kind.map(|kind| (token, kind)))
}

/// A valid link.
#[derive(Clone, Debug, FromRow)]
pub struct Link {
    pub company_id: CompanyId,
    pub person_id: i64,
    pub kind: LinkKind,
    pub expires_at: DateTime<Utc>,
    pub name: String,
    pub email: String,
    pub company_name: Option<String>,
}

impl Link {
    /// The person whose password it sets.
    pub fn person(&self) -> PersonId {
        PersonId::of(self.company_id, self.person_id)
    }
}

/// The company in a link's token, or `None`.
pub fn company_of(token: &str) -> Option<CompanyId> {
    token.split_once(SEPARATOR).and_then(|(company, _)| company.parse().ok())
}

/// The link of a token, if it is valid and its person is active.
pub async fn find(db: impl PgExecutor<'_>, token: &str) -> Result<Option<Link>> {
    let Some(company) = company_of(token) else { return Ok(None) };
    let select = sqlx::query_as(if company == super::INSTALLATION {
        "select l.company_id, l.person_id, l.kind, l.expires_at, a.name, a.email, null::text as company_name
         from person_links l join admins a on a.id = l.person_id
         where l.company_id = $1 and l.hash = $2 and l.expires_at > now()"
    } else {
        "select l.company_id, l.person_id, l.kind, l.expires_at, u.name, u.email, c.name as company_name
         from person_links l join users u on u.company_id = l.company_id and u.id = l.person_id and u.active
         join companies c on c.id = l.company_id and c.active
         where l.company_id = $1 and l.hash = $2 and l.expires_at > now()"
    });
    with_timeout(select.bind(company).bind(hash(token)).fetch_optional(db)).await
}

/// Redeems a link: sets the person's password and ends all their sessions. `None` if the link is not valid.
pub async fn redeem(db: &mut PgConnection, token: &str, password_hash: &str) -> Result<Option<Link>> {
    let Some(link) = find(&mut *db, token).await? else { return Ok(None) };
    let person = link.person();
    super::lock(&mut *db, person).await?;
    let delete = sqlx::query("delete from person_links where company_id = $1 and person_id = $2 and hash = $3");
    let delete = delete.bind(link.company_id).bind(link.person_id).bind(hash(token));
    // If it is redeemed twice at once, only the first one succeeds.
    if with_timeout(delete.execute(&mut *db)).await?.rows_affected() == 0 {
        return Ok(None);
    }
    super::set_password(&mut *db, person, password_hash).await?;
    super::sessions::end_all(db, person, None).await?;
    Ok(Some(link))
}

/// Invalidates a person's link, if there is one.
pub async fn invalidate(db: impl PgExecutor<'_>, person: PersonId) -> Result<()> {
    let delete = sqlx::query("delete from person_links where company_id = $1 and person_id = $2");
    with_timeout(delete.bind(person.company()).bind(person.id()).execute(db)).await?;
    Ok(())
}
