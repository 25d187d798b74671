//! A database for each test, on a PostgreSQL that all test processes share.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use chrono::Utc;
use hotline_postgres::{Cluster, shared_folder};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};

use super::process::build_of;
use super::{PATIENCE, eventually, patience};

/// A database of one test.
pub struct TestDatabase {
    name: String,
    admin: PgConnectOptions,
    /// How to connect to it.
    pub options: PgConnectOptions,
    /// Connections with which the test itself reads or changes rows.
    pub db: PgPool,
}

impl TestDatabase {
    /// An empty database.
    pub async fn create() -> Self {
        let admin = admin().await;
        let connection = connect(&admin).await;
        Self::copied("template1", admin, connection).await
    }

    /// A database with the schema of this release: a copy, which takes a tenth of the time that the migrations take.
    pub async fn migrated() -> Self {
        let admin = admin().await;
        let Template { name, lock_connection } = Template::of_schema(&admin).await;
        Self::copied(&name, admin, lock_connection).await
    }

    /// A database with the schema of this release and the rows that `fill` writes: a copy, statistics included. `fill`
    /// runs once for all tests of a build.
    pub async fn filled(kind: &str, fill: impl AsyncFnOnce(&PgPool)) -> Self {
        let admin = admin().await;
        let test_binary = std::env::current_exe().expect("the tests that run");
        let template = Template::of(&admin, kind, build_of(&test_binary), async |unfinished| {
            let mut schema = Template::of_schema(&admin).await;
            run(&mut schema.lock_connection, &copy(unfinished, &schema.name)).await;
            let db = pool(admin.clone().database(unfinished));
            fill(&db).await;
            db.close().await;
        });
        let Template { name, lock_connection } = template.await;
        Self::copied(&name, admin, lock_connection).await
    }

    /// Creates a database with this name and the schema of this release, replacing any existing one of this name.
    /// Returns how to connect to it.
    pub async fn recreate(name: &str) -> PgConnectOptions {
        let admin = admin().await;
        let mut template = Template::of_schema(&admin).await;
        run(&mut template.lock_connection, &format!("drop database if exists {name} with (force)")).await;
        run(&mut template.lock_connection, &copy(name, &template.name)).await;
        admin.database(name)
    }

    /// How to connect to the database with this name.
    pub async fn options_of(name: &str) -> PgConnectOptions {
        admin().await.database(name)
    }

    async fn copied(template: &str, admin: PgConnectOptions, mut connection: PgConnection) -> Self {
        let name = hotline_persistence::key::new_key("test_").to_lowercase();
        run(&mut connection, &copy(&name, template)).await;
        let options = admin.clone().database(&name);
        let db = pool(options.clone());
        Self { name, admin, options, db }
    }

    pub async fn drop(self) {
        self.db.close().await;
        run(&mut connect(&self.admin).await, &format!("drop database {} with (force)", self.name)).await;
    }
}

/// Connections with which a test reads or changes rows. A test waits longer for one than the three seconds after which
/// a request is refused.
pub fn pool(options: PgConnectOptions) -> PgPool {
    let pool = hotline_persistence::pool::connect(options);
    let options = pool.options().clone().acquire_timeout(patience(PATIENCE));
    options.connect_lazy_with(PgConnectOptions::clone(&pool.connect_options()))
}

/// The statement that copies a template's files. For a small database in memory, this takes half the time of a copy
/// through the WAL; dropping the copy takes half the time as well.
fn copy(name: &str, template: &str) -> String {
    format!("create database {name} template {template} strategy file_copy")
}

async fn admin() -> PgConnectOptions {
    let cluster = Cluster::shared(shared_folder()).await.expect("the shared PostgreSQL starts");
    cluster.connect_options().disable_statement_logging()
}

/// A database that others are copied from.
struct Template {
    name: String,
    /// Holds the lock on this kind of template: while it is open, no other process drops the database.
    lock_connection: PgConnection,
}

impl Template {
    /// The template with the schema of this release, and nothing else.
    async fn of_schema(admin: &PgConnectOptions) -> Self {
        let template = Self::of(admin, "schema", fingerprint(), async |unfinished| {
            run(&mut connect(admin).await, &format!("create database {unfinished}")).await;
            let db = pool(admin.clone().database(unfinished));
            hotline_persistence::pool::migrate(&db).await.expect("migrate");
            db.close().await;
        });
        template.await
    }

