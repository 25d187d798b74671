//! A client that sends or reads too slowly, or not at all, does not keep its connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::web::Bytes;
use actix_web::{App, HttpResponse, web};
use futures_util::{StreamExt, stream};
use hotline::web::connections::{Limits, ListenOptions, Listeners, bind_listener, listen};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::{GOOD, LONG, connect, connect_fresh_or_used, next_response, plain, read_to_close, send_request, unhurried};
use crate::support::{PATIENCE, eventually, patience};

/// The pause between the bytes of a head that trickles: many bytes arrive before the head's time is over.
const TRICKLE: Duration = Duration::from_millis(10);

/// The time limit that a test sets, so that it runs out soon.
const SHORT: Duration = Duration::from_millis(300);

#[actix_web::test]
async fn a_connection_whose_head_breaks_off_is_closed() {
    let plain = plain(unhurried());
    for is_fresh in [true, false] {
        for begun in [&b"GET / HTTP/1.1\r\nHo"[..], b""] {
            let mut stream = connect_fresh_or_used(plain.address, is_fresh).await;
            stream.write_all(begun).await.expect("send");
            stream.shutdown().await.expect("shut down");
            assert_eq!(read_to_close(stream).await, b"");
        }
    }
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_connection_whose_head_stalls_is_closed() {
    // No connection is closed as idle after its first request, before the head arrives.
    let plain = plain(Limits { head: SHORT, ..unhurried() });
    for is_fresh in [true, false] {
        // A fresh connection may be closed before the head arrives, and then its client may get a reset.
        eventually("a stalled connection is closed without a reset", || async {
            let mut stream = connect_fresh_or_used(plain.address, is_fresh).await;
            let mut bytes = Vec::new();
            let is_sent = stream.write_all(b"GET / HTTP/1.1\r\nHo").await.is_ok();
            let end = timeout(patience(PATIENCE), stream.read_to_end(&mut bytes)).await.expect("the service closes");
            assert_eq!(bytes, b"");
            let is_clean = is_sent && end.is_ok();
            assert!(is_clean || is_fresh, "a reset: {end:?}");
            is_clean
        })
        .await;
    }
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_connection_whose_head_trickles_is_closed() {
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
    // A reset is possible: a byte may arrive when the connection is already closed.
    let _ = timeout(patience(PATIENCE), reader.read_to_end(&mut bytes)).await.expect("an end");
    assert_eq!(bytes, b"");
    trickle.abort();
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn an_idle_connection_is_closed_without_an_answer() {
    // `keep_alive` is longer than a head may take: an idle connection is looked at more than once.
    let plain = plain(Limits { head: SHORT, keep_alive: SHORT * 3, ..Limits::default() });
    let silent = connect(plain.address).await;
    assert_eq!(read_to_close(silent).await, b"");

    // The second connection also holds a piece of the next request, which arrived with the first request.
    for request in [GOOD.to_vec(), [GOOD, b"GET / HT"].concat()] {
        let (mut idle, response) = send_request(plain.address, &request).await;
        assert_eq!(response.status(), 200);
        let mut rest = Vec::new();
        // A reset is possible: the service has received bytes that it has not read.
        let _ = timeout(patience(PATIENCE), idle.read_to_end(&mut rest)).await.expect("the service closes");
        assert_eq!(rest, b"");
    }
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_slow_handler_and_a_slow_body_are_not_slow_heads() {
    let plain = plain(Limits { head: SHORT, keep_alive: LONG, write: SHORT, linger: PATIENCE, ..Limits::default() });
    let mut stream = connect_fresh_or_used(plain.address, false).await;
    stream.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nslow").await.expect("send");
    // The wait itself is tested: it is long enough for a head to be given up.
    tokio::time::sleep(SHORT * 3).await;
    stream.write_all(b"body").await.expect("send");
    assert_eq!(next_response(&mut stream).await.body, b"slowbody");
    tokio::time::sleep(SHORT * 3).await;
    stream.write_all(GOOD).await.expect("send");
    assert_eq!(next_response(&mut stream).await.body, b"live");

    // The rest of a body that was answered before it was read is not treated as a head either.
    stream.write_all(b"POST /deaf HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").await.expect("send");
    assert_eq!(next_response(&mut stream).await.status(), 401);
    stream.write_all(b"4\r\nrest\r\n").await.expect("send");
    tokio::time::sleep(SHORT * 3).await;
    stream.write_all(b"0\r\n\r\n").await.expect("send");
    stream.write_all(GOOD).await.expect("send");
    assert_eq!(next_response(&mut stream).await.body, b"live");
    drop(stream);
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_body_that_continues_after_its_answer_is_given_up() {
    let plain = plain(Limits { head: SHORT, linger: SHORT, ..Limits::default() });
    let deaf = b"POST /deaf HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (mut stream, response) = send_request(plain.address, deaf).await;
    assert_eq!(response.status(), 401);
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let sending = async { while stream.write_all(&chunk).await.is_ok() {} };
    timeout(patience(PATIENCE), sending).await.expect("the service stops reading the body");
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn an_answer_that_the_client_does_not_read_is_given_up() {
    /// Sets its flag when the service drops the answer.
    struct OnDrop(Arc<AtomicBool>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let options = ListenOptions {
        peer_socket: None,
        socket: bind_listener("127.0.0.1:0".parse().expect("address"), Limits::default().backlog).expect("a port"),
        workers: 1,
        drain: Duration::from_secs(30),
        limits: Limits { write: SHORT, ..unhurried() },
        proxies: Vec::new(),
        metrics: std::sync::Arc::default(),
    };
    let Listeners { address, server, .. } = listen(options, move |_| {
        let flag = flag.clone();
        App::new().route(
            "/endless",
            web::get().to(move || {
                let dropped = OnDrop(flag.clone());
                let chunks = stream::repeat(Bytes::from_static(&[b'x'; 64 << 10]));
                let chunks = chunks.map(move |chunk| {
                    let _ = &dropped;
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
    eventually("the answer is given up", || async { dropped.load(Ordering::Acquire) }).await;
    handle.stop(true).await;
}
