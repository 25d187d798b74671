//! Requests, responses, event streams and sockets that the edge forwards.

use std::net::SocketAddr;

use actix_web::web::Bytes;
use futures_util::{SinkExt, StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{TOKEN, ask, client, pair};

#[actix_web::test]
async fn a_request_reaches_its_owner_unchanged() {
    let (edge, owner) = pair();
    let client = client();
    let body = vec![b'x'; 1000];
    let sent = ask(&client, Method::PUT, edge.url("/api/v1/echo?a=b%20c"))
        .header("x-request-id", "mine")
        .header("x-forwarded-for", "192.0.2.1")
        .header("hotline-forwarded", "2 203.0.113.9:1 00")
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .body(body.clone());
    let answer = sent.send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), &answer.headers()["x-answered"]), (200, &"yes".parse().expect("value")));
    assert!(!answer.headers().contains_key("transfer-encoding"));
    let echo: Value = answer.json().await.expect("JSON");
    assert_eq!((&echo["method"], &echo["target"]), (&json!("PUT"), &json!("/api/v1/echo?a=b%20c")));
    assert_eq!((echo["body"].as_u64(), echo["sum"].as_u64()), (Some(1000), Some(1000 * u64::from(b'x'))));
    let header = |name: &str| -> Vec<String> {
        let headers = echo["headers"].as_array().expect("headers").iter();
        headers.filter(|pair| pair[0] == name).map(|pair| pair[1].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(header("x-request-id"), ["mine"]);
    assert_eq!(header("x-forwarded-for"), ["192.0.2.1"]);
    assert_eq!(header("authorization"), [format!("Bearer {TOKEN}")]);
    assert_eq!(header("host"), [edge.public.to_string()]);
    assert_eq!((header("x-hop").len(), header("hotline-forwarded").len()), (1, 1));
    let from: SocketAddr = echo["from"].as_str().expect("an address").parse().expect("an address");
    assert_ne!(from.port(), owner.peers.address().port());
    assert!(header("hotline-forwarded")[0].starts_with(&format!("2 {from} ")), "the client's header is replaced");
    assert_eq!((edge.started_requests(), owner.started_requests(), edge.metrics.cluster.forwarded()), (0, 1, 1));

    let head = ask(&client, Method::HEAD, edge.url("/api/v1/large?sized")).send().await.expect("a head");
    assert_eq!(head.headers()["content-length"], "300000");
    for status in [204, 304, 404, 200] {
        let answer = ask(&client, Method::POST, edge.url(&format!("/api/v1/status/{status}"))).send().await;
        let answer = answer.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.bytes().await.expect("a body").len()), (status, 0));
    }
    let health = client.get(edge.url("/health/live")).send().await.expect("an answer");
    assert_eq!((health.status().as_u16(), edge.started_requests()), (200, 1), "the edge answers a public path");
    let stranger = client.get(edge.url("/api/v1/echo")).bearer_auth("sk_live_nobody").send().await.expect("an answer");
    assert_eq!((stranger.status().as_u16(), edge.started_requests()), (200, 2), "and an unknown token");
}

/// Headers of a request, without those of its connection.
const REQUEST_HEADERS: [(&str, &str); 22] = [
    ("accept", "text/csv"),
    ("accept-encoding", "identity"),
    ("accept-language", "pt-BR"),
    ("content-encoding", "gzip"),
    ("content-type", "application/json"),
    ("cookie", "hotline_session=1.a"),
    ("forwarded", "for=192.0.2.1"),
    ("hotline-company", "1"),
    ("idempotency-key", "k-1"),
    ("if-match", "\"1\""),
    ("last-event-id", "7"),
    ("origin", "https://desk.example"),
    ("range", "bytes=0-1"),
    ("referer", "https://desk.example/"),
    ("sec-fetch-site", "cross-site"),
    ("user-agent", "a browser"),
    ("x-forwarded-for", "192.0.2.1"),
    ("x-forwarded-host", "desk.example"),
    ("x-forwarded-proto", "https"),
    ("x-hub-signature-256", "sha256=00"),
    ("x-real-ip", "192.0.2.1"),
    ("x-request-id", "mine"),
];

