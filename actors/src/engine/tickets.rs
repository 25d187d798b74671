//! Tickets: commands find their actor here, actors are started from the tables when they are not hot, and new tickets
//! are opened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use hotline_persistence::tables::tickets::{self, Following, LoadedTicket};
use hotline_persistence::{ChannelId, CompanyId, ContactId, QueueId, TicketId, UserId};
use tokio::sync::OnceCell;

use super::assignment::Assignment;
use super::contacts::Contacts;
use super::forget::dismissed;
use crate::Refusal;
use crate::answers::ReplyTo;
use crate::base::Base;
use crate::base::retry::{nothing, on_conflict};
use crate::channels::DecidesStatuses;
use crate::conversations::{Conversations, Slot};
use crate::registry::{ActorHandle, ActorStatus, Population};
use crate::tickets::{
    AttachedChanges, Author, Command, Execute, Look, Open, Opening, Release, Show, Ticket, TicketActor, TicketScope,
    UpdateDeliveryStatus,
};

/// Tickets of a leaving user that are read at once.
const RELEASED_MAX: i64 = 1000;

/// Tickets that are taken from them at once: enough to share the journal's syncs.
const RELEASES_AT_ONCE: usize = 64;

/// A channel's conversations, loaded or not.
type ConversationsCell = Arc<OnceCell<Arc<Conversations>>>;

/// Every ticket.
pub struct Tickets {
    base: Arc<Base>,
    contacts: Arc<Contacts>,
    assignment: Arc<Assignment>,
    scope: Arc<TicketScope>,
    conversations: DashMap<(CompanyId, ChannelId), ConversationsCell>,
}

impl Tickets {
    pub(super) fn new(
        base: Arc<Base>,
        contacts: Arc<Contacts>,
        assignment: Arc<Assignment>,
        scope: Arc<TicketScope>,
    ) -> Self {
        Self { base, contacts, assignment, scope, conversations: DashMap::new() }
    }

    /// Carries out a command on a ticket.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such ticket, or why the command is refused.
    pub async fn ask<C: Command>(
        &self,
        company: CompanyId,
        id: TicketId,
        what: impl Into<Execute<C>>,
    ) -> Result<C::Reply, Refusal> {
        let what = what.into();
        let attempt = || self.attempt(company, id, &what);
        on_conflict(self.contacts.known(), company, attempt, nothing).await
    }

    /// The same, once: the actor may just have retired.
    pub(super) async fn attempt<C: Command>(
        &self,
        company: CompanyId,
        id: TicketId,
        what: &Execute<C>,
    ) -> Result<C::Reply, Refusal> {
        if let Some(answered) = self.scope.hot.post(&(company, id), || what.clone()) {
            return self.base.answer(answered).await;
        }
        let hot = self.hot(company, id).await?;
        self.base.deliver(&self.scope.hot, &hot, what.clone()).await
    }

    /// The ticket as it is: what its actor shows or says if it is hot, else read.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such ticket.
    pub async fn get(&self, company: CompanyId, id: TicketId) -> Result<Arc<Ticket>, Refusal> {
        match self.if_hot(company, id).await {
            Some(outcome) => outcome,
            None => {
                let db = self.base.reads().shown(company).await?;
                let loaded = tickets::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
                Ok(Arc::new(Ticket::loaded(loaded, false)))
            }
        }
    }

    /// The same of a ticket that is hot; none for others.
    pub(super) async fn if_hot(&self, company: CompanyId, id: TicketId) -> Option<Result<Arc<Ticket>, Refusal>> {
        let key = (company, id);
        if let Some(shown) = self.scope.hot.look(&key, ActorStatus::look) {
            return Some(Ok(shown));
        }
        let hot = self.scope.hot.get(&key)?;
        match self.base.deliver(&self.scope.hot, &hot, Look).await {
            Err(Refusal::Gone) => None,
            outcome => Some(outcome),
        }
    }

    /// On which channel a ticket is, and with whom: that never changes. Its actor is started for it, which is about to
    /// be asked.
    pub(super) async fn parties(&self, company: CompanyId, id: TicketId) -> Result<(ChannelId, ContactId), Refusal> {
        if let Some(parties) = self.scope.hot.look(&(company, id), |life| life.shared.parties()) {
            return Ok(parties);
        }
        self.hot(company, id).await?.life.shared.parties().ok_or(Refusal::NotFound)
    }

    /// Sees to it that a ticket's actor is there for a while.
    pub(super) async fn keep_hot(&self, company: CompanyId, id: TicketId) -> Result<(), Refusal> {
        if self.is_kept(company, id) { Ok(()) } else { self.hot(company, id).await.map(drop) }
    }

