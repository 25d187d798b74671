//! A connection as the framework sees it.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::progress::Progress;

/// Bytes of the longest bare refusal: status line, length, connection, date.
const BARE_BYTES_MAX: usize = 192;

/// Bytes the framework is handed before it has to look at them. It takes apart whatever it holds into requests before it
/// looks whether earlier ones wait: from a buffer of 128 KiB of small ones some thousands, at some KiB each. Most requests
/// are smaller than this, and those that are not come in several pieces anyway.
const PIECE_BYTES: usize = 2 * 1024;

/// One end of a connection, for the framework.
///
/// It is handed a piece at a time, so that a client that sends request after request and reads no answer costs little.
///
/// Everything passes as it is, but for a write that ends as a bare refusal does: that one is held back until it shows
/// whether it was one. If it was, the framework ends with an error and never reads again; if it reads or writes on, it
/// was an answer of ours, and goes out untouched. So nothing that a body happens to end with is ever taken for a
/// refusal.
pub(super) struct Line {
    socket: Rc<RefCell<Socket>>,
    progress: Rc<Progress>,
    /// Bytes of this piece that were handed over.
    handed: usize,
}

/// The other end: what is left when the framework has let go.
pub(super) struct End(Rc<RefCell<Socket>>);

struct Socket {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Line {
    pub(super) fn new(stream: TcpStream, progress: Rc<Progress>) -> (Self, End) {
        let socket = Rc::new(RefCell::new(Socket { stream, held: Vec::new() }));
        let end = End(socket.clone());
        (Self { socket, progress, handed: 0 }, end)
    }

    pub(super) fn progress(&self) -> &Rc<Progress> {
        &self.progress
    }

    /// What was held back for nothing.
    fn poll_release(&self, socket: &mut Socket, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut written = 0;
        while written < socket.held.len() {
            match self.poll_pass(&mut socket.stream, cx, &socket.held[written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => written += bytes,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    socket.held.drain(..written);
                    return Poll::Pending;
                }
            }
        }
        socket.held.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_pass(&self, stream: &mut TcpStream, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(stream).poll_write(cx, bytes);
        self.progress.wrote(written.is_ready());
        written
    }
}

impl End {
    /// The connection and what was held back; none while the framework still has it.
    pub(super) fn take(self) -> Option<(TcpStream, Vec<u8>)> {
        let socket = Rc::into_inner(self.0)?.into_inner();
        Some((socket.stream, socket.held))
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let socket = &mut *this.socket.borrow_mut();
        ready!(this.poll_release(socket, cx))?;
        if this.handed >= PIECE_BYTES {
            // It looks at what it has, and comes again.
            this.handed = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let room = bytes.remaining().min(PIECE_BYTES - this.handed);
        let mut piece = ReadBuf::new(bytes.initialize_unfilled_to(room));
        let read = Pin::new(&mut socket.stream).poll_read(cx, &mut piece);
        if read.is_pending() {
            this.handed = 0;
        }
        ready!(read)?;
        let read = piece.filled().len();
        this.progress.heard(piece.filled());
        this.handed += read;
        bytes.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let socket = &mut *self.socket.borrow_mut();
        ready!(self.poll_release(socket, cx))?;
        if bare_refusal(bytes).is_none() {
            return self.poll_pass(&mut socket.stream, cx, bytes);
        }
        socket.held.extend_from_slice(bytes);
        // If it was none, it is let go when the framework reads on; it does when it is woken.
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket has nothing to flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = &mut *self.socket.borrow_mut();
        self.progress.closed();
        if !socket.held.is_empty() || self.progress.has_broken_off() {
            // There is more to say, and the other end says it.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut socket.stream).poll_shutdown(cx)
    }
}

/// Where the bare refusal begins that these bytes end with. Every write is asked, so it is the last four bytes that
/// decide: JSON never ends in a blank line.
fn bare_refusal(bytes: &[u8]) -> Option<usize> {
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let tail_at = bytes.len().saturating_sub(BARE_BYTES_MAX);
    let tail = &bytes[tail_at..];
    let at = tail.windows(b"HTTP/1.".len()).rposition(|bytes| bytes == b"HTTP/1.")?;
    let mut lines = tail[at..].split(|&byte| byte == b'\n');
    let (status, length) = (lines.next()?, lines.next()?);
    let status = status.get(b"HTTP/1.1".len()..)?;
    let refuses = status.starts_with(b" 400 ") || status.starts_with(b" 431 ");
    (refuses && length == b"content-length: 0\r").then_some(tail_at + at)
}

/// Takes back the refusal that was found to be one.
pub(super) fn cut_bare_refusal(held: &mut Vec<u8>) {
    if let Some(at) = bare_refusal(held) {
        held.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use super::bare_refusal;

    const DATE: &str = "date: Sat, 21 Nov 2026 06:17:55 GMT\r\n\r\n";

    #[test]
    fn a_bare_refusal_is_known_in_every_form_the_framework_gives_it() {
        for (status, connection) in [
            ("1.1 400 Bad Request", "connection: close\r\n"),
            ("1.1 400 Bad Request", ""),
            ("1.0 400 Bad Request", "connection: keep-alive\r\n"),
            ("1.1 431 Request Header Fields Too Large", "connection: close\r\n"),
        ] {
            let bare = format!("HTTP/{status}\r\ncontent-length: 0\r\n{connection}{DATE}");
            assert_eq!(bare_refusal(bare.as_bytes()), Some(0), "{bare}");
            let behind = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{{}}{bare}");
            assert_eq!(bare_refusal(behind.as_bytes()), Some(behind.len() - bare.len()), "{behind}");
        }
    }

    #[test]
    fn an_answer_is_none() {
        for answer in [
            format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{DATE}"),
            format!("HTTP/1.1 400 Bad Request\r\ncontent-length: 90\r\n{DATE}"),
            format!("HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n{DATE}{{}}"),
            format!("HTTP/1.1 204 No Content\r\n{DATE}"),
            "\r\n\r\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(bare_refusal(answer.as_bytes()), None, "{answer}");
        }
    }
}
