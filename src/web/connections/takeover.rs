//! Lets a handler take its connection over from the framework once its response is written.
//!
//! The framework keeps two buffers of 8 KiB and its own state for each connection. A connection that was taken over is
//! idle nearly all the time, and needs buffers only while bytes flow.

use std::cell::RefCell;
use std::mem;
use std::pin::Pin;
use std::time::Duration;

use actix_http::Payload;
use actix_web::http::StatusCode;
use bytes::BytesMut;
use futures_util::{FutureExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::limits::WRITE_BYTES_PER_S_MIN;

/// A connection that was taken over from the framework.
pub struct TakenStream {
    /// The connection.
    pub stream: TcpStream,
    /// What the client has sent after its request, as far as the framework has read it.
    pub received: BytesMut,
    write_time_max: Duration,
}

impl TakenStream {
    /// A connection, and what was received on it. A client may take `write_time_max` to read a first byte.
    pub fn new(stream: TcpStream, received: BytesMut, write_time_max: Duration) -> Self {
        Self { stream, received, write_time_max }
    }

    /// How long a client may take to read this many bytes.
    pub fn write_time(&self, bytes: usize) -> Duration {
        self.write_time_max + Duration::from_secs(bytes as u64 / WRITE_BYTES_PER_S_MIN)
    }
}

/// Serves a connection that was taken over, until it ends.
type Serve = Box<dyn FnOnce(TakenStream) -> Pin<Box<dyn Future<Output = ()>>>>;

/// The state of a connection's takeover.
#[derive(Default)]
pub(super) struct Takeover {
    state: RefCell<TakeoverState>,
    taken: Notify,
}

#[derive(Default)]
enum TakeoverState {
    #[default]
    None,
    /// A handler has requested the takeover; its response is on its way to the framework.
    Requested(TakeoverRequest),
    /// The framework has the response, and writes it.
    Due(TakeoverRequest),
    Taken(TcpStream, TakeoverRequest),
}

/// A handler's request to take the connection over.
struct TakeoverRequest {
    /// The body of the HTTP request. What the client sends before the takeover is in it, because the framework reads it
    /// as this body.
    payload: Payload,
    serve: Serve,
}

impl Takeover {
    /// Requests that the connection be taken once a `101` response is written.
    pub(super) fn request<F>(&self, payload: Payload, serve: impl FnOnce(TakenStream) -> F + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let serve: Serve = Box::new(move |taken| Box::pin(serve(taken)));
        *self.state.borrow_mut() = TakeoverState::Requested(TakeoverRequest { payload, serve });
    }

    /// A request begins: forgets the previous one, which may have ended without a response.
    pub(super) fn on_request(&self) {
        self.state.take();
    }

    /// A response is passed to the framework: with 101, the connection is taken over as requested.
    pub(super) fn on_response(&self, status: StatusCode) {
        let mut state = self.state.borrow_mut();
        if let TakeoverState::Requested(request) = mem::take(&mut *state)
            && status == StatusCode::SWITCHING_PROTOCOLS
        {
            *state = TakeoverState::Due(request);
        }
    }

    /// All responses are written: takes the connection if that is due.
    pub(super) fn on_flush(&self, stream: &mut Option<TcpStream>) {
        let mut state = self.state.borrow_mut();
        if !matches!(*state, TakeoverState::Due(_)) {
            return;
        }
        if let (TakeoverState::Due(request), Some(stream)) = (mem::take(&mut *state), stream.take()) {
            *state = TakeoverState::Taken(stream, request);
            self.taken.notify_one();
        }
    }

    /// Returns once the connection is taken.
    pub(super) async fn taken(&self) {
        self.taken.notified().await;
    }

    /// The future that serves the connection if it was taken; `None` otherwise.
    pub(super) fn serve(&self, write_time_max: Duration) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
        let TakeoverState::Taken(stream, TakeoverRequest { mut payload, serve }) = self.state.take() else {
            return None;
        };
        let mut received = BytesMut::new();
        while let Some(Some(Ok(bytes))) = payload.next().now_or_never() {
            received.extend_from_slice(&bytes);
        }
        Some(serve(TakenStream::new(stream, received, write_time_max)))
    }
}
