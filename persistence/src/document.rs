//! Reads JSON columns so that one bad row never blocks others.
//!
//! A `jsonb` column can contain what this release cannot read: a number that is out of range, or data written by
//! another release or by hand. Such a column reads as empty, and a row that cannot be read at all is left out of its
//! list; both are logged with the row's id. Code that needs the content, such as the outbox, sees that it is missing
//! and reports that.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::postgres::{PgRow, PgTypeInfo, PgValueRef};
use sqlx::types::Json;
use sqlx::{Decode, FromRow, Postgres, Row, Type, TypeInfo, ValueRef};

thread_local! {
    /// Number of unreadable columns in the current row.
    static UNREADABLE_COLUMNS: Cell<u32> = const { Cell::new(0) };
}

/// A `jsonb` column; `None` when it is null or its content cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<T = Value>(Option<T>);

impl<T> Document<T> {
    /// The content, if there is any that can be read.
    pub(crate) fn into_option(self) -> Option<T> {
        self.0
    }
}

impl<T> Type<Postgres> for Document<T> {
    fn type_info() -> PgTypeInfo {
        <Json<Value> as Type<Postgres>>::type_info()
    }

    fn compatible(ty: &PgTypeInfo) -> bool {
        <Json<Value> as Type<Postgres>>::compatible(ty)
    }
}

impl<'r, T: DeserializeOwned + 'r> Decode<'r, Postgres> for Document<T> {
    fn decode(value: PgValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
        if value.is_null() || value.type_info().is_null() {
            return Ok(Self(None));
        }
        match <Json<T> as Decode<'r, Postgres>>::decode(value) {
            Ok(Json(content)) => Ok(Self(Some(content))),
            Err(_) => {
                UNREADABLE_COLUMNS.set(UNREADABLE_COLUMNS.get() + 1);
                Ok(Self(None))
            }
        }
    }
}

impl From<Document> for Option<Value> {
    fn from(document: Document) -> Self {
        document.0
    }
}

impl From<Document> for Value {
    fn from(document: Document) -> Self {
        document.0.unwrap_or_default()
    }
}

impl<T> From<Document<Vec<T>>> for Vec<T> {
    fn from(document: Document<Vec<T>>) -> Self {
        document.0.unwrap_or_default()
    }
}

impl<T: Default> From<Document<T>> for Json<T> {
    fn from(document: Document<T>) -> Self {
        Self(document.0.unwrap_or_default())
    }
}

/// Reads a row. Unreadable columns are logged with the row's id.
///
/// # Errors
/// When a column other than a document contains a value this release does not know.
pub(crate) fn read<T: for<'r> FromRow<'r, PgRow>>(row: &PgRow) -> sqlx::Result<T> {
    UNREADABLE_COLUMNS.set(0);
    let result = T::from_row(row);
    let unreadable = UNREADABLE_COLUMNS.take();
    match &result {
        Ok(_) if unreadable == 0 => {}
        Ok(_) => {
            let (company, id) = row_ids(row);
            tracing::error!(
                row.kind = type_name::<T>(),
                company.id = company,
                row.id = id,
                columns = unreadable,
                "stored JSON is unreadable; returning it as empty"
            );
        }
        Err(error) => {
            let (company, id) = row_ids(row);
            // The error quotes no content of the row: only errors of documents would, and `decode` drops those.
            tracing::error!(
                row.kind = type_name::<T>(),
                company.id = company,
                row.id = id,
                %error,
                "stored row is unreadable"
            );
        }
    }
    result
}

/// Reads the rows of a list, skipping unreadable ones.
pub(crate) fn read_all<T: for<'r> FromRow<'r, PgRow>>(rows: &[PgRow]) -> Vec<T> {
    rows.iter().filter_map(|row| read(row).ok()).collect()
}

/// How long a thread reads the rows of a page before it yields to other tasks. Reading a hundred contacts with two
/// hundred long fields each takes tens of milliseconds, and hundreds of requests share a thread.
const BLOCKING_TIME_MAX: Duration = Duration::from_millis(1);

/// Reads the rows of a page like [`read_all`], and lets the thread do other work in between. Each row is dropped once
/// it is read: otherwise a page of long texts would be in memory twice.
pub(crate) async fn read_yielding<T: for<'r> FromRow<'r, PgRow>>(rows: Vec<PgRow>) -> Vec<T> {
    read_each(rows).await.into_iter().flatten().collect()
}

/// As [`read_yielding`], with `None` for each unreadable row.
pub(crate) async fn read_each<T: for<'r> FromRow<'r, PgRow>>(rows: Vec<PgRow>) -> Vec<Option<T>> {
    let mut read_rows = Vec::with_capacity(rows.len());
    let mut started_at = Instant::now();
    for row in rows {
        if started_at.elapsed() > BLOCKING_TIME_MAX {
            tokio::task::yield_now().await;
            started_at = Instant::now();
        }
        read_rows.push(read(&row).ok());
    }
    read_rows
}

/// The row's company and id for the log, as far as they can be read.
fn row_ids(row: &PgRow) -> (i64, String) {
    let company = row.try_get::<i64, _>("company_id").unwrap_or_default();
    let id = row.try_get::<i64, _>("id").map(|id| id.to_string());
    (company, id.or_else(|_| row.try_get::<String, _>("id")).unwrap_or_default())
}

fn type_name<T>() -> &'static str {
    std::any::type_name::<T>().rsplit("::").next().unwrap_or_default()
}
