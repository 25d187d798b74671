//! A visitor's browser.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use hotline::visitors::identity;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, Secret};
use hotline_persistence::{ChannelId, CompanyId, Error, PgPool};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::support::service::refresh;
use crate::support::{Company, PATIENCE, Reply, TestApp, keys, patience};

/// The pause before a refused request is repeated.
pub const PAUSE: Duration = Duration::from_millis(20);

/// How long a client waits for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a socket may take to send `after`, which names the last message that the visitor has.
pub const AFTER_TIME_MAX: Duration = Duration::from_secs(10);

/// The page visitors are on.
pub const PAGE: &str = "https://shop.example";

/// The secret with which the website's server signs its visitors' identities.
pub const SECRET: &str = "ids_of the shop's own server, which no browser sees";

/// An identity as the website's server signs it, valid for an hour.
pub fn signed(external_id: &str, more: Value) -> String {
    let mut claims = json!({"sub": external_id, "exp": hotline_actors::clock::now().timestamp() + 3600});
    claims.as_object_mut().expect("object").extend(more.as_object().cloned().unwrap_or_default());
    sign_with(SECRET, &claims)
}

pub fn sign_with(secret: &str, claims: &Value) -> String {
    identity::sign(&Secret(secret.to_owned()), claims).expect("signed")
}

/// A browser on a page with the widget.
#[derive(Clone)]
pub struct Browser {
    client: Client,
    pub address: SocketAddr,
    /// The public key of the channel.
    pub key: String,
    pub origin: String,
}

/// What a browser keeps of its session.
#[derive(Clone, Debug)]
pub struct Session {
    pub id: String,
    pub token: String,
}

impl Session {
    /// The session in the response to its opening.
    pub fn of(opened: &Value) -> Self {
        let text = |name: &str| opened[name].as_str().unwrap_or_else(|| panic!("no {name}: {opened}")).to_owned();
        Self { id: text("id"), token: text("token") }
    }
}

/// Lets the page embed the channel. Returns the channel's public key.
pub async fn embed(db: &PgPool, keys: &Keyring, company: CompanyId, channel: ChannelId) -> String {
    let allow = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Error> {
        settings.allowed_origins = vec![PAGE.to_owned()];
        settings.identity_secrets = vec![Secret(SECRET.to_owned())];
        Ok(())
    };
    channels::update(db, keys, company, channel, allow).await.expect("the channel is changed").public_key
}

impl Browser {
    /// On a page that embeds the webchat of the test's company.
    pub async fn of(app: &TestApp) -> Self {
        Self::on(app, &app.company, app.company.webchat).await
    }

    /// On a page that embeds another webchat.
    pub async fn on(app: &TestApp, company: &Company, channel: ChannelId) -> Self {
        let key = embed(&app.db, &keys(), company.id, channel).await;
        refresh(&app.api, company).await;
        Self::at(app.address, &key)
    }

    /// On a page that embeds the webchat with this key.
    pub fn at(address: SocketAddr, key: &str) -> Self {
        let client = hotline::tls::client().timeout(patience(ANSWER_TIME_MAX)).pool_max_idle_per_host(64).build();
        Self { client: client.expect("client"), address, key: key.to_owned(), origin: PAGE.to_owned() }
    }

    /// The same browser, on another page.
    pub fn from(&self, origin: &str) -> Self {
        Self { origin: origin.to_owned(), ..self.clone() }
    }

