//! Recovery before anything is served: replays the journal's entries above the watermark into the tables.

use std::path::Path;
use std::sync::Arc;

use sqlx::PgPool;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::change::{Change, decode};
use crate::journal::{self, Inspection, JournalError, Records, RecoveredJournal, Seq};
use crate::persister::{Batch, Claim, DIRECT, FencingToken, MessagesAhead, Writer, ahead};
use crate::pool::WriterClaim;
use crate::{Error, EventNews, Result};

/// The result of recovery.
#[derive(Debug)]
pub struct RecoveryReport {
    /// Entries up to this one are in the tables.
    pub watermark: Seq,
    /// Number of replayed entries.
    pub replayed: u64,
}

/// Refuses a database that lacks entries which the journal has confirmed as written to it. Called before the database
/// is migrated or claimed.
///
/// # Errors
/// [`Error::Older`] when it is older; other errors when the journal or the database cannot be read.
pub async fn refuse_older_database(db: &PgPool, dir: &Path) -> Result<()> {
    let journal_dir = dir.to_owned();
    // IMPORTANT: read the journal first. If another process still writes to the database from it, the watermark only
    // grows.
    let result = tokio::task::spawn_blocking(move || journal::inspect(&journal_dir)).await;
    let inspection = result.map_err(|error| Error::Unavailable(error.to_string()))??;
    let Some(Inspection { id, confirmed }) = inspection.filter(|journal| journal.confirmed > 0) else { return Ok(()) };
    let has_watermarks: bool =
        sqlx::query_scalar("select to_regclass(quote_ident(current_schema()) || '.journal_watermark') is not null")
            .fetch_one(db)
            .await?;
    let watermark: Option<i64> = if has_watermarks {
        sqlx::query_scalar("select seq from journal_watermark where journal = $1").bind(&id).fetch_optional(db).await?
    } else {
        None
    };
    let watermark = watermark.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0);
    if watermark >= confirmed {
        return Ok(());
    }
    Err(Error::Older { dir: dir.to_owned(), journal: id, watermark, confirmed })
}

/// Claims the database for this process, and returns its epoch: every later flush of an earlier owner fails.
///
/// # Errors
/// [`Error::NotOwner`] when another process is the writer and alive; other errors when the database cannot answer.
pub async fn take_ownership(writes: &PgPool) -> Result<i64> {
    let epoch = sqlx::query_scalar("update ownership set epoch = epoch + 1 returning epoch").fetch_one(writes).await;
    epoch.map_err(|error| match error {
        // The database has just answered the migrations' statements, so only another process's lock can keep us out.
        sqlx::Error::PoolTimedOut => Error::NotOwner,
        error => error.into(),
    })
}

/// The connections of a replay.
pub struct ReplayConnections<'a> {
    /// The single writer's connection.
    pub writes: &'a PgPool,
    /// The connection for messages, which are written ahead of all other rows.
    pub messages: &'a PgPool,
    /// The claim whose lock the writer's connection holds.
    pub claim: &'a Arc<WriterClaim>,
}

/// Replays the journal above the watermark.
///
/// # Errors
/// [`Error::ForeignJournal`] when the journal belongs to another database, [`Error::Superseded`] when another process
/// has written to this database since, [`Error::UndecodableEntry`] when a record cannot be decoded, or the database's
/// error.
pub async fn replay(
    ReplayConnections { writes, messages, claim }: ReplayConnections<'_>,
    journal: &mut RecoveredJournal,
    epoch: i64,
    events: Option<Arc<EventNews>>,
) -> Result<RecoveryReport> {
    let Watermark { seq: watermark, epoch: last_writer_epoch } = find_watermark(writes, journal, epoch).await?;
    let token = FencingToken { claim: Claim::Epoch(epoch), journal: journal.id().to_owned() };
    let mut report = RecoveryReport { watermark, replayed: 0 };
    let mut chunks = read_ahead(journal.read_from(watermark + 1)?);
    let (sender, mut chunks_after_messages) = mpsc::channel(1);
    let (db, messages_token) = (messages.clone(), token.clone());
    let write_messages = async move {
        let mut messages_ahead = None;
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk?;
            let messages_ahead = match &mut messages_ahead {
                Some(messages_ahead) => messages_ahead,
                None => messages_ahead
                    .insert(MessagesAhead::begin(db.clone(), &messages_token, watermark, last_writer_epoch).await?),
            };
            let refusals = messages_ahead.write(&chunk.entries, chunk.last).await?;
            if sender.send((chunk, refusals)).await.is_err() {
                break;
            }
        }
        Ok::<_, Error>(())
    };
    // On its own thread: encoding for the second connection needs a core as well.
    let runtime = Handle::current();
    let messages_task = tokio::task::spawn_blocking(move || runtime.block_on(write_messages));
    let messages_task = async { messages_task.await.map_err(|error| Error::Unavailable(error.to_string()))? };
    let writer = Writer::new(writes.clone(), claim.clone(), token, events);
    let write_rest = async {
        while let Some((Chunk { entries, last, records, .. }, refusals)) = chunks_after_messages.recv().await {
            let changes = entries.iter().map(|(_, changes)| changes.as_slice());
            writer
                .write_with_messages_ahead(&Batch::of(changes, writer.writes_events()), last, Some(&refusals))
                .await?;
            report.watermark = last;
            report.replayed += records;
        }
        Ok::<_, Error>(())
    };
    tokio::try_join!(messages_task, write_rest)?;
    ahead::end(&mut *writes.acquire().await?, journal.id(), epoch).await?;
    journal.confirm(report.watermark)?;
    Ok(report)
}

