//! The courier of one channel: which message goes next, and what follows when it does not.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::channels::{self, ChannelSettings, ChannelStatus};
use hotline_persistence::tables::messages::{self, MessageError, Milestone, ProgressRow, Unreadable, Waiting};
use hotline_persistence::{ContactId, MessageId};
use tokio::time::Instant;

use super::attempt::{Decision, Outcome, send, tell};
use super::backoff::Backoff;
use super::handed::Handed;
use super::held::{Outbox, Reading};
use super::lanes::Lanes;
use super::pace::{Pace, Paced, Recipients};
use super::{Channel, Outboxes, Outgoing, SendingOptions};
use crate::Refusal;
use crate::channels::{Account, SendFailure};
use crate::clock::now;
use crate::engine::{Core, Engine};

/// Pause before the tables are asked again after they could not be.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// What a provider asks a number to do that sends too much to another: wait 4^n seconds.
/// <https://developers.facebook.com/docs/whatsapp/cloud-api/overview#pair-rate-limits>
const RECIPIENT_FACTOR: u32 = 4;

/// Delivers what is in the outbox until the service stops.
pub(super) async fn run(core: Arc<Core>, outboxes: Arc<Outboxes>, outbox: Arc<Outbox>, channel: Channel) {
    let options = core.options.sending.clone();
    let (min, max) = (options.retry_pause_min, options.retry_pause_max);
    let courier = Courier {
        lanes: Lanes::default(),
        paces: Paces::of(&options, &ChannelSettings::default()),
        channel_paced: Paced::default(),
        recipients: Recipients::default(),
        retry: Backoff { min, max, factor: 2 },
        recipient_retry: Backoff { min, max: max.max(min * RECIPIENT_FACTOR.pow(3)), factor: RECIPIENT_FACTOR },
        paused_until: None,
        failures: 0,
        speaks_as: None,
        refused: None,
        under_way: FuturesUnordered::new(),
        calls: 0,
        unnoted: 0,
        handed: Handed::default(),
        untold: HashSet::new(),
        core,
        outboxes,
        outbox,
        channel,
        options,
    };
    courier.work().await;
}

struct Courier {
    core: Arc<Core>,
    outboxes: Arc<Outboxes>,
    outbox: Arc<Outbox>,
    channel: Channel,
    options: SendingOptions,
    lanes: Lanes,
    paces: Paces,
    channel_paced: Paced,
    recipients: Recipients,
    retry: Backoff,
    recipient_retry: Backoff,
    /// The provider takes nothing of the channel before.
    paused_until: Option<Instant>,
    /// Times in a row that the provider has slowed the channel.
    failures: u32,
    /// None: the channel is not connected, and everything waits.
    speaks_as: Option<Speaker>,
    /// The version of the channel whose token was refused.
    refused: Option<DateTime<Utc>>,
    under_way: FuturesUnordered<BoxFuture<'static, Event>>,
    /// How many of those are attempts.
    calls: usize,
    /// How many tell of one that has ended.
    unnoted: usize,
    handed: Handed,
    /// Sent or failed, and the log cannot be told.
    untold: HashSet<MessageId>,
}

/// As whom the channel speaks, by a version of its row.
struct Speaker {
    version: DateTime<Utc>,
    account: Arc<Account>,
}

struct Paces {
    channel: Pace,
    recipient: Pace,
}

impl Paces {
    fn of(options: &SendingOptions, settings: &ChannelSettings) -> Self {
        let interval = settings.recipient_interval_ms.map(|ms| Duration::from_millis(ms.into()));
        Self {
            channel: Pace::per_second(settings.sends_per_second.unwrap_or(options.per_second)),
            recipient: Pace {
                interval: interval.unwrap_or(options.recipient_interval),
                burst: settings.recipient_burst.unwrap_or(options.recipient_burst).max(1),
            },
        }
    }
}

enum Event {
    Attempted {
        what: Outgoing,
        version: DateTime<Utc>,
        outcome: Outcome,
    },
    /// It is durable what became of a message, not after this place in the log; none: it cannot be made so.
    Noted {
        what: Outgoing,
        seq: Option<Seq>,
    },
    /// Read from the tables, of as many as were asked for; none: they could not be read.
    Read {
        read: Option<Vec<Waiting>>,
        asked: usize,
    },
    /// It is durable that a message has failed, not after this place in the log; none: it cannot be made so.
    Refused {
        id: MessageId,
        seq: Option<Seq>,
    },
    /// The channel is known to be in error.
    Marked,
}