    /// A request to the webchat, without an origin.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}/webchat/{}{path}", self.address, self.key))
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).header("origin", &self.origin)
    }

    pub fn with(&self, session: &Session, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).bearer_auth(&session.token)
    }

    pub async fn get(&self, session: &Session, path: &str) -> Reply {
        Reply::of(self.with(session, Method::GET, path)).await
    }

    pub async fn post(&self, session: &Session, path: &str, body: Value) -> Reply {
        Reply::of(self.with(session, Method::POST, path).json(&body)).await
    }

    pub async fn try_open(&self, visitor: Value) -> Reply {
        Reply::of(self.request(Method::POST, "/sessions").json(&json!({"visitor": visitor}))).await
    }

    /// Opens a session with this identity.
    pub async fn try_open_as(&self, identity: &str) -> Reply {
        Reply::of(self.request(Method::POST, "/sessions").json(&json!({"identity": identity}))).await
    }

    /// A session of a visitor whom the website knows by this external id, which is also their name.
    pub async fn open(&self, external_id: &str) -> Session {
        let body = json!({"identity": signed(external_id, json!({"name": external_id}))});
        let opened = Reply::retried_while_busy(|| self.request(Method::POST, "/sessions").json(&body)).await;
        Session::of(opened.data(201))
    }

    /// Another session of a visitor who may have one already, opened with the company's token.
    pub async fn open_beside(app: &TestApp, external_id: &str) -> Session {
        let visitor = json!({"name": external_id, "externalId": external_id});
        let open = json!({"channelId": app.company.webchat, "visitor": visitor});
        Session::of(app.api.post("/webchat/sessions", open).await.data(201))
    }

    /// A session of a visitor with these claims, and without an identity.
    pub async fn open_unknown(&self, visitor: Value) -> Session {
        let body = json!({"visitor": visitor});
        let opened = Reply::retried_while_busy(|| self.request(Method::POST, "/sessions").json(&body)).await;
        Session::of(opened.data(201))
    }

    /// Identifies the visitor of an open session.
    pub async fn identify(&self, session: &Session, identity: &str) -> Reply {
        let body = json!({"identity": identity});
        Reply::retried_while_busy(|| self.with(session, Method::POST, "/identify").json(&body)).await
    }

    /// Sends a text. Returns the message as the service shows it.
    pub async fn say(&self, session: &Session, body: &str) -> Value {
        let body = json!({"body": body});
        let sent = Reply::retried_while_busy(|| self.with(session, Method::POST, "/messages").json(&body)).await;
        sent.data(201).clone()
    }

    /// The handshake of a socket.
    pub fn handshake(&self, token: Option<&str>) -> Request {
        let url = format!("ws://{}/webchat/{}/socket", self.address, self.key);
        let mut request = url.into_client_request().expect("request");
        let header = |text: &str| HeaderValue::from_str(text).expect("header");
        request.headers_mut().insert("origin", header(&self.origin));
        let protocols = token.map_or_else(|| "hotline.v1".to_owned(), |token| format!("hotline.v1, {token}"));
        request.headers_mut().insert("sec-websocket-protocol", header(&protocols));
        request
    }

    /// Opens a socket. The error is the status and the body of the refusal.
    pub async fn try_socket(&self, token: &str) -> Result<Socket, (u16, Value)> {
        Socket::open(self.address, self.handshake(Some(token)), None).await
    }

    /// Opens a socket once there is room for one: broken sockets count until the service has seen their end.
    pub async fn socket_with_room(&self, token: &str) -> Result<Socket, (u16, Value)> {
        let deadline = Instant::now() + patience(PATIENCE);
        loop {
            let is_late = Instant::now() >= deadline;
            match self.try_socket(token).await {
                Err((429, _)) if !is_late => tokio::time::sleep(PAUSE).await,
                opened => return opened,
            }
        }
    }

    /// A socket that has received `hello`.
    pub async fn raw_socket(&self, session: &Session) -> Socket {
        let opened = self.socket_with_room(&session.token).await;
        let mut socket = opened.unwrap_or_else(|refused| panic!("refused: {refused:?}"));
        let hello = socket.next().await;
        assert_eq!((&hello["type"], &hello["session"]["id"]), (&json!("hello"), &json!(session.id)), "{hello}");
        socket
    }

    /// A socket that is caught up from `after` on, and its frames after `hello` up to and including `caughtUp`.
    pub async fn frames_after(&self, session: &Session, after: Option<i64>) -> (Socket, Vec<Value>) {
        loop {
            let mut socket = self.raw_socket(session).await;
            let is_sent = socket.try_send(json!({"type": "after", "id": after})).await;
            let is_late = socket.is_late();
            match socket.frames_until("caughtUp").await {
                Ok(frames) => return (socket, frames),
                // The service has closed the socket because this test was too slow. A browser opens another one, too.
                Err(_) if is_late => {}
                Err(code) => panic!("closed: {code:?}, `after` was sent: {is_sent}"),
            }
        }
    }

    /// A socket that is caught up from `after` on, and the messages that it was shown meanwhile.
    pub async fn socket_after(&self, session: &Session, after: Option<i64>) -> (Socket, Vec<Value>) {
        let (socket, frames) = self.frames_after(session, after).await;
        let shown = frames.iter().filter(|frame| frame["type"] == "message").map(|frame| frame["message"].clone());
        (socket, shown.collect())
    }

    /// A socket of a visitor who has seen nothing yet, caught up, that answers no pings: the answers to many that
    /// have piled up would be more frames than a socket may send.
    pub async fn mute_socket(&self, session: &Session) -> Socket {
        let mut socket = self.raw_socket(session).await;
        socket.answers_pings = false;
        socket.send(json!({"type": "after", "id": null})).await;
        socket.next_of("caughtUp").await;
        socket
    }

    /// A socket of a visitor who has seen nothing yet, caught up.
    pub async fn socket(&self, session: &Session) -> Socket {
        self.socket_after(session, None).await.0
    }
}

