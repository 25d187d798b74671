//! Idempotency: a `POST` or `PUT` with an `Idempotency-Key` is executed once, however often it is sent.
//!
//! The response is recorded atomically with its effect: [`Idempotency`] passes the record to the actor as part of the
//! change's own journal entry, or writes it in the transaction of a plain change. Neither the record nor the effect
//! ever exists without the other. A response without an effect (a refusal, or a success that changed nothing) is
//! recorded separately, afterwards. A secret that is shown once is never recorded: a retry finds `null` in its place.

mod atomic;
mod canonical;
mod keys;

use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody, to_bytes};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_ENCODING, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, ResponseError};
use bytes::Bytes;
use hotline_actors::Engine;
use hotline_persistence::tables::events::{By, act_as};
use hotline_persistence::tables::idempotency_keys::{self, AnswerRow, Digest};
use hotline_persistence::tables::people::sessions::SignedInPerson;
use hotline_persistence::tables::people::{INSTALLATION, PersonId};
use hotline_persistence::{Change, CompanyId};
use sha2::Sha256;
use sha2::digest::Update;
use tracing::Instrument;

pub use atomic::Idempotency;
use atomic::{KeyedRequest, insert_record};
pub use keys::Keys;

use super::caller::Caller;
use super::request_id::{RequestId, X_REQUEST_ID};
use crate::media::Media;
use crate::metrics::Metrics;
use crate::web::request::decompression::decompress;
use crate::web::request::{body, body_scheduler, form};
use crate::web::response::error::{ApiError, ApiResult};
use crate::web::response::reply;
use crate::web::response::reply::RecordedBody;

/// The header with the key.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header that marks a replayed response.
pub const IDEMPOTENT_REPLAY: HeaderName = HeaderName::from_static("idempotent-replay");

/// Maximum length of a key, in characters.
pub const KEY_CHARACTERS_MAX: usize = 200;

/// Refusals that are not recorded. A retry may have the permission or be within the rate, and a record would lose the
/// `Allow` header of a 405.
const UNRECORDED: [u16; 3] = [403, 405, 429];

/// Detects retries and replays their responses.
pub struct IdempotencyState {
    /// The used keys.
    pub keys: Keys,
    /// Stores and reads recorded responses.
    pub engine: Engine,
    /// Spools a form to disk while its fingerprint is computed.
    pub media: Media,
    /// Counts replays.
    pub metrics: Data<Metrics>,
    /// The maximum body size at a path, in bytes: the body is read here, before its handler reads it.
    pub body_bytes_max: fn(&str) -> usize,
}

impl IdempotencyState {
    /// Drops everything known of a company's keys.
    pub fn forget(&self, company: CompanyId) {
        let Self { keys, engine: _, media: _, metrics: _, body_bytes_max: _ } = self;
        keys.forget(company);
    }
}

/// Whose keys a request uses: its caller's. A request outside of any company has no caller, and this extension instead.
#[derive(Clone, Copy)]
pub struct KeyOwner {
    company: CompanyId,
    /// `None` for the holder of a token.
    person: Option<PersonId>,
}

impl KeyOwner {
    /// The person who makes a request outside of any company.
    pub fn person(person: PersonId) -> Self {
        Self { company: person.company(), person: Some(person) }
    }

    fn of(request: &ServiceRequest) -> Option<Self> {
        let extensions = request.extensions();
        let of_caller =
            |caller: &Caller| Self { company: caller.company, person: caller.signed_in().map(SignedInPerson::person) };
        extensions.get::<Self>().copied().or_else(|| extensions.get::<Caller>().map(of_caller))
    }
}

/// Whether requests with this method may have a key.
pub fn applies_to(method: &Method) -> bool {
    method == Method::POST || method == Method::PUT
}

/// Executes a request with a key once, and replays the recorded response to its retries.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn execute_once<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let header = request.headers().get(IDEMPOTENCY_KEY).filter(|_| applies_to(request.method())).cloned();
    let author = author_of(&request);
    let Some(header) = header else { return Ok(act_as(author, next.call(request)).await?.map_into_boxed_body()) };
    let id = request.extensions().get::<RequestId>().cloned();
    // A request that has started runs to its end, even if its caller disconnects: a retry must not start while the
    // first attempt is half done.
    let serving = act_as(author, async move { serve(request, &header, next).await });
    let task = actix_web::rt::spawn(serving.in_current_span());
    let outcome = task.await.unwrap_or_else(|panic| Err(panic_error(panic, id)));
    hotline_persistence::fail_point!("once_answered", |_| std::process::abort());
    outcome
}

/// The author of the request's changes.
fn author_of(request: &ServiceRequest) -> By {
    request.extensions().get::<Caller>().map(Caller::event_author).unwrap_or_default()
}