impl Courier {
    async fn work(mut self) {
        let mut stopping = self.outboxes.stopping.subscribe();
        let mut directory = self.core.directory.changes();
        let outbox = self.outbox.clone();
        loop {
            let is_stopping = *stopping.borrow_and_update();
            if is_stopping && self.calls + self.unnoted == 0 {
                return;
            }
            // Seen before the channel is looked up: what changes after that is seen as a change.
            directory.mark_unchanged();
            for outgoing in outbox.take() {
                self.add(outgoing);
            }
            self.look_up();
            let wake_at = if is_stopping { None } else { self.begin_attempts() };
            self.begin_reading();
            let is_held = self.speaks_as.is_none();
            outbox.show(self.calls, self.unnoted, is_held);
            tokio::select! {
                Some(event) = self.under_way.next(), if !self.under_way.is_empty() => {
                    self.settle(event);
                    // What ended with it is settled with it: the way around is longer than the settling.
                    while let Some(Some(event)) = self.under_way.next().now_or_never() {
                        self.settle(event);
                    }
                }
                () = outbox.arrival() => {}
                () = tokio::time::sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {}
                Ok(()) = directory.changed(), if is_held => {}
                Ok(()) = stopping.changed(), if !is_stopping => {}
            }
        }
    }

    fn add(&mut self, outgoing: Outgoing) {
        let contact = outgoing.contact();
        if self.lanes.add(outgoing) {
            self.schedule_by_pace(contact);
        }
    }

    /// The first message of the lane may go as soon as its recipient's pace allows.
    fn schedule_by_pace(&mut self, contact: ContactId) {
        let now = Instant::now();
        self.lanes.schedule(contact, self.recipients.next(self.paces.recipient, contact, now), now);
    }

    /// The channel as it is now.
    fn look_up(&mut self) {
        let organization = self.core.directory.company(self.channel.0);
        let row = organization.as_ref().and_then(|company| company.channels.get(&self.channel.1));
        let row = row.filter(|row| row.status == ChannelStatus::Connected && self.refused != Some(row.updated_at));
        let Some(row) = row else {
            self.speaks_as = None;
            return;
        };
        if self.speaks_as.as_ref().is_some_and(|speaker| speaker.version == row.updated_at) {
            return;
        }
        self.paces = Paces::of(&self.options, &row.settings().unwrap_or_default());
        self.speaks_as =
            Account::of(row).map(|account| Speaker { version: row.updated_at, account: Arc::new(account) });
    }

    /// Begins as many attempts as may be; answers when more may, if that is known.
    fn begin_attempts(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.paused_until.is_some_and(|until| until > now) {
            return self.paused_until;
        }
        let (calls_max, doubled_max) =
            (self.options.in_flight_max, self.options.in_flight_max + self.options.unnoted_max);
        while self.calls < calls_max && self.calls + self.unnoted < doubled_max {
            let speaker = self.speaks_as.as_ref()?;
            if !self.lanes.has_next(now) {
                return self.lanes.next_at();
            }
            let at = self.channel_paced.next(self.paces.channel, now);
            if at > now {
                return Some(at);
            }
            let what = self.lanes.next(now)?;
            self.channel_paced.used(self.paces.channel, now);
            self.recipients.used(self.paces.recipient, what.contact(), now);
            let (version, account) = (speaker.version, speaker.account.clone());
            let (core, outboxes) = (self.core.clone(), self.outboxes.clone());
            self.calls += 1;
            self.under_way.push(
                async move {
                    let outcome = send(core, outboxes, account, what.clone()).await;
                    Event::Attempted { what, version, outcome }
                }
                .boxed(),
            );
        }
        None
    }

    fn settle(&mut self, event: Event) {
        match event {
            Event::Attempted { what, version, outcome } => {
                self.calls -= 1;
                match outcome {
                    Outcome::Decided(decision) => {
                        self.failures = 0;
                        self.tell(what, decision);
                    }
                    Outcome::Later(failure) => self.put_off(what, version, failure),
                }
            }
            Event::Noted { what, seq } => {
                self.unnoted -= 1;
                match seq {
                    Some(seq) => self.handed.note(seq, what.id()),
                    None => {
                        self.untold.insert(what.id());
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
                        Waiting::Unreadable(unreadable) => self.refuse(unreadable),
                    }
                }
                self.outbox.end_reading(count, &readable, asked);
                for outgoing in readable {
                    self.add(outgoing);
                }
            }
            Event::Refused { id, seq } => {
                if let Some(seq) = seq {
                    self.untold.remove(&id);
                    self.handed.note(seq, id);
                }
            }
            Event::Marked => {}
        }
    }

    /// The log is told what has become of a message. Until that is durable it stays the first of its lane.
    fn tell(&mut self, what: Outgoing, decision: Decision) {
        let (core, outboxes) = (self.core.clone(), self.outboxes.clone());
        self.unnoted += 1;
        self.under_way.push(
            async move {
                let seq = tell(core, outboxes, what.clone(), decision).await;
                Event::Noted { what, seq }
            }
            .boxed(),
        );
    }

    /// A message that can never be sent fails, and holds up no other.
    fn refuse(&mut self, Unreadable { company_id, ticket_id, id }: Unreadable) {
        tracing::error!(channel.id = %self.channel.1, company.id = %company_id, message.id = %id, "a message that waits to be sent cannot be read; it fails");
        // Not to be read again before the tables know of it.
        self.untold.insert(id);
        let row = ProgressRow {
            company_id,
            ticket_id,
            message_id: id,
            milestone: Milestone::Failed(MessageError::unreadable()),
            at: now(),
            provider_message_id: None,
        };
        let (core, outboxes, channel) = (self.core.clone(), self.outboxes.clone(), self.channel.1);
        self.under_way
            .push(async move { Event::Refused { id, seq: outboxes.receipts.note(&core, channel, row).await } }.boxed());
    }

