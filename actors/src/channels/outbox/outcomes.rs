//! How a sender handles the end of a call, a record or a reading.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use hotline_persistence::MessageId;
use hotline_persistence::tables::channels;
use hotline_persistence::tables::messages::{
    self, DeliveryStatus, DeliveryStatusRow, MessageError, Unreadable, Waiting,
};
use tokio::time::Instant;

use super::Channel;
use super::attempt::{self, Decision, Outcome};
use super::event::Event;
use super::held::Reading;
use super::outgoing::Outgoing;
use super::sender::ChannelSender;
use crate::Refusal;
use crate::base::Base;
use crate::base::retry::while_unavailable;
use crate::channels::SendFailure;
use crate::clock::now;

/// Pause before a failed query of the tables is retried.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

impl ChannelSender {
    /// Handles an event.
    pub(super) fn settle(&mut self, event: Event) {
        match event {
            Event::Attempted { what, version, outcome } => {
                self.work.calls -= 1;
                match outcome {
                    Outcome::Decided(decision) => {
                        self.work.failures = 0;
                        self.record(what, decision);
                    }
                    Outcome::Later(failure) => self.put_off(what, version, failure),
                }
            }
            Event::Noted { what, seq } => {
                self.work.unnoted -= 1;
                match seq {
                    Some(seq) => self.work.handed.note(seq, what.id()),
                    None => {
                        self.work.untold.insert(what.id());
                    }
                }
                self.finish(&what);
            }
            Event::Read { read, asked } => {
                let count = read.as_ref().map(Vec::len);
                let mut readable = Vec::with_capacity(count.unwrap_or_default());
                for waiting in read.into_iter().flatten() {
                    match waiting {
                        Waiting::Message(stored) => readable.push(Outgoing::from(*stored)),
                        Waiting::Unreadable(message) => {
                            let (company, id) = (message.company_id, message.id);
                            tracing::error!(channel.id = %self.channel.1, company.id = %company, message.id = %id, "queued message is unreadable and was marked as failed");
                            self.refuse(message, MessageError::unreadable());
                        }
                        Waiting::Withdrawn(message, error) => self.refuse(message, error),
                    }
                }
                self.outbox.end_reading(count, &readable, asked);
                for outgoing in readable {
                    self.add(outgoing);
                }
            }
            Event::Refused { id, seq } => {
                if let Some(seq) = seq {
                    self.work.untold.remove(&id);
                    self.work.handed.note(seq, id);
                }
            }
            Event::Marked => {}
            Event::DirectoryChanged => self.work.watches_directory = false,
        }
    }

    /// Records the outcome of a message in the log. Until that is durable the message stays the first of its lane.
    fn record(&mut self, what: Outgoing, decision: Decision) {
        let dispatch = self.dispatch.clone();
        self.work.unnoted += 1;
        self.work.under_way.push(
            async move {
                let seq = attempt::record(dispatch, what.clone(), decision).await;
                Event::Noted { what, seq }
            }
            .boxed(),
        );
    }

    /// Fails a message that can never be sent, so that it blocks no other.
    fn refuse(&mut self, Unreadable { company_id, ticket_id, id }: Unreadable, error: MessageError) {
        // It must not be read again before the tables have the failure.
        self.work.untold.insert(id);
        let row = DeliveryStatusRow {
            company_id,
            ticket_id,
            message_id: id,
            milestone: DeliveryStatus::Failed(error),
            at: now(),
            provider_message_id: None,
            noted_at: None,
        };
        let (dispatch, channel) = (self.dispatch.clone(), self.channel.1);
        self.work
            .under_way
            .push(async move { Event::Refused { id, seq: dispatch.receipts.note(channel, row).await } }.boxed());
    }

    fn finish(&mut self, what: &Outgoing) {
        self.outbox.finished(what);
        if self.work.lanes.done(what.contact()) {
            self.schedule_by_pace(what.contact());
        }
    }

