//! Files that visitors attach: each is kept once, together with its message, or not at all.

use hotline::visitors::VisitorOptions;
use hotline_actors::clock;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::door::only_ticket;
use crate::support::form::Form;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply, TestApp, eventually};
use crate::visitor::{Browser, PAGE, Session};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

const BYTES_MAX: usize = 100_000;

fn small_files() -> TestOptions {
    let mut options = TestOptions::default();
    options.media.bytes_max = BYTES_MAX as u64;
    options
}

fn picture(client_id: &str) -> Form {
    Form::default().text("clientId", client_id).file("mug.png", "image/png", PNG)
}

fn request(browser: &Browser, session: &Session, form: Form) -> RequestBuilder {
    let request = browser.with(session, Method::POST, "/messages");
    request.header("content-type", Form::content_type()).body(form.bytes())
}

async fn attach(browser: &Browser, session: &Session, form: Form) -> Reply {
    Reply::of(request(browser, session, form)).await
}

async fn listed(browser: &Browser, session: &Session) -> Vec<Value> {
    browser.get(session, "/messages").await.data(200).as_array().expect("a list").clone()
}

/// The file at the URL of a message, as the page loads it.
async fn load(app: &TestApp, message: &Value) -> reqwest::Response {
    let url = message["media"]["url"].as_str().unwrap_or_else(|| panic!("no file: {message}"));
    app.api.anonymous(Method::GET, url).header("origin", PAGE).send().await.expect("an answer")
}

#[actix_web::test]
async fn a_file_is_pushed_and_shown_to_the_visitor_and_to_agents() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut socket = browser.socket(&session).await;
    let sent = attach(&browser, &session, picture("c-1").text("body", "This one is broken")).await;
    let message = sent.data(201).clone();
    let sent_fields = ["type", "direction", "status", "clientId", "body"].map(|name| message[name].clone());
    assert_eq!(sent_fields, ["media", "inbound", "received", "c-1", "This one is broken"].map(Value::from));
    let media = &message["media"];
    assert_eq!(
        (&media["mimeType"], &media["fileName"], &media["size"]),
        (&json!("image/png"), &json!("mug.png"), &json!(PNG.len()))
    );
    assert_eq!(
        media.as_object().expect("a file").len(),
        5,
        "besides these fields, only the address and whether it is a voice message may be shown: {media}"
    );

    assert_eq!(socket.message().await, message, "the file was not pushed");
    assert_eq!(listed(&browser, &session).await, std::slice::from_ref(&message));
    let (_, shown) = browser.socket_after(&session, None).await;
    assert_eq!(shown, std::slice::from_ref(&message), "a later socket does not get the file");
    let file = load(&app, &message).await;
    assert_eq!((file.status().as_u16(), &file.headers()["content-type"]), (200, &"image/png".parse().expect("header")));
    // A cross-origin isolated page may load the file, too.
    assert_eq!(file.headers()["cross-origin-resource-policy"], "cross-origin");
    assert_eq!(file.bytes().await.expect("a body"), PNG);

    let ticket_messages = app.api.all(&format!("/tickets/{}/messages", only_ticket(&app.api).await)).await;
    assert_eq!(ticket_messages.len(), 1);
    let shown_fields = ["type", "direction", "body"].map(|name| ticket_messages[0][name].clone());
    assert_eq!(shown_fields, ["media", "inbound", "This one is broken"].map(Value::from));
    assert_eq!(load(&app, &ticket_messages[0]).await.bytes().await.expect("a body"), PNG);
    assert_eq!((app.stored_files().len(), app.arriving_files().len()), (1, 0));
    app.stop().await;
}

#[actix_web::test]
async fn a_file_needs_no_text_and_no_client_id() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let sent = attach(&browser, &session, Form::default().file("note.txt", "", b"hello")).await;
    let message = sent.data(201);
    assert_eq!((&message["body"], &message["clientId"]), (&Value::Null, &Value::Null));
    assert_eq!(message["media"]["mimeType"], "text/plain");
    app.stop().await;
}

