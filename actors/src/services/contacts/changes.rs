//! Changes and deletions of contacts while their conversations are hot (in memory).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hotline_persistence::table::Expected;
use hotline_persistence::tables::contact_removal;
use hotline_persistence::tables::contacts::{self, ContactDeletionBlockers, ContactRef};
use hotline_persistence::tables::events::{act_as, current_author};
use hotline_persistence::{CompanyId, ContactId, Error, SessionId};
use parking_lot::Mutex;

use super::Contacts;
use crate::base::retry::until_finished;
use crate::contacts::ContactMark;
use crate::ticket_actor::{ContactChanged, TicketDeleted};
use crate::{Conflict, Refusal};

/// Contacts that are about to change in the tables. Their conversations are notified when the change is done, or when
/// its outcome is unclear.
pub struct ContactChanges {
    contacts: Arc<Contacts>,
    company: CompanyId,
    ids: Mutex<Vec<ContactId>>,
    /// Whether some of the contacts may opt out of campaigns, or in again.
    includes_opt_outs: AtomicBool,
}

impl ContactChanges {
    /// Adds contacts before they are changed.
    pub fn add(&self, ids: impl IntoIterator<Item = ContactId>) {
        self.ids.lock().extend(ids);
    }

    /// Records that contacts may opt out of campaigns, or in again.
    pub fn include_opt_outs(&self) {
        self.includes_opt_outs.store(true, Ordering::Release);
    }

    fn take_ids(&self) -> Vec<ContactId> {
        std::mem::take(&mut *self.ids.lock())
    }

    /// Updates the conversations: later reads show the changed contacts, and campaigns send nothing more to contacts
    /// that opted out.
    pub async fn settle(self) {
        self.recheck_withdrawals();
        let ids = self.ids.lock().clone();
        self.contacts.tickets.outboxes.notify_of_changes(self.company, &ids);
        if self.contacts.settle(self.company, &ids, ChangeOutcome::Committed).await.is_ok() {
            self.take_ids();
        }
        // On failure, dropping `self` retries in the background, because the change is committed.
    }

    /// Makes campaigns check again which messages are withdrawn, if contacts may have opted out.
    fn recheck_withdrawals(&self) {
        if self.includes_opt_outs.load(Ordering::Acquire) {
            self.contacts.in_transit.withdrawals.invalidate(self.company);
        }
    }
}

impl Drop for ContactChanges {
    fn drop(&mut self) {
        let ids = self.take_ids();
        if !ids.is_empty() {
            self.recheck_withdrawals();
            let (contacts, company) = (self.contacts.clone(), self.company);
            self.contacts.base.spawn_for(company, async move {
                contacts.settle_eventually(company, &ids).await;
                // Notified after the read, even if `settle` has notified them already: the change may have been
                // committed since then.
                contacts.tickets.outboxes.notify_of_changes(company, &ids);
                contacts.in_transit.withdrawals.invalidate(company);
            });
        }
    }
}

/// Whether the change of contacts is known to be committed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeOutcome {
    Committed,
    /// The change may or may not be committed: the tables are read to find out.
    Unclear,
}

/// The contacts that were read again after a change.
#[derive(Default)]
struct ReloadedContacts {
    changed: Vec<Arc<ContactRef>>,
    deleted: Vec<ContactId>,
}

impl Contacts {
    /// Call this before contacts are changed, and [`ContactChanges::settle`] afterwards.
    pub fn changes(self: &Arc<Self>, company: CompanyId) -> ContactChanges {
        let (ids, includes_opt_outs) = (Mutex::default(), AtomicBool::new(false));
        ContactChanges { contacts: self.clone(), company, ids, includes_opt_outs }
    }

    /// Reads contacts again, and updates everything in memory that holds a copy of them.
    pub(super) async fn settle(
        &self,
        company: CompanyId,
        ids: &[ContactId],
        outcome: ChangeOutcome,
    ) -> Result<(), Refusal> {
        let _lock = self.cache.write_lock(company).await;
        let reloaded = self.reload(company, ids, outcome).await;
        match &reloaded {
            Ok(ReloadedContacts { changed, deleted }) => {
                deleted.iter().for_each(|id| self.cache.forget(company, *id));
                changed.iter().for_each(|contact| self.cache.remember(company, contact));
            }
            Err(_) => ids.iter().for_each(|id| self.cache.forget(company, *id)),
        }
        ids.iter().for_each(|id| self.cache.invalidate((company, *id)));
        let ReloadedContacts { changed, deleted } = reloaded?;
        // After this wait, each ticket that was opened with the contact's earlier state is registered. A ticket that is
        // opened later reads the contact again.
        self.base.arbiters.wait_for_current_messages().await;
        self.update_tickets(company, changed);
        self.end_tickets(company, deleted).await;
        Ok(())
    }

    /// Reads those contacts that are in memory, or all of them if the outcome of their change is unclear. The others
    /// need no read: a ticket that is being opened with one of them finds its version changed.
    async fn reload(
        &self,
        company: CompanyId,
        ids: &[ContactId],
        outcome: ChangeOutcome,
    ) -> Result<ReloadedContacts, Refusal> {
        let is_unclear = outcome == ChangeOutcome::Unclear;
        let is_cached =
            |id: ContactId| self.cache.get(company, id).is_some() || self.cache.hot_tickets.has((company, id));
        let wanted: Vec<ContactId> = ids.iter().copied().filter(|id| is_unclear || is_cached(*id)).collect();
        if wanted.is_empty() {
            return Ok(ReloadedContacts::default());
        }
        let found = contacts::find_refs(self.base.db(company), company, &wanted, is_unclear).await?;
        let found_ids: HashSet<ContactId> = found.iter().map(|contact| contact.id).collect();
        let deleted = wanted.into_iter().filter(|id| !found_ids.contains(id)).collect();
        Ok(ReloadedContacts { changed: found.into_iter().map(Arc::new).collect(), deleted })
    }

