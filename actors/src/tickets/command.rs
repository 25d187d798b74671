//! How a command is decided: a plain function of the ticket, the company's directory and the time. It reaches the
//! ticket's actor as [`Execute`].

use std::sync::Arc;

use actix::Message;
use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::id_blocks::IdBlocks;
use hotline_persistence::tables::events;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::ticket_events::{EventRow, EventType};
use hotline_persistence::tables::tickets::TicketRow;
use hotline_persistence::{Change, MessageId, TicketId, Timestamp};
use serde_json::{Value, json};

use super::references::{named_queue, named_user, named_wrapup_type};
use super::{Author, Ticket};
use crate::Refusal;

/// One operation on one ticket. It does not depend on actors and does no I/O.
pub trait Command: Clone + Send + Sync + 'static {
    /// The reply to the caller.
    type Reply: Send + 'static;

    /// Whether this command only reads. It then reserves no space in the log, and works while the log is full.
    const READ_ONLY: bool = false;

    /// Whether this command opens the ticket if it is closed. The contact's slot is then locked for it.
    fn opens(&self) -> bool {
        false
    }

    /// Whether a ticket opened for this command is closed again in the same decision, because no agent is to handle it.
    fn keeps_closed(&self) -> bool {
        false
    }

    /// Applies the command to `ticket`, and records in `cx` the changes to journal. After an `Err` the ticket is
    /// discarded.
    ///
    /// # Errors
    /// Why the command is refused.
    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<Self::Reply, Refusal>;
}

/// The inputs of a decision, and the changes it records.
pub struct Context<'a> {
    /// The time of the decision.
    pub now: DateTime<Utc>,
    /// The company's directory.
    pub organization: &'a Organization,
    /// How long after the contact's last message a phone channel accepts anything but templates; `None`: without limit.
    pub window: Option<TimeDelta>,
    /// Another open ticket of this contact and channel, for commands that would open one.
    pub open_elsewhere: Option<TicketId>,
    ids: &'a IdBlocks,
    changes: Vec<Change>,
    is_row_changed: bool,
    /// The ticket's row and last activity as of its last event; `None` for a ticket that is being opened.
    at_last_event: Option<(TicketRow, DateTime<Utc>)>,
}

impl<'a> Context<'a> {
    /// A context for one decision.
    pub fn new(now: DateTime<Utc>, organization: &'a Organization, ids: &'a IdBlocks) -> Self {
        Self {
            now,
            organization,
            window: None,
            open_elsewhere: None,
            ids,
            changes: Vec::new(),
            is_row_changed: false,
            at_last_event: None,
        }
    }

    /// The recorded changes. The ticket's row comes first if it changed, because events and messages refer to it.
    pub(crate) fn into_changes(mut self, ticket: &Ticket) -> Vec<Change> {
        if self.is_row_changed {
            self.changes.insert(0, Change::Ticket(ticket.row.clone()));
        }
        self.changes
    }

    /// Marks the ticket's row as changed now.
    pub fn touch(&mut self, ticket: &mut Ticket) {
        ticket.row.updated_at = self.now;
        self.is_row_changed = true;
    }

