//! `HEAD` for every `GET`: the inner service handles it as a `GET`, and only the head of the response is sent.

use actix_web::body::{BodySize, BodyStream, BoxBody, MessageBody, SizedStream};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest};
use bytes::Bytes;
use futures_util::stream::empty;

/// Marks a request that wants only the head of the response.
struct HeadOnly;

/// Whether only the head of the response is wanted; the side effects of a `GET` are skipped then.
pub fn is_head_request(request: &HttpRequest) -> bool {
    request.extensions().get::<HeadOnly>().is_some()
}

/// Serves `HEAD` as `GET`.
///
/// # Errors
/// Errors of the inner service.
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
        // Declares the length, and sends no body.
        BodySize::Sized(length) => BoxBody::new(SizedStream::new(length, empty::<Result<Bytes, std::io::Error>>())),
        // Declares a stream of unknown length, and sends no body.
        BodySize::Stream => BoxBody::new(BodyStream::new(empty::<Result<Bytes, std::io::Error>>())),
        BodySize::None => BoxBody::new(()),
    }))
}
