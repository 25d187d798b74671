//! The bytes on disk. Integers are little-endian.
//!
//! ```text
//! segment = header group* padding
//! header  = "HOTLJRNL" version:u32 frame-max:u32 first-seq:u64 id:16-bytes crc:u32
//!           ; crc32c of all header bytes before it
//! group   = magic:u32 length:u32 crc:u32 count:u32 first-seq:u64 body
//!           ; length = bytes of body, count = records in it (at least one)
//!           ; crc = crc32c of id, length, count, first-seq and body, in this order
//! body    = record{count}
//! record  = length:u32 bytes
//! padding = 0x00*
//! ```
//!
//! A file is named `<first-seq as 20 digits>.journal`. Sequences have no gap, inside a segment or between two.
//!
//! **Why the group and not the record is the frame.** A group is what one sync made durable. Before that sync returned
//! its sectors may reach the disk in any order, so a whole record inside a torn group proves nothing about the records
//! before it. One checksum says whether the sync happened, and costs less than one for each record.
//!
//! **What a torn tail is.** A group is written only after the one before it was synced. So a crash can leave at most
//! one group that is not whole, and nothing after it. An invalid group followed by a valid one, or bytes further away
//! than one group is long (`frame-max`, the longest group the writer of this segment makes), can only be damage.
//!
//! **Why the id is in the checksum.** A record may hold any bytes, also ones that look like a group. Nobody outside
//! knows the id, so nobody can send a message that passes for a group when the tail is searched.

use std::ops::Range;

use super::{RECORD_BYTES_MAX, Seq};

/// Random number of a journal: tells its files from those of another.
pub(super) type Id = [u8; 16];

pub(super) const HEADER_BYTES: usize = 44;
pub(super) const FRAME_BYTES: usize = 24;
/// Length field before each record.
pub(super) const RECORD_PREFIX_BYTES: usize = 4;

const HEADER_MAGIC: &[u8; 8] = b"HOTLJRNL";
/// Raised when an older release could not read what this one writes.
const VERSION: u32 = 1;
const GROUP_MAGIC: [u8; 4] = [0xB7, 0x48, 0x4C, 0xE9];

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub frame_bytes_max: u32,
    pub first: Seq,
    pub id: Id,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(HEADER_MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.frame_bytes_max.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.id);
        let crc = crc32c::crc32c(&bytes[..40]);
        bytes[40..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The error is the reason, for the message that names the file.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < HEADER_BYTES {
            return Err(format!("the header is cut to {} bytes", bytes.len()));
        }
        if bytes[..8] != *HEADER_MAGIC {
            return Err("this is not a journal segment".to_owned());
        }
        if crc32c::crc32c(&bytes[..40]) != u32_at(bytes, 40) {
            return Err("the header's checksum does not match".to_owned());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(format!("format version {version} is not one this release reads ({VERSION})"));
        }
        let mut id = Id::default();
        id.copy_from_slice(&bytes[24..40]);
        Ok(Self { frame_bytes_max: u32_at(bytes, 12), first: u64_at(bytes, 16), id })
    }
}

/// The longest group a writer with this option makes: a group holds one record or stays below the option.
pub(super) fn frame_bytes_max(group_bytes_max: usize) -> u32 {
    let body = group_bytes_max.max(RECORD_PREFIX_BYTES + RECORD_BYTES_MAX);
    u32::try_from(FRAME_BYTES + body).unwrap_or(u32::MAX)
}

/// The checksum all groups of a journal begin with.
pub(super) fn crc_seed(id: &Id) -> u32 {
    crc32c::crc32c(id)
}

/// Encodes one group; the buffer is kept for the next.
#[derive(Debug, Default)]
pub(super) struct GroupBuffer {
    bytes: Vec<u8>,
    records: u32,
}

impl GroupBuffer {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(FRAME_BYTES, 0);
        self.records = 0;
    }

    pub fn push(&mut self, record: &[u8]) {
        // `append` refused records above RECORD_BYTES_MAX, so the length fits.
        self.bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.records += 1;
    }

    /// Bytes of the whole group so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn records(&self) -> u32 {
        self.records
    }

    /// Fills in the frame and returns the bytes to write.
    pub fn seal(&mut self, first: Seq, seed: u32) -> &[u8] {
        let length = (self.bytes.len() - FRAME_BYTES) as u32;
        self.bytes[..4].copy_from_slice(&GROUP_MAGIC);
        self.bytes[4..8].copy_from_slice(&length.to_le_bytes());
        self.bytes[12..16].copy_from_slice(&self.records.to_le_bytes());
        self.bytes[16..24].copy_from_slice(&first.to_le_bytes());
        let crc = group_crc(seed, &self.bytes);
        self.bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        &self.bytes
    }
}

/// The frame before a body, not yet checked against it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub length: usize,
    pub count: u32,
    pub first: Seq,
}

impl Frame {
    /// None where no frame begins.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < FRAME_BYTES || bytes[..4] != GROUP_MAGIC {
            return None;
        }
        Some(Self { length: u32_at(bytes, 4) as usize, count: u32_at(bytes, 12), first: u64_at(bytes, 16) })
    }

    /// The sequence after the last record.
    pub fn next(&self) -> Seq {
        self.first.saturating_add(u64::from(self.count))
    }

    /// Bytes of the whole group.
    pub fn bytes(&self) -> usize {
        FRAME_BYTES + self.length
    }
}

/// The group that begins at the first byte, when it is whole.
pub(super) fn whole_group(bytes: &[u8], seed: u32) -> Option<Frame> {
    let frame = Frame::decode(bytes)?;
    let group = bytes.get(..frame.bytes())?;
    (group_crc(seed, group) == u32_at(group, 8) && has_records(&group[FRAME_BYTES..], frame.count)).then_some(frame)
}

/// Where the next place is at which a group might begin.
pub(super) fn find_group_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(GROUP_MAGIC.len()).position(|window| window == GROUP_MAGIC)
}

/// The record at `at` in a body and the place of the one after it.
pub(super) fn record_at(body: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let start = at.checked_add(RECORD_PREFIX_BYTES)?;
    if start > body.len() {
        return None;
    }
    let end = start.checked_add(u32_at(body, at) as usize)?;
    (end <= body.len()).then_some((start..end, end))
}

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
