//! Open tickets in each order in which they are listed, and counted by queue, user and channel.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroI64;
use std::ops::Bound::{Excluded, Unbounded};

use chrono::{DateTime, Utc};
use hotline_persistence::TicketId;
use hotline_persistence::select::TimePosition;
use hotline_persistence::tables::reports::desk::{OpenTicket, OpenTicketCounts};
use hotline_persistence::tables::tickets::TicketSort;

use super::open_ticket_query::OpenTicketQuery;
use super::open_ticket_times::{GroupKey, OpenTicketTimes};

/// A time in microseconds since 1970. Not zero, so that `Option<Micros>` takes no more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Micros(NonZeroI64);

impl From<DateTime<Utc>> for Micros {
    fn from(at: DateTime<Utc>) -> Self {
        // Zero, the first moment of 1970, becomes `MIN`, which is not a valid time and is read back as 1970.
        Self(NonZeroI64::new(at.timestamp_micros()).unwrap_or(NonZeroI64::MIN))
    }
}

impl From<Micros> for DateTime<Utc> {
    fn from(Micros(at): Micros) -> Self {
        Self::from_timestamp_micros(at.get()).unwrap_or_default()
    }
}

/// Maximum matching tickets that are collected and sorted for a query. If more match, the query's order is read from
/// its start until the page is full: among so many, enough are found soon.
const SORTED_MAX: usize = 2_000;

/// Maximum groups that are examined for a query, in a few tens of microseconds.
const EXAMINED_GROUPS_MAX: usize = 5_000;

/// The place of a group in [`OpenTicketOrders::groups`].
type GroupIndex = u32;

/// Where an open ticket is in the orders.
#[derive(Clone, Copy)]
struct OpenTicketEntry {
    group: GroupIndex,
    activity: Micros,
    wait: Option<Micros>,
}

/// The open tickets of one queue, user and channel.
struct Group {
    key: GroupKey,
    /// Tickets in which the contact waits come first, the longest wait before the others; all other tickets have
    /// [`NOT_WAITING`].
    tickets: BTreeSet<(Micros, TicketId)>,
    /// The number of tickets in which the contact waits.
    waiting: usize,
}

/// Later than any wait.
const NOT_WAITING: Micros = Micros(NonZeroI64::MAX);

/// The open tickets of a company. The orders contain the group, so that a filter needs no look-up for each ticket.
#[derive(Default)]
pub(super) struct OpenTicketOrders {
    by_id: BTreeMap<TicketId, OpenTicketEntry>,
    by_activity: BTreeMap<(Micros, TicketId), GroupIndex>,
    by_wait: BTreeMap<(Micros, TicketId), GroupIndex>,
    groups: Vec<Group>,
    indexes: HashMap<GroupKey, GroupIndex>,
    /// Indexes of groups without tickets, to be used again.
    free: Vec<GroupIndex>,
}

/// A part of a list that is read from one of the orders. A list by wait has two parts: the tickets in which the contact
/// waits, then the others by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    ById,
    ByActivity,
    ByWait,
    /// By id, the tickets in which the contact does not wait.
    NotWaiting,
}

/// A list that is being read, in several steps.
#[derive(Debug)]
pub(super) struct Listing {
    /// The segment that is being read; `None` once the list has ended.
    segment: Option<Segment>,
    /// The last ticket of the segment that was examined.
    after: Option<TimePosition>,
    /// Number of matching tickets still to leave out.
    left_to_skip: usize,
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
        Self { segment: Some(segment), after: query.after, left_to_skip: query.skip, found: Vec::new() }
    }
}