/// The response to a request that panicked and so produced none.
fn panic_error(panic: impl std::fmt::Display, id: Option<RequestId>) -> Error {
    // Logs the panic, and is the response if the request has no id.
    let mut response = ApiError::internal(&panic).error_response();
    if let Some(id) = id {
        response = ApiError::defect(format!("internal error; request {}", id.text())).error_response();
        response.headers_mut().insert(X_REQUEST_ID, id.0);
    }
    InternalError::from_response("a panic", response).into()
}

async fn serve<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    header: &HeaderValue,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let prepared = prepare(&mut request, header).await;
    let (state, keyed_request) = match prepared {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(refuse(request, &refused)),
    };
    match look_up(&state, &keyed_request).await {
        Err(refused) => Ok(refuse(request, &refused)),
        Ok(Some(record)) if record.fingerprint == keyed_request.fingerprint => {
            state.metrics.add_replay();
            Ok(replay(request, record.status, record.body.clone().into_bytes()))
        }
        Ok(Some(_)) => Ok(refuse(request, &ApiError::idempotency_conflict())),
        Ok(None) => {
            hotline_persistence::fail_point!("once_begun", |_| std::process::abort());
            request.extensions_mut().insert(keyed_request.clone());
            let response = next.call(request).await?;
            // The response keeps the request until it is written out, and the request must not keep the lock that long.
            response.request().extensions_mut().remove::<Arc<KeyedRequest>>();
            Ok(record_response(&state, &keyed_request, response.map_into_boxed_body()).await)
        }
    }
}

fn refuse(request: ServiceRequest, refused: &ApiError) -> ServiceResponse<BoxBody> {
    request.into_response(refused.error_response())
}

/// Reads the request and locks its key: retries wait here, and then find the response to the first attempt.
async fn prepare(
    request: &mut ServiceRequest,
    header: &HeaderValue,
) -> ApiResult<(Data<IdempotencyState>, Arc<KeyedRequest>)> {
    let key = header.to_str().ok().filter(|key| is_valid_key(key)).ok_or_else(|| {
        ApiError::bad_request(format!("Idempotency-Key must be 1 to {KEY_CHARACTERS_MAX} visible ASCII characters"))
    })?;
    let state = request.app_data::<Data<IdempotencyState>>().cloned();
    let state = state.ok_or_else(|| ApiError::internal("the idempotency state is missing"))?;
    let owner = KeyOwner::of(request).ok_or_else(ApiError::unauthorized)?;
    let company = owner.company;
    let mut hash = Sha256::default();
    for part in [request.method().as_str(), request.path(), request.query_string()] {
        hash.update(part.as_bytes());
        hash.update(&[0]);
    }
    // The fingerprint covers the decompressed body, because a retry may compress it differently.
    let payload = request.take_payload();
    let payload = decompress(request.headers(), payload)?;
    request.headers_mut().remove(CONTENT_ENCODING);
    let payload = if form::is_form(request.request()) {
        // Boxed, because this future is large: requests without a form would reserve and copy its space, too.
        Box::pin(form::spool(company, payload, &state.media, |chunk| hash.update(chunk))).await?
    } else {
        let mut payload = payload;
        let bytes_max = (state.body_bytes_max)(request.match_info().as_str());
        let bytes = body::read(request.request(), &mut payload, bytes_max, |_| ()).await?;
        let body = bytes.clone();
        hash = body_scheduler::parse(request.request(), bytes.len(), move || {
            canonical::feed(&body, &mut |part| hash.update(part));
            Ok(hash)
        })
        .await?;
        Payload::from(bytes)
    };
    let fingerprint = Digest::from(hash);
    request.set_payload(payload);
    let lock = state.keys.lock_key(company, key_digest(owner, key)).await?;
    Ok((state, Arc::new(KeyedRequest::new(lock, fingerprint))))
}

/// The recorded form of a key. All tokens of a company share its keys, so that an integration may retry with another
/// token; each person has their own, so that none receives another's response.
fn key_digest(owner: KeyOwner, key: &str) -> Digest {
    match owner.person {
        None => Digest::of(&[key.as_bytes()]),
        // No key contains the byte that separates the parts.
        Some(person) => {
            let kind: &[u8] = if person.is_admin() { b"\0admin\0" } else { b"\0user\0" };
            Digest::of(&[kind, &person.id().to_be_bytes(), b"\0", key.as_bytes()])
        }
    }
}

