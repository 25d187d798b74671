//! Receipts: the messages of a ticket up to one were delivered or read.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, PgConnection};

use super::{ChangeCause, ChangedMessage};
use crate::tables::zones;
use crate::{ChannelId, CompanyId, ContactId, MessageId, TicketId};

/// The messages of a ticket up to the message `up_to` were delivered or read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryReceipt {
    pub company_id: CompanyId,
    pub ticket_id: TicketId,
    /// Needed by webchats that watch the conversation, and by campaigns that wrote to it. Earlier releases left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<(ChannelId, ContactId)>,
    pub up_to: MessageId,
    /// Only messages since then: the session that received them shows no earlier ones. `None`: all of them. Earlier
    /// releases left it out.
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
}

/// Advances outbound messages to `delivered`, and returns those that changed.
pub(crate) async fn apply_delivered(
    db: &mut PgConnection,
    receipts: &[&DeliveryReceipt],
) -> std::result::Result<Vec<ChangedMessage>, sqlx::Error> {
    apply_receipts(
        db,
        receipts,
        zones::wrap_status_update(
            "update messages m set status = 'delivered', sent_at = coalesce(m.sent_at, greatest(x.at, m.created_at)),
             delivered_at = greatest(x.at, m.created_at, m.sent_at)
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[])
             as x (company, ticket, up_to, at, since)
         join messages k on k.company_id = x.company and k.ticket_id = x.ticket and k.id <= x.up_to
           and k.created_at >= coalesce(x.since, '-infinity')
           and k.direction = 'outbound' and k.status in ('queued', 'sent')
         where m.company_id = k.company_id and m.id = k.id",
            "k.status",
        ),
    )
    .await
}

/// Advances outbound messages to `read`, and returns those that changed.
pub(crate) async fn apply_read_by_contact(
    db: &mut PgConnection,
    receipts: &[&DeliveryReceipt],
) -> std::result::Result<Vec<ChangedMessage>, sqlx::Error> {
    apply_receipts(
        db,
        receipts,
        zones::wrap_status_update(
            "update messages m set status = 'read', sent_at = coalesce(m.sent_at, greatest(x.at, m.created_at)),
             delivered_at = coalesce(m.delivered_at, greatest(x.at, m.created_at, m.sent_at)),
             read_at = greatest(x.at, m.created_at, m.sent_at, m.delivered_at)
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[])
             as x (company, ticket, up_to, at, since)
         join messages k on k.company_id = x.company and k.ticket_id = x.ticket and k.id <= x.up_to
           and k.created_at >= coalesce(x.since, '-infinity')
           and k.direction = 'outbound' and k.status in ('queued', 'sent', 'delivered')
         where m.company_id = k.company_id and m.id = k.id",
            "k.status",
        ),
    )
    .await
}

/// Sets when the company read inbound messages, which changes no status.
pub(crate) async fn apply_read_by_company(
    db: &mut PgConnection,
    receipts: &[&DeliveryReceipt],
) -> std::result::Result<Vec<ChangedMessage>, sqlx::Error> {
    apply_receipts(
        db,
        receipts,
        zones::wrap_message_update(
            "update messages m set read_at = greatest(x.at, m.created_at)
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[])
             as x (company, ticket, up_to, at, since)
         where m.company_id = x.company and m.ticket_id = x.ticket and m.id <= x.up_to
           and m.created_at >= coalesce(x.since, '-infinity')
           and m.direction = 'inbound' and m.read_at is null",
        ),
    )
    .await
}

async fn apply_receipts(
    db: &mut PgConnection,
    receipts: &[&DeliveryReceipt],
    statement: String,
) -> std::result::Result<Vec<ChangedMessage>, sqlx::Error> {
    let changed = sqlx::query_as(AssertSqlSafe(statement))
        .bind(receipts.iter().map(|receipt| receipt.company_id).collect::<Vec<_>>())
        .bind(receipts.iter().map(|receipt| receipt.ticket_id).collect::<Vec<_>>())
        .bind(receipts.iter().map(|receipt| receipt.up_to).collect::<Vec<_>>())
        .bind(receipts.iter().map(|receipt| receipt.at).collect::<Vec<_>>())
        .bind(receipts.iter().map(|receipt| receipt.since).collect::<Vec<_>>())
        .fetch_all(db)
        .await?;
    Ok(ChangedMessage::from_rows(changed, ChangeCause::Receipt))
}
