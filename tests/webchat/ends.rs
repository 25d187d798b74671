//! How sockets end, and what does not end them.

use std::time::Duration;

use hotline::visitors::VisitorOptions;
use hotline_actors::clock;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::door::{answer, only_ticket};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply, TestApp, eventually, patience};
use crate::visitor::{AFTER_TIME_MAX, Browser, Socket};

#[actix_web::test]
async fn an_ended_session_closes_its_sockets_and_takes_no_new_one() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let other = browser.open("w").await;
    let mut tabs = [browser.socket(&session).await, browser.socket(&session).await];
    let mut bystander = browser.socket(&other).await;
    let ended = browser.post(&session, "/end", json!({})).await.data(200).clone();
    for tab in &mut tabs {
        assert_eq!(tab.next().await, json!({"type": "ended", "endedAt": ended["endedAt"]}));
        assert_eq!(tab.close_code().await, Some(4410));
    }
    let (status, body) = browser.try_socket(&session.token).await.err().expect("refused");
    assert_eq!((status, &body["error"]["code"]), (409, &json!("ERR_API_CONFLICT")));
    // Another visitor's session continues.
    let sent = browser.say(&other, "still here").await;
    assert_eq!(bystander.message().await["id"], sent["id"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_that_ends_closes_a_socket_that_has_not_sent_its_after_frame() {
    let app = OwnApp::start().await;
    // The clock stands still, so that the service does not close the socket because its `after` is late.
    clock::stop();
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut tab = browser.raw_socket(&session).await;
    browser.say(&session, "waits for `after`").await;
    let ended = browser.post(&session, "/end", json!({})).await.data(200).clone();
    assert_eq!(tab.next().await, json!({"type": "ended", "endedAt": ended["endedAt"]}));
    assert_eq!(tab.close_code().await, Some(4410));
    app.stop().await;
}

#[actix_web::test]
async fn a_handshake_without_a_token_or_an_upgrade_is_refused() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let refused = Socket::open(browser.address, browser.handshake(None), None).await.err().expect("refused");
    assert_eq!((refused.0, &refused.1["error"]["code"]), (401, &json!("ERR_API_UNAUTHORIZED")));
    // A token does not count in the query, which is logged, nor in the header that other calls use.
    let in_query = Reply::of(browser.request(Method::GET, &format!("/socket?token={}", session.token))).await;
    in_query.error(401, "ERR_API_UNAUTHORIZED");
    let protocols = format!("hotline.v1, {}", session.token);
    let no_upgrade =
        Reply::of(browser.request(Method::GET, "/socket").header("sec-websocket-protocol", protocols)).await;
    no_upgrade.error(400, "ERR_API_BAD_REQUEST");
    app.stop().await;
}

#[actix_web::test]
async fn a_frame_outside_the_protocol_closes_the_socket() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let large = json!({"type": "pong", "more": "x".repeat(5000)}).to_string();
    for (message, code) in [
        (Message::text("hello"), 4400),
        (Message::text("[]"), 4400),
        (Message::text(r#"{"kind":"pong"}"#), 4400),
        (Message::text(r#"{"type":"seen","upTo":"x"}"#), 4400),
        (Message::binary(vec![1, 2, 3]), 1003),
        (Message::text(large), 1009),
    ] {
        let mut socket = browser.socket(&session).await;
        let sent = message.to_string();
        socket.send_raw(message).await;
        assert_eq!(socket.close_code().await, Some(code), "{sent}");
    }
    // A frame of a later release is ignored.
    let mut socket = browser.socket(&session).await;
    socket.send(json!({"type": "wave", "hand": "left"})).await;
    socket.send(json!({"type": "after", "id": 99})).await;
    let sent = browser.say(&session, "x").await;
    assert_eq!(socket.message().await["id"], sent["id"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_socket_that_sends_too_many_frames_at_once_is_closed() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut socket = browser.socket(&session).await;
    clock::stop();
    for _ in 0..61 {
        socket.send(json!({"type": "pong"})).await;
    }
    assert_eq!(socket.close_code().await, Some(4429));
    app.stop().await;
}

#[actix_web::test]
async fn a_socket_that_says_nothing_is_closed_and_one_that_answers_is_not() {
    let mut options = TestOptions::default();
    options.visitors.heartbeat = Duration::from_millis(50);
    // Nothing else records that the visitor is there.
    options.engine.session_idle_after = Duration::from_secs(24 * 3600);
    let silence_max = VisitorOptions::DEFAULT.silence_max;
    options.visitors.silence_max = silence_max;
    let app = OwnApp::start_with(options).await;
    clock::stop();
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut silent = browser.mute_socket(&session).await;
    let mut lively = browser.mute_socket(&session).await;
    let ping = json!({"type": "ping"});
    assert_eq!(silent.next().await, ping);
    assert_eq!(lively.next().await, ping);
    clock::advance(silence_max / 2);
    let answered_at = clock::now();
    lively.send(json!({"type": "pong"})).await;
    eventually("the answer is received", || async {
        let shown = app.api.get(&format!("/webchat/sessions/{}", session.id)).await.data(200)["lastSeenAt"].clone();
        shown.as_str().is_some_and(|at| at.parse() == Ok(answered_at))
    })
    .await;
    clock::advance(silence_max / 2);
    let (frames, code) = silent.frames_until_closed().await;
    assert_eq!(code, Some(4408));
    assert!(frames.iter().all(|frame| *frame == ping), "{frames:?}");
    // Later frames were sent after the silent socket was closed.
    let sent = browser.say(&session, "x").await;
    assert_eq!(lively.message().await["id"], sent["id"]);
    assert_eq!(lively.next().await, ping);
    app.stop().await;
}

#[actix_web::test]
async fn a_socket_that_never_sends_its_after_frame_is_closed() {
    let mut options = TestOptions::default();
    // The service checks the clock at each heartbeat.
    options.visitors.heartbeat = Duration::from_millis(50);
    let app = OwnApp::start_with(options).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut socket = browser.raw_socket(&session).await;
    socket.answers_pings = false;
    browser.say(&session, "not pushed").await;
    clock::advance(AFTER_TIME_MAX);
    let (frames, code) = socket.frames_until_closed().await;
    assert_eq!(code, Some(4400));
    assert!(frames.iter().all(|frame| *frame == json!({"type": "ping"})), "{frames:?}");
    app.stop().await;
}

#[actix_web::test]
async fn a_slow_reader_is_cut_off_and_catches_up() {
    /// More than the queue of pushes and the windows of both sides hold.
    const MESSAGES: usize = 100;
    let options = TestOptions { metrics: true, ..TestOptions::default() };
    let app = OwnApp::start_with(options).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let handshake = browser.handshake(Some(&session.token));
    let mut slow =
        Socket::open(browser.address, handshake, Some(4096)).await.unwrap_or_else(|refused| panic!("{refused:?}"));
    slow.send(json!({"type": "after", "id": null})).await;
    let mut quick = browser.socket(&session).await;
    let body = "x".repeat(60_000);
    let mut shown = Vec::new();
    for _ in 0..MESSAGES {
        // The quick reader has each message before the next is sent, so that it is never cut off.
        answer(&app.api, ticket, &body).await;
        shown.push(quick.message().await["id"].as_i64().expect("id"));
    }
    assert!(shown.is_sorted_by(|one, next| one < next), "the quick reader got messages out of order");
    let metrics = app.service.metrics_listener.as_ref().expect("metrics are served").address;
    eventually("the slow socket is cut off", || async {
        crate::support::metrics::ScrapedMetrics::of(metrics).await.value("hotline_socket_cuts_total") == 1.0
    })
    .await;
    // The slow reader gets what was already sent and the code of the close, and requests the rest.
    let (frames, code) = slow.frames_until_closed().await;
    assert!(matches!(code, Some(4413) | None), "{code:?}");
    let ids = |frames: &[Value]| -> Vec<i64> {
        frames.iter().filter_map(|frame| frame["message"]["id"].as_i64().or(frame["id"].as_i64())).collect()
    };
    let before = ids(&frames);
    assert!(before.len() < MESSAGES, "the slow reader got every message");
    let (_, rest) = browser.socket_after(&session, before.last().copied()).await;
    let mut all = before;
    all.extend(ids(&rest));
    let sent = app.api.all(&format!("/tickets/{ticket}/messages")).await;
    let sent: Vec<i64> = sent.iter().filter_map(|message| message["id"].as_i64()).collect();
    assert_eq!(all, sent, "the slow reader did not get each message once and in order");
    app.stop().await;
}

#[actix_web::test]
async fn a_stopping_service_closes_sockets_with_1001_and_does_not_wait_for_them() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut socket = browser.socket(&session).await;
    let mut without_after = browser.raw_socket(&session).await;
    let stopped = std::time::Instant::now();
    let (codes, ()) =
        futures_util::future::join(async { (socket.close_code().await, without_after.close_code().await) }, app.stop())
            .await;
    assert_eq!(codes, (Some(1001), Some(1001)));
    // A stop waits up to thirty seconds for requests.
    assert!(stopped.elapsed() < patience(Duration::from_secs(25)), "the stop took {:?}", stopped.elapsed());
}

#[actix_web::test]
async fn a_visitor_with_a_socket_is_not_idle_and_one_without_is() {
    let options = TestOptions::default();
    let idle_after = options.engine.session_idle_after;
    let app = OwnApp::start_with(options).await;
    let browser = Browser::of(&app).await;
    let (here, gone) = (browser.open("here").await, browser.open("gone").await);
    let mut socket = browser.socket(&here).await;
    drop(browser.socket(&gone).await);
    let sessions = &app.service.app.engine.sessions;
    eventually("one visitor is connected", || async { sessions.connected_sessions() == 1 }).await;
    // The session answers after it has recorded when the visitor left.
    browser.get(&gone, "/session").await.data(200);
    clock::advance(idle_after);
    eventually("the session of the visitor who has gone ends", || async {
        browser.get(&gone, "/session").await.data(200)["status"] == "ended"
    })
    .await;
    // The other session continues, although it has been idle for as long, apart from its socket.
    let sent = browser.say(&here, "still here").await;
    assert_eq!(socket.message().await["id"], sent["id"]);
    drop(socket);
    eventually("no visitor is connected", || async { sessions.connected_sessions() == 0 }).await;
    browser.get(&here, "/session").await.data(200);
    clock::advance(idle_after);
    eventually("the other session ends", || async {
        browser.get(&here, "/session").await.data(200)["status"] == "ended"
    })
    .await;
    app.stop().await;
}
