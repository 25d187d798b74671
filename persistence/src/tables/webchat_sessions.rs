//! Webchat visitor sessions. Live: written only by the persister.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

use super::by::By;
use super::text_enum;
use crate::cluster::SlotFilter;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::key::KeyHash;
use crate::{ChannelId, CompanyId, ContactId, Database, Result, SessionId, TicketId};

text_enum! {
    /// The status of a visitor session.
    SessionStatus { Active = "active", Ended = "ended" }
}

/// One session as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromRow)]
pub struct SessionRow {
    pub company_id: CompanyId,
    pub id: SessionId,
    pub channel_id: ChannelId,
    pub contact_id: ContactId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket_id: Option<TicketId>,
    pub status: SessionStatus,
    pub token_hash: Vec<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub page: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub utm: Option<Value>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub last_seen_at: DateTime<Utc>,
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether the visitor's identity was verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verified: bool,
    /// The unsigned claims of a visitor; `None` for a verified one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub claimed: Option<Value>,
    /// Messages since this time are visible; `None`: since the session began.
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub shown_from: Option<DateTime<Utc>>,
    /// Hashes of further tokens of the session, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_hashes: Vec<Vec<u8>>,
    /// Who caused this state, for its event; not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(skip)]
    pub by: Option<By>,
}

impl SessionRow {
    /// The time since which messages are visible.
    pub fn visible_since(&self) -> DateTime<Utc> {
        self.shown_from.unwrap_or(self.created_at)
    }

    /// The hashes of all tokens of the session.
    pub fn all_token_hashes(&self) -> impl Iterator<Item = KeyHash> {
        let hashes = std::iter::once(&self.token_hash).chain(&self.token_hashes);
        hashes.filter_map(|hash| KeyHash::try_from(hash.as_slice()).ok())
    }

    /// Whether the visitor is unknown, so that the contact was created for them.
    pub fn is_anonymous(&self) -> bool {
        !self.verified && self.claimed.is_some()
    }
}

/// Inserts the rows; if a row exists, updates only the columns that can change.
pub(crate) async fn upsert(db: &mut PgConnection, rows: &[&SessionRow]) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        "insert into webchat_sessions (company_id, id, channel_id, contact_id, ticket_id, status, token_hash, page,
             utm, created_at, last_seen_at, ended_at, verified, claimed, shown_from, token_hashes)
         select company_id, id, channel_id, contact_id, ticket_id, status, token_hash, page, utm, created_at,
             last_seen_at, ended_at, verified, claimed, shown_from,
             -- Nested arrays are rectangular in PostgreSQL, so the hashes of a row are passed as one text.
             array(select decode(hash, 'hex') from unnest(string_to_array(nullif(tokens, ''), ',')) as hash)
         from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[],
             $7::bytea[], $8::jsonb[], $9::jsonb[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[],
             $13::boolean[], $14::jsonb[], $15::timestamptz[], $16::text[])
             as row (company_id, id, channel_id, contact_id, ticket_id, status, token_hash, page, utm, created_at,
                 last_seen_at, ended_at, verified, claimed, shown_from, tokens)
         on conflict (company_id, id) do update set ticket_id = excluded.ticket_id, status = excluded.status,
             last_seen_at = excluded.last_seen_at, ended_at = excluded.ended_at, verified = excluded.verified,
             token_hashes = excluded.token_hashes",
    )
    .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.id.0.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.channel_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.contact_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.ticket_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.status.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.token_hash.as_slice()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.page.clone()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.utm.clone()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.created_at).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.last_seen_at).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.ended_at).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.verified).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.claimed.clone()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.shown_from).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| to_hex(&row.token_hashes)).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// The statuses of the given sessions, without those that do not exist.
pub(crate) async fn statuses(
    db: &mut PgConnection,
    ids: impl Iterator<Item = (CompanyId, SessionId)>,
) -> std::result::Result<HashMap<(CompanyId, SessionId), SessionStatus>, sqlx::Error> {
    // PostgreSQL cannot store a text with this character, so no session has such an id.
    let storable = |id: &SessionId| !id.0.contains('\0');
    let ids = ids.filter(|(_, id)| storable(id));
    let (companies, ids): (Vec<_>, Vec<_>) = ids.map(|(company, id)| (company, id.0)).unzip();
    let found: Vec<(CompanyId, SessionId, SessionStatus)> = sqlx::query_as(
        "select distinct s.company_id, s.id, s.status from unnest($1::bigint[], $2::text[]) as x (company, session)
         join webchat_sessions s on s.company_id = x.company and s.id = x.session",
    )
    .bind(companies)
    .bind(ids)
    .fetch_all(db)
    .await?;
    Ok(found.into_iter().map(|(company, id, status)| ((company, id), status)).collect())
}

