//! Open tickets in each order in which they are listed, and counted by queue, user and channel.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroI64;
use std::ops::Bound::{Excluded, Unbounded};

use chrono::{DateTime, Utc};
use hotline_persistence::select::TimePosition;
use hotline_persistence::tables::reports::desk::OpenTickets;
use hotline_persistence::tables::tickets::TicketSort;
use hotline_persistence::{ChannelId, QueueId, TicketId, UserId};

use super::open_ticket_query::OpenTicketQuery;

/// What open tickets are counted and filtered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    pub(super) queue_id: Option<QueueId>,
    pub(super) user_id: Option<UserId>,
    pub(super) channel_id: ChannelId,
}

/// An open ticket: its group, and the times by which it is sorted.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenTicketTimes {
    pub(super) group: GroupKey,
    pub(super) last_activity_at: DateTime<Utc>,
    pub(super) waiting_since: Option<DateTime<Utc>>,
}

/// A time in microseconds since 1970. Not zero, so that an absent one takes no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Micros(NonZeroI64);

impl From<DateTime<Utc>> for Micros {
    fn from(at: DateTime<Utc>) -> Self {
        Self(NonZeroI64::new(at.timestamp_micros()).unwrap_or(NonZeroI64::MIN))
    }
}

impl From<Micros> for DateTime<Utc> {
    fn from(Micros(at): Micros) -> Self {
        Self::from_timestamp_micros(at.get()).unwrap_or_default()
    }
}

/// The place of a group in [`OpenTicketOrders::groups`].
type GroupIndex = u32;

/// Where an open ticket is in the orders.
#[derive(Clone, Copy)]
struct Entry {
    group: GroupIndex,
    activity: Micros,
    wait: Option<Micros>,
}

/// The open tickets of one queue, user and channel.
struct Group {
    key: GroupKey,
    open: i64,
    /// Those in which the contact waits, the longest wait first.
    waiting: BTreeSet<(Micros, TicketId)>,
}

/// The open tickets of a company. The orders contain the group, so that a filter needs no look-up for each ticket.
#[derive(Default)]
pub(super) struct OpenTicketOrders {
    by_id: BTreeMap<TicketId, Entry>,
    by_activity: BTreeMap<(Micros, TicketId), GroupIndex>,
    by_wait: BTreeMap<(Micros, TicketId), GroupIndex>,
    groups: Vec<Group>,
    indexes: HashMap<GroupKey, GroupIndex>,
    /// Places of groups without tickets.
    free: Vec<GroupIndex>,
}

/// Tickets of a list that follow each other in one of the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    ById,
    ByActivity,
    ByWait,
    /// By id, those in which nobody waits.
    NotWaiting,
}

/// A list that is being read, in several steps.
#[derive(Debug)]
pub(super) struct Listing {
    /// The segment that is read; none: the list has ended.
    segment: Option<Segment>,
    /// The last ticket of the segment that was looked at.
    after: Option<TimePosition>,
    /// Matching tickets to leave out.
    skipped: usize,
    pub(super) found: Vec<TimePosition>,
}

impl Listing {
    pub(super) fn new(query: &OpenTicketQuery) -> Self {
        let segment = match (query.sort, query.after) {
            (TicketSort::Id, _) => Segment::ById,
            (TicketSort::Activity, _) => Segment::ByActivity,
            (TicketSort::Waiting, Some(TimePosition { at: None, .. })) => Segment::NotWaiting,
            (TicketSort::Waiting, _) => Segment::ByWait,
        };
        Self { segment: Some(segment), after: query.after, skipped: query.skipped, found: Vec::new() }
    }
}

impl OpenTicketOrders {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn get(&self, ticket: TicketId) -> Option<OpenTicketTimes> {
        let entry = self.by_id.get(&ticket)?;
        Some(OpenTicketTimes {
            group: self.group(entry.group)?.key,
            last_activity_at: entry.activity.into(),
            waiting_since: entry.wait.map(DateTime::from),
        })
    }

    /// Adds or moves a ticket.
    pub(super) fn insert(&mut self, ticket: TicketId, times: OpenTicketTimes) {
        self.remove(ticket);
        let group = self.index_of(times.group);
        let (activity, wait) = (times.last_activity_at.into(), times.waiting_since.map(Micros::from));
        self.by_id.insert(ticket, Entry { group, activity, wait });
        self.by_activity.insert((activity, ticket), group);
        self.by_wait.extend(wait.map(|wait| ((wait, ticket), group)));
        if let Some(group) = self.group_mut(group) {
            group.open += 1;
            group.waiting.extend(wait.map(|wait| (wait, ticket)));
        }
    }

