//! What happens before anything is served: the journal's entries above the watermark go into the tables.

use sqlx::PgPool;

use crate::change::decode;
use crate::journal::{Recovered, Seq};
use crate::persister::{BATCH_CHANGES_MAX, Batch, Mark, Writer};
use crate::{Error, Result};

/// What recovery found and did.
#[derive(Debug)]
pub struct Report {
    /// Entries up to here are in the tables.
    pub watermark: Seq,
    /// Entries that were written again.
    pub replayed: u64,
}

/// Takes the database for this process: every flush of an earlier owner fails from here on.
///
/// # Errors
/// When the database cannot answer.
pub async fn take_ownership(db: &PgPool) -> Result<i64> {
    Ok(sqlx::query_scalar("update ownership set epoch = epoch + 1 returning epoch").fetch_one(db).await?)
}

/// Replays the journal above the watermark.
///
/// # Errors
/// [`Error::ForeignJournal`] when the journal has fed another database, [`Error::Entry`] when a record cannot
/// be read, or whatever the database says.
pub async fn replay(db: &PgPool, journal: &Recovered, epoch: i64) -> Result<Report> {
    let id = journal.id().to_owned();
    let watermark = find_watermark(db, journal).await?;
    let writer = Writer::new(db.clone(), Mark { epoch, journal: Some(id) });
    let mut report = Report { watermark, replayed: 0 };
    let mut chunk = Vec::new();
    for record in journal.read_from(watermark + 1)? {
        let (seq, bytes) = record?;
        chunk.extend(decode(seq, &bytes)?);
        report.watermark = seq;
        report.replayed += 1;
        if chunk.len() >= BATCH_CHANGES_MAX {
            writer.write(&Batch::of(chunk.iter()), seq).await?;
            chunk.clear();
        }
    }
    if !chunk.is_empty() {
        writer.write(&Batch::of(chunk.iter()), report.watermark).await?;
    }
    Ok(report)
}

async fn find_watermark(db: &PgPool, journal: &Recovered) -> Result<Seq> {
    let known: Option<i64> = sqlx::query_scalar("select seq from journal_watermark where journal = $1")
        .bind(journal.id())
        .fetch_optional(db)
        .await?;
    match known {
        Some(seq) => Ok(u64::try_from(seq).unwrap_or(0)),
        None if journal.last().is_some() => Err(Error::ForeignJournal { journal: journal.id().to_owned() }),
        None => {
            sqlx::query("insert into journal_watermark (journal, seq) values ($1, 0)")
                .bind(journal.id())
                .execute(db)
                .await?;
            Ok(0)
        }
    }
}
