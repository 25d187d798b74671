//! Which actors are hot: found by key, started once per key, removed when they retire.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Handler, Message};
use foldhash::fast::RandomState;
use hotline_persistence::journal::Seq;
use tokio::sync::OnceCell;
use tokio::sync::oneshot::Receiver;

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

/// A hot actor.
pub struct ActorHandle<A: Registered> {
    /// Where it takes its messages.
    pub addr: Addr<A>,
    /// What others may know of it without asking.
    pub life: Arc<ActorStatus<A::Shared>>,
}

impl<A: Registered> Clone for ActorHandle<A> {
    fn clone(&self) -> Self {
        Self { addr: self.addr.clone(), life: self.life.clone() }
    }
}

/// The signs of life of one actor.
#[derive(Debug)]
pub struct ActorStatus<O = ()> {
    started: Instant,
    /// Seconds after `started` when it was last asked something.
    used_s: AtomicU32,
    last_seq: AtomicU64,
    /// Nobody is expected to ask it anything.
    is_let_go: AtomicBool,
    /// What others may read of it without asking.
    pub shared: O,
}

impl<O: Default> Default for ActorStatus<O> {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            used_s: AtomicU32::new(0),
            last_seq: AtomicU64::new(0),
            is_let_go: AtomicBool::new(false),
            shared: O::default(),
        }
    }
}

impl<O> ActorStatus<O> {
    /// Notes a use.
    pub fn used(&self) {
        let seconds = u32::try_from(self.started.elapsed().as_secs()).unwrap_or(u32::MAX);
        self.used_s.store(seconds, Ordering::Relaxed);
        if self.is_let_go.load(Ordering::Relaxed) {
            self.is_let_go.store(false, Ordering::Relaxed);
        }
    }

    /// Notes that it may make room before it has long been idle: whoever used it last expects nobody after.
    pub fn let_go(&self) {
        self.is_let_go.store(true, Ordering::Relaxed);
    }

    /// Whether nobody has used it since it was let go.
    pub fn is_let_go(&self) -> bool {
        self.is_let_go.load(Ordering::Relaxed)
    }

    /// Seconds since the last use.
    pub fn idle_s(&self) -> u64 {
        self.idle_s_at(Instant::now())
    }

    /// Seconds from the last use to this moment: who asks many of them looks at the clock once.
    pub fn idle_s_at(&self, now: Instant) -> u64 {
        let lived_s = now.saturating_duration_since(self.started).as_secs();
        lived_s.saturating_sub(u64::from(self.used_s.load(Ordering::Relaxed)))
    }

    /// Notes the actor's newest entry in the log.
    pub fn appended(&self, seq: Seq) {
        self.last_seq.fetch_max(seq, Ordering::AcqRel);
    }

