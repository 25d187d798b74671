//! The actor of a channel's outbox: it decides which message is sent next, and when.
//!
//! Ticket actors put messages into the outbox themselves, so the outbox is bounded however busy this actor is. It is
//! notified once ([`Arrived`]) and takes all messages that have arrived. Everything else it waits for (calls, receipts,
//! readings, the pace) is polled by one future, [`Rounds`].

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFuture, Addr, AsyncContext, Context as Mailbox, Handler, Message};
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use hotline_persistence::tables::channels::{ChannelSettings, ChannelStatus};
use hotline_persistence::{ContactId, MessageId};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, Sleep};

use super::Channel;
use super::attempt;
use super::backoff::Backoff;
use super::dispatch::Dispatch;
use super::event::Event;
use super::handed::Handed;
use super::held::Outbox;
use super::lanes::Lanes;
use super::options::SendingOptions;
use super::outgoing::Outgoing;
use super::pace::{Pace, Paced, Recipients};
use crate::channels::Account;

/// The backoff that the provider requires of a number that sends too much to another one: 4^n seconds.
/// <https://developers.facebook.com/docs/whatsapp/cloud-api/overview#pair-rate-limits>
const RECIPIENT_FACTOR: u32 = 4;

/// Pause before a sender restarts after a defect.
const DEFECT_PAUSE: Duration = Duration::from_secs(1);

/// A message was put into the outbox.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Arrived;

/// Start no further attempt, and end once none is under way.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Stop;

/// Start no further attempt until [`GoOn`].
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Rest {
    /// Notified once nothing is under way.
    pub(super) rested: oneshot::Sender<()>,
}

/// Resume sending.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct GoOn;

/// End, with nothing under way: the company is dropped from memory.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct End;

/// Hands one channel's messages over to its provider.
pub struct ChannelSender {
    pub(super) dispatch: Arc<Dispatch>,
    pub(super) channel: Channel,
    pub(super) outbox: Arc<Outbox>,
    pub(super) work: Work,
    directory: watch::Receiver<()>,
    /// Timer of the next due attempt.
    alarm: Option<Pin<Box<Sleep>>>,
    /// After a defect the sender is idle until then.
    rests_until: Option<Instant>,
    /// While this is set no attempt starts. The inner sender is notified once nothing is under way.
    rests: Option<Option<oneshot::Sender<()>>>,
    _working: watch::Receiver<()>,
}

/// The working state of a sender. It can be rebuilt from the tables.
pub(super) struct Work {
    pub(super) lanes: Lanes,
    pub(super) paces: Paces,
    channel_paced: Paced,
    pub(super) recipients: Recipients,
    pub(super) retry: Backoff,
    pub(super) recipient_retry: Backoff,
    /// The channel is rate limited by its provider until then.
    pub(super) paused_until: Option<Instant>,
    /// Consecutive rate limits of the channel by its provider.
    pub(super) failures: u32,
    /// None: the channel is not connected, and its messages wait.
    pub(super) speaks_as: Option<Speaker>,
    /// The version of the channel whose token was refused.
    pub(super) refused: Option<DateTime<Utc>>,
    pub(super) under_way: FuturesUnordered<BoxFuture<'static, Event>>,
    /// The number of attempts among them.
    pub(super) calls: usize,
    /// The number of outcomes being recorded among them.
    pub(super) unnoted: usize,
    /// Whether one of them waits for a change of the directory.
    pub(super) watches_directory: bool,
    pub(super) handed: Handed,
    /// Messages that must not be read again: their outcome cannot be recorded in the log, or is not recorded yet.
    pub(super) untold: HashSet<MessageId>,
}

/// The account that the channel sends with, and the version of the channel's row.
pub(super) struct Speaker {
    pub(super) version: DateTime<Utc>,
    pub(super) account: Arc<Account>,
}

