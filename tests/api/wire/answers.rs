//! Answers of handlers are sent unchanged, to as many connections as an address may have.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::{App, HttpServer};
use hotline::web::connections::Limits;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{
    GOOD, LONG, connect, exchange, next_response, plain, plain_with_drain, read_to_close, responses, routes, unhurried,
    unhurried_app,
};
use crate::support::{PATIENCE, eventually, patience};

/// A connection from another address of this machine.
async fn connect_from(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{from}:0").parse().expect("an address")).expect("bound");
    socket.connect(to).await.expect("a connection")
}

#[actix_web::test]
async fn an_address_has_no_more_connections_than_its_share_and_others_are_served() {
    let plain = plain(Limits { per_address: 3, ..unhurried() });
    let mut connections = Vec::new();
    for _ in 0..3 {
        let mut stream = connect_from("127.0.0.2", plain.address).await;
        stream.write_all(GOOD).await.expect("send");
        next_response(&mut stream).await;
        connections.push(stream);
    }
    for _ in 0..20 {
        let refused = responses(&read_to_close(connect_from("127.0.0.2", plain.address).await).await);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!(refused[0].status(), 429);
        let body: Value = serde_json::from_slice(&refused[0].body).expect("JSON");
        assert_eq!(body["error"]["code"], "ERR_API_RATE_LIMITED", "{body}");
    }
    // Other addresses have their own share. A proxy may have more, since it brings the connections of many clients.
    let mut others = Vec::new();
    for from in ["127.0.0.3", "127.0.0.4"].into_iter().chain(std::iter::repeat_n("127.0.0.9", 10)) {
        let mut stream = connect_from(from, plain.address).await;
        stream.write_all(GOOD).await.expect("send");
        assert_ne!(next_response(&mut stream).await.status(), 429, "{from}");
        others.push(stream);
    }
    // A client that closes a connection may open another.
    drop(connections.pop());
    eventually("another connection is accepted", || async {
        let mut stream = connect_from("127.0.0.2", plain.address).await;
        let mut status_line = [0; 12];
        // A refused client may find the connection closed.
        let is_sent = stream.write_all(GOOD).await.is_ok();
        is_sent && stream.read_exact(&mut status_line).await.is_ok() && status_line != *b"HTTP/1.1 429"
    })
    .await;
    plain.server.stop(false).await;
}

#[actix_web::test]
async fn a_head_request_is_answered_and_its_connection_stays_open() {
    let app = unhurried_app().await;
    let mut stream = connect(app.address).await;
    stream.write_all(b"HEAD /health/live HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("send");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(patience(PATIENCE), stream.read_u8()).await.expect("an answer").expect("no end"));
    }
    stream.write_all(GOOD).await.expect("send");
    assert_eq!(next_response(&mut stream).await.status(), 200);
    drop(stream);
    app.stop().await;
}

#[actix_web::test]
async fn answers_equal_those_of_a_server_without_the_connection_layer() {
    let plain = plain(unhurried());
    let bare = HttpServer::new(|| App::new().configure(routes)).workers(1).disable_signals();
    // Otherwise the framework waits five seconds for a request.
    let bare = bare.client_request_timeout(Duration::ZERO);
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
        // When the last of several requests that the framework has parsed at once ends the connection, all their
        // answers say so. Behind the connection layer it gets fewer bytes at a time, so fewer answers say so.
        for answers in [&mut ours, &mut theirs] {
            let last = answers.len() - 1;
            answers[..last].iter_mut().for_each(|response| drop(response.headers.remove("connection")));
        }
        assert!(
            ours == theirs,
            "{:?} is answered differently",
            String::from_utf8_lossy(&request[..60.min(request.len())])
        );
    }

    // A chunked answer is compared byte by byte, without the head, whose date may differ.
    let stream = |address| async move {
        let mut stream = connect(address).await;
        stream.write_all(b"GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("send");
        let bytes = read_to_close(stream).await;
        let body = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        bytes[body..].to_vec()
    };
    assert!(stream(plain.address).await == stream(bare_address).await, "the chunks differ");
    plain.server.stop(true).await;
    bare_handle.stop(true).await;
}

#[actix_web::test]
async fn a_stop_waits_for_running_requests_and_no_other_connection() {
    let plain = plain_with_drain(unhurried(), LONG);
    let mut idle = connect(plain.address).await;
    idle.write_all(GOOD).await.expect("send");
    next_response(&mut idle).await;
    let mut half = connect(plain.address).await;
    half.write_all(b"GET / HT").await.expect("send");
    let mut busy = connect(plain.address).await;
    let head = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    busy.write_all(head).await.expect("send");
    assert_eq!(next_response(&mut busy).await.status(), 100, "the request has not begun");
    let stopping = tokio::spawn(plain.server.stop(true));
    assert_eq!(read_to_close(idle).await, b"", "the idle connection got an answer");
    assert!(!stopping.is_finished(), "the stop did not wait for the request");
    busy.write_all(b"busy").await.expect("send");
    assert_eq!(responses(&read_to_close(busy).await)[0].body, b"busy");
    // Much sooner than the time limits of the half-sent head and of the drain.
    timeout(patience(PATIENCE), stopping).await.expect("stopped in time").expect("stopped");
}
