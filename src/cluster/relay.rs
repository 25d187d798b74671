//! Streams from another process: large responses, event streams, sockets.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_codec::{Decoder, poll_read_buf};
use actix_http::Payload;
use actix_http::body::{BodySize, MessageBody};
use actix_http::h1::ClientPayloadCodec;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use hotline_persistence::cluster::{LifeId, Placement};
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::time::timeout;

use super::link::{PeerLink, PeerLinks};

/// Timeout for writing bytes of a socket's client to the other process.
const WRITE_TIME_MAX: Duration = Duration::from_secs(60);

/// Bytes per read.
const READ_BYTES: usize = 16 * 1024;

/// When to stop waiting for another process.
#[derive(Clone)]
pub(super) struct StopConditions {
    /// Which lives exist, and which one serves which slot.
    pub(super) placement: Placement,
    /// The life that the request was sent to.
    pub(super) life: LifeId,
    /// Whether this process is stopping.
    pub(super) stopping: watch::Receiver<bool>,
}

impl StopConditions {
    /// Resolves when the other life has ended: it will no longer respond.
    pub(super) fn life_ended(&self) -> impl Future<Output = ()> + use<> {
        let Self { placement, life, .. } = self.clone();
        async move {
            loop {
                let version = placement.version();
                if !placement.has_peer(life) {
                    return;
                }
                placement.wait_for_change(version).await;
            }
        }
    }

    /// Resolves when the other life has ended, or when this process stops.
    fn stopped(self) -> Pin<Box<dyn Future<Output = ()>>> {
        let life_ended = self.life_ended();
        let mut stopping = self.stopping;
        Box::pin(async move {
            tokio::select! {
                () = life_ended => {}
                // The sender is dropped only when the process ends.
                _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
            }
        })
    }
}

/// The body of another process's response, as a stream.
pub(super) struct RelayedBody {
    /// `None` once the stream has ended.
    link: Option<PeerLink>,
    codec: ClientPayloadCodec,
    /// Where the connection is returned to after the whole body; `None`: it cannot be used again.
    return_to: Option<(Rc<PeerLinks>, LifeId)>,
    stopped: Pin<Box<dyn Future<Output = ()>>>,
    /// Whether the body is an event stream, which ends without an error when `stopped` resolves. Any other body is then
    /// incomplete, and ends with an error.
    is_endless: bool,
}

impl RelayedBody {
    pub(super) fn new(
        link: PeerLink,
        codec: ClientPayloadCodec,
        return_to: Option<(Rc<PeerLinks>, LifeId)>,
        stop: StopConditions,
        is_endless: bool,
    ) -> Self {
        let stopped: Pin<Box<dyn Future<Output = ()>>> =
            if is_endless { stop.stopped() } else { Box::pin(stop.life_ended()) };
        Self { link: Some(link), codec, return_to, stopped, is_endless }
    }
}

impl Stream for RelayedBody {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let Some(link) = &mut this.link else { return Poll::Ready(None) };
            match this.codec.decode(&mut link.buffer) {
                Ok(Some(Some(bytes))) => return Poll::Ready(Some(Ok(bytes))),
                Ok(Some(None)) => {
                    if let Some((link, (links, life))) = this.link.take().zip(this.return_to.take()) {
                        links.release(life, link);
                    }
                    return Poll::Ready(None);
                }
                Ok(None) => {}
                Err(error) => {
                    this.link = None;
                    return Poll::Ready(Some(Err(io::Error::other(error.to_string()))));
                }
            }
            let read = read_some(Pin::new(&mut link.stream), &mut link.buffer, cx);
            if read.is_pending() {
                ready!(this.stopped.as_mut().poll(cx));
                this.link = None;
                // The reader of an event stream reconnects, and continues after the last event that it received.
                let end = (!this.is_endless).then(|| Err(io::ErrorKind::ConnectionReset.into()));
                return Poll::Ready(end);
            }
            if !matches!(read, Poll::Ready(Ok(true))) {
                this.link = None;
                return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
            }
        }
    }
}

/// Reads the available bytes. `false`: the other side has closed the stream.
fn read_some<R: AsyncRead>(reader: Pin<&mut R>, bytes: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
    bytes.reserve(READ_BYTES);
    poll_read_buf(reader, cx, bytes).map_ok(|read| read > 0)
}

/// Relays a socket: the client's bytes are sent to the other process, and the bytes of that process are the body of the
/// response. Frames are not parsed; closing either half closes both.
pub(super) fn splice(link: PeerLink, client_bytes: Payload, stop: StopConditions) -> SocketBody {
    let PeerLink { stream, buffer } = link;
    let (reader, writer) = stream.into_split();
    actix_web::rt::spawn(forward_bytes(client_bytes, writer));
    SocketBody { reader, buffer, stopped: stop.stopped() }
}

/// Sends the client's bytes to the other process until the client disconnects.
async fn forward_bytes(mut client_bytes: Payload, mut writer: OwnedWriteHalf) {
    while let Some(Ok(bytes)) = client_bytes.next().await {
        let written = timeout(WRITE_TIME_MAX, writer.write_all(&bytes)).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
    // The client has disconnected; this notifies the other side.
    let _ = writer.shutdown().await;
}

/// The bytes that the other process sends over a socket.
pub(super) struct SocketBody {
    reader: OwnedReadHalf,
    /// Received bytes that have not been passed on yet; at first those that came together with the head.
    buffer: BytesMut,
    stopped: Pin<Box<dyn Future<Output = ()>>>,
}

impl MessageBody for SocketBody {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, io::Error>>> {
        let this = self.get_mut();
        if this.buffer.is_empty() {
            match read_some(Pin::new(&mut this.reader), &mut this.buffer, cx) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => {
                    ready!(this.stopped.as_mut().poll(cx));
                    return Poll::Ready(None);
                }
            }
        }
        Poll::Ready(Some(Ok(this.buffer.split().freeze())))
    }
}
