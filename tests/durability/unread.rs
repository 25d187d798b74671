//! Clients that request every route and read none of the responses: the process keeps little in memory, and other
//! clients are served as before.

use std::net::SocketAddr;

use hotline_persistence::Error;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::process::{Process, keys_of, with_database};
use crate::support::form::Form;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, PASSWORD, Reply, eventually};

const MIB: u64 = 1024 * 1024;

/// How much memory unread responses of all clients may add to the process.
const GROWTH_BYTES_MAX: u64 = 64 * MIB;

/// The number of messages, and of characters in each: a page of them is 3.6 MiB, and hardly smaller when compressed.
const MESSAGES: usize = 60;
const CHARACTERS: usize = 60_000;

/// Connections to each path, and to each path with a large response.
const CONNECTIONS: usize = 2;
const CONNECTIONS_IF_LARGE: usize = 24;

/// The size of the file that is read.
const FILE_BYTES: usize = 4 * MIB as usize;

/// Sockets of the visitor's session: as many as it may have. Each asks for all messages.
const SOCKETS: usize = 10;

/// Requests that each connection sends: the system buffers the first responses if they are small.
const REQUESTS: usize = 4;

const PAGE: &str = "https://shop.example";

/// A service with a long conversation, a file and a visitor, for clients that read nothing.
struct FilledService {
    process: Process,
    api: Api,
    other_company_api: Api,
    webchat_key: String,
    visitor_token: String,
    cookie: String,
    ticket: Value,
    session: Value,
    file_path: String,
    _folder: tempfile::TempDir,
}

