//! Every door, an input of the process, is flooded by a hostile client, and the process keeps no more of it than the
//! door's limit. `docs/limits.md` has the list.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelType};
use hotline_persistence::{ChannelId, Error};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::process::{Process, keys_of, with_database};
use crate::support::form::Form;
use crate::support::provider::hooks::{Page, Phone, events, image, signature};
use crate::support::seed::{APP_SECRET, provided};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, PATIENCE, eventually, free_address, patience};

const MIB: usize = 1024 * 1024;

/// How many bytes a flood sends while the door accepts them: so many that it would show in memory if they were kept.
const FLOOD_BYTES: usize = 96 * MIB;

/// How many bytes a flood may add to the process, beyond the largest body of the door: buffers of connections, and
/// memory that the allocator returns to the system late. Half of what one flood sends.
const GROWTH_BYTES_MAX: usize = 48 * MIB;

const ORIGIN: &str = "https://shop.example";

/// The doors of one process.
struct Doors {
    process: Process,
    api: Api,
    company: Company,
    metrics: SocketAddr,
    webchat: String,
    visitor: String,
    phone: ChannelRow,
    page: ChannelRow,
    provider: SocketAddr,
    /// How often the provider was asked for a file whose head has no end.
    endless_head_requests: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

impl Doors {
    async fn open() -> Self {
        let folder = prepared_folder();
        let (provider, endless_head_requests) = endless_provider().await;
        let metrics = free_address();
        let metrics_listen = metrics.to_string();
        let options = [
            "--fetch-allow-network",
            "127.0.0.0/8",
            "--metrics-listen",
            &metrics_listen,
            "--media-fetch-max-size",
            "16MiB",
        ];
        let url = format!("http://{provider}");
        let keys = keys_of(folder.path());
        let (company, webchat, phone, page) = with_database(folder.path(), async |db| {
            hotline_persistence::pool::migrate(db).await.expect("migrate");
            let company = Company::create(db, "Acme").await;
            let allow = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Error> {
                settings.allowed_origins = vec![ORIGIN.to_owned()];
                Ok(())
            };
            let webchat = channels::update(db, &keys, company.id, company.webchat, allow)
                .await
                .expect("the origin is allowed")
                .public_key;
            let phone = provided(db, &keys, company.id, ChannelType::Whatsapp, "1000", &url).await;
            let page = provided(db, &keys, company.id, ChannelType::Messenger, "2000", &url).await;
            (company, webchat, phone, page)
        })
        .await;
        let process = Process::serve_with(folder.path(), &options, &[]);
        let api = Api::new(process.address, &company.key);
        eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
        let open = json!({"channelId": company.webchat, "visitor": {"externalId": "visitor"}});
        let session = api.post("/webchat/sessions", open).await.data(201).clone();
        let visitor = session["token"].as_str().expect("a token").to_owned();
        Self {
            process,
            api,
            company,
            metrics,
            webchat,
            visitor,
            phone,
            page,
            provider,
            endless_head_requests,
            _folder: folder,
        }
    }

    /// Runs a flood. Fails if it adds more to the memory of the process than `limit_bytes` and [`GROWTH_BYTES_MAX`].
    async fn check_growth(&self, what: &str, limit_bytes: usize, flood: impl Future<Output = ()>) {
        let before = self.process.resident_bytes();
        self.process.forget_peak();
        flood.await;
        let growth = usize::try_from(self.process.peak_bytes().saturating_sub(before)).expect("a size");
        println!("{what}: {} KiB above {} MiB", growth / 1024, before as usize / MIB);
        assert!(growth < limit_bytes + GROWTH_BYTES_MAX, "{what}: {} MiB above", growth / MIB);
        // The service still serves.
        assert_eq!(self.api.get("/channels").await.status, 200, "{what}");
    }

