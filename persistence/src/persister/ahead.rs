//! Most rows of a replay are messages. They are written ahead of everything else, on a separate connection with its own
//! transactions, so that two PostgreSQL backends work in parallel.
//!
//! Their events, figures and deliveries wait until the main connection reaches the same entries; its watermark is the
//! authoritative one. During a replay the messages have their own watermark row, so each connection of an interrupted
//! replay resumes where it stopped.

use sqlx::{Connection, PgConnection, PgPool};

use super::facts::SourceRow;
use super::kinds::{Kind, ReplayedMessages};
use super::writer::{FencingToken, Refusals, Rows, WriteMode, move_watermark};
use crate::journal::Seq;
use crate::tables::messages::{MESSAGES_WATERMARK_SUFFIX, MessageRow};
use crate::{Change, CompanyId, Error, Result, rejected};

/// Writes the messages of a replay.
pub(crate) struct MessagesAhead {
    db: PgPool,
    /// The writer's claim, with the name of the messages' watermark in place of the journal's id.
    token: FencingToken,
    /// The newest entry whose messages are in the tables.
    written_to: Seq,
    /// All refused messages, including those of an earlier, interrupted replay.
    refusals: Refusals,
}

impl MessagesAhead {
    /// Starts after `watermark`, or where an interrupted replay stopped. `token` is the writer's. The messages'
    /// watermark gets `last_writer_epoch`, the epoch of the run that last wrote entries of the journal: with this run's
    /// epoch, the next start would mistake an interrupted replay for a write by another process.
    pub(crate) async fn begin(
        db: PgPool,
        token: &FencingToken,
        watermark: Seq,
        last_writer_epoch: i64,
    ) -> Result<Self> {
        let token =
            FencingToken { claim: token.claim, journal: format!("{}{MESSAGES_WATERMARK_SUFFIX}", token.journal) };
        let stored_watermark: i64 = sqlx::query_scalar(
            "insert into journal_watermark as w (journal, seq, epoch) values ($1, $2, $3)
             on conflict (journal) do update set seq = greatest(w.seq, excluded.seq) returning seq",
        )
        .bind(&token.journal)
        .bind(i64::try_from(watermark).unwrap_or(i64::MAX))
        .bind(last_writer_epoch)
        .fetch_one(&db)
        .await?;
        let written_to = u64::try_from(stored_watermark).unwrap_or(0);
        let mut refusals = Refusals::new();
        if written_to > watermark {
            let ids: Vec<(CompanyId, i64)> = rejected::ids(&db, MessageRow::NAME).await?;
            refusals.extend(ids.into_iter().map(|(company, id)| SourceRow { kind: MessageRow::NAME, company, id }));
        }
        Ok(Self { db, token, written_to, refusals })
    }

    /// Writes the messages of entries up to `last`, and returns all messages that PostgreSQL has refused.
    ///
    /// # Errors
    /// As [`Writer::write`](super::Writer::write).
    pub(crate) async fn write(&mut self, entries: &[(Seq, Vec<Change>)], last: Seq) -> Result<Refusals> {
        let unwritten = entries.iter().filter(|(seq, _)| *seq > self.written_to);
        let rows: Vec<&MessageRow> = unwritten
            .flat_map(|(_, changes)| changes)
            .filter_map(|change| match change {
                Change::Message(row) => Some(&**row),
                _ => None,
            })
            .collect();
        if last > self.written_to {
            match self.attempt(&rows, last, WriteMode::Fast).await {
                // An outage would be `Unavailable`, so this is a refusal.
                Err(Error::Database(_)) => self.attempt(&rows, last, WriteMode::InParts).await?,
                outcome => outcome?,
            }
            self.written_to = last;
        }
        Ok(self.refusals.clone())
    }

    async fn attempt(&mut self, rows: &[&MessageRow], last: Seq, mode: WriteMode) -> Result<()> {
        let mut transaction = self.db.begin().await?;
        if move_watermark(&mut transaction, &self.token, last).await?.is_none() {
            // An earlier attempt was committed, but its reply was lost.
            return Ok(());
        }
        let mut writer = Rows::new(&mut transaction, mode);
        writer.write_as::<ReplayedMessages>(rows).await?;
        let refusals = writer.refusals;
        transaction.commit().await?;
        self.refusals.extend(refusals);
        Ok(())
    }
}

/// Ends the replay once the journal is in the tables: deletes the watermark of the messages, and gives that of the
/// journal the epoch of this run.
pub(crate) async fn end(db: &mut PgConnection, journal: &str, epoch: i64) -> Result<()> {
    let mut transaction = db.begin().await?;
    sqlx::query("delete from journal_watermark where journal = $1")
        .bind(format!("{journal}{MESSAGES_WATERMARK_SUFFIX}"))
        .execute(&mut *transaction)
        .await?;
    sqlx::query("update journal_watermark set epoch = $2 where journal = $1")
        .bind(journal)
        .bind(epoch)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(())
}
