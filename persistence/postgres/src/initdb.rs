//! Creates the cluster atomically: complete, or not at all.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::binaries::Binaries;
use super::home::Home;
use super::{ClusterError, USER};

/// `initdb` takes a second or two; a slow disk that syncs about 40 MB may take a hundred times as long.
const INITDB_TIMEOUT: Duration = Duration::from_secs(180);

/// How long the removal of a leftover is retried: an `initdb` orphaned by a kill keeps writing until its next output
/// fails.
const LEFTOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two attempts to remove a leftover.
const LEFTOVER_INTERVAL: Duration = Duration::from_millis(100);

/// Locales in order of preference. Both sort by bytes, so that an upgrade of the C library never changes an index; the
/// second exists everywhere but only knows ASCII letters.
const LOCALES: [&str; 2] = ["C.UTF-8", "C"];

const PRIVATE: u32 = 0o700;

/// Major version that created the cluster; `None` if there is no cluster yet.
pub(super) fn cluster_version(home: &Home) -> Result<Option<u32>, ClusterError> {
    let path = home.cluster.join("PG_VERSION");
    match std::fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse() {
            Ok(version) => Ok(Some(version)),
            Err(_) => Err(not_a_cluster(home)),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let occupied = match home.cluster.read_dir() {
                Ok(mut entries) => entries.next().is_some(),
                Err(error) => error.kind() != ErrorKind::NotFound,
            };
            if occupied { Err(not_a_cluster(home)) } else { Ok(None) }
        }
        Err(error) => Err(ClusterError::io("read", &path)(error)),
    }
}

/// Creates the cluster next to its final location and moves it there when it is complete.
pub(super) async fn create(home: &Home, binaries: &Binaries, fsync: bool) -> Result<(), ClusterError> {
    let started_at = Instant::now();
    let temporary_path = home.temporary_path();
    let mut output = String::new();
    for locale in LOCALES {
        remove_leftover(&temporary_path).await?;
        DirBuilder::new().mode(PRIVATE).create(&temporary_path).map_err(ClusterError::io("create", &temporary_path))?;
        home.user.change_owner_recursively(&temporary_path)?;
        match run_initdb(home, binaries, &temporary_path, locale, fsync).await? {
            Ok(()) => {
                home.finish(fsync)?;
                tracing::info!(
                    cluster = %home.cluster.display(),
                    duration_ms = started_at.elapsed().as_millis(),
                    "created the private PostgreSQL cluster"
                );
                return Ok(());
            }
            Err(failed_output) => output = failed_output,
        }
    }
    remove_leftover(&temporary_path).await?;
    Err(ClusterError::InitFailed { path: home.cluster.clone(), output })
}

/// Changes the owner of a cluster that root put there, for example from a backup, to PostgreSQL's user.
pub(super) fn adjust_owner(home: &Home) -> Result<(), ClusterError> {
    let metadata = home.cluster.metadata().map_err(ClusterError::io("read", &home.cluster))?;
    if metadata.uid() == home.user.uid() {
        return Ok(());
    }
    home.user.change_owner_recursively(&home.cluster)
}

/// Runs `initdb`. The inner error is the output of a failed run; with another locale it may succeed.
async fn run_initdb(
    home: &Home,
    binaries: &Binaries,
    path: &Path,
    locale: &str,
    fsync: bool,
) -> Result<Result<(), String>, ClusterError> {
    let program = binaries.initdb();
    let mut command = home.user.command(&program);
    command
        .arg("--pgdata")
        .arg(path)
        .args(["--username", USER, "--encoding", "UTF8", "--locale", locale])
        // Safe because only PostgreSQL's user and root can reach the socket (see `socket`); a TCP port, if
        // one is ever opened, rejects all connections.
        .args(["--auth-local", "trust", "--auth-host", "reject"])
        .arg("--no-instructions")
        .kill_on_drop(true);
    if !fsync {
        command.arg("--no-sync");
    }
    let output = match timeout(INITDB_TIMEOUT, command.output()).await {
        Ok(output) => output.map_err(ClusterError::io("run", &program))?,
        Err(_) => {
            return Err(ClusterError::InitFailed {
                path: home.cluster.clone(),
                output: format!("not finished after {} s", INITDB_TIMEOUT.as_secs()),
            });
        }
    };
    if output.status.success() {
        return Ok(Ok(()));
    }
    let error_output = String::from_utf8_lossy(&output.stderr);
    Ok(Err(error_output.trim().replace('\n', "; ")))
}

async fn remove_leftover(path: &Path) -> Result<(), ClusterError> {
    let started_at = Instant::now();
    loop {
        match std::fs::remove_dir_all(path) {
            Ok(()) => return Ok(()),
            // `NotFound` may also be about a file in the folder that has just disappeared.
            Err(error) if error.kind() == ErrorKind::NotFound && !path.exists() => return Ok(()),
            Err(error) if started_at.elapsed() > LEFTOVER_TIMEOUT => {
                return Err(ClusterError::io("remove", path)(error));
            }
            Err(_) => sleep(LEFTOVER_INTERVAL).await,
        }
    }
}

fn not_a_cluster(home: &Home) -> ClusterError {
    ClusterError::NotACluster { path: home.cluster.clone() }
}
