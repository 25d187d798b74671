//! Connections, over raw sockets: bytes that are not HTTP are refused or the connection is closed, an idle or stalled
//! connection is closed, and answers of handlers are sent unchanged.

mod answers;
mod refusals;
mod slow;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::web::Bytes;
use actix_web::{App, HttpResponse, web};
use futures_util::stream;
use hotline::web::connections::{Limits, ListenOptions, Listeners, bind_listener, listen};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::steps::lingering;
use crate::support::{OwnApp, PATIENCE, patience};

const GOOD: &[u8] = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n";
const BAD: &[u8] = b"WHAT IS THIS\r\n\r\n";

/// A limit that no test reaches, however slow it is.
const LONG: Duration = Duration::from_secs(3600);

/// A response, as it was received.
#[derive(Debug, PartialEq)]
struct Response {
    status_line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Response {
    fn status(&self) -> u16 {
        self.status_line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    /// Asserts that this is the framework's own refusal of bytes that are not HTTP: a status, and nothing else.
    #[track_caller]
    fn assert_refused(&self, status: u16) {
        assert_eq!((self.status(), self.body.as_slice()), (status, &b""[..]), "{self:?}");
    }
}

/// The first response in these bytes and its length, if all of it is there.
fn parse_response(bytes: &[u8]) -> Option<(Response, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut lines = std::str::from_utf8(&bytes[..end]).expect("a readable head").split("\r\n");
    let status_line = lines.next().expect("a status line").to_owned();
    let headers: BTreeMap<_, _> = lines
        .map(|line| line.split_once(": ").expect("a header"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().expect("a length"));
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    Some((Response { status_line, headers, body }, end + 4 + length))
}

/// All responses in these bytes. Fails if the last one is not whole.
#[track_caller]
fn responses(mut bytes: &[u8]) -> Vec<Response> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (response, length) = parse_response(bytes).expect("the last response is whole");
        all.push(response);
        bytes = &bytes[length..];
    }
    all
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("connect")
}

/// Reads until the service closes the connection, and returns the bytes. A reset fails the test, as the answer may be
/// lost with it. Then closes this end as well: a stop of the service waits for clients that do not.
async fn read_to_close(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    timeout(patience(PATIENCE), stream.read_to_end(&mut bytes)).await.expect("the service closes").expect("no reset");
    bytes
}

/// Sends the request, and reads until the service closes. Does both at once, as a large request or answer does not fit
/// into the socket's buffers.
async fn exchange(address: SocketAddr, request: &[u8]) -> Vec<Response> {
    let (mut reader, mut writer) = connect(address).await.into_split();
    let mut bytes = Vec::new();
    let (sent, read) =
        tokio::join!(writer.write_all(request), timeout(patience(PATIENCE), reader.read_to_end(&mut bytes)));
    sent.expect("the service takes the request");
    read.expect("the service closes").expect("no reset");
    responses(&bytes)
}

/// Sends bytes that are not HTTP, and returns the refusal once the connection is closed; `None` if it is lost: a client
/// that sends more than is read may get a reset instead.
async fn refusal(address: SocketAddr, request: &[u8]) -> Option<Response> {
    let (mut reader, mut writer) = connect(address).await.into_split();
    let mut bytes = Vec::new();
    let read = async {
        let mut some = [0; 4096];
        while let Ok(read @ 1..) = reader.read(&mut some).await {
            bytes.extend_from_slice(&some[..read]);
        }
    };
    let (_, closed) = tokio::join!(writer.write_all(request), timeout(patience(PATIENCE), read));
    closed.expect("the service closes");
    let mut all = responses(&bytes);
    assert!(all.len() <= 1, "{all:?}");
    all.pop()
}

/// Sends a request, and returns the one response to it.
async fn exchange_one(address: SocketAddr, request: impl AsRef<[u8]>) -> Response {
    let mut all = exchange(address, request.as_ref()).await;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The next response on a connection that stays open.
async fn next_response(stream: &mut TcpStream) -> Response {
    let mut bytes = Vec::new();
    loop {
        if let Some((response, length)) = parse_response(&bytes) {
            assert_eq!(length, bytes.len(), "something follows");
            return response;
        }
        let mut some = [0; 4096];
        let read = timeout(patience(PATIENCE), stream.read(&mut some)).await.expect("an answer").expect("no reset");
        assert!(read > 0, "closed after {bytes:?}");
        bytes.extend_from_slice(&some[..read]);
    }
}

/// Sends a request on a new connection, and returns the connection and the response. On a slow machine the head may not
/// be sent in time, and the service closes the connection: then another one is tried.
async fn send_request(address: SocketAddr, request: &[u8]) -> (TcpStream, Response) {
    loop {
        let mut stream = connect(address).await;
        let mut some = [0];
        if stream.write_all(request).await.is_ok()
            && let Ok(1) = timeout(patience(PATIENCE), stream.peek(&mut some)).await.expect("an answer or an end")
        {
            let response = next_response(&mut stream).await;
            return (stream, response);
        }
    }
}

/// A connection, either fresh or one on which a request has been answered.
async fn connect_fresh_or_used(address: SocketAddr, is_fresh: bool) -> TcpStream {
    if is_fresh {
        return connect(address).await;
    }
    let (stream, response) = send_request(address, GOOD).await;
    assert_eq!(response.status(), 200);
    stream
}

/// Routes with answers of every kind.
fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/health/live", web::get().to(async || HttpResponse::Ok().body("live")))
        .route("/nothing", web::get().to(async || HttpResponse::NoContent().finish()))
        .route("/bare", web::get().to(async || HttpResponse::BadRequest().finish()))
        .route("/echo", web::post().to(async |body: Bytes| HttpResponse::Ok().body(body)))
        .route("/deaf", web::post().to(async || HttpResponse::Unauthorized().body("no")))
        .route("/never", web::to(async || std::future::pending::<HttpResponse>().await))
        .route("/large", web::get().to(async || HttpResponse::Ok().body(vec![b'x'; 8 << 20])))
        .route(
            "/stream",
            web::get().to(async || {
                let chunks = (0..64).map(|chunk| Ok::<_, actix_web::Error>(Bytes::from(vec![b'a' + chunk % 26; 5000])));
                HttpResponse::Ok().streaming(stream::iter(chunks))
            }),
        );
}

/// Limits for tests that are not about a slow client: on a slow machine any client may be one.
fn unhurried() -> Limits {
    Limits { head: LONG, keep_alive: LONG, write: LONG, ..Limits::default() }
}

/// A service for tests that are not about a slow client. It also waits for one that is still sending a refused request.
async fn unhurried_app() -> OwnApp {
    OwnApp::start_with(lingering()).await
}

/// A server that has only the routes of these tests.
struct Plain {
    address: SocketAddr,
    server: ServerHandle,
}

fn plain(limits: Limits) -> Plain {
    plain_with_drain(limits, Duration::from_secs(30))
}

/// Like [`plain`]; a stop waits for requests for at most `drain`.
fn plain_with_drain(limits: Limits, drain: Duration) -> Plain {
    let options = ListenOptions {
        peer_socket: None,
        socket: bind_listener("127.0.0.1:0".parse().expect("address"), limits.backlog).expect("a port"),
        workers: 1,
        drain,
        limits,
        proxies: vec!["127.0.0.9/32".parse().expect("a range")],
        metrics: std::sync::Arc::default(),
    };
    let Listeners { address, server, .. } = listen(options, |_| App::new().configure(routes)).expect("listen");
    let handle = server.handle();
    tokio::spawn(server);
    Plain { address, server: handle }
}
