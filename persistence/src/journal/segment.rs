//! Files in the journal's directory: how they are named, created crash-safely (a crash leaves either the old state or
//! the new one), recycled and removed.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::{Header, JournalId};
use super::{JournalError, Seq};

/// A spare is named `spare-<number>.tmp`.
const SPARE_PREFIX: &str = "spare-";
const SPARE_SUFFIX: &str = ".tmp";
/// A segment created when no spare was ready. It needs its own name, since a spare may be created at the same time.
const INLINE_FILE: &str = "segment.tmp";
pub(super) const ID_FILE: &str = "id";
const ID_NEW_FILE: &str = "id.tmp";
const LOCK_FILE: &str = "lock";
pub(super) const CONFIRMED_FILE: &str = "confirmed";
pub(super) const CONFIRMED_NEW_FILE: &str = "confirmed.tmp";
/// An empty file that is kept open, so that a segment can be created when no file can be opened.
const RESERVE_FILE: &str = "reserve";
const SEGMENT_SUFFIX: &str = ".journal";
const SEQ_DIGITS: usize = 20;
/// Bytes per write while zero-filling. The kernel caches each write as one folio, and every later sync processes all of
/// the folios it touches: with 4 MiB writes a sync takes 1.5 times as long.
const ZEROS_BYTES: usize = 64 << 10;
/// Bytes per sync while zero-filling, so that a sync of the log, or of a database on the same disk, does not wait for a
/// whole segment. A multiple of `ZEROS_BYTES`.
const ZEROS_SYNC_BYTES: u64 = 4 << 20;

/// The journal contains conversations, so only its owner may read it.
const FILE_MODE: u32 = 0o600;
pub(super) const DIR_MODE: u32 = 0o700;
/// The permission bits of a file mode.
const PERMISSION_BITS: u32 = 0o7777;

/// The journal's directory, kept open: syncing it works even when no file descriptors are left.
#[derive(Debug)]
pub(super) struct Dir {
    path: PathBuf,
    file: File,
}

impl Dir {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: File::open(path)? })
    }

    /// Makes created, renamed and removed entries durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl Deref for Dir {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.path
    }
}

