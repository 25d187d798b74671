//! Slots of a cluster: what begins for their companies when they are opened here. What ends when they are closed is what is
//! dropped of each company ([`Engine::forget`]).

use futures_util::stream::{self, TryStreamExt};
use hotline_persistence::cluster::OfSlots;
use hotline_persistence::pool::HOUSEKEEPING_MAX;
use hotline_persistence::tables::{campaigns, companies, messages, schedules};
use hotline_persistence::{CompanyId, Slot};

use super::Engine;
use crate::Refusal;

/// Companies that are read anew at once, before their slots are opened: as many as the service's own work has connections,
/// but for the one that hears of changes.
const READ_AT_ONCE: usize = (HOUSEKEEPING_MAX - 1) as usize;

impl Engine {
    /// Reads what the directory holds of every company of these slots, so that it is decided by all that was answered where
    /// they were served before: the news of it may still be on their way. Answers which those are.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn learn(&self, slots: &[Slot]) -> Result<Vec<CompanyId>, Refusal> {
        let (directory, db) = (&self.base.directory, &self.base.store.housekeeping);
        let found = companies::of_slots(db, &OfSlots::these(slots.iter().copied())).await?;
        stream::iter(found.iter().map(Ok))
            .try_for_each_concurrent(READ_AT_ONCE, |company| directory.refresh(db, *company))
            .await?;
        Ok(found)
    }

    /// Serves the companies of these slots. Nobody else serves them, and what is in memory of them is nothing.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away: then they are not served.
    pub async fn open(&self, slots: &[Slot]) -> Result<(), Refusal> {
        let Self {
            // Begun by what is asked of them.
            tickets: _,
            contacts: _,
            inbound: _,
            assignment: _,
            sessions: _,
            // By the clock, for whatever is served then.
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
        // One that was made a moment ago is begun by what is asked of it.
        let is_known = |company: &CompanyId| base.directory.slot(*company).is_some();
        // Above every id that an owner before has given out.
        base.store.ids.renew(base.store.housekeeper()).await?;
        let mut left = messages::outboxes(db, &these).await?;
        left.retain(|(company, _)| is_known(company));
        let mut scheduled = schedules::companies(db, &these).await?;
        scheduled.retain(is_known);
        let mut unfinished = campaigns::unfinished(db, &these).await?;
        unfinished.retain(|(company, _)| is_known(company));
        // The log takes what becomes of messages that others have left, and no request comes before them.
        slots.iter().for_each(|slot| ownership.close_slot(*slot));
        let is_here = |company| base.directory.slot(company).is_some_and(|slot| slots.contains(&slot));
        sending.begin_left(left, is_here);
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
