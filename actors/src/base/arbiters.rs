//! The threads on which actors run.

use actix::{Arbiter, ArbiterHandle};
use parking_lot::RwLock;
use tokio::sync::oneshot;

/// The threads that run actors. Once request threads are added, actors run on those, so that a command and its answer
/// often stay on one thread. Until then, and in a process that serves no requests, actors run on its initial
/// threads.
pub(crate) struct ArbiterPool {
    initial_threads: Vec<ArbiterHandle>,
    /// Whether the pool started `initial_threads`, and so must stop them.
    owns_threads: bool,
    request_threads: RwLock<Vec<ArbiterHandle>>,
}

impl ArbiterPool {
    /// Starts `count` threads; with 0, actors run on the calling thread.
    pub(crate) fn start(count: usize) -> Self {
        let initial_threads = match count {
            0 => vec![Arbiter::current()],
            count => (0..count).map(|_| Arbiter::new().handle()).collect(),
        };
        Self { initial_threads, owns_threads: count > 0, request_threads: RwLock::default() }
    }

    /// Adds the current thread, which serves requests, to the pool.
    pub(crate) fn add_current_thread(&self) {
        let mut request_threads = self.request_threads.write();
        request_threads.retain(ArbiterHandle::alive);
        request_threads.push(Arbiter::current());
    }

    /// The thread of the actor with this id.
    pub(crate) fn of(&self, id: i64) -> ArbiterHandle {
        let index = |len: usize| usize::try_from(id.unsigned_abs()).unwrap_or(0) % len.max(1);
        let request_threads = self.request_threads.read();
        match request_threads.get(index(request_threads.len())) {
            Some(arbiter) if arbiter.alive() => arbiter.clone(),
            _ => self.initial_threads[index(self.initial_threads.len())].clone(),
        }
    }

    /// Runs a closure on the thread of the actor with this id; actors there do not interrupt it. Returns false if that
    /// thread has ended.
    pub(crate) fn run(&self, id: i64, work: impl FnOnce() + Send + 'static) -> bool {
        self.of(id).spawn_fn(work)
    }

    /// Stops the threads that the pool has started.
    pub(crate) fn stop(&self) {
        if self.owns_threads {
            for arbiter in &self.initial_threads {
                arbiter.stop();
            }
        }
    }

    /// Waits until every actor has finished the message that it is handling now. An actor reads the directory and
    /// appends its decision while it handles one message, so all decisions from an older directory are then in the log.
    pub(crate) async fn wait_for_current_messages(&self) {
        let arbiters: Vec<ArbiterHandle> =
            self.request_threads.read().iter().chain(&self.initial_threads).cloned().collect();
        let mut pending = Vec::with_capacity(arbiters.len());
        for arbiter in arbiters {
            let (signal, receiver) = oneshot::channel();
            // The receiver was dropped if the caller was canceled.
            let send_signal = move || {
                let _ = signal.send(());
            };
            // A thread that has ended runs no actor.
            if arbiter.spawn_fn(send_signal) {
                pending.push(receiver);
            }
        }
        for receiver in pending {
            let _ = receiver.await;
        }
    }
}
