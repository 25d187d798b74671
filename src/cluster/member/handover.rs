//! Hands slots over to other processes, after closing the companies in them.
//!
//! A slot is first closed: no new work of its companies begins, but the log still accepts entries of work in progress.
//! Once all its companies are closed, the slot is shut: the log refuses its entries.

use std::collections::HashSet;
use std::time::Instant;

use futures_util::StreamExt;
use hotline_persistence::cluster::{Slot, lives};
use tokio::time::sleep;

use super::{Member, RETRY_PAUSE};

/// Maximum number of companies that are closed concurrently: each needs the actors' threads and possibly the database.
const CLOSING_AT_ONCE: usize = 16;

impl Member {
    /// Closes slots and hands them over. A slot that cannot be closed is reopened; the others are not affected.
    pub(super) async fn hand_over_slots(&self, slots: &[Slot]) {
        let started = Instant::now();
        let (ownership, placement) = (self.0.deps.engine.store().ownership(), &self.0.membership.placement);
        slots.iter().for_each(|slot| ownership.close_slot(*slot));
        placement.close(slots.iter().copied());
        let not_closed = self.close_companies(slots).await;
        let (not_closed, closed): (Vec<Slot>, Vec<Slot>) = slots.iter().partition(|slot| not_closed.contains(*slot));
        futures_util::future::join(self.cancel_move(&not_closed), self.hand_over(&closed, started)).await;
    }

    /// Reopens slots whose move is canceled. No other process has served them, so their idempotency keys and directory
    /// entries are current.
    async fn cancel_move(&self, slots: &[Slot]) {
        if slots.is_empty() {
            return;
        }
        self.metrics().add_canceled_move();
        self.0.canceled.lock().extend(slots);
        if let Err(error) = lives::cancel_moves(&self.0.db, self.life(), slots).await {
            tracing::debug!(%error, "canceling a move will be retried");
        }
        self.serve_slots(slots).await;
    }

    /// Hands closed slots over.
    async fn hand_over(&self, slots: &[Slot], started: Instant) {
        if slots.is_empty() {
            return;
        }
        let ownership = self.0.deps.engine.store().ownership();
        slots.iter().for_each(|slot| ownership.shut_slot(*slot));
        self.0.canceled.lock().retain(|slot| !slots.contains(slot));
        // Until the database has answered, the owner is unknown, and these slots are not served here.
        loop {
            match lives::hand_over(&self.0.db, self.life(), slots).await {
                Ok(_) => break,
                Err(error) if !self.is_transient(&error) => return,
                Err(error) => tracing::debug!(%error, "handing over slots will be retried"),
            }
            sleep(RETRY_PAUSE).await;
        }
        // Slots whose receiver has ended stay here; the next update of the placement reopens them.
        self.metrics().add_handed_over_slots(slots.len());
        tracing::info!(slots = slots.len(), took_ms = started.elapsed().as_millis(), "handed over slots");
    }

    /// Ends all work in these slots, and writes all of it to the tables. Returns the slots that cannot be closed.
    async fn close_companies(&self, slots: &[Slot]) -> HashSet<Slot> {
        let engine = &self.0.deps.engine;
        let directory = engine.directory();
        let companies = directory.companies_in(|slot| slots.contains(&slot));
        (self.0.deps.quiesce)(companies.clone()).await;
        let closing = companies.into_iter().map(|company| {
            let closed = (self.0.deps.drop_company)(company);
            async move { (company, closed.await) }
        });
        let mut closing = futures_util::stream::iter(closing).buffer_unordered(CLOSING_AT_ONCE);
        let mut not_closed = HashSet::new();
        while let Some((company, closed)) = closing.next().await {
            if let Err(refusal) = closed {
                tracing::info!(%refusal, company.id = %company, "canceled a move");
                not_closed.extend(directory.slot(company));
            }
        }
        // The whole log is written, not only the entries of these companies: until the slots are shut, the log accepts
        // entries, even of a company that is already closed.
        let log = &engine.store().log;
        if let Err(error) = log.wait_until_flushed(log.appended()).await {
            tracing::info!(%error, "canceled a move");
            not_closed.extend(slots);
        }
        not_closed
    }
}
