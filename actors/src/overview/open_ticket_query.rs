//! The queries for lists of open tickets that are answered from memory.

use hotline_persistence::select::{Place, TimePosition};
use hotline_persistence::tables::tickets::{SortedPage, TicketFilter, TicketRow, TicketSort, TicketStatus};
use hotline_persistence::{ChannelId, QueueId, TicketId, UserId};

use super::open_ticket_times::{GroupKey, OpenTicketTimes};

/// A part of the list of a company's open tickets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenTicketQuery {
    queue_id: Option<QueueId>,
    user_id: Option<UserId>,
    channel_id: Option<ChannelId>,
    /// True: only tickets without a user; false: only tickets with one.
    unassigned: Option<bool>,
    pub(super) sort: TicketSort,
    pub(super) descending: bool,
    /// The position after which this part begins.
    pub(super) after: Option<TimePosition>,
    /// Number of matching tickets to leave out.
    pub(super) skip: usize,
    /// Maximum number of tickets: one more than the page has, to find out whether there are more.
    pub(super) limit: usize,
}

impl OpenTicketQuery {
    /// The query for a page of the API's list; `None` if it has other conditions, for which the tables have to be read.
    pub(crate) fn of(filter: &TicketFilter, request: SortedPage) -> Option<Self> {
        let TicketFilter { queue_id, user_id, channel_id, unassigned, .. } = *filter;
        let status = Some(TicketStatus::Open);
        let answerable = TicketFilter { status, queue_id, user_id, channel_id, unassigned, ..TicketFilter::default() };
        if *filter != answerable {
            return None;
        }
        let SortedPage { sort, page, after } = request;
        let after = match page.place {
            Place::Cursor(Some(id)) => Some(TimePosition { at: None, id }),
            Place::Cursor(None) | Place::Number(_) => after,
        };
        let descending = page.descending;
        let skip = usize::try_from(page.offset()).ok()?;
        let limit = usize::try_from(page.size).ok()?.checked_add(1)?;
        Some(Self { queue_id, user_id, channel_id, unassigned, sort, descending, after, skip, limit })
    }

    /// Whether this is the first part of the list.
    pub(crate) const fn is_first(&self) -> bool {
        self.after.is_none() && self.skip == 0
    }

    /// Whether a ticket still belongs to the list.
    pub(crate) fn includes(&self, row: &TicketRow) -> bool {
        let group = GroupKey { queue_id: row.queue_id, user_id: row.user_id, channel_id: row.channel_id };
        row.status == TicketStatus::Open && self.matches(group)
    }

    /// The page that the query asks for, given all tickets that match it in any order.
    pub(super) fn page_of(&self, matching: Vec<(TicketId, OpenTicketTimes)>) -> Vec<TimePosition> {
        let position = |(id, times): (TicketId, OpenTicketTimes)| {
            let at = match self.sort {
                TicketSort::Id => None,
                TicketSort::Activity => Some(times.last_activity_at),
                TicketSort::Waiting => times.waiting_since,
            };
            TimePosition { at, id: id.0 }
        };
        let order = |a: &TimePosition, b: &TimePosition| {
            // Tickets without a time come last in either direction.
            let by_presence = a.at.is_none().cmp(&b.at.is_none());
            let by_time = (a.at, a.id).cmp(&(b.at, b.id));
            by_presence.then(if self.descending { by_time.reverse() } else { by_time })
        };
        let mut positions: Vec<TimePosition> = matching.into_iter().map(position).collect();
        positions.retain(|position| self.after.is_none_or(|after| order(position, &after).is_gt()));
        positions.sort_unstable_by(order);
        positions.into_iter().skip(self.skip).take(self.limit).collect()
    }

    pub(super) fn matches(&self, group: GroupKey) -> bool {
        self.queue_id.is_none_or(|id| group.queue_id == Some(id))
            && self.user_id.is_none_or(|id| group.user_id == Some(id))
            && self.channel_id.is_none_or(|id| group.channel_id == id)
            && self.unassigned.is_none_or(|unassigned| group.user_id.is_none() == unassigned)
    }
}
