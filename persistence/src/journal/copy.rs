//! Reads a journal that another process may be writing: to examine it, or to copy it. Nothing in its directory is
//! changed, and it is not locked.
//!
//! A segment is read up to its last whole group, so the read includes everything that was acknowledged before it began.
//! A running journal may release and recycle segments meanwhile, always the oldest first; their records are in the
//! database. The read then begins again with the segments that are left.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::confirmed_file::ConfirmedFile;
use super::record::JournalId;
use super::recover::{pop_unfinished, read_whole, verify_segment};
use super::segment::{self, Dir};
use super::{JournalError, Seq, recover};

/// Maximum attempts to read the journal. An attempt is repeated because a segment was released during it, or a file
/// looked damaged at a new place.
const ATTEMPTS_MAX: usize = 50;

/// What a journal contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// See [`RecoveredJournal::id`](super::RecoveredJournal::id).
    pub id: String,
    /// The highest sequence the database had confirmed before the read.
    pub confirmed: Seq,
    /// The first sequence that the segments can contain; `None`: there is no segment.
    pub first: Option<Seq>,
    /// The last sequence found; `None`: there are no entries.
    pub last: Option<Seq>,
    /// Number of segments.
    pub segments: usize,
    /// Bytes of all segments, each up to its last whole group.
    pub bytes: u64,
}

/// Verifies every byte of the journal; `None` if there is none.
///
/// # Errors
/// [`JournalError::Damaged`] with file and offset, or [`JournalError::Io`].
pub fn examine(dir: &Path) -> Result<Option<Contents>, JournalError> {
    read_journal(dir, None)
}

/// Copies the journal to a new directory, verifying every byte; `None` if there is no journal, and nothing is created.
/// [`confirm_copy`] completes the copy.
///
/// # Errors
/// As [`examine`]; an incomplete copy may remain.
pub fn copy(dir: &Path, to: &Path) -> Result<Option<Contents>, JournalError> {
    read_journal(dir, Some(to))
}

/// Records in a copy that the database of the same backup contains everything up to `watermark`, so that a start
/// refuses any older database.
///
/// # Errors
/// When the copy cannot be written.
pub fn confirm_copy(copy: &Path, watermark: Seq) -> Result<(), JournalError> {
    let id =
        segment::read_id(copy)?.ok_or_else(|| JournalError::damaged(copy, 0, "the journal's id file is missing"))?;
    let dir = Dir::open(copy).map_err(JournalError::io("open", copy))?;
    let mut file = ConfirmedFile::open(&dir, &id)?;
    file.record(watermark).and_then(|()| file.sync()).map_err(JournalError::io("write", copy))
}

/// Verifies the journal, and copies it to `to` if that is given.
fn read_journal(dir: &Path, to: Option<&Path>) -> Result<Option<Contents>, JournalError> {
    let Some(id) = segment::read_id(dir)? else { return Ok(None) };
    let mut last_damage: Option<(PathBuf, u64)> = None;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let error = match read_once(dir, to, &id) {
            Ok(contents) => return Ok(Some(contents)),
            Err(error) => error,
        };
        match &error {
            // A file that is written or recycled during the read may look damaged once. Real damage is found again at
            // the same place.
            JournalError::Damaged { file, offset, .. } if last_damage.as_ref() != Some(&(file.clone(), *offset)) => {
                last_damage = Some((file.clone(), *offset));
            }
            JournalError::Io { action: "read", source, .. } if source.kind() == ErrorKind::NotFound => {}
            _ => return Err(error),
        }
        if attempts == ATTEMPTS_MAX {
            return Err(error);
        }
    }
}

fn read_once(dir: &Path, to: Option<&Path>, id: &JournalId) -> Result<Contents, JournalError> {
    let confirmed = recover::inspect(dir)?.map_or(0, |journal| journal.confirmed);
    let mut files = segment::list(dir)?.segments;
    if let Some(to) = to {
        begin_copy(to, id).map_err(JournalError::io("write", to))?;
    }
    let unfinished_first = pop_unfinished(&mut files)?.map(|(first, _)| first);
    let mut contents = Contents {
        id: segment::id_text(id),
        confirmed,
        first: files.first().map(|(first, _)| *first).or(unfinished_first),
        last: None,
        segments: files.len(),
        bytes: 0,
    };
    let mut bytes = Vec::new();
    for (index, (first, path)) in files.iter().enumerate() {
        let next_first = files.get(index + 1).map(|(first, _)| *first).or(unfinished_first);
        read_whole(path, &mut bytes)?;
        let (next_seq, end) = verify_segment(path, *first, &bytes, id, next_first)?.extent();
        if let Some(to) = to {
            let path = segment::segment_path(to, *first);
            write_new(&path, &bytes[..end]).map_err(JournalError::io("write", &path))?;
        }
        contents.bytes += end as u64;
        // If the next sequence is still the first one, there are no entries.
        contents.last = (Some(next_seq) != contents.first).then(|| next_seq - 1);
    }
    Ok(contents)
}

/// Creates the directory of a copy, or empties it, and writes the journal's id.
fn begin_copy(to: &Path, id: &JournalId) -> io::Result<()> {
    match fs::remove_dir_all(to) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    DirBuilder::new().mode(segment::DIR_MODE).create(to)?;
    write_new(&to.join(segment::ID_FILE), format!("{}\n", segment::id_text(id)).as_bytes())
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    crate::fail_point!("journal_copy", |_| Err(ErrorKind::StorageFull.into()));
    let mut file = segment::private_options().create_new(true).write(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
