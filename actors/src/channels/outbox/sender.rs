//! The actor of a channel's outbox: it decides which message is sent next, and when.
//!
//! Ticket actors put messages into the outbox themselves, so the outbox is bounded even if this actor is busy. The
//! actor is notified once ([`MessageQueued`](super::sender_messages::MessageQueued)) and takes all messages that have
//! arrived. Everything else that it waits for (calls, records, reads, the rate limits) is polled by one future,
//! [`SenderLoop`].

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFuture, Addr, AsyncContext, Context as Mailbox};
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use hotline_persistence::tables::channels::{ChannelSettings, ChannelStatus};
use hotline_persistence::{ContactId, MessageId};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, Sleep};

use super::ChannelKey;
use super::attempt;
use super::backoff::Backoff;
use super::channel_outbox::Outbox;
use super::contacts_during_read::ContactsDuringRead;
use super::event::Event;
use super::lanes::Lanes;
use super::outgoing::Outgoing;
use super::rate_limit::{RateLimits, RateUsage, RecipientUsage};
use super::recent_outcomes::RecentOutcomes;
use super::sender_scope::SenderScope;
use crate::base::SendingOptions;
use crate::channels::{Account, WithdrawalVersion};

/// The factor of the backoff after the provider's rate limit for a pair of numbers: 4^n seconds after n failures.
/// <https://developers.facebook.com/docs/whatsapp/cloud-api/overview#pair-rate-limits>
const RECIPIENT_BACKOFF_FACTOR: u32 = 4;

/// Pause between two searches for messages that can be settled while their channel is not connected.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

/// Pause before a sender restarts after a defect.
const DEFECT_PAUSE: Duration = Duration::from_secs(1);

/// Sends one channel's messages to its provider.
pub struct ChannelSender {
    pub(super) scope: Arc<SenderScope>,
    pub(super) channel: ChannelKey,
    pub(super) outbox: Arc<Outbox>,
    pub(super) state: SenderState,
    directory_changes: watch::Receiver<()>,
    /// Timer of the next due attempt.
    timer: Option<Pin<Box<Sleep>>>,
    /// After a defect the sender is idle until this time.
    idle_until: Option<Instant>,
    /// While paused, no attempt starts.
    pub(super) is_paused: bool,
    /// Completed once a pause has begun and nothing is pending.
    pub(super) paused_signal: Option<oneshot::Sender<()>>,
    /// Doubts that have ended during the pause: the outcomes are recorded after it.
    pub(super) ended_doubts: Vec<Event>,
    /// Dropped when the sender ends; a stop of the service waits for that.
    _registration: watch::Receiver<()>,
}

/// The working state of a sender. It can be rebuilt from the tables.
pub(super) struct SenderState {
    pub(super) lanes: Lanes,
    pub(super) limits: RateLimits,
    channel_usage: RateUsage,
    pub(super) recipient_usage: RecipientUsage,
    pub(super) retry: Backoff,
    pub(super) recipient_retry: Backoff,
    /// The channel is rate limited by its provider until this time.
    pub(super) rate_limited_until: Option<Instant>,
    /// Consecutive refusals because the channel is rate limited; those of concurrent calls count as one.
    pub(super) rate_limit_failures: u32,
    /// `None`: the channel is not connected, its token was refused, or its company is inactive, and its messages wait.
    pub(super) account: Option<ConnectedAccount>,
    /// While there is no account: when messages that can be settled without it are next searched for.
    settle_at: Option<Instant>,
    /// The version of the channel whose token was refused.
    pub(super) refused_version: Option<DateTime<Utc>>,
    pub(super) pending_events: FuturesUnordered<BoxFuture<'static, Event>>,
    /// Pending attempts: calls to the provider.
    pub(super) calls: usize,
    /// Pending records of outcomes.
    pub(super) unrecorded: usize,
    /// Failures of messages that can never be sent, while they are being recorded.
    pub(super) unrecorded_failures: usize,
    /// Whether a pending event waits for a change of the directory.
    pub(super) watches_directory: bool,
    pub(super) recent_outcomes: RecentOutcomes,
    /// Messages that must not be read again: their outcome cannot be recorded in the log, or is not recorded yet.
    pub(super) excluded_ids: HashSet<MessageId>,
    /// Whether the tables are being searched for withdrawn messages of campaigns.
    pub(super) is_searching: bool,
    /// The version of the company's withdrawals at which all withdrawn messages were found.
    pub(super) searched_version: Option<WithdrawalVersion>,
    /// What has happened to contacts since the pending read of the tables began.
    pub(super) contacts_during_read: ContactsDuringRead,
}

/// The account that the channel sends with, and the version of the channel's row.
pub(super) struct ConnectedAccount {
    pub(super) version: DateTime<Utc>,
    pub(super) account: Arc<Account>,
}

