//! Files of messages. A message row references its file, and triggers keep this table consistent with the messages; no
//! statement here inserts rows. The statements serve the sweep, which removes unused files of all companies.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use crate::error::with_timeout;
use crate::key::{KEY_CHARACTERS, new_key};
use crate::{CompanyId, Database, Result};

/// Seconds per hour.
const HOUR_S: i64 = 3600;

/// Hex digits of the hour in an id: hours since 1970 fit until the year 3883.
const HOUR_DIGITS: usize = 6;

/// A file's id: the hour in which it was stored, and an unguessable random part.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, sqlx::Type)]
#[serde(try_from = "String", into = "String")]
#[sqlx(transparent)]
pub struct MediaId(String);

impl MediaId {
    /// A new id for a file stored now.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self(new_key(&hour_digits(hour_of(now))))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hex digits of its hour.
    pub fn hour(&self) -> &str {
        &self.0[..HOUR_DIGITS]
    }
}

/// The hour of a time, in hours since 1970.
pub fn hour_of(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(HOUR_S)
}

/// The digits of an hour, the prefix of ids.
pub fn hour_digits(hour: i64) -> String {
    format!("{hour:0HOUR_DIGITS$x}")
}

impl FromStr for MediaId {
    type Err = &'static str;

    /// Accepts only strings in the form of an id: nothing else ever becomes part of a path.
    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let is_hour = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        let bytes = text.as_bytes();
        let is_valid = bytes.len() == HOUR_DIGITS + KEY_CHARACTERS
            && bytes[..HOUR_DIGITS].iter().all(is_hour)
            && bytes[HOUR_DIGITS..].iter().all(u8::is_ascii_alphanumeric);
        if is_valid { Ok(Self(text.to_owned())) } else { Err("not an id of a file") }
    }
}

impl TryFrom<String> for MediaId {
    type Error = &'static str;
    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<MediaId> for String {
    fn from(id: MediaId) -> Self {
        id.0
    }
}

impl std::fmt::Display for MediaId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A stored file, as described in the `media` column of its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredMedia {
    pub id: MediaId,
    /// The type of its content.
    pub mime_type: String,
    pub file_name: String,
    /// Size in bytes.
    pub size: u64,
    /// Whether it is a voice message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub voice: bool,
}

impl StoredMedia {
    /// Reads a message's `media` column; `None` if it does not describe a stored file.
    pub fn of(media: &serde_json::Value) -> Option<Self> {
        Self::deserialize(media).ok()
    }
}

/// The key of a file: its company and its id.
pub type FileKey = (CompanyId, MediaId);

/// The files among these that have no row: no message in the tables references them. A deleted message's file has a row
/// until the file is removed ([`find_orphans`]).
pub async fn without_message(db: &PgPool, files: &[FileKey]) -> Result<Vec<FileKey>> {
    let (companies, ids) = to_columns(files);
    with_timeout(
        sqlx::query_as(
            "select x.company, x.id from unnest($1::bigint[], $2::text[]) as x (company, id)
             where not exists (select from media m where m.company_id = x.company and m.id = x.id)",
        )
        .bind(companies)
        .bind(ids)
        .fetch_all(db),
    )
    .await
}

/// The files among these that a message references.
pub async fn with_message(db: &PgPool, files: &[FileKey]) -> Result<Vec<FileKey>> {
    let (companies, ids) = to_columns(files);
    with_timeout(
        sqlx::query_as(
            "select m.company_id, m.id from unnest($1::bigint[], $2::text[]) as x (company, id)
             join media m on m.company_id = x.company and m.id = x.id and m.left_at is null",
        )
        .bind(companies)
        .bind(ids)
        .fetch_all(db),
    )
    .await
}

/// Up to `limit` files whose message was deleted.
pub async fn find_orphans(db: &PgPool, limit: i64) -> Result<Vec<FileKey>> {
    with_timeout(
        sqlx::query_as("select company_id, id from media where left_at is not null order by left_at limit $1")
            .bind(limit)
            .fetch_all(db),
    )
    .await
}

/// Deletes the rows of removed files.
pub async fn delete_rows(db: impl Database<'_>, files: &[FileKey]) -> Result<()> {
    let (companies, ids) = to_columns(files);
    with_timeout(
        sqlx::query(
            "delete from media m using unnest($1::bigint[], $2::text[]) as x (company, id)
             where m.company_id = x.company and m.id = x.id and m.left_at is not null",
        )
        .bind(companies)
        .bind(ids)
        .execute(db),
    )
    .await?;
    Ok(())
}

/// The last hour checked for files without a message.
pub async fn swept_hour(db: &PgPool) -> Result<i64> {
    with_timeout(sqlx::query_scalar("select hour from media_sweep").fetch_one(db)).await
}

/// Marks an hour as checked. The mark never moves back: another process may be ahead.
pub async fn set_swept_hour(db: impl Database<'_>, hour: i64) -> Result<()> {
    with_timeout(sqlx::query("update media_sweep set hour = $1 where hour < $1").bind(hour).execute(db)).await?;
    Ok(())
}

fn to_columns(files: &[FileKey]) -> (Vec<CompanyId>, Vec<&str>) {
    files.iter().map(|(company, id)| (*company, id.as_str())).unzip()
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn ids_contain_their_hour_and_other_strings_are_refused() {
        let now = DateTime::from_timestamp(1_766_000_000, 0).expect("a time");
        let id = MediaId::new(now);
        assert_eq!(id.hour(), hour_digits(1_766_000_000 / 3600));
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_ne!(MediaId::new(now), id, "two files have one id");
        let other = &id.as_str()[1..];
        for text in ["", "../../etc/passwd", other, &format!("{other}/"), &format!("G{other}"), &format!("{id}a")] {
            assert!(text.parse::<MediaId>().is_err(), "{text}");
        }
    }

    #[test]
    fn stored_media_is_read_and_other_json_is_not() {
        let stored = StoredMedia {
            id: MediaId::new(DateTime::UNIX_EPOCH),
            mime_type: "image/png".to_owned(),
            file_name: "a.png".to_owned(),
            size: 7,
            voice: false,
        };
        let column = serde_json::to_value(&stored).expect("JSON");
        assert_eq!((&column["mimeType"], column.get("voice")), (&"image/png".into(), None));
        assert_eq!(StoredMedia::of(&column), Some(stored));
        assert_eq!(
            StoredMedia::of(&serde_json::json!({"id": "../x", "mimeType": "a/b", "fileName": "", "size": 1})),
            None
        );
    }
}
