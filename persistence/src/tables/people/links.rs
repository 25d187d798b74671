//! Links by which a person chooses a password: an invitation, or a reset. A person has one at a time; only its hash is kept.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection, PgExecutor};

use super::PersonId;
use crate::error::with_timeout;
use crate::key::{hash, new_key};
use crate::tables::words;
use crate::{CompanyId, Error, Result};

words! {
    /// What a link is for.
    LinkKind {
        /// To somebody new, for 7 days.
        Invitation = "invitation",
        /// To somebody who has forgotten their password, for an hour.
        Reset = "reset",
    }
}

impl LinkKind {
    /// How long it is good, as an `interval`.
    fn lives(self) -> &'static str {
        match self {
            Self::Invitation => "7 days",
            Self::Reset => "1 hour",
        }
    }
}

/// What stands between the company and the key.
const SEPARATOR: char = '.';

/// Makes a link for a person, in place of the one before; answers its token, and until when it is good.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such person.
pub async fn make(db: impl PgExecutor<'_>, person: PersonId, kind: LinkKind) -> Result<(String, DateTime<Utc>)> {
    let token = new_key(&format!("{}{SEPARATOR}", person.company()));
    let statement = format!(
        "insert into person_links (company_id, person_id, kind, hash, expires_at)
         select $1, id, $3, $4, now() + $5::text::interval from {} where {}
         on conflict (company_id, person_id) do update
             set kind = excluded.kind, hash = excluded.hash, expires_at = excluded.expires_at, created_at = now()
         returning expires_at",
        person.table(),
        person.found_by()
    );
    let make = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(person.company()).bind(person.id());
    let made = with_timeout(make.bind(kind).bind(hash(&token)).bind(kind.lives()).fetch_optional(db)).await?;
    Ok((token, made.ok_or(Error::NotFound("person"))?))
}

/// How long the link before is left alone when a person asks for another by themselves, as an `interval`: nobody's letter
/// box is filled by who types their address again and again.
const AGAIN_AFTER: &str = "5 minutes";

/// Makes a link for who asks for it by themselves; answers its token and its kind, or none when the one before is new, or
/// there is no such person. Who was invited and has not come yet is invited anew, so that nobody who types their address
/// takes the longer time from them.
///
/// # Errors
/// When the database cannot answer.
pub async fn make_again(db: impl PgExecutor<'_>, person: PersonId) -> Result<Option<(String, LinkKind)>> {
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
        person.found_by()
    );
    let make = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(person.company()).bind(person.id());
    let make = make.bind(hash(&token)).bind(LinkKind::Invitation.lives()).bind(LinkKind::Reset.lives());
    let made: Option<LinkKind> = with_timeout(make.bind(AGAIN_AFTER).fetch_optional(db)).await?;
    Ok(made.map(|kind| (token, kind)))
}

/// A link that is good.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
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
    /// Who chooses a password by it.
    pub fn person(&self) -> PersonId {
        PersonId::of(self.company_id, self.person_id)
    }
}

/// The company a link's token names, or none.
pub fn company_of(token: &str) -> Option<CompanyId> {
    token.split_once(SEPARATOR).and_then(|(company, _)| company.parse().ok())
}

/// The link of a token, if it is good and its person is not switched off.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(db: impl PgExecutor<'_>, token: &str) -> Result<Option<Link>> {
    let Some(company) = company_of(token) else { return Ok(None) };
    let found = sqlx::query_as(if company == super::INSTALLATION {
        "select l.company_id, l.person_id, l.kind, l.expires_at, a.name, a.email, null::text as company_name
         from person_links l join admins a on a.id = l.person_id
         where l.company_id = $1 and l.hash = $2 and l.expires_at > now()"
    } else {
        "select l.company_id, l.person_id, l.kind, l.expires_at, u.name, u.email, c.name as company_name
         from person_links l join users u on u.company_id = l.company_id and u.id = l.person_id and u.active
         join companies c on c.id = l.company_id and c.active
         where l.company_id = $1 and l.hash = $2 and l.expires_at > now()"
    });
    with_timeout(found.bind(company).bind(hash(token)).fetch_optional(db)).await
}

/// Uses a link up: the person has this password from now on, and is signed in nowhere. None when it is not good.
///
/// # Errors
/// When the database cannot answer.
pub async fn spend(db: &mut PgConnection, token: &str, password_hash: &str) -> Result<Option<Link>> {
    let Some(link) = find(&mut *db, token).await? else { return Ok(None) };
    let spend = sqlx::query("delete from person_links where company_id = $1 and person_id = $2 and hash = $3");
    let spent = spend.bind(link.company_id).bind(link.person_id).bind(hash(token));
    // Of two who use it at once, one was first.
    if with_timeout(spent.execute(&mut *db)).await?.rows_affected() == 0 {
        return Ok(None);
    }
    super::set_password(&mut *db, link.person(), password_hash).await?;
    super::sessions::end_all(db, link.person(), None).await?;
    Ok(Some(link))
}
