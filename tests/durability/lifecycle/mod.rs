//! How a process starts and stops, as balancers, terminals and service managers see it.

mod notice;
mod service_manager;
mod signals;
mod starting;

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::process::{command, postmaster, signal_with_children};
use crate::support::{eventually, free_address, patience};

/// How long a request may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a process may take to end.
const END_TIME_MAX: Duration = Duration::from_secs(40);

/// A process that may not be ready yet.
struct Starting {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Starting {
    fn serve(folder: &Path, options: &[&str]) -> Self {
        let address = free_address();
        let mut command = command(folder, &["serve", "--journal-segment-size", "1MiB"]);
        command.args(["--listen", &address.to_string()]).args(options);
        Self::start(folder, command, address)
    }

    fn start(folder: &Path, mut command: Command, address: SocketAddr) -> Self {
        let log = folder.join("starting.log");
        command.stdout(Stdio::null()).stderr(File::create(&log).expect("a log"));
        Self { child: command.spawn().expect("hotline runs"), address, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log")
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().expect("a process id")), signal).expect("a signal");
    }

    /// The status and body of a path; `None` while nothing listens.
    async fn get(&self, path: &str) -> Option<(u16, Value)> {
        self.get_within(path, ANSWER_TIME_MAX).await
    }

    /// The same; also `None` if the answer takes longer than `time_max`.
    async fn get_within(&self, path: &str, time_max: Duration) -> Option<(u16, Value)> {
        let client = hotline::tls::client().timeout(patience(time_max)).build().expect("a client");
        let response = client.get(format!("http://{}{path}", self.address)).send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.json().await.expect("JSON")))
    }

    async fn wait_until_ready(&self) {
        eventually("the service is ready", || async {
            self.get("/health/ready").await.is_some_and(|(status, _)| status == 200)
        })
        .await;
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + patience(END_TIME_MAX);
        loop {
            if let Some(status) = self.child.try_wait().expect("status") {
                return status;
            }
            assert!(Instant::now() < deadline, "the process does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to PostgreSQL and its sessions: SIGSTOP freezes them, SIGCONT continues them.
fn signal_postgres(folder: &Path, signal: Signal) {
    let postmaster = postmaster(folder).expect("PostgreSQL runs");
    signal_with_children(postmaster, signal).expect("the postmaster");
}
