//! The stored files for `hotline export` and `hotline import`, which run in a process of their own.

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::media::{FileKey, MediaId};
use tokio::io::AsyncRead;

use super::disk::Disk;
use super::error::{OpenError, ReadError};
use super::storage::Storage;
use super::{Options, Unavailable};

/// The stored files, without those that are being uploaded.
pub struct FileArchive(Storage);

impl FileArchive {
    /// Opens the store of these settings.
    ///
    /// # Errors
    /// When the folder or the bucket cannot be used.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        if options.store.is_none() {
            std::fs::create_dir_all(&options.folder)?;
        }
        Ok(Self(Storage::open(&options.folder, options.store.as_ref(), Disk::default())?))
    }

    /// The content of a file.
    ///
    /// # Errors
    /// When it does not exist, or the store is unavailable.
    pub async fn read(
        &self,
        company: CompanyId,
        id: &MediaId,
    ) -> Result<BoxStream<'static, Result<Bytes, ReadError>>, ReadError> {
        Ok(self.0.get(company, id, None).await?.into_stream().map_err(ReadError::from).boxed())
    }

    /// Stores a file under its id, with at most one part of it in memory; each part is passed to `on_part`.
    ///
    /// # Errors
    /// When the content cannot be read, or the store is unavailable.
    pub async fn write(
        &self,
        company: CompanyId,
        id: &MediaId,
        content: impl AsyncRead + Unpin,
        on_part: impl FnMut(&[u8]),
    ) -> Result<(), Unavailable> {
        self.0.write(company, id, content, on_part).await.map_err(Unavailable::Store)
    }

    /// Removes files; missing ones are not an error.
    ///
    /// # Errors
    /// When the store is unavailable.
    pub async fn remove(&self, files: &[FileKey]) -> Result<(), Unavailable> {
        self.0.remove(files).await.map_err(Unavailable::Store)
    }
}