fn is_valid_key(key: &str) -> bool {
    (1..=KEY_CHARACTERS_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The unexpired response recorded under this key, if there is one.
async fn look_up(state: &IdempotencyState, keyed_request: &KeyedRequest) -> ApiResult<Option<Arc<AnswerRow>>> {
    let (company, key) = (keyed_request.lock.company(), keyed_request.lock.key());
    if let Some(record) = state.keys.recent(company, key) {
        return Ok(Some(record));
    }
    // In a cluster, any process serves requests outside of any company, so memory does not prove that their key is new.
    let is_served_here = || state.engine.store().ownership().is_placed_here(company);
    if !state.keys.may_have_been_used(company, key) && is_served_here() {
        return Ok(None);
    }
    // Boxed: this large future is not needed for a new key.
    let find = async {
        let db = state.engine.reads().tables(company).await?;
        ApiResult::Ok(idempotency_keys::find(db, company, key, keys::expiry_cutoff()).await?)
    };
    Ok(Box::pin(find).await?.map(Arc::new))
}

fn replay(request: ServiceRequest, status: i16, body: Vec<u8>) -> ServiceResponse<BoxBody> {
    let mut response = reply::respond(u16::try_from(status).unwrap_or(500), body);
    response.headers_mut().insert(IDEMPOTENT_REPLAY, HeaderValue::from_static("true"));
    request.into_response(response)
}

/// Caches the response that was recorded with the effect, or records a response without an effect.
async fn record_response(
    state: &IdempotencyState,
    keyed_request: &KeyedRequest,
    response: ServiceResponse<BoxBody>,
) -> ServiceResponse<BoxBody> {
    let status = response.status().as_u16();
    match keyed_request.take_recorded() {
        Some(record) if u16::try_from(record.status) == Ok(status) => state.keys.remember(record),
        // The effect may be durable although this response failed: the next request looks the record up.
        Some(_) => {}
        None if status >= 500 || UNRECORDED.contains(&status) => {}
        None => return record_without_effect(state, keyed_request, response).await,
    }
    hotline_persistence::fail_point!("once_recorded", |_| std::process::abort());
    response
}

/// Records a response without an effect. A success must not be sent without its record, because a later retry might
/// have an effect: a transfer to the ticket's current queue changes nothing now, but would after another transfer. A
/// refusal may be sent without a record: its caller knows that nothing happened. A response whose body cannot be read
/// becomes a `500` without a record, so that a retry is executed.
async fn record_without_effect(
    state: &IdempotencyState,
    keyed_request: &KeyedRequest,
    response: ServiceResponse<BoxBody>,
) -> ServiceResponse<BoxBody> {
    let (request, mut response) = response.into_parts();
    // If the body contains a secret, the extensions contain a body without it, which is recorded instead.
    let recorded_body = response.extensions_mut().remove::<RecordedBody>();
    let (head, body) = response.into_parts();
    let bytes = match read_body(body).await {
        Ok(bytes) => bytes,
        Err(defect) => return ServiceResponse::new(request, defect.error_response()),
    };
    let body_to_record = recorded_body.as_ref().map_or(&bytes[..], |recorded_body| &recorded_body.0[..]);
    let result = match std::str::from_utf8(body_to_record) {
        Ok(text) => {
            store_record(state, keyed_request, keyed_request.new_record(head.status().as_u16(), text.to_owned())).await
        }
        // A body that is not text, such as a file, cannot be recorded.
        Err(_) => Ok(()),
    };
    let response = match result {
        Err(refused) if head.status().is_success() => refused.error_response(),
        Ok(()) | Err(_) => head.set_body(BoxBody::new(bytes)),
    };
    ServiceResponse::new(request, response)
}

async fn read_body(body: BoxBody) -> ApiResult<Bytes> {
    hotline_persistence::fail_point!("once_body_lost", |_| Err(ApiError::internal("fail point")));
    to_bytes(body).await.map_err(ApiError::internal)
}

async fn store_record(state: &IdempotencyState, keyed_request: &KeyedRequest, record: AnswerRow) -> ApiResult<()> {
    hotline_persistence::fail_point!("once_alone_lost", |_| Err(ApiError::unavailable()));
    if record.company_id == INSTALLATION {
        return insert_alone(state, keyed_request, record).await;
    }
    let reservation = state.engine.store().log.reserve(record.company_id)?;
    let (_, durable) = reservation.append(vec![Change::Answer(Box::new(record.clone()))])?;
    // From here on the record may be durable, even if the wait fails.
    keyed_request.lock.mark_used(record.key);
    durable.wait().await?;
    state.keys.remember(record);
    Ok(())
}

/// Stores the response to a request outside of any company. In a cluster, the log takes only entries of companies that
/// the process serves.
async fn insert_alone(state: &IdempotencyState, keyed_request: &KeyedRequest, record: AnswerRow) -> ApiResult<()> {
    let mut transaction = state.engine.store().db(record.company_id).begin().await?;
    keyed_request.lock.mark_used(record.key);
    insert_record(transaction.connection()?, &record).await?;
    transaction.commit().await?;
    state.keys.remember(record);
    Ok(())
}
