//! How a message finds its conversation: the open ticket, the latest one, or a new one.

use std::sync::Arc;

use hotline_persistence::id_blocks::IdBlocks;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::tickets;
use hotline_persistence::{ChannelId, CompanyId, ContactId, TicketId};

use super::{ATTEMPTS_MAX, Engine, restless};
use crate::Refusal;
use crate::channels::{ChannelSender, OpenAnd};
use crate::clock::now;
use crate::conversations::Slot;
use crate::tickets::{Author, Command, Context, Do, Heard, Open, Receive, Rider, Send, Show, Ticket, apply};

impl Engine {
    /// Opens a ticket.
    ///
    /// # Errors
    /// [`Refusal::AlreadyOpen`] when the contact has an open ticket on the channel.
    pub async fn open(&self, open: Open, rider: Option<Rider<Ticket>>) -> Result<Ticket, Refusal> {
        match self.open_and(open, Do { command: Show, rider }).await {
            Err(Refusal::ContactNotFound) => Err(Refusal::NotFound),
            outcome => outcome,
        }
    }

    /// Writes to a contact: in the open ticket, in the latest one if `send.reopen`, else in a new one.
    ///
    /// # Errors
    /// [`Refusal::ContactNotFound`], [`Refusal::ContactUnreachable`], or why the send is refused.
    pub async fn send(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
        what: Do<Send>,
    ) -> Result<<Send as Command>::Reply, Refusal> {
        let mut what = what;
        let conversations = self.conversations(company, channel).await?;
        let mut author = what.command.author.clone();
        for _ in 0..ATTEMPTS_MAX {
            let existing = match conversations.get(contact) {
                Some(Slot::Open(ticket)) => Some(ticket),
                _ if !what.command.reopen => None,
                Some(Slot::Closed(ticket)) => Some(ticket),
                None => tickets::latest(self.reads().tables(company).await?, company, channel, contact).await?,
            };
            let outcome = match existing {
                Some(ticket) => match self.ask(company, ticket, what.clone()).await {
                    // With the contact, which has gone since we looked.
                    Err(Refusal::NotFound) if self.contact(company, contact).await?.is_none() => {
                        Err(Refusal::ContactNotFound)
                    }
                    outcome => outcome,
                },
                None => {
                    let contact = self.contact(company, contact).await?.ok_or(Refusal::ContactNotFound)?;
                    let open = Open { company, channel, contact, reachable: false, queue: None, user: None, author };
                    author = open.author.clone();
                    self.open_and(open, what.clone()).await
                }
            };
            match outcome {
                // Closed, or opened by somebody else, since we looked.
                Err(Refusal::TicketClosed(_) | Refusal::AlreadyOpen(_)) => {}
                Err(refusal @ Refusal::ContactUnreachable(_)) if !what.command.reachable => {
                    if !self.is_reachable(company, channel, contact).await? {
                        return Err(refusal);
                    }
                    what.command.reachable = true;
                }
                Err(Refusal::WindowClosed) if what.command.heard == Heard::Unknown => {
                    what.command.heard = self.heard(company, channel, contact).await?;
                }
                outcome => return outcome,
            }
        }
        Err(restless())
    }

    /// Writes in a ticket.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such ticket, or why the send is refused.
    pub async fn send_in(
        &self,
        company: CompanyId,
        id: TicketId,
        what: Do<Send>,
    ) -> Result<<Send as Command>::Reply, Refusal> {
        let mut what = what;
        loop {
            // The ticket may not know what has happened elsewhere: the visitor's session, an earlier ticket. Each is
            // looked up once.
            let refusal = match self.ask(company, id, what.clone()).await {
                Err(refusal @ Refusal::ContactUnreachable(_)) if !what.command.reachable => refusal,
                Err(refusal @ Refusal::WindowClosed) if what.command.heard == Heard::Unknown => refusal,
                outcome => return outcome,
            };
            let ticket = self.ticket(company, id).await?;
            let (channel, contact) = (ticket.row.channel_id, ticket.row.contact_id);
            if refusal == Refusal::WindowClosed {
                what.command.heard = self.heard(company, channel, contact).await?;
                continue;
            }
            what.command.reachable = self.is_reachable(company, channel, contact).await?;
            if !what.command.reachable {
                return Err(refusal);
            }
        }
    }

