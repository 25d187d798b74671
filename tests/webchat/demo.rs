//! The page of `hotline demo`, and settings of a webchat that are changed on the command line.

use std::time::{Duration, Instant};

use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::process::{Process, run};
use crate::support::template::prepared_folder;
use crate::support::{Reply, TestApp, eventually};
use crate::visitor::{Browser, Session};

/// Requests pages of the demo.
struct Demo {
    client: Client,
    base: String,
}

impl Demo {
    async fn get(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.base)).send().await.expect("answer")
    }
}

#[actix_web::test]
async fn the_demo_has_a_page_with_both_sides_and_the_settings_that_they_need() {
    let folder = prepared_folder();
    let (mut process, printed) = Process::demo(folder.path());
    let client = hotline::tls::client().redirect(Policy::none()).build().expect("client");
    let demo = Demo { client, base: format!("http://{}", process.address) };
    assert!(printed.contains(&format!("Open {}/ in a browser", demo.base)), "{printed}");
    for path in ["/", "/demo"] {
        let redirect = demo.get(path).await;
        assert_eq!(
            (redirect.status().as_u16(), &redirect.headers()["location"]),
            (302, &"/demo/".parse().expect("header"))
        );
    }
    for (file, kind) in [
        ("", "text/html"),
        ("demo.css", "text/css"),
        ("demo.js", "text/javascript"),
        ("mug-night.svg", "image/svg+xml"),
    ] {
        let shown = demo.get(&format!("/demo/{file}")).await;
        assert_eq!(shown.status(), 200, "{file}");
        assert!(shown.headers()["content-type"].to_str().expect("text").starts_with(kind), "{file}");
        let policy = shown.headers()["content-security-policy"].to_str().expect("text").to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(!shown.text().await.expect("text").is_empty(), "{file}");
    }
    assert_eq!(demo.get("/demo/other").await.status(), 404);

    let settings: Value = demo.get("/demo/settings.json").await.json().await.expect("json");
    let text = |name: &str| settings[name].as_str().unwrap_or_else(|| panic!("no {name}: {settings}")).to_owned();
    // A page of another site gets nothing, even if the site's name points to this address.
    let renamed = demo.client.get(format!("{}/demo/settings.json", demo.base)).header("host", "evil.example:80");
    assert_eq!(renamed.send().await.expect("answer").status(), 404);

    let browser = Browser::at(process.address, &text("publicKey")).from(&demo.base);
    let session = browser.open_unknown(json!({"name": "v"})).await;
    let mut socket = browser.socket(&session).await;
    let sent = browser.say(&session, "Is anybody there?").await;
    assert_eq!(socket.message().await["id"], sent["id"]);
    let api = crate::support::Api::new(process.address, &text("token"));
    let tickets = api.all(&format!("/tickets?status=open&channelId={}", settings["channelId"])).await;
    let ticket =
        tickets.iter().find(|ticket| ticket["lastMessage"]["id"] == sent["id"]).expect("the ticket")["id"].clone();
    api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "Yes!"})).await.data(202);
    assert_eq!(socket.message().await["body"], "Yes!");
    // The shop can identify one of its visitors, who has a contact already.
    let maria = Session::of(browser.try_open_as(&text("identity")).await.data(201));
    let sent = browser.say(&maria, "It is me").await;
    let tickets = api.all("/tickets?status=open").await;
    let maria_ticket =
        tickets.iter().find(|ticket| ticket["lastMessage"]["id"] == sent["id"]).expect("the ticket").clone();
    assert_eq!((&maria_ticket["contact"]["name"], &maria_ticket["verified"]), (&settings["visitor"], &json!(true)));
    assert_eq!(
        api.all(&format!("/tickets/{}/messages", maria_ticket["id"])).await.len(),
        2,
        "the message is not in her earlier conversation"
    );
    api.post(&format!("/tickets/{ticket}/close"), json!({"wrapupTypeId": settings["wrapupTypeId"]})).await.data(200);
    process.terminate();
    assert!(process.wait().success());
}

#[actix_web::test]
async fn a_service_that_is_not_a_demo_has_no_demo_page() {
    let app = TestApp::shared().await;
    for path in ["/", "/demo", "/demo/", "/demo/settings.json"] {
        Reply::of(app.api.anonymous(Method::GET, path)).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}

/// Sets the look of a webchat on the command line while a service runs. Returns how long the service took to show it.
async fn time_until_settings_take_effect() -> Duration {
    let folder = prepared_folder();
    let path = folder.path();
    let run_for_json = |arguments: &[&str]| -> Value {
        let output = run(path, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("json")
    };
    let mut process = Process::serve(path);
    let company = run_for_json(&["company", "create", "Acme", "--json"])["id"].to_string();
    let create = ["channel", "create", "Site", "--company", &company, "--type", "webchat", "--json"];
    let channel =
        run_for_json(&[&create[..], &["--allow-origin", "https://one.example", "--color", "#0f766e"]].concat());
    let browser = Browser::at(process.address, channel["publicKey"].as_str().expect("key"));
    let one = browser.from("https://one.example");
    let config = |browser: Browser| async move { Reply::of(browser.request(Method::GET, "/config")).await };
    eventually("the channel is served", || async { config(one.clone()).await.status == 200 }).await;
    assert_eq!(config(one.clone()).await.data(200)["color"], "#0f766e");
    one.try_open(json!({})).await.data(201);

    let id = channel["id"].to_string();
    let look = ["--color", "#7c3aed", "--title", "Ask us", "--greeting", "Hi", "--position", "left"];
    let rest = ["--pre-chat-field", "name", "--pre-chat-field", "number", "--allow-origin", "https://two.example"];
    run_for_json(&[&["channel", "update", &id, "--json"], &look[..], &rest[..]].concat());
    let changed = Instant::now();
    let two = browser.from("https://two.example");
    let expected = json!({"title": "Ask us", "color": "#7c3aed", "position": "left", "greeting": "Hi",
        "preChatFields": ["name", "number"], "identityRequired": false, "attachments": {"bytesMax": 16 * 1024 * 1024},
        "availability": {"now": false}});
    eventually("the new look is shown", || async { config(two.clone()).await.body["data"] == expected }).await;
    let took = changed.elapsed();
    one.try_open(json!({})).await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
    two.try_open(json!({})).await.data(201);
    process.terminate();
    assert!(process.wait().success());
    took
}

#[actix_web::test]
async fn settings_of_the_command_line_take_effect() {
    time_until_settings_take_effect().await;
}

#[actix_web::test]
async fn settings_of_the_command_line_take_effect_within_a_second_measured() {
    let took = time_until_settings_take_effect().await;
    assert!(took < Duration::from_secs(1), "it took {took:?}");
}
