//! Who a visitor is: what a browser claims, and what its website has signed.

mod claimed;
mod coming_again;
mod signed_by_website;
mod signing_in;

use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings};
use serde_json::Value;

use crate::support::{TestApp, keys};
use crate::visitor::{Browser, Session};

/// A session, as the company sees it.
async fn session_of(app: &TestApp, session: &Session) -> Value {
    app.api.get(&format!("/webchat/sessions/{}", session.id)).await.data(200).clone()
}

fn now_s() -> i64 {
    hotline_actors::clock::now().timestamp()
}

fn bodies(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["body"].as_str().unwrap_or_default()).collect()
}

async fn messages_of(browser: &Browser, session: &Session) -> Vec<Value> {
    browser.get(session, "/messages").await.data(200).as_array().expect("a list").clone()
}

async fn change_settings(app: &TestApp, change: impl FnOnce(&mut ChannelSettings)) {
    let apply = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), hotline_persistence::Error> {
        change(settings);
        Ok(())
    };
    let (company, webchat) = (app.company.id, app.company.webchat);
    channels::update(&app.db, &keys(), company, webchat, apply).await.expect("the channel is changed");
    app.refreshed().await;
}
