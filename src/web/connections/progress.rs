//! Detects whether a connection makes progress.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use actix_http::StatusCode;
use actix_http::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::limits::{LINGER_BYTES_MAX, Limits, WRITE_BYTES_PER_S_MIN};
use super::takeover::Takeover;

/// The state of a connection.
pub(super) struct Progress {
    pending_head: Cell<PendingHead>,
    /// Requests whose response is not completely written.
    open_requests: Cell<usize>,
    /// Whether the last request had a body: bytes received after its response may be the rest of it.
    last_had_body: Cell<bool>,
    /// When the rest of a body began to arrive after its response, and how many bytes of it have arrived.
    trailing_body: Cell<Option<(Instant, u64)>>,
    /// When the last request ended, or the connection began.
    idle_since: Cell<Instant>,
    /// When the socket became full; `None` once it has accepted more bytes.
    stalled_since: Cell<Option<Instant>>,
    /// When a write became pending, and how many bytes were written since; `None` once everything is written.
    slow_since: Cell<Option<(Instant, u64)>>,
    /// Whether the framework has a piece of a response that is not written yet.
    has_unwritten_piece: Cell<bool>,
    /// The task that waits until that piece is written.
    waker: Cell<Option<Waker>>,
    /// Signals that the connection must be closed without a further response.
    close: Notify,
    /// Whether a handler takes the connection over.
    pub(super) takeover: Takeover,
}

/// What was received of the head of the next request.
#[derive(Clone, Copy)]
enum PendingHead {
    /// No byte. Bytes that arrive during a request, or may be the rest of its body, do not count.
    None,
    /// No byte of the connection's first request. The timeout counts from this time, the start of the connection.
    Awaited(Instant),
    /// Part of the head. The timeout counts from this time: that of the head's first byte (of the first head: the start
    /// of the connection), or of the last write since then.
    Started(Instant),
}

/// The expired timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// The rest of a head did not arrive.
    Head,
    /// No request arrived, or the rest of a body did not end.
    Idle,
    /// The client did not read its response.
    Stalled,
}

impl Progress {
    pub(super) fn new() -> Rc<Self> {
        let now = Instant::now();
        Rc::new(Self {
            pending_head: Cell::new(PendingHead::Awaited(now)),
            open_requests: Cell::new(0),
            last_had_body: Cell::new(false),
            trailing_body: Cell::new(None),
            idle_since: Cell::new(now),
            stalled_since: Cell::new(None),
            slow_since: Cell::new(None),
            has_unwritten_piece: Cell::new(false),
            waker: Cell::new(None),
            close: Notify::new(),
            takeover: Takeover::default(),
        })
    }

    /// The client sent this many bytes; 0: it has closed.
    pub(super) fn on_read(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        match self.pending_head.get() {
            PendingHead::Started(_) => {}
            PendingHead::Awaited(since) => self.pending_head.set(PendingHead::Started(since)),
            PendingHead::None if self.open_requests.get() == 0 && !self.last_had_body.get() => {
                self.pending_head.set(PendingHead::Started(Instant::now()));
            }
            PendingHead::None if self.open_requests.get() == 0 => {
                let (since, before) = self.trailing_body.get().unwrap_or_else(|| (Instant::now(), 0));
                self.trailing_body.set(Some((since, before + bytes as u64)));
            }
            PendingHead::None => {}
        }
    }

    /// This many bytes were written to the client; `None`: the socket is full.
    pub(super) fn on_write(&self, bytes: Option<usize>) {
        let Some(bytes) = bytes else {
            let now = Instant::now();
            self.stalled_since.set(self.stalled_since.get().or(Some(now)));
            self.slow_since.set(self.slow_since.get().or(Some((now, 0))));
            return;
        };
        self.stalled_since.set(None);
        self.slow_since.set(self.slow_since.get().map(|(since, before)| (since, before + bytes as u64)));
        if let PendingHead::Started(_) = self.pending_head.get() {
            self.pending_head.set(PendingHead::Started(Instant::now()));
        }
    }