/// The options for opening the journal's files; a new file gets [`FILE_MODE`].
pub(super) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Removes other users' permissions from the directory and its files: files of a restored backup may grant some.
pub(super) fn make_private(dir: &Path) -> Result<(), JournalError> {
    set_mode(dir, DIR_MODE)?;
    for entry in fs::read_dir(dir).map_err(JournalError::io("list", dir))? {
        let entry = entry.map_err(JournalError::io("list", dir))?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().is_some_and(is_journal_file) {
            set_mode(&entry.path(), FILE_MODE)?;
        }
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<(), JournalError> {
    let set = || -> io::Result<()> {
        if fs::metadata(path)?.permissions().mode() & PERMISSION_BITS == mode {
            return Ok(());
        }
        fs::set_permissions(path, Permissions::from_mode(mode))
    };
    set().map_err(JournalError::io("make private", path))
}

fn is_journal_file(name: &str) -> bool {
    parse_name(name).is_some() || is_temporary(name) || is_permanent(name)
}

/// Whether a file of this name is neither a segment nor temporary.
fn is_permanent(name: &str) -> bool {
    [ID_FILE, LOCK_FILE, CONFIRMED_FILE].contains(&name)
}

/// Whether the file was made ahead of time for a later segment: each run leaves some.
pub(super) fn is_prepared(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| is_spare(name) || name == RESERVE_FILE)
}

fn is_temporary(name: &str) -> bool {
    is_spare(name) || [INLINE_FILE, ID_NEW_FILE, RESERVE_FILE, CONFIRMED_NEW_FILE].contains(&name)
}

pub(super) fn segment_path(dir: &Path, first: Seq) -> PathBuf {
    dir.join(format!("{first:020}{SEGMENT_SUFFIX}"))
}

/// An open file: a segment, or a file that will be renamed to become one.
#[derive(Debug)]
pub(super) struct SegmentFile {
    pub file: File,
    pub path: PathBuf,
    /// See [`Header::stale_end`].
    pub stale_end: u64,
}

/// Path of a segment. Every reader holds a clone, and a file with a reader is not recycled.
#[derive(Clone, Debug)]
pub(super) struct SegmentPath(Arc<Path>);

impl SegmentPath {
    /// Whether a reader holds it. Once the segment is off the journal's list, this can only change to false.
    pub fn has_reader(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl From<PathBuf> for SegmentPath {
    fn from(path: PathBuf) -> Self {
        Self(path.into())
    }
}

impl Deref for SegmentPath {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

/// The journal's files in its directory, except the permanent ones.
pub(super) struct JournalFiles {
    /// Sorted by first sequence.
    pub segments: Vec<(Seq, PathBuf)>,
    /// Temporary files that a crash left, and files that an earlier run prepared for its next segments.
    pub leftovers: Vec<PathBuf>,
}

pub(super) fn list(dir: &Path) -> Result<JournalFiles, JournalError> {
    let mut segments = Vec::new();
    let mut leftovers = Vec::new();
    for entry in fs::read_dir(dir).map_err(JournalError::io("list", dir))? {
        let path = entry.map_err(JournalError::io("list", dir))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if let Some(first) = parse_name(name) {
            segments.push((first, path));
        } else if is_temporary(name) {
            leftovers.push(path);
        } else if !is_permanent(name) {
            tracing::warn!(file = %path.display(), "unknown file in the journal directory; ignoring it");
        }
    }
    segments.sort_unstable();
    Ok(JournalFiles { segments, leftovers })
}

/// Locks the directory against other processes until dropped.
#[derive(Debug)]
pub struct DirLock(File);

impl Drop for DirLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a forked child that has not yet called exec shares it.
        let _ = self.0.unlock();
    }
}

pub(super) fn lock(dir: &Path) -> Result<DirLock, JournalError> {
    let path = dir.join(LOCK_FILE);
    let file = private_options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(JournalError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(DirLock(file)),
        Err(TryLockError::WouldBlock) => Err(JournalError::Locked { dir: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(JournalError::Io { action: "lock", path, source }),
    }
}

/// Whether the directory contains a journal, possibly one without records.
pub fn exists(dir: &Path) -> bool {
    dir.join(ID_FILE).exists()
}

/// The journal's id; `None` if the directory has no id file.
pub(super) fn read_id(dir: &Path) -> Result<Option<JournalId>, JournalError> {
    let path = dir.join(ID_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => match u128::from_str_radix(text.trim_end(), 16) {
            Ok(number) => Ok(Some(number.to_be_bytes())),
            Err(_) => Err(JournalError::damaged(&path, 0, "not a journal ID")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(JournalError::damaged(&path, 0, "not a journal ID"))
        }
        Err(source) => Err(JournalError::Io { action: "read", path, source }),
    }
}

/// Creates the id of a new journal.
pub(super) fn create_id(dir: &Dir) -> Result<JournalId, JournalError> {
    let id = rand::random::<u128>().to_be_bytes();
    let path = dir.join(ID_NEW_FILE);
    let write = || -> io::Result<()> {
        let mut file = private_options().create(true).truncate(true).write(true).open(&path)?;
        file.write_all(format!("{}\n", id_text(&id)).as_bytes())?;
        file.sync_all()?;
        fs::rename(&path, dir.join(ID_FILE))?;
        dir.sync()
    };
    write().map_err(JournalError::io("write", &path))?;
    Ok(id)
}

/// The id in hexadecimal.
pub(super) fn id_text(id: &JournalId) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}

/// Syncs a directory other than the journal's.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a zero-filled spare. The zeros are really written: a sync of data in preallocated but unwritten blocks also
/// has to update their metadata, which costs a second write each time.
pub(super) fn create_spare(dir: &Path, number: u64, bytes: u64) -> io::Result<SegmentFile> {
    create_zeroed(spare_path(dir, number), bytes)
}

/// Turns a released segment into a spare, so that no zeros need to be written.
///
/// IMPORTANT: the rename must be durable before anything is written into the file. Otherwise a crash could leave a
/// segment under its old name with different contents.
pub(super) fn recycle(dir: &Dir, number: u64, segment: &Path, stale_end: u64) -> io::Result<SegmentFile> {
    crate::fail_point!("journal_before_recycle", |_| Err(io::Error::other("injected")));
    let file = private_options().read(true).write(true).open(segment)?;
    let path = spare_path(dir, number);
    fs::rename(segment, &path)?;
    crate::fail_point!("journal_recycle_renamed");
    dir.sync()?;
    crate::fail_point!("journal_recycled");
    Ok(SegmentFile { file, path, stale_end })
}

/// Creates a segment without a spare.
pub(super) fn create_inline(dir: &Dir, bytes: u64, header: &Header) -> io::Result<SegmentFile> {
    adopt(dir, create_zeroed(dir.join(INLINE_FILE), bytes)?, header)
}

/// Turns a spare into the segment that starts at the header's sequence.
///
/// IMPORTANT: the header is synced before the rename, and the rename is durable before any group is written. So a file
/// with a segment name always has its own header, and a missing segment contained nothing.
pub(super) fn adopt(dir: &Dir, spare: SegmentFile, header: &Header) -> io::Result<SegmentFile> {
    let SegmentFile { file, path, stale_end } = spare;
    file.write_all_at(&Header { stale_end, ..*header }.encode(), 0)?;
    crate::fail_point!("journal_header_written");
    file.sync_data()?;
    crate::fail_point!("journal_adopt");
    let name = segment_path(dir, header.first);
    // An existing segment of this name can only be an empty one, left by a run that wrote nothing.
    fs::rename(path, &name)?;
    crate::fail_point!("journal_after_rename");
    dir.sync()?;
    Ok(SegmentFile { file, path: name, stale_end })
}

/// Unlinks a file and syncs the directory, so that segments disappear in order and a crash never leaves a hole.
pub(super) fn remove(dir: &Dir, path: &Path) -> io::Result<()> {
    crate::fail_point!("journal_before_remove", |_| Err(io::Error::other("injected")));
    fs::remove_file(path)?;
    crate::fail_point!("journal_removed");
    dir.sync()
}

/// Creates the reserve file and keeps it open: a segment can be created from it when no other file can be opened.
pub(super) fn create_reserve(dir: &Dir) -> io::Result<SegmentFile> {
    crate::fail_point!("journal_create_reserve", |_| Err(nix::errno::Errno::EMFILE.into()));
    let path = dir.join(RESERVE_FILE);
    let file = private_options().create(true).truncate(true).read(true).write(true).open(&path)?;
    Ok(SegmentFile { file, path, stale_end: 0 })
}

/// Turns the reserve into a segment. On an error, also returns the reserve if it can be used again.
pub(super) fn use_reserve(
    dir: &Dir,
    reserve: SegmentFile,
    bytes: u64,
    header: &Header,
) -> Result<SegmentFile, (Option<SegmentFile>, io::Error)> {
    match write_zeros(&reserve.file, bytes) {
        Ok(()) => adopt(dir, reserve, header).map_err(|error| (None, error)),
        Err(error) => {
            // A partly written file only makes a full disk fuller.
            let is_empty = reserve.file.set_len(0).is_ok();
            Err((is_empty.then_some(reserve), error))
        }
    }
}

fn spare_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{SPARE_PREFIX}{number}{SPARE_SUFFIX}"))
}

fn is_spare(name: &str) -> bool {
    name.starts_with(SPARE_PREFIX) && name.ends_with(SPARE_SUFFIX)
}

fn create_zeroed(path: PathBuf, bytes: u64) -> io::Result<SegmentFile> {
    crate::fail_point!("journal_create_segment", |shortage| Err(match shortage.as_deref() {
        Some("files") => nix::errno::Errno::EMFILE.into(),
        Some("all files") => nix::errno::Errno::ENFILE.into(),
        Some("memory") => nix::errno::Errno::ENOMEM.into(),
        _ => io::ErrorKind::StorageFull.into(),
    }));
    let file = private_options().create(true).truncate(true).read(true).write(true).open(&path)?;
    match write_zeros(&file, bytes) {
        Ok(()) => Ok(SegmentFile { file, path, stale_end: 0 }),
        Err(error) => {
            // A partly written file only makes a full disk fuller; the next open would remove it anyway.
            let _ = fs::remove_file(path);
            Err(error)
        }
    }
}

/// Fills an empty file with this many zeros.
fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS_BYTES.min(usize::try_from(bytes).unwrap_or(ZEROS_BYTES))];
    let mut written = 0;
    while written < bytes {
        let chunk = (bytes - written).min(zeros.len() as u64) as usize;
        file.write_all(&zeros[..chunk])?;
        written += chunk as u64;
        if written.is_multiple_of(ZEROS_SYNC_BYTES) {
            file.sync_data()?;
        }
    }
    file.sync_all()
}

fn parse_name(name: &str) -> Option<Seq> {
    let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
    let is_number = digits.len() == SEQ_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|first| is_number && *first > 0)
}
