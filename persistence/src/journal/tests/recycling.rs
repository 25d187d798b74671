//! Segments in recycled files: stale bytes are never read as records, never reported as damage, and never hide damage.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use super::super::record::{FRAME_BYTES, HEADER_BYTES, Header, RECORD_PREFIX_BYTES, whole_group};
use super::damage::{assert_damaged, restore, snapshot};
use super::*;

const SEGMENT_BYTES: usize = 512;
/// The unit a disk writes atomically. A real one is at least as large as a segment of these tests.
const SECTOR_BYTES: usize = 64;
const GROUP_BYTES_MAX: u32 = 1 << 20;

/// Contents of a file that an earlier segment used and filled: groups of records before `first`.
fn stale_file(id: &record::JournalId, first: Seq) -> Vec<u8> {
    let earlier = first.saturating_sub(30);
    let header = Header::new(GROUP_BYTES_MAX, earlier, *id);
    let mut bytes = header.encode();
    for seq in (earlier..first).cycle() {
        bytes.extend(group(&header, seq, &[record(seq)]));
        if bytes.len() >= SEGMENT_BYTES {
            break;
        }
    }
    bytes.truncate(SEGMENT_BYTES);
    bytes
}

/// End offset of a segment's last group.
fn end_of_groups(bytes: &[u8]) -> usize {
    let header = Header::decode(bytes).unwrap();
    let mut offset = HEADER_BYTES;
    while let Some(group) = whole_group(&bytes[offset..], header.seed()) {
        offset += group.bytes();
    }
    offset
}

/// Like [`written_journal`], but in recycled files.
pub(super) fn recycled_journal(count: Seq) -> TempDir {
    let dir = written_journal(count);
    let id = segment::read_id(dir.path()).unwrap().unwrap();
    for (first, path) in segment::list(dir.path()).unwrap().segments {
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), SEGMENT_BYTES);
        let header = Header { stale_end: SEGMENT_BYTES as u64, ..Header::decode(&bytes).unwrap() };
        let end = end_of_groups(&bytes);
        let all = [&header.encode()[..], &bytes[HEADER_BYTES..end], &stale_file(&id, first)[end..]].concat();
        fs::write(path, all).unwrap();
    }
    dir
}

fn last_group_bytes(count: Seq) -> usize {
    FRAME_BYTES + RECORD_PREFIX_BYTES + record(count).len()
}

/// The last segment of [`recycled_journal`]: its path, its bytes, the range of its last group, and the file's contents
/// before this use.
fn last_segment(dir: &Path, count: Seq) -> (PathBuf, Vec<u8>, std::ops::Range<usize>, Vec<u8>) {
    let (first, path) = segment::list(dir).unwrap().segments.pop().unwrap();
    let bytes = fs::read(&path).unwrap();
    let end = end_of_groups(&bytes);
    let stale = stale_file(&segment::read_id(dir).unwrap().unwrap(), first);
    (path, bytes, end - last_group_bytes(count)..end, stale)
}

/// Names and sizes; files that disappear meanwhile are left out.
fn files_in(dir: &Path) -> Vec<(String, u64)> {
    let size = |entry: &fs::DirEntry| entry.metadata().map(|metadata| metadata.len());
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.filter_map(|entry| Some((entry.file_name().into_string().unwrap(), size(&entry).ok()?))).collect()
}

fn spares_in(dir: &Path) -> usize {
    files_in(dir).iter().filter(|(name, _)| name.ends_with(".tmp")).count()
}

#[test]
fn released_segments_become_the_next_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
    let mut inodes = BTreeSet::new();
    let mut segments_started = 0;
    for seq in 1..=400 {
        append_synced(&journal, &acknowledged, &record(seq));
        let current = segments(dir.path()).pop().unwrap();
        segments_started += usize::from(inodes.insert((fs::metadata(&current).unwrap().ino(), current)));
        if journal.stats().segments > 1 {
            journal.release(seq - 1);
            wait_until("the helper has done its chores", || {
                segments(dir.path()).len() == 1 && spares_in(dir.path()) == 2
            });
        }
    }
    let distinct: BTreeSet<u64> = inodes.iter().map(|(inode, _)| *inode).collect();
    assert!(segments_started > 30, "{segments_started} segments");
    assert!(distinct.len() <= 4, "{} files for {segments_started} segments", distinct.len());
    let (first, path) = segment::list(dir.path()).unwrap().segments.pop().unwrap();
    assert!(Header::decode(&fs::read(path).unwrap()).unwrap().stale_end > HEADER_BYTES as u64);
    journal.close().unwrap();
    drop(journal);
    let recovered = open(dir.path(), SMALL).unwrap();
    assert_eq!((recovered.first(), recovered.torn_tail()), (Some(first), None));
    assert_eq!(contents(&recovered, first), expected(first, 400));
    assert_eq!(spares_in(dir.path()), 0);
}

#[test]
fn a_journal_that_shrinks_frees_disk_space() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
    for seq in 1..=100 {
        append_synced(&journal, &acknowledged, &record(seq));
    }
    assert!(segments(dir.path()).len() > 8);
    journal.release(100);
    journal.close().unwrap();
    assert_eq!((segments(dir.path()).len(), spares_in(dir.path())), (1, 2));
}

