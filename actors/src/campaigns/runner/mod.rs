//! The actor of a campaign: the one place that decides which recipient is written to next, and when.
//!
//! The campaign itself (its status, rate and content) is in the tables, where callers change it. A caller holds the
//! campaign meanwhile ([`Hold`]): the actor pauses, and the hold is acknowledged when the outcome of every recipient
//! under way is known. On release the actor reads the campaign again. So a pause is acknowledged after the campaign's
//! last message was decided.
//!
//! A message to a recipient goes through their conversation like any other, and the recipient's new status is in the
//! same entry of the log. Recipients are decided one at a time, in order; their entries become durable together. Only a
//! few messages of a campaign are in transit at once: so none waits long. Whether a contact wants campaigns, and whether the
//! campaign was canceled, is looked at when a message is decided and again before each call of its provider.

mod commands;
mod leaving;
mod outcomes;
mod readings;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context as Mailbox, SpawnHandle};
use hotline_persistence::tables::campaigns::{CampaignRun, CampaignStatus, RecipientRow, RecipientStatus};
use hotline_persistence::tables::messages::MessageError;
use hotline_persistence::{CampaignId, Change, CompanyId, ContactId, MessageId, Presence};

pub(crate) use self::commands::{Changed, Hold};
use self::outcomes::HasLeft;
use super::line::{Line, NextRecipient, page_of};
use super::pace::{Pace, under_way_max};
use crate::Refusal;
use crate::answers::ReplyTo;
use crate::base::Base;
use crate::channels::InTransit;
use crate::clock::{self, now};
use crate::engine::{Contacts, Sending};
use crate::registry::{ActorHandle, ActorStatus, Registered, Registry};

/// How long before their turn recipients are loaded, at most.
const AHEAD_MAX: Duration = Duration::from_secs(10);

/// Maximum time between two rounds of a running campaign.
const TICK: Duration = Duration::from_secs(1);

/// Maximum time between two looks at the clock of a scheduled campaign, so that a clock change is noticed.
const SCHEDULED_TICK: Duration = Duration::from_secs(5);

/// How often long-standing messages in transit are looked up in the tables: one may have been deleted with its contact.
const VERIFY_EVERY: Duration = Duration::from_secs(30);

/// Pause before a retry after an outage.
const OUTAGE_PAUSE: Duration = Duration::from_millis(2500);

/// State shared by the campaigns' actors, and the registry of them.
pub(crate) struct CampaignScope {
    pub(crate) base: Arc<Base>,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) sending: Arc<Sending>,
    pub(crate) in_transit: Arc<InTransit>,
    pub(crate) hot: Registry<(CompanyId, CampaignId), CampaignRunner>,
    pub(crate) handed_over: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// Approximate figures of a campaign.
#[derive(Debug, Default)]
pub struct CampaignFigures {
    /// 1 while it is running.
    pub is_sent: AtomicUsize,
    /// Recipients in memory.
    pub held: AtomicUsize,
    /// Messages that are decided but not yet with their provider.
    pub under_way: AtomicUsize,
}

/// The actor of a campaign.
pub struct CampaignRunner {
    scope: Arc<CampaignScope>,
    company: CompanyId,
    id: CampaignId,
    /// The campaign as last read.
    known: Known,
    /// Incremented when the campaign may have changed: a read that began earlier is then stale.
    version: u64,
    is_reading: bool,
    /// The holders of the campaign, for as long as they live.
    holders: Vec<Weak<()>>,
    /// Holders that wait until everything under way is decided.
    waiting: Vec<ReplyTo<()>>,
    line: Line,
    pace: Option<Pace>,
    /// The recipient being decided: the next one waits for this.
    deciding: Option<ContactId>,
    /// Recipients whose outcome is not known yet.
    leaving: HashSet<ContactId>,
    /// Messages that their provider does not have yet.
    in_transit: HashSet<MessageId>,
    /// The messages in transit at the last verification, and its time.
    verified: (HashSet<MessageId>, Instant),
    /// Whether a statement that changes the campaign is under way.
    is_busy: bool,
    /// Whether all recipients that were pending at the cancellation have been skipped.
    is_called_off: bool,
    rests_until: Option<Instant>,
    alarm: Option<SpawnHandle>,
    /// The start time, until the first command arrives: by then the actor is registered, and may leave the registry.
    is_new_since: Option<Instant>,
    status: Arc<ActorStatus<CampaignFigures>>,
    retired: bool,
}

/// The cached state of a campaign.
enum Known {
    /// Not read yet.
    Nothing,
    /// The state as last read, which may have changed.
    Stale(Option<Arc<CampaignRun>>),
    /// The current state.
    Run(Arc<CampaignRun>),
    /// The campaign does not exist.
    Gone,
}

impl Actor for CampaignRunner {
    type Context = Mailbox<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        self.guarded(cx, |_, _| ());
    }
}

impl Registered for CampaignRunner {
    type Shared = CampaignFigures;
}

