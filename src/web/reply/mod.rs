//! Response types of handlers: `data` around every success, and their schemas in the API document.

use std::io::{self, Write};
use std::marker::PhantomData;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, ETAG, HeaderValue};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, Responder};
use hotline_persistence::Timestamp;
use hotline_persistence::select::{self, PageRequest, Position};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::cursor::ListRead;
use super::if_match::etag;
use super::params::PER_PAGE;
use super::schema::{self, Schemas};
use super::{ApiError, ApiResult};

/// A success: a status, and a body that can be built anywhere, also in an actor.
pub trait Reply: 'static {
    /// The HTTP status.
    const STATUS: u16;

    /// Whether it is also available as CSV, on request.
    const IS_TABLE: bool = false;

    /// Whether it has an `ETag` that a later change may name.
    const HAS_ETAG: bool = false;

    /// The body; empty when there is none.
    ///
    /// # Errors
    /// `500` when a value cannot be serialized as JSON, which is not known to happen.
    fn body(&self) -> ApiResult<Vec<u8>>;

    /// The body that is recorded for retries: without secrets.
    ///
    /// # Errors
    /// As of [`Reply::body`].
    fn record(&self) -> ApiResult<Vec<u8>> {
        self.body()
    }

    /// The response. Where its body has a secret, what a retry is answered is beside it.
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

/// `200` with a resource that is already serialized.
pub struct CachedJson<T> {
    body: Vec<u8>,
    resource: PhantomData<T>,
}

impl<T: Serialize> CachedJson<T> {
    /// Wraps a body from [`CachedJson::write`].
    pub fn of(body: Vec<u8>) -> Self {
        Self { body, resource: PhantomData }
    }

    /// Serializes a resource.
    ///
    /// # Errors
    /// As for [`Reply::body`].
    pub fn write(resource: &T) -> ApiResult<Vec<u8>> {
        write(&Data { data: resource }, 1)
    }
}

/// A resource whose state an `ETag` names.
pub trait Versioned {
    /// When it was changed last.
    fn updated_at(&self) -> Timestamp;
}

/// `200` with a resource, and its `ETag`.
pub struct Tagged<T>(pub Json<T>);

/// A resource with secrets, which are shown once.
pub trait ShownOnce {
    /// The names of their fields, which are `null` in what a retry is answered.
    const SECRETS: &'static [&'static str];
}

/// A success that contains a secret, which is shown once: no record of it is kept.
pub struct Confidential<R>(pub R);

/// What is recorded of a response for retries, in place of its body.
pub struct Recorded(pub Vec<u8>);

/// `204`: done, without a body.
pub struct NoContent;

/// A page of a list.
pub struct Page<T> {
    page: PageRequest,
    rows: Vec<T>,
    has_more: bool,
    positions: Vec<Position>,
    end: Option<Position>,
    /// Signs the next cursor; `None` for a page by number.
    list: Option<ListRead>,
}

impl<T> Page<T> {
    /// A page of rows, each converted by `show`.
    pub fn of<R>(page: PageRequest, listed: select::Page<R>, show: impl FnMut(R) -> T) -> Self {
        let select::Page { rows, has_more, positions, end } = listed;
        Self { page, rows: rows.into_iter().map(show).collect(), has_more, positions, end, list: None }
    }

    /// A page of rows that are all in memory, in the order of pages by number. `position` is unique, and orders pages by
    /// cursor, which begin after `after`.
    pub fn among<P: Ord + Into<Position>>(
        page: PageRequest,
        after: Option<P>,
        mut rows: Vec<T>,
        position: impl Fn(&T) -> P,
    ) -> Self {
        if page.is_by_cursor() {
            rows.sort_by_key(&position);
        }
        if page.descending {
            rows.reverse();
        }
        if let Some(after) = after {
            rows.retain(|row| if page.descending { position(row) < after } else { position(row) > after });
        }
        let (before, size) = (usize::try_from(page.offset()), usize::try_from(page.size));
        rows.drain(..before.unwrap_or(usize::MAX).min(rows.len()));
        let size = size.unwrap_or(usize::MAX);
        let has_more = rows.len() > size;
        rows.truncate(size);
        let positions = rows.iter().map(|row| position(row).into()).collect();
        Self { page, rows, has_more, positions, end: None, list: None }
    }

