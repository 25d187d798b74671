//! The note that says where the service runs that tests share, in a file that every process of the tests reads; and how
//! that service is stopped.
//!
//! The example that stops the service includes this file as well, so this file uses no other module of the tests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// How long the shared service may take to write what it has and to end.
const STOP_TIME_MAX: Duration = Duration::from_secs(120);

/// What the service logs last when nothing was lost.
const STOPPED_CLEANLY: &str = "stopped; all changes are written";

/// How many lines of the log a failure shows.
const LOG_LINES: usize = 40;

/// A service that tests share.
#[derive(Debug, Serialize, Deserialize)]
pub struct Running {
    pub pid: i32,
    pub address: SocketAddr,
    /// The database it serves.
    pub database: String,
    /// The build of its binary, and its role.
    pub build: String,
}

/// The folder of the shared service: beside the PostgreSQL that all tests share, in memory if there is enough.
pub fn folder() -> PathBuf {
    hotline_postgres::shared_folder().join("service")
}

fn note_path() -> PathBuf {
    folder().join("running.json")
}

/// What the service has logged.
pub fn log() -> String {
    std::fs::read_to_string(folder().join("service.log")).unwrap_or_default()
}

impl Running {
    /// The service that was started last; `None` if there is none, or if it was stopped.
    pub fn read() -> Option<Self> {
        serde_json::from_slice(&std::fs::read(note_path()).ok()?).ok()
    }

    pub fn write(&self) {
        // Renamed into place: a test that is killed here leaves no half-written note.
        let unfinished = folder().join("running.json.new");
        std::fs::write(&unfinished, serde_json::to_vec(self).expect("JSON")).expect("the note is written");
        std::fs::rename(unfinished, note_path()).expect("the note is in its place");
    }

    pub fn is_alive(&self) -> bool {
        kill(Pid::from_raw(self.pid), None) != Err(Errno::ESRCH)
    }

    /// Stops the service and removes its note.
    ///
    /// # Errors
    /// If the service had already ended, does not end, panicked or lost changes. The text includes the end of its log.
    pub fn stop(self) -> Result<(), String> {
        let outcome = self.end();
        std::fs::remove_file(note_path())
            .map_err(|error| format!("the note of the shared service cannot be removed: {error}"))?;
        outcome.map_err(|problem| {
            let log = log();
            let lines: Vec<&str> = log.lines().collect();
            format!("{problem}:\n{}", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"))
        })
    }

    fn end(&self) -> Result<(), String> {
        if !self.is_alive() {
            return Err("the service that the tests shared has ended by itself".to_owned());
        }
        kill(Pid::from_raw(self.pid), Signal::SIGTERM).map_err(|error| format!("it cannot be stopped: {error}"))?;
        let stop_requested = Instant::now();
        while self.is_alive() {
            if stop_requested.elapsed() > STOP_TIME_MAX {
                return Err(format!("the service that the tests shared has not stopped after {STOP_TIME_MAX:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = log();
        if let Some(panic) = log.lines().find(|line| line.contains("panicked")) {
            return Err(format!("a part of the service that the tests shared panicked: {panic}"));
        }
        if !log.contains(STOPPED_CLEANLY) {
            return Err("the service that the tests shared did not write all it had".to_owned());
        }
        Ok(())
    }
}
