//! Hotline behind nginx and Caddy, with the configurations of `packaging/`: what a browser and a program do works
//! through each, and neither lets a client claim another address. `make packaging` runs this; where a proxy is not
//! installed, it says so.

mod proxy;

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use hotline::cli::everything;
use hotline_persistence::Error;
use hotline_persistence::password::Password;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings};
use hotline_persistence::tables::people::{self, PersonId};
use hotline_persistence::tables::tokens::{self, NewToken};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::process::{Process, keys_of, with_database};
use crate::support::form::Form;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, PASSWORD, PATIENCE, Reader, Reply, eventually, patience};
use proxy::{Kind, Proxy};

/// The page of the shop with the widget.
const SHOP: &str = "https://shop.example";

/// How soon a proxy that does not buffer passes on an event. The stream's next comment, after 15 s, would push out a
/// buffered one.
const EVENT_TIME_MAX: Duration = Duration::from_secs(5);

/// Nearly the largest size of a file in a form.
const FILE_BYTES: usize = 15 << 20;

/// A service, and the proxy in front of it.
struct Site {
    process: Process,
    proxy: Proxy,
    /// The webchat's public key.
    channel_key: String,
    /// A token that is valid only from 203.0.113.9, which no client has.
    foreign_token: String,
    /// A token that is valid only from 127.0.0.5.
    bound_token: String,
    api: Api,
    _folder: tempfile::TempDir,
}

impl Site {
    /// `None` if this proxy is not installed.
    async fn open(kind: Kind, options: &[&str]) -> Option<Self> {
        if !kind.is_installed() {
            println!("{kind:?} is not installed, so nothing was tested: run `tools/setup proxies`");
            return None;
        }
        let folder = prepared_folder();
        let keys = keys_of(folder.path());
        let (company, channel_key, foreign_token, bound_token) = with_database(folder.path(), async |db| {
            let company = Company::create(db, "Acme").await;
            let allow = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Error> {
                settings.allowed_origins = vec![SHOP.to_owned()];
                Ok(())
            };
            let webchat =
                channels::update(db, &keys, company.id, company.webchat, allow).await.expect("the page is allowed");
            let hash = Password::parse(PASSWORD.to_owned()).expect("a password").hash().expect("a hash");
            let mut connection = db.acquire().await.expect("a connection");
            people::set_password(&mut connection, PersonId::User(company.id, company.ana), &hash).await.expect("set");
            let mut keys = Vec::new();
            for address in ["203.0.113.9", "127.0.0.5"] {
                let allowed_ips = vec![address.to_owned()];
                let new = NewToken { name: address, permissions: everything(), allowed_ips, expires_at: None };
                keys.push(tokens::insert(db, company.id, new).await.expect("a token").1);
            }
            let [foreign_token, bound_token] = <[String; 2]>::try_from(keys).expect("two");
            (company, webchat.public_key, foreign_token, bound_token)
        })
        .await;
        let process = Process::serve_with(folder.path(), options, &[]);
        let proxy = Proxy::start(kind, process.address).await;
        let api = proxy.api(&company.key);
        eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
        Some(Self { process, proxy, channel_key, foreign_token, bound_token, api, _folder: folder })
    }

    /// A sign-in at the panel's page, from a browser that sends only its origin.
    fn sign_in_request(&self, origin: &str, body: &Value) -> reqwest::RequestBuilder {
        self.api.anonymous(Method::POST, "/panel/api/v1/session").header("origin", origin).json(body)
    }

    async fn sign_in(&self, origin: &str) -> Reply {
        Reply::of(self.sign_in_request(origin, &json!({"email": "ana@example.com", "password": PASSWORD}))).await
    }

    /// A request of a visitor's browser.
    fn visitor(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let path = format!("/webchat/{}{path}", self.channel_key);
        self.api.anonymous(method, &path).header("origin", SHOP)
    }

    async fn check_sign_in(&self) {
        let signed_in = self.sign_in(&self.proxy.base).await;
        assert_eq!(signed_in.data(200)["state"], "open");
        let cookie = signed_in.headers["set-cookie"].to_str().expect("a cookie").to_owned();
        assert!(cookie.starts_with("__Host-hotline=") && cookie.ends_with("; Secure"), "{cookie}");
        let cookie = cookie.split(';').next().expect("the cookie").to_owned();
        let session = self.api.anonymous(Method::GET, "/panel/api/v1/session").header("cookie", cookie);
        assert_eq!(Reply::of(session).await.data(200)["person"]["name"], "Ana");
        self.sign_in("https://evil.example").await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
        let page = self.api.anonymous(Method::GET, "/panel/").send().await.expect("a page");
        assert_eq!(page.status(), 200);
        assert_eq!(page.headers()["strict-transport-security"], "max-age=31536000");
    }

