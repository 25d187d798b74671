//! Creates, changes and cancels scheduled messages, and resumes and drops them with their company.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hotline_persistence::tables::events::current_author;
use hotline_persistence::tables::schedules::{self, DeletedContact};
use hotline_persistence::{CompanyId, ContactId, ScheduleId};

use crate::Refusal;
use crate::base::Base;
use crate::base::retry::{no_other_conflict, on_conflict};
use crate::registry::{ActorHandle, Envelope, Population, Registry, dismiss};
use crate::schedules::{
    CancelSchedule, CreateSchedule, FailSchedule, NewSchedule, ReadSchedule, ReloadAgenda, ScheduleChanges,
    ScheduleDispatcher, ScheduleScope, Scheduled, UpdateSchedule,
};
use crate::services::{Contacts, Sending};
use crate::tickets::AttachedChanges;

/// Maximum scheduled messages of a deleted contact that are read at once; most contacts have few.
const FAIL_BATCH_MAX: i64 = 100;

/// Approximate statistics of all companies' scheduled messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleStats {
    /// Pending messages in memory.
    pub held: usize,
    /// Messages that are due.
    pub due: usize,
    /// Messages that have been due for more than five seconds.
    pub late: usize,
    /// Sent since the start.
    pub sent: u64,
    /// Failed since the start.
    pub failed: u64,
}

/// Access to all scheduled messages.
pub struct Schedules {
    base: Arc<Base>,
    contacts: Arc<Contacts>,
    scope: Arc<ScheduleScope>,
}

impl Schedules {
    pub(super) fn new(base: Arc<Base>, contacts: Arc<Contacts>, sending: Arc<Sending>) -> Self {
        let scope = Arc::new(ScheduleScope {
            base: base.clone(),
            contacts: contacts.clone(),
            sending,
            hot: Registry::default(),
            sent: 0.into(),
            failed: 0.into(),
        });
        Self { base, contacts, scope }
    }

    /// Starts to send the messages that are pending when the process starts, for each company that has any. To be
    /// called once, after sending has begun.
    pub async fn start(&self) -> Result<(), Refusal> {
        let store = &self.base.store;
        let companies =
            schedules::companies_with_pending(&store.housekeeping, &store.ownership().slot_filter()).await?;
        for company in companies.into_iter().filter(|company| self.base.owns(*company)) {
            self.start_company(company).await?;
        }
        Ok(())
    }

    /// Starts to send a company's scheduled messages.
    ///
    /// # Errors
    /// None is expected: starting the actor needs no database.
    pub async fn start_company(&self, company: CompanyId) -> Result<(), Refusal> {
        self.get_or_start(company).await.map(drop)
    }

    /// Ends the actor of a closed company, so that none of its scheduled messages are sent.
    pub(super) async fn forget_company(&self, company: CompanyId) -> Result<(), Refusal> {
        let Self { base: _, contacts: _, scope } = self;
        let ScheduleScope { base: _, contacts: _, sending: _, hot, sent: _, failed: _ } = &**scope;
        dismiss(hot, |key| *key == company).await
    }

    /// Restarts a company's scheduled messages from the tables.
    pub(super) fn resume(self: &Arc<Self>, company: CompanyId) {
        if !self.base.store.ownership().is_placed_here(company) {
            return;
        }
        let schedules = self.clone();
        self.base.spawn(async move {
            if let Err(refusal) = schedules.start_company(company).await {
                tracing::error!(%refusal, company.id = %company, "could not resume scheduled messages");
            }
        });
    }

    /// Schedules a message.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the contact was deleted; [`Refusal::Unavailable`] when the log is full.
    pub async fn create(
        &self,
        company: CompanyId,
        new: NewSchedule,
        attached: Option<AttachedChanges<Scheduled>>,
    ) -> Result<Scheduled, Refusal> {
        let attempt = || async {
            let version = self.contacts.cache().version((company, new.contact.id));
            let contact = self.contacts.get(company, new.contact.id).await?.ok_or(Refusal::NotFound)?;
            let new = NewSchedule { contact, ..new.clone() };
            self.deliver(company, CreateSchedule { new, version, attached: attached.clone() }).await
        };
        on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await
    }

    /// Reads a company's pending messages again, after some were changed in the tables.
    pub(super) async fn reload(&self, company: CompanyId) {
        if let Some(dispatcher) = self.scope.hot.get(&company) {
            // The actor may have ended already.
            let _ = dispatcher.addr.send(ReloadAgenda).await;
        }
    }