/// An open socket.
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
    /// When its opening began.
    begun_at: Instant,
    /// Whether the socket answers pings itself, as a browser does, instead of returning them as frames.
    pub answers_pings: bool,
}

impl Socket {
    /// Opens a socket, with a receive window of this size if one is given. The error is the status and the body of the
    /// refusal, or 0 and `null` if there was no answer.
    pub async fn open(
        address: SocketAddr,
        handshake: Request,
        window_bytes: Option<u32>,
    ) -> Result<Self, (u16, Value)> {
        const NO_ANSWER: (u16, Value) = (0, Value::Null);
        let begun_at = Instant::now();
        let socket = TcpSocket::new_v4().expect("socket");
        if let Some(bytes) = window_bytes {
            socket.set_recv_buffer_size(bytes).expect("window");
        }
        let stream = socket.connect(address).await.map_err(|_| NO_ANSWER)?;
        match tokio_tungstenite::client_async(handshake, stream).await {
            Ok((stream, response)) => {
                assert_eq!(response.headers()["sec-websocket-protocol"], "hotline.v1");
                Ok(Self { stream, begun_at, answers_pings: true })
            }
            Err(tungstenite::Error::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                Err((response.status().as_u16(), serde_json::from_slice(body).unwrap_or_default()))
            }
            Err(_) => Err(NO_ANSWER),
        }
    }

    /// Whether a first frame that is sent now may be too late: then the service closes the socket.
    pub fn is_late(&self) -> bool {
        self.begun_at.elapsed() >= AFTER_TIME_MAX
    }

    pub async fn try_send(&mut self, frame: Value) -> bool {
        self.stream.send(Message::text(frame.to_string())).await.is_ok()
    }

    pub async fn send(&mut self, frame: Value) {
        self.send_raw(Message::text(frame.to_string())).await;
    }

    pub async fn send_raw(&mut self, message: Message) {
        self.stream.send(message).await.expect("the socket takes a frame");
    }

    /// The next frame, or the code the socket was closed with, which is `None` if it broke.
    pub async fn next_or_end(&mut self) -> Result<Value, Option<u16>> {
        loop {
            let next = timeout(patience(PATIENCE), self.stream.next()).await.expect("a frame in time");
            match next {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).expect("a frame is JSON");
                    if !self.answers_pings || frame["type"] != "ping" {
                        return Ok(frame);
                    }
                    self.try_send(json!({"type": "pong"})).await;
                }
                Some(Ok(Message::Close(frame))) => return Err(frame.map(|frame| frame.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// The next frame.
    pub async fn next(&mut self) -> Value {
        self.next_or_end().await.unwrap_or_else(|code| panic!("closed: {code:?}"))
    }

    /// The frames up to the next one of this type. The error is the code, if the socket is closed before.
    async fn frames_until(&mut self, kind: &str) -> Result<Vec<Value>, Option<u16>> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next_or_end().await?;
            let is_last = frame["type"] == kind;
            frames.push(frame);
            if is_last {
                return Ok(frames);
            }
        }
    }

    /// The next frame of this type; those before it are skipped.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        let next = async {
            loop {
                let frame = self.next().await;
                if frame["type"] == kind {
                    return frame;
                }
            }
        };
        timeout(patience(PATIENCE), next).await.unwrap_or_else(|_| panic!("no frame of type {kind} in time"))
    }

    /// The next message.
    pub async fn message(&mut self) -> Value {
        self.next_of("message").await["message"].clone()
    }

    /// All frames until the socket is closed, and the code of the close.
    pub async fn frames_until_closed(&mut self) -> (Vec<Value>, Option<u16>) {
        let mut frames = Vec::new();
        loop {
            match self.next_or_end().await {
                Ok(frame) => frames.push(frame),
                Err(code) => return (frames, code),
            }
        }
    }

    /// Waits until the socket is closed. Returns the code of the close.
    pub async fn close_code(&mut self) -> Option<u16> {
        self.frames_until_closed().await.1
    }
}
