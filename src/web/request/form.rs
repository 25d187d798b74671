//! A body that may include files: JSON without files, `multipart/form-data` with them. The parts of a form are the same
//! fields, written as text. Files arrive in the parts named `FILES_PART` and are written to disk while they arrive.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_multipart::{Field, Multipart};
use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use hotline_actors::FieldError;
use hotline_persistence::{CompanyId, controls};
use serde_json::{Map, Value};

use super::body::{self, DRAINED_FACTOR};
use super::body_scheduler;
use super::bounds::{FILES_PART, JSON_BYTES_MAX};
use super::decompression::decompress;
use super::fields::{Fields, Input};
use super::meter::Meter;
use super::part_heads::PartHeadFilter;
use crate::media::{FileDeclaration, Media, SpoolError, Unavailable, Upload};
use crate::web::connections::{MinRateStream, body_error};
use crate::web::response::error::ApiError;

/// Maximum number of files in a form.
pub const FILES_MAX: usize = 10;

/// Maximum number of parts in a form: several times the number of fields.
const PARTS_MAX: usize = 64;

/// Maximum overhead of a part besides its content, in bytes, including the parser's read-ahead.
const PART_HEAD_BYTES_MAX: u64 = 64 * 1024;

/// A validated body with its files. Dropping it deletes the files; the handler publishes them once every check has
/// passed.
pub struct BodyWithFiles<T, const FILES: usize = FILES_MAX> {
    /// The fields.
    pub fields: T,
    /// The files in the order of the form, at most `FILES`; empty for JSON.
    pub files: Vec<Upload>,
}

impl<T: Input + Send + 'static, const FILES: usize> FromRequest for BodyWithFiles<T, FILES> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let payload = decompress(request.headers(), payload.take());
        let request = request.clone();
        Box::pin(async move {
            let mut payload = payload?;
            let meter = request.extensions().get::<Meter>().cloned();
            let is_from_visitor = body::is_from_visitor(&request);
            if body::is_json(&request) {
                let bytes = body::read(&request, &mut payload, T::BYTES_MAX, |_| ()).await?;
                meter.map_or(Ok(()), |meter| meter.count(bytes.len()))?;
                let fields =
                    body_scheduler::parse(&request, bytes.len(), move || body::parse_from(&bytes, is_from_visitor))
                        .await?;
                return Ok(Self { fields, files: Vec::new() });
            }
            if !is_form(&request) {
                return Err(ApiError::neither_json_nor_form());
            }
            let media = request.app_data::<Data<Media>>().ok_or_else(|| ApiError::internal("the media are missing"))?;
            // Boxed: otherwise every JSON body would carry and copy this large future.
            let Form { mut fields, files } = Box::pin(read(&request, payload, media, FILES, meter)).await?;
            if is_from_visitor {
                fields.values_mut().for_each(controls::remove_from_value);
            }
            let bytes = fields.values().filter_map(Value::as_str).map(str::len).sum();
            let fields = body_scheduler::parse(&request, bytes, move || Fields::parse_form(&fields)).await?;
            Ok(Self { fields, files })
        })
    }
}

