//! Tickets: finds the actor of a command's ticket, loads actors from the tables when they are not hot, and opens new
//! tickets.

use std::collections::HashMap;
use std::sync::Arc;

use dashmap::DashMap;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use hotline_persistence::tables::tickets::{self, FollowUpRow, LoadedTicket};
use hotline_persistence::{ChannelId, CompanyId, ContactId, QueueId, TicketId, UserId};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::assignment::Assignment;
use super::contacts::Contacts;
use super::warming::WarmingBudget;
use crate::Refusal;
use crate::answers::ReplyTo;
use crate::base::Base;
use crate::base::retry::{no_other_conflict, on_conflict};
use crate::channels::StatusDecider;
use crate::conversations::{Conversations, Slot};
use crate::registry::{ActorHandle, ActorStatus, Population, dismiss};
use crate::ticket_actor::{Opening, ReadTicket, TicketActor, TicketScope};
use crate::tickets::{
    AttachedChanges, Author, Command, Execute, Open, Release, Revise, Show, Ticket, UpdateDeliveryStatus,
};

/// Maximum tickets of a user who leaves that are read at once.
const RELEASE_BATCH_MAX: i64 = 1000;

/// Maximum tickets that are unassigned concurrently: enough to share the journal's syncs.
const RELEASES_AT_ONCE: usize = 64;

/// A channel's conversations, loaded or not.
pub(super) type ConversationsCell = Arc<OnceCell<Arc<Conversations>>>;

/// Tickets as they were read, with the follow-up actions of their messages.
type LoadedTickets = HashMap<TicketId, (LoadedTicket, Vec<FollowUpRow>)>;

/// Tickets that are read together.
#[derive(Default)]
struct TicketBatch {
    /// Tickets whose registry entries are claimed, and which the batch has not read yet.
    claimed_ids: Mutex<Vec<TicketId>>,
    /// The tickets that were read and whose actors are not started yet, or why the read of all of them failed.
    loaded_tickets: OnceCell<Result<Mutex<LoadedTickets>, Refusal>>,
}

/// Access to all tickets.
pub struct Tickets {
    pub(super) base: Arc<Base>,
    pub(super) contacts: Arc<Contacts>,
    pub(super) assignment: Arc<Assignment>,
    pub(super) scope: Arc<TicketScope>,
    pub(super) conversations: DashMap<(CompanyId, ChannelId), ConversationsCell>,
    /// How many actors each company's lists may start; locked while a list starts some.
    pub(super) warming: DashMap<CompanyId, Arc<tokio::sync::Mutex<WarmingBudget>>>,
}

impl Tickets {
    pub(crate) fn new(
        base: Arc<Base>,
        contacts: Arc<Contacts>,
        assignment: Arc<Assignment>,
        scope: Arc<TicketScope>,
    ) -> Self {
        Self { base, contacts, assignment, scope, conversations: DashMap::new(), warming: DashMap::new() }
    }

    /// Executes a command on a ticket.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such ticket, or why the command is refused.
    pub async fn ask<C: Command>(
        &self,
        company: CompanyId,
        id: TicketId,
        execute: impl Into<Execute<C>>,
    ) -> Result<C::Reply, Refusal> {
        self.ask_borrowed(company, id, &execute.into()).await
    }

    /// [`Self::ask`] with a borrowed command, for a caller who may try again.
    pub(super) async fn ask_borrowed<C: Command>(
        &self,
        company: CompanyId,
        id: TicketId,
        execute: &Execute<C>,
    ) -> Result<C::Reply, Refusal> {
        let attempt = || self.attempt(company, id, execute);
        on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await
    }

    /// [`Self::ask`] in one attempt, which fails if the actor has just retired.
    pub(crate) async fn attempt<C: Command>(
        &self,
        company: CompanyId,
        id: TicketId,
        execute: &Execute<C>,
    ) -> Result<C::Reply, Refusal> {
        if let Some(reply) = self.scope.hot.post(&(company, id), || execute.clone()) {
            return self.base.receive(reply).await;
        }
        // Boxed, as in `hot_actor`.
        Box::pin(async {
            let hot = self.hot_actor(company, id).await?;
            self.base.deliver(&self.scope.hot, &hot, execute.clone()).await
        })
        .await
    }

    /// The ticket's current state: its published snapshot or its actor's reply if it is hot, else from the tables.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such ticket.
    pub async fn get(&self, company: CompanyId, id: TicketId) -> Result<Arc<Ticket>, Refusal> {
        match self.get_if_hot(company, id).await {
            Some(outcome) => outcome,
            None => Box::pin(self.find(company, id)).await,
        }
    }

    async fn find(&self, company: CompanyId, id: TicketId) -> Result<Arc<Ticket>, Refusal> {
        let db = self.base.reads().acknowledged_tables(company).await?;
        let loaded = tickets::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
        Ok(Arc::new(Ticket::loaded(loaded, false)))
    }

