//! Notifies waiters when an entry is durable.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::{Error, Result};

/// Waits for one entry.
///
/// It is called on the thread that makes entries durable, which serves everybody: it must be quick and must not panic.
pub trait Waiter: Send {
    /// `durable`: the entry is durable. Otherwise the log has stopped, and whether the entry was stored is unknown.
    fn told(self: Box<Self>, durable: bool);
}

enum Latch {
    Waiting(Option<Box<dyn Waiter>>),
    Over { durable: bool },
}

type Shared = Arc<Mutex<Latch>>;

/// A future for the durability of an entry.
pub struct Durable(Option<Shared>);

/// The other side, which reports that the entry is durable. Dropped without [`Synced::reached`], it reports that the
/// log stopped.
pub(crate) struct Synced(Shared);

impl Durable {
    /// For an entry that is durable as soon as it is appended.
    pub(crate) fn already() -> Self {
        Self(None)
    }

    /// For an entry that is not durable yet.
    pub(crate) fn pending() -> (Synced, Self) {
        let latch = Arc::new(Mutex::new(Latch::Waiting(None)));
        (Synced(latch.clone()), Self(Some(latch)))
    }

    /// Registers `waiter`; calls it at once if there is nothing to wait for.
    pub fn notify(self, waiter: Box<dyn Waiter>) {
        let durable = match self.0 {
            None => true,
            Some(latch) => match &mut *lock(&latch) {
                Latch::Waiting(slot) => {
                    *slot = Some(waiter);
                    return;
                }
                Latch::Over { durable } => *durable,
            },
        };
        waiter.told(durable);
    }

    /// Waits until the entry is durable.
    ///
    /// # Errors
    /// [`Error::Unknown`] when the log stopped earlier.
    pub async fn reached(self) -> Result<()> {
        let (told, durable) = oneshot::channel();
        self.notify(Box::new(Task(told)));
        match durable.await {
            Ok(true) => Ok(()),
            _ => Err(stopped()),
        }
    }
}

/// The error when the log stopped before an entry was known to be durable.
pub fn stopped() -> Error {
    Error::Unknown("the log has stopped".to_owned())
}

struct Task(oneshot::Sender<bool>);

impl Waiter for Task {
    fn told(self: Box<Self>, durable: bool) {
        // The caller may have gone away.
        let _ = self.0.send(durable);
    }
}

impl Synced {
    /// The entry is durable.
    pub(crate) fn reached(self) {
        self.settle(true);
    }

    fn settle(&self, durable: bool) {
        let over = Latch::Over { durable };
        let waiter = match std::mem::replace(&mut *lock(&self.0), over) {
            Latch::Waiting(waiter) => waiter,
            Latch::Over { .. } => None,
        };
        if let Some(waiter) = waiter {
            waiter.told(durable);
        }
    }
}

impl Drop for Synced {
    fn drop(&mut self) {
        let is_open = matches!(&*lock(&self.0), Latch::Waiting(_));
        if is_open {
            self.settle(false);
        }
    }
}

fn lock(latch: &Mutex<Latch>) -> MutexGuard<'_, Latch> {
    // Nothing that can panic runs under the lock.
    latch.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_asks_early_or_late_is_told_what_became_of_it() {
        for early in [true, false] {
            for kept in [true, false] {
                let (synced, durable) = Durable::pending();
                let end = move || if kept { synced.reached() } else { drop(synced) };
                let waiting = if early {
                    let waiting = tokio::spawn(durable.reached());
                    tokio::task::yield_now().await;
                    end();
                    waiting
                } else {
                    end();
                    tokio::spawn(durable.reached())
                };
                assert_eq!(waiting.await.expect("no panic").is_ok(), kept, "early: {early}");
            }
        }
        assert!(Durable::already().reached().await.is_ok());
    }
}
