//! A database for each test, on a PostgreSQL that all test processes share.

use std::hash::{DefaultHasher, Hash, Hasher};

use hotline_postgres::{Cluster, shared_folder};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};

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
        Self::copied("template1", &admin().await).await
    }

    /// One with the schema of this release: a copy, which takes a third of the time that the migrations take.
    pub async fn migrated() -> Self {
        let admin = admin().await;
        let template = template(&admin).await;
        Self::copied(&template, &admin).await
    }

    /// One with this name and the schema of this release, instead of any that has the name; how to connect to it.
    pub async fn anew(name: &str) -> PgConnectOptions {
        let admin = admin().await;
        let template = template(&admin).await;
        run(&admin, &format!("drop database if exists {name} with (force)")).await;
        run(&admin, &format!("create database {name} template {template}")).await;
        admin.database(name)
    }

    /// How to connect to the one with this name.
    pub async fn options_of(name: &str) -> PgConnectOptions {
        admin().await.database(name)
    }

    async fn copied(template: &str, admin: &PgConnectOptions) -> Self {
        let name = hotline_persistence::key::new_key("test_").to_lowercase();
        run(admin, &format!("create database {name} template {template}")).await;
        let options = admin.clone().database(&name);
        let db = hotline_persistence::pool::connect(options.clone());
        Self { name, admin: admin.clone(), options, db }
    }

    pub async fn drop(self) {
        self.db.close().await;
        run(&self.admin, &format!("drop database {} with (force)", self.name)).await;
    }
}

async fn admin() -> PgConnectOptions {
    let cluster = Cluster::shared(shared_folder()).await.expect("the shared PostgreSQL starts");
    cluster.connect_options().disable_statement_logging()
}

/// The database that migrated ones are copied of, named by the migrations that are in it; made by the first who asks.
async fn template(admin: &PgConnectOptions) -> String {
    let name = format!("schema_{:016x}", fingerprint());
    let mut connection = PgConnection::connect_with(admin).await.expect("the shared PostgreSQL answers");
    let exists = "select exists (select from pg_database where datname = $1)";
    if sqlx::query_scalar(exists).bind(&name).fetch_one(&mut connection).await.expect("an answer") {
        return name;
    }
    // Until this connection ends, the others wait.
    sqlx::query("select pg_advisory_lock(hashtext('schema'))").execute(&mut connection).await.expect("a turn");
    if !sqlx::query_scalar::<_, bool>(exists).bind(&name).fetch_one(&mut connection).await.expect("an answer") {
        let unfinished = format!("{name}_unfinished");
        run(admin, &format!("drop database if exists {unfinished} with (force)")).await;
        run(admin, &format!("create database {unfinished}")).await;
        let db = hotline_persistence::pool::connect(admin.clone().database(&unfinished));
        hotline_persistence::pool::migrate(&db).await.expect("migrate");
        db.close().await;
        run(admin, &format!("alter database {unfinished} rename to {name}")).await;
    }
    name
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

async fn run(options: &PgConnectOptions, statement: &str) {
    let mut connection = PgConnection::connect_with(options).await.expect("the shared PostgreSQL answers");
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.expect(statement);
}
