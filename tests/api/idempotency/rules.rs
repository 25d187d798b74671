//! Which keys are valid, what a key identifies, and which bodies it may come with.

use reqwest::header::HeaderValue;
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{
    Call, KEYS, MESSAGES, TAGS, assert_replayed, count, create_tag, send_again, send_first, started, started_with,
};
use crate::steps::lingering;
use crate::support::{Reply, TestApp};

/// `POST /tags` with this idempotency key, which may be invalid.
fn with_key(app: &TestApp, key: impl AsRef<[u8]>) -> RequestBuilder {
    let key = HeaderValue::from_bytes(key.as_ref()).expect("a header");
    app.api.request(Method::POST, "/tags").header("idempotency-key", key).json(&json!({"name": "a"}))
}

#[actix_web::test]
async fn a_key_is_one_to_two_hundred_visible_ascii_characters() {
    let app = started().await;
    let long = "k".repeat(201);
    for bad in ["", &long, "a b", "a\tb", "é", "ключ", "a\u{a0}b"] {
        let refused = Reply::of(with_key(&app, bad)).await;
        refused.error(400, "ERR_API_BAD_REQUEST");
        let message = refused.body["error"]["message"].as_str().expect("message");
        assert!(message.contains("Idempotency-Key"), "{bad:?}: {message}");
    }
    Reply::of(with_key(&app, [b'a', 0xff])).await.error(400, "ERR_API_BAD_REQUEST");
    assert_eq!(count(&app, TAGS).await, 0);
    assert_eq!(count(&app, KEYS).await, 0);

    let visible: String = (b'!'..=b'~').map(char::from).collect();
    for (number, good) in ["k", &"k".repeat(200), "!", "~", &visible, "';drop/**/table/**/tags;--"].iter().enumerate() {
        let call = Call::post("/tags", json!({"name": format!("tag {number}")}), 201, TAGS);
        let first = send_first(&app, &call, good).await;
        send_again(&app, &call, good, &first).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_key_may_not_contain_a_control_character() {
    let app = started().await;
    for bad in [0x00, 0x01, 0x1b, 0x7f] {
        let mut request = format!(
            "POST /api/v1/tags HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: 12\r\nconnection: close\r\nidempotency-key: a",
            app.company.key
        )
        .into_bytes();
        request.extend([bad, b'b']);
        request.extend(b"\r\n\r\n{\"name\":\"a\"}");
        let mut stream = TcpStream::connect(app.address).await.expect("connect");
        stream.write_all(&request).await.expect("sent");
        let mut answer = Vec::new();
        // The HTTP parser refuses it before Hotline sees it.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 400 "), "{bad:#x}: {}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(count(&app, TAGS).await, 0);
    app.stop().await;
}

#[actix_web::test]
async fn on_get_and_delete_the_header_has_no_effect() {
    let app = started().await;
    let tag = create_tag(&app, "a").await;
    let path = format!("/tags/{tag}");
    for key in ["one", "one", "a b", ""] {
        let shown = Reply::of(app.api.request(Method::GET, &path).header("idempotency-key", key)).await;
        assert_eq!(shown.data(200)["id"], tag);
        assert!(!shown.is_replay());
    }
    let remove = || app.api.request(Method::DELETE, &path).header("idempotency-key", "one");
    assert_eq!(Reply::of(remove()).await.status, 204);
    Reply::of(remove()).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(count(&app, KEYS).await, 0);
    app.stop().await;
}

#[actix_web::test]
async fn a_key_with_another_method_path_query_or_body_is_a_conflict() {
    let app = started().await;
    let (a, b) = (create_tag(&app, "a").await, create_tag(&app, "b").await);
    let ticket = app.ticket("5511900000001").await;
    let put = Call::of(Method::PUT, format!("/tags/{a}"), json!({"name": "c"}), 200, super::TAG_UPDATES);
    let send = Call::post("/messages", json!({"ticketId": ticket, "type": "text", "body": "hi"}), 202, MESSAGES);
    let refused = Call::post("/tags", json!({"name": ""}), 422, TAGS);
    for (number, (call, other_path)) in
        [(put, format!("/tags/{b}")), (send, "/tickets".to_owned()), (refused, "/messages".to_owned())]
            .into_iter()
            .enumerate()
    {
        let key = format!("key-{number}");
        let first = call.send(&app.api, &key).await;
        assert_eq!(first.status, call.status, "{}", first.body);
        let other = if call.method == Method::PUT { Method::POST } else { Method::PUT };
        let body = &call.body;
        let different = [
            Call { method: other, ..call.clone() },
            Call { path: other_path, ..call.clone() },
            Call { path: format!("{}/", call.path), ..call.clone() },
            Call { path: format!("{}?a=1", call.path), ..call.clone() },
            Call { body: body.replacen('{', "{\"more\": 1, ", 1), ..call.clone() },
            Call { body: String::new(), ..call.clone() },
            Call { body: "not JSON".to_owned(), ..call.clone() },
        ];
        let effects = count(&app, call.effects).await;
        for call in different {
            let conflict = call.send(&app.api, &key).await;
            conflict.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
            assert!(!conflict.is_replay(), "{}", call.name());
        }
        assert_eq!(count(&app, call.effects).await, effects, "{}", call.name());
        // The conflicts left the first answer as it was. Bodies are the same if they are equal as JSON values.
        for same in [body.clone(), format!("{body} "), format!(" {body}"), body.replacen(':', ": ", 1)] {
            let again = Call { body: same, ..call.clone() };
            assert_replayed(&call.name(), &first, &again.send(&app.api, &key).await);
        }
    }
    app.stop().await;
}

/// Half of a surrogate pair is not text, so such bodies are compared by their bytes.
#[actix_web::test]
async fn bodies_that_are_not_json_are_the_same_if_their_bytes_are() {
    let app = started().await;
    let close = format!("/tickets/{}/close", app.ticket("5511900000001").await);
    // This call takes an empty body.
    let empty = Call::post(close, json!({}), 200, super::CLOSED);
    let bodies =
        [r#"{"\ud800":1}"#, r#"{"\ud801":1}"#, r#"{"a":{"\ud800":1}}"#, r#"["\ud800"]"#, "{\"1:a1e0}", "{", "not JSON"];
    for (number, body) in bodies.iter().enumerate() {
        let key = format!("key-{number}");
        let broken = Call { body: (*body).to_owned(), ..empty.clone() };
        let first = broken.send(&app.api, &key).await;
        first.error(400, "ERR_API_BAD_REQUEST");
        let others = bodies.iter().copied().filter(|other| other != body);
        for other in others.chain(["{}", r#"{"a":{}}"#, "[]", r#"{"a":1}"#, ""]) {
            let conflict = Call { body: other.to_owned(), ..empty.clone() }.send(&app.api, &key).await;
            conflict.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
            assert!(!conflict.is_replay(), "{body} and {other}");
        }
        assert_replayed(body, &first, &broken.send(&app.api, &key).await);
    }
    assert_eq!(count(&app, super::CLOSED).await, 0);
    app.stop().await;
}

#[actix_web::test]
async fn a_query_moved_into_the_body_is_another_request() {
    let app = started().await;
    let first = Call::post("/tags?a=1", json!({"name": "a"}), 201, TAGS);
    let reply = send_first(&app, &first, "one").await;
    let moved = Call { path: "/tags".to_owned(), body: format!("a=1{}", first.body), ..first.clone() };
    moved.send(&app.api, "one").await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    send_again(&app, &first, "one", &reply).await;
    app.stop().await;
}

#[actix_web::test]
async fn another_company_has_keys_of_its_own() {
    let app = started().await;
    let (_, other) = app.another_company().await;
    let call = Call::post("/tags", json!({"name": "a"}), 201, TAGS);
    let ours = send_first(&app, &call, "one").await;
    let theirs = call.send(&other, "one").await;
    assert!(!theirs.is_replay());
    assert_ne!(theirs.data(201)["id"], ours.data(201)["id"]);
    // The companies' keys do not conflict either.
    let different = Call::post("/tags", json!({"name": "b"}), 201, TAGS);
    different.send(&app.api, "two").await.data(201);
    call.send(&other, "two").await.error(409, "ERR_API_CONFLICT");
    assert_replayed("ours", &ours, &call.send(&app.api, "one").await);
    assert_replayed("theirs", &theirs, &call.send(&other, "one").await);
    app.stop().await;
}

#[actix_web::test]
async fn multipart_bodies_are_compared_by_their_bytes() {
    let app = started().await;
    let upload = |boundary: &str, content: &str| {
        let body =
            format!("--{boundary}\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n{content}\r\n--{boundary}--");
        app.api
            .request(Method::POST, "/tags")
            .header("idempotency-key", "one")
            .header("content-type", format!("multipart/form-data; boundary={boundary}"))
            .body(body)
    };
    let first = Reply::of(upload("b", "content")).await;
    first.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
    assert_replayed("the same bytes", &first, &Reply::of(upload("b", "content")).await);
    for (boundary, content) in [("b", "contents"), ("c", "content")] {
        Reply::of(upload(boundary, content)).await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_body_may_be_a_mebibyte_and_a_larger_one_is_not_recorded() {
    const MEBIBYTE: usize = 1024 * 1024;
    let app = started_with(lingering()).await;
    let call_of_size = |bytes: usize| {
        let body = json!({"name": "a"}).to_string();
        Call { body: format!("{body}{}", " ".repeat(bytes - body.len())), ..Call::post("/tags", json!({}), 201, TAGS) }
    };
    for bytes in [MEBIBYTE + 1, 2 * MEBIBYTE] {
        for _ in 0..2 {
            let refused = call_of_size(bytes).send(&app.api, "one").await;
            refused.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
            assert!(!refused.is_replay());
        }
    }
    assert_eq!(count(&app, KEYS).await, 0);
    let first = send_first(&app, &call_of_size(MEBIBYTE), "one").await;
    send_again(&app, &call_of_size(MEBIBYTE), "one", &first).await;
    // White space around a body does not count.
    send_again(&app, &call_of_size(MEBIBYTE - 1), "one", &first).await;
    app.stop().await;
}
