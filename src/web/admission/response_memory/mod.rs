//! Limits the memory of responses until they are sent
//! ([decision 49](../../../../docs/decisions/0049-unread-responses-are-limited-by-bytes.md)).
//!
//! A connection sends a response in pieces (`connections`). The rest of the response stays in memory, and is counted by
//! the reader's address, by company, and in total. Where a limit is reached, a response waits for two seconds at most.
//! It is then replaced by `503`; if the request may have made a change, the connection is closed instead. Bodies that
//! are produced in pieces, such as files and streams, are counted by piece. Memory that all readers share is not
//! counted.

mod counted_stream;
mod ledger;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION,
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, ETAG, HeaderMap, HeaderName, HeaderValue, LINK, ORIGIN,
    VARY,
};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse, ResponseError};
use bytes::Bytes;
use hotline_actors::ttl_cache::TtlCache;
use hotline_persistence::CompanyId;
use hotline_persistence::large::until_built;

use self::counted_stream::CountedStream;
use self::ledger::{Ledger, Reader, Reservation};
use super::auth::Admission;
use crate::web::connections::origin::{self, Address};
use crate::web::request::body::FromVisitor;
use crate::web::response::error::{ApiError, OutcomeUnknown};
use crate::web::response::head::is_head_request;
use crate::web::tenant::{COMPANY_HEADER, Tenant};

/// Responses up to this size are not counted: a connection sends them in one piece.
const SMALL_BYTES: usize = crate::web::connections::RESPONSE_PIECE_BYTES;

/// Responses of at least this size are remembered, so that the next response to the same request and address reserves
/// its memory before it is built.
const REMEMBERED_BYTES: usize = 256 << 10;

/// How long such responses are remembered.
const REMEMBERED_TIME: Duration = Duration::from_secs(60);

/// Maximum number of remembered responses, about 100 bytes each.
const REMEMBERED_MAX: usize = 10_000;

/// `Retry-After` in seconds. A client that reads frees its memory sooner; one that does not read is disconnected after
/// ten seconds.
const RETRY_AFTER_S: u64 = 2;

/// Headers of the response that a refusal does not inherit.
const CONTENT_HEADERS: [HeaderName; 7] =
    [CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, CACHE_CONTROL, ETAG, LINK];

/// Headers of the request that decide whose response it gets.
const CALLER_HEADERS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, HeaderName::from_static(COMPANY_HEADER)];

/// The memory of responses until they are sent.
pub struct ResponseMemory {
    ledger: Ledger,
    /// The size of the last large response to an address, by request and caller. Long-polling requests differ each time,
    /// so they reserve no memory while they wait.
    large: TtlCache<(Option<Address>, u64), (Reader, usize)>,
}

impl Default for ResponseMemory {
    fn default() -> Self {
        Self { ledger: Ledger::default(), large: TtlCache::new(REMEMBERED_MAX, REMEMBERED_TIME) }
    }
}

impl ResponseMemory {
    /// Reserves memory for a response before it is built, if one with this key was large recently.
    ///
    /// # Errors
    /// `503` when none became free in time.
    async fn reserve(&self, key: (Option<Address>, u64)) -> Result<Option<Reservation>, ApiError> {
        let Some((reader, bytes)) = self.large.get(&key) else { return Ok(None) };
        self.ledger.reserve(reader, bytes).await.map(Some).ok_or_else(too_many_unread)
    }

    /// Reserves memory for rows that wait until a visitor has read them, if it is available now.
    pub fn hold_for_visitor(&self, address: Option<Address>, company: CompanyId, bytes: usize) -> Option<HeldBytes> {
        self.ledger.try_reserve(Reader { address, company: Some(company), is_visitor: true }, bytes).map(HeldBytes)
    }
}

/// Memory in use for a reader outside of a response, released on drop.
pub struct HeldBytes(Reservation);

impl HeldBytes {
    /// Reduces the memory to this many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.0.shrink_to(bytes);
    }
}

fn too_many_unread() -> ApiError {
    let mut error = ApiError::unavailable();
    error.message = "too many responses are waiting to be read; read them and try again".to_owned();
    error.retry_after_s = Some(RETRY_AFTER_S);
    error
}

