//! Metrics for operators: what is counted while requests are served, and what the parts report of themselves
//! when they are asked. Served by a listener of its own ([`Listener`]); `docs/metrics.md` explains each.
//!
//! A request adds to atomic numbers that exist from the start: it makes no text, takes no lock and allocates nothing.
//! Names and labels are made when the figures are read.

mod cluster;
mod events;
mod hooks;
mod http;
mod mails;
mod process;
mod requests;
mod routes;
mod sample;
mod sockets;
mod webhooks;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use actix_web::web::Data;
use hotline_actors::Engine;

use self::sample::Sample;

pub use cluster::ClusterFigures;
pub use events::EventFigures;
pub use hooks::{HookFigures, Tally};
pub use http::{Listener, PATH};
pub use mails::MailFigures;
pub use requests::Requests;
pub use sockets::SocketFigures;
pub use webhooks::{AttemptEnd, WebhookFigures};

/// All figures at this moment, in the Prometheus text format.
///
/// # Errors
/// When they cannot be written.
pub async fn text(engine: Engine, figures: Data<Metrics>) -> Result<String, fmt::Error> {
    Sample::take(engine, figures).await.into_text()
}

/// What a service counts by itself.
pub struct Metrics {
    /// Requests that were answered.
    pub requests: Requests,
    /// Visitors' sockets.
    pub sockets: SocketFigures,
    /// Streams of events.
    pub events: EventFigures,
    /// What providers have told.
    pub hooks: HookFigures,
    /// What became of deliveries to webhooks.
    pub webhooks: WebhookFigures,
    /// Letters to people.
    pub mails: MailFigures,
    /// What the edge of a cluster does.
    pub cluster: ClusterFigures,
    replays: AtomicU64,
    started: Instant,
}

impl Metrics {
    /// Nothing counted yet; `paths` are those of the route table.
    pub fn new(paths: Vec<String>) -> Self {
        Self {
            requests: Requests::new(paths),
            sockets: SocketFigures::default(),
            events: EventFigures::default(),
            hooks: HookFigures::default(),
            webhooks: WebhookFigures::default(),
            mails: MailFigures::default(),
            cluster: ClusterFigures::default(),
            replays: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Notes a request that was answered with what its first was answered.
    pub fn replayed(&self) {
        self.replays.fetch_add(1, Ordering::Relaxed);
    }

    fn replays(&self) -> u64 {
        self.replays.load(Ordering::Relaxed)
    }
}
