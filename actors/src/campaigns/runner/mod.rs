//! The actor of a campaign: the one place that decides which recipient is written to next, and when.
//!
//! The campaign itself (its status, rate and content) is in the tables, where callers change it. A caller holds the
//! campaign meanwhile ([`Hold`]): the actor pauses, and the hold is acknowledged when the outcome of every pending send
//! is known. On release the actor reads the campaign again. So a request to pause a campaign is answered after the
//! campaign's last message was decided.
//!
//! A message to a recipient goes through their conversation like any other, and the recipient's new status is in the
//! same entry of the log. Messages are decided one at a time, in order; their entries become durable together. Only a
//! few messages of a campaign are in transit at once, so none waits long. Opt-outs and the campaign's cancellation are
//! checked when a message is decided, and again before each call to its provider.

mod commands;
mod outcomes;
mod send;
mod tables;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context as Mailbox};
use hotline_persistence::tables::campaigns::{
    CampaignRun, CampaignStatus, PausedReason, RecipientRow, RecipientStatus,
};
use hotline_persistence::tables::messages::MessageError;
use hotline_persistence::{CampaignId, Change, CompanyId, ContactId, MessageId, Presence};

pub(crate) use self::commands::{CampaignChanged, Hold};
use self::send::SendProgress;
use super::pace::{Pace, in_transit_max};
use super::recipient_queue::{NextRecipient, RecipientQueue, page_size};
use super::templates::TemplateStates;
use crate::Refusal;
use crate::answers::ReplyTo;
use crate::base::Base;
use crate::base::due_work::{DueWork, DueWorkState, Readiness, TICK};
use crate::channels::InTransit;
use crate::clock::{self, now};
use crate::registry::{ActorHandle, ActorStatus, Registered, Registry};
use crate::services::{Contacts, Sending};

/// Recipients are loaded at most this long before their turn.
const LOAD_AHEAD_MAX: Duration = Duration::from_secs(10);

/// Maximum time between two runs of a scheduled campaign, so that a clock change is noticed.
const SCHEDULED_TICK: Duration = Duration::from_secs(5);

/// How often long-standing messages in transit are looked up in the tables: one may have been deleted with its contact.
const VERIFY_EVERY: Duration = Duration::from_secs(30);

/// Pause before a retry after an outage.
const OUTAGE_PAUSE: Duration = Duration::from_millis(2500);

/// Pause before a start whose recipients were not inserted in time is retried: each attempt uses the company's share of
/// heavy statements for two minutes.
const START_RETRY_PAUSE: Duration = Duration::from_secs(600);

/// State shared by the campaigns' actors, and the registry of them.
pub(crate) struct CampaignScope {
    pub(crate) base: Arc<Base>,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) sending: Arc<Sending>,
    pub(crate) in_transit: Arc<InTransit>,
    pub(crate) templates: OnceLock<Arc<dyn TemplateStates>>,
    pub(crate) hot: Registry<(CompanyId, CampaignId), CampaignRunner>,
    /// Recipients whose message was accepted for its channel, since the process started.
    pub(crate) handed_over: AtomicU64,
    /// Recipients that were skipped.
    pub(crate) skipped: AtomicU64,
    /// Recipients to whom no message could be sent.
    pub(crate) failed: AtomicU64,
}

/// Approximate gauges of a campaign, for metrics.
#[derive(Debug, Default)]
pub struct CampaignGauges {
    /// 1 while it is running.
    pub is_running: AtomicUsize,
    /// Recipients in memory.
    pub recipients: AtomicUsize,
    /// Messages that are decided but not yet with their provider.
    pub in_transit: AtomicUsize,
}

