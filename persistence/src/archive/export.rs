//! Reads a company as of one moment, even while the service runs. Rows are streamed and ids of files are paged, so
//! memory does not grow with their number.

use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use serde::Deserialize;
use serde_json::Value;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};

use super::{ArchivedTable, COMPANY, camel_case};
use crate::sealed;
use crate::tables::channels::ChannelSettings;
use crate::{CompanyId, Error, Result};

/// How long an export waits for deletions in progress.
const DELETIONS_TIME_MAX: Duration = Duration::from_secs(60);

/// Pause before the deletions are checked again.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of ids in a page of files.
const FILES_PAGE: i64 = 1000;

/// A company as of one moment.
pub struct CompanySnapshot {
    transaction: Transaction<'static, Postgres>,
    company: CompanyId,
}

impl CompanySnapshot {
    /// Takes the snapshot, once no deletion of the company is in progress.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such company; [`Error::Unavailable`] when deletions take too long; other
    /// errors when the database cannot answer.
    pub async fn take(db: &PgPool, company: CompanyId) -> Result<Self> {
        let deadline = tokio::time::Instant::now() + DELETIONS_TIME_MAX;
        loop {
            let mut transaction = db.begin_with("begin transaction isolation level repeatable read, read only").await?;
            sqlx::query("set local time zone 'UTC'").execute(&mut *transaction).await?;
            let query = sqlx::query_as(
                "select exists (select from companies where id = $1),
                     exists (select from removals where company_id = $1)
                     or exists (select from cascades where company_id = $1)
                     or exists (select from erasures where company_id = $1 and done_at is null)",
            );
            let (exists, is_deleting): (bool, bool) = query.bind(company).fetch_one(&mut *transaction).await?;
            if !exists {
                return Err(Error::NotFound("company"));
            }
            if !is_deleting {
                return Ok(Self { transaction, company });
            }
            transaction.rollback().await?;
            if tokio::time::Instant::now() >= deadline {
                let reason =
                    "deletions of the company's records are in progress; start the service, and try again later";
                return Err(Error::Unavailable(reason.to_owned()));
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// The rows of a table, each as a line of JSON.
    ///
    /// # Errors
    /// When the database cannot answer. The stream yields [`Error::Database`] for a channel that this release cannot
    /// read.
    pub async fn rows(&mut self, table: &ArchivedTable) -> Result<BoxStream<'_, Result<String>>> {
        let columns = columns(&mut self.transaction, table).await?;
        let fields: Vec<String> =
            columns.iter().map(|column| format!("'{}', x.\"{column}\"", camel_case(column))).collect();
        let ArchivedTable { name, company_column, order_columns, .. } = table;
        let select = format!(
            "select json_build_object({})::text from {name} x where x.{company_column} = $1 order by {order_columns}",
            fields.join(", ")
        );
        let rows = sqlx::query_scalar(AssertSqlSafe(select)).bind(self.company).fetch(&mut *self.transaction);
        let is_channel = *name == "channels";
        let rows = rows.map_err(Error::from).map(move |row: Result<String>| {
            row.and_then(|row| if is_channel { visible_channel(&row) } else { Ok(row) })
        });
        Ok(rows.boxed())
    }

    /// The next page of the ids of the company's files, in order: those after the id `after`, or after `""` for the
    /// first page. Empty after the last page.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn file_ids_after(&mut self, after: &str) -> Result<Vec<String>> {
        let query = sqlx::query_scalar(
            "select id from media where company_id = $1 and left_at is null and id > $2 order by id limit $3",
        );
        Ok(query.bind(self.company).bind(after).bind(FILES_PAGE).fetch_all(&mut *self.transaction).await?)
    }
}

/// The archived columns of a table: all but the company's id, generated columns and [`ArchivedTable::omitted_columns`].
pub(super) async fn columns(db: &mut PgConnection, table: &ArchivedTable) -> Result<Vec<String>> {
    let query = sqlx::query_scalar(
        "select attname::text from pg_attribute
         where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = '' order by attnum",
    );
    let columns: Vec<String> = query.bind(table.name).fetch_all(db).await?;
    let is_archived =
        |column: &String| column != table.company_column && !table.omitted_columns.contains(&column.as_str());
    Ok(columns.into_iter().filter(is_archived).collect())
}

/// The names of the fields in a table's lines, for tests and documentation.
///
/// # Errors
/// When the database cannot answer.
pub async fn field_names(db: &PgPool, table: &ArchivedTable) -> Result<Vec<String>> {
    let mut connection = db.acquire().await?;
    Ok(columns(&mut connection, table).await?.iter().map(|column| camel_case(column)).collect())
}

/// A channel's line with only those settings that may be shown.
fn visible_channel(line: &str) -> Result<String> {
    let unreadable = || unreadable_channel(line);
    let Ok(Value::Object(mut channel)) = serde_json::from_str::<Value>(line) else { return Err(unreadable()) };
    let settings = channel.get("settings").map(sealed::without_secrets).unwrap_or_default();
    let visible = ChannelSettings::read(&settings).map_err(|_| unreadable())?.into_visible();
    channel.insert("settings".to_owned(), serde_json::to_value(visible).map_err(|_| unreadable())?);
    Ok(Value::Object(channel).to_string())
}

/// The error for a channel's line that cannot be read. It does not contain the cause, which may quote a credential.
fn unreadable_channel(line: &str) -> Error {
    #[derive(Deserialize)]
    struct ChannelLine {
        id: i64,
    }
    // All other fields are skipped, even a value that is nested too deeply to be parsed.
    let channel = match serde_json::from_str::<ChannelLine>(line) {
        Ok(ChannelLine { id }) => format!("channel {id}"),
        Err(_) => "a channel".to_owned(),
    };
    Error::Database(sqlx::Error::Decode(format!("{channel} cannot be read by this release").into()))
}

/// Every archived table, the company first.
pub(super) fn every_table() -> impl Iterator<Item = &'static ArchivedTable> {
    std::iter::once(&COMPANY).chain(super::TABLES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_archived_without_credentials() {
        let line = r#"{"id": 3, "settings": {"pageId": "7", "accessToken": "hidden", "laterKey": "hidden"}}"#;
        let channel = visible_channel(line).expect("a channel");
        assert!(channel.contains(r#""pageId":"7""#) && !channel.contains("hidden"), "{channel}");
    }

    #[test]
    fn the_error_of_an_unreadable_channel_contains_its_id() {
        let deep_settings = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for settings in [r#"{"pageId": ["hidden"]}"#, r#""hidden""#, "null", deep_settings.as_str()] {
            let line = format!(r#"{{"id": 3, "settings": {settings}}}"#);
            let error = visible_channel(&line).expect_err("unreadable").to_string();
            assert!(error.contains("channel 3 cannot be read") && !error.contains("hidden"), "{error}");
        }
        let error = visible_channel("[]").expect_err("no channel").to_string();
        assert!(error.contains("a channel cannot be read"), "{error}");
    }
}
