//! How much of what was written to a socket its reader has not taken.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use tokio::sync::Notify;

/// Bytes that may be written and not taken: a message of the longest text, and some frames. The queue of the framework
/// holds 32 frames, which may be 4 MiB.
const UNTAKEN_BYTES_MAX: u64 = 64 * 1024;

/// The bytes of a socket, as written and as taken. Clones share the same state.
#[derive(Clone, Default)]
pub(super) struct Window(Rc<State>);

#[derive(Default)]
struct State {
    written: Cell<u64>,
    taken: Cell<u64>,
    is_closed: Cell<bool>,
    changed: Notify,
}

impl Window {
    /// Waits until another frame may be written. A socket that is closed takes what is written, and says so itself.
    pub(super) async fn room(&self) {
        while !self.0.is_closed.get() && self.0.written.get().saturating_sub(self.0.taken.get()) >= UNTAKEN_BYTES_MAX {
            self.0.changed.notified().await;
        }
    }

    /// Notes a frame with so many bytes.
    pub(super) fn wrote(&self, bytes: usize) {
        // RFC 6455, 5.2: a server's frames have no mask.
        let head = match bytes {
            0..=125 => 2,
            126..=65_535 => 4,
            _ => 10,
        };
        self.0.written.set(self.0.written.get() + bytes as u64 + head);
    }

    /// The body of the handshake's response, which notes what its reader takes.
    pub(super) fn watch(&self, body: BoxBody) -> BoxBody {
        BoxBody::new(Watched { body, window: self.clone() })
    }
}

struct Watched {
    body: BoxBody,
    window: Window,
}

impl MessageBody for Watched {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.get_mut();
        let next = ready!(this.body.as_pin_mut().poll_next(cx));
        if let Some(Ok(bytes)) = &next {
            let state = &this.window.0;
            state.taken.set(state.taken.get() + bytes.len() as u64);
            state.changed.notify_one();
        }
        Poll::Ready(next)
    }
}

impl Drop for Watched {
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
    async fn a_reader_who_takes_nothing_is_written_no_more_than_the_window() {
        let window = Window::default();
        let whole = UNTAKEN_BYTES_MAX + 10;
        let mut body = window.watch(BoxBody::new(Bytes::from(vec![0; usize::try_from(whole).unwrap_or_default()])));
        assert!(window.room().now_or_never().is_some());
        window.wrote(UNTAKEN_BYTES_MAX as usize);
        assert!(window.room().now_or_never().is_none());
        let taken = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await;
        assert!(taken.is_some_and(|taken| taken.is_ok()));
        assert!(window.room().now_or_never().is_some(), "all of it was taken");
        window.wrote(UNTAKEN_BYTES_MAX as usize);
        assert!(window.room().now_or_never().is_none());
        drop(body);
        assert!(window.room().now_or_never().is_some(), "the socket is closed");
    }
}
