//! The on-disk format. Integers are little-endian.
//!
//! ```text
//! segment = header group* rest
//! header  = "HOTLJRNL" version:u32 group-max:u32 first-seq:u64 id:16-bytes stale-end:u64 crc:u32
//!           ; crc32c of all header bytes before it
//! group   = magic:u32 length:u32 crc:u32 count:u32 first-seq:u64 body
//!           ; length = bytes of body, count = records in it (at least one)
//!           ; crc = crc32c of id, the header's first-seq, length, count, first-seq and body, in this order
//! body    = record{count}
//! record  = length:u32 bytes
//! rest    = stale bytes of earlier uses of the file, up to stale-end, and 0x00* from there
//! ```
//!
//! A file is named `<first-seq as 20 digits>.journal`. Sequences have no gaps, neither within a segment nor between
//! segments.
//!
//! **Why each group has a checksum, not each record.** A group is what one sync made durable. Before that sync returns,
//! the disk may write its sectors in any order, so an intact record inside a torn group proves nothing about the
//! records before it. One checksum per group shows whether the sync completed, and is cheaper than one per record.
//!
//! **Torn tails.** A group is written only after the previous one was synced. So a crash leaves at most one incomplete
//! group, and nothing after it. An invalid group followed by a valid one, or non-zero bytes beyond the longest possible
//! group (`group-max`, the limit of the writer that made this segment), can only be damage.
//!
//! **Stale bytes never pass for a group.** A segment may reuse the file of a released one, whose old groups then still
//! follow the new ones. Two things tell stale groups from later groups of this use, which would prove damage: their
//! checksums start from another first-seq, and all their sequences precede this segment's first one. A torn group
//! followed by stale groups is handled like one followed by zeros: everything after the last valid group is truncated.
//! Such a torn write cannot always be reported: a group whose frame never reached the disk left no trace.
//!
//! **Why the id is in the checksum.** A record may contain arbitrary bytes, including ones that look like a group. The
//! id is secret, so no external sender can craft a message that passes for a group when the tail is scanned.

use std::ops::Range;

use super::{RECORD_BYTES_MAX, Seq};

/// Random id of a journal: distinguishes its files from those of another journal.
pub(super) type JournalId = [u8; 16];

pub(super) const HEADER_BYTES: usize = 52;
/// The frame of a group: its fields before the body.
pub(super) const FRAME_BYTES: usize = 24;
/// The length field before each record.
pub(super) const RECORD_PREFIX_BYTES: usize = 4;

const HEADER_MAGIC: &[u8; 8] = b"HOTLJRNL";
const GROUP_MAGIC: [u8; 4] = [0xB7, 0x48, 0x4C, 0xE9];
/// Offset of the header's checksum.
const CRC_AT: usize = HEADER_BYTES - 4;

/// Version of the format. It must be incremented when an older release could not read what this one writes.
const VERSION: u32 = 1;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub longest_group_bytes: u32,
    pub first: Seq,
    pub id: JournalId,
    /// Bytes of earlier uses may appear before this offset, never after it.
    pub stale_end: u64,
}

impl Header {
    /// Header of a segment in a file that was never used before.
    pub fn new(longest_group_bytes: u32, first: Seq, id: JournalId) -> Self {
        Self { longest_group_bytes, first, id, stale_end: 0 }
    }

    /// Initial checksum value of this segment's groups.
    pub fn seed(&self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.id), &self.first.to_le_bytes())
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(HEADER_MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.longest_group_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.first.to_le_bytes());
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&self.stale_end.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// The error is the reason; the caller adds the file name.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < HEADER_BYTES {
            return Err(format!("the header is cut to {} bytes", bytes.len()));
        }
        if bytes[..8] != *HEADER_MAGIC {
            return Err("this is not a journal segment".to_owned());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(format!("this release reads format version {VERSION}, not {version}"));
        }
        if crc32c::crc32c(&bytes[..CRC_AT]) != u32_at(bytes, CRC_AT) {
            return Err("the header's checksum does not match".to_owned());
        }
        let mut id = JournalId::default();
        id.copy_from_slice(&bytes[24..40]);
        Ok(Self { longest_group_bytes: u32_at(bytes, 12), first: u64_at(bytes, 16), id, stale_end: u64_at(bytes, 40) })
    }
}

