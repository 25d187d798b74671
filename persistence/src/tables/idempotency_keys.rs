//! Recorded answers to requests with an idempotency key. An answer is stored together with its effect: by the persister
//! for a live change, in the same transaction for a plain one.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use sha2::Sha256;
use sqlx::{FromRow, PgConnection};

use crate::copy;
use crate::error::with_timeout;
use crate::partitions::Partitions;
use crate::{CompanyId, Database, Result};

/// Retention of an answer.
pub const RETENTION: TimeDelta = TimeDelta::hours(24);

/// Partitions of six hours: a lookup searches five or six of them.
const PARTITIONS: Partitions = Partitions { table: "idempotency_keys", span: TimeDelta::hours(6) };

/// The first of the two numbers of a key's advisory lock, which says what is locked: `key` in ASCII.
const KEY_LOCK: i32 = 0x6b_65_79;

/// The first 16 bytes of the SHA-256 of a key or a request, which fit into two integers. Finding a collision takes 2^64
/// attempts, and would mislead only its finder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct Digest([u8; Digest::BYTES]);

impl Digest {
    const BYTES: usize = 16;

    /// The digest of all these bytes, concatenated.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::default();
        for part in parts {
            sha2::Digest::update(&mut hash, part);
        }
        hash.into()
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its first 8 bytes: enough to show that a key was not used, but not that it was.
    pub fn short_hash(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// The prefix of a longer hash; `None` for a shorter one.
    fn prefix_of(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied().map(Self)
    }
}

impl From<Sha256> for Digest {
    fn from(hash: Sha256) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&sha2::Digest::finalize(hash)[..Self::BYTES]);
        Self(bytes)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl copy::Field for Digest {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        to.extend_from_slice(&self.0);
        true
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

/// Also reads older journals, which contain the key itself, and the fingerprint as 32 numbers.
impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct DigestVisitor;
        impl<'de> Visitor<'de> for DigestVisitor {
            type Value = Digest;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a digest of 16 bytes, or the text to digest")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> std::result::Result<Digest, E> {
                Digest::prefix_of(bytes).ok_or_else(|| E::invalid_length(bytes.len(), &self))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Digest, E> {
                Ok(Digest::of(&[text.as_bytes()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> std::result::Result<Digest, A::Error> {
                let mut bytes = Vec::with_capacity(2 * Digest::BYTES);
                while let Some(byte) = numbers.next_element()? {
                    bytes.push(byte);
                }
                Digest::prefix_of(&bytes).ok_or_else(|| A::Error::invalid_length(bytes.len(), &self))
            }
        }
        from.deserialize_any(DigestVisitor)
    }
}

/// One recorded answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromRow)]
pub struct AnswerRow {
    pub company_id: CompanyId,
    pub key: Digest,
    /// Digest of the request.
    pub fingerprint: Digest,
    pub status: i16,
    /// JSON, or empty.
    pub body: String,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
}

/// Copies rows to the table; fails if one of them exists already.
pub(crate) async fn copy(db: &mut PgConnection, rows: &[&AnswerRow]) -> std::result::Result<(), sqlx::Error> {
    const STATEMENT: &str = "copy idempotency_keys (company_id, key, fingerprint, status, body, created_at) \
        from stdin (format binary)";
    copy::copy(db, STATEMENT, 6, rows, |row, to| {
        to.field(&row.company_id).field(&row.key).field(&row.fingerprint).field(&row.status);
        to.field(&row.body).field(&row.created_at);
    })
    .await
}

/// Inserts the rows; existing ones stay unchanged.
pub(crate) async fn insert_all(db: &mut PgConnection, rows: &[&AnswerRow]) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        "insert into idempotency_keys (company_id, key, fingerprint, status, body, created_at)
         select * from unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::smallint[], $5::text[], $6::timestamptz[])
         on conflict do nothing",
    )
    .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.key.as_bytes()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.fingerprint.as_bytes()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.status).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.body.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.created_at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// Inserts an answer in the transaction of its effect, as the last statement. Returns `false` if an answer later than
/// `since` has the key: the caller must then roll back the effect. Waits for an earlier attempt whose commit is still
/// pending.
pub async fn insert(db: &mut PgConnection, row: &AnswerRow, since: DateTime<Utc>) -> Result<bool> {
    // No unique index covers a key across partitions, so lock it. The next statement starts after the lock and sees
    // what the lock waited for.
    let lock = "select pg_advisory_xact_lock($1, $2)";
    let [a, b, c, d, ..] = row.key.0;
    let lock_id = i32::from_be_bytes([a, b, c, d]);
    with_timeout(sqlx::query(lock).bind(KEY_LOCK).bind(lock_id).execute(&mut *db)).await?;
    let inserted = with_timeout(
        sqlx::query(
            "insert into idempotency_keys (company_id, key, fingerprint, status, body, created_at)
             select $1, $2, $3, $4, $5, $6
             where not exists (select from idempotency_keys where company_id = $1 and key = $2 and created_at > $7)",
        )
        .bind(row.company_id)
        .bind(row.key)
        .bind(row.fingerprint)
        .bind(row.status)
        .bind(&row.body)
        .bind(row.created_at)
        .bind(since)
        .execute(db),
    )
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Replaces the body of a recorded answer.
pub async fn amend(db: impl Database<'_>, row: &AnswerRow) -> Result<()> {
    // With the time, PostgreSQL searches only one partition.
    let statement = "update idempotency_keys set body = $4 where company_id = $1 and key = $2 and created_at = $3";
    let update = sqlx::query(statement).bind(row.company_id).bind(row.key).bind(row.created_at).bind(&row.body);
    with_timeout(update.execute(db)).await?;
    Ok(())
}

/// The first answer recorded under a key after `since`.
pub async fn find(
    db: impl Database<'_>,
    company: CompanyId,
    key: Digest,
    since: DateTime<Utc>,
) -> Result<Option<AnswerRow>> {
    with_timeout(
        sqlx::query_as(
            "select * from idempotency_keys where company_id = $1 and key = $2 and created_at > $3
             order by created_at limit 1",
        )
        .bind(company)
        .bind(key)
        .bind(since)
        .fetch_optional(db),
    )
    .await
}

/// A used key, and when it was used.
pub type UsedKey = (CompanyId, Digest, DateTime<Utc>);

/// Up to `limit` keys used after `since`: the newest of each company, then the second newest of each, and so on. If
/// there are more, keys of the companies with the most keys are missing. It has no timeout: a starting process reads
/// millions of keys, which takes longer than a request may wait.
pub async fn recent(db: impl Database<'_>, since: DateTime<Utc>, limit: i64) -> Result<Vec<UsedKey>> {
    Ok(select_recent(db, None, since, limit).await?)
}

/// As [`recent`], but only the keys of these companies, and with a timeout.
pub async fn recent_of(
    db: impl Database<'_>,
    companies: &[CompanyId],
    since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<UsedKey>> {
    with_timeout(select_recent(db, Some(companies), since, limit)).await
}

async fn select_recent(
    db: impl Database<'_>,
    companies: Option<&[CompanyId]>,
    since: DateTime<Utc>,
    limit: i64,
) -> std::result::Result<Vec<UsedKey>, sqlx::Error> {
    sqlx::query_as(
        "select company_id, key, created_at from (
             select company_id, key, created_at,
                 row_number() over (partition by company_id order by created_at desc) as place
             from idempotency_keys where created_at > $1 and ($2::bigint[] is null or company_id = any($2))) ranked
         order by place limit $3",
    )
    .bind(since)
    .bind(companies)
    .bind(limit)
    .fetch_all(db)
    .await
}

/// Creates the current partition and the upcoming ones.
///
/// # Errors
/// When the database cannot answer, or the table is locked; the next run continues.
pub async fn create_partitions(db: impl Database<'_>, now: DateTime<Utc>) -> Result<()> {
    PARTITIONS.create_ahead(db, now).await
}

/// Creates partitions ahead and drops those with only answers from before `before`.
///
/// # Errors
/// As [`create_partitions`].
pub async fn sweep(db: impl Database<'_>, now: DateTime<Utc>, before: DateTime<Utc>) -> Result<()> {
    create_partitions(db, now).await?;
    PARTITIONS.drop_expired(db, before).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_earlier_journals_are_readable() {
        let digest = Digest::of(&[b"key"]);
        assert_eq!(format!("{digest:?}"), "2c70e12b7a0646f92279f427c7b38e73", "printf key | sha256sum");
        let bytes = rmp_serde::to_vec_named(&digest).expect("bytes");
        assert_eq!(bytes.len(), 18);
        assert_eq!(rmp_serde::from_slice::<Digest>(&bytes).expect("a digest"), digest);
        let earlier = rmp_serde::to_vec_named("key").expect("bytes");
        assert_eq!(rmp_serde::from_slice::<Digest>(&earlier).expect("a digest"), digest);
        let whole: Vec<u8> = <Sha256 as sha2::Digest>::digest(b"key").to_vec();
        let earlier = rmp_serde::to_vec_named(&whole).expect("bytes");
        assert_eq!(rmp_serde::from_slice::<Digest>(&earlier).expect("a digest"), digest);
        let short = rmp_serde::to_vec_named(&whole[..15]).expect("bytes");
        assert!(rmp_serde::from_slice::<Digest>(&short).is_err());
    }
}
