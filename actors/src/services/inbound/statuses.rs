//! Statuses of messages, as their providers report them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_persistence::tables::early_revisions;
use hotline_persistence::tables::early_statuses::{self, EarlyStatus};
use hotline_persistence::tables::messages::{
    self, DeliveryStatus, MessageError, MessageRef, MessageRow, MessageStatus,
};
use hotline_persistence::{ChannelId, CompanyId, MessageId};

use super::Inbound;
use crate::Refusal;
use crate::base::retry::while_unavailable;
use crate::channels::{EARLY_STATUSES_MAX, EarlyStatusIndex, Inbox, NamedSend, RECEIVED_IDS_MAX, text_key};
use crate::clock::now;
use crate::tickets::{FailText, UpdateDeliveryStatus};

/// How long a status or revision waits for its message. A message that was sent is known once the provider has
/// answered: after seconds, or minutes across a restart.
const EARLY_STATUS_TTL: chrono::TimeDelta = chrono::TimeDelta::days(2);

/// Interval between sweeps of expired early statuses, and the maximum number deleted at once.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
const SWEEP_ROWS_MAX: i64 = 10_000;

/// Pause before early statuses are retried after a database outage.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Maximum messages that a provider's watermark, a status of all messages up to a time, updates in a round, and maximum
/// rounds. A contact never has more messages in transit than all rounds update together.
const WATERMARK_MESSAGES_MAX: i64 = 200;
const WATERMARK_ROUNDS_MAX: usize = 10;

impl Inbound {
    /// A channel's inbox; loaded once, and cached until the company is dropped from memory.
    pub(super) async fn inbox(self: &Arc<Self>, company: CompanyId, channel: ChannelId) -> Result<Arc<Inbox>, Refusal> {
        let cell = self.inboxes.cell((company, channel));
        let load = || async {
            let db = self.base.reads().tables(company).await?;
            let limit = |max: usize| i64::try_from(max).unwrap_or(i64::MAX);
            let received_ids = messages::received_ids(db, company, channel, limit(RECEIVED_IDS_MAX)).await?;
            let mut early_ids = early_statuses::of_channel(db, company, channel, limit(EARLY_STATUSES_MAX)).await?;
            early_ids.extend(early_revisions::of_channel(db, company, channel, limit(EARLY_STATUSES_MAX)).await?);
            let inbox = Inbox::of(&received_ids, EarlyStatusIndex::of(&early_ids, now()), now());
            self.apply_early_statuses(company, channel, early_ids);
            Ok::<_, Refusal>(Arc::new(inbox))
        };
        cell.get_or_try_init(load).await.cloned()
    }

    /// The message with this provider id, or none.
    pub(super) async fn find_message(
        &self,
        company: CompanyId,
        channel: ChannelId,
        id: &str,
    ) -> Result<Option<MessageRef>, Refusal> {
        if let Some(message) = self.inboxes.message((company, channel), id) {
            return Ok(Some(message));
        }
        let row = self.base.reads().message_by_provider_id(company, channel, id).await?;
        let message = row.map(|row| MessageRef { ticket_id: row.ticket_id, id: row.id });
        if let Some(message) = message {
            self.inboxes.cache_message((company, channel), id, message);
        }
        Ok(message)
    }

