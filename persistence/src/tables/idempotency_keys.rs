//! The answers that requests with an idempotency key were given. A record is stored with its effect: by the persister
//! for a live change, in the same transaction for a plain one.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, PgConnection};

use crate::error::with_timeout;
use crate::{CompanyId, Database, Result};

/// How long an answer is kept.
pub const KEPT: TimeDelta = TimeDelta::hours(24);

/// One answer that was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromRow)]
#[allow(missing_docs)]
pub struct AnswerRow {
    pub company_id: CompanyId,
    pub key: String,
    /// SHA-256 of the request.
    pub fingerprint: Vec<u8>,
    pub status: i16,
    /// JSON, or nothing.
    pub body: String,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
}

/// Writes the rows. A key that was given out again after its time takes the old row's place; within it the first answer
/// stays.
pub(crate) async fn upsert(db: &mut PgConnection, rows: &[&AnswerRow]) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        "insert into idempotency_keys as kept (company_id, key, fingerprint, status, body, created_at)
         select * from unnest($1::bigint[], $2::text[], $3::bytea[], $4::smallint[], $5::text[], $6::timestamptz[])
         on conflict (company_id, key) do update set fingerprint = excluded.fingerprint, status = excluded.status,
             body = excluded.body, created_at = excluded.created_at
         where kept.created_at <= excluded.created_at - $7",
    )
    .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.fingerprint.as_slice()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.status).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.body.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.created_at).collect::<Vec<_>>())
    .bind(KEPT)
    .execute(db)
    .await?;
    Ok(())
}

/// Writes one answer in the transaction of its effect. False when the key is taken by an answer from after `since`:
/// the effect must not stand then.
///
/// # Errors
/// When the database cannot answer.
pub async fn insert(db: &mut PgConnection, row: &AnswerRow, since: DateTime<Utc>) -> Result<bool> {
    let written = with_timeout(
        sqlx::query(
            "insert into idempotency_keys as kept (company_id, key, fingerprint, status, body, created_at)
             values ($1, $2, $3, $4, $5, $6)
             on conflict (company_id, key) do update set fingerprint = excluded.fingerprint,
                 status = excluded.status, body = excluded.body, created_at = excluded.created_at
             where kept.created_at <= $7",
        )
        .bind(row.company_id)
        .bind(&row.key)
        .bind(&row.fingerprint)
        .bind(row.status)
        .bind(&row.body)
        .bind(row.created_at)
        .bind(since)
        .execute(db),
    )
    .await?;
    Ok(written.rows_affected() == 1)
}

/// The answer given under a key after `since`, or none.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(
    db: impl Database<'_>,
    company: CompanyId,
    key: &str,
    since: DateTime<Utc>,
) -> Result<Option<AnswerRow>> {
    with_timeout(
        sqlx::query_as("select * from idempotency_keys where company_id = $1 and key = $2 and created_at > $3")
            .bind(company)
            .bind(key)
            .bind(since)
            .fetch_optional(db),
    )
    .await
}

/// Keys used after `since`, the newest `limit` of them.
///
/// # Errors
/// When the database cannot answer.
pub async fn recent(
    db: impl Database<'_>,
    since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<(CompanyId, String, DateTime<Utc>)>> {
    Ok(sqlx::query_as(
        "select company_id, key, created_at from idempotency_keys where created_at > $1
         order by created_at desc limit $2",
    )
    .bind(since)
    .bind(limit)
    .fetch_all(db)
    .await?)
}

/// Keys a company used after `since`, the newest `limit` of them.
///
/// # Errors
/// When the database cannot answer.
pub async fn recent_of(
    db: impl Database<'_>,
    company: CompanyId,
    since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<(String, DateTime<Utc>)>> {
    with_timeout(
        sqlx::query_as(
            "select key, created_at from idempotency_keys where company_id = $1 and created_at > $2
             order by created_at desc limit $3",
        )
        .bind(company)
        .bind(since)
        .bind(limit)
        .fetch_all(db),
    )
    .await
}

/// Forgets at most `limit` answers given before `before`; answers how many.
///
/// # Errors
/// When the database cannot answer.
pub async fn sweep(db: impl Database<'_>, before: DateTime<Utc>, limit: i64) -> Result<u64> {
    let swept = with_timeout(
        sqlx::query(
            "delete from idempotency_keys where (company_id, key) in (
                 select company_id, key from idempotency_keys where created_at <= $1 order by created_at limit $2
                 for update skip locked)",
        )
        .bind(before)
        .bind(limit)
        .execute(db),
    )
    .await?;
    Ok(swept.rows_affected())
}
