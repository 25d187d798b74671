//! `HEAD` wherever there is `GET`: what stands behind serves a `GET`, and of its answer the head is sent.

use actix_web::body::{BodySize, BodyStream, BoxBody, MessageBody, SizedStream};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest};
use bytes::Bytes;
use futures_util::stream::empty;

/// Marks a request of which only the head of the answer is wanted.
struct HeadOnly;

/// Whether only the head of the answer is wanted: what a `GET` does besides answering is left out then.
pub fn is_asked_alone(request: &HttpRequest) -> bool {
    request.extensions().get::<HeadOnly>().is_some()
}

/// Serves `HEAD` as `GET`.
///
/// # Errors
/// Whatever stands behind says.
pub async fn as_get<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if *request.method() != Method::HEAD {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    request.head_mut().method = Method::GET;
    request.extensions_mut().insert(HeadOnly);
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| match body.size() {
        // The length is told, and nothing follows.
        BodySize::Sized(length) => BoxBody::new(SizedStream::new(length, empty::<Result<Bytes, std::io::Error>>())),
        // So is that there is no saying how long it would be.
        BodySize::Stream => BoxBody::new(BodyStream::new(empty::<Result<Bytes, std::io::Error>>())),
        BodySize::None => BoxBody::new(()),
    }))
}
