#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::record::Header;
use super::record_queue::RecordQueue;
use super::*;

mod damage;
#[cfg(feature = "failpoints")]
mod failures;
mod format;
mod mangling;
mod recycling;

const SMALL: Options = Options {
    segment_bytes: 512,
    max_bytes: 1 << 20,
    queue_bytes_max: 1 << 20,
    queue_records_max: 1000,
    group_bytes_max: 4096,
};

/// The longest wait for something that takes a moment, even on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(240);

fn wait_until(what: &str, mut is_met: impl FnMut() -> bool) {
    let start = Instant::now();
    loop {
        // Read before the check, so that a slow machine still has one check after the limit.
        let is_late = start.elapsed() >= WAIT_MAX;
        if is_met() {
            return;
        }
        assert!(!is_late, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// Receives the sequence and the item of each record once it is synced.
type AcknowledgedItems = Receiver<(Seq, u64)>;

fn start(dir: &Path, options: &Options, watermark: Seq) -> (Journal<u64>, AcknowledgedItems) {
    let (sender, receiver) = channel();
    let journal = open(dir, options.clone())
        .unwrap()
        .start(watermark, move |items| items.drain(..).for_each(|item| sender.send(item).unwrap_or(())), |_| {})
        .unwrap();
    (journal, receiver)
}

fn append(journal: &Journal<u64>, record: &[u8]) -> Seq {
    journal.reserve().unwrap().append(record, 0).unwrap()
}

/// Appends and waits for the sync, so that the record is its own group.
fn append_synced(journal: &Journal<u64>, acknowledged: &AcknowledgedItems, record: &[u8]) -> Seq {
    let seq = append(journal, record);
    assert_eq!(acknowledged.recv().unwrap().0, seq);
    seq
}

fn record(seq: Seq) -> Vec<u8> {
    format!("record {seq} {}", "x".repeat(seq as usize % 40)).into_bytes()
}

/// The bytes of one group.
fn group(header: &Header, first: Seq, records: &[Vec<u8>]) -> Vec<u8> {
    let mut record_queue = RecordQueue::new();
    records.iter().for_each(|record| record_queue.push(record, ()));
    let mut group = record_queue.take_group(0, usize::MAX, &mut Vec::new());
    // A damaged file may contain any sequence.
    group.first = first;
    record_queue.seal(&group, header.seed()).to_vec()
}

/// A journal of records 1 to `count`, each its own group, closed.
fn written_journal(count: Seq) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
    for seq in 1..=count {
        append_synced(&journal, &acknowledged, &record(seq));
    }
    journal.close().unwrap();
    dir
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    segment::list(dir).unwrap().segments.into_iter().map(|(_, path)| path).collect()
}

/// The journal's segments, for a reader.
fn segment_sources(dir: &Path) -> Vec<reader::SegmentSource> {
    segment::list(dir).unwrap().segments.into_iter().map(|(first, path)| (first, path.into())).collect()
}

fn contents(recovered: &RecoveredJournal, from: Seq) -> Vec<(Seq, Vec<u8>)> {
    recovered.read_from(from).unwrap().collect::<Result<_, _>>().unwrap()
}

fn expected(from: Seq, last: Seq) -> Vec<(Seq, Vec<u8>)> {
    (from..=last).map(|seq| (seq, record(seq))).collect()
}

#[test]
fn what_was_appended_is_read_back_after_reopening() {
    let dir = written_journal(30);
    let recovered = open(dir.path(), SMALL).unwrap();
    assert_eq!((recovered.first(), recovered.last(), recovered.torn_tail()), (Some(1), Some(30), None));
    assert_eq!(contents(&recovered, 1), expected(1, 30));
    assert_eq!(contents(&recovered, 17), expected(17, 30));
    assert!(contents(&recovered, 31).is_empty());
    assert!(segments(dir.path()).len() > 2);
}

#[test]
fn a_second_open_of_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _acknowledged) = start(dir.path(), &SMALL, 0);
    assert!(matches!(open(dir.path(), SMALL), Err(JournalError::Locked { .. })));
    journal.close().unwrap();
    drop(journal);
    open(dir.path(), SMALL).unwrap();
}

