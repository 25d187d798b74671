//! Drops all in-memory state of a company. If this process still serves the company's slot, it then serves the company
//! again from the tables. In a cluster, a process does this to every company of a slot before it hands the slot over.
//! Meanwhile the company's requests wait, or get a 503 with `Retry-After`; other companies are not affected.

use hotline_actors::Refusal;
use hotline_persistence::CompanyId;

use super::Service;
use crate::deliveries::{Deliveries, DeliveryControl};
use crate::routes::Handles;

/// Drops a company from memory. Cheap to clone.
#[derive(Clone)]
pub(super) struct CompanyEviction {
    handles: Handles,
    deliveries: Option<DeliveryControl>,
}

impl Service {
    /// Drops a company from memory, and serves it again.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when work of the company, a provider or the database does not end in time: the company
    /// is then served as before.
    pub async fn forget(&self, company: CompanyId) -> Result<(), Refusal> {
        let deliveries = self.deliveries.as_ref().map(Deliveries::control);
        CompanyEviction::new(self.handles.clone(), deliveries).forget(company).await
    }
}

impl CompanyEviction {
    pub(super) fn new(handles: Handles, deliveries: Option<DeliveryControl>) -> Self {
        Self { handles, deliveries }
    }

    /// Pauses the deliveries of companies that are about to be dropped.
    pub(super) async fn pause_all(&self, companies: Vec<CompanyId>) {
        if let Some(deliveries) = &self.deliveries {
            deliveries.pause_all(companies).await;
        }
    }

    /// Drops a company, and serves it again if its slot is open here.
    pub(super) async fn forget(&self, company: CompanyId) -> Result<(), Refusal> {
        let engine = &self.handles.app.engine;
        // Paused before the company is closed, because closing waits until the couriers, which deliver to webhooks,
        // have released their events in memory.
        let _paused = PausedDeliveries::of(self.deliveries.as_ref(), company).await;
        let closed = engine.store().ownership().close(company).await?;
        engine.forget(company, &closed).await?;
        self.handles.forget(company);
        if !engine.store().ownership().is_placed_here(company) {
            return Ok(());
        }
        let keys = &self.handles.web_state.idempotency.keys;
        if let Err(error) = keys.load_company(&engine.store().housekeeping, company).await {
            tracing::debug!(
                %error,
                company.id = %company,
                "could not load a company's idempotency keys; looking them up in the database"
            );
        }
        drop(closed);
        self.handles.hooks.downloads.search_soon();
        Ok(())
    }
}

/// Pauses the deliveries to a company's webhooks. Dropping it resumes them, even after an error.
struct PausedDeliveries<'a> {
    deliveries: Option<&'a DeliveryControl>,
    company: CompanyId,
}

impl<'a> PausedDeliveries<'a> {
    async fn of(deliveries: Option<&'a DeliveryControl>, company: CompanyId) -> Self {
        // Created before the wait, so that the deliveries are also resumed if the wait is canceled.
        let paused = Self { deliveries, company };
        if let Some(deliveries) = deliveries {
            deliveries.pause(company).await;
        }
        paused
    }
}

impl Drop for PausedDeliveries<'_> {
    fn drop(&mut self) {
        if let Some(deliveries) = self.deliveries {
            deliveries.resume(self.company);
        }
    }
}

impl Handles {
    /// Drops the state of the layers outside the engine.
    fn forget(&self, company: CompanyId) {
        // A sweep drops rendered tickets whose state is no longer in use. The documents belong to no company, and the
        // demo's page depends only on the settings. Sign-in attempts are counted by account, address and person for a
        // few minutes; sessions are not held in memory.
        let Self {
            app,
            shared_streams,
            rendered_tickets: _,
            hooks,
            visitor_limits,
            panel: _,
            demo: _,
            documents: _,
            web_state,
        } = self;
        app.forget(company);
        shared_streams.forget(company, app.engine.store().events.as_deref());
        hooks.forget(company);
        visitor_limits.forget(company);
        web_state.forget(company);
    }
}
