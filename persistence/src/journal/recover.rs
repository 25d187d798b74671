//! Opens a journal: verifies every byte of every segment before it truncates what a crash left incomplete.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::confirmed_file::{self, ConfirmedFile};
use super::reader::Records;
use super::record::{Frame, HEADER_BYTES, Header, JournalId, find_group_magic, whole_group};
use super::segment::{self, Dir, DirLock, JournalFiles};
use super::state::{JournalResources, JournalState, SealedSegment};
use super::{Journal, JournalError, Options, Seq};

/// The incomplete end of the last segment that a crash left: part of a group that was never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The truncated segment.
    pub file: PathBuf,
    /// Where the file ends now.
    pub offset: u64,
    /// Number of bytes truncated, including those of the group that were never written.
    pub bytes: u64,
}

/// A journal that was verified and is not yet open for writing.
#[derive(Debug)]
pub struct RecoveredJournal {
    resources: JournalResources,
    id_text: String,
    segments: Vec<SealedSegment>,
    /// The sequence after the last record found, or that of an empty journal's next record. `None`: a new journal.
    next: Option<Seq>,
    torn_tail: Option<TornTail>,
}

/// Opens the directory (creating it), verifies every segment and truncates a torn tail.
///
/// If anything is damaged, nothing is changed on disk. Each segment is loaded into memory while it is verified.
pub fn open(dir: &Path, options: Options) -> Result<RecoveredJournal, JournalError> {
    options.check()?;
    open_locked(dir, options, lock(dir)?)
}

/// Locks the directory (creating it) against other processes until the lock is dropped.
pub fn lock(dir: &Path) -> Result<DirLock, JournalError> {
    create_dir(dir)?;
    segment::lock(dir)
}

/// As [`open`], in a directory that this process has locked.
pub fn open_locked(dir: &Path, options: Options, lock: DirLock) -> Result<RecoveredJournal, JournalError> {
    options.check()?;
    segment::make_private(dir)?;
    let dir = Dir::open(dir).map_err(JournalError::io("open", dir))?;
    let JournalFiles { segments: mut files, leftovers } = segment::list(&dir)?;
    let existing_id = segment::read_id(&dir)?;
    if existing_id.is_none()
        && let Some((_, path)) = files.first()
    {
        return Err(JournalError::damaged(path, 0, "the journal's id file is missing"));
    }
    let unfinished = pop_unfinished(&mut files)?;
    let mut verified = match &existing_id {
        Some(id) => verify_all(&files, id, unfinished.as_ref().map(|(first, _)| *first))?,
        None => Vec::new(),
    };
    if let Some(id) = &existing_id {
        confirmed_file::read(&dir, id)?;
    }
    // Everything was verified, so the directory may be changed from here on.
    for path in leftovers.iter().chain(unfinished.iter().map(|(_, path)| path)) {
        remove_unused(&dir, path)?;
    }
    let id = existing_id.map_or_else(|| segment::create_id(&dir), Ok)?;
    let torn_tail = verified.last_mut().map(finalize_last).transpose()?.flatten();
    let confirmed_file = ConfirmedFile::open(&dir, &id)?;
    dir.sync().map_err(JournalError::io("sync", &dir))?;
    let next = verified.last().map(|last| last.next).or(unfinished.map(|(first, _)| first));
    let segments = verified.into_iter().map(VerifiedSegment::into_sealed).collect();
    let id_text = segment::id_text(&id);
    Ok(RecoveredJournal {
        resources: JournalResources { dir, options, lock, id, confirmed_file },
        id_text,
        segments,
        next,
        torn_tail,
    })
}

/// Removes a file that contains no records.
fn remove_unused(dir: &Dir, path: &Path) -> Result<(), JournalError> {
    let file = path.display();
    if segment::is_prepared(path) {
        tracing::debug!(%file, "removing a file that an earlier run had prepared for its next segment");
    } else {
        tracing::info!(%file, "removing a journal file whose creation was interrupted");
    }
    segment::remove(dir, path).map_err(JournalError::io("remove", path))
}

/// A journal's id and what its database has confirmed, read without opening it: nothing is verified or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// See [`RecoveredJournal::id`].
    pub id: String,
    /// The highest sequence the database has confirmed.
    pub confirmed: Seq,
}

