//! The minimum transfer rate of a body.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::web::response::error::ApiError;

/// Time that any body may take, whatever its length: enough to recover from a short loss of connection.
const BODY_GRACE: Duration = Duration::from_secs(20);

/// Minimum average bytes per second of a body: the slowest mobile network reaches this. 1 MiB may take two and a half
/// minutes, with [`BODY_GRACE`].
const BODY_BYTES_PER_S_MIN: u32 = 8 * 1024;

/// The minimum transfer rate of a body.
#[derive(Clone, Copy, Debug)]
pub struct MinRate {
    /// Time allowed for any length.
    pub grace: Duration,
    /// Minimum rate beyond the grace time.
    pub bytes_per_s: u32,
}

impl Default for MinRate {
    fn default() -> Self {
        Self { grace: BODY_GRACE, bytes_per_s: BODY_BYTES_PER_S_MIN }
    }
}

impl MinRate {
    /// The time that this many bytes may take.
    fn time_for(self, bytes: u64) -> Duration {
        let rate = u64::from(self.bytes_per_s.max(1));
        self.grace + Duration::from_secs(bytes / rate)
    }
}

/// The chunks of a body. The stream fails when they arrive too slowly; [`body_error`] converts the failure into a
/// response.
pub struct MinRateStream<S> {
    chunks: S,
    min_rate: MinRate,
    received: u64,
    /// When the first wait began, and the timer of its deadline; `None` for most bodies, which arrive with their head.
    wait: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> MinRateStream<S> {
    /// Requires the default rate.
    pub fn new(chunks: S) -> Self {
        Self::with_rate(MinRate::default(), chunks)
    }

    /// Returns the remaining chunks.
    pub fn into_inner(self) -> S {
        self.chunks
    }

    /// Requires this rate.
    pub fn with_rate(min_rate: MinRate, chunks: S) -> Self {
        Self { chunks, min_rate, received: 0, wait: None }
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for MinRateStream<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Poll::Ready(chunk) = this.chunks.poll_next_unpin(cx) {
            if let Some(Ok(chunk)) = &chunk {
                this.received += chunk.len() as u64;
            }
            return Poll::Ready(chunk);
        }
        let allowed = this.min_rate.time_for(this.received);
        let (since, sleep) = this.wait.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + allowed)))
        });
        let until = *since + allowed;
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx).map(|()| Some(Err(PayloadError::Io(io::ErrorKind::TimedOut.into()))))
    }
}

/// The response when a body cannot be read: `408` when it arrives too slowly, else `400`.
pub fn body_error(error: PayloadError) -> ApiError {
    match error {
        PayloadError::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
            ApiError { status: StatusCode::REQUEST_TIMEOUT, ..ApiError::bad_request("the body was sent too slowly") }
        }
        PayloadError::Incomplete(_) | PayloadError::EncodingCorrupted => {
            ApiError::bad_request("the body is incomplete or its chunks are invalid")
        }
        error => ApiError::bad_request(format!("could not read the body: {error}")),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use futures_util::stream;

    use super::*;

    const MIN_RATE: MinRate = MinRate { grace: Duration::from_millis(50), bytes_per_s: 1 };

    fn chunk(bytes: &'static [u8]) -> Result<Bytes, PayloadError> {
        Ok(Bytes::from_static(bytes))
    }

    #[actix_web::test]
    async fn a_stalled_body_is_aborted_once_its_time_has_passed() {
        let mut body = MinRateStream::with_rate(MIN_RATE, stream::iter([chunk(b"x")]).chain(stream::pending()));
        assert!(matches!(body.next().await, Some(Ok(_))));
        let before = Instant::now();
        let error = body.next().await.expect("an item").expect_err("a timeout");
        assert!(before.elapsed() >= Duration::from_millis(1050), "one byte adds a second: {:?}", before.elapsed());
        let response = body_error(error);
        assert_eq!((response.status.as_u16(), response.code), (408, "ERR_API_BAD_REQUEST"));
    }

    #[actix_web::test]
    async fn a_trickling_body_is_aborted_after_the_grace_time() {
        let min_rate = MinRate { bytes_per_s: u32::MAX, ..MIN_RATE };
        let trickle = Box::pin(stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((chunk(b"x"), ()))
        }));
        let mut body = MinRateStream::with_rate(min_rate, trickle);
        let mut chunks = 0;
        while let Some(Ok(_)) = body.next().await {
            chunks += 1;
        }
        assert!((1..=10).contains(&chunks), "{chunks} chunks");
    }

    #[actix_web::test]
    async fn a_body_that_has_arrived_needs_no_time() {
        let body = MinRateStream::with_rate(
            MinRate { grace: Duration::ZERO, bytes_per_s: 1 },
            stream::iter([chunk(b"a"), chunk(b"b")]),
        );
        assert_eq!(body.collect::<Vec<_>>().await.len(), 2);
    }
}
