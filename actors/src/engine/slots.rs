//! Slots of a cluster: starts the work of their companies when they are opened here. Closing them drops each of their
//! companies ([`Engine::forget`]).

use hotline_persistence::cluster::OfSlots;
use hotline_persistence::tables::{campaigns, messages, schedules};
use hotline_persistence::{CompanyId, Slot};

use super::Engine;
use crate::Refusal;

impl Engine {
    /// Serves the companies of these slots. No other process may serve them, and memory must hold nothing of them.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away: the slots are then not served.
    pub async fn open(&self, slots: &[Slot]) -> Result<(), Refusal> {
        let Self {
            // Started on demand.
            tickets: _,
            contacts: _,
            inbound: _,
            assignment: _,
            sessions: _,
            // Periodic: they find the companies that are served.
            sweeper: _,
            swept: _,
            retention: _,
            sending,
            schedules: later,
            campaigns: to_many,
            base,
        } = self;
        let (ownership, db) = (base.store.ownership(), &base.store.housekeeping);
        let these = OfSlots::these(slots.iter().copied());
        // A company that the directory does not know yet is started on its first request.
        let is_known = |company: &CompanyId| base.directory.slot(*company).is_some();
        // Above every id that an earlier owner has assigned.
        base.store.ids.renew(base.store.housekeeper()).await?;
        let mut left = messages::outboxes(db, &these).await?;
        left.retain(|(company, _)| is_known(company));
        let mut scheduled = schedules::companies(db, &these).await?;
        scheduled.retain(is_known);
        let mut unfinished = campaigns::unfinished(db, &these).await?;
        unfinished.retain(|(company, _)| is_known(company));
        // While a slot is closed but not shut, the log accepts outcomes of messages that other processes have left, and
        // requests still wait.
        slots.iter().for_each(|slot| ownership.close_slot(*slot));
        sending.begin_left(left);
        slots.iter().for_each(|slot| ownership.open_slot(*slot));
        for company in scheduled {
            later.begin(company).await?;
        }
        for (company, campaign) in unfinished {
            to_many.begin(company, campaign).await?;
        }
        Ok(())
    }
}
