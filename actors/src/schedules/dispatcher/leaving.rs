//! A scheduled message leaves: what is sent, and what it means that it was not.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use hotline_persistence::Change;
use hotline_persistence::tables::messages::{MessageError, MessageRow};
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::schedules::ScheduleRow;
use hotline_persistence::tables::source::Source;

use super::ScheduleScope;
use crate::Refusal;
use crate::engine::{Recipient, Target};
use crate::tickets::{AfterSend, AttachedChanges, Author, Execute, Send};

/// What became of a message that was to leave.
pub(super) struct Left {
    pub(super) row: Arc<ScheduleRow>,
    pub(super) outcome: Result<MessageRow, Refusal>,
    /// Whether it may stand in the log that it was sent, whatever the outcome says.
    pub(super) is_recorded: bool,
}

/// Sends a message whose time has come. That it was sent is in the message's own entry of the log.
pub(super) async fn leave(scope: Arc<ScheduleScope>, row: Arc<ScheduleRow>) -> Left {
    let recorded = Arc::new(AtomicBool::new(false));
    let attached: AttachedChanges<MessageRow> = {
        let (row, recorded) = (row.clone(), recorded.clone());
        Arc::new(move |message: &MessageRow| {
            recorded.store(true, Ordering::Release);
            vec![Change::Schedule(Box::new(row.sent(message)))]
        })
    };
    let sent = async {
        let (target, command) = prepare(&scope, &row).await?;
        scope.sending.send(&target, Execute { command, attached: Some(attached) }).await
    };
    let outcome = AssertUnwindSafe(sent).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| Err(Refusal::Defect("a scheduled message met a panic".to_owned())));
    Left { row, outcome, is_recorded: recorded.load(Ordering::Acquire) }
}

/// Has what a message will need to know looked up before it is due, so that an outage does not keep it.
pub(super) async fn look_ahead(scope: &ScheduleScope, row: &ScheduleRow) -> Result<(), Refusal> {
    let (target, command) = prepare(scope, row).await?;
    scope.sending.look_ahead(&target, &command).await
}

async fn prepare(scope: &ScheduleScope, row: &ScheduleRow) -> Result<(Target, Send), Refusal> {
    let recipient = Recipient::Contact(row.channel_id, row.contact_id);
    let target = scope.sending.resolve(row.company_id, recipient).await?;
    let organization = scope.base.organization(row.company_id)?;
    let user = row.user_id.and_then(|id| Some((id, organization.users.get(&id)?.name.clone())));
    let author = Author { user, integration: row.integration_id, source: Source::Schedule };
    let after = AfterSend { queue_id: row.queue_id, ..AfterSend::default() };
    Ok((target, Send { after, ..Send::text(row.body.clone(), author) }))
}

/// Whether what was refused is to be tried again: it says nothing of the message.
pub(super) fn is_passing(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Unavailable(_) | Refusal::Gone | Refusal::ContactLeaving(_))
}

/// Why it failed, in the words of `POST /messages`.
pub(super) fn failure(refusal: &Refusal, row: &ScheduleRow, organization: Option<&Organization>) -> MessageError {
    let knows = |holds: fn(&Organization, &ScheduleRow) -> bool| organization.is_some_and(|known| holds(known, row));
    let (code, message) = match refusal {
        Refusal::ContactNotFound => ("ERR_API_CONTACT_NOT_FOUND", "the contact is gone".to_owned()),
        Refusal::NotFound if !knows(|known, row| known.channels.contains_key(&row.channel_id)) => {
            ("ERR_API_NOT_FOUND", "the channel is gone".to_owned())
        }
        Refusal::NotFound => ("ERR_API_NOT_FOUND", "the queue is gone".to_owned()),
        Refusal::ContactUnreachable(_) => ("ERR_API_CONTACT_UNREACHABLE", refusal.to_string()),
        Refusal::WindowClosed => ("ERR_API_WINDOW_CLOSED", refusal.to_string()),
        Refusal::Invalid(fields) => {
            let named = fields.iter().map(|error| format!("{} {}", error.field, error.reason));
            ("ERR_API_VALIDATION", named.collect::<Vec<_>>().join("; "))
        }
        Refusal::Conflict(_) | Refusal::TicketClosed(_) | Refusal::AlreadyOpen(_) => {
            ("ERR_API_CONFLICT", refusal.to_string())
        }
        Refusal::InteractiveInvalid(_) => ("ERR_API_INTERACTIVE_INVALID", refusal.to_string()),
        Refusal::Defect(_) | Refusal::Unavailable(_) | Refusal::Gone | Refusal::ContactLeaving(_) => {
            ("ERR_API_INTERNAL", "internal error".to_owned())
        }
    };
    MessageError { code: code.to_owned(), message }
}
