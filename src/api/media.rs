//! `GET /media/{company}/{id}`: serves a file of a message to anyone who has its signed URL. No token is needed: the
//! signature covers the file, its company and the expiry. An invalid signature gets the same response as a missing
//! file. An expired URL gets an error of its own.

use actix_web::body::SizedStream;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    CROSS_ORIGIN_RESOURCE_POLICY, Charset, ContentDisposition, DispositionParam, DispositionType, ETAG, EntityTag,
    ExtendedValue, Header, HeaderValue, IF_NONE_MATCH, IF_RANGE, IfNoneMatch, IfRange, Range, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::{Data, Path, Query};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, ResponseError};
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use hotline_actors::clock;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::media::MediaId;
use serde::Deserialize;

use crate::app::App;
pub use crate::media::PATH;
use crate::media::{InvalidLink, SignedLink};
use crate::web::response::head::is_head_request;
use crate::web::{ApiError, ApiResult};

/// Types that browsers may display, besides audio and video. All other types are downloaded, above all those whose
/// scripts would run with the rights of this origin (HTML, SVG, XML).
const INLINE_TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
    "image/bmp",
    "image/heif",
    "image/jxl",
    "application/pdf",
];

/// Whether browsers may display the type. XML types are documents and may run scripts, whatever their main type:
/// `image/svg+xml`, `application/xhtml+xml`, and `video/x+xml` too.
fn is_inline(mime_type: &str) -> bool {
    let (kind, subtype) = mime_type.split_once('/').unwrap_or((mime_type, ""));
    // Parameters follow after the semicolon.
    let subtype = subtype.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_document = subtype.is_empty() || subtype == "xml" || subtype.ends_with("+xml") || subtype.contains("html");
    INLINE_TYPES.contains(&mime_type) || (matches!(kind, "audio" | "video") && !is_document)
}

/// Policy for downloads: nothing runs, even if the file is opened.
const DOWNLOAD_POLICY: &str = "sandbox; default-src 'none'";

/// Policy for displayed files: they load only themselves.
const INLINE_POLICY: &str = "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'";

/// Policy for PDF: browsers' viewers do not work in a sandbox, and are sandboxed themselves.
const PDF_POLICY: &str = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'";

/// The query of the URL; the company and the file are in its path.
#[derive(Deserialize)]
pub struct SignedQuery {
    name: String,
    #[serde(rename = "type")]
    mime_type: String,
    expires: i64,
    signature: String,
}

/// `GET` and `HEAD /media/{company}/{id}`.
pub async fn show(
    request: HttpRequest,
    app: Data<App>,
    path: Path<(String, String)>,
    query: Option<Query<SignedQuery>>,
) -> ApiResult<HttpResponse> {
    let now = clock::now();
    let (link, id) = checked_link(&app, path.into_inner(), query, now)?;
    // The content of an id never changes.
    let tag = EntityTag::new_strong(id.to_string());
    if is_cached_by_client(&request, &tag) {
        let mut response = HttpResponse::build(StatusCode::NOT_MODIFIED);
        set_headers(&mut response, &link, &tag, now.timestamp());
        return Ok(response.finish());
    }
    let size = app.media.size(link.company, &id).await?;
    let range = match requested_range(&request, &tag, size) {
        RangeRequest::Whole => None,
        RangeRequest::Part(range) => Some(range),
        RangeRequest::Unsatisfiable => return Ok(unsatisfiable_response(size)),
    };
    let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut response = HttpResponse::build(status);
    set_headers(&mut response, &link, &tag, now.timestamp());
    response.insert_header((CONTENT_TYPE, header_value(&link.mime_type))).insert_header((ACCEPT_RANGES, "bytes"));
    let bytes = range.clone().unwrap_or(0..size);
    if let Some(range) = &range {
        response.insert_header((CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1)));
    }
    let length = bytes.end - bytes.start;
    if is_head_request(&request) {
        let empty = futures_util::stream::empty::<Result<bytes::Bytes, std::io::Error>>();
        return Ok(response.body(SizedStream::new(length, empty)));
    }
    let file = app.media.read(link.company, &id, range).await?;
    // If reading fails, the client notices that the length is wrong.
    let content =
        file.into_stream().inspect_err(|error| tracing::warn!(%error, "reading a file failed before its end"));
    Ok(response.body(SizedStream::new(length, content)))
}

