//! The connection of a socket, taken over from the framework: requests before the handshake, frames right behind it,
//! and clients that leave during it.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::client::{Request, generate_request};

use crate::support::{Reply, TestApp};
use crate::visitor::Browser;

/// A handshake as it is sent.
fn bytes_of(handshake: Request) -> Vec<u8> {
    generate_request(handshake).expect("a handshake").0
}

/// A text frame with a mask of zeros, which changes nothing.
fn frame(content: &Value) -> Vec<u8> {
    let content = content.to_string();
    let length = u8::try_from(content.len()).expect("a short frame");
    assert!(length < 126, "a short frame");
    [&[0x81, 0x80 | length, 0, 0, 0, 0], content.as_bytes()].concat()
}

/// What is received up to this text.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        if text.contains(end) {
            return text;
        }
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.expect("a connection");
        assert!(read > 0, "closed after {text}");
        received.extend(&piece[..read]);
    }
}

#[actix_web::test]
async fn requests_before_a_handshake_are_answered_and_frames_behind_it_are_read() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("vera").await;
    let hello = browser.say(&session, "hello").await;
    let mut stream = TcpStream::connect(browser.address).await.expect("a connection");
    let (address, key, origin) = (browser.address, &browser.key, &browser.origin);
    let first = format!("GET /webchat/{key}/config HTTP/1.1\r\nhost: {address}\r\norigin: {origin}\r\n\r\n");
    let handshake = bytes_of(browser.handshake(Some(&session.token)));
    let early = frame(&json!({"type": "after", "id": null}));
    stream.write_all(&[first.as_bytes(), &handshake, &early].concat()).await.expect("sent");
    let received = read_until(&mut stream, r#"{"type":"caughtUp""#).await;
    let at = |text: &str| received.find(text).unwrap_or_else(|| panic!("no {text} in {received}"));
    let shown = format!(r#""id":{}"#, hello["id"]);
    let order = [at("HTTP/1.1 200"), at("HTTP/1.1 101"), at(r#"{"type":"hello""#), at(&shown), at("caughtUp")];
    assert!(order.is_sorted(), "{order:?}: {received}");
    app.stop().await;
}

#[actix_web::test]
async fn a_refused_handshake_is_answered_and_ends_the_connection() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let mut stream = TcpStream::connect(browser.address).await.expect("a connection");
    let early = frame(&json!({"type": "after", "id": null}));
    stream.write_all(&[bytes_of(browser.handshake(Some("vt_wrong"))), early].concat()).await.expect("sent");
    let mut received = String::new();
    stream.read_to_string(&mut received).await.expect("an answer");
    assert!(received.starts_with("HTTP/1.1 401") && received.ends_with('}'), "{received}");
    app.stop().await;
}

#[actix_web::test]
async fn a_client_that_leaves_during_the_handshake_leaves_nothing_open() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("vera").await;
    for _ in 0..20 {
        let mut stream = TcpStream::connect(browser.address).await.expect("a connection");
        stream.write_all(&bytes_of(browser.handshake(Some(&session.token)))).await.expect("sent");
    }
    // If these were left open, the session would have too many.
    let mut socket = browser.socket(&session).await;
    socket.send(json!({"type": "typing", "typing": true})).await;
    assert_eq!(Reply::of(browser.request(Method::GET, "/config")).await.status, 200);
    app.stop().await;
}
