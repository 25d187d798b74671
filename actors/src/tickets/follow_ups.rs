//! The follow-up actions of a ticket's messages that have no delivery status yet.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::tables::tickets::FollowUpRow;

use super::{AfterSend, Author};

/// Maximum actions of one part. Each change of a ticket copies its state, but at most one part, however many messages
/// wait for a channel that is not connected.
const PART_LEN_MAX: usize = 64;

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

type ActionsPart = VecDeque<(MessageId, FollowUp)>;

/// The actions, in the order of their messages. No part is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FollowUps(Vec<Arc<ActionsPart>>);

impl FollowUps {
    /// Adds the action of a message, which is usually newer than all others.
    pub(super) fn add(&mut self, message: MessageId, follow_up: FollowUp) {
        let index = self.part_index(message);
        if let Some(part) = self.0.get_mut(index) {
            let part = Arc::make_mut(part);
            let position = part.partition_point(|(id, _)| *id < message);
            part.insert(position, (message, follow_up));
            if part.len() > PART_LEN_MAX {
                let rest = part.split_off(PART_LEN_MAX / 2);
                self.0.insert(index + 1, Arc::new(rest));
            }
            return;
        }
        match self.0.last_mut().filter(|part| part.len() < PART_LEN_MAX) {
            Some(part) => Arc::make_mut(part).push_back((message, follow_up)),
            None => self.0.push(Arc::new(ActionsPart::from([(message, follow_up)]))),
        }
    }

    /// The index of the only part that can contain the action of a message.
    fn part_index(&self, message: MessageId) -> usize {
        self.0.partition_point(|part| part.back().is_some_and(|(last, _)| *last < message))
    }

    /// The index of the part with the action of a message, and the action's position in the part.
    fn find(&self, message: MessageId) -> Option<(usize, usize)> {
        let part = self.part_index(message);
        let position = self.0.get(part)?.binary_search_by_key(&message, |(id, _)| *id).ok()?;
        Some((part, position))
    }

    /// Removes the action of a message, and returns it.
    pub(super) fn take(&mut self, message: MessageId) -> Option<FollowUp> {
        let (part, position) = self.find(message)?;
        let actions = self.0.get_mut(part)?;
        let removed = Arc::make_mut(actions).remove(position);
        if actions.is_empty() {
            self.0.remove(part);
        }
        removed.map(|(_, follow_up)| follow_up)
    }

    /// The messages that have an action.
    #[cfg(test)]
    pub(super) fn messages(&self) -> impl Iterator<Item = MessageId> {
        self.0.iter().flat_map(|part| part.iter().map(|(message, _)| *message))
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
    fn each_action_is_taken_once_in_any_order_and_copies_share_the_parts() {
        let mut random = StdRng::seed_from_u64(7);
        let (mut follow_ups, mut id) = (FollowUps::default(), 0);
        let mut all = Vec::new();
        for number in 0..10 * PART_LEN_MAX as i64 {
            id += random.random_range(1..5);
            all.push((MessageId::new(id), follow_up(number)));
            follow_ups.add(MessageId::new(id), follow_up(number));
        }
        let copy = follow_ups.clone();
        follow_ups.add(MessageId::new(id + 1), follow_up(0));
        assert!(
            copy.0.iter().zip(&follow_ups.0).all(|(one, other)| Arc::ptr_eq(one, other)),
            "the full parts are shared"
        );
        assert!(follow_ups.take(MessageId::new(id + 1)).is_some() && follow_ups == copy);
        // Actions of messages that are older than all others, as after a merge of tickets.
        for number in 0..3 * PART_LEN_MAX as i64 {
            all.push((MessageId::new(-number), follow_up(number)));
            follow_ups.add(MessageId::new(-number), follow_up(number));
        }
        assert!(follow_ups.0.iter().all(|part| part.len() <= PART_LEN_MAX));
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
