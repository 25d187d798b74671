//! The actor of one ticket. Only this actor changes the ticket. `opening.rs` opens tickets, and `snapshot.rs` has the
//! state that is read without a message to the actor.

mod opening;
mod snapshot;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use actix::{Actor, Context as ActorContext, Handler, Message};
use chrono::{DateTime, Utc};
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::{CompanyId, Durable, TicketId};
use tokio::sync::oneshot;

pub(crate) use self::opening::Opening;
use self::snapshot::PublishedSnapshot;
use crate::Refusal;
use crate::base::Base;
use crate::channels::{self, Inboxes, Outboxes};
use crate::clock::now;
use crate::contacts::{ContactCache, RegistrationGuard};
use crate::conversations::Conversations;
use crate::distribution::{Assigners, agent_of};
use crate::registry::{ActorHandle, ActorStatus, Dismiss, Envelope, Registered, Registry, Retire};
use crate::tickets::{Command, Context, Decided, Execute, Ticket, apply};

/// Capacity of the mailbox; senders wait when it is full. It exceeds what one conversation ever queues, and is small
/// enough that callers soon notice a stuck actor.
const MAILBOX_CAPACITY: usize = 256;

/// State shared by the ticket actors, and the registry of hot tickets.
pub(crate) struct TicketScope {
    pub(crate) base: Arc<Base>,
    pub(crate) contacts: Arc<ContactCache>,
    pub(crate) assigners: Arc<Assigners>,
    pub(crate) outboxes: Arc<Outboxes>,
    pub(crate) inboxes: Arc<Inboxes>,
    pub(crate) hot: Registry<(CompanyId, TicketId), TicketActor>,
}

impl TicketScope {
    /// The context of a decision made at `now`.
    fn context<'a>(&'a self, organization: &'a Organization, now: DateTime<Utc>) -> Context<'a> {
        let mut cx = Context::new(now, organization, &self.base.store.ids);
        cx.window = self.base.options.conversation_window;
        cx
    }
}

/// One hot ticket.
pub struct TicketActor {
    scope: Arc<TicketScope>,
    conversations: Arc<Conversations>,
    /// Never changed in place: readers retain the version they got.
    ticket: Arc<Ticket>,
    status: Arc<ActorStatus<PublishedSnapshot>>,
    is_retired: bool,
    /// Registers this ticket under its contact, so that changes to the contact reach it.
    _registration: RegistrationGuard,
    /// Dropped with the actor, after its other fields. The receiver waits for this to know that the actor has ended.
    end_signal: Option<oneshot::Sender<()>>,
}

impl Actor for TicketActor {
    type Context = ActorContext<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        cx.set_mailbox_capacity(MAILBOX_CAPACITY);
    }
}

/// Withdraws the snapshot however the actor ends, a panic included: readers must not see a ticket without an actor.
impl Drop for TicketActor {
    fn drop(&mut self) {
        self.status.shared.withdraw();
    }
}

impl Registered for TicketActor {
    type Shared = PublishedSnapshot;
}

/// Reads the ticket's current state.
#[derive(Clone, Copy, Message)]
#[rtype(result = "Result<Arc<Ticket>, Refusal>")]
pub(crate) struct ReadTicket;

/// The contact has changed: replaces the copy of it that readers see. The ticket's row does not change.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ContactChanged(pub(crate) Arc<ContactRef>);

/// The ticket has been deleted, or may have been. The actor retires, and the next caller loads the ticket from the
/// tables.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct TicketDeleted;

/// The only place where a ticket changes: reserve, decide, append, and reply when durable.
impl<C: Command> Handler<Envelope<Execute<C>>> for TicketActor {
    type Result = ();

    fn handle(&mut self, execute: Envelope<Execute<C>>, _: &mut Self::Context) {
        let Some((execute, reply_to)) = execute.accept() else { return };
        let outcome = match self.run(execute) {
            Ok((reply, Some(durable))) => return reply_to.send_when_durable(durable, reply),
            Ok((reply, None)) => Ok(reply),
            Err(refusal) if !refusal.reveals_state() => return reply_to.send(Err(refusal)),
            Err(refusal) => Err(refusal),
        };
        // The command has no entry to wait for, but the state it read must be durable before the caller sees it. After
        // `AlreadyOpen`, it is that of another ticket of the company.
        let log = &self.scope.base.store.log;
        let read_seq = match outcome {
            Err(Refusal::AlreadyOpen(_)) => log.last_of(self.ticket.row.company_id),
            _ => self.status.last_seq(),
        };
        reply_to.send_after(log, read_seq, outcome);
    }
}

impl Handler<Envelope<ReadTicket>> for TicketActor {
    type Result = ();

    fn handle(&mut self, read: Envelope<ReadTicket>, _: &mut Self::Context) {
        let Some((ReadTicket, reply_to)) = read.accept() else { return };
        if self.is_retired {
            return reply_to.send(Err(Refusal::Retired));
        }
        self.status.record_use();
        let log = &self.scope.base.store.log;
        if log.durable() >= self.status.last_seq() {
            // Published, so that later readers need no message to the actor until the ticket changes.
            self.status.shared.publish(&self.ticket);
        }
        reply_to.send_after(log, self.status.last_seq(), Ok(self.ticket.clone()));
    }
}

impl Handler<Retire> for TicketActor {
    type Result = ();

    fn handle(&mut self, retire: Retire, _: &mut Self::Context) {
        let is_idle = self.status.idle_s() >= retire.idle_s || self.status.is_released();
        if is_idle && self.status.last_seq() <= self.scope.base.store.log.flushed() {
            self.retire();
        }
    }
}

impl Handler<ContactChanged> for TicketActor {
    type Result = ();

