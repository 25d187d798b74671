//! One process of the cluster: its folder, its proxies, and its starts and ends.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::task::block_in_place;

use crate::database::{detach_from_terminal, free_address, url};
use crate::proxy::Proxy;
use crate::shim::Shim;
use crate::support::Api;
use crate::support::process::{Process, binary, data_folder, serving_by};

/// Requests are not limited, since few companies make the whole load; nor are connections, since all come from one
/// address.
const OPTIONS: &[&str] = &[
    "--durability",
    "database",
    "--rate-per-minute",
    "0",
    "--max-page-size",
    "1000",
    "--max-connections-per-address",
    "0",
    "--visitor-sockets-per-address",
    "0",
    "--visitor-sessions-per-minute",
    "0",
    // The providers of the runs set no rate limit.
    "--sends-per-second",
    "0",
    "--recipient-interval",
    "0",
    // The balancer of the runs asks ten times a second.
    "--cluster-notice",
    "1s",
];

pub struct Member {
    pub name: String,
    /// The proxy between this member and PostgreSQL.
    pub to_database: Proxy,
    /// The proxy between the other members and this one.
    pub from_peers: Proxy,
    peer_address: SocketAddr,
    process: Option<Process>,
    /// Its wall clock, where it can be set.
    clock: Option<Shim>,
    folder: TempDir,
    /// The binary that it runs from its next start on.
    pub binary: PathBuf,
    /// Migrations that its binary has from its next start on, beside its own.
    pub migrations: Option<PathBuf>,
}

impl Member {
    pub async fn new(number: usize, database: SocketAddr, has_clock: bool) -> Self {
        let (peer_address, folder) = (free_address(), data_folder());
        Self {
            name: format!("node-{number}"),
            to_database: Proxy::to(database).await,
            from_peers: Proxy::to(peer_address).await,
            peer_address,
            process: None,
            clock: has_clock.then(|| Shim::compile(folder.path())),
            folder,
            binary: binary(),
            migrations: None,
        }
    }

    /// Starts the process; `shared` is the folder that all processes share.
    pub fn serve(&mut self, shared: &Path) {
        self.try_serve(shared).unwrap_or_else(|log| panic!("{} does not start: {log}", self.name));
    }

    fn try_serve(&mut self, shared: &Path) -> Result<(), String> {
        let mut command = serving_by(&self.binary, self.folder.path());
        detach_from_terminal(&mut command);
        command.args(OPTIONS).args(["--database-url", &url(self.to_database.address)]);
        command.arg("--key-file").arg(shared.join("secrets.key"));
        command.arg("--media-shared").arg(shared.join("media"));
        command.args(["--cluster-node", &self.name, "--cluster-listen", &self.peer_address.to_string()]);
        command.args(["--cluster-address", &self.from_peers.address.to_string()]);
        if let Some(clock) = &self.clock {
            clock.preload(&mut command);
        }
        if let Some(migrations) = &self.migrations {
            command.env("FAILPOINTS", format!("migrations=return({})", migrations.display()));
        }
        // The start blocks; other tasks of this thread are moved to another one meanwhile.
        self.process = Some(block_in_place(|| Process::start(self.folder.path(), &mut command))?);
        Ok(())
    }

    pub fn clock(&self) -> &Shim {
        self.clock.as_ref().expect("a member with a clock")
    }

    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    pub fn address(&self) -> SocketAddr {
        self.process().address
    }

    pub fn api(&self, key: &str) -> Api {
        Api::new(self.address(), key)
    }

    fn process(&self) -> &Process {
        self.process.as_ref().unwrap_or_else(|| panic!("{} is down", self.name))
    }

    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let process = self.process.take().expect("it runs");
        block_in_place(|| process.kill());
    }

    /// Replaces its folder by an empty one, as if another machine took its place.
    pub fn lose_folder(&mut self) {
        assert!(!self.is_up());
        self.folder = data_folder();
    }

    /// `SIGSTOP`, `SIGCONT` or `SIGTERM`.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process().pid() as i32), signal).expect("a signal");
    }

    /// Waits until the process ends by itself. Returns its status and its log.
    pub fn wait_for_end(&mut self) -> (ExitStatus, String) {
        let mut process = self.process.take().expect("it runs");
        let status = block_in_place(|| process.wait());
        (status, process.log())
    }

    /// A clean stop.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        self.wait_for_clean_stop();
    }

    /// Waits until the process has stopped cleanly after a SIGTERM.
    pub fn wait_for_clean_stop(&mut self) {
        let (status, log) = self.wait_for_end();
        assert!(status.success(), "{} does not stop cleanly ({status}): {log}", self.name);
    }

    /// The end of what it has logged, for a run that fails.
    pub fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("service.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        let mut text = format!("{}:\n", self.name);
        for line in lines.iter().rev() {
            let _ = writeln!(text, "  {line}");
        }
        text
    }
}
