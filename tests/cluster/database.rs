//! PostgreSQL with a synchronous standby, as a cluster needs it: what an operator has Patroni for, the run does by
//! hand.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hotline_persistence::PgPool;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::task::block_in_place;

use crate::support::eventually;
use crate::support::process::{is_running, signal_with_children};

const USER: &str = "hotline";

/// The pause between two checks whether a process has ended.
const END_CHECK_EVERY: Duration = Duration::from_millis(1);

/// The primary and its standby.
pub struct Servers {
    pub primary: Server,
    pub standby: Server,
    folder: PathBuf,
}

/// One server of PostgreSQL.
pub struct Server {
    folder: PathBuf,
    pub address: SocketAddr,
    process: Option<Child>,
}

impl Servers {
    /// Starts both. A commit is on both before it is answered.
    pub async fn start(folder: &Path) -> Self {
        let folder = folder.join("postgresql");
        std::fs::create_dir(&folder).expect("a folder");
        give_to_postgres(&folder);
        let mut primary = Server::at(folder.join("primary"));
        run(tool("initdb")
            .args(["-U", USER, "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "-N", "-D"])
            .arg(&primary.folder));
        // Without `fsync`: a loss of power is not part of these runs.
        let settings = "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 300\nfsync = off\n\
                        wal_level = replica\nmax_wal_senders = 8\nhot_standby = on\nmax_wal_size = '256MB'\n";
        let path = primary.folder.join("postgresql.conf");
        let before = std::fs::read_to_string(&path).expect("its settings");
        std::fs::write(&path, format!("{before}\n{settings}")).expect("its settings");
        let allowed = "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";
        std::fs::write(primary.folder.join("pg_hba.conf"), allowed).expect("its access rules");
        primary.begin().await;
        primary.execute("postgres", "create database hotline").await;
        let mut standby = Server::at(folder.join("standby"));
        let from = format!("host=127.0.0.1 port={} user={USER} application_name=standby", primary.address.port());
        run(tool("pg_basebackup").args(["-X", "stream", "-c", "fast", "-R", "-d", &from, "-D"]).arg(&standby.folder));
        standby.begin().await;
        primary.execute("postgres", "alter system set synchronous_standby_names = 'standby'").await;
        primary.execute("postgres", "select pg_reload_conf()").await;
        let is_synchronous = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        let db = primary.connect();
        eventually("the standby is synchronous", || async {
            sqlx::query_scalar::<_, i64>(is_synchronous).fetch_one(&db).await.is_ok_and(|count| count == 1)
        })
        .await;
        db.close().await;
        Self { primary, standby, folder }
    }

    /// Kills the primary, and promotes the standby, which from then on waits for no other server.
    pub async fn fail_over(&mut self) {
        self.primary.kill();
        self.standby.execute("postgres", "alter system set synchronous_standby_names = ''").await;
        self.standby.execute("postgres", "select pg_reload_conf()").await;
        self.standby.execute("postgres", "select pg_promote()").await;
        std::mem::swap(&mut self.primary, &mut self.standby);
    }

    /// Ends the primary in the middle of its work: all its processes by SIGKILL, or by SIGQUIT, which is
    /// `pg_ctl stop -m immediate`. Its files stay as they are.
    pub fn crash(&mut self, by: Signal) {
        match by {
            Signal::SIGQUIT => self.primary.quit(),
            _ => self.primary.kill(),
        }
    }

    /// Restarts the primary in place.
    pub async fn restart_primary(&mut self) {
        self.primary.begin().await;
    }

    /// Signals every process of the primary.
    pub fn signal(&self, signal: Signal) {
        self.primary.signal(signal);
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.primary.kill();
        self.standby.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Server {
    fn at(folder: PathBuf) -> Self {
        Self { folder, address: free_address(), process: None }
    }

    async fn begin(&mut self) {
        let log = OpenOptions::new().create(true).append(true).open(self.folder.with_extension("log")).expect("a log");
        let mut command = tool("postgres");
        command.arg("-D").arg(&self.folder).args(["-p", &self.address.port().to_string()]);
        let started = command.stdout(Stdio::null()).stderr(log).spawn();
        self.process = Some(started.expect("PostgreSQL starts"));
        let options = self.options("postgres");
        eventually("PostgreSQL answers", || async { PgConnection::connect_with(&options).await.is_ok() }).await;
    }

    fn options(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.address.port())
            .username(USER)
            .database(database)
    }

    /// Connections with which a run itself reads rows.
    pub fn connect(&self) -> PgPool {
        crate::support::database::pool(self.options("hotline"))
    }

    async fn execute(&self, database: &str, statement: &str) {
        let mut connection = PgConnection::connect_with(&self.options(database)).await.expect("PostgreSQL answers");
        sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.expect("a statement");
    }

    /// Signals all processes.
    fn signal(&self, signal: Signal) {
        let Some(process) = &self.process else { return };
        signal_with_children(Pid::from_raw(process.id() as i32), signal).expect("the postmaster");
    }

    fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let postmaster = Pid::from_raw(process.id() as i32);
        // A stopped postmaster starts no others meanwhile. If it were dead, its children could no longer be found.
        let all = signal_with_children(postmaster, Signal::SIGSTOP).unwrap_or_default();
        for one in all.iter().chain([&postmaster]) {
            let _ = kill(*one, Signal::SIGKILL);
        }
        let _ = process.wait();
        // While a process is left, another PostgreSQL does not start in this folder.
        while all.iter().any(|one| is_running(*one)) {
            std::thread::sleep(END_CHECK_EVERY);
        }
    }

    /// Sends SIGQUIT to the postmaster, which ends its children.
    fn quit(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let _ = kill(Pid::from_raw(process.id() as i32), Signal::SIGQUIT);
        let _ = block_in_place(|| process.wait());
    }
}

/// The URL of a database behind this address.
pub fn url(address: SocketAddr) -> String {
    format!("postgres://{USER}@{address}/hotline")
}

/// Ports that the system does not assign by itself: it assigns those from 32768 on.
const OWN_PORTS: std::ops::Range<u16> = 12_000..32_000;

/// A free address that the system assigns to no other process: for a server whose address is configured before it
/// listens.
pub fn free_address() -> SocketAddr {
    static ASSIGNED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut assigned = ASSIGNED.lock();
    loop {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, rand::random_range(OWN_PORTS)));
        if std::net::TcpListener::bind(address).is_ok() && assigned.insert(address.port()) {
            return address;
        }
    }
}