    /// The actor's newest entry in the log; 0 when it has made none.
    pub fn last_seq(&self) -> Seq {
        self.last_seq.load(Ordering::Acquire)
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

#[cfg(test)]
mod tests {
    use actix::{Context, Handler};

    use super::*;

    /// Stands still at the first command until it is let go.
    struct Stuck(std::sync::mpsc::Receiver<()>);

    impl Actor for Stuck {
        type Context = Context<Self>;
    }

    impl Registered for Stuck {
        type Shared = ();
    }

    #[derive(Message)]
    #[rtype(result = "Result<(), Refusal>")]
    struct Work;

    impl Handler<Envelope<Work>> for Stuck {
        type Result = ();

        fn handle(&mut self, work: Envelope<Work>, _: &mut Self::Context) {
            let Some((Work, answer)) = work.taken() else { return };
            let _ = self.0.recv();
            answer.give(Ok(()));
        }
    }

    #[actix::test]
    async fn a_command_waits_until_it_is_taken_or_nobody_can_take_it() {
        let registry = Registry::<u8, Stuck>::default();
        let (go, told) = std::sync::mpsc::channel();
        let arbiter = actix::Arbiter::new();
        let stuck = Stuck::start_in_arbiter(&arbiter.handle(), |cx| {
            cx.set_mailbox_capacity(1);
            Stuck(told)
        });
        let waiting = || registry.population().waiting;
        let settle = async |count: usize| {
            while waiting() != count {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        // The first is taken; those after it are sent, and two of their callers go away.
        let send = || {
            let (work, answered) = registry.counted(Work);
            let sent = stuck.send(work);
            tokio::spawn(async move {
                sent.await.ok()?;
                answered.await.ok()
            })
        };
        let first = send();
        settle(0).await;
        let others: Vec<_> = (0..5).map(|_| send()).collect();
        assert_eq!(waiting(), 5);
        for gone in &others[3..] {
            gone.abort();
        }
        // What lies in the mailbox already stays there until the actor comes to it.
        drop(go);
        settle(0).await;
        assert!(matches!(first.await, Ok(Some(Ok(())))));
        // And an actor that has ended leaves nothing behind.
        arbiter.stop();
        assert!(arbiter.join().is_ok());
        drop(send().await);
        assert_eq!(waiting(), 0);
    }

    fn hot() -> ActorHandle<Stuck> {
        let (_, told) = std::sync::mpsc::channel();
        ActorHandle { addr: Stuck(told).start(), life: Arc::default() }
    }

    #[actix::test]
    async fn however_many_ask_one_load_runs_and_a_failed_one_leaves_nothing() {
        let registry = Registry::<u8, Stuck>::default();
        let (loads, go) = (AtomicU32::new(0), tokio::sync::Notify::new());
        let load = || async {
            loads.fetch_add(1, Ordering::Relaxed);
            go.notified().await;
            Ok(hot())
        };
        let ask = || registry.get_or_start(&7, load);
        let let_go = async {
            assert!(registry.look(&7, |_| Some(())).is_none(), "nobody sees it before it is there");
            go.notify_one();
        };
        let (first, second, ()) = tokio::join!(ask(), ask(), let_go);
        let (Ok(first), Ok(second)) = (first, second) else { panic!("it does not start") };
        assert!(Arc::ptr_eq(&first.life, &second.life) && loads.load(Ordering::Relaxed) == 1);
        assert!(registry.actors.get(&7).is_some_and(|place| matches!(*place, Registration::Hot(_))));
        // A successor is not removed for the one before it.
        registry.remove(&7, &hot().life);
        assert_eq!(registry.len(), 1);
        registry.remove(&7, &first.life);
        assert!(registry.is_empty());

        let refused = || async { Err(Refusal::NotFound) };
        let (first, second) = tokio::join!(registry.get_or_start(&8, refused), registry.get_or_start(&8, refused));
        assert!(first.is_err() && second.is_err());
        assert!(registry.is_empty());
    }

    #[actix::test]
    async fn an_actor_that_is_taken_out_while_it_starts_is_nobodys_and_the_next_one_starts() {
        let registry = Registry::<u8, Stuck>::default();
        let (loads, go) = (AtomicU32::new(0), tokio::sync::Semaphore::new(0));
        let load = || async {
            loads.fetch_add(1, Ordering::Relaxed);
            if let Ok(turn) = go.acquire().await {
                turn.forget();
            }
            Ok(hot())
        };
        registry.insert(8, hot());
        let take_out = async {
            assert_eq!(loads.load(Ordering::Relaxed), 1, "it starts");
            go.add_permits(2);
            registry.take_out(|key| *key == 7).await
        };
        let (asked, taken) = tokio::join!(registry.get_or_start(&7, load), take_out);
        let Ok(asked) = asked else { panic!("it does not start") };
        assert_eq!((taken.len(), loads.load(Ordering::Relaxed), registry.len()), (1, 2, 2));
        assert!(!Arc::ptr_eq(&asked.life, &taken[0].life), "two would serve under one key");
        assert!(registry.get(&7).is_some_and(|found| Arc::ptr_eq(&found.life, &asked.life)));
        assert_eq!(registry.take_out(|_| true).await.len(), 2);
        assert!(registry.is_empty());
    }
}
