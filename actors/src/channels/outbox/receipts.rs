//! Batches of providers' reports for the log.
//!
//! A message's status is not part of its ticket's state: it only moves forward, in any order of reports, and the row in
//! the tables has the furthest. So a message without follow-up action needs no decision of its ticket's actor. Reports
//! that arrive at about the same time become one entry of each company in the log: one reservation, one record and one
//! wake-up, instead of one for each message.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::{DeliveryStatusRow, Passed};
use hotline_persistence::{Change, ChannelId, CompanyId, Error};
use tokio::sync::oneshot;

use crate::base::Base;
use crate::channels::Inboxes;

/// Maximum messages of an entry: some 100 KiB of the log if all of them have failed with long texts.
const ENTRY_MAX: usize = 200;

/// Pause before a full log is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The reports since the last entry of each company was begun.
pub(super) struct Receipts {
    base: Arc<Base>,
    inboxes: Arc<Inboxes>,
    gathered: Mutex<HashMap<CompanyId, Vec<Receipt>>>,
}

struct Receipt {
    channel: ChannelId,
    row: DeliveryStatusRow,
    noted: oneshot::Sender<Seq>,
}

impl Receipts {
    pub(super) fn new(base: Arc<Base>, inboxes: Arc<Inboxes>) -> Self {
        Self { base, inboxes, gathered: Mutex::default() }
    }

    /// Records a status of a channel's message in the log. Returns its place once it is durable. None: the log has
    /// stopped, or met a defect.
    pub(super) async fn note(self: &Arc<Self>, channel: ChannelId, row: DeliveryStatusRow) -> Option<Seq> {
        let company = row.company_id;
        let (noted, told) = oneshot::channel();
        let is_first = {
            let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
            let receipts = gathered.entry(company).or_default();
            receipts.push(Receipt { channel, row, noted });
            receipts.len() == 1
        };
        if is_first {
            tokio::spawn(self.clone().enter(company));
        }
        told.await.ok()
    }

    async fn enter(self: Arc<Self>, company: CompanyId) {
        // Yields, so that tasks that are ready add their reports to this batch.
        tokio::task::yield_now().await;
        let gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner).remove(&company);
        let mut left = gathered.unwrap_or_default();
        while !left.is_empty() {
            let later = left.split_off(left.len().min(ENTRY_MAX));
            let receipts = std::mem::replace(&mut left, later);
            tokio::spawn(self.clone().append(company, receipts));
        }
    }

    async fn append(self: Arc<Self>, company: CompanyId, receipts: Vec<Receipt>) {
        let place = loop {
            match self.base.store.log.reserve(company) {
                Ok(place) => break place,
                Err(error) => {
                    tracing::debug!(%error, company.id = %company, "recording provider message ids will be retried")
                }
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        };
        let (mut changes, mut named) = (Vec::with_capacity(receipts.len()), Vec::with_capacity(receipts.len()));
        let mut waiting = Vec::with_capacity(receipts.len());
        for Receipt { channel, row, noted } in receipts {
            if let Some(id) = row.provider_message_id.clone() {
                named.push((channel, id, Passed { ticket_id: row.ticket_id, id: row.message_id }));
            }
            changes.push(Change::Progress(Box::new(row)));
            waiting.push(noted);
        }
        let outcome: Result<Seq, Error> = async {
            let (seq, durable) = place.append(changes)?;
            for (channel, id, message) in named {
                self.inboxes.named((company, channel), vec![(id, message)]);
            }
            durable.reached().await?;
            Ok(seq)
        }
        .await;
        match outcome {
            Ok(seq) => {
                for noted in waiting {
                    // The sender no longer waits if it met a defect meanwhile.
                    let _ = noted.send(seq);
                }
            }
            Err(error) => {
                tracing::error!(%error, company.id = %company, "could not write provider message ids to the log");
            }
        }
    }
}
