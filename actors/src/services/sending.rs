//! Sending: resolves a message's recipient, loads the facts that the command needs, and chooses the ticket.

use std::sync::Arc;

use hotline_persistence::id_blocks::IdBlocks;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::tables::tickets;
use hotline_persistence::{ChannelId, CompanyId, ContactId, TicketId};

use super::contacts::Contacts;
use super::target::{Follows, NewContact, Recipient, Target, TargetKind};
use super::tickets::Tickets;
use crate::Refusal;
use crate::base::Base;
use crate::base::retry::{is_slot_conflict, on_conflict};
use crate::channels::{Outboxes, Provider, SendingStats};
use crate::clock::now;
use crate::contacts::{ContactFacts, LastInbound, RequiredFacts};
use crate::conversations::Slot;
use crate::registry::Population;
use crate::tickets::{Context, Execute, Open, Send, Ticket, apply};

/// The service that sends messages.
pub struct Sending {
    base: Arc<Base>,
    contacts: Arc<Contacts>,
    tickets: Arc<Tickets>,
    outboxes: Arc<Outboxes>,
}

impl Sending {
    pub(crate) fn new(
        base: Arc<Base>,
        contacts: Arc<Contacts>,
        tickets: Arc<Tickets>,
        outboxes: Arc<Outboxes>,
    ) -> Self {
        Self { base, contacts, tickets, outboxes }
    }

    /// Resolves the target of a message.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such ticket or channel; [`Refusal::Unavailable`] when the database is
    /// needed and unavailable.
    pub async fn resolve(&self, company: CompanyId, recipient: Recipient) -> Result<Target, Refusal> {
        let (channel, to) = match recipient {
            Recipient::Ticket(ticket) => {
                let (channel, contact) = self.tickets.parties(company, ticket).await?;
                (channel, TargetKind::Ticket(ticket, contact))
            }
            Recipient::Contact(channel, contact) => (channel, TargetKind::Contact(contact)),
            Recipient::Number(channel, new_contact) => (channel, TargetKind::Number(new_contact)),
        };
        let organization = self.base.organization(company)?;
        let channel_type = organization.channels.get(&channel).ok_or(Refusal::NotFound)?.kind;
        Ok(Target { company, channel, channel_type, to, follows: Follows::Since(now()) })
    }

    /// Sends to a target: in the named ticket; else in the open ticket, in the latest one if the send reopens, or in a
    /// new one. If the target is merged into another meanwhile, the message is sent there.
    ///
    /// # Errors
    /// [`Refusal::ContactNotFound`], [`Refusal::ContactUnreachable`], or why the send is refused.
    pub async fn send(&self, target: &Target, execute: impl Into<Execute<Send>>) -> Result<MessageRow, Refusal> {
        let mut execute = execute.into();
        match self.send_to(target, &mut execute).await {
            Err(refusal @ (Refusal::NotFound | Refusal::ContactNotFound)) => {
                match Box::pin(self.successor(target)).await? {
                    Some(target) => Box::pin(self.send_to(&target, &mut execute)).await,
                    None => Err(refusal),
                }
            }
            outcome => outcome,
        }
    }

    async fn send_to(&self, target: &Target, execute: &mut Execute<Send>) -> Result<MessageRow, Refusal> {
        let company = target.company;
        match &target.to {
            TargetKind::Ticket(ticket, contact) => {
                execute.command.facts = self.load_facts(target, *contact, &execute.command).await?;
                self.tickets.ask_borrowed(company, *ticket, &*execute).await
            }
            TargetKind::Contact(contact) => {
                execute.command.facts = self.load_facts(target, *contact, &execute.command).await?;
                let execute = &*execute;
                let attempt = || self.attempt(target, *contact, execute);
                on_conflict(self.contacts.cache(), company, attempt, is_slot_conflict).await
            }
            // Boxed: a large future, which the other sends would carry and copy.
            TargetKind::Number(new_contact) => {
                Box::pin(self.send_to_number(target, new_contact, execute.clone())).await
            }
        }
    }

