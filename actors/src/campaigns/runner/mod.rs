//! The actor of a campaign: the one place that decides which recipient is written to next, and when.
//!
//! What a campaign is (its status, its rate, what it says) is in the tables, where callers change it. Who does holds the
//! campaign meanwhile ([`Hold`]): the actor writes to nobody, and has told what became of everyone it was writing to. When
//! it is let go it reads the campaign anew. So a pause is answered after the last message of the campaign was decided.
//!
//! A recipient is written to by their conversation, as by every other message; that they were is in the same entry of the
//! log. They are decided one after the other, so in order; their entries become durable together. A few of a campaign's
//! messages are on their way to their provider at once: so none waits there long, and who cancels takes them back.

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

pub(crate) use self::commands::{Changed, Hold, Withdraw};
use self::outcomes::HasLeft;
use super::line::{Line, NextRecipient, page_of};
use super::pace::Pace;
use crate::Refusal;
use crate::answers::ReplyTo;
use crate::base::Base;
use crate::channels::InTransit;
use crate::clock::now;
use crate::engine::{Contacts, Sending};
use crate::registry::{ActorHandle, ActorStatus, Registered, Registry};

/// Messages of a campaign that are decided, and that their provider does not have yet: what one channel is given at once.
const UNDER_WAY_MAX: usize = 64;

/// Longest before their turn that recipients are read.
const AHEAD_MAX: Duration = Duration::from_secs(10);

/// Longest between two looks at a campaign that is sent.
const TICK: Duration = Duration::from_secs(1);

/// Longest between two looks at the clock of one whose time has not come: a clock that is set is seen as soon as that.
const SCHEDULED_TICK: Duration = Duration::from_secs(5);

/// How often the tables are asked of messages that have been on their way for as long: one may have gone with its contact.
const VERIFY_EVERY: Duration = Duration::from_secs(30);

/// Pause before what an outage kept is tried again.
const OUTAGE_PAUSE: Duration = Duration::from_millis(2500);

/// What the campaigns' actors share, and which of them are there.
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

/// How a campaign is getting on, about now.
#[derive(Debug, Default)]
pub struct CampaignFigures {
    /// 1 while it is sent.
    pub is_sent: AtomicUsize,
    /// Recipients at hand.
    pub held: AtomicUsize,
    /// Messages that are decided, and that their provider does not have yet.
    pub under_way: AtomicUsize,
}

/// A campaign.
pub struct CampaignRunner {
    scope: Arc<CampaignScope>,
    company: CompanyId,
    id: CampaignId,
    /// As it was read last.
    known: Known,
    /// Grows when it may have changed: what a read says that was begun before is not enough.
    version: u64,
    is_reading: bool,
    /// Whoever holds it, for as long as they live.
    holders: Vec<Weak<()>>,
    /// Those of them who wait for what is on its way to be decided.
    waiting: Vec<ReplyTo<()>>,
    line: Line,
    pace: Option<Pace>,
    /// Who is being decided: the next one waits for that.
    deciding: Option<ContactId>,
    /// Those of whom it is not known what became of them.
    leaving: HashSet<ContactId>,
    /// Messages their provider does not have.
    in_transit: HashSet<MessageId>,
    /// Those of them that were there when the tables were last asked, and when that was.
    verified: (HashSet<MessageId>, Instant),
    /// A statement changes the campaign itself.
    is_busy: bool,
    /// Nobody is left who was not written to before it was canceled.
    is_called_off: bool,
    rests_until: Option<Instant>,
    alarm: Option<SpawnHandle>,
    /// When it began, until somebody has asked it something: by then it is in the registry, and may leave that.
    is_new_since: Option<Instant>,
    life: Arc<ActorStatus<CampaignFigures>>,
    retired: bool,
}

/// What is known of a campaign.
enum Known {
    /// Nothing yet.
    Nothing,
    /// It was this; it may have changed.
    Stale(Option<Arc<CampaignRun>>),
    /// It is this.
    Run(Arc<CampaignRun>),
    /// It is gone.
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
        let life = Arc::new(ActorStatus::<CampaignFigures>::default());
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
            verified: (HashSet::new(), Instant::now()),
            is_busy: false,
            is_called_off: false,
            rests_until: None,
            alarm: None,
            is_new_since: Some(Instant::now()),
            life: life.clone(),
            retired: false,
        };
        let home = self.base.arbiters.of(id.0);
        ActorHandle { addr: CampaignRunner::start_in_arbiter(&home, |_| runner), life }
    }
}

/// However it ends: nobody tells it of messages any more.
impl Drop for CampaignRunner {
    fn drop(&mut self) {
        self.forget_messages();
    }
}

impl CampaignRunner {
    /// Does something, and then what follows of it. A panic is a defect: what was in memory is thrown away, and read again
    /// from the tables. Those who are on their way still are known apart from that.
    fn guarded(&mut self, cx: &mut Mailbox<Self>, work: impl FnOnce(&mut Self, &mut Mailbox<Self>)) {
        let done = catch_unwind(AssertUnwindSafe(|| {
            work(self, cx);
            self.round(cx);
            self.show();
        }));
        if done.is_err() {
            tracing::error!(company.id = %self.company, campaign.id = %self.id, "a campaign met a defect");
            self.line.begin_anew();
            self.outdated();
            self.is_busy = false;
            self.rest(TICK);
            self.ring_in(TICK, cx);
        }
    }

