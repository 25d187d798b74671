//! The processes of a cluster within one process, with a fixed placement; their handlers report the requests they
//! received.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse};
use chrono::DateTime;
use futures_util::{SinkExt, StreamExt, stream};
use hotline_actors::Directory;
use hotline_persistence::cluster::{LifeId, Membership, Moment, Peer, Slot};
use hotline_persistence::tables::companies::CompanyRow;
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::tokens::TokenRow;
use hotline_persistence::{CompanyId, Ownership, TokenId, key};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use sqlx::types::Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::signed::{FORWARDED, Forwarded, Signer};
use super::{Around, Edge};
use crate::metrics::Metrics;
use crate::web::wire::{self, Limits, Listening};

const COMPANY: CompanyId = CompanyId::new(7);
const TOKEN: &str = "sk_live_abcdefghijklmnopqrstuvwxyz012345";
const SECRET: [u8; 64] = [7; 64];

/// A shorter wait than a service has, and long enough for a change of the placement.
const WAIT: Duration = Duration::from_secs(2);

/// One process of the cluster.
struct Node {
    membership: Arc<Membership>,
    ownership: Ownership,
    figures: Data<Metrics>,
    stopping: watch::Sender<bool>,
    world: Data<World>,
    public: SocketAddr,
    peers: SocketAddr,
}

/// The shared state of its handlers.
#[derive(Default)]
struct World {
    begun: AtomicUsize,
    go: Notify,
}

fn slot() -> Slot {
    Slot::of_new(COMPANY)
}

fn directory() -> Directory {
    let at = DateTime::UNIX_EPOCH;
    let company = CompanyRow {
        id: COMPANY,
        name: "Acme".to_owned(),
        active: true,
        api_enabled: true,
        rate_per_minute: None,
        time_zone: "UTC".to_owned(),
        stop_words: Vec::new(),
        second_factor_required: false,
        slot: slot(),
        created_at: at,
        updated_at: at,
    };
    let token = TokenRow {
        id: TokenId::new(1),
        company_id: COMPANY,
        name: "test".to_owned(),
        prefix: String::new(),
        hash: key::hash(TOKEN).to_vec(),
        permissions: Json(Default::default()),
        allowed_ips: Vec::new(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
        created_at: at,
        updated_at: at,
    };
    Directory::of([Organization {
        version: 0,
        company,
        tokens: vec![token],
        channels: Default::default(),
        queues: Default::default(),
        users: Default::default(),
        former_users: Default::default(),
        wrapup_types: Default::default(),
        global_variables: Default::default(),
    }])
}

impl Node {
    fn start(life: i64) -> Self {
        let membership = Arc::new(Membership::new(LifeId::new(life), format!("node-{life}"), SECRET));
        // Longer than any test takes.
        membership.lease.extend(Moment::now() + Duration::from_secs(3600));
        let ownership = Ownership::default();
        let figures = Data::new(Metrics::new(Vec::new()));
        let (stopping, stops) = watch::channel(false);
        let world: Data<World> = Data::default();
        let edge = Edge::new(membership.clone(), directory(), ownership.clone(), figures.clone(), stops).waiting(WAIT);
        let any = || wire::bind("127.0.0.1:0".parse().expect("address")).expect("a port");
        let listening = Listening {
            socket: any(),
            of_peers: Some(any()),
            workers: 1,
            drain: Duration::from_secs(1),
            limits: Limits::default(),
            proxies: Vec::new(),
        };
        let served = world.clone();
        let (public, peers, server) = wire::listen(listening, move |side| {
            let world = served.clone();
            Around::new(App::new().configure(move |services| routes(services, world)), Some(edge.clone()), side)
        })
        .expect("it listens");
        actix_web::rt::spawn(server);
        let peers = peers.expect("an address for peers");
        Self { membership, ownership, figures, stopping, world, public, peers }
    }

    fn peer(&self) -> Peer {
        Peer { life: self.membership.life, node: self.membership.node.clone(), address: self.peers.to_string() }
    }

    /// It serves the company itself.
    fn owns(&self) {
        self.membership.placement.open([slot()]);
    }

    /// It believes that `owner` serves the company.
    fn knows(&self, owner: &Peer) {
        self.membership.placement.replace([owner.clone()], |_| Some(owner.life));
    }

    fn begun(&self) -> usize {
        self.world.begun.load(Ordering::SeqCst)
    }

    async fn has_begun(&self, requests: usize) {
        until("requests have begun", || self.begun() >= requests).await;
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.public)
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// An edge that serves nothing, and an owner that serves everything.
fn pair() -> (Node, Node) {
    let (edge, owner) = (Node::start(1), Node::start(2));
    owner.owns();
    edge.knows(&owner.peer());
    (edge, owner)
}

fn routes(services: &mut web::ServiceConfig, world: Data<World>) {
    services
        .app_data(world)
        .app_data(web::PayloadConfig::new(8 << 20))
        .route("/api/v1/echo", web::to(echo))
        .route("/api/v1/status/{status}", web::to(status))
        .route("/api/v1/hang/{status}", web::to(hang))
        .route("/api/v1/large", web::to(large))
        .route("/api/v1/refuse", web::to(refuse))
        .route("/api/v1/events", web::to(events))
        .route("/api/v1/socket", web::get().to(socket))
        .route("/health/live", web::to(echo));
}

async fn echo(request: HttpRequest, world: Data<World>, body: Bytes) -> HttpResponse {
    world.begun.fetch_add(1, Ordering::SeqCst);
    let headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| json!([name.as_str(), value.to_str().unwrap_or_default()]))
        .collect();
    HttpResponse::Ok().insert_header(("x-answered", "yes")).json(json!({
        "method": request.method().as_str(),
        "target": request.uri().path_and_query().map(|target| target.as_str()),
        "headers": headers,
        "body": body.len(),
        "sum": body.iter().map(|byte| u64::from(*byte)).sum::<u64>(),
        "from": request.peer_addr().map(|peer| peer.to_string()),
    }))
}

async fn status(path: web::Path<u16>) -> HttpResponse {
    HttpResponse::build(StatusCode::from_u16(*path).expect("a status")).finish()
}

async fn hang(path: web::Path<u16>, world: Data<World>) -> HttpResponse {
    world.begun.fetch_add(1, Ordering::SeqCst);
    world.go.notified().await;
    HttpResponse::build(StatusCode::from_u16(*path).expect("a status")).body("done")
}

/// A body too large to be passed on at once, with or without a length.
async fn large(request: HttpRequest) -> HttpResponse {
    if request.query_string() == "sized" {
        return HttpResponse::Ok().body(vec![b'a'; 300_000]);
    }
    let chunks = (0..100).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'a'; 3000])));
    HttpResponse::Ok().streaming(stream::iter(chunks))
}

