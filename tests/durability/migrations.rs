//! Which commands migrate, and that a migration blocks no one: beside readers that hold its locks, beside a service,
//! and after a process that was killed while it migrated.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use hotline::exit_code::Exit;
use hotline_persistence::migration::LOCK_TIME_MAX;
use hotline_persistence::schema;
use serde_json::{Value, json};
use sqlx::migrate::Migrate;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

use crate::process::{Process, SERVE, command, data_folder};
use crate::support::database::url;
use crate::support::{Api, Company, TestDatabase, eventually};

/// The least number of requests that a service answers while a migration waits.
const REQUESTS: usize = 40;

/// The least number of attempts of the migration meanwhile.
const ATTEMPTS: u32 = 3;

/// How long a migration that has to name the holder of its lock waits: several attempts, of two seconds each, since it
/// looks for the holder only during an attempt.
const NAMING_WAIT: &str = "5s";

/// A release that has one migration more than this one.
struct NextRelease {
    migrations: TempDir,
    data: TempDir,
    url: String,
}

impl NextRelease {
    fn new(database: &TestDatabase, sql: &str) -> Self {
        let next = Self { migrations: data_folder(), data: data_folder(), url: url(&database.options) };
        std::fs::write(next.migrations.path().join("9001_later.sql"), sql).expect("a migration");
        next
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.data.path(), &[arguments, &["--database-url", &self.url]].concat());
        command.env("FAILPOINTS", format!("migrations=return({})", self.migrations.path().display()));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("hotline runs")
    }

    /// Runs a command, which must end with this exit code; what it printed to stderr.
    #[track_caller]
    fn exits_with(&self, arguments: &[&str], exit: Exit) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(exit.code().into()), "{arguments:?}: {stderr}");
        stderr
    }

    /// Runs a command with `--json`, which must succeed; its output.
    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Starts to migrate, with stderr in a file.
    fn begin_migration(&self, arguments: &[&str]) -> Migrating {
        let log = self.data.path().join("migrate.log");
        let stderr = std::fs::File::create(&log).expect("a log");
        let child = self.command(&[&["migrate"], arguments].concat()).stdout(Stdio::null()).stderr(stderr).spawn();
        Migrating { child: child.expect("hotline runs"), log }
    }
}

/// A migration in progress.
struct Migrating {
    child: Child,
    log: std::path::PathBuf,
}

impl Migrating {
    fn stderr(&self) -> String {
        std::fs::read_to_string(&self.log).expect("a log")
    }

    async fn wait_for_line(&self, text: &str) {
        eventually(text, || async { self.stderr().contains(text) }).await;
    }

    async fn wait_for_exit(&mut self, exit: Exit) {
        let mut code = None;
        eventually("the migration ends", || {
            code = self.child.try_wait().expect("a status").map(|status| status.code());
            let is_over = code.is_some();
            async move { is_over }
        })
        .await;
        assert_eq!(code.flatten(), Some(exit.code().into()), "{}", self.stderr());
    }
}

impl Drop for Migrating {
    fn drop(&mut self) {
        // A test that fails leaves nothing running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn newest_migration(database: &TestDatabase) -> i64 {
    let newest = "select max(version) from _sqlx_migrations";
    sqlx::query_scalar(newest).fetch_one(&database.db).await.expect("the last migration")
}

/// A session that has read a table, and keeps its transaction open; and the id of its process.
async fn reader(database: &TestDatabase, table: &str) -> (PgConnection, i32) {
    let mut session = PgConnection::connect_with(&database.options).await.expect("a session");
    let count = format!("select count(*) from {table}");
    for statement in ["set application_name = 'nightly export'", "begin isolation level repeatable read", &count] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut session).await.expect("a read");
    }
    let pid = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await.expect("its process");
    (session, pid)
}

const ADD_COLUMN: &str =
    "-- Locks: messages (access exclusive, catalog only)\nalter table messages add column later text;";

