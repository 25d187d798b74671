//! A streamed response body that checks the lease before each piece.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_http::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;
use hotline_persistence::cluster::Lease;

/// A body that fails with an error once the lease has expired.
pub(super) struct LeasedBody {
    pub(super) body: BoxBody,
    pub(super) lease: Lease,
}

impl MessageBody for LeasedBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = self.get_mut();
        let piece = this.body.as_pin_mut().poll_next(cx);
        match piece {
            Poll::Ready(Some(Ok(_))) if !this.lease.holds() => {
                let error: io::Error = io::ErrorKind::ConnectionAborted.into();
                Poll::Ready(Some(Err(error.into())))
            }
            piece => piece,
        }
    }
}