    /// Changes a pending message.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also when the contact that it is moved to was deleted; [`Refusal::Conflict`] when it is
    /// no longer pending; [`Refusal::Unavailable`] when it is not in memory and the database is unavailable.
    pub async fn update(
        &self,
        company: CompanyId,
        id: ScheduleId,
        changes: ScheduleChanges,
        attached: Option<AttachedChanges<Scheduled>>,
    ) -> Result<Scheduled, Refusal> {
        let attempt = || async {
            let contact_id = match changes.contact {
                Some(id) => id,
                None => self.deliver(company, ReadSchedule(id)).await?.contact_id,
            };
            let version = self.contacts.cache().version((company, contact_id));
            let contact = self.contacts.get(company, contact_id).await?;
            // A message may stay with a deleted contact, but is not moved to one.
            if contact.is_none() && changes.contact.is_some() {
                return Err(Refusal::NotFound);
            }
            let (changes, attached) = (changes.clone(), attached.clone());
            let update = UpdateSchedule { id, changes, contact_id, contact, version, attached, by: current_author() };
            self.deliver(company, update).await
        };
        on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await
    }

    /// Cancels a pending message.
    ///
    /// # Errors
    /// Those of [`Schedules::update`].
    pub async fn cancel(&self, company: CompanyId, id: ScheduleId) -> Result<(), Refusal> {
        self.ask(company, CancelSchedule(id, current_author())).await
    }

    /// Fails the pending messages to a contact that was deleted. A message that this misses fails when it is due.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable, or the log is full.
    pub(super) async fn fail_messages_to(
        &self,
        company: CompanyId,
        contact: ContactId,
        deleted_contact: Option<DeletedContact>,
    ) -> Result<(), Refusal> {
        loop {
            let db = self.base.reads().tables(company).await?;
            let pending = schedules::pending_of(db, company, contact, FAIL_BATCH_MAX).await?;
            for id in &pending {
                let fail = FailSchedule { id: *id, by: current_author(), deleted_contact: deleted_contact.clone() };
                match self.ask(company, fail).await {
                    // It was canceled or sent meanwhile.
                    Ok(()) | Err(Refusal::Conflict(_) | Refusal::NotFound) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
            if pending.len() < usize::try_from(FAIL_BATCH_MAX).unwrap_or(usize::MAX) {
                return Ok(());
            }
        }
    }

    /// Statistics of pending and sent messages.
    pub fn stats(&self) -> ScheduleStats {
        let (sent, failed) = (&self.scope.sent, &self.scope.failed);
        let stats = ScheduleStats {
            sent: sent.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
            ..ScheduleStats::default()
        };
        self.scope.hot.select(|_, _| true).into_iter().fold(stats, |stats, dispatcher| {
            let gauges = &dispatcher.status.shared;
            ScheduleStats {
                held: stats.held + gauges.pending.load(Ordering::Relaxed),
                due: stats.due + gauges.due.load(Ordering::Relaxed),
                late: stats.late + gauges.late.load(Ordering::Relaxed),
                ..stats
            }
        })
    }

    pub(super) fn population(&self) -> Population {
        self.scope.hot.population()
    }

    async fn get_or_start(&self, company: CompanyId) -> Result<ActorHandle<ScheduleDispatcher>, Refusal> {
        self.scope.hot.get_or_start(&company, || async { Ok(self.scope.start(company)) }).await
    }

    async fn ask<M, R>(&self, company: CompanyId, message: M) -> Result<R, Refusal>
    where
        M: actix::Message<Result = Result<R, Refusal>> + Clone + Send + 'static,
        R: Send + 'static,
        ScheduleDispatcher: actix::Handler<Envelope<M>>,
        <ScheduleDispatcher as actix::Actor>::Context: actix::dev::ToEnvelope<ScheduleDispatcher, Envelope<M>>,
    {
        let attempt = || self.deliver(company, message.clone());
        on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await
    }

    async fn deliver<M, R>(&self, company: CompanyId, message: M) -> Result<R, Refusal>
    where
        M: actix::Message<Result = Result<R, Refusal>> + Send + 'static,
        R: Send + 'static,
        ScheduleDispatcher: actix::Handler<Envelope<M>>,
        <ScheduleDispatcher as actix::Actor>::Context: actix::dev::ToEnvelope<ScheduleDispatcher, Envelope<M>>,
    {
        let dispatcher = self.get_or_start(company).await?;
        self.base.deliver(&self.scope.hot, &dispatcher, message).await
    }
}