    /// Records a status that a provider reports for a message. It may arrive before the outbox has recorded the
    /// provider's id of the message; it is then stored until the message is known. `names` is our own id of the
    /// message, if the status carries it: that proves to the outbox that the provider has the message.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn record_status(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        provider_message_id: &str,
        names: Option<MessageId>,
        delivery_status: DeliveryStatus,
        at: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let at = at.min(now());
        if let Some(message) = self.find_message(company, channel, provider_message_id).await? {
            return self.update_status(company, message, delivery_status, at).await;
        }
        let inbox = self.inbox(company, channel).await?;
        let early = EarlyStatus {
            company_id: company,
            channel_id: channel,
            provider_message_id: provider_message_id.to_owned(),
            delivery_status,
            at,
            names,
        };
        if let Some(message) = names {
            let send = NamedSend::Message(message);
            self.inboxes.named_messages.record((company, channel), send, provider_message_id);
        }
        self.store_early_status(&inbox, &early).await?;
        if let Some(message) = names {
            self.settle_doubt(company, channel, message, provider_message_id).await?;
        }
        // The id may have been recorded since the check above, by a caller that did not see the stored status yet.
        if self.find_message(company, channel, provider_message_id).await?.is_some() {
            self.apply_early_statuses(company, channel, vec![provider_message_id.to_owned()]);
        }
        Ok(())
    }

    /// Records a status of the text that follows a message's file. The message keeps its own status, that of its file,
    /// and shows why its text has failed. While the message is queued, the status proves to the outbox that the
    /// provider has the text.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn record_text_status(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        message: MessageId,
        delivery_status: DeliveryStatus,
    ) -> Result<(), Refusal> {
        let row = self.base.reads().message(company, message).await?;
        let Some(row) = row.filter(|row| row.channel_id == channel) else { return Ok(()) };
        if row.status == MessageStatus::Queued {
            self.record_named_text(company, channel, message).await?;
        }
        match delivery_status {
            DeliveryStatus::Failed(error) if row.error.is_none() => self.fail_text(&row, error).await,
            _ => Ok(()),
        }
    }

    /// Records for the outbox that the provider has the text that follows a message's file; stored, because a restart
    /// may come before the outbox uses it.
    async fn record_named_text(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        message: MessageId,
    ) -> Result<(), Refusal> {
        let key = text_key(message);
        self.inboxes.named_messages.record((company, channel), NamedSend::Text(message), &key);
        let inbox = self.inbox(company, channel).await?;
        let early = EarlyStatus {
            company_id: company,
            channel_id: channel,
            provider_message_id: key,
            // One for all statuses of the text: it matters only that there is any.
            delivery_status: DeliveryStatus::Sent,
            at: now(),
            names: None,
        };
        self.store_early_status(&inbox, &early).await
    }

    /// Records that a message's text, sent after its file, has failed.
    async fn fail_text(&self, row: &MessageRow, error: MessageError) -> Result<(), Refusal> {
        let failure = FailText { message: row.id, error };
        match self.tickets.ask_following(row.company_id, row.ticket_id, failure).await {
            // The message was deleted with its contact.
            Err(Refusal::NotFound) => Ok(()),
            outcome => outcome,
        }
    }

    /// Stores a status until its message is known; drops it if its channel has too many of them.
    async fn store_early_status(&self, inbox: &Inbox, early: &EarlyStatus) -> Result<(), Refusal> {
        let db = self.base.db(early.company_id);
        let has_room = early_statuses::store(db, early, inbox.early_statuses.is_crowded()).await?;
        let is_first_dropped = inbox.early_statuses.room.record(has_room);
        if is_first_dropped {
            tracing::warn!(
                channel.id = %early.channel_id,
                company.id = %early.company_id,
                "dropping statuses of messages that Hotline has not sent: the channel has {} of them, most likely because another program sends through the same account",
                early_statuses::STORED_MAX,
            );
        }
        if has_room {
            inbox.early_statuses.add(&early.provider_message_id, now());
        } else {
            self.dropped_updates.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The number of statuses and revisions of unknown messages that were dropped because too many were stored for
    /// their channel.
    pub fn dropped_updates(&self) -> u64 {
        self.dropped_updates.load(Ordering::Relaxed)
    }

    async fn update_status(
        &self,
        company: CompanyId,
        message: MessageRef,
        delivery_status: DeliveryStatus,
        at: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let update = UpdateDeliveryStatus { message: message.id, delivery_status, at, provider_message_id: None };
        self.execute_update(company, message, update).await
    }

    /// Updates a message, unless it no longer exists.
    pub(super) async fn execute_update(
        &self,
        company: CompanyId,
        message: MessageRef,
        update: UpdateDeliveryStatus,
    ) -> Result<(), Refusal> {
        match self.tickets.ask_following(company, message.ticket_id, update).await {
            // The message was deleted with its contact: there is nothing to update.
            Err(Refusal::NotFound) => Ok(()),
            outcome => outcome,
        }
    }

    /// Records a status for all messages to a contact up to a point in time, as a provider's watermark reports it.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn record_statuses_until(
        &self,
        company: CompanyId,
        channel: ChannelId,
        address: &str,
        delivery_status: DeliveryStatus,
        until: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let Some(contact) = self.find_by_address(company, channel, address).await? else { return Ok(()) };
        let status = delivery_status.status();
        let at = until.min(now());
        for _ in 0..WATERMARK_ROUNDS_MAX {
            let db = self.base.reads().tables(company).await?;
            let messages =
                messages::sent_until(db, company, channel, contact, until, status, WATERMARK_MESSAGES_MAX).await?;
            if messages.is_empty() {
                break;
            }
            for message in messages {
                self.update_status(company, message, delivery_status.clone(), at).await?;
            }
        }
        Ok(())
    }

    /// Applies the stored statuses and revisions of messages with these provider ids, retrying until the database
    /// answers.
    pub(super) fn apply_early_statuses(self: &Arc<Self>, company: CompanyId, channel: ChannelId, ids: Vec<String>) {
        let inbound = self.clone();
        self.base.spawn_for(company, async move {
            for id in ids {
                let apply = || inbound.try_apply_early_statuses(company, channel, &id);
                if let Err(refusal) = while_unavailable(RETRY_PAUSE, apply).await {
                    tracing::warn!(%refusal, company.id = %company, "could not apply an early message status");
                }
            }
        });
    }

    async fn try_apply_early_statuses(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        id: &str,
    ) -> Result<(), Refusal> {
        let inbox = self.inbox(company, channel).await?;
        if !inbox.early_statuses.may_contain(id) {
            return Ok(());
        }
        // The status stays stored: another program sent the message, or its id is not recorded yet.
        let Some(message) = self.find_message(company, channel, id).await? else { return Ok(()) };
        // A status that is stored from now on is added to the index again.
        inbox.early_statuses.remove(id);
        let applied = self.apply_stored_updates(company, channel, id, message).await;
        let may_remain = !matches!(applied, Ok(false));
        if may_remain {
            inbox.early_statuses.add(id, now());
        }
        applied.map(drop)
    }

    /// Applies the stored statuses and revisions of a message, and deletes the statuses. Returns whether revisions stay
    /// stored.
    async fn apply_stored_updates(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        id: &str,
        message: MessageRef,
    ) -> Result<bool, Refusal> {
        let db = self.base.db(company);
        let mut applied_statuses = Vec::new();
        for early in early_statuses::of_message(db, company, channel, id).await? {
            applied_statuses.push(early.delivery_status.status().as_str());
            self.update_status(company, message, early.delivery_status, early.at).await?;
        }
        early_statuses::remove(db, company, channel, id, &applied_statuses).await?;
        self.apply_early_revisions(company, channel, id).await
    }

    /// Applies early statuses from before a restart, and deletes expired ones, for as long as the process runs.
    pub async fn run_sweep(self: &Arc<Self>) {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.sweep_early_statuses().await;
        }
    }

    /// Runs one sweep. Also called when this process begins to serve more companies.
    pub async fn sweep_early_statuses(self: &Arc<Self>) {
        if let Err(refusal) = self.try_sweep_early_statuses().await {
            tracing::debug!(%refusal, "sweep of early statuses will be retried");
        }
    }

    async fn try_sweep_early_statuses(self: &Arc<Self>) -> Result<(), Refusal> {
        let db = self.base.store.housekeeper();
        let before = now() - EARLY_STATUS_TTL;
        while early_statuses::sweep(db, before, SWEEP_ROWS_MAX).await? == SWEEP_ROWS_MAX.unsigned_abs() {}
        while early_revisions::sweep(db, before, SWEEP_ROWS_MAX).await? == SWEEP_ROWS_MAX.unsigned_abs() {}
        self.inboxes.sweep_early_statuses(before);
        let ownership = self.base.store.ownership();
        for (company, channel) in early_statuses::channels(db, &ownership.slot_filter()).await? {
            let Some(_presence) = ownership.try_enter(company) else { continue };
            // Loading an inbox applies its early statuses.
            self.inbox(company, channel).await?;
        }
        Ok(())
    }
}
