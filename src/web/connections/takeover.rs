//! Lets a handler take its connection over from the framework once its response is written.
//!
//! The framework keeps two buffers of 8 KiB and its own state for each connection. A socket is idle nearly all the time, and
//! needs buffers only while bytes flow.

use std::cell::RefCell;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::progress::Progress;

/// A connection without the framework.
pub struct TakenStream {
    /// The connection. A client waits for the response before it sends more (RFC 6455, 4.1), so no byte is missing.
    pub stream: TcpStream,
    /// Time for the client to read more when its receive window is full.
    pub write_time_max: Duration,
}

/// Serves a connection that was taken over, until it ends.
type Serve = Box<dyn FnOnce(TakenStream) -> Pin<Box<dyn Future<Output = ()>>>>;

/// Whether a connection is taken over.
#[derive(Default)]
pub(super) struct Takeover {
    state: RefCell<TakeoverState>,
    taken: Notify,
}

#[derive(Default)]
enum TakeoverState {
    #[default]
    None,
    /// A handler has requested it; its response is on its way to the framework.
    Requested(Serve),
    /// The framework has the response, and writes it.
    Due(Serve),
    Taken(TcpStream, Serve),
}

impl Takeover {
    /// A response leaves for the framework: with 101, the connection is taken over as requested.
    pub(super) fn on_response(&self, status: StatusCode) {
        let mut state = self.state.borrow_mut();
        if let TakeoverState::Requested(serve) = mem::take(&mut *state)
            && status == StatusCode::SWITCHING_PROTOCOLS
        {
            *state = TakeoverState::Due(serve);
        }
    }

    /// All responses are written: takes the connection if that is due.
    pub(super) fn on_flush(&self, stream: &mut Option<TcpStream>) {
        let mut state = self.state.borrow_mut();
        if !matches!(*state, TakeoverState::Due(_)) {
            return;
        }
        if let (TakeoverState::Due(serve), Some(stream)) = (mem::take(&mut *state), stream.take()) {
            *state = TakeoverState::Taken(stream, serve);
            self.taken.notify_one();
        }
    }

    /// Returns once the connection is taken.
    pub(super) async fn is_taken(&self) {
        self.taken.notified().await;
    }

    /// What remains to be done with a connection that was taken.
    pub(super) fn serve(&self, write_time_max: Duration) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
        match self.state.take() {
            TakeoverState::Taken(stream, serve) => Some(serve(TakenStream { stream, write_time_max })),
            TakeoverState::None | TakeoverState::Requested(_) | TakeoverState::Due(_) => None,
        }
    }
}

/// Takes the connection of a request over, once its response of 101 is written. `serve` runs as the connection's task.
/// Returns whether the request has a connection.
#[must_use]
pub fn take_over<F>(request: &HttpRequest, serve: impl FnOnce(TakenStream) -> F + 'static) -> bool
where
    F: Future<Output = ()> + 'static,
{
    let Some(progress) = request.conn_data::<Rc<Progress>>() else { return false };
    *progress.takeover.state.borrow_mut() = TakeoverState::Requested(Box::new(move |taken| Box::pin(serve(taken))));
    true
}
