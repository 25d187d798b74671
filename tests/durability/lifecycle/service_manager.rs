//! What systemd is sent by a service with `Type=notify`, over a socket in its place.

use std::collections::VecDeque;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::Starting;
use crate::process::command;
use crate::support::template::prepared_folder;
use crate::support::{PATIENCE, free_address, patience};

/// The socket, and what came.
struct Manager {
    socket: UnixDatagram,
    lines: VecDeque<String>,
}

impl Manager {
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
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    let mut manager = Manager { socket, lines: VecDeque::new() };
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
