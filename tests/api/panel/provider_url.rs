//! The address of a channel's provider: only administrators of the installation set it, and only public addresses are
//! reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotline::outbound::OutboundOptions;
use hotline_persistence::sealed::Secret;
use hotline_persistence::tables::channels::{self, ChannelSettings, ChannelType, NewChannel};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::administrator;
use crate::support::provider::hooks::{Phone, signature, text};
use crate::support::provider::{Answer, Provider};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Person, Reply, TestApp, eventually, keys};

/// A port of this machine that accepts connections and never answers, and the count of these connections.
async fn silent_listener() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connected = Arc::new(AtomicUsize::new(0));
    let counted = connected.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, connected)
}

/// Addresses of this machine in many spellings, and that of the metadata service of clouds, which reveals secrets.
fn spellings(port: u16) -> Vec<String> {
    let hosts =
        ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "2130706433", "0x7f.1", "0.0.0.0", "169.254.169.254"];
    ["http", "https"].iter().flat_map(|scheme| hosts.map(|host| format!("{scheme}://{host}:{port}"))).collect()
}

fn whatsapp_body(more: Value) -> Value {
    let mut body = json!({"type": "whatsapp", "name": "P", "phoneNumberId": "106", "accessToken": "T", "appSecret": "S",
        "verifyToken": "V"});
    body.as_object_mut().expect("a body").extend(more.as_object().cloned().unwrap_or_default());
    body
}

/// Lets a contact write to a channel, so that it may be answered.
async fn receive_message(app: &TestApp, channel: &Value, from: &str) {
    let phone = Phone { id: "106".to_owned(), number: "15550783881".to_owned() };
    let body = phone.message(from, "Maria", text(&format!("wamid.{from}"), "Hello")).to_string();
    let path = format!("/hooks/{}", channel["publicKey"].as_str().expect("a key"));
    let signed = signature("S", body.as_bytes());
    let request = app.api.anonymous(Method::POST, &path).header("x-hub-signature-256", signed);
    assert_eq!(Reply::of(request.header("content-type", "application/json").body(body)).await.status, 200);
}

