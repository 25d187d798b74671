//! Compressed bodies, of requests and of answers.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::{GzEncoder, ZlibEncoder};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::form::Form;
use crate::support::{Api, Reply, TestApp};

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).expect("packed");
    encoder.finish().expect("packed")
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).expect("packed");
    encoder.finish().expect("packed")
}

async fn post(api: &Api, path: &str, coding: &str, bytes: Vec<u8>) -> Reply {
    let request = api.request(Method::POST, path).header("content-type", "application/json");
    Reply::of(request.header("content-encoding", coding).body(bytes)).await
}

#[actix_web::test]
async fn a_large_answer_is_compressed_for_clients_that_accept_gzip() {
    let app = TestApp::shared().await;
    for index in 0..120 {
        let body = json!({"name": format!("Contact {index}"), "headline": "x".repeat(index * 20)});
        app.api.post("/contacts", body).await.data(201);
    }
    for (path, is_packed) in [("/contacts", true), ("/contacts?perPage=1", false), ("/tags", false)] {
        let plain = app.api.request(Method::GET, path).send().await.expect("an answer");
        assert!(
            !plain.headers().contains_key("content-encoding"),
            "{path}: compressed though the client does not accept it"
        );
        let varies = plain
            .headers()
            .get("vary")
            .is_some_and(|vary| vary.to_str().is_ok_and(|vary| vary.contains("Accept-Encoding")));
        let plain = plain.bytes().await.expect("a body");
        let packed = app.api.request(Method::GET, path).header("accept-encoding", "br, gzip").send().await;
        let packed = packed.expect("an answer");
        let coding = packed.headers().get("content-encoding").map(|coding| coding.to_str().expect("text").to_owned());
        assert_eq!(coding.as_deref(), (is_packed && plain.len() > 1024).then_some("gzip"), "{path}");
        assert_eq!(varies, plain.len() > 1024, "{path}");
        let bytes = packed.bytes().await.expect("a body");
        if coding.is_some() {
            assert!(bytes.len() < plain.len() / 2, "{path}: {} of {}", bytes.len(), plain.len());
            let mut unpacked = Vec::new();
            GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).expect("gzip");
            assert_eq!(unpacked, plain, "{path}");
        } else {
            assert_eq!(bytes, plain, "{path}");
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_compressed_body_is_accepted_within_the_limits_of_its_decompressed_size() {
    const MEBIBYTE: usize = 1 << 20;
    let app = TestApp::shared().await;
    let ticket = app.ticket("5511900000001").await;
    let notes = format!("/tickets/{ticket}/notes");
    let plain = br#"{"body": "packed"}"#;
    for (coding, bytes) in
        [("gzip", gzip(plain)), ("GZIP", gzip(plain)), ("deflate", zlib(plain)), ("identity", plain.to_vec())]
    {
        assert_eq!(post(&app.api, &notes, coding, bytes).await.data(201)["body"], "packed", "{coding}");
    }
    post(&app.api, &notes, "br", plain.to_vec()).await.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
    post(&app.api, &notes, "gzip, gzip", gzip(&gzip(plain))).await.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
    post(&app.api, &notes, "gzip", plain.to_vec()).await.error(400, "ERR_API_BAD_REQUEST");
    for (coding, mut cut) in [("gzip", gzip(plain)), ("deflate", zlib(plain))] {
        cut.truncate(cut.len() - 3);
        post(&app.api, &notes, coding, cut).await.error(400, "ERR_API_BAD_REQUEST");
    }

    let sized = |bytes: usize| {
        let frame = r#"{"body":"x","filler":""}"#;
        format!(r#"{{"body":"x","filler":"{}"}}"#, "x".repeat(bytes - frame.len()))
    };
    post(&app.api, &notes, "gzip", gzip(sized(MEBIBYTE).as_bytes())).await.data(201);
    let large = gzip(sized(MEBIBYTE + 1).as_bytes());
    assert!(large.len() < 8 * 1024, "the compressed body has {} bytes", large.len());
    post(&app.api, &notes, "gzip", large).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    post(&app.api, &notes, "gzip", gzip(&vec![b' '; 512 * MEBIBYTE / 8])).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");

    // The same content is the same request, however it is compressed.
    let keyed = async |coding: &str, bytes: Vec<u8>| {
        let request = app.api.request(Method::POST, &notes).header("idempotency-key", "packed");
        let request = request.header("content-type", "application/json").header("content-encoding", coding);
        Reply::of(request.body(bytes)).await
    };
    let first = keyed("gzip", gzip(plain)).await;
    let again = keyed("identity", plain.to_vec()).await;
    assert_eq!((first.data(201), again.is_replay()), (again.data(201), true));
    keyed("gzip", gzip(br#"{"body": "else"}"#)).await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");

    // Forms with files may be compressed as well.
    let form = Form::default().text("type", "media").text("ticketId", ticket).file("a.txt", "text/plain", b"words");
    let request = app.api.request(Method::POST, "/messages").header("content-type", Form::content_type());
    let sent = Reply::of(request.header("content-encoding", "gzip").body(gzip(&form.bytes()))).await;
    sent.data(202);
    let media: Vec<Value> = app.api.all("/messages?type=media").await;
    assert_eq!(media.len(), 1);
    app.stop().await;
}
