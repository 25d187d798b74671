//! Writes, syncs and checksums the files of a backup, with errors that name the file.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::cli::FileFailure;

/// A backup contains conversations and perhaps keys: only its owner may read it.
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Maximum number of files of messages in a backup. Their checksums need 3 GB of memory, and those of the previous
/// backup another 3 GB. An installation with more files has to store them in a bucket, which keeps versions of its own.
pub const FILES_MAX: usize = 20_000_000;

/// Bytes per read and write.
const CHUNK_BYTES: usize = 256 * 1024;

/// The action of a [`BackupFileError`] for the creation of a file or folder, whose failure has an exit code of its own.
const CREATE: &str = "create";

/// The SHA-256 checksum of a file, in hexadecimal.
pub type Checksum = String;

/// Checksums by path below the backup's folder, at most [`FILES_MAX`]. Each takes about 150 bytes of memory: 150 MB for
/// a million files.
pub type Checksums = BTreeMap<String, Checksum>;

/// A file operation failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct BackupFileError {
    action: &'static str,
    path: PathBuf,
    source: FileFailure,
}

impl BackupFileError {
    /// For `map_err`: adds the operation and the file to the error.
    pub fn new(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| {
            let source = if action == CREATE { FileFailure::of_new(error) } else { FileFailure::of(error) };
            Self { action, path, source }
        }
    }

    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == ErrorKind::NotFound
    }
}

/// Creates a folder that only its owner may enter, and its missing parents.
pub fn create_folder(path: &Path) -> Result<(), BackupFileError> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path).map_err(BackupFileError::new(CREATE, path))
}

/// Writes a new file from a reader, and returns its size and checksum. Errors of the reader name `source`.
pub fn write_from(mut reader: impl Read, source: &Path, path: &Path) -> Result<(u64, Checksum), BackupFileError> {
    let mut options = OpenOptions::new();
    let mut file =
        options.create_new(true).write(true).mode(FILE_MODE).open(path).map_err(BackupFileError::new(CREATE, path))?;
    let (mut hasher, mut bytes, mut size) = (Sha256::new(), vec![0; CHUNK_BYTES], 0);
    loop {
        let count = match reader.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(BackupFileError::new("read", source)(error)),
        };
        hasher.update(&bytes[..count]);
        write_chunk(&mut file, &bytes[..count]).map_err(BackupFileError::new("write", path))?;
        size += count as u64;
    }
    Ok((size, hex::encode(hasher.finalize())))
}

fn write_chunk(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    hotline_persistence::fail_point!("backup_write", |_| Err(ErrorKind::StorageFull.into()));
    file.write_all(bytes)
}

/// Copies a file to a new one, and returns its size and checksum.
pub fn copy(from: &Path, to: &Path) -> Result<(u64, Checksum), BackupFileError> {
    let file = File::open(from).map_err(BackupFileError::new("read", from))?;
    write_from(file, from, to)
}

/// Writes a small new file, and returns its checksum.
pub fn write(path: &Path, bytes: &[u8]) -> Result<Checksum, BackupFileError> {
    write_from(bytes, path, path).map(|(_, checksum)| checksum)
}

/// The checksum of a file.
pub fn checksum(path: &Path) -> Result<Checksum, BackupFileError> {
    let file = File::open(path).map_err(BackupFileError::new("read", path))?;
    let (mut reader, mut hasher) = (BufReader::with_capacity(CHUNK_BYTES, file), Sha256::new());
    loop {
        let bytes = reader.fill_buf().map_err(BackupFileError::new("read", path))?;
        if bytes.is_empty() {
            return Ok(hex::encode(hasher.finalize()));
        }
        hasher.update(bytes);
        let count = bytes.len();
        reader.consume(count);
    }
}

/// Adds the checksums of all files in the folder `name` of the backup in `root`.
pub fn checksum_folder(root: &Path, name: &str, checksums: &mut Checksums) -> Result<(), BackupFileError> {
    let folder = root.join(name);
    for entry in names(&folder)? {
        let path = folder.join(&entry);
        checksums.insert(format!("{name}/{entry}"), checksum(&path)?);
    }
    Ok(())
}

/// The names in a folder, sorted; none if it does not exist. Names that are not UTF-8 are skipped: Hotline has none.
pub fn names(folder: &Path) -> Result<Vec<String>, BackupFileError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(BackupFileError::new("list", folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(BackupFileError::new("list", folder))?.file_name();
        names.extend(name.into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Syncs everything that was written to the file system of a folder or file, with one call for all files.
pub fn sync(path: &Path) -> Result<(), BackupFileError> {
    let sync = || -> io::Result<()> {
        hotline_persistence::fail_point!("backup_sync", |_| Err(ErrorKind::StorageFull.into()));
        let file = File::open(path)?;
        #[cfg(target_os = "linux")]
        nix::unistd::syncfs(&file)?;
        #[cfg(not(target_os = "linux"))]
        nix::unistd::sync();
        file.sync_all()
    };
    sync().map_err(BackupFileError::new("sync", path))
}
