//! Who is believed, and what is answered to whom is not.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Hooked, MARIA, Tally, messages, taken, tickets};
use crate::steps::{listed, sql};
use crate::support::provider::hooks::{signature, text};
use crate::support::{Reply, TestApp, eventually};

#[actix_web::test]
async fn the_challenge_is_answered_to_who_knows_the_token() {
    let app = TestApp::start().await;
    let channel = Hooked::phone(&app).await;
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
    let app = TestApp::start().await;
    let channel = Hooked::phone(&app).await;
    let other = Hooked::phone(&app).await;
    let body = channel.speaks().message(MARIA, "Maria", text("wamid.1", "hi")).to_string();
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
    let app = TestApp::start().await;
    let channel = Hooked::phone(&app).await;
    let webchat: String = sqlx::query_scalar("select public_key from channels where id = $1")
        .bind(app.company.webchat)
        .fetch_one(&app.database.db)
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
    assert_eq!(reply.headers["allow"], "GET, POST");
    app.stop().await;
}

#[actix_web::test]
async fn who_is_refused_too_often_waits_and_other_channels_go_on() {
    let app = TestApp::start().await;
    let channel = Hooked::phone(&app).await;
    let other = Hooked::phone(&app).await;
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
    let call = other.speaks().message(MARIA, "Maria", text("wamid.1", "hi"));
    assert_eq!(other.told(&app.api, &call).await, taken(1));
    app.stop().await;
}

#[actix_web::test]
async fn a_call_larger_than_any_is_refused_and_one_as_large_as_a_provider_sends_is_taken() {
    let app = TestApp::start().await;
    let channel = Hooked::phone(&app).await;
    let large = channel.speaks().message(MARIA, "Maria", text("wamid.1", &"a".repeat(3_000_000)));
    assert_eq!(channel.told(&app.api, &large).await, taken(1));
    let stored = messages(&app.api, channel.id).await;
    assert_eq!(stored[0]["body"].as_str().map(str::len), Some(65_536), "cut to what a message holds");
    let larger = channel.speaks().message(MARIA, "Maria", text("wamid.2", &"a".repeat(5_000_000)));
    channel.tell(&app.api, &larger).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    assert_eq!(messages(&app.api, channel.id).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn what_nobody_can_read_is_not_asked_for_again() {
    let app = TestApp::start().await;
    let channel = Hooked::phone(&app).await;
    let good = channel.speaks().message(MARIA, "Maria", text("wamid.1", "hi"));
    for unreadable in ["", "{", "[]", "null", "7", "\"text\"", "{}", "{\"object\": 7}"] {
        let signature = signature(&channel.app_secret, unreadable.as_bytes());
        let reply = channel.call(&app.api, unreadable, Some(&signature)).await;
        assert_eq!(reply.data(200)["unreadable"], 1, "{unreadable}");
    }
    // A part nobody can read takes nothing from the others.
    let mut mixed = good.clone();
    let value = &mut mixed["entry"][0]["changes"][0]["value"];
    let message = value["messages"][0].clone();
    value["messages"] = json!([null, 7, {"id": "wamid.9"}, {"from": MARIA, "type": "text"}, message]);
    value["statuses"] = json!([{"status": "sent"}, "read"]);
    mixed["entry"].as_array_mut().expect("entries").push(json!({"changes": [{"field": "account_update"}]}));
    let tally = channel.told(&app.api, &mixed).await;
    assert_eq!(tally, Tally { taken: 1, repeated: 0, ignored: 1, unreadable: 6 });
    assert_eq!(messages(&app.api, channel.id).await.len(), 1);
    // What another product tells through the same application.
    let other = json!({"object": "page", "entry": []});
    assert_eq!(channel.told(&app.api, &other).await, Tally { ignored: 1, ..Tally::default() });
    // Half a character at the end of a name that was cut.
    let half = channel.speaks().message("5511900000002", "CUT", text("wamid.2", "hi"));
    let half = half.to_string().replace("CUT", "An\\ud83d");
    let reply = channel.call(&app.api, half.clone(), Some(&signature(&channel.app_secret, half.as_bytes()))).await;
    assert_eq!(reply.data(200)["taken"], 1);
    let named = app.api.get("/contacts?number=5511900000002").await;
    assert_eq!(named.data(200)[0]["name"], "An\u{fffd}");
    app.stop().await;
}

#[actix_web::test]
async fn an_inactive_company_takes_nothing_until_it_is_active_again() {
    let app = TestApp::start().await;
    let channel = Hooked::phone(&app).await;
    let call = channel.speaks().message(MARIA, "Maria", text("wamid.1", "hi"));
    sql(&app, "update companies set active = false where id = $1", app.company.id.0).await;
    eventually("the company is inactive", || async { channel.tell(&app.api, &call).await.status == 403 }).await;
    let refused = channel.tell(&app.api, &call).await;
    refused.error(403, "ERR_API_COMPANY_INACTIVE");
    let count: i64 = sqlx::query_scalar("select count(*) from contacts where number = $1")
        .bind(MARIA)
        .fetch_one(&app.database.db)
        .await
        .expect("count");
    sql(&app, "update companies set active = true where id = $1", app.company.id.0).await;
    eventually("the company is active", || async { channel.tell(&app.api, &call).await.status == 200 }).await;
    assert!(count <= 1, "one contact at most: the first call may have come before the directory knew");
    assert_eq!(messages(&app.api, channel.id).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_call_for_another_number_of_the_account_goes_to_its_own_channel() {
    use hotline_persistence::tables::channels::ChannelType::Whatsapp;

    use super::Setup;
    let app = TestApp::start().await;
    let shared = Setup { app_secret: Some("shared"), ..Setup::default() };
    let first = Hooked::create(&app, &app.company, Whatsapp, shared).await;
    let second = Hooked::create(&app, &app.company, Whatsapp, shared).await;
    let stranger = Hooked::phone(&app).await;
    // The provider calls one address for every number of an account.
    let call = second.speaks().message(MARIA, "Maria", text("wamid.1", "for the second"));
    assert_eq!(first.told(&app.api, &call).await, taken(1));
    assert_eq!(second.told(&app.api, &call).await, Tally { repeated: 1, ..Tally::default() });
    assert_eq!(messages(&app.api, second.id).await[0]["body"], "for the second");
    // A number with another secret, and one that is nobody's, are not the caller's to speak for.
    for number in [stranger.speaks().id, "no number of ours".to_owned()] {
        let mut call = first.speaks().message(MARIA, "Maria", text("wamid.2", "hi"));
        call["entry"][0]["changes"][0]["value"]["metadata"]["phone_number_id"] = number.into();
        assert_eq!(first.told(&app.api, &call).await, Tally { ignored: 1, ..Tally::default() });
    }
    assert_eq!(messages(&app.api, first.id).await, [Value::Null; 0]);
    assert_eq!(messages(&app.api, stranger.id).await, [Value::Null; 0]);
    app.stop().await;
}
