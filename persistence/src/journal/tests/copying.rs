//! Copies of a journal that is written, released and recycled meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const OPTIONS: Options = Options { segment_bytes: 4096, ..SMALL };

/// Copies while records are appended.
const COPIES: usize = 40;

/// Records that the database lags by, some ten segments.
const LAG: Seq = 800;

#[test]
fn a_copy_has_what_was_synced_before_it_while_segments_are_recycled() {
    let dir = tempfile::tempdir().unwrap();
    let copies = tempfile::tempdir().unwrap();
    let (journal, released) = start(dir.path(), &OPTIONS, 0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seq = 0;
            while !is_over.load(Ordering::Acquire) {
                seq = append_synced(&journal, &released, &record(seq + 1));
                journal.release(seq.saturating_sub(LAG));
            }
        });
        while journal.synced() < 2 * LAG {
            std::thread::yield_now();
        }
        for number in 0..COPIES {
            let to = copies.path().join(number.to_string());
            let synced = journal.synced();
            let copied = copy(dir.path(), &to).unwrap().unwrap();
            let (first, last) = (copied.first.unwrap(), copied.last.unwrap());
            assert!(last >= synced, "{last} is below {synced}, which was synced before");
            confirm_copy(&to, first - 1).unwrap();
            // A start accepts it, and reads the same records.
            let opened = open(&to, OPTIONS).unwrap();
            assert_eq!((opened.first(), opened.last(), opened.torn_tail()), (Some(first), Some(last), None));
            assert_eq!(contents(&opened, first), expected(first, last));
            assert_eq!(inspect(&to).unwrap().unwrap().confirmed, first - 1);
        }
        is_over.store(true, Ordering::Release);
    });
    journal.close().unwrap();
}

#[test]
fn an_examination_changes_nothing_and_reports_damage_with_its_place() {
    let dir = written_journal(30);
    let before: Vec<_> = segments(dir.path()).iter().map(|path| fs::read(path).unwrap()).collect();
    let found = examine(dir.path()).unwrap().unwrap();
    assert_eq!((found.first, found.last, found.segments), (Some(1), Some(30), before.len()));
    let path = &segments(dir.path())[1];
    let mut damaged = fs::read(path).unwrap();
    damaged[100] ^= 1;
    fs::write(path, &damaged).unwrap();
    let error = examine(dir.path()).unwrap_err();
    assert!(matches!(&error, JournalError::Damaged { file, .. } if file == path), "{error}");
    assert!(copy(dir.path(), &dir.path().join("copy")).is_err());
    fs::write(path, &before[1]).unwrap();
    let after: Vec<_> = segments(dir.path()).iter().map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(after, before);
    assert_eq!(examine(&dir.path().join("none")).unwrap(), None);
}