    fn finish(&mut self, what: &Outgoing) {
        self.outbox.finished(what);
        if self.lanes.done(what.contact()) {
            self.schedule_by_pace(what.contact());
        }
    }

    /// A message was not taken now.
    fn put_off(&mut self, what: Outgoing, version: DateTime<Utc>, failure: SendFailure) {
        let (contact, now) = (what.contact(), Instant::now());
        if let SendFailure::TokenRefused { reason } = failure {
            self.lanes.schedule(contact, now, now);
            self.hold(version, reason);
            return;
        }
        let left = self.time_left(&what);
        if left.is_zero() {
            self.outboxes.attempts.gave_up();
            self.tell(what, Decision::given_up(failure));
            return;
        }
        let (pause, after) = match failure {
            SendFailure::ChannelPaced { after } => {
                // What was under way together was slowed together.
                if self.paused_until.is_none_or(|until| until <= now) {
                    self.failures = self.failures.saturating_add(1);
                    let pause = self.retry.patient_pause(self.failures).max(after.unwrap_or_default());
                    self.paused_until = Some(now + pause);
                    tracing::debug!(channel.id = %self.channel.1, pause_ms = pause.as_millis(), "a provider slows a channel");
                }
                self.lanes.schedule(contact, now, now);
                return;
            }
            SendFailure::RecipientPaced { after } => {
                (self.recipient_retry.patient_pause(self.lanes.failed(contact)), after)
            }
            SendFailure::Retry { after, .. } => (self.retry.pause(self.lanes.failed(contact)), after),
            SendFailure::Failed(_) | SendFailure::TokenRefused { .. } => (Duration::ZERO, None),
        };
        // The last attempt is made before it is given up, however long the pause would be.
        let pause = pause.max(after.unwrap_or_default()).min(left);
        self.lanes.schedule(contact, now + pause, now);
    }

    /// How long a message may still be tried.
    fn time_left(&self, what: &Outgoing) -> Duration {
        let age = (now() - what.message.created_at).to_std().unwrap_or_default();
        self.options.give_up_after.saturating_sub(age)
    }

    /// Nothing is sent with this version of the channel any more, and everybody can see why.
    fn hold(&mut self, version: DateTime<Utc>, reason: String) {
        let Some(speaker) = self.speaks_as.take_if(|speaker| speaker.version == version) else { return };
        self.refused = Some(version);
        let (core, channel) = (self.core.clone(), self.channel);
        tracing::warn!(channel.id = %channel.1, company.id = %channel.0, "a provider refuses a channel's token; what it is to send is held");
        self.under_way.push(
            async move {
                let background = core.background.clone();
                let marking = async move {
                    let token = &speaker.account.access_token;
                    while let Err(error) =
                        channels::refuse_token(core.store.db(channel.0), &core.store.keys, channel.0, channel.1, token, &reason).await
                    {
                        tracing::debug!(%error, "a channel's error is noted later");
                        tokio::time::sleep(RETRY_PAUSE).await;
                    }
                    Engine::of(core).refresh(channel.0).await;
                };
                if let Err(error) = background.spawn(marking).await {
                    tracing::error!(%error, channel.id = %channel.1, company.id = %channel.0, "a channel's error is not noted");
                }
                Event::Marked
            }
            .boxed(),
        );
    }

    /// Reads from the tables what memory has no more, or not yet.
    fn begin_reading(&mut self) {
        let Some(reading) = self.outbox.begin_reading() else { return };
        // Before the tables are looked at: what they learn later they may as well know already.
        let flushed = self.core.store.log.flushed();
        let mut held = self.lanes.ids();
        held.extend(self.handed.unknown(flushed));
        held.extend(&self.untold);
        let reading = Reading { seq: reading.seq.max(self.handed.forgotten_to()), ..reading };
        let (core, channel) = (self.core.clone(), self.channel);
        self.under_way.push(
            async move {
                let background = core.background.clone();
                let read = background.spawn(async move { read(&core, channel, &held, reading).await }).await;
                let read = read.unwrap_or_else(|error| Err(Refusal::Defect(error.to_string())));
                if let Err(refusal) = &read {
                    tracing::debug!(%refusal, "an outbox is read later");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Event::Read { read: read.ok(), asked: reading.count }
            }
            .boxed(),
        );
    }
}

/// The first messages that wait, but for those that are held: whatever is in memory, and what was handed over and the
/// tables may not know of. They need not be up to date for that, they only have to hold what was left to them.
async fn read(core: &Core, channel: Channel, held: &[MessageId], reading: Reading) -> Result<Vec<Waiting>, Refusal> {
    core.store.log.reached(reading.seq).await?;
    let limit = i64::try_from(reading.count).unwrap_or(i64::MAX);
    Ok(messages::outbox(core.store.db(channel.0), channel.0, channel.1, held, limit).await?)
}
