//! The registry of hot actors: found by key, started once per key, removed when they retire.

mod lifecycle;
mod status;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::{Actor, Handler, Message};
use foldhash::fast::RandomState;
use tokio::sync::OnceCell;
use tokio::sync::oneshot::Receiver;

pub use self::lifecycle::Retire;
pub(crate) use self::lifecycle::{Dismiss, dismiss};
pub use self::status::{ActorHandle, ActorStatus};
use crate::Refusal;
use crate::answers::{Outcome, ReplyTo};
use crate::id_map::IdMap;

/// Number of shards, which are locked one at a time. A scan of all actors blocks the start of actors in a shard only
/// while it scans that shard.
const SHARDS: usize = 64;

/// An actor that is kept in a [`Registry`].
pub trait Registered: Actor {
    /// State that can be read without sending a message to the actor.
    type Shared: Default + Send + Sync + 'static;
}

/// Actors of one kind.
pub struct Registry<K, A: Registered> {
    actors: IdMap<K, Registration<A>>,
    in_flight: InFlight,
}

/// The entry of a key.
enum Registration<A: Registered> {
    /// All callers wait for one load.
    Starting(Arc<OnceCell<ActorHandle<A>>>),
    Hot(ActorHandle<A>),
}

impl<A: Registered> Registration<A> {
    fn hot(&self) -> Option<&ActorHandle<A>> {
        match self {
            Self::Starting(cell) => cell.get(),
            Self::Hot(hot) => Some(hot),
        }
    }

    fn is_starting(&self, other: &Arc<OnceCell<ActorHandle<A>>>) -> bool {
        matches!(self, Self::Starting(cell) if Arc::ptr_eq(cell, other))
    }
}

/// The number of hot actors, and their load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// Actors in memory, or being started.
    pub hot: usize,
    /// Commands that were sent and not yet accepted by an actor.
    pub waiting: usize,
}

/// Counts commands in flight by clones of an `Arc`: each command holds one until it is accepted or dropped.
#[derive(Clone, Default)]
struct InFlight(Arc<()>);

impl InFlight {
    fn count(&self) -> usize {
        Arc::strong_count(&self.0).saturating_sub(1)
    }
}

/// A command and the recipient of its reply. It counts as waiting until its actor accepts it, or until it is dropped
/// with the actor's mailbox.
pub struct Envelope<M: Request> {
    message: M,
    reply_to: ReplyTo<M::Reply>,
    _in_flight: InFlight,
}

/// A message whose result is a reply or a refusal.
pub trait Request: Message<Result = Result<Self::Reply, Refusal>> + Send + 'static {
    /// The reply to the caller.
    type Reply: Send + 'static;
}

impl<M, R> Request for M
where
    M: Message<Result = Result<R, Refusal>> + Send + 'static,
    R: Send + 'static,
{
    type Reply = R;
}

/// The reply is sent through [`ReplyTo`], so the message itself has no result.
impl<M: Request> Message for Envelope<M> {
    type Result = ();
}

impl<M: Request> Envelope<M> {
    /// Unwraps the command, which then no longer counts as waiting. `None` if its caller was canceled, so that the
    /// command is skipped.
    pub(crate) fn accept(self) -> Option<(M, ReplyTo<M::Reply>)> {
        self.reply_to.is_awaited().then_some((self.message, self.reply_to))
    }
}

impl<K: Hash + Eq + Clone, A: Registered> Default for Registry<K, A> {
    fn default() -> Self {
        let actors = IdMap::with_hasher_and_shard_amount(RandomState::default(), SHARDS);
        Self { actors, in_flight: InFlight::default() }
    }
}

impl<K: Hash + Eq + Clone, A: Registered> Registry<K, A> {
    /// The actor, if it is hot.
    pub fn get(&self, key: &K) -> Option<ActorHandle<A>> {
        self.with_hot(key, ActorHandle::clone)
    }

    /// The result of `read` on the actor's status, if it is hot. `read` must not block, because it runs under the
    /// lock of the actor's shard.
    pub(crate) fn read_status<R>(&self, key: &K, read: impl FnOnce(&ActorStatus<A::Shared>) -> Option<R>) -> Option<R> {
        read(&self.actors.get(key)?.hot()?.status)
    }

    /// The result of `work` on the actor, if it is hot and alive. `work` must not block, as in [`Self::read_status`].
    fn with_hot<R>(&self, key: &K, work: impl FnOnce(&ActorHandle<A>) -> R) -> Option<R> {
        let dead_status = {
            let entry = self.actors.get(key)?;
            let hot = entry.hot()?;
            if hot.addr.connected() {
                return Some(work(hot));
            }
            hot.status.clone()
        };
        // The actor has ended by a panic outside a command, so no further message may be sent to it.
        self.remove(key, &dead_status);
        None
    }