    /// The same of many tickets: those that are not hot are read together.
    pub(super) async fn keep_all_hot(&self, company: CompanyId, ids: &[TicketId]) -> Result<(), Refusal> {
        let cold: Vec<TicketId> = ids.iter().copied().filter(|id| !self.is_kept(company, *id)).collect();
        if cold.is_empty() {
            return Ok(());
        }
        // As for one.
        let _turn = self.contacts.known().looking(company).await;
        let wanted = Mutex::new(Vec::with_capacity(cold.len()));
        let read = OnceCell::new();
        let start = |id: TicketId| {
            let (wanted, read) = (&wanted, &read);
            async move {
                let begin = || async move {
                    // A ticket is read once its place is taken: nobody else changes it from there. So all take theirs first.
                    wanted.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                    tokio::task::yield_now().await;
                    let all = || async {
                        let wanted = std::mem::take(&mut *wanted.lock().unwrap_or_else(PoisonError::into_inner));
                        self.read(company, wanted).await.map(Mutex::new)
                    };
                    let found = read.get_or_try_init(all).await?;
                    let mine = found.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                    match mine {
                        Some((loaded, following)) => self.start(company, loaded, following).await,
                        // Gone, or its place was taken too late.
                        None => self.load(company, id).await,
                    }
                };
                self.scope.hot.get_or_start(&(company, id), begin).await
            }
        };
        // One that is gone keeps no other from being there.
        join_all(cold.into_iter().map(start)).await;
        Ok(())
    }

    /// Whether a ticket's actor is there, and will be for a while.
    fn is_kept(&self, company: CompanyId, id: TicketId) -> bool {
        let used = |life: &ActorStatus<_>| {
            life.used();
            Some(())
        };
        self.scope.hot.look(&(company, id), used).is_some()
    }

    /// A ticket's actor, if it is there, makes room soon, unless somebody uses it before.
    pub(super) fn let_go(&self, company: CompanyId, id: TicketId) {
        self.scope.hot.look(&(company, id), |life| {
            life.let_go();
            None::<()>
        });
    }

    /// Opens a ticket.
    ///
    /// # Errors
    /// [`Refusal::AlreadyOpen`] when the contact has an open ticket on the channel.
    pub async fn open(&self, open: Open, attached: Option<AttachedChanges<Ticket>>) -> Result<Ticket, Refusal> {
        let show = Execute { command: Show, attached };
        let attempt = || self.attempt_opening(open.clone(), show.clone());
        match on_conflict(self.contacts.known(), open.company, attempt, nothing).await {
            Err(Refusal::ContactNotFound) => Err(Refusal::NotFound),
            outcome => outcome,
        }
    }

    /// Opens a ticket with its first command, once: its contact may just be changing. It happens on the thread of the
    /// contact's slot, in one go, as an actor's command does.
    pub(super) async fn attempt_opening<C: Command>(&self, open: Open, then: Execute<C>) -> Result<C::Reply, Refusal> {
        let (company, contact) = (open.company, open.contact.id);
        let conversations = self.conversations(company, open.channel).await?;
        let opening = self.prepare(open, then).await?;
        let (answer, answered) = ReplyTo::expected();
        let scope = self.scope.clone();
        let opens = move || {
            // Nothing is begun for a caller that has gone.
            if answer.is_wanted() {
                match scope.open(&conversations, opening) {
                    Ok((reply, durable)) => answer.give_once(durable, reply),
                    Err(refusal) => answer.give(Err(refusal)),
                }
            }
        };
        if !self.base.arbiters.run(contact.0, opens) {
            return Err(self.base.ended());
        }
        self.base.answer(answered).await
    }

    /// What an opening has to know, looked up before it begins.
    async fn prepare<C: Command>(&self, mut open: Open, then: Execute<C>) -> Result<Opening<C>, Refusal> {
        let (company, contact) = (open.company, open.contact.id);
        let version = self.contacts.known().version((company, contact));
        open.contact = self.contacts.get(company, contact).await?.ok_or(Refusal::ContactNotFound)?;
        open.reachable |= self.contacts.known().is_reachable(company, open.channel, contact);
        let organization = self.base.organization(company)?;
        let desk = if then.command.keeps_closed() { None } else { self.assignment.desk(&organization, &open).await };
        let greeting = self.contacts.greeting(&organization, &open).await;
        Ok(Opening { open, desk, greeting, version, then })
    }

