//! Compressed bodies: responses for clients that accept gzip, and requests that arrive compressed.
//!
//! A response is compressed once it is complete and large enough; for a small one only its length is checked. A request
//! is decompressed piece by piece as it is read, so its limits apply to the decompressed size, and nothing is
//! decompressed that is not read. Calls of providers are not decompressed: their signature covers the bytes as sent.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, VARY,
};
use actix_web::middleware::Next;
use actix_web::{Error, web};
use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::write::{DeflateDecoder, GzEncoder, MultiGzDecoder, ZlibDecoder};
use futures_util::{Stream, StreamExt};

use super::{ApiError, ApiResult};

/// Responses up to this size are not compressed: they fit in a packet or two anyway.
const PLAIN_BYTES_MAX: u64 = 1024;

/// Responses up to this size are compressed on the serving thread: about a millisecond. Larger ones go to another
/// thread.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a request that are decompressed at a time. They expand at most a thousandfold, which bounds the memory
/// used.
const PIECE_BYTES: usize = 1024;

/// Size that any request may decompress to, equal to the largest JSON body; beyond that, it may decompress to
/// [`FACTOR_MAX`] times its compressed size. A request's own limits apply first; this one bounds what is only drained.
const DECOMPRESSED_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum expansion of a large request: several times the usual ratio of text.
const FACTOR_MAX: u64 = 64;

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
    if !is_large || response.headers().contains_key(CONTENT_ENCODING) || !is_text(response.headers()) {
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
        let whole = plain.clone();
        web::block(move || gzip(&whole)).await.ok().and_then(Result::ok)
    };
    let Some(compressed) = compressed.filter(|compressed| compressed.len() < plain.len()) else {
        return Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(plain))));
    };
    let headers = head.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    // A strong ETag identifies the exact bytes; the compressed form needs another strong one, or a weak one.
    let weak = headers
        .get(ETAG)
        .filter(|tag| !tag.as_bytes().starts_with(b"W/"))
        .and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(ETAG, weak);
    }
    Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(compressed))))
}

fn gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}

/// Whether the content type benefits from compression.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.starts_with("text/") || matches!(kind, "application/json" | "application/javascript" | "image/svg+xml")
}

/// Whether the client accepts gzip.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).filter_map(|line| line.to_str().ok());
    let mut any = false;
    for coding in lines.flat_map(|line| line.split(',')) {
        let (name, quality) = coding.trim().split_once(';').unwrap_or((coding.trim(), ""));
        let is_refused = quality.trim().strip_prefix("q=").is_some_and(|q| q.trim().parse::<f32>() == Ok(0.0));
        match name.trim() {
            name if name.eq_ignore_ascii_case("gzip") => return !is_refused,
            "*" => any = !is_refused,
            _ => {}
        }
    }
    any
}

/// Decompresses the body of a request.
///
/// # Errors
/// `415` when the content encoding is not supported.
pub fn decompress(headers: &HeaderMap, payload: Payload) -> ApiResult<Payload> {
    let mut codings = headers.get_all(CONTENT_ENCODING);
    let coding = match (codings.next(), codings.next()) {
        (None, _) => return Ok(payload),
        (Some(coding), None) => coding.to_str().unwrap_or_default().trim().to_ascii_lowercase(),
        (Some(_), Some(_)) => return Err(ApiError::unsupported_encoding()),
    };
    let decoder = match coding.as_str() {
        "" | "identity" => return Ok(payload),
        "gzip" | "x-gzip" => Decoder::Gzip(MultiGzDecoder::new(Vec::new())),
        "deflate" => Decoder::Unknown,
        _ => return Err(ApiError::unsupported_encoding()),
    };
    let decompressed =
        DecompressedBody { payload, decoder, input: Bytes::new(), bytes_in: 0, bytes_out: 0, is_finished: false };
    Ok(Payload::Stream { payload: Box::pin(decompressed) })
}

enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// zlib-wrapped, as HTTP defines `deflate`.
    Zlib(ZlibDecoder<Vec<u8>>),
    /// Raw deflate, as many clients have implemented it.
    Deflate(DeflateDecoder<Vec<u8>>),
    /// One of the two; the first byte decides.
    Unknown,
}

impl Decoder {
    /// Decompresses a piece, and returns the output.
    fn write(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        if let (Self::Unknown, Some(first)) = (&*self, piece.first()) {
            // The zlib header begins with the method (deflate) and a valid window size.
            *self = match first & 0x0f == 8 && first >> 4 <= 7 {
                true => Self::Zlib(ZlibDecoder::new(Vec::new())),
                false => Self::Deflate(DeflateDecoder::new(Vec::new())),
            };
        }
        match self {
            Self::Gzip(decoder) => decompress_all(decoder, piece).map(|()| std::mem::take(decoder.get_mut())),
            Self::Zlib(decoder) => decompress_all(decoder, piece).map(|()| std::mem::take(decoder.get_mut())),
            Self::Deflate(decoder) => decompress_all(decoder, piece).map(|()| std::mem::take(decoder.get_mut())),
            Self::Unknown => Ok(Vec::new()),
        }
    }