    /// Everything is written.
    pub(super) fn on_flush(&self) {
        self.slow_since.set(None);
        self.has_unwritten_piece.set(false);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Ready once the previous piece is written, so that the connection buffers at most one piece of a response for a
    /// client that reads nothing.
    fn poll_piece(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.has_unwritten_piece.get() {
            return Poll::Ready(());
        }
        self.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }

    /// A request starts.
    pub(super) fn start_request(self: &Rc<Self>, has_body: bool) -> OpenRequest {
        self.pending_head.set(PendingHead::None);
        self.last_had_body.set(has_body);
        self.trailing_body.set(None);
        self.open_requests.set(self.open_requests.get() + 1);
        self.takeover.on_request();
        OpenRequest(self.clone())
    }

    /// Requests that the connection be closed without a further response.
    pub(super) fn close(&self) {
        self.close.notify_one();
    }

    /// Resolves once `close` was called.
    pub(super) async fn closing(&self) {
        self.close.notified().await;
    }

    /// Returns when a timeout of the connection has expired.
    pub(super) async fn watch(&self, limits: Limits) -> Overdue {
        // At most the shortest of these timeouts, so that what begins during a sleep (a head, a stalled write, the rest
        // of a body) does not expire before the sleep ends.
        let step = limits.head.min(limits.write).min(limits.linger);
        loop {
            let now = Instant::now();
            match self.deadline(limits) {
                Some((at, overdue)) if at <= now => return overdue,
                Some((at, _)) => sleep_until(at.min(now + step)).await,
                None => sleep_until(now + step).await,
            }
        }
    }

    /// The deadline that applies now, and the timeout that expires then. `None` while a request is in progress, unless
    /// the client does not read.
    fn deadline(&self, limits: Limits) -> Option<(Instant, Overdue)> {
        let slow_deadline = |(since, bytes)| since + limits.write + Duration::from_secs(bytes / WRITE_BYTES_PER_S_MIN);
        let stalled = self.stalled_since.get().map(|since| since + limits.write);
        if let Some(at) = stalled.into_iter().chain(self.slow_since.get().map(slow_deadline)).min() {
            return Some((at, Overdue::Stalled));
        }
        if self.open_requests.get() > 0 {
            return None;
        }
        Some(match self.pending_head.get() {
            // The framework reads a discarded body to its end, and a chunked body may have no end.
            PendingHead::None => match self.trailing_body.get() {
                Some((since, bytes)) if bytes > LINGER_BYTES_MAX => (since + limits.linger, Overdue::Idle),
                _ => (self.idle_since.get() + limits.keep_alive, Overdue::Idle),
            },
            // Browsers and load balancers open connections in advance: nothing was requested, so no response is sent.
            PendingHead::Awaited(since) => (since + limits.head, Overdue::Idle),
            PendingHead::Started(since) => (since + limits.head, Overdue::Head),
        })
    }
}

/// A request in progress, until its response is completely written.
pub(super) struct OpenRequest(Rc<Progress>);

impl OpenRequest {
    /// Its response is passed to the framework.
    pub(super) fn on_response(&self, status: StatusCode) {
        self.0.takeover.on_response(status);
    }

