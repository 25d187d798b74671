//! Deduplication of the messages from a channel's provider. A provider repeats a call until it is acknowledged,
//! sometimes for days, and may send it twice at once: each message must be received exactly once.
//!
//! Most messages are new, and memory alone shows that, even while the database is unavailable: it has the ids received
//! recently, and the time since which it has all of them. An older message is looked up in the tables, whose unique
//! index (`messages_provider_id`) would reject a duplicate.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::key;
use parking_lot::Mutex;

use super::{EarlyStatusIndex, TableRoom};
use crate::keyed_locks::{KeyedGuard, KeyedLocks};
use crate::seen::{Membership, SeenSet};

/// Maximum received ids of one channel in memory, some 60 bytes each: a day of a busy channel. Older ids are looked up
/// in the database.
pub(crate) const RECEIVED_IDS_MAX: usize = 100_000;

/// Maximum ids in memory of messages whose receipt failed: in a database outage every receipt fails. Older ids are
/// looked up in the database.
const UNCERTAIN_MAX: usize = 10_000;

/// Maximum lag of a provider's clock behind ours.
const CLOCK_SKEW_MAX: TimeDelta = TimeDelta::minutes(10);

/// The inbox of one channel.
pub(crate) struct Inbox {
    /// Locked by the call that receives a message; concurrent calls with the same message wait.
    locks: KeyedLocks<String>,
    received: Mutex<ReceivedIds>,
    /// Statuses that arrived before their message was known to be sent.
    pub(crate) early_statuses: EarlyStatusIndex,
    /// Whether the table had room for the last revision (edit, deletion, reaction) that arrived before its message.
    pub(crate) early_revisions_room: TableRoom,
    /// When this process loaded the inbox: only the tables show what was sent earlier.
    pub(crate) loaded_at: DateTime<Utc>,
}

/// Message ids, as the first half of their hash: collisions are practically impossible among so few.
struct ReceivedIds {
    /// Durable messages.
    certain: SeenSet<u128, DateTime<Utc>>,
    /// Messages whose receipt failed, perhaps after they were durable.
    uncertain: SeenSet<u128, DateTime<Utc>>,
}

/// The lock of one message id, held while the message is received.
pub(crate) struct MessageLock {
    inbox: Arc<Inbox>,
    guard: KeyedGuard<String>,
}

impl MessageLock {
    /// Whether the message was received before. `written_at` is the time at which the provider says it was written: it
    /// cannot have been received earlier.
    pub(crate) fn membership(&self, written_at: Option<DateTime<Utc>>) -> Membership {
        self.inbox.received.lock().membership(digest(self.guard.key()), written_at)
    }

    /// Records that the message is durable.
    pub(crate) fn record_received(&self, at: DateTime<Utc>) {
        self.inbox.received.lock().certain.insert(digest(self.guard.key()), at);
    }

    /// Records that the message may be durable.
    pub(crate) fn record_uncertain(&self, at: DateTime<Utc>) {
        self.inbox.received.lock().uncertain.insert(digest(self.guard.key()), at);
    }
}

impl Inbox {
    /// Loads the inbox from the newest messages of a channel, the newest first, and its early statuses. Fewer than
    /// [`RECEIVED_IDS_MAX`] messages mean that the tables have no more.
    pub(crate) fn of(
        received: &[(String, DateTime<Utc>)],
        early_statuses: EarlyStatusIndex,
        loaded_at: DateTime<Utc>,
    ) -> Self {
        let mut certain = SeenSet::with_entries_max(RECEIVED_IDS_MAX);
        if received.len() >= RECEIVED_IDS_MAX
            && let Some((_, oldest)) = received.last()
        {
            certain.mark_missing_up_to(*oldest);
        }
        for (id, at) in received.iter().rev() {
            certain.insert(digest(id), *at);
        }
        let received = ReceivedIds { certain, uncertain: SeenSet::with_entries_max(UNCERTAIN_MAX) };
        let (locks, received) = (KeyedLocks::default(), Mutex::new(received));
        Self { locks, received, early_statuses, early_revisions_room: TableRoom::default(), loaded_at }
    }

    /// Waits until no other call receives the message.
    pub(crate) async fn lock(self: &Arc<Self>, id: &str) -> MessageLock {
        MessageLock { inbox: self.clone(), guard: self.locks.lock(id.to_owned()).await }
    }
}

impl ReceivedIds {
    fn membership(&self, id: u128, written_at: Option<DateTime<Utc>>) -> Membership {
        let may_be_missing = |up_to| written_at.is_none_or(|at| at <= up_to + CLOCK_SKEW_MAX);
        match self.certain.look_up(&id, may_be_missing) {
            Membership::Absent if self.uncertain.look_up(&id, may_be_missing) != Membership::Absent => {
                Membership::Unknown
            }
            membership => membership,
        }
    }
}

fn digest(id: &str) -> u128 {
    let mut first = [0; 16];
    first.copy_from_slice(&key::hash(id)[..16]);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    #[test]
    fn an_unknown_id_is_new_unless_it_may_be_older_than_memory() {
        let mut received =
            ReceivedIds { certain: SeenSet::with_entries_max(2), uncertain: SeenSet::with_entries_max(2) };
        assert_eq!(received.membership(1, None), Membership::Absent, "nothing was ever received");
        received.certain.insert(1, at(100));
        received.certain.insert(2, at(200));
        assert_eq!(
            (received.membership(1, None), received.membership(3, None)),
            (Membership::Present, Membership::Absent)
        );
        received.certain.insert(3, at(300));
        // The first was evicted: a message written before or around that time may be it.
        assert_eq!(received.membership(1, Some(at(99))), Membership::Unknown);
        assert_eq!(received.membership(4, Some(at(105))), Membership::Unknown, "the provider's clock may be behind");
        assert_eq!(received.membership(4, None), Membership::Unknown, "it may have been written at any time");
        assert_eq!(received.membership(4, Some(at(111))), Membership::Absent);
        assert_eq!(received.membership(3, Some(at(111))), Membership::Present);
        for id in 10..13 {
            received.uncertain.insert(id, at(400));
        }
        assert_eq!(received.membership(10, Some(at(401))), Membership::Unknown, "more failed than memory holds");
        assert_eq!(received.membership(14, Some(at(411))), Membership::Absent);
    }

    #[test]
    fn a_message_whose_receipt_failed_is_looked_up_and_then_certain() {
        let inbox = Arc::new(Inbox::of(&[("a".to_owned(), at(1))], EarlyStatusIndex::default(), at(0)));
        let lock = futures_util::FutureExt::now_or_never(inbox.lock("b")).expect("it is not locked");
        assert_eq!(lock.membership(None), Membership::Absent);
        lock.record_uncertain(at(2));
        assert_eq!(lock.membership(None), Membership::Unknown);
        lock.record_received(at(2));
        assert_eq!(lock.membership(None), Membership::Present);
        lock.record_uncertain(at(2));
        assert_eq!(lock.membership(None), Membership::Present, "a durable message is not in doubt");
    }

    #[tokio::test]
    async fn duplicates_wait_for_each_other_and_leave_no_lock_behind() {
        let inbox = Arc::new(Inbox::of(&[], EarlyStatusIndex::default(), at(0)));
        let first = inbox.lock("a").await;
        let mut second = Box::pin(inbox.lock("a"));
        assert!(futures_util::future::poll_immediate(&mut second).await.is_none(), "locked twice");
        first.record_received(at(1));
        drop(first);
        let second = second.await;
        assert_eq!(second.membership(None), Membership::Present);
        drop(second);
        assert!(inbox.locks.is_empty());
    }
}
