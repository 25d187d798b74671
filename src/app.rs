//! The shared state of the request handlers: the engine, the store of files, and the other lower layers.

use std::sync::Arc;

use actix_web::web::Data;
use hotline_actors::Engine;
use hotline_persistence::{CompanyId, Db};
use ipnet::IpNet;
use tokio::sync::watch;

use crate::health::Health;
use crate::media::Media;
use crate::metrics::Metrics;
use crate::templates::Templates;
use crate::webhooks::Webhooks;

/// The state of the handlers. The middleware has its own ([`crate::web::state::WebState`]), as have the hooks and the
/// webchats.
pub struct App {
    /// The engine, which runs all actors.
    pub engine: Engine,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Stores the files of messages.
    pub media: Media,
    /// The templates of channels, as last read from their providers.
    pub templates: Arc<Templates>,
    /// Sends requests to webhooks.
    pub webhooks: Webhooks,
    /// The metrics.
    pub metrics: Data<Metrics>,
    /// The liveness of the process, and whether its stop has been announced.
    pub health: Health,
    stopping: watch::Sender<bool>,
}

impl App {
    /// Assembles the handles of a running service.
    pub fn new(
        engine: Engine,
        trusted_proxies: Vec<IpNet>,
        media: Media,
        templates: Arc<Templates>,
        webhooks: Webhooks,
        metrics: Data<Metrics>,
    ) -> Self {
        let (health, stopping) = (Health::default(), watch::Sender::new(false));
        Self { engine, trusted_proxies, media, templates, webhooks, metrics, health, stopping }
    }

    /// The database on behalf of a company: handlers run every statement, and the transaction of every plain change,
    /// through this.
    pub fn db(&self, company: CompanyId) -> Db<'_> {
        self.engine.store().db(company)
    }

    /// Drops what is in memory about a company, except what the engine drops itself.
    pub fn forget(&self, company: CompanyId) {
        // Names every field, so that a new one must be considered here. The ignored ones have nothing to drop: files
        // are found by their names, the entry of a webhook's test is removed when its request ends, and the dispatcher
        // of webhooks subtracts a company's metrics itself.
        let Self {
            engine: _,
            trusted_proxies: _,
            media: _,
            templates,
            webhooks: _,
            metrics: _,
            health: _,
            stopping: _,
        } = self;
        templates.forget(company);
    }

    /// Whether the service is shutting down.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Whether requests should be sent here: this process may act, no shutdown has started or been announced, and the
    /// log has room for changes.
    pub fn is_ready(&self) -> bool {
        let store = self.engine.store();
        store.may_act() && !self.is_stopping() && !self.health.is_stopping() && store.log.has_room()
    }

    /// A receiver whose value becomes true when the shutdown starts: streams and sockets must end then.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Starts the shutdown.
    pub fn begin_stopping(&self) {
        self.stopping.send_replace(true);
    }
}