    /// Puts a command into the actor's mailbox, if the actor is hot and the mailbox has room. Returns the receiver of
    /// the reply.
    pub(crate) fn post<M>(&self, key: &K, command: impl FnOnce() -> M) -> Option<Receiver<Outcome<M::Reply>>>
    where
        M: Request,
        A: Handler<Envelope<M>>,
        A::Context: ToEnvelope<A, Envelope<M>>,
    {
        self.with_hot(key, |hot| {
            let (command, reply) = self.wrap(command());
            hot.addr.try_send(command).ok().map(|()| reply)
        })?
    }

    /// The actor, started with `load` if it is not hot. Concurrent callers share one load.
    ///
    /// # Errors
    /// The error of `load`; it is not cached, and the next caller tries again.
    pub async fn get_or_start<F>(&self, key: &K, load: impl Fn() -> F) -> Result<ActorHandle<A>, Refusal>
    where
        F: Future<Output = Result<ActorHandle<A>, Refusal>>,
    {
        loop {
            if let Some(hot) = self.get(key) {
                return Ok(hot);
            }
            let cell = match &*self.actors.entry(key.clone()).or_insert_with(|| Registration::Starting(Arc::default()))
            {
                Registration::Hot(hot) => return Ok(hot.clone()),
                Registration::Starting(cell) => cell.clone(),
            };
            match cell.get_or_try_init(&load).await {
                Ok(hot) if self.finish_start(key, &cell, hot) => return Ok(hot.clone()),
                // The actor was removed from the registry while it started, so no caller can find it: start another
                // one.
                Ok(_) => {}
                // Ids that do not exist must not fill the map. The two references are the map's and ours: while another
                // caller waits for this cell the entry stays, because otherwise two actors could start under one key.
                Err(refusal) => {
                    self.actors.remove_if(key, |_, entry| {
                        entry.is_starting(&cell) && !cell.initialized() && Arc::strong_count(&cell) == 2
                    });
                    return Err(refusal);
                }
            }
        }
    }

    /// Replaces the starting entry with its actor, unless another caller has done so. Returns false when the entry was
    /// removed.
    fn finish_start(&self, key: &K, cell: &Arc<OnceCell<ActorHandle<A>>>, hot: &ActorHandle<A>) -> bool {
        let Some(mut entry) = self.actors.get_mut(key) else { return false };
        // The cell is no longer needed, and larger than its contents.
        if entry.is_starting(cell) {
            *entry = Registration::Hot(hot.clone());
        }
        entry.hot().is_some_and(|found| Arc::ptr_eq(&found.status, &hot.status))
    }

    /// Removes every actor whose key `is_selected` selects, and returns them; waits for actors that are being started.
    pub(crate) async fn remove_where(&self, is_selected: impl Fn(&K) -> bool) -> Vec<ActorHandle<A>> {
        let keys: Vec<K> = self.actors.iter().map(|entry| entry.key().clone()).filter(|key| is_selected(key)).collect();
        let mut removed = Vec::with_capacity(keys.len());
        for key in keys {
            match self.actors.remove(&key) {
                Some((_, Registration::Hot(hot))) => removed.push(hot),
                // Waits for a running load. Its caller no longer finds the entry, and starts another actor.
                Some((_, Registration::Starting(cell))) => {
                    removed.extend(cell.get_or_try_init(|| async { Err::<_, ()>(()) }).await.ok().cloned());
                }
                None => {}
            }
        }
        removed
    }

    /// Registers a new actor under a key that has never been used.
    pub fn insert(&self, key: K, hot: ActorHandle<A>) {
        self.actors.insert(key, Registration::Hot(hot));
    }

    /// Removes the actor with this status, but not its successor.
    pub fn remove(&self, key: &K, status: &Arc<ActorStatus<A::Shared>>) {
        self.actors.remove_if(key, |_, entry| entry.hot().is_some_and(|other| Arc::ptr_eq(&other.status, status)));
    }

    /// Every hot actor that `is_selected` selects by its key and status.
    pub fn select(&self, is_selected: impl Fn(&K, &ActorStatus<A::Shared>) -> bool) -> Vec<ActorHandle<A>> {
        let selected =
            |key: &K, entry: &Registration<A>| entry.hot().filter(|hot| is_selected(key, &hot.status)).cloned();
        self.actors.iter().filter_map(|entry| selected(entry.key(), entry.value())).collect()
    }

    /// Wraps a command for one of these actors, and returns the receiver of its reply.
    pub(crate) fn wrap<M: Request>(&self, message: M) -> (Envelope<M>, Receiver<Outcome<M::Reply>>) {
        let (reply_to, reply) = ReplyTo::channel();
        (Envelope { message, reply_to, _in_flight: self.in_flight.clone() }, reply)
    }

    /// The approximate number of actors, and their load.
    pub fn population(&self) -> Population {
        Population { hot: self.len(), waiting: self.in_flight.count() }
    }

    /// The number of actors that are hot or being started.
    pub fn len(&self) -> usize {
        self.actors.len()
    }

    /// Whether no actor is hot or being started.
    pub fn is_empty(&self) -> bool {
        self.actors.is_empty()
    }
}