/// Inspects a journal that may be in use; `None` if there is no journal.
///
/// Besides the confirmed file, which may be behind after a crash of the machine, a released segment proves that its
/// records were confirmed.
pub fn inspect(dir: &Path) -> Result<Option<Inspection>, JournalError> {
    let Some(id) = segment::read_id(dir)? else { return Ok(None) };
    let recorded = confirmed_file::read(dir, &id)?.unwrap_or(0);
    let released = segment::list(dir)?.segments.first().map_or(0, |(first, _)| first - 1);
    Ok(Some(Inspection { id: segment::id_text(&id), confirmed: recorded.max(released) }))
}

impl RecoveredJournal {
    /// The journal's random id in hexadecimal. The database stores it, to detect a journal that belongs to another
    /// database.
    pub fn id(&self) -> &str {
        &self.id_text
    }

    /// The first sequence found; `None` if there are no records.
    pub fn first(&self) -> Option<Seq> {
        let first = self.segments.first()?.first;
        (Some(first) != self.next).then_some(first)
    }

    /// The last sequence found; `None` if there are no records.
    pub fn last(&self) -> Option<Seq> {
        self.first().and(self.next).map(|next| next - 1)
    }

    /// The truncated tail, for the startup log.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.torn_tail.as_ref()
    }

    /// All records from `from` on.
    pub fn read_from(&self, from: Seq) -> Result<Records, JournalError> {
        let sources = self.segments.iter().map(|segment| (segment.first, segment.path.clone())).collect();
        Records::new(sources, from, self.last().unwrap_or(0), self.resources.id)
    }

    /// Records durably that the database has everything up to `watermark`.
    pub fn confirm(&mut self, watermark: Seq) -> Result<(), JournalError> {
        let confirmed_file = &mut self.resources.confirmed_file;
        confirmed_file
            .record(watermark)
            .and_then(|()| confirmed_file.sync())
            .map_err(JournalError::io("save the watermark in", &self.resources.dir))
    }

    /// Starts accepting records, always in a new segment.
    ///
    /// `watermark`: all records up to it are in the database. The writer's thread calls `on_synced` after each sync
    /// with the items that became durable, in order; `on_synced` takes the items out, or leaves them to be dropped.
    /// `on_poisoned` is called once when a write fails; nothing queued is acknowledged after that.
    pub fn start<T: Send + 'static>(
        mut self,
        watermark: Seq,
        on_synced: impl FnMut(&mut Vec<(Seq, T)>) + Send + 'static,
        on_poisoned: impl FnOnce(&io::Error) + Send + 'static,
    ) -> Result<Journal<T>, JournalError> {
        self.check_gap(watermark)?;
        let mut next = self.next.unwrap_or(1);
        if watermark >= next {
            // The journal lost records up to the watermark, but the database has them. Keeping the older segments would
            // leave a hole that the next open could not distinguish from damage.
            self.remove_segments()?;
            next = watermark + 1;
        }
        // The new segment reuses the name of an empty one at the end.
        self.segments.retain(|segment| segment.first < next);
        let (state, context) = JournalState::begin(self.resources, self.segments, next, watermark)?;
        Journal::spawn(state, context, on_synced, on_poisoned)
    }

    fn check_gap(&self, watermark: Seq) -> Result<(), JournalError> {
        let first = self.segments.first().map(|segment| segment.first).or(self.next);
        match first {
            Some(first) if first > watermark.saturating_add(1) => Err(JournalError::Gap { first, watermark }),
            _ => Ok(()),
        }
    }

    fn remove_segments(&mut self) -> Result<(), JournalError> {
        for segment in self.segments.drain(..) {
            tracing::info!(file = %segment.path.display(), "removing a journal segment older than the database");
            segment::remove(&self.resources.dir, &segment.path).map_err(JournalError::io("remove", &segment.path))?;
        }
        Ok(())
    }
}

/// A fully verified segment.
pub(super) struct VerifiedSegment {
    path: PathBuf,
    first: Seq,
    next: Seq,
    /// Start offset of its last valid group.
    last_group: u64,
    /// End offset of its last valid group.
    end: u64,
    file_bytes: u64,
    torn_bytes: u64,
    /// See [`Header::stale_end`].
    stale_end: u64,
}