#[test]
fn the_id_stays_and_differs_between_journals() {
    let (dir, other) = (written_journal(1), written_journal(1));
    let id = open(dir.path(), SMALL).unwrap().id().to_owned();
    assert_eq!(id.len(), 32);
    assert_eq!(open(dir.path(), SMALL).unwrap().id(), id);
    assert_ne!(open(other.path(), SMALL).unwrap().id(), id);
}

#[test]
fn a_database_behind_the_journals_beginning_is_refused() {
    let dir = written_journal(20);
    let (journal, _acknowledged) = start(dir.path(), &SMALL, 15);
    journal.close().unwrap();
    drop(journal);
    let recovered = open(dir.path(), SMALL).unwrap();
    let first = recovered.first().unwrap();
    assert!(first > 1);
    let result = recovered.start::<u64>(first - 2, |_| {}, |_| {});
    assert!(matches!(result, Err(JournalError::Gap { watermark, .. }) if watermark == first - 2));
}

#[test]
fn the_numbering_continues_after_a_database_that_is_ahead_of_the_journal() {
    let dir = written_journal(20);
    let (journal, acknowledged) = start(dir.path(), &SMALL, 100);
    assert_eq!(append_synced(&journal, &acknowledged, &record(101)), 101);
    journal.close().unwrap();
    drop(journal);
    assert_eq!(contents(&open(dir.path(), SMALL).unwrap(), 101), expected(101, 101));
}

#[test]
fn an_empty_segment_keeps_the_numbering_and_does_not_pile_up() {
    let dir = written_journal(20);
    for _ in 0..5 {
        let (journal, _acknowledged) = start(dir.path(), &SMALL, 20);
        assert_eq!(journal.appended(), 20);
        journal.close().unwrap();
        drop(journal);
        assert_eq!(segments(dir.path()).len(), 1);
    }
    assert!(matches!(
        open(dir.path(), SMALL).unwrap().start::<u64>(19, |_| {}, |_| {}),
        Err(JournalError::Gap { first: 21, watermark: 19 })
    ));
}

#[test]
fn concurrent_appends_are_acknowledged_in_order_and_once() {
    const RECORDS_PER_THREAD: u64 = 2000;
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 16 << 10, max_bytes: 64 << 20, queue_records_max: 64, ..SMALL };
    let (journal, acknowledged) = start(dir.path(), &options, 0);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let journal = journal.clone();
            std::thread::spawn(move || {
                let mut sequences = Vec::new();
                for number in 0..RECORDS_PER_THREAD {
                    let item = thread * RECORDS_PER_THREAD + number;
                    let mut reservation = None;
                    wait_until("there is room in the queue", || {
                        let reserved = journal.reserve();
                        assert!(matches!(reserved, Ok(_) | Err(Refused::QueueFull)), "{:?}", reserved.err());
                        reservation = reserved.ok();
                        reservation.is_some()
                    });
                    let reservation = reservation.unwrap();
                    sequences.push((reservation.append(&item.to_le_bytes(), item).unwrap(), item));
                }
                sequences
            })
        })
        .collect();
    let mut appended: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    appended.sort_unstable();
    journal.close().unwrap();
    let stats = journal.stats();
    assert_eq!((stats.queued_records, stats.queued_bytes, stats.records), (0, 0, 4 * RECORDS_PER_THREAD));
    drop(journal);
    assert_eq!(acknowledged.iter().collect::<Vec<_>>(), appended);
    assert!(appended.iter().map(|(seq, _)| *seq).eq(1..=4 * RECORDS_PER_THREAD));
    let on_disk = contents(&open(dir.path(), options).unwrap(), 1);
    assert!(on_disk.iter().map(|(seq, bytes)| (*seq, u64::from_le_bytes(bytes[..].try_into().unwrap()))).eq(appended));
}