    /// As [`Self::get`], for a hot ticket; `None` for others.
    pub(crate) async fn get_if_hot(&self, company: CompanyId, id: TicketId) -> Option<Result<Arc<Ticket>, Refusal>> {
        let key = (company, id);
        if let Some(snapshot) = self.scope.hot.read_status(&key, ActorStatus::snapshot) {
            return Some(Ok(snapshot));
        }
        let hot = self.scope.hot.get(&key)?;
        match Box::pin(self.base.deliver(&self.scope.hot, &hot, ReadTicket)).await {
            Err(Refusal::Retired) => None,
            outcome => Some(outcome),
        }
    }

    /// The channel and contact of a ticket, which never change. Starts the actor, because the ticket is about to be
    /// used.
    pub(crate) async fn parties(&self, company: CompanyId, id: TicketId) -> Result<(ChannelId, ContactId), Refusal> {
        if let Some(parties) = self.scope.hot.read_status(&(company, id), |status| status.shared.parties()) {
            return Ok(parties);
        }
        self.hot_actor(company, id).await?.status.shared.parties().ok_or(Refusal::NotFound)
    }

    /// Keeps a ticket hot for a while.
    pub(crate) async fn keep_hot(&self, company: CompanyId, id: TicketId) -> Result<(), Refusal> {
        if self.touch(company, id) { Ok(()) } else { self.hot_actor(company, id).await.map(drop) }
    }

    /// Keeps many tickets hot for a while: those that are not hot are read together. A ticket that cannot be read now
    /// stays cold.
    pub(crate) async fn keep_all_hot(&self, company: CompanyId, ids: &[TicketId]) {
        let cold: Vec<TicketId> = ids.iter().copied().filter(|id| !self.touch(company, *id)).collect();
        if cold.is_empty() {
            return;
        }
        // Held as in `start_hot`.
        let _lock = self.contacts.cache().read_lock(company).await;
        let batch = TicketBatch::default();
        // A ticket that was deleted must not keep others from being loaded.
        join_all(cold.into_iter().map(|id| self.start_in_batch(&batch, company, id))).await;
    }

    async fn start_in_batch(
        &self,
        batch: &TicketBatch,
        company: CompanyId,
        id: TicketId,
    ) -> Result<ActorHandle<TicketActor>, Refusal> {
        self.scope.hot.get_or_start(&(company, id), || self.load_in_batch(batch, company, id)).await
    }

    /// Starts the actor of a ticket of a batch. The caller has claimed the ticket's registry entry, so that no other
    /// caller starts the actor. The tickets of the batch are read only once their entries are claimed.
    async fn load_in_batch(
        &self,
        batch: &TicketBatch,
        company: CompanyId,
        id: TicketId,
    ) -> Result<ActorHandle<TicketActor>, Refusal> {
        batch.claimed_ids.lock().push(id);
        // Lets the other tickets of the batch claim their entries.
        tokio::task::yield_now().await;
        let read_all = || async {
            let ids = std::mem::take(&mut *batch.claimed_ids.lock());
            self.read_tickets(company, ids).await.map(Mutex::new)
        };
        let loaded_tickets = batch.loaded_tickets.get_or_init(read_all).await.as_ref().map_err(Clone::clone)?;
        let own_entry = loaded_tickets.lock().remove(&id);
        match own_entry {
            Some((loaded, follow_ups)) => self.start_actor(company, loaded, follow_ups).await,
            // The ticket was deleted, or its entry was claimed after the batch was read.
            None => self.load_actor(company, id).await,
        }
    }

    /// Whether a ticket is hot; if so, marks it as used.
    fn touch(&self, company: CompanyId, id: TicketId) -> bool {
        let record_use = |status: &ActorStatus<_>| {
            status.record_use();
            Some(())
        };
        self.scope.hot.read_status(&(company, id), record_use).is_some()
    }

    /// Lets a hot ticket's actor retire soon, unless it is used before.
    pub(crate) fn release_actor(&self, company: CompanyId, id: TicketId) {
        self.scope.hot.read_status(&(company, id), |status| {
            status.release();
            None::<()>
        });
    }

    /// Opens a ticket.
    ///
    /// # Errors
    /// [`Refusal::AlreadyOpen`] when the contact has an open ticket on the channel.
    pub async fn open(&self, open: Open, attached: Option<AttachedChanges<Ticket>>) -> Result<Ticket, Refusal> {
        let (company, log) = (open.company, &self.base.store.log);
        let show = Execute { command: Show, attached, only_if: None };
        let attempt = || self.attempt_opening(open.clone(), show.clone());
        match on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await {
            Err(Refusal::ContactNotFound) => Err(Refusal::NotFound),
            // The other opening must be durable before this caller learns of it.
            Err(refusal) if refusal.reveals_state() => {
                log.wait_until_durable(log.last_of(company)).await.map_err(Refusal::from).and(Err(refusal))
            }
            outcome => outcome,
        }
    }

