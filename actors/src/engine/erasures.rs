//! Erases people's data: a contact with all its records, and the copies that remain when a contact is deleted.
//!
//! A table lists the requested erasures, so a kill or an outage only delays them. Each step can be repeated. The
//! contact is deleted as a request would delete it: its sessions are ended and its tickets closed first, so that no
//! actor restores a row.

use std::sync::Arc;

use hotline_persistence::table::Expected;
use hotline_persistence::tables::cascades::{self as deletions, Cascade};
use hotline_persistence::tables::erasures::{self, Erasure};
use hotline_persistence::tables::events::By;
use hotline_persistence::{CompanyId, ContactId, Database, Db, Presence};
use tokio::time::MissedTickBehavior;

use super::cascades::Cascades;
use super::sessions::Sessions;
use crate::Refusal;
use crate::base::Base;
use crate::services::{Contacts, Tickets};
use crate::tickets::CloseErased;
use crate::webchat::End;

/// Maximum attempts in one turn to delete a contact who begins sessions or tickets meanwhile.
const ATTEMPTS_MAX: usize = 10;

/// Maximum steps in one turn to remove references to the contact.
const CASCADE_STEPS_MAX: usize = 100;

/// The failure of an erasure whose traces are unreadable, as it is recorded and logged.
const UNREADABLE: &str = "the stored list of the contact's records is unreadable, so nothing is erased: restore `traces` of \
    the contact's row in the table `erasures` from a backup, or set it to '{}' to erase what can still be found";

/// Erases people's data.
pub struct Erasures {
    pub(super) base: Arc<Base>,
    pub(super) contacts: Arc<Contacts>,
    pub(super) tickets: Arc<Tickets>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) cascades: Arc<Cascades>,
}

/// Whether a service runs, which decides how scheduled messages are removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serving {
    /// A service runs: the actor of scheduled messages fails pending ones first.
    Served,
    /// No service runs, so no actor has scheduled messages.
    Unserved,
}

impl Erasures {
    /// Carries out requested erasures for as long as the process runs. Calls `on_orphaned_files` when files have lost
    /// their messages.
    pub async fn run(&self, on_orphaned_files: impl Fn() + Send + Sync) {
        let mut ticks = tokio::time::interval(self.base.options.sweep_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(refusal) = self.advance(Serving::Served, &on_orphaned_files).await {
                tracing::debug!(%refusal, "could not read requested erasures; will retry");
            }
        }
    }

