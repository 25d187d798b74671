//! Why a cluster could not be started, reached or stopped.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use super::OLDEST_SUPPORTED;

/// Why a cluster could not be started, reached or stopped. Each message says what the operator can do.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The start was interrupted, and everything it had started is stopped.
    #[error("the start of PostgreSQL was interrupted")]
    Interrupted,

    /// No folder with `postgres` and `initdb` was found.
    #[error(
        "no PostgreSQL binaries found; install PostgreSQL {OLDEST_SUPPORTED} or newer \
         (Debian, Ubuntu: `apt-get install postgresql`; \
         Fedora: `dnf install postgresql-server postgresql-contrib`; \
         Alpine: `apk add postgresql postgresql-contrib`; \
         macOS: `brew install postgresql@16`), \
         set their folder with --pg-bin (HOTLINE_PG_BIN), \
         or use a running server with --database-url"
    )]
    NoBinaries,

    /// A client program was not found.
    #[error(
        "no `{name}` of PostgreSQL {major_min} or newer found; install it \
         (Debian, Ubuntu: `apt-get install postgresql-client`; Fedora: `dnf install postgresql`), \
         or set its folder with --pg-bin (HOTLINE_PG_BIN)"
    )]
    NoProgram {
        /// The program.
        name: String,
        /// The lowest suitable major version.
        major_min: u32,
    },

    /// The folder does not contain usable binaries.
    #[error("`{}` cannot be used as the folder of the PostgreSQL binaries: {reason}", directory.display())]
    BadBinaries {
        /// The folder.
        directory: PathBuf,
        /// The problem with it.
        reason: String,
    },

    /// The binaries are older than Hotline's statements require.
    #[error(
        "PostgreSQL in `{}` is version {version}, but {OLDEST_SUPPORTED} or newer is required; \
         install a newer version, or use another server with --database-url",
        directory.display()
    )]
    TooOld {
        /// Folder of the binaries.
        directory: PathBuf,
        /// Major version they report.
        version: u32,
    },

    /// The cluster was created by a different major version than the available binaries.
    #[error(
        "the cluster in `{}` was created by PostgreSQL {cluster_version}, but only version {found} was found; \
         install PostgreSQL {cluster_version}, set its folder with --pg-bin, \
         or upgrade the cluster with pg_upgrade (docs/operate/upgrade.md)",
        cluster.display()
    )]
    OtherVersion {
        /// Folder of the cluster.
        cluster: PathBuf,
        /// Major version that created it.
        cluster_version: u32,
        /// Major version of the binaries.
        found: u32,
    },

    /// Running as root, and no user exists to run PostgreSQL as.
    #[error(
        "PostgreSQL cannot run as root, and no user `postgres` or `nobody` exists to run it as; create one of them"
    )]
    NoUser,

    /// The cluster belongs to another user.
    #[error(
        "`{}` belongs to user {uid}; run hotline as that user or as root",
        path.display()
    )]
    OtherOwner {
        /// Folder of the cluster.
        path: PathBuf,
        /// The user id of its owner.
        uid: u32,
    },

    /// The user PostgreSQL runs as cannot reach the cluster.
    #[error(
        "PostgreSQL runs as the user `{user}`, which cannot access `{}`; run `chmod o+x` on it",
        path.display()
    )]
    Unreachable {
        /// The user PostgreSQL runs as.
        user: String,
        /// The folder the user cannot enter.
        path: PathBuf,
    },

    /// Something other than a cluster is where the cluster should be.
    #[error("`{}` exists but contains no PostgreSQL cluster; move it away", path.display())]
    NotACluster {
        /// The cluster's place.
        path: PathBuf,
    },

    /// The target of the link in the data folder does not exist.
    #[error(
        "`{}` points to `{}`, which does not exist; restore it, or remove the link to start with an empty database",
        link.display(), target.display()
    )]
    TargetMissing {
        /// The link in the data folder.
        link: PathBuf,
        /// The target of the link.
        target: PathBuf,
    },

    /// A cluster for this data folder exists, but the link to it is missing.
    #[error(
        "`{}` contains the cluster of this data folder, but its link `{}` is missing; \
         restore it with `ln -s`, or remove the cluster to start with an empty database",
        target.display(), link.display()
    )]
    Unlinked {
        /// The missing link.
        link: PathBuf,
        /// The cluster that was found.
        target: PathBuf,
    },

    /// Another process owns the cluster.
    #[error("the data folder `{}` is in use by {}", data_dir.display(), process(*pid))]
    InUse {
        /// Hotline's data folder.
        data_dir: PathBuf,
        /// The process that owns the cluster, if known.
        pid: Option<u32>,
    },

    /// The process that owns the cluster did not get it to accept connections in time.
    #[error(
        "the database of `{}`, run by {}, did not accept connections within {} s",
        data_dir.display(), process(*pid), waited.as_secs()
    )]
    NotServed {
        /// Hotline's data folder.
        data_dir: PathBuf,
        /// The process that owns the cluster, if known.
        pid: Option<u32>,
        /// How long this process waited.
        waited: Duration,
    },

    /// `initdb` failed.
    #[error("initdb could not create a cluster in `{}`: {output}", path.display())]
    InitFailed {
        /// Folder that was to become the cluster.
        path: PathBuf,
        /// The output of `initdb`.
        output: String,
    },

    /// PostgreSQL exited before it accepted a connection.
    #[error("PostgreSQL exited during its start ({}): {log_tail}", exit_status(*status))]
    ExitedEarly {
        /// Its exit status.
        status: Option<ExitStatus>,
        /// The last lines it wrote to its log.
        log_tail: String,
    },

    /// PostgreSQL is running, but does not accept connections.
    #[error(
        "postgres (process {pid}) did not accept connections in `{}` within {} s; see `{}`",
        socket_dir.display(), waited.as_secs(), log_file.display()
    )]
    NoAnswer {
        /// Process id of the postmaster.
        pid: u32,
        /// The folder in which it should listen.
        socket_dir: PathBuf,
        /// How long this process waited.
        waited: Duration,
        /// The log file with the reason.
        log_file: PathBuf,
    },

    /// A postmaster that Hotline did not start is running on the cluster.
    #[error(
        "process {pid} already runs PostgreSQL on `{}`, but does not answer in `{}`; stop it with `kill -INT {pid}`",
        cluster.display(), socket_dir.display()
    )]
    Foreign {
        /// Process id of the postmaster.
        pid: u32,
        /// Folder of the cluster.
        cluster: PathBuf,
        /// The folder in which Hotline's postmaster would listen.
        socket_dir: PathBuf,
    },

    /// PostgreSQL does not stop.
    #[error("postgres (process {pid}) did not stop; see `{}`", log_file.display())]
    StillRunning {
        /// Process id of the postmaster.
        pid: u32,
        /// The log file with the reason.
        log_file: PathBuf,
    },

    /// The socket's folder is not safe to use.
    #[error("`{}` cannot be used for the database socket: {reason}", path.display())]
    SocketDirectory {
        /// The folder.
        path: PathBuf,
        /// The problem with it.
        reason: &'static str,
    },

    /// PostgreSQL returned an error.
    #[error("private PostgreSQL cluster: could not {action}")]
    Database {
        /// The attempted operation.
        action: &'static str,
        /// PostgreSQL's error.
        source: sqlx::Error,
    },

    /// The operating system returned an error.
    #[error("could not {action} `{}`", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl ClusterError {
    /// For `map_err`: adds the operation and the path.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// For `map_err`: adds the operation on PostgreSQL.
    pub(super) fn database(action: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Database { action, source }
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn exit_status(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "unknown status".to_owned(), |status| status.to_string())
}
