//! The queue of pushes to a visitor's socket, bounded by number and by bytes, per socket and in total.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{DateTime, Utc};
use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::watch;

use crate::webchat::watch::Push;

/// Maximum pushes that wait for one socket. A browser that falls further behind is disconnected and catches up from the
/// tables, so that its backlog takes no memory.
pub const PUSHES_MAX: usize = 64;

/// Maximum bytes that wait for one socket: sixteen messages of the maximum length. A single push may be larger.
pub const PUSH_BYTES_MAX: usize = 1 << 20;

/// Maximum bytes that wait for all sockets of the process.
pub const ALL_PUSH_BYTES_MAX: usize = 16 << 20;

/// Bytes that each socket may have queued even if the total is reached, so that slow readers do not affect readers who
/// keep up.
const SLACK_BYTES: usize = 16 << 10;

/// Bytes of a push without its texts.
const BASE_BYTES: usize = 512;

static TOTAL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The queue of a socket.
pub fn push_channel() -> (PushSender, PushReceiver) {
    // Not tokio's channel, which takes 2 KiB even while it is empty.
    let (sender, receiver) = unbounded();
    let (end_sender, end_receiver) = watch::channel(None);
    (
        PushSender { queue: sender, queue_size: Arc::default(), end_sender },
        PushReceiver { queue: receiver, end_receiver },
    )
}

/// The sending end of a socket's queue, used by its session.
#[derive(Clone)]
pub struct PushSender {
    queue: UnboundedSender<QueuedPush>,
    queue_size: Arc<QueueSize>,
    /// Sends the time at which the session ended.
    end_sender: watch::Sender<Option<DateTime<Utc>>>,
}

/// The receiving end of a socket's queue.
pub struct PushReceiver {
    queue: UnboundedReceiver<QueuedPush>,
    end_receiver: watch::Receiver<Option<DateTime<Utc>>>,
}

struct QueuedPush {
    push: Push,
    _place: QueuePlace,
}

/// The size of a queue.
#[derive(Default)]
struct QueueSize {
    pushes: AtomicUsize,
    bytes: AtomicUsize,
}

/// The place of a push in a queue; dropping it frees the place.
struct QueuePlace {
    bytes: usize,
    queue_size: Arc<QueueSize>,
}

/// Why a push cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PushError {
    /// The queue is full, or the total of all queues is reached.
    Full,
    /// The socket is closed.
    Closed,
}

impl PushSender {
    /// Adds a push of this size. If it is the end of the session, the socket learns of it even if the queue is full.
    pub(super) fn add(&self, push: &Push, bytes: usize) -> Result<(), PushError> {
        if let Push::Ended(at) = push {
            self.end_sender.send_replace(Some(*at));
        }
        // Only the session's actor adds pushes, so the queue cannot grow between these checks and the addition.
        let (queued_bytes, total_bytes) =
            (self.queue_size.bytes.load(Ordering::Relaxed), TOTAL_BYTES.load(Ordering::Relaxed));
        let is_full = self.queue_size.pushes.load(Ordering::Relaxed) >= PUSHES_MAX
            || queued_bytes > 0 && queued_bytes + bytes > PUSH_BYTES_MAX;
        let exceeds_total = queued_bytes > SLACK_BYTES && total_bytes + bytes > ALL_PUSH_BYTES_MAX;
        if is_full || exceeds_total {
            return Err(PushError::Full);
        }
        let place = QueuePlace::reserve(self.queue_size.clone(), bytes);
        let added = self.queue.unbounded_send(QueuedPush { push: push.clone(), _place: place });
        added.map_err(|_| PushError::Closed)
    }
}

impl PushReceiver {
    /// The next push; `None` once the session has dropped its sender.
    pub async fn next(&mut self) -> Option<Push> {
        self.queue.next().await.map(|queued_push| queued_push.push)
    }

    /// The next push, if there is one now.
    pub fn next_now(&mut self) -> Option<Push> {
        self.queue.try_recv().ok().map(|queued_push| queued_push.push)
    }