/// The actor of a campaign.
pub struct CampaignRunner {
    scope: Arc<CampaignScope>,
    company: CompanyId,
    id: CampaignId,
    /// The campaign as last read.
    state: CampaignState,
    /// Incremented when the campaign may have changed: a read that began earlier is then stale.
    version: u64,
    is_reading: bool,
    /// The holders of the campaign, for as long as they live.
    holders: Vec<Weak<()>>,
    /// Replies to callers whose hold is acknowledged once every pending send has an outcome.
    hold_replies: Vec<ReplyTo<()>>,
    recipients: RecipientQueue,
    pace: Option<Pace>,
    /// The recipient whose message is being decided. The next recipient waits until it is decided.
    deciding: Option<ContactId>,
    /// Recipients whose outcome is not known yet, with the message that may be in the log.
    pending_sends: HashMap<ContactId, Option<MessageId>>,
    /// Messages that their provider does not have yet.
    in_transit: HashSet<MessageId>,
    /// The messages in transit at the last verification, and its time.
    last_verification: (HashSet<MessageId>, Instant),
    /// Whether a statement that changes the campaign is running.
    is_updating: bool,
    /// Whether all recipients that were pending at the cancellation have been skipped.
    has_skipped_pending: bool,
    /// Why the provider refuses the template, as it said at a scheduled start or in its refusal of a message.
    template_refusal: Option<PausedReason>,
    paused_until: Option<Instant>,
    /// When a start whose recipients were not inserted in time is retried, unless the campaign is changed before.
    start_retry_at: Option<Instant>,
    work_state: DueWorkState,
    /// When the actor was started; `None` after its first command. Before that command the actor may not be registered
    /// yet, so it does not retire at once.
    unused_since: Option<Instant>,
    status: Arc<ActorStatus<CampaignGauges>>,
}

/// The cached state of a campaign.
enum CampaignState {
    /// Not read yet.
    Unread,
    /// The state as last read, which may have changed.
    Stale(Option<Arc<CampaignRun>>),
    /// The current state.
    Current(Arc<CampaignRun>),
    /// The campaign does not exist.
    Missing,
}

impl Actor for CampaignRunner {
    type Context = Mailbox<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        self.supervise(cx, |_, _| ());
    }
}

impl Registered for CampaignRunner {
    type Shared = CampaignGauges;
}

impl CampaignScope {
    /// Starts a campaign's actor.
    pub(crate) fn start(self: &Arc<Self>, company: CompanyId, id: CampaignId) -> ActorHandle<CampaignRunner> {
        let status = Arc::new(ActorStatus::<CampaignGauges>::default());
        let runner = CampaignRunner {
            scope: self.clone(),
            company,
            id,
            state: CampaignState::Unread,
            version: 0,
            is_reading: false,
            holders: Vec::new(),
            hold_replies: Vec::new(),
            recipients: RecipientQueue::default(),
            pace: None,
            deciding: None,
            pending_sends: HashMap::new(),
            in_transit: HashSet::new(),
            last_verification: (HashSet::new(), clock::instant()),
            is_updating: false,
            has_skipped_pending: false,
            template_refusal: None,
            paused_until: None,
            start_retry_at: None,
            work_state: DueWorkState::default(),
            unused_since: Some(Instant::now()),
            status: status.clone(),
        };
        let arbiter = self.base.arbiters.of(id.0);
        ActorHandle { addr: CampaignRunner::start_in_arbiter(&arbiter, |_| runner), status }
    }
}

/// Ends the tracking of messages in transit, however the actor ends.
impl Drop for CampaignRunner {
    fn drop(&mut self) {
        self.forget_messages();
    }
}

impl DueWork for CampaignRunner {
    fn work_state(&mut self) -> &mut DueWorkState {
        &mut self.work_state
    }

    fn readiness(&self) -> Readiness {
        self.scope.base.readiness(self.company)
    }

    fn run_due_work(&mut self, cx: &mut Mailbox<Self>) {
        self.drop_released_holds();
        let has_been_read =
            matches!(self.state, CampaignState::Current(_) | CampaignState::Missing | CampaignState::Stale(Some(_)));
        if has_been_read && self.pending_sends.is_empty() {
            self.hold_replies.drain(..).for_each(|reply| reply.send(Ok(())));
        }
        if let Some(pause) = self.remaining_pause() {
            return self.schedule_tick(pause, cx);
        }
        let instant = clock::instant();
        let is_held = !self.holders.is_empty();
        match &self.state {
            CampaignState::Unread | CampaignState::Stale(None) => self.read(cx),
            CampaignState::Missing if !is_held && self.pending_sends.is_empty() => self.retire_if_idle(cx),
            CampaignState::Stale(Some(_)) if !is_held => self.read(cx),
            CampaignState::Current(run) if !is_held => {
                let run = run.clone();
                self.step(&run, instant, cx);
            }
            CampaignState::Missing | CampaignState::Stale(Some(_)) | CampaignState::Current(_) => {}
        }
    }

