//! [`Outbound`], tested against servers on this machine: none of them may be reached unless it is allowed.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A resolver with predefined answers for each name: every look-up takes the next one, and the last one is repeated.
#[derive(Default)]
struct FakeLookup {
    answers: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    lookups: AtomicUsize,
}

impl FakeLookup {
    fn of(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let parse = |text: &&str| text.parse().expect("an address");
        let answers = names.iter().map(|(name, responses)| {
            ((*name).to_owned(), responses.iter().map(|response| response.iter().map(parse).collect()).collect())
        });
        Arc::new(Self { answers: Mutex::new(answers.collect()), lookups: AtomicUsize::new(0) })
    }
}

impl Lookup for FakeLookup {
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock();
        let responses = answers.get_mut(name);
        let response = responses.map(|responses| match responses.len() {
            1 => responses[0].clone(),
            _ => responses.pop_front().unwrap_or_default(),
        });
        Box::pin(async move { response.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

/// A resolver that fails with a text of this many characters.
struct VerboseFailure(usize);

impl Lookup for VerboseFailure {
    fn addresses(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let result: io::Result<Vec<IpAddr>> = Err(io::Error::other("é".repeat(self.0)));
        Box::pin(std::future::ready(result))
    }
}

/// A server that gives every request the same response, and records the requests.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(response: impl Into<String>) -> Self {
        Self::start_at("127.0.0.1", response).await
    }

    async fn start_at(address: &str, response: impl Into<String>) -> Self {
        let listener = TcpListener::bind((address, 0)).await.expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (response, received): (String, _) = (response.into(), heads.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (response, received) = (response.clone(), received.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.is_ok_and(|read| read > 0) {
                        head.push(byte[0]);
                    }
                    received.lock().push(String::from_utf8_lossy(&head).into_owned());
                    drop(stream.write_all(response.as_bytes()).await);
                });
            }
        });
        Self { port, heads }
    }

    fn requests(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

const SECRET_RESPONSE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret";

fn outbound_to_public(lookup: Arc<FakeLookup>) -> Outbound {
    Outbound::with_lookup(&OutboundOptions::default(), lookup).expect("a client")
}

fn outbound_allowing(networks: &[&str], lookup: Arc<FakeLookup>) -> Outbound {
    let allowed_networks = networks.iter().map(|network| network.parse().expect("a network")).collect();
    let options = OutboundOptions { allowed_networks, ..OutboundOptions::default() };
    Outbound::with_lookup(&options, lookup).expect("a client")
}

async fn get_error(outbound: &Outbound, url: &str) -> OutboundError {
    outbound.get(url, Some("token")).await.map(|response| response.status()).expect_err(url)
}

#[tokio::test]
async fn no_spelling_of_an_address_of_this_machine_is_reached() {
    let server = Server::start(SECRET_RESPONSE).await;
    let (outbound, port) = (outbound_to_public(FakeLookup::of(&[])), server.port);
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "%31%32%37.0.0.1",
        "１２７.０.０.１",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ] {
        for scheme in ["https", "http", "HTTPS"] {
            let error = get_error(&outbound, &format!("{scheme}://{host}:{port}/metrics")).await;
            assert!(matches!(error, OutboundError::Forbidden(_)), "{scheme}://{host}: {error}");
        }
    }
    assert_eq!(server.requests(), [""; 0]);
}

#[tokio::test]
async fn only_https_urls_without_credentials_are_called() {
    let lookup = FakeLookup::of(&[("public.example", &[&["93.184.215.14"]])]);
    let outbound = outbound_to_public(lookup.clone());
    let long = format!("https://public.example/{}", "a".repeat(URL_BYTES_MAX));
    for url in [
        "",
        "public.example",
        "//public.example/",
        "file:///etc/passwd",
        "ftp://public.example/",
        "gopher://public.example/",
        "data:text/plain,a",
        "https://",
        "http://public.example/",
        "https://user@public.example/",
        "https://user:secret@public.example/",
        "https://public.example@127.0.0.1/",
        "https://:secret@public.example/",
        "https://[::1",
        "https://a b/",
        &long,
    ] {
        let error = get_error(&outbound, url).await;
        assert!(matches!(error, OutboundError::Forbidden(_)), "{url}: {error}");
    }
    assert_eq!(lookup.lookups.load(Ordering::Relaxed), 0, "a name was looked up");
}

#[tokio::test]
async fn a_host_that_resolves_to_a_private_address_is_refused() {
    let server = Server::start(SECRET_RESPONSE).await;
    let private = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1", "64:ff9b::7f00:1"];
    for address in private {
        let outbound = outbound_to_public(FakeLookup::of(&[("inside.example", &[&[address]])]));
        let error = get_error(&outbound, &format!("https://inside.example:{}/", server.port)).await;
        assert!(matches!(error, OutboundError::Forbidden(_)), "{address}: {error}");
    }
    // An unknown name is not forbidden: it may exist later.
    let error = get_error(&outbound_to_public(FakeLookup::of(&[])), "https://nobody.example/").await;
    assert!(matches!(error, OutboundError::Unreachable(_)), "{error}");
    assert_eq!(server.requests(), [""; 0]);
}

