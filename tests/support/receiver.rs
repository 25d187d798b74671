//! An endpoint of a webhook, as well or as badly behaved as a test wants it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// One received request.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    /// By name, in lower case.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
    pub at: Instant,
}

impl Received {
    /// The event that was sent.
    pub fn event(&self) -> Value {
        serde_json::from_slice(&self.body).expect("an event")
    }

    /// The event's id in the log.
    pub fn id(&self) -> i64 {
        self.event()["id"].as_i64().expect("an id")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The ticket that the event is about, or that its message belongs to.
    pub fn ticket(&self) -> Option<i64> {
        let event = self.event();
        let data = &event["data"];
        let is_ticket = event["type"].as_str().is_some_and(|kind| kind.starts_with("ticket."));
        if is_ticket { data["id"].as_i64() } else { data["ticketId"].as_i64() }
    }
}

/// What an endpoint does with a request.
#[derive(Clone, Debug)]
pub enum Conduct {
    /// Answers with a status and a body.
    Answer(u16, String),
    /// Redirects to this address.
    Redirect(String),
    /// Never answers.
    Hang,
    /// Closes the connection.
    Close,
    /// Answers 200 after a while.
    Late(Duration),
    /// Answers 200 once it is notified.
    Held(Arc<Notify>),
    /// Answers with a status at once, and with a body that never ends.
    Drip(u16),
}

impl Conduct {
    pub fn status(status: u16) -> Self {
        Self::Answer(status, String::new())
    }
}

type ChooseConduct = Box<dyn FnMut(&Received) -> Conduct + Send>;

struct Inner {
    received: Mutex<Vec<Received>>,
    conduct: Mutex<ChooseConduct>,
    connections: Mutex<usize>,
}

/// An endpoint that listens on this machine.
pub struct Receiver {
    pub address: SocketAddr,
    inner: Arc<Inner>,
    listening: AbortHandle,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Receiver {
    /// An endpoint that answers 200 to everything.
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    pub async fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let inner = Arc::new(Inner {
            received: Mutex::default(),
            conduct: Mutex::new(Box::new(|_| Conduct::status(200))),
            connections: Mutex::default(),
        });
        let shared = inner.clone();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *shared.connections.lock() += 1;
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { address, inner, listening: listening.abort_handle() }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Treats all requests like this from now on.
    pub fn behave(&self, conduct: Conduct) {
        self.choose(move |_| conduct.clone());
    }

    /// Treats each request as `conduct` decides from now on.
    pub fn choose(&self, conduct: impl FnMut(&Received) -> Conduct + Send + 'static) {
        *self.inner.conduct.lock() = Box::new(conduct);
    }

    /// All received requests, in order.
    pub fn received(&self) -> Vec<Received> {
        self.inner.received.lock().clone()
    }

    pub fn count(&self) -> usize {
        self.inner.received.lock().len()
    }

    /// The events' ids, in the order they came.
    pub fn ids(&self) -> Vec<i64> {
        self.received().iter().map(Received::id).collect()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        *self.inner.connections.lock()
    }

    /// Waits until this many requests have come. Returns all so far.
    pub async fn has(&self, count: usize) -> Vec<Received> {
        super::eventually(&format!("{count} requests come"), || async { self.count() >= count }).await;
        self.received()
    }
}

async fn serve(mut stream: TcpStream, inner: Arc<Inner>) {
    let mut buffer = Vec::new();
    loop {
        let Some(received) = next(&mut stream, &mut buffer).await else { return };
        let conduct = (inner.conduct.lock())(&received);
        inner.received.lock().push(received);
        let answer = match conduct {
            Conduct::Answer(status, body) => response(status, &body),
            Conduct::Redirect(location) => {
                format!("HTTP/1.1 307 Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
            }
            Conduct::Late(pause) => {
                tokio::time::sleep(pause).await;
                response(200, "")
            }
            Conduct::Held(release) => {
                release.notified().await;
                response(200, "")
            }
            Conduct::Close => return,
            Conduct::Hang => std::future::pending().await,
            Conduct::Drip(status) => {
                let head = format!("HTTP/1.1 {status} x\r\ntransfer-encoding: chunked\r\n\r\n");
                drop(stream.write_all(head.as_bytes()).await);
                while stream.write_all(b"1\r\nx\r\n").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                return;
            }
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn response(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// The next request of a connection; `None` when it ends.
async fn next(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Received> {
    let mut chunk = [0; 16 * 1024];
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end;
        }
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        buffer.extend_from_slice(&chunk[..count]);
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    while buffer.len() < end + 4 + length {
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        buffer.extend_from_slice(&chunk[..count]);
    }
    let body = buffer[end + 4..end + 4 + length].to_vec();
    buffer.drain(..end + 4 + length);
    Some(Received { path, headers, body, at: Instant::now() })
}
