//! Which actors are hot: found by key, started once per key, removed when they retire.

mod life;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::{Actor, Handler, Message};
use foldhash::fast::RandomState;
use tokio::sync::OnceCell;
use tokio::sync::oneshot::Receiver;

pub use self::life::{ActorHandle, ActorStatus};
use crate::Refusal;
use crate::answers::{Outcome, ReplyTo};
use crate::map::IdMap;

/// Parts of a registry that are locked one at a time. Whoever looks through all actors holds up those who start one in
/// the same part, for as long as that part takes.
const SHARDS: usize = 64;

/// An actor that is found by a key.
pub trait Registered: Actor {
    /// What others may read of it without asking.
    type Shared: Default + Send + Sync + 'static;
}

/// Actors of one kind.
pub struct Registry<K, A: Registered> {
    actors: IdMap<K, Registration<A>>,
    waiting: Waiting,
}

/// What is under a key.
enum Registration<A: Registered> {
    /// Everybody who asks waits for one load.
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

    fn is_starting(&self, with: &Arc<OnceCell<ActorHandle<A>>>) -> bool {
        matches!(self, Self::Starting(cell) if Arc::ptr_eq(cell, with))
    }
}

/// How many are hot, and how busy they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// Actors in memory.
    pub hot: usize,
    /// Commands that were sent and that no actor has taken yet.
    pub waiting: usize,
}

/// Counts by how often it was cloned: each command on its way holds one clone, whatever becomes of it.
#[derive(Clone, Default)]
struct Waiting(Arc<()>);

impl Waiting {
    fn count(&self) -> usize {
        Arc::strong_count(&self.0).saturating_sub(1)
    }
}

/// A command on its way, and where its answer goes. It counts as waiting until its actor takes it, or it is thrown
/// away with the actor's mailbox.
pub struct Envelope<M: Request> {
    message: M,
    answer: ReplyTo<M::Reply>,
    _waiting: Waiting,
}

/// A message that is answered with a reply or a refusal.
pub trait Request: Message<Result = Result<Self::Reply, Refusal>> + Send + 'static {
    /// What its caller is answered.
    type Reply: Send + 'static;
}

impl<M, R> Request for M
where
    M: Message<Result = Result<R, Refusal>> + Send + 'static,
    R: Send + 'static,
{
    type Reply = R;
}

/// The answer goes its own way.
impl<M: Request> Message for Envelope<M> {
    type Result = ();
}

impl<M: Request> Envelope<M> {
    /// The command, which waits no longer, unless its caller has gone: then nothing is begun.
    pub(crate) fn taken(self) -> Option<(M, ReplyTo<M::Reply>)> {
        self.answer.is_wanted().then_some((self.message, self.answer))
    }
}

impl<K: Hash + Eq + Clone, A: Registered> Default for Registry<K, A> {
    fn default() -> Self {
        let actors = IdMap::with_hasher_and_shard_amount(RandomState::default(), SHARDS);
        Self { actors, waiting: Waiting::default() }
    }
}

impl<K: Hash + Eq + Clone, A: Registered> Registry<K, A> {
    /// The actor, if it is hot.
    pub fn get(&self, key: &K) -> Option<ActorHandle<A>> {
        self.with(key, ActorHandle::clone)
    }

    /// What `look` makes of the actor's signs of life, if it is hot. It must not wait: nobody else finds the actors near
    /// this one meanwhile, nor starts them.
    pub(crate) fn look<R>(&self, key: &K, look: impl FnOnce(&ActorStatus<A::Shared>) -> Option<R>) -> Option<R> {
        look(&self.actors.get(key)?.hot()?.life)
    }

    /// What `with` makes of the actor, if it is hot and alive. It must not wait either.
    fn with<R>(&self, key: &K, with: impl FnOnce(&ActorHandle<A>) -> R) -> Option<R> {
        let dead = {
            let place = self.actors.get(key)?;
            let hot = place.hot()?;
            if hot.addr.connected() {
                return Some(with(hot));
            }
            hot.life.clone()
        };
        // It died of a panic outside a command: nobody may be sent there any more.
        self.remove(key, &dead);
        None
    }