    /// Floods a path with bodies without an end: one with a huge length, and one in chunks.
    async fn flood_body(&self, head: &str, start: &[u8], fill: &[u8]) {
        for length in ["content-length: 4611686018427387904", "transfer-encoding: chunked"] {
            let head = format!("{head}host: hotline\r\n{length}\r\n\r\n");
            let fill = if length.starts_with("transfer") { chunked(fill) } else { fill.to_vec() };
            let start = if length.starts_with("transfer") { chunked(start) } else { start.to_vec() };
            flood(self.process.address, &[head.as_bytes(), &start].concat(), &fill).await;
        }
    }
}

fn chunked(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Sends `start` to an address, and then pours `fill`.
async fn flood(address: SocketAddr, start: &[u8], fill: &[u8]) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    if stream.write_all(start).await.is_ok() {
        pour(&mut stream, fill).await;
    }
}

/// Sends `fill` again and again, until the peer takes no more or [`FLOOD_BYTES`] are sent.
async fn pour(stream: &mut TcpStream, fill: &[u8]) {
    let block = fill.repeat((256 * 1024 / fill.len()).max(1));
    let mut sent = 0;
    while sent < FLOOD_BYTES {
        // A peer that accepts no bytes for this long is assumed to accept no more.
        match timeout(Duration::from_secs(2), stream.write_all(&block)).await {
            Ok(Ok(())) => sent += block.len(),
            _ => return,
        }
    }
}

/// Answers every request with a body without an end; with status 400 if the path has `refused`, and with a header
/// without an end instead if it has `head`. Returns its address, and the count of the latter requests.
async fn endless_provider() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let endless_head_requests = Arc::new(AtomicUsize::new(0));
    let counted = endless_head_requests.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 16 * 1024];
                let read = stream.read(&mut head).await.unwrap_or_default();
                let line = String::from_utf8_lossy(&head[..read]).lines().next().unwrap_or_default().to_owned();
                let status = if line.contains("refused") { "400 Bad Request" } else { "200 OK" };
                let mut start = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
                if line.contains("head") {
                    counted.fetch_add(1, Ordering::Relaxed);
                    // A header without an end instead of a body.
                    start.push_str("x-fill: ");
                } else {
                    start.push_str("transfer-encoding: chunked\r\n\r\n");
                }
                if stream.write_all(start.as_bytes()).await.is_ok() {
                    pour(&mut stream, &chunked(&[b' '; 1024])).await;
                }
            });
        }
    });
    (address, endless_head_requests)
}