#[actix_web::test]
async fn no_header_is_removed_by_naming_it_in_connection() {
    let (edge, owner) = pair();
    let names: Vec<&str> = REQUEST_HEADERS.iter().map(|(name, _)| *name).chain(["authorization", "host"]).collect();
    let mixed_case = |name: &str| -> String {
        let cased = name.chars().enumerate();
        cased.map(|(at, letter)| if at % 2 == 0 { letter.to_ascii_uppercase() } else { letter }).collect()
    };
    // Each name alone in mixed case, all names in one header, and each name in a header of its own.
    let mut header_sets: Vec<Vec<String>> =
        names.iter().map(|name| vec![format!("keep-alive , {} ,", mixed_case(name))]).collect();
    header_sets.push(vec![names.join(", ")]);
    header_sets.push(names.iter().map(|name| (*name).to_owned()).collect());
    for connection_headers in &header_sets {
        let mut request = ask(&client(), Method::GET, edge.url("/api/v1/echo"));
        for (name, value) in REQUEST_HEADERS {
            request = request.header(name, value);
        }
        for value in connection_headers {
            request = request.header("connection", value);
        }
        let echo: Value = request.send().await.expect("an answer").json().await.expect("JSON");
        for (name, value) in REQUEST_HEADERS {
            assert!(
                echo["headers"].as_array().expect("headers").contains(&json!([name, value])),
                "{name} is not there with {connection_headers:?}: {echo}"
            );
        }
        let host = json!(["host", edge.public.to_string()]);
        let token = json!(["authorization", format!("Bearer {TOKEN}")]);
        for expected in [host, token] {
            assert!(
                echo["headers"].as_array().expect("headers").contains(&expected),
                "{expected} with {connection_headers:?}"
            );
        }
    }
    assert_eq!((edge.started_requests(), owner.started_requests()), (0, header_sets.len()), "each was forwarded");
}

#[actix_web::test]
async fn bodies_of_any_size_are_forwarded_and_a_refusal_may_precede_their_end() {
    let (edge, owner) = pair();
    let client = client();
    for bytes in [0_usize, 1, 65_536, 65_537, 1_000_000] {
        for is_chunked in [false, true] {
            let chunks: Vec<_> = vec![1_u8; bytes].chunks(10_000).map(Bytes::copy_from_slice).collect();
            let body = match is_chunked {
                true => reqwest::Body::wrap_stream(stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>))),
                false => reqwest::Body::from(vec![1_u8; bytes]),
            };
            let answer =
                ask(&client, Method::POST, edge.url("/api/v1/echo")).body(body).send().await.expect("an answer");
            let echo: Value = answer.json().await.expect("JSON");
            assert_eq!((echo["body"].as_u64(), echo["sum"].as_u64()), (Some(bytes as u64), Some(bytes as u64)));
        }
    }
    for query in ["sized", "chunked"] {
        let answer = ask(&client, Method::GET, edge.url(&format!("/api/v1/large?{query}"))).send().await;
        assert_eq!(answer.expect("an answer").bytes().await.expect("a body").len(), 300_000, "{query}");
    }
    assert_eq!(owner.started_requests(), 10);
    // Written by hand: no client continues to send after a refusal.
    let mut stream = TcpStream::connect(edge.public).await.expect("connected");
    let head = format!("POST /api/v1/refuse HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n");
    stream.write_all(format!("{head}content-length: 10000000\r\n\r\n").as_bytes()).await.expect("written");
    stream.write_all(&[b'x'; 100_000]).await.expect("written");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[actix_web::test]
async fn events_are_forwarded_at_once_and_end_with_their_owner() {
    let (edge, owner) = pair();
    let client = client();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let answer = ask(&client, Method::GET, edge.url("/api/v1/events")).send().await.expect("an answer");
        let mut events = answer.bytes_stream();
        assert_eq!(events.next().await.expect("an event").expect("bytes"), "data: 0\n\n");
        streams.push(events);
    }
    owner.world.proceed.notify_waiters();
    for events in &mut streams {
        assert_eq!(events.next().await.expect("an event").expect("bytes"), "data: 1\n\n");
    }
    let mut last = streams.pop().expect("a stream");
    edge.stopping.send_replace(true);
    assert!(last.next().await.is_none(), "a process that stops waits for no stream");
    edge.stopping.send_replace(false);
    drop((last, streams));
    let answer = ask(&client, Method::GET, edge.url("/api/v1/events")).send().await.expect("an answer");
    let mut events = answer.bytes_stream();
    assert!(events.next().await.is_some());
    edge.membership.placement.replace([], |_| None);
    assert!(events.next().await.is_none(), "its owner has ended");
}

#[actix_web::test]
async fn a_socket_is_forwarded_both_ways_with_its_close_code() {
    let (edge, _owner) = pair();
    let mut request = format!("ws://{}/api/v1/socket", edge.public).into_client_request().expect("a request");
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().expect("a value"));
    let (mut socket, answer) = tokio_tungstenite::connect_async(request).await.expect("a socket");
    assert_eq!(answer.status(), 101);
    for text in ["one", "two"] {
        socket.send(Message::text(text)).await.expect("sent");
        assert_eq!(socket.next().await.expect("a frame").expect("a frame").into_text().expect("text"), text);
    }
    socket.send(Message::text("bye")).await.expect("sent");
    let Some(Ok(Message::Close(Some(reason)))) = socket.next().await else { panic!("not closed") };
    assert_eq!(u16::from(reason.code), 1012);
}