async fn refuse() -> HttpResponse {
    HttpResponse::PayloadTooLarge().body("too large")
}

/// Sends an event, and another one when notified.
async fn events(world: Data<World>) -> HttpResponse {
    let events = stream::unfold(0, move |number| {
        let world = world.clone();
        async move {
            if number > 0 {
                world.go.notified().await;
            }
            Some((Ok::<_, std::io::Error>(Bytes::from(format!("data: {number}\n\n"))), number + 1))
        }
    });
    HttpResponse::Ok().content_type("text/event-stream").streaming(events)
}

async fn socket(request: HttpRequest, payload: web::Payload) -> actix_web::Result<HttpResponse> {
    let (response, mut out, mut said) = actix_ws::handle(&request, payload)?;
    actix_web::rt::spawn(async move {
        while let Some(Ok(actix_ws::Message::Text(text))) = said.next().await {
            if text == "bye" {
                break;
            }
            if out.text(text).await.is_err() {
                return;
            }
        }
        let reason = actix_ws::CloseReason { code: actix_ws::CloseCode::Restart, description: None };
        let _ = out.close(Some(reason)).await;
    });
    Ok(response)
}

fn client() -> Client {
    crate::tls::client().timeout(Duration::from_secs(20)).build().expect("a client")
}

fn ask(client: &Client, method: Method, url: String) -> reqwest::RequestBuilder {
    client.request(method, url).bearer_auth(TOKEN)
}

