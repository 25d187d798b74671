//! A hot actor (one in memory) and its status, which shows whether the actor is still needed.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use actix::Addr;
use hotline_persistence::journal::Seq;

use super::Registered;
use crate::clock;

/// A handle to a hot actor.
pub struct ActorHandle<A: Registered> {
    /// Its mailbox.
    pub addr: Addr<A>,
    /// Its status, which can be read without sending a message to it.
    pub status: Arc<ActorStatus<A::Shared>>,
}

impl<A: Registered> Clone for ActorHandle<A> {
    fn clone(&self) -> Self {
        Self { addr: self.addr.clone(), status: self.status.clone() }
    }
}

/// The last use of each actor is stored as the seconds since this moment, which fit into a `u32`.
static TIME_ORIGIN: LazyLock<Instant> = LazyLock::new(clock::instant);

fn seconds_at(time: Instant) -> u32 {
    u32::try_from(time.saturating_duration_since(*TIME_ORIGIN).as_secs()).unwrap_or(u32::MAX)
}

/// The status of one actor.
#[derive(Debug)]
pub struct ActorStatus<S = ()> {
    /// The last use, in seconds from [`TIME_ORIGIN`].
    last_use_s: AtomicU32,
    last_seq: AtomicU64,
    /// Whether no further use is expected soon.
    is_released: AtomicBool,
    /// State that can be read without sending a message to the actor.
    pub shared: S,
}

impl<S: Default> Default for ActorStatus<S> {
    fn default() -> Self {
        Self {
            last_use_s: AtomicU32::new(seconds_at(clock::instant())),
            last_seq: AtomicU64::new(0),
            is_released: AtomicBool::new(false),
            shared: S::default(),
        }
    }
}

impl<S> ActorStatus<S> {
    /// Records a use.
    pub fn record_use(&self) {
        self.last_use_s.store(seconds_at(clock::instant()), Ordering::Relaxed);
        if self.is_released.load(Ordering::Relaxed) {
            self.is_released.store(false, Ordering::Relaxed);
        }
    }

    /// Lets the actor retire early: its last user expects no further use soon.
    pub fn release(&self) {
        self.is_released.store(true, Ordering::Relaxed);
    }

    /// Whether the actor was released ([`ActorStatus::release`]) after its last use.
    pub fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Relaxed)
    }

    /// Seconds since the last use.
    pub fn idle_s(&self) -> u64 {
        self.idle_s_at(clock::instant())
    }

    /// Seconds from the last use to `now`, for callers that check many actors and read the clock once.
    pub fn idle_s_at(&self, now: Instant) -> u64 {
        u64::from(seconds_at(now).saturating_sub(self.last_use_s.load(Ordering::Relaxed)))
    }

    /// Records the actor's newest entry in the log.
    pub fn record_append(&self, seq: Seq) {
        self.last_seq.fetch_max(seq, Ordering::AcqRel);
    }

    /// The actor's newest entry in the log; 0 when it has none.
    pub fn last_seq(&self) -> Seq {
        self.last_seq.load(Ordering::Acquire)
    }
}
