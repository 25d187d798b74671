//! A service that many tests share, each with a company of its own: a process that the first test starts and that
//! `stop_test_services` ends, like the PostgreSQL it uses.

use std::fs::File;
use std::io::BufRead;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use hotline::service::ClusterSettings;
use sqlx::postgres::PgConnectOptions;

use super::database::{TestDatabase, url};
use super::process::{SERVE, binary, build_of, hotline, ready_address};
use super::running::{self, Running};
use super::service::{is_member, member_settings};
use super::{PATIENCE, patience};

/// No limits by address, since all tests have the same one. What they fetch and call is on this machine, and may take
/// as long as the tests do.
const OPTIONS: &[&str] = &[
    "--journal-segment-size=1MiB",
    "--rate-per-minute=0",
    "--invalid-tokens-per-minute=0",
    "--max-connections-per-address=0",
    "--visitor-sessions-per-minute=0",
    "--visitor-messages-per-minute=0",
    "--visitor-requests-per-minute=0",
    "--visitor-sockets-per-address=0",
    "--visitor-session-bytes-per-hour=0",
    "--visitor-address-bytes-per-hour=0",
    "--visitor-company-bytes-per-hour=0",
    "--webhook-allow-network=127.0.0.0/8",
    "--fetch-allow-network=127.0.0.0/8",
    "--provider-timeout=10m",
];

/// The shared service, and its database.
pub struct SharedService {
    pub address: SocketAddr,
    pub database: PgConnectOptions,
}

impl SharedService {
    /// The shared service, started if it does not run.
    pub async fn find() -> Self {
        let folder = running::folder();
        std::fs::create_dir_all(&folder).expect("the folder of the shared service");
        // Until this file is closed, other tests wait.
        let lock_file = File::create(folder.join("lock")).expect("a lock");
        lock_file.lock().expect("the lock");
        let build = build();
        let running = match Running::read() {
            Some(running) if running.build == build => {
                // Starting it a second time would hide that a test has crashed it.
                assert!(running.is_alive(), "the shared service has ended by itself:\n{}", running::log());
                running
            }
            earlier => {
                if let Some(other) = earlier {
                    // Its outcome does not matter: its code is not the one under test.
                    let _ = other.stop();
                }
                start(&folder, build).await
            }
        };
        println!("the shared service logs to {}", folder.join("service.log").display());
        let database = TestDatabase::options_of(&running.database).await;
        Self { address: running.address, database }
    }
}

async fn start(folder: &Path, build: String) -> Running {
    let name = "shared_service".to_owned();
    let database = TestDatabase::recreate(&name).await;
    let data = folder.join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data).expect("the data of an earlier service is removed");
    }
    let (ready, log) = (folder.join("ready"), folder.join("service.log"));
    let mut command = hotline();
    command.args(SERVE).args(OPTIONS).args(["--database-url", &url(&database)]).arg("--data-dir").arg(&data);
    command.arg("--key-file").arg(super::keys().path());
    if is_member() {
        let ClusterSettings { listen, node, .. } = member_settings();
        command.args(["--durability", "database", "--cluster-notice", "0", "--cluster-node", &node]);
        command.args(["--cluster-listen", &listen.to_string()]);
    }
    command.stdin(Stdio::null());
    command.stdout(File::create(&ready).expect("a file")).stderr(File::create(&log).expect("a log"));
    // In a process group of its own: a test that takes too long is killed with its whole group.
    let mut child = command.process_group(0).spawn().expect("hotline runs");
    let address = wait_for_address(&ready, &mut child).await;
    let running = Running { pid: child.id().try_into().expect("a process id"), address, database: name, build };
    running.write();
    running
}

/// Waits for the line with the service's address.
async fn wait_for_address(ready: &Path, child: &mut Child) -> SocketAddr {
    let started = Instant::now();
    loop {
        let line = std::fs::read(ready).ok().and_then(|bytes| bytes.lines().next()?.ok());
        if let Some(address) = line.as_deref().and_then(ready_address) {
            return address;
        }
        let exit_status = child.try_wait().expect("its status");
        assert!(exit_status.is_none(), "the shared service does not start:\n{}", running::log());
        assert!(started.elapsed() < patience(PATIENCE), "the shared service is not ready:\n{}", running::log());
        tokio::time::sleep(super::PAUSE).await;
    }
}

/// Identifies the build of the binary, and its role.
fn build() -> String {
    let role = if is_member() { ", as a member" } else { "" };
    format!("{}{role}", build_of(&binary()))
}