    fn update_tickets(&self, company: CompanyId, changed: Vec<Arc<ContactRef>>) {
        for contact in changed {
            for ticket in self.cache.hot_tickets.of((company, contact.id)) {
                if let Some(hot) = self.tickets.hot.get(&(company, ticket)) {
                    // The ticket's next command comes after this message in its mailbox.
                    hot.status.shared.begin_update();
                    hot.addr.do_send(ContactChanged(contact.clone()));
                }
            }
        }
    }

    pub(super) async fn end_tickets(&self, company: CompanyId, deleted: Vec<ContactId>) {
        for id in deleted {
            for ticket in self.cache.hot_tickets.of((company, id)) {
                if let Some(hot) = self.tickets.hot.get(&(company, ticket)) {
                    // The actor may have ended already.
                    let _ = hot.addr.send(TicketDeleted).await;
                }
            }
        }
    }

    /// [`Self::settle`] for a change of unclear outcome, retried until it succeeds: the conversations must eventually
    /// learn of the change.
    async fn settle_eventually(&self, company: CompanyId, ids: &[ContactId]) {
        let settle = || self.settle(company, ids, ChangeOutcome::Unclear);
        until_finished(company, "a change of contacts", settle).await;
    }

    /// Drops the messages that wait for their provider if their contact is deleted.
    async fn drop_messages_of_deleted(&self, company: CompanyId, id: ContactId) {
        let find = || async {
            // The read waits until a deletion that may still be running has ended.
            let settled = true;
            contacts::find_refs(self.base.db(company), company, &[id], settled).await
        };
        // Retried until it succeeds, because the messages of a deleted contact must not be sent.
        if until_finished(company, "the deletion of a contact", find).await.is_empty() {
            self.in_transit.withdrawals.invalidate(company);
            self.tickets.outboxes.drop_messages_of(company, id).await;
        }
    }

    /// Deletes a contact with all its data. If a ticket or session is opened concurrently, either it comes first and
    /// the deletion is refused, or it finds no contact. `forget_sessions` drops the contact's sessions from memory.
    pub(crate) async fn remove(
        self: &Arc<Self>,
        company: CompanyId,
        id: ContactId,
        expected: Expected,
        forget_sessions: impl Fn(&[SessionId]) + Send + Sync + 'static,
    ) -> Result<(), Refusal> {
        let contacts = self.clone();
        // The deletion runs to its end even if the caller is canceled.
        let presence = self.base.store.ownership().follow(company);
        let removal = self.base.background.spawn(act_as(current_author(), async move {
            let _presence = presence;
            contacts.mark_and_remove(company, id, &expected, forget_sessions).await
        }));
        removal.await.unwrap_or_else(|panic| Err(Refusal::Defect(panic.to_string())))
    }

    async fn mark_and_remove(
        self: &Arc<Self>,
        company: CompanyId,
        id: ContactId,
        expected: &Expected,
        forget_sessions: impl Fn(&[SessionId]) + Send + Sync + 'static,
    ) -> Result<(), Refusal> {
        // Checked before the contact is marked, so that its conversations do not wait if it cannot be deleted anyway.
        check_unused(contacts::find_deletion_blockers(self.base.reads().tables(company).await?, company, id).await?)?;

        let mark = self.cache.marks.mark((company, id)).await?;
        // After both waits, earlier decisions are in the tables; the mark prevents new ones.
        self.base.arbiters.wait_for_current_messages().await;
        let db = self.base.reads().tables(company).await?;
        let sessions = contacts::sessions(db, company, id).await?;
        let outcome = contact_removal::remove(db, company, id, expected).await;
        let contacts = self.clone();
        let finish = async move |mark: ContactMark| {
            contacts.settle_eventually(company, &[id]).await;
            contacts.base.store.publish_removal(company);
            contacts.drop_messages_of_deleted(company, id).await;
            // If the contact was not deleted after all, its sessions are read again on the next request.
            forget_sessions(&sessions);
            drop(mark);
        };
        match outcome {
            Ok(None) => {
                finish(mark).await;
                Ok(())
            }
            Ok(blockers) => check_unused(blockers),
            // Nothing was deleted.
            Err(error @ (Error::NotFound(_) | Error::Changed)) => Err(error.into()),
            Err(error) => {
                // The deletion may have been committed. The mark stays until that is known.
                self.base.spawn_for(company, async move { finish(mark).await });
                Err(error.into())
            }
        }
    }
}

fn check_unused(blockers: Option<ContactDeletionBlockers>) -> Result<(), Refusal> {
    match blockers {
        None => Ok(()),
        Some(ContactDeletionBlockers { tickets, sessions }) => {
            let (state, reason) = if tickets > 0 {
                ("the contact has an open ticket", "open_ticket")
            } else {
                ("the contact has an active visitor session", "active_session")
            };
            Err(Refusal::Conflict(Conflict::used_by(
                state,
                reason,
                [("ticket", tickets), ("webchatSession", sessions)],
            )))
        }
    }
}