#[test]
fn a_full_journal_refuses_records_until_segments_are_released() {
    for segments in [2, 3] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { max_bytes: segments * 512, ..SMALL };
        let (journal, acknowledged) = start(dir.path(), &options, 0);
        let mut last = 0;
        for _ in 0..20 {
            let before = last;
            // A written record takes less room than was reserved for it, so another reservation may be accepted.
            let refused = loop {
                match journal.reserve() {
                    Ok(reservation) => last = reservation.append(&[7; 20], 0).unwrap(),
                    Err(refused) => break refused,
                }
            };
            assert!(last > before);
            assert_eq!(refused, Refused::JournalFull);
            while acknowledged.recv().unwrap().0 < last {}
            assert!(journal.stats().live_bytes <= options.max_bytes);
            journal.release(last);
            wait_until_accepted(&journal);
        }
        journal.close().unwrap();
    }
}

#[test]
fn a_journal_full_of_one_oversized_record_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: 1536, ..SMALL };
    let (journal, acknowledged) = start(dir.path(), &options, 0);
    for _ in 0..5 {
        let last = append_synced(&journal, &acknowledged, &[7; 100_000]);
        assert_eq!(journal.reserve().unwrap_err(), Refused::JournalFull);
        journal.release(last);
        wait_until_accepted(&journal);
    }
    journal.close().unwrap();
}

/// The writer frees space on its own thread.
fn wait_until_accepted(journal: &Journal<u64>) {
    wait_until("the journal accepts records", || journal.reserve().is_ok());
}

#[test]
fn reservations_count_until_they_are_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _acknowledged) = start(dir.path(), &Options { queue_records_max: 2, ..SMALL }, 0);
    let reservations = (journal.reserve().unwrap(), journal.reserve().unwrap());
    assert_eq!(journal.reserve().unwrap_err(), Refused::QueueFull);
    drop(reservations);
    drop(journal.reserve().unwrap());
    journal.close().unwrap();
    assert_eq!(journal.reserve().unwrap_err(), Refused::Closed);
}

#[test]
fn a_record_above_the_limit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _acknowledged) = start(dir.path(), &SMALL, 0);
    let refused = journal.reserve().unwrap().append(&vec![0; RECORD_BYTES_MAX + 1], 42).unwrap_err();
    assert_eq!((refused.item, refused.bytes), (42, RECORD_BYTES_MAX + 1));
    assert_eq!(journal.appended(), 0);
    journal.close().unwrap();
    assert_eq!(journal.stats().queued_records, 0);
}

#[test]
fn release_deletes_only_segments_that_are_wholly_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
    for seq in 1..=30 {
        append_synced(&journal, &acknowledged, &record(seq));
    }
    let firsts: Vec<Seq> = segment::list(dir.path()).unwrap().segments.into_iter().map(|(first, _)| first).collect();
    journal.release(firsts[2] - 2);
    assert!(journal.read_from(firsts[1]).is_ok());
    assert!(matches!(journal.read_from(1), Err(JournalError::Released { first, .. }) if first == firsts[1]));
    journal.release(firsts[2] - 1);
    assert!(matches!(journal.read_from(firsts[1]), Err(JournalError::Released { .. })));
    journal.release(30);
    assert_eq!(journal.stats().segments, 1);
    journal.close().unwrap();
    assert_eq!(segments(dir.path()).len(), 1);
}

#[test]
fn reading_while_writing_yields_what_was_synced_at_the_call() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acknowledged) = start(dir.path(), &SMALL, 0);
    for seq in 1..=7 {
        append_synced(&journal, &acknowledged, &record(seq));
    }
    let mut reader = journal.read_from(3).unwrap();
    let first = reader.next().unwrap().unwrap();
    append(&journal, &record(8));
    let rest = reader.collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!([vec![first], rest].concat(), expected(3, 7));
    for seq in 9..=200 {
        append(&journal, &record(seq));
        let last = journal.synced();
        let read = journal.read_from(1).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert!(read.len() as u64 >= last);
        assert_eq!(read, expected(1, read.len() as u64));
    }
    journal.close().unwrap();
}

