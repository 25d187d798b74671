//! Connections to other processes: kept alive, used by one request at a time, and owned by the thread that opened them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::time::Duration;

use actix_codec::Decoder;
use actix_http::h1::ClientCodec;
use actix_http::{ResponseHead, ServiceConfig};
use bytes::BytesMut;
use hotline_persistence::cluster::{LifeId, Peer};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Timeout for connecting. Processes of one cluster are near each other, and a request waits at most 5 s for the
/// process that serves its company.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(1);

/// How long to treat a process as unreachable after a failure, so that not every request has to detect it.
const UNREACHABLE_TIME: Duration = Duration::from_millis(100);

/// How long to retain an idle connection: less than the 75 s after which the other side closes it.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// Maximum number of idle connections that a thread retains per process: the usual number of concurrent requests.
const IDLE_MAX: usize = 256;

/// How long sent data may stay unacknowledged before the other machine or the network counts as down.
const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(5);

/// Size of the read buffer.
const READ_BYTES: usize = 16 * 1024;

/// A connection to another process.
pub(super) struct PeerLink {
    pub(super) stream: TcpStream,
    /// Received bytes that are not parsed yet.
    pub(super) buffer: BytesMut,
}

/// The connections of one thread.
#[derive(Default)]
pub(super) struct PeerLinks {
    peers: RefCell<HashMap<LifeId, PeerConnections>>,
    codec_config: ServiceConfig,
}

#[derive(Default)]
struct PeerConnections {
    idle: Vec<(PeerLink, Instant)>,
    unreachable_since: Option<Instant>,
}

/// The other process cannot be reached.
#[derive(Debug)]
pub(super) struct Unreachable;

impl PeerLinks {
    /// An idle connection of this thread, or a new one. Before a new one is opened, connections to lives (runs of a
    /// process) that have ended are dropped.
    ///
    /// # Errors
    /// When the other side cannot be reached.
    pub(super) async fn get(&self, peer: &Peer, life_exists: impl Fn(LifeId) -> bool) -> Result<PeerLink, Unreachable> {
        let now = Instant::now();
        {
            let mut peers = self.peers.borrow_mut();
            let connections = peers.entry(peer.life).or_default();
            while let Some((link, since)) = connections.idle.pop() {
                if now.duration_since(since) < IDLE_TIME_MAX && link.is_open() {
                    return Ok(link);
                }
            }
            if connections.unreachable_since.is_some_and(|since| now.duration_since(since) < UNREACHABLE_TIME) {
                return Err(Unreachable);
            }
            peers.retain(|life, _| life_exists(*life));
        }
        let attempt = timeout(CONNECT_TIME_MAX, PeerLink::connect(&peer.address)).await;
        let error = match attempt {
            Ok(Ok(link)) => return Ok(link),
            Ok(Err(error)) => error,
            Err(_) => io::ErrorKind::TimedOut.into(),
        };
        tracing::debug!(%error, node = peer.node, address = peer.address, "could not reach another process of the cluster");
        self.peers.borrow_mut().entry(peer.life).or_default().unreachable_since = Some(Instant::now());
        Err(Unreachable)
    }

    /// Retains a connection for the next request, unless it has unread data or enough others are idle.
    pub(super) fn release(&self, life: LifeId, link: PeerLink) {
        let mut peers = self.peers.borrow_mut();
        let connections = peers.entry(life).or_default();
        if link.buffer.is_empty() && connections.idle.len() < IDLE_MAX {
            connections.idle.push((link, Instant::now()));
        }
    }

    /// A parser for responses.
    pub(super) fn codec(&self) -> ClientCodec {
        ClientCodec::new(self.codec_config.clone())
    }
}

impl PeerLink {
    /// Connects, without a timeout of its own.
    pub(super) async fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Later bytes must not wait until the other side has acknowledged earlier ones.
        stream.set_nodelay(true)?;
        let unacknowledged_ms = u32::try_from(UNACKNOWLEDGED_TIME_MAX.as_millis()).unwrap_or(u32::MAX);
        #[cfg(target_os = "linux")]
        setsockopt(&stream, sockopt::TcpUserTimeout, &unacknowledged_ms)?;
        Ok(Self { stream, buffer: BytesMut::new() })
    }

    /// Whether the other side has neither closed the connection nor sent unexpected data.
    fn is_open(&self) -> bool {
        let mut byte = [0];
        matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Writes all bytes. The error says whether any of them were sent.
    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        let mut is_partly_sent = false;
        while !bytes.is_empty() {
            match self.stream.write(bytes).await {
                Ok(0) | Err(_) => return Err(WriteError { is_partly_sent }),
                Ok(written) => {
                    is_partly_sent = true;
                    bytes = bytes.get(written..).unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    /// Reads the head of a response. The codec is then ready to decode the body.
    pub(super) async fn read_head(&mut self, codec: &mut ClientCodec) -> Result<ResponseHead, ResponseError> {
        loop {
            if let Some(head) = codec.decode(&mut self.buffer).map_err(|_| ResponseError)? {
                return Ok(head);
            }
            self.read_more().await?;
        }
    }

    /// Reads more bytes of a response.
    pub(super) async fn read_more(&mut self) -> Result<(), ResponseError> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => Err(ResponseError),
            Ok(_) => Ok(()),
        }
    }
}

/// Not all bytes were written.
#[derive(Debug)]
pub(super) struct WriteError {
    /// Whether the other side may have received some of them.
    pub(super) is_partly_sent: bool,
}

/// The connection ended before the response did, or the response is invalid.
#[derive(Debug)]
pub(super) struct ResponseError;