/// The link and the file's id, if the signature is valid and the company is active.
fn checked_link(
    app: &App,
    (company, id): (String, String),
    query: Option<Query<SignedQuery>>,
    now: DateTime<Utc>,
) -> ApiResult<(SignedLink, MediaId)> {
    let company: CompanyId = company.parse().map_err(|_| ApiError::not_found())?;
    let Query(SignedQuery { name, mime_type, expires, signature }) = query.ok_or_else(ApiError::not_found)?;
    let link = SignedLink { company, id, name, mime_type, expires };
    app.media.links().check(&link, &signature, now).map_err(|invalid| match invalid {
        InvalidLink::Forged => ApiError::not_found(),
        InvalidLink::Expired => ApiError::link_expired(),
    })?;
    let is_active = app.engine.directory().company(company).is_some_and(|organization| organization.company.active);
    let id: MediaId = link.id.parse().map_err(|_| ApiError::not_found())?;
    if is_active { Ok((link, id)) } else { Err(ApiError::not_found()) }
}

/// The requested part of the file.
#[derive(Debug, PartialEq, Eq)]
enum RangeRequest {
    Whole,
    Part(std::ops::Range<u64>),
    /// No byte of the range is in the file.
    Unsatisfiable,
}

/// Parses the `Range` header. A single range is served. Several ranges, or units other than bytes, get the whole file,
/// as RFC 9110 allows.
fn requested_range(request: &HttpRequest, tag: &EntityTag, size: u64) -> RangeRequest {
    // The client has a part of the version that `If-Range` names. If that is another version, it needs the whole file.
    let is_same_version = match request.headers().contains_key(IF_RANGE).then(|| IfRange::parse(request)) {
        Some(Ok(IfRange::EntityTag(client_tag))) => client_tag.strong_eq(tag),
        Some(Ok(IfRange::Date(_)) | Err(_)) => false,
        None => true,
    };
    let Ok(Range::Bytes(ranges)) = Range::parse(request) else { return RangeRequest::Whole };
    match ranges.as_slice() {
        [range] if is_same_version => match range.to_satisfiable_range(size) {
            Some((first, last)) => RangeRequest::Part(first..last + 1),
            None => RangeRequest::Unsatisfiable,
        },
        _ => RangeRequest::Whole,
    }
}

/// The response `416`.
fn unsatisfiable_response(size: u64) -> HttpResponse {
    let mut response = ApiError::range_not_satisfiable(size).error_response();
    if let Ok(range) = HeaderValue::try_from(format!("bytes */{size}")) {
        response.headers_mut().insert(CONTENT_RANGE, range);
    }
    response
}

/// Whether the client already has the file, according to `If-None-Match`.
fn is_cached_by_client(request: &HttpRequest, tag: &EntityTag) -> bool {
    match request.headers().contains_key(IF_NONE_MATCH).then(|| IfNoneMatch::parse(request)) {
        Some(Ok(IfNoneMatch::Any)) => true,
        Some(Ok(IfNoneMatch::Items(cached_tags))) => cached_tags.iter().any(|cached_tag| cached_tag.weak_eq(tag)),
        Some(Err(_)) | None => false,
    }
}

/// Sets the headers that every response for the file has.
fn set_headers(response: &mut HttpResponseBuilder, link: &SignedLink, tag: &EntityTag, now_s: i64) {
    let is_inline = is_inline(&link.mime_type);
    let policy = match is_inline {
        true if link.mime_type == "application/pdf" => PDF_POLICY,
        true => INLINE_POLICY,
        false => DOWNLOAD_POLICY,
    };
    let disposition = if is_inline { DispositionType::Inline } else { DispositionType::Attachment };
    response
        .insert_header((CONTENT_DISPOSITION, header_value_of(&content_disposition(disposition, &link.name))))
        .insert_header((CONTENT_SECURITY_POLICY, policy))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // Pages that embed the widget show the file, even pages with cross-origin isolation. Anyone who has the URL may
        // read the file anyway.
        .insert_header((CROSS_ORIGIN_RESOURCE_POLICY, "cross-origin"))
        // The file never changes, but a browser's cache must not serve it after the URL has expired.
        .insert_header((CACHE_CONTROL, format!("private, max-age={}, immutable", link.expires - now_s)))
        .insert_header((ETAG, header_value_of(tag)));
}

