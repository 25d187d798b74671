//! The lock of a schema's only writer, and the termination of a session that holds it for a process that no longer
//! exists.
//!
//! PostgreSQL keeps a session, and its lock, until it notices the end of its client. A connection that a firewall has
//! dropped, or a machine that has died, would keep the next writer out. So the session's name identifies its process's
//! data folder. A process that holds the lock of that folder knows that no other process writes for it, and ends the
//! session. It never ends the session of another folder: the server does so once its keepalives fail (`session.rs`).

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgExecutor, PgPool};

use crate::error::with_timeout;
use crate::lock_holder::LockHolder;
use crate::{Error, Result};

/// The key of the advisory lock of the only writer of the schema `public`: "hotline" in ASCII. The first release uses
/// it in any schema.
const PUBLIC_WRITER_LOCK: i64 = 0x68_6f_74_6c_69_6e_65;

/// How long a starting process waits for the end of another process's session: longer than PostgreSQL takes to end the
/// session of a machine that died (30 s), and short enough that a replacement serves within a minute.
const PREDECESSOR_TIME_MAX: Duration = Duration::from_secs(45);

/// Pause between attempts to take the lock.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Longest name of a session in PostgreSQL, in bytes.
const SESSION_NAME_MAX: usize = 63;

/// Bytes of a hash that identify a data folder.
const FOLDER_ID_BYTES: usize = 8;

/// The file with the machine's name (Linux).
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// A file whose content changes with every start of the machine (Linux).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// An id of a data folder on this machine, valid until the machine restarts. While this process holds the folder's
/// lock, a writer's session of the same folder belongs to this process, or to one that has ended. A copy of the folder
/// has another id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFolder(String);

impl DataFolder {
    /// Identifies the folder at this path. The caller must hold the folder's lock for as long as it uses the result.
    ///
    /// # Errors
    /// When the folder or the machine's boot id cannot be read.
    pub(crate) fn of(dir: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(dir)?;
        // Without the boot id, the folders of two machines could be confused.
        let boot = std::fs::read(BOOT_ID)?;
        let mut hasher = Sha256::new();
        hasher.update(boot);
        hasher.update(metadata.dev().to_be_bytes());
        hasher.update(metadata.ino().to_be_bytes());
        Ok(Self(hex::encode(&hasher.finalize()[..FOLDER_ID_BYTES])))
    }

    /// The beginning of the names of the sessions that write for this folder.
    fn prefix(&self) -> String {
        format!("hotline writer {} ", self.0)
    }

    /// Whether a session writes for this folder.
    fn is_written_by(&self, session: &LockHolder) -> bool {
        session.name.as_ref().is_some_and(|name| name.starts_with(&self.prefix()))
    }

    /// The name of this process's writing session. The process id and host in it are for people.
    pub(crate) fn session_name(&self) -> String {
        let mut name = format!("{}pid {} on {}", self.prefix(), std::process::id(), host_name());
        name.truncate(SESSION_NAME_MAX);
        name
    }
}

/// The name of this machine (Linux), without characters that are not ASCII.
fn host_name() -> String {
    let host = std::fs::read_to_string(HOST_NAME).unwrap_or_else(|_| "this machine".to_owned());
    host.chars().filter(char::is_ascii_graphic).collect()
}

/// This process's claim to be the database's single writer.
#[derive(Debug, Default)]
pub struct WriterClaim {
    /// The epoch taken at startup; 0 before it is taken.
    epoch: AtomicI64,
    is_superseded: AtomicBool,
    /// Process id of the writing session on the database server; 0 before the first session.
    session_pid: AtomicI32,
    /// Process id, on the database server, of the lock holder that was last logged; 0 if none.
    logged_pid: AtomicI32,
    /// `None` in a cluster, whose members share the lock.
    folder: Option<DataFolder>,
}