#[actix_web::test]
async fn a_file_of_a_visitor_is_not_lost_because_of_a_control_character_in_its_name() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let form_with_name = |name: &str| Form::default().text("clientId", "c-1").file(name, "image/png", PNG);
    let sent = attach(&browser, &session, form_with_name("\u{1}a\u{1b}b\u{7f}.png")).await;
    let message = sent.data(201);
    assert_eq!(message["media"]["fileName"], "ab.png");
    assert_eq!(load(&app, message).await.bytes().await.expect("a body"), PNG, "the content was changed");
    // The API refuses such a file name, as it refuses control characters in texts.
    let form = Form::default().text("type", "media").text("ticketId", only_ticket(&app.api).await);
    let refused = app.api.send_form(form.file("a\u{1}b.png", "image/png", PNG)).await;
    refused.error(400, "ERR_API_BAD_REQUEST");
    app.stop().await;
}

#[actix_web::test]
async fn what_the_agent_sends_can_be_loaded_by_the_visitor() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "send it to me").await;
    let mut socket = browser.socket(&session).await;
    let ticket = only_ticket(&app.api).await;
    let form = Form::default().text("type", "media").text("ticketId", ticket).file("mug.png", "image/png", PNG);
    app.api.send_form(form).await.data(202);
    let pushed = socket.message().await;
    assert_eq!((&pushed["direction"], &pushed["type"]), (&json!("outbound"), &json!("media")));
    assert_eq!(load(&app, &pushed).await.bytes().await.expect("a body"), PNG);
    app.stop().await;
}

#[actix_web::test]
async fn a_file_sent_again_with_the_same_client_id_returns_the_first_message() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let first = attach(&browser, &session, picture("c-1")).await.data(201).clone();
    let other = Form::default().text("clientId", "c-1").text("body", "x").file("other.txt", "text/plain", b"other");
    let again = attach(&browser, &session, other.clone()).await;
    assert_eq!(again.data(201), &first);
    let text = browser.post(&session, "/messages", json!({"body": "x", "clientId": "c-1"})).await;
    assert_eq!(text.data(201), &first);
    // Three at once: any of them may arrive first.
    let parallel = futures_util::future::join_all((0..3).map(|_| attach(&browser, &session, picture("c-2")))).await;
    let ids: Vec<_> = parallel.iter().map(|reply| reply.data(201)["id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && *id != first["id"]), "{ids:?}");
    // A text, and then a file with the same client id: the text stays.
    let words = browser.post(&session, "/messages", json!({"body": "words", "clientId": "c-3"})).await;
    assert_eq!(attach(&browser, &session, picture("c-3")).await.data(201), words.data(201));

    browser.post(&session, "/end", json!({})).await.data(200);
    assert_eq!(
        attach(&browser, &session, other).await.data(201),
        &first,
        "the repeated file has another result after the end"
    );
    assert_eq!(app.api.all("/messages").await.len(), 3);
    eventually("the files of repeated messages are removed", || async { app.stored_files().len() == 2 }).await;
    assert_eq!(load(&app, &first).await.bytes().await.expect("a body"), PNG, "the first file was replaced");
    app.stop().await;
}

#[actix_web::test]
async fn an_ended_session_takes_no_file() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.post(&session, "/end", json!({})).await.data(200);
    let refused = attach(&browser, &session, picture("c-1")).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["state"], "the session has ended");
    eventually("the refused file is removed", || async { app.stored_files().is_empty() }).await;
    assert_eq!((app.api.all("/messages").await.len(), app.arriving_files().len()), (0, 0));
    app.stop().await;
}

