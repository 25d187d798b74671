//! Checks the headers of WebSocket frames before their content is buffered.
//!
//! The codec, which reads this stream, buffers a frame until it is complete, and checks its length only then: a header
//! with a length of 2^40 bytes would make it buffer without limit. So the length in the header is checked here. Nothing
//! is copied, and of each frame only the length is parsed, whatever its opcode.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

/// Size of the mask, which follows the length if present.
const MASK_BYTES: u64 = 4;

/// The bytes of a connection; they end with [`PayloadError::Overflow`] at the header of a frame that is too long.
pub(super) struct FrameLimit<S> {
    bytes: S,
    parser: FrameParser,
    has_overflowed: bool,
}

impl<S> FrameLimit<S> {
    pub(super) fn new(bytes: S, frame_bytes_max: u64) -> Self {
        Self { bytes, parser: FrameParser::new(frame_bytes_max), has_overflowed: false }
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for FrameLimit<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.has_overflowed {
            return Poll::Ready(None);
        }
        let chunk = ready!(this.bytes.poll_next_unpin(cx));
        if let Some(Ok(bytes)) = &chunk
            && !this.parser.accepts(bytes)
        {
            this.has_overflowed = true;
            return Poll::Ready(Some(Err(PayloadError::Overflow)));
        }
        Poll::Ready(chunk)
    }
}

/// Finds the headers of the frames in the bytes.
#[derive(Debug)]
struct FrameParser {
    frame_bytes_max: u64,
    position: FramePosition,
}

#[derive(Clone, Copy, Debug)]
enum FramePosition {
    /// The byte with the opcode.
    Opcode,
    /// The byte with the mask bit and the length, or the size of the extended length.
    Length,
    /// The bytes of an extended length.
    ExtendedLength { remaining: u8, length: u64, has_mask: bool },
    /// The mask and the content.
    Content { remaining: u64 },
}

impl FramePosition {
    /// The position before this many bytes of mask and content; without any, the next frame begins.
    fn before_content(remaining: u64) -> Self {
        if remaining == 0 { Self::Opcode } else { Self::Content { remaining } }
    }
}

impl FrameParser {
    fn new(frame_bytes_max: u64) -> Self {
        Self { frame_bytes_max, position: FramePosition::Opcode }
    }

    /// Consumes these bytes; `false` at a frame that is too long.
    fn accepts(&mut self, bytes: &[u8]) -> bool {
        self.consume(bytes).is_some()
    }

    /// Consumes these bytes; `None` at a frame that is too long.
    fn consume(&mut self, mut bytes: &[u8]) -> Option<()> {
        while let Some((&byte, rest)) = bytes.split_first() {
            self.position = match self.position {
                FramePosition::Opcode => FramePosition::Length,
                FramePosition::Length => {
                    let has_mask = byte & 0x80 != 0;
                    match byte & 0x7F {
                        126 => FramePosition::ExtendedLength { remaining: 2, length: 0, has_mask },
                        127 => FramePosition::ExtendedLength { remaining: 8, length: 0, has_mask },
                        length => self.content_position(length.into(), has_mask)?,
                    }
                }
                FramePosition::ExtendedLength { remaining, length, has_mask } => {
                    // Eight bytes at most, so nothing overflows.
                    let length = length << 8 | u64::from(byte);
                    match remaining {
                        1 => self.content_position(length, has_mask)?,
                        _ => FramePosition::ExtendedLength { remaining: remaining - 1, length, has_mask },
                    }
                }
                FramePosition::Content { remaining } => {
                    let skipped = remaining.min(bytes.len() as u64);
                    // `skipped` is at most `bytes.len()`, so it fits.
                    bytes = &bytes[usize::try_from(skipped).unwrap_or(bytes.len())..];
                    self.position = FramePosition::before_content(remaining - skipped);
                    continue;
                }
            };
            bytes = rest;
        }
        Some(())
    }

    /// The position after the length; `None` when it is too long.
    fn content_position(&self, length: u64, has_mask: bool) -> Option<FramePosition> {
        if length > self.frame_bytes_max {
            return None;
        }
        Some(FramePosition::before_content(length + if has_mask { MASK_BYTES } else { 0 }))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use futures_util::stream;

    use super::*;

    const MAX: u64 = 4096;

    /// A masked frame whose header has this first byte and length; the extended length has `width` bytes.
    fn frame(opcode: u8, length: u64, width: u8, content_bytes: usize) -> Vec<u8> {
        let mut frame = vec![opcode];
        match width {
            0 => frame.push(0x80 | u8::try_from(length).expect("short")),
            2 => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(length).expect("short").to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend(length.to_be_bytes());
            }
        }
        frame.extend([1, 2, 3, 4]);
        frame.resize(frame.len() + content_bytes, 0xFF);
        frame
    }

    /// Whether these bytes are accepted, in chunks of this size.
    fn accepts(bytes: &[u8], chunk_bytes: usize) -> bool {
        let mut parser = FrameParser::new(MAX);
        bytes.chunks(chunk_bytes).all(|chunk| parser.accepts(chunk))
    }

    #[test]
    fn consecutive_frames_are_accepted_in_chunks_of_any_size() {
        let mut bytes = Vec::new();
        for (opcode, length, width) in
            [(0x81, 0, 0), (0x81, 125, 0), (0x89, 7, 0), (0x01, 126, 2), (0x80, 4096, 2), (0x81, 4096, 8), (0x88, 2, 0)]
        {
            bytes.extend(frame(opcode, length, width, usize::try_from(length).expect("short")));
        }
        for chunk_bytes in 1..bytes.len() {
            assert!(accepts(&bytes, chunk_bytes), "in chunks of {chunk_bytes}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_at_its_header() {
        for opcode in [0x81, 0x82, 0x01, 0x00, 0x80, 0x88, 0x89, 0x8A, 0xFF] {
            for (length, width) in [(4097, 2), (65_535, 2), (4097, 8), (1 << 40, 8), (u64::MAX, 8), (1 << 63, 8)] {
                let mut bytes = frame(0x81, 5, 0, 5);
                bytes.extend(frame(opcode, length, width, 0));
                let header_end = bytes.len() - 4;
                for chunk_bytes in 1..=bytes.len() {
                    let is_accepted = accepts(&bytes[..header_end], chunk_bytes);
                    assert!(!is_accepted, "{opcode:x} of {length} in chunks of {chunk_bytes}");
                }
                assert!(accepts(&bytes[..header_end - 1], 1), "the last byte of the length decides");
            }
        }
    }

    #[actix_web::test]
    async fn the_stream_ends_at_the_header_of_a_frame_that_is_too_long() {
        let complete = Bytes::from(frame(0x81, 5, 0, 5));
        let oversized = Bytes::from(frame(0x82, 1 << 40, 8, 100));
        let chunks = [complete.clone(), oversized, Bytes::from(vec![0; 1 << 20])].map(Ok);
        let received: Vec<_> = FrameLimit::new(stream::iter(chunks), MAX).collect().await;
        assert!(
            matches!(&received[..], [Ok(first), Err(PayloadError::Overflow)] if *first == complete),
            "{received:?}"
        );
    }
}
