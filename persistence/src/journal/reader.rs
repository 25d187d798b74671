//! Reads records back in order while the writer may still be appending.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::record::{FRAME_BYTES, Frame, HEADER_BYTES, Header, JournalId, record_at, whole_group};
use super::segment::SegmentPath;
use super::{JournalError, Seq};

/// A segment to read: its first sequence and its path. Holding the path keeps the file from being recycled.
pub(super) type SegmentSource = (Seq, SegmentPath);

/// Iterator over records in log order, with their sequences. Ends after the first error.
#[derive(Debug)]
pub struct Records {
    segments: std::vec::IntoIter<SegmentSource>,
    current_segment: Option<(File, SegmentPath)>,
    /// Offset in the current segment of the next group.
    offset: u64,
    id: JournalId,
    /// Initial checksum value of the current segment's groups.
    seed: u32,
    /// One group with its frame; the buffer is reused.
    group: Vec<u8>,
    /// Offset in `group` of the next record.
    at: usize,
    /// Sequence of the next record that is read.
    next: Seq,
    /// The first record to return.
    from: Seq,
    /// The last record to return.
    last: Seq,
}

impl Records {
    /// `segments` are sorted and without gaps, up to `last`.
    pub(super) fn new(
        mut segments: Vec<SegmentSource>,
        from: Seq,
        last: Seq,
        id: JournalId,
    ) -> Result<Self, JournalError> {
        let from = from.max(1);
        if from <= last {
            match segments.first() {
                Some((first, _)) if *first <= from => {}
                Some((first, _)) => return Err(JournalError::Released { from, first: *first }),
                None => return Err(JournalError::Released { from, first: last + 1 }),
            }
        }
        // Start with the segment that contains `from`: the last one that starts at or before it.
        let skipped = segments.partition_point(|(first, _)| *first <= from).saturating_sub(1);
        segments.drain(..skipped);
        let next = segments.first().map_or(from, |(first, _)| *first);
        Ok(Self {
            segments: segments.into_iter(),
            current_segment: None,
            offset: 0,
            id,
            seed: 0,
            group: Vec::new(),
            at: 0,
            next,
            from,
            last,
        })
    }

    fn next_record(&mut self) -> Result<Option<(Seq, Vec<u8>)>, JournalError> {
        while self.next <= self.last {
            if self.at >= self.group.len() && !self.load_group()? {
                continue;
            }
            let Some((record, at)) = record_at(&self.group, self.at) else {
                return Err(self.damaged("a record is longer than its group"));
            };
            self.at = at;
            let seq = self.next;
            self.next += 1;
            if seq >= self.from {
                return Ok(Some((seq, self.group[record].to_vec())));
            }
        }
        Ok(None)
    }

    /// Reads the group that contains the next record; returns false if it skipped a group whose records all precede
    /// `from`.
    fn load_group(&mut self) -> Result<bool, JournalError> {
        self.open_next_segment()?;
        self.group.clear();
        self.at = 0;
        let Some((file, path)) = &self.current_segment else {
            return Err(JournalError::Released { from: self.from, first: self.last + 1 });
        };
        let mut head = [0; FRAME_BYTES];
        read_at(file, path, &mut head, self.offset)?;
        let frame = match Frame::decode(&head) {
            Some(frame) if frame.first == self.next => frame,
            _ => return Err(self.damaged("expected a group with the next sequence")),
        };
        let bytes_left = file.metadata().map_err(JournalError::io("read", path))?.len().saturating_sub(self.offset);
        if frame.bytes() as u64 > bytes_left {
            return Err(self.damaged("a group is longer than its file"));
        }
        if frame.next() <= self.from {
            self.offset += frame.bytes() as u64;
            self.next = frame.next();
            return Ok(false);
        }
        self.group.resize(frame.bytes(), 0);
        read_at(file, path, &mut self.group, self.offset)?;
        if whole_group(&self.group, self.seed).is_none() {
            return Err(self.damaged("the group's checksum does not match"));
        }
        self.offset += frame.bytes() as u64;
        self.at = FRAME_BYTES;
        Ok(true)
    }

    /// Opens the next segment if it starts at the next sequence.
    fn open_next_segment(&mut self) -> Result<(), JournalError> {
        let is_next = self.segments.as_slice().first().is_some_and(|(first, _)| *first == self.next);
        if let Some((_, path)) = is_next.then(|| self.segments.next()).flatten() {
            let file = File::open(&*path).map_err(JournalError::io("open", &path))?;
            let header = read_header(&file, &path)?;
            if (header.id, header.first) != (self.id, self.next) {
                return Err(JournalError::damaged(&path, 0, "the header belongs to another segment"));
            }
            self.current_segment = Some((file, path));
            self.offset = HEADER_BYTES as u64;
            self.seed = header.seed();
        }
        Ok(())
    }

    fn damaged(&self, reason: &str) -> JournalError {
        let path = self.current_segment.as_ref().map_or(Path::new(""), |(_, path)| path);
        JournalError::damaged(path, self.offset, reason)
    }

    /// Makes the iterator return no further records.
    fn finish(&mut self) {
        self.next = self.last.saturating_add(1);
    }
}

impl Iterator for Records {
    type Item = Result<(Seq, Vec<u8>), JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.next_record();
        if record.is_err() {
            self.finish();
        }
        record.transpose()
    }
}

fn read_header(file: &File, path: &Path) -> Result<Header, JournalError> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    file.take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(JournalError::io("read", path))?;
    Header::decode(&bytes).map_err(|reason| JournalError::damaged(path, 0, reason))
}

fn read_at(file: &File, path: &Path, bytes: &mut [u8], offset: u64) -> Result<(), JournalError> {
    file.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => JournalError::damaged(path, offset, "the file ends inside a group"),
        _ => JournalError::Io { action: "read", path: path.to_owned(), source: error },
    })
}
