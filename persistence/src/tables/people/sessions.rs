//! Sessions of people. Only the hash of a cookie is stored, and every request queries this table, so ending a session
//! takes effect everywhere at once.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, PgExecutor};

use super::{Language, PersonId};
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::key::{KeyHash, hash, new_key};
use crate::table::Span;
use crate::tables::text_enum;
use crate::tables::tokens::Permissions;
use crate::{CompanyId, Id, Result};

/// The id of a session.
pub type PersonSessionId = Id<PersonSession>;

/// The type that marks [`PersonSessionId`].
pub enum PersonSession {}

/// Maximum open sessions of one person: a few devices, and some left open. A further session ends the
/// one that was unused for the longest time.
const SESSIONS_MAX: i64 = 20;

/// Maximum sessions of one person that wait for the second factor: as many as ten minutes allow at ten sign-ins a
/// minute. They never end an open session, since they may come from a person who knows only the password.
const UNVERIFIED_SESSIONS_MAX: i64 = 100;

/// Maximum lifetime, maximum idle time, and the time to enter the second factor, each as an `interval`.
const LIFETIME: &str = "30 days";
const IDLE: &str = "12 hours";
const CODE_ENTRY_TIME: &str = "10 minutes";

/// Minimum interval between updates of the last use: a page sends many requests a minute.
const SEEN_INTERVAL: &str = "1 minute";

/// Number of wrong codes that ends a session before it is open.
const WRONG_CODES_MAX: i16 = 5;

/// Stored characters of a browser's user agent.
const USER_AGENT_CHARACTERS_MAX: usize = 300;

text_enum! {
    /// The state of a sign-in.
    SessionState { SecondFactor = "second_factor", Open = "open" }
}

/// A parsed cookie. Its text is the company and 32 random characters; only their hash is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    company: CompanyId,
    hash: KeyHash,
}

/// Separates the company and the key.
const SEPARATOR: char = '.';

/// Creates a key: the cookie's text, and the stored hash.
fn new_session_key(company: CompanyId) -> (String, KeyHash) {
    let text = new_key(&format!("{company}{SEPARATOR}"));
    let key_hash = hash(&text);
    (text, key_hash)
}

impl SessionKey {
    /// Parses a cookie's text, if it has the right form.
    pub fn parse(text: &str) -> Option<Self> {
        let (company, _) = text.split_once(SEPARATOR)?;
        Some(Self { company: company.parse().ok()?, hash: hash(text) })
    }

    /// The company of the session.
    pub fn company(&self) -> CompanyId {
        self.company
    }

    pub fn hash(&self) -> KeyHash {
        self.hash
    }
}

/// A session and its person's current data. The second factor may still be missing ([`SignedInPerson::is_open`]).
#[derive(Clone, Debug, FromRow)]
pub struct SignedInPerson {
    pub id: PersonSessionId,
    pub company_id: CompanyId,
    pub person_id: i64,
    pub state: SessionState,
    pub name: String,
    pub email: String,
    pub language: Option<Language>,
    #[sqlx(try_from = "Document<Permissions>")]
    pub permissions: Json<Permissions>,
    pub administers: bool,
    pub sees_all_cards: bool,
    /// Whether the person has a second factor.
    pub has_factor: bool,
    /// Whether the person must have a second factor.
    pub needs_factor: bool,
    /// Whether the stored time of the last use must be updated.
    pub is_stale: bool,
    /// Seconds until the session ends if it is not used again.
    #[sqlx(rename = "lives_s")]
    pub remaining_s: f64,
}

impl SignedInPerson {
    /// The person.
    pub fn person(&self) -> PersonId {
        PersonId::of(self.company_id, self.person_id)
    }

    /// Whether signing in is complete, with a second factor if one is required.
    pub fn is_open(&self) -> bool {
        self.state == SessionState::Open && (self.has_factor || !self.needs_factor)
    }
}

const USER_SESSIONS: &str = "select s.id, s.company_id, s.person_id, s.state, u.name, u.email, u.language,
        coalesce(p.permissions, '{}') as permissions, coalesce(p.administers, false) as administers,
        coalesce(p.sees_all_cards, false) as sees_all_cards, f.confirmed_at is not null as has_factor,
        c.second_factor_required as needs_factor, s.seen_at < now() - $3::text::interval as is_stale,
        extract(epoch from least(s.expires_at, s.seen_at + $4::text::interval) - now())::float8 as lives_s
    from person_sessions s
    join users u on u.company_id = s.company_id and u.id = s.person_id and u.active
    join companies c on c.id = s.company_id
    left join profiles p on p.company_id = u.company_id and p.id = u.profile_id
    left join second_factors f on f.company_id = s.company_id and f.person_id = s.person_id";

