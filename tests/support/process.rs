//! Runs the `hotline` binary as its users do.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use hotline_persistence::PgPool;
use hotline_persistence::sealed::Keyring;
use hotline_postgres::{Cluster, ClusterOptions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::patience;

/// A process that serves.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
    log: PathBuf,
}

/// How long a start may take.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a process may take to stop after SIGSTOP.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// The arguments with which tests start a service.
pub const SERVE: &[&str] = &["serve", "--listen", "127.0.0.1:0", "--log", "json"];

/// A folder that the user of PostgreSQL may enter as well.
pub fn data_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = super::empty_folder();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).expect("mode");
    folder
}

/// The environment variable that names a binary other than the one built with the tests: the shipped one, to
/// measure it.
const OTHER_BINARY_VARIABLE: &str = "HOTLINE_TEST_BINARY";

/// Whether the binary is not the one that was built with the tests.
pub fn is_other_binary() -> bool {
    std::env::var_os(OTHER_BINARY_VARIABLE).is_some()
}

/// The binary: the other one if it is named, the one built with the tests, or the one beside the running example.
pub fn binary() -> PathBuf {
    if let Some(other) = std::env::var_os(OTHER_BINARY_VARIABLE) {
        return other.into();
    }
    if let Some(binary) = option_env!("CARGO_BIN_EXE_hotline") {
        return binary.into();
    }
    let example = std::env::current_exe().expect("the example that runs");
    // target/debug/examples/<example>
    let folder = example.parent().and_then(Path::parent).expect("the build folder");
    folder.join("hotline")
}

/// Identifies the build of a binary: its size and time.
pub fn build_of(binary: &Path) -> String {
    let found = std::fs::metadata(binary).expect("the binary");
    let built = found.modified().expect("when it was built").duration_since(UNIX_EPOCH).expect("a time");
    format!("{} bytes at {} ms", found.len(), built.as_millis())
}

/// A command that runs the binary, without the variables that only tests read, since the binary would warn about them.
pub fn hotline() -> Command {
    hotline_of(&binary())
}

fn hotline_of(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        name.starts_with("HOTLINE_TEST") || name == BASELINE_BINARY_VARIABLE
    }) {
        command.env_remove(name);
    }
    command
}

/// A command that runs the binary on this data folder.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = hotline();
    command.args(arguments).arg("--data-dir").arg(folder).stdin(Stdio::null());
    command
}

/// Small segments of the journal, as in the tests' own processes: each start fills some with zeros. An environment
/// variable, so that a test's option on the command line wins.
const SEGMENT_SIZE: (&str, &str) = ("HOTLINE_JOURNAL_SEGMENT_SIZE", "1MiB");

/// The command with which tests start a service.
pub fn serving(folder: &Path) -> Command {
    serving_by(&binary(), folder)
}

/// The same, with another binary.
pub fn serving_by(binary: &Path, folder: &Path) -> Command {
    let mut command = hotline_of(binary);
    command.args(SERVE).arg("--data-dir").arg(folder).stdin(Stdio::null());
    command.env(SEGMENT_SIZE.0, SEGMENT_SIZE.1);
    command
}

/// The environment variable that names the binary of the previous release, for tests of upgrades.
const BASELINE_BINARY_VARIABLE: &str = "HOTLINE_BASELINE_BINARY";

/// The binary of the previous release, if the variable names one.
pub fn baseline_binary() -> Option<PathBuf> {
    std::env::var_os(BASELINE_BINARY_VARIABLE).map(PathBuf::from)
}

/// The keys that seal the secrets of this folder's service.
pub fn keys_of(folder: &Path) -> Keyring {
    let keys = Keyring::at(folder.join("secrets.key"));
    keys.load_or_create().expect("a key file");
    keys
}

/// Runs a command to its end.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("hotline runs")
}

/// The address in the line by which a service reports that it is ready, as text or as an object of its log; `None` for
/// other lines.
pub fn ready_address(line: &str) -> Option<SocketAddr> {
    let object: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let text = object.as_ref().and_then(|line| line["fields"]["message"].as_str()).unwrap_or(line);
    text.trim().strip_prefix("hotline is ready on http://")?.parse().ok()
}

impl Process {
    pub fn serve(folder: &Path) -> Self {
        Self::try_serve(folder, &[]).unwrap_or_else(|log| panic!("hotline does not start: {log}"))
    }

    /// Starts the demo and waits until it is ready. Returns the process and what it printed.
    pub fn demo(folder: &Path) -> (Self, String) {
        let log = folder.join("service.log");
        let stderr = std::fs::File::create(&log).expect("log");
        let mut command = command(folder, &["demo", "--listen", "127.0.0.1:0"]);
        command.env(SEGMENT_SIZE.0, SEGMENT_SIZE.1);
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("hotline runs");
        let mut printed = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        // The last line says how to stop it.
        for line in lines.by_ref().map_while(Result::ok) {
            printed.push_str(&line);
            printed.push('\n');
            if line.contains("Ctrl-C") {
                break;
            }
        }
        let address = printed.lines().find_map(|line| line.strip_prefix("hotline is ready on http://"));
        let address = address.and_then(|address| address.parse().ok());
        (Self { child, address: address.expect("the demo is ready"), log }, printed)
    }

    /// Serves with these options. The error is the log, if the process ended instead.
    pub fn try_serve(folder: &Path, options: &[&str]) -> Result<Self, String> {
        Self::start(folder, serving(folder).args(options))
    }

    /// Serves, and logs what `filter` lets through.
    pub fn serve_logging(folder: &Path, filter: &str) -> Self {
        let served = Self::start(folder, serving(folder).env("RUST_LOG", filter));
        served.unwrap_or_else(|log| panic!("hotline does not start: {log}"))
    }

