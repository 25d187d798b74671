//! The connection type that the framework reads from and writes to.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::progress::Progress;

/// Bytes that the framework receives before it must process them. It parses all buffered bytes into requests
/// before it checks whether earlier requests are waiting: a buffer of 128 KiB of small requests becomes thousands, at
/// a few KiB each. Most requests are smaller than this, and larger ones arrive in several pieces anyway.
const PIECE_BYTES: usize = 2 * 1024;

/// A connection, for the framework. It delivers one piece at a time, so that a client that sends request after request
/// and reads no response costs little. Reads and writes are recorded in the connection's progress.
pub(super) struct MeteredStream {
    /// `None` once a handler has taken it over.
    stream: Option<TcpStream>,
    progress: Rc<Progress>,
    /// Bytes of the current piece that the framework has already received.
    delivered: usize,
}

impl MeteredStream {
    pub(super) fn new(stream: TcpStream, progress: Rc<Progress>) -> Self {
        Self { stream: Some(stream), progress, delivered: 0 }
    }

    pub(super) fn progress(&self) -> &Rc<Progress> {
        &self.progress
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.delivered >= PIECE_BYTES {
            // Yields, so that the framework processes what it has before it reads again.
            this.delivered = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(stream) = &mut this.stream else { return Poll::Ready(Ok(())) };
        let read_max = bytes.remaining().min(PIECE_BYTES - this.delivered);
        let mut piece = ReadBuf::new(bytes.initialize_unfilled_to(read_max));
        let result = Pin::new(stream).poll_read(cx, &mut piece);
        if result.is_pending() {
            this.delivered = 0;
        }
        ready!(result)?;
        let count = piece.filled().len();
        this.progress.on_read(count);
        this.delivered += count;
        bytes.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        let written = Pin::new(stream).poll_write(cx, bytes);
        match &written {
            Poll::Ready(Ok(count)) => self.progress.on_write(Some(*count)),
            Poll::Ready(Err(_)) => self.progress.on_write(Some(0)),
            Poll::Pending => self.progress.on_write(None),
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // A socket has nothing to flush. The framework flushes once it has written everything.
        this.progress.on_flush();
        this.progress.takeover.on_flush(&mut this.stream);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Some(stream) => Pin::new(stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}
