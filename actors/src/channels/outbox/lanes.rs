//! The order of a channel's messages. A lane is the queue of one recipient, whose messages are sent one at a time. So
//! the messages of a ticket arrive in order, and a delay of one recipient does not affect the others.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

use hotline_persistence::{ContactId, MessageId};
use tokio::time::Instant;

use super::outgoing::Outgoing;
use crate::channels::WithdrawalVersion;

/// The lanes of one channel that have messages.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: HashMap<ContactId, Lane>,
    /// Lanes whose first message may be sent now, by that message's id: the message accepted first is sent first.
    ready: BTreeSet<(MessageId, ContactId)>,
    /// Lanes that wait, by the end of their wait. A lane is here at most once.
    waiting: BinaryHeap<Reverse<(Instant, ContactId)>>,
    /// For a contact, the lane of another contact with which it was merged. New messages to the contact are added to
    /// that lane while it has messages, so that a ticket's messages stay in order.
    joined: HashMap<ContactId, ContactId>,
}

struct Lane {
    messages: VecDeque<Outgoing>,
    /// Consecutive failures of the first message.
    failures: u32,
    /// The contact that receives the messages: the lane's own, or the one that it was merged into.
    owner: ContactId,
    /// Whether the first message was returned by [`Lanes::next`] and is not scheduled again yet.
    is_under_way: bool,
    /// The version of the company's withdrawals at which the first message, one of a campaign, was found not to be
    /// withdrawn while the channel was not connected.
    checked_version: Option<WithdrawalVersion>,
}

impl Lane {
    fn of(owner: ContactId) -> Self {
        Self { messages: VecDeque::new(), failures: 0, owner, is_under_way: false, checked_version: None }
    }

    fn first_id(&self) -> Option<MessageId> {
        self.messages.front().map(Outgoing::id)
    }
}

impl Lanes {
    /// Adds a message after the others of its recipient. Returns whether it is the first: the caller must then schedule
    /// the lane.
    pub(super) fn add(&mut self, outgoing: Outgoing) -> bool {
        let contact = self.lane_of(outgoing.contact());
        let lane = self.lanes.entry(contact).or_insert_with(|| Lane::of(contact));
        lane.messages.push_back(outgoing);
        lane.messages.len() == 1
    }

    /// The lane to which messages of a contact are added.
    fn lane_of(&self, contact: ContactId) -> ContactId {
        self.joined.get(&contact).copied().unwrap_or(contact)
    }

    /// Joins the lanes of a merged contact and of `into`, which has its tickets now. If a message of each is under way,
    /// each keeps its lane.
    pub(super) fn merge(&mut self, from: ContactId, into: ContactId) {
        let (from_lane, into_lane) = (self.lane_of(from), self.lane_of(into));
        if from_lane == into_lane {
            return;
        }
        let kept_and_moved = match (self.lanes.get(&from_lane), self.lanes.get(&into_lane)) {
            // Nothing to move: new messages to `into` are added to the other lane.
            (_, None) => {
                self.joined.insert(into, from_lane);
                None
            }
            (None, Some(_)) => None,
            (Some(of_from), Some(of_into)) => match (of_from.is_under_way, of_into.is_under_way) {
                (true, true) => None,
                (true, false) => Some((from_lane, into_lane)),
                (false, true) => Some((into_lane, from_lane)),
                (false, false) if of_from.first_id() < of_into.first_id() => Some((from_lane, into_lane)),
                (false, false) => Some((into_lane, from_lane)),
            },
        };
        if let Some((kept, moved)) = kept_and_moved {
            self.move_messages(moved, kept);
        }
    }

    /// Moves the messages of a lane, none of which is under way, to another lane. Behind the first one of that lane,
    /// all are in the order in which they were accepted.
    fn move_messages(&mut self, from_lane: ContactId, to_lane: ContactId) {
        let Some(moved) = self.lanes.remove(&from_lane) else { return };
        self.ready.retain(|(_, lane)| *lane != from_lane);
        self.waiting.retain(|Reverse((_, lane))| *lane != from_lane);
        self.joined.values_mut().filter(|lane| **lane == from_lane).for_each(|lane| *lane = to_lane);
        self.joined.insert(from_lane, to_lane);
        let lane = self.lanes.entry(to_lane).or_insert_with(|| Lane::of(to_lane));
        lane.messages.extend(moved.messages);
        if let Some(behind_first) = lane.messages.make_contiguous().get_mut(1..) {
            behind_first.sort_by_key(Outgoing::id);
        }
    }

    /// Ends a merge: `into` now owns the lanes of the merged contact `from`. To be called once these lanes have all its
    /// messages. Lanes without messages are no longer joined.
    pub(super) fn end_merge(&mut self, from: ContactId, into: ContactId) {
        self.lanes.values_mut().filter(|lane| lane.owner == from).for_each(|lane| lane.owner = into);
        let lanes = &self.lanes;
        self.joined.retain(|_, lane| lanes.contains_key(lane));
    }

    /// Marks the numbers of changed contacts as stale.
    pub(super) fn mark_changed(&mut self, contacts: &HashSet<ContactId>) {
        for lane in self.lanes.values_mut().filter(|lane| contacts.contains(&lane.owner)) {
            lane.messages.iter_mut().for_each(|outgoing| outgoing.is_number_stale = true);
        }
    }

