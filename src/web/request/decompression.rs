//! Compressed requests: a body is decompressed piece by piece as it is read. So its limits apply to the decompressed
//! size, and unread parts are never decompressed. Calls from providers are not decompressed: their signature covers the
//! bytes as sent. The minimum rate applies to the compressed bytes, because a few of them may expand to many.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, HeaderMap};
use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use futures_util::{Stream, StreamExt};

use crate::web::connections::MinRateStream;
use crate::web::response::error::{ApiError, ApiResult};

/// Bytes of a request that are decompressed at a time. They expand about a thousandfold at most, so the output of one
/// piece is about 1 MiB at most.
const PIECE_BYTES: usize = 1024;

/// Bytes that any request may decompress to: the size of the largest JSON body. A request may decompress to more, up to
/// [`FACTOR_MAX`] times its compressed size. Each endpoint also has a limit of its own; this one is for bodies that are
/// only drained.
const DECOMPRESSED_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum expansion of a large request: several times the usual compression ratio of text.
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
    let decompressed = DecompressedBody::new(MinRateStream::new(payload), decoder);
    Ok(Payload::Stream { payload: Box::pin(decompressed) })
}

enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// zlib-wrapped, as HTTP defines `deflate`, or raw deflate, as many clients have implemented it.
    Deflate(Inflater),
    /// `deflate` of either kind; the first byte decides.
    Unknown,
}

impl Decoder {
    /// Decompresses a piece, and returns the output.
    fn write(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        if let (Self::Unknown, Some(first)) = (&*self, piece.first()) {
            // The zlib header begins with the method (deflate) and a valid window size.
            *self = Self::Deflate(Inflater::new(first & 0x0f == 8 && first >> 4 <= 7));
        }
        match self {
            Self::Gzip(decoder) => decompress_all(decoder, piece).map(|()| std::mem::take(decoder.get_mut())),
            Self::Deflate(inflater) => inflater.write(piece),
            Self::Unknown => Ok(Vec::new()),
        }
    }

    /// Returns the remaining output at the end of the input, which must also be the end of the compressed stream.
    fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(decoder) => decoder.try_finish().map(|()| std::mem::take(decoder.get_mut())),
            Self::Deflate(inflater) if inflater.has_ended() => Ok(Vec::new()),
            Self::Deflate(_) | Self::Unknown => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn decompress_all(decoder: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    decoder.write_all(piece)?;
    // Flush, so that everything decodable so far is returned now.
    decoder.flush()
}

/// Decompresses a zlib or raw deflate stream. The writers of flate2 do not report whether such a stream has ended.
struct Inflater {
    stream: Decompress,
    /// The result of the last call.
    status: Status,
}

impl Inflater {
    fn new(has_zlib_header: bool) -> Self {
        Self { stream: Decompress::new(has_zlib_header), status: Status::BufError }
    }