    /// Ends the page at [`PAGE_BYTES_MAX`]: for readers who go on from the last row they have. Returns how many rows are
    /// left. A page by number is not ended, since the next one begins where its number says.
    ///
    /// # Errors
    /// As for [`Reply::body`].
    pub fn end_by_bytes(&mut self) -> ApiResult<usize>
    where
        T: Serialize,
    {
        let fitting = fitting(&self.rows)?;
        if fitting < self.rows.len() {
            self.has_more = true;
            self.rows.truncate(fitting);
            self.positions.truncate(fitting);
            self.end = None;
        }
        Ok(fitting)
    }

    /// All rows as one page, however many.
    pub fn whole(rows: Vec<T>) -> Self {
        let size = PER_PAGE.max(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        Self::of(PageRequest::first(size), select::Page::of(rows, false), |row| row)
    }
}

/// Maximum size of a page that ends by its bytes, unless its first row alone is larger.
pub const PAGE_BYTES_MAX: usize = 1 << 20;

/// How many rows fit in a page that ends at [`PAGE_BYTES_MAX`]: at least one, if there is any.
///
/// # Errors
/// As for [`Reply::body`].
pub fn fitting<T: Serialize>(rows: &[T]) -> ApiResult<usize> {
    let mut written = Counting(0);
    for (index, row) in rows.iter().enumerate() {
        serde_json::to_writer(&mut written, row).map_err(ApiError::internal)?;
        if written.0 > PAGE_BYTES_MAX {
            return Ok(index.max(1));
        }
    }
    Ok(rows.len())
}

/// Counts what is written to it.
struct Counting(usize);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Serialize)]
struct Data<T> {
    data: T,
}

#[derive(Serialize)]
struct Rows<'a, T> {
    data: &'a [T],
    meta: Meta,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", untagged)]
enum Meta {
    #[serde(rename_all = "camelCase")]
    Numbered { page: i64, per_page: i64, has_more: bool },
    #[serde(rename_all = "camelCase")]
    Continued { per_page: i64, has_more: bool, next_cursor: Option<String> },
}

/// Approximate size of a resource as JSON, for the initial capacity: a growing body is copied each time.
const RESOURCE_BYTES: usize = 768;

/// Bodies up to this size may hold as much again in vain.
const SPARE_BYTES_MAX: usize = 64 * 1024;

/// Serializes a value; `resources` is the number of resources in it.
fn write(value: &impl Serialize, resources: usize) -> ApiResult<Vec<u8>> {
    let mut body = Vec::with_capacity(RESOURCE_BYTES.saturating_mul(resources.max(1)));
    serde_json::to_writer(&mut body, value).map_err(ApiError::internal)?;
    Ok(without_spare(body))
}

/// A growing body doubles, and is in memory until its reader has taken it.
fn without_spare(mut body: Vec<u8>) -> Vec<u8> {
    if body.len() > SPARE_BYTES_MAX {
        body.shrink_to_fit();
    }
    body
}

impl<T: Serialize + ToSchema + 'static, const STATUS: u16> Reply for Resource<T, STATUS> {
    const STATUS: u16 = STATUS;

    fn body(&self) -> ApiResult<Vec<u8>> {
        write(&Data { data: &self.0 }, 1)
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        let resource = schema::of::<T>(schemas);
        let properties = json!({"data": resource});
        Some(schema::envelope::<T>(schemas, "Response", &properties, "What a success answers."))
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

impl<T: Serialize + ToSchema + 'static> Reply for CachedJson<T> {
    const STATUS: u16 = 200;

    fn body(&self) -> ApiResult<Vec<u8>> {
        Ok(self.body.clone())
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        Resource::<T, 200>::schema(schemas)
    }
}

