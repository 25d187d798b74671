//! A name for every request: the caller's own if it is plain, else a new one. It is in the answer and in every log
//! line of the request.

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage};
use tracing::Instrument;

use super::ApiError;
use crate::app::App;

/// The header.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of a caller's own id.
const CHARACTERS_MAX: usize = 64;

/// The id of a request.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// Names the request, logs it, and answers with its id.
///
/// # Errors
/// Whatever stands behind says.
pub async fn name_request<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let id = request
        .headers()
        .get(X_REQUEST_ID)
        .and_then(|id| id.to_str().ok())
        .filter(|id| is_plain(id))
        .map_or_else(|| hotline_persistence::key::new_key("req_"), str::to_owned);
    request.extensions_mut().insert(RequestId(id.clone()));
    // Neither the query nor the body: both may hold names and numbers.
    let span = tracing::info_span!("request", request.id = %id, method = %request.method(), path = request.path());
    let started = std::time::Instant::now();
    let app = request.app_data::<Data<App>>().cloned();
    let operation =
        app.as_ref().map(|app| app.figures.requests.find(request.match_info().as_str(), request.method().as_str()));
    let answered = async {
        let response = next.call(request).await;
        if let Ok(response) = &response {
            let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            tracing::debug!(status = response.status().as_u16(), duration_ms, "answered");
        }
        response
    }
    .instrument(span)
    .await;
    if let (Some(app), Some(operation)) = (&app, operation) {
        let status = answered.as_ref().map_or_else(|error| error.as_response_error().status_code(), |it| it.status());
        app.figures.requests.answered(operation, status.as_u16(), started.elapsed());
    }
    let mut response = answered?;
    if let Some(app) = app {
        app.rates.untouched().write_if_missing(response.headers_mut());
    }
    let mut response = name_defect(response, &id);
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(X_REQUEST_ID, id);
    }
    Ok(response)
}

/// A defect is found again in the logs by the id its message carries.
fn name_defect<B: MessageBody + 'static>(response: ServiceResponse<B>, id: &str) -> ServiceResponse<EitherBody<B>> {
    if response.status() != StatusCode::INTERNAL_SERVER_ERROR {
        return response.map_into_left_body();
    }
    let body = ApiError::defect(format!("internal error; request {id}")).body();
    let mut response = response.map_body(|head, _| {
        head.headers.remove(CONTENT_LENGTH);
        EitherBody::right(BoxBody::new(body))
    });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn is_plain(id: &str) -> bool {
    (1..=CHARACTERS_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}