#[actix_web::test]
async fn a_companys_administrator_cannot_set_a_providers_address() {
    let app = OwnApp::start().await;
    let ana = administrator(&app).await;
    let (port, connected) = silent_listener().await;
    let channel = ana.post("/channels", whatsapp_body(json!({}))).await.data(201).clone();
    let path = format!("/channels/{}/setup", channel["id"]);
    for url in spellings(port).iter().map(String::as_str).chain(["https://graph.facebook.com", "https://example.com"]) {
        let given = json!({"providerUrl": url});
        ana.post("/channels", whatsapp_body(given.clone())).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
        ana.put(&path, given).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
        ana.put(&path, json!({"providerUrl": url, "accessToken": "U"})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    }
    // The current value may be repeated.
    ana.put(&path, json!({"providerUrl": null, "name": "Q"})).await.data(200);
    assert_eq!(ana.get(&path).await.data(200)["settings"]["providerUrl"], Value::Null);
    assert_eq!(connected.load(Ordering::SeqCst), 0);
    app.stop().await;
}

#[actix_web::test]
async fn account_ids_contain_only_digits() {
    let app = OwnApp::start().await;
    let ana = administrator(&app).await;
    let channel = ana.post("/channels", whatsapp_body(json!({}))).await.data(201).clone();
    let page = json!({"type": "messenger", "name": "M", "pageId": "7"});
    let page = ana.post("/channels", page).await.data(201).clone();
    for bad in
        ["..", "../latest/meta-data?x=", "106/..", "106?x=", "106#", "%2e%2e", "me", "1 2", "１０６", "-1", "1.0"]
    {
        for (channel, field) in [(&channel, "phoneNumberId"), (&channel, "businessAccountId"), (&page, "pageId")] {
            let changed = ana.put(&format!("/channels/{}/setup", channel["id"]), json!({field: bad})).await;
            assert_eq!(changed.invalid_fields(), [field], "{bad}");
        }
        let made = ana.post("/channels", whatsapp_body(json!({"phoneNumberId": bad, "businessAccountId": bad}))).await;
        assert_eq!(made.invalid_fields(), ["phoneNumberId", "businessAccountId"], "{bad}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_providers_address_reaches_no_internal_network() {
    let options = TestOptions { outbound: OutboundOptions::default(), ..TestOptions::default() };
    let app = OwnApp::start_with(options).await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let (port, connected) = silent_listener().await;
    for (number, url) in spellings(port).iter().enumerate() {
        let made = admin.post("/channels", whatsapp_body(json!({"providerUrl": url}))).await;
        let channel = made.data(201);
        let templates = admin.get(&format!("/channels/{}/templates", channel["id"])).await;
        templates.error(503, "ERR_API_UNAVAILABLE");
        let from = format!("5511987{number:06}");
        receive_message(&app, channel, &from).await;
        let sent = json!({"channelId": channel["id"], "number": from, "type": "text", "body": "Hi"});
        let job = app.api.post("/messages", sent).await.data(202)["jobId"].clone();
        let job = format!("/messages/jobs/{}", job.as_str().expect("a job"));
        eventually("the message has failed", || async { app.api.get(&job).await.data(200)["status"] == "failed" })
            .await;
        let error = app.api.get(&job).await.data(200)["error"].clone();
        assert_eq!(error["code"], "ERR_PROVIDER_ADDRESS_FORBIDDEN", "{url}: {error}");
    }
    assert_eq!(connected.load(Ordering::SeqCst), 0, "an internal address was reached");
    app.stop().await;
}

#[actix_web::test]
async fn a_stored_account_id_leads_to_no_other_path_of_the_provider() {
    let app = TestApp::shared().await;
    let provider = Provider::start().await;
    let secret = |text: &str| Some(Secret(text.to_owned()));
    // As an earlier release stored it, with an address that the operator set.
    let settings = ChannelSettings {
        phone_number_id: Some("../latest/meta-data?x=".to_owned()),
        access_token: secret("T"),
        app_secret: secret("S"),
        verify_token: secret("V"),
        provider_url: Some(provider.url.clone()),
        is_provider_url_from_operator: true,
        ..ChannelSettings::default()
    };
    let new = NewChannel { name: "P", kind: ChannelType::Whatsapp, number: None, queue_id: None, settings };
    let row = channels::insert(&app.db, &keys(), app.company.id, new).await.expect("a channel");
    let templates = format!("/channels/{}/templates", row.id);
    eventually("the channel is known", || async { app.api.get(&templates).await.status == 503 }).await;
    assert_eq!(provider.template_reads("latest"), 0);
    assert_eq!(provider.template_reads("../latest/meta-data?x="), 0);
    app.stop().await;
}

#[actix_web::test]
async fn another_address_requires_the_access_token_again() {
    let app = OwnApp::start().await;
    let ana = administrator(&app).await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let (old_provider, new_provider) = (Provider::start().await, Provider::start().await);
    let channel =
        admin.post("/channels", whatsapp_body(json!({"providerUrl": old_provider.url}))).await.data(201).clone();
    let path = format!("/channels/{}/setup", channel["id"]);
    for other in [json!({"providerUrl": new_provider.url}), json!({"providerUrl": null})] {
        assert_eq!(admin.put(&path, other).await.invalid_fields(), ["accessToken"]);
    }
    // The same address needs no new token, and a company's administrator may change the token for it.
    admin.put(&path, json!({"providerUrl": old_provider.url, "name": "Q"})).await.data(200);
    ana.put(&path, json!({"providerUrl": old_provider.url, "accessToken": "U"})).await.data(200);
    old_provider.only_token("106", "U");
    old_provider.always("106", Answer::Accept);
    receive_message(&app, &channel, "5511987654321").await;
    let send = json!({"channelId": channel["id"], "number": "5511987654321", "type": "text", "body": "Hi"});
    app.api.post("/messages", send.clone()).await.data(202);
    old_provider.accepts("106", 1).await;
    // With a token of its own, the other address is accepted, and is sent that token.
    admin.put(&path, json!({"providerUrl": new_provider.url, "accessToken": "W"})).await.data(200);
    new_provider.only_token("106", "W");
    // Providers give messages different ids.
    new_provider.next("106", [Answer::AcceptAs("wamid.of-another".to_owned())]);
    app.api.post("/messages", send).await.data(202);
    new_provider.accepts("106", 1).await;
    assert_eq!((old_provider.accepted_count("106"), new_provider.calls("106").len()), (1, 1));
    app.stop().await;
}