#[test]
fn spares_count_against_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: 3 * 512, ..SMALL };
    let (journal, acknowledged) = start(dir.path(), &options, 0);
    // The id file and the confirmed file are neither segments nor spares.
    let is_segment = |name: &str| !["id", "confirmed"].contains(&name);
    let on_disk =
        || files_in(dir.path()).iter().filter(|(name, _)| is_segment(name)).map(|(_, bytes)| bytes).sum::<u64>();
    for round in 0..10 {
        while let Ok(reservation) = journal.reserve() {
            reservation.append(&[7; 20], 0).unwrap();
        }
        let last = journal.appended();
        while acknowledged.recv().unwrap().0 < last {}
        journal.release(last);
        wait_until_accepted(&journal);
        wait_until("the files of released segments are deleted", || on_disk() <= options.max_bytes);
        if round == 5 {
            // Uses the disk space of the spares.
            let large = append_synced(&journal, &acknowledged, &[7; 1100]);
            wait_until("the spares are deleted", || spares_in(dir.path()) == 0);
            journal.release(large);
            wait_until_accepted(&journal);
        }
    }
    journal.close().unwrap();
    assert!(on_disk() <= options.max_bytes);
}

#[test]
fn a_file_that_is_being_read_is_not_recycled() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
    for seq in 1..=60 {
        append_synced(&journal, &acknowledged, &record(seq));
    }
    let mut reader = journal.read_from(1).unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), (1, record(1)));
    let first = segments(dir.path())[0].clone();
    let before = fs::read(&first).unwrap();
    let open_file = fs::File::open(&first).unwrap();
    let second = segments(dir.path())[1].clone();
    journal.release(60);
    wait_until("the first two segments are released", || !first.exists() && !second.exists());
    for seq in 61..=200 {
        append_synced(&journal, &acknowledged, &record(seq));
        journal.release(seq);
    }
    journal.close().unwrap();
    let mut after = Vec::new();
    std::io::Read::read_to_end(&mut &open_file, &mut after).unwrap();
    assert!(after == before, "a file that was being read was written into");
    // The open file is read to its end. The next segment can no longer be opened: its file was removed.
    let mut next = 2;
    let end = loop {
        match reader.next().unwrap() {
            Ok(read) => assert_eq!(read, (next, record(next))),
            Err(error) => break error,
        }
        next += 1;
    };
    assert!(matches!(end, JournalError::Io { action: "open", .. }), "{end}");
    assert!(next > 2);
}

#[test]
fn stale_bytes_of_a_recycled_segment_are_neither_records_nor_damage() {
    let dir = recycled_journal(20);
    let recovered = open(dir.path(), SMALL).unwrap();
    assert_eq!((recovered.last(), recovered.torn_tail()), (Some(20), None));
    assert_eq!(contents(&recovered, 1), expected(1, 20));
    let last = segments(dir.path()).pop().unwrap();
    let bytes = fs::read(&last).unwrap();
    assert_eq!(bytes.len(), end_of_groups(&bytes), "stale bytes are truncated with the tail");
}

#[test]
fn a_group_cut_at_any_byte_recovers_the_prefix() {
    let dir = recycled_journal(20);
    let files = snapshot(dir.path());
    let (last, bytes, group, stale) = last_segment(dir.path(), 20);
    for cut in group.clone() {
        restore(dir.path(), &files);
        fs::write(&last, [&bytes[..cut], &stale[cut..]].concat()).unwrap();
        let recovered = open(dir.path(), SMALL).unwrap();
        assert_eq!(contents(&recovered, 1), expected(1, 19), "cut at {cut}");
        // Without its whole frame, a torn group leaves no trace.
        match recovered.torn_tail() {
            Some(torn) => assert_eq!((&torn.file, torn.offset), (&last, group.start as u64)),
            None => assert!(cut < group.start + FRAME_BYTES, "cut at {cut}"),
        }
        drop(recovered);
        let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
        assert_eq!(append_synced(&journal, &acknowledged, &record(20)), 20);
        journal.close().unwrap();
        drop(journal);
        assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 1), expected(1, 20));
    }
}

