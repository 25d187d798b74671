//! The WebSocket frames of a connection. Its buffers exist only while bytes flow: of ten thousand connections, nearly
//! all are idle.

use std::io;
use std::time::Duration;

use actix_codec::{Decoder, Encoder};
use actix_http::ws::{CloseReason, Codec, Frame, Message, ProtocolError};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::time::timeout;

use crate::web::connections::TakenStream;

/// Maximum size of a frame's content from a browser. These frames are small: browsers send messages with `POST`.
const FRAME_BYTES_MAX: usize = 4096;

/// Bytes per read: most frames are shorter.
const READ_BYTES: usize = 512;

/// Maximum bytes read and discarded from a client that continues to send while its socket is closed.
const UNREAD_BYTES_MAX: u64 = 64 * 1024;

/// The frames of a socket.
pub(super) struct FrameStream {
    /// The connection, with the start of a frame that has not arrived completely.
    connection: TakenStream,
    codec: Codec,
    /// Frames that are not written yet.
    unsent: BytesMut,
}

/// Why no frame is read.
#[derive(Debug)]
pub(super) enum FrameReadError {
    /// The connection is closed.
    Closed,
    /// A frame has more than [`FRAME_BYTES_MAX`].
    TooLarge,
    /// The bytes are not a valid frame.
    Invalid,
}

/// Why a frame is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameWriteError {
    /// The connection is closed.
    Closed,
    /// The client does not read the frame in time.
    TooSlow,
}

impl FrameStream {
    pub(super) fn new(connection: TakenStream) -> Self {
        Self { connection, codec: Codec::new().max_size(FRAME_BYTES_MAX), unsent: BytesMut::new() }
    }

