//! Which calls of a provider are accepted, and how the others are answered.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{MARIA, ProviderChannel, Tally, all_taken, messages, tickets};
use crate::steps::{listed, sql};
use crate::support::provider::hooks::{signature, text};
use crate::support::{OwnApp, PATIENCE, Reply, TestApp, eventually, patience};

#[actix_web::test]
async fn the_challenge_is_answered_for_a_caller_who_knows_the_token() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let path = channel.path();
    let ask = async |query: &str| {
        let response = app.api.anonymous(Method::GET, &format!("{path}{query}")).send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        (status, headers, response.text().await.expect("a body"))
    };
    let (status, headers, body) =
        ask("?hub.mode=subscribe&hub.challenge=1158201444%3Cb%3E&hub.verify_token=verify+token").await;
    assert_eq!((status, body.as_str()), (200, "1158201444<b>"));
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    for refused in [
        "?hub.mode=subscribe&hub.challenge=1&hub.verify_token=verify+token+",
        "?hub.mode=subscribe&hub.challenge=1&hub.verify_token=",
        "?hub.mode=subscribe&hub.challenge=1",
        "",
    ] {
        let (status, headers, body) = ask(refused).await;
        assert_eq!(status, 401, "{refused}");
        assert_eq!(headers["content-type"], "application/json");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["error"]["code"], "ERR_API_UNAUTHORIZED");
    }
    for incomplete in [
        "?hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=verify+token",
        "?hub.challenge=1&hub.verify_token=verify+token",
        "?hub.mode=subscribe&hub.verify_token=verify+token",
    ] {
        assert_eq!(ask(incomplete).await.0, 400, "{incomplete}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_call_without_a_good_signature_is_refused_and_leaves_nothing() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let other = ProviderChannel::phone(&app).await;
    let body = channel.phone_account().message(MARIA, "Maria", text("wamid.1", "hi")).to_string();
    let good = signature(&channel.app_secret, body.as_bytes());
    let theirs = signature(&other.app_secret, body.as_bytes());
    let sha1 = good.replace("sha256=", "sha1=");
    for signature in [None, Some(""), Some("sha256="), Some(&good[..good.len() - 1]), Some(&theirs), Some(&sha1)] {
        let reply = channel.call(&app.api, body.clone(), signature).await;
        reply.error(401, "ERR_API_UNAUTHORIZED");
    }
    let changed = body.replace("hi", "ho");
    channel.call(&app.api, changed, Some(&good)).await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(listed(&app.api, "/contacts").await, [0; 0]);
    assert_eq!(tickets(&app.api, channel.id).await, [Value::Null; 0]);
    // The same bytes with their own signature are taken.
    let reply = channel.call(&app.api, body, Some(&good)).await;
    assert_eq!(reply.data(200)["taken"], 1);
    assert_eq!(messages(&app.api, channel.id).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_key_of_no_provider_is_not_found_and_other_methods_are_not_allowed() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let webchat: String = sqlx::query_scalar("select public_key from channels where id = $1")
        .bind(app.company.webchat)
        .fetch_one(&app.db)
        .await
        .expect("key");
    for key in ["ch_nobody", "%00", "%ff", &webchat] {
        for method in [Method::GET, Method::POST] {
            let reply = Reply::of(app.api.anonymous(method, &format!("/hooks/{key}"))).await;
            reply.error(404, "ERR_API_NOT_FOUND");
        }
    }
    let reply = Reply::of(app.api.anonymous(Method::PUT, &channel.path())).await;
    reply.error(405, "ERR_API_METHOD_NOT_ALLOWED");
    assert_eq!(reply.headers["allow"], "GET, HEAD, POST");
    app.stop().await;
}

#[actix_web::test]
async fn bad_signatures_are_limited_and_stop_no_valid_call() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let other = ProviderChannel::phone(&app).await;
    let mut refused = 0;
    let limited = loop {
        let reply = channel.call(&app.api, "{}", Some("sha256=00")).await;
        if reply.status != 401 {
            break reply;
        }
        refused += 1;
        assert!(refused <= 1000, "nobody is ever limited");
    };
    limited.error(429, "ERR_API_RATE_LIMITED");
    assert!(limited.headers.contains_key("retry-after"));
    assert!(refused >= 10, "limited after {refused}: somebody who sets a channel up needs more");
    let call = other.phone_account().message(MARIA, "Maria", text("wamid.1", "hi"));
    assert_eq!(other.deliver(&app.api, &call).await, all_taken(1));
    // Behind an unknown proxy all callers have one address: bad signatures never stop a valid one.
    let call = channel.phone_account().message(MARIA, "Maria", text("wamid.2", "hi"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    app.stop().await;
}

#[actix_web::test]
async fn a_caller_that_guesses_keys_is_limited_and_stops_no_call_from_its_address() {
    // A service of its own: in a shared one the limit would refuse what other tests send from this address.
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let mut refused = 0;
    loop {
        let reply = Reply::of(app.api.anonymous(Method::POST, &format!("/hooks/ch_nobody{refused}"))).await;
        if reply.status == 429 {
            break;
        }
        reply.error(404, "ERR_API_NOT_FOUND");
        refused += 1;
        assert!(refused <= 1000, "nobody is ever limited");
    }
    let call = channel.phone_account().message(MARIA, "Maria", text("wamid.1", "hi"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let path = format!("{}?hub.mode=subscribe&hub.challenge=1&hub.verify_token=verify+token", channel.path());
    let verified = app.api.anonymous(Method::GET, &path).send().await.expect("an answer");
    assert_eq!(verified.status(), 200);
    app.stop().await;
}

/// Begins a call without a signature: its head and `sent` bytes of a body that is never completed.
async fn begin_slowly(app: &TestApp, channel: &ProviderChannel, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: hotline\r\ncontent-type: application/json\r\ncontent-length: 4000000\r\n\r\n",
        channel.path()
    );
    stream.write_all(head.as_bytes()).await.expect("a head");
    stream.write_all(&vec![b' '; sent]).await.expect("a part of a body");
    stream
}

/// The age from which a call whose body is incomplete may be cut off to make room for others.
const CUT_OFF_AFTER: Duration = Duration::from_secs(1);

/// How long signed calls take while slow ones without a signature are open, sorted. A call that was cut off because
/// the machine was slow (`503`, or `408` if its body came too slowly) is sent again, as a provider does.
async fn times_beside_slow_calls() -> Vec<Duration> {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let other = ProviderChannel::phone(&app).await;
    let mut slow = Vec::new();
    for (target, sent) in [(&channel, 0), (&channel, 3_900_000), (&other, 100), (&channel, 500_000)] {
        for _ in 0..20 {
            // A call that is cut off meanwhile may not take all of its body.
            let begun = tokio::time::timeout(Duration::from_secs(2), begin_slowly(&app, target, sent)).await;
            slow.extend(begun);
        }
    }
    // Signed calls of the same channel and of others, small and large.
    let mut times = Vec::new();
    for (number, target) in (0..60).zip([&channel, &other].into_iter().cycle()) {
        let length = if number % 10 == 0 { 1_000_000 } else { 100 };
        let message = text(&format!("wamid.{number}"), &"a".repeat(length));
        let call = target.phone_account().message(MARIA, "Maria", message);
        let began = Instant::now();
        let reply = loop {
            let sent = Instant::now();
            let reply = target.call_signed(&app.api, &call).await;
            if reply.status != 503 && reply.status != 408 {
                break reply;
            }
            assert!(sent.elapsed() >= CUT_OFF_AFTER, "call {number} is refused at once: {}", reply.body);
            assert!(began.elapsed() < patience(PATIENCE), "call {number} is always refused: {}", reply.body);
        };
        assert_eq!(reply.data(200)["taken"], 1, "call {number}");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    drop(slow);
    app.stop().await;
    times
}

/// In the past, sixteen calls that merely claimed bodies of 4 MiB held all the memory of hooks for minutes.
#[actix_web::test]
async fn slow_calls_without_a_signature_hold_up_nobody() {
    assert_eq!(times_beside_slow_calls().await.len(), 60);
}

#[actix_web::test]
async fn slow_calls_without_a_signature_slow_nobody_measured() {
    let times = times_beside_slow_calls().await;
    // Where memory is short a slow call is cut off after a second, and small ones do not even wait for that.
    assert!(times[30] < Duration::from_millis(500), "half of the calls took {:?}", times[30]);
    assert!(times[59] < Duration::from_secs(4), "a call took {:?}", times[59]);
}

/// Calls that send no body at all hold up no call either, even more of them than a channel has places for.
#[actix_web::test]
async fn silent_calls_hold_up_nobody() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(begin_slowly(&app, &channel, 0).await);
    }
    let call = channel.phone_account().message(MARIA, "Maria", text("wamid.1", "hi"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    // The silent calls are given up soon, with an answer.
    let mut last = silent.pop().expect("one");
    let mut answer = String::new();
    let read = tokio::time::timeout(patience(PATIENCE), last.read_to_string(&mut answer)).await;
    assert!(read.is_ok(), "the silent call is still open");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    app.stop().await;
}

#[actix_web::test]
async fn a_call_larger_than_any_of_a_provider_is_refused_and_one_as_large_as_a_provider_sends_is_taken() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let large = channel.phone_account().message(MARIA, "Maria", text("wamid.1", &"a".repeat(3_000_000)));
    assert_eq!(channel.deliver(&app.api, &large).await, all_taken(1));
    let stored = messages(&app.api, channel.id).await;
    assert_eq!(stored[0]["body"].as_str().map(str::len), Some(65_536), "cut to what a message holds");
    let larger = channel.phone_account().message(MARIA, "Maria", text("wamid.2", &"a".repeat(5_000_000)));
    channel.call_signed(&app.api, &larger).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    assert_eq!(messages(&app.api, channel.id).await.len(), 1);
    app.stop().await;
}

/// In the past, each comma counted as a value, and the call was refused whenever it was repeated.
#[actix_web::test]
async fn a_call_of_texts_with_very_many_commas_is_taken() {
    const TEXTS: usize = 42;
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let commas = ",".repeat(4096);
    let texts = (0..TEXTS).map(|number| text(&format!("wamid.{number}"), &commas)).collect();
    let call = channel.phone_account().messages(MARIA, "Maria", texts);
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(TEXTS as u64));
    let stored = messages(&app.api, channel.id).await;
    assert_eq!(stored.len(), TEXTS);
    assert!(stored.iter().all(|message| message["body"] == commas.as_str()));
    app.stop().await;
}

#[actix_web::test]
async fn the_largest_call_of_a_provider_is_read_and_one_of_too_many_values_is_unreadable() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    // 3 MB with a value in each 20 bytes, of another product: what is read of it is ignored.
    let largest = json!({"object": "page", "entry": vec!["12345678901234567"; 150_000]});
    assert_eq!(channel.deliver(&app.api, &largest).await, Tally { ignored: 1, ..Tally::default() });
    // It is read at no repetition, so it must not be repeated.
    let too_many = json!({"object": "page", "entry": vec![0; 300_000]});
    assert_eq!(channel.deliver(&app.api, &too_many).await, Tally { unreadable: 1, ..Tally::default() });
    app.stop().await;
}

#[actix_web::test]
async fn an_unreadable_call_is_answered_200_so_that_it_is_not_repeated() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let good = channel.phone_account().message(MARIA, "Maria", text("wamid.1", "hi"));
    for unreadable in ["", "{", "[]", "null", "7", "\"text\"", "{}", "{\"object\": 7}"] {
        let signature = signature(&channel.app_secret, unreadable.as_bytes());
        let reply = channel.call(&app.api, unreadable, Some(&signature)).await;
        assert_eq!(reply.data(200)["unreadable"], 1, "{unreadable}");
    }
    // An unreadable part does not affect the others.
    let mut mixed = good.clone();
    let value = &mut mixed["entry"][0]["changes"][0]["value"];
    let message = value["messages"][0].clone();
    value["messages"] = json!([null, 7, {"id": "wamid.9"}, {"from": MARIA, "type": "text"}, message]);
    value["statuses"] = json!([{"status": "sent"}, "read"]);
    mixed["entry"].as_array_mut().expect("entries").push(json!({"changes": [{"field": "account_update"}]}));
    let tally = channel.deliver(&app.api, &mixed).await;
    assert_eq!(tally, Tally { taken: 1, repeated: 0, ignored: 1, unreadable: 6 });
    assert_eq!(messages(&app.api, channel.id).await.len(), 1);
    // A call of another product through the same application.
    let other = json!({"object": "page", "entry": []});
    assert_eq!(channel.deliver(&app.api, &other).await, Tally { ignored: 1, ..Tally::default() });
    // Half a character at the end of a name that was cut.
    let half = channel.phone_account().message("5511900000002", "CUT", text("wamid.2", "hi"));
    let half = half.to_string().replace("CUT", "An\\ud83d");
    let reply = channel.call(&app.api, half.clone(), Some(&signature(&channel.app_secret, half.as_bytes()))).await;
    assert_eq!(reply.data(200)["taken"], 1);
    let named = app.api.get("/contacts?number=5511900000002").await;
    assert_eq!(named.data(200)[0]["name"], "An\u{fffd}");
    app.stop().await;
}

#[actix_web::test]
async fn an_inactive_company_takes_nothing_until_it_is_active_again() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let call = channel.phone_account().message(MARIA, "Maria", text("wamid.1", "hi"));
    sql(&app, "update companies set active = false where id = $1", app.company.id.0).await;
    eventually("the company is inactive", || async { channel.call_signed(&app.api, &call).await.status == 403 }).await;
    let refused = channel.call_signed(&app.api, &call).await;
    refused.error(403, "ERR_API_COMPANY_INACTIVE");
    let count: i64 = sqlx::query_scalar("select count(*) from contacts where company_id = $1 and number = $2")
        .bind(app.company.id)
        .bind(MARIA)
        .fetch_one(&app.db)
        .await
        .expect("count");
    sql(&app, "update companies set active = true where id = $1", app.company.id.0).await;
    eventually("the company is active", || async { channel.call_signed(&app.api, &call).await.status == 200 }).await;
    assert!(count <= 1, "one contact at most: the first call may have come before the directory knew");
    assert_eq!(messages(&app.api, channel.id).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_call_for_another_number_of_the_account_goes_to_that_numbers_channel() {
    use hotline_persistence::tables::channels::ChannelType::Whatsapp;

    use super::Setup;
    let app = TestApp::shared().await;
    let shared = Setup { app_secret: Some("shared"), ..Setup::default() };
    let first = ProviderChannel::create(&app, &app.company, Whatsapp, shared).await;
    let second = ProviderChannel::create(&app, &app.company, Whatsapp, shared).await;
    let stranger = ProviderChannel::phone(&app).await;
    // The provider calls one address for every number of an account.
    let call = second.phone_account().message(MARIA, "Maria", text("wamid.1", "for the second"));
    assert_eq!(first.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(second.deliver(&app.api, &call).await, Tally { repeated: 1, ..Tally::default() });
    assert_eq!(messages(&app.api, second.id).await[0]["body"], "for the second");
    // A caller cannot speak for a number of another secret, nor for an unknown number.
    for number in [stranger.phone_account().id, "no number of ours".to_owned()] {
        let mut call = first.phone_account().message(MARIA, "Maria", text("wamid.2", "hi"));
        call["entry"][0]["changes"][0]["value"]["metadata"]["phone_number_id"] = number.into();
        assert_eq!(first.deliver(&app.api, &call).await, Tally { ignored: 1, ..Tally::default() });
    }
    assert_eq!(messages(&app.api, first.id).await, [Value::Null; 0]);
    assert_eq!(messages(&app.api, stranger.id).await, [Value::Null; 0]);
    app.stop().await;
}
