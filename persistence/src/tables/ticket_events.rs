//! Events of tickets: what changed, when, by whom. Live: written only by the persister.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{FromRow, PgConnection};

use super::source::Source;
use super::text_enum;
use crate::copy;
use crate::document::Document;
use crate::select::{Page, PageRequest, Select};
use crate::table::Span;
use crate::{CompanyId, Database, EventId, TicketId, TokenId, UserId};

text_enum! {
    /// The type of a ticket event.
    EventType {
        Opened = "opened",
        Transferred = "transferred",
        Closed = "closed",
        Reopened = "reopened",
        WrapupChanged = "wrapup_changed",
        NoteAdded = "note_added",
        Read = "read",
        Merged = "merged",
    }
}

/// One event as stored. `from` and `to` contain the changed fields, with the names at that time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromRow)]
pub struct EventRow {
    pub company_id: CompanyId,
    pub id: EventId,
    pub ticket_id: TicketId,
    #[sqlx(rename = "type")]
    pub kind: EventType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub from: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub to: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// The token of the integration that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<TokenId>,
    pub source: Source,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
    /// The old values of every changed field, for the entry in the event log; not stored. Journal entries of earlier
    /// releases do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(skip)]
    pub was: Option<Value>,
}

/// Inserts the rows; existing ones stay unchanged.
pub(crate) async fn insert(db: &mut PgConnection, rows: &[&EventRow]) -> Result<(), sqlx::Error> {
    sqlx::query(
        r#"insert into ticket_events (company_id, id, ticket_id, type, "from", "to", user_id, user_name, source,
             created_at, integration_id)
           select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::jsonb[], $6::jsonb[],
             $7::bigint[], $8::text[], $9::text[], $10::timestamptz[], $11::bigint[])
           on conflict do nothing"#,
    )
    .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.ticket_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.kind.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.from.clone()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.to.clone()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.user_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.user_name.as_deref()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.source.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.created_at).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.integration_id).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// Inserts rows that do not exist yet, at a lower cost than [`insert`].
pub(crate) async fn copy(db: &mut PgConnection, rows: &[&EventRow]) -> Result<(), sqlx::Error> {
    const STATEMENT: &str = "copy ticket_events (company_id, id, ticket_id, type, \"from\", \"to\", user_id, user_name, \
        source, created_at, integration_id) from stdin (format binary)";
    copy::copy(db, STATEMENT, 11, rows, |row, encoded| {
        encoded.field(&row.company_id).field(&row.id).field(&row.ticket_id).field(row.kind.as_str());
        encoded.field(&row.from).field(&row.to).field(&row.user_id).field(&row.user_name);
        encoded.field(row.source.as_str()).field(&row.created_at).field(&row.integration_id);
    })
    .await
}

/// A page of a ticket's events.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    ticket: TicketId,
    created: Span,
    page: PageRequest,
) -> crate::Result<Page<EventRow>> {
    Select::new("select * from ticket_events", "company_id", company)
        .equals("ticket_id", Some(ticket))
        .between("created_at", created)
        .page(db, "id", page)
        .await
}
