//! State shared by the senders of all channels.

use std::sync::Arc;

use actix::{Arbiter, ArbiterHandle};
use futures_util::future::BoxFuture;
use hotline_persistence::{CompanyId, ContactId, TicketId};
use tokio::sync::watch;

use super::stats::AttemptCounters;
use super::status_recorder::StatusRecorder;
use crate::Refusal;
use crate::base::Base;
use crate::channels::{InTransit, Inboxes, Provider};
use crate::tickets::{Revise, UpdateDeliveryStatus};

/// The senders' interface to tickets. A ticket records the status of a message and decides its follow-up action, or
/// records the outcome of a reaction. The trait also reports which contacts are marked, because they are being merged
/// or deleted.
pub(crate) trait StatusDecider: Send + Sync {
    /// Whether the contact is being merged or deleted.
    fn is_marked(&self, company: CompanyId, contact: ContactId) -> bool;

    /// Waits until the contact is merged or deleted, but for a few seconds at most.
    fn wait_until_unmarked(&self, company: CompanyId, contact: ContactId) -> BoxFuture<'_, ()>;

    /// Records the status of a message in its ticket.
    fn record_status(
        &self,
        company: CompanyId,
        ticket: TicketId,
        status: UpdateDeliveryStatus,
    ) -> BoxFuture<'_, Result<(), Refusal>>;

    /// Records the outcome of a reaction in its ticket.
    fn record_reaction(
        &self,
        company: CompanyId,
        ticket: TicketId,
        outcome: Revise,
    ) -> BoxFuture<'_, Result<(), Refusal>>;
}

/// State shared by the senders.
pub(super) struct SenderScope {
    pub(super) base: Arc<Base>,
    pub(super) tickets: Arc<dyn StatusDecider>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) inboxes: Arc<Inboxes>,
    /// The messages of campaigns, which may be withdrawn.
    pub(super) in_transit: Arc<InTransit>,
    pub(super) status_recorder: Arc<StatusRecorder>,
    pub(super) attempts: AttemptCounters,
    /// One thread for all senders and their calls. A call takes some 20 µs of its time, and the default pace of a
    /// channel is 80 calls a second: one thread is enough for hundreds of channels.
    arbiter: ArbiterHandle,
    stopping: watch::Sender<bool>,
    /// Each sender holds one receiver until it ends.
    registrations: watch::Sender<()>,
}

impl SenderScope {
    pub(super) fn start(
        base: Arc<Base>,
        inboxes: &Arc<Inboxes>,
        in_transit: Arc<InTransit>,
        provider: Arc<dyn Provider>,
        tickets: Arc<dyn StatusDecider>,
    ) -> Result<Self, Refusal> {
        let arbiter = Arbiter::try_new()
            .map_err(|error| Refusal::Defect(format!("could not start the senders' thread: {error}")))?;
        let status_recorder = Arc::new(StatusRecorder::new(base.clone(), inboxes.clone()));
        Ok(Self {
            base,
            tickets,
            provider,
            inboxes: inboxes.clone(),
            in_transit,
            status_recorder,
            attempts: AttemptCounters::default(),
            arbiter: arbiter.handle(),
            stopping: watch::Sender::new(false),
            registrations: watch::Sender::new(()),
        })
    }

    /// Drops cached data of a company's recipients. Its senders must be paused.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self {
            base: _,
            tickets: _,
            provider,
            inboxes: _,
            in_transit: _,
            status_recorder: _,
            attempts: _,
            arbiter: _,
            stopping: _,
            registrations: _,
        } = self;
        provider.forget_company(company);
    }

    pub(super) fn arbiter(&self) -> &ArbiterHandle {
        &self.arbiter
    }

    /// To be held by a sender until it ends.
    pub(super) fn register(&self) -> watch::Receiver<()> {
        self.registrations.subscribe()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    pub(super) fn begin_stopping(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until all senders have ended.
    pub(super) async fn wait_for_senders(&self) {
        self.registrations.closed().await;
    }
}

impl Drop for SenderScope {
    fn drop(&mut self) {
        self.arbiter.stop();
    }
}
