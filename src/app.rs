//! What the handlers work with: handles of the parts below, and nothing of who makes or serves them.

use actix_web::web::Data;
use hotline_actors::Engine;
use hotline_persistence::{CompanyId, Db};
use ipnet::IpNet;
use tokio::sync::watch;

use crate::media::Media;
use crate::metrics::Metrics;
use crate::templates::Templates;
use crate::webhooks::Webhooks;

/// The handles. What stands before the handlers has its own ([`crate::web::Front`]), and so have the providers' calls and
/// the visitors.
pub struct App {
    /// Every actor.
    pub engine: Engine,
    /// Who is believed when it says for whom a connection was made.
    pub trusted_proxies: Vec<IpNet>,
    /// The files of messages.
    pub media: Media,
    /// The templates of channels, as their providers told them lately.
    pub templates: Templates,
    /// The way to the endpoints of webhooks.
    pub webhooks: Webhooks,
    /// What is counted.
    pub figures: Data<Metrics>,
    stopping: watch::Sender<bool>,
}

impl App {
    /// The handles of a service that runs.
    pub fn new(
        engine: Engine,
        trusted_proxies: Vec<IpNet>,
        media: Media,
        templates: Templates,
        webhooks: Webhooks,
        figures: Data<Metrics>,
    ) -> Self {
        Self { engine, trusted_proxies, media, templates, webhooks, figures, stopping: watch::Sender::new(false) }
    }

    /// The tables, as a company asks them: the one way of a handler to a statement, and to the transaction of a plain
    /// change.
    pub fn db(&self, company: CompanyId) -> Db<'_> {
        self.engine.store().db(company)
    }

    /// Drops what is known of a company, but for what the engine drops itself.
    pub fn forget(&self, company: CompanyId) {
        // Files are found by their names; what is counted is not counted by company, but for what the dispatcher of
        // webhooks takes back itself. A test of a webhook ends with its request.
        let Self { engine: _, trusted_proxies: _, media: _, templates, webhooks: _, figures: _, stopping: _ } = self;
        templates.forget(company);
    }

    /// Whether the service is on its way down.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Tells when it begins to go down: what lasts longer than a request must end then.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// The service begins to go down.
    pub fn begin_stopping(&self) {
        self.stopping.send_replace(true);
    }
}
