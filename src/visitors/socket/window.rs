//! How many bytes a socket has written that its reader has not read.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use tokio::sync::Notify;

/// Bytes that may be written and not yet sent: room for the longest text and some short frames. The queue of
/// the framework holds 32 frames, which may be 4 MiB.
const UNSENT_BYTES_MAX: u64 = 64 * 1024;

/// The bytes of a socket, as written and as sent. Clones share the same state.
#[derive(Clone, Default)]
pub(super) struct Window(Rc<State>);

#[derive(Default)]
struct State {
    written: Cell<u64>,
    sent: Cell<u64>,
    is_closed: Cell<bool>,
    changed: Notify,
}

impl Window {
    /// Waits until another frame may be written. A closed socket never waits: its write fails.
    pub(super) async fn wait_for_room(&self) {
        while !self.0.is_closed.get() && self.0.written.get().saturating_sub(self.0.sent.get()) >= UNSENT_BYTES_MAX {
            self.0.changed.notified().await;
        }
    }

    /// Counts a frame with this content length.
    pub(super) fn add_written(&self, bytes: usize) {
        // RFC 6455, 5.2: a server's frames have no mask.
        let header_bytes = match bytes {
            0..=125 => 2,
            126..=65_535 => 4,
            _ => 10,
        };
        self.0.written.set(self.0.written.get() + bytes as u64 + header_bytes);
    }

    /// The body of the handshake's response, which counts what its reader reads.
    pub(super) fn count_sent(&self, body: BoxBody) -> BoxBody {
        BoxBody::new(WatchedBody { body, window: self.clone() })
    }
}

struct WatchedBody {
    body: BoxBody,
    window: Window,
}

impl MessageBody for WatchedBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.get_mut();
        let next = ready!(this.body.as_pin_mut().poll_next(cx));
        if let Some(Ok(bytes)) = &next {
            let state = &this.window.0;
            state.sent.set(state.sent.get() + bytes.len() as u64);
            state.changed.notify_one();
        }
        Poll::Ready(next)
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.window.0.is_closed.set(true);
        self.window.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::poll_fn;

    use super::*;

    #[actix_web::test]
    async fn to_a_reader_who_reads_nothing_no_more_than_the_window_is_written() {
        let window = Window::default();
        let total = UNSENT_BYTES_MAX + 10;
        let mut body =
            window.count_sent(BoxBody::new(Bytes::from(vec![0; usize::try_from(total).unwrap_or_default()])));
        assert!(window.wait_for_room().now_or_never().is_some());
        window.add_written(UNSENT_BYTES_MAX as usize);
        assert!(window.wait_for_room().now_or_never().is_none());
        let sent = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await;
        assert!(sent.is_some_and(|sent| sent.is_ok()));
        assert!(window.wait_for_room().now_or_never().is_some(), "all of it was read");
        window.add_written(UNSENT_BYTES_MAX as usize);
        assert!(window.wait_for_room().now_or_never().is_none());
        drop(body);
        assert!(window.wait_for_room().now_or_never().is_some(), "the socket is closed");
    }
}