    /// Goes on with what is to be done now, and says when to look again.
    fn round(&mut self, cx: &mut Mailbox<Self>) {
        if self.retired || self.scope.base.is_stopping() {
            return;
        }
        // It may come back.
        if !self.scope.base.owns(self.company) {
            return self.ring_in(TICK, cx);
        }
        self.holders.retain(|holder| holder.strong_count() > 0);
        let has_been_read = matches!(self.known, Known::Run(_) | Known::Gone | Known::Stale(Some(_)));
        if has_been_read && self.leaving.is_empty() {
            self.waiting.drain(..).for_each(|waiting| waiting.give(Ok(())));
        }
        let clock = Instant::now();
        if let Some(until) = self.rests_until.filter(|until| *until > clock) {
            return self.ring_in(until - clock, cx);
        }
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

    /// Writes to those whose turn it is, and has more read.
    fn send(&mut self, run: &Arc<CampaignRun>, clock: Instant, cx: &mut Mailbox<Self>) {
        let mut again_in = TICK;
        let mut pace = *self.pace.get_or_insert_with(|| Pace::new(run.rate_per_minute, clock, run.has_begun));
        while self.deciding.is_none() && self.in_transit.len().max(self.leaving.len()) < UNDER_WAY_MAX {
            if pace.next_at() > clock {
                again_in = again_in.min(pace.next_at() - clock);
                break;
            }
            let Some(presence) = self.enter() else { break };
            let Some(recipient) = self.line.next() else { break };
            if recipient.is_opted_out {
                self.pass_over(recipient, RecipientStatus::Skipped, &MessageError::opted_out());
                if self.rests_until.is_some_and(|until| until > clock) {
                    break;
                }
                continue;
            }
            pace.used(clock);
            self.write_to(run.clone(), recipient, presence, cx);
        }
        self.pace = Some(pace);
        // A new line has those who are on their way still, until it is known what became of them.
        // Of those whose turn is far away, what is known now is not what counts then.
        let is_soon = pace.next_at() <= clock + AHEAD_MAX;
        if is_soon && (!self.line.is_new() || self.leaving.is_empty()) {
            self.load(page_of(run.rate_per_minute), run, cx);
        }
        self.verify_old(clock, cx);
        if self.line.is_done() && self.leaving.is_empty() && self.in_transit.is_empty() {
            self.complete(cx);
        }
        self.ring_in(again_in, cx);
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

    /// Begins work of the company, if it is served now.
    fn enter(&self) -> Option<Presence> {
        self.scope.base.store.ownership().try_enter(self.company)
    }

    fn rest(&mut self, time: Duration) {
        self.rests_until = Some(Instant::now() + time);
    }

    /// What is known of the campaign may have changed.
    fn outdated(&mut self) {
        self.version += 1;
        self.known = match std::mem::replace(&mut self.known, Known::Nothing) {
            Known::Run(run) | Known::Stale(Some(run)) => Known::Stale(Some(run)),
            Known::Nothing | Known::Gone | Known::Stale(None) => Known::Nothing,
        };
    }

    /// Another round after this time, and no other one before by itself.
    fn ring_in(&mut self, time: Duration, cx: &mut Mailbox<Self>) {
        if let Some(alarm) = self.alarm.take() {
            cx.cancel_future(alarm);
        }
        let ring = |this: &mut Self, cx: &mut Mailbox<Self>| this.guarded(cx, |this, _| this.alarm = None);
        self.alarm = Some(cx.run_later(time, ring));
    }

    /// Ends, as nothing is to be done.
    fn make_room(&mut self, cx: &mut Mailbox<Self>) {
        if self.is_new_since.is_some_and(|since| since.elapsed() < TICK) {
            return self.ring_in(TICK, cx);
        }
        self.retire();
    }

    /// Leaves the registry; whoever still comes is sent to the successor.
    fn retire(&mut self) {
        self.retired = true;
        self.scope.hot.remove(&(self.company, self.id), &self.life);
        self.waiting.drain(..).for_each(|waiting| waiting.give(Err(Refusal::Gone)));
        self.forget_messages();
        self.show();
    }

    fn forget_messages(&mut self) {
        for message in self.in_transit.drain() {
            self.scope.in_transit.forget(self.company, message);
        }
    }

    /// Settles a recipient who is not written to, in an entry of its own.
    fn append(&mut self, row: RecipientRow) -> Result<(), Refusal> {
        let place = self.scope.base.store.log.reserve(self.company)?;
        let (seq, _) = place.append(vec![Change::Recipient(Box::new(row))])?;
        self.life.appended(seq);
        Ok(())
    }

    fn show(&self) {
        let shown = &self.life.shared;
        let is_sent = matches!(&self.known, Known::Run(run) if run.status == CampaignStatus::Processing);
        shown.is_sent.store(usize::from(is_sent && !self.retired), Ordering::Relaxed);
        shown.held.store(self.line.len(), Ordering::Relaxed);
        shown.under_way.store(self.in_transit.len(), Ordering::Relaxed);
    }
}
