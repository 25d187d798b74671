//! Merges of contacts and of tickets ([decision
//! 68](../../../docs/decisions/0068-a-merge-is-one-transaction-behind-marks.md)).
//!
//! The contacts are marked while their rows change, like contacts that are being deleted: no decision is made for them
//! until the outcome is known. A caller that waited for a mark then finds the remaining contact and ticket.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hotline_persistence::tables::reports::desk;
use hotline_persistence::tables::tickets::{self, OpenTicketOf};
use hotline_persistence::tables::webchat_sessions;
use hotline_persistence::{CompanyId, ContactId, Presence, SessionId, TicketId};

use super::schedules::Schedules;
use super::sessions::Sessions;
use crate::Refusal;
use crate::base::Base;
use crate::base::retry::until_finished;
use crate::contacts::ContactMark;
use crate::services::{Contacts, Tickets};
use crate::webchat::SessionMoved;

/// Merges contacts and tickets.
pub struct Merging {
    pub(super) base: Arc<Base>,
    pub(super) contacts: Arc<Contacts>,
    pub(super) tickets: Arc<Tickets>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) schedules: Arc<Schedules>,
}

/// Contacts whose rows may be merged: nothing begins or changes for them until the hold is settled. Dropping the hold
/// settles it in the background if a change has begun, and releases the contacts at once otherwise.
pub struct MergeHold {
    merging: Arc<Merging>,
    held: Option<HeldContacts>,
    /// Whether a transaction may have changed anything.
    may_have_changed: AtomicBool,
}

struct HeldContacts {
    company: CompanyId,
    contacts: Vec<ContactId>,
    open_before: Vec<OpenTicketOf>,
    /// The contact and the ticket of each session.
    sessions: HashMap<SessionId, (ContactId, Option<TicketId>)>,
    /// These two are dropped last, the marks before the presence.
    _guards: Vec<ContactMark>,
    _presence: Option<Presence>,
}

impl Merging {
    /// Holds contacts for a merge of their rows. On return the tables have every decision about them, and their
    /// conversations are not in memory.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable; nothing has changed.
    pub async fn hold(
        self: &Arc<Self>,
        company: CompanyId,
        contacts: impl IntoIterator<Item = ContactId>,
    ) -> Result<MergeHold, Refusal> {
        let mut contacts: Vec<ContactId> = contacts.into_iter().collect();
        contacts.sort_unstable();
        contacts.dedup();
        let guards = self.contacts.mark_all(company, &contacts).await?;
        // After both waits, earlier decisions are in the tables; the marks prevent new ones.
        self.base.arbiters.wait_for_current_messages().await;
        let db = self.base.reads().tables(company).await?;
        let channels = tickets::channels_of_contacts(db, company, &contacts).await?;
        self.tickets.load_conversations(company, &channels).await?;
        let open_before = tickets::open_of_contacts(db, company, &contacts).await?;
        let sessions = webchat_sessions::of_contacts(db, company, &contacts).await?;
        let sessions = sessions.into_iter().map(|(id, contact, ticket)| (id, (contact, ticket))).collect();
        self.contacts.end_conversations(company, &contacts).await;
        hotline_persistence::fail_point!("merge_held");
        let presence = self.base.store.ownership().follow(company);
        let held = HeldContacts { company, contacts, open_before, sessions, _guards: guards, _presence: presence };
        Ok(MergeHold { merging: self.clone(), held: Some(held), may_have_changed: AtomicBool::new(false) })
    }

    /// Updates the held contacts in memory from the tables, which show whether they were merged.
    async fn settle(&self, held: &HeldContacts) -> Result<(), Refusal> {
        let HeldContacts { company, contacts, open_before, sessions, .. } = held;
        self.contacts.settle_merge(*company, contacts).await?;
        for contact in contacts {
            if let Some(into) = self.contacts.successor(*company, *contact).await? {
                self.tickets.record_merged(*company, *contact, into);
            }
        }
        let db = self.base.reads().tables(*company).await?;
        let open_now = tickets::open_of_contacts(db, *company, contacts).await?;
        self.tickets.replace_open_tickets(*company, contacts, open_before, &open_now);
        let tickets: Vec<TicketId> = open_before.iter().chain(&open_now).map(|ticket| ticket.id).collect();
        if !tickets.is_empty() {
            let listed = desk::find_open(db, *company, &tickets).await?;
            self.base.overviews.replace(*company, &tickets, &listed);
        }
        for (session, contact, ticket) in webchat_sessions::of_contacts(db, *company, contacts).await? {
            let Some((contact_before, ticket_before)) = sessions.get(&session) else { continue };
            let tickets = ticket_before.zip(ticket).filter(|(before, after)| before != after);
            if *contact_before != contact || tickets.is_some() {
                self.sessions.notify_moved(*company, &session, SessionMoved { contact, tickets });
            }
        }
        self.schedules.reload(*company).await;
        self.contacts.cache().record_merge(*company, contacts);
        Ok(())
    }

    /// [`Self::settle`], retried until it succeeds: the conversations must eventually learn of the merge.
    async fn settle_eventually(&self, held: &HeldContacts) {
        until_finished(held.company, "a merge", || self.settle(held)).await;
    }
}

impl MergeHold {
    /// To be called before the first change.
    pub fn begin_change(&self) {
        self.may_have_changed.store(true, Ordering::Release);
    }

    /// Whether a contact is held.
    pub fn holds(&self, contact: ContactId) -> bool {
        self.held.as_ref().is_some_and(|held| held.contacts.contains(&contact))
    }

    /// Updates memory after the change and removes the marks, so that waiting callers continue.
    pub async fn settle(mut self) {
        if let Some(held) = &self.held
            && self.may_have_changed.load(Ordering::Acquire)
            && self.merging.settle(held).await.is_ok()
        {
            self.held = None;
        }
        // On failure the drop retries in the background, because the merge may be committed.
    }
}

impl Drop for MergeHold {
    fn drop(&mut self) {
        if let Some(held) = self.held.take()
            && self.may_have_changed.load(Ordering::Acquire)
        {
            let merging = self.merging.clone();
            self.merging.base.spawn(async move {
                merging.settle_eventually(&held).await;
                drop(held);
            });
        }
    }
}
