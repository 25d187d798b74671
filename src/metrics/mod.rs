//! Metrics for operators: counters that requests update, and values that the lower layers report on demand. They are
//! served by a separate listener ([`Listener`]); `docs/metrics.md` explains each.
//!
//! A request updates atomic counters that exist from the start: it formats no text, takes no lock and allocates
//! nothing. Names and labels are created when the metrics are read.

mod cluster;
mod connections;
mod events;
mod hooks;
mod host;
mod http;
mod mails;
pub mod process;
mod requests;
mod routes;
mod snapshot;
mod sockets;
mod webhooks;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use actix_web::web::Data;
use hotline_actors::Engine;

use self::snapshot::MetricsSnapshot;
use crate::telemetry::conditions::ActiveConditions;

pub use cluster::ClusterMetrics;
pub use connections::{ConnectionMetrics, OpenConnection};
pub use events::EventMetrics;
pub use hooks::{HookMetrics, Tally};
pub use host::HostMetrics;
pub use http::{Listener, PATH};
pub use mails::MailMetrics;
pub use requests::Requests;
pub use sockets::SocketMetrics;
pub use webhooks::{AttemptOutcome, WebhookMetrics};

/// All current metrics, in the Prometheus text format.
///
/// # Errors
/// When they cannot be formatted.
pub async fn text(engine: Engine, metrics: Data<Metrics>) -> Result<String, fmt::Error> {
    MetricsSnapshot::take(engine, metrics).await.into_text()
}

/// The counters of a service.
pub struct Metrics {
    /// Answered requests.
    pub requests: Requests,
    /// Connections to the public listener.
    pub connections: Arc<ConnectionMetrics>,
    /// Visitors' sockets.
    pub sockets: SocketMetrics,
    /// Streams of events.
    pub events: EventMetrics,
    /// Calls of providers.
    pub hooks: HookMetrics,
    /// Deliveries to webhooks.
    pub webhooks: WebhookMetrics,
    /// E-mails to people.
    pub mails: MailMetrics,
    /// This process as a member of a cluster.
    pub cluster: ClusterMetrics,
    /// Disks and backups.
    pub host: HostMetrics,
    /// The conditions that an operator must know about.
    pub conditions: ActiveConditions,
    replays: AtomicU64,
    started_at: Instant,
}

impl Metrics {
    /// All counters at zero; `paths` are those of the route table.
    pub fn new(paths: Vec<String>) -> Self {
        Self {
            requests: Requests::new(paths),
            connections: Arc::default(),
            sockets: SocketMetrics::default(),
            events: EventMetrics::default(),
            hooks: HookMetrics::default(),
            webhooks: WebhookMetrics::default(),
            mails: MailMetrics::default(),
            cluster: ClusterMetrics::default(),
            host: HostMetrics::default(),
            conditions: ActiveConditions::default(),
            replays: AtomicU64::new(0),
            started_at: Instant::now(),
        }
    }

    /// Counts a recorded response that was sent again for its idempotency key.
    pub fn add_replay(&self) {
        self.replays.fetch_add(1, Ordering::Relaxed);
    }

    fn replays(&self) -> u64 {
        self.replays.load(Ordering::Relaxed)
    }
}