    /// Records any other change.
    pub fn record(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Records an event of the ticket, with the old values of the fields that have changed since the previous event.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when no id is left.
    pub fn record_event(
        &mut self,
        ticket: &Ticket,
        kind: EventType,
        author: &Author,
        from: Option<Value>,
        to: Option<Value>,
    ) -> Result<(), Refusal> {
        let (user_id, user_name) = author.user.clone().unzip();
        let after = (ticket.row.clone(), ticket.last_activity_at());
        let was = self.at_last_event.as_ref().and_then(|before| old_values(before, &after, kind, self.organization));
        self.at_last_event = Some(after);
        self.changes.push(Change::Event(EventRow {
            company_id: ticket.row.company_id,
            id: self.ids.event()?,
            ticket_id: ticket.row.id,
            kind,
            from,
            to,
            user_id,
            user_name,
            integration_id: author.integration,
            source: author.source,
            created_at: self.now,
            was,
        }));
        Ok(())
    }

    /// The id of a new message.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when no id is left.
    pub fn new_message_id(&self) -> Result<MessageId, Refusal> {
        Ok(self.ids.message()?)
    }

    /// A new message of the ticket, not yet recorded.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when no id is left.
    pub fn new_message(
        &self,
        ticket: &Ticket,
        direction: Direction,
        author: &Author,
        body: &str,
    ) -> Result<MessageRow, Refusal> {
        let (user_id, user_name) = author.user.clone().unzip();
        Ok(MessageRow {
            company_id: ticket.row.company_id,
            id: self.ids.message()?,
            job_id: None,
            ticket_id: ticket.row.id,
            contact_id: ticket.row.contact_id,
            channel_id: ticket.row.channel_id,
            direction,
            kind: MessageType::Text,
            body: Some(body.to_owned()),
            media: None,
            template: None,
            interactive: None,
            content: None,
            revisions: None,
            attempts: None,
            quoted_message_id: None,
            status: MessageStatus::Queued,
            error: None,
            user_id,
            user_name,
            integration_id: author.integration,
            source: author.source,
            session_id: None,
            client_id: None,
            after_send: None,
            provider_message_id: None,
            created_at: self.now,
            sent_at: None,
            delivered_at: None,
            read_at: None,
            updated_at: None,
        })
    }
}

/// The old values of the fields that an event changes, as the API shows them. `firstResponseAt` and `unreadCount` are
/// included only if a reopening or a read changes them: otherwise messages change them, and have their own events.
fn old_values(
    before: &(TicketRow, DateTime<Utc>),
    after: &(TicketRow, DateTime<Utc>),
    kind: EventType,
    organization: &Organization,
) -> Option<Value> {
    let snapshot = |(row, last_activity_at): &(TicketRow, DateTime<Utc>)| {
        let mut snapshot = json!({
            "status": row.status,
            "queue": named_queue(organization, row.queue_id),
            "assignedTo": named_user(organization, row.user_id),
            "wrapupType": named_wrapup_type(organization, row.wrapup_type_id),
            "wrapupNote": row.wrapup_note,
            "reopenCount": row.reopen_count,
            "openedAt": Timestamp(row.opened_at),
            "closedAt": row.closed_at.map(Timestamp),
            "lastActivityAt": Timestamp(*last_activity_at),
            "waitingSince": row.waiting_since.map(Timestamp),
        });
        if kind == EventType::Reopened {
            snapshot["firstResponseAt"] = json!(row.first_response_at.map(Timestamp));
        }
        if kind == EventType::Read {
            snapshot["unreadCount"] = json!(row.unread_count);
        }
        snapshot
    };
    events::previous_values(&snapshot(before), &snapshot(after))
}

/// The result of a command.
pub struct Decided<R> {
    /// The reply to the caller.
    pub reply: R,
    /// The ticket after the command.
    pub ticket: Ticket,
    /// The changes to journal; empty when the command changed nothing.
    pub changes: Vec<Change>,
}

/// Applies a command to a copy of the ticket.
///
/// # Errors
/// Why the command is refused; the ticket is unchanged.
pub fn apply<C: Command>(command: C, ticket: &Ticket, mut cx: Context<'_>) -> Result<Decided<C::Reply>, Refusal> {
    cx.at_last_event = Some((ticket.row.clone(), ticket.last_activity_at()));
    let mut ticket = ticket.clone();
    let reply = command.decide(&mut ticket, &mut cx)?;
    let changes = cx.into_changes(&ticket);
    Ok(Decided { reply, ticket, changes })
}

/// Additional changes for the same log entry, built from the command's reply, such as the stored response of an
/// idempotent request. If they cannot be built, the command is refused, and nothing is changed.
pub type AttachedChanges<R> = Arc<dyn Fn(&R) -> Result<Vec<Change>, Refusal> + Send + Sync>;

/// A condition that must still hold when a command is decided. It must not block.
pub type Precondition = Arc<dyn Fn() -> bool + Send + Sync>;

/// Asks a ticket's actor to execute a command and to reply once the entry is durable. The mailbox receives it inside an
/// [`crate::registry::Envelope`].
pub struct Execute<C: Command> {
    /// The command.
    pub command: C,
    /// Changes that become durable in the same entry.
    pub attached: Option<AttachedChanges<C::Reply>>,
    /// A condition that the caller checked earlier: if it no longer holds, the command is refused with
    /// [`Refusal::Outdated`].
    pub only_if: Option<Precondition>,
}

impl<C: Command> Execute<C> {
    /// Checks the caller's precondition. Nothing may await between this and the append.
    pub(crate) fn check_precondition(&self) -> Result<(), Refusal> {
        match &self.only_if {
            Some(holds) if !holds() => Err(Refusal::Outdated),
            _ => Ok(()),
        }
    }
}

impl<C: Command> Clone for Execute<C> {
    fn clone(&self) -> Self {
        Self { command: self.command.clone(), attached: self.attached.clone(), only_if: self.only_if.clone() }
    }
}

impl<C: Command> From<C> for Execute<C> {
    fn from(command: C) -> Self {
        Self { command, attached: None, only_if: None }
    }
}

impl<C: Command> Message for Execute<C> {
    type Result = Result<C::Reply, Refusal>;
}
