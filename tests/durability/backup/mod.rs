//! Backups and restores with the command line: of services that run, are stopped or were killed.

mod checked;
mod commands;
mod incremental;
mod page;
mod proof;
mod restored;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Process, command, serving, with_database};
use crate::support::database::url;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, TestDatabase, eventually};

/// Which PostgreSQL an installation uses.
#[derive(Clone, Copy, PartialEq)]
pub enum Postgres {
    /// The private one, which the service runs itself.
    Private,
    /// One of the operator, which `--database-url` names.
    External,
}

/// Where an installation has its tables.
pub enum Tables {
    Private,
    External(Box<TestDatabase>),
}

/// An installation: its data folder and its database.
pub struct Installation {
    pub folder: TempDir,
    tables: Tables,
}

impl Installation {
    /// An installation with the schema, and nothing else.
    pub async fn new(postgres: Postgres) -> Self {
        let tables = match postgres {
            Postgres::Private => Tables::Private,
            Postgres::External => Tables::External(Box::new(TestDatabase::migrated().await)),
        };
        Self { folder: prepared_folder(), tables }
    }

    /// An empty data folder, and an empty database if that is external.
    pub async fn empty(postgres: Postgres) -> Self {
        let tables = match postgres {
            Postgres::Private => Tables::Private,
            Postgres::External => Tables::External(Box::new(TestDatabase::create().await)),
        };
        Self { folder: crate::process::data_folder(), tables }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn options(&self) -> Vec<String> {
        match &self.tables {
            Tables::Private => Vec::new(),
            Tables::External(database) => vec!["--database-url".to_owned(), url(&database.options)],
        }
    }

    /// A command of the binary on this installation, which logs nothing into its folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.path(), arguments);
        command.args(self.options());
        command
    }

    /// Serves; the log is in another folder than the data.
    pub fn serve(&self, logs: &Path) -> Process {
        let mut command = serving(self.path());
        let process = Process::start(logs, command.args(self.options()));
        process.unwrap_or_else(|log| panic!("hotline does not start: {log}"))
    }

    /// Creates a company, while the service runs.
    pub async fn company(&self) -> Company {
        match &self.tables {
            Tables::Private => with_database(self.path(), async |db| Company::create(db, "Acme").await).await,
            Tables::External(database) => Company::create(&database.db, "Acme").await,
        }
    }

    pub async fn drop(self) {
        if let Tables::External(database) = self.tables {
            (*database).drop().await;
        }
    }
}

/// A client of the company, once the service sees it.
pub async fn client(process: &Process, company: &Company) -> Api {
    let api = Api::new(process.address, &company.key);
    let is_seen = || async { api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2) };
    eventually("the company is seen", is_seen).await;
    api
}

/// Runs a command without blocking the thread of the test.
pub async fn finish(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().expect("hotline runs")).await.expect("an output")
}

/// Runs a command with `--json`, which must succeed; returns what it printed.
pub async fn run_json(mut command: Command) -> Value {
    command.arg("--json");
    let output = finish(command).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("no JSON: {error}: {stderr}"))
}

/// Runs a command that must fail; returns its exit code, and what it printed to stderr.
pub async fn run_refused(command: Command) -> (Option<i32>, String) {
    let output = finish(command).await;
    assert!(!output.status.success(), "it succeeded: {}", String::from_utf8_lossy(&output.stdout));
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

/// The folder of a backup that a command has printed.
pub fn backup_of(printed: &Value) -> PathBuf {
    printed["backup"].as_str().expect("the folder of the backup").into()
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
