//! A relay for e-mails, with as much of SMTP as a client needs.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How a relay treats its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Takes,
    Refuses,
    /// Accepts a connection, and never answers.
    Hangs,
}

/// The received e-mails, and how further ones are treated.
struct State {
    manner: Manner,
    emails: Vec<String>,
}

pub struct Relay {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

impl Relay {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State { manner: Manner::Takes, emails: Vec::new() }));
        let shared = state.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(receive(stream, shared.clone()));
            }
        });
        Self { address, state, serving }
    }

    pub fn set_manner(&self, manner: Manner) {
        self.state.lock().manner = manner;
    }

    /// Every e-mail so far: headers and text.
    pub fn emails(&self) -> Vec<String> {
        self.state.lock().emails.clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Serves one connection. An e-mail whose client disconnects before its end is not recorded.
async fn receive(stream: TcpStream, state: Arc<Mutex<State>>) -> Option<()> {
    let manner = state.lock().manner;
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    if manner == Manner::Hangs {
        while lines.next_line().await.ok()?.is_some() {}
        return None;
    }
    writer.write_all(b"220 relay.example\r\n").await.ok()?;
    let mut email: Option<String> = None;
    while let Some(line) = lines.next_line().await.ok()? {
        let answer = match &mut email {
            Some(text) if line == "." => {
                let whole = std::mem::take(text);
                email = None;
                state.lock().emails.push(whole);
                "250 taken"
            }
            Some(text) => {
                text.push_str(&line);
                text.push('\n');
                continue;
            }
            None => match line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase().as_str() {
                "RCPT" if manner == Manner::Refuses => "550 nobody of that name",
                "DATA" => {
                    email = Some(String::new());
                    "354 go on"
                }
                "QUIT" => "221 bye",
                _ => "250 fine",
            },
        };
        writer.write_all(format!("{answer}\r\n").as_bytes()).await.ok()?;
    }
    None
}