    /// What the target was merged into, if the message is to follow it.
    async fn successor(&self, target: &Target) -> Result<Option<Target>, Refusal> {
        let (company, Some(contact)) = (target.company, target.contact()) else { return Ok(None) };
        let is_followed = match target.follows {
            Follows::Since(since) => self.contacts.cache().was_merged_since(company, contact, since),
            Follows::Always => true,
            Follows::Never => false,
        };
        if !is_followed {
            return Ok(None);
        }
        let recipient = match target.to {
            TargetKind::Ticket(ticket, _) => self.tickets.successor(company, ticket).await?.map(Recipient::Ticket),
            TargetKind::Contact(contact) => {
                let found = self.contacts.successor(company, contact).await?;
                found.map(|contact| Recipient::Contact(target.channel, contact))
            }
            TargetKind::Number(_) => None,
        };
        match recipient {
            Some(recipient) => self.resolve(company, recipient).await.map(Some),
            None => Ok(None),
        }
    }

    async fn send_to_number(
        &self,
        target: &Target,
        new_contact: &NewContact,
        execute: Execute<Send>,
    ) -> Result<MessageRow, Refusal> {
        let company = target.company;
        if !self.contacts.is_known_number(company, &new_contact.number).await? {
            // Checked first, so that a refused send creates no contact.
            self.dry_run(target, new_contact.placeholder(), execute.command.clone())?;
        }
        let attempt = || async {
            let contact = self.contacts.find_or_create(company, new_contact.as_contact_by_number()).await?.id;
            let mut execute = execute.clone();
            execute.command.facts = self.load_facts(target, contact, &execute.command).await?;
            self.attempt(target, contact, &execute).await
        };
        // If the contact was deleted since it was found, the next attempt finds or creates another with the number.
        let is_conflict = |refusal: &Refusal| is_slot_conflict(refusal) || *refusal == Refusal::ContactNotFound;
        on_conflict(self.contacts.cache(), company, attempt, is_conflict).await
    }

    /// Loads the data that a send to a contact will need, and keeps it in memory for a while, so that the send itself
    /// needs no database. Values of variables are the exception: they are not cached.
    pub(crate) async fn prefetch(&self, target: &Target, send: &Send) -> Result<(), Refusal> {
        let TargetKind::Contact(contact) = &target.to else { return Ok(()) };
        let Target { company, channel, channel_type, .. } = *target;
        if self.contacts.get(company, *contact).await?.is_none() {
            return Ok(());
        }
        if let Some(Slot::Open(ticket)) = self.tickets.slot(company, channel, *contact).await? {
            self.tickets.keep_hot(company, ticket).await?;
        }
        let required = RequiredFacts { values: false, ..self.required_facts(channel_type, send) };
        self.find_facts(target, *contact, required).await.map(drop)
    }

    /// Loads the conversations of many contacts on a channel together, so that [`Self::prefetch`] finds most of them
    /// in memory.
    pub(crate) async fn prefetch_conversations(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contacts: &[ContactId],
        send: &Send,
    ) -> Result<(), Refusal> {
        let channel_type = self.base.organization(company)?.channels.get(&channel).ok_or(Refusal::NotFound)?.kind;
        let mut open_tickets = Vec::new();
        for contact in contacts {
            if let Some(Slot::Open(ticket)) = self.tickets.slot(company, channel, *contact).await? {
                open_tickets.push(ticket);
            }
        }
        self.tickets.keep_all_hot(company, &open_tickets).await;
        if self.required_facts(channel_type, send).last_inbound {
            let cache = self.contacts.cache();
            let is_unknown =
                |contact: &ContactId| cache.last_inbound(company, channel, *contact) == LastInbound::Unknown;
            let unknown: Vec<ContactId> = contacts.iter().copied().filter(is_unknown).collect();
            if !unknown.is_empty() {
                self.contacts.look_up_last_inbound(company, channel, &unknown).await?;
            }
        }
        Ok(())
    }