fn to_hex(hashes: &[Vec<u8>]) -> String {
    let hex = |hash: &Vec<u8>| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    hashes.iter().map(hex).collect::<Vec<_>>().join(",")
}

/// One session, or `None`.
pub async fn find(db: impl Database<'_>, company: CompanyId, id: &SessionId) -> Result<Option<SessionRow>> {
    let select = sqlx::query("select * from webchat_sessions where company_id = $1 and id = $2").bind(company).bind(id);
    Ok(with_timeout(select.fetch_optional(db)).await?.as_ref().map(document::read).transpose()?)
}

/// The session of a visitor's token in this webchat, or `None`.
pub async fn by_token(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    hash: &KeyHash,
) -> Result<Option<SessionId>> {
    with_timeout(
        sqlx::query_scalar(
            "select id from webchat_sessions where company_id = $1 and channel_id = $2 and token_hash = $3
             union all
             select id from webchat_sessions where company_id = $1 and channel_id = $2 and token_hashes @> array[$3]
             limit 1",
        )
        .bind(company)
        .bind(channel)
        .bind(hash.as_slice())
        .fetch_optional(db),
    )
    .await
}

/// The contact's latest session in this webchat, or `None`.
pub async fn latest(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    contact: ContactId,
) -> Result<Option<SessionRow>> {
    with_timeout(
        sqlx::query_as(
            "select * from webchat_sessions where company_id = $1 and contact_id = $2 and channel_id = $3
             order by created_at desc, id desc limit 1",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .fetch_optional(db),
    )
    .await
}

/// When another of the contact's sessions in this webchat was first open after this one had ended; `None` if none was.
pub async fn next_open_at(
    db: impl Database<'_>,
    session: &SessionRow,
    ended_at: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>> {
    with_timeout(
        sqlx::query_scalar(
            "select min(greatest(created_at, $5)) from webchat_sessions
             where company_id = $1 and contact_id = $2 and channel_id = $3 and id <> $4
                 and (ended_at is null or ended_at > $5)",
        )
        .bind(session.company_id)
        .bind(session.contact_id)
        .bind(session.channel_id)
        .bind(&session.id)
        .bind(ended_at)
        .fetch_one(db),
    )
    .await
}

/// The sessions of these contacts, each with its contact and ticket.
pub async fn of_contacts(
    db: impl Database<'_>,
    company: CompanyId,
    contacts: &[ContactId],
) -> Result<Vec<(SessionId, ContactId, Option<TicketId>)>> {
    let find = sqlx::query_as(
        "select id, contact_id, ticket_id from webchat_sessions where company_id = $1 and contact_id = any ($2)",
    );
    with_timeout(find.bind(company).bind(contacts).fetch_all(db)).await
}

/// The contact's active sessions, either only the verified or only the unverified ones, newest first.
pub async fn active_of_contact(
    db: impl Database<'_>,
    company: CompanyId,
    contact: ContactId,
    is_verified: bool,
) -> Result<Vec<(ChannelId, SessionId)>> {
    with_timeout(
        sqlx::query_as(
            "select channel_id, id from webchat_sessions
             where company_id = $1 and contact_id = $2 and status = 'active' and verified = $3
             order by created_at desc, id desc",
        )
        .bind(company)
        .bind(contact)
        .bind(is_verified)
        .fetch_all(db),
    )
    .await
}

/// Whether the contact ever had a session in this webchat.
pub async fn exists(db: impl Database<'_>, company: CompanyId, channel: ChannelId, contact: ContactId) -> Result<bool> {
    with_timeout(
        sqlx::query_scalar(
            "select exists (select from webchat_sessions
             where company_id = $1 and contact_id = $2 and channel_id = $3)",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .fetch_one(db),
    )
    .await
}

/// Up to `limit` active sessions without activity since `before`, for the idle sweep.
pub async fn idle(
    db: impl Database<'_>,
    slots: &SlotFilter,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<(CompanyId, SessionId)>> {
    let idle = format!(
        "select company_id, id from webchat_sessions where status = 'active' and last_seen_at < $1 and {}
         order by last_seen_at limit $2",
        SlotFilter::condition("company_id", 3)
    );
    let idle = sqlx::query_as(AssertSqlSafe(idle)).bind(before).bind(limit).bind(slots.numbers());
    with_timeout(idle.fetch_all(db)).await
}
