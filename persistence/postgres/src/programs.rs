//! Finding client programs of PostgreSQL, such as `pg_dump`.

use std::path::{Path, PathBuf};

use super::binaries::{VERSION_TIMEOUT, VERSIONED_FOLDERS, parse_major_version};
use super::{BINARIES_VARIABLE, ClusterError};

/// A program, and the major version it reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// Its major version.
    pub major: u32,
}

/// Finds a client program of major version `major_min`, or else of the lowest newer one: a `pg_dump` older than the
/// server refuses to dump it, and a newer one writes settings that the server does not know.
///
/// # Errors
/// [`ClusterError::NoProgram`] when there is none.
pub async fn find_program(name: &str, configured: Option<&Path>, major_min: u32) -> Result<Program, ClusterError> {
    let mut best: Option<Program> = None;
    for path in candidates(name, configured) {
        let Some(major) = read_major_version(&path).await.filter(|major| *major >= major_min) else { continue };
        if best.as_ref().is_none_or(|program| major < program.major) {
            best = Some(Program { path, major });
        }
        if major == major_min {
            break;
        }
    }
    best.ok_or_else(|| ClusterError::NoProgram { name: name.to_owned(), major_min })
}

fn candidates(name: &str, configured: Option<&Path>) -> Vec<PathBuf> {
    let configured = configured
        .map(Path::to_owned)
        .or_else(|| std::env::var_os(BINARIES_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from));
    let mut folders: Vec<PathBuf> = Vec::new();
    match configured {
        Some(folder) => folders.push(folder),
        None => {
            for (parent, prefix, inner) in VERSIONED_FOLDERS {
                folders.extend(version_folders(Path::new(parent), prefix, inner));
            }
            // Last: Debian's programs there are wrappers that choose a version.
            folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        }
    }
    folders.into_iter().map(|folder| folder.join(name)).filter(|path| path.is_file()).collect()
}

fn version_folders(parent: &Path, prefix: &str, inner: &str) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else { return Vec::new() };
    let is_version = |name: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
    let entries = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_version));
    entries.map(|entry| entry.path().join(inner)).collect()
}

async fn read_major_version(path: &Path) -> Option<u32> {
    let mut command = tokio::process::Command::new(path);
    command.arg("--version").stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(VERSION_TIMEOUT, command.output()).await.ok()?.ok()?;
    parse_major_version(&String::from_utf8_lossy(&output.stdout))
}
