//! Bytes that are not HTTP are refused once, and the requests before them are answered.

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::{
    BAD, GOOD, connect, exchange, exchange_one, next_response, plain, read_to_close, refusal, responses, unhurried,
    unhurried_app,
};

/// A request of up to this many bytes is read whole before it is refused.
const WHOLE_BYTES_MAX: usize = 64 << 10;

/// How many times a longer request is sent: its refusal may be lost with a reset, but not each time.
const ATTEMPTS_MAX: usize = 20;

#[actix_web::test]
async fn bytes_that_are_not_http_are_refused() {
    let app = unhurried_app().await;
    let post =
        |headers: &str| format!("POST /api/v1/tickets HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n{{}}").into_bytes();
    let get = |headers: &str| format!("GET /health/live HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n").into_bytes();
    let many: String = (0..200).map(|header| format!("X-{header}: y\r\n")).collect();
    for (what, request, status) in [
        ("garbage", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n".to_vec(), 400),
        ("words", BAD.to_vec(), 400),
        ("NUL bytes", b"\0\0\0\0\r\n\r\n".to_vec(), 400),
        ("a version that does not exist", b"GET / HTTP/3.7\r\nHost: x\r\n\r\n".to_vec(), 400),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 400),
        ("no host", b"GET /health/live HTTP/1.1\r\n\r\n".to_vec(), 400),
        ("a header without a colon", get("Accept"), 400),
        ("a header with NUL", get("X: a\0b"), 400),
        ("a blank before the colon", get("X : y"), 400),
        ("two hosts", get("Host: y"), 400),
        ("a length that is not a number", post("Content-Length: two"), 400),
        ("a negative length", post("Content-Length: -2"), 400),
        ("a length beyond any limit", post("Content-Length: 99999999999999999999999"), 400),
        ("two lengths", post("Content-Length: 2\r\nContent-Length: 3"), 400),
        ("length and chunks", post("Content-Length: 2\r\nTransfer-Encoding: chunked"), 400),
        ("an unknown encoding", post("Transfer-Encoding: rot13"), 400),
        (
            "a path beyond any limit",
            format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(70_000)).into_bytes(),
            400,
        ),
        ("an endless line", format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(400_000)).into_bytes(), 431),
        ("an endless header", get(&format!("X: {}", "a".repeat(400_000))), 431),
        ("too many headers", get(many.trim_end()), 431),
    ] {
        eprintln!("{what}");
        let mut attempts = if request.len() > WHOLE_BYTES_MAX { ATTEMPTS_MAX } else { 1 };
        let refused = loop {
            match refusal(app.address, &request).await {
                Some(refused) => break refused,
                None => attempts -= 1,
            }
            assert!(attempts > 0, "{what}: not answered");
        };
        refused.assert_refused(status);
    }
    app.stop().await;
}

#[actix_web::test]
async fn good_requests_before_a_bad_one_are_answered() {
    let app = unhurried_app().await;
    let pipelined = [GOOD, GOOD, GOOD, BAD].concat();
    let mut all = exchange(app.address, &pipelined).await;
    assert_eq!(all.len(), 4, "{all:?}");
    all.pop().expect("four").assert_refused(400);
    for good in all {
        assert_eq!(good.status(), 200, "{good:?}");
        assert_eq!(serde_json::from_slice::<Value>(&good.body).expect("JSON")["status"], "live");
    }

    // The bad request follows an answer, even one in HTTP/1.0 whose connection the framework says it keeps.
    for good in [GOOD, b"GET /health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"] {
        let mut stream = connect(app.address).await;
        stream.write_all(good).await.expect("send");
        assert_eq!(next_response(&mut stream).await.status(), 200);
        stream.write_all(BAD).await.expect("send");
        let refused = responses(&read_to_close(stream).await);
        assert_eq!(refused.len(), 1, "{refused:?}");
        refused[0].assert_refused(400);
    }
    app.stop().await;
}

#[actix_web::test]
async fn good_requests_before_a_bad_one_are_answered_however_large_the_answers() {
    let plain = plain(unhurried());
    let large = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut stream = connect(plain.address).await;
    stream.write_all(&[large, large, BAD].concat()).await.expect("send");
    let all = responses(&read_to_close(stream).await);
    assert_eq!(
        all.iter().map(|it| (it.status(), it.body.len() >> 20)).collect::<Vec<_>>(),
        [(200, 8), (200, 8), (400, 0)]
    );
    all[2].assert_refused(400);
    plain.server.stop(true).await;
}

#[actix_web::test]
async fn a_broken_chunk_has_one_answer() {
    let app = unhurried_app().await;
    let key = &app.company.key;
    let post = |key: &str| {
        format!(
            "POST /api/v1/tickets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"
        )
    };
    let broken = exchange_one(app.address, post(key)).await;
    assert_eq!(broken.status(), 400, "{broken:?}");
    assert_eq!(serde_json::from_slice::<Value>(&broken.body).expect("JSON")["error"]["code"], "ERR_API_BAD_REQUEST");
    let unknown = exchange_one(app.address, post("sk_live_x")).await;
    assert_eq!(unknown.status(), 401, "{unknown:?}");
    app.stop().await;
}

#[actix_web::test]
async fn a_broken_chunk_that_no_handler_reads_ends_the_connection() {
    let plain = plain(unhurried());
    let head = "POST /never HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    for chunks in ["zz\r\n", "2\r\nab\r\nzz\r\n", "2\r\nabc\r\n", "fffffffffffffffff\r\n"] {
        let broken = format!("{head}{chunks}");
        assert_eq!(refusal(plain.address, broken.as_bytes()).await, None);
        let both = exchange(plain.address, &[GOOD, broken.as_bytes()].concat()).await;
        assert_eq!((both.len(), both[0].status()), (1, 200), "{both:?}");
    }
    plain.server.stop(true).await;
}
