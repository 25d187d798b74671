//! Rows that PostgreSQL refused are stored completely, with the reason, in a table without constraints, so that a
//! person can examine them.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use sqlx::{Connection, PgConnection, PgExecutor};

use crate::error::{is_outage, with_timeout, without_values};
use crate::{CompanyId, Error, Result};

/// Maximum characters of a stored reason: PostgreSQL may quote the refused value.
const REASON_CHARACTERS_MAX: usize = 2000;

static REJECTED: AtomicU64 = AtomicU64::new(0);

/// Rows PostgreSQL has refused since the process started.
pub fn count() -> u64 {
    REJECTED.load(Ordering::Relaxed)
}

/// Whether refused rows of any company are stored. A person must deal with them.
///
/// # Errors
/// When the database does not answer.
pub async fn has_rows(db: impl PgExecutor<'_>) -> Result<bool> {
    with_timeout(sqlx::query_scalar("select exists (select from rejected_changes)").fetch_one(db)).await
}

/// A refused row.
#[derive(Debug)]
pub(crate) struct RejectedRow {
    pub company: CompanyId,
    /// The kind of row.
    pub kind: &'static str,
    /// Its id, if it has one.
    pub id: Option<i64>,
    /// The complete row.
    pub row: Value,
}

/// Stores a refused row and logs it.
///
/// # Errors
/// When the database cannot answer, or refuses this row too: then nothing can be stored.
pub(crate) async fn store(db: &mut PgConnection, rejected: RejectedRow, error: &sqlx::Error) -> Result<()> {
    let kind = rejected.kind;
    let row = replace_nul(rejected.row.clone());
    let as_text = text_of(&row);
    for change in [row, as_text] {
        let mut savepoint = db.begin().await?;
        match insert(&mut *savepoint, &rejected, change, error).await {
            Ok(()) => {
                savepoint.commit().await?;
                log_and_count(&rejected, error);
                return Ok(());
            }
            Err(error) if is_outage(&error) => return Err(error.into()),
            Err(error) => {
                savepoint.rollback().await?;
                tracing::debug!(reason = without_values(&error), kind, "rejected row is kept as text");
            }
        }
    }
    Err(Error::Unavailable("could not write to rejected_changes".to_owned()))
}

/// The company and id of each refused row of a kind that has an id.
pub(crate) async fn ids(db: impl PgExecutor<'_>, kind: &str) -> Result<Vec<(CompanyId, i64)>> {
    let query = "select company_id, row_id from rejected_changes where kind = $1 and row_id is not null";
    with_timeout(sqlx::query_as(query).bind(kind).fetch_all(db)).await
}

/// Stores a rejected row outside a transaction, as text, which is accepted in any case.
///
/// # Errors
/// When the database cannot answer, or refuses even this.
pub(crate) async fn store_as_text(db: impl PgExecutor<'_>, rejected: RejectedRow, error: &sqlx::Error) -> Result<()> {
    let change = text_of(&replace_nul(rejected.row.clone()));
    with_timeout(insert(db, &rejected, change, error)).await?;
    log_and_count(&rejected, error);
    Ok(())
}

async fn insert(
    db: impl PgExecutor<'_>,
    rejected: &RejectedRow,
    change: Value,
    error: &sqlx::Error,
) -> std::result::Result<(), sqlx::Error> {
    let reason = replace_nul_in_text(&error.to_string()).chars().take(REASON_CHARACTERS_MAX).collect::<String>();
    sqlx::query("insert into rejected_changes (company_id, kind, row_id, change, reason) values ($1, $2, $3, $4, $5)")
        .bind(rejected.company)
        .bind(rejected.kind)
        .bind(rejected.id)
        .bind(change)
        .bind(reason)
        .execute(db)
        .await?;
    Ok(())
}

fn log_and_count(rejected: &RejectedRow, error: &sqlx::Error) {
    let RejectedRow { company, kind, id, .. } = rejected;
    let logged = without_values(error);
    tracing::error!(kind, company.id = %company, row.id = id, reason = logged, "database rejected a row; see the table rejected_changes");
    REJECTED.fetch_add(1, Ordering::Relaxed);
}

/// The row as one string, which has neither nesting nor numbers, the only things `jsonb` could still refuse.
fn text_of(row: &Value) -> Value {
    Value::String(row.to_string())
}

/// Replaces U+0000, which `jsonb` cannot store.
fn replace_nul(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(replace_nul_in_text(&text)),
        Value::Array(values) => Value::Array(values.into_iter().map(replace_nul).collect()),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(key, value)| (replace_nul_in_text(&key), replace_nul(value))).collect(),
        ),
        other => other,
    }
}

fn replace_nul_in_text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