    /// Takes the open tickets from a user who leaves the company, or a queue. Within [`Assignment::delete_guarded`] none can come
    /// after.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when a ticket cannot be taken from them now; those before are.
    pub async fn release(
        &self,
        company: CompanyId,
        user: UserId,
        queue: Option<QueueId>,
        author: Author,
    ) -> Result<(), Refusal> {
        let mut after = TicketId::new(0);
        loop {
            let db = self.base.reads().tables(company).await?;
            let held = tickets::open_of_user(db, company, user, queue, after, RELEASED_MAX).await?;
            let Some(last) = held.last() else { return Ok(()) };
            after = *last;
            stream::iter(held)
                .map(|ticket| self.ask(company, ticket, Release { user, queue, author: author.clone() }))
                .buffer_unordered(RELEASES_AT_ONCE)
                .try_collect::<Vec<()>>()
                .await?;
        }
    }

    /// Where a contact stands on a channel; none when no ticket is open and none of theirs is hot.
    pub(super) async fn slot(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
    ) -> Result<Option<Slot>, Refusal> {
        Ok(self.conversations(company, channel).await?.get(contact))
    }

    /// A channel's conversations; read once, kept for the life of the process.
    async fn conversations(&self, company: CompanyId, channel: ChannelId) -> Result<Arc<Conversations>, Refusal> {
        let cell = match self.conversations.get(&(company, channel)) {
            Some(cell) => cell.clone(),
            None => self.conversations.entry((company, channel)).or_default().clone(),
        };
        let load = || async {
            let db = self.base.reads().tables(company).await?;
            let open = tickets::open_of_channel(db, company, channel).await?;
            Ok::<_, Refusal>(Arc::new(Conversations::of(open)))
        };
        cell.get_or_try_init(load).await.cloned()
    }

    /// The actor of a ticket, started if it is not hot.
    async fn hot(&self, company: CompanyId, id: TicketId) -> Result<ActorHandle<TicketActor>, Refusal> {
        let key = (company, id);
        if let Some(hot) = self.scope.hot.get(&key) {
            return Ok(hot);
        }
        // Held until the actor is registered: a change of its contact reaches it, or it reads the changed row.
        let _turn = self.contacts.known().looking(company).await;
        self.scope.hot.get_or_start(&key, || self.load(company, id)).await
    }

    async fn load(&self, company: CompanyId, id: TicketId) -> Result<ActorHandle<TicketActor>, Refusal> {
        let (loaded, following) = self.read(company, vec![id]).await?.remove(&id).ok_or(Refusal::NotFound)?;
        self.start(company, loaded, following).await
    }

    /// Reads what actors of these tickets begin with.
    async fn read(
        &self,
        company: CompanyId,
        ids: Vec<TicketId>,
    ) -> Result<HashMap<TicketId, (LoadedTicket, Vec<Following>)>, Refusal> {
        let db = self.base.reads().tables(company).await?;
        let found = tickets::find_all(db, company, &ids).await?;
        let mut found: HashMap<_, _> = found.into_iter().map(|loaded| (loaded.ticket.id, (loaded, vec![]))).collect();
        for following in tickets::following(db, company, &ids).await? {
            if let Some((_, all)) = found.get_mut(&following.ticket_id) {
                all.push(following);
            }
        }
        Ok(found)
    }

    async fn start(
        &self,
        company: CompanyId,
        loaded: LoadedTicket,
        following: Vec<Following>,
    ) -> Result<ActorHandle<TicketActor>, Refusal> {
        let (channel, contact) = (loaded.ticket.channel_id, loaded.ticket.contact_id);
        let conversations = self.conversations(company, channel).await?;
        let reachable = self.contacts.known().is_reachable(company, channel, contact);
        let mut ticket = Ticket::loaded(loaded, reachable);
        for following in following {
            ticket.follow(following.id, following.into());
        }
        self.contacts.known().remember(company, &ticket.contact);
        Ok(TicketActor::start_with(&self.scope, conversations, ticket))
    }

    /// Ends the actors of a company's tickets, and drops what is known of who talks in which.
    pub(super) async fn forget_company(&self, company: CompanyId) -> Result<(), Refusal> {
        let Self { base: _, contacts: _, assignment: _, scope, conversations } = self;
        let TicketScope { base: _, contacts: _, desks: _, outboxes: _, inboxes: _, hot } = &**scope;
        dismissed(hot, |(of, _)| *of == company).await?;
        conversations.retain(|(of, _), _| *of != company);
        Ok(())
    }

    pub(super) fn population(&self) -> Population {
        self.scope.hot.population()
    }
}

impl DecidesStatuses for Tickets {
    fn record_status(
        &self,
        company: CompanyId,
        ticket: TicketId,
        status: UpdateDeliveryStatus,
    ) -> BoxFuture<'_, Result<(), Refusal>> {
        self.ask(company, ticket, status).boxed()
    }
}
