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

/// The prefix of the script's last line.
const MARK: &str = "LOAD ";

/// A response that takes longer is an error. Far longer than a regular one, so that no latency is cut off.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// The number of the next run: idempotency keys and client ids contain it, so that they differ between runs.
static NEXT_RUN: AtomicU64 = AtomicU64::new(1);

/// One run of the generator.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    pub scenario: Scenario,
    pub server: Server,
    pub address: SocketAddr,
    /// The file with the ids that the run uses.
    pub subjects: &'a Path,
    pub connections: u32,
    pub time: Duration,
    /// Offered requests per second; `None`: as many as are answered.
    pub rate: Option<f64>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadCounts {
    /// Number of responses.
    pub requests: u64,
    pub seconds: f64,
    pub bytes: u64,
    pub p50_us: u64,
    pub p95_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
    pub errors: Errors,
}

/// Numbers of errors, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Responses whose status is not a success.
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
    /// Sends requests until its time is over or its subjects are used up.
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
            .env("HOTLINE_LOAD_RUN", NEXT_RUN.fetch_add(1, Ordering::Relaxed).to_string())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        match self.rate {
            Some(rate) => command.env("HOTLINE_LOAD_RATE", rate.to_string()),
            None => command.env_remove("HOTLINE_LOAD_RATE"),
        };
        let output = command.output().await.map_err(|error| format!("wrk: {error}; on Debian: apt-get install wrk"))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let counted = output.status.success().then(|| LoadCounts::parse(&stdout)).flatten();
        counted.ok_or_else(|| format!("wrk did not report: {stdout}{}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_found_in_the_output_of_wrk() {
        let output = "Running 2s test\n  1 threads\n\nLOAD {\"requests\":10,\"seconds\":2.0,\"bytes\":99,\"p50_us\":1,\"p95_us\":1,\
            \"p99_us\":2,\"max_us\":3,\"errors\":{\"status\":1,\"connect\":0,\"read\":0,\"write\":0,\"timeout\":2}}\n";
        let counted = LoadCounts::parse(output);
        assert!(counted.is_some_and(|counted| counted.per_second() == 5.0 && counted.errors.total() == 3));
        assert_eq!(LoadCounts::parse("Running 2s test\n"), None);
    }
}