#[actix_web::test]
async fn an_existing_database_is_migrated_by_serve_and_migrate_only() {
    let database = TestDatabase::migrated().await;
    let before = newest_migration(&database).await;
    let next = NextRelease::new(&database, ADD_COLUMN);
    for refused in [&["company", "create", "Acme"][..], &["report", "rebuild"], &["secret", "list"]] {
        let stderr = next.exits_with(refused, Exit::Configuration);
        assert!(stderr.contains("migration 9001 (later)") && stderr.contains("hotline migrate"), "{stderr}");
    }
    let stderr = next.exits_with(&[SERVE, &["--migrate=false"]].concat(), Exit::Configuration);
    assert!(stderr.contains("hotline migrate"), "{stderr}");
    // A command that only reads needs no migration, as long as the schema has what it reads.
    assert_eq!(next.json(&["company", "list"])["companies"], json!([]));
    sqlx::query("alter table admins rename column email to mail").execute(&database.db).await.expect("an older schema");
    let stderr = next.exits_with(&["admin", "list"], Exit::Configuration);
    assert!(stderr.contains("migration 9001 (later)") && stderr.contains("hotline migrate"), "{stderr}");
    let plan = next.json(&["migrate", "--plan"]);
    let planned = json!({"number": 9001, "name": "later", "locks": "messages (access exclusive, catalog only)"});
    assert_eq!(plan["migrations"], json!([planned]));
    assert_eq!(newest_migration(&database).await, before, "something was migrated");

    let migrated = next.run(&["migrate", "--json"]);
    let stderr = String::from_utf8_lossy(&migrated.stderr).into_owned();
    assert!(migrated.status.success() && stderr.contains("migration 9001 (later) applied in"), "{stderr}");
    assert!(stderr.contains("finds a newer schema, which it may still serve"), "{stderr}");
    let printed: Value = serde_json::from_slice(&migrated.stdout).expect("JSON");
    assert_eq!(printed["migrations"][0]["number"], 9001, "{printed}");
    assert!(printed["migrations"][0]["durationMs"].is_u64(), "{printed}");
    assert_eq!(newest_migration(&database).await, 9001);
    assert_eq!(next.json(&["migrate"])["migrations"], json!([]));
    next.json(&["company", "create", "Acme"]);
    database.drop().await;
}

#[actix_web::test]
async fn an_older_release_on_a_newer_schema_says_so_in_one_line() {
    let database = TestDatabase::migrated().await;
    let next = NextRelease::new(&database, ADD_COLUMN);
    next.json(&["migrate"]);
    let serve = || Process::try_serve(next.data.path(), &["--database-url", &next.url]);
    let process = serve().unwrap_or_else(|log| panic!("not served: {log}"));
    assert_eq!(process.log().matches("the database has the schema 9001").count(), 1, "{}", process.log());
    process.kill();
    database.drop().await;
}