impl VerifiedSegment {
    /// The sequence after its last record, and the end offset of its last valid group.
    pub(super) fn extent(&self) -> (Seq, usize) {
        (self.next, usize::try_from(self.end).unwrap_or(usize::MAX))
    }

    fn into_sealed(self) -> SealedSegment {
        let stale_end = self.stale_end.max(self.end);
        SealedSegment {
            path: self.path.into(),
            first: self.first,
            last: self.next - 1,
            bytes: self.file_bytes,
            stale_end,
        }
    }
}

fn create_dir(dir: &Path) -> Result<(), JournalError> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(JournalError::io("create", dir))?;
    match dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => segment::sync_dir(parent).map_err(JournalError::io("sync", parent)),
        None => Ok(()),
    }
}

/// Removes the last file from the list if its header was never written. It contains no records: groups are written only
/// after the header was synced.
pub(super) fn pop_unfinished(files: &mut Vec<(Seq, PathBuf)>) -> Result<Option<(Seq, PathBuf)>, JournalError> {
    let Some((_, path)) = files.last() else { return Ok(None) };
    let is_unfinished = has_no_header(path).map_err(JournalError::io("read", path))?;
    Ok(if is_unfinished { files.pop() } else { None })
}

fn has_no_header(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() < HEADER_BYTES as u64 {
        return Ok(true);
    }
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(true),
            read if chunk[..read].iter().any(|byte| *byte != 0) => return Ok(false),
            _ => {}
        }
    }
}

/// `next_first`: the first sequence of an unfinished segment after the last one. A segment is only created once
/// everything before it is synced, so in that case the last one must not be torn either.
fn verify_all(
    files: &[(Seq, PathBuf)],
    id: &JournalId,
    next_first: Option<Seq>,
) -> Result<Vec<VerifiedSegment>, JournalError> {
    let mut bytes = Vec::new();
    let mut verified = Vec::with_capacity(files.len());
    for (index, (first, path)) in files.iter().enumerate() {
        let next_first = files.get(index + 1).map(|(first, _)| *first).or(next_first);
        read_whole(path, &mut bytes)?;
        verified.push(verify_segment(path, *first, &bytes, id, next_first)?);
    }
    Ok(verified)
}

pub(super) fn read_whole(path: &Path, bytes: &mut Vec<u8>) -> Result<(), JournalError> {
    bytes.clear();
    File::open(path).and_then(|mut file| file.read_to_end(bytes)).map_err(JournalError::io("read", path))?;
    Ok(())
}

/// `next_first`: the first sequence of the following segment. Only the last segment, which has none, may be torn.
pub(super) fn verify_segment(
    path: &Path,
    first: Seq,
    bytes: &[u8],
    id: &JournalId,
    next_first: Option<Seq>,
) -> Result<VerifiedSegment, JournalError> {
    let header = check_header(path, first, bytes, id)?;
    let seed = header.seed();
    let (mut at, mut last_group, mut next) = (HEADER_BYTES, HEADER_BYTES, first);
    while let Some(group) = whole_group(&bytes[at..], seed) {
        if group.first != next {
            let reason = format!("a group begins with seq {} instead of {next}", group.first);
            return Err(JournalError::damaged(path, at as u64, reason));
        }
        next = group.next();
        last_group = at;
        at += group.bytes();
    }
    let tail = SegmentTail::of(bytes, at, next, &header);
    match next_first {
        None => check_tail(path, &tail, &header, next, seed)?,
        Some(next_first) => check_complete(path, &tail, next, next_first)?,
    }
    Ok(VerifiedSegment {
        path: path.to_owned(),
        first,
        next,
        last_group: last_group as u64,
        end: at as u64,
        file_bytes: bytes.len() as u64,
        torn_bytes: tail.torn_bytes as u64,
        stale_end: header.stale_end,
    })
}

/// Checks that a segment is complete: it is not torn, and the following one begins with `next`.
fn check_complete(path: &Path, tail: &SegmentTail<'_>, next: Seq, next_first: Seq) -> Result<(), JournalError> {
    if tail.has_new_bytes() {
        return Err(JournalError::damaged(path, tail.at as u64, "expected a complete group or padding"));
    }
    if next_first != next {
        let reason = format!("seq {next} should follow, but the next segment begins with {next_first}");
        return Err(JournalError::damaged(path, tail.at as u64, reason));
    }
    Ok(())
}

