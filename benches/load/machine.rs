//! The machine and the build that produced the figures.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::outcome::Outcome;

#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    pub measured_at: String,
    pub commit: Option<String>,
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: f64,
    pub kernel: String,
    pub postgres: String,
    /// Whether the build is optimised; otherwise the figures mean nothing.
    pub is_release: bool,
}

impl Machine {
    pub fn here(postgres: String) -> Outcome<Self> {
        let cpus = std::fs::read_to_string("/proc/cpuinfo")?;
        let cpu = cpus.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
        let memory = std::fs::read_to_string("/proc/meminfo")?;
        let memory_kib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
        Ok(Self {
            measured_at: chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string(),
            commit: commit(),
            cpu: cpu.map_or_else(|| "unknown".to_owned(), |(_, model)| model.to_owned()),
            cores: cores(),
            memory_gib: memory_kib.ok_or("/proc/meminfo names no memory")? / 1024.0 / 1024.0,
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            postgres,
            is_release: !cfg!(debug_assertions),
        })
    }

    /// The line above every table.
    pub fn line(&self) -> String {
        let commit = self.commit.as_deref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
        let build = if self.is_release { "" } else { " **Not a release build: nothing here means anything.**" };
        format!(
            "{}{commit}. {} cores ({}) shared by all that runs, {:.0} GiB, Linux {}, PostgreSQL {}.{build}",
            self.measured_at, self.cores, self.cpu, self.memory_gib, self.kernel, self.postgres
        )
    }
}

/// Number of cores, as the service counts them for its workers.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// The commit of the sources; `None` if they are not in a repository, or `git` is missing.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(sources()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_clean { commit } else { format!("{commit} with changes") })
}

/// The folder of the package.
pub fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