    /// Decompresses a piece, and returns everything decodable so far. Fails for bytes after the end of the stream.
    fn write(&mut self, mut piece: &[u8]) -> io::Result<Vec<u8>> {
        let mut output = Vec::new();
        loop {
            output.reserve(PIECE_BYTES);
            let total_in = self.stream.total_in();
            self.status = self.stream.decompress_vec(piece, &mut output, FlushDecompress::None)?;
            piece = &piece[(self.stream.total_in() - total_in) as usize..];
            // As there is room for output, `BufError` means that more input is needed.
            if self.status != Status::Ok {
                break;
            }
        }
        if piece.is_empty() { Ok(output) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn has_ended(&self) -> bool {
        self.status == Status::StreamEnd
    }
}

/// A body that is decompressed as it is read.
struct DecompressedBody {
    compressed: MinRateStream<Payload>,
    decoder: Decoder,
    /// Bytes that are received but not yet decompressed.
    input: Bytes,
    bytes_in: u64,
    bytes_out: u64,
    is_finished: bool,
}

impl DecompressedBody {
    fn new(compressed: MinRateStream<Payload>, decoder: Decoder) -> Self {
        Self { compressed, decoder, input: Bytes::new(), bytes_in: 0, bytes_out: 0, is_finished: false }
    }

    /// Decompresses the next piece of the received bytes.
    fn decompress_piece(&mut self) -> io::Result<Vec<u8>> {
        let piece = self.input.slice(..self.input.len().min(PIECE_BYTES));
        self.input.advance(piece.len());
        self.bytes_in += piece.len() as u64;
        self.decoder.write(&piece)
    }
}

impl Stream for DecompressedBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.is_finished {
                return Poll::Ready(None);
            }
            let decompressed = if self.input.is_empty() {
                match ready!(self.compressed.poll_next_unpin(cx)) {
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
                self.decompress_piece()
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
    use std::time::Duration;

    use actix_web::http::header::HeaderValue;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use futures_util::stream;

    use super::*;
    use crate::web::connections::MinRate;

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

    fn zlib(plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain)?;
        encoder.finish()
    }

    fn raw_deflate(plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain)?;
        encoder.finish()
    }

    async fn decompressed(coding: &str, bytes: Vec<u8>) -> Result<Vec<u8>, PayloadError> {
        let mut payload = decompress(&headers(coding), Payload::from(bytes)).expect("a known coding");
        let mut plain = Vec::new();
        while let Some(chunk) = payload.next().await {
            plain.extend_from_slice(&chunk?);
        }
        Ok(plain)
    }

    #[actix_web::test]
    async fn every_encoding_is_decompressed() {
        let plain: Vec<u8> = (0..200_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let gzip = gzip(&plain).expect("compressed");
        let zlib = zlib(&plain).expect("compressed");
        let raw_deflate = raw_deflate(&plain).expect("compressed");
        for (coding, bytes) in [("gzip", &gzip), ("deflate", &zlib), ("deflate", &raw_deflate), ("identity", &plain)] {
            assert!(decompressed(coding, bytes.clone()).await.expect("whole") == plain, "{coding}");
        }
        assert!(decompressed("gzip", b"{}".to_vec()).await.is_err(), "not compressed");
        assert!(decompress(&headers("br"), Payload::None).is_err());
    }

    #[actix_web::test]
    async fn a_body_ends_where_its_compressed_stream_ends() {
        let plain = "x".repeat(3000).into_bytes();
        for (coding, bytes) in [
            ("gzip", gzip(&plain).expect("compressed")),
            ("deflate", zlib(&plain).expect("compressed")),
            ("deflate", raw_deflate(&plain).expect("compressed")),
        ] {
            for length in 0..bytes.len() {
                let prefix = bytes[..length].to_vec();
                assert!(decompressed(coding, prefix).await.is_err(), "{coding}: {length} of {}", bytes.len());
            }
            let mut longer = bytes.clone();
            longer.push(0);
            assert!(decompressed(coding, longer).await.is_err(), "{coding}: a byte too many");
            assert_eq!(decompressed(coding, bytes).await.expect("whole"), plain, "{coding}");
        }
    }

    #[actix_web::test]
    async fn a_stalled_body_ends_although_much_was_decompressed() {
        let mut bytes = gzip(&vec![0_u8; 1 << 20]).expect("compressed");
        bytes.truncate(bytes.len() - 1);
        let sent = stream::iter([Ok::<_, PayloadError>(Bytes::from(bytes))]).chain(stream::pending());
        let payload: Payload = Payload::Stream { payload: Box::pin(sent) };
        let min_rate = MinRate { grace: Duration::from_millis(50), bytes_per_s: 1 << 20 };
        let decoder = Decoder::Gzip(MultiGzDecoder::new(Vec::new()));
        let mut body = DecompressedBody::new(MinRateStream::with_rate(min_rate, payload), decoder);
        let mut plain_bytes = 0;
        let error = loop {
            match body.next().await.expect("an error") {
                Ok(chunk) => plain_bytes += chunk.len(),
                Err(error) => break error,
            }
        };
        assert!(matches!(&error, PayloadError::Io(error) if error.kind() == io::ErrorKind::TimedOut), "{error}");
        assert!(plain_bytes > 1 << 19, "{plain_bytes} bytes");
    }

    #[actix_web::test]
    async fn a_decompression_bomb_ends_early() {
        let (bomb, large) = (vec![0_u8; 64 << 20], vec![0_u8; 15 << 20]);
        for (coding, bomb, large) in [
            ("gzip", gzip(&bomb), gzip(&large)),
            ("deflate", zlib(&bomb), zlib(&large)),
            ("deflate", raw_deflate(&bomb), raw_deflate(&large)),
        ] {
            let bomb = decompressed(coding, bomb.expect("compressed")).await;
            assert!(matches!(bomb, Err(PayloadError::Overflow)), "{coding}");
            let large = decompressed(coding, large.expect("compressed")).await;
            assert_eq!(large.expect("whole").len(), 15 << 20, "{coding}");
        }
    }
}
