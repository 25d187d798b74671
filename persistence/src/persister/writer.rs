//! Writes a batch in one transaction: the watermark, then the rows. A row that PostgreSQL refuses is stored in
//! `rejected_changes`; the rest of the batch is written.
//!
//! Any error that is not an outage ([`is_outage`] lists those) is a refusal. Then the batch is written in parts, and a
//! refused part is halved until a single row is left. If the error is about values, that row is at fault. For any other
//! reason (missing privilege, missing table) the statement is run again with no rows: if that is refused too, no row of
//! this kind can be written, so all of them are retried as during an outage. If it succeeds, the row is at fault.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use sqlx::{Connection, PgConnection, PgPool};

use super::Batch;
use super::events::{FlushOutcome, PreviousRows};
use super::facts::SourceRow;
use super::kinds::{CompanyReadReceipts, ContactReadReceipts, DeliveredReceipts, ExistingTickets, Kind};
use super::parts::parts_of;
use super::session::{WriterSession, unless_session_lost};
use crate::cluster::{LifeId, lives};
use crate::error::{is_caused_by_values, is_outage, without_values};
use crate::event_news::EventNews;
use crate::journal::Seq;
use crate::pool::WriterClaim;
use crate::rejected::{self, RejectedRow};
use crate::tables::messages::{ChangedMessage, FailedMessage, MessageRow, Revision};
use crate::tables::reports::Counts;
use crate::tables::{campaigns, messages};
use crate::{CompanyId, Error, LoggedEventId, Result};

/// Maximum bytes per statement when rows are written in parts. PostgreSQL accepts less than 1 GiB per statement, and
/// the rows of a replay can be larger.
const PART_BYTES_MAX: usize = 64 << 20;

/// Used as the journal's id when there is no journal. The watermark of this id begins at 0 at each start, and prevents
/// a batch from being written twice when the reply to a commit was lost.
pub(crate) const DIRECT: &str = "direct";

/// The condition under which a process may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A standalone process: the epoch it took at startup. A later epoch means that another process is the writer now.
    Epoch(i64),
    /// A process of a cluster: its life, whose row exists as long as it may write.
    Life(LifeId),
}

/// What the persister must hold to write.
#[derive(Clone, Debug)]
pub struct FencingToken {
    /// Checked by every write.
    pub claim: Claim,
    /// The journal whose watermark moves, or `direct` without a journal.
    pub journal: String,
}

/// How the rows of a batch are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    /// With the fastest statements, which fail as a whole.
    Fast,
    /// In parts, so that refused rows can be stored and the others written.
    InParts,
}

/// Writes batches to PostgreSQL.
pub struct Writer {
    db: PgPool,
    claim: Arc<WriterClaim>,
    token: FencingToken,
    /// The newest entry whose commit the database has acknowledged to this writer.
    committed: AtomicU64,
    /// Listeners for events; `None` if events are disabled.
    news: Option<Arc<EventNews>>,
}

impl Writer {
    /// Creates a writer. `db` is a pool of its own, so that requests cannot delay it. With `news` it writes events.
    pub fn new(db: PgPool, claim: Arc<WriterClaim>, token: FencingToken, news: Option<Arc<EventNews>>) -> Self {
        if let Claim::Epoch(epoch) = token.claim {
            claim.set_epoch(epoch);
        }
        Self { db, claim, token, committed: AtomicU64::new(0), news }
    }

    /// Whether events are written.
    pub(crate) fn writes_events(&self) -> bool {
        self.news.is_some()
    }

    /// Writes the batch and moves the watermark to `last` in one transaction. Idempotent.
    ///
    /// # Errors
    /// [`Error::NotOwner`] when another process has taken over; [`Error::LostCommits`] when the database has lost
    /// commits; any other error can be retried.
    pub(crate) async fn write(&self, batch: &Batch<'_>, last: Seq) -> Result<()> {
        self.write_with_messages_ahead(batch, last, None).await
    }

