//! Notifies waiters when an entry is durable.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{Error, Result};

/// Waits for one entry.
///
/// [`Waiter::wake`] runs on the thread that makes entries durable, which serves all companies: it must be quick and
/// must not panic.
pub trait Waiter: Send {
    /// `is_durable`: whether the entry is durable. If not, the log has stopped, and it is unknown whether the entry was
    /// stored.
    fn wake(self: Box<Self>, is_durable: bool);
}

enum Latch {
    Pending(Option<Box<dyn Waiter>>),
    Settled { is_durable: bool },
}

type SharedLatch = Arc<Mutex<Latch>>;

/// Waits for an entry to become durable: as a future ([`Durable::wait`]), or with a [`Waiter`].
pub struct Durable(SharedLatch);

/// The other side of [`Durable`], which reports that the entry is durable. Dropped without [`SyncSignal::complete`], it
/// reports that the log has stopped.
pub(crate) struct SyncSignal(SharedLatch);

impl Durable {
    /// The two sides for an entry that is not durable yet.
    pub(crate) fn pending() -> (SyncSignal, Self) {
        let latch = Arc::new(Mutex::new(Latch::Pending(None)));
        (SyncSignal(latch.clone()), Self(latch))
    }

    /// Registers `waiter`; calls it at once if the outcome is known.
    pub fn notify(self, waiter: Box<dyn Waiter>) {
        let is_durable = match &mut *self.0.lock() {
            Latch::Pending(registered_waiter) => {
                *registered_waiter = Some(waiter);
                return;
            }
            Latch::Settled { is_durable } => *is_durable,
        };
        waiter.wake(is_durable);
    }

    /// Waits until the entry is durable.
    ///
    /// # Errors
    /// [`Error::Unknown`] when the log stopped before the entry was known to be durable.
    pub async fn wait(self) -> Result<()> {
        let (sender, receiver) = oneshot::channel();
        self.notify(Box::new(OneshotWaiter(sender)));
        match receiver.await {
            Ok(true) => Ok(()),
            _ => Err(log_stopped()),
        }
    }
}

/// The error when the log stopped before an entry was known to be durable.
pub fn log_stopped() -> Error {
    Error::Unknown("the log has stopped".to_owned())
}

struct OneshotWaiter(oneshot::Sender<bool>);

impl Waiter for OneshotWaiter {
    fn wake(self: Box<Self>, is_durable: bool) {
        // The caller of `Durable::wait` may have been canceled.
        let _ = self.0.send(is_durable);
    }
}

impl SyncSignal {
    /// Reports that the entry is durable.
    pub(crate) fn complete(self) {
        self.settle(true);
    }

    fn settle(&self, is_durable: bool) {
        let waiter = match std::mem::replace(&mut *self.0.lock(), Latch::Settled { is_durable }) {
            Latch::Pending(waiter) => waiter,
            Latch::Settled { .. } => None,
        };
        if let Some(waiter) = waiter {
            waiter.wake(is_durable);
        }
    }
}

impl Drop for SyncSignal {
    fn drop(&mut self) {
        let is_pending = matches!(&*self.0.lock(), Latch::Pending(_));
        if is_pending {
            self.settle(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_waiter_learns_the_outcome_whenever_it_registers() {
        for waits_first in [true, false] {
            for is_synced in [true, false] {
                let (signal, durable) = Durable::pending();
                let settle = move || if is_synced { signal.complete() } else { drop(signal) };
                let task = if waits_first {
                    let task = tokio::spawn(durable.wait());
                    tokio::task::yield_now().await;
                    settle();
                    task
                } else {
                    settle();
                    tokio::spawn(durable.wait())
                };
                assert_eq!(task.await.expect("no panic").is_ok(), is_synced, "waits first: {waits_first}");
            }
        }
    }
}