#[actix_web::test]
async fn a_request_is_answered_by_the_owner_as_it_came() {
    let (edge, owner) = pair();
    let client = client();
    let body = vec![b'x'; 1000];
    let sent = ask(&client, Method::PUT, edge.url("/api/v1/echo?a=b%20c"))
        .header("x-request-id", "mine")
        .header("x-forwarded-for", "192.0.2.1")
        .header("hotline-forwarded", "2 203.0.113.9:1 00")
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .body(body.clone());
    let answer = sent.send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), &answer.headers()["x-answered"]), (200, &"yes".parse().expect("value")));
    assert!(!answer.headers().contains_key("transfer-encoding"));
    let seen: Value = answer.json().await.expect("JSON");
    assert_eq!((&seen["method"], &seen["target"]), (&json!("PUT"), &json!("/api/v1/echo?a=b%20c")));
    assert_eq!((seen["body"].as_u64(), seen["sum"].as_u64()), (Some(1000), Some(1000 * u64::from(b'x'))));
    let header = |name: &str| -> Vec<String> {
        let headers = seen["headers"].as_array().expect("headers").iter();
        headers.filter(|pair| pair[0] == name).map(|pair| pair[1].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(header("x-request-id"), ["mine"]);
    assert_eq!(header("x-forwarded-for"), ["192.0.2.1"]);
    assert_eq!(header("authorization"), [format!("Bearer {TOKEN}")]);
    assert_eq!(header("host"), [edge.public.to_string()]);
    assert_eq!((header("x-hop").len(), header("hotline-forwarded").len()), (0, 1));
    let from: SocketAddr = seen["from"].as_str().expect("an address").parse().expect("an address");
    assert_ne!(from.port(), owner.peers.port());
    assert!(header("hotline-forwarded")[0].starts_with(&format!("2 {from} ")), "its own word and nobody else's");
    assert_eq!((edge.begun(), owner.begun(), edge.figures.cluster.all_forwarded()), (0, 1, 1));

    let head = ask(&client, Method::HEAD, edge.url("/api/v1/large?sized")).send().await.expect("a head");
    assert_eq!(head.headers()["content-length"], "300000");
    for status in [204, 304, 404, 200] {
        let answer = ask(&client, Method::POST, edge.url(&format!("/api/v1/status/{status}"))).send().await;
        let answer = answer.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.bytes().await.expect("a body").len()), (status, 0));
    }
    let here = client.get(edge.url("/health/live")).send().await.expect("an answer");
    assert_eq!((here.status().as_u16(), edge.begun()), (200, 1), "what is nobody's is answered here");
    let stranger = client.get(edge.url("/api/v1/echo")).bearer_auth("sk_live_nobody").send().await.expect("an answer");
    assert_eq!((stranger.status().as_u16(), edge.begun()), (200, 2), "and so is a wrong token");
}

#[actix_web::test]
async fn bodies_of_any_size_go_through_and_a_refusal_comes_before_their_end() {
    let (edge, owner) = pair();
    let client = client();
    for bytes in [0_usize, 1, 65_536, 65_537, 1_000_000] {
        for is_chunked in [false, true] {
            let chunks: Vec<_> = vec![1_u8; bytes].chunks(10_000).map(Bytes::copy_from_slice).collect();
            let body = match is_chunked {
                true => reqwest::Body::wrap_stream(stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>))),
                false => reqwest::Body::from(vec![1_u8; bytes]),
            };
            let answer =
                ask(&client, Method::POST, edge.url("/api/v1/echo")).body(body).send().await.expect("an answer");
            let seen: Value = answer.json().await.expect("JSON");
            assert_eq!((seen["body"].as_u64(), seen["sum"].as_u64()), (Some(bytes as u64), Some(bytes as u64)));
        }
    }
    for query in ["sized", "chunked"] {
        let answer = ask(&client, Method::GET, edge.url(&format!("/api/v1/large?{query}"))).send().await;
        assert_eq!(answer.expect("an answer").bytes().await.expect("a body").len(), 300_000, "{query}");
    }
    assert_eq!(owner.begun(), 10);
    // Written by hand: no client continues to send after a refusal.
    let mut stream = TcpStream::connect(edge.public).await.expect("connected");
    let head = format!("POST /api/v1/refuse HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n");
    stream.write_all(format!("{head}content-length: 10000000\r\n\r\n").as_bytes()).await.expect("written");
    stream.write_all(&[b'x'; 100_000]).await.expect("written");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[actix_web::test]
async fn events_come_as_they_happen_and_end_with_their_owner() {
    let (edge, owner) = pair();
    let client = client();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let answer = ask(&client, Method::GET, edge.url("/api/v1/events")).send().await.expect("an answer");
        let mut events = answer.bytes_stream();
        assert_eq!(events.next().await.expect("an event").expect("bytes"), "data: 0\n\n");
        streams.push(events);
    }
    owner.world.go.notify_waiters();
    for events in &mut streams {
        assert_eq!(events.next().await.expect("an event").expect("bytes"), "data: 1\n\n");
    }
    let mut last = streams.pop().expect("a stream");
    edge.stopping.send_replace(true);
    assert!(last.next().await.is_none(), "a process that stops waits for no stream");
    edge.stopping.send_replace(false);
    drop((last, streams));
    let answer = ask(&client, Method::GET, edge.url("/api/v1/events")).send().await.expect("an answer");
    let mut events = answer.bytes_stream();
    assert!(events.next().await.is_some());
    edge.membership.placement.replace([], |_| None);
    assert!(events.next().await.is_none(), "its owner is no more");
}

