//! One transaction: the watermark, then the rows. A row PostgreSQL refuses is set aside, never the batch.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use sqlx::{Connection, PgConnection, PgPool};

use super::Batch;
use crate::change::ContactChannel;
use crate::error::{is_refusal, without_values};
use crate::journal::Seq;
use crate::pool::WriterClaim;
use crate::tables::contacts::ReferralRow;
use crate::tables::idempotency_keys::AnswerRow;
use crate::tables::messages::{MediaRow, MessageRow, ProgressRow, ReachedUpTo};
use crate::tables::ticket_events::EventRow;
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::SessionRow;
use crate::tables::{contacts, idempotency_keys, messages, ticket_events, tickets, webchat_sessions};
use crate::{CompanyId, Error, Result};

/// Under which claim the persister writes.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The epoch this process took at its start. A later one means another process writes now.
    pub epoch: i64,
    /// The journal whose watermark moves; none in the modes without a journal.
    pub journal: Option<String>,
}

/// Writes batches into PostgreSQL.
pub struct Writer {
    db: PgPool,
    claim: Arc<WriterClaim>,
    mark: Mark,
}

impl Writer {
    /// A writer on connections of its own, so that requests cannot keep it waiting.
    pub fn new(db: PgPool, claim: Arc<WriterClaim>, mark: Mark) -> Self {
        claim.hold(mark.epoch);
        Self { db, claim, mark }
    }

    /// Writes the batch and moves the watermark to `last`, together. Doing it twice changes nothing.
    ///
    /// # Errors
    /// [`Error::NotOwner`] when another process has taken over; anything else is worth another try.
    pub(crate) async fn write(&self, batch: &Batch<'_>, last: Seq) -> Result<()> {
        match self.attempt(batch, last, false).await {
            Err(Error::Database(error)) if is_refusal(&error) => self.attempt(batch, last, true).await,
            Err(_) if self.claim.is_superseded() => Err(Error::NotOwner),
            outcome => outcome,
        }
    }

    async fn attempt(&self, batch: &Batch<'_>, last: Seq, careful: bool) -> Result<()> {
        let mut transaction = self.db.begin().await?;
        if !self.move_watermark(&mut transaction, last).await? {
            return Ok(()); // An earlier try was committed although its answer was lost.
        }
        let rows = &mut Rows { db: &mut transaction, careful };
        // A ticket that is opened may take the place another one has left.
        rows.write_as::<Known>(&batch.tickets).await?;
        rows.write(&batch.opened).await?;
        rows.write(&batch.events).await?;
        rows.write(&batch.messages).await?;
        rows.write(&batch.progress).await?;
        rows.write(&batch.media).await?;
        rows.write_as::<Delivered>(&batch.delivered).await?;
        rows.write_as::<Seen>(&batch.seen).await?;
        rows.write_as::<Read>(&batch.read).await?;
        rows.write(&batch.sessions).await?;
        rows.write(&batch.contact_channels).await?;
        rows.write(&batch.referrals).await?;
        rows.write(&batch.answers).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// False when the watermark is already there.
    async fn move_watermark(&self, db: &mut PgConnection, last: Seq) -> Result<bool> {
        let epoch: i64 = sqlx::query_scalar("select epoch from ownership for share").fetch_one(&mut *db).await?;
        if epoch != self.mark.epoch {
            return Err(Error::NotOwner);
        }
        let Some(journal) = &self.mark.journal else { return Ok(true) };
        let moved =
            sqlx::query("update journal_watermark set seq = $2, updated_at = now() where journal = $1 and seq < $2")
                .bind(journal)
                .bind(i64::try_from(last).unwrap_or(i64::MAX))
                .execute(db)
                .await?;
        Ok(moved.rows_affected() == 1)
    }
}

/// Rows of one kind that are written together.
trait Kind {
    type Row: Serialize + Sync;
    const NAME: &'static str;
    fn company(row: &Self::Row) -> CompanyId;
    fn id(row: &Self::Row) -> Option<i64>;
    /// Writes rows; some may be there already.
    fn write(
        db: &mut PgConnection,
        rows: &[&Self::Row],
    ) -> impl Future<Output = std::result::Result<(), sqlx::Error>> + Send;
    /// Writes rows the fast way, which may be refused where [`Kind::write`] is not.
    fn write_fast(
        db: &mut PgConnection,
        rows: &[&Self::Row],
    ) -> impl Future<Output = std::result::Result<(), sqlx::Error>> + Send;
}

struct Rows<'a> {
    db: &'a mut PgConnection,
    /// Row by row where needed: slow, and only after the fast way met a refusal.
    careful: bool,
}