    /// As [`Self::write`]. With `refusals_ahead`, [`MessagesAhead`](super::MessagesAhead) has already written the
    /// messages, except those refused.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) async fn write_with_messages_ahead(
        &self,
        batch: &Batch<'_>,
        last: Seq,
        refusals_ahead: Option<&Refusals>,
    ) -> Result<()> {
        match self.attempt(batch, last, refusals_ahead, WriteMode::Fast).await {
            // An outage would be `Unavailable`, so this is a refusal.
            Err(Error::Database(_)) => self.attempt(batch, last, refusals_ahead, WriteMode::InParts).await,
            Err(_) if self.claim.is_superseded() => Err(Error::NotOwner),
            outcome => outcome,
        }
    }

    async fn attempt(
        &self,
        batch: &Batch<'_>,
        last: Seq,
        refusals_ahead: Option<&Refusals>,
        mode: WriteMode,
    ) -> Result<()> {
        let mut session = WriterSession::of(&self.db).await?;
        let work = self.write_on(session.connection()?, batch, last, refusals_ahead, mode);
        let outcome = unless_session_lost(&self.db, &self.claim, work).await;
        if !matches!(outcome, Err(Error::Unavailable(_))) {
            session.put_back().await;
        }
        outcome
    }

    async fn write_on(
        &self,
        connection: &mut PgConnection,
        batch: &Batch<'_>,
        last: Seq,
        refusals_ahead: Option<&Refusals>,
        mode: WriteMode,
    ) -> Result<()> {
        let mut transaction = connection.begin().await?;
        let Some(watermark) = move_watermark(&mut transaction, &self.token, last).await? else {
            // An earlier attempt was committed, but its reply was lost.
            self.committed.fetch_max(last, Ordering::AcqRel);
            self.news.iter().for_each(|news| news.publish_all());
            return Ok(());
        };
        self.refuse_lost_commits(watermark)?;
        let rows = &mut Rows::new(&mut transaction, mode);
        let previous = match &batch.collector {
            Some(collector) => collector.previous_rows(rows.db).await?,
            None => PreviousRows::default(),
        };
        // Before new tickets: a ticket being opened may take the slot that another one freed.
        rows.write_as::<ExistingTickets>(&batch.tickets).await?;
        rows.write(&batch.opened_tickets).await?;
        rows.write(&batch.events).await?;
        let failed = rows.write_messages(batch, refusals_ahead).await?;
        rows.write_after_messages(batch).await?;
        let counts = batch.facts.sum(&rows.refusals, &failed);
        rows.write_counts(counts).await?;
        // Other writers of events of these companies block from here until the commit.
        let last_events = rows.append_events(batch, &previous).await?;
        crate::fail_point!("events_appended", |_| std::process::abort());
        transaction.commit().await?;
        self.committed.fetch_max(last, Ordering::AcqRel);
        self.notify(batch, last_events);
        Ok(())
    }

    /// Notifies listeners of the events of a committed batch, and of the messages that it has deleted.
    fn notify(&self, batch: &Batch<'_>, last_events: Vec<(CompanyId, LoggedEventId)>) {
        let Some(news) = &self.news else { return };
        let deletions = batch.revisions.iter().filter(|row| matches!(row.revision, Revision::Deleted { .. }));
        deletions.for_each(|row| news.publish_removal(row.company_id));
        for (company, last) in last_events {
            news.publish(company, last);
        }
    }

    /// Refuses a watermark below what was committed: the database has lost commits. Checked only for a cluster member:
    /// it cannot write the lost entries again, and others may serve its companies. A process with a journal finds out
    /// at its next start ([`Error::Older`]).
    fn refuse_lost_commits(&self, watermark: Seq) -> Result<()> {
        let committed = self.committed.load(Ordering::Acquire);
        if watermark < committed && matches!(self.token.claim, Claim::Life(_)) {
            return Err(Error::LostCommits { watermark, committed });
        }
        Ok(())
    }
}

/// Moves the watermark to `last`, and returns its previous value; `None` if it is there already.
///
/// # Errors
/// [`Error::NotOwner`] when another process has taken over; other errors when the database cannot answer.
pub(super) async fn move_watermark(db: &mut PgConnection, token: &FencingToken, last: Seq) -> Result<Option<Seq>> {
    match token.claim {
        Claim::Epoch(claimed) => {
            let epoch: i64 = sqlx::query_scalar("select epoch from ownership for share").fetch_one(&mut *db).await?;
            if epoch != claimed {
                return Err(Error::NotOwner);
            }
        }
        Claim::Life(life) => lives::fence(db, life).await?,
    }
    crate::fail_point!("flush_begun");
    let update = sqlx::query_scalar(
        "with before as (select seq from journal_watermark where journal = $1 for update)
         update journal_watermark w set seq = $2, updated_at = now() from before
         where w.journal = $1 and before.seq < $2 returning before.seq",
    );
    let before: Option<i64> =
        update.bind(&token.journal).bind(i64::try_from(last).unwrap_or(i64::MAX)).fetch_optional(db).await?;
    Ok(before.map(|seq| u64::try_from(seq).unwrap_or(0)))
}

/// Rows that PostgreSQL has refused.
pub(crate) type Refusals = HashSet<SourceRow>;

