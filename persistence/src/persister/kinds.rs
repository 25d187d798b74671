//! The kinds of rows in a batch, each with its statements.

use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;

use crate::CompanyId;
use crate::tables::campaigns::RecipientRow;
use crate::tables::contacts::{ContactChannel, OptOut, ReferralRow};
use crate::tables::idempotency_keys::AnswerRow;
use crate::tables::messages::{
    AttemptRow, Attempts, ChangedMessage, DeliveryReceipt, DeliveryStatus, DeliveryStatusRow, MediaRow, MessageError,
    MessageRow, RevisionRow,
};
use crate::tables::schedules::{ScheduleRow, ScheduleStatus};
use crate::tables::ticket_events::EventRow;
use crate::tables::tickets::{self, TicketRow, TicketStatus};
use crate::tables::webchat_sessions::SessionRow;
use crate::tables::{campaigns, contacts, idempotency_keys, messages, schedules, ticket_events, webchat_sessions};

/// The error stored in place of an error or file that the database refused.
const REFUSED_CODE: &str = "ERR_NOT_STORED";
const REFUSED_MESSAGE: &str = "the provider's response could not be stored";

/// Rows of one kind, written together.
pub(super) trait Kind {
    type Row: Serialize + Sync;
    const NAME: &'static str;
    /// Maximum rows of a statement. A statement and each of its values must stay below PostgreSQL's limit of 1 GiB.
    const ROWS_MAX: usize = usize::MAX;
    fn company(row: &Self::Row) -> CompanyId;
    fn id(row: &Self::Row) -> Option<i64>;
    /// When rows are written in parts, those with a lower value come first.
    fn order(_: &Self::Row) -> u8 {
        0
    }
    /// A reduced version of a refused row, for rows that others depend on: a ticket that cannot be closed would block
    /// the next ticket of its contact, and a message that is not recorded as sent would be sent again.
    fn reduced(_: &Self::Row) -> Option<Self::Row> {
        None
    }
    /// Writes rows, of which some may exist already, and returns the messages that this changed. With an empty slice it
    /// still runs the statement: that tests whether the database accepts rows of this kind at all.
    fn write(db: &mut PgConnection, rows: &[&Self::Row]) -> impl Future<Output = WriteResult> + Send;
    /// Writes rows with a faster statement, which may be refused where [`Kind::write`] is not.
    fn write_fast(db: &mut PgConnection, rows: &[&Self::Row]) -> impl Future<Output = WriteResult> + Send {
        Self::write(db, rows)
    }
}

/// The messages that a statement changed; empty for kinds that change none.
type WriteResult = std::result::Result<Vec<ChangedMessage>, sqlx::Error>;

/// The result of kinds that change no messages.
fn no_message_changes(result: std::result::Result<(), sqlx::Error>) -> WriteResult {
    result.map(|()| Vec::new())
}

impl Kind for TicketRow {
    type Row = Self;
    const NAME: &'static str = "ticket";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.id.0)
    }
    /// Closed tickets first: a ticket being opened may take the slot that another one freed.
    fn order(row: &Self) -> u8 {
        u8::from(row.status == TicketStatus::Open)
    }
    fn reduced(row: &Self) -> Option<Self> {
        row.wrapup_note.is_some().then(|| Self { wrapup_note: None, ..row.clone() })
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(tickets::upsert(db, rows).await)
    }
    async fn write_fast(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(tickets::copy(db, rows).await)
    }
}

/// Tickets opened in an earlier batch.
pub(super) struct ExistingTickets;

impl Kind for ExistingTickets {
    type Row = TicketRow;
    const NAME: &'static str = TicketRow::NAME;
    fn company(row: &TicketRow) -> CompanyId {
        <TicketRow as Kind>::company(row)
    }
    fn id(row: &TicketRow) -> Option<i64> {
        <TicketRow as Kind>::id(row)
    }
    fn order(row: &TicketRow) -> u8 {
        <TicketRow as Kind>::order(row)
    }
    fn reduced(row: &TicketRow) -> Option<TicketRow> {
        <TicketRow as Kind>::reduced(row)
    }
    async fn write(db: &mut PgConnection, rows: &[&TicketRow]) -> WriteResult {
        no_message_changes(tickets::upsert(db, rows).await)
    }
    async fn write_fast(db: &mut PgConnection, rows: &[&TicketRow]) -> WriteResult {
        no_message_changes(tickets::update(db, rows).await)
    }
}

impl Kind for EventRow {
    type Row = Self;
    const NAME: &'static str = "event";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.id.0)
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(ticket_events::insert(db, rows).await)
    }
    async fn write_fast(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(ticket_events::copy(db, rows).await)
    }
}

impl Kind for MessageRow {
    type Row = Self;
    const NAME: &'static str = "message";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.id.0)
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(messages::insert(db, rows).await)
    }
    async fn write_fast(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(messages::copy(db, rows).await)
    }
}

/// Messages that a replay writes ahead of everything else. Their zone maps ([`crate::tables::zones`]) are updated
/// later.
pub(super) struct ReplayedMessages;

impl Kind for ReplayedMessages {
    type Row = MessageRow;
    const NAME: &'static str = MessageRow::NAME;
    fn company(row: &MessageRow) -> CompanyId {
        <MessageRow as Kind>::company(row)
    }
    fn id(row: &MessageRow) -> Option<i64> {
        <MessageRow as Kind>::id(row)
    }
    async fn write(db: &mut PgConnection, rows: &[&MessageRow]) -> WriteResult {
        no_message_changes(messages::insert_rows(db, rows).await)
    }
    async fn write_fast(db: &mut PgConnection, rows: &[&MessageRow]) -> WriteResult {
        no_message_changes(messages::copy_rows(db, rows).await)
    }
}

