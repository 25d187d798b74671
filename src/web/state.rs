//! The state that the middleware and extractors of this folder share.

use actix_web::web::{Data, ServiceConfig};
use hotline_persistence::CompanyId;

use super::admission::auth::Admission;
use super::admission::hardening::Https;
use super::admission::idempotency::IdempotencyState;
use super::admission::rate::RateLimits;
use super::admission::response_memory::ResponseMemory;
use super::request::body_scheduler::BodyScheduler;
use super::request::params::PerPageMax;
use super::response::cursor::Cursors;
use crate::media::Media;
use crate::metrics::Metrics;

/// State that every request has as application data. Cheap to clone.
#[derive(Clone)]
pub struct WebState {
    /// Identifies callers.
    pub admission: Data<Admission>,
    /// Recognizes requests over https.
    pub https: Data<Https>,
    /// Rate limits of the companies.
    pub rates: Data<RateLimits>,
    /// The maximum page size.
    pub per_page_max: Data<PerPageMax>,
    /// Signs the cursors of pages.
    pub cursors: Data<Cursors>,
    /// Limits the large request bodies in memory.
    pub body_scheduler: Data<BodyScheduler>,
    /// Limits the large responses in memory.
    pub response_memory: Data<ResponseMemory>,
    /// Stores uploaded files.
    pub media: Data<Media>,
    /// Detects retries, and replays their responses.
    pub idempotency: Data<IdempotencyState>,
    /// The metrics.
    pub metrics: Data<Metrics>,
}

impl WebState {
    /// Drops all state of a company.
    pub fn forget(&self, company: CompanyId) {
        // The other fields have nothing to drop: invalid tokens are counted by address, large bodies and responses only
        // while they are in memory, and the couriers (one per webhook) remove theirs from the metrics when they end.
        let Self {
            admission: _,
            https: _,
            rates,
            per_page_max: _,
            cursors: _,
            body_scheduler: _,
            response_memory: _,
            media: _,
            idempotency,
            metrics: _,
        } = self;
        rates.forget(company);
        idempotency.forget(company);
    }

    /// Registers the state with the server.
    pub fn add(self, services: &mut ServiceConfig) {
        let Self {
            admission,
            https,
            rates,
            per_page_max,
            cursors,
            body_scheduler,
            response_memory,
            media,
            idempotency,
            metrics,
        } = self;
        services
            .app_data(admission)
            .app_data(https)
            .app_data(rates)
            .app_data(per_page_max)
            .app_data(cursors)
            .app_data(body_scheduler)
            .app_data(response_memory)
            .app_data(media)
            .app_data(idempotency)
            .app_data(metrics);
    }
}
