//! The order of a channel's messages: one lane for each recipient, and one message at a time in each lane. So the
//! messages of a ticket arrive in order, and a delay of one recipient does not affect the others.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};

use hotline_persistence::{ContactId, MessageId};
use tokio::time::Instant;

use super::outgoing::Outgoing;

/// The lanes of one channel that have messages.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: HashMap<ContactId, Lane>,
    /// Lanes whose first message may be sent now, by that message's id: the message accepted first is sent first.
    ready: BTreeSet<(MessageId, ContactId)>,
    /// Lanes that wait, by the end of their wait. A lane is here at most once.
    waiting: BinaryHeap<Reverse<(Instant, ContactId)>>,
    /// Contacts whose messages are added to the lane of one that was merged into them, as long as that has any: the messages of a
    /// ticket stay in order.
    joined: HashMap<ContactId, ContactId>,
}

#[derive(Default)]
struct Lane {
    messages: VecDeque<Outgoing>,
    /// Consecutive failures of the first message.
    failures: u32,
}

impl Lanes {
    /// Adds a message after the others of its recipient. True: it is the first, and the caller must schedule the lane.
    pub(super) fn add(&mut self, outgoing: Outgoing) -> bool {
        let lane = self.lanes.entry(self.lane_of(outgoing.contact())).or_default();
        lane.messages.push_back(outgoing);
        lane.messages.len() == 1
    }

    fn lane_of(&self, contact: ContactId) -> ContactId {
        self.joined.get(&contact).copied().unwrap_or(contact)
    }

    /// A contact was merged into another, which has its tickets now. If both have messages, each keeps its lane.
    pub(super) fn merge(&mut self, from: ContactId, into: ContactId) {
        if !self.lanes.contains_key(&self.lane_of(into)) {
            self.joined.insert(into, self.lane_of(from));
        }
    }

    /// Forgets the merges into lanes without messages.
    pub(super) fn forget_ended_merges(&mut self) {
        let lanes = &self.lanes;
        self.joined.retain(|_, lane| lanes.contains_key(lane));
    }

    /// Schedules the lane's first message to be sent from `at` on.
    pub(super) fn schedule(&mut self, contact: ContactId, at: Instant, now: Instant) {
        let contact = self.lane_of(contact);
        if at <= now {
            self.make_ready(contact);
        } else {
            self.waiting.push(Reverse((at, contact)));
        }
    }

    fn make_ready(&mut self, contact: ContactId) {
        if let Some(first) = self.lanes.get(&contact).and_then(|lane| lane.messages.front()) {
            self.ready.insert((first.id(), contact));
        }
    }

    /// The next message to send. It stays the first of its lane, and the lane is not used until it is scheduled again
    /// or its first message is removed.
    pub(super) fn next(&mut self, now: Instant) -> Option<Outgoing> {
        while let Some(Reverse((at, contact))) = self.waiting.peek().copied()
            && at <= now
        {
            self.waiting.pop();
            self.make_ready(contact);
        }
        let (_, contact) = self.ready.pop_first()?;
        self.lanes.get(&contact)?.messages.front().cloned()
    }

    /// Whether a message may be sent now.
    pub(super) fn has_next(&self, now: Instant) -> bool {
        !self.ready.is_empty() || self.waiting.peek().is_some_and(|Reverse((at, _))| *at <= now)
    }