#[actix_web::test]
async fn an_empty_database_gets_its_tables_from_the_first_command_that_writes() {
    let (database, data) = (TestDatabase::create().await, data_folder());
    let url = url(&database.options);
    let run = |arguments: &[&str]| {
        let output = command(data.path(), &[arguments, &["--database-url", &url]].concat()).output();
        let output = output.expect("hotline runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = run(&["company", "list"]);
    assert_eq!(code, Some(Exit::Configuration.code().into()), "{stderr}");
    assert!(stderr.contains("no tables yet") && stderr.contains("hotline migrate"), "{stderr}");
    assert_eq!(run(&["company", "create", "Acme"]).0, Some(0));
    assert_eq!(run(&["company", "list"]).0, Some(0));
    database.drop().await;
}

#[actix_web::test]
async fn a_read_only_database_is_read_and_not_migrated() {
    let database = TestDatabase::migrated().await;
    let next = NextRelease::new(&database, ADD_COLUMN);
    let name = database.options.get_database().expect("a name").to_owned();
    let read_only = format!("alter database {name} set default_transaction_read_only = on");
    sqlx::query(sqlx::AssertSqlSafe(read_only)).execute(&database.db).await.expect("as a standby is");
    let stderr = next.exits_with(&["migrate"], Exit::Configuration);
    assert!(stderr.contains("read-only") && stderr.contains("on the primary"), "{stderr}");
    assert_eq!(next.json(&["company", "list"])["companies"], json!([]));
    database.drop().await;
}

#[actix_web::test]
async fn a_service_reads_and_writes_while_a_migration_waits_for_a_reader() {
    let database = TestDatabase::migrated().await;
    let company = Company::create(&database.db, "Acme").await;
    let next = NextRelease::new(&database, ADD_COLUMN);
    let process = Process::try_serve(next.data.path(), &["--database-url", &next.url, "--rate-per-minute", "0"]);
    let process = process.unwrap_or_else(|log| panic!("not served: {log}"));
    let api = Api::new(process.address, &company.key);
    let (export, pid) = reader(&database, "messages").await;
    let mut migrating = next.begin_migration(&[]);
    migrating.wait_for_line("waits for a lock").await;
    let (began, mut sent) = (Instant::now(), 0);
    while sent < REQUESTS || began.elapsed() < LOCK_TIME_MAX * ATTEMPTS {
        sent += 1;
        let text =
            json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": sent.to_string()});
        api.post("/messages", text).await.data(202);
        assert_eq!(api.get("/messages").await.status, 200, "a list was refused");
    }
    let stderr = migrating.stderr();
    assert!(stderr.contains(&format!("the database session {pid} (nightly export) since 20")), "{stderr}");
    assert_eq!(stderr.matches("waits for a lock").count(), 1, "the wait was logged more than once: {stderr}");
    assert_eq!(
        newest_migration(&database).await,
        schema::newest_migration(),
        "the migration was applied while the reader held its lock"
    );
    export.close().await.expect("the export ends");
    migrating.wait_for_exit(Exit::Success).await;
    assert!(migrating.stderr().contains("and has its locks"), "{}", migrating.stderr());
    assert_eq!(newest_migration(&database).await, 9001);
    for _ in 0..REQUESTS {
        let status = api.get("/messages").await.status;
        assert_eq!(status, 200, "a session from before the migration did not prepare its statements again");
    }
    eventually("every message is there", || async { api.all("/messages").await.len() == sent }).await;
    process.kill();
    database.drop().await;
}

#[actix_web::test]
async fn a_migration_that_gets_no_lock_gives_up_and_has_changed_nothing() {
    let database = TestDatabase::migrated().await;
    let next = NextRelease::new(&database, ADD_COLUMN);
    let (export, pid) = reader(&database, "messages").await;
    let serve = [SERVE, &["--migration-wait", NAMING_WAIT]].concat();
    for arguments in [&["migrate", "--migration-wait", NAMING_WAIT][..], &serve[..]] {
        let stderr = next.exits_with(arguments, Exit::Retry);
        assert!(stderr.contains("migration 9001 (later)") && stderr.contains(&pid.to_string()), "{stderr}");
        assert!(stderr.contains("--migration-wait"), "{stderr}");
        assert_eq!(newest_migration(&database).await, schema::newest_migration());
    }
    export.close().await.expect("the export ends");
    next.json(&["migrate"]);
    assert_eq!(newest_migration(&database).await, 9001);
    database.drop().await;
}

#[actix_web::test]
async fn another_process_that_migrates_is_named_and_waited_for_only_so_long() {
    let database = TestDatabase::migrated().await;
    let next = NextRelease::new(&database, ADD_COLUMN);
    let mut other = PgConnection::connect_with(&database.options).await.expect("a session");
    other.lock().await.expect("the migration lock");
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut other).await.expect("its process");
    let stderr = next.exits_with(&["migrate", "--migration-wait", NAMING_WAIT], Exit::Retry);
    assert!(stderr.contains("the migration of the database") && stderr.contains(&pid.to_string()), "{stderr}");
    // A start that has nothing to migrate does not need the lock.
    let process = Process::try_serve(data_folder().path(), &["--database-url", &next.url]);
    process.unwrap_or_else(|log| panic!("not served: {log}")).kill();
    other.close().await.expect("it ends");
    next.json(&["migrate"]);
    database.drop().await;
}

#[actix_web::test]
async fn a_process_that_was_killed_while_it_migrated_is_no_obstacle() {
    let database = TestDatabase::migrated().await;
    let slow =
        NextRelease::new(&database, "-- Locks: tags\nalter table tags add column later text; select pg_sleep(3600);");
    let mut migrating = slow.begin_migration(&[]);
    let sleeps = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
    eventually("the migration runs", || async {
        sqlx::query_scalar::<_, i64>(sleeps).fetch_one(&database.db).await.expect("an answer") == 1
    })
    .await;
    migrating.child.kill().expect("kill -9");
    migrating.child.wait().expect("its end");
    let next = NextRelease::new(&database, "-- Locks: tags\nalter table tags add column later text;");
    next.json(&["migrate"]);
    assert_eq!(newest_migration(&database).await, 9001);
    database.drop().await;
}

#[actix_web::test]
async fn an_index_whose_creation_was_interrupted_is_created_again() {
    let database = TestDatabase::migrated().await;
    let create = "-- no-transaction\n-- Locks: messages (share update exclusive)\n\
        create index concurrently if not exists messages_later on messages (company_id, body);";
    let next = NextRelease::new(&database, create);
    let is_valid = async || -> Option<bool> {
        let find = "select i.indisvalid from pg_index i where i.indexrelid = to_regclass('messages_later')";
        sqlx::query_scalar(find).fetch_optional(&database.db).await.expect("an answer")
    };
    let (export, _) = reader(&database, "messages").await;
    next.exits_with(&["migrate", "--migration-wait", "1s"], Exit::Retry);
    assert_eq!(is_valid().await, Some(false), "nothing was interrupted");
    export.close().await.expect("the export ends");
    next.json(&["migrate"]);
    assert_eq!(is_valid().await, Some(true));
    database.drop().await;
}

#[test]
fn a_folder_without_an_installation_is_not_migrated() {
    let output = command(Path::new("/proc/hotline"), &["migrate"]).output().expect("hotline runs");
    assert_eq!(output.status.code(), Some(Exit::Configuration.code().into()));
}