/// Maximum changes per transaction of a replay. Large transactions delay no request, since none is served yet, and
/// coalesce more: of a ticket that changed a hundred times only the last version is written.
const CHUNK_CHANGES_MAX: usize = 50_000;

/// Maximum bytes of entries per transaction of a replay. Up to five such chunks are in memory: one being read, and on
/// each of the two connections one waiting and one being written.
const CHUNK_BYTES_MAX: usize = 32 << 20;

struct Chunk {
    entries: Vec<(Seq, Vec<Change>)>,
    changes: usize,
    last: Seq,
    records: u64,
}

/// Reads and decodes the next chunk while the previous one is written.
fn read_ahead(records: Records) -> mpsc::Receiver<Result<Chunk>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        let mut records = records.peekable();
        while records.peek().is_some() {
            let chunk = next_chunk(&mut records);
            let has_failed = chunk.is_err();
            if sender.blocking_send(chunk).is_err() || has_failed {
                break;
            }
        }
    });
    receiver
}

fn next_chunk(records: &mut impl Iterator<Item = std::result::Result<(Seq, Vec<u8>), JournalError>>) -> Result<Chunk> {
    let mut chunk = Chunk { entries: Vec::new(), changes: 0, last: 0, records: 0 };
    let mut bytes_read = 0;
    for record in records {
        let (seq, bytes) = record?;
        bytes_read += bytes.len();
        let entry = decode(seq, &bytes)?;
        chunk.changes += entry.len();
        chunk.entries.push((seq, entry));
        chunk.last = seq;
        chunk.records += 1;
        if chunk.changes >= CHUNK_CHANGES_MAX || bytes_read >= CHUNK_BYTES_MAX {
            break;
        }
    }
    Ok(chunk)
}

/// Refuses to start while the journal of an earlier run contains entries that are not in the tables: a cluster member
/// has no journal, and acknowledged changes must not be left behind.
///
/// # Errors
/// [`Error::UnreplayedJournal`] when there are such entries; other errors when the database cannot be read.
pub async fn refuse_unreplayed(db: &PgPool, dir: &Path, journal: &RecoveredJournal) -> Result<()> {
    let query = "select seq from journal_watermark where journal = $1";
    let watermark: Option<i64> = sqlx::query_scalar(query).bind(journal.id()).fetch_optional(db).await?;
    let watermark = watermark.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0);
    if journal.last().is_some_and(|last| last > watermark) {
        return Err(Error::UnreplayedJournal { dir: dir.to_owned() });
    }
    Ok(())
}

/// Starts writing without a journal.
pub async fn begin_direct(db: &PgPool, epoch: i64) -> Result<FencingToken> {
    let begin = "insert into journal_watermark (journal, seq, epoch) values ($1, 0, $2)
        on conflict (journal) do update set seq = 0, epoch = excluded.epoch";
    sqlx::query(begin).bind(DIRECT).bind(epoch).execute(db).await?;
    Ok(FencingToken { claim: Claim::Epoch(epoch), journal: DIRECT.to_owned() })
}

/// The tables' progress for a journal.
struct Watermark {
    seq: Seq,
    /// The epoch of the last run that wrote entries of the journal into the tables.
    epoch: i64,
}

/// Finds the tables' progress for this journal, and registers it if it is new and empty. `epoch` is the one this
/// process has just taken.
async fn find_watermark(db: &PgPool, journal: &RecoveredJournal, epoch: i64) -> Result<Watermark> {
    let row: Option<(i64, i64)> = sqlx::query_as("select seq, epoch from journal_watermark where journal = $1")
        .bind(journal.id())
        .fetch_optional(db)
        .await?;
    let Some((seq, last_writer_epoch)) = row else {
        if journal.last().is_some() {
            return Err(Error::ForeignJournal { journal: journal.id().to_owned() });
        }
        sqlx::query("insert into journal_watermark (journal, seq, epoch) values ($1, 0, $2)")
            .bind(journal.id())
            .bind(epoch)
            .execute(db)
            .await?;
        return Ok(Watermark { seq: 0, epoch });
    };
    let seq = u64::try_from(seq).unwrap_or(0);
    let has_unreplayed = journal.last().is_some_and(|last| last > seq);
    // Only the epochs of runs that wrote entries count: a start that failed after taking its epoch has written none.
    let latest: i64 = sqlx::query_scalar("select coalesce(max(epoch), 0) from journal_watermark").fetch_one(db).await?;
    if has_unreplayed && latest != last_writer_epoch {
        return Err(Error::Superseded { journal: journal.id().to_owned() });
    }
    Ok(Watermark { seq, epoch: last_writer_epoch })
}
