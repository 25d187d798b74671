//! What a release left, as files: `tables.sql` of `pg_dump`, `journal`, `media`, `secrets.key`, and `expected.json`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hotline_persistence::PgPool;
use hotline_postgres::{Cluster, ClusterOptions};
use tempfile::TempDir;

use super::Expected;
use crate::process::{Process, data_folder};
use crate::support::database::url;

/// The files of an archive.
const FILES: [&str; 5] = ["tables.sql", "journal", "media", "secrets.key", "expected.json"];

/// A data folder with its database, which the service does not run itself: the database outlives a kill.
pub struct Snapshot {
    folder: TempDir,
    cluster: Cluster,
}

/// A tool of PostgreSQL.
fn tool(name: &str) -> Command {
    let binaries = std::env::var_os(hotline_postgres::BINARIES_VARIABLE).map(PathBuf::from);
    Command::new(binaries.map_or_else(|| PathBuf::from(name), |folder| folder.join(name)))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Snapshot {
    /// An empty folder and an empty database.
    pub async fn create() -> Self {
        let folder = data_folder();
        let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
        Self { folder, cluster }
    }

    /// The state in an archive: its files, and its tables in a database.
    pub async fn unpack(archive: &Path) -> Self {
        let snapshot = Self::create().await;
        run(Command::new("tar").arg("-xzf").arg(archive).arg("--no-same-owner").arg("-C").arg(snapshot.path()));
        std::fs::set_permissions(snapshot.path().join("secrets.key"), std::fs::Permissions::from_mode(0o600))
            .expect("mode");
        let tables = snapshot.path().join("tables.sql");
        run(tool("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &snapshot.url(), "-f"]).arg(tables));
        snapshot
    }

    /// Writes an archive of the state, while no service runs.
    pub fn pack(&self, archive: &Path, expected: &Expected) {
        std::fs::write(self.path().join("expected.json"), expected.json().to_string()).expect("written");
        run(Command::new("tar")
            .args(["-c", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -9n"])
            .arg("-f")
            .arg(archive)
            .arg("-C")
            .arg(self.path())
            .args(FILES));
    }

    /// Writes the tables into `tables.sql`.
    pub fn dump(&self) {
        let tables = self.path().join("tables.sql");
        run(tool("pg_dump").args(["--no-owner", "--no-privileges", "-d", &self.url(), "-f"]).arg(tables));
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn url(&self) -> String {
        url(&self.cluster.connect_options())
    }

    pub fn expected(&self) -> Expected {
        Expected::of(&std::fs::read_to_string(self.path().join("expected.json")).expect("what is expected"))
    }

    /// Starts the service on this state.
    pub fn serve(&self) -> Process {
        let url = self.url();
        let options = ["--database-url", url.as_str(), "--rate-per-minute", "0"];
        Process::try_serve(self.path(), &options).unwrap_or_else(|log| panic!("hotline does not start: {log}"))
    }

    pub fn database(&self) -> PgPool {
        crate::support::database::pool(self.cluster.connect_options())
    }

    /// Stops the database, runs `between`, and starts the database again; returns what `between` returns.
    pub async fn without_database<T>(&mut self, between: impl AsyncFnOnce() -> T) -> T {
        self.cluster.stop().await.expect("PostgreSQL stops");
        let result = between().await;
        let options = ClusterOptions::for_tests(self.path());
        self.cluster = Cluster::start(options).await.expect("PostgreSQL is back");
        result
    }

    pub async fn close(self) {
        self.cluster.stop().await.expect("PostgreSQL stops");
    }
}