    /// Takes the next steps while no service runs: nothing is sent. Returns whether more steps are left.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn advance_unserved(&self, on_orphaned_files: impl Fn() + Send + Sync) -> Result<bool, Refusal> {
        self.advance(Serving::Unserved, &on_orphaned_files).await
    }

    async fn advance(&self, serving: Serving, on_orphaned_files: &(impl Fn() + Send + Sync)) -> Result<bool, Refusal> {
        let store = &self.base.store;
        let pending = erasures::pending(&store.housekeeping, &store.ownership().slot_filter()).await?;
        let mut has_more = false;
        for mut erasure in pending {
            let Some(presence) = store.ownership().try_enter(erasure.company_id) else { continue };
            if !erasure.is_readable {
                has_more = true;
                self.record_failure(&erasure, UNREADABLE, true).await;
                continue;
            }
            match self.erase(&mut erasure, presence, serving, on_orphaned_files).await {
                Ok(is_done) => has_more |= !is_done,
                // The company has moved meanwhile: its next process finds the erasure in the table.
                Err(_) if !self.base.owns(erasure.company_id) => has_more = true,
                Err(refusal) => {
                    has_more = true;
                    let is_lasting = !matches!(refusal, Refusal::Unavailable(_));
                    self.record_failure(&erasure, &refusal.to_string(), is_lasting).await;
                }
            }
        }
        Ok(has_more)
    }

    /// Records why an erasure failed; it is retried. Logs each new reason that will not resolve itself.
    async fn record_failure(&self, erasure: &Erasure, reason: &str, is_lasting: bool) {
        let (company, contact) = (erasure.company_id, erasure.contact_id);
        if erasure.failure.as_deref() == Some(reason) {
            return;
        }
        if is_lasting {
            tracing::warn!(reason, company.id = %company, contact.id = %contact,
                "could not erase a contact; it will be retried: correct what the reason names");
        }
        // The company may have moved since the failure.
        let Some(_presence) = self.base.try_enter(company) else { return };
        if let Err(error) = erasures::record_failure(self.base.db(company), erasure, reason).await {
            tracing::debug!(%error, company.id = %company, "erasure of a contact will be retried");
        }
    }

    /// Takes the next steps of one erasure; returns whether it is done.
    async fn erase(
        &self,
        erasure: &mut Erasure,
        presence: Presence,
        serving: Serving,
        on_orphaned_files: &(impl Fn() + Send + Sync),
    ) -> Result<bool, Refusal> {
        let (company, contact) = (erasure.company_id, erasure.contact_id);
        self.remove_contact(erasure, serving).await?;
        if !self.remove_references(company, contact).await? {
            return Ok(false);
        }
        // The last changes of scheduled messages are in the table after this.
        let db = self.base.reads().tables(company).await?.heavy();
        if erasures::remove_schedules(db, company, contact, serving == Serving::Unserved).await? {
            return Ok(false);
        }
        if erasures::has_files(db, erasure).await? {
            // The erasure ends in a later turn, after the files were deleted in the background.
            on_orphaned_files();
            return Ok(false);
        }
        drop(presence);
        self.remove_copies(db, erasure).await?;
        let _presence = self.base.store.ownership().enter(company).await?;
        erasures::finish(db, erasure).await?;
        tracing::info!(company.id = %company, contact.id = %contact, "erased a contact");
        Ok(true)
    }

    /// Removes the copies of the contact's data. That may take a long time, so no presence is held: each statement
    /// enters the company itself.
    async fn remove_copies(&self, db: Db<'_>, erasure: &mut Erasure) -> Result<(), Refusal> {
        let ownership = self.base.store.ownership();
        let redacted = erasures::redact_events(db, ownership, erasure).await;
        // Also after a failure: some events may have been redacted.
        self.base.store.publish_removal(erasure.company_id);
        let events = redacted?;
        let deliveries = erasures::forget_deliveries(db, ownership, erasure).await?;
        let (responses, rejected) = erasures::forget_responses(db, ownership, erasure).await?;
        for (name, number) in
            [("events", events), ("deliveries", deliveries), ("responses", responses), ("rejectedChanges", rejected)]
        {
            let count = erasure.removed.entry(name.to_owned()).or_default();
            *count = count.saturating_add(i64::try_from(number).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// Deletes the contact, once its sessions are ended and its tickets closed.
    async fn remove_contact(&self, erasure: &mut Erasure, serving: Serving) -> Result<(), Refusal> {
        let (company, contact) = (erasure.company_id, erasure.contact_id);
        for attempt in 1.. {
            let db = self.base.reads().tables(company).await?;
            if !erasures::collect_traces(db, erasure).await? {
                // If the contact was merged since, its data now belongs to another contact of the same person.
                if let Some(into) = self.contacts.successor(company, contact).await? {
                    erasures::request(self.base.db(company), company, into).await?;
                }
                return Ok(());
            }
            self.end_conversations(company, contact).await?;
            if serving == Serving::Unserved {
                erasures::remove_schedules(db, company, contact, true).await?;
            }
            let sessions = self.sessions.clone();
            let forget = move |deleted: &[_]| sessions.forget(company, deleted);
            match self.contacts.remove(company, contact, Expected::default(), forget).await {
                Ok(()) => self.cascades.begin(company, Cascade::Contact(contact)).await,
                Err(Refusal::NotFound) => {}
                // A ticket or a session has begun meanwhile.
                Err(Refusal::Conflict(_)) if attempt < ATTEMPTS_MAX => continue,
                Err(refusal) => return Err(refusal),
            }
            return Ok(());
        }
        Ok(())
    }

    async fn end_conversations(&self, company: CompanyId, contact: ContactId) -> Result<(), Refusal> {
        let db = self.base.reads().tables(company).await?;
        let (tickets, sessions) = erasures::open_tickets_and_sessions(db, company, contact).await?;
        for session in sessions {
            let end = End { idle_since: None, attached: None, by: By::SYSTEM };
            match self.sessions.ask(company, &session, end).await {
                Ok(_) | Err(Refusal::NotFound) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        for ticket in tickets {
            match self.tickets.ask(company, ticket, CloseErased).await {
                Ok(()) | Err(Refusal::NotFound | Refusal::TicketClosed(_)) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(())
    }

    /// Removes references to the deleted contact; returns whether none remain.
    async fn remove_references(&self, company: CompanyId, contact: ContactId) -> Result<bool, Refusal> {
        let cascade = Cascade::Contact(contact);
        for _ in 0..CASCADE_STEPS_MAX {
            if deletions::find(self.base.db(company), company, cascade).await?.is_none() {
                return Ok(true);
            }
            self.cascades.begin(company, cascade).await;
        }
        Ok(false)
    }
}
