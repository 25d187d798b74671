//! Detects whether a connection makes progress.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use actix_http::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::limits::{GOODBYE_BYTES_MAX, Limits, WRITE_BYTES_PER_S_MIN};

/// The state of a connection.
pub(super) struct Progress {
    unbegun: Cell<Unbegun>,
    /// Requests whose response is not completely written.
    open: Cell<usize>,
    /// Whether the last request had a body: bytes received after its response may be the rest of it.
    has_body: Cell<bool>,
    /// When that rest started, and how many bytes have arrived.
    rest: Cell<Option<(Instant, u64)>>,
    /// Idle since.
    idle_since: Cell<Instant>,
    /// Since when the client has not read.
    stalled_since: Cell<Option<Instant>>,
    /// Since when what was to be written waits, and how much of it the client has taken since.
    slow_since: Cell<Option<(Instant, u64)>>,
    /// Whether a piece of an answer was given to the framework and is not written yet.
    has_piece: Cell<bool>,
    /// Who waits until it is.
    waits: Cell<Option<Waker>>,
    /// Signals that the connection must be closed without a further response.
    cut: Notify,
}

/// What was received of the next request.
#[derive(Clone, Copy)]
enum Unbegun {
    Nothing,
    /// Waiting for the first request, of which no byte has arrived.
    Awaited(Instant),
    Heard(Instant),
}

/// The expired timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// The rest of a head did not arrive.
    Head,
    /// No further request arrived, or no first one.
    Idle,
    /// The client did not read its response.
    Stalled,
}

impl Progress {
    pub(super) fn new() -> Rc<Self> {
        let now = Instant::now();
        Rc::new(Self {
            unbegun: Cell::new(Unbegun::Awaited(now)),
            open: Cell::new(0),
            has_body: Cell::new(false),
            rest: Cell::new(None),
            idle_since: Cell::new(now),
            stalled_since: Cell::new(None),
            slow_since: Cell::new(None),
            has_piece: Cell::new(false),
            waits: Cell::new(None),
            cut: Notify::new(),
        })
    }

    /// The client sent this many bytes; 0: it has closed.
    pub(super) fn heard(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        match self.unbegun.get() {
            Unbegun::Heard(_) => {}
            Unbegun::Awaited(since) => self.unbegun.set(Unbegun::Heard(since)),
            Unbegun::Nothing if self.open.get() == 0 && !self.has_body.get() => {
                self.unbegun.set(Unbegun::Heard(Instant::now()));
            }
            Unbegun::Nothing if self.open.get() == 0 => {
                let (since, before) = self.rest.get().unwrap_or_else(|| (Instant::now(), 0));
                self.rest.set(Some((since, before + bytes as u64)));
            }
            Unbegun::Nothing => {}
        }
    }

    /// So many bytes were written to the client; none: nothing could be.
    pub(super) fn wrote(&self, bytes: Option<usize>) {
        let Some(bytes) = bytes else {
            let now = Instant::now();
            self.stalled_since.set(self.stalled_since.get().or(Some(now)));
            self.slow_since.set(self.slow_since.get().or(Some((now, 0))));
            return;
        };
        self.stalled_since.set(None);
        self.slow_since.set(self.slow_since.get().map(|(since, before)| (since, before + bytes as u64)));
        if let Unbegun::Heard(_) = self.unbegun.get() {
            self.unbegun.set(Unbegun::Heard(Instant::now()));
        }
    }

    /// All there was to write is written.
    pub(super) fn wrote_all(&self) {
        self.slow_since.set(None);
        self.has_piece.set(false);
        if let Some(waker) = self.waits.take() {
            waker.wake();
        }
    }

    /// Ready once the piece before is written: whoever reads nothing holds one piece of an answer in the connection.
    fn poll_piece(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.has_piece.get() {
            return Poll::Ready(());
        }
        self.waits.set(Some(cx.waker().clone()));
        Poll::Pending
    }

