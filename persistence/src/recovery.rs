//! What happens before anything is served: the journal's entries above the watermark go into the tables.

use std::path::Path;
use std::sync::Arc;

use sqlx::PgPool;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::change::{Change, decode};
use crate::journal::{self, JournalError, Known, Records, Recovered, Seq};
use crate::persister::{Batch, Claim, DIRECT, FencingToken, MessagesAhead, Writer, ahead};
use crate::pool::WriterClaim;
use crate::{Error, EventNews, Result};

/// What recovery found and did.
#[derive(Debug)]
pub struct Report {
    /// Entries up to here are in the tables.
    pub watermark: Seq,
    /// Entries that were written again.
    pub replayed: u64,
}

/// Refuses a database that is older than what the journal knows to be in it. Before anything is changed: neither is
/// migrated, nor taken for this process.
///
/// # Errors
/// [`Error::Older`] when it is; else when one of them cannot be read.
pub async fn compare(db: &PgPool, dir: &Path) -> Result<()> {
    let folder = dir.to_owned();
    // IMPORTANT: the journal first. Should another process still feed the database from it, the watermark only grows.
    let looked = tokio::task::spawn_blocking(move || journal::look(&folder)).await;
    let known = looked.map_err(|error| Error::Unavailable(error.to_string()))??;
    let Some(Known { id, confirmed }) = known.filter(|known| known.confirmed > 0) else { return Ok(()) };
    let has_watermarks: bool =
        sqlx::query_scalar("select to_regclass('journal_watermark') is not null").fetch_one(db).await?;
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

/// Takes the database for this process: every flush of an earlier owner fails from here on.
///
/// # Errors
/// [`Error::NotOwner`] when another process is the writer and alive; else when the database cannot answer.
pub async fn take_ownership(writes: &PgPool) -> Result<i64> {
    let taken = sqlx::query_scalar("update ownership set epoch = epoch + 1 returning epoch").fetch_one(writes).await;
    taken.map_err(|error| match error {
        // The database has just answered the migrations: what keeps us out is the other one's lock.
        sqlx::Error::PoolTimedOut => Error::NotOwner,
        error => error.into(),
    })
}

/// What a replay writes with.
pub struct Connections<'a> {
    /// The one writer's.
    pub writes: &'a PgPool,
    /// That of messages, which are written ahead.
    pub messages: &'a PgPool,
    /// The claim that the first is held under.
    pub claim: &'a Arc<WriterClaim>,
}

/// Replays the journal above the watermark.
///
/// # Errors
/// [`Error::ForeignJournal`] when the journal has fed another database, [`Error::Superseded`] when another process
/// has written to this one since, [`Error::Entry`] when a record cannot be read, or whatever the database says.
pub async fn replay(
    Connections { writes, messages, claim }: Connections<'_>,
    journal: &mut Recovered,
    epoch: i64,
    events: Option<Arc<EventNews>>,
) -> Result<Report> {
    let Watermark { seq: watermark, fed_in } = find_watermark(writes, journal, epoch).await?;
    let mark = FencingToken { claim: Claim::Epoch(epoch), journal: journal.id().to_owned() };
    let mut report = Report { watermark, replayed: 0 };
    let mut chunks = read_ahead(journal.read_from(watermark + 1)?);
    let (written, mut with_messages) = mpsc::channel(1);
    let (db, own) = (messages.clone(), mark.clone());
    let ahead = async move {
        let mut begun = None;
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk?;
            let ahead = match &mut begun {
                Some(ahead) => ahead,
                None => begun.insert(MessagesAhead::begin(db.clone(), &own, watermark, fed_in).await?),
            };
            let refused = ahead.write(&chunk.entries, chunk.last).await?;
            if written.send((chunk, refused)).await.is_err() {
                break;
            }
        }
        Ok::<_, Error>(())
    };
    // On a thread of its own: what the other connection is given takes a processor as well.
    let runtime = Handle::current();
    let ahead = tokio::task::spawn_blocking(move || runtime.block_on(ahead));
    let ahead = async { ahead.await.map_err(|error| Error::Unavailable(error.to_string()))? };
    let writer = Writer::new(writes.clone(), claim.clone(), mark, events);
    let rest = async {
        while let Some((Chunk { entries, last, records, .. }, refused)) = with_messages.recv().await {
            let changes = entries.iter().map(|(_, changes)| changes.as_slice());
            writer.write_after(&Batch::of(changes, writer.tells()), last, Some(&refused)).await?;
            report.watermark = last;
            report.replayed += records;
        }
        Ok::<_, Error>(())
    };
    tokio::try_join!(ahead, rest)?;
    ahead::end(&mut *writes.acquire().await?, journal.id(), epoch).await?;
    journal.confirm(report.watermark)?;
    Ok(report)
}

