//! What providers have said of messages, on its way into the log.
//!
//! How far a message has come is no part of its ticket's state: it only moves forward, whoever tells it and in whichever
//! order, and its row in the tables keeps the furthest. So where nothing follows a message its ticket's actor has nothing
//! to decide, and is not asked. What the providers have said at about the same time goes into the log as one entry for
//! each company: one reservation, one record, and one wake-up, instead of one for each message.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::{DeliveryStatusRow, Passed};
use hotline_persistence::{Change, ChannelId, CompanyId, Error};
use tokio::sync::oneshot;

use crate::base::Base;
use crate::channels::Inboxes;

/// Most messages of an entry: some 100 KiB of the log if all of them have failed with long words.
const ENTRY_MAX: usize = 200;

/// Pause before a full log is asked once more.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// What came since the last entry of each company was begun.
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

    /// Puts into the log how far a message of a channel has come; answers where, once that is durable. None: the log has
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
        // Tasks that are ready run first and add their receipts.
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
                Err(error) => tracing::debug!(%error, company.id = %company, "what providers have said is noted later"),
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
                    // A sender that met a defect meanwhile does not wait any more.
                    let _ = noted.send(seq);
                }
            }
            Err(error) => {
                tracing::error!(%error, company.id = %company, "the log does not take what providers have said of messages");
            }
        }
    }
}