impl Rows<'_> {
    async fn write<R: Kind<Row = R> + Serialize + Sync>(&mut self, rows: &[&R]) -> Result<()> {
        self.write_as::<R>(rows).await
    }

    async fn write_as<K: Kind>(&mut self, rows: &[&K::Row]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if !self.careful {
            return Ok(K::write_fast(self.db, rows).await?);
        }
        // Halves what is refused until single rows stand alone.
        let mut parts = vec![rows];
        while let Some(part) = parts.pop() {
            let mut savepoint = self.db.begin().await?;
            match K::write(&mut savepoint, part).await {
                Ok(()) => savepoint.commit().await?,
                Err(error) if is_refusal(&error) => {
                    savepoint.rollback().await?;
                    match part {
                        [row] => self.reject::<K>(row, &error).await?,
                        _ => {
                            let (first, second) = part.split_at(part.len() / 2);
                            parts.extend([second, first]);
                        }
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn reject<K: Kind>(&mut self, row: &K::Row, error: &sqlx::Error) -> Result<()> {
        let reason = error.to_string();
        let logged = without_values(error);
        tracing::error!(kind = K::NAME, company.id = %K::company(row), row.id = K::id(row), reason = logged, "the database refused a row; it is kept in rejected_changes");
        crate::persister::count_rejected();
        sqlx::query(
            "insert into rejected_changes (company_id, kind, row_id, change, reason) values ($1, $2, $3, $4, $5)",
        )
        .bind(K::company(row))
        .bind(K::NAME)
        .bind(K::id(row))
        .bind(storable(serde_json::to_value(row).unwrap_or_default()))
        .bind(reason)
        .execute(&mut *self.db)
        .await?;
        Ok(())
    }
}

/// U+0000 has no place in `jsonb`; nothing that reaches an actor holds one, but a refused row must never be
/// refused again.
fn storable(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace('\0', "\u{fffd}")),
        Value::Array(values) => Value::Array(values.into_iter().map(storable).collect()),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, storable(value))).collect(),
        other => other,
    }
}

macro_rules! kind {
    ($kind:ty, $row:ty, $name:literal, $id:expr, $write:path) => {
        kind!($kind, $row, $name, $id, $write, $write);
    };
    ($kind:ty, $row:ty, $name:literal, $id:expr, $write:path, $write_fast:path) => {
        impl Kind for $kind {
            type Row = $row;
            const NAME: &'static str = $name;
            fn company(row: &$row) -> CompanyId {
                row.company_id
            }
            fn id(row: &$row) -> Option<i64> {
                #[allow(clippy::redundant_closure_call)]
                ($id)(row)
            }
            async fn write(db: &mut PgConnection, rows: &[&$row]) -> std::result::Result<(), sqlx::Error> {
                $write(db, rows).await
            }
            async fn write_fast(db: &mut PgConnection, rows: &[&$row]) -> std::result::Result<(), sqlx::Error> {
                $write_fast(db, rows).await
            }
        }
    };
}

struct Known;
struct Delivered;
struct Seen;
struct Read;

kind!(TicketRow, TicketRow, "ticket", |row: &TicketRow| Some(row.id.0), tickets::upsert);
kind!(Known, TicketRow, "ticket", |row: &TicketRow| Some(row.id.0), tickets::upsert, tickets::update);
kind!(EventRow, EventRow, "event", |row: &EventRow| Some(row.id.0), ticket_events::insert, ticket_events::copy);
kind!(MessageRow, MessageRow, "message", |row: &MessageRow| Some(row.id.0), messages::insert, messages::copy);
kind!(ProgressRow, ProgressRow, "progress", |row: &ProgressRow| Some(row.message_id.0), messages::progress);
kind!(MediaRow, MediaRow, "media", |row: &MediaRow| Some(row.message_id.0), messages::set_media);
kind!(ReferralRow, ReferralRow, "referral", |row: &ReferralRow| Some(row.contact_id.0), contacts::set_referral);
kind!(Delivered, ReachedUpTo, "delivered", |mark: &ReachedUpTo| Some(mark.up_to.0), messages::deliver);
kind!(Seen, ReachedUpTo, "seen", |mark: &ReachedUpTo| Some(mark.up_to.0), messages::see);
kind!(Read, ReachedUpTo, "read", |mark: &ReachedUpTo| Some(mark.up_to.0), messages::read);
kind!(SessionRow, SessionRow, "session", |_: &SessionRow| None, webchat_sessions::upsert);
kind!(AnswerRow, AnswerRow, "answer", |_: &AnswerRow| None, idempotency_keys::upsert);
kind!(
    ContactChannel,
    ContactChannel,
    "contact_channel",
    |row: &ContactChannel| Some(row.contact_id.0),
    contacts::set_last_channel
);
