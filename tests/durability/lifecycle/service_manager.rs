//! What a service with `Type=notify` sends to systemd, received by a socket in its place.

use std::collections::VecDeque;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use super::Starting;
use crate::process::{command, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, PATIENCE, eventually, free_address, patience};

/// How long a sync of the journal hangs: far longer than the watchdog waits.
const SYNC_TIME: Duration = Duration::from_secs(20);

/// The watchdog's time, in microseconds.
const WATCHDOG_US: &str = "3000000";

/// The socket, and the lines that came and were not read yet.
struct Manager {
    socket: UnixDatagram,
    lines: VecDeque<String>,
}

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        Self { socket, lines: VecDeque::new() }
    }

    /// Reads the lines that have come.
    fn drain(&mut self) -> Vec<String> {
        let mut bytes = [0; 4096];
        while let Ok(read) = self.socket.recv(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            self.lines.extend(text.lines().map(str::to_owned));
        }
        self.lines.drain(..).collect()
    }

    /// Waits for a line, and returns those before it.
    fn wait_for(&mut self, wanted: &str) -> Vec<String> {
        let deadline = Instant::now() + patience(PATIENCE);
        let mut before = Vec::new();
        loop {
            while let Some(line) = self.lines.pop_front() {
                if line.starts_with(wanted) {
                    return before;
                }
                before.push(line);
            }
            assert!(Instant::now() < deadline, "no {wanted} after {before:?}");
            let mut bytes = [0; 4096];
            if let Ok(read) = self.socket.recv(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                self.lines.extend(text.lines().map(str::to_owned));
            }
        }
    }
}

#[actix_web::test]
async fn a_service_manager_is_notified_of_every_state() {
    let folder = prepared_folder();
    let path = folder.path().join("notify");
    let mut manager = Manager::at(&path);
    let address = free_address();
    let mut command = command(folder.path(), &["serve", "--listen", &address.to_string()]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "6000000");
    let mut process = Starting::start(folder.path(), command, address);

    manager.wait_for("EXTEND_TIMEOUT_USEC=");
    let before = manager.wait_for("READY=1");
    assert!(before.iter().any(|line| line.starts_with("STATUS=starting")), "{before:?}");
    manager.wait_for(&format!("STATUS=ready on {address}"));
    for _ in 0..3 {
        manager.wait_for("WATCHDOG=1");
    }
    process.signal(Signal::SIGHUP);
    manager.wait_for("RELOADING=1");
    manager.wait_for("MONOTONIC_USEC=");
    manager.wait_for("READY=1");
    process.signal(Signal::SIGTERM);
    let before = manager.wait_for("STOPPING=1");
    assert!(!before.iter().any(|line| line.starts_with("RELOADING")), "{before:?}");
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

#[actix_web::test]
async fn the_watchdog_is_not_notified_while_the_journal_hangs() {
    let folder = prepared_folder();
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let path = folder.path().join("notify");
    let mut manager = Manager::at(&path);
    let address = free_address();
    let mut command =
        command(folder.path(), &["serve", "--journal-segment-size", "1MiB", "--listen", &address.to_string()]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", WATCHDOG_US);
    command.env("FAILPOINTS", format!("journal_before_sync=sleep({})", SYNC_TIME.as_millis()));
    let process = Starting::start(folder.path(), command, address);
    process.wait_until_ready().await;
    let api = Api::new(address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    manager.wait_for("WATCHDOG=1");

    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    // The sync begins later than now, so it hangs at least until then.
    let hangs_until = Instant::now() + SYNC_TIME;
    let sending = api.post("/messages", send);
    let noticing = async {
        let message = "does not respond; the watchdog is no longer notified";
        eventually(message, || async { process.log().contains(message) }).await;
        let log = process.log();
        let line = log.lines().find(|line| line.contains(message)).expect("the line");
        assert!(line.contains("the journal"), "{line}");
        drop(manager.drain());
        let mut notices = 0;
        loop {
            let lines = manager.drain();
            // What is read later may have been sent when the journal worked again.
            if Instant::now() >= hangs_until {
                return (manager, notices);
            }
            notices += lines.iter().filter(|line| *line == "WATCHDOG=1").count();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (sent, (mut manager, notices)) = futures_util::future::join(sending, noticing).await;
    sent.data(202);
    // At most those that were on their way when the service logged the line.
    assert!(notices <= 2, "the watchdog was notified {notices} times");
    manager.wait_for("WATCHDOG=1");
}
