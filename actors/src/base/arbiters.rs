//! The threads actors live on.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use actix::{Arbiter, ArbiterHandle};
use tokio::sync::oneshot;

/// Threads that run actors: those that serve requests, once they are there, so that a command and its answer often
/// stay on one thread; until then, and where nothing is served, threads of their own.
pub(crate) struct ArbiterPool {
    own: Vec<ArbiterHandle>,
    /// Whether `own` were started here, and are to be stopped.
    started: bool,
    serving: RwLock<Vec<ArbiterHandle>>,
}

impl ArbiterPool {
    /// Starts `count` threads; with none, the thread this is called on stands in.
    pub(crate) fn start(count: usize) -> Self {
        let own = match count {
            0 => vec![Arbiter::current()],
            count => (0..count).map(|_| Arbiter::new().handle()).collect(),
        };
        Self { own, started: count > 0, serving: RwLock::default() }
    }

    fn serving(&self) -> RwLockReadGuard<'_, Vec<ArbiterHandle>> {
        self.serving.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the current thread, which serves requests, a home.
    pub(crate) fn join(&self) {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        serving.retain(ArbiterHandle::alive);
        serving.push(Arbiter::current());
    }

    /// Where the actor with this id lives.
    pub(crate) fn of(&self, id: i64) -> ArbiterHandle {
        let index = |len: usize| usize::try_from(id.unsigned_abs()).unwrap_or(0) % len.max(1);
        let serving = self.serving();
        match serving.get(index(serving.len())) {
            Some(home) if home.alive() => home.clone(),
            _ => self.own[index(self.own.len())].clone(),
        }
    }

    /// Does something on the thread with this id, in one go, as an actor there would. False: that thread has ended.
    pub(crate) fn run(&self, id: i64, work: impl FnOnce() + Send + 'static) -> bool {
        self.of(id).spawn_fn(work)
    }

    /// Stops the threads of their own.
    pub(crate) fn stop(&self) {
        if self.started {
            for home in &self.own {
                home.stop();
            }
        }
    }

    /// Waits until every actor has ended what it was doing: an actor looks into the directory and appends what it
    /// decides in one go, so what comes after is decided by what the directory holds now, and what came before is in
    /// the log.
    pub(crate) async fn pass(&self) {
        let homes: Vec<ArbiterHandle> = self.serving().iter().chain(&self.own).cloned().collect();
        let mut passing = Vec::with_capacity(homes.len());
        for home in homes {
            let (here, passed) = oneshot::channel();
            // Nobody waits any more when the caller has gone.
            let pass = move || {
                let _ = here.send(());
            };
            // On a thread that has ended nothing goes on.
            if home.spawn_fn(pass) {
                passing.push(passed);
            }
        }
        for passed in passing {
            let _ = passed.await;
        }
    }
}