    /// Removes a ticket, if it is there.
    pub(super) fn remove(&mut self, ticket: TicketId) {
        let Some(Entry { group: index, activity, wait }) = self.by_id.remove(&ticket) else { return };
        self.by_activity.remove(&(activity, ticket));
        if let Some(wait) = wait {
            self.by_wait.remove(&(wait, ticket));
        }
        let Some(group) = self.group_mut(index) else { return };
        group.open -= 1;
        if let Some(wait) = wait {
            group.waiting.remove(&(wait, ticket));
        }
        if group.open == 0 {
            let key = group.key;
            self.indexes.remove(&key);
            self.free.push(index);
        }
    }

    /// The number of tickets and of waits in each group.
    pub(super) fn counts(&self) -> Vec<OpenTickets> {
        let groups = self.groups.iter().filter(|group| group.open > 0);
        groups
            .map(|group| OpenTickets {
                queue_id: group.key.queue_id,
                user_id: group.key.user_id,
                open: group.open,
                waiting: i64::try_from(group.waiting.len()).unwrap_or(i64::MAX),
                waiting_since: group.waiting.first().map(|(since, _)| (*since).into()),
            })
            .collect()
    }

    /// Continues a list, and looks at `max` tickets at most. Returns whether it has ended, or has as many as wanted.
    pub(super) fn continue_list(&self, query: &OpenTicketQuery, listing: &mut Listing, mut max: usize) -> bool {
        while let Some(segment) = listing.segment {
            for (position, group, is_listed) in self.entries(segment, listing.after, query.descending) {
                if listing.found.len() == query.limit {
                    return true;
                }
                if max == 0 {
                    return false;
                }
                max -= 1;
                listing.after = Some(position);
                if !is_listed || !self.group(group).is_some_and(|group| query.matches(group.key)) {
                    continue;
                }
                if listing.skipped > 0 {
                    listing.skipped -= 1;
                } else {
                    listing.found.push(position);
                }
            }
            listing.after = None;
            listing.segment = (segment == Segment::ByWait).then_some(Segment::NotWaiting);
        }
        true
    }

    /// The tickets of a segment after a position, each with its group and whether the segment has it.
    fn entries(
        &self,
        segment: Segment,
        after: Option<TimePosition>,
        descending: bool,
    ) -> Box<dyn Iterator<Item = (TimePosition, GroupIndex, bool)> + '_> {
        let order = match segment {
            Segment::ById | Segment::NotWaiting => {
                let after = after.map_or(Unbounded, |after| Excluded(TicketId::new(after.id)));
                let range = if descending { (Unbounded, after) } else { (after, Unbounded) };
                let entries = self.by_id.range(range).map(move |(id, entry)| {
                    let is_listed = segment == Segment::ById || entry.wait.is_none();
                    (TimePosition { at: None, id: id.0 }, entry.group, is_listed)
                });
                return if descending { Box::new(entries.rev()) } else { Box::new(entries) };
            }
            Segment::ByActivity => &self.by_activity,
            Segment::ByWait => &self.by_wait,
        };
        let key = |position: TimePosition| Some((Micros::from(position.at?), TicketId::new(position.id)));
        let after = after.and_then(key).map_or(Unbounded, Excluded);
        let range = if descending { (Unbounded, after) } else { (after, Unbounded) };
        let entries = order
            .range::<(Micros, TicketId), _>(range)
            .map(|((at, id), group)| (TimePosition { at: Some((*at).into()), id: id.0 }, *group, true));
        if descending { Box::new(entries.rev()) } else { Box::new(entries) }
    }

    fn group(&self, index: GroupIndex) -> Option<&Group> {
        self.groups.get(usize::try_from(index).ok()?)
    }

    fn group_mut(&mut self, index: GroupIndex) -> Option<&mut Group> {
        self.groups.get_mut(usize::try_from(index).ok()?)
    }

    /// The index of a group, which is added if there is none.
    fn index_of(&mut self, key: GroupKey) -> GroupIndex {
        if let Some(index) = self.indexes.get(&key) {
            return *index;
        }
        let group = Group { key, open: 0, waiting: BTreeSet::new() };
        let index = match self.free.pop() {
            Some(index) => {
                if let Some(free) = self.group_mut(index) {
                    *free = group;
                }
                index
            }
            None => {
                self.groups.push(group);
                GroupIndex::try_from(self.groups.len() - 1).unwrap_or(GroupIndex::MAX)
            }
        };
        self.indexes.insert(key, index);
        index
    }
}