/// Rows being written in one transaction.
pub(super) struct Rows<'a> {
    db: &'a mut PgConnection,
    /// Whether rows are written in parts ([`WriteMode::InParts`]): slow, so only after a fast statement was refused.
    in_parts: bool,
    pub(super) refusals: Refusals,
    /// Messages whose row has changed.
    changed_messages: Vec<ChangedMessage>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(db: &'a mut PgConnection, mode: WriteMode) -> Self {
        let in_parts = mode == WriteMode::InParts;
        Self { db, in_parts, refusals: Refusals::new(), changed_messages: Vec::new() }
    }

    async fn write<R: Kind<Row = R> + Serialize + Sync>(&mut self, rows: &[&R]) -> Result<()> {
        self.write_as::<R>(rows).await
    }

    pub(super) async fn write_as<K: Kind>(&mut self, rows: &[&K::Row]) -> Result<()> {
        if self.in_parts {
            return self.write_in_parts::<K>(rows).await;
        }
        for part in rows.chunks(K::ROWS_MAX) {
            self.changed_messages.extend(K::write_fast(self.db, part).await?);
        }
        Ok(())
    }

    /// Writes messages and their progress, unless they were written ahead; returns the messages that have newly failed.
    async fn write_messages(
        &mut self,
        batch: &Batch<'_>,
        refusals_ahead: Option<&Refusals>,
    ) -> Result<Vec<FailedMessage>> {
        let merged = match refusals_ahead {
            Some(refusals) => {
                self.refusals.extend(refusals.iter().copied());
                self.update_zones(&batch.messages).await?;
                None
            }
            // When writing in parts, rows are not merged: a refused progress row must not prevent writing its message.
            None if self.in_parts => None,
            None => messages::merge_reports(&batch.messages, &batch.progress),
        };
        match &merged {
            Some(merged) => {
                self.write(&merged.messages.iter().map(AsRef::as_ref).collect::<Vec<_>>()).await?;
                self.changed_messages.extend(&merged.changed);
            }
            None if refusals_ahead.is_none() => self.write(&batch.messages).await?,
            None => {}
        }
        let unfailed = messages::find_unfailed(self.db, batch.facts.possibly_failed()).await?;
        self.write(merged.as_ref().map_or(&batch.progress, |merged| &merged.progress)).await?;
        Ok(messages::find_failed(self.db, &unfailed).await?)
    }

    /// Writes the rows that refer to messages, and those of all remaining kinds.
    async fn write_after_messages(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.write(&batch.media).await?;
        // After files: deleting a message also removes its file, even one that came in the same batch.
        self.write(&batch.revisions).await?;
        self.write_as::<DeliveredReceipts>(&batch.delivered_receipts).await?;
        self.write_as::<ContactReadReceipts>(&batch.contact_read_receipts).await?;
        self.write_as::<CompanyReadReceipts>(&batch.company_read_receipts).await?;
        self.write(&batch.sessions).await?;
        self.write(&batch.contact_channels).await?;
        self.write(&batch.referrals).await?;
        self.write(&batch.opt_outs).await?;
        self.write(&batch.schedules).await?;
        self.write(&batch.recipients).await?;
        // After recipients: an attempt in doubt marks the recipient of its message.
        self.write(&batch.attempts).await?;
        self.update_recipients(batch).await?;
        self.write(&batch.answers).await
    }

    /// Updates the zone maps ([`crate::tables::zones`]) for messages that a replay has written ahead.
    async fn update_zones(&mut self, rows: &[&MessageRow]) -> Result<()> {
        let is_written = |row: &&MessageRow| !self.refusals.contains(&SourceRow::of_message(row));
        let rows: Vec<_> = rows.iter().copied().filter(is_written).collect();
        Ok(messages::update_zones(self.db, &rows).await?)
    }

    async fn write_in_parts<K: Kind>(&mut self, rows: &[&K::Row]) -> Result<()> {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| K::order(row));
        let mut parts = parts_of(&rows, K::ROWS_MAX, PART_BYTES_MAX);
        parts.reverse();
        while let Some(part) = parts.pop() {
            let Some(error) = self.try_write::<K>(part).await? else { continue };
            match part {
                [row] => self.reject::<K>(row, &error).await?,
                _ => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
            }
        }
        Ok(())
    }

    /// Adds to the report figures. A figure that is refused because of its values is skipped.
    async fn write_counts(&mut self, counts: Counts) -> Result<()> {
        if !self.in_parts {
            return Ok(counts.write(self.db).await?);
        }
        let mut parts = vec![counts];
        while let Some(part) = parts.pop() {
            let mut savepoint = self.db.begin().await?;
            match part.write(&mut savepoint).await {
                Ok(()) => savepoint.commit().await?,
                Err(error) if is_caused_by_values(&error) => {
                    savepoint.rollback().await?;
                    match part.split() {
                        Some((first, second)) => parts.extend([second, first]),
                        None => tracing::error!(reason = without_values(&error), "could not update a report count"),
                    }
                }
                Err(error) => {
                    return Err(Error::Unavailable(format!(
                        "could not update report counts: {}",
                        without_values(&error)
                    )));
                }
            }
        }
        Ok(())
    }

    /// Appends the events of the written rows, and returns the last one of each company. If they are refused because of
    /// their values, they are skipped.
    async fn append_events(
        &mut self,
        batch: &Batch<'_>,
        previous: &PreviousRows,
    ) -> Result<Vec<(CompanyId, LoggedEventId)>> {
        let Some(collector) = &batch.collector else { return Ok(Vec::new()) };
        let outcome = FlushOutcome {
            in_parts: self.in_parts,
            refusals: &self.refusals,
            changed_messages: &self.changed_messages,
        };
        if !self.in_parts {
            return Ok(collector.write(self.db, previous, outcome).await?);
        }
        let mut savepoint = self.db.begin().await?;
        match collector.write(&mut savepoint, previous, outcome).await {
            Ok(last) => {
                savepoint.commit().await?;
                Ok(last)
            }
            Err(error) if is_caused_by_values(&error) => {
                savepoint.rollback().await?;
                tracing::error!(reason = without_values(&error), "could not publish events of a batch");
                Ok(Vec::new())
            }
            Err(error) => Err(Error::Unavailable(format!("could not append events: {}", without_values(&error)))),
        }
    }

    /// Gives the recipients of campaigns the status of their messages. If that is refused because of values, it is
    /// skipped: the messages hold the same status.
    async fn update_recipients(&mut self, batch: &Batch<'_>) -> Result<()> {
        let messages: Vec<_> = batch.progress.iter().map(|row| (row.company_id, row.message_id)).collect();
        let receipts = batch.delivered_receipts.iter().chain(&batch.contact_read_receipts);
        let contacts: Vec<_> =
            receipts.filter_map(|receipt| Some((receipt.company_id, receipt.conversation?.1))).collect();
        if !self.in_parts {
            return Ok(campaigns::update_recipients(self.db, &messages, &contacts).await?);
        }
        let mut savepoint = self.db.begin().await?;
        match campaigns::update_recipients(&mut savepoint, &messages, &contacts).await {
            Ok(()) => savepoint.commit().await?,
            Err(error) if is_caused_by_values(&error) => {
                savepoint.rollback().await?;
                tracing::error!(
                    reason = without_values(&error),
                    "could not update campaign recipients from their messages"
                );
            }
            Err(error) => {
                return Err(Error::Unavailable(format!(
                    "could not update campaign recipients: {}",
                    without_values(&error)
                )));
            }
        }
        Ok(())
    }

    /// Writes all rows; or writes none, and returns the reason.
    async fn try_write<K: Kind>(&mut self, rows: &[&K::Row]) -> Result<Option<sqlx::Error>> {
        let mut savepoint = self.db.begin().await?;
        match K::write(&mut savepoint, rows).await {
            Ok(changed_messages) => {
                savepoint.commit().await?;
                self.changed_messages.extend(changed_messages);
                Ok(None)
            }
            Err(error) if is_outage(&error) => Err(error.into()),
            Err(error) => {
                savepoint.rollback().await?;
                Ok(Some(error))
            }
        }
    }

    /// Stores a refused row, and writes its reduced version. Fails as in an outage if no row of its kind can be
    /// written.
    async fn reject<K: Kind>(&mut self, row: &K::Row, error: &sqlx::Error) -> Result<()> {
        if !is_caused_by_values(error)
            && let Some(kind_error) = self.try_write::<K>(&[]).await?
        {
            let (kind, reason) = (K::NAME, without_values(&kind_error));
            return Err(Error::Unavailable(format!("the database rejects every {kind}: {reason}")));
        }
        let rejected_row = RejectedRow {
            company: K::company(row),
            kind: K::NAME,
            id: K::id(row),
            row: serde_json::to_value(row).unwrap_or_default(),
        };
        self.refusals.extend(rejected_row.id.map(|id| SourceRow { kind: K::NAME, company: rejected_row.company, id }));
        rejected::store(self.db, rejected_row, error).await?;
        if let Some(reduced) = K::reduced(row)
            && let Some(error) = self.try_write::<K>(&[&reduced]).await?
        {
            tracing::debug!(
                kind = K::NAME,
                reason = without_values(&error),
                "rejected row could not be written in part"
            );
        }
        Ok(())
    }
}