#[actix_web::test]
async fn nothing_is_kept_beyond_its_limit_at_any_door_measured() {
    let doors = Doors::open().await;
    let token = format!("authorization: Bearer {}\r\n", doors.company.key);
    let fill = [b' '; 1024];

    doors
        .check_growth(
            "a JSON body",
            MIB,
            doors.flood_body(&format!("POST /api/v1/contacts HTTP/1.1\r\n{token}"), b"{", &fill),
        )
        .await;
    let import = format!("POST /api/v1/contacts/import HTTP/1.1\r\n{token}");
    doors.check_growth("an import", 16 * MIB, doors.flood_body(&import, b"{", &fill)).await;
    let keyed = format!("POST /api/v1/contacts HTTP/1.1\r\n{token}idempotency-key: a\r\n");
    doors.check_growth("a keyed JSON body", MIB, doors.flood_body(&keyed, b"{", &fill)).await;

    let kind = format!("content-type: {}\r\n", Form::content_type());
    let boundary = Form::content_type().split_once("boundary=").expect("a boundary").1.to_owned();
    let part = |disposition: &str| format!("--{boundary}\r\ncontent-disposition: form-data; {disposition}\r\n\r\n");
    for (what, start) in [
        ("a form's text", part("name=\"body\"")),
        ("a form's file", part("name=\"medias\"; filename=\"a.txt\"")),
        ("a form's unknown file", part("name=\"other\"; filename=\"a.txt\"")),
        ("the head of a form's part", format!("--{boundary}\r\ncontent-disposition: form-data; name=\"")),
        ("bytes before the first part of a form", String::new()),
    ] {
        for key in ["", "idempotency-key: b\r\n"] {
            let head = format!("POST /api/v1/messages HTTP/1.1\r\n{token}{kind}{key}");
            doors.check_growth(what, MIB, doors.flood_body(&head, start.as_bytes(), &[b'a'; 1024])).await;
        }
    }

    let webchat = format!("/webchat/{}", doors.webchat);
    let visitor = format!("origin: {ORIGIN}\r\nauthorization: Bearer {}\r\n", doors.visitor);
    let message = format!("POST {webchat}/messages HTTP/1.1\r\n{visitor}");
    doors.check_growth("a visitor's words", MIB, doors.flood_body(&message, b"{", &fill)).await;
    let sessions = format!("POST {webchat}/sessions HTTP/1.1\r\norigin: {ORIGIN}\r\n");
    doors.check_growth("a new session of a visitor", MIB, doors.flood_body(&sessions, b"{", &fill)).await;
    let file = part("name=\"medias\"; filename=\"a.txt\"");
    let attached = format!("POST {webchat}/messages HTTP/1.1\r\n{visitor}{kind}");
    doors.check_growth("a visitor's file", MIB, doors.flood_body(&attached, file.as_bytes(), &[b'a'; 1024])).await;

    let sign_in = "POST /panel/api/v1/session HTTP/1.1\r\nsec-fetch-site: same-origin\r\n";
    doors.check_growth("a sign-in", 0, doors.flood_body(sign_in, b"{", &fill)).await;

    let hook = format!("POST /hooks/{} HTTP/1.1\r\n", doors.phone.public_key);
    doors.check_growth("a call without a signature", 8 * MIB, doors.flood_body(&hook, b"{", &fill)).await;
    doors
        .check_growth(
            "a call to an unknown key",
            0,
            doors.flood_body("POST /hooks/ch_nobody HTTP/1.1\r\n", b"{", &fill),
        )
        .await;
    doors
        .check_growth("a body of a GET request", 0, doors.flood_body("GET /health/live HTTP/1.1\r\n", b"{", &fill))
        .await;
    doors
        .check_growth("a body without a token", 0, doors.flood_body("POST /api/v1/contacts HTTP/1.1\r\n", b"{", &fill))
        .await;

    // Requests whose answers are not read: small ones, and some behind a body that a handler waits for.
    let small = "GET / HTTP/1.1\r\n\r\n";
    let behind = format!("{hook}host: hotline\r\ncontent-length: 1\r\n\r\n{{");
    for (what, start, fill) in [
        ("requests without an end", String::new(), small.to_owned()),
        ("requests behind a body", behind.clone(), small.to_owned()),
        ("requests with bodies without an end", String::new(), behind),
        ("large answers without an end", String::new(), "GET /api/v1/openapi.json HTTP/1.1\r\n\r\n".to_owned()),
    ] {
        doors.check_growth(what, 0, flood(doors.process.address, start.as_bytes(), fill.as_bytes())).await;
    }
    for address in [doors.process.address, doors.metrics] {
        for (what, start, fill) in [
            ("a head without an end", "GET / HTTP/1.1\r\nx: ", "a"),
            ("headers without an end", "GET / HTTP/1.1\r\n", "x: a\r\n"),
            ("a query without an end", "GET /metrics?a=", "a"),
            ("a method without an end", "", "A"),
        ] {
            doors.check_growth(what, MIB, flood(address, start.as_bytes(), fill.as_bytes())).await;
        }
        let body = b"POST /metrics HTTP/1.1\r\nhost: hotline\r\ncontent-length: 4611686018427387904\r\n\r\n";
        doors.check_growth("a body sent to /metrics", 0, flood(address, body, &fill)).await;
    }
    doors.process.terminate();
}

#[actix_web::test]
async fn no_frame_is_kept_beyond_its_limit_measured() {
    let doors = Doors::open().await;
    for (what, start, fill, code) in [
        ("a frame of 2^40 bytes", vec![0x82, 0xFF, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4], vec![0; 1024], 1009),
        ("a text of 2^63 - 1 bytes", [vec![0x81, 0xFF, 0x7F], vec![0xFF; 7], vec![0; 4]].concat(), vec![0; 1024], 1009),
        ("a ping of 64 KiB", vec![0x89, 0xFE, 0xFF, 0xFF, 0, 0, 0, 0], vec![0; 1024], 1009),
        ("a fragment of 2^32 bytes", vec![0x01, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], vec![0; 1024], 1009),
        ("fragments without an end", vec![0x01, 0x81, 0, 0, 0, 0, b' '], vec![0x00, 0x81, 0, 0, 0, 0, b' '], 1003),
        ("pings without an end", Vec::new(), vec![0x89, 0x80, 0, 0, 0, 0], 4429),
        ("empty texts without an end", Vec::new(), vec![0x81, 0x80, 0, 0, 0, 0], 4400),
    ] {
        let flooding = async {
            let mut stream = socket(&doors).await;
            if stream.write_all(&start).await.is_ok() {
                pour(&mut stream, &fill).await;
            }
        };
        doors.check_growth(what, 0, flooding).await;
        // The close code, as a client that does not flood receives it.
        let mut stream = socket(&doors).await;
        let few = fill.repeat(100);
        drop(stream.write_all(&[&start[..], &few[..]].concat()).await);
        let mut answer = Vec::new();
        let _ = timeout(patience(PATIENCE), stream.read_to_end(&mut answer)).await;
        assert!(answer.windows(4).any(|bytes| closes_with(bytes, code)), "{what}: not closed with {code}");
    }
    doors.process.terminate();
}