/// Whether the content type is that of a form, which may contain files.
pub fn is_form(request: &HttpRequest) -> bool {
    let header = request.headers().get(CONTENT_TYPE).and_then(|header| header.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("multipart/form-data")
}

/// Maximum size of a whole form, in bytes.
fn bytes_max(media: &Media, files_max: usize) -> u64 {
    media.bytes_max().saturating_mul(files_max as u64) + JSON_BYTES_MAX as u64 + PARTS_MAX as u64 * PART_HEAD_BYTES_MAX
}

/// How many bytes are drained after a form is refused: a client that is still writing must be able to read the
/// response.
fn drained_bytes_max(media: &Media) -> u64 {
    media.bytes_max().saturating_mul(DRAINED_FACTOR as u64)
}

/// Spools a whole form to disk, and then replays it from the beginning, for callers that must see all of it first.
/// Every chunk is passed to `on_chunk`.
///
/// # Errors
/// `413` when it exceeds the limit of a form, `408` when it arrives too slowly, `400` when it breaks off, `503` when it
/// cannot be written.
pub async fn spool(
    company: CompanyId,
    payload: Payload,
    media: &Media,
    on_chunk: impl FnMut(&Bytes),
) -> Result<Payload, ApiError> {
    let bytes_max = bytes_max(media, FILES_MAX);
    let mut body = SharedBody::of(payload, bytes_max);
    let spooled = media.incoming().spool(company, body.clone(), bytes_max, on_chunk).await;
    if spooled.is_err() {
        let _ = body.drain(drained_bytes_max(media)).await;
    }
    match spooled {
        Ok(chunks) => Ok(Payload::Stream { payload: Box::pin(chunks.map(|chunk| chunk.map_err(PayloadError::Io))) }),
        Err(SpoolError::Source(PayloadError::Overflow) | SpoolError::TooLong) => {
            Err(ApiError::payload_too_large(bytes_max))
        }
        Err(SpoolError::Source(error)) => Err(body_error(error)),
        Err(SpoolError::Disk(reason)) => Err(Unavailable::Store(reason).into()),
        Err(SpoolError::Full) => Err(Unavailable::DiskFull.into()),
    }
}

struct Form {
    fields: Map<String, Value>,
    files: Vec<Upload>,
}

async fn read(
    request: &HttpRequest,
    payload: Payload,
    media: &Media,
    files_max: usize,
    meter: Option<Meter>,
) -> Result<Form, ApiError> {
    let bytes_max = bytes_max(media, files_max);
    let mut body = SharedBody::of(payload, bytes_max);
    body.0.borrow_mut().meter = meter;
    let parts = match part_head_filter(request) {
        Some(mut head_filter) => {
            let chunks = body.clone().map(move |chunk| chunk.map(|chunk| head_filter.filter(chunk)));
            Multipart::new(request.headers(), chunks)
        }
        None => Multipart::new(request.headers(), body.clone()),
    };
    let form = read_parts(body_scheduler::tenant(request), parts, media, files_max).await;
    let is_too_long = body.0.borrow().is_too_long;
    let quota_error = body.0.borrow_mut().quota_error.take();
    // The bytes after the last part are ignored, but they must not be parsed as the next request.
    let drained = body.drain(drained_bytes_max(media)).await;
    if let Some(error) = quota_error {
        return Err(error);
    }
    if is_too_long {
        return Err(ApiError::payload_too_large(bytes_max));
    }
    let form = form?;
    drained.map(|()| form)
}

/// The filter that removes control characters from the part heads of a visitor's form; `None` for a caller's, in which
/// they are refused.
fn part_head_filter(request: &HttpRequest) -> Option<PartHeadFilter> {
    let content_type = request.mime_type().ok().flatten().filter(|_| body::is_from_visitor(request))?;
    content_type.get_param("boundary").map(|boundary| PartHeadFilter::new(boundary.as_str()))
}

async fn read_parts(
    company: CompanyId,
    mut parts: Multipart,
    media: &Media,
    files_max: usize,
) -> Result<Form, ApiError> {
    let mut form = Form { fields: Map::new(), files: Vec::new() };
    let mut remaining = JSON_BYTES_MAX;
    let mut part_count = 0;
    while let Some(part) = parts.next().await {
        let mut part = part.map_err(form_error)?;
        part_count += 1;
        if part_count > PARTS_MAX {
            return Err(ApiError::bad_request(format!("the form has more than {PARTS_MAX} parts")));
        }
        let name = part.name().unwrap_or_default().to_owned();
        if name == FILES_PART {
            if form.files.len() == files_max {
                let noun = if files_max == 1 { "file" } else { "files" };
                let reason = format!("must have at most {files_max} {noun}");
                return Err(ApiError::validation(&[FieldError { field: name, reason }]));
            }
            let upload = receive_file(company, &mut part, media, form.files.len()).await?;
            form.files.push(upload);
            continue;
        }
        let is_file = part.content_disposition().is_some_and(|header| header.get_filename().is_some());
        let text = read_text(&mut part, &mut remaining).await?;
        // A file part of another name is ignored like an unknown field. An empty text field was not filled in, so it is
        // left out.
        if !is_file && !text.is_empty() {
            let text = String::from_utf8(text).map_err(|_| {
                let reason = "must be UTF-8".to_owned();
                ApiError::validation(&[FieldError { field: name.clone(), reason }])
            })?;
            form.fields.insert(name, Value::String(text));
        }
    }
    Ok(form)
}

/// Receives the file with this index in the form.
async fn receive_file(company: CompanyId, part: &mut Field, media: &Media, index: usize) -> Result<Upload, ApiError> {
    let declaration = declaration_of(part);
    let chunks = part.map(|chunk| chunk.map_err(form_error));
    let upload = media.receive(company, &declaration, chunks).await;
    upload.map_err(|error| ApiError::from(error).with_file(&format!("{FILES_PART}[{index}]"), &declaration))
}

/// The declared name and type of a file.
fn declaration_of(part: &Field) -> FileDeclaration {
    let disposition = part.content_disposition();
    let extended_name = disposition.and_then(|header| header.get_filename_ext());
    let extended_name = extended_name.and_then(|name| String::from_utf8(name.value.clone()).ok());
    let plain_name = || disposition.and_then(|header| header.get_filename()).map(str::to_owned);
    FileDeclaration {
        mime_type: part.content_type().map(|header| header.essence_str().to_owned()),
        file_name: extended_name.or_else(plain_name),
    }
}

/// Reads a part that is not a file. All such parts together may be as large as a JSON body.
async fn read_text(part: &mut Field, remaining: &mut usize) -> Result<Vec<u8>, ApiError> {
    let mut text = Vec::new();
    while let Some(chunk) = part.next().await {
        let chunk = chunk.map_err(form_error)?;
        *remaining = remaining.checked_sub(chunk.len()).ok_or_else(|| ApiError::payload_too_large(JSON_BYTES_MAX))?;
        text.extend_from_slice(&chunk);
    }
    Ok(text)
}

fn form_error(error: actix_multipart::MultipartError) -> ApiError {
    match error {
        actix_multipart::MultipartError::Payload(PayloadError::Overflow) => {
            ApiError::bad_request("invalid form: the headers of a part are too large")
        }
        actix_multipart::MultipartError::Payload(error) => body_error(error),
        error => ApiError::bad_request(format!("invalid form: {error}")),
    }
}

/// The chunks of a body, shared between the parser and the code that drains the rest.
#[derive(Clone)]
struct SharedBody(Rc<RefCell<BoundedBody>>);

struct BoundedBody {
    chunks: MinRateStream<Payload>,
    remaining: u64,
    is_too_long: bool,
    is_finished: bool,
    /// `None` without a quota, and after the meter has refused bytes.
    meter: Option<Meter>,
    /// The meter's error.
    quota_error: Option<ApiError>,
}

impl SharedBody {
    fn of(payload: Payload, bytes_max: u64) -> Self {
        let chunks = MinRateStream::new(payload);
        Self(Rc::new(RefCell::new(BoundedBody {
            chunks,
            remaining: bytes_max,
            is_too_long: false,
            is_finished: false,
            meter: None,
            quota_error: None,
        })))
    }

    /// Reads and discards the rest, up to this many bytes.
    async fn drain(&mut self, bytes_max: u64) -> Result<(), ApiError> {
        self.0.borrow_mut().remaining = bytes_max;
        while let Some(chunk) = self.next().await {
            match chunk {
                Err(PayloadError::Overflow) => break,
                chunk => drop(chunk.map_err(body_error)?),
            }
        }
        Ok(())
    }
}

impl Stream for SharedBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut body = self.0.borrow_mut();
        if body.is_finished {
            return Poll::Ready(None);
        }
        let chunk = ready!(body.chunks.poll_next_unpin(cx));
        let length = chunk.as_ref().and_then(|chunk| chunk.as_ref().ok()).map_or(0, Bytes::len);
        let metered = body.meter.as_ref().map_or(Ok(()), |meter| meter.count(length));
        if let Err(error) = metered {
            body.meter = None;
            body.quota_error = Some(error);
            return Poll::Ready(Some(Err(PayloadError::Overflow)));
        }
        match &chunk {
            Some(Ok(chunk)) => match body.remaining.checked_sub(chunk.len() as u64) {
                Some(remaining) => body.remaining = remaining,
                None => {
                    body.is_too_long = true;
                    return Poll::Ready(Some(Err(PayloadError::Overflow)));
                }
            },
            // After the end or an error, nothing more is read.
            Some(Err(_)) | None => body.is_finished = true,
        }
        Poll::Ready(chunk)
    }
}
