//! The way in: commands find their actor here, and actors are started from the tables when they are not hot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Arbiter, ArbiterHandle, Handler, Message};
use dashmap::DashMap;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::{contacts, messages, tickets, webchat_sessions};
use hotline_persistence::{Change, ChannelId, CompanyId, ContactId, SessionId, Store, TicketId};
use tokio::sync::OnceCell;

use crate::channels::{ChannelSender, OpenAnd};
use crate::contacts::Contacts;
use crate::conversations::{Conversations, Slot};
use crate::directory::Directory;
use crate::reads::Reads;
use crate::registry::{Hot, Registry};
use crate::tickets::{Author, Command, Do, Open, Receive, Reopen, Send, Show, Ticket, TicketActor};
use crate::webchat::{NewSession, VisitorSession};
use crate::{Refusal, sweep};

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
    /// How often both are looked at. Default 5 seconds.
    pub sweep_every: Duration,
    /// Threads that run actors. Default: one for each core.
    pub arbiters: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            idle_after: Duration::from_secs(300),
            session_idle_after: Duration::from_secs(1800),
            sweep_every: Duration::from_secs(5),
            arbiters: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }
}

/// Every actor and what they share. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    core: Arc<Core>,
}

pub(crate) struct Core {
    pub(crate) options: EngineOptions,
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Directory,
    pub(crate) arbiters: Arbiters,
    pub(crate) tickets: Registry<(CompanyId, TicketId), TicketActor>,
    pub(crate) sessions: Registry<(CompanyId, SessionId), VisitorSession>,
    senders: Registry<(CompanyId, ChannelId), ChannelSender>,
    conversations: DashMap<(CompanyId, ChannelId), Arc<OnceCell<Arc<Conversations>>>>,
    contacts: Contacts,
    swept: AtomicBool,
}

/// The threads actors live on.
pub(crate) struct Arbiters(Vec<ArbiterHandle>);

impl Arbiters {
    fn start(count: usize) -> Self {
        Self((0..count.max(1)).map(|_| Arbiter::new().handle()).collect())
    }

    /// Where the actor with this id lives.
    pub(crate) fn of(&self, id: i64) -> ArbiterHandle {
        let index = usize::try_from(id.unsigned_abs()).unwrap_or(0) % self.0.len();
        self.0[index].clone()
    }

    fn stop(&self) {
        for arbiter in &self.0 {
            arbiter.stop();
        }
    }
}

impl Engine {
    /// The live half over an open store. Needs a running actix system.
    pub fn new(store: Arc<Store>, directory: Directory, options: EngineOptions) -> Self {
        let arbiters = Arbiters::start(options.arbiters);
        Self::of(Arc::new(Core {
            options,
            store,
            directory,
            arbiters,
            tickets: Registry::default(),
            sessions: Registry::default(),
            senders: Registry::default(),
            conversations: DashMap::new(),
            contacts: Contacts::default(),
            swept: AtomicBool::new(false),
        }))
    }

    pub(crate) fn of(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Starts the regular work: idle actors make room, forgotten sessions end. Once.
    pub fn start_sweeping(&self) {
        if !self.core.swept.swap(true, Ordering::AcqRel) {
            actix::spawn(sweep::run(self.core.clone(), self.core.options.sweep_every));
        }
    }

    /// Stops the threads actors live on. What is in the log is kept; call it when nothing is asked any more.
    pub fn stop(&self) {
        self.core.arbiters.stop();
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
        Reads { core: &self.core }
    }

    /// Hot tickets and sessions.
    pub fn hot(&self) -> (usize, usize) {
        (self.core.tickets.len(), self.core.sessions.len())
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
            let hot = self.core.tickets.get_or_start(&(company, id), || self.load_ticket(company, id)).await?;
            match deliver(&hot, what.clone()).await {
                Err(Refusal::Gone) => {}
                outcome => return outcome,
            }
        }
        Err(restless())
    }

