//! What all parts of the engine depend on: the durable store, the companies' directory, and the actors' threads.

mod arbiters;
pub(crate) mod due_work;
mod options;
pub(crate) mod retry;
mod sending_options;

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::prelude::SendError;
use actix::{Handler, Message};
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::{CompanyId, Db, Presence, Readers, Store};
use tokio::runtime::Handle;
use tokio::sync::oneshot::Receiver;

pub use self::options::EngineOptions;
pub use self::sending_options::SendingOptions;

use self::arbiters::ArbiterPool;
use self::due_work::Readiness;
use crate::Refusal;
use crate::answers::Outcome;
use crate::directory::Directory;
use crate::overview::Overviews;
use crate::reads::Reads;
use crate::registry::{ActorHandle, Envelope, Registered, Registry};

/// How long the answer to a change waits for the directory to reload. After that time the answer is sent anyway, and
/// the directory reloads when the database notifies it of the change.
const REFRESH_TIME_MAX: Duration = hotline_persistence::error::STATEMENT_TIME_MAX;

/// State shared by all parts of the engine.
pub(crate) struct Base {
    pub(crate) options: EngineOptions,
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Directory,
    pub(crate) arbiters: ArbiterPool,
    /// The open tickets of companies whose dashboard is being queried.
    pub(crate) overviews: Arc<Overviews>,
    /// The runtime for work that no request waits for. It is stopped last.
    pub(crate) background: Handle,
    stopping: AtomicBool,
}

impl Base {
    /// Creates the base over an open store. Needs a running actix system.
    pub(crate) fn new(
        store: Arc<Store>,
        directory: Directory,
        overviews: Arc<Overviews>,
        options: EngineOptions,
    ) -> Arc<Self> {
        let arbiters = ArbiterPool::start(options.arbiters);
        let background = Handle::current();
        Arc::new(Self { options, store, directory, arbiters, overviews, background, stopping: AtomicBool::new(false) })
    }

    /// Starts work that may outlast its request. Stopping the process may cancel it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.background.spawn(work));
    }

    /// Starts a company's work, which may outlast its request. Dropping the company from memory waits for it.
    pub(crate) fn spawn_for(&self, company: CompanyId, work: impl Future<Output = ()> + Send + 'static) {
        let ownership = self.store.ownership().clone();
        // Taken before the request releases its own presence, so that the company is not dropped in between.
        let presence = ownership.follow(company);
        self.spawn(async move {
            let _presence = match presence {
                Some(presence) => presence,
                None => ownership.enter_without_limit(company).await,
            };
            work.await;
        });
    }

    /// Reads of live rows.
    pub(crate) fn reads(&self) -> Reads<'_> {
        Reads { store: &self.store }
    }

    /// The company's access to the tables.
    pub(crate) fn db(&self, company: CompanyId) -> Db<'_> {
        self.store.db(company)
    }

    /// Connections for frequent reads, whose statements PostgreSQL plans once per connection.
    pub(crate) fn readers(&self) -> &Readers {
        &self.store.readers
    }

    /// Whether this process serves a company. Periodic work, and work that spans several companies, must check this.
    pub(crate) fn owns(&self, company: CompanyId) -> bool {
        self.store.ownership().owns(company)
    }

    /// Whether the actor of a company may work now.
    pub(crate) fn readiness(&self, company: CompanyId) -> Readiness {
        if self.is_stopping() {
            Readiness::Stopping
        } else if self.owns(company) {
            Readiness::Ready
        } else {
            Readiness::Elsewhere
        }
    }

    /// Begins work of a company, if it is open now. The presence is to be held until the work has ended.
    pub(crate) fn try_enter(&self, company: CompanyId) -> Option<Presence> {
        self.store.ownership().try_enter(company)
    }

    /// The company's entry in the directory.
    pub(crate) fn organization(&self, company: CompanyId) -> Result<Arc<Organization>, Refusal> {
        self.directory.company(company).ok_or(Refusal::NotFound)
    }

    /// Whether a company is active: nothing is sent for one that is not, or that the directory does not know.
    pub(crate) fn is_active(&self, company: CompanyId) -> bool {
        self.directory.company(company).is_some_and(|organization| organization.company.active)
    }

    /// Waits until actors use the company's committed configuration. To be called after a change to data that is in the
    /// directory.
    pub(crate) async fn refresh(&self, company: CompanyId) {
        let refresh = self.directory.refresh(self.db(company), company);
        match tokio::time::timeout(REFRESH_TIME_MAX, refresh).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, %company, "directory reload delayed"),
            Err(_) => tracing::warn!(%company, "directory reload delayed"),
        }
    }

    /// Drops a closed company from the store and the overviews.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        // The directory stays: every process has all companies. The other fields have no per-company state.
        let Self { options: _, store, directory: _, arbiters: _, overviews, background: _, stopping: _ } = self;
        store.forget(company);
        overviews.forget_company(company);
    }

    /// Marks the service as stopping: from now on a command without a reply is refused as unavailable, not as a defect.
    pub(crate) fn begin_stopping(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether the service is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Sends a command to an actor and waits for the reply.
    pub(crate) async fn deliver<K, A, M, R>(
        &self,
        registry: &Registry<K, A>,
        actor: &ActorHandle<A>,
        command: M,
    ) -> Result<R, Refusal>
    where
        K: Hash + Eq + Clone,
        A: Registered + Handler<Envelope<M>>,
        A::Context: ToEnvelope<A, Envelope<M>>,
        M: Message<Result = Result<R, Refusal>> + Send + 'static,
        R: Send + 'static,
    {
        let (command, reply) = registry.wrap(command);
        match actor.addr.try_send(command) {
            Ok(()) => {}
            Err(SendError::Full(command)) => {
                Box::pin(actor.addr.send(command)).await.map_err(|_| self.actor_ended())?
            }
            Err(SendError::Closed(_)) => return Err(self.actor_ended()),
        }
        self.receive(reply).await
    }

    /// Waits for the reply to a command that is in a mailbox.
    pub(crate) async fn receive<R>(&self, reply: Receiver<Outcome<R>>) -> Result<R, Refusal> {
        reply.await.map_err(|_| self.actor_ended())?
    }

    /// The refusal for a command without a reply. During a stop, a thread ends after its last request, with its actors
    /// and their mailboxes, so commands may remain without a reply. At any other time a missing reply is a defect,
    /// because commands catch their own panics.
    pub(crate) fn actor_ended(&self) -> Refusal {
        if self.is_stopping() {
            return Refusal::Unavailable("the service is stopping".to_owned());
        }
        Refusal::Defect("the actor has ended".to_owned())
    }
}
