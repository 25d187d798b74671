//! What a channel's provider has told already. A provider repeats a call until it is answered, sometimes for days, and
//! may do so twice at once: each message is taken once.
//!
//! Most messages are new, and memory alone can say so, also while the database is away: it holds the ids of what was
//! received lately, and knows since when none is missing. What may be older is looked up in the tables, whose unique
//! index (`messages_provider_id`) would show the day this went wrong.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use dashmap::DashMap;
use hotline_persistence::key;
use tokio::sync::OwnedMutexGuard;

use super::Early;

/// Messages a channel can tell from new ones, some 60 bytes each: a day of a busy channel. Of older ones the database
/// is asked.
pub(crate) const SEEN_MAX: usize = 100_000;

/// By how much a provider's clock may be behind ours.
const CLOCK_SKEW_MAX: TimeDelta = TimeDelta::minutes(10);

/// One channel's.
pub(crate) struct Inbox {
    /// Held by the call that takes a message; its twins wait.
    turns: DashMap<String, Arc<tokio::sync::Mutex<()>>>,
    seen: Mutex<Seen>,
    /// Messages statuses are kept of that came before the message was known to be sent.
    pub(crate) early: Early,
}

/// Whether a message was received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    New,
    Before,
    /// The tables know.
    Perhaps,
}

/// Ids as the first half of their hash: among so few no two are alike.
struct Seen {
    ids: HashMap<u128, Certainty>,
    /// The certain ones, in the order in which they came.
    order: VecDeque<(DateTime<Utc>, u128)>,
    /// From here on none is missing; none at all if there is no such time.
    complete_since: Option<DateTime<Utc>>,
    room: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Received,
    /// Its taking failed, perhaps after it was kept.
    Doubtful,
}

/// The turn of one call to take a message.
pub(crate) struct Turn {
    inbox: Arc<Inbox>,
    id: String,
    lock: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.lock.take());
        // The map holds one reference; whoever waits holds another, and the entry then stays.
        self.inbox.turns.remove_if(&self.id, |_, turn| Arc::strong_count(turn) == 1);
    }
}

impl Turn {
    /// Whether the message was received before. `written_at` is when the provider says it was written: it cannot have
    /// been received earlier.
    pub(crate) fn known(&self, written_at: Option<DateTime<Utc>>) -> Known {
        self.inbox.seen().known(digest(&self.id), written_at)
    }

    /// The message is durable.
    pub(crate) fn received(&self, at: DateTime<Utc>) {
        self.inbox.seen().received(digest(&self.id), at);
    }

    /// The message may be durable.
    pub(crate) fn doubtful(&self) {
        self.inbox.seen().ids.entry(digest(&self.id)).or_insert(Certainty::Doubtful);
    }
}

impl Inbox {
    /// From the newest messages of a channel, the newest first, and what is known of early statuses. Asking for
    /// [`SEEN_MAX`] and getting less means there are no more.
    pub(crate) fn of(received: &[(String, DateTime<Utc>)], early: Early) -> Self {
        let mut seen = Seen::with_room(SEEN_MAX);
        if received.len() >= SEEN_MAX {
            seen.complete_since = received.last().map(|(_, at)| *at);
        }
        for (id, at) in received.iter().rev() {
            seen.received(digest(id), *at);
        }
        Self { turns: DashMap::new(), seen: Mutex::new(seen), early }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other call takes the message.
    pub(crate) async fn turn(self: &Arc<Self>, id: &str) -> Turn {
        let turn = self.turns.entry(id.to_owned()).or_default().clone();
        let lock = turn.lock_owned().await;
        Turn { inbox: self.clone(), id: id.to_owned(), lock: Some(lock) }
    }
}

impl Seen {
    fn with_room(room: usize) -> Self {
        Self { ids: HashMap::new(), order: VecDeque::new(), complete_since: None, room }
    }

    fn known(&self, id: u128, written_at: Option<DateTime<Utc>>) -> Known {
        match self.ids.get(&id) {
            Some(Certainty::Received) => Known::Before,
            Some(Certainty::Doubtful) => Known::Perhaps,
            None => {
                let is_covered = |since| written_at.is_some_and(|at| at > since + CLOCK_SKEW_MAX);
                if self.complete_since.is_none_or(is_covered) { Known::New } else { Known::Perhaps }
            }
        }
    }

    fn received(&mut self, id: u128, at: DateTime<Utc>) {
        if self.ids.insert(id, Certainty::Received) != Some(Certainty::Received) {
            self.order.push_back((at, id));
        }
        while self.order.len() > self.room
            && let Some((at, oldest)) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
            self.complete_since = self.complete_since.max(Some(at));
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
        let mut seen = Seen::with_room(2);
        assert_eq!(seen.known(1, None), Known::New, "nothing was ever received");
        seen.received(1, at(100));
        seen.received(1, at(101));
        seen.received(2, at(200));
        assert_eq!((seen.known(1, None), seen.known(3, None)), (Known::Before, Known::New));
        seen.received(3, at(300));
        // The first is forgotten: what was written before or around then may be it.
        assert_eq!(seen.known(1, Some(at(99))), Known::Perhaps);
        assert_eq!(seen.known(4, Some(at(105))), Known::Perhaps, "the provider's clock may be behind");
        assert_eq!(seen.known(4, None), Known::Perhaps, "nobody knows when it was written");
        assert_eq!(seen.known(4, Some(at(111))), Known::New);
        assert_eq!(seen.known(3, Some(at(111))), Known::Before);
    }

    #[test]
    fn one_whose_taking_failed_is_looked_up_and_then_certain() {
        let inbox = Arc::new(Inbox::of(&[("a".to_owned(), at(1))], Early::default()));
        let turn = futures_util::FutureExt::now_or_never(inbox.turn("b")).expect("nobody has it");
        assert_eq!(turn.known(None), Known::New);
        turn.doubtful();
        assert_eq!(turn.known(None), Known::Perhaps);
        turn.received(at(2));
        assert_eq!(turn.known(None), Known::Before);
        turn.doubtful();
        assert_eq!(turn.known(None), Known::Before, "what is known to be kept is not in doubt");
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
        assert_eq!(second.known(None), Known::Before);
        drop(second);
        assert!(inbox.turns.is_empty());
    }
}
