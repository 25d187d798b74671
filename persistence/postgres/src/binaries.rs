//! Finding `postgres` and `initdb`.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::os_user::OsUser;
use super::{BINARIES_VARIABLE, ClusterError, OLDEST_SUPPORTED};

/// A program that only prints its version takes milliseconds; ten seconds means it hangs.
pub(super) const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Folders with one subfolder per version: parent, prefix of the subfolder's name, path of the binaries within it.
pub(super) const VERSIONED_FOLDERS: [(&str, &str, &str); 7] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/usr/libexec", "postgresql", ""),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql@", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// A folder that holds `postgres` and `initdb` of one usable version.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// Finds suitable binaries: in `configured` or `HOTLINE_PG_BIN` if given, otherwise the first in the usual folders.
    /// For an existing `cluster`, a folder and its major version, they must be of that version.
    pub(super) async fn find(
        configured: Option<&Path>,
        cluster: Option<(&Path, u32)>,
        user: &OsUser,
    ) -> Result<Self, ClusterError> {
        let configured = configured
            .map(Path::to_owned)
            .or_else(|| std::env::var_os(BINARIES_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from));
        match configured {
            Some(directory) => {
                let resolved = resolve_folder(&directory).ok_or_else(|| ClusterError::BadBinaries {
                    directory: directory.clone(),
                    reason: "it does not contain both `postgres` and `initdb`".to_owned(),
                })?;
                choose_binaries(vec![resolved], cluster, user).await
            }
            None => choose_binaries(find_candidates().await, cluster, user).await,
        }
    }

    pub(super) fn postgres(&self) -> PathBuf {
        self.directory.join("postgres")
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.directory.join("initdb")
    }
}

/// The first of the folders with a suitable version; if there is none, the error of the first folder.
pub(super) async fn choose_binaries(
    candidates: Vec<PathBuf>,
    cluster: Option<(&Path, u32)>,
    user: &OsUser,
) -> Result<Binaries, ClusterError> {
    let mut checked = HashSet::new();
    let mut first_error = None;
    for directory in candidates {
        if !checked.insert(directory.clone()) {
            continue;
        }
        let error = match (read_major_version(&directory, user).await, cluster) {
            (Err(error), _) => error,
            (Ok(version), _) if version < OLDEST_SUPPORTED => ClusterError::TooOld { directory, version },
            (Ok(version), Some((path, required))) if version != required => {
                ClusterError::OtherVersion { cluster: path.to_owned(), cluster_version: required, found: version }
            }
            (Ok(_), _) => return Ok(Binaries { directory }),
        };
        first_error.get_or_insert(error);
    }
    Err(first_error.unwrap_or(ClusterError::NoBinaries))
}

/// Every folder with both programs that `PATH`, `pg_config` or the usual locations lead to, in order of preference.
async fn find_candidates() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path).filter_map(|directory| resolve_folder(&directory)));
    folders.extend(folder_of_pg_config().await);
    for (parent, prefix, inner) in VERSIONED_FOLDERS {
        folders.extend(version_folders(Path::new(parent), prefix, inner));
    }
    folders
}

/// The real folder of the programs; `None` unless it contains both. A link such as `/usr/local/bin/postgres` is
/// resolved because `initdb` searches its templates relative to its own location.
fn resolve_folder(directory: &Path) -> Option<PathBuf> {
    ["postgres", "initdb"].into_iter().find_map(|program| {
        let real = directory.join(program).canonicalize().ok()?;
        let folder = real.parent()?;
        let is_complete = folder.join("postgres").is_file() && folder.join("initdb").is_file();
        is_complete.then(|| folder.to_owned())
    })
}

/// The folder that `pg_config` names, if it has both programs.
async fn folder_of_pg_config() -> Option<PathBuf> {
    let mut command = tokio::process::Command::new("pg_config");
    command.arg("--bindir").kill_on_drop(true);
    let output = tokio::time::timeout(VERSION_TIMEOUT, command.output()).await.ok()?.ok()?;
    resolve_folder(Path::new(String::from_utf8(output.stdout).ok()?.trim()))
}

/// The folders of the installed versions, the newest first; the arguments are a row of [`VERSIONED_FOLDERS`].
fn version_folders(parent: &Path, prefix: &str, inner: &str) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else {
        return Vec::new();
    };
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, resolve_folder(&entry.path().join(inner))?))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, path)| path).collect()
}

/// The major version of the binaries. `postgres` runs as the server's user, so that a folder which that user cannot
/// reach is an error.
async fn read_major_version(directory: &Path, user: &OsUser) -> Result<u32, ClusterError> {
    let bad_binaries = |reason: String| ClusterError::BadBinaries { directory: directory.to_owned(), reason };
    let mut command = user.command(&directory.join("postgres"));
    command.arg("--version").kill_on_drop(true);
    let output = tokio::time::timeout(VERSION_TIMEOUT, command.output())
        .await
        .map_err(|_| bad_binaries("`postgres --version` did not finish".to_owned()))?
        .map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => bad_binaries(format!("the user `{}` cannot run `postgres`", user.name)),
            _ => bad_binaries(format!("could not run `postgres`: {error}")),
        })?;
    let printed = String::from_utf8_lossy(&output.stdout);
    parse_major_version(&printed)
        .ok_or_else(|| bad_binaries(format!("`postgres --version` printed `{}`", printed.trim())))
}

/// Parses `postgres (PostgreSQL) 15.13 (Debian …)`, `… 17beta1`.
pub(super) fn parse_major_version(printed: &str) -> Option<u32> {
    let version = printed.split("(PostgreSQL)").nth(1)?.trim_start();
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
