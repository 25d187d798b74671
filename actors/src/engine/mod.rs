//! The way in: commands find their actor here, and actors are started from the tables when they are not hot.

mod contacts;
mod desk;
mod greeting;
mod homes;
mod identity;
mod inbound;
mod leave;
mod load;
mod talk;
mod visit;

pub use identity::{Identified, VisitorTurn};
pub use inbound::{Inbound, Number, Sender};

use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::prelude::SendError;
use actix::{Actor, Handler, Message};
use chrono::TimeDelta;
use dashmap::DashMap;
use hotline_persistence::tables::tickets;
use hotline_persistence::tables::webchat_sessions::SessionRow;
use hotline_persistence::{Change, ChannelId, CompanyId, Durable, SessionId, Store, TicketId};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::sync::oneshot::Receiver;

use crate::Refusal;
use crate::answers::{Gate, Outcome};
use crate::channels::{ChannelSender, Inboxes, Outboxes, SendingOptions};
use crate::contacts::Contacts;
use crate::conversations::Conversations;
use crate::directory::Directory;
use crate::distribution::Desks;
use crate::reads::Reads;
use crate::registry::{Counted, Findable, Hot, Life, Population, Registry};
use crate::tickets::{Command, Do, Look, Rider, Ticket, TicketActor};
use crate::webchat::{NewSession, VisitorSession, VisitorTokens, Watchers};
use homes::Homes;
use identity::VisitorTurns;

/// How often a command is sent anew because the conversation changed hands meanwhile (closed, opened by another,
/// actor retired). Each loss means somebody else won, so this many in a row is no race but a defect.
const ATTEMPTS_MAX: usize = 64;

/// Settings of the live half.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// How long an actor without work stays hot. Default 5 minutes.
    pub idle_after: Duration,
    /// How long a visitor session lives without its visitor. Default 30 minutes.
    pub session_idle_after: Duration,
    /// How long after a contact's last message a phone channel takes anything but templates; none: always. Default 24
    /// hours: so the provider of phone channels has it.
    pub conversation_window: Option<TimeDelta>,
    /// How messages are handed over to providers.
    pub sending: SendingOptions,
    /// How often idle actors and sessions are looked for. Default 5 seconds.
    pub sweep_every: Duration,
    /// How often the companies' directory is loaded anew, should a notification have been lost. Default a minute.
    pub reload_every: Duration,
    /// Threads of their own that run actors until threads that serve requests do ([`Engine::live_here`]); 0: the thread
    /// the engine is made on. Default: one for each core.
    pub arbiters: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            idle_after: Duration::from_secs(300),
            session_idle_after: Duration::from_secs(1800),
            conversation_window: Some(TimeDelta::hours(24)),
            sending: SendingOptions::default(),
            sweep_every: Duration::from_secs(5),
            reload_every: crate::directory::RELOAD_EVERY,
            arbiters: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }
}

/// The actors at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Tickets.
    pub tickets: Population,
    /// Visitor sessions.
    pub sessions: Population,
    /// Channels.
    pub channels: Population,
}

/// Every actor and what they share. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
}

pub(crate) struct Core {
    pub(crate) options: EngineOptions,
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Directory,
    pub(crate) homes: Homes,
    pub(crate) tickets: Registry<(CompanyId, TicketId), TicketActor>,
    pub(crate) sessions: Registry<(CompanyId, SessionId), VisitorSession>,
    senders: Registry<(CompanyId, ChannelId), ChannelSender>,
    conversations: DashMap<(CompanyId, ChannelId), Arc<OnceCell<Arc<Conversations>>>>,
    pub(crate) contacts: Contacts,
    /// What channels' providers have told.
    pub(crate) inboxes: Inboxes,
    /// What they are still to be told; empty until sending begins.
    pub(crate) outboxes: OnceLock<Arc<Outboxes>>,
    /// Who gets the new tickets of queues that distribute them.
    pub(crate) desks: Desks,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) visitor_tokens: VisitorTokens,
    visitor_turns: VisitorTurns,
    /// Where work goes on that no request waits for: the runtime that is stopped last.
    pub(crate) background: Handle,
    pub(crate) swept: AtomicBool,
    stopping: AtomicBool,
}

