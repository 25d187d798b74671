//! Response types of handlers, which wrap every success in `data`, and their schemas in the API document.

mod page;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, ETAG, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, Responder};
use hotline_persistence::Timestamp;
use hotline_persistence::table::state_of;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub use self::page::{PAGE_BYTES_MAX, PER_PAGE, Page};
use super::error::{ApiError, ApiResult};
use super::schema::{self, Schemas};

/// A success: a status, and a body that can be built anywhere, even in an actor.
pub trait Reply: 'static {
    /// The HTTP status.
    const STATUS: u16;

    /// Whether the response is a table, which is also available as CSV on request.
    const IS_TABLE: bool = false;

    /// Whether the response has an `ETag` that a later change may send as `If-Match`.
    const HAS_ETAG: bool = false;

    /// The body; empty when there is none.
    ///
    /// # Errors
    /// `500` when a value cannot be serialized as JSON, which is not known to happen.
    fn body(&self) -> ApiResult<Vec<u8>>;

    /// The body that is recorded for retries of the request: without secrets.
    ///
    /// # Errors
    /// As for [`Reply::body`].
    fn recorded_body(&self) -> ApiResult<Vec<u8>> {
        self.body()
    }

    /// The response. If its body has a secret, its extensions have the [`RecordedBody`].
    fn respond(&self) -> HttpResponse {
        respond_with(self)
    }

    /// The body's schema in the API document; `None` when there is no body.
    fn schema(schemas: &mut Schemas) -> Option<Value>;
}

/// A resource, with its status.
pub struct Resource<T, const STATUS: u16>(pub T);

/// `200` with a resource.
pub type Json<T> = Resource<T, 200>;
/// `201` with the created resource.
pub type Created<T> = Resource<T, 201>;
/// `202` with the resource that will be processed.
pub type Accepted<T> = Resource<T, 202>;

impl<T, const STATUS: u16> Resource<T, STATUS> {
    /// Wraps the resource.
    pub fn of(resource: impl Into<T>) -> Self {
        Self(resource.into())
    }
}

/// A resource with an `ETag`, which is derived from the time of its last update.
pub trait Versioned {
    /// When it was last updated.
    fn updated_at(&self) -> Timestamp;
}

/// `200` with a resource, and its `ETag`.
pub struct Tagged<T>(pub Json<T>);

/// A resource with secrets, which are returned only once.
pub trait HasSecrets {
    /// The names of the fields with secrets, which are `null` in the response to a retry.
    const SECRETS: &'static [&'static str];
}

/// A success that contains a secret, which is returned only once and never recorded.
pub struct Confidential<R>(pub R);

/// The recorded body of a response, if it differs from the sent one.
pub struct RecordedBody(pub Vec<u8>);

/// `204` without a body.
pub struct NoContent;

#[derive(Serialize)]
struct Data<T> {
    data: T,
}

/// Approximate bytes of a resource as JSON, for the initial capacity: a body is copied each time its capacity grows.
const RESOURCE_BYTES: usize = 768;

/// Bodies of up to this many bytes keep their spare capacity.
const SPARE_BYTES_MAX: usize = 64 * 1024;

/// Serializes a value; `resources` is the number of resources in it.
fn serialize(value: &impl Serialize, resources: usize) -> ApiResult<Vec<u8>> {
    let mut body = Vec::with_capacity(RESOURCE_BYTES.saturating_mul(resources.max(1)));
    serde_json::to_writer(&mut body, value).map_err(ApiError::internal)?;
    Ok(shrink_to_fit(body))
}

/// Releases spare capacity: growth doubles the capacity, and the body is in memory until it is sent.
fn shrink_to_fit(mut body: Vec<u8>) -> Vec<u8> {
    if body.len() > SPARE_BYTES_MAX {
        body.shrink_to_fit();
    }
    body
}

impl<T: Serialize + ToSchema + 'static, const STATUS: u16> Reply for Resource<T, STATUS> {
    const STATUS: u16 = STATUS;

    fn body(&self) -> ApiResult<Vec<u8>> {
        serialize(&Data { data: &self.0 }, 1)
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        let resource = schema::of::<T>(schemas);
        let properties = json!({"data": resource});
        Some(schema::envelope::<T>(schemas, "Response", &properties, "The response."))
    }
}

impl<T: Serialize + ToSchema + 'static> Reply for Tagged<T> {
    const STATUS: u16 = 200;
    const HAS_ETAG: bool = true;

    fn body(&self) -> ApiResult<Vec<u8>> {
        self.0.body()
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        Json::<T>::schema(schemas)
    }
}

/// The `ETag` of a record that was changed last at this time.
fn etag(updated_at: Timestamp) -> String {
    format!("\"{}\"", state_of(updated_at.0))
}

impl<T: Versioned + Serialize + ToSchema + 'static> Responder for Tagged<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let tag = HeaderValue::from_str(&etag(self.0.0.updated_at()));
        let mut response = respond_with(&self);
        if let Ok(tag) = tag
            && response.status().is_success()
        {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

impl<T: Serialize + ToSchema + HasSecrets + 'static, const STATUS: u16> Reply for Confidential<Resource<T, STATUS>> {
    const STATUS: u16 = STATUS;

    fn body(&self) -> ApiResult<Vec<u8>> {
        self.0.body()
    }

    fn recorded_body(&self) -> ApiResult<Vec<u8>> {
        let mut data = serde_json::to_value(&self.0.0).map_err(ApiError::internal)?;
        for secret in T::SECRETS {
            data[*secret] = Value::Null;
        }
        serialize(&Data { data }, 1)
    }

    fn respond(&self) -> HttpResponse {
        let mut response = respond_with(self);
        match self.recorded_body() {
            Ok(body) => drop(response.extensions_mut().insert(RecordedBody(body))),
            Err(error) => return actix_web::ResponseError::error_response(&error),
        }
        response
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        Resource::<T, STATUS>::schema(schemas)
    }
}

impl Reply for NoContent {
    const STATUS: u16 = 204;

    fn body(&self) -> ApiResult<Vec<u8>> {
        Ok(Vec::new())
    }

    fn schema(_: &mut Schemas) -> Option<Value> {
        None
    }
}

/// A response with a status and a JSON body, or without a body.
pub fn respond(status: u16, body: Vec<u8>) -> HttpResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    if body.is_empty() { response.finish() } else { response.content_type(ContentType::json()).body(body) }
}

fn respond_with<R: Reply + ?Sized>(reply: &R) -> HttpResponse {
    match reply.body() {
        Ok(body) => respond(R::STATUS, body),
        Err(error) => actix_web::ResponseError::error_response(&error),
    }
}

macro_rules! responder {
    ([$($generics:tt)*] $reply:ty) => {
        impl<$($generics)*> Responder for $reply {
            type Body = BoxBody;

            fn respond_to(self, _: &HttpRequest) -> HttpResponse {
                self.respond()
            }
        }
    };
}

responder!([T: Serialize + ToSchema + 'static, const STATUS: u16] Resource<T, STATUS>);
responder!([T: Serialize + ToSchema + HasSecrets + 'static, const STATUS: u16] Confidential<Resource<T, STATUS>>);
responder!([] NoContent);
