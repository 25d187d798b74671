//! The bytes on disk are those that the format describes, and no other version is read.

use super::super::record::{Header, JournalId};
use super::damage::assert_damaged;
use super::*;

const ID: JournalId = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A segment whose `stale_end` is 512: a group with record 1, then a group with records 2 and 3. The checksums were
/// computed by another implementation.
const SEGMENT: &str = "484f544c4a524e4c010000001c0000010100000000000000000102030405060708090a0b0c0d0e0f0002000000000000\
    d00e6736b7484ce90e000000bde0d5470100000001000000000000000a0000007265636f726420312078b7484ce91f000000654bf7e902000000\
    02000000000000000b0000007265636f726420322078780c0000007265636f7264203320787878";

fn decode_hex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|index| u8::from_str_radix(&hex[index..index + 2], 16).unwrap()).collect()
}

/// A journal with one segment.
fn journal_of(segment: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("id"), format!("{}\n", segment::id_text(&ID))).unwrap();
    fs::write(segment::segment_path(dir.path(), 1), segment).unwrap();
    dir
}

#[test]
fn the_bytes_on_disk_are_those_described() {
    let header = Header { stale_end: 512, ..Header::new(16_777_244, 1, ID) };
    let (first, second) = (group(&header, 1, &[record(1)]), group(&header, 2, &[record(2), record(3)]));
    let segment = [header.encode(), first, second].concat();
    assert!(segment == decode_hex(SEGMENT));
    assert_eq!(Header::decode(&segment), Ok(header));
    let dir = journal_of(&segment);
    assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 1), expected(1, 3));
}

#[test]
fn an_unknown_version_is_refused() {
    let mut segment = decode_hex(SEGMENT);
    for version in [0, 2, 255] {
        segment[8] = version;
        let dir = journal_of(&segment);
        assert_eq!(assert_damaged(dir.path(), &segments(dir.path())[0]), 0);
        let error = open(dir.path(), SMALL).expect_err("an unknown version must be refused").to_string();
        assert!(error.contains(&format!("format version 1, not {version}")), "{error}");
    }
}