/// Whether these bytes begin a server's close frame with this code.
fn closes_with(bytes: &[u8], code: u16) -> bool {
    bytes[0] == 0x88 && bytes[1] >= 2 && bytes[2..4] == code.to_be_bytes()
}

/// A visitor's socket, opened by hand.
async fn socket(doors: &Doors) -> TcpStream {
    let mut stream = TcpStream::connect(doors.process.address).await.expect("a connection");
    let head = format!(
        "GET /webchat/{}/socket HTTP/1.1\r\nhost: hotline\r\norigin: {ORIGIN}\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-protocol: hotline.v1, {}\r\n\r\n",
        doors.webchat, doors.visitor
    );
    stream.write_all(head.as_bytes()).await.expect("a handshake");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.expect("an answer"));
    }
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    stream
}

#[actix_web::test]
async fn no_answer_of_a_provider_is_kept_beyond_its_limit() {
    let doors = Doors::open().await;
    let templates = async || {
        let path = format!("/channels/{}/templates", doors.phone.id);
        doors.api.get(&path).await.error(503, "ERR_API_UNAVAILABLE");
    };
    doors.check_growth("templates without an end", 8 * MIB, templates()).await;
    let wait_for_error = async |channel: ChannelId, code: &str| {
        eventually("the file is given up", || async {
            let all = doors.api.all(&format!("/messages?channelId={channel}")).await;
            !all.is_empty() && all.iter().all(|message| message["error"]["code"] == code)
        })
        .await;
    };
    // The service requests the file's address, and the answer has no end.
    let phone = Phone { id: "1000".to_owned(), number: "15550783881".to_owned() };
    let refused_file = async {
        call_hook(
            &doors,
            &doors.phone,
            &phone.message("5511987654321", "Maria", image("wamid.1", "a-refused-file", None)),
        )
        .await;
        wait_for_error(doors.phone.id, "ERR_MEDIA_UNAVAILABLE").await;
    };
    doors.check_growth("a refusal without an end", 8 * MIB, refused_file).await;

    let page = Page { object: "page", id: "2000".to_owned() };
    let url = |path: &str| format!("http://{}/{path}", doors.provider);
    let file = async {
        call_hook(
            &doors,
            &doors.page,
            &page.call_body("77", 1, vec![events::attachment("m_1", "image", &url("file"))]),
        )
        .await;
        wait_for_error(doors.page.id, "ERR_API_PAYLOAD_TOO_LARGE").await;
    };
    doors.check_growth("a file without an end", 8 * MIB, file).await;
    let others = async {
        let attached =
            [("m_2", "refused"), ("m_3", "head")].map(|(id, path)| events::attachment(id, "image", &url(path)));
        call_hook(&doors, &doors.page, &page.call_body("78", 1, attached.to_vec())).await;
        let codes = async || {
            let all = doors.api.all(&format!("/messages?channelId={}", doors.page.id)).await;
            all.iter().map(|message| message["error"]["code"].clone()).collect::<Vec<Value>>()
        };
        eventually("the refused file is given up", || async { codes().await[1] == "ERR_MEDIA_UNAVAILABLE" }).await;
        // Such an answer may be a temporary failure.
        eventually("the other is tried again", || async { doors.endless_head_requests.load(Ordering::Relaxed) > 1 })
            .await;
        assert_eq!(codes().await[2], Value::Null, "the file whose head has no end was given up");
    };
    doors.check_growth("a refused file and a head without an end", 8 * MIB, others).await;
    doors.process.terminate();
}

/// Makes a signed call as the provider, which must be answered with 200.
async fn call_hook(doors: &Doors, channel: &ChannelRow, call: &Value) {
    let bytes = call.to_string();
    let request = doors.api.anonymous(reqwest::Method::POST, &format!("/hooks/{}", channel.public_key));
    let signed = request.header("x-hub-signature-256", signature(APP_SECRET, bytes.as_bytes())).body(bytes);
    let answer = signed.send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
}
