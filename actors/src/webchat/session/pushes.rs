//! What waits for a visitor's socket: bounded by number and by bytes, of the socket and of all sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::webchat::watch::Push;

/// Maximum pushes that wait for one socket. A browser that is further behind should catch up from the tables, which
/// needs no memory here.
pub const PUSHES_MAX: usize = 64;

/// Maximum bytes of them: sixteen messages of the longest text. One push may be larger.
pub const PUSH_BYTES_MAX: usize = 1 << 20;

/// Maximum bytes that wait for all sockets of the process.
pub const ALL_PUSH_BYTES_MAX: usize = 16 << 20;

/// Bytes up to which a socket may have another push although all have as much as they may: a reader who keeps up does not
/// notice those who do not.
const LITTLE_BYTES: usize = 16 << 10;

/// A push without its texts.
const BASE_BYTES: usize = 512;

static ALL: AtomicUsize = AtomicUsize::new(0);

/// The queue of a socket.
pub fn pushes() -> (Pushes, Pushed) {
    let (sender, receiver) = mpsc::channel(PUSHES_MAX);
    let (end, ended) = watch::channel(None);
    (Pushes { queue: sender, bytes: Arc::default(), end }, Pushed { queue: receiver, ended })
}

/// The end of a socket's queue that its session pushes to.
#[derive(Clone)]
pub struct Pushes {
    queue: mpsc::Sender<Waiting>,
    /// Of this socket.
    bytes: Arc<AtomicUsize>,
    end: watch::Sender<Option<DateTime<Utc>>>,
}

/// The end of a socket's queue that the socket takes from.
pub struct Pushed {
    queue: mpsc::Receiver<Waiting>,
    ended: watch::Receiver<Option<DateTime<Utc>>>,
}

struct Waiting {
    push: Push,
    _place: Place,
}

/// Bytes that wait; dropping it frees them.
struct Place {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

/// Why a push cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpushed {
    /// As much waits as may.
    Full,
    /// The socket has gone.
    Closed,
}

impl Pushes {
    /// Adds a push of so many bytes.
    pub(super) fn add(&self, push: &Push, bytes: usize) -> Result<(), Unpushed> {
        if let Push::Ended(at) = push {
            self.end.send_replace(Some(*at));
        }
        // Only the session's actor adds, so what its socket has cannot grow meanwhile.
        let (own, all) = (self.bytes.load(Ordering::Relaxed), ALL.load(Ordering::Relaxed));
        let is_full = own > 0 && own + bytes > PUSH_BYTES_MAX;
        if is_full || own > LITTLE_BYTES && all + bytes > ALL_PUSH_BYTES_MAX {
            return Err(Unpushed::Full);
        }
        let place = Place::take(self.bytes.clone(), bytes);
        self.queue.try_send(Waiting { push: push.clone(), _place: place }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unpushed::Full,
            mpsc::error::TrySendError::Closed(_) => Unpushed::Closed,
        })
    }
}

impl Pushed {
    /// The next push; none once the session's end is gone.
    pub async fn next(&mut self) -> Option<Push> {
        self.queue.recv().await.map(|waiting| waiting.push)
    }

    /// The next push, if there is one now.
    pub fn next_now(&mut self) -> Option<Push> {
        self.queue.try_recv().ok().map(|waiting| waiting.push)
    }

    /// When the session ended, once its end is among the pushes: for a socket that does not take them yet.
    pub fn ended(&self) -> watch::Receiver<Option<DateTime<Utc>>> {
        self.ended.clone()
    }
}

impl Place {
    fn take(of: Arc<AtomicUsize>, bytes: usize) -> Self {
        of.fetch_add(bytes, Ordering::Relaxed);
        ALL.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes, of }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
        ALL.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The size of a push: its texts, and something for the rest.
pub(super) fn bytes_of(push: &Push) -> usize {
    let Push::Said(row) = push else { return BASE_BYTES };
    let documents = [&row.interactive, &row.template].into_iter().flatten().map(length).sum::<usize>();
    BASE_BYTES + row.body.as_ref().map_or(0, String::len) + documents
}

/// The texts of a document, without writing it.
fn length(document: &Value) -> usize {
    match document {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(length).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + length(value)).sum(),
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
    async fn a_socket_has_few_pushes_and_few_bytes_and_all_have_their_bound() {
        let push = typing();
        // By number.
        let (ours, mut theirs) = pushes();
        for _ in 0..PUSHES_MAX {
            ours.add(&push, 1).expect("room");
        }
        assert_eq!(ours.add(&push, 1), Err(Unpushed::Full));
        assert!(theirs.next().await.is_some());
        ours.add(&push, 1).expect("one was taken");
        // By bytes.
        let (large, mut slow) = pushes();
        large.add(&push, PUSH_BYTES_MAX + 1).expect("larger alone");
        assert_eq!(large.add(&push, 1), Err(Unpushed::Full));
        assert!(slow.next().await.is_some() && slow.next_now().is_none());
        assert_eq!(large.bytes.load(Ordering::Relaxed), 0, "what was taken is not counted");
        large.add(&push, PUSH_BYTES_MAX / 2).expect("room");
        // Of all.
        let (others, behind) = pushes();
        others.add(&push, ALL_PUSH_BYTES_MAX).expect("larger alone");
        assert_eq!(large.add(&push, 1), Err(Unpushed::Full), "it holds much, and so do all");
        let (small, kept) = pushes();
        for _ in 0..4 {
            small.add(&push, LITTLE_BYTES / 4).expect("who holds little does not notice");
        }
        drop((behind, kept));
        large.add(&push, 1).expect("those have gone, and what they held");
        assert_eq!(others.add(&push, 1), Err(Unpushed::Closed));
        let (gone, mut left) = pushes();
        drop(gone);
        assert!(left.next().await.is_none(), "its session has gone");
    }

    #[test]
    fn the_end_is_known_before_what_waits_is_taken() {
        let (ours, theirs) = pushes();
        let ended = theirs.ended();
        for _ in 0..PUSHES_MAX {
            ours.add(&typing(), 1).expect("room");
        }
        assert_eq!(*ended.borrow(), None);
        let at = DateTime::UNIX_EPOCH;
        assert_eq!(ours.add(&Push::Ended(at), 1), Err(Unpushed::Full));
        assert_eq!(*ended.borrow(), Some(at));
    }

    #[test]
    fn a_document_is_as_long_as_its_texts() {
        let document = serde_json::json!({"text": "hello", "rows": ["one", "two"]});
        assert_eq!(length(&document), 4 + 5 + 4 + 6);
        assert_eq!(bytes_of(&typing()), BASE_BYTES);
    }
}
