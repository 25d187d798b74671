//! Incoming files are written to a folder on disk, and are never completely in memory. At startup, the files that an
//! earlier process left in the folder are removed.

use std::fs::{DirEntry, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use hotline_persistence::CompanyId;
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::disk::Disk;
use super::space::{DiskSpace, NoDiskSpace};

/// Permissions of the folders.
const PRIVATE: u32 = 0o700;

/// Bytes per read from disk: large enough to limit the number of reads, small enough that 50 readers use only 3 MiB.
const READ_BYTES: usize = 64 * 1024;

/// Bytes per write to disk: small enough that the company's next file waits only briefly.
const WRITE_BYTES: usize = 128 * 1024;

/// Prefix of every file name in the folder.
const NAME_PREFIX: &str = "arriving-";

/// Disk space is reserved in steps of at least this size while a file arrives, because its size is not known yet.
const SPACE_STEP_BYTES: u64 = 256 * 1024;

/// How long after its last write a file in a shared folder is removed: another process may still be receiving or
/// storing a younger one. No request takes this long.
const LEFTOVER_AGE_MIN: Duration = Duration::from_secs(24 * 3600);

/// The folder of incoming files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Incoming {
    folder: Arc<Path>,
    space: DiskSpace,
    disk: Disk,
}

/// Why a stream was not stored completely.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpoolError<E> {
    /// The source stream failed.
    Source(E),
    /// It exceeds the maximum length.
    TooLong,
    /// It could not be written.
    Disk(String),
    /// There is not enough disk space.
    Full,
}

/// A file on disk; deleted when this is dropped.
#[derive(Debug)]
pub(super) struct SpooledFile {
    pub(super) path: TempPath,
    pub(super) file: File,
    pub(super) size: u64,
    /// The beginning of its content.
    pub(super) head: Bytes,
}

impl Incoming {
    /// Opens the subfolder `incoming` of `folder`, and removes the files that an earlier process left there: all of
    /// them, or only old ones if other processes use the folder too (`is_shared`).
    pub(super) fn open(folder: &Path, space: DiskSpace, disk: Disk, is_shared: bool) -> io::Result<Self> {
        let folder = folder.join("incoming");
        // It contains people's private files, so no other user of the machine may read it.
        std::fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(&folder)?;
        // Set in any case: the folder or its parent may exist with other permissions, as in a restored backup.
        for folder in folder.ancestors().take(2) {
            std::fs::set_permissions(folder, Permissions::from_mode(PRIVATE))?;
        }
        for entry in std::fs::read_dir(&folder)? {
            match remove_leftover(&entry?, is_shared) {
                // Another process has removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => outcome?,
            }
        }
        Ok(Self { folder: folder.into(), space, disk })
    }

    /// Writes a company's stream to a file of at most `bytes_max`, and keeps its first `head_bytes` in memory.
    pub(super) async fn receive<E>(
        &self,
        company: CompanyId,
        stream: impl Stream<Item = Result<Bytes, E>>,
        bytes_max: u64,
        head_bytes: usize,
    ) -> Result<SpooledFile, SpoolError<E>> {
        let folder = self.folder.clone();
        let create = move || tempfile::Builder::new().prefix(NAME_PREFIX).tempfile_in(folder);
        let (file, path) = self.disk.run(company, create).await.map_err(SpoolError::Disk)?.into_parts();
        let mut head = BytesMut::new();
        let (file, size) = self
            .copy(company, stream, file, bytes_max, |chunk| {
                let taken_bytes = head_bytes.saturating_sub(head.len()).min(chunk.len());
                head.extend_from_slice(&chunk[..taken_bytes]);
            })
            .await?;
        Ok(SpooledFile { path, file, size, head: head.freeze() })
    }

