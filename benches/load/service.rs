//! The `hotline` binary as its users run it, on a folder of its own.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::outcome::Outcome;

/// A running service; dropping it stops the process as a user would.
pub struct Service {
    child: Child,
    binary: Binary,
    folder: PathBuf,
    /// Options of its database, also for commands; empty: the database is in its folder.
    database: Vec<String>,
    pub address: SocketAddr,
    pub metrics: SocketAddr,
}

/// Seconds that are longer than any run.
pub const NEVER_S: u64 = 24 * 3600;

// The commands of these benches use old spellings, because `load against` also runs builds that know no others.

/// Options of every measured service: no limit on requests, and sessions that outlast the run. All others are the
/// defaults, except the time after which actors are idle.
const OPTIONS: [&str; 6] = ["--listen", "127.0.0.1:0", "--rate-per-minute", "0", "--session-idle-after-s", "86400"];

impl Service {
    /// Starts, and returns when it is ready.
    pub fn start(binary: &Binary, folder: &Path, idle_after_s: u64) -> Outcome<Self> {
        Self::start_on(binary, folder, &[], &["--idle-after-s".to_owned(), idle_after_s.to_string()])
    }

    /// Starts on the database of these options, which other processes may use too.
    pub fn start_on(binary: &Binary, folder: &Path, database: &[String], options: &[String]) -> Outcome<Self> {
        // The listener of the metrics does not print its port, so it gets one that was free a moment ago.
        let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log = std::fs::File::create(folder.join("service.log"))?;
        let mut child = binary
            .command(folder, &["serve"])?
            .args(OPTIONS)
            .args(["--metrics-listen", &metrics.to_string()])
            .args(database)
            .args(options)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let Some(address) = line.trim().strip_prefix("hotline is ready on http://") else {
            child.wait()?;
            return Err(format!("the service did not start: {}", last_log_lines(folder)).into());
        };
        let (binary, folder, address) = (binary.clone(), folder.to_owned(), address.parse()?);
        Ok(Self { child, binary, folder, database: database.to_owned(), address, metrics })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it, and fails if it did not flush everything.
    pub fn stop(mut self) -> Outcome<()> {
        self.terminate()?;
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(format!("the service ended with {status}: {}", last_log_lines(&self.folder)).into())
    }

    fn terminate(&self) -> Outcome<()> {
        Ok(kill(Pid::from_raw(i32::try_from(self.child.id())?), Signal::SIGTERM)?)
    }

    /// Runs a command of its binary on its folder.
    pub fn run_command(&self, arguments: &[&str]) -> Outcome<Value> {
        let database = self.database.iter().map(String::as_str);
        self.binary.run_command(&self.folder, &arguments.iter().copied().chain(database).collect::<Vec<_>>())
    }

    /// The service's metrics.
    pub async fn scrape(&self, http: &reqwest::Client) -> Outcome<ScrapedMetrics> {
        let text =
            http.get(format!("http://{}/metrics", self.metrics)).send().await?.error_for_status()?.text().await?;
        Ok(ScrapedMetrics(text))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait()
            && self.terminate().is_ok()
        {
            // The PostgreSQL of the service ends with it, before the folder is removed.
            let _ = self.child.wait();
        }
    }
}

/// The response of `/metrics`.
pub struct ScrapedMetrics(String);

impl ScrapedMetrics {
    /// A sample by its name and labels, as written.
    pub fn value(&self, sample: &str) -> Outcome<f64> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        Ok(line.ok_or_else(|| format!("no figure {sample}"))?.parse()?)
    }

    /// The lines of requests that were answered with an error.
    pub fn refused(&self) -> Vec<&str> {
        let is_refused = |line: &&str| {
            line.starts_with("hotline_http_requests_total{")
                && (line.contains("status=\"4") || line.contains("status=\"5"))
                && !line.ends_with(" 0")
        };
        self.0.lines().filter(is_refused).collect()
    }
}

/// The variable that names another binary than the one built with this program: the shipped or an instrumented one.
const BINARY_VARIABLE: &str = "HOTLINE_LOAD_BINARY";

/// A build of Hotline.
#[derive(Clone, Debug)]
pub struct Binary(PathBuf);

impl Binary {
    /// The measured build: the one that `HOTLINE_LOAD_BINARY` names, or the one built with this program.
    pub fn measured() -> Outcome<Self> {
        if let Some(named) = std::env::var_os(BINARY_VARIABLE) {
            return Self::at(Path::new(&named));
        }
        let here = std::env::current_exe()?;
        let profile = here.parent().and_then(Path::parent).ok_or("where this was built is not known")?;
        Self::at(&profile.join("hotline"))
    }

    pub fn at(path: &Path) -> Outcome<Self> {
        // Commands run in another folder.
        let path = std::path::absolute(path)?;
        if path.exists() { Ok(Self(path)) } else { Err(format!("{} is not built", path.display()).into()) }
    }

    fn command(&self, folder: &Path, arguments: &[&str]) -> Outcome<Command> {
        let mut command = Command::new(&self.0);
        // Options in the caller's environment must not change the measured service.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("HOTLINE_") && name != "HOTLINE_PG_BIN") {
                command.env_remove(name);
            }
        }
        command.args(arguments).arg("--data-dir").arg(folder).current_dir(folder).stdin(Stdio::null());
        command.env_remove("RUST_LOG");
        Ok(command)
    }

    /// Runs a command that ends, and reads its answer.
    pub fn run_command(&self, folder: &Path, arguments: &[&str]) -> Outcome<Value> {
        let output = self.command(folder, arguments)?.arg("--json").output()?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(format!("hotline {}: {}", arguments.join(" "), reason.trim()).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// The last lines of the service's log.
fn last_log_lines(folder: &Path) -> String {
    let log = std::fs::read_to_string(folder.join("service.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_its_whole_name() {
        let metrics =
            ScrapedMetrics("# HELP x\nlag_seconds_total 7\nlag_seconds 0.25\nhot{kind=\"tickets\"} 3\n".to_owned());
        assert!(metrics.value("lag_seconds").is_ok_and(|value| value == 0.25));
        assert!(metrics.value("hot{kind=\"tickets\"}").is_ok_and(|value| value == 3.0));
        assert!(metrics.value("hot").is_err());
    }

    #[test]
    fn only_errors_count_as_refused() {
        let line = |status: u16, count: u32| {
            format!("hotline_http_requests_total{{route=\"/x\",method=\"GET\",status=\"{status}\"}} {count}")
        };
        let metrics = ScrapedMetrics([line(200, 5), line(404, 0), line(409, 2), line(503, 1)].join("\n"));
        assert_eq!(metrics.refused(), [line(409, 2), line(503, 1)]);
    }
}