#[test]
fn options_that_could_never_make_room_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: 1023, ..SMALL };
    assert!(matches!(open(dir.path(), options), Err(JournalError::Options { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn reopening_and_appending_keeps_every_record(
        runs in prop::collection::vec((512u64..4096, 30usize..3000, prop::collection::vec(0usize..6000, 0..25)), 1..5),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut all: Vec<(Seq, Vec<u8>)> = Vec::new();
        for (segment_bytes, group_bytes_max, sizes) in runs {
            let options = Options { segment_bytes, group_bytes_max, ..SMALL };
            let recovered = open(dir.path(), options.clone()).unwrap();
            prop_assert_eq!(recovered.last().unwrap_or(0), all.len() as u64);
            prop_assert!(contents(&recovered, 1) == all);
            drop(recovered);
            let (journal, acknowledged) = start(dir.path(), &options, 0);
            let before = journal.appended();
            for size in sizes {
                let bytes = vec![size as u8; size];
                let seq = append(&journal, &bytes);
                all.push((seq, bytes));
            }
            journal.close().unwrap();
            drop(journal);
            prop_assert!(acknowledged.iter().map(|(seq, _)| seq).eq(before + 1..=all.len() as u64));
        }
        prop_assert!(contents(&open(dir.path(), SMALL).unwrap(), 1) == all);
    }
}

#[test]
fn only_the_owner_can_read_the_files_even_if_others_could_before() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let journal = dir.path().join("journal");
    for round in 0..2 {
        let (open_journal, acknowledged) = start(&journal, &SMALL, 0);
        for _ in 0..30 {
            append_synced(&open_journal, &acknowledged, &[7; 100]);
        }
        let files: Vec<PathBuf> = fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() > 6, "segments, spare, reserve, id, lock, confirmed file: {files:?}");
        for file in &files {
            assert_eq!(mode(file), 0o600, "{} in round {round}", file.display());
        }
        assert_eq!(mode(&journal), 0o700);
        open_journal.close().unwrap();
        // A restored backup may have such permissions.
        for file in fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().path()) {
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(&journal, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn the_confirmed_sequence_can_be_read_without_opening_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    assert_eq!(inspect(&journal).unwrap(), None);
    let large = Options { segment_bytes: 64 << 10, ..SMALL };
    let (open_journal, acknowledged) = start(&journal, &large, 0);
    for seq in 1..=9 {
        append_synced(&open_journal, &acknowledged, &record(seq));
    }
    let confirmed = || inspect(&journal).unwrap().unwrap().confirmed;
    assert_eq!(confirmed(), 0);
    open_journal.release(5);
    wait_until("the released sequence is confirmed", || confirmed() >= 5);
    open_journal.close().unwrap();
    open_journal.release(9);
    open_journal.sync_confirmed();
    assert_eq!((confirmed(), segments(&journal).len()), (9, 1));
    drop(open_journal);
    let mut recovered = open(&journal, large.clone()).unwrap();
    assert_eq!(inspect(&journal).unwrap().unwrap().id, recovered.id());
    recovered.confirm(8).unwrap();
    assert_eq!(confirmed(), 9, "the confirmed sequence never decreases");
    drop(recovered);
    // Without the file, a released segment proves the same.
    fs::remove_file(journal.join("confirmed")).unwrap();
    assert_eq!(confirmed(), 0);
    let (open_journal, _acknowledged) = start(&journal, &large, 9);
    open_journal.close().unwrap();
    fs::remove_file(journal.join("confirmed")).unwrap();
    assert_eq!(confirmed(), 9);
}
