//! How the service is run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hotline_actors::EngineOptions;
use hotline_persistence::cluster::NewLife;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::{Durability, Role, StoreOptions, journal};
use hotline_postgres::ClusterOptions;
use ipnet::IpNet;
use sqlx::postgres::PgConnectOptions;

use crate::outbound::OutboundOptions;
use crate::panel::PanelOptions;
use crate::providers::ProviderOptions;
use crate::visitors::VisitorOptions;
use crate::web::wire::Limits;
use crate::webhooks::WebhookOptions;
use crate::{media, templates};

/// Each an option of the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where HTTP is served; port 0 takes any.
    pub listen: SocketAddr,
    /// Where the journal lies, and the private PostgreSQL.
    pub data_dir: PathBuf,
    /// Which database; none: a private one.
    pub database: Option<PgConnectOptions>,
    /// The file of the keys that seal secrets.
    pub key_file: PathBuf,
    /// Where the PostgreSQL binaries are, when they are not found.
    pub pg_bin: Option<PathBuf>,
    /// When a change counts as kept.
    pub durability: Durability,
    /// Whether the company's plan does not matter.
    pub on_premise: bool,
    /// The journal's bounds.
    pub journal: journal::Options,
    /// The live half.
    pub engine: EngineOptions,
    /// Threads that serve HTTP.
    pub workers: usize,
    /// Who is believed when it says for whom a connection was made.
    pub trusted_proxies: Vec<IpNet>,
    /// How long connections are waited for, and how many there are.
    pub limits: Limits,
    /// Requests a minute of a company that has no limit of its own; 0: as many as it likes.
    pub rate_per_minute: u32,
    /// Most records of a page.
    pub per_page_max: i64,
    /// Requests with a wrong token that an address is told why in a minute; 0: no limit.
    pub wrong_tokens_per_minute: u32,
    /// How visitors are served.
    pub visitors: VisitorOptions,
    /// Whether and how long events are kept.
    pub events: EventOptions,
    /// Where figures are served; none: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// How often providers are asked for templates.
    pub templates: templates::Options,
    /// How the files of messages are kept.
    pub media: media::Options,
    /// How the providers are called.
    pub provider: ProviderOptions,
    /// How addresses are called that are not the operator's own.
    pub outbound: OutboundOptions,
    /// How webhooks are delivered to.
    pub webhooks: WebhookOptions,
    /// How people are let in.
    pub panel: PanelOptions,
    /// How this process is one of many on its database; none: it is alone.
    pub cluster: Option<ClusterSettings>,
}

/// How a process is one of many on its database.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Where the others are served.
    pub listen: SocketAddr,
    /// Host and port of that, as the others reach it.
    pub address: String,
    /// What people call the machine.
    pub node: String,
    /// How long it still answers once it has said that it stops.
    pub notice: Duration,
}

/// Whether and how long events are kept.
#[derive(Clone, Copy, Debug)]
pub struct EventOptions {
    /// Whether they are at all.
    pub are_kept: bool,
    /// Days after which they are dropped.
    pub kept_for_days: u32,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self { are_kept: true, kept_for_days: 30 }
    }
}

impl Settings {
    /// How the private PostgreSQL is run.
    pub(super) fn cluster(&self) -> ClusterOptions {
        ClusterOptions { binaries: self.pg_bin.clone(), ..ClusterOptions::new(&self.data_dir) }
    }

    /// How the store is opened.
    pub(super) fn store(&self, database: PgConnectOptions) -> StoreOptions {
        StoreOptions {
            database,
            journal_dir: self.data_dir.join("journal"),
            journal: self.journal.clone(),
            durability: self.durability,
            keys: Keyring::at(&self.key_file),
            events: self.events.are_kept,
            role: match &self.cluster {
                None => Role::Alone,
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