impl FilledService {
    async fn start() -> Self {
        let folder = prepared_folder();
        let keys = keys_of(folder.path());
        let (company, other, webchat_key) = with_database(folder.path(), async |db| {
            hotline_persistence::pool::migrate(db).await.expect("migrate");
            let company = Company::create(db, "Acme").await;
            let other = Company::create(db, "Beta").await;
            let allow = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Error> {
                settings.allowed_origins = vec![PAGE.to_owned()];
                Ok(())
            };
            let webchat =
                channels::update(db, &keys, company.id, company.webchat, allow).await.expect("the page is allowed");
            (company, other, webchat.public_key)
        })
        .await;
        let process = Process::serve_with(folder.path(), &[], &[]);
        let api = Api::new(process.address, &company.key);
        let other_company_api = Api::new(process.address, &other.key);
        eventually("the companies are known", || async {
            api.get("/channels").await.status == 200 && other_company_api.get("/channels").await.status == 200
        })
        .await;
        let open = json!({"channelId": company.webchat, "visitor": {"externalId": "visitor"}});
        let opened = api.post("/webchat/sessions", open).await.data(201).clone();
        let session = opened["id"].clone();
        let path = format!("/webchat/sessions/{}/messages", session.as_str().expect("an id"));
        let mut ticket = Value::Null;
        for number in 0..MESSAGES {
            let body = text(number);
            let sent = api.post(&path, json!({"body": body})).await;
            ticket = sent.data(201)["ticketId"].clone();
        }
        let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
        picture.resize(FILE_BYTES, 0x5a);
        let form = Form::default().text("type", "media").text("ticketId", &ticket);
        let sent = api.send_form(form.file("a.png", "image/png", &picture)).await;
        let job = sent.data(202)["jobId"].as_str().expect("a job").to_owned();
        let job = api.get(&format!("/messages/jobs/{job}")).await.data(200).clone();
        let sent = api.get(&format!("/messages/{}", job["messageId"])).await;
        let address = sent.data(200)["media"]["url"].as_str().expect("an address");
        let file_path = address.find("/media/").map(|path| address[path..].to_owned()).expect("a path");
        api.put(&format!("/users/{}", company.ana), json!({"password": PASSWORD})).await.data(200);
        let sign_in =
            api.anonymous(reqwest::Method::POST, "/panel/api/v1/session").header("sec-fetch-site", "same-origin");
        let signed_in = Reply::of(sign_in.json(&json!({"email": "ana@example.com", "password": PASSWORD}))).await;
        let cookies = signed_in.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok());
        let mut cookies = cookies.filter_map(|line| line.split(';').next());
        let cookie = cookies.find(|cookie| cookie.starts_with("hotline_session")).expect("a cookie").to_owned();
        let visitor_token = opened["token"].as_str().expect("a token").to_owned();
        Self {
            process,
            api,
            other_company_api,
            webchat_key,
            visitor_token,
            cookie,
            ticket,
            session,
            file_path,
            _folder: folder,
        }
    }

    /// Every path that is requested, with the headers of a request for it.
    async fn requests(&self) -> Vec<(String, String)> {
        let mut requests = Vec::new();
        let token = format!("authorization: Bearer {}\r\n", self.api.key());
        let cookie = format!("cookie: {}\r\nsec-fetch-site: same-origin\r\n", self.cookie);
        let visitor = format!("origin: {PAGE}\r\nauthorization: Bearer {}\r\n", self.visitor_token);
        for document in ["/api/v1/openapi.json", "/panel/api/v1/openapi.json"] {
            let document = Reply::of(self.api.anonymous(reqwest::Method::GET, document)).await.body;
            for (path, methods) in document["paths"].as_object().expect("paths") {
                if methods.get("get").is_none() {
                    continue;
                }
                let headers = if path.starts_with("/panel/") {
                    &cookie
                } else if path.starts_with("/webchat/") && !path.contains("/tickets/") {
                    &visitor
                } else {
                    &token
                };
                requests.push((self.fill_ids(path), headers.clone()));
            }
        }
        requests.extend(
            ["/api/v1/openapi.json", "/docs/", "/panel/", "/nowhere"].map(|path| (path.to_owned(), token.clone())),
        );
        requests.push(("/api/v1/events?after=0&limit=1000".to_owned(), token.clone()));
        requests.push(("/api/v1/events/stream?after=0".to_owned(), token.clone()));
        requests.push((self.file_path.clone(), String::new()));
        // Reports are also CSV.
        let csv = format!("{token}accept: text/csv\r\n");
        let reports: Vec<_> = requests.iter().filter(|(path, _)| path.contains("/api/v1/reports/")).cloned().collect();
        requests.extend(reports.into_iter().map(|(path, _)| (path, csv.clone())));
        requests
    }

    /// The path with an id for each parameter.
    fn fill_ids(&self, path: &str) -> String {
        let part = |part: &str| match part {
            "{ticketId}" => self.ticket.to_string(),
            "{sessionId}" => self.session.as_str().expect("an id").to_owned(),
            "{publicKey}" => self.webchat_key.clone(),
            part if part.starts_with('{') => "1".to_owned(),
            part => part.to_owned(),
        };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// Opens a visitor's socket that asks for all messages and reads none.
    async fn open_socket(&self) -> TcpStream {
        let headers = format!(
            "origin: {PAGE}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: hotline.v1, {}\r\n",
            self.visitor_token
        );
        let mut stream = connect(self.process.address).await;
        let path = format!("/webchat/{}/socket", self.webchat_key);
        let mut bytes = format!("GET {path} HTTP/1.1\r\nhost: hotline\r\n{headers}\r\n").into_bytes();
        let after = br#"{"type":"after","id":null}"#;
        // A text frame with a mask of zeros, which changes nothing.
        bytes.extend([0x81, 0x80 | u8::try_from(after.len()).expect("a short frame"), 0, 0, 0, 0]);
        bytes.extend(after);
        stream.write_all(&bytes).await.expect("it is sent");
        stream
    }

    /// Fails unless another company is served, from the same address and from another one.
    async fn check_other_company(&self) {
        for api in [self.other_company_api.clone(), self.other_company_api.calling_from("127.0.0.2")] {
            for path in ["/tags", "/contacts", "/users"] {
                let reply = api.get(path).await;
                assert_eq!(reply.status, 200, "{path}: {}", reply.body);
            }
        }
    }
}

