//! Opens a ticket together with its first command: in one entry of the log, under the lock of its contact's slot. So a
//! message never exists without its ticket, and a ticket opened by a message never exists without that message.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hotline_persistence::tables::organization::Organization;
use hotline_persistence::{Change, CompanyId, ContactId, Durable, TicketId, UserId};

use super::{TicketActor, TicketScope};
use crate::Refusal;
use crate::clock::now;
use crate::conversations::Conversations;
use crate::distribution::{Assigner, Choice};
use crate::tickets::{Command, Decided, Execute, Open, Send, Ticket, apply};

/// A ticket to be opened, and its first command.
pub(crate) struct Opening<C: Command> {
    /// The ticket.
    pub(crate) open: Open,
    /// The assigner, if the queue distributes its tickets.
    pub(crate) assigner: Option<Arc<Assigner>>,
    /// The greeting for a contact who opens the ticket.
    pub(crate) greeting: Option<Send>,
    /// The version of the contact that the caller has read.
    pub(crate) version: u64,
    /// The first command.
    pub(crate) execute: Execute<C>,
}

/// An opening that is decided but not yet appended to the log.
struct DecidedOpening<R> {
    reply: R,
    ticket: Ticket,
    entry: Vec<Change>,
}

impl<C: Command> Opening<C> {
    fn contact_key(&self) -> (CompanyId, ContactId) {
        (self.open.company, self.open.contact.id)
    }

    /// Decides the ticket, its first command, and the greeting.
    fn decide(
        self,
        scope: &TicketScope,
        organization: &Organization,
        agent: Option<UserId>,
    ) -> Result<DecidedOpening<C::Reply>, Refusal> {
        let Self { mut open, greeting, execute, .. } = self;
        open.user = open.user.or(agent);
        let now = now();
        execute.check_precondition()?;
        let mut cx = scope.context(organization, now);
        let ticket = open.decide(scope.base.store.ids.ticket()?, &mut cx)?;
        let mut entry = cx.into_changes(&ticket);
        let Decided { reply, mut ticket, changes } = apply(execute.command, &ticket, scope.context(organization, now))?;
        entry.extend(changes);
        // A greeting that cannot be sent is left out: the contact's message is not refused because of it.
        let greeting_outcome =
            greeting.and_then(|greeting| apply(greeting, &ticket, scope.context(organization, now)).ok());
        if let Some(greeting_outcome) = greeting_outcome {
            entry.extend(greeting_outcome.changes);
            ticket = greeting_outcome.ticket;
        }
        if let Some(attached) = execute.attached {
            entry.extend(attached(&reply)?);
        }
        Ok(DecidedOpening { reply, ticket, entry })
    }
}

impl TicketScope {
    /// Opens a ticket. A panic is a defect of this opening alone, and leaves nothing half done.
    pub(crate) fn open<C: Command>(
        self: &Arc<Self>,
        conversations: &Arc<Conversations>,
        opening: Opening<C>,
    ) -> Result<(C::Reply, Durable), Refusal> {
        catch_unwind(AssertUnwindSafe(|| self.open_in_slot(conversations, opening)))
            .unwrap_or_else(|_| Err(Refusal::Defect("opening a ticket panicked".to_owned())))
    }

    fn open_in_slot<C: Command>(
        self: &Arc<Self>,
        conversations: &Arc<Conversations>,
        opening: Opening<C>,
    ) -> Result<(C::Reply, Durable), Refusal> {
        let (company, contact) = opening.contact_key();
        let organization = self.base.organization(company)?;
        let reservation = self.base.store.log.reserve(company)?;
        let (id, is_closed, outcome) = conversations.open(contact, |open_ticket| {
            self.check_can_open(&opening, open_ticket)?;
            let assigner = opening.assigner.clone();
            let choice = assigner.as_ref().and_then(|assigner| assigner.choose(&organization, &opening.open));
            let DecidedOpening { reply, ticket, entry } =
                opening.decide(self, &organization, choice.as_ref().map(Choice::user))?;
            hotline_persistence::fail_point!("ticket_opened", |_| std::process::abort());
            let outgoing = self.outboxes.outgoing(&entry, &ticket);
            let (seq, durable) = reservation.append(entry)?;
            match choice {
                Some(choice) => choice.complete(&ticket),
                None => self.assigners.record_assignment(&ticket),
            }
            self.outboxes.put(seq, outgoing);
            let (id, is_closed) = (ticket.row.id, ticket.is_closed());
            // The actor is registered before anyone can learn of the ticket: the tables may not have its row yet.
            let hot = TicketActor::start_with(self, conversations.clone(), ticket);
            hot.status.record_append(seq);
            self.hot.insert((company, id), hot);
            // The first `id` is for the slot; the rest is the result.
            Ok::<_, Refusal>((id, (id, is_closed, (reply, durable))))
        })?;
        if is_closed {
            conversations.close(contact, id);
        }
        Ok(outcome)
    }

    /// Checks that the contact has no open ticket on the channel and has not changed since the caller read it.
    fn check_can_open<C: Command>(&self, opening: &Opening<C>, open_ticket: Option<TicketId>) -> Result<(), Refusal> {
        let key = opening.contact_key();
        if self.contacts.marks.is_marked(key) || self.contacts.version(key) != opening.version {
            return Err(Refusal::ContactChanging(key.1));
        }
        match open_ticket {
            Some(ticket) => Err(Refusal::AlreadyOpen(ticket)),
            None => Ok(()),
        }
    }
}