    /// Spools a company's stream of at most `bytes_max` to disk, and replays it from the beginning. Every chunk is
    /// passed to `on_chunk`. The file has no name, so nothing remains, even if the process is killed.
    pub(crate) async fn spool<E>(
        &self,
        company: CompanyId,
        stream: impl Stream<Item = Result<Bytes, E>>,
        bytes_max: u64,
        on_chunk: impl FnMut(&Bytes),
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, SpoolError<E>> {
        let folder = self.folder.clone();
        let file = self.disk.run(company, move || tempfile::tempfile_in(folder)).await.map_err(SpoolError::Disk)?;
        let (mut file, _) = self.copy(company, stream, file, bytes_max, on_chunk).await?;
        rewind(&mut file).await.map_err(|error| SpoolError::Disk(error.to_string()))?;
        Ok(chunks(file).boxed())
    }

    /// Copies a stream to the file, and returns the file and its size.
    async fn copy<E>(
        &self,
        company: CompanyId,
        stream: impl Stream<Item = Result<Bytes, E>>,
        mut file: std::fs::File,
        bytes_max: u64,
        mut on_chunk: impl FnMut(&Bytes),
    ) -> Result<(File, u64), SpoolError<E>> {
        let mut stream = pin!(stream);
        let (mut size, mut reserved) = (0, 0);
        let mut buffer = Vec::new();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(SpoolError::Source)?;
            size += chunk.len() as u64;
            if size > bytes_max {
                return Err(SpoolError::TooLong);
            }
            if size > reserved {
                let step = (size - reserved).max(SPACE_STEP_BYTES);
                self.space.reserve(step).await.map_err(|NoDiskSpace| SpoolError::Full)?;
                reserved += step;
            }
            on_chunk(&chunk);
            buffer.extend_from_slice(&chunk);
            if buffer.len() >= WRITE_BYTES {
                (file, buffer) = self.write(company, file, buffer).await?;
            }
        }
        if !buffer.is_empty() {
            (file, _) = self.write(company, file, buffer).await?;
        }
        Ok((File::from_std(file), size))
    }

    /// Writes the buffer; returns the file and the empty buffer.
    async fn write<E>(
        &self,
        company: CompanyId,
        mut file: std::fs::File,
        mut buffer: Vec<u8>,
    ) -> Result<(std::fs::File, Vec<u8>), SpoolError<E>> {
        let write = move || {
            file.write_all(&buffer)?;
            buffer.clear();
            Ok((file, buffer))
        };
        self.disk.run(company, write).await.map_err(SpoolError::Disk)
    }
}

/// Removes a file that an earlier process has left; in a shared folder, only if it is old.
fn remove_leftover(entry: &DirEntry, is_shared: bool) -> io::Result<()> {
    if is_shared {
        let is_old = entry.metadata()?.modified()?.elapsed().is_ok_and(|age| age >= LEFTOVER_AGE_MIN);
        if !is_old {
            return Ok(());
        }
    }
    std::fs::remove_file(entry.path())
}

/// The chunks of a file from its current position.
fn chunks(file: File) -> impl Stream<Item = io::Result<Bytes>> {
    futures_util::stream::try_unfold(file, |mut file| async move {
        let mut chunk = BytesMut::with_capacity(READ_BYTES);
        let read = file.read_buf(&mut chunk).await?;
        Ok((read > 0).then(|| (chunk.freeze(), file)))
    })
}

pub(super) async fn rewind(file: &mut File) -> io::Result<()> {
    file.rewind().await.map(drop)
}

impl SpooledFile {
    /// The file's name within the folder.
    pub(super) fn name(&self) -> Option<PathBuf> {
        self.path.file_name().map(PathBuf::from)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn opening_keeps_new_files_in_a_shared_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |is_shared| {
            Incoming::open(folder.path(), DiskSpace::of(Vec::new(), 0), Disk::default(), is_shared).expect("opened")
        };
        let incoming = open(true);
        let [new, old] = ["arriving-new", "arriving-old"].map(|name| incoming.folder.join(name));
        std::fs::write(&new, "half").expect("written");
        let file = std::fs::File::create(&old).expect("created");
        file.set_modified(SystemTime::now() - 2 * LEFTOVER_AGE_MIN).expect("aged");
        open(true);
        assert!(new.exists() && !old.exists());
        open(false);
        assert!(!new.exists());
    }
}