impl Engine {
    /// The live half over an open store. Needs a running actix system.
    pub fn new(store: Arc<Store>, directory: Directory, options: EngineOptions) -> Self {
        let homes = Homes::start(options.arbiters);
        let watchers = Arc::<Watchers>::default();
        let told = watchers.clone();
        store.log.set_witness(Box::new(move |changes| told.tell(changes)));
        Self::of(Arc::new(Core {
            options,
            store,
            directory,
            homes,
            tickets: Registry::default(),
            sessions: Registry::default(),
            senders: Registry::default(),
            conversations: DashMap::new(),
            contacts: Contacts::default(),
            inboxes: Inboxes::default(),
            outboxes: OnceLock::new(),
            desks: Desks::default(),
            watchers,
            visitor_tokens: VisitorTokens::new(),
            visitor_turns: VisitorTurns::default(),
            background: Handle::current(),
            swept: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        }))
    }

    pub(crate) fn of(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Goes on with something after its request was answered. It may be cut short when the process stops.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.core.background.spawn(work));
    }

    /// The runtime that is stopped last, for what must not end with a thread of requests.
    pub fn background(&self) -> &Handle {
        &self.core.background
    }

    /// Makes this thread, which serves requests, a home of actors, and has it handed its answers many at a time. To be
    /// called once on each of them.
    pub fn live_here(&self) {
        self.core.homes.join();
        Gate::open();
    }

    /// Tells that no request is taken any more: an actor that is gone from now on went with its thread.
    pub fn begin_stopping(&self) {
        self.core.stopping.store(true, Ordering::Release);
    }

    /// Stops the actors' own threads. What is in the log is kept; call it when nothing is asked any more.
    pub fn stop(&self) {
        self.core.homes.stop();
    }

    /// The durable half.
    pub fn store(&self) -> &Arc<Store> {
        &self.core.store
    }

    /// The companies' directory.
    pub fn directory(&self) -> &Directory {
        &self.core.directory
    }

    /// Reads of live rows.
    pub fn reads(&self) -> Reads<'_> {
        Reads { store: &self.core.store }
    }

    /// Hot tickets and sessions.
    pub fn hot(&self) -> (usize, usize) {
        (self.core.tickets.len(), self.core.sessions.len())
    }

    /// How many actors of each kind are hot, and how busy they are.
    pub fn figures(&self) -> Figures {
        Figures {
            tickets: self.core.tickets.population(),
            sessions: self.core.sessions.population(),
            channels: self.core.senders.population(),
        }
    }

    /// Carries out a command on a ticket.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such ticket, or why the command is refused.
    pub async fn ask<C: Command>(
        &self,
        company: CompanyId,
        id: TicketId,
        what: impl Into<Do<C>>,
    ) -> Result<C::Reply, Refusal> {
        let what = what.into();
        for _ in 0..ATTEMPTS_MAX {
            let outcome = match self.core.tickets.post(&(company, id), || what.clone()) {
                Some(answered) => self.answer(answered).await,
                None => {
                    let hot = self.hot_ticket(company, id).await?;
                    self.deliver(&self.core.tickets, &hot, what.clone()).await
                }
            };
            match outcome {
                Err(Refusal::Gone) => {}
                Err(Refusal::ContactLeaving(contact)) => self.core.contacts.leaving.left((company, contact)).await?,
                outcome => return outcome,
            }
        }
        Err(restless())
    }

    /// The ticket as it is: what its actor shows or says if it is hot, else read.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such ticket.
    pub async fn ticket(&self, company: CompanyId, id: TicketId) -> Result<Arc<Ticket>, Refusal> {
        let key = (company, id);
        if let Some(shown) = self.core.tickets.look(&key, Life::look) {
            return Ok(shown);
        }
        if let Some(hot) = self.core.tickets.get(&key) {
            match self.deliver(&self.core.tickets, &hot, Look).await {
                Err(Refusal::Gone) => {}
                outcome => return outcome,
            }
        }
        let db = self.reads().shown(company).await?;
        let loaded = tickets::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
        Ok(Arc::new(Ticket::loaded(loaded, false)))
    }

    /// Begins a visitor session.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the contact is gone, [`Refusal::Unavailable`] when it cannot be made durable.
    pub async fn begin_session(&self, new: NewSession) -> Result<SessionRow, Refusal> {
        let NewSession { row, rider } = new;
        let contact = (row.company_id, row.contact_id);
        for _ in 0..ATTEMPTS_MAX {
            let version = self.core.contacts.version(contact);
            self.contact(contact.0, contact.1).await?.ok_or(Refusal::NotFound)?;
            let begin = || {
                if self.core.contacts.version(contact) != version {
                    return Err(Refusal::ContactLeaving(contact.1));
                }
                self.append_session(&row, rider.as_ref())
            };
            match self.core.contacts.leaving.unless_marked(contact, begin) {
                Err(Refusal::ContactLeaving(_)) => self.core.contacts.leaving.left(contact).await?,
                outcome => {
                    outcome?.reached().await?;
                    self.core.contacts.remember_reachable(row.company_id, row.channel_id, row.contact_id);
                    return Ok(row);
                }
            }
        }
        Err(restless())
    }

    /// Appends the beginning of a session and starts its actor, before anyone can learn of it.
    fn append_session(&self, row: &SessionRow, rider: Option<&Rider<SessionRow>>) -> Result<Durable, Refusal> {
        let place = self.core.store.log.reserve()?;
        let mut changes = vec![Change::Session(Box::new(row.clone()))];
        changes.extend(rider.into_iter().flat_map(|rider| rider(row)));
        let (seq, durable) = place.append(changes)?;
        let hot = VisitorSession::start_with(&self.core, row.clone(), &[]);
        hot.life.appended(seq);
        self.core.sessions.insert((row.company_id, row.id.clone()), hot);
        Ok(durable)
    }

    /// Sends a message to a visitor session's actor.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such session, or why it is refused.
    pub async fn ask_session<M, R>(&self, company: CompanyId, id: &SessionId, message: M) -> Result<R, Refusal>
    where
        M: Message<Result = Result<R, Refusal>> + Clone + std::marker::Send + 'static,
        R: std::marker::Send + 'static,
        VisitorSession: Handler<Counted<M>>,
        <VisitorSession as Actor>::Context: ToEnvelope<VisitorSession, Counted<M>>,
    {
        for _ in 0..ATTEMPTS_MAX {
            let hot = self.hot_session(company, id).await?;
            match self.deliver(&self.core.sessions, &hot, message.clone()).await {
                Err(Refusal::Gone) => {}
                outcome => return outcome,
            }
        }
        Err(restless())
    }

    /// Sends a command to an actor and waits for its answer.
    async fn deliver<K, A, M, R>(&self, registry: &Registry<K, A>, hot: &Hot<A>, command: M) -> Result<R, Refusal>
    where
        K: Hash + Eq + Clone,
        A: Findable + Handler<Counted<M>>,
        A::Context: ToEnvelope<A, Counted<M>>,
        M: Message<Result = Result<R, Refusal>> + std::marker::Send + 'static,
        R: std::marker::Send + 'static,
    {
        let (command, answered) = registry.counted(command);
        match hot.addr.try_send(command) {
            Ok(()) => {}
            Err(SendError::Full(command)) => hot.addr.send(command).await.map_err(|_| self.ended())?,
            Err(SendError::Closed(_)) => return Err(self.ended()),
        }
        self.answer(answered).await
    }

    /// What a command that lies in a mailbox is answered.
    async fn answer<R>(&self, answered: Receiver<Outcome<R>>) -> Result<R, Refusal> {
        answered.await.map_err(|_| self.ended())?
    }

    /// Why a command was not answered. On the way down a thread that has served its last request takes its actors with
    /// it, and what lay in their mailboxes; who asks again finds what was begun. Else it is a defect: commands catch
    /// their own panics.
    fn ended(&self) -> Refusal {
        if self.core.stopping.load(Ordering::Acquire) {
            return Refusal::Unavailable("the service is stopping".to_owned());
        }
        Refusal::Defect("the actor has ended".to_owned())
    }
}

fn restless() -> Refusal {
    Refusal::Unavailable("the conversation changes too fast".to_owned())
}