impl CampaignScope {
    /// Starts a campaign's actor.
    pub(crate) fn start(self: &Arc<Self>, company: CompanyId, id: CampaignId) -> ActorHandle<CampaignRunner> {
        let status = Arc::new(ActorStatus::<CampaignFigures>::default());
        let runner = CampaignRunner {
            scope: self.clone(),
            company,
            id,
            known: Known::Nothing,
            version: 0,
            is_reading: false,
            holders: Vec::new(),
            waiting: Vec::new(),
            line: Line::default(),
            pace: None,
            deciding: None,
            leaving: HashSet::new(),
            in_transit: HashSet::new(),
            verified: (HashSet::new(), clock::instant()),
            is_busy: false,
            is_called_off: false,
            rests_until: None,
            alarm: None,
            is_new_since: Some(Instant::now()),
            status: status.clone(),
            retired: false,
        };
        let home = self.base.arbiters.of(id.0);
        ActorHandle { addr: CampaignRunner::start_in_arbiter(&home, |_| runner), status }
    }
}

/// Stops notifications of messages, however the actor ends.
impl Drop for CampaignRunner {
    fn drop(&mut self) {
        self.forget_messages();
    }
}

impl CampaignRunner {
    /// Runs `work`, and then a round. A panic is a defect: the state in memory is dropped and read again from the
    /// tables. Recipients under way are tracked independently of it.
    fn guarded(&mut self, cx: &mut Mailbox<Self>, work: impl FnOnce(&mut Self, &mut Mailbox<Self>)) {
        let done = catch_unwind(AssertUnwindSafe(|| {
            work(self, cx);
            self.round(cx);
            self.show();
        }));
        if done.is_err() {
            tracing::error!(company.id = %self.company, campaign.id = %self.id, "campaign failed unexpectedly; restarting it");
            self.line.begin_anew();
            self.outdated();
            self.is_busy = false;
            self.rest(TICK);
            self.ring_in(TICK, cx);
        }
    }

    /// Does what is due now, and sets the timer of the next round.
    fn round(&mut self, cx: &mut Mailbox<Self>) {
        if self.retired || self.scope.base.is_stopping() {
            return;
        }
        // The company may come back.
        if !self.scope.base.owns(self.company) {
            return self.ring_in(TICK, cx);
        }
        self.notice_releases();
        let has_been_read = matches!(self.known, Known::Run(_) | Known::Gone | Known::Stale(Some(_)));
        if has_been_read && self.leaving.is_empty() {
            self.waiting.drain(..).for_each(|waiting| waiting.give(Ok(())));
        }
        if let Some(left) = self.rests_for() {
            return self.ring_in(left, cx);
        }
        let clock = clock::instant();
        let is_held = !self.holders.is_empty();
        match &self.known {
            Known::Nothing | Known::Stale(None) => self.read(cx),
            Known::Gone if !is_held && self.leaving.is_empty() => self.make_room(cx),
            Known::Stale(Some(_)) if !is_held => self.read(cx),
            Known::Run(run) if !is_held => {
                let run = run.clone();
                self.go_on(&run, clock, cx);
            }
            Known::Gone | Known::Stale(Some(_)) | Known::Run(_) => {}
        }
    }

    /// Whoever has let go may have changed the campaign: what was read before that is not enough, whichever message comes
    /// between their release and [`Changed`].
    fn notice_releases(&mut self) {
        let held_by = self.holders.len();
        self.holders.retain(|holder| holder.strong_count() > 0);
        if self.holders.len() < held_by {
            self.outdated();
        }
    }

    fn go_on(&mut self, run: &Arc<CampaignRun>, clock: Instant, cx: &mut Mailbox<Self>) {
        match run.status {
            CampaignStatus::Scheduled => match (run.scheduled_at - now()).to_std() {
                Ok(left) if !left.is_zero() => self.ring_in(left.min(SCHEDULED_TICK), cx),
                _ => self.start_due(cx),
            },
            CampaignStatus::Processing => self.send(run, clock, cx),
            CampaignStatus::Canceled => self.call_off(run, cx),
            CampaignStatus::Paused | CampaignStatus::Completed if self.leaving.is_empty() => self.make_room(cx),
            CampaignStatus::Paused | CampaignStatus::Completed => {}
        }
    }