    /// When the first waiting lane may send.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((at, _))| *at)
    }

    /// Notes a failure of the lane's first message; returns the number of consecutive failures.
    pub(super) fn failed(&mut self, contact: ContactId) -> u32 {
        self.lanes.get_mut(&self.lane_of(contact)).map_or(1, |lane| {
            lane.failures = lane.failures.saturating_add(1);
            lane.failures
        })
    }

    /// Removes the lane's first message. True: there is another, and the caller must schedule the lane.
    pub(super) fn remove_first(&mut self, contact: ContactId) -> bool {
        let contact = self.lane_of(contact);
        let Some(lane) = self.lanes.get_mut(&contact) else { return false };
        lane.messages.pop_front();
        lane.failures = 0;
        if lane.messages.is_empty() {
            self.lanes.remove(&contact);
            self.joined.retain(|_, lane| *lane != contact);
            return false;
        }
        true
    }

    /// The ids of all messages, in no order.
    pub(super) fn ids(&self) -> Vec<MessageId> {
        self.lanes.values().flat_map(|lane| &lane.messages).map(Outgoing::id).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::outgoing::tests::outgoing;
    use super::*;

    const ANA: ContactId = ContactId::new(1);
    const BEN: ContactId = ContactId::new(2);

    fn id(outgoing: Option<Outgoing>) -> Option<i64> {
        outgoing.map(|outgoing| outgoing.id().0)
    }

    #[test]
    fn each_lane_keeps_its_order_and_has_one_message_under_way() {
        let (mut lanes, now) = (Lanes::default(), Instant::now());
        for (message, contact) in [(1, ANA), (2, ANA), (3, BEN)] {
            if lanes.add(outgoing(message, contact.0)) {
                lanes.schedule(contact, now, now);
            }
        }
        assert_eq!(id(lanes.next(now)), Some(1));
        assert_eq!(id(lanes.next(now)), Some(3));
        assert_eq!(id(lanes.next(now)), None, "2 waits for 1");
        // 1 is retried, and 2 still waits for it.
        assert_eq!((lanes.failed(ANA), lanes.failed(ANA)), (1, 2));
        let later = now + Duration::from_secs(1);
        lanes.schedule(ANA, later, now);
        assert_eq!((id(lanes.next(now)), lanes.next_at()), (None, Some(later)));
        assert_eq!(id(lanes.next(later)), Some(1));
        assert!(lanes.remove_first(ANA), "2 is next");
        assert_eq!(lanes.failed(ANA), 1, "another message begins anew");
        lanes.schedule(ANA, later, later);
        assert_eq!(id(lanes.next(later)), Some(2));
        assert!(!lanes.remove_first(ANA) && !lanes.remove_first(BEN) && lanes.ids().is_empty());
    }

    #[test]
    fn messages_after_a_merge_wait_for_those_before_it() {
        let (mut lanes, now) = (Lanes::default(), Instant::now());
        assert!(lanes.add(outgoing(1, ANA.0)));
        lanes.schedule(ANA, now, now);
        assert_eq!(id(lanes.next(now)), Some(1));
        lanes.merge(ANA, BEN);
        assert!(!lanes.add(outgoing(2, BEN.0)), "2 waits for 1");
        // 1 is retried, and then it has left.
        let later = now + Duration::from_secs(1);
        lanes.schedule(ANA, later, now);
        assert_eq!((id(lanes.next(now)), id(lanes.next(later))), (None, Some(1)));
        assert!(lanes.remove_first(ANA));
        lanes.schedule(BEN, later, later);
        assert_eq!(id(lanes.next(later)), Some(2));
        assert!(!lanes.remove_first(BEN) && lanes.joined.is_empty() && lanes.lanes.is_empty());
        // Without messages of the one that has gone, nothing is left of the merge.
        lanes.merge(ANA, BEN);
        lanes.forget_ended_merges();
        assert!(lanes.add(outgoing(3, BEN.0)) && lanes.lanes.contains_key(&BEN) && lanes.joined.is_empty());
        // Of two that have messages, each keeps its lane.
        assert!(lanes.add(outgoing(4, ANA.0)));
        lanes.merge(ANA, BEN);
        assert!(!lanes.add(outgoing(5, BEN.0)) && lanes.joined.is_empty());
    }

    #[test]
    fn the_message_accepted_first_is_sent_first() {
        let (mut lanes, now) = (Lanes::default(), Instant::now());
        for (message, contact) in [(2, BEN), (1, ANA)] {
            assert!(lanes.add(outgoing(message, contact.0)));
            lanes.schedule(contact, now, now);
        }
        assert_eq!((id(lanes.next(now)), id(lanes.next(now))), (Some(1), Some(2)));
        // Both are refused, in either order.
        lanes.schedule(BEN, now, now);
        lanes.schedule(ANA, now, now);
        assert_eq!((id(lanes.next(now)), id(lanes.next(now))), (Some(1), Some(2)));
        assert_eq!(lanes.ids().len(), 2);
    }
}
