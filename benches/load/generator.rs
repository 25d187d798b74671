//! `wrk`, one thread, driven by the scripts in `lua/`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::machine;
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};

/// What the script's last line begins with.
const MARK: &str = "LOAD ";

/// An answer that takes longer is an error. Far above any that is well, so that latencies are whole.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Tells each run apart from those before it: idempotency keys and client ids are made of it.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// One run of the generator.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    pub scenario: Scenario,
    pub server: Server,
    pub address: SocketAddr,
    /// Where the ids are that it works on.
    pub subjects: &'a Path,
    pub connections: u32,
    pub time: Duration,
    /// Requests a second; none: as many as are answered.
    pub rate: Option<f64>,
}

/// What it counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadCounts {
    /// Answers.
    pub requests: u64,
    pub seconds: f64,
    pub bytes: u64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
    pub errors: Errors,
}

/// What went wrong, by where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Answers that are no success.
    pub status: u64,
    pub connect: u64,
    pub read: u64,
    pub write: u64,
    pub timeout: u64,
}

impl Errors {
    pub fn total(self) -> u64 {
        self.status + self.connect + self.read + self.write + self.timeout
    }
}

impl LoadCounts {
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    fn parse(output: &str) -> Option<Self> {
        serde_json::from_str(output.lines().find_map(|line| line.strip_prefix(MARK))?).ok()
    }
}

impl Load<'_> {
    /// Asks for as long as it was told, or until its subjects are used up.
    pub async fn run(&self) -> Outcome<LoadCounts> {
        let scripts = machine::sources().join("benches/load/lua");
        let mut command = Command::new("wrk");
        command
            .args(["--threads", "1", "--connections", &self.connections.to_string()])
            .args(["--duration", &format!("{}s", self.time.as_secs())])
            .args(["--timeout", &format!("{}s", ANSWER_TIME_MAX.as_secs())])
            .arg("--script")
            .arg(scripts.join(self.scenario.script()).with_extension("lua"))
            .arg(format!("http://{}", self.address))
            .env("HOTLINE_LOAD_SCRIPTS", &scripts)
            .env("HOTLINE_LOAD_SUBJECTS", self.subjects)
            .env("HOTLINE_LOAD_PREFIX", self.server.prefix())
            .env("HOTLINE_LOAD_RUN", RUNS.fetch_add(1, Ordering::Relaxed).to_string())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        match self.rate {
            Some(rate) => command.env("HOTLINE_LOAD_RATE", rate.to_string()),
            None => command.env_remove("HOTLINE_LOAD_RATE"),
        };
        let output = command.output().await.map_err(|error| format!("wrk: {error}; on Debian: apt-get install wrk"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let counted = output.status.success().then(|| LoadCounts::parse(&said)).flatten();
        counted.ok_or_else(|| format!("wrk did not report: {said}{}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_found_among_what_wrk_prints() {
        let printed = "Running 2s test\n  1 threads\n\nLOAD {\"requests\":10,\"seconds\":2.0,\"bytes\":99,\"p50_us\":1,\
            \"p99_us\":2,\"max_us\":3,\"errors\":{\"status\":1,\"connect\":0,\"read\":0,\"write\":0,\"timeout\":2}}\n";
        let counted = LoadCounts::parse(printed);
        assert!(counted.is_some_and(|counted| counted.per_second() == 5.0 && counted.errors.total() == 3));
        assert_eq!(LoadCounts::parse("Running 2s test\n"), None);
    }
}
