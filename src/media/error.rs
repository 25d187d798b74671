//! What can go wrong with a file.

use std::io;

/// Why the store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder cannot be used.
    #[error("the media folder: {0}")]
    Folder(#[from] io::Error),
    /// The store's address or its credentials are not accepted.
    #[error("the media store: {0}")]
    Store(String),
    /// The database cannot answer.
    #[error(transparent)]
    Database(#[from] hotline_persistence::Error),
}

/// Why a file is not taken: it is the file's fault, and always will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It has no bytes.
    #[error("the file is empty")]
    Empty,
    /// It has more bytes than are taken.
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// Nothing tells what it is.
    #[error("the type of the file cannot be determined: its name has no extension, and its part no Content-Type")]
    TypeUnknown,
    /// It is not what it is said to be.
    #[error("the content of the file contradicts its declared type")]
    TypeMismatch,
}

/// Why a file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError<E> {
    /// The stream it came from failed.
    #[error("the file broke off: {0}")]
    Source(E),
    /// The file is not taken.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Nothing can be stored now.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Nothing can be stored now; later it may work.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// What keeps files does not take it.
    #[error("the file cannot be stored now: {0}")]
    Store(String),
    /// The space that is left is kept for what is more important.
    #[error("the file cannot be stored now: the disk is nearly full")]
    DiskFull,
}

/// A file that is not there to be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none.
    #[error("there is no such file")]
    NotFound,
    /// Nothing can be read now; later it may work.
    #[error("the file cannot be read now: {0}")]
    Unavailable(String),
}
