//! Delivers an actor's reply to its caller, once the state it reports is durable.
//!
//! The journal completes many replies at a time, on a thread of its own, and waking another thread is a system call. So
//! each request thread has a `CompletionQueue`: replies are queued, the first one wakes the thread, and the thread
//! delivers them all.

use std::cell::OnceCell;
use std::sync::Arc;

use hotline_persistence::durable::{Waiter, log_stopped};
use hotline_persistence::journal::Seq;
use hotline_persistence::{ChangeLog, Durable};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::Refusal;

thread_local! {
    static QUEUE: OnceCell<CompletionQueue> = const { OnceCell::new() };
}

/// The queue of replies to callers on one thread.
#[derive(Clone)]
pub(crate) struct CompletionQueue(Arc<QueueState>);

#[derive(Default)]
struct QueueState {
    waiting: Mutex<Vec<Box<dyn Deliver>>>,
    arrived: Notify,
}

/// A queued reply.
trait Deliver: Send {
    fn deliver(self: Box<Self>);
}

impl CompletionQueue {
    /// Opens the queue of this thread, unless it is open. The thread's actix arbiter delivers the replies.
    pub(crate) fn open() {
        QUEUE.with(|queue| {
            queue.get_or_init(|| {
                let inner = Arc::new(QueueState::default());
                actix::spawn(deliver_all(inner.clone()));
                Self(inner)
            });
        });
    }

    /// The queue of this thread, if it has one.
    fn current() -> Option<Self> {
        QUEUE.with(|queue| queue.get().cloned())
    }

    fn is_current(&self) -> bool {
        QUEUE.with(|queue| queue.get().is_some_and(|current| Arc::ptr_eq(&current.0, &self.0)))
    }

    fn push(&self, reply: Box<dyn Deliver>) {
        let is_first = {
            let mut waiting = self.0.waiting.lock();
            waiting.push(reply);
            waiting.len() == 1
        };
        if is_first {
            self.0.arrived.notify_one();
        }
    }
}

async fn deliver_all(queue: Arc<QueueState>) {
    loop {
        queue.arrived.notified().await;
        let waiting = std::mem::take(&mut *queue.waiting.lock());
        for reply in waiting {
            reply.deliver();
        }
    }
}

/// The reply that a caller waits for.
pub type Outcome<R> = Result<R, Refusal>;

/// The recipient of the reply to one command. Dropping it without a reply reports a defect to the caller.
pub struct ReplyTo<R> {
    to: oneshot::Sender<Outcome<R>>,
    /// The queue of the caller's thread. Without one, or when already on that thread, the reply is sent directly.
    queue: Option<CompletionQueue>,
}

impl<R: Send + 'static> ReplyTo<R> {
    /// Creates the reply channel of a caller on this thread.
    pub(crate) fn channel() -> (Self, oneshot::Receiver<Outcome<R>>) {
        let (to, receiver) = oneshot::channel();
        (Self { to, queue: CompletionQueue::current() }, receiver)
    }

    /// Whether the caller still waits.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.to.is_closed()
    }

    /// Sends the reply.
    pub(crate) fn send(mut self, outcome: Outcome<R>) {
        match self.queue.take() {
            Some(queue) if !queue.is_current() => queue.push(Box::new(Reply { to: self.to, outcome })),
            // The receiver was dropped if the caller was canceled.
            _ => drop(self.to.send(outcome)),
        }
    }

    /// Sends the reply once an entry is durable.
    pub(crate) fn send_when_durable(self, durable: Durable, reply: R) {
        durable.notify(Box::new(DurableReply { reply: Reply { to: self.to, outcome: Ok(reply) }, queue: self.queue }));
    }

    /// Sends the reply once everything up to `seq` is durable: state that was read must be durable before the caller
    /// sees it.
    pub(crate) fn send_after(self, log: &ChangeLog, seq: Seq, outcome: Outcome<R>) {
        if log.durable() >= seq {
            return self.send(outcome);
        }
        let log = log.clone();
        actix::spawn(async move {
            let synced = log.wait_until_durable(seq).await;
            self.send(synced.map_err(Refusal::from).and(outcome));
        });
    }
}

struct Reply<R> {
    to: oneshot::Sender<Outcome<R>>,
    outcome: Outcome<R>,
}

impl<R: Send> Deliver for Reply<R> {
    fn deliver(self: Box<Self>) {
        let Self { to, outcome } = *self;
        // The receiver was dropped if the caller was canceled.
        let _ = to.send(outcome);
    }
}

/// A reply that waits until its entry is durable.
struct DurableReply<R> {
    reply: Reply<R>,
    queue: Option<CompletionQueue>,
}

impl<R: Send + 'static> Waiter for DurableReply<R> {
    fn wake(mut self: Box<Self>, is_durable: bool) {
        if !is_durable {
            self.reply.outcome = Err(log_stopped().into());
        }
        match self.queue.take() {
            Some(queue) if !queue.is_current() => queue.push(self),
            _ => self.deliver(),
        }
    }
}

impl<R: Send> Deliver for DurableReply<R> {
    fn deliver(self: Box<Self>) {
        let Reply { to, outcome } = self.reply;
        // The receiver was dropped if the caller was canceled.
        let _ = to.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix::test]
    async fn replies_from_another_thread_are_delivered_in_order() {
        const COUNT: u32 = 1000;
        CompletionQueue::open();
        let (replies, receivers): (Vec<_>, Vec<_>) = (0..COUNT).map(|_| ReplyTo::channel()).unzip();
        let thread = std::thread::spawn(move || {
            for (number, reply_to) in (0..).zip(replies) {
                reply_to.send(Ok::<u32, _>(number));
            }
        });
        for (number, receiver) in (0..).zip(receivers) {
            assert_eq!(receiver.await, Ok(Ok(number)));
        }
        assert!(thread.join().is_ok());
    }

    #[actix::test]
    async fn a_caller_without_a_queue_gets_its_reply_directly() {
        let (reply_to, receiver) = ReplyTo::channel();
        reply_to.send(Err::<(), _>(Refusal::Retired));
        assert_eq!(receiver.await, Ok(Err(Refusal::Retired)));
        let (canceled, receiver) = ReplyTo::<()>::channel();
        drop(receiver);
        assert!(!canceled.is_awaited());
    }
}