#[actix_web::test]
async fn a_socket_goes_through_both_ways_and_is_closed_as_its_owner_closes_it() {
    let (edge, _owner) = pair();
    let mut request = format!("ws://{}/api/v1/socket", edge.public).into_client_request().expect("a request");
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().expect("a value"));
    let (mut socket, answer) = tokio_tungstenite::connect_async(request).await.expect("a socket");
    assert_eq!(answer.status(), 101);
    for text in ["one", "two"] {
        socket.send(Message::text(text)).await.expect("sent");
        assert_eq!(socket.next().await.expect("a frame").expect("a frame").into_text().expect("text"), text);
    }
    socket.send(Message::text("bye")).await.expect("sent");
    let Some(Ok(Message::Close(Some(reason)))) = socket.next().await else { panic!("not closed") };
    assert_eq!(u16::from(reason.code), 1012);
}

#[actix_web::test]
async fn a_request_waits_for_its_owner_and_begins_once() {
    let (edge, first) = pair();
    let second = Node::start(3);
    first.membership.placement.close([slot()]);
    let client = client();
    let asked = ask(&client, Method::POST, edge.url("/api/v1/echo")).body("abc").send();
    let asked = tokio::spawn(asked);
    until("the edge was told to look again", || edge.figures.cluster.all_waited() == 1).await;
    assert_eq!((first.begun(), edge.begun()), (0, 0));
    second.owns();
    edge.knows(&second.peer());
    let seen: Value = asked.await.expect("asked").expect("an answer").json().await.expect("JSON");
    assert_eq!((seen["body"].as_u64(), second.begun(), first.begun()), (Some(3), 1, 0));

    // The company moves to the edge itself, whose gate is closed for a while.
    let company = edge.ownership.close(COMPANY).await.expect("closed");
    second.membership.placement.close([slot()]);
    edge.owns();
    let asked = tokio::spawn(ask(&client, Method::POST, edge.url("/api/v1/echo")).body("abcd").send());
    until("it waits", || edge.figures.cluster.all_waited() == 2).await;
    assert_eq!(edge.begun(), 0);
    drop(company);
    let seen: Value = asked.await.expect("asked").expect("an answer").json().await.expect("JSON");
    assert_eq!((seen["body"].as_u64(), edge.begun()), (Some(4), 1));

    // There is no owner, or it cannot be reached: the client is told to retry.
    edge.membership.placement.close([slot()]);
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = gone.local_addr().expect("an address").to_string();
    drop(gone);
    for owner in [None, Some(Peer { life: LifeId::new(9), node: "gone".to_owned(), address })] {
        if let Some(owner) = &owner {
            edge.knows(owner);
        }
        let answer = ask(&client, Method::POST, edge.url("/api/v1/echo")).body("abc").send().await.expect("an answer");
        assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"1".parse().expect("value")));
        assert!(answer.headers().contains_key("x-request-id"));
        let body: Value = answer.json().await.expect("JSON");
        assert_eq!(body["error"]["code"], "ERR_API_UNAVAILABLE");
    }
}

/// A process that reads a request and disconnects without a response.
async fn mortal() -> (Peer, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let read = stream.read(&mut [0; 4096]).await;
            assert!(read.is_ok_and(|read| read > 0));
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    (Peer { life: LifeId::new(9), node: "mortal".to_owned(), address }, asked)
}

