//! The JSON body as an extractor: it checks the size and the content type, and reads the body field by field.

use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use hotline_persistence::controls;
use serde_json::{Map, Value};

use super::body_scheduler;
use super::decompression::decompress;
use super::fields::{Fields, Input};
use super::json;
use super::meter::Meter;
use crate::web::connections::{MinRateStream, body_error};
use crate::web::response::error::ApiError;

/// Maximum bytes that are drained from a refused body before the connection is closed, in multiples of its size limit;
/// for a form, in multiples of the size limit of one file.
pub(super) const DRAINED_FACTOR: usize = 8;

/// A JSON body that passed validation.
pub struct Body<T>(pub T);

impl<T: Input + Send + 'static> FromRequest for Body<T> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let is_json = is_json(request);
        let (payload, request) = (decompress(request.headers(), payload.take()), request.clone());
        Box::pin(async move {
            if !is_json {
                return Err(ApiError::unsupported_media_type());
            }
            let meter = request.extensions().get::<Meter>().cloned();
            let bytes = read(&request, &mut payload?, T::BYTES_MAX, |_| ()).await?;
            meter.map_or(Ok(()), |meter| meter.count(bytes.len()))?;
            let is_from_visitor = is_from_visitor(&request);
            body_scheduler::parse(&request, bytes.len(), move || parse_from(&bytes, is_from_visitor)).await.map(Body)
        })
    }
}

/// Whether the content type is JSON. A body without a content type counts as JSON; an empty one is then refused as
/// invalid JSON where a body is required.
pub(super) fn is_json(request: &HttpRequest) -> bool {
    !request.headers().contains_key(CONTENT_TYPE) || request.content_type().eq_ignore_ascii_case("application/json")
}

/// Marks a request of a visitor: control characters in its texts are removed; in a caller's texts they are refused.
pub struct FromVisitor;

pub(super) fn is_from_visitor(request: &HttpRequest) -> bool {
    request.extensions().contains::<FromVisitor>()
}

/// Parses a body's bytes into the endpoint's input.
///
/// # Errors
/// `400` when the bytes are not JSON, `422` with every field that is missing or invalid.
pub fn parse<T: Input>(bytes: &[u8]) -> Result<T, ApiError> {
    parse_from(bytes, false)
}

/// Like [`parse`]; with `is_from_visitor`, control characters are removed instead of refused.
pub(super) fn parse_from<T: Input>(bytes: &[u8], is_from_visitor: bool) -> Result<T, ApiError> {
    if bytes.is_empty() && T::MAY_BE_EMPTY {
        return Fields::parse(&Value::Object(Map::new()), b"{}");
    }
    let mut value =
        json::parse(bytes).map_err(|error| ApiError::bad_request(format!("the body is not valid JSON: {error}")))?;
    if is_from_visitor {
        controls::remove_from_value(&mut value);
    }
    Fields::parse(&value, bytes)
}

/// Reads the whole body of a request and passes every chunk to `on_chunk`. A large body waits for a permit before the
/// rest of it is read.
///
/// # Errors
/// `413` when it exceeds the size limit, `408` when it arrives too slowly, `400` when it breaks off, `503` when no
/// permit becomes free.
pub async fn read(
    request: &HttpRequest,
    payload: &mut Payload,
    bytes_max: usize,
    mut on_chunk: impl FnMut(&Bytes),
) -> Result<Bytes, ApiError> {
    let mut bytes = BytesMut::new();
    let mut refusal = None;
    // The rest of a refused body is read and discarded: a client that is still writing must be able to read the
    // response.
    let mut remaining = bytes_max * DRAINED_FACTOR;
    let mut chunks = MinRateStream::new(payload);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(body_error)?;
        let (before, after) = (bytes.len(), bytes.len() + chunk.len());
        if refusal.is_none() && after > bytes_max {
            refusal = Some(ApiError::payload_too_large(bytes_max));
        } else if refusal.is_none() && (before..after).contains(&body_scheduler::LARGE_BYTES) {
            refusal = Box::pin(body_scheduler::acquire_permit(request)).await.err();
        }
        if refusal.is_some() {
            remaining = remaining.saturating_sub(chunk.len());
            if remaining == 0 {
                break;
            }
        } else {
            on_chunk(&chunk);
            bytes.extend_from_slice(&chunk);
        }
    }
    refusal.map_or_else(|| Ok(bytes.freeze()), Err)
}
