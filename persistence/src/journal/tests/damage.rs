//! A torn write is truncated; all other damage is refused, reported with its place, and left unchanged.

use std::collections::BTreeMap;

use super::super::record::{FRAME_BYTES, HEADER_BYTES, RECORD_PREFIX_BYTES};
use super::*;

pub(super) fn snapshot(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

pub(super) fn restore(dir: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    files.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
}

fn group_bytes(seq: Seq) -> usize {
    FRAME_BYTES + RECORD_PREFIX_BYTES + record(seq).len()
}

pub(super) fn assert_damaged(dir: &Path, file: &Path) -> u64 {
    let error = open(dir, SMALL).expect_err("damage must be refused");
    let text = error.to_string();
    let JournalError::Damaged { file: damaged_file, offset, .. } = error else { panic!("{error}") };
    assert_eq!(damaged_file, file);
    assert!(text.contains(file.to_str().unwrap()) && text.contains(&offset.to_string()), "{text}");
    offset
}

#[test]
fn a_group_cut_at_any_byte_recovers_the_prefix() {
    let dir = written_journal(20);
    let files = snapshot(dir.path());
    let last = segments(dir.path()).pop().unwrap();
    let used = files[&last].iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for cut in used - group_bytes(20)..used {
        for zeros in [false, true] {
            restore(dir.path(), &files);
            let mut bytes = files[&last].clone();
            if zeros {
                bytes[cut..].fill(0)
            } else {
                bytes.truncate(cut)
            }
            fs::write(&last, bytes).unwrap();
            let recovered = open(dir.path(), SMALL).unwrap();
            assert_eq!(contents(&recovered, 1), expected(1, 19), "cut at {cut}");
            assert_eq!(recovered.torn_tail().is_some(), cut > used - group_bytes(20));
            drop(recovered);
            let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
            assert_eq!(append_synced(&journal, &acknowledged, &record(20)), 20);
            journal.close().unwrap();
            assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 1), expected(1, 20));
        }
    }
}

#[test]
fn a_flipped_byte_before_the_last_group_is_refused_and_nothing_is_changed() {
    let dir = written_journal(20);
    let mut files = snapshot(dir.path());
    // Spare files are not part of the log.
    files.retain(|path, _| path.extension().is_none_or(|extension| extension != "tmp"));
    restore(dir.path(), &files);
    let all = segments(dir.path());
    assert!(all.len() > 2);
    for file in &all {
        let is_last = Some(file) == all.last();
        let used = files[file].iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let end = if is_last { used - group_bytes(20) } else { files[file].len() };
        for offset in 0..end {
            let mut bytes = files[file].clone();
            bytes[offset] ^= 0x10;
            fs::write(file, &bytes).unwrap();
            assert!(assert_damaged(dir.path(), file) <= offset as u64);
            assert!(fs::read(file).unwrap() == bytes);
        }
        fs::write(file, &files[file]).unwrap();
    }
    assert!(snapshot(dir.path()) == files);
}

#[test]
fn a_flipped_byte_in_the_last_group_is_a_torn_tail() {
    let dir = written_journal(20);
    let files = snapshot(dir.path());
    let last = segments(dir.path()).pop().unwrap();
    let used = files[&last].iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for offset in used - group_bytes(20)..used {
        restore(dir.path(), &files);
        let mut bytes = files[&last].clone();
        bytes[offset] ^= 0x01;
        fs::write(&last, bytes).unwrap();
        let recovered = open(dir.path(), SMALL).unwrap();
        assert_eq!(recovered.last(), Some(19));
        let torn_tail = recovered.torn_tail().unwrap();
        assert_eq!((&torn_tail.file, torn_tail.offset), (&last, (used - group_bytes(20)) as u64));
    }
}

#[test]
fn a_later_group_that_ends_with_zeros_proves_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
    for record in [&[1; 10][..], &[2; 10], &[0; 10]] {
        append_synced(&journal, &acknowledged, record);
    }
    journal.close().unwrap();
    let file = segments(dir.path()).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let second = HEADER_BYTES + FRAME_BYTES + RECORD_PREFIX_BYTES + 10;
    bytes[second + FRAME_BYTES + RECORD_PREFIX_BYTES] ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert_eq!(assert_damaged(dir.path(), &file), second as u64);
}

#[test]
fn bytes_further_than_a_torn_group_reaches_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 20 << 20, max_bytes: 64 << 20, ..SMALL };
    let (journal, acknowledged) = start(dir.path(), &options, 0);
    append_synced(&journal, &acknowledged, b"one");
    journal.close().unwrap();
    let file = segments(dir.path()).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] = 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(assert_damaged(dir.path(), &file), (HEADER_BYTES + FRAME_BYTES + RECORD_PREFIX_BYTES + 3) as u64);
}

#[test]
fn a_missing_middle_segment_is_refused() {
    let dir = written_journal(20);
    let all = segments(dir.path());
    fs::remove_file(&all[1]).unwrap();
    assert_damaged(dir.path(), &all[0]);
}

#[test]
fn a_segment_of_another_journal_is_refused() {
    let dir = written_journal(20);
    let other = written_journal(20);
    let file = &segments(dir.path())[0];
    fs::copy(&segments(other.path())[0], file).unwrap();
    assert_eq!(assert_damaged(dir.path(), file), 0);
}

#[test]
fn a_missing_id_is_refused() {
    let dir = written_journal(1);
    fs::remove_file(dir.path().join("id")).unwrap();
    assert_damaged(dir.path(), &segments(dir.path())[0]);
}

#[test]
fn a_segment_whose_creation_was_interrupted_is_removed() {
    for bytes in [Vec::new(), vec![7; HEADER_BYTES - 1], vec![0; 512]] {
        let dir = written_journal(20);
        let unfinished = segment::segment_path(dir.path(), 21);
        fs::write(&unfinished, bytes).unwrap();
        let spares = ["spare-1.tmp", "spare-7.tmp"].map(|name| dir.path().join(name));
        spares.iter().for_each(|spare| fs::write(spare, b"half").unwrap());
        let recovered = open(dir.path(), SMALL).unwrap();
        assert_eq!(contents(&recovered, 1), expected(1, 20));
        assert!(!unfinished.exists() && !spares.iter().any(|spare| spare.exists()));
    }
}
