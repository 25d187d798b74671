//! Finding client programs of PostgreSQL, such as `pg_dump`.

use std::path::{Path, PathBuf};

use super::binaries::{VERSION_TIMEOUT, VERSIONED, major};
use super::{BINARIES_VARIABLE, ClusterError};

/// A program, and the major version it reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// Its major version.
    pub major: u32,
}

/// Finds a client program of major version `least`, or else of the lowest newer one: a `pg_dump` that is older than the
/// server refuses it, and a newer one writes settings that the server does not know.
///
/// # Errors
/// [`ClusterError::NoProgram`] when there is none.
pub async fn find_program(name: &str, configured: Option<&Path>, least: u32) -> Result<Program, ClusterError> {
    let mut found: Option<Program> = None;
    for path in candidates(name, configured) {
        let Some(major) = version(&path).await.filter(|major| *major >= least) else { continue };
        if found.as_ref().is_none_or(|best| major < best.major) {
            found = Some(Program { path, major });
        }
        if major == least {
            break;
        }
    }
    found.ok_or_else(|| ClusterError::NoProgram { name: name.to_owned(), least })
}

fn candidates(name: &str, configured: Option<&Path>) -> Vec<PathBuf> {
    let configured = configured
        .map(Path::to_owned)
        .or_else(|| std::env::var_os(BINARIES_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from));
    let mut folders: Vec<PathBuf> = Vec::new();
    match configured {
        Some(folder) => folders.push(folder),
        None => {
            for (parent, prefix, inner) in VERSIONED {
                folders.extend(versions(Path::new(parent), prefix, inner));
            }
            // Last: Debian's programs there are wrappers that choose a version.
            folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        }
    }
    folders.into_iter().map(|folder| folder.join(name)).filter(|path| path.is_file()).collect()
}

fn versions(parent: &Path, prefix: &str, inner: &str) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else { return Vec::new() };
    let is_version = |name: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
    let entries = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_version));
    entries.map(|entry| entry.path().join(inner)).collect()
}

async fn version(path: &Path) -> Option<u32> {
    let mut command = tokio::process::Command::new(path);
    command.arg("--version").stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(VERSION_TIMEOUT, command.output()).await.ok()?.ok()?;
    major(&String::from_utf8_lossy(&output.stdout))
}
