//! Shared by the benches: a PostgreSQL of their own, a company in it, and a store on it.
//!
//! Everything is in one temporary folder, so `TMPDIR` chooses the disk.

// Each bench uses a part of this module.
#![allow(dead_code)]

pub mod http;
pub mod provider;
pub mod receiver;
pub mod stage;
pub mod usage;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotline_persistence::migration::MigrationPolicy;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelType, NewChannel};
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::wrapup_categories::WrapupCategory;
use hotline_persistence::tables::wrapup_types::{self, WrapupType};
use hotline_persistence::tables::{companies, users};
use hotline_persistence::{
    ChangeLog, ChannelId, CompanyId, Durability, PgPool, QueueId, Role, Store, StoreOptions, UserId, WrapupTypeId,
    journal, pool,
};
use hotline_postgres::{Cluster, ClusterOptions};
use mimalloc::MiMalloc;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;

/// The allocator of the service.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Whether to measure: `cargo bench` passes this argument. `cargo test` does not, and a bench has nothing to test.
pub fn is_bench() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// A size from the environment, or the default.
pub fn size(variable: &str, default: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not `{text}`")),
        Err(_) => default,
    }
}

/// Maximum connections of [`Postgres::synced`]: for two stores, and for plain transactions.
const CONNECTIONS_MAX: u16 = 300;

/// A running PostgreSQL of this bench; dropping it stops the server and removes its folder.
pub struct Postgres {
    root: TempDir,
    cluster: Cluster,
}

impl Postgres {
    pub async fn start() -> Self {
        let root = Self::root();
        let cluster = Cluster::shared(root.path().join("cluster")).await.expect("start PostgreSQL");
        Self { root, cluster }
    }

    /// Starts one whose commits survive a crash of the machine, as the service's do; [`Self::stop`] stops it.
    pub async fn synced() -> Self {
        let root = Self::root();
        let options =
            ClusterOptions { max_connections: CONNECTIONS_MAX, ..ClusterOptions::new(root.path().join("cluster")) };
        let cluster = Cluster::start(options).await.expect("start PostgreSQL");
        Self { root, cluster }
    }

    /// Stops a server of [`Self::synced`].
    pub async fn stop(self) {
        self.cluster.stop().await.expect("PostgreSQL stops");
    }

    fn root() -> TempDir {
        let root = TempDir::new().expect("make a folder");
        // The server may run as another user, who must be able to enter.
        std::fs::set_permissions(root.path(), Permissions::from_mode(0o711)).expect("open the folder");
        root
    }

    /// Creates an empty database: every store needs one of its own.
    pub async fn database(&self, name: &str) -> PgConnectOptions {
        let server = pool::connect(self.cluster.connect_options());
        let sql = sqlx::AssertSqlSafe(format!("create database {name}"));
        sqlx::query(sql).execute(&server).await.expect("create a database");
        server.close().await;
        self.cluster.connect_options().database(name)
    }

    /// The id of its main process, the parent of its other ones.
    pub fn pid(&self) -> u32 {
        self.cluster.pid().expect("it runs")
    }

    /// The folder of a database's journal.
    pub fn journal_dir(&self, database: &str) -> PathBuf {
        self.root.path().join(format!("journal-{database}"))
    }

    /// The keys that seal the secrets of all its databases.
    pub fn keys(&self) -> Keyring {
        let keys = Keyring::at(self.root.path().join("secrets.key"));
        keys.load_or_create().expect("a key file");
        keys
    }

    /// The options with which the service opens its store on this database.
    pub fn store_options(&self, database: PgConnectOptions, durability: Durability) -> StoreOptions {
        let journal_dir = self.journal_dir(database.get_database().expect("a database is named"));
        let keys = self.keys();
        StoreOptions {
            database,
            journal_dir,
            journal: journal::Options::default(),
            durability,
            keys,
            events: true,
            role: Role::Standalone,
            migration: MigrationPolicy::default(),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // This process has already stopped a server that it owns.
        if self.cluster.is_owner() {
            return;
        }
        let data_dir = self.cluster.data_dir().to_owned();
        // A thread of its own: this one may be running futures.
        let stopping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            if let Err(error) = runtime.block_on(Cluster::stop_shared(data_dir)) {
                eprintln!("PostgreSQL is left running: {error}");
            }
        });
        drop(stopping.join());
    }
}

