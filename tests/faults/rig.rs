//! The service that a fault is made for: its process, its data folder, its database, and the door through which callers
//! find it again after a restart.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::str::FromStr;

use hotline_persistence::PgPool;
use hotline_postgres::Cluster;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::mix::Door;
use crate::shim::Shim;
use crate::support::process::{Process, data_folder, postmaster, serving, signal_with_children, with_database};
use crate::support::{Api, Company, Reply, eventually};

/// Small segments: a start fills two with zeros, and a run should use more than one. No limit on requests, since one
/// company makes the whole load; none on connections, since all come from one address.
const OPTIONS: &[&str] = &[
    "--journal-segment-size",
    "256KiB",
    "--rate-per-minute",
    "0",
    "--max-page-size",
    "1000",
    "--max-connections-per-address",
    "0",
];

/// What a run needs besides the service.
#[derive(Default)]
pub struct Needs<'a> {
    /// Faults of disk and clock.
    pub shim: bool,
    /// A PostgreSQL of the run's own, in place of the service's private one.
    pub postgres: Option<&'a Cluster>,
    /// File descriptors the service may have until it asks for more.
    pub files: Option<u32>,
}

pub struct Rig {
    pub company: Company,
    pub door: watch::Sender<Door>,
    /// Dropped before the folder, so that the process ends before its files are deleted.
    process: Option<Process>,
    shim: Option<Shim>,
    url: Option<String>,
    files: Option<u32>,
    folder: TempDir,
}

impl Rig {
    pub async fn start() -> Self {
        Self::with(Needs::default()).await
    }

    /// Starts the service, with a company in it.
    pub async fn with(needs: Needs<'_>) -> Self {
        let folder = data_folder();
        let shim = needs.shim.then(|| Shim::compile(folder.path()));
        let url = needs.postgres.map(Cluster::url);
        let (door, _) = watch::channel(Door::default());
        let process = start_process(folder.path(), shim.as_ref(), url.as_deref(), needs.files);
        let process = process.unwrap_or_else(|log| panic!("hotline does not start: {log}"));
        let create = async |db: &PgPool| Company::create(db, "Acme").await;
        let company = with_database_at(folder.path(), url.as_deref(), create).await;
        let rig = Self { company, door, process: Some(process), shim, url, files: needs.files, folder };
        rig.open_door();
        let api = rig.api();
        eventually("the company is seen", || async {
            api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2)
        })
        .await;
        rig
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn shim(&self) -> &Shim {
        self.shim.as_ref().expect("a run with the shim")
    }

    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("the service runs")
    }

    pub fn address(&self) -> SocketAddr {
        self.process().address
    }

    pub fn api(&self) -> Api {
        Api::new(self.address(), &self.company.key)
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.process.take().expect("the service runs").kill();
        self.shut_door();
    }

    /// Waits until the service ends by itself. Returns its status and its log.
    pub fn wait_for_exit(&mut self) -> (ExitStatus, String) {
        let mut process = self.process.take().expect("the service runs");
        let status = process.wait();
        self.shut_door();
        (status, process.log())
    }

    /// Starts the service again. Returns how many entries it replayed.
    pub fn serve(&mut self) -> u64 {
        self.try_serve().unwrap_or_else(|log| panic!("hotline does not start again: {log}"))
    }

    /// The same, but returns the log if the service does not start.
    pub fn try_serve(&mut self) -> Result<u64, String> {
        let process = start_process(self.folder(), self.shim.as_ref(), self.url.as_deref(), self.files)?;
        let replayed = process.replayed();
        self.process = Some(process);
        self.open_door();
        Ok(replayed)
    }

    /// A clean stop, after which the tables have everything.
    pub fn stop(&mut self) {
        self.process().terminate();
        let (status, log) = self.wait_for_exit();
        assert!(status.success(), "no clean stop ({status}): {log}");
    }

    /// Runs `work` on the database. Returns its result.
    pub async fn database<T>(&self, work: impl AsyncFnOnce(&PgPool) -> T) -> T {
        with_database_at(self.folder(), self.url.as_deref(), work).await
    }

    /// Signals every process of the private PostgreSQL.
    pub fn signal_postgres(&self, signal: Signal) {
        signal_with_children(self.postmaster(), signal).expect("the postmaster");
    }

    pub fn postmaster(&self) -> Pid {
        postmaster(self.folder()).expect("a running PostgreSQL")
    }

    /// Whether a postmaster other than this one runs.
    pub fn has_another_postmaster(&self, earlier: Pid) -> bool {
        postmaster(self.folder()).is_some_and(|found| found != earlier)
    }

    /// Asserts that the running service has logged this line, which the runbook explains.
    pub fn assert_logged(&self, line: &str) {
        let log = self.process().log();
        assert!(log.contains(line), "`{line}` was not logged: {log}");
    }

    /// Waits until lists are served.
    pub async fn wait_until_lists_are_served(&self) {
        let api = self.api();
        eventually("lists are served again", || async {
            api.try_get("/tickets?perPage=1").await.is_some_and(|reply| reply.status == 200)
        })
        .await;
    }

    /// Whether `/health/ready` shows a part as ready.
    pub async fn is_part_ready(&self, name: &str) -> bool {
        let ready = self.api().anonymous(reqwest::Method::GET, "/health/ready");
        Reply::of(ready).await.body["parts"][name] == "ready"
    }

    /// Kibibytes of memory, by a name in `/proc/<pid>/status`.
    pub fn memory_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process().pid())).expect("the process");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).expect("a number")
    }

    fn open_door(&self) {
        let api = self.api();
        self.door.send_modify(|door| *door = Door { apis: vec![api], life: door.life + 1, over: door.over });
    }

    fn shut_door(&self) {
        self.door.send_modify(|door| door.apis.clear());
    }
}

fn start_process(folder: &Path, shim: Option<&Shim>, url: Option<&str>, files: Option<u32>) -> Result<Process, String> {
    let mut command = serving(folder);
    command.args(OPTIONS);
    if let Some(url) = url {
        command.args(["--database-url", url]);
    }
    if let Some(files) = files {
        command = with_file_limit(&command, files);
    }
    if let Some(shim) = shim {
        shim.preload(&mut command);
    }
    Process::start(folder, &mut command)
}

/// The same command with a lower limit of file descriptors, which most systems give a service at first.
fn with_file_limit(command: &Command, files: u32) -> Command {
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(format!("ulimit -Sn {files} && exec \"$@\"")).arg("sh");
    limited.arg(command.get_program()).args(command.get_args()).stdin(std::process::Stdio::null());
    limited
}

async fn with_database_at<T>(folder: &Path, url: Option<&str>, work: impl AsyncFnOnce(&PgPool) -> T) -> T {
    let Some(url) = url else { return with_database(folder, work).await };
    let db = crate::support::database::pool(PgConnectOptions::from_str(url).expect("a URL"));
    let done = work(&db).await;
    db.close().await;
    done
}
