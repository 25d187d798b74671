//! Segments of older releases are readable, and the bytes this release writes match its declared version.

use super::super::record::{FRAME_BYTES, HEADER_BYTES_MIN, Header, JournalId, RECORD_PREFIX_BYTES, Version};
use super::damage::{assert_damaged, restore, snapshot};
use super::*;

const ID: JournalId = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Record 1, then records 2 and 3 in one group; the checksums come from another implementation.
const VERSION_1: &str = "484f544c4a524e4c010000001c0000010100000000000000000102030405060708090a0b0c0d0e0feeb9e78ab7484ce9\
    0e000000131ad8190100000001000000000000000a0000007265636f726420312078b7484ce91f0000008f2ec740020000000200000000000000\
    0b0000007265636f726420322078780c0000007265636f7264203320787878";
/// As [`VERSION_1`], in a file whose first 512 bytes are stale.
const VERSION_2: &str = "484f544c4a524e4c020000001c0000010100000000000000000102030405060708090a0b0c0d0e0f0002000000000000\
    5c47cb55b7484ce90e000000bde0d5470100000001000000000000000a0000007265636f726420312078b7484ce91f000000654bf7e902000000\
    02000000000000000b0000007265636f726420322078780c0000007265636f7264203320787878";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn group(header: &Header, first: Seq, last: Seq) -> Vec<u8> {
    super::group(header, first, &(first..=last).map(record).collect::<Vec<_>>())
}

/// A version 1 journal with these segments: first sequence and bytes.
fn version_1_journal(segments: &[(Seq, Vec<u8>)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("id"), format!("{}\n", segment::id_text(&ID))).unwrap();
    segments.iter().for_each(|(first, bytes)| fs::write(segment::segment_path(dir.path(), *first), bytes).unwrap());
    dir
}

fn version_1(first: Seq) -> Header {
    Header { version: Version::V1, ..Header::new(16_777_244, first, ID) }
}

/// Records 1 to 3, one group each, followed by zeros.
fn padded() -> Vec<u8> {
    let mut bytes = version_1(1).encode();
    (1..=3).for_each(|seq| bytes.extend(group(&version_1(1), seq, seq)));
    bytes.resize(512, 0);
    bytes
}

#[test]
fn the_bytes_on_disk_are_those_described() {
    for (hex, version, stale_end) in [(VERSION_1, Version::V1, 0), (VERSION_2, Version::V2, 512)] {
        let header = Header { version, stale_end, ..version_1(1) };
        let written = [header.encode(), group(&header, 1, 1), group(&header, 2, 3)].concat();
        assert!(written == bytes(hex), "{version:?}");
        assert_eq!(Header::decode(&written), Ok(header));
        let dir = version_1_journal(&[(1, bytes(hex))]);
        assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 1), expected(1, 3));
    }
}

#[test]
fn a_version_nobody_knows_is_refused() {
    let mut segment = bytes(VERSION_1);
    segment[8] = 3;
    let dir = version_1_journal(&[(1, segment)]);
    assert_eq!(assert_damaged(dir.path(), &segments(dir.path())[0]), 0);
}

#[test]
fn segments_of_version_1_are_read_written_behind_and_released() {
    let last = [version_1(4).encode(), group(&version_1(4), 4, 6)].concat();
    let dir = version_1_journal(&[(1, padded()), (4, last)]);
    let (journal, released) = start(dir.path(), &SMALL, 0);
    for seq in 7..=30 {
        assert_eq!(append_synced(&journal, &released, &record(seq)), seq);
    }
    let read: Vec<_> = journal.read_from(2).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(read, expected(2, 30));
    journal.close().unwrap();
    drop(journal);
    let recovered = open(dir.path(), SMALL).unwrap();
    assert_eq!(contents(&recovered, 1), expected(1, 30));
    drop(recovered);
    // The first file is as large as a segment, so it is recycled.
    let (journal, released) = start(dir.path(), &SMALL, 6);
    for seq in 31..=60 {
        append_synced(&journal, &released, &record(seq));
        journal.release(seq - 1);
    }
    journal.close().unwrap();
    drop(journal);
    let recovered = open(dir.path(), SMALL).unwrap();
    let first = recovered.first().unwrap();
    assert!(first > 6);
    assert_eq!(contents(&recovered, first), expected(first, 60));
}

#[test]
fn an_empty_last_segment_of_version_1_keeps_its_place() {
    let dir = version_1_journal(&[(1, padded()), (4, version_1(4).encode())]);
    let (journal, released) = start(dir.path(), &SMALL, 0);
    assert_eq!(append_synced(&journal, &released, &record(4)), 4);
    journal.close().unwrap();
    drop(journal);
    assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 1), expected(1, 4));
}

#[test]
fn a_torn_tail_of_version_1_is_cut_and_damage_is_refused() {
    let whole = padded();
    let group_bytes = |seq: Seq| FRAME_BYTES + RECORD_PREFIX_BYTES + record(seq).len();
    let last_at = HEADER_BYTES_MIN + group_bytes(1) + group_bytes(2);
    let used = last_at + group_bytes(3);
    let dir = version_1_journal(&[(1, whole.clone())]);
    let files = snapshot(dir.path());
    let path = segments(dir.path()).pop().unwrap();
    for at in 0..used {
        restore(dir.path(), &files);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        if at < last_at {
            assert!(assert_damaged(dir.path(), &path) <= at as u64);
        } else {
            let recovered = open(dir.path(), SMALL).unwrap();
            assert_eq!(contents(&recovered, 1), expected(1, 2));
            assert_eq!(recovered.torn_tail().unwrap().offset, last_at as u64);
        }
    }
    // Only zeros may follow the groups of a segment that is not the last.
    let mut bytes = whole;
    bytes[511] = 1;
    let dir = version_1_journal(&[(1, bytes), (4, version_1(4).encode())]);
    assert_eq!(assert_damaged(dir.path(), &segments(dir.path())[0]), used as u64);
}