    /// The ticket as it is: asked if it is hot, else read.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such ticket.
    pub async fn ticket(&self, company: CompanyId, id: TicketId) -> Result<Ticket, Refusal> {
        if let Some(hot) = self.core.tickets.get(&(company, id)) {
            match deliver(&hot, Do::from(Show)).await {
                Err(Refusal::Gone) => {}
                outcome => return outcome,
            }
        }
        let db = self.reads().tables(company).await?;
        let loaded = tickets::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
        Ok(Ticket::loaded(loaded, false))
    }

    /// Opens a ticket.
    ///
    /// # Errors
    /// [`Refusal::AlreadyOpen`] when the contact has an open ticket on the channel.
    pub async fn open(&self, open: Open) -> Result<Ticket, Refusal> {
        self.open_and(open, Do::from(Show)).await
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
                Some(ticket) => self.ask(company, ticket, what.clone()).await,
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
                Err(Refusal::ContactUnreachable) if !what.command.reachable => {
                    if !self.is_reachable(company, channel, contact).await? {
                        return Err(Refusal::ContactUnreachable);
                    }
                    what.command.reachable = true;
                }
                outcome => return outcome,
            }
        }
        Err(restless())
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
                    if outcome.is_ok() {
                        self.core.contacts.remember_reachable(company, channel, contact);
                    }
                    return outcome;
                }
            }
        }
        Err(restless())
    }

    /// Reopens a ticket.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn reopen(&self, company: CompanyId, id: TicketId, reopen: Reopen) -> Result<Ticket, Refusal> {
        self.ask(company, id, reopen).await
    }

    /// A contact, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not remembered and the database is away.
    pub async fn contact(&self, company: CompanyId, id: ContactId) -> Result<Option<Arc<ContactRef>>, Refusal> {
        if let Some(contact) = self.core.contacts.get(company, id) {
            return Ok(Some(contact));
        }
        let found = contacts::find_ref(&self.core.store.db, company, id).await?;
        Ok(found.map(|contact| self.remember(company, contact)))
    }

    /// The contact with a number: found, or created.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not remembered and the database is away.
    pub async fn contact_with_number(
        &self,
        company: CompanyId,
        number: &str,
        name: Option<&str>,
    ) -> Result<Arc<ContactRef>, Refusal> {
        if let Some(contact) = self.core.contacts.with_number(company, number) {
            return Ok(contact);
        }
        let api = Author::API.source;
        let contact = contacts::find_or_create_by_number(&self.core.store.db, company, number, name, api).await?;
        Ok(self.remember(company, contact))
    }

    fn remember(&self, company: CompanyId, contact: ContactRef) -> Arc<ContactRef> {
        let contact = Arc::new(contact);
        self.core.contacts.remember(company, &contact);
        contact
    }

    /// Begins a visitor session.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be made durable.
    pub async fn begin_session(&self, new: NewSession) -> Result<(), Refusal> {
        let row = new.row;
        let place = self.core.store.log.reserve()?;
        let (seq, durable) = place.append(vec![Change::Session(Box::new(row.clone()))])?;
        let hot = VisitorSession::start_with(&self.core, row.clone(), &[]);
        hot.life.appended(seq);
        self.core.sessions.insert((row.company_id, row.id), hot);
        durable.reached().await?;
        self.core.contacts.remember_reachable(row.company_id, row.channel_id, row.contact_id);
        Ok(())
    }

    /// Sends a message to a visitor session's actor.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such session, or why it is refused.
    pub async fn ask_session<M, R>(&self, company: CompanyId, id: &SessionId, message: M) -> Result<R, Refusal>
    where
        M: Message<Result = Result<R, Refusal>> + Clone + std::marker::Send + 'static,
        R: std::marker::Send + 'static,
        VisitorSession: Handler<M>,
        <VisitorSession as Actor>::Context: ToEnvelope<VisitorSession, M>,
    {
        let key = (company, id.clone());
        for _ in 0..ATTEMPTS_MAX {
            let hot = self.core.sessions.get_or_start(&key, || self.load_session(company, id)).await?;
            match deliver(&hot, message.clone()).await {
                Err(Refusal::Gone) => {}
                outcome => return outcome,
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
        open.reachable |= self.core.contacts.is_reachable(open.company, open.channel, open.contact.id);
        let sender = self.core.senders.get_or_start(&key, load).await?;
        deliver(&sender, OpenAnd { open, then }).await
    }

    /// A channel's conversations; read once, kept for the life of the process.
    async fn conversations(&self, company: CompanyId, channel: ChannelId) -> Result<Arc<Conversations>, Refusal> {
        let cell = match self.core.conversations.get(&(company, channel)) {
            Some(cell) => cell.clone(),
            None => self.core.conversations.entry((company, channel)).or_default().clone(),
        };
        let load = || async {
            let db = self.reads().tables(company).await?;
            let open = tickets::open_of_channel(db, company, channel).await?;
            Ok::<_, Refusal>(Arc::new(Conversations::of(open)))
        };
        cell.get_or_try_init(load).await.cloned()
    }

    async fn load_ticket(&self, company: CompanyId, id: TicketId) -> Result<Hot<TicketActor>, Refusal> {
        let db = self.reads().tables(company).await?;
        let loaded = tickets::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
        let (channel, contact) = (loaded.ticket.channel_id, loaded.ticket.contact_id);
        let conversations = self.conversations(company, channel).await?;
        let reachable = self.core.contacts.is_reachable(company, channel, contact);
        let ticket = Ticket::loaded(loaded, reachable);
        self.core.contacts.remember(company, &ticket.contact);
        Ok(TicketActor::start_with(&self.core, conversations, ticket))
    }

    async fn load_session(&self, company: CompanyId, id: &SessionId) -> Result<Hot<VisitorSession>, Refusal> {
        let db = self.reads().tables(company).await?;
        let row = webchat_sessions::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
        let used = messages::client_ids(db, company, id, crate::webchat::CLIENT_IDS_MAX as i64).await?;
        Ok(VisitorSession::start_with(&self.core, row, &used))
    }

    /// Whether a channel without phone reaches a contact: on a webchat a session of theirs, elsewhere a message
    /// from them.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not remembered and the database is away.
    pub async fn is_reachable(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
    ) -> Result<bool, Refusal> {
        if self.core.contacts.is_reachable(company, channel, contact) {
            return Ok(true);
        }
        let organization = self.core.directory.company(company).ok_or(Refusal::NotFound)?;
        let kind = organization.channels.get(&channel).ok_or(Refusal::NotFound)?.kind;
        if kind.has_phone() {
            return Ok(false); // The number decides, and the ticket knows it.
        }
        let db = self.reads().tables(company).await?;
        let reachable = match kind {
            hotline_persistence::tables::channels::ChannelType::Webchat => {
                webchat_sessions::exists(db, company, channel, contact).await?
            }
            _ => messages::has_received(db, company, channel, contact).await?,
        };
        if reachable {
            self.core.contacts.remember_reachable(company, channel, contact);
        }
        Ok(reachable)
    }
}

/// Sends a message to an actor and waits for its answer.
async fn deliver<A, M, R>(hot: &Hot<A>, message: M) -> Result<R, Refusal>
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message<Result = Result<R, Refusal>> + std::marker::Send + 'static,
    R: std::marker::Send + 'static,
{
    match hot.addr.send(message).await {
        Ok(outcome) => outcome,
        // Commands catch their own panics; what ends an actor besides is a defect as well, or the end of the process.
        Err(error) => Err(Refusal::Defect(error.to_string())),
    }
}

fn restless() -> Refusal {
    Refusal::Unavailable("the conversation changes too fast".to_owned())
}