    fn publish_gauges(&mut self) {
        let gauges = &self.status.shared;
        let is_running = matches!(&self.state, CampaignState::Current(run) if run.status == CampaignStatus::Processing);
        gauges.is_running.store(usize::from(is_running && !self.work_state.is_retired()), Ordering::Relaxed);
        gauges.recipients.store(self.recipients.len(), Ordering::Relaxed);
        gauges.in_transit.store(self.in_transit.len(), Ordering::Relaxed);
    }

    /// Keeps the pending sends: their outcomes still arrive.
    fn recover(&mut self) {
        tracing::error!(company.id = %self.company, campaign.id = %self.id, "campaign failed unexpectedly; restarting it");
        self.recipients.restart();
        self.mark_stale();
        self.is_updating = false;
        self.pause(TICK);
    }

    fn leave(&mut self) {
        self.scope.hot.remove(&(self.company, self.id), &self.status);
        self.hold_replies.drain(..).for_each(|reply| reply.send(Err(Refusal::Retired)));
        self.forget_messages();
        self.publish_gauges();
    }
}

impl CampaignRunner {
    /// Marks the campaign as stale if a holder has released it: the holder may have changed it, and another message may
    /// arrive before [`CampaignChanged`].
    fn drop_released_holds(&mut self) {
        let count_before = self.holders.len();
        self.holders.retain(|holder| holder.strong_count() > 0);
        if self.holders.len() < count_before {
            self.mark_stale();
        }
    }

    /// Does what is due in the campaign's current status.
    fn step(&mut self, run: &Arc<CampaignRun>, instant: Instant, cx: &mut Mailbox<Self>) {
        match run.status {
            // Nobody could pause the campaign or opt out of it.
            CampaignStatus::Scheduled | CampaignStatus::Processing if !self.scope.base.is_active(self.company) => {
                self.schedule_tick(TICK, cx);
            }
            CampaignStatus::Scheduled => match (run.scheduled_at - now()).to_std() {
                Ok(delay) if !delay.is_zero() => self.schedule_tick(delay.min(SCHEDULED_TICK), cx),
                _ => self.start_due(cx),
            },
            CampaignStatus::Processing => match self.template_refusal {
                // A message that is being decided may be the last one: nothing would be left to resume.
                Some(_) if !self.pending_sends.is_empty() => {}
                Some(reason) => self.pause_refused(reason, cx),
                // The campaign has just started, and its template is being checked.
                None if self.is_updating => {}
                None => self.send(run, instant, cx),
            },
            CampaignStatus::Canceled => self.handle_cancellation(run, instant, cx),
            CampaignStatus::Paused | CampaignStatus::Completed if self.pending_sends.is_empty() => {
                self.retire_if_idle(cx)
            }
            CampaignStatus::Paused | CampaignStatus::Completed => {}
        }
    }

    /// Sends to recipients whose turn it is, and loads more.
    fn send(&mut self, run: &Arc<CampaignRun>, instant: Instant, cx: &mut Mailbox<Self>) {
        let mut next_tick = TICK;
        let in_transit_max = in_transit_max(run.rate_per_minute);
        while self.deciding.is_none() && self.in_transit.len().max(self.pending_sends.len()) < in_transit_max {
            let Some(next_at) = self.next_at(run, instant) else { break };
            if next_at > instant {
                next_tick = next_tick.min(next_at - instant);
                break;
            }
            let Some(presence) = self.enter() else { break };
            let Some(recipient) = self.recipients.pop_front() else { break };
            if let Some(error) = self.skip_reason(&recipient) {
                self.record_unsent(recipient, RecipientStatus::Skipped, &error);
                if self.remaining_pause().is_some() {
                    break;
                }
                continue;
            }
            if let Some(pace) = &mut self.pace {
                pace.record_send(instant);
            }
            self.send_to(run.clone(), recipient, presence, cx);
        }
        // A restarted queue would load recipients with a pending send again, so loading waits until those have an
        // outcome. Recipients whose turn is far away are not loaded yet, because their data may change by then.
        let is_turn_near = self.next_at(run, instant).is_some_and(|at| at <= instant + LOAD_AHEAD_MAX);
        let may_load = !self.recipients.is_new() || self.pending_sends.is_empty();
        if is_turn_near && may_load {
            self.load(page_size(run.rate_per_minute), run, cx);
        }
        self.verify_old(instant, cx);
        if self.recipients.is_done() && self.pending_sends.is_empty() && self.in_transit.is_empty() {
            self.complete(cx);
        }
        self.schedule_tick(next_tick, cx);
    }

