//! Addresses to which nothing is ever sent: this machine, its networks and the metadata services of clouds. They may be
//! spelled in any way, be what a name resolves to at first or later, or be the target of a redirect.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hotline::outbound::Lookup;
use hotline::webhooks::WebhookOptions;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{add_webhook, read_webhook, wait_for_retry};
use crate::steps::id;
use crate::support::service::TestOptions;
use crate::support::{Conduct, OwnApp, Receiver};

/// Names with the addresses that a test sets: each look-up takes the next answer, and the last answer is repeated.
struct Names(Mutex<HashMap<&'static str, Vec<Vec<IpAddr>>>>);

impl Names {
    fn of(names: &[(&'static str, &[&[&str]])]) -> Arc<Self> {
        let addresses =
            |answer: &&[&str]| answer.iter().map(|text| text.parse().expect("an address")).collect::<Vec<IpAddr>>();
        let answers = names.iter().map(|(name, answers)| (*name, answers.iter().map(addresses).collect()));
        Arc::new(Self(Mutex::new(answers.collect())))
    }
}

impl Lookup for Names {
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut names = self.0.lock();
        let answer =
            names.get_mut(name).map(|answers| if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() });
        Box::pin(async move { answer.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

/// The default options, with these networks allowed and these names.
fn options_with(networks: &[&str], names: Arc<Names>) -> TestOptions {
    let allowed_networks = networks.iter().map(|network| network.parse().expect("a network")).collect();
    let defaults = TestOptions::default();
    let webhooks = WebhookOptions { allowed_networks, lookup: names, ..defaults.webhooks.clone() };
    TestOptions { webhooks, ..defaults }
}

#[actix_web::test]
async fn a_url_with_an_internal_address_is_refused() {
    let receiver = Receiver::start().await;
    let app = OwnApp::start_with(options_with(&[], Names::of(&[]))).await;
    let port = receiver.address.port();
    let webhook = add_webhook(&app.api, "https://hooks.example.com/", &[]).await;
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.1.",
        "0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[ff02::1]",
        "[2002:7f00:1::]",
        "user@hooks.example.com",
        "hooks.example.com:secret@127.0.0.1",
        "hooks.example.com@127.0.0.1",
        "127.0.0.1\\@hooks.example.com",
        "１２７.０.０.１",
    ] {
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://{host}:{port}/");
            let refused = app.api.post("/webhooks", json!({"url": url})).await;
            assert_eq!(refused.invalid_fields(), ["url"], "{url}");
            let refused = app.api.put(&format!("/webhooks/{webhook}"), json!({"url": url})).await;
            assert_eq!(refused.invalid_fields(), ["url"], "{url}");
        }
    }
    let refused = app.api.post("/webhooks", json!({"url": format!("http://localhost:{port}/")})).await;
    assert_eq!(refused.invalid_fields(), ["url"]);
    assert_eq!(receiver.connections(), 0);
    app.stop().await;
}

#[actix_web::test]
async fn a_name_that_resolves_to_an_internal_address_at_any_look_up_is_not_reached() {
    let names = Names::of(&[
        ("loopback.example.com", &[&["127.0.0.1"]]),
        ("private.example.com", &[&["10.0.0.1", "192.168.0.1", "172.16.3.4"]]),
        ("link.example.com", &[&["169.254.0.7", "fe80::1"]]),
        ("metadata.example.com", &[&["169.254.169.254", "fd00:ec2::254"]]),
        ("mapped.example.com", &[&["::ffff:127.0.0.1", "64:ff9b::7f00:1"]]),
        ("unspecified.example.com", &[&["0.0.0.0", "::"]]),
        // One address for a check, and another one for the connection.
        ("rebinding.example.com", &[&["127.0.0.1"], &["8.8.8.8"], &["127.0.0.1"]]),
    ]);
    let receiver = Receiver::start().await;
    let app = OwnApp::start_with(options_with(&[], names)).await;
    let port = receiver.address.port();
    let mut number = 0;
    for name in ["loopback", "private", "link", "metadata", "mapped", "unspecified", "rebinding"] {
        let webhook = add_webhook(&app.api, &format!("https://{name}.example.com:{port}/"), &["ticket.opened"]).await;
        let tested = app.api.post(&format!("/webhooks/{webhook}/test"), json!({})).await;
        let tested = tested.data(200).clone();
        assert_eq!((&tested["status"], &tested["body"]), (&Value::Null, &json!("")), "{name}");
        let error = "the URL is not allowed: its host resolves to a private network";
        assert_eq!(tested["error"], error, "{name}");
        if name == "rebinding" {
            // Whichever address the name has at this moment, nothing of this machine is reached.
            sqlx::query("delete from webhooks where id = $1").bind(webhook).execute(&app.db).await.expect("gone");
            continue;
        }
        number += 1;
        super::open_ticket(&app.api, &app.company, number).await;
        let pending = wait_for_retry(&app.api, webhook, 1).await;
        assert_eq!(pending[0]["attempts"][0]["error"], error, "{name}");
        app.api.delete(&format!("/webhooks/{webhook}")).await;
    }
    assert_eq!(receiver.connections(), 0, "an internal address was reached");
    app.stop().await;
}

#[actix_web::test]
async fn allowed_networks_are_reached_and_without_tls_only_this_machine() {
    let names = Names::of(&[("inside.example.com", &[&["127.0.0.1"]])]);
    let receiver = Receiver::start().await;
    let app = OwnApp::start_with(options_with(&["127.0.0.1/32", "10.0.0.0/8"], names)).await;
    let port = receiver.address.port();
    let webhook = add_webhook(&app.api, &receiver.url(), &[]).await;
    assert_eq!(app.api.post(&format!("/webhooks/{webhook}/test"), json!({})).await.data(200)["status"], 200);
    // Without TLS a name is refused, wherever it leads, and so is an address of another network.
    for url in
        [format!("http://inside.example.com:{port}/"), "http://10.0.0.1/".to_owned(), "http://127.0.0.2/".to_owned()]
    {
        let refused = app.api.post("/webhooks", json!({"url": url})).await;
        assert_eq!(refused.invalid_fields(), ["url"], "{url}");
    }
    let secured = app.api.post("/webhooks", json!({"url": "https://10.0.0.1/"})).await;
    assert_eq!(read_webhook(&app.api, id(secured.data(201))).await["url"], "https://10.0.0.1/");
    app.stop().await;
}

#[actix_web::test]
async fn a_redirect_to_an_internal_address_is_not_followed() {
    let inside = Receiver::start().await;
    let outside = Receiver::start_at("127.0.0.2:0").await;
    let app = OwnApp::start_with(options_with(&["127.0.0.2/32"], Names::of(&[]))).await;
    let webhook = add_webhook(&app.api, &outside.url(), &[]).await;
    for location in [inside.url(), "http://169.254.169.254/latest/meta-data/".to_owned(), "/hook2".to_owned()] {
        outside.behave(Conduct::Redirect(location.clone()));
        let tested = app.api.post(&format!("/webhooks/{webhook}/test"), json!({})).await;
        assert_eq!(tested.data(200)["status"], 307, "{location}");
        assert_eq!(tested.data(200)["delivered"], false);
    }
    assert_eq!((outside.count(), inside.connections()), (3, 0));
    app.stop().await;
}
