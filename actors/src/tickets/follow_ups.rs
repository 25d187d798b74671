//! The follow-up actions of a ticket's messages that have no delivery status yet.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::tables::tickets::FollowUpRow;

use super::{AfterSend, Author};

/// Maximum actions in one chunk. Copies of a ticket's state share the chunks, and each change copies at most one of
/// them, however many messages wait for a channel that is not connected.
const CHUNK_LEN_MAX: usize = 64;

/// The follow-up action of a message, executed at the message's first delivery status unless that is a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUp {
    /// The action.
    pub after: AfterSend,
    /// Who requested it.
    pub author: Author,
    /// When the message was written.
    pub written_at: DateTime<Utc>,
}

impl From<FollowUpRow> for FollowUp {
    fn from(row: FollowUpRow) -> Self {
        let user = row.user_id.map(|id| (id, row.user_name.unwrap_or_default()));
        // An action that this release cannot read becomes an empty one.
        let after = serde_json::from_value(row.after_send).unwrap_or_default();
        let author = Author { user, integration: row.integration_id, source: row.source };
        Self { after, author, written_at: row.created_at }
    }
}

type ActionChunk = VecDeque<(MessageId, FollowUp)>;

/// The actions, in the order of their messages. No chunk is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FollowUps(Vec<Arc<ActionChunk>>);

impl FollowUps {
    /// Adds the action of a message, which is usually newer than all others.
    pub(super) fn add(&mut self, message: MessageId, follow_up: FollowUp) {
        let index = self.chunk_index(message);
        if let Some(chunk) = self.0.get_mut(index) {
            let chunk = Arc::make_mut(chunk);
            let position = chunk.partition_point(|(id, _)| *id < message);
            chunk.insert(position, (message, follow_up));
            if chunk.len() > CHUNK_LEN_MAX {
                let rest = chunk.split_off(CHUNK_LEN_MAX / 2);
                self.0.insert(index + 1, Arc::new(rest));
            }
            return;
        }
        match self.0.last_mut().filter(|chunk| chunk.len() < CHUNK_LEN_MAX) {
            Some(chunk) => Arc::make_mut(chunk).push_back((message, follow_up)),
            None => self.0.push(Arc::new(ActionChunk::from([(message, follow_up)]))),
        }
    }

    /// The index of the only chunk that can contain the action of a message.
    fn chunk_index(&self, message: MessageId) -> usize {
        self.0.partition_point(|chunk| chunk.back().is_some_and(|(last, _)| *last < message))
    }

    /// The index of the chunk with the action of a message, and the action's position in the chunk.
    fn find(&self, message: MessageId) -> Option<(usize, usize)> {
        let chunk = self.chunk_index(message);
        let position = self.0.get(chunk)?.binary_search_by_key(&message, |(id, _)| *id).ok()?;
        Some((chunk, position))
    }

    /// Removes the action of a message, and returns it.
    pub(super) fn take(&mut self, message: MessageId) -> Option<FollowUp> {
        let (chunk, position) = self.find(message)?;
        let actions = self.0.get_mut(chunk)?;
        let removed = Arc::make_mut(actions).remove(position);
        if actions.is_empty() {
            self.0.remove(chunk);
        }
        removed.map(|(_, follow_up)| follow_up)
    }

    /// The messages that have an action.
    #[cfg(test)]
    pub(super) fn messages(&self) -> impl Iterator<Item = MessageId> {
        self.0.iter().flat_map(|chunk| chunk.iter().map(|(message, _)| *message))
    }

    /// Whether there are no actions.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::tables::source::Source;
    use rand::rngs::StdRng;
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::clock::now;
    use crate::tickets::{AfterSend, Author};

    fn follow_up(number: i64) -> FollowUp {
        let after = AfterSend { answers: number % 2 == 0, ..AfterSend::default() };
        let author = Author { user: None, integration: None, source: Source::Api };
        FollowUp { after, author, written_at: now() + chrono::TimeDelta::seconds(number) }
    }

    #[test]
    fn each_action_is_taken_once_in_any_order_and_copies_share_the_chunks() {
        let mut random = StdRng::seed_from_u64(7);
        let (mut follow_ups, mut id) = (FollowUps::default(), 0);
        let mut all = Vec::new();
        for number in 0..10 * CHUNK_LEN_MAX as i64 {
            id += random.random_range(1..5);
            all.push((MessageId::new(id), follow_up(number)));
            follow_ups.add(MessageId::new(id), follow_up(number));
        }
        let copy = follow_ups.clone();
        follow_ups.add(MessageId::new(id + 1), follow_up(0));
        assert!(
            copy.0.iter().zip(&follow_ups.0).all(|(one, other)| Arc::ptr_eq(one, other)),
            "the full chunks are shared"
        );
        assert!(follow_ups.take(MessageId::new(id + 1)).is_some() && follow_ups == copy);
        // Actions of messages that are older than all others, as after a merge of tickets.
        for number in 0..3 * CHUNK_LEN_MAX as i64 {
            all.push((MessageId::new(-number), follow_up(number)));
            follow_ups.add(MessageId::new(-number), follow_up(number));
        }
        assert!(follow_ups.0.iter().all(|chunk| chunk.len() <= CHUNK_LEN_MAX));
        assert!(follow_ups.messages().is_sorted());
        all.shuffle(&mut random);
        for (message, expected) in all {
            let taken = follow_ups.take(message).expect("the action");
            assert_eq!(taken.after, expected.after);
            assert!(follow_ups.take(message).is_none());
        }
        assert!(follow_ups.is_empty() && !copy.is_empty());
    }
}