/// Counts the bytes of the response to a request until they are sent.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn count_response<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = request.app_data::<Data<ResponseMemory>>().cloned().zip(request.app_data::<Data<Admission>>().cloned());
    let Some((memory, admission)) = state else {
        return Ok(request.into_response(ApiError::internal("the memory of responses is not metered").error_response()));
    };
    let address = origin::of(request.peer_addr(), request.headers(), &admission.trusted_proxies).map(Address::of);
    let key = (address, request_hash(&request));
    let is_read_only = [Method::GET, Method::HEAD].contains(request.method());
    let early_reservation = match memory.reserve(key).await {
        Ok(reservation) => reservation,
        Err(refused) => return Ok(refuse_early(request, &refused)),
    };
    // A request with a large result holds a permit until its response is built.
    let response = until_built(next.call(request)).await?;
    if is_head_request(response.request()) {
        return Ok(response.map_into_boxed_body());
    }
    let (request, response) = response.into_parts();
    let (head, body) = response.into_parts();
    let reader = reader_of(&request, address);
    let bytes = match body.boxed().try_into_bytes() {
        // Shared bytes use no memory of their own.
        Ok(bytes) if bytes.len() > SMALL_BYTES && bytes.is_unique() => bytes,
        Ok(bytes) => return Ok(response_with(request, head, bytes)),
        Err(body) => return Ok(response_with(request, head, CountedStream::new(body, memory.ledger.clone(), reader))),
    };
    if bytes.len() >= REMEMBERED_BYTES {
        memory.large.insert(key, (reader, bytes.len()));
    }
    drop(early_reservation);
    Ok(match memory.ledger.reserve_in_memory(reader, bytes.len()).await {
        Some(reservation) => {
            response_with(request, head, CountedBody { bytes: Some(bytes), _reservation: reservation })
        }
        None => replace_response(request, head, is_read_only),
    })
}

/// Refuses a request before it is handled.
fn refuse_early(request: ServiceRequest, refused: &ApiError) -> ServiceResponse<BoxBody> {
    let mut refused = refused.error_response();
    allow_any_origin(request.headers(), refused.headers_mut());
    request.into_response(refused)
}

/// The recipient of the response to a request from this address.
fn reader_of(request: &HttpRequest, address: Option<Address>) -> Reader {
    let company = request.extensions().get::<Tenant>().map(|Tenant(company)| *company);
    let is_visitor = request.extensions().contains::<FromVisitor>();
    Reader { address, company, is_visitor }
}

fn response_with(
    request: HttpRequest,
    head: HttpResponse<()>,
    body: impl MessageBody + 'static,
) -> ServiceResponse<BoxBody> {
    ServiceResponse::new(request, head.set_body(BoxBody::new(body)))
}

/// Replaces a response for which no memory became free in time: by a refusal, or, if the request may have changed
/// something, by one without a body that is marked [`OutcomeUnknown`].
fn replace_response(request: HttpRequest, mut head: HttpResponse<()>, is_read_only: bool) -> ServiceResponse<BoxBody> {
    if is_read_only {
        let mut refused = too_many_unread().error_response();
        for (name, value) in head.headers().iter().filter(|(name, _)| !CONTENT_HEADERS.contains(name)) {
            refused.headers_mut().append(name.clone(), value.clone());
        }
        return ServiceResponse::new(request, refused);
    }
    // A `503` would mean that nothing was changed, but the change may have been made.
    head.extensions_mut().insert(OutcomeUnknown);
    response_with(request, head, ())
}

/// Allows pages of any origin to read the refusal, because a webchat checks the origin only later. The refusal contains
/// no data of a company.
fn allow_any_origin(request_headers: &HeaderMap, refused: &mut HeaderMap) {
    let Some(origin) = request_headers.get(ORIGIN) else { return };
    refused.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    refused.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Retry-After, X-Request-Id"));
    refused.append(VARY, HeaderValue::from_static("Origin"));
}

/// A hash of the method, the path, the query and the caller: no caller waits for the share of another one, whose company
/// may be a different one.
fn request_hash(request: &ServiceRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    (request.method().as_str(), request.path(), request.query_string()).hash(&mut hasher);
    for name in CALLER_HEADERS {
        let values: Vec<&[u8]> = request.headers().get_all(name).map(HeaderValue::as_bytes).collect();
        values.hash(&mut hasher);
    }
    hasher.finish()
}

/// A response body that is counted.
struct CountedBody {
    /// `None` once they are passed to the connection.
    bytes: Option<Bytes>,
    _reservation: Reservation,
}

impl MessageBody for CountedBody {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(self.bytes.take().map(Ok))
    }
}
