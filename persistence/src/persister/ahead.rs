//! Messages are most of a replay's rows. They are written ahead of everything else, on a separate connection with its
//! own transactions, so that two PostgreSQL backends work in parallel.
//!
//! Their events, figures and deliveries wait until the main connection reaches the same entries; its watermark is the
//! authoritative one. During a replay the messages have their own watermark row, so an interrupted replay resumes on
//! both connections where each had stopped.

use sqlx::{Connection, PgConnection, PgPool};

use super::facts::Origin;
use super::kinds::{Ahead, Kind};
use super::writer::{FencingToken, Refusals, Rows, move_watermark};
use crate::journal::Seq;
use crate::tables::messages::{AHEAD, MessageRow};
use crate::{Change, CompanyId, Error, Result, rejected};

/// Writes the messages of a replay.
pub(crate) struct MessagesAhead {
    db: PgPool,
    mark: FencingToken,
    reached: Seq,
    /// Refused messages, including those of an earlier, interrupted replay.
    refused: Refusals,
}

impl MessagesAhead {
    /// Starts, or resumes, after `watermark`. `mark` is the writer's; `fed_in` is the epoch in which its journal fed
    /// the database.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub(crate) async fn begin(db: PgPool, mark: &FencingToken, watermark: Seq, fed_in: i64) -> Result<Self> {
        let mark = FencingToken { claim: mark.claim, journal: format!("{}{AHEAD}", mark.journal) };
        let begun: i64 = sqlx::query_scalar(
            "insert into journal_watermark as w (journal, seq, epoch) values ($1, $2, $3)
             on conflict (journal) do update set seq = greatest(w.seq, excluded.seq) returning seq",
        )
        .bind(&mark.journal)
        .bind(i64::try_from(watermark).unwrap_or(i64::MAX))
        .bind(fed_in)
        .fetch_one(&db)
        .await?;
        let reached = u64::try_from(begun).unwrap_or(0);
        let mut refused = Refusals::new();
        if reached > watermark {
            let ids: Vec<(CompanyId, i64)> = rejected::ids(&db, MessageRow::NAME).await?;
            refused.extend(ids.into_iter().map(|(company, id)| Origin { kind: MessageRow::NAME, company, id }));
        }
        Ok(Self { db, mark, reached, refused })
    }

    /// Writes the messages of entries up to `last`, and returns those that PostgreSQL refused.
    ///
    /// # Errors
    /// As [`Writer::write`](super::Writer::write).
    pub(crate) async fn write(&mut self, entries: &[(Seq, Vec<Change>)], last: Seq) -> Result<Refusals> {
        let news = entries.iter().filter(|(seq, _)| *seq > self.reached);
        let rows: Vec<&MessageRow> = news
            .flat_map(|(_, changes)| changes)
            .filter_map(|change| match change {
                Change::Message(row) => Some(&**row),
                _ => None,
            })
            .collect();
        if last > self.reached {
            match self.attempt(&rows, last, false).await {
                // An outage would be `Unavailable`, so this is a refusal.
                Err(Error::Database(_)) => self.attempt(&rows, last, true).await?,
                outcome => outcome?,
            }
            self.reached = last;
        }
        Ok(self.refused.clone())
    }

    async fn attempt(&mut self, rows: &[&MessageRow], last: Seq, careful: bool) -> Result<()> {
        let mut transaction = self.db.begin().await?;
        if move_watermark(&mut transaction, &self.mark, last).await?.is_none() {
            return Ok(());
        }
        let mut writing = Rows::new(&mut transaction, careful);
        writing.write_as::<Ahead>(rows).await?;
        let refused = writing.refused;
        transaction.commit().await?;
        self.refused.extend(refused);
        Ok(())
    }
}

/// Ends the replay once the journal is in the tables: restores the epoch in which the journal fed the database, and
/// deletes the watermark of the messages.
///
/// # Errors
/// When the database cannot answer.
pub(crate) async fn end(db: &mut PgConnection, journal: &str, epoch: i64) -> Result<()> {
    let mut transaction = db.begin().await?;
    sqlx::query("delete from journal_watermark where journal = $1")
        .bind(format!("{journal}{AHEAD}"))
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