impl WriterClaim {
    /// A claim by the process that holds the lock of this folder.
    pub(crate) fn of(folder: DataFolder) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }

    /// The data folder whose lock this process holds; `None` in a cluster.
    pub(crate) fn folder(&self) -> Option<&DataFolder> {
        self.folder.as_ref()
    }

    /// Records the epoch this process has taken.
    pub fn set_epoch(&self, epoch: i64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Whether another process has taken a later epoch.
    pub fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Acquire)
    }

    /// Process id of the writing session on the database server; `None` before the first session.
    pub(crate) fn session_pid(&self) -> Option<i32> {
        Some(self.session_pid.load(Ordering::Acquire)).filter(|pid| *pid != 0)
    }

    /// Takes the lock for a new session, and ends an earlier session of the same folder. While another process has the
    /// lock, it retries until the calling pool's timeout: if it failed instead, the pool would log each attempt.
    pub(crate) async fn lock(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let key = lock_key(&mut *connection).await?;
        loop {
            let attempt = sqlx::query_as("select pg_try_advisory_lock($1), pg_backend_pid()").bind(key);
            if self.record_attempt(attempt.fetch_one(&mut *connection).await?) {
                return Ok(());
            }
            if self.was_taken_over(connection).await? {
                self.is_superseded.store(true, Ordering::Release);
            } else if let Some(holder) = find_holder(connection, key).await? {
                self.end_or_log(connection, &holder).await?;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// As [`Self::lock`], for cluster members.
    pub(crate) async fn lock_shared(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let key = lock_key(&mut *connection).await?;
        loop {
            let attempt = sqlx::query_as("select pg_try_advisory_lock_shared($1), pg_backend_pid()").bind(key);
            if self.record_attempt(attempt.fetch_one(&mut *connection).await?) {
                return Ok(());
            }
            if let Some(holder) = find_holder(connection, key).await? {
                self.log_holder(&holder);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Records the session if the attempt has taken the lock. Returns `is_locked`.
    fn record_attempt(&self, (is_locked, session_pid): (bool, i32)) -> bool {
        if is_locked {
            self.session_pid.store(session_pid, Ordering::Release);
            self.logged_pid.store(0, Ordering::Release);
        }
        is_locked
    }

    /// Whether another process took over while this one was disconnected. Its session must not be ended, even if it
    /// writes for this folder.
    async fn was_taken_over(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        let claimed = self.epoch.load(Ordering::Acquire);
        if claimed == 0 {
            return Ok(false);
        }
        let epoch: i64 = sqlx::query_scalar("select epoch from ownership").fetch_one(connection).await?;
        Ok(epoch != claimed)
    }

    async fn end_or_log(&self, connection: &mut PgConnection, holder: &LockHolder) -> sqlx::Result<()> {
        match self.folder.as_ref().filter(|folder| folder.is_written_by(holder)) {
            Some(_) => end_session(connection, holder).await,
            None => {
                self.log_holder(holder);
                Ok(())
            }
        }
    }

    /// Logs a holder once, not at each attempt.
    fn log_holder(&self, holder: &LockHolder) {
        if self.logged_pid.swap(holder.pid, Ordering::AcqRel) != holder.pid {
            tracing::warn!(%holder, "another session is the writer of this database; waiting for its end");
        }
    }
}

/// The key of the writer's lock for the session's current schema, which has the tables.
async fn lock_key<'c>(db: impl PgExecutor<'c>) -> sqlx::Result<i64> {
    let key = "select case current_schema() when 'public' then $1
        else hashtextextended('writer of ' || current_schema(), $1) end";
    sqlx::query_scalar(key).bind(PUBLIC_WRITER_LOCK).fetch_one(db).await
}

/// The earliest session, other than this one, that holds the lock with this key.
async fn find_holder(connection: &mut PgConnection, key: i64) -> sqlx::Result<Option<LockHolder>> {
    sqlx::query_as(
        "select l.pid, a.application_name as name, host(a.client_addr) as address, a.backend_start as since
         from pg_locks l left join pg_stat_activity a on a.pid = l.pid
         where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.pid <> pg_backend_pid()
           and l.database = (select oid from pg_database where datname = current_database())
           and l.classid::bigint = ($1 >> 32) & 4294967295 and l.objid::bigint = $1 & 4294967295
         order by a.backend_start limit 1",
    )
    .bind(key)
    .fetch_optional(connection)
    .await
}

async fn end_session(connection: &mut PgConnection, holder: &LockHolder) -> sqlx::Result<()> {
    let end = "select pg_terminate_backend($1)";
    let is_ended: bool = sqlx::query_scalar(end).bind(holder.pid).fetch_one(connection).await?;
    if is_ended {
        tracing::info!(%holder, "ended a session that wrote for this data folder and lost its connection");
    }
    Ok(())
}

/// Waits until no other process is the database's writer, and ends a session that wrote for this folder. It does not
/// keep the lock: [`crate::pool::connect_writer`] takes it, and this only fails early with a clear error. `folder` is
/// `None` for cluster members, which share the lock.
///
/// # Errors
/// [`Error::Held`] when another process stays the writer.
pub(crate) async fn wait_for_writer_exit(db: &PgPool, folder: Option<&DataFolder>) -> Result<()> {
    let attempt = match folder {
        Some(_) => "select pg_try_advisory_xact_lock($1)",
        None => "select pg_try_advisory_xact_lock_shared($1)",
    };
    let key = with_timeout(lock_key(db)).await?;
    let started_at = tokio::time::Instant::now();
    let mut is_logged = false;
    loop {
        // Held only for the transaction of this statement.
        let is_free: bool = with_timeout(sqlx::query_scalar(attempt).bind(key).fetch_one(db)).await?;
        if is_free {
            return Ok(());
        }
        let mut connection = with_timeout(db.acquire()).await?;
        if let Some(holder) = with_timeout(find_holder(&mut connection, key)).await? {
            if folder.is_some_and(|folder| folder.is_written_by(&holder)) {
                with_timeout(end_session(&mut connection, &holder)).await?;
            } else if started_at.elapsed() > PREDECESSOR_TIME_MAX {
                return Err(Error::Held(holder));
            } else if !is_logged {
                let wait_s = PREDECESSOR_TIME_MAX.as_secs();
                tracing::warn!(%holder, wait_s, "another Hotline process serves this database; waiting for its end");
                is_logged = true;
            }
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Keeps every process from becoming the writer until the transaction of a command ends.
///
/// # Errors
/// [`Error::NotOwner`] when a process is the writer; other errors when the database cannot answer.
pub(crate) async fn lock_for_command(db: &mut PgConnection) -> Result<()> {
    let key = with_timeout(lock_key(&mut *db)).await?;
    let lock = sqlx::query_scalar("select pg_try_advisory_xact_lock($1)").bind(key);
    let is_free: bool = with_timeout(lock.fetch_one(db)).await?;
    if is_free { Ok(()) } else { Err(Error::NotOwner) }
}

/// Whether a process that may write serves this database.
///
/// # Errors
/// When the database cannot answer.
pub async fn is_served(db: &PgPool) -> Result<bool> {
    let key = with_timeout(lock_key(db)).await?;
    // Held only for the transaction of this statement.
    let attempt = sqlx::query_scalar("select pg_try_advisory_xact_lock($1)").bind(key);
    let is_free: bool = with_timeout(attempt.fetch_one(db)).await?;
    Ok(!is_free)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn holder_named(name: &str) -> LockHolder {
        LockHolder { pid: 7, name: Some(name.to_owned()), address: None, since: None }
    }

    #[test]
    fn a_session_writes_for_the_folder_that_its_name_begins_with() {
        let (one, other) = (DataFolder("00aa".to_owned()), DataFolder("00ab".to_owned()));
        let holder = holder_named(&one.session_name());
        assert!(one.is_written_by(&holder) && !other.is_written_by(&holder));
        assert!(!one.is_written_by(&holder_named("hotline")) && !one.is_written_by(&holder_named("hotline 00aa")));
    }

    #[test]
    fn a_session_name_is_short_enough_for_postgresql_and_a_holder_is_described() {
        let folder = DataFolder("0123456789abcdef".to_owned());
        assert!(folder.session_name().len() <= SESSION_NAME_MAX);
        let since = DateTime::from_timestamp(1_800_000_000, 0);
        let holder = LockHolder { pid: 7, name: Some("hotline".into()), address: Some("192.0.2.7".into()), since };
        let text = "PostgreSQL session 7 (hotline) from 192.0.2.7, connected since 2027-01-15T08:00:00Z";
        assert_eq!(holder.to_string(), text);
    }

    #[test]
    fn a_copy_of_a_folder_has_another_id() {
        let (one, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let folder_of = |dir: &tempfile::TempDir| DataFolder::of(dir.path()).expect("it can be read");
        assert_eq!(folder_of(&one), folder_of(&one));
        assert_ne!(folder_of(&one), folder_of(&copy));
    }
}