/// The longest group, with its frame, of a writer with this limit: a group is within the limit, or a single record.
pub(super) fn longest_group_bytes(group_bytes_max: usize) -> u32 {
    let body = group_bytes_max.max(RECORD_PREFIX_BYTES + RECORD_BYTES_MAX);
    u32::try_from(FRAME_BYTES + body).unwrap_or(u32::MAX)
}

/// Fills in the frame of a group: `group` is space for a frame, followed by this many records with their prefixes.
pub(super) fn seal_group(group: &mut [u8], first: Seq, records: u32, seed: u32) {
    let length = (group.len() - FRAME_BYTES) as u32;
    group[..4].copy_from_slice(&GROUP_MAGIC);
    group[4..8].copy_from_slice(&length.to_le_bytes());
    group[12..16].copy_from_slice(&records.to_le_bytes());
    group[16..24].copy_from_slice(&first.to_le_bytes());
    let crc = group_crc(seed, group);
    group[8..12].copy_from_slice(&crc.to_le_bytes());
}

/// A group's frame, not yet checked against its body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub length: usize,
    pub count: u32,
    pub first: Seq,
}

impl Frame {
    /// `None` if the bytes do not start with a frame.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < FRAME_BYTES || bytes[..4] != GROUP_MAGIC {
            return None;
        }
        Some(Self { length: u32_at(bytes, 4) as usize, count: u32_at(bytes, 12), first: u64_at(bytes, 16) })
    }

    /// The sequence after the group's last record.
    pub fn next(&self) -> Seq {
        self.first.saturating_add(u64::from(self.count))
    }

    /// Bytes of the whole group.
    pub fn bytes(&self) -> usize {
        FRAME_BYTES + self.length
    }

    /// Whether this can be the frame of a later group, after a missing group that should start with record `next`. The
    /// frame is `distance` bytes after the offset where that group was expected. The records in between need at least
    /// their prefixes. A stale group is never later: all its sequences precede the segment's.
    pub fn may_follow(&self, next: Seq, distance: usize) -> bool {
        let records_between = self.first.saturating_sub(next);
        records_between > 0 && records_between <= (distance / RECORD_PREFIX_BYTES) as u64
    }
}

/// The frame of the group at the start of `bytes`; `None` unless the whole group is complete and valid.
pub(super) fn whole_group(bytes: &[u8], seed: u32) -> Option<Frame> {
    let frame = Frame::decode(bytes)?;
    let group = bytes.get(..frame.bytes())?;
    (group_crc(seed, group) == u32_at(group, 8) && has_records(&group[FRAME_BYTES..], frame.count)).then_some(frame)
}

/// Offset of the first possible start of a group.
pub(super) fn find_group_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(GROUP_MAGIC.len()).position(|window| window == GROUP_MAGIC)
}

/// The range of the record at `at` in a body, and the offset of the next record; `None` if it ends after the body.
pub(super) fn record_at(body: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let start = at.checked_add(RECORD_PREFIX_BYTES)?;
    if start > body.len() {
        return None;
    }
    let end = start.checked_add(u32_at(body, at) as usize)?;
    (end <= body.len()).then_some((start..end, end))
}

/// Whether the body consists of exactly this many records, at least one.
fn has_records(body: &[u8], count: u32) -> bool {
    let mut at = 0;
    for _ in 0..count {
        match record_at(body, at) {
            Some((_, next)) => at = next,
            None => return false,
        }
    }
    count > 0 && at == body.len()
}

fn group_crc(seed: u32, group: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &group[4..8]), &group[12..])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}
