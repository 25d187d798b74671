//! Errors of the journal.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::Seq;

/// Why the journal could not be opened, read or closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A file operation failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The attempted operation, as a bare verb phrase.
        action: &'static str,
        /// The file or directory of the operation.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process has locked this directory.
    #[error("journal directory `{}` is in use by another process", dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// A file does not contain what was written. Nothing was changed on disk.
    #[error("journal file `{}` is damaged at byte {offset}: {reason}", file.display())]
    Damaged {
        /// The damaged file.
        file: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What was found there.
        reason: String,
    },
    /// Records between the database's watermark and the first record of the journal exist in neither.
    #[error(
        "the journal starts at entry {first}, but the database contains entries only up to {watermark}; it may be another database"
    )]
    Gap {
        /// The first sequence the journal has.
        first: Seq,
        /// The last sequence the database has.
        watermark: Seq,
    },
    /// The requested records were released and no longer exist.
    #[error("entries from {from} were removed; the journal starts at entry {first}")]
    Released {
        /// The requested sequence.
        from: Seq,
        /// The first sequence still available.
        first: Seq,
    },
    /// The options contradict each other.
    #[error("journal options: {reason}")]
    Options {
        /// Which option is wrong, and why.
        reason: &'static str,
    },
    /// An earlier write or sync failed, so queued records are not on disk.
    #[error("the journal accepts no changes after an earlier failed write")]
    Poisoned,
    /// The disk stayed full until the journal closed, so queued records are not on disk.
    #[error("disk is full: {records} journal records were not written")]
    Unwritten {
        /// Number of records that were not written.
        records: usize,
    },
}

impl JournalError {
    /// Whether the error is a shortage of open files, memory or disk space: a retry can succeed once it is over.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_shortage(source))
    }

    /// For `map_err`: adds the operation and the file to the error.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    pub(super) fn damaged(file: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { file: file.to_owned(), offset, reason: reason.into() }
    }
}

/// Why a reservation was refused. Nothing was changed; the caller answers with `503`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The writer is behind: too many records or bytes are queued.
    #[error("journal queue is full")]
    QueueFull,
    /// The journal or its disk is full until records are released.
    #[error("journal is full")]
    JournalFull,
    /// A write or sync failed; only a restart recovers.
    #[error("the journal accepts no changes after a failed write")]
    Poisoned,
    /// The journal was closed.
    #[error("journal is closed")]
    Closed,
}

/// A record above [`RECORD_BYTES_MAX`](super::RECORD_BYTES_MAX); nothing was enqueued.
pub struct TooLarge<T> {
    /// The item of [`append`](super::JournalReservation::append), returned to the caller.
    pub item: T,
    /// The size of the refused record.
    pub bytes: usize,
}

impl<T> fmt::Debug for TooLarge<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TooLarge").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for TooLarge<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "journal record of {} bytes is above the limit of {}", self.bytes, super::RECORD_BYTES_MAX)
    }
}

impl<T> std::error::Error for TooLarge<T> {}

/// Whether the error is a shortage of disk space, open files (per process or in total) or memory: a retry can succeed
/// once it is over.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        || is_short_of_files(error)
        || error.raw_os_error() == Some(Errno::ENOMEM as i32)
}

/// Whether the limit of open files (per process or in total) is reached.
pub(super) fn is_short_of_files(error: &io::Error) -> bool {
    [Errno::EMFILE, Errno::ENFILE].into_iter().any(|number| error.raw_os_error() == Some(number as i32))
}