    /// Lets a ticket's actor retire early, because no use is expected soon: a campaign would otherwise fill the memory
    /// with a hundred thousand actors.
    pub(crate) fn release_actor(&self, company: CompanyId, ticket: TicketId) {
        self.tickets.release_actor(company, ticket);
    }

    /// Sends to a contact in the ticket of [`Self::find_ticket`] or in a new one, in one attempt.
    async fn attempt(
        &self,
        target: &Target,
        contact: ContactId,
        execute: &Execute<Send>,
    ) -> Result<MessageRow, Refusal> {
        let company = target.company;
        let Some(ticket) = self.find_ticket(target, contact, execute.command.reopen).await? else {
            // Boxed, as in `send_to`.
            return Box::pin(self.open_with_send(target, contact, execute)).await;
        };
        match self.tickets.attempt(company, ticket, execute).await {
            Err(Refusal::NotFound) => Err(Box::pin(self.explain_not_found(company, contact, ticket)).await),
            outcome => outcome,
        }
    }

    /// Opens a ticket with the send.
    async fn open_with_send(
        &self,
        target: &Target,
        contact: ContactId,
        execute: &Execute<Send>,
    ) -> Result<MessageRow, Refusal> {
        let Target { company, channel, .. } = *target;
        let contact = self.contacts.get(company, contact).await?.ok_or(Refusal::ContactNotFound)?;
        let author = execute.command.author.clone();
        let open = Open { company, channel, contact, reachable: false, queue: None, user: None, author };
        self.tickets.attempt_opening(open, execute.clone()).await
    }

    /// The refusal for what a send in a ticket did not find: the contact; the ticket, which retention has deleted since
    /// it was found; or a record that the send names.
    async fn explain_not_found(&self, company: CompanyId, contact: ContactId, ticket: TicketId) -> Refusal {
        if self.contacts.cache().marks.is_marked((company, contact)) {
            // The contact is being merged or deleted: the caller waits until that is done.
            return Refusal::ContactChanging(contact);
        }
        match self.contacts.get(company, contact).await {
            Ok(Some(_)) => {}
            Ok(None) => return Refusal::ContactNotFound,
            Err(refusal) => return refusal,
        }
        match self.tickets.get(company, ticket).await {
            Ok(_) => Refusal::NotFound,
            Err(Refusal::NotFound) => Refusal::Retired,
            Err(refusal) => refusal,
        }
    }

    /// The ticket in which a message is sent; `None` if a new one must be opened.
    async fn find_ticket(
        &self,
        target: &Target,
        contact: ContactId,
        reopens: bool,
    ) -> Result<Option<TicketId>, Refusal> {
        let Target { company, channel, .. } = *target;
        match self.tickets.slot(company, channel, contact).await? {
            Some(Slot::Open(ticket)) => Ok(Some(ticket)),
            _ if !reopens => Ok(None),
            Some(Slot::Closed(ticket)) => Ok(Some(ticket)),
            None => {
                let latest = async {
                    let db = self.base.reads().tables(company).await?;
                    Ok(tickets::latest(db, company, channel, contact).await?)
                };
                Box::pin(latest).await
            }
        }
    }

    /// The facts about its contact that a send needs.
    fn required_facts(&self, channel_type: ChannelType, send: &Send) -> RequiredFacts {
        let mut required = send.required_facts(channel_type);
        required.last_inbound &= self.base.options.conversation_window.is_some();
        required
    }

    async fn load_facts(&self, target: &Target, contact: ContactId, send: &Send) -> Result<ContactFacts, Refusal> {
        let mut required = self.required_facts(target.channel_type, send);
        // On a phone channel, a contact with a number is reachable. If the contact cannot be read now, the send is
        // decided by what the ticket knows about the contact.
        if target.channel_type.has_phone() {
            let contact = self.contacts.get(target.company, contact).await.ok().flatten();
            required.reachable = contact.is_some_and(|contact| contact.number.is_none());
        }
        self.find_facts(target, contact, required).await
    }

