//! Bounds what answers take in memory until their readers have taken them
//! ([decision 49](../../../docs/decisions/0049-unread-responses-are-limited-by-bytes.md)).
//!
//! A connection takes an answer by pieces (`wire`). The rest of it stays in memory, and is counted by the reader's address,
//! by company, and in all. Where a share is used up, an answer waits for a moment and is then replaced by `503`. What reads
//! its content by pieces itself, such as a file or a stream, is counted by its pieces. What all readers share is not counted.

mod pieces;
mod shares;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, LINK, ORIGIN, VARY,
};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, ResponseError};
use bytes::Bytes;
use hotline_actors::ttl_cache::TtlCache;
use hotline_persistence::CompanyId;
use hotline_persistence::large::until_built;

use self::pieces::Pieces;
use self::shares::{Ledger, Place, Reader};
use super::auth::Admission;
use super::body_scheduler::Tenant;
use super::head::is_asked_alone;
use super::origin::{self, Address};
use super::{ApiError, OutcomeUnknown};

/// Answers up to this size are part of what a connection may take: they leave in one piece.
const SMALL_BYTES: usize = super::wire::ANSWER_PIECE_BYTES;

/// Answers from this size are remembered, so that the next one like it finds its place before it is built.
const REMEMBERED_BYTES: usize = 256 << 10;

/// How long they are remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Remembered answers, some 100 bytes each.
const REMEMBERED_MAX: usize = 10_000;

/// `Retry-After` in seconds: a reader who takes an answer needs less, one who takes nothing is cut off after ten.
const RETRY_AFTER_S: u64 = 2;

/// Headers of the answer that a refusal does not inherit.
const OF_CONTENT: [HeaderName; 7] =
    [CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, CACHE_CONTROL, ETAG, LINK];

/// The answers that are in memory until they are taken.
pub struct Unread {
    ledger: Ledger,
    /// The size of the last large answer to an address, by what was asked for: a request that is held until something
    /// happens asks for something else each time, and holds no place meanwhile.
    large: TtlCache<(Option<Address>, u64), (Reader, usize)>,
}

impl Default for Unread {
    fn default() -> Self {
        Self { ledger: Ledger::default(), large: TtlCache::new(REMEMBERED_MAX, REMEMBERED_FOR) }
    }
}

impl Unread {
    /// Waits for the place of an answer before it is built, if the last one like it was large.
    ///
    /// # Errors
    /// `503` when none became free in time.
    async fn reserve(&self, like: (Option<Address>, u64)) -> Result<Option<Place>, ApiError> {
        let Some((reader, bytes)) = self.large.get(&like) else { return Ok(None) };
        self.ledger.take(reader, bytes).await.map(Some).ok_or_else(too_much)
    }

    /// A place for what is about to be read for a reader who takes it at their own pace, if there is one now.
    pub fn hold(&self, address: Option<Address>, company: CompanyId, bytes: usize) -> Option<Held> {
        self.ledger.try_take(Reader { address, company: Some(company) }, bytes).map(Held)
    }
}

/// What is held for a reader beside an answer; dropping it frees its place.
pub struct Held(Place);

impl Held {
    /// Keeps the place of so many bytes: it is less than was thought.
    pub fn shrink(&mut self, bytes: usize) {
        self.0.shrink(bytes);
    }
}

fn too_much() -> ApiError {
    let mut error = ApiError::unavailable();
    error.message = "too many responses are waiting to be read; read them and try again".to_owned();
    error.retry_after_s = Some(RETRY_AFTER_S);
    error
}

/// Counts the answer to a request until its reader has taken it.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn count<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let parts = request.app_data::<Data<Unread>>().cloned().zip(request.app_data::<Data<Admission>>().cloned());
    let Some((unread, admission)) = parts else {
        return Ok(request.into_response(ApiError::internal("the memory of responses is not metered").error_response()));
    };
    let origin = origin::of(request.peer_addr(), request.headers(), &admission.trusted_proxies);
    let address = origin.map(Address::of);
    let like = (address, asked_by(&request));
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let reserved = match unread.reserve(like).await {
        Ok(reserved) => reserved,
        Err(refused) => {
            let mut refused = refused.error_response();
            for_any_page(request.headers(), refused.headers_mut());
            return Ok(request.into_response(refused));
        }
    };
    // Of what the answer is made of, little is in memory once it is built.
    let response = until_built(next.call(request)).await?;
    let company = response.request().extensions().get::<Tenant>().map(|Tenant(company)| *company);
    if is_asked_alone(response.request()) {
        return Ok(response.map_into_boxed_body());
    }
    let (request, response) = response.into_parts();
    let (mut head, body) = response.into_parts();
    let reader = Reader { address, company };
    let bytes = match body.boxed().try_into_bytes() {
        // What others hold as well takes no memory of its own.
        Ok(bytes) if bytes.len() > SMALL_BYTES && bytes.is_unique() => bytes,
        Ok(bytes) => return Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(bytes)))),
        Err(body) => {
            let body = Pieces::new(body, unread.ledger.clone(), reader);
            return Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(body))));
        }
    };
    if bytes.len() >= REMEMBERED_BYTES {
        unread.large.insert(like, (reader, bytes.len()));
    }
    drop(reserved);
    match unread.ledger.take_for(reader, bytes.len()).await {
        Some(place) => {
            let body = BoxBody::new(Counted { bytes: Some(bytes), _place: place });
            Ok(ServiceResponse::new(request, head.set_body(body)))
        }
        None if is_read => {
            let mut refused = too_much().error_response();
            for (name, value) in head.headers().iter().filter(|(name, _)| !OF_CONTENT.contains(name)) {
                refused.headers_mut().append(name.clone(), value.clone());
            }
            Ok(ServiceResponse::new(request, refused))
        }
        // The change was made: nothing else may be answered than what it is.
        None => {
            head.extensions_mut().insert(OutcomeUnknown);
            Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(()))))
        }
    }
}

/// Lets the page that asked read the refusal, which tells nothing of any company: a webchat's own check of the page comes
/// later.
fn for_any_page(asked: &HeaderMap, refused: &mut HeaderMap) {
    let Some(origin) = asked.get(ORIGIN) else { return };
    refused.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    refused.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Retry-After, X-Request-Id"));
    refused.append(VARY, HeaderValue::from_static("Origin"));
}

/// The method, the path and the query, as a number.
fn asked_by(request: &ServiceRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    (request.method().as_str(), request.path(), request.query_string()).hash(&mut hasher);
    hasher.finish()
}

/// An answer that is counted.
struct Counted {
    /// `None` once it was handed over.
    bytes: Option<Bytes>,
    _place: Place,
}

impl MessageBody for Counted {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(self.bytes.take().map(Ok))
    }
}
