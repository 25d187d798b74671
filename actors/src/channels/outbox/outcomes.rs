//! Handles the events of a sender: a call, an append to the log or a read of the tables has ended.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::channels;
use hotline_persistence::tables::messages::{
    self, DeliveryStatus, DeliveryStatusRow, MessageError, OutboxEntry, UnsendableMessage,
};
use hotline_persistence::{ContactId, MessageId};
use tokio::time::Instant;

use super::ChannelKey;
use super::attempt::{self, AttemptOutcome, Decision};
use super::channel_outbox::ReadRequest;
use super::event::{Doubt, Event};
use super::outgoing::Outgoing;
use super::sender::ChannelSender;
use crate::Refusal;
use crate::base::Base;
use crate::base::retry::until_finished;
use crate::channels::{Accepted, SendFailure, WithdrawalVersion};
use crate::clock::now;

/// Pause before a failed query of the tables is retried.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Maximum withdrawn messages that are failed at a time.
const WITHDRAWN_MAX: usize = 1_000;

/// Replaces a pause that is too long to be added to the current time.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

impl ChannelSender {
    /// Handles an event.
    pub(super) fn handle_event(&mut self, event: Event) {
        match event {
            Event::Attempted { outgoing, channel_version, outcome } => {
                self.end_attempt(outgoing, channel_version, outcome);
            }
            Event::DoubtRecorded { outgoing, doubt, seq } => {
                self.state.unrecorded -= 1;
                self.await_status(outgoing, doubt, seq);
            }
            Event::DoubtEnded { outgoing, doubt, seq, provider_message_id } => {
                self.end_doubt(outgoing, doubt, seq, provider_message_id);
            }
            Event::Recorded { outgoing, seq } => {
                self.state.unrecorded -= 1;
                match seq {
                    Some(seq) => self.state.recent_outcomes.record(seq, outgoing.id()),
                    None => {
                        self.state.excluded_ids.insert(outgoing.id());
                    }
                }
                self.finish(&outgoing);
            }
            Event::Read { entries, limit } => self.end_read(entries, limit),
            Event::FailureRecorded { id, seq } => {
                self.state.unrecorded_failures -= 1;
                if let Some(seq) = seq {
                    self.state.excluded_ids.remove(&id);
                    self.state.recent_outcomes.record(seq, id);
                }
            }
            Event::WithdrawnFound { version, withdrawn, limit } => self.end_search(version, withdrawn, limit),
            Event::ErrorSaved => {}
            Event::DirectoryChanged => self.state.watches_directory = false,
        }
    }

    /// Handles the outcome of an attempt.
    fn end_attempt(&mut self, outgoing: Outgoing, channel_version: DateTime<Utc>, outcome: AttemptOutcome) {
        self.state.calls -= 1;
        match outcome {
            AttemptOutcome::Decided(decision) => {
                self.state.rate_limit_failures = 0;
                self.record_outcome(outgoing, decision);
            }
            AttemptOutcome::Retry(failure) => self.handle_failure(outgoing, channel_version, failure),
            AttemptOutcome::Removed => self.finish_removed(&outgoing),
            AttemptOutcome::Waits(withdrawal_version) => {
                if let Some(withdrawal_version) = withdrawal_version {
                    self.state.lanes.record_check(outgoing.contact(), withdrawal_version);
                }
                let now = Instant::now();
                self.state.lanes.schedule(outgoing.contact(), now, now);
            }
        }
    }

    /// Adds the messages of a read to their lanes, and fails those that cannot be sent. `None`: the read failed.
    fn end_read(&mut self, entries: Option<Vec<OutboxEntry>>, limit: usize) {
        let count = entries.as_ref().map(Vec::len);
        let mut sendable = Vec::with_capacity(count.unwrap_or_default());
        for entry in entries.into_iter().flatten() {
            match entry {
                OutboxEntry::Message(message) => sendable.push(Outgoing::from(*message)),
                OutboxEntry::Unreadable(message) => {
                    let (company, id) = (message.company_id, message.id);
                    tracing::error!(channel.id = %self.channel.1, company.id = %company, message.id = %id, "queued message is unreadable and was marked as failed");
                    self.fail_unsendable(message, MessageError::unreadable());
                }
                OutboxEntry::Withdrawn(message, error) => self.fail_unsendable(message, error),
            }
        }
        let contacts = std::mem::take(&mut self.state.contacts_during_read);
        contacts.apply_to(&mut sendable);
        self.outbox.end_read(count, &sendable, limit);
        for outgoing in sendable {
            self.add(outgoing);
        }
        for (from, into) in contacts.merges() {
            self.state.lanes.merge(from, into);
            self.state.lanes.end_merge(from, into);
        }
    }

