//! The threads on which actors run.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use actix::{Arbiter, ArbiterHandle};
use tokio::sync::oneshot;

/// The threads that run actors. Once request threads have joined, actors run on those, so that a command and its answer
/// often stay on one thread. Until then, and in a process that serves no requests, actors run on threads of the pool's
/// own.
pub(crate) struct ArbiterPool {
    own: Vec<ArbiterHandle>,
    /// Whether the pool started `own`, and so must stop them.
    started: bool,
    serving: RwLock<Vec<ArbiterHandle>>,
}

impl ArbiterPool {
    /// Starts `count` threads; with 0, actors run on the calling thread.
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

    /// Adds the current thread, which serves requests, to the pool.
    pub(crate) fn join(&self) {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        serving.retain(ArbiterHandle::alive);
        serving.push(Arbiter::current());
    }

    /// The thread of the actor with this id.
    pub(crate) fn of(&self, id: i64) -> ArbiterHandle {
        let index = |len: usize| usize::try_from(id.unsigned_abs()).unwrap_or(0) % len.max(1);
        let serving = self.serving();
        match serving.get(index(serving.len())) {
            Some(home) if home.alive() => home.clone(),
            _ => self.own[index(self.own.len())].clone(),
        }
    }

    /// Runs a closure on the thread of this id without interruption, as an actor there would. False: that thread has
    /// ended.
    pub(crate) fn run(&self, id: i64, work: impl FnOnce() + Send + 'static) -> bool {
        self.of(id).spawn_fn(work)
    }

    /// Stops the pool's own threads.
    pub(crate) fn stop(&self) {
        if self.started {
            for home in &self.own {
                home.stop();
            }
        }
    }

    /// Waits until every actor has finished its current message. An actor reads the directory and appends its decision
    /// without interruption. So earlier decisions are in the log on return, and later ones use the directory as it is
    /// now.
    pub(crate) async fn pass(&self) {
        let homes: Vec<ArbiterHandle> = self.serving().iter().chain(&self.own).cloned().collect();
        let mut passing = Vec::with_capacity(homes.len());
        for home in homes {
            let (here, passed) = oneshot::channel();
            // The receiver is gone if the caller was cancelled.
            let pass = move || {
                let _ = here.send(());
            };
            // A thread that has ended runs no actor.
            if home.spawn_fn(pass) {
                passing.push(passed);
            }
        }
        for passed in passing {
            let _ = passed.await;
        }
    }
}
