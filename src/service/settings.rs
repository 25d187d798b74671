//! The settings of the service, and the options of its parts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hotline_actors::EngineOptions;
use hotline_persistence::cluster::NewLife;
use hotline_persistence::migration::MigrationPolicy;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::{Durability, Role, StoreOptions, journal};
use hotline_postgres::ClusterOptions;
use ipnet::IpNet;
use sqlx::postgres::PgConnectOptions;

use crate::outbound::OutboundOptions;
use crate::panel::PanelOptions;
use crate::providers::ProviderOptions;
use crate::visitors::VisitorOptions;
use crate::web::connections::Limits;
use crate::webhooks::WebhookOptions;
use crate::{media, templates};

/// The settings of the service, most of them options of the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address for HTTP; port 0 picks any.
    pub listen: SocketAddr,
    /// The folder of the journal and the private PostgreSQL.
    pub data_dir: PathBuf,
    /// The database; `None`: a private PostgreSQL.
    pub database: Option<PgConnectOptions>,
    /// The file with the keys that seal secrets.
    pub key_file: PathBuf,
    /// The folder of the PostgreSQL binaries, if they are not found automatically.
    pub pg_bin: Option<PathBuf>,
    /// Memory of the private PostgreSQL in bytes; `None`: derived from the memory that this process may use.
    pub postgres_memory: Option<u64>,
    /// Size of the private PostgreSQL's WAL in bytes; `None`: its default.
    pub postgres_disk: Option<u64>,
    /// When a change counts as durable.
    pub durability: Durability,
    /// Whether to skip the check of companies' plans.
    pub on_premise: bool,
    /// The journal's limits.
    pub journal: journal::Options,
    /// The options of the engine.
    pub engine: EngineOptions,
    /// Threads that serve HTTP.
    pub workers: usize,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Timeouts of connections, and their maximum number.
    pub limits: Limits,
    /// Requests per minute of a company without its own limit; 0: no limit.
    pub rate_per_minute: u32,
    /// The maximum page size.
    pub per_page_max: i64,
    /// Requests with a wrong token per address and minute that are answered without a delay; 0: no limit.
    pub wrong_tokens_per_minute: u32,
    /// The limits of visitors, and the timing of their sockets.
    pub visitors: VisitorOptions,
    /// Whether events are stored, and for how long.
    pub events: EventOptions,
    /// The address for metrics; `None`: they are not served.
    pub metrics_listen: Option<SocketAddr>,
    /// How often templates are read from providers.
    pub templates: templates::Options,
    /// The storage of messages' files.
    pub media: media::Options,
    /// Calls to the providers.
    pub provider: ProviderOptions,
    /// Calls to addresses outside the operator's control.
    pub outbound: OutboundOptions,
    /// Deliveries to webhooks.
    pub webhooks: WebhookOptions,
    /// Sign-in to the panel.
    pub panel: PanelOptions,
    /// How the service stops.
    pub stop: StopSettings,
    /// This process as a member of a cluster; `None`: it is not in one.
    pub cluster: Option<ClusterSettings>,
    /// What a start waits for.
    pub start: StartOptions,
}

/// What a start waits for, and whether it migrates.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions {
    /// How long a start waits for a database that does not respond.
    pub wait: Duration,
    /// Whether a start migrates, and how long it waits for the locks of a migration.
    pub migration: MigrationPolicy,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self { wait: Duration::from_secs(60), migration: MigrationPolicy::default() }
    }
}

/// How the service stops.
#[derive(Clone, Copy, Debug)]
pub struct StopSettings {
    /// How long the service still accepts connections after `/health/ready` has announced the stop.
    pub notice: Duration,
    /// The time without a request after which the connections are closed.
    pub quiet: Duration,
}

impl StopSettings {
    /// The usual `quiet`: enough for a client that sends one request after the other to send the next, and for a
    /// connection that is being opened to be established.
    pub const QUIET: Duration = Duration::from_millis(500);
}

/// The settings of a cluster member.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The address the listener for peers binds.
    pub listen: SocketAddr,
    /// Host and port under which the other processes reach this one.
    pub address: String,
    /// The name of the machine, to be shown.
    pub node: String,
}

/// Whether events are stored, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct EventOptions {
    /// Whether they are stored.
    pub enabled: bool,
    /// Days after which they are dropped.
    pub retention_days: u32,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self { enabled: true, retention_days: 30 }
    }
}

impl Settings {
    /// The options of the private PostgreSQL.
    pub(super) fn postgres_options(&self) -> ClusterOptions {
        // Tables have no statistics before autovacuum runs, and PostgreSQL plans as if they were empty: after the first
        // import of a new installation, a list by tag takes seconds. PostgreSQL's default interval of a minute is too
        // long for that.
        let settings = vec![("autovacuum_naptime".to_owned(), "5s".to_owned())];
        ClusterOptions {
            binaries: self.pg_bin.clone(),
            memory_bytes: self.postgres_memory,
            wal_bytes: self.postgres_disk,
            settings,
            ..ClusterOptions::new(&self.data_dir)
        }
    }

    /// The options of the store.
    pub(super) fn store_options(&self, database: PgConnectOptions) -> StoreOptions {
        StoreOptions {
            database,
            journal_dir: self.data_dir.join("journal"),
            journal: self.journal.clone(),
            durability: self.durability,
            keys: Keyring::at(&self.key_file),
            events: self.events.enabled,
            migration: self.start.migration,
            role: match &self.cluster {
                None => Role::Standalone,
                Some(cluster) => Role::Member(NewLife {
                    node: cluster.node.clone(),
                    address: cluster.address.clone(),
                    cores: std::thread::available_parallelism()
                        .map_or(1, |cores| cores.get().try_into().unwrap_or(i32::MAX)),
                }),
            },
        }
    }
}
