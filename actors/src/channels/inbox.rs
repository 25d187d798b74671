//! Deduplication of what a channel's provider delivers. A provider repeats a call until it is acknowledged, sometimes
//! for days, and may send it twice at once: each message must be received exactly once.
//!
//! Most messages are new, and memory alone can tell, even while the database is away: it holds the ids received lately,
//! and the time since when none is missing. An older message is looked up in the tables, whose unique index
//! (`messages_provider_id`) would reject a duplicate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::key;

use super::Early;
use crate::keyed_locks::{KeyedGuard, KeyedLocks};
use crate::seen::{Membership, SeenSet};

/// Received ids in memory of one channel, some 60 bytes each: a day of a busy channel. Older ones are looked up in the
/// database.
pub(crate) const SEEN_MAX: usize = 100_000;

/// Ids in memory whose receipt failed: during a database outage each one does. Older ones are looked up in the
/// database.
const DOUBTFUL_MAX: usize = 10_000;

/// Maximum lag of a provider's clock behind ours.
const CLOCK_SKEW_MAX: TimeDelta = TimeDelta::minutes(10);

/// The inbox of one channel.
pub(crate) struct Inbox {
    /// Locked by the call that receives a message; concurrent calls with the same message wait.
    turns: KeyedLocks<String>,
    received: Mutex<Received>,
    /// Statuses that arrived before their message was known to be sent.
    pub(crate) early: Early,
}

/// Message ids, as the first half of their hash: collisions are practically impossible among so few.
struct Received {
    /// Durable messages.
    certain: SeenSet<u128, DateTime<Utc>>,
    /// Messages whose receipt failed, perhaps after they became durable.
    doubtful: SeenSet<u128, DateTime<Utc>>,
}

/// The lock of one message id, held while the message is received.
pub(crate) struct MessageLock {
    inbox: Arc<Inbox>,
    guard: KeyedGuard<String>,
}

impl MessageLock {
    /// Whether the message was received before. `written_at` is the time at which the provider says it was written: it
    /// cannot have been received earlier.
    pub(crate) fn known(&self, written_at: Option<DateTime<Utc>>) -> Membership {
        self.inbox.received().known(digest(self.guard.key()), written_at)
    }

    /// The message is durable.
    pub(crate) fn received(&self, at: DateTime<Utc>) {
        self.inbox.received().certain.insert(digest(self.guard.key()), at);
    }

    /// The message may be durable.
    pub(crate) fn doubtful(&self, at: DateTime<Utc>) {
        self.inbox.received().doubtful.insert(digest(self.guard.key()), at);
    }
}

impl Inbox {
    /// Loads the inbox from the newest messages of a channel, the newest first, and its early statuses. Fewer than
    /// [`SEEN_MAX`] messages mean that the tables have no more.
    pub(crate) fn of(received: &[(String, DateTime<Utc>)], early: Early) -> Self {
        let mut certain = SeenSet::with_room(SEEN_MAX);
        if received.len() >= SEEN_MAX
            && let Some((_, oldest)) = received.last()
        {
            certain.miss_up_to(*oldest);
        }
        for (id, at) in received.iter().rev() {
            certain.insert(digest(id), *at);
        }
        let received = Received { certain, doubtful: SeenSet::with_room(DOUBTFUL_MAX) };
        Self { turns: KeyedLocks::default(), received: Mutex::new(received), early }
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other call receives the message.
    pub(crate) async fn turn(self: &Arc<Self>, id: &str) -> MessageLock {
        MessageLock { inbox: self.clone(), guard: self.turns.lock(id.to_owned()).await }
    }
}

impl Received {
    fn known(&self, id: u128, written_at: Option<DateTime<Utc>>) -> Membership {
        let missable = |up_to| written_at.is_none_or(|at| at <= up_to + CLOCK_SKEW_MAX);
        match self.certain.look_up(&id, missable) {
            Membership::Absent if self.doubtful.look_up(&id, missable) != Membership::Absent => Membership::Unknown,
            known => known,
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
    fn what_is_not_remembered_is_new_unless_it_may_be_older_than_memory() {
        let mut received = Received { certain: SeenSet::with_room(2), doubtful: SeenSet::with_room(2) };
        assert_eq!(received.known(1, None), Membership::Absent, "nothing was ever received");
        received.certain.insert(1, at(100));
        received.certain.insert(2, at(200));
        assert_eq!((received.known(1, None), received.known(3, None)), (Membership::Present, Membership::Absent));
        received.certain.insert(3, at(300));
        // The first was evicted: a message written before or around that time may be it.
        assert_eq!(received.known(1, Some(at(99))), Membership::Unknown);
        assert_eq!(received.known(4, Some(at(105))), Membership::Unknown, "the provider's clock may be behind");
        assert_eq!(received.known(4, None), Membership::Unknown, "nobody knows when it was written");
        assert_eq!(received.known(4, Some(at(111))), Membership::Absent);
        assert_eq!(received.known(3, Some(at(111))), Membership::Present);
        for id in 10..13 {
            received.doubtful.insert(id, at(400));
        }
        assert_eq!(received.known(10, Some(at(401))), Membership::Unknown, "more failed than memory holds");
        assert_eq!(received.known(14, Some(at(411))), Membership::Absent);
    }

    #[test]
    fn one_whose_taking_failed_is_looked_up_and_then_certain() {
        let inbox = Arc::new(Inbox::of(&[("a".to_owned(), at(1))], Early::default()));
        let turn = futures_util::FutureExt::now_or_never(inbox.turn("b")).expect("nobody has it");
        assert_eq!(turn.known(None), Membership::Absent);
        turn.doubtful(at(2));
        assert_eq!(turn.known(None), Membership::Unknown);
        turn.received(at(2));
        assert_eq!(turn.known(None), Membership::Present);
        turn.doubtful(at(2));
        assert_eq!(turn.known(None), Membership::Present, "what is known to be kept is not in doubt");
    }

    #[tokio::test]
    async fn twins_wait_for_each_other_and_leave_nothing_behind() {
        let inbox = Arc::new(Inbox::of(&[], Early::default()));
        let first = inbox.turn("a").await;
        let mut second = Box::pin(inbox.turn("a"));
        assert!(futures_util::future::poll_immediate(&mut second).await.is_none(), "two turns at once");
        first.received(at(1));
        drop(first);
        let second = second.await;
        assert_eq!(second.known(None), Membership::Present);
        drop(second);
        assert!(inbox.turns.is_empty());
    }
}
