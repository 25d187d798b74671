//! Settles campaigns' messages in doubt: it is unknown whether the provider has received them, so they are not sent
//! again. A status that names one (returns our id of it) shows that it was sent; one that no status has named in time
//! fails.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use hotline_persistence::tables::campaigns::{self, MessageInDoubt};
use hotline_persistence::tables::messages::{self, DeliveryStatus, MessageError, MessageRef};
use hotline_persistence::{ChannelId, CompanyId, MessageId};

use super::Inbound;
use crate::Refusal;
use crate::clock::now;
use crate::tickets::UpdateDeliveryStatus;

/// Interval between searches for messages that can be settled. Most are settled without one, when their status arrives.
const SEARCH_EVERY: Duration = Duration::from_secs(5);

/// Maximum number of messages settled in one search: each is an entry of the log.
const SETTLED_MAX: i64 = 500;

/// The position before the first message of all companies.
const START: (CompanyId, MessageId) = (CompanyId::new(0), MessageId::new(0));

impl Inbound {
    /// Settles a message in doubt that a status has named, if a campaign sent it. Other messages are settled by their
    /// outbox.
    pub(super) async fn settle_doubt(
        &self,
        company: CompanyId,
        channel: ChannelId,
        message: MessageId,
        provider_message_id: &str,
    ) -> Result<(), Refusal> {
        // If the tables lag behind, the outbox still waits for this status, or a later search finds it.
        let row = messages::find(self.base.db(company), company, message).await?;
        let Some(row) = row.filter(|row| row.channel_id == channel && row.is_left_in_doubt()) else { return Ok(()) };
        self.settle(MessageInDoubt {
            company_id: company,
            ticket_id: row.ticket_id,
            id: row.id,
            provider_message_id: Some(provider_message_id.to_owned()),
        })
        .await
    }

    /// Settles messages in doubt for as long as the process runs.
    pub async fn run_doubt_settlement(self: &Arc<Self>) {
        let mut ticks = tokio::time::interval(SEARCH_EVERY);
        let mut after = START;
        loop {
            ticks.tick().await;
            match self.settle_doubts(after).await {
                Ok(last) => after = last,
                Err(refusal) => tracing::debug!(%refusal, "messages in doubt will be settled later"),
            }
        }
    }

    /// Settles the first messages in doubt after this position. Returns the position where the next search begins, so
    /// that messages that cannot be settled do not block later ones.
    async fn settle_doubts(&self, after: (CompanyId, MessageId)) -> Result<(CompanyId, MessageId), Refusal> {
        let ownership = self.base.store.ownership();
        let give_up_after = TimeDelta::from_std(self.base.options.sending.give_up_after).unwrap_or(TimeDelta::MAX);
        // The default, 1970, is before any message, so that none is given up.
        let before = now().checked_sub_signed(give_up_after).unwrap_or_default();
        let db = self.base.store.housekeeper();
        let slots = ownership.slot_filter();
        let found = campaigns::settleable_messages(db, &slots, before, after, SETTLED_MAX).await?;
        let has_more = i64::try_from(found.len()).is_ok_and(|count| count >= SETTLED_MAX);
        let last = found.last().filter(|_| has_more).map_or(START, |last| (last.company_id, last.id));
        for message in found {
            let Some(_presence) = ownership.try_enter(message.company_id) else { continue };
            let (company, id) = (message.company_id, message.id);
            if let Err(refusal) = self.settle(message).await {
                tracing::debug!(%refusal, company.id = %company, message.id = %id, "a message in doubt will be settled later");
            }
        }
        Ok(last)
    }

    async fn settle(&self, message: MessageInDoubt) -> Result<(), Refusal> {
        let MessageInDoubt { company_id, ticket_id, id, provider_message_id } = message;
        let delivery_status = match &provider_message_id {
            Some(_) => DeliveryStatus::Sent,
            None => DeliveryStatus::Failed(MessageError::outcome_unknown()),
        };
        let update = UpdateDeliveryStatus { message: id, delivery_status, at: now(), provider_message_id };
        self.execute_update(company_id, MessageRef { ticket_id, id }, update).await
    }
}
