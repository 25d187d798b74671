//! Compressed responses, for clients that accept gzip. Only complete bodies of a minimum size are compressed, not
//! streams.

use std::io::{self, Write};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, VARY,
};
use actix_web::middleware::Next;
use actix_web::{Error, web};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Responses up to this size are not compressed: they fit in one or two packets anyway.
const PLAIN_BYTES_MAX: u64 = 1024;

/// Responses up to this size are compressed on the serving thread, which takes about a millisecond. Larger ones are
/// compressed on another thread.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Compresses responses for clients that accept gzip.
///
/// # Errors
/// Errors of the inner service.
pub async fn compress<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?;
    let is_large = matches!(response.response().body().size(), BodySize::Sized(length) if length > PLAIN_BYTES_MAX);
    if !is_large || response.headers().contains_key(CONTENT_ENCODING) || !is_compressible(response.headers()) {
        return Ok(response.map_into_boxed_body());
    }
    let is_accepted = accepts_gzip(response.request().headers());
    let (request, response) = response.into_parts();
    let (mut head, body) = response.into_parts();
    head.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
    if !is_accepted {
        return Ok(ServiceResponse::new(request, head.set_body(body.boxed())));
    }
    let plain = match body.try_into_bytes() {
        Ok(plain) => plain,
        // A stream is sent uncompressed.
        Err(body) => return Ok(ServiceResponse::new(request, head.set_body(body.boxed()))),
    };
    let compressed = if plain.len() <= INLINE_BYTES_MAX {
        gzip(&plain).ok()
    } else {
        let plain = plain.clone();
        web::block(move || gzip(&plain)).await.ok().and_then(Result::ok)
    };
    let Some(compressed) = compressed.filter(|compressed| compressed.len() < plain.len()) else {
        return Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(plain))));
    };
    let headers = head.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    weaken_etag(headers);
    Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(compressed))))
}

/// Makes the ETag weak: a strong one identifies exact bytes, and the compressed bytes differ.
fn weaken_etag(headers: &mut HeaderMap) {
    let weak_etag = headers
        .get(ETAG)
        .filter(|tag| !tag.as_bytes().starts_with(b"W/"))
        .and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak_etag) = weak_etag {
        headers.insert(ETAG, weak_etag);
    }
}

fn gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}

/// Whether the content type benefits from compression.
fn is_compressible(headers: &HeaderMap) -> bool {
    let header = headers.get(CONTENT_TYPE).and_then(|header| header.to_str().ok()).unwrap_or_default();
    let mime_type = header.split(';').next().unwrap_or_default().trim();
    mime_type.starts_with("text/")
        || matches!(mime_type, "application/json" | "application/javascript" | "image/svg+xml")
}

/// Whether the client accepts gzip.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).filter_map(|line| line.to_str().ok());
    let mut accepts_any = false;
    for coding in lines.flat_map(|line| line.split(',')) {
        let (name, quality) = coding.trim().split_once(';').unwrap_or((coding.trim(), ""));
        let is_refused = quality
            .trim()
            .split_once('=')
            .is_some_and(|(name, value)| name.eq_ignore_ascii_case("q") && value.trim().parse::<f32>() == Ok(0.0));
        match name.trim() {
            name if name.eq_ignore_ascii_case("gzip") => return !is_refused,
            "*" => accepts_any = !is_refused,
            _ => {}
        }
    }
    accepts_any
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn gzip_is_negotiated() {
        let headers = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_str(value).expect("a value"));
            headers
        };
        for (header, is_accepted) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("*;q=0", false),
            ("br, gzip;Q=0.0", false),
            ("GZIP; Q=1", true),
            ("br", false),
            ("identity", false),
        ] {
            assert_eq!(accepts_gzip(&headers(header)), is_accepted, "{header}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
