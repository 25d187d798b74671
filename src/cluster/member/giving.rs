//! Slots that move to another process: their companies are closed, and they are handed over.

use std::collections::HashSet;
use std::time::Instant;

use futures_util::StreamExt;
use hotline_persistence::cluster::{Slot, lives};
use tokio::time::sleep;

use super::{Member, RETRY_PAUSE};

/// Companies that are closed at the same time: each needs the actors' threads and possibly the database.
const CLOSING_AT_ONCE: usize = 16;

impl Member {
    /// Closes slots and hands them over. A slot that cannot be closed is reopened and does not keep the others.
    pub(super) async fn give(&self, slots: &[Slot]) {
        let begun = Instant::now();
        let (ownership, placement) = (self.0.parts.engine.store().ownership(), &self.0.membership.placement);
        slots.iter().for_each(|slot| ownership.close_slot(*slot));
        placement.close(slots.iter().copied());
        let kept = self.close(slots).await;
        let (kept, closed): (Vec<Slot>, Vec<Slot>) = slots.iter().partition(|slot| kept.contains(*slot));
        futures_util::future::join(self.call_off(&kept), self.hand_over(&closed, begun)).await;
    }

    /// Reopens slots that were to move. No other process has served them, so the keys and the directory are still current.
    async fn call_off(&self, slots: &[Slot]) {
        if slots.is_empty() {
            return;
        }
        self.figures().called_off();
        self.called_off().extend(slots);
        if let Err(error) = lives::keep(&self.0.db, self.life(), slots).await {
            tracing::debug!(%error, "canceling a move will be retried");
        }
        self.serve(slots).await;
    }

    /// Hands closed slots over.
    async fn hand_over(&self, slots: &[Slot], begun: Instant) {
        if slots.is_empty() {
            return;
        }
        let ownership = self.0.parts.engine.store().ownership();
        slots.iter().for_each(|slot| ownership.shut_slot(*slot));
        self.called_off().retain(|slot| !slots.contains(slot));
        // Until the database has answered, the owner is unknown, and these slots are not served here.
        loop {
            match lives::hand_over(&self.0.db, self.life(), slots).await {
                Ok(_) => break,
                Err(error) if !self.is_passing(&error) => return,
                Err(error) => tracing::debug!(%error, "handing over slots will be retried"),
            }
            sleep(RETRY_PAUSE).await;
        }
        // Slots whose receiver is over stay here, and the next look reopens them.
        self.figures().handed_over(slots.len());
        tracing::info!(slots = slots.len(), took_ms = begun.elapsed().as_millis(), "handed over slots");
    }

    /// Ends all work in these slots, and writes all of it to the tables. Returns the slots that cannot be closed.
    async fn close(&self, slots: &[Slot]) -> HashSet<Slot> {
        let engine = &self.0.parts.engine;
        let directory = engine.directory();
        let companies = directory.companies_in(|slot| slots.contains(&slot));
        (self.0.parts.rest)(companies.clone()).await;
        let closing = companies.into_iter().map(|company| {
            let closed = (self.0.parts.leave)(company);
            async move { (company, closed.await) }
        });
        let mut closing = futures_util::stream::iter(closing).buffer_unordered(CLOSING_AT_ONCE);
        let mut kept = HashSet::new();
        while let Some((company, closed)) = closing.next().await {
            if let Err(refusal) = closed {
                tracing::info!(%refusal, company.id = %company, "canceled a move");
                kept.extend(directory.slot(company));
            }
        }
        // The whole log, not only these companies: until the slots are shut, it may have taken entries of a company
        // that was dropped first.
        let log = &engine.store().log;
        if let Err(error) = log.reached(log.appended()).await {
            tracing::info!(%error, "canceled a move");
            kept.extend(slots);
        }
        kept
    }
}