/// The bytes after the last valid group of a segment.
struct SegmentTail<'a> {
    bytes: &'a [u8],
    /// The offset of `bytes` in the file.
    at: usize,
    /// Length of the prefix of `bytes` that may contain data of earlier uses.
    stale: usize,
    /// Length of the prefix of `bytes` that was ever written: up to `stale`, or to the last non-zero byte.
    written: usize,
    /// Number of bytes known to belong to an incomplete group.
    torn_bytes: usize,
}

impl<'a> SegmentTail<'a> {
    fn of(segment: &'a [u8], at: usize, next: Seq, header: &Header) -> Self {
        let bytes = &segment[at..];
        let stale_end = usize::try_from(header.stale_end).unwrap_or(usize::MAX).min(segment.len());
        let stale = stale_end.saturating_sub(at);
        let written = stale + used_bytes(&bytes[stale..]);
        let torn_bytes = match Frame::decode(bytes) {
            _ if written > stale => written,
            // Earlier uses of the file never had this sequence.
            Some(frame) if frame.first == next => frame.bytes().min(bytes.len()),
            _ => 0,
        };
        Self { bytes, at, stale, written, torn_bytes }
    }

    /// Whether bytes of this use of the file certainly follow the last valid group.
    fn has_new_bytes(&self) -> bool {
        self.written > self.stale
    }
}

fn check_header(path: &Path, first: Seq, bytes: &[u8], id: &JournalId) -> Result<Header, JournalError> {
    let header = Header::decode(bytes).map_err(|reason| JournalError::damaged(path, 0, reason))?;
    if header.id != *id {
        let reason = format!("it belongs to journal {}, not to {}", segment::id_text(&header.id), segment::id_text(id));
        return Err(JournalError::damaged(path, 0, reason));
    }
    if header.first != first {
        let reason = format!("the header has seq {}, but the file name has {first}", header.first);
        return Err(JournalError::damaged(path, 0, reason));
    }
    Ok(header)
}

/// Decides whether the bytes after the last valid group are a torn group (or nothing), or damage.
fn check_tail(path: &Path, tail: &SegmentTail<'_>, header: &Header, next: Seq, seed: u32) -> Result<(), JournalError> {
    let written = &tail.bytes[..tail.written];
    let mut from = 1;
    while let Some(offset) = written.get(from..).and_then(find_group_magic) {
        let start = from + offset;
        // Stale groups are recognized by their sequence; their checksums need no check.
        let candidate = &tail.bytes[start..];
        let may_follow = Frame::decode(candidate).is_some_and(|frame| frame.may_follow(next, start));
        if may_follow && whole_group(candidate, seed).is_some() {
            let reason = format!("no whole group with seq {next} here, but a later one at byte {}", tail.at + start);
            return Err(JournalError::damaged(path, tail.at as u64, reason));
        }
        from = start + 1;
    }
    if tail.has_new_bytes() && tail.written > header.longest_group_bytes as usize {
        let end = tail.at + tail.written;
        let reason = format!("bytes up to {end} are written, further than one torn group reaches");
        return Err(JournalError::damaged(path, tail.at as u64, reason));
    }
    Ok(())
}

/// Length up to the last non-zero byte.
fn used_bytes(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Makes the last segment's contents final.
///
/// Its last group may have been written but not synced when the process died. Or its sync may have failed, after which
/// the page cache holds bytes that never reached the disk, and the kernel does not report the error again. The caller
/// will treat the group as durable, so it is rewritten and synced. The rest of the file is truncated: nothing is ever
/// appended here, and unused padding would count against the size limit.
fn finalize_last(last: &mut VerifiedSegment) -> Result<Option<TornTail>, JournalError> {
    let finalize = || -> io::Result<()> {
        let file = segment::private_options().read(true).write(true).open(&last.path)?;
        let mut group = vec![0; (last.end - last.last_group) as usize];
        file.read_exact_at(&mut group, last.last_group)?;
        file.write_all_at(&group, last.last_group)?;
        file.set_len(last.end)?;
        file.sync_all()
    };
    finalize().map_err(JournalError::io("finalize", &last.path))?;
    last.file_bytes = last.end;
    Ok((last.torn_bytes > 0).then(|| TornTail { file: last.path.clone(), offset: last.end, bytes: last.torn_bytes }))
}