    /// Reschedules or gives up a message that the provider did not accept.
    fn put_off(&mut self, what: Outgoing, version: DateTime<Utc>, failure: SendFailure) {
        let (contact, now) = (what.contact(), Instant::now());
        if let SendFailure::TokenRefused { reason } = failure {
            self.work.lanes.schedule(contact, now, now);
            self.hold(version, reason);
            return;
        }
        let left = self.time_left(&what);
        if left.is_zero() {
            self.dispatch.attempts.gave_up();
            self.record(what, Decision::given_up(failure));
            return;
        }
        let (pause, after) = match failure {
            SendFailure::ChannelPaced { after } => {
                // Calls that were under way together were refused together, and count as one failure.
                if self.work.paused_until.is_none_or(|until| until <= now) {
                    self.work.failures = self.work.failures.saturating_add(1);
                    let pause = self.work.retry.patient_pause(self.work.failures).max(after.unwrap_or_default());
                    self.work.paused_until = Some(now + pause);
                    tracing::debug!(channel.id = %self.channel.1, pause_ms = pause.as_millis(), "provider is throttling a channel");
                }
                self.work.lanes.schedule(contact, now, now);
                return;
            }
            SendFailure::RecipientPaced { after } => {
                (self.work.recipient_retry.patient_pause(self.work.lanes.failed(contact)), after)
            }
            SendFailure::Retry { after, .. } => (self.work.retry.pause(self.work.lanes.failed(contact)), after),
            SendFailure::Failed(_) | SendFailure::TokenRefused { .. } => (Duration::ZERO, None),
        };
        // A last attempt is made just before the message is given up, however long the pause would be.
        let pause = pause.max(after.unwrap_or_default()).min(left);
        self.work.lanes.schedule(contact, now + pause, now);
    }

    /// How much longer a message may be retried.
    fn time_left(&self, what: &Outgoing) -> Duration {
        let age = (now() - what.message.created_at).to_std().unwrap_or_default();
        self.options().give_up_after.saturating_sub(age)
    }

    /// Stops sending with this version of the channel, and writes the reason into the channel's row.
    fn hold(&mut self, version: DateTime<Utc>, reason: String) {
        let Some(speaker) = self.work.speaks_as.take_if(|speaker| speaker.version == version) else { return };
        self.work.refused = Some(version);
        let (base, channel) = (self.dispatch.base.clone(), self.channel);
        tracing::warn!(channel.id = %channel.1, company.id = %channel.0, "provider rejected a channel's access token; its messages stay queued until it has a new one");
        self.work.under_way.push(
            async move {
                let background = base.background.clone();
                let marking = async move {
                    let (store, token) = (&base.store, &speaker.account.access_token);
                    let mark = || async {
                        let (company, channel) = channel;
                        channels::refuse_token(store.db(company), &store.keys, company, channel, token, &reason)
                            .await
                            .map_err(|error| Refusal::Unavailable(error.to_string()))
                    };
                    // Every error is retried until the tables have it.
                    let _ = while_unavailable(RETRY_PAUSE, mark).await;
                    base.refresh(channel.0).await;
                };
                if let Err(error) = background.spawn(marking).await {
                    tracing::error!(%error, channel.id = %channel.1, company.id = %channel.0, "could not save a channel's error");
                }
                Event::Marked
            }
            .boxed(),
        );
    }

    /// Reads messages from the tables that are not in memory.
    pub(super) fn begin_reading(&mut self) {
        let Some(reading) = self.outbox.begin_reading() else { return };
        // Read before the query: what the tables receive later may be excluded needlessly, but never wrongly included.
        let flushed = self.dispatch.base.store.log.flushed();
        let mut held = self.work.lanes.ids();
        held.extend(self.work.handed.unknown(flushed));
        held.extend(&self.work.untold);
        let reading = Reading { seq: reading.seq.max(self.work.handed.forgotten_to()), ..reading };
        let (base, channel) = (self.dispatch.base.clone(), self.channel);
        self.work.under_way.push(
            async move {
                let background = base.background.clone();
                let read = background.spawn(async move { read(&base, channel, &held, reading).await }).await;
                let read = read.unwrap_or_else(|error| Err(Refusal::Defect(error.to_string())));
                if let Err(refusal) = &read {
                    tracing::debug!(%refusal, "reading an outbox will be retried");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Event::Read { read: read.ok(), asked: reading.count }
            }
            .boxed(),
        );
    }
}

/// The first queued messages except those in `held`: the ones in memory, and those handed over that the tables may not
/// know of. The tables need not be current for this; they must only have what was left to them.
async fn read(base: &Base, channel: Channel, held: &[MessageId], reading: Reading) -> Result<Vec<Waiting>, Refusal> {
    base.store.log.reached(reading.seq).await?;
    let limit = i64::try_from(reading.count).unwrap_or(i64::MAX);
    Ok(messages::outbox(base.store.db(channel.0), channel.0, channel.1, held, limit).await?)
}