    /// The template of this kind and version. The first process to ask makes it and drops those of other versions; the
    /// others wait. Each day has its own: rows contain timestamps, and a service that starts does everything that
    /// has become due since they were written.
    async fn of(admin: &PgConnectOptions, kind: &str, version: impl Hash, make: impl AsyncFnOnce(&str)) -> Self {
        let mut hasher = DefaultHasher::new();
        (version, Utc::now().date_naive()).hash(&mut hasher);
        let name = format!("{kind}_{:016x}", hasher.finish());
        let mut lock_connection = connect(admin).await;
        lock(&mut lock_connection, "pg_advisory_lock_shared", kind).await;
        if !exists(&mut lock_connection, &name).await {
            // The shared lock is released first: two makers that hold it would wait for each other.
            lock(&mut lock_connection, "pg_advisory_unlock_shared", kind).await;
            lock(&mut lock_connection, "pg_advisory_lock", kind).await;
            if !exists(&mut lock_connection, &name).await {
                let query = "select datname::text from pg_database where starts_with(datname::text, $1)";
                let others = sqlx::query_scalar(query).bind(format!("{kind}_")).fetch_all(&mut lock_connection).await;
                let others: Vec<String> = others.expect("the databases");
                for other in others {
                    run(&mut lock_connection, &format!("drop database {other} with (force)")).await;
                }
                let unfinished = format!("{kind}_unfinished");
                make(&unfinished).await;
                run(&mut lock_connection, &format!("alter database {unfinished} rename to {name}")).await;
            }
        }
        Self { name, lock_connection }
    }
}

/// Calls a function of PostgreSQL that takes or releases the lock of a kind of databases. The lock ends with the
/// connection.
async fn lock(connection: &mut PgConnection, function: &str, kind: &str) {
    let statement = AssertSqlSafe(format!("select {function}(hashtext($1))"));
    sqlx::query(statement).bind(kind).execute(connection).await.expect("the lock");
}

async fn exists(connection: &mut PgConnection, name: &str) -> bool {
    let query = "select exists (select from pg_database where datname = $1)";
    sqlx::query_scalar(query).bind(name).fetch_one(connection).await.expect("an answer")
}

/// How another process connects to a database: through the socket of this machine.
pub fn url(options: &PgConnectOptions) -> String {
    let socket = options.get_socket().expect("a socket").display().to_string();
    let name = options.get_database().expect("a name");
    format!("postgres:///{name}?host={socket}&user={}", options.get_username())
}

/// Waits until at least this many statements are blocked by this transaction, directly or through another blocked
/// statement. Statements of other tests, which share this PostgreSQL, do not count.
pub async fn until_blocked(count: i64, transaction: &mut PgConnection, db: &PgPool) {
    let holder = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *transaction).await;
    let holder: i32 = holder.expect("a process");
    eventually(&format!("{count} statements wait for the transaction"), || async {
        let blocked = sqlx::query_scalar::<_, i64>(
            "with recursive blocked (pid) as (
                select $1::int
                union
                select waiting.pid from pg_stat_activity waiting
                join blocked on blocked.pid = any (pg_blocking_pids(waiting.pid))
                where waiting.wait_event_type = 'Lock'
             )
             select count(*) - 1 from blocked",
        );
        blocked.bind(holder).fetch_one(db).await.expect("a count") >= count
    })
    .await;
}

/// A hash of the migrations that this binary was built with.
pub fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    hotline_persistence::schema::checksums().hash(&mut hasher);
    hasher.finish()
}

async fn connect(options: &PgConnectOptions) -> PgConnection {
    PgConnection::connect_with(options).await.expect("the shared PostgreSQL answers")
}

/// The error code of a statement that PostgreSQL refuses because others are connected to the database.
const OBJECT_IN_USE: &str = "55006";

/// Runs a statement that creates, renames or drops a database, and retries while others are connected to the database.
/// PostgreSQL itself waits for them only five seconds, and a backend can take that long to exit after its client has
/// disconnected.
async fn run(connection: &mut PgConnection, statement: &str) {
    let deadline = Instant::now() + patience(PATIENCE);
    loop {
        let is_late = Instant::now() >= deadline;
        match sqlx::query(AssertSqlSafe(statement)).execute(&mut *connection).await {
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(OBJECT_IN_USE) && !is_late => {}
            result => {
                result.expect(statement);
                return;
            }
        }
    }
}
