//! A response body that is produced in pieces, such as a file or a stream: the memory of each piece is counted.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;

use super::SMALL_BYTES;
use super::ledger::{Ledger, Reader, Reservation};

/// A body whose pieces are counted, each until it is sent. A piece that finds no memory in time ends the connection: a
/// client then requests the rest of a file, or continues a stream where it ended.
pub(super) struct CountedStream {
    body: BoxBody,
    ledger: Ledger,
    reader: Reader,
    /// The reservation of the piece that the connection is sending.
    reservation: Option<Reservation>,
    /// The next piece, while it waits for memory.
    pending: Option<LocalBoxFuture<'static, Option<(Bytes, Reservation)>>>,
}

/// A piece found no memory.
#[derive(Debug, thiserror::Error)]
#[error("too much unread output is buffered")]
struct NoMemory;

impl CountedStream {
    pub(super) fn new(body: BoxBody, ledger: Ledger, reader: Reader) -> Self {
        Self { body, ledger, reader, reservation: None, pending: None }
    }
}

impl MessageBody for CountedStream {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.get_mut();
        // The connection polls for the next piece once the previous one is sent.
        this.reservation = None;
        if this.pending.is_none() {
            let piece = match ready!(this.body.as_pin_mut().poll_next(cx)) {
                Some(Ok(piece)) if piece.len() > SMALL_BYTES => piece,
                other => return Poll::Ready(other),
            };
            if let Some(reservation) = this.ledger.try_reserve(this.reader, piece.len()) {
                this.reservation = Some(reservation);
                return Poll::Ready(Some(Ok(piece)));
            }
            let (ledger, reader) = (this.ledger.clone(), this.reader);
            this.pending = Some(Box::pin(async move {
                let reservation = ledger.reserve_in_memory(reader, piece.len()).await?;
                Some((piece, reservation))
            }));
        }
        let Some(pending) = &mut this.pending else { return Poll::Ready(None) };
        let reserved = ready!(pending.as_mut().poll(cx));
        this.pending = None;
        Poll::Ready(Some(match reserved {
            Some((piece, reservation)) => {
                this.reservation = Some(reservation);
                Ok(piece)
            }
            None => Err(NoMemory.into()),
        }))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use actix_web::body::BodyStream;
    use futures_util::future::poll_fn;
    use futures_util::{FutureExt, stream};

    use super::super::ledger::MemoryLimits;
    use super::*;

    const READER: Reader = Reader { address: None, company: None, is_visitor: false };

    fn body_of_pieces(sizes: &'static [usize], ledger: &Ledger) -> CountedStream {
        let pieces = sizes.iter().map(|size| Ok::<_, Infallible>(Bytes::from(vec![b'a'; *size])));
        CountedStream::new(BoxBody::new(BodyStream::new(stream::iter(pieces))), ledger.clone(), READER)
    }

    async fn next_piece_bytes(body: &mut CountedStream) -> Option<Result<usize, String>> {
        let piece = poll_fn(|cx| Pin::new(&mut *body).poll_next(cx)).await;
        piece.map(|piece| piece.map(|piece| piece.len()).map_err(|error| error.to_string()))
    }

    fn ledger(all: usize) -> Ledger {
        Ledger::with(MemoryLimits { all, extra_for_small: 0, wait: Duration::from_secs(2), ..MemoryLimits::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_is_counted_until_the_next_is_polled_and_waits_for_memory() {
        let ledger = ledger(100_000);
        let mut first = body_of_pieces(&[60_000, 10, 60_000], &ledger);
        let mut second = body_of_pieces(&[60_000], &ledger);
        assert_eq!(next_piece_bytes(&mut first).await, Some(Ok(60_000)));
        assert!(next_piece_bytes(&mut second).now_or_never().is_none(), "no memory is left");
        assert_eq!(next_piece_bytes(&mut first).await, Some(Ok(10)), "a small piece needs no memory");
        assert_eq!(next_piece_bytes(&mut second).await, Some(Ok(60_000)));
        assert!(next_piece_bytes(&mut first).now_or_never().is_none());
        drop(second);
        assert_eq!(next_piece_bytes(&mut first).await, Some(Ok(60_000)));
        assert_eq!(next_piece_bytes(&mut first).await, None);
        assert!(ledger.try_reserve(READER, 100_000).is_some(), "all memory is released");
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_finds_no_memory_in_time_ends_the_body() {
        let ledger = ledger(100_000);
        let _reservation = ledger.try_reserve(READER, 90_000).expect("a reservation");
        let mut body = body_of_pieces(&[60_000], &ledger);
        assert_eq!(next_piece_bytes(&mut body).await, Some(Err(NoMemory.to_string())));
    }
}
