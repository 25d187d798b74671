//! Contacts change and go while conversations with them are hot.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotline_persistence::tables::contacts::{self, Tie};
use hotline_persistence::{CompanyId, ContactId, Error, SessionId};

use super::{Core, Engine};
use crate::contacts::Mark;
use crate::tickets::{ContactGone, ContactIs};
use crate::{Conflict, Refusal};

/// Pause before contacts are read anew after the database went away.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Contacts that are about to be changed in the tables. Once they are, or once it is unclear whether they are,
/// conversations are told.
pub struct ContactChanges {
    core: Arc<Core>,
    company: CompanyId,
    ids: Mutex<Vec<ContactId>>,
}

impl ContactChanges {
    /// Notes contacts before they are changed.
    pub fn note(&self, ids: impl IntoIterator<Item = ContactId>) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
    }

    fn take(&self) -> Vec<ContactId> {
        std::mem::take(&mut *self.ids.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells the conversations: what is asked next shows the contacts as they are now.
    pub async fn settle(self) {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if Engine::of(self.core.clone()).settle(self.company, &ids, false).await.is_ok() {
            self.take();
        }
        // Else dropping it goes on, behind the answer: the change stands.
    }
}

impl Drop for ContactChanges {
    fn drop(&mut self) {
        let ids = self.take();
        if !ids.is_empty() {
            let (engine, company) = (Engine::of(self.core.clone()), self.company);
            self.core.background.spawn(async move { engine.settle_in_time(company, &ids).await });
        }
    }
}

impl Engine {
    /// To be asked for before contacts are changed, and settled afterwards.
    pub fn contact_changes(&self, company: CompanyId) -> ContactChanges {
        ContactChanges { core: self.core.clone(), company, ids: Mutex::default() }
    }

    /// Reads contacts anew, and tells what they are now to all that keep them.
    async fn settle(&self, company: CompanyId, ids: &[ContactId], unclear: bool) -> Result<(), Refusal> {
        let Core { contacts: kept, store, tickets, homes, .. } = &*self.core;
        let _turn = kept.changing(company).await;
        // Those nobody keeps need not be read, but an opening may just have looked at them.
        let of_interest: Vec<ContactId> = ids
            .iter()
            .copied()
            .filter(|id| unclear || kept.get(company, *id).is_some() || kept.hot.has((company, *id)))
            .collect();
        let found = match of_interest.as_slice() {
            [] => Ok(Vec::new()),
            ids => contacts::find_refs(store.db(company), company, ids, unclear).await,
        };
        let found: Vec<_> = match found {
            Ok(found) => found.into_iter().map(Arc::new).collect(),
            Err(error) => {
                ids.iter().for_each(|id| kept.forget(company, *id));
                ids.iter().for_each(|id| kept.outdate((company, *id)));
                return Err(error.into());
            }
        };
        let there: HashSet<ContactId> = found.iter().map(|contact| contact.id).collect();
        let gone: Vec<ContactId> = of_interest.into_iter().filter(|id| !there.contains(id)).collect();
        gone.iter().for_each(|id| kept.forget(company, *id));
        found.iter().for_each(|contact| kept.remember(company, contact));
        ids.iter().for_each(|id| kept.outdate((company, *id)));
        // An opening that was told of a contact before has ended then, and its ticket is found; one that comes after
        // looks again.
        homes.pass().await;
        for contact in found {
            for ticket in kept.hot.of((company, contact.id)) {
                if let Some(hot) = tickets.get(&(company, ticket)) {
                    // Whoever asks the ticket next stands behind this in its mailbox.
                    hot.life.shared.outdate();
                    hot.addr.do_send(ContactIs(contact.clone()));
                }
            }
        }
        for id in gone {
            for ticket in kept.hot.of((company, id)) {
                if let Some(hot) = tickets.get(&(company, ticket)) {
                    // It may have ended by itself.
                    let _ = hot.addr.send(ContactGone).await;
                }
            }
        }
        Ok(())
    }

    /// The same, as soon as the database answers.
    async fn settle_in_time(&self, company: CompanyId, ids: &[ContactId]) {
        while let Err(refusal) = self.settle(company, ids, true).await {
            tracing::debug!(%refusal, %company, "changed contacts are seen later");
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Deletes a contact with everything that is theirs. An opening at the same moment comes before, and keeps the
    /// contact, or finds it gone.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::Conflict`] while a ticket of theirs is open or a session is active;
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn remove_contact(&self, company: CompanyId, id: ContactId) -> Result<(), Refusal> {
        let engine = self.clone();
        // What has begun ends, also when its caller goes away.
        let removing = self.core.background.spawn(async move { engine.remove_marked(company, id).await });
        removing.await.unwrap_or_else(|panic| Err(Refusal::Defect(panic.to_string())))
    }

    async fn remove_marked(&self, company: CompanyId, id: ContactId) -> Result<(), Refusal> {
        // One that stays anyway is not marked: nobody needs to wait.
        refuse(contacts::tie(self.reads().tables(company).await?, company, id).await?)?;

        let mark = self.core.contacts.leaving.mark((company, id)).await?;
        // What was decided before is in the tables by then, and nothing is decided any more.
        self.core.homes.pass().await;
        let db = self.reads().tables(company).await?;
        let sessions = contacts::sessions(db, company, id).await?;
        match contacts::remove(db, company, id).await {
            Ok(None) => {
                self.gone(company, id, sessions, mark).await;
                Ok(())
            }
            Ok(tie) => refuse(tie),
            Err(Error::NotFound(_)) => Err(Refusal::NotFound),
            Err(error) => {
                // It may have happened. Until that is known the mark stays.
                let engine = self.clone();
                self.core.background.spawn(async move { engine.gone(company, id, sessions, mark).await });
                Err(error.into())
            }
        }
    }

    /// Forgets what was kept of a contact that is deleted, or may be. Its sessions are read anew by who asks for them.
    async fn gone(&self, company: CompanyId, id: ContactId, sessions: Vec<SessionId>, mark: Mark) {
        self.settle_in_time(company, &[id]).await;
        for session in sessions {
            let key = (company, session);
            if let Some(hot) = self.core.sessions.get(&key) {
                self.core.sessions.remove(&key, &hot.life);
            }
        }
        drop(mark);
    }
}

fn refuse(tie: Option<Tie>) -> Result<(), Refusal> {
    match tie {
        None => Ok(()),
        Some(Tie { tickets, sessions }) => {
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
