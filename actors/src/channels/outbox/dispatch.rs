//! State shared by the senders of all channels.

use std::sync::Arc;
use std::time::Duration;

use actix::{Arbiter, ArbiterHandle};
use futures_util::future::BoxFuture;
use hotline_persistence::{ChannelId, CompanyId, ContactId, TicketId};
use tokio::sync::watch;

use super::figures::Attempts;
use super::receipts::Receipts;
use crate::Refusal;
use crate::base::Base;
use crate::channels::{InTransit, Inboxes, Provider};
use crate::tickets::UpdateDeliveryStatus;
use crate::ttl_cache::TtlCache;

/// Maximum cached addresses of contacts without a number.
const ADDRESSES_MAX: usize = 100_000;

/// Decides the follow-up action of a message in its ticket, when the message's status is known.
pub(crate) trait DecidesStatuses: Send + Sync {
    /// Records the status of a message in its ticket.
    fn record_status(
        &self,
        company: CompanyId,
        ticket: TicketId,
        status: UpdateDeliveryStatus,
    ) -> BoxFuture<'_, Result<(), Refusal>>;
}

/// State shared by the senders.
pub(super) struct Dispatch {
    pub(super) base: Arc<Base>,
    pub(super) tickets: Arc<dyn DecidesStatuses>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) addresses: TtlCache<((CompanyId, ChannelId), ContactId), String>,
    /// The messages of campaigns, which may be withdrawn.
    pub(super) in_transit: Arc<InTransit>,
    pub(super) receipts: Arc<Receipts>,
    pub(super) attempts: Attempts,
    /// One thread for all senders and their calls. A call takes some 20 µs of it, and the default pace of a channel is
    /// 80 calls a second: one thread is enough for hundreds of channels.
    arbiter: ArbiterHandle,
    stopping: watch::Sender<bool>,
    /// Each sender holds one receiver until it ends.
    working: watch::Sender<()>,
}

impl Dispatch {
    pub(super) fn start(
        base: Arc<Base>,
        inboxes: &Arc<Inboxes>,
        in_transit: Arc<InTransit>,
        provider: Arc<dyn Provider>,
        tickets: Arc<dyn DecidesStatuses>,
    ) -> Result<Self, Refusal> {
        let arbiter = Arbiter::try_new()
            .map_err(|error| Refusal::Defect(format!("could not start the senders' thread: {error}")))?;
        let receipts = Arc::new(Receipts::new(base.clone(), inboxes.clone()));
        Ok(Self {
            base,
            tickets,
            provider,
            addresses: TtlCache::new(ADDRESSES_MAX, Duration::MAX),
            in_transit,
            receipts,
            attempts: Attempts::default(),
            arbiter: arbiter.handle(),
            stopping: watch::Sender::new(false),
            working: watch::Sender::new(()),
        })
    }

    /// Drops cached data of a company's recipients. Its senders must be paused.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self {
            base: _,
            tickets: _,
            provider,
            addresses,
            in_transit: _,
            receipts: _,
            attempts: _,
            arbiter: _,
            stopping: _,
            working: _,
        } = self;
        addresses.remove_where(|((of, _), _)| *of == company);
        provider.forget_company(company);
    }

    pub(super) fn arbiter(&self) -> &ArbiterHandle {
        &self.arbiter
    }

    /// To be held by a sender until it ends.
    pub(super) fn working(&self) -> watch::Receiver<()> {
        self.working.subscribe()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    pub(super) fn begin_stopping(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until all senders have ended.
    pub(super) async fn ended(&self) {
        self.working.closed().await;
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        self.arbiter.stop();
    }
}