    /// Facts of a contact: from the cache, else from the hot ticket, else from the tables.
    async fn find_facts(
        &self,
        target: &Target,
        contact: ContactId,
        required: RequiredFacts,
    ) -> Result<ContactFacts, Refusal> {
        let Target { company, channel, channel_type, .. } = *target;
        let mut facts = self.contacts.cache().facts(company, channel, contact, required);
        if required.missing_in(&facts).has_ticket_facts()
            && let Some(ticket) = self.hot_ticket(target, contact).await?
        {
            facts.add_ticket_facts(required, ticket.reachable, ticket.last_inbound);
        }
        let missing = required.missing_in(&facts);
        if !missing.is_empty() {
            // Boxed: a large future, which is rarely needed.
            Box::pin(self.contacts.look_up_facts(company, (channel, channel_type), contact, missing, &mut facts))
                .await?;
        }
        Ok(facts)
    }

    /// The hot ticket of the conversation. It is found even while the database is unavailable.
    async fn hot_ticket(&self, target: &Target, contact: ContactId) -> Result<Option<Arc<Ticket>>, Refusal> {
        let ticket = match &target.to {
            TargetKind::Ticket(ticket, _) => Some(*ticket),
            TargetKind::Contact(_) | TargetKind::Number(_) => {
                let slot = self.tickets.slot(target.company, target.channel, contact).await?;
                slot.map(|(Slot::Open(ticket) | Slot::Closed(ticket))| ticket)
            }
        };
        let Some(ticket) = ticket else { return Ok(None) };
        match self.tickets.get_if_hot(target.company, ticket).await {
            Some(Err(Refusal::NotFound)) | None => Ok(None),
            Some(found) => found.map(Some),
        }
    }

    /// Checks whether a send to a contact that does not exist yet would be refused, before the contact is created.
    fn dry_run(&self, target: &Target, contact: ContactRef, send: Send) -> Result<(), Refusal> {
        let Target { company, channel, .. } = *target;
        let organization = self.base.organization(company)?;
        let ids = IdBlocks::unbacked();
        let context = || {
            let mut cx = Context::new(now(), &organization, &ids);
            cx.window = self.base.options.conversation_window;
            cx
        };
        let (contact, author) = (Arc::new(contact), send.author.clone());
        let open = Open { company, channel, contact, reachable: false, queue: None, user: None, author };
        let ticket = open.decide(TicketId::new(0), &mut context())?;
        // A contact that does not exist yet has never written.
        let facts = ContactFacts { last_inbound: LastInbound::Never, ..send.facts };
        apply(Send { facts, ..send }, &ticket, context()).map(drop)
    }

    /// Starts sending messages to providers, beginning with the backlog of an earlier run. Called once, before any
    /// request.
    pub async fn start(&self, provider: Arc<dyn Provider>) -> Result<(), Refusal> {
        self.outboxes.start(provider, self.tickets.clone()).await
    }

    /// Starts sending the backlogs that other processes have left in these channels, before this process serves
    /// their companies. Also resumes paused senders of companies for which `is_taken_over` is true.
    pub(crate) fn take_over(&self, backlogs: Vec<(CompanyId, ChannelId)>, is_taken_over: impl Fn(CompanyId) -> bool) {
        self.outboxes.take_over(backlogs, is_taken_over);
    }

    /// Statistics of messages on their way to providers, and of the providers' answers; zero before sending begins.
    pub fn stats(&self) -> SendingStats {
        self.outboxes.stats()
    }

    /// Stops new attempts for a company, and waits until the log has the outcomes of the running ones.
    pub(crate) async fn pause(&self, company: CompanyId) -> Result<(), Refusal> {
        self.outboxes.pause(company).await
    }

    /// Drops the outboxes of a company whose sending is paused.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, contacts: _, tickets: _, outboxes } = self;
        outboxes.forget_company(company);
    }

    /// Resumes sending for a company.
    pub(crate) fn resume(&self, company: CompanyId) {
        self.outboxes.resume(company);
    }

    /// Stops new attempts, and waits for the running ones with a time limit.
    pub async fn stop(&self) {
        self.outboxes.stop().await;
    }

    pub(crate) fn population(&self) -> Population {
        self.outboxes.population()
    }
}