/// Opens a store whose failure ends the bench.
pub async fn open(options: StoreOptions) -> Arc<Store> {
    let failed = |reason: String| {
        eprintln!("nothing can be made durable any more: {reason}");
        std::process::abort();
    };
    Store::open(options, failed).await.expect("open the store")
}

/// Waits until everything appended is in the tables, however long that takes.
pub async fn drain(log: &ChangeLog) {
    let last = log.appended();
    while log.wait_until_flushed(last).await.is_err() {
        assert!(log.queue().is_up(), "the database has gone");
    }
}

/// A company with a phone channel, on which a send needs no earlier message from its contact.
pub struct Company {
    pub id: CompanyId,
    pub channel: ChannelId,
    /// The channel's queue, and another one.
    pub queues: [QueueId; 2],
    /// An agent of both.
    pub user: UserId,
    /// Linked to both.
    pub wrapup_type: WrapupTypeId,
    pub contacts: Vec<Arc<ContactRef>>,
}

impl Company {
    /// Creates it in a migrated database.
    pub async fn create(db: &PgPool, contacts: usize) -> Self {
        let id = companies::insert(db, "Acme").await.expect("a company").id;
        let mut created = Vec::new();
        for name in ["Support", "Sales"] {
            let queue = Columns::from([("name", name.into()), ("wrapupRequired", true.into())]);
            created.push(table::insert::<Queue>(db, id, &queue).await.expect("a queue").id);
        }
        let queues = [created[0], created[1]];
        let ana = Columns::from([("name", "Ana".into()), ("email", "ana@example.com".into())]);
        let mut connection = db.acquire().await.expect("a connection");
        let user = users::insert(&mut connection, id, ana).await.expect("a user").id;
        for queue in queues {
            users::QUEUES.add(db, id, user, queue).await.expect("an agent");
        }
        let outcome = Columns::from([("name", "Outcome".into())]);
        let outcome = table::insert::<WrapupCategory>(db, id, &outcome).await.expect("a category").id;
        let solved = Columns::from([("name", "Solved".into()), ("categoryId", outcome.into())]);
        let wrapup_type = table::insert::<WrapupType>(db, id, &solved).await.expect("a wrap-up type").id;
        wrapup_types::QUEUES.set(db, id, wrapup_type, &queues).await.expect("links");
        let channel = new_channel(db, id, Some(queues[0])).await.id;
        let contacts = Self::create_contacts(db, id, contacts).await;
        Self { id, channel, queues, user, wrapup_type, contacts }
    }

    async fn create_contacts(db: &PgPool, company: CompanyId, count: usize) -> Vec<Arc<ContactRef>> {
        let created: Vec<ContactRef> = sqlx::query_as(
            "insert into contacts (company_id, name, number)
             select $1, 'Contact ' || i, (5511900000000 + i)::text from generate_series(1, $2) i
             returning id, name, number, verified",
        )
        .bind(company)
        .bind(i64::try_from(count).expect("a count"))
        .fetch_all(db)
        .await
        .expect("create contacts");
        created.into_iter().map(Arc::new).collect()
    }
}

/// A phone channel.
pub async fn new_channel(db: &PgPool, company: CompanyId, queue_id: Option<QueueId>) -> ChannelRow {
    let new = NewChannel {
        name: "Phone",
        kind: ChannelType::Whatsapp,
        number: None,
        queue_id,
        settings: ChannelSettings::default(),
    };
    channels::insert(db, &Keyring::default(), company, new).await.expect("a channel")
}

/// The result of some work, and how long it took.
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let outcome = work.await;
    (outcome, started.elapsed())
}
