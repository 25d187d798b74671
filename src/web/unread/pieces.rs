//! What reads its content by pieces itself, such as a file or a stream: its pieces are counted one by one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;

use super::SMALL_BYTES;
use super::shares::{Ledger, Place, Reader};

/// A body whose pieces are counted, each until its reader has taken it. One that finds no place in time ends its connection:
/// the reader of a file asks for the rest of it, and the reader of a stream continues where it ended.
pub(super) struct Pieces {
    body: BoxBody,
    ledger: Ledger,
    reader: Reader,
    /// Of the piece that the connection has.
    place: Option<Place>,
    waits: Option<LocalBoxFuture<'static, Option<(Bytes, Place)>>>,
}

/// A piece found no place.
#[derive(Debug, thiserror::Error)]
#[error("too much unread output is buffered")]
struct NoPlace;

impl Pieces {
    pub(super) fn new(body: BoxBody, ledger: Ledger, reader: Reader) -> Self {
        Self { body, ledger, reader, place: None, waits: None }
    }
}

impl MessageBody for Pieces {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.get_mut();
        // Asked for the next one, the connection has handed over the one before.
        this.place = None;
        if this.waits.is_none() {
            let piece = match ready!(this.body.as_pin_mut().poll_next(cx)) {
                Some(Ok(piece)) if piece.len() > SMALL_BYTES => piece,
                other => return Poll::Ready(other),
            };
            if let Some(place) = this.ledger.try_take(this.reader, piece.len()) {
                this.place = Some(place);
                return Poll::Ready(Some(Ok(piece)));
            }
            let (ledger, reader) = (this.ledger.clone(), this.reader);
            this.waits = Some(Box::pin(async move {
                let place = ledger.take_for(reader, piece.len()).await?;
                Some((piece, place))
            }));
        }
        let Some(waits) = &mut this.waits else { return Poll::Ready(None) };
        let found = ready!(waits.as_mut().poll(cx));
        this.waits = None;
        Poll::Ready(Some(match found {
            Some((piece, place)) => {
                this.place = Some(place);
                Ok(piece)
            }
            None => Err(NoPlace.into()),
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

    use super::super::shares::Shares;
    use super::*;

    const READER: Reader = Reader { address: None, company: None };

    fn pieces(sizes: &'static [usize], ledger: &Ledger) -> Pieces {
        let pieces = sizes.iter().map(|size| Ok::<_, Infallible>(Bytes::from(vec![b'a'; *size])));
        Pieces::new(BoxBody::new(BodyStream::new(stream::iter(pieces))), ledger.clone(), READER)
    }

    async fn next(body: &mut Pieces) -> Option<Result<usize, String>> {
        let next = poll_fn(|cx| Pin::new(&mut *body).poll_next(cx)).await;
        next.map(|piece| piece.map(|piece| piece.len()).map_err(|error| error.to_string()))
    }

    fn ledger(all: usize) -> Ledger {
        Ledger::with(Shares { all, kept_back: 0, wait: Duration::from_secs(2), ..Shares::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_has_a_place_until_the_next_one_is_asked_for_and_waits_for_it() {
        let ledger = ledger(100_000);
        let mut one = pieces(&[60_000, 10, 60_000], &ledger);
        let mut other = pieces(&[60_000], &ledger);
        assert_eq!(next(&mut one).await, Some(Ok(60_000)));
        assert!(next(&mut other).now_or_never().is_none(), "no place is left");
        assert_eq!(next(&mut one).await, Some(Ok(10)), "what is small needs none");
        assert_eq!(next(&mut other).await, Some(Ok(60_000)));
        assert!(next(&mut one).now_or_never().is_none());
        drop(other);
        assert_eq!(next(&mut one).await, Some(Ok(60_000)));
        assert_eq!(next(&mut one).await, None);
        assert!(ledger.try_take(READER, 100_000).is_some(), "nothing is held any more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_finds_no_place_in_time_is_the_end() {
        let ledger = ledger(100_000);
        let _held = ledger.try_take(READER, 90_000).expect("a place");
        let mut body = pieces(&[60_000], &ledger);
        assert_eq!(next(&mut body).await, Some(Err(NoPlace.to_string())));
    }
}