    /// A visitor writes, and an answer reaches them through their socket; the ticket's id.
    async fn check_socket(&self) -> i64 {
        let opened = Reply::of(self.visitor(Method::POST, "/sessions").json(&json!({}))).await;
        let token = opened.data(201)["token"].as_str().expect("a token").to_owned();
        let sent = self.visitor(Method::POST, "/messages").bearer_auth(&token).json(&json!({"body": "Hello?"}));
        let sent = Reply::of(sent).await.data(201).clone();
        let handshake = self.visitor(Method::GET, "/socket").header("connection", "upgrade");
        let handshake = handshake.header("upgrade", "websocket").header("sec-websocket-version", "13");
        let handshake = handshake.header("sec-websocket-key", generate_key());
        let handshake = handshake.header("sec-websocket-protocol", format!("hotline.v1, {token}"));
        let response = handshake.send().await.expect("a response");
        assert_eq!(response.status(), 101, "{}", self.proxy.log());
        let upgraded = response.upgrade().await.expect("a socket");
        let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
        socket.send(Message::text(json!({"type": "after", "id": sent["id"]}).to_string())).await.expect("a frame");
        let ticket = self.api.get("/tickets?status=open").await.data(200)[0]["id"].as_i64().expect("a ticket");
        let answer = json!({"ticketId": ticket, "type": "text", "body": "Yes, how can I help?"});
        self.api.post("/messages", answer).await.data(202);
        let pushed = async {
            loop {
                let frame = socket.next().await.expect("the socket stays open").expect("a frame");
                let frame: Value = serde_json::from_str(frame.to_text().expect("text")).unwrap_or_default();
                if frame["type"] == "message" {
                    return frame["message"]["body"].clone();
                }
            }
        };
        let pushed = timeout(patience(PATIENCE), pushed).await.expect("a message in time");
        assert_eq!(pushed, "Yes, how can I help?");
        ticket
    }

    async fn check_event_stream(&self) {
        // The statuses of earlier messages may still come.
        let mut stream = Reader::open(&self.api, "?types=contact.created", None).await;
        let created_at = Instant::now();
        self.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
        let event = stream.next().await.expect("an event");
        assert_eq!((&event["type"], &event["data"]["name"]), (&json!("contact.created"), &json!("Maria")));
        assert!(created_at.elapsed() < patience(EVENT_TIME_MAX), "after {:?}", created_at.elapsed());
        // A request that waits for longer than proxies are used to.
        let last = event["id"].as_i64().expect("an id");
        let waited = self.api.get(&format!("/events?types=contact.created&after={last}&wait=30")).await;
        assert_eq!(waited.data(200), &json!([]));
    }

    async fn check_upload(&self, ticket: i64) {
        let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
        picture.resize(FILE_BYTES, 0x5a);
        let form = Form::default().text("type", "media").text("ticketId", ticket);
        self.api.send_form(form.file("a.png", "image/png", &picture)).await.data(202);
        let messages = self.api.all("/messages?type=media").await;
        let url = messages[0]["media"]["url"].as_str().expect("an address");
        assert!(url.starts_with(&format!("{}/media/", self.proxy.base)), "{url} is not an address of the proxy");
        let file = self.api.anonymous(Method::GET, url).send().await.expect("a file").bytes().await.expect("all of it");
        assert!(file == picture, "{} bytes of {}", file.len(), picture.len());
    }

    /// A token works from the address that it is bound to, and a client cannot name another address.
    async fn check_bound_tokens(&self) {
        for forged in [None, Some("203.0.113.9"), Some("203.0.113.9, 127.0.0.1")] {
            let api = self.api.with_key(&self.foreign_token);
            let request = api.request(Method::GET, "/channels");
            let request = forged.into_iter().fold(request, |request, named| request.header("x-forwarded-for", named));
            let refused = Reply::of(request).await;
            assert!([401, 403].contains(&refused.status.as_u16()), "{forged:?}: {}", refused.body);
        }
        let here = self.proxy.api_from("127.0.0.5", &self.bound_token);
        here.get("/channels").await.data(200);
        let refused = self.api.with_key(&self.bound_token).get("/channels").await;
        assert!([401, 403].contains(&refused.status.as_u16()), "{}", refused.body);
    }
}

/// Checks everything through one proxy.
async fn check_all(kind: Kind) {
    let Some(site) = Site::open(kind, &["--trusted-proxy", "127.0.0.1"]).await else { return };
    site.check_sign_in().await;
    let ticket = site.check_socket().await;
    site.check_event_stream().await;
    site.check_upload(ticket).await;
    site.check_bound_tokens().await;
    let http = site.proxy.redirect_target().await;
    assert!(http.starts_with("https://localhost"), "{http}");
    site.process.terminate();
}

#[actix_web::test]
#[ignore = "make packaging"]
async fn everything_works_behind_nginx() {
    check_all(Kind::Nginx).await;
}

#[actix_web::test]
#[ignore = "make packaging"]
async fn everything_works_behind_caddy() {
    check_all(Kind::Caddy).await;
}

#[actix_web::test]
#[ignore = "make packaging"]
async fn a_proxy_that_is_not_trusted_is_named_when_the_panel_refuses_unless_the_public_url_is_the_page() {
    let Some(site) = Site::open(Kind::Nginx, &[]).await else { return };
    let refused = site.sign_in(&site.proxy.base).await;
    refused.error(403, "ERR_API_FORBIDDEN_ORIGIN");
    let message = refused.body["error"]["message"].as_str().expect("a message");
    assert!(message.contains("`--trusted-proxy` must include the address of the proxy"), "{message}");
    drop(site);
    let Some(site) = Site::open(Kind::Nginx, &["--public-url", "https://support.example"]).await else { return };
    assert_eq!(site.sign_in("https://support.example").await.data(200)["state"], "open");
    site.sign_in("https://other.example").await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
}