    /// Removes the messages of a contact that was deleted, and returns them. A message that is under way is only marked
    /// as removed, and stays the first of its lane.
    pub(super) fn remove_messages_of(&mut self, contact: ContactId) -> Vec<Outgoing> {
        let lanes: Vec<ContactId> =
            self.lanes.iter().filter(|(_, lane)| lane.owner == contact).map(|(lane, _)| *lane).collect();
        let mut removed = Vec::new();
        for lane_key in lanes {
            let Some(lane) = self.lanes.get_mut(&lane_key) else { continue };
            lane.messages.iter().for_each(Outgoing::mark_removed);
            removed.extend(lane.messages.split_off(usize::from(lane.is_under_way)));
            if lane.messages.is_empty() {
                self.lanes.remove(&lane_key);
                self.ready.retain(|(_, key)| *key != lane_key);
                self.waiting.retain(|Reverse((_, key))| *key != lane_key);
                self.joined.retain(|_, key| *key != lane_key);
            }
        }
        removed
    }

    /// Schedules the lane's first message to be sent from `at` on.
    pub(super) fn schedule(&mut self, contact: ContactId, at: Instant, now: Instant) {
        let contact = self.lane_of(contact);
        if let Some(lane) = self.lanes.get_mut(&contact) {
            lane.is_under_way = false;
        }
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

    /// The next message to send. It stays the first of its lane, which is not used until the lane is scheduled again or
    /// the message is removed.
    pub(super) fn next(&mut self, now: Instant) -> Option<Outgoing> {
        self.end_waits(now);
        let (_, contact) = self.ready.pop_first()?;
        self.begin_first(contact)
    }

    /// Takes, as [`Lanes::next`] does, up to `max` messages of campaigns that may be settled without a call. Each is
    /// the first of its lane and is in doubt, or was not checked at this version of the company's withdrawals.
    pub(super) fn take_settleable(&mut self, max: usize, version: WithdrawalVersion, now: Instant) -> Vec<Outgoing> {
        self.end_waits(now);
        let is_settleable = |contact: &ContactId| {
            self.lanes.get(contact).is_some_and(|lane| {
                let first = lane.messages.front().filter(|first| first.is_of_campaign());
                first.is_some_and(|first| lane.checked_version != Some(version) || first.attempts().is_in_doubt())
            })
        };
        let settleable: Vec<_> =
            self.ready.iter().filter(|(_, contact)| is_settleable(contact)).take(max).copied().collect();
        let mut taken = Vec::with_capacity(settleable.len());
        for (id, contact) in settleable {
            self.ready.remove(&(id, contact));
            taken.extend(self.begin_first(contact));
        }
        taken
    }

    /// Removes the messages with these ids and returns them, except those that are the first of their lane.
    pub(super) fn take_behind_first(&mut self, ids: &HashSet<MessageId>) -> Vec<Outgoing> {
        let mut taken = Vec::new();
        for lane in self.lanes.values_mut() {
            let first = lane.messages.pop_front();
            taken.extend(lane.messages.iter().filter(|outgoing| ids.contains(&outgoing.id())).cloned());
            lane.messages.retain(|outgoing| !ids.contains(&outgoing.id()));
            first.into_iter().for_each(|first| lane.messages.push_front(first));
        }
        taken
    }

    /// Records that the lane's first message is not withdrawn as of this version.
    pub(super) fn record_check(&mut self, contact: ContactId, version: WithdrawalVersion) {
        let contact = self.lane_of(contact);
        if let Some(lane) = self.lanes.get_mut(&contact) {
            lane.checked_version = Some(version);
        }
    }

    /// Whether there are no messages.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Makes lanes ready whose wait has ended.
    fn end_waits(&mut self, now: Instant) {
        while let Some(Reverse((at, contact))) = self.waiting.peek().copied()
            && at <= now
        {
            self.waiting.pop();
            self.make_ready(contact);
        }
    }

    /// Marks the lane's first message as under way, and returns a copy of it.
    fn begin_first(&mut self, contact: ContactId) -> Option<Outgoing> {
        let lane = self.lanes.get_mut(&contact)?;
        lane.is_under_way = true;
        lane.messages.front().cloned()
    }

    /// Whether a message may be sent now.
    pub(super) fn has_next(&self, now: Instant) -> bool {
        !self.ready.is_empty() || self.waiting.peek().is_some_and(|Reverse((at, _))| *at <= now)
    }

    /// When the first waiting lane may send.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((at, _))| *at)
    }

    /// Records a failure of the lane's first message; returns the number of consecutive failures.
    pub(super) fn record_failure(&mut self, contact: ContactId) -> u32 {
        self.lanes.get_mut(&self.lane_of(contact)).map_or(1, |lane| {
            lane.failures = lane.failures.saturating_add(1);
            lane.failures
        })
    }

    /// Removes the lane's first message. Returns whether another message follows: the caller must then schedule the
    /// lane.
    pub(super) fn remove_first(&mut self, contact: ContactId) -> bool {
        let contact = self.lane_of(contact);
        let Some(lane) = self.lanes.get_mut(&contact) else { return false };
        lane.messages.pop_front();
        lane.failures = 0;
        lane.is_under_way = false;
        lane.checked_version = None;
        if lane.messages.is_empty() {
            self.lanes.remove(&contact);
            self.joined.retain(|_, lane| *lane != contact);
            return false;
        }
        true
    }

    /// The ids of all messages, in no particular order.
    pub(super) fn ids(&self) -> Vec<MessageId> {
        self.lanes.values().flat_map(|lane| &lane.messages).map(Outgoing::id).collect()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests;
