//! Persists the highest sequence that the database has confirmed. If the database reports a smaller one at startup, it
//! was restored from an older state. Without this file, that would be detected only after the first segment was
//! released.
//!
//! ```text
//! confirmed = slot 0x00* slot            ; the second one begins at byte 512
//! slot      = seq:u64 crc:u32            ; crc = crc32c of the journal's id and seq; the larger valid seq counts
//! ```
//!
//! The two slots are written alternately, each in its own sector, so that one is always intact after a crash. A write
//! survives the end of the process at once, but a crash of the machine only after a sync ([`SYNC_EVERY`]): so the file
//! may lag behind the database, but is never ahead of it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::record::JournalId;
use super::segment::{self, CONFIRMED_FILE, CONFIRMED_NEW_FILE, Dir};
use super::{JournalError, Seq};

/// Minimum interval between syncs of the file: each is an extra sync on the journal's disk. A database restored from a
/// backup lacks hours of entries, which is detected even if the writes of the last seconds are lost.
const SYNC_EVERY: Duration = Duration::from_secs(10);

const SLOTS: usize = 2;
/// One sector, the smallest unit a disk writes.
const SLOT_BYTES: usize = 512;
const RECORD_BYTES: usize = 12;

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct ConfirmedFile {
    file: File,
    id: JournalId,
    seq: Seq,
    /// Index of the slot to write next.
    next_slot: usize,
    last_sync: Option<Instant>,
}

/// Reads the confirmed sequence of a directory; `None` if none was ever recorded.
pub(super) fn read(dir: &Path, id: &JournalId) -> Result<Option<Seq>, JournalError> {
    let path = dir.join(CONFIRMED_FILE);
    match fs::read(&path) {
        Ok(bytes) => match find_newest(&bytes, id) {
            Some((seq, _)) => Ok(Some(seq)),
            None => Err(JournalError::damaged(&path, 0, "neither of its two records is complete")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(JournalError::Io { action: "read", path, source }),
    }
}

impl ConfirmedFile {
    /// Opens the file, or creates it.
    pub(super) fn open(dir: &Dir, id: &JournalId) -> Result<Self, JournalError> {
        let path = dir.join(CONFIRMED_FILE);
        if read(dir, id)?.is_none() {
            create(dir, id).map_err(JournalError::io("write", &path))?;
        }
        let open = || -> io::Result<Self> {
            let file = segment::private_options().read(true).write(true).open(&path)?;
            let mut bytes = vec![0; SLOTS * SLOT_BYTES];
            let length = file.read_at(&mut bytes, 0)?;
            let (seq, slot) = find_newest(&bytes[..length], id).unwrap_or((0, 0));
            Ok(Self { file, id: *id, seq, next_slot: (slot + 1) % SLOTS, last_sync: None })
        };
        open().map_err(JournalError::io("open", &path))
    }

    /// Records that everything up to `seq` is confirmed.
    pub(super) fn record(&mut self, seq: Seq) -> io::Result<()> {
        if seq > self.seq {
            self.file.write_all_at(&encode(&self.id, seq), (self.next_slot * SLOT_BYTES) as u64)?;
            self.next_slot = (self.next_slot + 1) % SLOTS;
            self.seq = seq;
        }
        if self.last_sync.is_none_or(|last| last.elapsed() >= SYNC_EVERY) { self.sync() } else { Ok(()) }
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.last_sync = Some(Instant::now());
        Ok(())
    }
}

fn create(dir: &Dir, id: &JournalId) -> io::Result<()> {
    let path = dir.join(CONFIRMED_NEW_FILE);
    let file = segment::private_options().create(true).truncate(true).write(true).open(&path)?;
    for slot in 0..SLOTS {
        file.write_all_at(&encode(id, 0), (slot * SLOT_BYTES) as u64)?;
    }
    file.sync_all()?;
    fs::rename(path, dir.join(CONFIRMED_FILE))?;
    dir.sync()
}

fn encode(id: &JournalId, seq: Seq) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&seq.to_le_bytes());
    record[8..].copy_from_slice(&checksum(id, seq).to_le_bytes());
    record
}

/// The larger sequence of the valid slots, with its slot; `None` if neither is valid.
fn find_newest(bytes: &[u8], id: &JournalId) -> Option<(Seq, usize)> {
    let read_slot = |slot: usize| {
        let record = bytes.get(slot * SLOT_BYTES..)?.get(..RECORD_BYTES)?;
        let seq = Seq::from_le_bytes(record[..8].try_into().ok()?);
        (record == encode(id, seq)).then_some((seq, slot))
    };
    (0..SLOTS).filter_map(read_slot).max()
}

fn checksum(id: &JournalId, seq: Seq) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(id), &seq.to_le_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A failed expectation fails the test.
mod tests {
    use super::*;

    const ID: JournalId = [7; 16];

    #[test]
    fn a_torn_record_is_ignored_and_a_foreign_file_is_reported_as_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        assert_eq!(read(&dir, &ID).unwrap(), None);
        let mut confirmed_file = ConfirmedFile::open(&dir, &ID).unwrap();
        for seq in [3, 9, 7, 12] {
            confirmed_file.record(seq).unwrap();
        }
        assert_eq!((confirmed_file.seq, read(&dir, &ID).unwrap()), (12, Some(12)));
        let content = fs::read(dir.join(CONFIRMED_FILE)).unwrap();
        let newest_offset = find_newest(&content, &ID).unwrap().1 * SLOT_BYTES;
        for at in newest_offset..newest_offset + RECORD_BYTES {
            let mut torn = content.clone();
            torn[at] ^= 0x55;
            fs::write(dir.join(CONFIRMED_FILE), torn).unwrap();
            assert_eq!(read(&dir, &ID).unwrap(), Some(9), "byte {at}");
        }
        fs::write(dir.join(CONFIRMED_FILE), &content).unwrap();
        assert!(matches!(read(&dir, &[8; 16]), Err(JournalError::Damaged { .. })));
        fs::write(dir.join(CONFIRMED_FILE), b"").unwrap();
        assert!(matches!(read(&dir, &ID), Err(JournalError::Damaged { .. })));
        // A reopened file continues from the last record and overwrites the older slot.
        fs::write(dir.join(CONFIRMED_FILE), &content).unwrap();
        let mut reopened = ConfirmedFile::open(&dir, &ID).unwrap();
        assert_eq!(reopened.seq, 12);
        reopened.record(13).unwrap();
        let continued = fs::read(dir.join(CONFIRMED_FILE)).unwrap();
        let record = newest_offset..newest_offset + RECORD_BYTES;
        assert_eq!(continued[record.clone()], content[record], "the record of 12 was overwritten");
        assert_eq!(read(&dir, &ID).unwrap(), Some(13));
    }
}