    /// Why a send to a contact there is not yet would be refused: asked before the contact is made.
    ///
    /// # Errors
    /// The refusal.
    pub fn rehearse(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactRef,
        send: Send,
    ) -> Result<(), Refusal> {
        let organization = self.core.directory.company(company).ok_or(Refusal::NotFound)?;
        let ids = IdBlocks::unbacked();
        let context = || {
            let mut cx = Context::new(now(), &organization, &ids);
            cx.window = self.core.options.conversation_window;
            cx
        };
        let (contact, author) = (Arc::new(contact), send.author.clone());
        let open = Open { company, channel, contact, reachable: false, queue: None, user: None, author };
        let ticket = open.decide(TicketId::new(0), &mut context())?;
        // Nobody has heard from a contact there is not yet.
        apply(Send { heard: Heard::Never, ..send }, &ticket, context()).map(drop)
    }

    /// Takes what a contact wrote: in the open ticket, else in a new one.
    ///
    /// # Errors
    /// Why it could not be taken.
    pub async fn receive(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
        what: Do<Receive>,
    ) -> Result<<Receive as Command>::Reply, Refusal> {
        let conversations = self.conversations(company, channel).await?;
        for _ in 0..ATTEMPTS_MAX {
            let outcome = match conversations.get(contact) {
                Some(Slot::Open(ticket)) => self.ask(company, ticket, what.clone()).await,
                _ => {
                    let contact = self.contact(company, contact).await?.ok_or(Refusal::ContactNotFound)?;
                    let author = Author::CONTACT;
                    let open = Open { company, channel, contact, reachable: true, queue: None, user: None, author };
                    self.open_and(open, what.clone()).await
                }
            };
            match outcome {
                Err(Refusal::TicketClosed(_) | Refusal::AlreadyOpen(_)) => {}
                outcome => {
                    if let Ok(message) = &outcome {
                        let heard = message.sent_at.unwrap_or(message.created_at);
                        self.core.contacts.remember_reachable(company, channel, contact);
                        self.core.contacts.remember_heard(company, channel, contact, Heard::At(heard));
                    }
                    return outcome;
                }
            }
        }
        Err(restless())
    }

    async fn open_and<C: Command>(&self, open: Open, then: Do<C>) -> Result<C::Reply, Refusal> {
        let key = (open.company, open.channel);
        let load = || async {
            let conversations = self.conversations(key.0, key.1).await?;
            Ok(ChannelSender::start_with(&self.core, conversations, key.1.0))
        };
        let mut open = open;
        let contact = (open.company, open.contact.id);
        open.reachable |= self.core.contacts.is_reachable(open.company, open.channel, contact.1);
        let sender = self.core.senders.get_or_start(&key, load).await?;
        for _ in 0..ATTEMPTS_MAX {
            let version = self.core.contacts.version(contact);
            open.contact = self.contact(contact.0, contact.1).await?.ok_or(Refusal::ContactNotFound)?;
            let organization = self.core.directory.company(open.company).ok_or(Refusal::NotFound)?;
            let desk = self.desk(&organization, &open).await;
            let greeting = self.greeting(&organization, &open).await;
            let what = OpenAnd { open: open.clone(), desk, greeting, version, then: then.clone() };
            match self.deliver(&self.core.senders, &sender, what).await {
                Err(Refusal::ContactLeaving(_)) => self.core.contacts.leaving.left(contact).await?,
                outcome => return outcome,
            }
        }
        Err(restless())
    }
}