pub(super) struct Paces {
    channel: Pace,
    pub(super) recipient: Pace,
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

impl Work {
    fn new(options: &SendingOptions) -> Self {
        let (min, max) = (options.retry_pause_min, options.retry_pause_max);
        Self {
            lanes: Lanes::default(),
            paces: Paces::of(options, &ChannelSettings::default()),
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
            watches_directory: false,
            handed: Handed::default(),
            untold: HashSet::new(),
        }
    }
}

impl Actor for ChannelSender {
    type Context = Mailbox<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        cx.spawn(Rounds);
    }
}

/// No code needed: the round after each message takes what has arrived.
impl Handler<Arrived> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: Arrived, _: &mut Self::Context) {}
}

/// No code needed: the round after each message sees that the service stops.
impl Handler<Stop> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: Stop, _: &mut Self::Context) {}
}

impl Handler<Rest> for ChannelSender {
    type Result = ();

    fn handle(&mut self, Rest { rested }: Rest, _: &mut Self::Context) {
        self.rests = Some(Some(rested));
    }
}

impl Handler<GoOn> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: GoOn, _: &mut Self::Context) {
        self.rests = None;
    }
}

impl Handler<End> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: End, cx: &mut Self::Context) {
        cx.stop();
    }
}

/// Runs the sender's rounds until it ends: one after each message, and one whenever something has ended or is due.
struct Rounds;

