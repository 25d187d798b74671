//! A hot actor, and the signs of life by which it is known whether it is needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use actix::Addr;
use hotline_persistence::journal::Seq;

use super::Registered;

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
