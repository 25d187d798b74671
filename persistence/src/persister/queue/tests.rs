//! Which entries a transaction takes, and when the persister is woken.

use chrono::Utc;
use futures_util::FutureExt;

use super::*;
use crate::durable::Durable;
use crate::tables::contacts::ContactChannel;
use crate::{ChannelId, CompanyId, ContactId};

fn entry(seq: Seq) -> Entry {
    let change = ContactChannel {
        company_id: CompanyId::new(1),
        contact_id: ContactId::new(1),
        channel_id: ChannelId::new(1),
        at: Utc::now(),
    };
    Entry { seq, changes: vec![Change::ContactChannel(change)], signal: None }
}

fn take_seqs(queue: &FlushQueue) -> Vec<Seq> {
    match queue.take_entries() {
        NextEntries::Entries(entries) => entries.iter().map(|entry| entry.seq).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn entries_beyond_the_capacity_are_read_back_exactly_once() {
    let queue = FlushQueue::with_capacity(0, true, 2);
    queue.push((1..=5).map(entry));
    assert_eq!(take_seqs(&queue), [1, 2]);
    let NextEntries::Spilled { from: 3 } = queue.take_entries() else { panic!("3 to 5 are on disk only") };
    // Entries 6 and 7 are synced, and read back with the others, before `push` receives them.
    queue.mark_read_back(7);
    queue.push((6..=8).map(entry));
    assert_eq!(take_seqs(&queue), [8]);
    assert!(matches!(queue.take_entries(), NextEntries::Nothing));
}

#[test]
fn entries_bypass_memory_while_earlier_ones_are_only_on_disk() {
    let queue = FlushQueue::with_capacity(0, true, 1);
    queue.push((1..=4).map(entry));
    assert_eq!(take_seqs(&queue), [1]);
    queue.mark_read_back(3);
    queue.push([entry(5)].into_iter());
    let NextEntries::Spilled { from: 4 } = queue.take_entries() else { panic!("4 and 5 are on disk only") };
    queue.mark_read_back(5);
    queue.push([entry(6)].into_iter());
    assert_eq!(take_seqs(&queue), [6]);
}

#[test]
fn the_lag_is_the_age_of_the_oldest_unflushed_entry() {
    const PAUSE: Duration = Duration::from_millis(20);
    let queue = FlushQueue::with_capacity(0, true, 2);
    assert_eq!(queue.lag(), Duration::ZERO);
    queue.push((1..=4).map(entry));
    std::thread::sleep(PAUSE);
    // An urgent entry ends its batch, so the second one is still in memory.
    queue.barrier.store(1, Ordering::Release);
    assert_eq!(take_seqs(&queue), [1]);
    queue.record_flush(1, 1, PAUSE);
    assert!(queue.lag() >= PAUSE, "entry 2 is as old: {:?}", queue.lag());
    assert_eq!(take_seqs(&queue), [2]);
    queue.record_flush(2, 1, PAUSE);
    assert!(queue.lag() >= PAUSE, "entries 3 and 4, on disk only, are as old: {:?}", queue.lag());
    queue.mark_read_back(4);
    queue.record_flush(4, 2, PAUSE);
    assert_eq!(queue.lag(), Duration::ZERO);
    assert_eq!((queue.changes_written(), queue.flushes().changes.read().count()), (4, 3));
}

#[test]
fn an_urgent_entry_is_taken_without_later_ones() {
    let queue = FlushQueue::new(0, true);
    queue.push((1..=6).map(entry));
    queue.barrier.store(4, Ordering::Release);
    assert_eq!(take_seqs(&queue), [1, 2, 3, 4]);
    assert_eq!(take_seqs(&queue), [5, 6]);
    let (short, long) = (SHORT_BATCH_CHANGES_MAX as Seq, BATCH_CHANGES_MAX as Seq);
    queue.push((7..7 + long + short).map(entry));
    assert_eq!(take_seqs(&queue).len() as Seq, long, "a backlog is taken in long batches");
    queue.push((7 + long + short..7 + long + 2 * short).map(entry));
    assert_eq!(take_seqs(&queue).len() as Seq, short, "without a backlog, batches are short");
}

#[test]
fn a_log_without_a_journal_refuses_entries_that_do_not_fit() {
    let queue = FlushQueue::with_capacity(0, false, 1);
    assert!(queue.check_room().is_ok());
    queue.push_numbered(&AtomicU64::new(0), entry(1).changes, Durable::pending().0);
    assert!(queue.check_room().is_err());
    assert_eq!(take_seqs(&queue), [1]);
    assert!(queue.check_room().is_ok());
}

#[tokio::test]
async fn the_persister_is_woken_for_the_first_entry_and_for_urgent_ones() {
    let queue = FlushQueue::new(0, true);
    let is_woken = || queue.arrivals.notified().now_or_never().is_some();
    let push = |seq| queue.push([entry(seq)].into_iter());
    push(1);
    assert!(is_woken(), "for the first entry");
    push(2);
    assert!(!is_woken(), "it is gathering already");
    queue.barrier.store(3, Ordering::Release);
    push(3);
    assert!(is_woken(), "for an urgent entry");
    assert_eq!(take_seqs(&queue), [1, 2, 3]);
    queue.record_flush(3, 3, Duration::ZERO);
    let short = SHORT_BATCH_CHANGES_MAX as Seq;
    queue.push((4..3 + short).map(entry));
    assert!(is_woken(), "for the first entry after a flush");
    push(3 + short);
    assert!(is_woken(), "for a full batch");
}