impl<T: Serialize + ToSchema + 'static> Reply for Page<T> {
    const STATUS: u16 = 200;

    fn body(&self) -> ApiResult<Vec<u8>> {
        let per_page = self.page.size;
        let Some(page) = self.page.number() else { return self.continued() };
        let meta = Meta::Numbered { page, per_page, has_more: self.has_more };
        write(&Rows { data: &self.rows, meta }, self.rows.len())
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        let row = schema::of::<T>(schemas);
        let properties = json!({"data": {"type": "array", "items": row}, "meta": schema::reference("PageMeta")});
        Some(schema::envelope::<T>(schemas, "List", &properties, "A page of a list."))
    }
}

impl<T: Serialize> Page<T> {
    /// The body of a page by cursor, as far as it may be long.
    fn continued(&self) -> ApiResult<Vec<u8>> {
        let mut body = Vec::with_capacity(RESOURCE_BYTES.saturating_mul(self.rows.len().max(1)));
        body.extend_from_slice(b"{\"data\":[");
        let (mut shown, mut bytes) = (0, 0);
        for row in &self.rows {
            let before = body.len();
            if shown > 0 {
                body.push(b',');
            }
            let begun = body.len();
            serde_json::to_writer(&mut body, row).map_err(ApiError::internal)?;
            bytes += body.len() - begun;
            // As `fitting` counts.
            if shown > 0 && bytes > PAGE_BYTES_MAX {
                body.truncate(before);
                break;
            }
            shown += 1;
        }
        let is_whole = shown == self.rows.len();
        let last = shown.checked_sub(1).and_then(|last| self.positions.get(last));
        let end = if is_whole { self.end.as_ref().or(last) } else { last };
        let has_more = self.has_more || !is_whole;
        let next_cursor = self.list.as_ref().zip(end).filter(|_| has_more).map(|(list, end)| list.cursor(end));
        let meta = Meta::Continued { per_page: self.page.size, has_more, next_cursor };
        body.extend_from_slice(b"],\"meta\":");
        serde_json::to_writer(&mut body, &meta).map_err(ApiError::internal)?;
        body.push(b'}');
        Ok(without_spare(body))
    }
}

impl<T: Serialize + ToSchema + 'static> Responder for Page<T> {
    type Body = BoxBody;

    fn respond_to(mut self, request: &HttpRequest) -> HttpResponse {
        self.list = request.extensions().get::<ListRead>().cloned();
        respond_with(&self)
    }
}

impl<T: Serialize + ToSchema + ShownOnce + 'static, const STATUS: u16> Reply for Confidential<Resource<T, STATUS>> {
    const STATUS: u16 = STATUS;

    fn body(&self) -> ApiResult<Vec<u8>> {
        self.0.body()
    }

    fn record(&self) -> ApiResult<Vec<u8>> {
        let mut data = serde_json::to_value(&self.0.0).map_err(ApiError::internal)?;
        for secret in T::SECRETS {
            data[*secret] = Value::Null;
        }
        write(&Data { data }, 1)
    }

    fn respond(&self) -> HttpResponse {
        let mut response = respond_with(self);
        match self.record() {
            Ok(record) => drop(response.extensions_mut().insert(Recorded(record))),
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
responder!([T: Serialize + ToSchema + ShownOnce + 'static, const STATUS: u16] Confidential<Resource<T, STATUS>>);
responder!([] NoContent);

/// Sends the body as it is, without copying it.
impl<T: Serialize + ToSchema + 'static> Responder for CachedJson<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        respond(<Self as Reply>::STATUS, self.body)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_by_its_bytes_and_has_one_row_at_least() {
        let row = |bytes: usize| "x".repeat(bytes - 2);
        let fits = |rows: &[String]| fitting(rows).expect("JSON");
        assert_eq!(fits(&[]), 0);
        assert_eq!(fits(&[row(PAGE_BYTES_MAX + 1), row(10)]), 1, "larger alone");
        assert_eq!(fits(&[row(PAGE_BYTES_MAX / 2), row(PAGE_BYTES_MAX / 2), row(10)]), 2);
        assert_eq!(fits(&[row(10), row(PAGE_BYTES_MAX), row(10)]), 1, "the first that does not fit ends it");
        assert_eq!(fits(&[row(10), row(10)]), 2);
    }
}
