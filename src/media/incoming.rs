//! Where files are while they come in: on disk, never whole in memory, in a folder that is emptied at every start.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::task::spawn_blocking;

use super::space::{Full, Space};

/// The mode of the folders of files.
const PRIVATE: u32 = 0o700;

/// Bytes that are read from disk at once: enough that the disk is not asked too often, and 50 readers take 3 MiB.
const READ_BYTES: usize = 64 * 1024;

/// What every name in the folder begins with.
const NAME_PREFIX: &str = "arriving-";

/// Bytes that are asked of the disk at once: what a file that is refused early may have reached below the floor.
const SPACE_STEP_BYTES: u64 = 256 * 1024;

/// The folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Incoming {
    folder: Arc<Path>,
    space: Space,
}

/// Why a stream was not taken whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut<E> {
    /// The stream itself failed.
    Source(E),
    /// It is longer than it may be.
    TooLong,
    /// It could not be written here.
    Disk(String),
    /// There is not enough space left for it.
    Full,
}

/// A file that came in; gone again when this is dropped.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) path: TempPath,
    pub(super) file: File,
    pub(super) size: u64,
    /// How it begins.
    pub(super) head: Bytes,
}

impl Incoming {
    /// The folder under this one, empty. Whoever calls is the only process that uses it.
    pub(super) fn open(folder: &Path, space: Space) -> io::Result<Self> {
        let folder = folder.join("incoming");
        // It holds what people send to each other: nobody else's to read.
        std::fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(&folder)?;
        // Also where the umask, or whoever made it, had other ideas.
        for folder in folder.ancestors().take(2) {
            std::fs::set_permissions(folder, Permissions::from_mode(PRIVATE))?;
        }
        for left in std::fs::read_dir(&folder)? {
            std::fs::remove_file(left?.path())?;
        }
        Ok(Self { folder: folder.into(), space })
    }

    /// Writes a stream to a file of at most `bytes_max`, whose first `head_bytes` are kept.
    pub(super) async fn take<E>(
        &self,
        stream: impl Stream<Item = Result<Bytes, E>>,
        bytes_max: u64,
        head_bytes: usize,
    ) -> Result<Arrived, Cut<E>> {
        let folder = self.folder.clone();
        let made = blocking(move || tempfile::Builder::new().prefix(NAME_PREFIX).tempfile_in(folder)).await?;
        let (file, path) = made.into_parts();
        let mut file = File::from_std(file);
        let mut head = BytesMut::new();
        let size = copy(stream, &mut file, &self.space, bytes_max, |chunk| {
            let missing = head_bytes.saturating_sub(head.len()).min(chunk.len());
            head.extend_from_slice(&chunk[..missing]);
        })
        .await?;
        Ok(Arrived { path, file, size, head: head.freeze() })
    }

    /// Lays a stream of at most `bytes_max` aside, and answers it from the beginning. `see` is shown every chunk. Nothing
    /// of it is left behind, not even by a process that is killed: the file has no name.
    pub(crate) async fn lay_aside<E>(
        &self,
        stream: impl Stream<Item = Result<Bytes, E>>,
        bytes_max: u64,
        see: impl FnMut(&Bytes),
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, Cut<E>> {
        let folder = self.folder.clone();
        let mut file = File::from_std(blocking(move || tempfile::tempfile_in(folder)).await?);
        copy(stream, &mut file, &self.space, bytes_max, see).await?;
        rewind(&mut file).await.map_err(disk)?;
        Ok(chunks(file).boxed())
    }
}

async fn copy<E>(
    stream: impl Stream<Item = Result<Bytes, E>>,
    file: &mut File,
    space: &Space,
    bytes_max: u64,
    mut see: impl FnMut(&Bytes),
) -> Result<u64, Cut<E>> {
    let mut stream = pin!(stream);
    let (mut size, mut granted) = (0, 0);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(Cut::Source)?;
        size += chunk.len() as u64;
        if size > bytes_max {
            return Err(Cut::TooLong);
        }
        if size > granted {
            let step = (size - granted).max(SPACE_STEP_BYTES);
            space.take(step).await.map_err(|Full| Cut::Full)?;
            granted += step;
        }
        see(&chunk);
        file.write_all(&chunk).await.map_err(disk)?;
    }
    // Until then the last write may be on its way, and its error unseen.
    file.flush().await.map_err(disk)?;
    Ok(size)
}

/// The chunks of a file from where it is.
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

async fn blocking<T: Send + 'static, E>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Cut<E>> {
    spawn_blocking(work).await.map_err(|error| Cut::Disk(error.to_string()))?.map_err(disk)
}

fn disk<E>(error: io::Error) -> Cut<E> {
    Cut::Disk(error.to_string())
}

impl Arrived {
    /// The name of its file within the folder.
    pub(super) fn name(&self) -> Option<PathBuf> {
        self.path.file_name().map(PathBuf::from)
    }
}