impl SenderState {
    fn new(options: &SendingOptions) -> Self {
        let (min, max) = (options.retry_pause_min, options.retry_pause_max);
        Self {
            lanes: Lanes::default(),
            limits: RateLimits::of(options, &ChannelSettings::default()),
            channel_usage: RateUsage::default(),
            recipient_usage: RecipientUsage::default(),
            retry: Backoff { min, max, factor: 2 },
            recipient_retry: Backoff {
                min,
                max: max.max(min * RECIPIENT_BACKOFF_FACTOR.pow(3)),
                factor: RECIPIENT_BACKOFF_FACTOR,
            },
            rate_limited_until: None,
            rate_limit_failures: 0,
            account: None,
            settle_at: None,
            refused_version: None,
            pending_events: FuturesUnordered::new(),
            calls: 0,
            unrecorded: 0,
            unrecorded_failures: 0,
            watches_directory: false,
            recent_outcomes: RecentOutcomes::default(),
            excluded_ids: HashSet::new(),
            is_searching: false,
            searched_version: None,
            contacts_during_read: ContactsDuringRead::default(),
        }
    }
}

impl Actor for ChannelSender {
    type Context = Mailbox<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        cx.spawn(SenderLoop);
    }
}

/// Drives the sender until it ends. Polled after each message to the actor, and when a pending event is ready or the
/// timer has fired.
struct SenderLoop;