    /// Opens a ticket with its first command, in one attempt, which fails if the contact is being changed. The opening
    /// runs on the thread of the contact's slot without interruption, like an actor's command.
    pub(crate) async fn attempt_opening<C: Command>(
        &self,
        open: Open,
        execute: Execute<C>,
    ) -> Result<C::Reply, Refusal> {
        let (company, contact) = (open.company, open.contact.id);
        let conversations = self.conversations(company, open.channel).await?;
        let opening = self.prepare(open, execute).await?;
        let (reply_to, reply) = ReplyTo::channel();
        let scope = self.scope.clone();
        let run_opening = move || {
            // Skipped if the caller was canceled.
            if reply_to.is_awaited() {
                match scope.open(&conversations, opening) {
                    Ok((reply, durable)) => reply_to.send_when_durable(durable, reply),
                    Err(refusal) => reply_to.send(Err(refusal)),
                }
            }
        };
        if !self.base.arbiters.run(contact.0, run_opening) {
            return Err(self.base.actor_ended());
        }
        self.base.receive(reply).await
    }

    /// Loads the data that an opening needs.
    async fn prepare<C: Command>(&self, mut open: Open, execute: Execute<C>) -> Result<Opening<C>, Refusal> {
        let (company, contact) = (open.company, open.contact.id);
        let version = self.contacts.cache().version((company, contact));
        open.contact = self.contacts.get(company, contact).await?.ok_or(Refusal::ContactNotFound)?;
        open.reachable |= self.contacts.cache().is_reachable(company, open.channel, contact);
        let organization = self.base.organization(company)?;
        let assigner = if execute.command.keeps_closed() {
            None
        } else {
            self.assignment.assigner_for(&organization, &open).await
        };
        let greeting = self.contacts.greeting(&organization, &open).await;
        Ok(Opening { open, assigner, greeting, version, execute })
    }

    /// Unassigns the open tickets of a user who leaves the company, or a queue. The caller runs this within
    /// [`Assignment::delete_guarded`], so that no further tickets can be assigned to the user.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when a ticket cannot be unassigned now; earlier ones stay unassigned.
    pub async fn release(
        &self,
        company: CompanyId,
        user: UserId,
        queue: Option<QueueId>,
        author: Author,
    ) -> Result<(), Refusal> {
        // A merge can give the user to a ticket that was not listed, so the list is read again until it is empty.
        let attempt = || async {
            let has_any = self.release_listed(company, user, queue, &author).await?;
            if has_any { Err(Refusal::Outdated) } else { Ok(()) }
        };
        let is_outdated = |refusal: &Refusal| matches!(refusal, Refusal::Outdated);
        on_conflict(self.contacts.cache(), company, attempt, is_outdated).await
    }

    /// Lists the open tickets of [`Self::release`] once, and unassigns them. Returns whether there were any.
    async fn release_listed(
        &self,
        company: CompanyId,
        user: UserId,
        queue: Option<QueueId>,
        author: &Author,
    ) -> Result<bool, Refusal> {
        let start = TicketId::new(0);
        let mut after = start;
        loop {
            let db = self.base.reads().tables(company).await?;
            let open_tickets = tickets::open_of_user(db, company, user, queue, after, RELEASE_BATCH_MAX).await?;
            let Some(last) = open_tickets.last() else { return Ok(after != start) };
            after = *last;
            stream::iter(open_tickets)
                .map(|ticket| async move {
                    match self.ask(company, ticket, Release { user, queue, author: author.clone() }).await {
                        // It was deleted since, or merged into a ticket that is listed next time.
                        Err(Refusal::NotFound) => Ok(()),
                        outcome => outcome,
                    }
                })
                .buffer_unordered(RELEASES_AT_ONCE)
                .try_collect::<Vec<()>>()
                .await?;
        }
    }

    /// The slot of a contact on a channel; `None` if it has no open ticket, and its latest is not hot.
    pub(crate) async fn slot(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
    ) -> Result<Option<Slot>, Refusal> {
        Ok(self.conversations(company, channel).await?.get(contact))
    }

    /// A channel's conversations; loaded once, and cached until the company is dropped from memory.
    pub(super) async fn conversations(
        &self,
        company: CompanyId,
        channel: ChannelId,
    ) -> Result<Arc<Conversations>, Refusal> {
        let cell = match self.conversations.get(&(company, channel)) {
            Some(cell) => cell.clone(),
            None => self.conversations.entry((company, channel)).or_default().clone(),
        };
        let load = || async {
            let db = self.base.reads().tables(company).await?;
            let open = tickets::open_of_channel(db, company, channel).await?;
            Ok::<_, Refusal>(Arc::new(Conversations::of(open)))
        };
        match cell.get() {
            Some(loaded) => Ok(loaded.clone()),
            None => Box::pin(cell.get_or_try_init(load)).await.cloned(),
        }
    }

