//! Compressed requests: a body is decompressed piece by piece as it is read. So its limits apply to the decompressed
//! size, and unread parts are never decompressed. Calls of providers are not decompressed: their signature covers the
//! bytes as sent.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, HeaderMap};
use bytes::{Buf, Bytes};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use futures_util::{Stream, StreamExt};

use crate::web::response::error::{ApiError, ApiResult};

/// Bytes of a request that are decompressed at a time. They expand at most a thousandfold, which bounds the memory
/// used.
const PIECE_BYTES: usize = 1024;

/// Bytes that any request may decompress to: the size of the largest JSON body. A larger request may decompress to
/// [`FACTOR_MAX`] times its compressed size. Each request also has limits of its own; this one is for bodies that are
/// only drained.
const DECOMPRESSED_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum expansion of a large request: several times the usual ratio of text.
const FACTOR_MAX: u64 = 64;

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
    /// zlib-wrapped or raw deflate; the first byte decides.
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
    /// Bytes that are received but not yet decompressed.
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
    use actix_web::http::header::HeaderValue;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn headers(coding: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_str(coding).expect("a value"));
        headers
    }

    fn gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain)?;
        encoder.finish()
    }

    async fn decompressed(coding: &str, bytes: Vec<u8>) -> Result<Vec<u8>, PayloadError> {
        let payload = decompress(&headers(coding), Payload::from(bytes)).expect("a known coding");
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
                encoder.write_all(&plain).and_then(|()| encoder.finish().map(drop)).expect("compressed");
            } else {
                let mut encoder = flate2::write::DeflateEncoder::new(&mut compressed, Compression::default());
                encoder.write_all(&plain).and_then(|()| encoder.finish().map(drop)).expect("compressed");
            }
            compressed
        };
        let gzip = gzip(&plain).expect("compressed");
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
        assert!(decompress(&headers("br"), Payload::None).is_err());
    }

    #[actix_web::test]
    async fn a_decompression_bomb_ends_early() {
        let bomb = gzip(&vec![0_u8; 64 << 20]).expect("compressed");
        assert!(matches!(decompressed("gzip", bomb).await, Err(PayloadError::Overflow)));
        let large = gzip(&vec![0_u8; 15 << 20]).expect("compressed");
        assert_eq!(decompressed("gzip", large).await.expect("whole").len(), 15 << 20);
    }
}
