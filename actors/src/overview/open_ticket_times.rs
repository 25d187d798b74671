//! The group of an open ticket, and the times by which it is sorted.

use chrono::{DateTime, Utc};
use hotline_persistence::tables::reports::desk::OpenTicket;
use hotline_persistence::{ChannelId, QueueId, UserId};

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

impl From<&OpenTicket> for OpenTicketTimes {
    fn from(ticket: &OpenTicket) -> Self {
        let OpenTicket { id: _, queue_id, user_id, channel_id, waiting_since, last_activity_at } = *ticket;
        Self { group: GroupKey { queue_id, user_id, channel_id }, last_activity_at, waiting_since }
    }
}
