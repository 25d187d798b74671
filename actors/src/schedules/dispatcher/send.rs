//! Sends a scheduled message, and interprets its failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hotline_persistence::Change;
use hotline_persistence::tables::messages::{MessageError, MessageRow};
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::schedules::ScheduleRow;
use hotline_persistence::tables::source::Source;

use super::ScheduleScope;
use crate::Refusal;
use crate::base::due_work::catch_panic;
use crate::services::{Recipient, Target};
use crate::tickets::{AfterSend, AttachedChanges, Author, Execute, Send};

/// The outcome of sending a message.
pub(super) struct DispatchReport {
    pub(super) row: Arc<ScheduleRow>,
    pub(super) outcome: Result<MessageRow, Refusal>,
    /// Whether the log may have the message as sent, even if the outcome is a refusal.
    pub(super) may_be_recorded: bool,
}

/// Sends a scheduled message that is due. Its new status is recorded in the same log entry as the message that it
/// creates.
pub(super) async fn dispatch(scope: Arc<ScheduleScope>, row: Arc<ScheduleRow>) -> DispatchReport {
    let may_be_recorded = Arc::new(AtomicBool::new(false));
    let attached: AttachedChanges<MessageRow> = {
        let (row, may_be_recorded) = (row.clone(), may_be_recorded.clone());
        Arc::new(move |message: &MessageRow| {
            may_be_recorded.store(true, Ordering::Release);
            Ok(vec![Change::Schedule(Box::new(row.sent(message)))])
        })
    };
    let send = async {
        let (target, command) = prepare(&scope, &row).await?;
        scope.sending.send(&target, Execute { command, attached: Some(attached), only_if: None }).await
    };
    let outcome = catch_panic("sending a scheduled message", send).await;
    DispatchReport { row, outcome, may_be_recorded: may_be_recorded.load(Ordering::Acquire) }
}

/// Loads the data that a message will need when it is due, so that a database outage does not delay it.
pub(super) async fn prefetch(scope: &ScheduleScope, row: &ScheduleRow) -> Result<(), Refusal> {
    let (target, command) = prepare(scope, row).await?;
    scope.sending.prefetch(&target, &command).await
}

async fn prepare(scope: &ScheduleScope, row: &ScheduleRow) -> Result<(Target, Send), Refusal> {
    let recipient = Recipient::Contact(row.channel_id, row.contact_id);
    let target = scope.sending.resolve(row.company_id, recipient).await?.always_following_merges();
    let organization = scope.base.organization(row.company_id)?;
    let user = row.user_id.and_then(|id| Some((id, organization.users.get(&id)?.name.clone())));
    let author = Author { user, integration: row.integration_id, source: Source::Schedule };
    let after = AfterSend { queue_id: row.queue_id, ..AfterSend::default() };
    Ok((target, Send { after, ..Send::text(row.body.clone(), author) }))
}

/// The error of a message that failed. Its queue or its channel may have been deleted since it was scheduled.
pub(super) fn failure(refusal: &Refusal, row: &ScheduleRow, organization: Option<&Organization>) -> MessageError {
    let has_channel = organization.is_some_and(|organization| organization.channels.contains_key(&row.channel_id));
    refusal.to_message_error(if has_channel { "the queue was deleted" } else { "the channel was deleted" })
}