const ADMIN_SESSIONS: &str = "select s.id, s.company_id, s.person_id, s.state, a.name, a.email, a.language,
        '{}'::jsonb as permissions, true as administers, true as sees_all_cards,
        f.confirmed_at is not null as has_factor, false as needs_factor, s.seen_at < now() - $3::text::interval as is_stale,
        extract(epoch from least(s.expires_at, s.seen_at + $4::text::interval) - now())::float8 as lives_s
    from person_sessions s
    join admins a on a.id = s.person_id
    left join second_factors f on f.company_id = s.company_id and f.person_id = s.person_id";

/// The condition for a session that has not ended.
const IS_LIVE: &str = "s.expires_at > now() and s.seen_at > now() - $4::text::interval
        and (s.state = 'open' or s.created_at > now() - $5::text::interval)";

/// The live session of a key; records its use.
pub async fn find(db: impl PgExecutor<'_> + Copy, key: &SessionKey) -> Result<Option<SignedInPerson>> {
    let sessions = if key.company == super::INSTALLATION { ADMIN_SESSIONS } else { USER_SESSIONS };
    let statement = format!("{sessions} where s.company_id = $1 and s.hash = $2 and {IS_LIVE}");
    let found = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(key.company).bind(key.hash);
    let found = found.bind(SEEN_INTERVAL).bind(IDLE).bind(CODE_ENTRY_TIME);
    let found = with_timeout(found.fetch_optional(db)).await?;
    let session: Option<SignedInPerson> = found.as_ref().map(document::read).transpose()?;
    if let Some(session) = session.as_ref().filter(|session| session.is_stale) {
        let update = sqlx::query("update person_sessions set seen_at = now() where company_id = $1 and id = $2");
        with_timeout(update.bind(session.company_id).bind(session.id).execute(db)).await?;
    }
    Ok(session)
}

/// Returns a session if it is still live and its person may still sign in: for connections that outlive a request.
pub async fn find_live(db: impl PgExecutor<'_>, session: &SignedInPerson) -> Result<Option<SignedInPerson>> {
    let sessions = if session.person().is_admin() { ADMIN_SESSIONS } else { USER_SESSIONS };
    let statement = format!("{sessions} where s.company_id = $1 and s.id = $2 and {IS_LIVE}");
    let found = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(session.company_id).bind(session.id);
    let found = found.bind(SEEN_INTERVAL).bind(IDLE).bind(CODE_ENTRY_TIME);
    Ok(with_timeout(found.fetch_optional(db)).await?.as_ref().map(document::read).transpose()?)
}

/// The origin of a sign-in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    pub address: Option<&'a str>,
    pub user_agent: Option<&'a str>,
}

/// Deletes a person's expired sessions. Of those in `state`, also deletes the least recently used ones, so that one
/// more fits within the limit.
async fn remove_excess(db: &mut PgConnection, person: PersonId, state: SessionState) -> Result<()> {
    let maximum = match state {
        SessionState::SecondFactor => UNVERIFIED_SESSIONS_MAX,
        SessionState::Open => SESSIONS_MAX,
    };
    let clear = sqlx::query(
        "delete from person_sessions where company_id = $1 and person_id = $2
             and (expires_at <= now() or seen_at <= now() - $3::text::interval
                 or state <> 'open' and created_at <= now() - $4::text::interval
                 or state = $5 and id not in (select id from person_sessions
                     where company_id = $1 and person_id = $2 and state = $5 order by seen_at desc, id desc limit $6))",
    );
    let clear =
        clear.bind(person.company()).bind(person.id()).bind(IDLE).bind(CODE_ENTRY_TIME).bind(state).bind(maximum - 1);
    with_timeout(clear.execute(db)).await?;
    Ok(())
}

