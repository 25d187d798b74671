//! How much a page of a conversation holds, and which characters of a visitor's texts are kept.

use hotline_persistence::Error;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings};
use serde_json::{Value, json};

use crate::support::service::refresh;
use crate::support::{Reply, TestApp, keys};
use crate::visitor::{Browser, Session};

/// The maximum size of a page that is limited in bytes, with the JSON around its rows.
const PAGE_BYTES_MAX: usize = (1 << 20) + 1024;

/// How many messages a conversation has, 1.7 MiB in all.
const MESSAGES: usize = 30;

async fn conversation(browser: &Browser) -> (Session, Vec<Value>) {
    let session = browser.open("v").await;
    let mut ids = Vec::new();
    for _ in 0..MESSAGES {
        ids.push(browser.say(&session, &"x".repeat(60_000)).await["id"].clone());
    }
    (session, ids)
}

/// Reads all pages by `after`. Returns the ids of their rows, and the number of pages.
async fn read_all_pages(read: impl AsyncFn(&str) -> Reply) -> (Vec<Value>, usize) {
    let (mut ids, mut pages, mut last) = (Vec::<Value>::new(), 0, json!(0));
    loop {
        let reply = read(&format!("after={last}")).await;
        let rows = reply.data(200).as_array().expect("a list");
        assert!(reply.bytes.len() <= PAGE_BYTES_MAX, "{} bytes", reply.bytes.len());
        pages += 1;
        ids.extend(rows.iter().map(|row| row["id"].clone()));
        if reply.body["meta"]["hasMore"] == json!(false) {
            return (ids, pages);
        }
        last = rows.last().expect("a row at least")["id"].clone();
    }
}

#[actix_web::test]
async fn pages_by_after_are_limited_in_bytes_and_omit_no_message() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let (session, sent) = conversation(&browser).await;
    let path = format!("/webchat/sessions/{}/messages", session.id);
    let of_visitor =
        read_all_pages(async |query: &str| browser.get(&session, &format!("/messages?{query}")).await).await;
    let of_company = read_all_pages(async |query: &str| app.api.get(&format!("{path}?{query}")).await).await;
    for (ids, pages) in [of_visitor, of_company] {
        assert_eq!(ids, sent);
        assert_eq!(pages, 2);
    }
    // A page by number must have its number of rows, because the next one begins after them.
    let count = |reply: &Reply| reply.data(200).as_array().map_or(0, Vec::len);
    for query in ["", "?page=1", "?page=1&after=0", "?after=0&order=desc"] {
        assert_eq!(count(&browser.get(&session, &format!("/messages{query}")).await), MESSAGES, "{query}");
        assert_eq!(count(&app.api.get(&format!("{path}{query}")).await), MESSAGES, "{query}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_new_socket_gets_more_messages_than_are_read_at_once() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let (session, sent) = conversation(&browser).await;
    let (mut socket, shown) = browser.socket_after(&session, None).await;
    assert_eq!(shown.iter().map(|message| message["id"].clone()).collect::<Vec<_>>(), sent);
    let next = browser.say(&session, "and on").await;
    assert_eq!(socket.message().await["id"], next["id"]);
    app.stop().await;
}

#[actix_web::test]
async fn control_characters_of_a_visitor_are_removed_and_those_of_a_caller_refused() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open_unknown(json!({"name": "A\u{2}na\u{b}"})).await;
    let sent = browser.say(&session, "\u{1f}a\u{0}b\u{1}c\td\r\ne\u{c}").await;
    assert_eq!(sent["body"], "abc\td\r\ne");
    let shown = app.api.get(&format!("/webchat/sessions/{}", session.id)).await;
    assert_eq!(shown.data(200)["contact"]["name"], "Ana");
    let nothing = browser.post(&session, "/messages", json!({"body": "\u{1}\u{2}"})).await;
    assert_eq!(nothing.invalid_fields(), ["body"], "a text of control characters is empty");
    let path = format!("/webchat/sessions/{}/messages", session.id);
    for bad in ["a\u{1}b", "\u{b}", "x\u{1f}"] {
        assert_eq!(app.api.post(&path, json!({"body": bad})).await.invalid_fields(), ["body"], "{bad:?}");
    }
    let searched = app.api.get("/contacts?search=a%01b").await;
    assert_eq!(searched.invalid_fields(), ["search"]);
    app.stop().await;
}

/// Changes the settings of the company's webchat.
async fn change_settings(app: &TestApp, change: impl FnOnce(&mut ChannelSettings)) {
    let apply = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Error> {
        change(settings);
        Ok(())
    };
    channels::update(&app.db, &keys(), app.company.id, app.company.webchat, apply)
        .await
        .expect("the channel is changed");
}

#[actix_web::test]
async fn a_socket_is_closed_when_its_page_is_no_longer_allowed() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut socket = browser.socket(&session).await;
    // A change that does not concern the page does not end its socket.
    change_settings(&app, |settings| settings.allowed_origins.push("https://other.example".to_owned())).await;
    refresh(&app.api, &app.company).await;
    let sent = browser.say(&session, "still here").await;
    assert_eq!(socket.message().await["id"], sent["id"]);
    change_settings(&app, |settings| settings.allowed_origins.clear()).await;
    assert_eq!(socket.close_code().await, Some(4403));
    let (status, _) = browser.try_socket(&session.token).await.err().expect("refused");
    assert_eq!(status, 403);

    let (company, _) = app.another_company().await;
    let browser = Browser::on(&app, &company, company.webchat).await;
    let session = browser.open("v").await;
    let mut socket = browser.socket(&session).await;
    let deactivate = sqlx::query("update companies set active = false where id = $1").bind(company.id);
    deactivate.execute(&app.db).await.expect("a change");
    assert_eq!(socket.close_code().await, Some(4403));
    app.stop().await;
}
