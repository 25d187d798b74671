//! Behaviour on disk errors and killed processes. Failpoints are process-wide, so each test reruns itself in its own
//! process.

use std::process::Command;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::*;

const DIR: &str = "HOTLINE_JOURNAL_TEST_DIR";

/// Runs the named test in its own process; returns whether it succeeded.
fn succeeds_in_own_process(name: &str, dir: &Path) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{}::{name}", module_path!().split_once("::").unwrap().1), "--exact", "--quiet"])
        .env(DIR, dir)
        .output()
        .unwrap();
    output.status.success()
}

/// The directory of a test that runs in its own process; `None` in the process that starts it.
fn own_dir() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

#[test]
fn a_failed_sync_poisons_and_acknowledges_nothing() {
    let Some(dir) = own_dir() else {
        let dir = tempfile::tempdir().unwrap();
        assert!(succeeds_in_own_process("a_failed_sync_poisons_and_acknowledges_nothing", dir.path()));
        return;
    };
    let (poisoned_sender, poisoned) = channel();
    let (acknowledged_sender, acknowledged) = channel();
    let journal = open(&dir, SMALL)
        .unwrap()
        .start(
            0,
            move |items| items.drain(..).for_each(|item: (Seq, u64)| acknowledged_sender.send(item).unwrap()),
            move |error| poisoned_sender.send(error.to_string()).unwrap(),
        )
        .unwrap();
    let reservation = journal.reserve().unwrap();
    append(&journal, b"one");
    assert_eq!(acknowledged.recv().unwrap().0, 1);
    fail::cfg("journal_sync", "return").unwrap();
    append(&journal, b"two");
    assert_eq!(poisoned.recv().unwrap(), "injected sync error");
    assert_eq!(journal.reserve().unwrap_err(), Refused::Poisoned);
    fail::remove("journal_sync");
    assert_eq!(reservation.append(b"three", 0).unwrap(), 3);
    assert!(matches!(journal.close(), Err(JournalError::Poisoned)));
    assert_eq!(journal.synced(), 1);
    drop(journal);
    assert_eq!(acknowledged.iter().count(), 0);
    assert_eq!(poisoned.iter().count(), 0);
}

#[test]
fn a_full_disk_delays_queued_records_until_there_is_room() {
    let Some(dir) = own_dir() else {
        let dir = tempfile::tempdir().unwrap();
        assert!(succeeds_in_own_process("a_full_disk_delays_queued_records_until_there_is_room", dir.path()));
        return;
    };
    let (journal, acknowledged) = start(&dir, &SMALL, 0);
    fail::cfg("journal_create_segment", "return").unwrap();
    // Larger than a segment, so that no spare fits.
    append(&journal, &[7; 2000]);
    assert_eq!(wait_until_refused(&journal), Refused::JournalFull);
    assert_eq!(journal.synced(), 0);
    fail::remove("journal_create_segment");
    assert_eq!(acknowledged.recv().unwrap().0, 1);
    wait_until_accepted(&journal);
    fail::cfg("journal_create_segment", "return").unwrap();
    append(&journal, &[7; 2000]);
    assert!(matches!(journal.close(), Err(JournalError::Unwritten { records: 1 })));
}

/// Waits until the writer has failed to make room, and returns why records are refused.
fn wait_until_refused(journal: &Journal<u64>) -> Refused {
    let mut refused = None;
    wait_until("the journal refuses records", || {
        refused = journal.reserve().err();
        refused.is_some()
    });
    refused.unwrap()
}

/// System resources that the failpoint reports as exhausted: open files of the process, of the system, or memory.
const SHORTAGES: [&str; 3] = ["files", "all files", "memory"];

#[test]
fn a_shortage_of_open_files_or_memory_is_waited_for_and_poisons_nothing() {
    let Some(dir) = own_dir() else {
        let dir = tempfile::tempdir().unwrap();
        assert!(succeeds_in_own_process(
            "a_shortage_of_open_files_or_memory_is_waited_for_and_poisons_nothing",
            dir.path()
        ));
        return;
    };
    let (journal, acknowledged) = start(&dir, &SMALL, 0);
    // The next segment takes the reserve file, and no other reserve is created.
    fail::cfg("journal_create_reserve", "return").unwrap();
    fail::cfg("journal_create_segment", "return(files)").unwrap();
    let mut last = append_synced(&journal, &acknowledged, &[7; 2000]);
    for shortage in SHORTAGES {
        fail::cfg("journal_create_segment", &format!("return({shortage})")).unwrap();
        let delayed = append(&journal, &[7; 2000]);
        let refused = wait_until_refused(&journal);
        assert_eq!((refused, journal.synced()), (Refused::JournalFull, last), "{shortage}");
        fail::remove("journal_create_segment");
        assert_eq!(acknowledged.recv().unwrap().0, delayed, "{shortage}");
        wait_until_accepted(&journal);
        last = delayed;
    }
    journal.close().unwrap();
    drop(journal);
    assert_eq!(open(&dir, SMALL).unwrap().last(), Some(last));
}