    /// The next frame. If the future is dropped, no byte is lost.
    ///
    /// # Errors
    /// [`FrameReadError`]; there is no further frame then.
    pub(super) async fn next(&mut self) -> Result<Frame, FrameReadError> {
        loop {
            if let Some(frame) = self.decode()? {
                return Ok(frame);
            }
            let TakenStream { stream, received, .. } = &mut self.connection;
            if received.is_empty() {
                *received = BytesMut::new();
            }
            stream.readable().await.map_err(|_| FrameReadError::Closed)?;
            received.reserve(READ_BYTES);
            match stream.try_read_buf(received) {
                Ok(0) => return Err(FrameReadError::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(FrameReadError::Closed),
            }
        }
    }

    fn decode(&mut self) -> Result<Option<Frame>, FrameReadError> {
        // The codec checks the length only once the whole frame has arrived, and a header may claim 2^63 bytes.
        let received = &mut self.connection.received;
        if claimed_bytes(received).is_some_and(|bytes| bytes > FRAME_BYTES_MAX as u64) {
            return Err(FrameReadError::TooLarge);
        }
        self.codec.decode(received).map_err(|error| match error {
            ProtocolError::Overflow => FrameReadError::TooLarge,
            _ => FrameReadError::Invalid,
        })
    }

    /// Writes a message. If the future is dropped, the rest of the message is written before the next one.
    ///
    /// # Errors
    /// [`FrameWriteError`]; after `Closed`, nothing more can be written.
    pub(super) async fn write(&mut self, message: Message) -> Result<(), FrameWriteError> {
        self.codec.encode(message, &mut self.unsent).map_err(|_| FrameWriteError::Closed)?;
        let time_max = self.connection.write_time(self.unsent.len());
        let written = timeout(time_max, self.connection.stream.write_all_buf(&mut self.unsent)).await;
        written.map_err(|_| FrameWriteError::TooSlow)?.map_err(|_| FrameWriteError::Closed)?;
        self.unsent = BytesMut::new();
        Ok(())
    }

    /// Writes a close frame, and closes the connection once its client has closed it, or after `time_max`. Closing a
    /// connection with unread bytes would reset it, and the close frame could be lost. So up to [`UNREAD_BYTES_MAX`]
    /// bytes are read and discarded first.
    pub(super) async fn close(mut self, reason: Option<CloseReason>, time_max: Duration) {
        let closing = timeout(time_max, async {
            if self.write(Message::Close(reason)).await.is_ok() && self.connection.stream.shutdown().await.is_ok() {
                let mut unread = self.connection.stream.take(UNREAD_BYTES_MAX);
                let _ = copy(&mut unread, &mut sink()).await;
            }
        });
        // The connection is closed after a timeout, too.
        let _ = closing.await;
    }
}

/// The content length that the header of a frame claims (RFC 6455, 5.2); `None` while the header is incomplete.
fn claimed_bytes(frame: &[u8]) -> Option<u64> {
    let [_, length, rest @ ..] = frame else { return None };
    match length & 0x7F {
        126 => rest.first_chunk().map(|length| u16::from_be_bytes(*length).into()),
        127 => rest.first_chunk().map(|length| u64::from_be_bytes(*length)),
        length => Some(length.into()),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use futures_util::FutureExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// The server's side of a connection, and the client's.
    async fn connection_pair() -> (FrameStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a connection");
        let (stream, _) = listener.accept().await.expect("a connection");
        (FrameStream::new(TakenStream::new(stream, BytesMut::new(), Duration::from_millis(50))), client)
    }

    /// A frame that claims a length of `claimed` in `width` further bytes, with a mask of zeros, which changes nothing.
    fn masked_frame(first_byte: u8, claimed: u64, width: usize, content: &[u8]) -> Vec<u8> {
        let mut frame = vec![first_byte];
        match width {
            0 => frame.push(0x80 | u8::try_from(claimed).expect("a short length")),
            2 => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(claimed).expect("a length of two bytes").to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend(claimed.to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(content);
        frame
    }

    const TEXT: u8 = 0x81;

    #[tokio::test]
    async fn frames_are_read_in_chunks_of_any_size() {
        let content = vec![b'a'; FRAME_BYTES_MAX];
        let frames = [
            masked_frame(TEXT, 5, 0, b"hello"),
            masked_frame(TEXT, 0, 0, b""),
            masked_frame(TEXT, 5, 2, b"hello"),
            masked_frame(TEXT, 4096, 8, &content),
        ];
        let expected = [&b"hello"[..], b"", b"hello", &content];
        let bytes = frames.concat();
        for step in [1, 7, 1000, bytes.len()] {
            let (mut server, mut client) = connection_pair().await;
            let sending = async {
                for part in bytes.chunks(step) {
                    client.write_all(part).await.expect("written");
                    tokio::task::yield_now().await;
                }
            };
            let reading = async {
                for expected in expected {
                    let frame = server.next().await.expect("a frame");
                    assert_eq!(frame, Frame::Text(expected.to_vec().into()), "in steps of {step}");
                }
                assert!(server.next().now_or_never().is_none());
            };
            futures_util::future::join(sending, reading).await;
            assert_eq!(server.connection.received.capacity(), 0, "an idle socket has no buffer");
            drop(client);
            assert!(matches!(server.next().await, Err(FrameReadError::Closed)));
        }
    }

    #[tokio::test]
    async fn a_frame_that_claims_too_much_is_refused_at_its_header() {
        let longest = FRAME_BYTES_MAX as u64;
        for (claimed, width) in [(longest + 1, 2), (longest + 1, 8), (1 << 40, 8), (u64::MAX, 8)] {
            let (mut server, mut client) = connection_pair().await;
            let frame = masked_frame(TEXT, claimed, width, b"");
            client.write_all(&frame[..2 + width]).await.expect("written");
            assert!(matches!(server.next().await, Err(FrameReadError::TooLarge)), "{claimed}");
        }
        let (mut server, mut client) = connection_pair().await;
        client.write_all(&[TEXT, 5]).await.expect("written");
        assert!(matches!(server.next().await, Err(FrameReadError::Invalid)), "without a mask");
    }

    #[tokio::test]
    async fn the_rest_of_a_dropped_write_precedes_the_next_frame() {
        let (mut server, mut client) = connection_pair().await;
        // The time allowed for a write grows with its size, so that it suffices on any machine.
        let long = "a".repeat(8 << 20);
        assert!(
            server.write(Message::Text(long.clone().into())).now_or_never().is_none(),
            "more than the system buffers"
        );
        assert!(!server.unsent.is_empty());
        let reading = async move {
            let mut received = Vec::new();
            client.read_to_end(&mut received).await.expect("read");
            received
        };
        let closing = server.close(None, Duration::from_secs(60));
        let ((), received) = futures_util::future::join(closing, reading).await;
        assert_eq!(received.len(), 10 + long.len() + 2);
        assert_eq!(received[received.len() - 2..], [0x88, 0], "the close frame is whole");
    }

    #[tokio::test]
    async fn a_write_times_out_when_the_client_reads_nothing() {
        let (mut server, _client) = connection_pair().await;
        // Writes until the system's buffers are full.
        let error = loop {
            if let Err(error) = server.write(Message::Text("a".repeat(1000).into())).await {
                break error;
            }
        };
        assert_eq!(error, FrameWriteError::TooSlow);
    }
}