    /// Why no message is sent to a recipient, as far as that is known before it is decided.
    fn skip_reason(&self, recipient: &NextRecipient) -> Option<MessageError> {
        let is_current = self.scope.in_transit.withdrawals.is_current(self.company, recipient.withdrawal_version);
        match recipient.is_opted_out && is_current {
            true => Some(MessageError::opted_out()),
            false => recipient.is_group.then(MessageError::group),
        }
    }

    /// When the rate allows the next send; `None`: not before a message in transit has arrived.
    fn next_at(&mut self, run: &CampaignRun, instant: Instant) -> Option<Instant> {
        let pace = self.pace.get_or_insert_with(|| Pace::new(run.rate_per_minute, instant, run.has_begun));
        pace.next_at(self.in_transit.len(), instant)
    }

    /// Stops tracking a message that is no longer in transit.
    fn end_transit(&mut self, message: MessageId) {
        if self.in_transit.remove(&message) {
            self.count_for_rate();
        }
    }

    /// Counts a message towards the rate.
    fn count_for_rate(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.record_arrival(clock::instant());
        }
    }

    fn send_to(&mut self, run: Arc<CampaignRun>, recipient: NextRecipient, presence: Presence, cx: &mut Mailbox<Self>) {
        self.deciding = Some(recipient.contact_id);
        self.pending_sends.insert(recipient.contact_id, None);
        let (scope, key, runner) = (self.scope.clone(), (self.company, self.id), cx.address());
        actix::spawn(async move {
            let _presence = presence;
            let outcome = send::send_to_recipient(&scope, key, &run, &recipient, &runner).await;
            runner.do_send(SendProgress::Ended { recipient, outcome });
        });
    }

    /// Begins work of the company, if it is open now.
    fn enter(&self) -> Option<Presence> {
        self.scope.base.try_enter(self.company)
    }

    fn pause(&mut self, time: Duration) {
        self.paused_until = Some(Instant::now() + time);
    }

    /// The rest of the current pause, if there is one.
    fn remaining_pause(&self) -> Option<Duration> {
        let remaining = self.paused_until?.saturating_duration_since(Instant::now());
        (!remaining.is_zero()).then_some(remaining)
    }

    /// Marks the state of the campaign as stale.
    fn mark_stale(&mut self) {
        self.version += 1;
        self.state = match std::mem::replace(&mut self.state, CampaignState::Unread) {
            CampaignState::Current(run) | CampaignState::Stale(Some(run)) => CampaignState::Stale(Some(run)),
            CampaignState::Unread | CampaignState::Missing | CampaignState::Stale(None) => CampaignState::Unread,
        };
    }

    /// Retires, unless the actor has just started and waits for its first command.
    fn retire_if_idle(&mut self, cx: &mut Mailbox<Self>) {
        if self.unused_since.is_some_and(|since| since.elapsed() < TICK) {
            return self.schedule_tick(TICK, cx);
        }
        self.retire(cx);
    }

    /// Drops the messages in transit, without a notification of their end.
    fn forget_messages(&mut self) {
        for message in self.in_transit.drain() {
            self.scope.in_transit.forget(self.company, message);
        }
    }

    /// Records the status of a recipient who is not written to, in an entry of its own.
    fn append_status(&mut self, row: RecipientRow) -> Result<(), Refusal> {
        let reservation = self.scope.base.store.log.reserve(self.company)?;
        let (seq, _) = reservation.append(vec![Change::Recipient(Box::new(row))])?;
        self.status.record_append(seq);
        Ok(())
    }
}
