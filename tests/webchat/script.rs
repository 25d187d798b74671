//! The widget's script, and the appearance that is set for its channel.

use reqwest::Method;
use serde_json::json;

use hotline_persistence::Error;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, Position, PreChatField};

use crate::support::{Reply, TestApp, eventually, keys};
use crate::visitor::Browser;

#[actix_web::test]
async fn the_script_is_served_with_and_without_compression_and_is_revalidated() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let script = || browser.bare(Method::GET, "/widget.js");
    let whole = script().send().await.expect("answer");
    assert_eq!(
        (whole.status().as_u16(), &whole.headers()["content-type"]),
        (200, &"text/javascript; charset=utf-8".parse().expect("header"))
    );
    assert_eq!(whole.headers()["cache-control"], "public, max-age=300, stale-while-revalidate=86400");
    assert_eq!(whole.headers()["cross-origin-resource-policy"], "cross-origin");
    assert_eq!(whole.headers()["vary"], "Accept-Encoding");
    let etag = whole.headers()["etag"].clone();
    let weak_etag = format!("W/{}", etag.to_str().expect("text"));
    let bytes = whole.bytes().await.expect("bytes");
    assert!(bytes.len() > 1000, "the script is too short: {} bytes", bytes.len());
    let compressed = script().header("accept-encoding", "br, gzip;q=0.8").send().await.expect("answer");
    assert_eq!(compressed.headers()["content-encoding"], "gzip");
    assert_eq!(compressed.headers()["etag"], weak_etag, "the compressed script has a wrong ETag");
    assert!(compressed.bytes().await.expect("bytes").starts_with(&[0x1f, 0x8b]));
    let uncompressed = script().header("accept-encoding", "gzip;q=0").send().await.expect("answer");
    assert!(!uncompressed.headers().contains_key("content-encoding"));
    assert_eq!(uncompressed.headers()["etag"], etag);
    assert_eq!(uncompressed.bytes().await.expect("bytes"), bytes);
    let unchanged = script().header("if-none-match", &weak_etag).send().await.expect("answer");
    assert_eq!((unchanged.status().as_u16(), &unchanged.headers()["etag"]), (304, &etag));
    assert!(unchanged.bytes().await.expect("bytes").is_empty());
    let unchanged = script().header("if-none-match", &etag).header("accept-encoding", "gzip");
    let unchanged = unchanged.send().await.expect("answer");
    assert_eq!(unchanged.status(), 304);
    assert_eq!(unchanged.headers()["etag"], weak_etag, "not the ETag of the response that it stands for");
    app.stop().await;
}

#[actix_web::test]
async fn the_look_is_what_the_channel_is_set_to() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let look = || async { Reply::of(browser.request(Method::GET, "/config")).await };
    let default_look = look().await;
    assert_eq!(
        default_look.data(200),
        &json!({
            "title": null, "color": "#2563eb", "position": "right", "greeting": null, "preChatFields": [],
            "identityRequired": false, "attachments": {"bytesMax": 16 * 1024 * 1024},
            "availability": {"now": false},
        })
    );
    assert_eq!(default_look.headers["cache-control"], "public, max-age=15");
    let set_look = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Error> {
        settings.title = Some("Talk".to_owned());
        settings.color = Some("#0f766e".to_owned());
        settings.position = Some(Position::Left);
        settings.greeting = Some("Hello <b>you</b>".to_owned());
        settings.pre_chat_fields = vec![PreChatField::Name, PreChatField::Email];
        Ok(())
    };
    channels::update(&app.db, &keys(), app.company.id, app.company.webchat, set_look).await.expect("update");
    let expected = json!({
        "title": "Talk", "color": "#0f766e", "position": "left", "greeting": "Hello <b>you</b>",
        "preChatFields": ["name", "email"], "identityRequired": false, "attachments": {"bytesMax": 16 * 1024 * 1024},
        "availability": {"now": false},
    });
    eventually("the new look is shown", || async { look().await.body["data"] == expected }).await;
    app.stop().await;
}