#[actix_web::test]
async fn what_may_have_begun_is_sent_again_only_where_that_is_safe() {
    let edge = Node::start(1);
    let heir = Node::start(3);
    heir.owns();
    let (mortal, asked) = mortal().await;
    let client = client();
    let path = "/api/v1/echo";
    edge.knows(&mortal);
    let lost = ask(&client, Method::POST, edge.url(path)).body("abc").send().await;
    assert!(lost.is_err(), "nobody knows, so nothing is said: {lost:?}");
    assert_eq!((asked.load(Ordering::SeqCst), edge.figures.cluster.all_cut()), (1, 1));
    for (method, key) in [(Method::GET, None), (Method::POST, Some("key"))] {
        edge.knows(&mortal);
        let before = asked.load(Ordering::SeqCst);
        let mut request = ask(&client, method.clone(), edge.url(path)).body("abc");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let sent = tokio::spawn(request.send());
        until("it was asked", || asked.load(Ordering::SeqCst) > before).await;
        edge.knows(&heir.peer());
        let seen: Value = sent.await.expect("asked").expect("an answer").json().await.expect("JSON");
        assert_eq!((&seen["method"], seen["body"].as_u64()), (&json!(method.as_str()), Some(3)));
    }
    assert_eq!(heir.begun(), 2);

    // A request that the next owner refuses for now may have been executed by the previous one.
    edge.knows(&mortal);
    let before = asked.load(Ordering::SeqCst);
    let request = ask(&client, Method::POST, edge.url(path)).header("idempotency-key", "other").body("abc");
    let sent = tokio::spawn(request.send());
    until("it was asked", || asked.load(Ordering::SeqCst) > before).await;
    heir.membership.lease.end();
    edge.knows(&heir.peer());
    assert!(sent.await.expect("asked").is_err(), "503 would say that nothing was changed");
    assert_eq!(heir.begun(), 2);
    heir.membership.lease.extend(Moment::now() + Duration::from_secs(3600));

    // A process that hangs is over once the others say so.
    let hanging = Node::start(5);
    hanging.owns();
    edge.knows(&hanging.peer());
    let sent = tokio::spawn(ask(&client, Method::GET, edge.url("/api/v1/hang/200")).send());
    let lost = tokio::spawn(ask(&client, Method::POST, edge.url("/api/v1/hang/200")).send());
    hanging.has_begun(2).await;
    edge.knows(&heir.peer());
    assert!(lost.await.expect("asked").is_err());
    heir.has_begun(3).await;
    heir.world.go.notify_one();
    assert_eq!(sent.await.expect("asked").expect("an answer").status().as_u16(), 200);
}

#[actix_web::test]
async fn nothing_is_shown_without_the_lease() {
    let node = Node::start(1);
    node.owns();
    let client = client();
    for (method, status, shown) in
        [(Method::GET, 200, Some(503)), (Method::POST, 409, Some(503)), (Method::POST, 201, None)]
    {
        node.membership.lease.extend(Moment::now() + Duration::from_secs(3600));
        let before = node.begun();
        let asked = tokio::spawn(ask(&client, method, node.url(&format!("/api/v1/hang/{status}"))).send());
        node.has_begun(before + 1).await;
        node.membership.lease.end();
        node.world.go.notify_one();
        let answer = asked.await.expect("asked");
        assert_eq!(answer.ok().map(|answer| answer.status().as_u16()), shown, "{status}");
    }
    let before = node.begun();
    let answer = ask(&client, Method::POST, node.url("/api/v1/echo")).send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), node.begun()), (503, before), "and nothing begins");
    let stranger = client.get(node.url("/api/v1/echo")).send().await.expect("an answer");
    assert_eq!(stranger.status().as_u16(), 503, "that a token is wrong is known from memory");
    let health = client.get(node.url("/health/live")).send().await.expect("an answer");
    assert_eq!(health.status().as_u16(), 200);
}

#[actix_web::test]
async fn a_stream_breaks_off_when_the_lease_does() {
    let node = Node::start(1);
    node.owns();
    let answer = ask(&client(), Method::GET, node.url("/api/v1/events")).send().await.expect("an answer");
    let mut events = answer.bytes_stream();
    assert!(events.next().await.is_some_and(|event| event.is_ok()));
    node.membership.lease.end();
    node.world.go.notify_waiters();
    assert!(events.next().await.is_none_or(|event| event.is_err()), "nothing more is shown");
}

#[actix_web::test]
async fn the_listener_for_peers_believes_peers_alone() {
    let (_, owner) = pair();
    let client = client();
    let url = |path: &str| format!("http://{}{path}", owner.peers);
    let asked = ask(&client, Method::GET, url("/api/v1/echo")).send().await.expect("an answer");
    assert_eq!((asked.status().as_u16(), owner.begun()), (403, 0), "nobody has said whose it is");
    let signed = |secret: [u8; 64], life: i64| {
        let mut head = actix_http::RequestHead::default();
        head.uri = "/api/v1/echo".parse().expect("a target");
        let peer = Some("203.0.113.9:4711".parse().expect("an address"));
        Signer::new(&secret).sign(&head, Forwarded { life: LifeId::new(life), peer })
    };
    for (secret, life, status) in [([8; 64], 2, 403), (SECRET, 3, 421), (SECRET, 2, 200)] {
        let request = ask(&client, Method::GET, url("/api/v1/echo")).header(FORWARDED.as_str(), signed(secret, life));
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), status, "{life}");
        if status == 200 {
            let seen: Value = answer.json().await.expect("JSON");
            assert_eq!(seen["from"], "203.0.113.9:4711");
        }
    }
    owner.membership.placement.close([slot()]);
    let request = ask(&client, Method::GET, url("/api/v1/echo")).header(FORWARDED.as_str(), signed(SECRET, 2));
    assert_eq!(request.send().await.expect("an answer").status().as_u16(), 421, "it is handed on once");
}
