//! Sends bytes that no client library would send, and reads what the service answers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What the service sent until it closed the connection, or until the time was up.
#[derive(Debug)]
pub struct RawResponse {
    bytes: Vec<u8>,
    /// Whether the service has closed the connection.
    pub is_closed: bool,
}

impl RawResponse {
    /// The status of the first answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        let line = self.bytes.split(|&byte| byte == b'\r').next()?;
        std::str::from_utf8(line).ok()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
    }

    /// Whether the answer is an error in the API's envelope.
    pub fn is_error_in_envelope(&self) -> bool {
        let body = self.bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|end| &self.bytes[end + 4..]);
        let body = body.and_then(|body| serde_json::from_slice::<serde_json::Value>(body).ok());
        body.is_some_and(|body| body["error"]["code"].is_string() && body["error"]["message"].is_string())
    }
}

pub async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect(address).await
}

/// Reads until the service closes the connection, for `patience` at most.
pub async fn read_until_closed(stream: &mut (impl AsyncReadExt + Unpin), patience: Duration) -> RawResponse {
    let mut bytes = Vec::new();
    let ended = timeout(patience, async {
        let mut buffer = [0; 4096];
        // A reset is an end as well: what was sent last may have crossed the answer.
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            bytes.extend_from_slice(&buffer[..read]);
        }
    });
    let is_closed = ended.await.is_ok();
    RawResponse { bytes, is_closed }
}

/// Sends pieces for as long as they are taken, `pause` apart, and reads what the service sends.
pub async fn send_pieces(
    address: SocketAddr,
    pieces: impl Iterator<Item = Vec<u8>>,
    pause: Duration,
    patience: Duration,
) -> std::io::Result<RawResponse> {
    let (mut reader, mut writer) = connect(address).await?.into_split();
    let sending = async {
        for piece in pieces {
            if writer.write_all(&piece).await.is_err() {
                break;
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        // Silent from here on, with the connection open.
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        response = read_until_closed(&mut reader, patience) => Ok(response),
        never = sending => match never {},
    }
}
