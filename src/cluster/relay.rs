//! What is handed on while it comes: large answers, streams of events, sockets.

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

use super::link::{Link, Links};

/// How long the other side of a socket may take nothing of what its client says.
const WRITE_TIME_MAX: Duration = Duration::from_secs(60);

/// Bytes that are read at a time.
const READ_BYTES: usize = 16 * 1024;

/// When nothing is to be expected of another process any more.
#[derive(Clone)]
pub(super) struct Ends {
    /// Who serves what, and so who is there.
    pub(super) placement: Placement,
    /// Whom the request was sent to.
    pub(super) life: LifeId,
    /// Whether this process stops.
    pub(super) stopping: watch::Receiver<bool>,
}

impl Ends {
    /// Waits until the other process is known to be over: what it has not answered by then it never will.
    pub(super) fn life_is_over(&self) -> impl Future<Output = ()> + use<> {
        let Self { placement, life, .. } = self.clone();
        async move {
            loop {
                let seen = placement.version();
                if !placement.has_peer(life) {
                    return;
                }
                placement.changed(seen).await;
            }
        }
    }

    /// The same, or until this process stops.
    fn over(self) -> Pin<Box<dyn Future<Output = ()>>> {
        let over = self.life_is_over();
        let mut stopping = self.stopping;
        Box::pin(async move {
            tokio::select! {
                () = over => {}
                // Its sender is gone only with the process.
                _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
            }
        })
    }
}

/// The body of an answer, as it comes.
pub(super) struct Relayed {
    /// None once all of it came.
    link: Option<Link>,
    codec: ClientPayloadCodec,
    /// Where the connection goes then.
    kept: Option<(Rc<Links>, LifeId)>,
    over: Pin<Box<dyn Future<Output = ()>>>,
    /// Whether it ends when nothing more is to be expected; else it has broken off then.
    is_endless: bool,
}

impl Relayed {
    pub(super) fn new(
        link: Link,
        codec: ClientPayloadCodec,
        kept: Option<(Rc<Links>, LifeId)>,
        ends: Ends,
        is_endless: bool,
    ) -> Self {
        let over: Pin<Box<dyn Future<Output = ()>>> =
            if is_endless { ends.over() } else { Box::pin(ends.life_is_over()) };
        Self { link: Some(link), codec, kept, over, is_endless }
    }
}

impl Stream for Relayed {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let Some(link) = &mut this.link else { return Poll::Ready(None) };
            match this.codec.decode(&mut link.read) {
                Ok(Some(Some(bytes))) => return Poll::Ready(Some(Ok(bytes))),
                Ok(Some(None)) => {
                    if let Some((link, (links, life))) = this.link.take().zip(this.kept.take()) {
                        links.keep(life, link);
                    }
                    return Poll::Ready(None);
                }
                Ok(None) => {}
                Err(error) => {
                    this.link = None;
                    return Poll::Ready(Some(Err(io::Error::other(error.to_string()))));
                }
            }
            let read = read_some(Pin::new(&mut link.stream), &mut link.read, cx);
            if read.is_pending() {
                ready!(this.over.as_mut().poll(cx));
                this.link = None;
                // A stream of events has no last one: its reader comes again, and goes on where it was.
                let broken = (!this.is_endless).then(|| Err(io::ErrorKind::ConnectionReset.into()));
                return Poll::Ready(broken);
            }
            if !matches!(read, Poll::Ready(Ok(true))) {
                this.link = None;
                return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
            }
        }
    }
}

/// Reads what is there. False: the other side has nothing more to say.
fn read_some<R: AsyncRead>(reader: Pin<&mut R>, bytes: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
    bytes.reserve(READ_BYTES);
    poll_read_buf(reader, cx, bytes).map_ok(|read| read > 0)
}

/// A socket: what the client says goes to the other process, and what that says is the body of the answer. Frames are not
/// looked at; whoever closes it closes both halves.
pub(super) fn splice(link: Link, said: Payload, ends: Ends) -> Spliced {
    let Link { stream, read } = link;
    let (reader, writer) = stream.into_split();
    actix_web::rt::spawn(pump(said, writer));
    Spliced { reader, read, over: ends.over() }
}

async fn pump(mut said: Payload, mut writer: OwnedWriteHalf) {
    while let Some(Ok(bytes)) = said.next().await {
        let written = timeout(WRITE_TIME_MAX, writer.write_all(&bytes)).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
    // The client has gone, and the other side hears of it.
    let _ = writer.shutdown().await;
}

/// What the other process says over a socket.
pub(super) struct Spliced {
    reader: OwnedReadHalf,
    /// What came with its head.
    read: BytesMut,
    over: Pin<Box<dyn Future<Output = ()>>>,
}

impl MessageBody for Spliced {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, io::Error>>> {
        let this = self.get_mut();
        if this.read.is_empty() {
            match read_some(Pin::new(&mut this.reader), &mut this.read, cx) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => {
                    ready!(this.over.as_mut().poll(cx));
                    return Poll::Ready(None);
                }
            }
        }
        Poll::Ready(Some(Ok(this.read.split().freeze())))
    }
}