    /// Sends to recipients whose turn it is, and loads more.
    fn send(&mut self, run: &Arc<CampaignRun>, clock: Instant, cx: &mut Mailbox<Self>) {
        let mut again_in = TICK;
        let under_way_max = under_way_max(run.rate_per_minute);
        while self.deciding.is_none() && self.in_transit.len().max(self.leaving.len()) < under_way_max {
            let Some(next_at) = self.next_at(run, clock) else { break };
            if next_at > clock {
                again_in = again_in.min(next_at - clock);
                break;
            }
            let Some(presence) = self.enter() else { break };
            let Some(recipient) = self.line.next() else { break };
            let is_current = self.scope.in_transit.withdrawals.is_current(self.company, recipient.looked);
            if recipient.is_opted_out && is_current {
                self.pass_over(recipient, RecipientStatus::Skipped, &MessageError::opted_out());
                if self.rests_for().is_some() {
                    break;
                }
                continue;
            }
            if let Some(pace) = &mut self.pace {
                pace.used(clock);
            }
            self.write_to(run.clone(), recipient, presence, cx);
        }
        // A restarted line would include recipients under way, so loading waits until their outcome is known.
        // Recipients whose turn is far away are not loaded yet, because their data may change by then.
        let is_soon = self.next_at(run, clock).is_some_and(|at| at <= clock + AHEAD_MAX);
        if is_soon && (!self.line.is_new() || self.leaving.is_empty()) {
            self.load(page_of(run.rate_per_minute), run, cx);
        }
        self.verify_old(clock, cx);
        if self.line.is_done() && self.leaving.is_empty() && self.in_transit.is_empty() {
            self.complete(cx);
        }
        self.ring_in(again_in, cx);
    }

    /// When the rate allows the next one; none: not before a message has arrived.
    fn next_at(&mut self, run: &CampaignRun, clock: Instant) -> Option<Instant> {
        let pace = self.pace.get_or_insert_with(|| Pace::new(run.rate_per_minute, clock, run.has_begun));
        pace.next_at(self.in_transit.len(), clock)
    }

    /// A message is not on its way any more.
    fn has_arrived(&mut self, message: MessageId) {
        if self.in_transit.remove(&message) {
            self.counts();
        }
    }

    /// A message counts for the rate.
    fn counts(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.arrived(clock::instant());
        }
    }

    fn write_to(
        &mut self,
        run: Arc<CampaignRun>,
        recipient: NextRecipient,
        presence: Presence,
        cx: &mut Mailbox<Self>,
    ) {
        self.deciding = Some(recipient.contact_id);
        self.leaving.insert(recipient.contact_id);
        let (scope, key, home) = (self.scope.clone(), (self.company, self.id), cx.address());
        actix::spawn(async move {
            let _presence = presence;
            home.do_send(HasLeft(leaving::leave(scope, key, run, recipient, home.clone()).await));
        });
    }

    /// Enters the company's door, if it is open now.
    fn enter(&self) -> Option<Presence> {
        self.scope.base.store.ownership().try_enter(self.company)
    }

    fn rest(&mut self, time: Duration) {
        self.rests_until = Some(Instant::now() + time);
    }

    /// How much longer it rests, if it does.
    fn rests_for(&self) -> Option<Duration> {
        let left = self.rests_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Marks the state of the campaign as stale.
    fn outdated(&mut self) {
        self.version += 1;
        self.known = match std::mem::replace(&mut self.known, Known::Nothing) {
            Known::Run(run) | Known::Stale(Some(run)) => Known::Stale(Some(run)),
            Known::Nothing | Known::Gone | Known::Stale(None) => Known::Nothing,
        };
    }

    /// Sets the timer of the next round, and replaces an earlier one.
    fn ring_in(&mut self, time: Duration, cx: &mut Mailbox<Self>) {
        if let Some(alarm) = self.alarm.take() {
            cx.cancel_future(alarm);
        }
        let ring = |this: &mut Self, cx: &mut Mailbox<Self>| this.guarded(cx, |this, _| this.alarm = None);
        self.alarm = Some(cx.run_later(time, ring));
    }

    /// Retires, because nothing is left to do.
    fn make_room(&mut self, cx: &mut Mailbox<Self>) {
        if self.is_new_since.is_some_and(|since| since.elapsed() < TICK) {
            return self.ring_in(TICK, cx);
        }
        self.retire();
    }

    /// Leaves the registry; later callers reach the successor.
    fn retire(&mut self) {
        self.retired = true;
        self.scope.hot.remove(&(self.company, self.id), &self.status);
        self.waiting.drain(..).for_each(|waiting| waiting.give(Err(Refusal::Gone)));
        self.forget_messages();
        self.show();
    }

    fn forget_messages(&mut self) {
        for message in self.in_transit.drain() {
            self.scope.in_transit.forget(self.company, message);
        }
    }

    /// Records the status of a recipient who is not written to, in an entry of its own.
    fn append(&mut self, row: RecipientRow) -> Result<(), Refusal> {
        let place = self.scope.base.store.log.reserve(self.company)?;
        let (seq, _) = place.append(vec![Change::Recipient(Box::new(row))])?;
        self.status.appended(seq);
        Ok(())
    }

    fn show(&self) {
        let shown = &self.status.shared;
        let is_sent = matches!(&self.known, Known::Run(run) if run.status == CampaignStatus::Processing);
        shown.is_sent.store(usize::from(is_sent && !self.retired), Ordering::Relaxed);
        shown.held.store(self.line.len(), Ordering::Relaxed);
        shown.under_way.store(self.in_transit.len(), Ordering::Relaxed);
    }
}