    /// Returns the remaining output at the end of the input.
    fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(decoder) => decoder.try_finish().map(|()| std::mem::take(decoder.get_mut())),
            Self::Zlib(decoder) => decoder.try_finish().map(|()| std::mem::take(decoder.get_mut())),
            Self::Deflate(decoder) => decoder.try_finish().map(|()| std::mem::take(decoder.get_mut())),
            Self::Unknown => Ok(Vec::new()),
        }
    }
}

fn decompress_all(decoder: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    decoder.write_all(piece)?;
    // Flush, so that everything decodable so far is returned now.
    decoder.flush()
}

/// A body that is decompressed as it is read.
struct DecompressedBody {
    payload: Payload,
    decoder: Decoder,
    /// Received, and not yet decompressed.
    input: Bytes,
    bytes_in: u64,
    bytes_out: u64,
    is_finished: bool,
}

impl Stream for DecompressedBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.is_finished {
                return Poll::Ready(None);
            }
            let decompressed = if self.input.is_empty() {
                match ready!(self.payload.poll_next_unpin(cx)) {
                    Some(Ok(chunk)) => {
                        self.input = chunk;
                        continue;
                    }
                    Some(Err(error)) => {
                        self.is_finished = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                    None => {
                        self.is_finished = true;
                        self.decoder.finish()
                    }
                }
            } else {
                let piece = self.input.slice(..self.input.len().min(PIECE_BYTES));
                self.input.advance(piece.len());
                self.bytes_in += piece.len() as u64;
                self.decoder.write(&piece)
            };
            match decompressed {
                Ok(decompressed) if decompressed.is_empty() => {}
                Ok(decompressed) => {
                    self.bytes_out += decompressed.len() as u64;
                    if self.bytes_out > DECOMPRESSED_BYTES.max(self.bytes_in.saturating_mul(FACTOR_MAX)) {
                        self.is_finished = true;
                        return Poll::Ready(Some(Err(PayloadError::Overflow)));
                    }
                    return Poll::Ready(Some(Ok(decompressed.into())));
                }
                Err(_) => {
                    self.is_finished = true;
                    return Poll::Ready(Some(Err(PayloadError::EncodingCorrupted)));
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    fn headers(name: actix_web::http::header::HeaderName, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).expect("a value"));
        headers
    }

    #[test]
    fn gzip_is_negotiated() {
        for (header, is_accepted) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("*;q=0", false),
            ("br", false),
            ("identity", false),
        ] {
            assert_eq!(accepts_gzip(&headers(ACCEPT_ENCODING, header)), is_accepted, "{header}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    async fn decompressed(coding: &str, bytes: Vec<u8>) -> Result<Vec<u8>, PayloadError> {
        let payload = decompress(&headers(CONTENT_ENCODING, coding), Payload::from(bytes)).expect("a known coding");
        let mut whole = Vec::new();
        let mut chunks = payload;
        while let Some(chunk) = chunks.next().await {
            whole.extend_from_slice(&chunk?);
        }
        Ok(whole)
    }

    #[actix_web::test]
    async fn every_encoding_is_decompressed() {
        let plain: Vec<u8> = (0..200_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let compress = |zlib: bool| {
            let mut compressed = Vec::new();
            if zlib {
                let mut encoder = flate2::write::ZlibEncoder::new(&mut compressed, Compression::default());
                encoder.write_all(&plain).and_then(|()| encoder.finish().map(drop)).expect("packed");
            } else {
                let mut encoder = flate2::write::DeflateEncoder::new(&mut compressed, Compression::default());
                encoder.write_all(&plain).and_then(|()| encoder.finish().map(drop)).expect("packed");
            }
            compressed
        };
        let gzip = gzip(&plain).expect("packed");
        for (coding, bytes) in [
            ("gzip", gzip.clone()),
            ("deflate", compress(true)),
            ("deflate", compress(false)),
            ("identity", plain.clone()),
        ] {
            assert!(decompressed(coding, bytes).await.expect("whole") == plain, "{coding}");
        }
        assert!(decompressed("gzip", gzip[..gzip.len() - 4].to_vec()).await.is_err(), "cut");
        assert!(decompressed("gzip", b"{}".to_vec()).await.is_err(), "not compressed");
        assert!(decompress(&headers(CONTENT_ENCODING, "br"), Payload::None).is_err());
    }

    #[actix_web::test]
    async fn a_decompression_bomb_ends_early() {
        let bomb = gzip(&vec![0_u8; 64 << 20]).expect("packed");
        assert!(matches!(decompressed("gzip", bomb).await, Err(PayloadError::Overflow)));
        let large = gzip(&vec![0_u8; 15 << 20]).expect("packed");
        assert_eq!(decompressed("gzip", large).await.expect("whole").len(), 15 << 20);
    }
}