/// Before a sync returns, the disk may write the sectors of a group in any order.
#[test]
fn a_group_with_any_of_its_sectors_missing_is_a_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
    append_synced(&journal, &acknowledged, &record(1));
    journal.close().unwrap();
    drop(journal);
    let id = segment::read_id(dir.path()).unwrap().unwrap();
    let (first, path) = segment::list(dir.path()).unwrap().segments.pop().unwrap();
    let header = Header { stale_end: SEGMENT_BYTES as u64, ..Header::new(GROUP_BYTES_MAX, first, id) };
    let head = [header.encode(), group(&header, 1, &[record(1)])].concat();
    let torn = group(&header, 2, &(2..=9).map(record).collect::<Vec<_>>());
    let end = head.len() + torn.len();
    assert!(end < SEGMENT_BYTES);
    // Stale records of the same length at the same offsets are the likeliest to be mistaken for the new ones.
    let earlier = Header::new(GROUP_BYTES_MAX, 0, id);
    let alike = group(&earlier, 0, &(2..=9).map(record).collect::<Vec<_>>());
    for stale in [stale_file(&id, first), [&head[..], &alike, &stale_file(&id, first)[end..]].concat()] {
        let before = [&head[..], &stale[head.len()..]].concat();
        let after = [&head[..], &torn, &stale[end..]].concat();
        let sectors: Vec<usize> = (head.len() / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES)).collect();
        for written in 0..1u32 << sectors.len() {
            let mut bytes = before.clone();
            for (_, sector) in sectors.iter().enumerate().filter(|(number, _)| written >> number & 1 == 1) {
                let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                bytes[range.clone()].copy_from_slice(&after[range]);
            }
            // The group is complete if the missing sectors already had the same bytes.
            let last = if bytes[..end] == after[..end] { 9 } else { 1 };
            fs::write(&path, bytes).unwrap();
            let recovered = open(dir.path(), SMALL).unwrap();
            assert_eq!(contents(&recovered, 1), expected(1, last), "sectors {written:b}");
        }
    }
}

#[test]
fn a_flipped_byte_is_damage_in_a_group_and_ignored_among_stale_bytes() {
    let dir = recycled_journal(20);
    let files = snapshot(dir.path());
    let all = segments(dir.path());
    assert!(all.len() > 2);
    let (last, _, last_group, _) = last_segment(dir.path(), 20);
    for file in &all {
        let whole = &files[file];
        let end = end_of_groups(whole);
        for offset in 0..whole.len() {
            restore(dir.path(), &files);
            let mut bytes = whole.clone();
            bytes[offset] ^= 0x10;
            fs::write(file, &bytes).unwrap();
            if offset >= end {
                assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 1), expected(1, 20), "{offset}");
            } else if *file == last && last_group.contains(&offset) {
                assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 1), expected(1, 19), "{offset}");
            } else {
                assert!(assert_damaged(dir.path(), file) <= offset as u64);
                assert!(fs::read(file).unwrap() == bytes);
            }
        }
    }
}

#[test]
fn a_byte_beyond_the_stale_ones_and_any_group_is_damage() {
    let dir = recycled_journal(20);
    let files = snapshot(dir.path());
    let all = segments(dir.path());
    for file in [&all[0], all.last().unwrap()] {
        let mut bytes = files[file].clone();
        let header = Header::decode(&bytes).unwrap();
        let end = end_of_groups(&bytes);
        // The earlier use ended 3 bytes after the last group of this one.
        let stale_end = end + 3;
        let header = Header { stale_end: stale_end as u64, longest_group_bytes: 40, ..header };
        bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
        bytes[stale_end..].fill(0);
        restore(dir.path(), &files);
        fs::write(file, &bytes).unwrap();
        assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 1), expected(1, 20));
        *bytes.last_mut().unwrap() = 1;
        restore(dir.path(), &files);
        fs::write(file, &bytes).unwrap();
        assert_eq!(assert_damaged(dir.path(), file), end as u64);
    }
}

/// The later group proves that the lost one was synced, whatever stale bytes are in its place.
#[test]
fn a_lost_group_before_a_later_one_is_damage() {
    let dir = recycled_journal(20);
    let (last, whole, group, stale) = last_segment(dir.path(), 20);
    let before = group.start - last_group_bytes(19);
    for lost in [&stale[before..group.start], &vec![0; group.start - before]] {
        let mut bytes = whole.clone();
        bytes[before..group.start].copy_from_slice(lost);
        fs::write(&last, &bytes).unwrap();
        assert_eq!(assert_damaged(dir.path(), &last), before as u64);
        assert!(fs::read(&last).unwrap() == bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn releasing_while_appending_keeps_every_record_that_is_not_released(
        runs in prop::collection::vec((512u64..2048, prop::collection::vec((0usize..700, 0u64..40), 1..80)), 1..5),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut all: Vec<(Seq, Vec<u8>)> = Vec::new();
        let mut watermark = 0;
        for (segment_bytes, steps) in runs {
            let options = Options { segment_bytes, ..SMALL };
            let (journal, acknowledged) = start(dir.path(), &options, watermark);
            for (size, lag) in steps {
                let bytes: Vec<u8> = (0..size).map(|at| (at + all.len()) as u8).collect();
                all.push((append_synced(&journal, &acknowledged, &bytes), bytes));
                watermark = watermark.max((all.len() as u64).saturating_sub(lag));
                journal.release(watermark);
            }
            journal.close().unwrap();
            drop(journal);
            prop_assert!(spares_in(dir.path()) <= 2);
            let recovered = open(dir.path(), options).unwrap();
            let first = recovered.first().unwrap_or(all.len() as u64 + 1);
            prop_assert!(first <= watermark + 1);
            prop_assert!(contents(&recovered, first) == all[first as usize - 1..]);
            prop_assert_eq!(recovered.torn_tail(), None);
        }
    }
}