impl ActorFuture<ChannelSender> for Rounds {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        sender: &mut ChannelSender,
        cx: &mut Mailbox<ChannelSender>,
        task: &mut Context<'_>,
    ) -> Poll<()> {
        match catch_unwind(AssertUnwindSafe(|| sender.rounds(task))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                cx.stop();
                Poll::Ready(())
            }
            Err(_) => {
                sender.begin_anew();
                // Polled again at once, because the next round sets the timer of the pause.
                task.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl ChannelSender {
    /// Starts the actor of a channel's outbox.
    pub(super) fn start_with(dispatch: &Arc<Dispatch>, outbox: Arc<Outbox>, channel: Channel) -> Addr<Self> {
        let sender = Self {
            dispatch: dispatch.clone(),
            channel,
            outbox,
            work: Work::new(&dispatch.base.options.sending),
            directory: dispatch.base.directory.changes(),
            alarm: None,
            rests_until: None,
            rests: None,
            _working: dispatch.working(),
        };
        Self::start_in_arbiter(dispatch.arbiter(), |_| sender)
    }

    pub(super) fn options(&self) -> &SendingOptions {
        &self.dispatch.base.options.sending
    }

    /// Restarts after a defect. The state in memory is dropped without loss: the tables hold every queued message.
    fn begin_anew(&mut self) {
        let (company, channel) = self.channel;
        tracing::error!(channel.id = %channel, company.id = %company, "channel sender failed unexpectedly; restarting it");
        self.work = Work::new(self.options());
        self.outbox.begin_anew(self.dispatch.base.store.log.last_of(company));
        self.rests_until = Some(Instant::now() + DEFECT_PAUSE);
    }

    /// Starts what may start and handles what has ended, until there is nothing to do now. Ready: the service stops,
    /// and nothing is under way.
    fn rounds(&mut self, task: &mut Context<'_>) -> Poll<()> {
        loop {
            let is_stopping = self.dispatch.is_stopping();
            if self.work.calls + self.work.unnoted == 0 {
                if is_stopping {
                    return Poll::Ready(());
                }
                if let Some(rested) = self.rests.as_mut().and_then(Option::take) {
                    // The requester may have timed out.
                    let _ = rested.send(());
                }
            }
            let due = self.round(is_stopping || self.rests.is_some());
            let settled = self.settle_ended(task);
            if !settled && !self.rings(due, task) {
                return Poll::Pending;
            }
        }
    }

    /// Starts what may start; returns when more may start, if that is known.
    fn round(&mut self, rests: bool) -> Option<Instant> {
        let now = Instant::now();
        if self.rests_until.is_some_and(|until| until > now) {
            return self.rests_until;
        }
        // Marked before the channel is looked up, so that a later change is noticed.
        self.directory.mark_unchanged();
        for outgoing in self.outbox.take() {
            self.add(outgoing);
        }
        self.look_up();
        let due = if rests { None } else { self.begin_attempts() };
        self.begin_reading();
        let is_held = self.work.speaks_as.is_none();
        if is_held {
            self.watch_directory();
        }
        self.outbox.show(self.work.calls, self.work.unnoted, is_held);
        due
    }

    /// Handles all events that are ready in one go, because a round costs more than an event.
    fn settle_ended(&mut self, task: &mut Context<'_>) -> bool {
        let mut has_settled = false;
        while let Poll::Ready(Some(event)) = self.work.under_way.poll_next_unpin(task) {
            self.settle(event);
            has_settled = true;
        }
        has_settled
    }

    /// Whether `due` has been reached; otherwise sets the timer that wakes this future.
    fn rings(&mut self, due: Option<Instant>, task: &mut Context<'_>) -> bool {
        let Some(at) = due else {
            self.alarm = None;
            return false;
        };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if alarm.deadline() != at {
            alarm.as_mut().reset(at);
        }
        let rings = alarm.as_mut().poll(task).is_ready();
        if rings {
            self.alarm = None;
        }
        rings
    }

    /// While the channel may send nothing, waits for a change of the directory.
    fn watch_directory(&mut self) {
        if !std::mem::replace(&mut self.work.watches_directory, true) {
            let mut directory = self.directory.clone();
            let changed = async move {
                // Fails only when the service ends.
                let _ = directory.changed().await;
                Event::DirectoryChanged
            };
            self.work.under_way.push(changed.boxed());
        }
    }

    pub(super) fn add(&mut self, outgoing: Outgoing) {
        let contact = outgoing.contact();
        if self.work.lanes.add(outgoing) {
            self.schedule_by_pace(contact);
        }
    }

    /// Schedules the first message of the lane for when its recipient's pace allows it.
    pub(super) fn schedule_by_pace(&mut self, contact: ContactId) {
        let now = Instant::now();
        let at = self.work.recipients.next(self.work.paces.recipient, contact, now);
        self.work.lanes.schedule(contact, at, now);
    }

    /// Loads the channel's current settings from the directory.
    fn look_up(&mut self) {
        let organization = self.dispatch.base.directory.company(self.channel.0);
        let row = organization.as_ref().and_then(|company| company.channels.get(&self.channel.1));
        let row = row.filter(|row| row.status == ChannelStatus::Connected && self.work.refused != Some(row.updated_at));
        let Some(row) = row else {
            self.work.speaks_as = None;
            return;
        };
        if self.work.speaks_as.as_ref().is_some_and(|speaker| speaker.version == row.updated_at) {
            return;
        }
        self.work.paces = Paces::of(self.options(), &row.settings().unwrap_or_default());
        self.work.speaks_as =
            Account::of(row).map(|account| Speaker { version: row.updated_at, account: Arc::new(account) });
    }

    /// Starts as many attempts as allowed; returns when more may start, if that is known.
    fn begin_attempts(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.work.paused_until.is_some_and(|until| until > now) {
            return self.work.paused_until;
        }
        let (calls_max, doubled_max) =
            (self.options().in_flight_max, self.options().in_flight_max + self.options().unnoted_max);
        let work = &mut self.work;
        while work.calls < calls_max && work.calls + work.unnoted < doubled_max {
            let speaker = work.speaks_as.as_ref()?;
            if !work.lanes.has_next(now) {
                return work.lanes.next_at();
            }
            let at = work.channel_paced.next(work.paces.channel, now);
            if at > now {
                return Some(at);
            }
            let what = work.lanes.next(now)?;
            work.channel_paced.used(work.paces.channel, now);
            work.recipients.used(work.paces.recipient, what.contact(), now);
            let (version, account, dispatch) = (speaker.version, speaker.account.clone(), self.dispatch.clone());
            work.calls += 1;
            work.under_way.push(
                async move {
                    let outcome = attempt::send(&dispatch, account, what.clone()).await;
                    Event::Attempted { what, version, outcome }
                }
                .boxed(),
            );
        }
        None
    }
}