impl OpenTicketOrders {
    /// Puts loaded tickets in order, all at once, which takes a third less memory than inserting one after the other.
    pub(super) fn of(open: Vec<OpenTicket>) -> Self {
        let mut orders = Self::default();
        let mut groups: Vec<Vec<(Micros, TicketId)>> = Vec::new();
        let mut entries = Vec::with_capacity(open.len());
        for ticket in open {
            let entry = orders.entry_of(OpenTicketTimes::from(&ticket));
            let index = usize::try_from(entry.group).unwrap_or(usize::MAX);
            groups.resize_with(groups.len().max(orders.groups.len()), Vec::new);
            if let Some(tickets) = groups.get_mut(index) {
                tickets.push((entry.wait.unwrap_or(NOT_WAITING), ticket.id));
            }
            entries.push((ticket.id, entry));
        }
        for (group, tickets) in orders.groups.iter_mut().zip(groups) {
            group.waiting = tickets.iter().filter(|(wait, _)| *wait != NOT_WAITING).count();
            group.tickets = tickets.into_iter().collect();
        }
        orders.by_activity = entries.iter().map(|(id, entry)| ((entry.activity, *id), entry.group)).collect();
        orders.by_wait = entries.iter().filter_map(|(id, entry)| Some(((entry.wait?, *id), entry.group))).collect();
        orders.by_id = entries.into_iter().collect();
        orders
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The number of combinations of queue, user and channel that have tickets.
    pub(super) fn group_count(&self) -> usize {
        self.indexes.len()
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
        let entry = self.entry_of(times);
        let before = self.by_id.insert(ticket, entry);
        self.replace(ticket, before, Some(entry));
    }

    /// Applies a change that was made while the tickets were loaded; `None` if it closed the ticket. The change may
    /// have been recorded without the ticket's last message.
    pub(super) fn apply(&mut self, ticket: TicketId, recorded: Option<OpenTicketTimes>) {
        let Some(recorded) = recorded else { return self.remove(ticket) };
        let at = self.get(ticket).map_or(recorded.last_activity_at, |loaded| loaded.last_activity_at);
        self.insert(ticket, OpenTicketTimes { last_activity_at: recorded.last_activity_at.max(at), ..recorded });
    }

    fn entry_of(&mut self, times: OpenTicketTimes) -> OpenTicketEntry {
        let (activity, wait) = (times.last_activity_at.into(), times.waiting_since.map(Micros::from));
        OpenTicketEntry { group: self.index_of(times.group), activity, wait }
    }

    /// Removes a ticket, if it is there.
    pub(super) fn remove(&mut self, ticket: TicketId) {
        let before = self.by_id.remove(&ticket);
        self.replace(ticket, before, None);
    }

    /// Updates the orders and groups in which the two entries differ; a message usually changes one order.
    fn replace(&mut self, ticket: TicketId, before: Option<OpenTicketEntry>, after: Option<OpenTicketEntry>) {
        let activity = |entry: OpenTicketEntry| (entry.activity, entry.group);
        replace_in(&mut self.by_activity, ticket, before.map(activity), after.map(activity));
        let wait = |entry: OpenTicketEntry| entry.wait.map(|wait| (wait, entry.group));
        let (wait_before, wait_after) = (before.and_then(wait), after.and_then(wait));
        replace_in(&mut self.by_wait, ticket, wait_before, wait_after);
        let group_and_wait = |entry: OpenTicketEntry| (entry.group, entry.wait);
        if before.map(group_and_wait) == after.map(group_and_wait) {
            return;
        }
        if let Some(after) = after
            && let Some(group) = self.group_mut(after.group)
        {
            group.tickets.insert((after.wait.unwrap_or(NOT_WAITING), ticket));
            group.waiting += usize::from(after.wait.is_some());
        }
        if let Some(before) = before {
            self.remove_from_group(ticket, before);
        }
    }

    /// Removes a ticket from the group in which it was. The index of a group that is now empty is free.
    fn remove_from_group(&mut self, ticket: TicketId, before: OpenTicketEntry) {
        let Some(group) = self.group_mut(before.group) else { return };
        group.tickets.remove(&(before.wait.unwrap_or(NOT_WAITING), ticket));
        group.waiting -= usize::from(before.wait.is_some());
        if group.tickets.is_empty() {
            let key = group.key;
            self.indexes.remove(&key);
            self.free.push(before.group);
        }
    }

    /// The number of tickets and of waits in each group.
    pub(super) fn counts(&self) -> Vec<OpenTicketCounts> {
        let count = |tickets: usize| i64::try_from(tickets).unwrap_or(i64::MAX);
        let groups = self.indexes.values().filter_map(|index| self.group(*index));
        groups
            .map(|group| OpenTicketCounts {
                queue_id: group.key.queue_id,
                user_id: group.key.user_id,
                open: count(group.tickets.len()),
                waiting: count(group.waiting),
                waiting_since: group.tickets.first().filter(|_| group.waiting > 0).map(|(since, _)| (*since).into()),
            })
            .collect()
    }

    /// All tickets that match a query, in no particular order; `None` if they are many, or if reading the query's order
    /// until the page is full would examine fewer.
    pub(super) fn matching_if_few(&self, query: &OpenTicketQuery) -> Option<Vec<(TicketId, OpenTicketTimes)>> {
        if self.indexes.len() > EXAMINED_GROUPS_MAX {
            return None;
        }
        let matching = || {
            let indexes = self.indexes.iter().filter(|(key, _)| query.matches(**key));
            indexes.filter_map(|(_, index)| self.group(*index))
        };
        let count = matching().map(|group| group.tickets.len()).sum::<usize>();
        // The tickets that would be examined in the query's order, if the matching ones are spread evenly.
        let examined = (query.skip + query.limit).saturating_mul(self.len()) / count.max(1);
        if count > SORTED_MAX.min(examined) {
            return None;
        }
        let ids = matching().flat_map(|group| &group.tickets);
        Some(ids.filter_map(|(_, id)| Some((*id, self.get(*id)?))).collect())
    }

    /// Continues a list, and examines `max` tickets at most. Returns whether the list has ended, or has as many tickets
    /// as the query requests.
    pub(super) fn continue_list(&self, query: &OpenTicketQuery, listing: &mut Listing, mut max: usize) -> bool {
        // A ticket that was found in an earlier step may have moved in the order since, and is not listed twice.
        let found_earlier = listing.found.len();
        while let Some(segment) = listing.segment {
            for (position, group, is_in_segment) in self.entries(segment, listing.after, query.descending) {
                if listing.found.len() == query.limit {
                    return true;
                }
                if max == 0 {
                    return false;
                }
                max -= 1;
                listing.after = Some(position);
                if !is_in_segment || !self.group(group).is_some_and(|group| query.matches(group.key)) {
                    continue;
                }
                if listing.left_to_skip > 0 {
                    listing.left_to_skip -= 1;
                } else if listing.found.iter().take(found_earlier).all(|found| found.id != position.id) {
                    listing.found.push(position);
                }
            }
            listing.after = None;
            listing.segment = (segment == Segment::ByWait).then_some(Segment::NotWaiting);
        }
        true
    }

    /// The tickets after a position, each with its group and whether it belongs to the segment.
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
                    let is_in_segment = segment == Segment::ById || entry.wait.is_none();
                    (TimePosition { at: None, id: id.0 }, entry.group, is_in_segment)
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

    /// The index of a group, which is added if it is missing.
    fn index_of(&mut self, key: GroupKey) -> GroupIndex {
        if let Some(index) = self.indexes.get(&key) {
            return *index;
        }
        let group = Group { key, tickets: BTreeSet::new(), waiting: 0 };
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

/// Moves a ticket in an order, if its time or group has changed.
fn replace_in(
    order: &mut BTreeMap<(Micros, TicketId), GroupIndex>,
    ticket: TicketId,
    before: Option<(Micros, GroupIndex)>,
    after: Option<(Micros, GroupIndex)>,
) {
    if before == after {
        return;
    }
    if let Some((at, _)) = before {
        order.remove(&(at, ticket));
    }
    order.extend(after.map(|(at, group)| ((at, ticket), group)));
}

#[cfg(test)]
mod tests;
