//! The columns of a message, listed once: the insert statements and their bound values are generated from this list.

use std::sync::LazyLock;

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgConnection, Postgres};

use super::MessageRow;
use crate::copy::{self, Row};
use crate::tables::zones::{self, ZonedRow, ZonedTable};

/// A column to be written.
struct Column {
    name: &'static str,
    /// The type of its values in PostgreSQL.
    kind: &'static str,
    /// Appends a row's value to a `COPY`.
    copy: fn(&MessageRow, &mut Row<'_>),
    /// Binds the values of all rows, in their order, to a statement.
    bind: for<'q> fn(Insert<'q>, &[&'q MessageRow]) -> Insert<'q>,
}

type Insert<'q> = Query<'q, Postgres, PgArguments>;

/// Defines a column: its name, its type, and the value of a row.
macro_rules! column {
    ($name:literal, $kind:literal, |$row:ident| $value:expr) => {
        Column {
            name: $name,
            kind: $kind,
            copy: |$row, to| {
                to.field(&$value);
            },
            bind: |insert, rows| insert.bind(rows.iter().map(|$row| $value).collect::<Vec<_>>()),
        }
    };
}

const COLUMNS: [Column; 29] = [
    column!("company_id", "bigint", |row| row.company_id),
    column!("id", "bigint", |row| row.id),
    column!("job_id", "bigint", |row| row.job_id),
    column!("ticket_id", "bigint", |row| row.ticket_id),
    column!("contact_id", "bigint", |row| row.contact_id),
    column!("channel_id", "bigint", |row| row.channel_id),
    column!("direction", "text", |row| row.direction.as_str()),
    column!("type", "text", |row| row.kind.as_str()),
    column!("body", "text", |row| row.body.as_deref()),
    column!("media", "jsonb", |row| row.media.as_ref()),
    column!("template", "jsonb", |row| row.template.as_ref()),
    column!("interactive", "jsonb", |row| row.interactive.as_ref()),
    column!("quoted_message_id", "bigint", |row| row.quoted_message_id),
    column!("status", "text", |row| row.status.as_str()),
    column!("error", "jsonb", |row| row.error.as_ref()),
    column!("user_id", "bigint", |row| row.user_id),
    column!("user_name", "text", |row| row.user_name.as_deref()),
    column!("source", "text", |row| row.source.as_str()),
    column!("session_id", "text", |row| row.session_id.as_ref().map(|id| id.0.as_str())),
    column!("client_id", "text", |row| row.client_id.as_deref()),
    column!("after_send", "jsonb", |row| row.after_send.as_ref()),
    column!("provider_message_id", "text", |row| row.provider_message_id.as_deref()),
    column!("created_at", "timestamptz", |row| row.created_at),
    column!("sent_at", "timestamptz", |row| row.sent_at),
    column!("delivered_at", "timestamptz", |row| row.delivered_at),
    column!("read_at", "timestamptz", |row| row.read_at),
    column!("integration_id", "bigint", |row| row.integration_id),
    column!("updated_at", "timestamptz", |row| row.updated_at),
    column!("content", "jsonb", |row| row.content.as_ref()),
];

fn column_list(item: impl Fn(usize, &Column) -> String) -> String {
    COLUMNS.iter().enumerate().map(|(index, column)| item(index, column)).collect::<Vec<_>>().join(", ")
}

static INSERT: LazyLock<String> = LazyLock::new(|| {
    let names = column_list(|_, column| column.name.to_owned());
    let values = column_list(|index, column| format!("${}::{}[]", index + 1, column.kind));
    format!("insert into messages ({names}) select * from unnest({values}) on conflict (company_id, id) do nothing")
});

static COPY: LazyLock<String> = LazyLock::new(|| {
    let names = column_list(|_, column| column.name.to_owned());
    format!("copy messages ({names}) from stdin (format binary)")
});

/// Inserts the rows; existing ones stay unchanged.
pub(crate) async fn insert(db: &mut PgConnection, rows: &[&MessageRow]) -> Result<(), sqlx::Error> {
    insert_rows(db, rows).await?;
    update_zones(db, rows).await
}

/// As [`insert`], without [`update_zones`].
pub(crate) async fn insert_rows(db: &mut PgConnection, rows: &[&MessageRow]) -> Result<(), sqlx::Error> {
    let insert = sqlx::query(AssertSqlSafe(INSERT.as_str()));
    COLUMNS.iter().fold(insert, |insert, column| (column.bind)(insert, rows)).execute(db).await?;
    Ok(())
}

/// Inserts rows that do not exist yet, at a third of the cost of [`insert`].
pub(crate) async fn copy(db: &mut PgConnection, rows: &[&MessageRow]) -> Result<(), sqlx::Error> {
    copy_rows(db, rows).await?;
    update_zones(db, rows).await
}

/// As [`copy()`], without [`update_zones`].
pub(crate) async fn copy_rows(db: &mut PgConnection, rows: &[&MessageRow]) -> Result<(), sqlx::Error> {
    let write = |row: &MessageRow, to: &mut Row<'_>| COLUMNS.iter().for_each(|column| (column.copy)(row, to));
    copy::copy(db, &COPY, COLUMNS.len() as i16, rows, write).await
}

/// Updates the zone maps, by which lists find the rows.
pub(crate) async fn update_zones(db: &mut PgConnection, rows: &[&MessageRow]) -> Result<(), sqlx::Error> {
    let zoned_row = |row: &&MessageRow| ZonedRow {
        company: row.company_id,
        id: row.id.0,
        created: row.created_at,
        opened: None,
        closed: None,
        updated: Some(row.updated_at.unwrap_or(row.created_at)),
        words: [Some(row.direction.as_str()), Some(row.kind.as_str()), Some(row.status.as_str())],
        channel: Some(row.channel_id),
        queue: None,
    };
    zones::update(db, ZonedTable::Message, rows.iter().map(zoned_row)).await
}