#[test]
fn when_no_file_can_be_opened_the_next_segment_uses_the_reserve() {
    let Some(dir) = own_dir() else {
        let dir = tempfile::tempdir().unwrap();
        assert!(succeeds_in_own_process("when_no_file_can_be_opened_the_next_segment_uses_the_reserve", dir.path()));
        return;
    };
    let (journal, acknowledged) = start(&dir, &SMALL, 0);
    fail::cfg("journal_create_segment", "return(files)").unwrap();
    for seq in 1..=20 {
        // Each takes its own segment, and no spare fits.
        assert_eq!(append_synced(&journal, &acknowledged, &[seq; 2000]), u64::from(seq));
        wait_until_accepted(&journal);
        wait_until("there is a reserve again", || dir.join("reserve").exists());
    }
    journal.close().unwrap();
    drop(journal);
    let recovered = open(&dir, SMALL).unwrap();
    assert_eq!(contents(&recovered, 1), (1..=20).map(|seq| (u64::from(seq), vec![seq; 2000])).collect::<Vec<_>>());
    assert!(!dir.join("reserve").exists(), "the next open removes the rest of the reserve");
}

#[test]
fn a_process_killed_at_any_point_keeps_acknowledged_records() {
    if let Some(dir) = own_dir() {
        return append_until_killed(&dir);
    }
    for point in [
        "journal_before_write",
        "journal_before_sync",
        "journal_after_sync",
        "journal_header_written",
        "journal_adopt",
        "journal_after_rename",
        "journal_before_recycle",
        "journal_recycle_renamed",
        "journal_recycled",
        "journal_before_remove",
        "journal_removed",
    ] {
        let dir = tempfile::tempdir().unwrap();
        for round in 1..6u64 {
            fs::write(dir.path().join("kill"), format!("{point} {}", round * 3)).unwrap();
            let journal = dir.path().join("journal");
            assert!(!succeeds_in_own_process("a_process_killed_at_any_point_keeps_acknowledged_records", dir.path()));
            let read = |name| -> Seq { fs::read_to_string(dir.path().join(name)).unwrap().parse().unwrap() };
            let (acknowledged, watermark) = (read("acknowledged"), read("watermark"));
            let recovered = open(&journal, SMALL).unwrap();
            let (first, last) = (recovered.first().unwrap_or(1), recovered.last().unwrap_or(0));
            assert!(last >= acknowledged, "{point}: {last} of {acknowledged}");
            assert!(first <= watermark + 1, "{point}: {first} is above {watermark}");
            assert!(contents(&recovered, first) == expected(first, last), "{point}");
        }
    }
}

/// A hole between two segments would look like damage.
#[test]
fn a_segment_that_cannot_be_removed_retains_the_later_ones() {
    let Some(dir) = own_dir() else {
        let dir = tempfile::tempdir().unwrap();
        assert!(succeeds_in_own_process("a_segment_that_cannot_be_removed_retains_the_later_ones", dir.path()));
        return;
    };
    let (journal, acknowledged) = start(&dir, &SMALL, 0);
    for seq in 1..=60 {
        append_synced(&journal, &acknowledged, &record(seq));
    }
    let all = segments(&dir);
    assert!(all.len() > 5);
    for point in ["journal_before_recycle", "journal_before_remove"] {
        fail::cfg(point, "return").unwrap();
    }
    journal.release(60);
    journal.close().unwrap();
    drop(journal);
    assert_eq!(segments(&dir), all);
    for point in ["journal_before_recycle", "journal_before_remove"] {
        fail::remove(point);
    }
    assert_eq!(contents(&open(&dir, SMALL).unwrap(), 1), expected(1, 60));
    // The first attempt fails; the next chore removes this segment, and then the later ones.
    fail::cfg("journal_before_recycle", "1*return->off").unwrap();
    fail::cfg("journal_before_remove", "1*return->off").unwrap();
    let (journal, _acknowledged) = start(&dir, &SMALL, 60);
    journal.close().unwrap();
    assert_eq!(segments(&dir).len(), 1);
}

/// How many records the database lags behind the last synced one: several segments.
const LAG_RECORDS: u64 = 50;

/// Appends records until the process is killed. The file `kill` names the failpoint, and the number of the hit at which
/// it kills. A process that is not killed in time exits successfully, which fails the test that started it.
fn append_until_killed(dir: &Path) {
    let kill = fs::read_to_string(dir.join("kill")).unwrap();
    let (point, hits) = kill.split_once(' ').unwrap();
    let remaining = AtomicU64::new(hits.parse().unwrap());
    let lock = Mutex::new(());
    fail::cfg_callback(point, move || {
        let _one_at_a_time = lock.lock();
        if remaining.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::process::abort();
        }
    })
    .unwrap();
    write_seq(dir, "acknowledged", 0);
    let recovered = open(&dir.join("journal"), SMALL).unwrap();
    let mut watermark = recovered.first().map_or(0, |first| first - 1);
    write_seq(dir, "watermark", watermark);
    let folder = dir.to_owned();
    let on_synced = move |items: &mut Vec<(Seq, u64)>| write_seq(&folder, "acknowledged", items.last().unwrap().0);
    let journal = recovered.start(watermark, on_synced, |_| {}).unwrap();
    let started = Instant::now();
    while started.elapsed() < WAIT_MAX {
        if let Ok(reservation) = journal.reserve() {
            let seq = journal.appended() + 1;
            reservation.append(&record(seq), 0).unwrap();
        }
        let flushed = journal.synced().saturating_sub(LAG_RECORDS);
        if flushed >= watermark + LAG_RECORDS {
            watermark = flushed;
            write_seq(dir, "watermark", watermark);
            journal.release(watermark);
        }
    }
}

/// Writes a sequence to a file, atomically because the process may be killed meanwhile.
fn write_seq(dir: &Path, name: &str, seq: Seq) {
    let new = dir.join(format!("{name}.new"));
    fs::write(&new, seq.to_string()).unwrap();
    fs::rename(new, dir.join(name)).unwrap();
}