    /// The progress of its connection.
    pub(super) fn progress(&self) -> Rc<Progress> {
        self.0.clone()
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open_requests.set(self.0.open_requests.get().saturating_sub(1));
        self.0.idle_since.set(Instant::now());
    }
}

/// Bytes of a response that the framework is given at a time. It copies them into the buffer of the connection, so a
/// connection whose client reads nothing holds this many bytes in its buffer.
pub const RESPONSE_PIECE_BYTES: usize = 16 * 1024;

/// A response body, sent in pieces; its request ends with the body.
pub(super) struct ResponseBody {
    body: BoxBody,
    /// The rest of the body's current chunk.
    rest: Bytes,
    /// Bytes that remain, if their number is known.
    remaining: Option<u64>,
    request: Option<OpenRequest>,
}

impl ResponseBody {
    pub(super) fn new(body: impl MessageBody + 'static, request: Option<OpenRequest>) -> Self {
        let remaining = match body.size() {
            BodySize::None => Some(0),
            BodySize::Sized(length) => Some(length),
            BodySize::Stream => None,
        };
        Self { body: body.boxed(), rest: Bytes::new(), remaining, request }
    }
}

impl MessageBody for ResponseBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.get_mut();
        // The end of a body is reported at once, so that a small one needs no further poll.
        if this.remaining != Some(0)
            && let Some(request) = &this.request
        {
            ready!(request.0.poll_piece(cx));
        }
        while this.rest.is_empty() {
            match ready!(this.body.as_pin_mut().poll_next(cx)) {
                Some(Ok(chunk)) => this.rest = chunk,
                other => return Poll::Ready(other),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(RESPONSE_PIECE_BYTES));
        this.remaining = this.remaining.map(|remaining| remaining.saturating_sub(piece.len() as u64));
        if let Some(request) = &this.request {
            request.0.has_unwritten_piece.set(true);
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(progress: &Progress) -> Option<Overdue> {
        progress.deadline(Limits::default()).map(|(_, overdue)| overdue)
    }

    #[test]
    fn each_state_has_its_timeout() {
        let progress = Progress::new();
        assert_eq!(due(&progress), Some(Overdue::Idle), "no byte was received");
        progress.on_read(8);
        assert_eq!(due(&progress), Some(Overdue::Head));
        let request = progress.start_request(false);
        assert_eq!(due(&progress), None, "a handler has no timeout");
        progress.on_read(8);
        drop(request);
        assert_eq!(due(&progress), Some(Overdue::Idle), "bytes received during a request do not start a head");
        progress.on_read(6);
        assert_eq!(due(&progress), Some(Overdue::Head));
        progress.on_write(None);
        assert_eq!(due(&progress), Some(Overdue::Stalled));
        progress.on_write(Some(8));
        progress.on_flush();
        assert_eq!(due(&progress), Some(Overdue::Head));
    }

    #[test]
    fn the_bytes_that_a_slow_reader_reads_extend_its_deadline() {
        let limits = Limits::default();
        let due = |progress: &Progress| progress.deadline(limits).map(|(at, overdue)| (at - limits.write, overdue));
        let progress = Progress::new();
        let _request = progress.start_request(false);
        progress.on_write(Some(1 << 20));
        assert_eq!(due(&progress), None, "a client that reads everything has no deadline");
        progress.on_write(None);
        let first = due(&progress);
        for _ in 0..100 {
            progress.on_write(Some(1));
            progress.on_write(None);
            assert_eq!(due(&progress), first, "a few bytes do not extend the deadline");
        }
        progress.on_write(Some(10 * WRITE_BYTES_PER_S_MIN as usize));
        let later = first.map(|(at, overdue)| (at + Duration::from_secs(10), overdue));
        assert_eq!(due(&progress), later, "ten seconds' worth of bytes extends the deadline by ten seconds");
        progress.on_flush();
        assert_eq!(due(&progress), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_body_that_begins_to_arrive_during_a_sleep_expires_in_time() {
        let long = Duration::from_secs(60);
        let limits = Limits { head: long, write: long, linger: Duration::from_secs(1), ..Limits::default() };
        let progress = Progress::new();
        drop(progress.start_request(true));
        let arrival = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            progress.on_read(LINGER_BYTES_MAX as usize + 1);
            Instant::now()
        };
        let (overdue, begun_at) = tokio::join!(progress.watch(limits), arrival);
        assert_eq!(overdue, Overdue::Idle);
        assert!(begun_at.elapsed() < limits.linger * 2, "expired after {:?}", begun_at.elapsed());
    }

    #[actix_web::test]
    async fn a_response_is_sent_in_pieces_one_after_the_other() {
        use futures_util::FutureExt;
        use futures_util::future::poll_fn;
        let progress = Progress::new();
        let length = 2 * RESPONSE_PIECE_BYTES + 1;
        let mut body = ResponseBody::new(Bytes::from(vec![b'a'; length]), Some(progress.start_request(false)));
        let mut received = 0;
        for piece in [RESPONSE_PIECE_BYTES, RESPONSE_PIECE_BYTES, 1] {
            let next = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).now_or_never();
            received += piece;
            assert_eq!(next.flatten().and_then(Result::ok).map(|bytes| bytes.len()), Some(piece));
            let more = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).now_or_never();
            assert_eq!(more.is_some(), received == length, "only the end is reported before the piece is written");
            progress.on_flush();
        }
        let mut without_request = ResponseBody::new(Bytes::from(vec![b'a'; length]), None);
        let first = poll_fn(|cx| Pin::new(&mut without_request).poll_next(cx)).await;
        assert!(first.is_some_and(|piece| piece.is_ok()));
    }

    #[test]
    fn the_rest_of_an_unread_body_is_not_a_new_request() {
        let progress = Progress::new();
        drop(progress.start_request(true));
        progress.on_read(10);
        assert_eq!(due(&progress), Some(Overdue::Idle));
    }

    #[test]
    fn the_rest_of_a_body_is_not_read_for_ever() {
        let limits = Limits::default();
        let due = |progress: &Progress| progress.deadline(limits).map(|(at, _)| at);
        let progress = Progress::new();
        drop(progress.start_request(true));
        let idle = due(&progress);
        progress.on_read(10);
        assert_eq!(due(&progress), idle, "a small rest does not change the deadline");
        let received_at = Instant::now();
        progress.on_read(LINGER_BYTES_MAX as usize);
        assert!(due(&progress) <= Some(received_at + limits.linger), "a large rest has a deadline");
        drop(progress.start_request(true));
        assert!(due(&progress) >= idle, "a new request clears the deadline of the previous body");
    }
}