/// If a person watches, the terminal's Ctrl-C reaches only the run itself, which then ends its processes in order.
pub fn detach_from_terminal(command: &mut Command) {
    if crate::IS_WATCHED {
        command.process_group(0);
    }
}

fn tool(name: &str) -> Command {
    let mut command = Command::new(binaries().join(name));
    detach_from_terminal(&mut command);
    command.stdin(Stdio::null()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if let Some(user) = postgres_user() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw()).current_dir("/");
    }
    command
}

fn run(command: &mut Command) {
    let output = command.output().expect("a tool of PostgreSQL");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The user for PostgreSQL, which does not run as root; `None` if this process does not either.
fn postgres_user() -> Option<User> {
    geteuid().is_root().then(|| User::from_name("postgres").ok().flatten().expect("a user called postgres"))
}

fn give_to_postgres(folder: &Path) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).expect("mode");
    if let Some(user) = postgres_user() {
        std::os::unix::fs::chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("owner");
    }
}

/// The folder of PostgreSQL's programs.
fn binaries() -> PathBuf {
    if let Some(folder) = std::env::var_os(hotline_postgres::BINARIES_VARIABLE) {
        return folder.into();
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect())
        .unwrap_or_default();
    found.retain(|folder| folder.join("postgres").exists());
    found.sort();
    found.pop().unwrap_or_else(|| {
        let output = Command::new("pg_config").arg("--bindir").output().expect("pg_config, or HOTLINE_PG_BIN");
        String::from_utf8_lossy(&output.stdout).trim().into()
    })
}
