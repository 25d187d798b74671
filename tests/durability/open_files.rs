//! With more connections than file descriptors, no acknowledged change is lost, and the process continues.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::process::{Process, SERVE, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, eventually};

/// File descriptors that the process may have, and connections that are opened to it.
const DESCRIPTORS: u64 = 512;
const CONNECTIONS: usize = 2500;
/// Connections from one address. Many addresses are used, because the service limits the connections of each: only
/// together do they use up the descriptors.
const CONNECTIONS_PER_ADDRESS: usize = 250;
const OPENING_TIME_MAX: Duration = Duration::from_millis(500);

/// Messages of four KiB: many segments of 64 KiB.
const MESSAGES: usize = 150;

/// A connection without a request; `None` if it could not be opened.
async fn connect_idle(number: usize, to: SocketAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    let from = format!("127.0.1.{}:0", number / CONNECTIONS_PER_ADDRESS + 1);
    socket.bind(from.parse().expect("an address")).expect("bound");
    // While the backlog is full, a new connection waits.
    timeout(OPENING_TIME_MAX, socket.connect(to)).await.ok()?.ok()
}

#[actix_web::test]
async fn with_more_connections_than_descriptors_every_answered_change_is_kept() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("the limit is raised");
    assert!(hard > 2 * CONNECTIONS as u64, "only {hard} descriptors for the test itself");
    let folder = prepared_folder();
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {DESCRIPTORS}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_hotline")]);
    limited.args(SERVE).args(["--journal-segment-size", "64KiB", "--data-dir"]).arg(folder.path());
    let served = Process::start(folder.path(), &mut limited).expect("it starts");
    // This client keeps its connection: a new one may have to wait.
    let api = Api::new(served.address, &company.key);
    eventually("the company is known", || async { api.get("/channels").await.status == 200 }).await;

    let mut crowd = Vec::new();
    let mut sent = 0;
    for number in 0..CONNECTIONS {
        if number > crowd.len() + 20 {
            break; // The backlog is full too.
        }
        crowd.extend(connect_idle(number, served.address).await);
        if number % (CONNECTIONS / MESSAGES) == 0 {
            let body = format!("{sent} {}", "x".repeat(4096));
            let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": body});
            api.post("/messages", send).await.data(202);
            sent += 1;
        }
    }
    assert!(crowd.len() > DESCRIPTORS as usize, "only {} connections were opened", crowd.len());
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.pid())).expect("descriptors").count();
    assert!(open < DESCRIPTORS as usize, "{open} of {DESCRIPTORS} descriptors are in use");
    for _ in 0..MESSAGES {
        let body = format!("{sent} {}", "x".repeat(4096));
        let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": body});
        api.post("/messages", send).await.data(202);
        sent += 1;
    }
    assert!(!served.log().contains("Too many open files"), "{}", served.log());
    drop(crowd);
    // New clients are served again.
    let newcomer = Api::new(served.address, &company.key);
    eventually("a new client is served", || async {
        timeout(Duration::from_secs(1), newcomer.get("/channels")).await.is_ok_and(|reply| reply.status == 200)
    })
    .await;
    served.kill();
    let served = Process::serve(folder.path());
    let api = Api::new(served.address, &company.key);
    let stored = api.all("/messages").await;
    assert_eq!(stored.len(), sent, "an acknowledged message is missing");
    served.kill();
}