    /// Serves with these options and environment variables.
    pub fn serve_with(folder: &Path, options: &[&str], variables: &[(&str, String)]) -> Self {
        let mut command = serving(folder);
        let variables = variables.iter().map(|(name, value)| (*name, value.as_str()));
        let served = Self::start(folder, command.args(options).envs(variables));
        served.unwrap_or_else(|log| panic!("hotline does not start: {log}"))
    }

    /// Serves with these options; the process aborts itself at this failpoint.
    pub fn serve_with_failpoint(folder: &Path, options: &[&str], point: &str) -> Self {
        let mut command = serving(folder);
        let served = Self::start(folder, command.args(options).env("FAILPOINTS", format!("{point}=return")));
        served.unwrap_or_else(|log| panic!("hotline does not start: {log}"))
    }

    /// Runs a command that serves, and waits until it is ready. The error is the log, if the process ended instead.
    pub fn start(folder: &Path, command: &mut Command) -> Result<Self, String> {
        let log = folder.join("service.log");
        let stderr = std::fs::File::create(&log).expect("log");
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("hotline runs");
        let started = Instant::now();
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
        assert!(started.elapsed() < patience(START_TIME_MAX), "the start took {:?}", started.elapsed());
        match ready_address(&line) {
            Some(address) => Ok(Self { child, address, log }),
            None => {
                let status = child.wait().expect("status");
                assert!(!status.success(), "it ended successfully without serving");
                Err(std::fs::read_to_string(&log).expect("log"))
            }
        }
    }

    pub fn kill(mut self) {
        self.child.kill().expect("kill -9");
        self.child.wait().expect("status");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Bytes of memory the process has now.
    pub fn resident_bytes(&self) -> u64 {
        self.memory("VmRSS")
    }

    /// The most bytes of memory that the process has had since [`Process::forget_peak`].
    pub fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM")
    }

    pub fn forget_peak(&self) {
        // proc(5): 5 resets the peak to what there is now.
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").expect("the peak is forgotten");
    }

    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("status");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        let kib: u64 = line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").trim().parse().expect("a number");
        kib * 1024
    }

    pub fn terminate(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).expect("SIGTERM");
    }

    /// Waits until the process has ended; fails if it takes longer than a start may.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + patience(START_TIME_MAX);
        loop {
            let is_late = Instant::now() >= deadline;
            if let Some(status) = self.child.try_wait().expect("status") {
                return status;
            }
            assert!(!is_late, "the process does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What the process has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("log")
    }

    /// How many entries of the journal the start wrote into the tables again, by its log.
    pub fn replayed(&self) -> u64 {
        let log = std::fs::read_to_string(&self.log).expect("log");
        let recovered = log
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find(|line| line["fields"]["message"] == "recovered")
            .expect("the start says what it recovered");
        recovered["fields"]["replayed"].as_u64().expect("a number")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that fails leaves nothing running. If the process has ended, both calls do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child processes of a process.
pub fn children(parent: Pid) -> Vec<Pid> {
    let is_child = |process: &Pid| state(*process).is_some_and(|(_, parent_id)| parent_id == parent.as_raw());
    let names =
        std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).map(Pid::from_raw).filter(is_child).collect()
}

/// Signals a process and its children, which are returned. With SIGSTOP the process has stopped before its children are
/// listed, so that none is missed.
///
/// # Errors
/// When the process does not exist.
pub fn signal_with_children(parent: Pid, signal: Signal) -> nix::Result<Vec<Pid>> {
    kill(parent, signal)?;
    if signal == Signal::SIGSTOP {
        wait_until_stopped(parent);
    }
    let children = children(parent);
    for child in &children {
        // It may have ended by itself meanwhile.
        let _ = kill(*child, signal);
    }
    Ok(children)
}

/// A signal takes effect some time after it is sent: until then, the process may still finish a `fork`.
fn wait_until_stopped(process: Pid) {
    let deadline = Instant::now() + patience(STOP_TIME_MAX);
    while state(process).is_some_and(|(state, _)| !["T", "Z", "X"].contains(&state.as_str())) {
        assert!(Instant::now() < deadline, "process {process} does not stop");
        std::thread::yield_now();
    }
}

/// The postmaster of a data folder's private PostgreSQL, if one runs.
pub fn postmaster(folder: &Path) -> Option<Pid> {
    let text = std::fs::read_to_string(folder.join("postgres/postmaster.pid")).ok()?;
    text.lines().next()?.parse().ok().map(Pid::from_raw)
}

/// Whether a process runs. A zombie does not: it has ended, and only its parent has not waited for it yet.
pub fn is_running(process: Pid) -> bool {
    state(process).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// The state of a process, and its parent's id; `None` if there is no such process.
fn state(process: Pid) -> Option<(String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The fields follow the name in parentheses, which may itself contain anything.
    let mut fields = stat.rsplit_once(')')?.1.split(' ').skip(1);
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Connections to the private database of a folder whose service runs. PostgreSQL outlives a service that is killed,
/// and the next start continues with it: the connections work until a service stops cleanly, and again while the next
/// one runs.
pub async fn database(folder: &Path) -> PgPool {
    let cluster = Cluster::open(ClusterOptions::new(folder)).await.expect("the private PostgreSQL opens");
    super::database::pool(cluster.connect_options())
}

/// Runs `work` on the private database of a folder, whether or not a service runs there. Returns its result.
pub async fn with_database<T>(folder: &Path, work: impl AsyncFnOnce(&PgPool) -> T) -> T {
    let cluster = Cluster::open(ClusterOptions::new(folder)).await.expect("the private PostgreSQL opens");
    let db = super::database::pool(cluster.connect_options());
    let done = work(&db).await;
    db.close().await;
    cluster.stop().await.expect("the private PostgreSQL stops");
    done
}
