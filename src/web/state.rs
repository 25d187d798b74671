//! The shared state of the middleware and extractors of this folder.

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

/// The shared state of this folder's modules, found in every request. Cheap to clone.
#[derive(Clone)]
pub struct WebState {
    /// Identifies callers.
    pub admission: Data<Admission>,
    /// How requests over https are recognized.
    pub https: Data<Https>,
    /// Rate limits of the companies.
    pub rates: Data<RateLimits>,
    /// The maximum page size.
    pub per_page_max: Data<PerPageMax>,
    /// Signs where the next pages begin.
    pub cursors: Data<Cursors>,
    /// The scheduler of large bodies.
    pub body_scheduler: Data<BodyScheduler>,
    /// Limits the responses in memory.
    pub response_memory: Data<ResponseMemory>,
    /// Stores uploaded files.
    pub media: Data<Media>,
    /// Detects retries, and replays their responses.
    pub idempotency: Data<IdempotencyState>,
    /// The metrics.
    pub figures: Data<Metrics>,
}

impl WebState {
    /// Drops all state of a company.
    pub fn forget(&self, company: CompanyId) {
        // No other state of a company lasts: wrong tokens are counted per address; large bodies and responses, only
        // while they are in memory.
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
            figures: _,
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
            figures,
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
            .app_data(figures);
    }
}