/// The file name in plain ASCII for every client, and in the extended form that preserves all characters.
fn content_disposition(disposition: DispositionType, name: &str) -> ContentDisposition {
    let plain_name: String =
        name.chars().map(|character| if needs_no_escape(character) { character } else { '_' }).collect();
    let mut parameters = vec![DispositionParam::Filename(plain_name.clone())];
    if plain_name != name {
        let value = name.as_bytes().to_vec();
        let extended = ExtendedValue { charset: Charset::Ext("UTF-8".to_owned()), language_tag: None, value };
        parameters.push(DispositionParam::FilenameExt(extended));
    }
    ContentDisposition { disposition, parameters }
}

/// Whether a quoted file name can contain this character without escaping.
fn needs_no_escape(character: char) -> bool {
    (character.is_ascii_graphic() || character == ' ') && !matches!(character, '"' | '\\' | '%')
}

fn header_value_of(value: &impl ToString) -> HeaderValue {
    header_value(&value.to_string())
}

/// The text as a header value. Files are stored only with types and names that headers can hold, so the fallback is not
/// expected.
fn header_value(value: &str) -> HeaderValue {
    HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::RANGE;
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn ranges_are_parsed_as_rfc_9110_requires() {
        let tag = EntityTag::new_strong("a".to_owned());
        for (range, expected) in [
            ("bytes=0-0", RangeRequest::Part(0..1)),
            ("bytes=2-4", RangeRequest::Part(2..5)),
            ("bytes=7-", RangeRequest::Part(7..10)),
            ("bytes=-3", RangeRequest::Part(7..10)),
            ("bytes=-99", RangeRequest::Part(0..10)),
            ("bytes=5-99999999999", RangeRequest::Part(5..10)),
            ("bytes=10-", RangeRequest::Unsatisfiable),
            ("bytes=10-11", RangeRequest::Unsatisfiable),
            ("bytes=99999999999-", RangeRequest::Unsatisfiable),
            ("bytes=99999999999999999999999-", RangeRequest::Whole),
            ("bytes=-0", RangeRequest::Unsatisfiable),
            ("bytes=4-2", RangeRequest::Whole),
            ("bytes=0-1,3-4", RangeRequest::Whole),
            ("bytes=a-b", RangeRequest::Whole),
            ("bytes=-", RangeRequest::Whole),
            ("bytes=1", RangeRequest::Whole),
            ("lines=0-1", RangeRequest::Whole),
            ("", RangeRequest::Whole),
        ] {
            let request = TestRequest::default().insert_header((RANGE, range)).to_http_request();
            assert_eq!(requested_range(&request, &tag, 10), expected, "{range}");
            let request = TestRequest::default().insert_header((RANGE, range)).insert_header((IF_RANGE, "\"b\""));
            assert_eq!(
                requested_range(&request.to_http_request(), &tag, 10),
                RangeRequest::Whole,
                "another version: {range}"
            );
            let request = TestRequest::default().insert_header((RANGE, range)).insert_header((IF_RANGE, "\"a\""));
            assert_eq!(requested_range(&request.to_http_request(), &tag, 10), expected, "the same version: {range}");
        }
    }

    #[test]
    fn documents_are_downloaded_even_with_an_audio_or_video_type() {
        for inline in ["image/png", "application/pdf", "audio/ogg", "video/mp4", "video/x-matroska", "audio/mpeg"] {
            assert!(is_inline(inline), "{inline}");
        }
        for download in [
            "image/svg+xml",
            "application/xhtml+xml",
            "video/x+xml",
            "audio/x+xml",
            "audio/x+XML",
            "video/xml",
            "video/x+xml;a=b",
            "video/x+xml ; a=b",
            "audio/html",
            "video/xhtml",
            "text/xml",
            "text/html",
            "application/xml",
            "image/x+xml",
            "multipart/x-mixed-replace",
            "video",
            "video/",
            "",
        ] {
            assert!(!is_inline(download), "{download}");
        }
    }

    #[test]
    fn file_names_cannot_add_parameters_to_the_header() {
        let header = |name: &str| content_disposition(DispositionType::Attachment, name).to_string();
        assert_eq!(header("a b.txt"), "attachment; filename=\"a b.txt\"");
        assert_eq!(header("Férias.png"), "attachment; filename=\"F_rias.png\"; filename*=UTF-8''F%C3%A9rias.png");
        assert_eq!(
            header("a\"; filename=\"b.html"),
            "attachment; filename=\"a_; filename=_b.html\"; filename*=UTF-8''a%22%3B%20filename=%22b.html"
        );
    }
}