    /// Receives the time at which the session ended, even if the socket does not take pushes yet.
    pub fn end_receiver(&self) -> watch::Receiver<Option<DateTime<Utc>>> {
        self.end_receiver.clone()
    }
}

impl QueuePlace {
    fn reserve(queue_size: Arc<QueueSize>, bytes: usize) -> Self {
        queue_size.pushes.fetch_add(1, Ordering::Relaxed);
        queue_size.bytes.fetch_add(bytes, Ordering::Relaxed);
        TOTAL_BYTES.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes, queue_size }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.queue_size.pushes.fetch_sub(1, Ordering::Relaxed);
        self.queue_size.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        TOTAL_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The approximate size of a push.
pub(super) fn bytes_of(push: &Push) -> usize {
    let Push::Message(row) = push else { return BASE_BYTES };
    let document_bytes = [&row.interactive, &row.template].into_iter().flatten().map(text_bytes).sum::<usize>();
    BASE_BYTES + row.body.as_ref().map_or(0, String::len) + document_bytes
}

/// The bytes of a document's texts and field names, without serializing it.
fn text_bytes(document: &Value) -> usize {
    match document {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + text_bytes(value)).sum(),
        _ => size_of::<Value>(),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    fn typing() -> Push {
        Push::Typing { agent: None, typing: true }
    }

    #[tokio::test]
    async fn pushes_are_bounded_by_number_by_bytes_and_in_total() {
        let push = typing();
        // By number.
        let (sender, mut receiver) = push_channel();
        for _ in 0..PUSHES_MAX {
            sender.add(&push, 1).expect("room");
        }
        assert_eq!(sender.add(&push, 1), Err(PushError::Full));
        assert!(receiver.next().await.is_some());
        sender.add(&push, 1).expect("room for the push that was taken");
        // By bytes.
        let (large, mut large_receiver) = push_channel();
        large.add(&push, PUSH_BYTES_MAX + 1).expect("a single push may be larger");
        assert_eq!(large.add(&push, 1), Err(PushError::Full));
        assert!(large_receiver.next().await.is_some() && large_receiver.next_now().is_none());
        assert_eq!(large.queue_size.bytes.load(Ordering::Relaxed), 0, "a push that was taken is not counted");
        large.add(&push, PUSH_BYTES_MAX / 2).expect("room");
        // In total.
        let (largest, largest_receiver) = push_channel();
        largest.add(&push, ALL_PUSH_BYTES_MAX).expect("a single push may be larger");
        assert_eq!(large.add(&push, 1), Err(PushError::Full), "above its slack, a socket is limited by the total");
        let (small, small_receiver) = push_channel();
        for _ in 0..4 {
            small.add(&push, SLACK_BYTES / 4).expect("up to its slack, a socket is not limited by the total");
        }
        drop((largest_receiver, small_receiver));
        large.add(&push, 1).expect("dropped queues are not counted");
        assert_eq!(largest.add(&push, 1), Err(PushError::Closed));
        let (session, mut socket) = push_channel();
        drop(session);
        assert!(socket.next().await.is_none(), "the session has dropped its sender");
    }

    #[test]
    fn the_end_is_known_before_the_queue_is_read() {
        let (sender, receiver) = push_channel();
        let end_receiver = receiver.end_receiver();
        for _ in 0..PUSHES_MAX {
            sender.add(&typing(), 1).expect("room");
        }
        assert_eq!(*end_receiver.borrow(), None);
        let at = DateTime::UNIX_EPOCH;
        assert_eq!(sender.add(&Push::Ended(at), 1), Err(PushError::Full));
        assert_eq!(*end_receiver.borrow(), Some(at));
    }

    #[test]
    fn the_size_of_a_document_is_that_of_its_texts_and_field_names() {
        let document = serde_json::json!({"text": "hello", "rows": ["one", "two"]});
        assert_eq!(text_bytes(&document), 4 + 5 + 4 + 6);
        assert_eq!(bytes_of(&typing()), BASE_BYTES);
    }
}
