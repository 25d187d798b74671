//! Records statuses and attempts of messages in the log, in batches.
//!
//! A message's status is not part of its ticket's state: it only moves forward, in whatever order reports arrive, and
//! the row in the tables has the furthest status. So a message without a follow-up action needs no decision by its
//! ticket's actor. Statuses that arrive at about the same time become one entry per company in the log: one
//! reservation, one record and one wake-up, instead of one for each message.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::{AttemptRow, DeliveryStatusRow, MessageRef};
use hotline_persistence::{Change, ChannelId, CompanyId, Error, Reservation};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::base::Base;
use crate::channels::Inboxes;

/// Maximum messages of an entry: some 100 KiB of the log if all of them have failed with long texts.
const ENTRY_MAX: usize = 200;

/// Pause before a full log is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Collects each company's statuses and attempts for its next entry.
pub(super) struct StatusRecorder {
    base: Arc<Base>,
    inboxes: Arc<Inboxes>,
    pending: Mutex<HashMap<CompanyId, Vec<PendingStatus>>>,
}

struct PendingStatus {
    channel: ChannelId,
    status: Option<DeliveryStatusRow>,
    attempt: Option<AttemptRow>,
    reply: oneshot::Sender<Seq>,
}

impl StatusRecorder {
    pub(super) fn new(base: Arc<Base>, inboxes: Arc<Inboxes>) -> Self {
        Self { base, inboxes, pending: Mutex::default() }
    }

    /// Records a status of a channel's message in the log, with its attempts if the status does not imply them. Returns
    /// the place in the log once it is durable. None: the log has stopped, or met a defect.
    pub(super) async fn record(
        self: &Arc<Self>,
        channel: ChannelId,
        row: DeliveryStatusRow,
        attempt: Option<AttemptRow>,
    ) -> Option<Seq> {
        self.push(row.company_id, channel, Some(row), attempt).await
    }

    /// Records the attempts of a channel's message in the log. Returns the same as [`Self::record`].
    pub(super) async fn record_attempt(self: &Arc<Self>, channel: ChannelId, attempt: AttemptRow) -> Option<Seq> {
        self.push(attempt.company_id, channel, None, Some(attempt)).await
    }

    async fn push(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        status: Option<DeliveryStatusRow>,
        attempt: Option<AttemptRow>,
    ) -> Option<Seq> {
        let (reply, recorded) = oneshot::channel();
        let is_first = {
            let mut pending = self.pending.lock();
            let batch = pending.entry(company).or_default();
            batch.push(PendingStatus { channel, status, attempt, reply });
            batch.len() == 1
        };
        if is_first {
            tokio::spawn(self.clone().flush(company));
        }
        recorded.await.ok()
    }

    async fn flush(self: Arc<Self>, company: CompanyId) {
        // Yields, so that tasks that are ready add their statuses to this batch.
        tokio::task::yield_now().await;
        let pending = self.pending.lock().remove(&company);
        let mut statuses = pending.unwrap_or_default();
        while !statuses.is_empty() {
            let rest = statuses.split_off(statuses.len().min(ENTRY_MAX));
            let batch = std::mem::replace(&mut statuses, rest);
            tokio::spawn(self.clone().append(company, batch));
        }
    }

    async fn append(self: Arc<Self>, company: CompanyId, batch: Vec<PendingStatus>) {
        let reservation = self.reserve(company).await;
        let (mut changes, mut provider_ids) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        let mut replies = Vec::with_capacity(batch.len());
        for PendingStatus { channel, status, attempt, reply } in batch {
            changes.extend(attempt.map(|row| Change::Attempt(Box::new(row))));
            if let Some(row) = status {
                if let Some(id) = row.provider_message_id.clone() {
                    provider_ids.push((channel, id, MessageRef { ticket_id: row.ticket_id, id: row.message_id }));
                }
                changes.push(Change::Progress(Box::new(row)));
            }
            replies.push(reply);
        }
        let outcome: Result<Seq, Error> = async {
            let (seq, durable) = reservation.append(changes)?;
            for (channel, id, message) in provider_ids {
                self.inboxes.record_provider_ids((company, channel), vec![(id, message)]);
            }
            durable.wait().await?;
            Ok(seq)
        }
        .await;
        match outcome {
            Ok(seq) => {
                for reply in replies {
                    // An error means that the caller no longer waits, because it met a defect meanwhile.
                    let _ = reply.send(seq);
                }
            }
            Err(error) => {
                tracing::error!(%error, company.id = %company, "could not write statuses of messages to the log");
            }
        }
    }

    /// Takes a reservation in the log, and retries until it has one.
    async fn reserve(&self, company: CompanyId) -> Reservation {
        loop {
            match self.base.store.log.reserve(company) {
                Ok(reservation) => return reservation,
                Err(error) => {
                    tracing::debug!(%error, company.id = %company, "recording statuses of messages will be retried")
                }
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}