    /// A request begins.
    pub(super) fn begin(self: &Rc<Self>, has_body: bool) -> Begun {
        self.unbegun.set(Unbegun::Nothing);
        self.has_body.set(has_body);
        self.rest.set(None);
        self.open.set(self.open.get() + 1);
        Begun(self.clone())
    }

    /// Requests that the connection be closed as it is.
    pub(super) fn cut_off(&self) {
        self.cut.notify_one();
    }

    /// Waits for that request.
    pub(super) async fn cut(&self) {
        self.cut.notified().await;
    }

    /// Returns when a timeout of the connection has expired.
    pub(super) async fn watch(&self, limits: Limits) -> Overdue {
        // A wait that begins during the sleep cannot expire before the sleep ends.
        let step = limits.head.min(limits.write);
        loop {
            let now = Instant::now();
            match self.due(limits) {
                Some((at, overdue)) if at <= now => return overdue,
                Some((at, _)) => sleep_until(at.min(now + step)).await,
                None => sleep_until(now + step).await,
            }
        }
    }

    fn due(&self, limits: Limits) -> Option<(Instant, Overdue)> {
        let taken = |(since, bytes)| since + limits.write + Duration::from_secs(bytes / WRITE_BYTES_PER_S_MIN);
        let stalled = self.stalled_since.get().map(|since| since + limits.write);
        if let Some(at) = stalled.into_iter().chain(self.slow_since.get().map(taken)).min() {
            return Some((at, Overdue::Stalled));
        }
        if self.open.get() > 0 {
            return None;
        }
        Some(match self.unbegun.get() {
            // The framework reads a discarded body to its end, and a chunked body may have no end.
            Unbegun::Nothing => match self.rest.get() {
                Some((since, bytes)) if bytes > GOODBYE_BYTES_MAX => (since + limits.goodbye, Overdue::Idle),
                _ => (self.idle_since.get() + limits.keep_alive, Overdue::Idle),
            },
            // Browsers and load balancers open connections in advance: nothing was requested, so no response is sent.
            Unbegun::Awaited(since) => (since + limits.head, Overdue::Idle),
            Unbegun::Heard(since) => (since + limits.head, Overdue::Head),
        })
    }
}

/// A request in progress, until its response is completely written.
pub(super) struct Begun(Rc<Progress>);

impl Begun {
    /// The progress of its connection.
    pub(super) fn progress(&self) -> Rc<Progress> {
        self.0.clone()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get().saturating_sub(1));
        self.0.idle_since.set(Instant::now());
    }
}

/// Bytes of an answer that the framework is given at a time. It copies them into the buffer of the connection, so a
/// connection whose client reads nothing holds this much there.
pub const ANSWER_PIECE_BYTES: usize = 16 * 1024;

/// A response body, by pieces; its end is the end of its request.
pub(super) struct Counted {
    body: BoxBody,
    /// Of the body's last chunk, what is not given yet.
    rest: Bytes,
    /// Bytes that are still to come, if their number is known.
    left: Option<u64>,
    begun: Option<Begun>,
}

impl Counted {
    pub(super) fn new(body: impl MessageBody + 'static, begun: Option<Begun>) -> Self {
        let left = match body.size() {
            BodySize::None => Some(0),
            BodySize::Sized(length) => Some(length),
            BodySize::Stream => None,
        };
        Self { body: body.boxed(), rest: Bytes::new(), left, begun }
    }
}

