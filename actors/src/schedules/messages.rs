//! The messages to a company's dispatcher.

use std::sync::Arc;

use actix::Message;
use chrono::{DateTime, Utc};
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::schedules::{DeletedContact, ScheduleRow};
use hotline_persistence::{ChannelId, ContactId, QueueId, ScheduleId};

use crate::Refusal;
use crate::tickets::{AttachedChanges, Author};

/// A scheduled message, with its recipient.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The message.
    pub row: Arc<ScheduleRow>,
    /// The recipient; none if the contact was deleted.
    pub contact: Option<Arc<ContactRef>>,
}

/// Scheduled messages were changed in the tables: the dispatcher reads all of them again.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ReloadAgenda;

/// A message to be scheduled.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// The recipient.
    pub contact: Arc<ContactRef>,
    /// The channel.
    pub channel: ChannelId,
    /// The text.
    pub body: String,
    /// The queue that its ticket moves to when it is sent.
    pub queue: Option<QueueId>,
    /// The time to send it.
    pub send_at: DateTime<Utc>,
    /// In whose name it is sent.
    pub author: Author,
    /// Who schedules it.
    pub by: By,
}

/// Changes to a scheduled message; `None` leaves a value as it is.
#[derive(Clone, Debug, Default)]
pub struct ScheduleChanges {
    /// The recipient.
    pub contact: Option<ContactId>,
    /// The channel.
    pub channel: Option<ChannelId>,
    /// The text.
    pub body: Option<String>,
    /// The queue that its ticket moves to when it is sent.
    pub queue: Option<Option<QueueId>>,
    /// The time to send it.
    pub send_at: Option<DateTime<Utc>>,
}

/// Schedules a message.
#[derive(Clone, Message)]
#[rtype(result = "Result<Scheduled, Refusal>")]
pub(crate) struct CreateSchedule {
    pub(crate) new: NewSchedule,
    /// The version of the contact that the caller has read.
    pub(crate) version: u64,
    pub(crate) attached: Option<AttachedChanges<Scheduled>>,
}

/// Changes a pending message.
#[derive(Clone, Message)]
#[rtype(result = "Result<Scheduled, Refusal>")]
pub(crate) struct UpdateSchedule {
    pub(crate) id: ScheduleId,
    pub(crate) changes: ScheduleChanges,
    /// The recipient after the change, as of the caller's lookup. If it would be another one by now, the update is
    /// refused as [`Refusal::Retired`].
    pub(crate) contact_id: ContactId,
    /// `None` if the recipient was deleted.
    pub(crate) contact: Option<Arc<ContactRef>>,
    /// The version of the contact that the caller has read.
    pub(crate) version: u64,
    pub(crate) attached: Option<AttachedChanges<Scheduled>>,
    /// Who changes it.
    pub(crate) by: By,
}

/// Cancels a pending message: its id, and who cancels it.
#[derive(Clone, Message)]
#[rtype(result = "Result<(), Refusal>")]
pub(crate) struct CancelSchedule(pub(crate) ScheduleId, pub(crate) By);

/// The recipient was deleted: a pending message fails.
#[derive(Clone, Message)]
#[rtype(result = "Result<(), Refusal>")]
pub(crate) struct FailSchedule {
    pub(crate) id: ScheduleId,
    /// Who deleted the recipient.
    pub(crate) by: By,
    /// The data of the deleted recipient that the message showed.
    pub(crate) deleted_contact: Option<DeletedContact>,
}

/// Reads a message.
#[derive(Clone, Copy, Message)]
#[rtype(result = "Result<Arc<ScheduleRow>, Refusal>")]
pub(crate) struct ReadSchedule(pub(crate) ScheduleId);
