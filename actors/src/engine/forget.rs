//! Drops one company from memory. A company's move to another process begins with this, so that a process that later
//! serves the company again has none of its old data in memory.
//!
//! No data is lost: acknowledged changes are in the log, and are read from the tables afterwards, as after a start.
//! Each part destructures itself with a pattern that names every field, so a new field does not compile until it is
//! either dropped or named as one that stays.

use hotline_persistence::{Closed, CompanyId};

use super::Engine;
use crate::Refusal;

impl Engine {
    /// Drops a closed company from memory, and restarts its outboxes, schedules and campaigns from the tables. To be
    /// called before the company is open again.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when a provider or the database prevents this from completing. The company can be
    /// opened again nevertheless: actors that have ended start on demand.
    pub async fn forget(&self, company: CompanyId, closed: &Closed) -> Result<(), Refusal> {
        let _resume = ResumeGuard { engine: self, company };
        self.drop_all(company, closed).await
    }

    async fn drop_all(&self, company: CompanyId, closed: &Closed) -> Result<(), Refusal> {
        let Self {
            tickets,
            contacts,
            inbound,
            sending,
            schedules,
            campaigns,
            assignment,
            sessions,
            retention,
            // These enter the company before each step, and hold nothing of it.
            cascades: _,
            erasures: _,
            merging: _,
            attendance,
            base,
            sweeper: _,
            is_sweeping: _,
        } = self;
        // Before the log refuses entries, because these may still record the outcome of a call to a provider, or when a
        // visitor was last present.
        sending.pause(company).await?;
        sessions.forget_company(company).await?;
        schedules.forget_company(company).await?;
        campaigns.forget_company(company).await?;
        closed.shut();
        // Earlier decisions are in the log after this, and the log refuses new ones.
        base.arbiters.wait_for_current_messages().await;
        tickets.forget_company(company).await?;
        base.store.log.wait_until_flushed(base.store.log.last_of(company)).await?;
        sending.forget_company(company);
        inbound.forget_company(company);
        assignment.forget_company(company);
        contacts.forget_company(company);
        retention.forget_company(company);
        attendance.forget_company(company);
        base.forget_company(company);
        Ok(())
    }
}

/// Resumes a company's sending, schedules and campaigns when dropped, even if dropping its memory fails.
struct ResumeGuard<'a> {
    engine: &'a Engine,
    company: CompanyId,
}

impl Drop for ResumeGuard<'_> {
    fn drop(&mut self) {
        self.engine.sending.resume(self.company);
        self.engine.schedules.resume(self.company);
        self.engine.campaigns.resume(self.company);
    }
}