impl Kind for DeliveryStatusRow {
    type Row = Self;
    const NAME: &'static str = "progress";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.message_id.0)
    }
    fn reduced(row: &Self) -> Option<Self> {
        let delivery_status = match &row.delivery_status {
            DeliveryStatus::Failed(_) => DeliveryStatus::Failed(MessageError {
                code: REFUSED_CODE.to_owned(),
                message: REFUSED_MESSAGE.to_owned(),
            }),
            other => other.clone(),
        };
        Some(Self { delivery_status, provider_message_id: None, ..row.clone() })
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        messages::advance_statuses(db, rows).await
    }
}

impl Kind for AttemptRow {
    type Row = Self;
    const NAME: &'static str = "attempt";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.message_id.0)
    }
    /// A message that may have reached the provider must not be sent again after the next start, even if part of the
    /// row is refused.
    fn reduced(row: &Self) -> Option<Self> {
        Some(Self { attempts: Attempts { reason: None, ..row.attempts.clone() }, ..row.clone() })
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        messages::set_attempts(db, rows).await?;
        let message_in_doubt = |row: &&Self| Some((row.company_id, row.message_id, row.attempts.unknown_at?));
        let messages_in_doubt: Vec<_> = rows.iter().filter_map(message_in_doubt).collect();
        no_message_changes(campaigns::mark_unknown(db, &messages_in_doubt).await)
    }
}

impl Kind for MediaRow {
    type Row = Self;
    const NAME: &'static str = "media";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.message_id.0)
    }
    fn reduced(row: &Self) -> Option<Self> {
        let error = json!({"code": REFUSED_CODE, "message": REFUSED_MESSAGE});
        Some(Self { media: None, error: Some(error), ..row.clone() })
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        messages::set_media(db, rows).await
    }
}

impl Kind for RevisionRow {
    type Row = Self;
    const NAME: &'static str = "revision";
    /// Each row writes a body of up to 64 KiB, and the message's earlier bodies.
    const ROWS_MAX: usize = 200;
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.message_id.0)
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        messages::revise(db, rows).await
    }
}

impl Kind for ReferralRow {
    type Row = Self;
    const NAME: &'static str = "referral";
    /// Each row has six texts of up to 10,000 characters.
    const ROWS_MAX: usize = 2000;
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.contact_id.0)
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(contacts::set_referral(db, rows).await)
    }
}

impl Kind for OptOut {
    type Row = Self;
    const NAME: &'static str = "opt_out";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.contact_id.0)
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(contacts::set_opt_out(db, rows).await)
    }
}

impl Kind for SessionRow {
    type Row = Self;
    const NAME: &'static str = "session";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(_: &Self) -> Option<i64> {
        None
    }
    fn reduced(row: &Self) -> Option<Self> {
        Some(Self { page: None, utm: None, ..row.clone() })
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(webchat_sessions::upsert(db, rows).await)
    }
}

impl Kind for ScheduleRow {
    type Row = Self;
    const NAME: &'static str = "schedule";
    /// Each row has a body of up to 64 KiB.
    const ROWS_MAX: usize = 1000;
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.id.0)
    }
    /// A finished scheduled message must not be sent again after the next start, even if part of the row is refused.
    fn reduced(row: &Self) -> Option<Self> {
        (row.status != ScheduleStatus::Pending).then(|| Self { body: String::new(), error: None, ..row.clone() })
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(schedules::upsert(db, rows).await)
    }
}

impl Kind for RecipientRow {
    type Row = Self;
    const NAME: &'static str = "recipient";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.contact_id.0)
    }
    /// A recipient who was sent the campaign must not be sent it again after the next start, even if part of the row is
    /// refused.
    fn reduced(row: &Self) -> Option<Self> {
        Some(Self { error: None, ..row.clone() })
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(campaigns::settle(db, rows).await)
    }
}

impl Kind for AnswerRow {
    type Row = Self;
    const NAME: &'static str = "answer";
    /// An answer holds up to ten messages of 64 KiB, serialized as JSON.
    const ROWS_MAX: usize = 200;
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(_: &Self) -> Option<i64> {
        None
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(idempotency_keys::insert_all(db, rows).await)
    }
    async fn write_fast(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(idempotency_keys::copy(db, rows).await)
    }
}

impl Kind for ContactChannel {
    type Row = Self;
    const NAME: &'static str = "contact_channel";
    fn company(row: &Self) -> CompanyId {
        row.company_id
    }
    fn id(row: &Self) -> Option<i64> {
        Some(row.contact_id.0)
    }
    async fn write(db: &mut PgConnection, rows: &[&Self]) -> WriteResult {
        no_message_changes(contacts::set_last_channel(db, rows).await)
    }
}

macro_rules! receipt_kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $write:path;)+) => {$(
        $(#[$doc])*
        pub(super) struct $kind;

        impl Kind for $kind {
            type Row = DeliveryReceipt;
            const NAME: &'static str = $name;
            fn company(receipt: &DeliveryReceipt) -> CompanyId {
                receipt.company_id
            }
            fn id(receipt: &DeliveryReceipt) -> Option<i64> {
                Some(receipt.up_to.0)
            }
            async fn write(db: &mut PgConnection, receipts: &[&DeliveryReceipt]) -> WriteResult {
                $write(db, receipts).await
            }
        }
    )+};
}

receipt_kinds! {
    /// The last company message delivered to a visitor.
    DeliveredReceipts "delivered" messages::apply_delivered;
    /// The last company message the visitor has read.
    ContactReadReceipts "seen" messages::apply_read_by_contact;
    /// The last contact message the company has read.
    CompanyReadReceipts "read" messages::apply_read_by_company;
}
