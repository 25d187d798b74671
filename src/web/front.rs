//! What stands before the handlers works with, each part by itself.

use actix_web::web::{Data, ServiceConfig};
use hotline_persistence::CompanyId;

use super::aside::Aside;
use super::auth::Admission;
use super::idempotency::Retries;
use super::params::PerPageMax;
use super::rate::RateLimits;
use crate::media::Media;
use crate::metrics::Metrics;

/// Everything the modules of this folder find in a request. Cheap to clone.
#[derive(Clone)]
pub struct Front {
    /// Who calls.
    pub admission: Data<Admission>,
    /// How many requests each company may make.
    pub rates: Data<RateLimits>,
    /// How long a page may be.
    pub per_page_max: Data<PerPageMax>,
    /// The turns of large bodies.
    pub aside: Data<Aside>,
    /// Where files come in.
    pub media: Data<Media>,
    /// Which requests are retries.
    pub retries: Data<Retries>,
    /// What is counted.
    pub figures: Data<Metrics>,
}

impl Front {
    /// Drops what is known of a company.
    pub fn forget(&self, company: CompanyId) {
        // Guessed tokens are counted by address; large bodies have turns while they are there.
        let Self { admission: _, rates, per_page_max: _, aside: _, media: _, retries, figures: _ } = self;
        rates.forget(company);
        retries.forget(company);
    }

    /// Lets every request find it.
    pub fn add(self, services: &mut ServiceConfig) {
        let Self { admission, rates, per_page_max, aside, media, retries, figures } = self;
        services
            .app_data(admission)
            .app_data(rates)
            .app_data(per_page_max)
            .app_data(aside)
            .app_data(media)
            .app_data(retries)
            .app_data(figures);
    }
}
