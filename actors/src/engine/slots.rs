//! Slots of a cluster. Opening slots starts the work of their companies in this process; closing them drops each
//! company from memory ([`Engine::forget`]).

use futures_util::stream::{self, TryStreamExt};
use hotline_persistence::cluster::SlotFilter;
use hotline_persistence::pool::HOUSEKEEPING_MAX;
use hotline_persistence::tables::{campaigns, companies, messages, schedules};
use hotline_persistence::{CompanyId, Slot};

use super::Engine;
use crate::Refusal;
use crate::directory::LOADED_AT_ONCE;

/// Maximum groups of companies that are reloaded concurrently before their slots are opened: one for each housekeeping
/// connection, except the one that listens to changes.
const GROUPS_AT_ONCE: usize = (HOUSEKEEPING_MAX - 1) as usize;

impl Engine {
    /// Reloads the directory for every company of these slots, and returns the companies. Without this reload, the
    /// process could decide on stale data: the notification of a change that the last owner acknowledged may not have
    /// arrived yet.
    pub async fn reload_directory(&self, slots: &[Slot]) -> Result<Vec<CompanyId>, Refusal> {
        let (directory, db) = (&self.base.directory, &self.base.store.housekeeping);
        let found = companies::of_slots(db, &SlotFilter::only(slots.iter().copied())).await?;
        stream::iter(found.chunks(LOADED_AT_ONCE).map(Ok))
            .try_for_each_concurrent(GROUPS_AT_ONCE, async |companies| {
                let unreadable = directory.refresh_all(db, companies).await?;
                unreadable.into_iter().for_each(|id| directory.forget(id));
                Ok::<_, hotline_persistence::Error>(())
            })
            .await?;
        Ok(found)
    }

    /// Serves the companies of these slots. No other process may serve them, and memory must hold nothing of them.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable: the slots are then not served.
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
            is_sweeping: _,
            retention: _,
            cascades: _,
            erasures: _,
            sending,
            schedules,
            campaigns,
            // In memory only: filled by people's next requests.
            attendance: _,
            // Run by requests.
            merging: _,
            base,
        } = self;
        let (ownership, db) = (base.store.ownership(), &base.store.housekeeping);
        let slot_filter = SlotFilter::only(slots.iter().copied());
        // A company that the directory does not know yet is started on its first request.
        let is_loaded = |company: &CompanyId| base.directory.slot(*company).is_some();
        // From now on, ids are assigned above every id of an earlier owner.
        base.store.ids.renew(base.store.housekeeper()).await?;
        let mut backlogs = messages::outboxes(db, &slot_filter).await?;
        backlogs.retain(|(company, _)| is_loaded(company));
        let mut scheduled = schedules::companies_with_pending(db, &slot_filter).await?;
        scheduled.retain(is_loaded);
        let mut unfinished = campaigns::unfinished(db, &slot_filter).await?;
        unfinished.retain(|(company, _)| is_loaded(company));
        // While a slot is closed but not shut, requests wait, and the log accepts entries: senders already record the
        // outcomes of the messages in the backlogs.
        slots.iter().for_each(|slot| ownership.close_slot(*slot));
        let is_here = |company| base.directory.slot(company).is_some_and(|slot| slots.contains(&slot));
        sending.take_over(backlogs, is_here);
        ownership.open_slots(slots);
        for company in scheduled {
            schedules.start_company(company).await?;
        }
        for (company, campaign) in unfinished {
            campaigns.begin(company, campaign).await?;
        }
        Ok(())
    }
}