    /// Fails the withdrawn messages of campaigns that a search has found, in memory or only in the tables. The first
    /// message of a lane stays there: it is settled by an attempt without a call.
    fn end_search(
        &mut self,
        version: WithdrawalVersion,
        withdrawn: Option<Vec<(UnsendableMessage, MessageError)>>,
        limit: usize,
    ) {
        self.state.is_searching = false;
        let Some(withdrawn) = withdrawn else { return };
        // A running read may add some of these messages to memory, and a connected channel settles each at its turn.
        if self.outbox.is_reading() || self.is_paused || self.state.account.is_some() {
            return;
        }
        self.state.searched_version = Some(version).filter(|_| withdrawn.len() < limit);
        self.add_arrivals();
        let ids: HashSet<MessageId> = withdrawn.iter().map(|(message, _)| message.id).collect();
        for outgoing in self.state.lanes.take_behind_first(&ids) {
            self.outbox.finish(&outgoing);
        }
        let mut known_ids: HashSet<MessageId> = self.state.lanes.ids().into_iter().collect();
        known_ids.extend(self.state.recent_outcomes.ids());
        known_ids.extend(&self.state.excluded_ids);
        for (message, error) in withdrawn {
            if !known_ids.contains(&message.id) {
                self.fail_unsendable(message, error);
            }
        }
    }

    /// Records the outcome of a message in the log. Until the outcome is durable, the message stays the first of its
    /// lane.
    fn record_outcome(&mut self, outgoing: Outgoing, decision: Decision) {
        let scope = self.scope.clone();
        self.state.unrecorded += 1;
        self.state.pending_events.push(
            async move {
                let seq = attempt::record_outcome(scope, outgoing.clone(), decision).await;
                Event::Recorded { outgoing, seq }
            }
            .boxed(),
        );
    }

    /// Fails a message that can never be sent, so that it blocks no other.
    fn fail_unsendable(&mut self, message: UnsendableMessage, error: MessageError) {
        let UnsendableMessage { company_id, ticket_id, contact_id, id } = message;
        // It must not be read again before the tables have the failure.
        self.state.excluded_ids.insert(id);
        self.state.unrecorded_failures += 1;
        let row = DeliveryStatusRow {
            company_id,
            ticket_id,
            message_id: id,
            delivery_status: DeliveryStatus::Failed(error),
            at: now(),
            provider_message_id: None,
            noted_at: None,
        };
        let (scope, channel) = (self.scope.clone(), self.channel.1);
        self.state.pending_events.push(
            async move {
                attempt::wait_until_unmarked(&scope, company_id, contact_id).await;
                Event::FailureRecorded { id, seq: scope.status_recorder.record(channel, row, None).await }
            }
            .boxed(),
        );
    }

    /// Removes a message whose outcome is recorded, and schedules the next one of its lane.
    fn finish(&mut self, outgoing: &Outgoing) {
        self.outbox.finish(outgoing);
        if self.state.lanes.remove_first(outgoing.contact()) {
            self.schedule_by_limit(outgoing.contact());
        }
    }

    /// Drops a message that was deleted with its contact: there is nothing to record.
    fn finish_removed(&mut self, outgoing: &Outgoing) {
        self.scope.in_transit.end(self.channel.0, outgoing.id());
        self.finish(outgoing);
    }

    /// Reschedules or gives up a message that the provider did not accept.
    fn handle_failure(&mut self, outgoing: Outgoing, channel_version: DateTime<Utc>, failure: SendFailure) {
        let (contact, now) = (outgoing.contact(), Instant::now());
        if let SendFailure::TokenRefused { reason } = failure {
            if outgoing.is_removed() {
                self.finish_removed(&outgoing);
            } else {
                self.state.lanes.schedule(contact, now, now);
            }
            self.disconnect(channel_version, reason);
            return;
        }
        if outgoing.is_removed() {
            return self.finish_removed(&outgoing);
        }
        if let SendFailure::Unknown { reason, is_file_only, may_be_named } = failure {
            self.begin_doubt(outgoing, Doubt { reason, is_file_only, may_be_named, channel_version });
            return;
        }
        let time_left = self.time_left(&outgoing);
        if time_left.is_zero() {
            self.scope.attempts.count_given_up();
            self.record_outcome(outgoing, Decision::give_up(failure));
            return;
        }
        // The pause is capped, so that a last attempt is made just before the message is given up.
        let pause = self.retry_pause(contact, failure, now).min(time_left);
        self.state.lanes.schedule(contact, end_of(pause, now), now);
    }