impl ActorFuture<ChannelSender> for SenderLoop {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        sender: &mut ChannelSender,
        cx: &mut Mailbox<ChannelSender>,
        task: &mut Context<'_>,
    ) -> Poll<()> {
        match catch_unwind(AssertUnwindSafe(|| sender.poll_work(task))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                cx.stop();
                Poll::Ready(())
            }
            Err(_) => {
                sender.restart();
                // Polled again at once, which sets the timer of the pause.
                task.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl ChannelSender {
    /// Starts the actor of a channel's outbox.
    pub(super) fn start_with(scope: &Arc<SenderScope>, outbox: Arc<Outbox>, channel: ChannelKey) -> Addr<Self> {
        let sender = Self {
            scope: scope.clone(),
            channel,
            outbox,
            state: SenderState::new(&scope.base.options.sending),
            directory_changes: scope.base.directory.changes(),
            timer: None,
            idle_until: None,
            is_paused: false,
            paused_signal: None,
            ended_doubts: Vec::new(),
            _registration: scope.register(),
        };
        Self::start_in_arbiter(scope.arbiter(), |_| sender)
    }

    pub(super) fn options(&self) -> &SendingOptions {
        &self.scope.base.options.sending
    }

    /// Restarts after a defect. The state in memory is dropped without loss: the tables hold every queued message.
    fn restart(&mut self) {
        let (company, channel) = self.channel;
        tracing::error!(channel.id = %channel, company.id = %company, "channel sender failed unexpectedly; restarting it");
        self.state = SenderState::new(self.options());
        self.ended_doubts.clear();
        self.outbox.restart(self.scope.base.store.log.last_of(company));
        self.idle_until = Some(Instant::now() + DEFECT_PAUSE);
    }

    /// Starts attempts and handles events until there is nothing to do now. `Ready`: the service is stopping, and
    /// nothing is pending.
    fn poll_work(&mut self, task: &mut Context<'_>) -> Poll<()> {
        loop {
            let is_stopping = self.scope.is_stopping();
            let has_pending = self.state.calls + self.state.unrecorded + self.state.unrecorded_failures > 0;
            if !has_pending {
                if is_stopping {
                    return Poll::Ready(());
                }
                // A running read may still find messages whose failure must be recorded.
                if !self.outbox.is_reading()
                    && let Some(signal) = self.paused_signal.take()
                {
                    // The requester may have timed out.
                    let _ = signal.send(());
                }
            }
            let due_at = self.start_work(is_stopping || self.is_paused);
            let has_handled = self.handle_ready_events(task);
            if !has_handled && !self.poll_timer(due_at, task) {
                return Poll::Pending;
            }
        }
    }

    /// Starts attempts and reads, unless `is_halted`: the sender is paused, or the service is stopping. Returns when
    /// more attempts may start, if that is known.
    fn start_work(&mut self, is_halted: bool) -> Option<Instant> {
        let now = Instant::now();
        if self.idle_until.is_some_and(|until| until > now) {
            return self.idle_until;
        }
        // Marked before the settings are loaded, so that a later change is noticed.
        self.directory_changes.mark_unchanged();
        self.add_arrivals();
        self.load_settings();
        let due_at = if is_halted { None } else { self.start_attempts() };
        if !is_halted {
            self.begin_read();
        }
        let is_blocked = self.state.account.is_none();
        if is_blocked {
            self.watch_directory();
        }
        // The messages of an inactive company wait by intention, so its channels are not reported.
        let is_reported = is_blocked && self.scope.base.is_active(self.channel.0);
        self.outbox.publish_progress(self.state.calls, self.state.unrecorded, is_reported);
        due_at
    }

    /// Handles all events that are ready, and returns whether there were any. Work is started only after the last one,
    /// because starting it costs more than an event.
    fn handle_ready_events(&mut self, task: &mut Context<'_>) -> bool {
        let mut has_handled = false;
        while let Poll::Ready(Some(event)) = self.state.pending_events.poll_next_unpin(task) {
            match event {
                Event::DoubtEnded { .. } if self.is_paused => self.ended_doubts.push(event),
                event => self.handle_event(event),
            }
            has_handled = true;
        }
        has_handled
    }

    /// Whether `due_at` has been reached; otherwise sets the timer that wakes this future.
    fn poll_timer(&mut self, due_at: Option<Instant>, task: &mut Context<'_>) -> bool {
        let Some(due_at) = due_at else {
            self.timer = None;
            return false;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due_at)));
        if timer.deadline() != due_at {
            timer.as_mut().reset(due_at);
        }
        let is_due = timer.as_mut().poll(task).is_ready();
        if is_due {
            self.timer = None;
        }
        is_due
    }

    /// Waits for a change of the directory, because the channel cannot send until then.
    fn watch_directory(&mut self) {
        if !std::mem::replace(&mut self.state.watches_directory, true) {
            let mut directory_changes = self.directory_changes.clone();
            let wait = async move {
                // Fails only when the service ends.
                let _ = directory_changes.changed().await;
                Event::DirectoryChanged
            };
            self.state.pending_events.push(wait.boxed());
        }
    }

    pub(super) fn add_arrivals(&mut self) {
        for outgoing in self.outbox.take() {
            self.add(outgoing);
        }
    }

    pub(super) fn add(&mut self, outgoing: Outgoing) {
        let contact = outgoing.contact();
        if self.state.lanes.add(outgoing) {
            self.schedule_by_limit(contact);
        }
    }

    /// Schedules the first message of the lane for when its recipient's rate limit allows it.
    pub(super) fn schedule_by_limit(&mut self, contact: ContactId) {
        let now = Instant::now();
        let at = self.state.recipient_usage.next_at(self.state.limits.recipient, contact, now);
        self.state.lanes.schedule(contact, at, now);
    }

    /// Loads the channel's current settings from the directory.
    fn load_settings(&mut self) {
        let (company, channel) = self.channel;
        let organization = self.scope.base.directory.company(company);
        let row = organization
            .as_ref()
            .filter(|organization| organization.company.active)
            .and_then(|organization| organization.channels.get(&channel))
            .filter(|row| row.status == ChannelStatus::Connected && self.state.refused_version != Some(row.updated_at));
        let Some(row) = row else {
            self.state.account = None;
            return;
        };
        if self.state.account.as_ref().is_some_and(|connected| connected.version == row.updated_at) {
            return;
        }
        self.state.limits = RateLimits::of(self.options(), &row.settings().unwrap_or_default());
        self.state.account =
            Account::of(row).map(|account| ConnectedAccount { version: row.updated_at, account: Arc::new(account) });
    }

    /// Starts as many attempts as allowed; returns when more may start, if that is known.
    fn start_attempts(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.state.account.is_none() {
            return self.settle_without_account(now);
        }
        if self.state.rate_limited_until.is_some_and(|until| until > now) {
            return self.state.rate_limited_until;
        }
        let calls_max = self.options().in_flight_max;
        let pending_max = calls_max + self.options().unrecorded_max;
        let state = &mut self.state;
        while state.calls < calls_max && state.calls + state.unrecorded < pending_max {
            let connected = state.account.as_ref()?;
            if !state.lanes.has_next(now) {
                return state.lanes.next_at();
            }
            let at = state.channel_usage.next_at(state.limits.channel, now);
            if at > now {
                return Some(at);
            }
            let outgoing = state.lanes.next(now)?;
            state.channel_usage.record(state.limits.channel, now);
            state.recipient_usage.record(state.limits.recipient, outgoing.contact(), now);
            let (channel_version, account, scope) = (connected.version, connected.account.clone(), self.scope.clone());
            state.calls += 1;
            state.pending_events.push(
                async move {
                    let outcome = attempt::send(&scope, account, outgoing.clone()).await;
                    Event::Attempted { outgoing, channel_version, outcome }
                }
                .boxed(),
            );
        }
        None
    }

    /// While the channel is not connected, settles messages of campaigns that need no call: those that are withdrawn,
    /// so that a canceled campaign ends, and those in doubt since an earlier run. Returns when to search again.
    fn settle_without_account(&mut self, now: Instant) -> Option<Instant> {
        if self.state.settle_at.is_none_or(|at| at <= now) {
            self.state.settle_at = Some(now + SETTLE_PAUSE);
            let version = self.scope.in_transit.withdrawals.version(self.channel.0);
            self.begin_search(version);
            let calls_max = self.options().in_flight_max.saturating_sub(self.state.calls);
            for outgoing in self.state.lanes.take_settleable(calls_max, version, now) {
                let scope = self.scope.clone();
                self.state.calls += 1;
                self.state.pending_events.push(
                    async move {
                        let outcome = attempt::settle_without_call(&scope, &outgoing, version).await;
                        // Without a call no token is refused, so the version is not used.
                        Event::Attempted { outgoing, channel_version: DateTime::UNIX_EPOCH, outcome }
                    }
                    .boxed(),
                );
            }
        }
        self.state.settle_at.filter(|_| !self.state.lanes.is_empty())
    }
}
