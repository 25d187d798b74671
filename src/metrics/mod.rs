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
use crate::telemetry::states::States;

pub use cluster::ClusterFigures;
pub use connections::{ConnectionFigures, OpenConnection};
pub use events::EventFigures;
pub use hooks::{HookFigures, Tally};
pub use host::HostFigures;
pub use http::{Listener, PATH};
pub use mails::MailFigures;
pub use requests::Requests;
pub use sockets::SocketFigures;
pub use webhooks::{AttemptOutcome, WebhookFigures};

/// All current metrics, in the Prometheus text format.
///
/// # Errors
/// When they cannot be formatted.
pub async fn text(engine: Engine, figures: Data<Metrics>) -> Result<String, fmt::Error> {
    MetricsSnapshot::take(engine, figures).await.into_text()
}

/// The counters of a service.
pub struct Metrics {
    /// Answered requests.
    pub requests: Requests,
    /// Connections to the public listener.
    pub connections: Arc<ConnectionFigures>,
    /// Visitors' sockets.
    pub sockets: SocketFigures,
    /// Streams of events.
    pub events: EventFigures,
    /// Calls of providers.
    pub hooks: HookFigures,
    /// Deliveries to webhooks.
    pub webhooks: WebhookFigures,
    /// E-mails to people.
    pub mails: MailFigures,
    /// The edge of a cluster.
    pub cluster: ClusterFigures,
    /// Disks and backups.
    pub host: HostFigures,
    /// The conditions that an operator must know of.
    pub states: States,
    replays: AtomicU64,
    started: Instant,
}

impl Metrics {
    /// All counters at zero; `paths` are those of the route table.
    pub fn new(paths: Vec<String>) -> Self {
        Self {
            requests: Requests::new(paths),
            connections: Arc::default(),
            sockets: SocketFigures::default(),
            events: EventFigures::default(),
            hooks: HookFigures::default(),
            webhooks: WebhookFigures::default(),
            mails: MailFigures::default(),
            cluster: ClusterFigures::default(),
            host: HostFigures::default(),
            states: States::default(),
            replays: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Counts a replayed response.
    pub fn add_replay(&self) {
        self.replays.fetch_add(1, Ordering::Relaxed);
    }

    fn replays(&self) -> u64 {
        self.replays.load(Ordering::Relaxed)
    }
}
