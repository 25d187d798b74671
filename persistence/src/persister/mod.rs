//! Writes durable entries to PostgreSQL asynchronously, after the callers were answered. Each transaction writes many
//! entries and moves the watermark. No entry is ever dropped: while the database is down, entries are retained and
//! retried.

pub(crate) mod ahead;
mod batch;
mod events;
mod facts;
mod kinds;
mod parts;
mod queue;
mod session;
mod writer;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::task::JoinHandle;

pub(crate) use ahead::MessagesAhead;
pub(crate) use batch::Batch;
pub use queue::{BATCH_CHANGES_MAX, CommitListener, Entry, FlushQueue, Flushes};
pub(crate) use writer::DIRECT;
pub use writer::{Claim, FencingToken, Writer};

use crate::change::decode;
use crate::journal::Journal;
use crate::{Change, Error};

/// How long entries are collected while no caller waits for them: long enough to coalesce the changes of a busy ticket
/// and to amortize a transaction's fixed cost, short enough that a restart after a crash has next to nothing to replay.
const GATHER_TIME: Duration = Duration::from_millis(100);

/// Bytes of entries that are read back from the journal for one transaction.
const READ_BACK_BYTES_MAX: usize = 64 << 20;

/// First and longest pause after a database error.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(50);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Starts the persister. It ends once the queue is closed and empty. Entries that did not fit into the queue are read
/// back from the journal; flushed entries are released there.
///
/// `on_failure` is called when nothing more can be flushed: another process has taken over as the database's writer,
/// the database has lost commits, or the journal cannot be read back.
pub fn start<T: Send + 'static>(
    queue: Arc<FlushQueue>,
    journal: Option<Journal<T>>,
    writer: Writer,
    on_failure: impl FnOnce(Error) + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        // One task, so that aborting it ends all its work.
        let run = AssertUnwindSafe(async move { Persister { queue, journal, writer }.run().await });
        let result = run.catch_unwind().await;
        let result = result.unwrap_or_else(|_| Err(Error::Unavailable("the persister panicked".to_owned())));
        if let Err(error) = result {
            on_failure(error);
        }
    })
}

struct Persister<T> {
    queue: Arc<FlushQueue>,
    journal: Option<Journal<T>>,
    writer: Writer,
}

impl<T: Send + 'static> Persister<T> {
    async fn run(&mut self) -> Result<(), Error> {
        while self.queue.wait(GATHER_TIME).await {
            let entries = match self.queue.take_entries() {
                queue::NextEntries::Entries(entries) => entries,
                queue::NextEntries::Spilled { from } => self.read_spilled(from).await?,
                queue::NextEntries::Nothing => continue,
            };
            self.flush(entries).await?;
        }
        Ok(())
    }

    /// Writes the entries, retrying until the database is back.
    async fn flush(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        let Some(last) = entries.last().map(|entry| entry.seq) else { return Ok(()) };
        let changes = entries.iter().map(|entry| entry.changes.as_slice());
        let batch = Batch::of(changes, self.writer.writes_events());
        let mut pause = RETRY_PAUSE_MIN;
        let duration = loop {
            let started_at = Instant::now();
            match self.writer.write(&batch, last).await {
                Ok(()) => break started_at.elapsed(),
                Err(error @ (Error::NotOwner | Error::LostCommits { .. })) => return Err(error),
                Err(error) => {
                    self.queue.record_failure(error.to_string());
                    let was_available = self.queue.set_available(false);
                    if was_available {
                        tracing::debug!(%error, "writing to the database failed; changes are kept and will be retried");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_PAUSE_MAX);
                }
            }
        };
        let was_available = self.queue.set_available(true);
        if !was_available {
            tracing::debug!("writing to the database works again");
        }
        self.queue.record_flush(last, batch.changes, duration);
        for entry in entries {
            if let Some(signal) = entry.signal {
                self.queue.on_durable(&entry.changes);
                signal.complete();
            }
        }
        if let Some(journal) = &self.journal {
            journal.release(last);
        }
        Ok(())
    }

    /// Reads back entries that did not fit into memory while the database was down.
    async fn read_spilled(&self, from: u64) -> Result<Vec<Entry>, Error> {
        let entries = loop {
            match self.read_journal(from) {
                // For example, too many open files. The entries stay in the journal, so a retry loses nothing.
                Err(Error::Journal(error)) if error.is_shortage() => {
                    tracing::warn!(%error, "reading the journal back failed; will retry");
                    tokio::time::sleep(RETRY_PAUSE_MAX).await;
                }
                entries => break entries?,
            }
        };
        let last_read = entries.last().map_or(from - 1, |entry| entry.seq);
        self.queue.mark_read_back(last_read);
        Ok(entries)
    }

    /// The entries from `from` on that fit into one transaction.
    fn read_journal(&self, from: u64) -> Result<Vec<Entry>, Error> {
        let Some(journal) = &self.journal else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        let (mut changes, mut bytes_read) = (0, 0);
        for record in journal.read_from(from)? {
            let (seq, bytes) = record?;
            let decoded: Vec<Change> = decode(seq, &bytes)?;
            changes += decoded.len();
            bytes_read += bytes.len();
            entries.push(Entry { seq, changes: decoded, signal: None });
            if changes >= BATCH_CHANGES_MAX || bytes_read >= READ_BACK_BYTES_MAX {
                break;
            }
        }
        Ok(entries)
    }
}