    /// Counts a failure, and returns the pause before the next attempt to send to the contact. There is none if the
    /// provider throttles the channel: then the channel pauses as a whole.
    fn retry_pause(&mut self, contact: ContactId, failure: SendFailure, now: Instant) -> Duration {
        let (pause, after) = match failure {
            SendFailure::ChannelRateLimited { after } => {
                self.pause_channel(after, now);
                (Duration::ZERO, None)
            }
            SendFailure::RecipientRateLimited { after } => {
                (self.state.recipient_retry.patient_pause(self.state.lanes.record_failure(contact)), after)
            }
            SendFailure::Retry { after, .. } => {
                (self.state.retry.pause(self.state.lanes.record_failure(contact)), after)
            }
            // Not reached: `Failed` is a decision, and the others are handled before.
            SendFailure::Failed(_) | SendFailure::TokenRefused { .. } | SendFailure::Unknown { .. } => {
                (Duration::ZERO, None)
            }
        };
        pause.max(after.unwrap_or_default())
    }

    /// Pauses the whole channel, at least for as long as the provider demands.
    fn pause_channel(&mut self, after: Option<Duration>, now: Instant) {
        // Concurrent calls are refused together, and count as one failure.
        if self.state.rate_limited_until.is_none_or(|until| until <= now) {
            self.state.rate_limit_failures = self.state.rate_limit_failures.saturating_add(1);
            let pause = self.state.retry.patient_pause(self.state.rate_limit_failures).max(after.unwrap_or_default());
            self.state.rate_limited_until = Some(end_of(pause, now));
            tracing::debug!(channel.id = %self.channel.1, pause_ms = pause.as_millis(), "provider is throttling a channel");
        }
    }

    /// Records that it is unknown whether a message was sent. Until that is settled, the message stays the first of its
    /// lane.
    fn begin_doubt(&mut self, outgoing: Outgoing, doubt: Doubt) {
        let (scope, channel) = (self.scope.clone(), self.channel);
        tracing::debug!(channel.id = %channel.1, company.id = %channel.0, message.id = %outgoing.id(), reason = doubt.reason, "unknown whether a message was sent");
        let row = outgoing.begin_doubt(&doubt.reason, doubt.is_file_only, now());
        self.state.unrecorded += 1;
        self.state.pending_events.push(
            async move {
                let seq = match row {
                    Some(row) => attempt::record_attempt(&scope, &outgoing, row).await,
                    None => None,
                };
                Event::DoubtRecorded { outgoing, doubt, seq }
            }
            .boxed(),
        );
    }

    /// Waits for a status that names a message in doubt, if one may.
    fn await_status(&mut self, outgoing: Outgoing, doubt: Doubt, seq: Option<Seq>) {
        let (scope, channel) = (self.scope.clone(), self.channel);
        let age = outgoing.attempts().unknown_at.and_then(|at| (now() - at).to_std().ok()).unwrap_or_default();
        let time_max = self.options().outcome_wait.saturating_sub(age);
        self.state.pending_events.push(
            async move {
                let provider_message_id = if doubt.may_be_named {
                    attempt::find_provider_id(&scope, channel, outgoing.current_send(), time_max).await
                } else {
                    None
                };
                Event::DoubtEnded { outgoing, doubt, seq, provider_message_id }
            }
            .boxed(),
        );
    }

    /// Records that a message was sent, or sends it again. A campaign's message is never sent twice: it is left to the
    /// statuses that may name it later.
    fn end_doubt(&mut self, outgoing: Outgoing, doubt: Doubt, seq: Option<Seq>, provider_message_id: Option<String>) {
        if outgoing.is_removed() {
            return self.finish_removed(&outgoing);
        }
        let Doubt { reason, is_file_only, may_be_named: _, channel_version } = doubt;
        match provider_message_id {
            Some(id) if is_file_only => {
                outgoing.end_file_doubt();
                // Nothing else sets `file_accepted` while the message is in doubt.
                let accepted = Accepted { provider_message_id: Some(id), text_message_id: None };
                let _ = outgoing.file_accepted.set(accepted);
                let now = Instant::now();
                self.state.lanes.schedule(outgoing.contact(), now, now);
            }
            Some(id) => {
                let decision = Decision::sent_as_named(&outgoing, id);
                self.record_outcome(outgoing, decision);
            }
            None if outgoing.is_of_campaign() => {
                match seq {
                    Some(seq) => self.state.recent_outcomes.record(seq, outgoing.id()),
                    None => {
                        self.state.excluded_ids.insert(outgoing.id());
                    }
                }
                self.finish(&outgoing);
            }
            None => {
                outgoing.end_doubt();
                self.handle_failure(outgoing, channel_version, SendFailure::Retry { reason, after: None });
            }
        }
    }

    /// How much longer a message may be retried.
    fn time_left(&self, outgoing: &Outgoing) -> Duration {
        let age = (now() - outgoing.message.created_at).to_std().unwrap_or_default();
        self.options().give_up_after.saturating_sub(age)
    }

