//! Reads a company as of one moment, while the service runs: rows are streamed, and none is in memory for longer than
//! it takes to write it.

use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use serde_json::{Map, Value};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};

use super::{ArchivedTable, COMPANY, camel_case};
use crate::sealed;
use crate::tables::channels::ChannelSettings;
use crate::{CompanyId, Error, Result};

/// How long an export waits for deletions in progress.
const DELETIONS_TIME_MAX: Duration = Duration::from_secs(60);

/// Pause before the deletions are checked again.
const CHECK_EVERY: Duration = Duration::from_millis(250);

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
            let state = sqlx::query_as(
                "select exists (select from companies where id = $1),
                     exists (select from removals where company_id = $1)
                     or exists (select from cascades where company_id = $1)
                     or exists (select from erasures where company_id = $1 and done_at is null)",
            );
            let (exists, is_deleting): (bool, bool) = state.bind(company).fetch_one(&mut *transaction).await?;
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
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    /// The rows of a table, each as a line of JSON.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn rows(&mut self, table: &ArchivedTable) -> Result<BoxStream<'_, Result<String>>> {
        let columns = columns(&mut self.transaction, table).await?;
        let fields: Vec<String> =
            columns.iter().map(|column| format!("'{}', x.\"{column}\"", camel_case(column))).collect();
        let ArchivedTable { table: name, company, order, .. } = table;
        let select = format!(
            "select json_build_object({})::text from {name} x where x.{company} = $1 order by {order}",
            fields.join(", ")
        );
        let rows = sqlx::query_scalar(AssertSqlSafe(select)).bind(self.company).fetch(&mut *self.transaction);
        let is_channel = *name == "channels";
        let rows = rows
            .map_err(Error::from)
            .map(move |row: Result<String>| row.map(|row| if is_channel { without_secrets(&row) } else { row }));
        Ok(rows.boxed())
    }

    /// The ids of the company's files.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn files(&mut self) -> Result<Vec<String>> {
        let files = sqlx::query_scalar("select id from media where company_id = $1 and left_at is null order by id");
        Ok(files.bind(self.company).fetch_all(&mut *self.transaction).await?)
    }
}

/// The columns of a table that are archived: all but the company, generated ones and those that are left out.
pub(super) async fn columns(db: &mut PgConnection, table: &ArchivedTable) -> Result<Vec<String>> {
    let columns = sqlx::query_scalar(
        "select attname::text from pg_attribute
         where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = '' order by attnum",
    );
    let columns: Vec<String> = columns.bind(table.table).fetch_all(db).await?;
    let is_archived = |column: &String| column != table.company && !table.left_out.contains(&column.as_str());
    Ok(columns.into_iter().filter(is_archived).collect())
}

/// The names of the fields in a table's lines, for tests and documents.
///
/// # Errors
/// When the database cannot answer.
pub async fn column_names(db: &PgPool, table: &ArchivedTable) -> Result<Vec<String>> {
    let mut connection = db.acquire().await?;
    Ok(columns(&mut connection, table).await?.iter().map(|column| camel_case(column)).collect())
}

/// A channel's line with only those settings that may be shown.
fn without_secrets(line: &str) -> String {
    let Ok(Value::Object(mut channel)) = serde_json::from_str::<Value>(line) else { return "{}".to_owned() };
    let settings = channel.get("settings").map(sealed::without_secrets).unwrap_or_default();
    let visible = ChannelSettings::read(&settings).map(ChannelSettings::into_visible).ok();
    let visible = visible.and_then(|settings| serde_json::to_value(settings).ok());
    channel.insert("settings".to_owned(), visible.unwrap_or_else(|| Value::Object(Map::new())));
    Value::Object(channel).to_string()
}

/// Every archived table, the company first.
pub(super) fn every_table() -> impl Iterator<Item = &'static ArchivedTable> {
    std::iter::once(&COMPANY).chain(super::TABLES)
}
