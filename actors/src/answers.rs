//! Delivers an actor's reply to its caller, once the state it reports is durable.
//!
//! The journal completes many replies at a time, on a thread of its own, and waking another thread is a system call. So
//! each request thread has a `CompletionQueue`: replies are queued, the first one wakes the thread, and the thread
//! delivers them all.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotline_persistence::durable::{Waiter, stopped};
use hotline_persistence::journal::Seq;
use hotline_persistence::{ChangeLog, Durable};
use tokio::sync::{Notify, oneshot};

use crate::Refusal;

thread_local! {
    static GATE: OnceCell<CompletionQueue> = const { OnceCell::new() };
}

/// The queue of replies to callers on one thread.
#[derive(Clone)]
pub(crate) struct CompletionQueue(Arc<Inner>);

#[derive(Default)]
struct Inner {
    waiting: Mutex<Vec<Box<dyn Pass>>>,
    arrived: Notify,
}

/// A queued reply.
trait Pass: Send {
    fn pass(self: Box<Self>);
}

impl CompletionQueue {
    /// Opens the queue of this thread, whose actix arbiter then delivers its replies. Once.
    pub(crate) fn open() {
        GATE.with(|gate| {
            gate.get_or_init(|| {
                let inner = Arc::new(Inner::default());
                actix::spawn(hand_out(inner.clone()));
                Self(inner)
            });
        });
    }

    /// The queue of this thread, if it has one.
    fn here() -> Option<Self> {
        GATE.with(|gate| gate.get().cloned())
    }

    fn is_here(&self) -> bool {
        GATE.with(|gate| gate.get().is_some_and(|here| Arc::ptr_eq(&here.0, &self.0)))
    }

    fn bring(&self, answer: Box<dyn Pass>) {
        let is_first = {
            let mut waiting = self.0.lock();
            waiting.push(answer);
            waiting.len() == 1
        };
        if is_first {
            self.0.arrived.notify_one();
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Vec<Box<dyn Pass>>> {
        // Nothing that can panic runs under the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hand_out(gate: Arc<Inner>) {
    loop {
        gate.arrived.notified().await;
        let waiting = std::mem::take(&mut *gate.lock());
        for answer in waiting {
            answer.pass();
        }
    }
}

/// The reply that a caller waits for.
pub type Outcome<R> = Result<R, Refusal>;

/// The recipient of the reply to one command. Dropping it without a reply reports a defect to the caller.
pub struct ReplyTo<R> {
    to: oneshot::Sender<Outcome<R>>,
    gate: Option<CompletionQueue>,
}

impl<R: Send + 'static> ReplyTo<R> {
    /// Creates the reply channel of a caller on this thread.
    pub(crate) fn expected() -> (Self, oneshot::Receiver<Outcome<R>>) {
        let (to, answered) = oneshot::channel();
        (Self { to, gate: CompletionQueue::here() }, answered)
    }

    /// Whether the caller still waits.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.to.is_closed()
    }

    /// Sends the reply.
    pub(crate) fn give(mut self, outcome: Outcome<R>) {
        match self.gate.take() {
            Some(gate) if !gate.is_here() => gate.bring(Box::new(Given { to: self.to, outcome })),
            // The receiver is gone if the caller was cancelled.
            _ => drop(self.to.send(outcome)),
        }
    }

    /// Sends the reply once an entry is durable.
    pub(crate) fn give_once(self, durable: Durable, reply: R) {
        durable.notify(Box::new(Kept { given: Given { to: self.to, outcome: Ok(reply) }, gate: self.gate }));
    }

    /// Sends the reply once everything up to `seq` is durable: state that was read must be durable before the caller
    /// sees it.
    pub(crate) fn give_after(self, log: &ChangeLog, seq: Seq, outcome: Outcome<R>) {
        if log.durable() >= seq {
            return self.give(outcome);
        }
        let log = log.clone();
        actix::spawn(async move {
            let synced = log.synced(seq).await;
            self.give(synced.map_err(Refusal::from).and(outcome));
        });
    }
}

struct Given<R> {
    to: oneshot::Sender<Outcome<R>>,
    outcome: Outcome<R>,
}

impl<R: Send> Pass for Given<R> {
    fn pass(self: Box<Self>) {
        let Self { to, outcome } = *self;
        // The receiver is gone if the caller was cancelled.
        let _ = to.send(outcome);
    }
}

/// A reply that waits until its entry is durable.
struct Kept<R> {
    given: Given<R>,
    gate: Option<CompletionQueue>,
}

impl<R: Send + 'static> Waiter for Kept<R> {
    fn told(mut self: Box<Self>, durable: bool) {
        if !durable {
            self.given.outcome = Err(stopped().into());
        }
        match self.gate.take() {
            Some(gate) if !gate.is_here() => gate.bring(self),
            _ => self.pass(),
        }
    }
}

impl<R: Send> Pass for Kept<R> {
    fn pass(self: Box<Self>) {
        let Given { to, outcome } = self.given;
        // The receiver is gone if the caller was cancelled.
        let _ = to.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix::test]
    async fn answers_from_another_thread_come_through_the_gate_in_order() {
        const ANSWERS: u32 = 1000;
        CompletionQueue::open();
        let (answers, expected): (Vec<_>, Vec<_>) = (0..ANSWERS).map(|_| ReplyTo::expected()).unzip();
        let elsewhere = std::thread::spawn(move || {
            for (number, answer) in (0..).zip(answers) {
                answer.give(Ok::<u32, _>(number));
            }
        });
        for (number, expected) in (0..).zip(expected) {
            assert_eq!(expected.await, Ok(Ok(number)));
        }
        assert!(elsewhere.join().is_ok());
    }

    #[actix::test]
    async fn a_caller_without_a_gate_is_answered_directly() {
        let (answer, expected) = ReplyTo::expected();
        answer.give(Err::<(), _>(Refusal::Gone));
        assert_eq!(expected.await, Ok(Err(Refusal::Gone)));
        let (unwanted, expected) = ReplyTo::<()>::expected();
        drop(expected);
        assert!(!unwanted.is_wanted());
    }
}