    fn handle(&mut self, ContactChanged(contact): ContactChanged, _: &mut Self::Context) {
        let id = contact.id;
        if self.ticket.contact.id == id {
            self.ticket = Arc::new(Ticket { contact, ..Ticket::clone(&self.ticket) });
            // The outbox may have messages with the contact's earlier number.
            self.scope.outboxes.notify_of_changes(self.ticket.row.company_id, &[id]);
        }
        self.status.shared.end_update();
    }
}

impl Handler<TicketDeleted> for TicketActor {
    type Result = ();

    fn handle(&mut self, _: TicketDeleted, _: &mut Self::Context) {
        self.retire();
    }
}

impl Handler<Dismiss> for TicketActor {
    type Result = ();

    fn handle(&mut self, Dismiss { end_signal }: Dismiss, _: &mut Self::Context) {
        self.end_signal = Some(end_signal);
        self.retire();
    }
}

impl TicketActor {
    /// Starts an actor for a ticket in this state.
    pub(crate) fn start_with(
        scope: &Arc<TicketScope>,
        conversations: Arc<Conversations>,
        ticket: Ticket,
    ) -> ActorHandle<Self> {
        let status = Arc::new(ActorStatus::<PublishedSnapshot>::default());
        status.shared.set_parties(&ticket);
        let ticket = Arc::new(ticket);
        let _registration =
            scope.contacts.hot_tickets.register((ticket.row.company_id, ticket.contact.id), ticket.row.id);
        let actor = Self {
            scope: scope.clone(),
            conversations,
            ticket,
            status: status.clone(),
            is_retired: false,
            end_signal: None,
            _registration,
        };
        let arbiter = scope.base.arbiters.of(actor.ticket.row.id.0);
        ActorHandle { addr: Self::start_in_arbiter(&arbiter, |_| actor), status }
    }

    fn key(&self) -> (CompanyId, TicketId) {
        (self.ticket.row.company_id, self.ticket.row.id)
    }

    fn run<C: Command>(&mut self, execute: Execute<C>) -> Result<(C::Reply, Option<Durable>), Refusal> {
        if self.is_retired {
            return Err(Refusal::Retired);
        }
        self.status.record_use();
        // A panic is a defect of one command: its caller gets `Refusal::Defect`, the actor retires, and the next call
        // starts a new one from durable state.
        match catch_unwind(AssertUnwindSafe(|| self.execute(execute))) {
            Ok(outcome) => outcome,
            Err(panic) => {
                self.retire();
                Err(Refusal::Defect(panic_message(panic.as_ref())))
            }
        }
    }

    fn execute<C: Command>(&mut self, execute: Execute<C>) -> Result<(C::Reply, Option<Durable>), Refusal> {
        let contact = self.ticket.contact.id;
        let id = self.ticket.row.id;
        // Nothing awaits between this check and the append. A deletion marks its contact, and then waits until each
        // actor thread has ended its current command: later ones see the mark.
        if !C::READ_ONLY && self.scope.contacts.marks.is_marked((self.ticket.row.company_id, contact)) {
            return Err(Refusal::ContactChanging(contact));
        }
        let was_open = self.ticket.is_open();
        let opens = !was_open && execute.command.opens();
        let outcome = if opens {
            let conversations = self.conversations.clone();
            conversations.open(contact, |open_ticket| Ok::<_, Refusal>((id, self.decide(execute, open_ticket)?)))?
        } else {
            self.decide(execute, None)?
        };
        // One command may both reopen and close.
        if (was_open || opens) && self.ticket.is_closed() {
            self.conversations.close(contact, id);
        }
        Ok(outcome)
    }

    fn decide<C: Command>(
        &mut self,
        execute: Execute<C>,
        open_elsewhere: Option<TicketId>,
    ) -> Result<(C::Reply, Option<Durable>), Refusal> {
        // A full log refuses before anything changes.
        let company = self.ticket.row.company_id;
        let reservation = if C::READ_ONLY { None } else { Some(self.scope.base.store.log.reserve(company)?) };
        let organization = self.scope.base.organization(company)?;
        let mut cx = self.scope.context(&organization, now());
        cx.open_elsewhere = open_elsewhere;
        execute.check_precondition()?;
        let Decided { reply, ticket, mut changes } = apply(execute.command, &self.ticket, cx)?;
        hotline_persistence::fail_point!("ticket_decided", |_| std::process::abort());
        let Some(reservation) = reservation.filter(|_| !changes.is_empty()) else { return Ok((reply, None)) };
        if let Some(attached) = execute.attached {
            changes.extend(attached(&reply)?);
        }
        let provider_ids = channels::provider_ids(&changes);
        let outgoing = self.scope.outboxes.outgoing(&changes, &ticket);
        // Withdrawn before the append: a reader who learns of the change must not see the previous state.
        self.status.shared.withdraw();
        let (seq, durable) = reservation.append(changes)?;
        let has_agent_changed = agent_of(&self.ticket) != agent_of(&ticket);
        self.ticket = Arc::new(ticket);
        self.status.record_append(seq);
        if has_agent_changed {
            self.scope.assigners.record_assignment(&self.ticket);
        }
        // In log order: the next decision on this ticket runs after this one.
        self.scope.outboxes.put(seq, outgoing);
        self.scope.inboxes.record_provider_ids((self.ticket.row.company_id, self.ticket.row.channel_id), provider_ids);
        Ok((reply, Some(durable)))
    }

    /// Removes this actor from the registry: later callers start another one.
    fn retire(&mut self) {
        self.is_retired = true;
        self.status.shared.withdraw();
        self.scope.hot.remove(&self.key(), &self.status);
        if self.ticket.is_closed() {
            self.conversations.release(self.ticket.contact.id, self.ticket.row.id);
        }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}