impl MessageBody for Counted {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.get_mut();
        // The end of a body is told at once: a small one costs its connection no further turn.
        if this.left != Some(0)
            && let Some(begun) = &this.begun
        {
            ready!(begun.0.poll_piece(cx));
        }
        while this.rest.is_empty() {
            match ready!(this.body.as_pin_mut().poll_next(cx)) {
                Some(Ok(chunk)) => this.rest = chunk,
                other => return Poll::Ready(other),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(ANSWER_PIECE_BYTES));
        this.left = this.left.map(|left| left.saturating_sub(piece.len() as u64));
        if let Some(begun) = &this.begun {
            begun.0.has_piece.set(true);
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(progress: &Progress) -> Option<Overdue> {
        progress.due(Limits::default()).map(|(_, overdue)| overdue)
    }

    #[test]
    fn what_is_waited_for() {
        let progress = Progress::new();
        assert_eq!(due(&progress), Some(Overdue::Idle), "nothing was heard");
        progress.heard(8);
        assert_eq!(due(&progress), Some(Overdue::Head));
        let begun = progress.begin(false);
        assert_eq!(due(&progress), None, "a handler takes what time it takes");
        progress.heard(8);
        drop(begun);
        assert_eq!(due(&progress), Some(Overdue::Idle), "nobody knows what was heard meanwhile");
        progress.heard(6);
        assert_eq!(due(&progress), Some(Overdue::Head));
        progress.wrote(None);
        assert_eq!(due(&progress), Some(Overdue::Stalled));
        progress.wrote(Some(8));
        progress.wrote_all();
        assert_eq!(due(&progress), Some(Overdue::Head));
    }

    #[test]
    fn who_takes_an_answer_by_drips_is_waited_for_as_long_as_the_bytes_are_worth() {
        let limits = Limits::default();
        let due = |progress: &Progress| progress.due(limits).map(|(at, overdue)| (at - limits.write, overdue));
        let progress = Progress::new();
        let _begun = progress.begin(false);
        progress.wrote(Some(1 << 20));
        assert_eq!(due(&progress), None, "who takes everything is not timed");
        progress.wrote(None);
        let first = due(&progress);
        for _ in 0..100 {
            progress.wrote(Some(1));
            progress.wrote(None);
            assert_eq!(due(&progress), first, "a byte is worth nothing");
        }
        progress.wrote(Some(10 * WRITE_BYTES_PER_S_MIN as usize));
        let later = first.map(|(at, overdue)| (at + Duration::from_secs(10), overdue));
        assert_eq!(due(&progress), later, "it is slow, and not too slow");
        progress.wrote_all();
        assert_eq!(due(&progress), None);
    }

    #[actix_web::test]
    async fn an_answer_leaves_by_pieces_each_once_the_one_before_is_written() {
        use futures_util::FutureExt;
        use futures_util::future::poll_fn;
        let progress = Progress::new();
        let length = 2 * ANSWER_PIECE_BYTES + 1;
        let mut body = Counted::new(Bytes::from(vec![b'a'; length]), Some(progress.begin(false)));
        let mut taken = 0;
        for piece in [ANSWER_PIECE_BYTES, ANSWER_PIECE_BYTES, 1] {
            let next = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).now_or_never();
            taken += piece;
            assert_eq!(next.flatten().and_then(Result::ok).map(|bytes| bytes.len()), Some(piece));
            let more = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).now_or_never();
            assert_eq!(more.is_some(), taken == length, "only the end is told before the piece is written");
            progress.wrote_all();
        }
        let mut nobodys = Counted::new(Bytes::from(vec![b'a'; length]), None);
        let first = poll_fn(|cx| Pin::new(&mut nobodys).poll_next(cx)).await;
        assert!(first.is_some_and(|piece| piece.is_ok()));
    }

    #[test]
    fn the_rest_of_a_body_that_nobody_read_is_no_new_request() {
        let progress = Progress::new();
        drop(progress.begin(true));
        progress.heard(10);
        assert_eq!(due(&progress), Some(Overdue::Idle));
    }

    #[test]
    fn the_rest_of_a_body_is_not_read_for_ever() {
        let limits = Limits::default();
        let due = |progress: &Progress| progress.due(limits).map(|(at, _)| at);
        let progress = Progress::new();
        drop(progress.begin(true));
        let idle = due(&progress);
        progress.heard(10);
        assert_eq!(due(&progress), idle, "a little of it changes nothing");
        let heard_at = Instant::now();
        progress.heard(GOODBYE_BYTES_MAX as usize);
        assert!(due(&progress) <= Some(heard_at + limits.goodbye), "who sends on and on is not waited for");
        drop(progress.begin(true));
        assert!(due(&progress) >= idle, "it was another request");
    }
}