    /// Lays a command into the actor's mailbox, if it is hot and has room: the answer comes where this tells.
    pub(crate) fn post<M>(&self, key: &K, command: impl FnOnce() -> M) -> Option<Receiver<Outcome<M::Reply>>>
    where
        M: Request,
        A: Handler<Envelope<M>>,
        A::Context: ToEnvelope<A, Envelope<M>>,
    {
        self.with(key, |hot| {
            let (command, answered) = self.counted(command());
            hot.addr.try_send(command).ok().map(|()| answered)
        })?
    }

    /// The actor, started with `load` if it is not hot. However many ask at once, one load runs.
    ///
    /// # Errors
    /// Whatever `load` says; nothing is kept of it, and the next one to ask tries anew.
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
                Ok(hot) if self.has_started(key, &cell, hot) => return Ok(hot.clone()),
                // It was taken out while it started, and nobody finds it: the next one starts in its place.
                Ok(_) => {}
                // Ids that do not exist must not fill the map. The two references are the map's and ours: while another
                // one waits for this cell it stays, or two actors could start under one key.
                Err(refusal) => {
                    self.actors.remove_if(key, |_, place| {
                        place.is_starting(&cell) && !cell.initialized() && Arc::strong_count(&cell) == 2
                    });
                    return Err(refusal);
                }
            }
        }
    }

    /// Puts an actor in the place it was started for, unless it is there by now; false when the place is gone.
    fn has_started(&self, key: &K, cell: &Arc<OnceCell<ActorHandle<A>>>, hot: &ActorHandle<A>) -> bool {
        let Some(mut place) = self.actors.get_mut(key) else { return false };
        // The cell has served; it is larger than what it holds.
        if place.is_starting(cell) {
            *place = Registration::Hot(hot.clone());
        }
        place.hot().is_some_and(|found| Arc::ptr_eq(&found.life, &hot.life))
    }

    /// Takes out every actor whose key `which` picks; one that is being started is waited for.
    pub(crate) async fn take_out(&self, which: impl Fn(&K) -> bool) -> Vec<ActorHandle<A>> {
        let picked: Vec<K> = self.actors.iter().map(|entry| entry.key().clone()).filter(|key| which(key)).collect();
        let mut taken = Vec::with_capacity(picked.len());
        for key in picked {
            match self.actors.remove(&key) {
                Some((_, Registration::Hot(hot))) => taken.push(hot),
                // Who started it finds its place gone.
                Some((_, Registration::Starting(cell))) => {
                    taken.extend(cell.get_or_try_init(|| async { Err::<_, ()>(()) }).await.ok().cloned());
                }
                None => {}
            }
        }
        taken
    }

    /// Puts a new actor under a key nobody has had.
    pub fn insert(&self, key: K, hot: ActorHandle<A>) {
        self.actors.insert(key, Registration::Hot(hot));
    }

    /// Removes the actor with these signs of life, and not its successor.
    pub fn remove(&self, key: &K, life: &Arc<ActorStatus<A::Shared>>) {
        self.actors.remove_if(key, |_, place| place.hot().is_some_and(|kept| Arc::ptr_eq(&kept.life, life)));
    }

    /// Every hot actor that `wanted` picks by its signs of life.
    pub fn select(&self, wanted: impl Fn(&ActorStatus<A::Shared>) -> bool) -> Vec<ActorHandle<A>> {
        let hot = |place: &Registration<A>| place.hot().filter(|hot| wanted(&hot.life)).cloned();
        self.actors.iter().filter_map(|entry| hot(entry.value())).collect()
    }

    /// The command as it is sent to one of these actors, and its answer.
    pub(crate) fn counted<M: Request>(&self, message: M) -> (Envelope<M>, Receiver<Outcome<M::Reply>>) {
        let (answer, answered) = ReplyTo::expected();
        (Envelope { message, answer, _waiting: self.waiting.clone() }, answered)
    }

    /// How many there are and how busy they are, about now.
    pub fn population(&self) -> Population {
        Population { hot: self.len(), waiting: self.waiting.count() }
    }

    /// Hot actors.
    pub fn len(&self) -> usize {
        self.actors.len()
    }

    /// Whether none is hot.
    pub fn is_empty(&self) -> bool {
        self.actors.is_empty()
    }
}
