//! The body of a request at the edge: small bodies are retained so that they can be resent; larger ones are streamed
//! once.

use actix_http::{Payload, RequestHead};
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use hotline_persistence::limits::{BudgetLimits, KeyedBudget, ReservedBytes};

use crate::web::connections::MinRateStream;

/// Maximum size of a retained body: it covers every JSON body that people and programs write, except imports.
pub(super) const RETAINED_BYTES_MAX: usize = 64 * 1024;

/// Maximum size of all retained bodies of a process. Beyond this, even small bodies are streamed once.
const RETAINED_TOTAL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The body of a request.
pub(super) enum EdgeBody {
    /// There is no body.
    None,
    /// Not read yet.
    Unread(Payload),
    /// Read completely.
    Retained(Bytes, #[allow(dead_code, reason = "dropping it releases its part of the budget")] ReservedBytes<()>),
    /// Streamed: the part that was read already, and the rest.
    Streamed(Bytes, Payload),
    /// Taken to be sent, or lost by a failed read: it cannot be sent again.
    Consumed,
}

/// The memory budget for all retained bodies, shared by all companies.
pub(super) type RetainedBudget = KeyedBudget<()>;

pub(super) fn retained_budget() -> RetainedBudget {
    KeyedBudget::new(BudgetLimits::new(RETAINED_TOTAL_BYTES_MAX), |()| RETAINED_TOTAL_BYTES_MAX)
}

impl EdgeBody {
    /// The body of a new request.
    pub(super) fn of(payload: Payload) -> Self {
        match payload {
            Payload::None => Self::None,
            payload => Self::Unread(payload),
        }
    }

    /// Reads a small body completely; a larger one will be streamed. A WebSocket's stream has no end, so it is streamed
    /// too.
    ///
    /// # Errors
    /// When the body does not arrive or is not valid HTTP.
    pub(super) async fn read(&mut self, head: &RequestHead, budget: &RetainedBudget) -> Result<(), PayloadError> {
        let payload = match std::mem::replace(self, Self::Consumed) {
            Self::Unread(payload) => payload,
            // The body was already read.
            already_read => {
                *self = already_read;
                return Ok(());
            }
        };
        let length = content_length(head);
        // A body without a length is chunked, or a WebSocket's stream.
        let is_chunked = head.headers.contains_key(TRANSFER_ENCODING);
        let is_small = length.map_or(is_chunked, |length| length <= RETAINED_BYTES_MAX as u64);
        let bytes_to_reserve = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(RETAINED_BYTES_MAX);
        let Some(reservation) = is_small.then(|| budget.try_reserve(Vec::new(), bytes_to_reserve)).flatten() else {
            *self = Self::Streamed(Bytes::new(), payload);
            return Ok(());
        };
        let mut chunks = MinRateStream::new(payload);
        let mut whole = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            whole.extend_from_slice(&chunk);
            if whole.len() > RETAINED_BYTES_MAX {
                *self = Self::Streamed(whole.freeze(), chunks.into_inner());
                return Ok(());
            }
        }
        *self = Self::Retained(whole.freeze(), reservation);
        Ok(())
    }

    /// The payload for a handler of this process; `None` if the body was consumed.
    pub(super) fn into_payload(self) -> Option<Payload> {
        match self {
            Self::None => Some(Payload::None),
            Self::Unread(payload) => Some(payload),
            Self::Retained(whole, _) => Some(Payload::from(whole)),
            Self::Streamed(first, rest) if first.is_empty() => Some(rest),
            Self::Streamed(first, rest) => {
                let chunks = futures_util::stream::iter([Ok(first)]).chain(rest);
                Some(Payload::Stream { payload: Box::pin(chunks) })
            }
            Self::Consumed => None,
        }
    }

    /// Whether the body can still be sent in full.
    pub(super) fn can_be_sent(&self) -> bool {
        !matches!(self, Self::Consumed)
    }
}

/// The length of the body according to the head.
pub(super) fn content_length(head: &RequestHead) -> Option<u64> {
    head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use actix_http::header::HeaderValue;

    use super::*;

    fn head(name: actix_http::header::HeaderName, value: &str) -> RequestHead {
        let mut head = RequestHead::default();
        head.headers.insert(name, HeaderValue::from_str(value).expect("a value"));
        head
    }

    fn payload(pieces: usize) -> Payload {
        let chunks = (0..pieces).map(|_| Ok(Bytes::from(vec![b'a'; 1024])));
        Payload::Stream { payload: Box::pin(futures_util::stream::iter(chunks)) }
    }

    async fn count_bytes(payload: Payload) -> usize {
        payload.fold(0, async |sum, chunk| sum + chunk.expect("a chunk").len()).await
    }

    #[actix_web::test]
    async fn small_bodies_are_retained_and_large_ones_streamed() {
        let budget = retained_budget();
        for (head, pieces, is_retained) in [
            (head(CONTENT_LENGTH, "65536"), 64, true),
            (head(CONTENT_LENGTH, "66560"), 65, false),
            (head(TRANSFER_ENCODING, "chunked"), 64, true),
            (head(TRANSFER_ENCODING, "chunked"), 66, false),
            // A WebSocket.
            (RequestHead::default(), 1, false),
        ] {
            let mut body = EdgeBody::of(payload(pieces));
            body.read(&head, &budget).await.expect("a body");
            body.read(&head, &budget).await.expect("a second read changes nothing");
            assert_eq!(matches!(body, EdgeBody::Retained(..)), is_retained, "{head:?}");
            assert_eq!(budget.used() > 0, is_retained, "{head:?}");
            assert_eq!(count_bytes(body.into_payload().expect("whole")).await, pieces * 1024);
            assert_eq!(budget.used(), 0);
        }
        let none = EdgeBody::of(Payload::None);
        assert!(none.can_be_sent() && matches!(none, EdgeBody::None));
    }

    #[actix_web::test]
    async fn without_budget_a_small_body_is_streamed() {
        let budget = retained_budget();
        let reservations: Vec<_> = (0..RETAINED_TOTAL_BYTES_MAX / RETAINED_BYTES_MAX)
            .map(|_| budget.try_reserve(Vec::new(), RETAINED_BYTES_MAX))
            .collect();
        assert!(reservations.iter().all(Option::is_some));
        let mut body = EdgeBody::of(payload(1));
        body.read(&head(CONTENT_LENGTH, "1024"), &budget).await.expect("a body");
        assert!(matches!(body, EdgeBody::Streamed(..)));
        drop(reservations);
        assert!(budget.try_reserve(Vec::new(), RETAINED_BYTES_MAX).is_some());
    }
}
