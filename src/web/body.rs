//! The JSON body as an extractor: bounded, of the right kind, read field by field.

use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde_json::{Map, Value};

use super::wire::{Paced, body_error};
use super::{ApiError, Fields, Input};

/// Bytes of a JSON body.
pub const JSON_BYTES_MAX: usize = 1024 * 1024;

/// How many times the limit is read at most before the connection is given up.
pub(super) const DRAINED_FACTOR: usize = 8;

/// A JSON body that was accepted.
pub struct Body<T>(pub T);

impl<T: Input + 'static> FromRequest for Body<T> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let is_json = is_json(request);
        let mut payload = payload.take();
        Box::pin(async move {
            if !is_json {
                return Err(ApiError::unsupported_media_type());
            }
            parse(&read(&mut payload).await?).map(Body)
        })
    }
}

/// Whether the body says it is JSON. An empty body has no type, and is refused as no JSON where one is needed.
pub(super) fn is_json(request: &HttpRequest) -> bool {
    !request.headers().contains_key(CONTENT_TYPE) || request.content_type().eq_ignore_ascii_case("application/json")
}

/// Reads a body's bytes as the endpoint takes them.
///
/// # Errors
/// `400` when they are no JSON, `422` with every field that is missing or not accepted.
pub fn parse<T: Input>(bytes: &[u8]) -> Result<T, ApiError> {
    if bytes.is_empty() && T::MAY_BE_EMPTY {
        return Fields::parse(&Value::Object(Map::new()));
    }
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))?;
    Fields::parse(&value)
}

/// Reads a whole body.
///
/// # Errors
/// `413` when it is larger than JSON may be, `408` when it comes too slowly, `400` when it breaks off.
pub async fn read(payload: &mut Payload) -> Result<Bytes, ApiError> {
    read_up_to(payload, JSON_BYTES_MAX).await
}

/// The same of one that may be larger, or must be smaller.
///
/// # Errors
/// As of [`read`].
pub async fn read_up_to(payload: &mut Payload, bytes_max: usize) -> Result<Bytes, ApiError> {
    let mut bytes = BytesMut::new();
    let mut too_large = false;
    // What is too large is read to its end and thrown away: a client that is still writing must be able to read
    // the answer.
    let mut left = bytes_max * DRAINED_FACTOR;
    let mut chunks = Paced::new(payload);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(body_error)?;
        too_large |= bytes.len() + chunk.len() > bytes_max;
        if too_large {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                break;
            }
        } else {
            bytes.extend_from_slice(&chunk);
        }
    }
    if too_large { Err(ApiError::payload_too_large(bytes_max)) } else { Ok(bytes.freeze()) }
}
