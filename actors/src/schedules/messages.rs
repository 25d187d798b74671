//! What a company's dispatcher is asked.

use std::sync::Arc;

use actix::Message;
use chrono::{DateTime, Utc};
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::schedules::ScheduleRow;
use hotline_persistence::{ChannelId, ContactId, QueueId, ScheduleId};

use crate::Refusal;
use crate::tickets::{AttachedChanges, Author};

/// A scheduled message, with whom it is for.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The message.
    pub row: Arc<ScheduleRow>,
    /// Whom it is for; none who is gone.
    pub contact: Option<Arc<ContactRef>>,
}

/// A message to be scheduled.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// Whom it is for.
    pub contact: Arc<ContactRef>,
    /// Over which channel.
    pub channel: ChannelId,
    /// What it says.
    pub body: String,
    /// Where its ticket goes then.
    pub queue: Option<QueueId>,
    /// When.
    pub send_at: DateTime<Utc>,
    /// Who schedules it.
    pub author: Author,
}

/// What changes of a scheduled message.
#[derive(Clone, Debug, Default)]
pub struct ScheduleChanges {
    /// Whom it is for.
    pub contact: Option<ContactId>,
    /// Over which channel.
    pub channel: Option<ChannelId>,
    /// What it says.
    pub body: Option<String>,
    /// Where its ticket goes then.
    pub queue: Option<Option<QueueId>>,
    /// When.
    pub send_at: Option<DateTime<Utc>>,
}

/// Schedules a message.
#[derive(Clone, Message)]
#[rtype(result = "Result<Scheduled, Refusal>")]
pub(crate) struct CreateSchedule {
    pub(crate) new: NewSchedule,
    pub(crate) attached: Option<AttachedChanges<Scheduled>>,
}

/// Changes one that is pending.
#[derive(Clone, Message)]
#[rtype(result = "Result<Scheduled, Refusal>")]
pub(crate) struct UpdateSchedule {
    pub(crate) id: ScheduleId,
    pub(crate) changes: ScheduleChanges,
    /// Whom it is for then, as it was looked up; [`Refusal::Gone`] when that has changed meanwhile.
    pub(crate) contact: (ContactId, Option<Arc<ContactRef>>),
    pub(crate) attached: Option<AttachedChanges<Scheduled>>,
}

/// Calls one off.
#[derive(Clone, Copy, Message)]
#[rtype(result = "Result<(), Refusal>")]
pub(crate) struct CancelSchedule(pub(crate) ScheduleId);

/// Asks for one as it is.
#[derive(Clone, Copy, Message)]
#[rtype(result = "Result<Arc<ScheduleRow>, Refusal>")]
pub(crate) struct LookAtSchedule(pub(crate) ScheduleId);
