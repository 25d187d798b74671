//! The actor of one channel: finds or opens the ticket. Openings of a channel pass here one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use actix::{Actor, Context as ActorContext, Handler, Message};
use hotline_persistence::Durable;

use crate::Refusal;
use crate::clock::now;
use crate::conversations::Conversations;
use crate::distribution::{Desk, Turn};
use crate::engine::Core;
use crate::registry::{Counted, Registered, Hot, Life};
use crate::tickets::{Command, Context, Decided, Execute, Open, Send, TicketActor, apply};

/// Openings that wait for one channel before its callers have to wait themselves.
const MAILBOX: usize = 1024;

/// One channel.
pub struct ChannelSender {
    core: Arc<Core>,
    conversations: Arc<Conversations>,
}

impl Actor for ChannelSender {
    type Context = ActorContext<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        cx.set_mailbox_capacity(MAILBOX);
    }
}

impl Registered for ChannelSender {
    type Shared = ();
}

/// Opens a ticket and carries out a first command on it, in one entry of the journal: a message never lacks its
/// ticket, and a ticket opened by a message never lacks the message.
pub(crate) struct OpenAnd<C: Command> {
    /// The ticket.
    pub(crate) open: Open,
    /// Who gives it an agent, if its queue does.
    pub(crate) desk: Option<Arc<Desk>>,
    /// What is written to a contact who opens it.
    pub(crate) greeting: Option<Send>,
    /// The version of what is known of its contact.
    pub(crate) version: u64,
    /// What happens in it first.
    pub(crate) then: Execute<C>,
}

impl<C: Command> Message for OpenAnd<C> {
    type Result = Result<C::Reply, Refusal>;
}

impl<C: Command> Handler<Counted<OpenAnd<C>>> for ChannelSender {
    type Result = ();

    fn handle(&mut self, what: Counted<OpenAnd<C>>, _: &mut Self::Context) {
        let Some((what, answer)) = what.taken() else { return };
        // This actor holds nothing a panic could leave half done: it stays.
        let opened = catch_unwind(AssertUnwindSafe(|| self.open(what)))
            .unwrap_or_else(|_| Err(Refusal::Defect("panic while a ticket was opened".to_owned())));
        match opened {
            Ok((reply, durable)) => answer.give_once(durable, reply),
            Err(refusal) => answer.give(Err(refusal)),
        }
    }
}

impl ChannelSender {
    /// Starts the actor of a channel.
    pub(crate) fn start_with(core: &Arc<Core>, conversations: Arc<Conversations>, channel: i64) -> Hot<Self> {
        let actor = Self { core: core.clone(), conversations };
        let home = core.homes.of(channel);
        Hot { addr: Self::start_in_arbiter(&home, |_| actor), life: Arc::new(Life::default()) }
    }

    fn open<C: Command>(&self, what: OpenAnd<C>) -> Result<(C::Reply, Durable), Refusal> {
        let OpenAnd { mut open, desk, greeting, version, then } = what;
        let company = open.company;
        let contact = open.contact.id;
        let organization = self.core.directory.company(company).ok_or(Refusal::NotFound)?;
        let place = self.core.store.log.reserve()?;
        let (id, is_closed, outcome) = self.conversations.open(contact, |taken_by| {
            let contacts = &self.core.contacts;
            if contacts.leaving.is_marked((company, contact)) || contacts.version((company, contact)) != version {
                return Err(Refusal::ContactLeaving(contact));
            }
            if let Some(ticket) = taken_by {
                return Err(Refusal::AlreadyOpen(ticket));
            }
            let id = self.core.store.ids.ticket()?;
            let turn = desk.as_ref().and_then(|desk| desk.turn(&organization, &open));
            open.user = open.user.or(turn.as_ref().map(Turn::user));
            let now = now();
            let mut cx = Context::new(now, &organization, &self.core.store.ids);
            let ticket = open.decide(id, &mut cx)?;
            let opening = cx.into_changes(&ticket);
            let context = || {
                let mut cx = Context::new(now, &organization, &self.core.store.ids);
                cx.window = self.core.options.conversation_window;
                cx
            };
            let Decided { reply, ticket, changes } = apply(then.command, &ticket, context())?;
            let mut entry = opening;
            entry.extend(changes);
            // A greeting that cannot be sent is no reason not to listen.
            let greeted = greeting.and_then(|greeting| apply(greeting, &ticket, context()).ok());
            let ticket = match greeted {
                Some(greeted) => {
                    entry.extend(greeted.changes);
                    greeted.ticket
                }
                None => ticket,
            };
            if let Some(attached) = then.attached {
                entry.extend(attached(&reply));
            }
            hotline_persistence::fail_point!("ticket_opened", |_| std::process::abort());
            let outgoing = self.core.outgoing(&entry, &ticket);
            let (seq, durable) = place.append(entry)?;
            match turn {
                Some(turn) => turn.taken(&ticket),
                None => self.core.desks.note(&ticket),
            }
            self.core.put_out(seq, outgoing);
            // The actor is there before anyone can learn of the ticket: nobody looks for it in the tables yet.
            let is_closed = ticket.is_closed();
            let hot = TicketActor::start_with(&self.core, self.conversations.clone(), ticket);
            hot.life.appended(seq);
            self.core.tickets.insert((company, id), hot);
            Ok((id, (id, is_closed, (reply, durable))))
        })?;
        if is_closed {
            self.conversations.closed(contact, id);
        }
        Ok(outcome)
    }
}
