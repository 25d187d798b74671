//! Records that wait to be written. Their bytes are queued in the layout of a group's body, so that a group is written
//! straight from the queue: its records are not copied again, and no record needs an allocation of its own.

use std::collections::VecDeque;

use super::Seq;
use super::record::{FRAME_BYTES, RECORD_PREFIX_BYTES, seal_group};

/// Maximum capacity that an empty queue keeps: two groups of the default size. The rest is returned to the allocator.
const IDLE_BYTES_MAX: usize = 8 << 20;

/// Records in order, each with the item that its caller attached.
pub(super) struct RecordQueue<T> {
    /// Space for a frame, then the records of the groups taken so far, then the waiting records.
    bytes: Vec<u8>,
    /// Offset of the first waiting record, at least [`FRAME_BYTES`]: a group's frame overwrites what precedes it.
    first_offset: usize,
    /// Length of each waiting record without its prefix, and its item.
    records: VecDeque<(usize, T)>,
}

/// Records taken from the queue to be written together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Offset of the frame.
    start: usize,
    /// Offset after the last record.
    end: usize,
    pub first: Seq,
    pub records: u32,
}

impl Group {
    /// Bytes of frame and body.
    pub fn len(&self) -> usize {
        self.end - self.start
    }
}

impl<T> RecordQueue<T> {
    pub fn new() -> Self {
        Self { bytes: vec![0; FRAME_BYTES], first_offset: FRAME_BYTES, records: VecDeque::new() }
    }

    pub fn push(&mut self, record: &[u8], item: T) {
        // `append` rejects records above RECORD_BYTES_MAX, so the length fits.
        self.bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.records.push_back((record.len(), item));
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Bytes of the first record with its prefix; 0 without a record.
    pub fn first_record_bytes(&self) -> usize {
        self.records.front().map_or(0, |(length, _)| RECORD_PREFIX_BYTES + length)
    }

    /// Appends the records of `later`, and empties it.
    pub fn join(&mut self, later: &mut Self) {
        if self.is_empty() {
            self.clear();
            std::mem::swap(self, later);
        } else if !later.is_empty() {
            self.bytes.drain(FRAME_BYTES..self.first_offset);
            self.first_offset = FRAME_BYTES;
            self.bytes.extend_from_slice(&later.bytes[later.first_offset..]);
            self.records.append(&mut later.records);
            later.clear();
        }
    }

    /// Takes records for a group of at most `bytes_max` bytes with its frame, but at least one record if there is any.
    /// Their items are appended to `items`. The first record has the sequence `first`.
    pub fn take_group(&mut self, first: Seq, bytes_max: usize, items: &mut Vec<(Seq, T)>) -> Group {
        let start = self.first_offset - FRAME_BYTES;
        let mut group = Group { start, end: self.first_offset, first, records: 0 };
        while let Some((length, item)) = self.records.pop_front() {
            let end = group.end + RECORD_PREFIX_BYTES + length;
            if group.records > 0 && end - start > bytes_max {
                self.records.push_front((length, item));
                break;
            }
            items.push((first + u64::from(group.records), item));
            group.end = end;
            group.records += 1;
        }
        self.first_offset = group.end;
        group
    }

    /// Fills in the frame of the group that was taken last. Returns the bytes of frame and body.
    pub fn seal(&mut self, group: &Group, seed: u32) -> &[u8] {
        let bytes = &mut self.bytes[group.start..group.end];
        seal_group(bytes, group.first, group.records, seed);
        bytes
    }

    /// The items of all waiting records, which will not be written.
    pub fn into_items(self) -> impl Iterator<Item = T> {
        self.records.into_iter().map(|(_, item)| item)
    }

    fn clear(&mut self) {
        self.records.clear();
        self.bytes.truncate(FRAME_BYTES);
        self.bytes.shrink_to(IDLE_BYTES_MAX);
        self.first_offset = FRAME_BYTES;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use proptest::prelude::*;

    use super::super::record::{record_at, whole_group};
    use super::*;

    const SEED: u32 = 7;

    /// The first sequence and the records of a group's bytes.
    fn read_group(bytes: &[u8]) -> (Seq, Vec<Vec<u8>>) {
        let frame = whole_group(bytes, SEED).expect("a whole group");
        assert_eq!(frame.bytes(), bytes.len());
        let (body, mut at, mut records) = (&bytes[FRAME_BYTES..], 0, Vec::new());
        while let Some((range, next)) = record_at(body, at).filter(|_| at < body.len()) {
            records.push(body[range].to_vec());
            at = next;
        }
        (frame.first, records)
    }

    proptest! {
        /// Records are queued on one side and taken on the other, as by the journal's handles and its writer.
        #[test]
        fn each_record_is_in_one_group_in_order(
            rounds in prop::collection::vec(
                (prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..9), 0..3_usize, 24..300_usize), 1..12),
        ) {
            let (mut queue, mut backlog) = (RecordQueue::new(), RecordQueue::new());
            let (mut pushed, mut read_back, mut items) = (Vec::new(), Vec::new(), Vec::new());
            let mut next = 1;
            // The last round takes everything that is left.
            let last_round = (Vec::new(), usize::MAX, usize::MAX);
            for (records, groups, bytes_max) in rounds.into_iter().chain([last_round]) {
                for record in records {
                    pushed.push(record.clone());
                    queue.push(&record, pushed.len() as u64);
                }
                backlog.join(&mut queue);
                prop_assert!(queue.is_empty());
                for _ in 0..groups {
                    if backlog.is_empty() {
                        break;
                    }
                    let (len_before, first_record_bytes) = (backlog.len(), backlog.first_record_bytes());
                    let group = backlog.take_group(next, bytes_max, &mut items);
                    prop_assert!(group.records > 0 && len_before - backlog.len() == group.records as usize);
                    prop_assert!(group.len() <= bytes_max.max(FRAME_BYTES + first_record_bytes));
                    let (first, found) = read_group(backlog.seal(&group, SEED));
                    prop_assert_eq!((first, found.len()), (next, group.records as usize));
                    read_back.extend(found);
                    next += u64::from(group.records);
                }
            }
            prop_assert!(backlog.is_empty());
            prop_assert_eq!(&read_back, &pushed);
            let expected_items: Vec<(Seq, u64)> = (1..=pushed.len() as u64).map(|number| (number, number)).collect();
            prop_assert_eq!(items, expected_items);
        }
    }

    #[test]
    fn the_memory_of_a_burst_is_released() {
        let (mut queue, mut backlog) = (RecordQueue::new(), RecordQueue::new());
        queue.push(&vec![1; IDLE_BYTES_MAX + 1], ());
        backlog.join(&mut queue);
        backlog.take_group(1, usize::MAX, &mut Vec::new());
        backlog.join(&mut queue);
        assert!(queue.bytes.capacity() <= IDLE_BYTES_MAX && backlog.bytes.capacity() <= IDLE_BYTES_MAX);
    }
}
