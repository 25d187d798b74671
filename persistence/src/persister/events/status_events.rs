//! Events of messages that were changed by a report of their provider, by a receipt, or by their file.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{BatchIndex, EventCollector, FileReport, StatusReport};
use crate::clock;
use crate::tables::events::{By, EventKind, MessageSnapshot, NewEvent, Record};
use crate::tables::messages::{ChangeCause, ChangedMessage, MessageStatus};
use crate::{CompanyId, MessageId};

/// The previous values of the fields that a new status changes: the status itself, and the error or the times of the
/// steps newly reached.
fn previous_fields(from: MessageStatus, to: MessageStatus) -> Value {
    let mut previous = json!({"status": from});
    if to == MessageStatus::Failed {
        previous["error"] = Value::Null;
        return previous;
    }
    for (step, field) in
        [(MessageStatus::Sent, "sentAt"), (MessageStatus::Delivered, "deliveredAt"), (MessageStatus::Read, "readAt")]
    {
        if from.rank() < step.rank() && step.rank() <= to.rank() {
            previous[field] = Value::Null;
        }
    }
    previous
}

impl EventCollector<'_> {
    /// Adds an event for each status that a message has newly reached, and for each file that was stored or is lost.
    pub(super) fn add_status_events(
        &self,
        changed: &[ChangedMessage],
        events: &mut Vec<(CompanyId, BatchIndex, NewEvent)>,
    ) {
        let caused_by = |by| changed.iter().filter(move |changed| changed.by == by);
        let mut add_event = |index, at, previous: MessageStatus, status: MessageStatus, changed: &ChangedMessage| {
            let Some(kind) = event_kind(status) else { return };
            let (id, ticket_id, updated_at) = (changed.id, changed.ticket, changed.updated_at);
            let (received, reaction) = (None, None);
            let record = Record::Message(MessageSnapshot { id, ticket_id, status, received, updated_at, reaction });
            let previous = Some(previous_fields(previous, status));
            events.push((changed.company, index, NewEvent { kind, at, record, previous, by: Some(By::SYSTEM) }));
        };
        // The status of each message as its reports are processed one by one: initially the one before this batch.
        let mut latest_statuses: HashMap<(CompanyId, MessageId), (MessageStatus, &ChangedMessage)> =
            caused_by(ChangeCause::Progress)
                .map(|changed| ((changed.company, changed.id), (changed.previous, changed)))
                .collect();
        for StatusReport { index, company, message, status, at } in &self.status_reports {
            let Some((previous, changed)) = latest_statuses.get_mut(&(*company, *message)) else { continue };
            // A failed message was at most sent; any other has passed every status before its current one.
            let was_reached = match changed.status {
                MessageStatus::Failed => matches!(status, MessageStatus::Sent | MessageStatus::Failed),
                current => status.rank() <= current.rank(),
            };
            if was_reached && status.rank() > previous.rank() {
                add_event(*index, *at, *previous, *status, changed);
                *previous = *status;
            }
        }
        let mut receipts: Vec<&ChangedMessage> = caused_by(ChangeCause::Receipt).collect();
        receipts.sort_by_key(|changed| (changed.company, changed.ticket, changed.id, changed.status.rank()));
        for changed in receipts {
            let Some((index, at)) = self.receipts.get(&(changed.company, changed.ticket)) else { continue };
            add_event(*index, *at, changed.previous, changed.status, changed);
        }
        self.add_file_events(caused_by(ChangeCause::File).copied(), events);
    }

    /// Adds an event for each file that was stored or is lost. `changed`: the messages with these files.
    fn add_file_events(
        &self,
        changed: impl Iterator<Item = ChangedMessage>,
        events: &mut Vec<(CompanyId, BatchIndex, NewEvent)>,
    ) {
        for ChangedMessage { company, id, ticket: ticket_id, status, updated_at, .. } in changed {
            let Some(file) = self.files.get(&(company, id)).copied() else { continue };
            let FileReport { index, is_lost, noted_at } = file;
            let (received, reaction) = (None, None);
            let record = Record::Message(MessageSnapshot { id, ticket_id, status, received, updated_at, reaction });
            // Before, the message had neither a file nor an error.
            let previous = Some(if is_lost { json!({"error": null}) } else { json!({"media": null}) });
            // The batch may be written much later, after an outage. Its later events must not get the time of that.
            let at = noted_at.unwrap_or_else(clock::now);
            let event = NewEvent { kind: EventKind::MessageUpdated, at, record, previous, by: Some(By::SYSTEM) };
            events.push((company, index, event));
        }
    }
}

/// The kind of event for a status that a message has reached; `None` if there is no event for it.
fn event_kind(status: MessageStatus) -> Option<EventKind> {
    match status {
        MessageStatus::Sent => Some(EventKind::MessageSent),
        MessageStatus::Delivered => Some(EventKind::MessageDelivered),
        MessageStatus::Read => Some(EventKind::MessageRead),
        MessageStatus::Failed => Some(EventKind::MessageFailed),
        MessageStatus::Queued | MessageStatus::Received => None,
    }
}