/// A text that hardly compresses.
fn text(number: usize) -> String {
    let mut state = number as u64 + 1;
    let mut letter = || {
        // An ordinary linear congruential generator; the seed is the number of the message.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 33) % 26).expect("a letter"))
    };
    (0..CHARACTERS).map(|_| letter()).collect()
}

async fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small window");
    socket.connect(address).await.expect("a connection")
}

/// Sends one request and reads the whole response.
async fn read(address: SocketAddr, path: &str, headers: &str) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: hotline\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("it is answered");
    assert!(answer.starts_with(b"HTTP/1.1 "), "{path}");
}

/// Sends requests, and reads nothing.
async fn send_unread(address: SocketAddr, path: &str, headers: &str) -> TcpStream {
    let mut stream = connect(address).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: hotline\r\n{headers}\r\n");
    // The connection may be closed before all of them are sent.
    let _ = stream.write_all(request.repeat(REQUESTS).as_bytes()).await;
    stream
}

#[actix_web::test]
async fn unread_responses_of_every_path_take_little_memory_and_other_clients_are_served_measured() {
    let service = FilledService::start().await;
    service.check_other_company().await;
    let requests = service.requests().await;
    assert!(requests.len() > 150, "only {} paths", requests.len());
    // The memory that the first response of each path needs is not counted.
    for (path, headers) in requests.iter().filter(|(path, _)| !path.contains("/stream")) {
        read(service.process.address, path, headers).await;
    }
    let bytes_before = service.process.resident_bytes();
    service.process.forget_peak();
    let mut unread = Vec::new();
    for (path, headers) in &requests {
        let is_large = path.ends_with("/messages") || path.contains("/events") || *path == service.file_path;
        for _ in 0..if is_large { CONNECTIONS_IF_LARGE } else { CONNECTIONS } {
            unread.push(send_unread(service.process.address, path, headers).await);
        }
        if is_large {
            service.check_other_company().await;
        }
    }
    for _ in 0..SOCKETS {
        unread.push(service.open_socket().await);
    }
    service.check_other_company().await;
    let growth = service.process.peak_bytes().saturating_sub(bytes_before);
    println!(
        "{} connections to {} paths: {} KiB above {} MiB",
        unread.len(),
        requests.len(),
        growth / 1024,
        bytes_before / MIB
    );
    assert!(growth <= GROWTH_BYTES_MAX, "memory grew by {} MiB", growth / MIB);
    // Clients that read nothing are disconnected; then there is room for one that reads, at the same address.
    let path = format!("/tickets/{}/messages", service.ticket);
    eventually("a reader is served", || async { service.api.get(&path).await.status == 200 }).await;
    drop(unread);
    service.process.terminate();
}

#[actix_web::test]
async fn beyond_the_share_of_an_address_a_request_waits_and_is_then_refused_until_there_is_room() {
    let service = FilledService::start().await;
    let path = format!("/tickets/{}/messages", service.ticket);
    let headers = format!("authorization: Bearer {}\r\n", service.api.key());
    let full_path = format!("/api/v1{path}");
    let mut unread = Vec::new();
    // On a slow machine, clients that read nothing are disconnected meanwhile.
    let refused = loop {
        for _ in 0..4 {
            unread.push(send_unread(service.process.address, &full_path, &headers).await);
        }
        assert!(unread.len() < 200, "nothing is refused");
        let reply = service.api.get(&path).await;
        if reply.status == 503 {
            break reply;
        }
    };
    refused.error(503, "ERR_API_UNAVAILABLE");
    assert!(refused.headers.contains_key("retry-after") && refused.headers.contains_key("x-request-id"));
    // Other callers at the address do not wait for what this one gets at the same path.
    service.other_company_api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
    service.api.with_key("wrong").get(&path).await.error(401, "ERR_API_UNAUTHORIZED");
    // A small response is sent to the same address and company, and a page to another address.
    service.api.get("/tags").await.data(200);
    service.api.calling_from("127.0.0.2").get(&path).await.data(200);
    drop(unread);
    eventually("there is room", || async { service.api.get(&path).await.status == 200 }).await;
    service.process.terminate();
}