/// A name is resolved once per connection, and the connection goes to the checked address. A different answer the next
/// time is checked again.
#[tokio::test]
async fn a_name_that_resolves_differently_is_checked_again() {
    let server = Server::start(SECRET_RESPONSE).await;
    // An allowed and a forbidden part of loopback stand for public and private: all that matters is that one is
    // permitted.
    let lookup = FakeLookup::of(&[("rebinds.example", &[&["127.0.0.2"], &["127.0.0.1"]])]);
    let outbound = outbound_allowing(&["127.0.0.2/32"], lookup.clone());
    let url = format!("http://rebinds.example:{}/", server.port);
    let first = get_error(&outbound, &url).await;
    assert!(matches!(first, OutboundError::Unreachable(_)), "no server listens at 127.0.0.2: {first}");
    assert_eq!(lookup.lookups.load(Ordering::Relaxed), 1, "one look-up for one connection");
    let second = get_error(&outbound, &url).await;
    assert!(matches!(second, OutboundError::Forbidden(_)), "{second}");
    // Of several addresses only the permitted ones are tried.
    let both =
        outbound_allowing(&["127.0.0.2/32"], FakeLookup::of(&[("both.example", &[&["127.0.0.1", "127.0.0.2"]])]));
    let error = get_error(&both, &format!("http://both.example:{}/", server.port)).await;
    assert!(matches!(error, OutboundError::Unreachable(_)), "{error}");
    assert_eq!(server.requests(), [""; 0]);
}

#[tokio::test]
async fn a_redirect_is_checked_like_the_first_url() {
    let inside_server = Server::start(SECRET_RESPONSE).await;
    let lookup = || FakeLookup::of(&[("cdn.example", &[&["127.0.0.9"]]), ("inside.example", &[&["127.0.0.1"]])]);
    for target in [
        format!("http://127.0.0.1:{}/metrics", inside_server.port),
        format!("http://0x7f.1:{}/metrics", inside_server.port),
        format!("http://inside.example:{}/metrics", inside_server.port),
        format!("http://user@127.0.0.9:{}/", inside_server.port),
        "file:///etc/passwd".to_owned(),
        "http://[::1".to_owned(),
    ] {
        let redirect = format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
        let outside_server = Server::start_at("127.0.0.9", redirect).await;
        let url = format!("http://cdn.example:{}/", outside_server.port);
        let error = get_error(&outbound_allowing(&["127.0.0.9/32"], lookup()), &url).await;
        assert!(matches!(error, OutboundError::Forbidden(_)), "{target}: {error}");
        assert_eq!(outside_server.requests().len(), 1);
    }
    assert_eq!(inside_server.requests(), [""; 0]);
}

#[tokio::test]
async fn redirects_are_limited_and_a_token_is_sent_only_to_its_origin() {
    let looping_server = Server::start("HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n").await;
    let lookup = || FakeLookup::of(&[("a.example", &[&["127.0.0.1"]]), ("b.example", &[&["127.0.0.1"]])]);
    let outbound = outbound_allowing(&["127.0.0.0/8"], lookup());
    let error = get_error(&outbound, &format!("http://a.example:{}/", looping_server.port)).await;
    assert!(matches!(error, OutboundError::Unreachable(_)), "{error}");
    let heads = looping_server.requests();
    assert_eq!(heads.len(), REDIRECTS_MAX + 1);
    assert!(heads.iter().all(|head| head.contains("authorization: Bearer token")), "{heads:?}");

    let file_server = Server::start(SECRET_RESPONSE).await;
    let location = format!("http://b.example:{}/file", file_server.port);
    let redirect = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    let first_server = Server::start(redirect).await;
    let url = format!("http://a.example:{}/", first_server.port);
    let response = outbound.get(&url, Some("token")).await.expect("an answer");
    assert_eq!(response.text().await.expect("a body"), "secret");
    assert!(first_server.requests()[0].contains("authorization: Bearer token"));
    assert!(!file_server.requests()[0].contains("authorization"), "{:?}", file_server.requests());
}

#[tokio::test]
async fn a_failed_response_yields_its_status_and_its_body_is_not_read() {
    // The response declares a huge length.
    let server = Server::start("HTTP/1.1 404 Not Found\r\ncontent-length: 9999999999999\r\n\r\n").await;
    let outbound = outbound_allowing(&["127.0.0.1/32"], FakeLookup::of(&[]));
    let error = get_error(&outbound, &format!("http://127.0.0.1:{}/", server.port)).await;
    assert_eq!(error, OutboundError::Status(404));
}

#[tokio::test]
async fn a_response_that_stalls_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        assert!(stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0), "no request");
        // All but the last byte; the connection stays open.
        stream.write_all(SECRET_RESPONSE.trim_end_matches('t').as_bytes()).await.expect("most of it");
        std::future::pending::<()>().await;
    });
    let allowed_networks = vec!["127.0.0.1/32".parse().expect("a network")];
    // However busy the machine is, the response begins in time.
    let options = OutboundOptions { allowed_networks, call_time_max: Duration::from_secs(3600) };
    let outbound = Outbound::with_lookup(&options, FakeLookup::of(&[])).expect("a client");
    let response = outbound.get(&format!("http://127.0.0.1:{port}/"), None).await.expect("an answer");
    // From here on, the clock jumps to the next timer as soon as nothing else is left to do.
    tokio::time::pause();
    let error = response.bytes().await.expect_err("the last byte never comes");
    assert!(error.is_timeout(), "{error}");
    server.abort();
}

#[tokio::test]
async fn the_text_of_a_failure_is_bounded() {
    for (characters, expected) in [(FAILURE_CHARACTERS_MAX, 300), (10_000, 300), (7, 7)] {
        let lookup = Arc::new(VerboseFailure(characters));
        let outbound = Outbound::with_lookup(&OutboundOptions::default(), lookup).expect("a client");
        let error = get_error(&outbound, "https://verbose.example/").await;
        assert_eq!(error, OutboundError::Unreachable("é".repeat(expected)));
    }
}