    /// The actor of a ticket, started if it is not hot.
    async fn hot_actor(&self, company: CompanyId, id: TicketId) -> Result<ActorHandle<TicketActor>, Refusal> {
        match self.scope.hot.get(&(company, id)) {
            Some(hot) => Ok(hot),
            // Boxed: reading the tables takes a large future, which every command would carry and copy.
            None => Box::pin(self.start_hot(company, id)).await,
        }
    }

    async fn start_hot(&self, company: CompanyId, id: TicketId) -> Result<ActorHandle<TicketActor>, Refusal> {
        // Held until the actor is registered: a change of the ticket's contact comes either before, and the actor reads
        // the changed row, or after, and reaches the actor.
        let _lock = self.contacts.cache().read_lock(company).await;
        self.scope.hot.get_or_start(&(company, id), || self.load_actor(company, id)).await
    }

    async fn load_actor(&self, company: CompanyId, id: TicketId) -> Result<ActorHandle<TicketActor>, Refusal> {
        let (loaded, follow_ups) = self.read_tickets(company, vec![id]).await?.remove(&id).ok_or(Refusal::NotFound)?;
        self.start_actor(company, loaded, follow_ups).await
    }

    /// Loads the initial state of these tickets' actors.
    async fn read_tickets(&self, company: CompanyId, ids: Vec<TicketId>) -> Result<LoadedTickets, Refusal> {
        let db = self.base.reads().tables(company).await?;
        let found = tickets::find_all(db, company, &ids).await?;
        let mut found: HashMap<_, _> = found.into_iter().map(|loaded| (loaded.ticket.id, (loaded, vec![]))).collect();
        for row in tickets::follow_ups(db, company, &ids).await? {
            if let Some((_, follow_ups)) = found.get_mut(&row.ticket_id) {
                follow_ups.push(row);
            }
        }
        Ok(found)
    }

    async fn start_actor(
        &self,
        company: CompanyId,
        loaded: LoadedTicket,
        follow_ups: Vec<FollowUpRow>,
    ) -> Result<ActorHandle<TicketActor>, Refusal> {
        let (channel, contact) = (loaded.ticket.channel_id, loaded.ticket.contact_id);
        let conversations = self.conversations(company, channel).await?;
        // On a channel without numbers, a contact who has written is reachable. If the ticket shows that, it can be
        // answered while the database is unavailable.
        let organization = self.base.organization(company).ok();
        let row = organization.as_ref().and_then(|organization| organization.channels.get(&channel));
        let shows_reachable = row.is_some_and(|row| !row.kind.has_phone()) && loaded.shows_contact_wrote();
        let reachable = shows_reachable || self.contacts.cache().is_reachable(company, channel, contact);
        let mut ticket = Ticket::loaded(loaded, reachable);
        for row in follow_ups {
            ticket.add_follow_up(row.id, row.into());
        }
        self.contacts.cache().remember(company, &ticket.contact);
        Ok(TicketActor::start_with(&self.scope, conversations, ticket))
    }

    /// Ends the actors of a company's tickets, and drops its channels' conversations.
    pub(crate) async fn forget_company(&self, company: CompanyId) -> Result<(), Refusal> {
        let Self { base: _, contacts: _, assignment: _, scope, conversations, warming } = self;
        let TicketScope { base: _, contacts: _, assigners: _, outboxes: _, inboxes: _, hot } = &**scope;
        dismiss(hot, |(owner, _)| *owner == company).await?;
        conversations.retain(|(owner, _), _| *owner != company);
        warming.remove(&company);
        Ok(())
    }

    pub(crate) fn population(&self) -> Population {
        self.scope.hot.population()
    }
}

impl StatusDecider for Tickets {
    fn is_marked(&self, company: CompanyId, contact: ContactId) -> bool {
        self.scope.contacts.marks.is_marked((company, contact))
    }

    fn wait_until_unmarked(&self, company: CompanyId, contact: ContactId) -> BoxFuture<'_, ()> {
        self.scope.contacts.marks.wait_until_unmarked((company, contact)).map(drop).boxed()
    }

    fn record_status(
        &self,
        company: CompanyId,
        ticket: TicketId,
        status: UpdateDeliveryStatus,
    ) -> BoxFuture<'_, Result<(), Refusal>> {
        self.ask_following(company, ticket, status).boxed()
    }

    fn record_reaction(
        &self,
        company: CompanyId,
        ticket: TicketId,
        outcome: Revise,
    ) -> BoxFuture<'_, Result<(), Refusal>> {
        self.ask_following(company, ticket, outcome).boxed()
    }
}
