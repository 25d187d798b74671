//! A TCP proxy between Hotline and PostgreSQL. It can forget its open connections: they stay open, but no byte passes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// Whether the startup parameter `options`, which carries settings of the session, is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionSettings {
    Forwarded,
    Dropped,
}

/// The proxy. It runs on a thread of its own, since tests block their thread while they wait for processes.
pub struct Link {
    address: SocketAddr,
    target: PgConnectOptions,
    state: Arc<LinkState>,
}

/// The state that the connections share.
struct LinkState {
    /// Connections up to this number carry nothing any more.
    forgotten: AtomicU64,
    accepted: AtomicU64,
    /// All connections are forgotten once a client has sent this text.
    trigger: OnceLock<&'static str>,
}

impl LinkState {
    /// Whether the connection with this number is forgotten.
    fn is_forgotten(&self, number: u64) -> bool {
        self.forgotten.load(Ordering::Acquire) >= number
    }

    fn forget(&self) {
        self.forgotten.store(self.accepted.load(Ordering::Acquire), Ordering::Release);
    }

    /// Forgets all connections the first time that a client's bytes contain the text.
    fn forget_on_trigger(&self, bytes: &[u8]) {
        let has_trigger = |text: &&str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        if self.forgotten.load(Ordering::Acquire) == 0 && self.trigger.get().is_some_and(has_trigger) {
            self.forget();
        }
    }
}

impl Link {
    /// A proxy to the PostgreSQL behind the socket of these options.
    pub fn to(target: &PgConnectOptions) -> Self {
        Self::start(target, SessionSettings::Forwarded)
    }

    /// The same, but like a pooler with `ignore_startup_parameters=options`.
    pub fn without_settings(target: &PgConnectOptions) -> Self {
        Self::start(target, SessionSettings::Dropped)
    }

    fn start(target: &PgConnectOptions, settings: SessionSettings) -> Self {
        let folder = target.get_socket().expect("a socket");
        let socket = folder.join(format!(".s.PGSQL.{}", target.get_port()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let state =
            Arc::new(LinkState { forgotten: AtomicU64::new(0), accepted: AtomicU64::new(0), trigger: OnceLock::new() });
        let shared = state.clone();
        std::thread::spawn(move || accept(listener, socket, settings, shared));
        Self { address, target: target.clone(), state }
    }

    /// How to connect through the link.
    pub fn options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.address.port())
            .username(self.target.get_username())
            .database(self.target.get_database().expect("a database"))
            .ssl_mode(PgSslMode::Disable)
    }

    /// The same as a URL, for the command line.
    pub fn url(&self) -> String {
        let (user, database) = (self.target.get_username(), self.target.get_database().expect("a database"));
        format!("postgres://{user}@{}/{database}?sslmode=disable", self.address)
    }

    /// Forgets every open connection: no more bytes pass, and neither end is notified. New connections work.
    pub fn forget(&self) {
        self.state.forget();
    }

    /// Forgets every open connection once Hotline has sent this part of a statement.
    pub fn forget_once_sent(&self, statement: &'static str) {
        self.state.trigger.set(statement).expect("no statement was set before");
    }

    /// Whether any connection was forgotten.
    pub fn has_forgotten(&self) -> bool {
        self.state.is_forgotten(1)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn accept(listener: std::net::TcpListener, socket: PathBuf, settings: SessionSettings, state: Arc<LinkState>) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((caller, _)) = listener.accept().await {
        let number = state.accepted.fetch_add(1, Ordering::AcqRel) + 1;
        tokio::spawn(carry(caller, socket.clone(), settings, number, state.clone()));
    }
}

async fn carry(caller: TcpStream, socket: PathBuf, settings: SessionSettings, number: u64, state: Arc<LinkState>) {
    let Ok(target) = UnixStream::connect(socket).await else { return };
    let (mut from_caller, mut to_caller) = caller.into_split();
    let (mut from_target, mut to_target) = target.into_split();
    if settings == SessionSettings::Dropped {
        let first = without_options(&mut from_caller).await;
        if to_target.write_all(&first).await.is_err() {
            return;
        }
    }
    tokio::select! {
        () = pump(&mut from_caller, &mut to_target, number, &state, true) => {}
        () = pump(&mut from_target, &mut to_caller, number, &state, false) => {}
    }
}

/// Carries bytes until one end closes. A forgotten connection carries nothing, not even the close.
async fn pump(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    number: u64,
    state: &LinkState,
    is_client: bool,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        if state.is_forgotten(number) {
            return std::future::pending().await;
        }
        if read == 0 || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
        if is_client {
            state.forget_on_trigger(&bytes[..read]);
        }
    }
}

/// The first message of a session, without the parameter `options`: its length, the protocol, and names and values,
/// each with a zero after it.
async fn without_options(caller: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let length = caller.read_u32().await.expect("a length") as usize;
    let mut message = vec![0; length - 4];
    caller.read_exact(&mut message).await.expect("a message");
    let (protocol, parameters) = message.split_at(4);
    let words: Vec<&[u8]> = parameters.split(|byte| *byte == 0).collect();
    let kept = words.chunks_exact(2).filter(|pair| pair[0] != b"options" && !pair[0].is_empty());
    let kept: Vec<u8> = kept.flatten().flat_map(|word| [*word, &[0]].concat()).collect();
    let length = u32::try_from(4 + 4 + kept.len() + 1).expect("a length");
    [&length.to_be_bytes(), protocol, &kept, &[0]].concat()
}
