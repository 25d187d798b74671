//! Errors of files.

use std::io;

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder is not usable.
    #[error("could not open the media folder: {0}")]
    Folder(#[from] io::Error),
    /// The store's URL or its credentials are invalid.
    #[error("could not open the media store: {0}")]
    Store(String),
    /// The database did not respond.
    #[error(transparent)]
    Database(#[from] hotline_persistence::Error),
}

/// Why a file is refused. The cause is the file itself, so a retry does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is empty.
    #[error("the file is empty")]
    Empty,
    /// It exceeds the maximum size.
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// Its type cannot be determined.
    #[error("could not determine the file's type: its name has no extension and its part no Content-Type")]
    TypeUnknown,
    /// Its content does not match the declared type.
    #[error("the file's content does not match its declared type")]
    TypeMismatch,
}

/// Why a file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError<E> {
    /// The source stream failed.
    #[error("the file is incomplete: {0}")]
    Source(E),
    /// The file was refused.
    #[error(transparent)]
    Refused(#[from] FileError),
    /// The store is unavailable.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Nothing can be stored at present; a retry may succeed.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// The store reported an error.
    #[error("could not store the file: {0}")]
    Store(String),
    /// The free disk space is below its configured minimum.
    #[error("could not store the file: the disk is nearly full")]
    DiskFull,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It does not exist.
    #[error("no such file")]
    NotFound,
    /// The store is unavailable; a retry may succeed.
    #[error("could not read the file: {0}")]
    Unavailable(String),
}