#[actix_web::test]
async fn removing_files_does_not_disturb_parallel_uploads() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.post(&session, "/end", json!({})).await.data(200);
    // Each file is stored and removed, and with the last one its folder.
    for _ in 0..20 {
        let refused = futures_util::future::join_all((0..8).map(|_| attach(&browser, &session, picture("c-1")))).await;
        for reply in refused {
            reply.error(409, "ERR_API_CONFLICT");
        }
    }
    eventually("the refused files are removed", || async { app.stored_files().is_empty() }).await;
    app.stop().await;
}

#[actix_web::test]
async fn an_invalid_file_is_refused_and_leaves_nothing() {
    let app = OwnApp::start_with(small_files()).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let config = Reply::of(browser.request(Method::GET, "/config")).await;
    assert_eq!(config.data(200)["attachments"], json!({"bytesMax": BYTES_MAX}));

    let sized = |bytes: usize| {
        let mut content = PNG.to_vec();
        content.resize(bytes, 0xa5);
        Form::default().file("a.png", "image/png", &content)
    };
    for bytes in [BYTES_MAX + 1, 3 * BYTES_MAX] {
        let refused = attach(&browser, &session, sized(bytes)).await;
        refused.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
        assert_eq!(refused.body["error"]["message"], "the file is larger than 100000 bytes");
    }
    for (form, code) in [
        (Form::default().file("a.png", "image/png", b""), "ERR_API_MEDIA_EMPTY"),
        (Form::default().file("a.mp3", "audio/mpeg", PNG), "ERR_API_MEDIA_TYPE_MISMATCH"),
        (Form::default().file("a", "", b"\x00\x01\x02\x03"), "ERR_API_MEDIA_TYPE_UNKNOWN"),
    ] {
        attach(&browser, &session, form).await.error(400, code);
    }
    for (form, field) in [
        (picture("c-1").file("b.png", "image/png", PNG), "medias"),
        (Form::default().text("clientId", "c-1").text("body", "no file"), "medias"),
        (picture("c-1").text("body", "x".repeat(65_537)), "body"),
        (picture(&"c".repeat(65)), "clientId"),
        (picture("c-1").text("reply", "{}"), "reply"),
    ] {
        assert_eq!(attach(&browser, &session, form).await.invalid_fields(), [field]);
    }
    let typed = browser.with(&session, Method::POST, "/messages").header("content-type", "image/png");
    Reply::of(typed.body(PNG)).await.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(app.api.all("/messages").await.len(), 0);
    assert_eq!((app.stored_files().len(), app.arriving_files().len()), (0, 0), "a refused file was stored");

    attach(&browser, &session, sized(BYTES_MAX)).await.data(201);
    app.stop().await;
}

#[actix_web::test]
async fn another_token_or_page_cannot_send_a_file() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let (other, _) = app.another_company().await;
    let stranger = Browser::on(&app, &other, other.webchat).await.open("v").await;
    let api_key_session = Session { id: String::new(), token: app.company.key.clone() };
    for outsider in [&stranger, &api_key_session] {
        attach(&browser, outsider, picture("c-1")).await.error(401, "ERR_API_UNAUTHORIZED");
    }
    let elsewhere = browser.from("https://elsewhere.example");
    attach(&elsewhere, &session, picture("c-1")).await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
    assert_eq!(app.api.all("/messages").await.len(), 0);
    assert_eq!((app.stored_files().len(), app.arriving_files().len()), (0, 0), "a refused file was stored");
    app.stop().await;
}

#[actix_web::test]
async fn files_count_toward_the_message_limit_of_an_address() {
    let mut options = TestOptions::default();
    options.visitors = VisitorOptions { messages_per_minute: 2, ..options.visitors };
    let app = OwnApp::start_with(options).await;
    // The limit does not recover during the test.
    clock::stop();
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    attach(&browser, &session, picture("c-1")).await.data(201);
    browser.say(&session, "one more").await;
    attach(&browser, &session, picture("c-2")).await.error(429, "ERR_API_RATE_LIMITED");
    assert_eq!(app.stored_files().len(), 1);
    app.stop().await;
}