    /// Stops sending with this version of the channel, whose token was refused, and writes the reason into the
    /// channel's row.
    fn disconnect(&mut self, version: DateTime<Utc>, reason: String) {
        let Some(connected) = self.state.account.take_if(|connected| connected.version == version) else { return };
        self.state.refused_version = Some(version);
        let (base, channel) = (self.scope.base.clone(), self.channel);
        tracing::warn!(channel.id = %channel.1, company.id = %channel.0, "provider rejected a channel's access token; its messages stay queued until it has a new one");
        self.state.pending_events.push(
            async move {
                let background = base.background.clone();
                let save_error = async move {
                    let (store, token) = (&base.store, &connected.account.access_token);
                    let save = || async {
                        let (company, channel) = channel;
                        let (db, keys) = (store.db(company), &store.keys);
                        channels::record_token_refusal(db, keys, company, channel, token, &reason).await
                    };
                    until_finished(channel.0, "a channel's refused token", save).await;
                    base.refresh(channel.0).await;
                };
                if let Err(error) = background.spawn(save_error).await {
                    tracing::error!(%error, channel.id = %channel.1, company.id = %channel.0, "could not save a channel's error");
                }
                Event::ErrorSaved
            }
            .boxed(),
        );
    }

    /// Searches the tables for withdrawn messages of campaigns, while the channel is not connected. Without the search,
    /// a message that waits behind others, or is only in the tables, would keep its canceled campaign from ending.
    pub(super) fn begin_search(&mut self, version: WithdrawalVersion) {
        if self.state.is_searching || self.state.searched_version == Some(version) {
            return;
        }
        self.state.is_searching = true;
        let (base, (company, channel)) = (self.scope.base.clone(), self.channel);
        self.state.pending_events.push(
            async move {
                let background = base.background.clone();
                let query = async move {
                    let db = base.reads().tables_as_of_now(company).await?;
                    Ok::<_, Refusal>(messages::withdrawn_of_channel(db, company, channel, WITHDRAWN_MAX as i64).await?)
                };
                let found = background.spawn(query).await;
                let found = found.unwrap_or_else(|error| Err(Refusal::Defect(error.to_string())));
                if let Err(refusal) = &found {
                    tracing::debug!(%refusal, channel.id = %channel, "searching for withdrawn messages will be retried");
                }
                Event::WithdrawnFound { version, withdrawn: found.ok(), limit: WITHDRAWN_MAX }
            }
            .boxed(),
        );
    }

    /// Reads messages from the tables that are not in memory.
    pub(super) fn begin_read(&mut self) {
        let Some(request) = self.outbox.begin_read() else { return };
        // Read before the query: outcomes flushed in between are excluded needlessly, but no message is sent twice.
        let flushed = self.scope.base.store.log.flushed();
        let mut known_ids = self.state.lanes.ids();
        known_ids.extend(self.state.recent_outcomes.unflushed(flushed));
        known_ids.extend(&self.state.excluded_ids);
        let request = ReadRequest { seq: request.seq.max(self.state.recent_outcomes.required_seq()), ..request };
        let (base, channel) = (self.scope.base.clone(), self.channel);
        self.state.pending_events.push(
            async move {
                let background = base.background.clone();
                let entries =
                    background.spawn(async move { read_queued(&base, channel, &known_ids, request).await }).await;
                let entries = entries.unwrap_or_else(|error| Err(Refusal::Defect(error.to_string())));
                if let Err(refusal) = &entries {
                    tracing::debug!(%refusal, "reading an outbox will be retried");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Event::Read { entries: entries.ok(), limit: request.limit }
            }
            .boxed(),
        );
    }
}

/// The end of a pause, even of one that is too long to be added to `now`.
fn end_of(pause: Duration, now: Instant) -> Instant {
    now.checked_add(pause).unwrap_or(now + PAUSE_MAX)
}

/// The first queued messages except those in `known_ids`: the ones in memory, and those with a recent outcome that the
/// tables may not have. The tables need not be current; they must only have the messages that did not fit into memory,
/// which were accepted up to `request.seq`.
async fn read_queued(
    base: &Base,
    channel: ChannelKey,
    known_ids: &[MessageId],
    request: ReadRequest,
) -> Result<Vec<OutboxEntry>, Refusal> {
    base.store.log.wait_until_flushed(request.seq).await?;
    let limit = i64::try_from(request.limit).unwrap_or(i64::MAX);
    Ok(messages::outbox(base.store.db(channel.0), channel.0, channel.1, known_ids, limit).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_is_too_long_for_the_clock_is_replaced() {
        let now = Instant::now();
        assert_eq!(end_of(Duration::from_secs(1), now), now + Duration::from_secs(1));
        assert_eq!(end_of(Duration::MAX, now), now + PAUSE_MAX);
    }
}
