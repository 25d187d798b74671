//! Request ids: the caller's own if it is plain (at most 64 letters, digits, `-`, `_` and `.`), else a new one. The id
//! is in the response and in every log line of the request.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage};
use rand::RngExt;
use tracing::Instrument;

use super::hardening::harden;
use super::rate::{RateLimits, Unlimited};
use crate::metrics::Metrics;
use crate::telemetry::{self, RequestSummary};
use crate::web::response::error::ApiError;
use crate::web::tenant::Tenant;

/// The header with the id.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, in its extensions.
#[derive(Clone, Debug)]
pub struct RequestId(pub HeaderValue);

impl RequestId {
    /// The id as text; it is always plain ASCII.
    pub fn text(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Maximum length of a caller's own id.
const CHARACTERS_MAX: usize = 64;

/// Assigns the request's id, logs and counts the request, and adds the id, the rate and the security headers to the
/// response.
///
/// # Errors
/// Errors of the inner service.
pub async fn assign_request_id<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id = RequestId(of(request.headers()));
    request.extensions_mut().insert(id.clone());
    // At the level of errors, so that log lines carry the request's id whatever the configured level. The query and the
    // body are left out: both may contain names and numbers.
    let span =
        tracing::error_span!("request", id = id.text(), method = request.method().as_str(), path = request.path());
    let exported_span = telemetry::exported_span(&span, request.headers());
    // Copied before the inner service consumes the request.
    let method = exported_span.is_some().then(|| request.method().clone());
    let started_at = std::time::Instant::now();
    let rates = request.app_data::<Data<RateLimits>>().cloned();
    let metrics_and_operation = request.app_data::<Data<Metrics>>().cloned().map(|metrics| {
        let operation = metrics.requests.find(request.match_info().as_str(), request.method().as_str());
        (metrics, operation)
    });
    let result = call_logged(&next, request, started_at).instrument(span).await;
    if let Some((metrics, operation)) = metrics_and_operation {
        let status =
            result.as_ref().map_or_else(|error| error.as_response_error().status_code(), |response| response.status());
        metrics.requests.add_response(operation, status.as_u16(), started_at.elapsed());
        if let Some((span, method)) = exported_span.zip(method) {
            let tenant =
                result.as_ref().ok().and_then(|response| response.request().extensions().get::<Tenant>().copied());
            let company = tenant.map(|Tenant(company)| company.0);
            let (method, route) = (method.as_str(), metrics.requests.route(operation));
            let summary = RequestSummary { id: id.text(), method, route, status: status.as_u16(), company };
            telemetry::end_exported_span(span, &summary);
        }
    }
    Ok(complete(result?, id, rates))
}

/// Calls the inner service, and logs the status of its response.
async fn call_logged<B: MessageBody + 'static>(
    next: &Next<B>,
    request: ServiceRequest,
    started_at: std::time::Instant,
) -> Result<ServiceResponse<B>, Error> {
    let response = next.call(request).await;
    if let Ok(response) = &response {
        let duration_ms = u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(status = response.status().as_u16(), duration_ms, "answered");
    }
    response
}

/// Adds what every response has: the id, the rate unless there is none, and the security headers.
fn complete<B: MessageBody + 'static>(
    mut response: ServiceResponse<B>,
    id: RequestId,
    rates: Option<Data<RateLimits>>,
) -> ServiceResponse<BoxBody> {
    let is_unlimited = response.request().extensions().get::<Unlimited>().is_some();
    if let Some(rates) = rates.filter(|_| !is_unlimited) {
        rates.default_allowance().write_if_missing(response.headers_mut());
    }
    let mut response = add_request_id(response, id.text());
    response.headers_mut().insert(X_REQUEST_ID, id.0);
    harden(&mut response);
    response
}

/// The id for a request with these headers.
pub(crate) fn of(headers: &HeaderMap) -> HeaderValue {
    let from_caller = headers.get(X_REQUEST_ID).filter(|id| is_plain(id.as_bytes()));
    from_caller.cloned().unwrap_or_else(new_id)
}

/// Puts the request's id into the message of an internal error, so that it can be found in the logs.
fn add_request_id<B: MessageBody + 'static>(response: ServiceResponse<B>, id: &str) -> ServiceResponse<BoxBody> {
    if response.status() != StatusCode::INTERNAL_SERVER_ERROR {
        return response.map_into_boxed_body();
    }
    let body = ApiError::defect(format!("internal error; request {id}")).body();
    let mut response = response.map_body(|head, _| {
        head.headers.remove(CONTENT_LENGTH);
        BoxBody::new(body)
    });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn is_plain(id: &[u8]) -> bool {
    (1..=CHARACTERS_MAX).contains(&id.len())
        && id.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// A unique id: 96 random bits.
pub(crate) fn new_id() -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let random: [u8; 12] = rand::rng().random();
    let mut id = *b"req_000000000000000000000000";
    for (pair, byte) in id[4..].chunks_exact_mut(2).zip(random) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    // Always valid: the id is ASCII.
    HeaderValue::from_bytes(&id).unwrap_or(HeaderValue::from_static("req_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_ids_are_plain_and_differ() {
        let (first, second) = (new_id(), new_id());
        assert!(is_plain(first.as_bytes()) && first.as_bytes().starts_with(b"req_"), "{first:?}");
        assert_ne!(first, second);
    }
}
