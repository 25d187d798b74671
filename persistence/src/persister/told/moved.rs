//! Events of messages whose status advanced: by their provider, by a mark, or by their file.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Milestone, Place, Telling};
use crate::clock;
use crate::tables::events::{By, EventKind, MessageThen, Record, Told};
use crate::tables::messages::{MessageStatus, Moved, MovedBy};
use crate::{CompanyId, MessageId};

/// The old values of what a message's progress changes: its status, and the times that it did not have before.
fn steps_between(was: MessageStatus, status: MessageStatus) -> Value {
    let mut previous = json!({"status": was});
    if status == MessageStatus::Failed {
        previous["error"] = Value::Null;
        return previous;
    }
    for (step, field) in
        [(MessageStatus::Sent, "sentAt"), (MessageStatus::Delivered, "deliveredAt"), (MessageStatus::Read, "readAt")]
    {
        if was.rank() < step.rank() && step.rank() <= status.rank() {
            previous[field] = Value::Null;
        }
    }
    previous
}

impl Telling<'_> {
    /// Adds one event for each milestone that was new to its message.
    pub(super) fn tell_moved(&self, moved: &[Moved], told: &mut Vec<(CompanyId, Place, Told)>) {
        let of = |by| moved.iter().filter(move |moved| moved.by == by);
        let mut tell = |place, at, was: MessageStatus, status: MessageStatus, moved: &Moved| {
            let kind = match status {
                MessageStatus::Sent => EventKind::MessageSent,
                MessageStatus::Delivered => EventKind::MessageDelivered,
                MessageStatus::Read => EventKind::MessageRead,
                MessageStatus::Failed => EventKind::MessageFailed,
                MessageStatus::Queued | MessageStatus::Received => return,
            };
            let (id, ticket_id, updated_at) = (moved.id, moved.ticket, moved.updated_at);
            let record = Record::Message(MessageThen { id, ticket_id, status, received: None, updated_at });
            let previous = Some(steps_between(was, status));
            told.push((moved.company, place, Told { kind, at, record, previous, by: Some(By::SYSTEM) }));
        };
        // The status each message reached by progress changes: first the one before this batch, then each step.
        let mut reached: HashMap<(CompanyId, MessageId), (MessageStatus, &Moved)> =
            of(MovedBy::Progress).map(|moved| ((moved.company, moved.id), (moved.was, moved))).collect();
        for Milestone { place, company, message, status, at } in &self.milestones {
            let Some((was, moved)) = reached.get_mut(&(*company, *message)) else { continue };
            // A failed message was at most sent; any other has passed every status before its current one.
            let is_on_the_way = match moved.status {
                MessageStatus::Failed => matches!(status, MessageStatus::Sent | MessageStatus::Failed),
                reached => status.rank() <= reached.rank(),
            };
            if is_on_the_way && status.rank() > was.rank() {
                tell(*place, *at, *was, *status, moved);
                *was = *status;
            }
        }
        let mut marked: Vec<&Moved> = of(MovedBy::Mark).collect();
        marked.sort_by_key(|moved| (moved.company, moved.ticket, moved.id, moved.status.rank()));
        for moved in marked {
            let Some((place, at)) = self.marks.get(&(moved.company, moved.ticket)) else { continue };
            tell(*place, *at, moved.was, moved.status, moved);
        }
        for Moved { company, id, ticket: ticket_id, status, updated_at, .. } in of(MovedBy::File).copied() {
            let Some((place, has_failed)) = self.files.get(&(company, id)).copied() else { continue };
            let record = Record::Message(MessageThen { id, ticket_id, status, received: None, updated_at });
            // Before, there was neither the file nor the reason why there is none.
            let previous = Some(if has_failed { json!({"error": null}) } else { json!({"media": null}) });
            let event =
                Told { kind: EventKind::MessageUpdated, at: clock::now(), record, previous, by: Some(By::SYSTEM) };
            told.push((company, place, event));
        }
    }
}