/// Changes of a transaction of the replay. Nobody waits for a list yet, and of a ticket that changed a hundred times
/// the last version is written once.
const CHUNK_CHANGES_MAX: usize = 50_000;

/// Bytes of the entries of such a transaction: five of them are in memory, one that is read, one that waits and one that is
/// written on each of the two connections.
const CHUNK_BYTES_MAX: usize = 32 << 20;

struct Chunk {
    entries: Vec<(Seq, Vec<Change>)>,
    changes: usize,
    last: Seq,
    records: u64,
}

/// Reads and decodes the next chunk while the one before is written.
fn read_ahead(records: Records) -> mpsc::Receiver<Result<Chunk>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        let mut records = records.peekable();
        while records.peek().is_some() {
            let chunk = next_chunk(&mut records);
            let is_last = chunk.is_err();
            if sender.blocking_send(chunk).is_err() || is_last {
                break;
            }
        }
    });
    receiver
}

fn next_chunk(records: &mut impl Iterator<Item = std::result::Result<(Seq, Vec<u8>), JournalError>>) -> Result<Chunk> {
    let mut chunk = Chunk { entries: Vec::new(), changes: 0, last: 0, records: 0 };
    let mut held = 0;
    for record in records {
        let (seq, bytes) = record?;
        held += bytes.len();
        let entry = decode(seq, &bytes)?;
        chunk.changes += entry.len();
        chunk.entries.push((seq, entry));
        chunk.last = seq;
        chunk.records += 1;
        if chunk.changes >= CHUNK_CHANGES_MAX || held >= CHUNK_BYTES_MAX {
            break;
        }
    }
    Ok(chunk)
}

/// Refuses to go on while the journal of an earlier run alone holds what is not in the tables: a process that is one of
/// many has no journal, and what was answered must not be left behind.
///
/// # Errors
/// [`Error::LeftBehind`] when it does; else when one of them cannot be read.
pub async fn refuse_left_behind(db: &PgPool, dir: &Path, journal: &Recovered) -> Result<()> {
    let seq = "select seq from journal_watermark where journal = $1";
    let watermark: Option<i64> = sqlx::query_scalar(seq).bind(journal.id()).fetch_optional(db).await?;
    let watermark = watermark.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0);
    if journal.last().is_some_and(|last| last > watermark) {
        return Err(Error::LeftBehind { dir: dir.to_owned() });
    }
    Ok(())
}

/// Begins to write without a journal.
///
/// # Errors
/// When the database cannot answer.
pub async fn begin_direct(db: &PgPool, epoch: i64) -> Result<FencingToken> {
    let begin = "insert into journal_watermark (journal, seq, epoch) values ($1, 0, $2)
        on conflict (journal) do update set seq = 0, epoch = excluded.epoch";
    sqlx::query(begin).bind(DIRECT).bind(epoch).execute(db).await?;
    Ok(FencingToken { claim: Claim::Epoch(epoch), journal: DIRECT.to_owned() })
}

/// How far the tables are, for a journal.
struct Watermark {
    seq: Seq,
    /// The epoch it last fed the database in.
    fed_in: i64,
}

/// How far the tables are, for this journal. `epoch` is the one this process has just taken.
async fn find_watermark(db: &PgPool, journal: &Recovered, epoch: i64) -> Result<Watermark> {
    let known: Option<(i64, i64)> = sqlx::query_as("select seq, epoch from journal_watermark where journal = $1")
        .bind(journal.id())
        .fetch_optional(db)
        .await?;
    let Some((seq, fed_in)) = known else {
        if journal.last().is_some() {
            return Err(Error::ForeignJournal { journal: journal.id().to_owned() });
        }
        sqlx::query("insert into journal_watermark (journal, seq, epoch) values ($1, 0, $2)")
            .bind(journal.id())
            .bind(epoch)
            .execute(db)
            .await?;
        return Ok(Watermark { seq: 0, fed_in: epoch });
    };
    let seq = u64::try_from(seq).unwrap_or(0);
    let has_more = journal.last().is_some_and(|last| last > seq);
    // A start that fails after it took its epoch writes nothing live: only epochs that fed the database count.
    let latest: i64 = sqlx::query_scalar("select coalesce(max(epoch), 0) from journal_watermark").fetch_one(db).await?;
    if has_more && latest != fed_in {
        return Err(Error::Superseded { journal: journal.id().to_owned() });
    }
    Ok(Watermark { seq, fed_in })
}
