//! Connections, over raw sockets: what is not HTTP is refused or closed, nobody holds a connection for nothing, and no
//! answer of a handler is touched.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::web::Bytes;
use actix_web::{App, HttpResponse, HttpServer, web};
use futures_util::{StreamExt, stream};
use hotline::web::wire::{Limits, Listening, bind, listen};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::{PATIENCE, TestApp, eventually};

const GOOD: &[u8] = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n";
const BAD: &[u8] = b"WHAT IS THIS\r\n\r\n";

/// A response as it came.
#[derive(Debug, PartialEq)]
struct Response {
    line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Response {
    fn status(&self) -> u16 {
        self.line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    /// The framework's own refusal of what is not HTTP: a status, and nothing else.
    #[track_caller]
    fn refused(&self, status: u16) {
        assert_eq!((self.status(), self.body.as_slice()), (status, &b""[..]), "{self:?}");
    }
}

/// The first response in these bytes and how long it is, if it is all there.
fn first(bytes: &[u8]) -> Option<(Response, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut lines = std::str::from_utf8(&bytes[..end]).expect("a readable head").split("\r\n");
    let line = lines.next().expect("a status line").to_owned();
    let headers: BTreeMap<_, _> = lines
        .map(|line| line.split_once(": ").expect("a header"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().expect("a length"));
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    Some((Response { line, headers, body }, end + 4 + length))
}

/// The responses that stand in these bytes, to their end.
#[track_caller]
fn responses(mut bytes: &[u8]) -> Vec<Response> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (response, length) = first(bytes).expect("the last response is whole");
        all.push(response);
        bytes = &bytes[length..];
    }
    all
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("connect")
}

/// Everything until the service closes; a reset fails, as it may take the answer with it. Closed then from here as
/// well: a stop waits for clients that do not.
async fn to_end(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the service closes").expect("no reset");
    bytes
}

/// Sends the request, and reads until the service closes. Both at once: what is large does not fit the socket.
async fn exchange(address: SocketAddr, request: &[u8]) -> Vec<Response> {
    let (mut reader, mut writer) = connect(address).await.into_split();
    let mut bytes = Vec::new();
    let (sent, read) = tokio::join!(writer.write_all(request), timeout(PATIENCE, reader.read_to_end(&mut bytes)));
    sent.expect("the service takes the request");
    read.expect("the service closes").expect("no reset");
    responses(&bytes)
}

/// What is said to somebody who does not speak HTTP, once the connection is closed. Who sends more than is read may meet
/// a reset, and the refusal is lost with it.
async fn refusal(address: SocketAddr, request: &[u8]) -> Option<Response> {
    let (mut reader, mut writer) = connect(address).await.into_split();
    let mut bytes = Vec::new();
    let read = async {
        let mut some = [0; 4096];
        while let Ok(read @ 1..) = reader.read(&mut some).await {
            bytes.extend_from_slice(&some[..read]);
        }
    };
    let (_, closed) = tokio::join!(writer.write_all(request), timeout(PATIENCE, read));
    closed.expect("the service closes");
    let mut all = responses(&bytes);
    assert!(all.len() <= 1, "{all:?}");
    all.pop()
}

/// The one response to a request.
async fn only(address: SocketAddr, request: impl AsRef<[u8]>) -> Response {
    let mut all = exchange(address, request.as_ref()).await;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The next response on a connection that lives on.
async fn next(stream: &mut TcpStream) -> Response {
    let mut bytes = Vec::new();
    loop {
        if let Some((response, length)) = first(&bytes) {
            assert_eq!(length, bytes.len(), "something follows");
            return response;
        }
        let mut some = [0; 4096];
        let read = timeout(PATIENCE, stream.read(&mut some)).await.expect("an answer").expect("no reset");
        assert!(read > 0, "closed after {bytes:?}");
        bytes.extend_from_slice(&some[..read]);
    }
}

/// A connection, fresh or one that has served.
async fn connect_before(address: SocketAddr, is_fresh: bool) -> TcpStream {
    let mut stream = connect(address).await;
    if !is_fresh {
        stream.write_all(GOOD).await.expect("send");
        assert_eq!(next(&mut stream).await.status(), 200);
    }
    stream
}

/// Answers of every kind.
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

struct Plain {
    address: SocketAddr,
    server: ServerHandle,
}

/// A service without anything behind it.
fn plain(limits: Limits) -> Plain {
    let listening = Listening {
        of_peers: None,
        socket: bind("127.0.0.1:0".parse().expect("address")).expect("a port"),
        workers: 1,
        drain: Duration::from_secs(30),
        limits,
        proxies: vec!["127.0.0.9/32".parse().expect("a range")],
    };
    let (address, _, server) = listen(listening, |_| App::new().configure(routes)).expect("listen");
    let handle = server.handle();
    tokio::spawn(server);
    Plain { address, server: handle }
}

/// Between the bytes of a head that trickles: many come before the head's time is over.
const TRICKLE: Duration = Duration::from_millis(10);

const SHORT: Duration = Duration::from_millis(300);

/// A connection from another address of this machine.
async fn connect_from(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{from}:0").parse().expect("an address")).expect("bound");
    socket.connect(to).await.expect("a connection")
}

#[actix_web::test]
async fn an_address_has_no_more_connections_than_its_share_and_others_are_served() {
    let plain = plain(Limits { per_address: 3, ..Limits::default() });
    let mut mine = Vec::new();
    for _ in 0..3 {
        let mut stream = connect_from("127.0.0.2", plain.address).await;
        stream.write_all(GOOD).await.expect("send");
        next(&mut stream).await;
        mine.push(stream);
    }
    for _ in 0..20 {
        let refused = responses(&to_end(connect_from("127.0.0.2", plain.address).await).await);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!(refused[0].status(), 429);
        let body: Value = serde_json::from_slice(&refused[0].body).expect("JSON");
        assert_eq!(body["error"]["code"], "ERR_API_RATE_LIMITED", "{body}");
    }
    // Others have their own; a proxy brings the connections of many.
    let mut others = Vec::new();
    for from in ["127.0.0.3", "127.0.0.4"].into_iter().chain(std::iter::repeat_n("127.0.0.9", 10)) {
        let mut stream = connect_from(from, plain.address).await;
        stream.write_all(GOOD).await.expect("send");
        assert_ne!(next(&mut stream).await.status(), 429, "{from}");
        others.push(stream);
    }
    // Who closes one may open another.
    drop(mine.pop());
    eventually("the place is free again", || async {
        let mut stream = connect_from("127.0.0.2", plain.address).await;
        let mut heard = [0; 12];
        // Whoever is turned away may find the connection closed.
        let is_sent = stream.write_all(GOOD).await.is_ok();
        is_sent && stream.read_exact(&mut heard).await.is_ok() && heard != *b"HTTP/1.1 429"
    })
    .await;
    plain.server.stop(false).await;
}

#[actix_web::test]
async fn what_is_no_http_is_refused() {
    let app = TestApp::start().await;
    let post =
        |headers: &str| format!("POST /api/v1/tickets HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n{{}}").into_bytes();
    let get = |headers: &str| format!("GET /health/live HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n").into_bytes();
    let many: String = (0..200).map(|header| format!("X-{header}: y\r\n")).collect();
    for (what, request, status) in [
        ("garbage", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n".to_vec(), 400),
        ("words", BAD.to_vec(), 400),
        ("NUL bytes", b"\0\0\0\0\r\n\r\n".to_vec(), 400),
        ("a version that is none", b"GET / HTTP/3.7\r\nHost: x\r\n\r\n".to_vec(), 400),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 400),
        ("no host", b"GET /health/live HTTP/1.1\r\n\r\n".to_vec(), 400),
        ("a header without colon", get("Accept"), 400),
        ("a header with NUL", get("X: a\0b"), 400),
        ("a blank before the colon", get("X : y"), 400),
        ("two hosts", get("Host: y"), 400),
        ("a length that is no number", post("Content-Length: two"), 400),
        ("a negative length", post("Content-Length: -2"), 400),
        ("a length above any", post("Content-Length: 99999999999999999999999"), 400),
        ("two lengths", post("Content-Length: 2\r\nContent-Length: 3"), 400),
        ("length and chunks", post("Content-Length: 2\r\nTransfer-Encoding: chunked"), 400),
        ("an unknown encoding", post("Transfer-Encoding: rot13"), 400),
        ("a path above any", format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(70_000)).into_bytes(), 400),
        ("a line without end", format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(400_000)).into_bytes(), 431),
        ("a header without end", get(&format!("X: {}", "a".repeat(400_000))), 431),
        ("too many headers", get(many.trim_end()), 431),
    ] {
        eprintln!("{what}");
        match refusal(app.service.address, &request).await {
            Some(refused) => refused.refused(status),
            None => assert!(request.len() > 64 << 10, "{what}: not answered"),
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn good_requests_before_a_bad_one_are_answered() {
    let app = TestApp::start().await;
    let pipelined = [GOOD, GOOD, GOOD, BAD].concat();
    let mut all = exchange(app.service.address, &pipelined).await;
    assert_eq!(all.len(), 4, "{all:?}");
    all.pop().expect("four").refused(400);
    for good in all {
        assert_eq!(good.status(), 200, "{good:?}");
        assert_eq!(serde_json::from_slice::<Value>(&good.body).expect("JSON")["status"], "live");
    }

    // One after the other, and in HTTP/1.0, whose connection the framework says it keeps.
    for good in [GOOD, b"GET /health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"] {
        let mut stream = connect(app.service.address).await;
        stream.write_all(good).await.expect("send");
        assert_eq!(next(&mut stream).await.status(), 200);
        stream.write_all(BAD).await.expect("send");
        let refused = responses(&to_end(stream).await);
        assert_eq!(refused.len(), 1, "{refused:?}");
        refused[0].refused(400);
    }
    app.stop().await;
}

#[actix_web::test]
async fn good_requests_before_a_bad_one_are_answered_however_large_the_answers() {
    let plain = plain(Limits::default());
    let large = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut stream = connect(plain.address).await;
    stream.write_all(&[large, large, BAD].concat()).await.expect("send");
    let all = responses(&to_end(stream).await);
    assert_eq!(
        all.iter().map(|it| (it.status(), it.body.len() >> 20)).collect::<Vec<_>>(),
        [(200, 8), (200, 8), (400, 0)]
    );
    all[2].refused(400);
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_broken_chunk_has_one_answer() {
    let app = TestApp::start().await;
    let key = &app.company.key;
    let post = |key: &str| {
        format!(
            "POST /api/v1/tickets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"
        )
    };
    let broken = only(app.service.address, post(key)).await;
    assert_eq!(broken.status(), 400, "{broken:?}");
    assert_eq!(serde_json::from_slice::<Value>(&broken.body).expect("JSON")["error"]["code"], "ERR_API_BAD_REQUEST");
    let unknown = only(app.service.address, post("sk_live_x")).await;
    assert_eq!(unknown.status(), 401, "{unknown:?}");
    app.stop().await;
}

#[actix_web::test]
async fn a_broken_chunk_that_no_handler_reads_ends_the_connection() {
    let plain = plain(Limits::default());
    let head = "POST /never HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    for chunks in ["zz\r\n", "2\r\nab\r\nzz\r\n", "2\r\nabc\r\n", "fffffffffffffffff\r\n"] {
        let broken = format!("{head}{chunks}");
        assert_eq!(refusal(plain.address, broken.as_bytes()).await, None);
        let both = exchange(plain.address, &[GOOD, broken.as_bytes()].concat()).await;
        assert_eq!((both.len(), both[0].status()), (1, 200), "{both:?}");
    }
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_head_that_breaks_off_is_closed() {
    let plain = plain(Limits::default());
    for is_fresh in [true, false] {
        for begun in [&b"GET / HTTP/1.1\r\nHo"[..], b""] {
            let mut stream = connect_before(plain.address, is_fresh).await;
            stream.write_all(begun).await.expect("send");
            stream.shutdown().await.expect("shut down");
            assert_eq!(to_end(stream).await, b"");
        }
    }
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_head_that_stalls_is_closed() {
    let plain = plain(Limits { head: SHORT, ..Limits::default() });
    for is_fresh in [true, false] {
        let mut stream = connect_before(plain.address, is_fresh).await;
        stream.write_all(b"GET / HTTP/1.1\r\nHo").await.expect("send");
        assert_eq!(to_end(stream).await, b"");
    }
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_head_that_trickles_is_closed() {
    let plain = plain(Limits { head: SHORT, ..Limits::default() });
    let (mut reader, mut writer) = connect(plain.address).await.into_split();
    let trickle = tokio::spawn(async move {
        let mut bytes = b"GET /health/live HTTP/1.1\r\nX: ".iter().chain(std::iter::repeat(&b'x'));
        while let Some(byte) = bytes.next()
            && writer.write_all(&[*byte]).await.is_ok()
        {
            tokio::time::sleep(TRICKLE).await;
        }
    });
    let mut bytes = Vec::new();
    // There may be a reset: a byte may cross the end.
    let _ = timeout(PATIENCE, reader.read_to_end(&mut bytes)).await.expect("an end");
    assert_eq!(bytes, b"");
    trickle.abort();
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn who_asks_nothing_is_not_kept_and_told_nothing() {
    // Longer than a head may take: a connection is looked at more than once while it is idle.
    let plain = plain(Limits { head: SHORT, keep_alive: SHORT * 3, ..Limits::default() });
    let silent = connect(plain.address).await;
    assert_eq!(to_end(silent).await, b"");

    // The second holds a piece of the next request, which came with the first.
    for request in [GOOD.to_vec(), [GOOD, b"GET / HT"].concat()] {
        let mut idle = connect(plain.address).await;
        idle.write_all(&request).await.expect("send");
        assert_eq!(next(&mut idle).await.status(), 200);
        let mut rest = Vec::new();
        // There may be a reset: it has heard what it has not read.
        let _ = timeout(PATIENCE, idle.read_to_end(&mut rest)).await.expect("the service closes");
        assert_eq!(rest, b"");
    }
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_slow_handler_and_a_slow_body_are_not_slow_heads() {
    let plain = plain(Limits { head: SHORT, write: SHORT, ..Limits::default() });
    let mut stream = connect(plain.address).await;
    stream.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nslow").await.expect("send");
    // The time is what is tested: long enough for a head to be given up.
    tokio::time::sleep(SHORT * 3).await;
    stream.write_all(b"body").await.expect("send");
    assert_eq!(next(&mut stream).await.body, b"slowbody");
    tokio::time::sleep(SHORT * 3).await;
    stream.write_all(GOOD).await.expect("send");
    assert_eq!(next(&mut stream).await.body, b"live");

    // The rest of a body that was answered before it was read is no head either.
    stream.write_all(b"POST /deaf HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").await.expect("send");
    assert_eq!(next(&mut stream).await.status(), 401);
    stream.write_all(b"4\r\nrest\r\n").await.expect("send");
    tokio::time::sleep(SHORT * 3).await;
    stream.write_all(b"0\r\n\r\n").await.expect("send");
    stream.write_all(GOOD).await.expect("send");
    assert_eq!(next(&mut stream).await.body, b"live");
    drop(stream);
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_body_that_goes_on_behind_its_answer_is_given_up() {
    let plain = plain(Limits { head: SHORT, goodbye: SHORT, ..Limits::default() });
    let mut stream = connect(plain.address).await;
    stream.write_all(b"POST /deaf HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").await.expect("send");
    assert_eq!(next(&mut stream).await.status(), 401);
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let sending = async { while stream.write_all(&chunk).await.is_ok() {} };
    timeout(PATIENCE, sending).await.expect("an end to what is taken");
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn who_takes_no_answer_is_given_up() {
    /// Says when the service lets go of the answer.
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let gone = Arc::new(AtomicBool::new(false));
    let flag = gone.clone();
    let listening = Listening {
        of_peers: None,
        socket: bind("127.0.0.1:0".parse().expect("address")).expect("a port"),
        workers: 1,
        drain: Duration::from_secs(30),
        limits: Limits { write: SHORT, ..Limits::default() },
        proxies: Vec::new(),
    };
    let (address, _, server) = listen(listening, move |_| {
        let flag = flag.clone();
        App::new().route(
            "/endless",
            web::get().to(move || {
                let gone = Gone(flag.clone());
                let chunks = stream::repeat(Bytes::from_static(&[b'x'; 64 << 10]));
                let chunks = chunks.map(move |chunk| {
                    let _ = &gone;
                    Ok::<_, actix_web::Error>(chunk)
                });
                async move { HttpResponse::Ok().streaming(chunks) }
            }),
        )
    })
    .expect("listen");
    let handle = server.handle();
    tokio::spawn(server);
    let mut stream = connect(address).await;
    stream.write_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("send");
    eventually("the answer is given up", || async { gone.load(Ordering::Acquire) }).await;
    handle.stop(true).await;
}

#[actix_web::test]
async fn a_head_request_is_answered_and_its_connection_lives_on() {
    let app = TestApp::start().await;
    let mut stream = connect(app.service.address).await;
    stream.write_all(b"HEAD /health/live HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("send");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(PATIENCE, stream.read_u8()).await.expect("an answer").expect("no end"));
    }
    stream.write_all(GOOD).await.expect("send");
    assert_eq!(next(&mut stream).await.status(), 200);
    drop(stream);
    app.stop().await;
}

#[actix_web::test]
async fn answers_are_what_they_are_without_the_wire() {
    let plain = plain(Limits::default());
    let bare = HttpServer::new(|| App::new().configure(routes)).workers(1).disable_signals();
    let bare = bare.bind("127.0.0.1:0").expect("bind");
    let bare_address = bare.addrs()[0];
    let bare = bare.run();
    let bare_handle = bare.handle();
    tokio::spawn(bare);

    let get = |path: &str, headers: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").into_bytes();
    let close = "Connection: close\r\n";
    let body = "y".repeat(200_000);
    let small = get("/health/live", "").repeat(1000);
    let mixed = [get("/nothing", ""), get("/health/live", ""), get("/bare", ""), get("/large", close)].concat();
    for request in [
        get("/health/live", close),
        get("/nothing", close),
        get("/bare", close),
        get("/large", close),
        get("/no-such", close),
        b"GET /health/live HTTP/1.0\r\n\r\n".to_vec(),
        [small, get("/nothing", close)].concat(),
        mixed,
        format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{close}\r\n{body}", body.len()).into_bytes(),
    ] {
        let (mut ours, mut theirs) = (exchange(plain.address, &request).await, exchange(bare_address, &request).await);
        for response in ours.iter_mut().chain(&mut theirs) {
            response.headers.remove("date");
        }
        // Of requests it has taken apart at once, the framework says of all that the connection ends when the last says so;
        // it is handed less at a time here, and says it of fewer.
        for answers in [&mut ours, &mut theirs] {
            let last = answers.len() - 1;
            answers[..last].iter_mut().for_each(|response| drop(response.headers.remove("connection")));
        }
        assert!(ours == theirs, "{:?} came otherwise", String::from_utf8_lossy(&request[..60.min(request.len())]));
    }

    // Chunks: the bytes themselves, but for the head, whose date may differ.
    let stream = |address| async move {
        let mut stream = connect(address).await;
        stream.write_all(b"GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("send");
        let bytes = to_end(stream).await;
        let body = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        bytes[body..].to_vec()
    };
    assert!(stream(plain.address).await == stream(bare_address).await, "the chunks came otherwise");
    plain.server.stop(true).await;
    bare_handle.stop(true).await;
}

#[actix_web::test]
async fn a_stop_waits_for_requests_and_for_nobody_else() {
    let plain = plain(Limits::default());
    let mut idle = connect(plain.address).await;
    idle.write_all(GOOD).await.expect("send");
    next(&mut idle).await;
    let mut half = connect(plain.address).await;
    half.write_all(b"GET / HT").await.expect("send");
    let mut busy = connect(plain.address).await;
    let head = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    busy.write_all(head).await.expect("send");
    assert_eq!(next(&mut busy).await.status(), 100, "the request is begun");
    let started = Instant::now();
    let stopping = tokio::spawn(plain.server.stop(true));
    assert_eq!(to_end(idle).await, b"", "the idle one is closed");
    assert!(!stopping.is_finished(), "one request is being served");
    busy.write_all(b"busy").await.expect("send");
    assert_eq!(responses(&to_end(busy).await)[0].body, b"busy");
    timeout(PATIENCE, stopping).await.expect("stopped in time").expect("stopped");
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}