/// Starts a session; returns the cookie's text. Ends the least recently used sessions beyond the limit.
pub async fn begin(db: &mut PgConnection, person: PersonId, state: SessionState, origin: Origin<'_>) -> Result<String> {
    let (text, key_hash) = new_session_key(person.company());
    remove_excess(&mut *db, person, state).await?;
    let insert = sqlx::query(
        "insert into person_sessions (company_id, person_id, hash, state, address, user_agent, expires_at)
         values ($1, $2, $3, $4, $5, $6, now() + $7::text::interval)",
    );
    let agent = origin.user_agent.map(|agent| agent.chars().take(USER_AGENT_CHARACTERS_MAX).collect::<String>());
    let insert = insert.bind(person.company()).bind(person.id()).bind(key_hash).bind(state);
    with_timeout(insert.bind(origin.address).bind(agent).bind(LIFETIME).execute(db)).await?;
    Ok(text)
}

/// Opens a session after its second factor was verified, with a new key; returns the cookie's text. Ends the least
/// recently used open sessions beyond the limit.
///
/// # Errors
/// When the database cannot answer; [`crate::Error::NotFound`] when the session has ended meanwhile.
pub async fn open(db: &mut PgConnection, session: &SignedInPerson) -> Result<String> {
    let (text, key_hash) = new_session_key(session.company_id);
    remove_excess(&mut *db, session.person(), SessionState::Open).await?;
    let update = sqlx::query(
        "update person_sessions set state = 'open', hash = $3, seen_at = now() where company_id = $1 and id = $2",
    );
    let update = update.bind(session.company_id).bind(session.id).bind(key_hash);
    let updated_rows = with_timeout(update.execute(db)).await?.rows_affected();
    if updated_rows == 0 { Err(crate::Error::NotFound("session")) } else { Ok(text) }
}

/// Counts a wrong code; too many end the session.
pub async fn note_wrong_code(db: impl PgExecutor<'_>, session: &SignedInPerson) -> Result<()> {
    let note = sqlx::query(
        "with noted as (update person_sessions set wrong_codes = wrong_codes + 1
             where company_id = $1 and id = $2 and wrong_codes + 1 < $3 returning id)
         delete from person_sessions where company_id = $1 and id = $2 and not exists (select from noted)",
    );
    with_timeout(note.bind(session.company_id).bind(session.id).bind(WRONG_CODES_MAX).execute(db)).await?;
    Ok(())
}

/// A session, as its owner sees it.
#[derive(Clone, Debug, FromRow)]
pub struct SessionInfo {
    pub id: PersonSessionId,
    pub address: Option<String>,
    pub user_agent: Option<String>,
    pub created_at: DateTime<Utc>,
    pub seen_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// The open sessions of a person that were created in this span, most recently used first; at most `SESSIONS_MAX`.
pub async fn of_person(
    db: impl PgExecutor<'_>,
    person: PersonId,
    (created_from, created_to): Span,
) -> Result<Vec<SessionInfo>> {
    let select = sqlx::query_as(
        "select id, address, user_agent, created_at, seen_at,
             least(expires_at, seen_at + $3::text::interval) as expires_at
         from person_sessions where company_id = $1 and person_id = $2 and state = 'open' and expires_at > now()
             and seen_at > now() - $3::text::interval
             and ($4::timestamptz is null or created_at >= $4) and ($5::timestamptz is null or created_at <= $5)
         order by seen_at desc, id desc",
    );
    let select = select.bind(person.company()).bind(person.id()).bind(IDLE).bind(created_from).bind(created_to);
    with_timeout(select.fetch_all(db)).await
}

/// Ends one session of a person; returns whether it existed.
pub async fn end(db: impl PgExecutor<'_>, person: PersonId, id: PersonSessionId) -> Result<bool> {
    let end = sqlx::query("delete from person_sessions where company_id = $1 and person_id = $2 and id = $3");
    let result = with_timeout(end.bind(person.company()).bind(person.id()).bind(id).execute(db)).await?;
    Ok(result.rows_affected() > 0)
}

/// Ends all sessions of a person, optionally except one.
pub async fn end_all(db: impl PgExecutor<'_>, person: PersonId, except: Option<PersonSessionId>) -> Result<()> {
    let end = sqlx::query(
        "delete from person_sessions where company_id = $1 and person_id = $2 and ($3::bigint is null or id <> $3)",
    );
    with_timeout(end.bind(person.company()).bind(person.id()).bind(except).execute(db)).await?;
    Ok(())
}
