//! The durable half as one piece: opened once, used by every actor and handler, closed last.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::task::JoinHandle;

use crate::change_log::pass_on;
use crate::id_blocks::IdBlocks;
use crate::journal::Recovered;
use crate::persister::{self, FlushQueue, Mark, Writer};
use crate::pool::WriterClaim;
use crate::{ChangeLog, Durability, Error, Readers, Result, journal, pool, recovery};

/// How the store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Which database.
    pub database: PgConnectOptions,
    /// Where the journal lies.
    pub journal_dir: PathBuf,
    /// The journal's bounds.
    pub journal: journal::Options,
    /// When a change counts as kept.
    pub durability: Durability,
}

/// Everything below the actors.
pub struct Store {
    /// Connections for plain resources and reads.
    pub db: PgPool,
    /// Connections for the reads that have one plan.
    pub readers: Readers,
    /// Where live changes go.
    pub log: ChangeLog,
    /// Ids of live rows.
    pub ids: IdBlocks,
    /// What recovery did at the start.
    pub recovered: recovery::Report,
    /// The persister's connection. Unlike those of `db` it lives on the runtime the store was opened on, which is
    /// there to the end.
    writes: PgPool,
    persister: Mutex<Option<JoinHandle<()>>>,
    refiller: JoinHandle<()>,
}

/// How often the id blocks are looked at: far more often than a half block can be used up.
const REFILL_EVERY: Duration = Duration::from_secs(20);

impl Store {
    /// Migrates, recovers, and starts the journal and the persister.
    ///
    /// `on_failure` is called when nothing can be made durable any more: the journal's disk failed, or another
    /// process has become the database's writer. Memory is ahead of disk then, and the process has to stop.
    ///
    /// # Errors
    /// When the database or the journal cannot be opened or do not belong together.
    pub async fn open(
        options: StoreOptions,
        on_failure: impl Fn(String) + Clone + Send + 'static,
    ) -> Result<Arc<Self>> {
        let db = pool::connect(options.database.clone());
        pool::migrate(&db).await?;
        let readers = Readers::new(options.database.clone());
        let claim = Arc::new(WriterClaim::default());
        let writes = pool::connect_writer(options.database, claim.clone());
        let epoch = recovery::take_ownership(&writes).await?;

        // Whatever the setting is now: what an earlier run left in the journal was answered.
        let journal = recover(&options.journal_dir, options.journal).await?;
        let recovered = recovery::replay(&writes, &claim, &journal, epoch).await?;
        let ids = IdBlocks::reserve(&db, epoch).await?;
        let (log, mark) = match options.durability {
            Durability::Journal => {
                let mark = Mark { epoch, journal: Some(journal.id().to_owned()) };
                (start_journal(journal, recovered.watermark, on_failure.clone())?, mark)
            }
            durability => {
                let log = ChangeLog::direct(durability, Arc::new(FlushQueue::new(0, false)));
                (log, Mark { epoch, journal: None })
            }
        };
        let persister = persister::start(log.clone(), Writer::new(writes.clone(), claim, mark), move |error| {
            on_failure(format!("the persister cannot go on: {error}"));
        });
        let refiller = tokio::spawn(keep_refilled(ids.clone(), db.clone()));
        let persister = Mutex::new(Some(persister));
        Ok(Arc::new(Self { db, readers, log, ids, recovered, writes, persister, refiller }))
    }

    /// Writes everything out and ends: the journal first, then the persister. Nothing may be appended any more.
    ///
    /// # Errors
    /// When the database cannot be reached; the journal keeps what is not flushed.
    pub async fn close(&self) -> Result<()> {
        self.refiller.abort();
        if let Some(journal) = self.log.journal().cloned() {
            let closed = tokio::task::spawn_blocking(move || journal.close()).await;
            closed.map_err(|error| Error::Unavailable(error.to_string()))??;
        }
        self.log.queue().close();
        let persister = self.persister.lock().ok().and_then(|mut persister| persister.take());
        if let Some(persister) = persister
            && tokio::time::timeout(CLOSE_TIME_MAX, persister).await.is_err()
        {
            return Err(Error::Unavailable("the database does not take the last changes".to_owned()));
        }
        self.ids.give_back(&self.writes).await?;
        self.writes.close().await;
        self.readers.close();
        // What a request's thread has opened is closed with it.
        if tokio::time::timeout(POOL_CLOSE_TIME_MAX, self.db.close()).await.is_err() {
            tracing::debug!("some connections are left to the end of the process");
        }
        Ok(())
    }
}

/// How long a stop waits for idle connections to say good-bye.
const POOL_CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

/// How long a stop waits for the database. What is not flushed by then is in the journal.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(30);

async fn recover(dir: &Path, options: journal::Options) -> Result<Recovered> {
    let dir = dir.to_owned();
    let opened = move || {
        // It holds what people say to each other: nobody else's to read.
        if !dir.exists() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
            made.map_err(|error| Error::Unavailable(format!("create {}: {error}", dir.display())))?;
        }
        Ok::<_, Error>(journal::open(&dir, options)?)
    };
    let recovered =
        tokio::task::spawn_blocking(opened).await.map_err(|error| Error::Unavailable(error.to_string()))??;
    if let Some(cut) = recovered.cut() {
        tracing::warn!(?cut, "the journal's last write was torn by a crash; it had not been answered, and is cut");
    }
    Ok(recovered)
}

fn start_journal(
    journal: Recovered,
    watermark: journal::Seq,
    on_failure: impl Fn(String) + Send + 'static,
) -> Result<ChangeLog> {
    let queue = Arc::new(FlushQueue::new(watermark, true));
    let sink = queue.clone();
    let journal = journal.start(
        watermark,
        move |synced| pass_on(&sink, synced),
        move |error| on_failure(format!("the journal cannot be written: {error}")),
    )?;
    Ok(ChangeLog::through_journal(journal, queue))
}

async fn keep_refilled(ids: IdBlocks, db: PgPool) {
    let mut clock = tokio::time::interval(REFILL_EVERY);
    loop {
        clock.tick().await;
        if let Err(error) = ids.refill(&db).await {
            tracing::debug!(%error, "id blocks are not refilled now");
        }
    }
}
