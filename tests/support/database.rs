//! A database for each test, on a PostgreSQL that all test processes share.

use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::Utc;
use hotline_postgres::{Cluster, shared_folder};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};

use super::process::build_of;

/// A database of one test.
pub struct TestDatabase {
    name: String,
    admin: PgConnectOptions,
    /// How to connect to it.
    pub options: PgConnectOptions,
    /// Connections for what a test looks up or breaks by itself.
    pub db: PgPool,
}

impl TestDatabase {
    /// An empty one.
    pub async fn create() -> Self {
        let admin = admin().await;
        let connection = connect(&admin).await;
        Self::copied("template1", admin, connection).await
    }

    /// One with the schema of this release: a copy, which takes a tenth of the time that the migrations take.
    pub async fn migrated() -> Self {
        let admin = admin().await;
        let Template { name, held } = Template::of_schema(&admin).await;
        Self::copied(&name, admin, held).await
    }

    /// One with the schema of this release and what `fill` writes: a copy, statistics included. It is filled once for all tests
    /// of a build.
    pub async fn filled(kind: &str, fill: impl AsyncFnOnce(&PgPool)) -> Self {
        let admin = admin().await;
        let tests = std::env::current_exe().expect("the tests that run");
        let made = Template::of(&admin, kind, build_of(&tests), async |unfinished| {
            let mut schema = Template::of_schema(&admin).await;
            run(&mut schema.held, &copy(unfinished, &schema.name)).await;
            let db = hotline_persistence::pool::connect(admin.clone().database(unfinished));
            fill(&db).await;
            db.close().await;
        });
        let Template { name, held } = made.await;
        Self::copied(&name, admin, held).await
    }

    /// One with this name and the schema of this release, instead of any that has the name; how to connect to it.
    pub async fn anew(name: &str) -> PgConnectOptions {
        let admin = admin().await;
        let mut template = Template::of_schema(&admin).await;
        run(&mut template.held, &format!("drop database if exists {name} with (force)")).await;
        run(&mut template.held, &copy(name, &template.name)).await;
        admin.database(name)
    }

    /// How to connect to the one with this name.
    pub async fn options_of(name: &str) -> PgConnectOptions {
        admin().await.database(name)
    }

    async fn copied(template: &str, admin: PgConnectOptions, mut connection: PgConnection) -> Self {
        let name = hotline_persistence::key::new_key("test_").to_lowercase();
        run(&mut connection, &copy(&name, template)).await;
        let options = admin.clone().database(&name);
        let db = hotline_persistence::pool::connect(options.clone());
        Self { name, admin, options, db }
    }

    pub async fn drop(self) {
        self.db.close().await;
        run(&mut connect(&self.admin).await, &format!("drop database {} with (force)", self.name)).await;
    }
}

/// A copy of the files: of a small database in memory it takes half of what it takes through the WAL, and dropping it as well.
fn copy(name: &str, template: &str) -> String {
    format!("create database {name} template {template} strategy file_copy")
}

async fn admin() -> PgConnectOptions {
    let cluster = Cluster::shared(shared_folder()).await.expect("the shared PostgreSQL starts");
    cluster.connect_options().disable_statement_logging()
}

/// A database that others are copied of.
struct Template {
    name: String,
    /// While it is open, nobody removes the database.
    held: PgConnection,
}

impl Template {
    /// The one with the schema of this release, and nothing else.
    async fn of_schema(admin: &PgConnectOptions) -> Self {
        let made = Self::of(admin, "schema", fingerprint(), async |unfinished| {
            run(&mut connect(admin).await, &format!("create database {unfinished}")).await;
            let db = hotline_persistence::pool::connect(admin.clone().database(unfinished));
            hotline_persistence::pool::migrate(&db).await.expect("migrate");
            db.close().await;
        });
        made.await
    }

    /// The one of this kind and version. The first who asks makes it, and removes those of other versions; the others wait. Each
    /// day has its own: rows say when they were written, and a service that starts makes up for the time since.
    async fn of(admin: &PgConnectOptions, kind: &str, version: impl Hash, make: impl AsyncFnOnce(&str)) -> Self {
        let mut hasher = DefaultHasher::new();
        (version, Utc::now().date_naive()).hash(&mut hasher);
        let name = format!("{kind}_{:016x}", hasher.finish());
        let mut held = connect(admin).await;
        turn(&mut held, "pg_advisory_lock_shared", kind).await;
        if !exists(&mut held, &name).await {
            // Who makes it holds no other turn, or two of them would wait for each other.
            turn(&mut held, "pg_advisory_unlock_shared", kind).await;
            turn(&mut held, "pg_advisory_lock", kind).await;
            if !exists(&mut held, &name).await {
                let others = "select datname::text from pg_database where starts_with(datname::text, $1)";
                let others = sqlx::query_scalar(others).bind(format!("{kind}_")).fetch_all(&mut held).await;
                let others: Vec<String> = others.expect("the databases");
                for other in others {
                    run(&mut held, &format!("drop database {other} with (force)")).await;
                }
                let unfinished = format!("{kind}_unfinished");
                make(&unfinished).await;
                run(&mut held, &format!("alter database {unfinished} rename to {name}")).await;
            }
        }
        Self { name, held }
    }
}

/// Takes a turn at the databases of a kind, or gives it back. It ends with the connection.
async fn turn(connection: &mut PgConnection, function: &str, kind: &str) {
    let statement = AssertSqlSafe(format!("select {function}(hashtext($1))"));
    sqlx::query(statement).bind(kind).execute(connection).await.expect("a turn");
}

async fn exists(connection: &mut PgConnection, name: &str) -> bool {
    let exists = "select exists (select from pg_database where datname = $1)";
    sqlx::query_scalar(exists).bind(name).fetch_one(connection).await.expect("an answer")
}

/// How another process connects to a database: through the socket of this machine.
pub fn url(options: &PgConnectOptions) -> String {
    let socket = options.get_socket().expect("a socket").display().to_string();
    let name = options.get_database().expect("a name");
    format!("postgres:///{name}?host={socket}&user={}", options.get_username())
}

/// Of the migrations that this binary was built with: those that it makes a schema of.
pub fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    hotline_persistence::schema::checksums().hash(&mut hasher);
    hasher.finish()
}

async fn connect(options: &PgConnectOptions) -> PgConnection {
    PgConnection::connect_with(options).await.expect("the shared PostgreSQL answers")
}

async fn run(connection: &mut PgConnection, statement: &str) {
    sqlx::query(AssertSqlSafe(statement)).execute(connection).await.expect(statement);
}
