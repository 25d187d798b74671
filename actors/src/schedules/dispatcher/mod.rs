//! The actor of a company's scheduled messages: the one place that decides of each of them whether it leaves now or is
//! changed or canceled. So nobody is answered that a message is canceled which leaves all the same.
//!
//! A message leaves by its conversation, as every other one; that it has left is in the same entry of the log. While it
//! is on its way out whoever would change it waits. The actor looks at the clock at least once a second: a clock that
//! is set, or a machine that slept, is seen as soon as that.

mod commands;
mod leaving;
mod outcomes;
mod readings;

use std::collections::{HashMap, HashSet};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context as Mailbox, Handler, SpawnHandle};
use chrono::{DateTime, Utc};
use hotline_persistence::tables::schedules::{ScheduleRow, ScheduleStatus};
use hotline_persistence::{Change, CompanyId, Durable, Presence, ScheduleId};

use self::outcomes::HasLeft;
use super::agenda::{AHEAD_MIN, Agenda, Look, Waiting};
use crate::Refusal;
use crate::base::Base;
use crate::clock::now;
use crate::engine::Sending;
use crate::registry::{ActorHandle, ActorStatus, Registered, Registry};
use crate::tickets::Dismiss;

/// Longest between two looks at the clock.
const TICK: Duration = Duration::from_secs(1);

/// Messages of a company that leave at once: enough to share the journal's syncs, and that some who wait for the
/// database hold up no others.
const LEAVING_MAX: usize = 256;

/// Pause before what an outage kept is tried again: half of what a message may be late.
pub(super) const OUTAGE_PAUSE: Duration = Duration::from_millis(2500);

/// Messages it is looked up for: their conversations stay in memory.
pub(super) const LOOK_AHEAD_MAX: usize = 2000;

/// How often the figures are counted.
const COUNT_EVERY: Duration = Duration::from_millis(500);

/// How long a company without anything scheduled keeps its actor.
const IDLE_AFTER_S: u64 = 60;

/// What the companies' dispatchers share, and which of them are there.
pub(crate) struct ScheduleScope {
    pub(crate) base: Arc<Base>,
    pub(crate) sending: Arc<Sending>,
    pub(crate) hot: Registry<CompanyId, ScheduleDispatcher>,
    pub(crate) sent: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// What waits in a company, about now.
#[derive(Debug, Default)]
pub struct ScheduleFigures {
    /// Pending ones in memory.
    pub held: AtomicUsize,
    /// Those whose time has come.
    pub due: AtomicUsize,
    /// Those whose time came more than five seconds ago.
    pub late: AtomicUsize,
}

/// A company's scheduled messages.
pub struct ScheduleDispatcher {
    pub(super) scope: Arc<ScheduleScope>,
    pub(super) company: CompanyId,
    pub(super) agenda: Agenda,
    /// Those that are on their way out: known apart from the agenda, which may begin anew.
    pub(super) leaving: HashSet<ScheduleId>,
    /// Who waits for one that is on its way out, or is being read.
    pub(super) waiting: HashMap<ScheduleId, Vec<Task>>,
    /// Grows when the agenda begins anew: what was read for the one before is of no use.
    pub(super) generation: u64,
    pub(super) is_loading: bool,
    pub(super) loads_after: Option<Instant>,
    pub(super) looking: Ahead,
    alarm: Option<SpawnHandle>,
    counted_at: Option<Instant>,
    pub(super) life: Arc<ActorStatus<ScheduleFigures>>,
    pub(super) retired: bool,
}

/// What will be looked up ahead.
#[derive(Default)]
pub(super) struct Ahead {
    pub(super) is_under_way: bool,
    pub(super) next: Vec<Arc<ScheduleRow>>,
    pub(super) all_at: Option<Instant>,
}

/// What somebody wants of one scheduled message, once it is known and not on its way out.
pub(super) type Task = Box<dyn FnOnce(&mut ScheduleDispatcher, Result<Arc<ScheduleRow>, Refusal>) + Send>;

impl Actor for ScheduleDispatcher {
    type Context = Mailbox<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        self.guarded(cx, |_, _| ());
    }
}

impl Registered for ScheduleDispatcher {
    type Shared = ScheduleFigures;
}

impl ScheduleScope {
    /// Starts a company's actor.
    pub(crate) fn start(self: &Arc<Self>, company: CompanyId) -> ActorHandle<ScheduleDispatcher> {
        let life = Arc::new(ActorStatus::<ScheduleFigures>::default());
        let dispatcher = ScheduleDispatcher {
            scope: self.clone(),
            company,
            agenda: Agenda::default(),
            leaving: HashSet::new(),
            waiting: HashMap::new(),
            generation: 0,
            is_loading: false,
            loads_after: None,
            looking: Ahead::default(),
            alarm: None,
            counted_at: None,
            life: life.clone(),
            retired: false,
        };
        let home = self.base.arbiters.of(company.0);
        ActorHandle { addr: ScheduleDispatcher::start_in_arbiter(&home, |_| dispatcher), life }
    }
}

/// However it ends: nothing waits here any more.
impl Drop for ScheduleDispatcher {
    fn drop(&mut self) {
        self.count(Waiting::default());
    }
}

impl ScheduleDispatcher {
    /// Does something, and then what follows of it. A panic is a defect: what was in memory is thrown away, and read
    /// again from the tables.
    pub(super) fn guarded(&mut self, cx: &mut Mailbox<Self>, work: impl FnOnce(&mut Self, &mut Mailbox<Self>)) {
        let done = catch_unwind(AssertUnwindSafe(|| {
            work(self, cx);
            self.round(cx);
        }));
        if done.is_err() {
            tracing::error!(company.id = %self.company, "a company's scheduled messages met a defect");
            self.begin_anew();
            self.loads_after = Some(Instant::now() + TICK);
            self.ring_in(TICK, cx);
        }
    }

    fn begin_anew(&mut self) {
        self.agenda = Agenda::default();
        for task in mem::take(&mut self.waiting).into_values().flatten() {
            task(self, Err(Refusal::Gone));
        }
        self.generation += 1;
        self.is_loading = false;
        self.looking = Ahead::default();
    }

    /// Whether something that was read is of use still.
    pub(super) fn is_current(&self, generation: u64) -> bool {
        generation == self.generation && !self.retired
    }

    /// Lets what is due leave, has more loaded, and says when to look again.
    fn round(&mut self, cx: &mut Mailbox<Self>) {
        if self.retired || self.scope.base.is_stopping() {
            return;
        }
        // It may come back.
        if !self.scope.base.owns(self.company) {
            return self.ring_in(TICK, cx);
        }
        let (now, clock) = (now(), Instant::now());
        while self.leaving.len() < LEAVING_MAX
            && let Some(presence) = self.enter()
            && let Some(row) = self.agenda.leave(now, clock)
        {
            // Of a start before a defect one may be on its way still: what became of it comes first.
            if self.leaving.insert(row.id) {
                let (scope, home) = (self.scope.clone(), cx.address());
                actix::spawn(async move {
                    let _presence = presence;
                    home.do_send(HasLeft(leaving::leave(scope, row).await));
                });
            }
        }
        self.load(now, clock, cx);
        self.look_ahead(now, clock, cx);
        self.show(now, clock);
        if self.agenda.is_done() && self.leaving.is_empty() && self.waiting.is_empty() {
            match self.life.idle_s() {
                IDLE_AFTER_S.. => self.retire(),
                idle_s => self.ring_in(Duration::from_secs(IDLE_AFTER_S - idle_s), cx),
            }
            return;
        }
        let (due, rested) = self.agenda.next();
        let due = due.filter(|_| self.leaving.len() < LEAVING_MAX);
        let due = due.map(|at| (at - now).to_std().unwrap_or(Duration::ZERO));
        let rested = rested.map(|at| at.saturating_duration_since(clock));
        let soonest = [due, rested].into_iter().flatten().min().unwrap_or(TICK);
        self.ring_in(soonest.min(TICK), cx);
    }

    /// Begins work of the company, if it is served now.
    pub(super) fn enter(&self) -> Option<Presence> {
        self.scope.base.store.ownership().try_enter(self.company)
    }

    /// Another round after this time, and no other one before by itself.
    fn ring_in(&mut self, time: Duration, cx: &mut Mailbox<Self>) {
        if let Some(alarm) = self.alarm.take() {
            cx.cancel_future(alarm);
        }
        let ring = |this: &mut Self, cx: &mut Mailbox<Self>| this.guarded(cx, |this, _| this.alarm = None);
        self.alarm = Some(cx.run_later(time, ring));
    }

    /// Leaves the registry; whoever still comes is sent to the successor.
    fn retire(&mut self) {
        self.retired = true;
        self.scope.hot.remove(&self.company, &self.life);
    }

    fn show(&mut self, now: DateTime<Utc>, clock: Instant) {
        if self.counted_at.is_none_or(|at| clock.saturating_duration_since(at) >= COUNT_EVERY) {
            self.counted_at = Some(clock);
            self.count(self.agenda.waiting(now));
        }
    }

    fn count(&self, waiting: Waiting) {
        let shown = &self.life.shared;
        shown.held.store(waiting.held, Ordering::Relaxed);
        shown.due.store(waiting.due, Ordering::Relaxed);
        shown.late.store(waiting.late, Ordering::Relaxed);
    }

    /// Makes a message what it now is, in an entry of its own.
    pub(super) fn append(
        &mut self,
        row: Arc<ScheduleRow>,
        attached: impl FnOnce() -> Vec<Change>,
    ) -> Result<Durable, Refusal> {
        let place = self.scope.base.store.log.reserve(self.company)?;
        let mut changes = vec![Change::Schedule(Box::new(ScheduleRow::clone(&row)))];
        changes.extend(attached());
        let (seq, durable) = place.append(changes)?;
        self.life.appended(seq);
        let is_soon = row.status == ScheduleStatus::Pending && row.send_at <= now() + AHEAD_MIN;
        if is_soon && self.looking.next.len() < LOOK_AHEAD_MAX {
            self.looking.next.push(row.clone());
        }
        self.agenda.decided(row);
        Ok(durable)
    }

    /// Does something with a message once it is known and not on its way out.
    pub(super) fn with(&mut self, id: ScheduleId, cx: &mut Mailbox<Self>, task: Task) {
        if self.retired {
            return task(self, Err(Refusal::Gone));
        }
        match self.agenda.look(id) {
            Look::Settled(row) if !self.leaving.contains(&id) => task(self, Ok(row)),
            Look::Unknown if !self.leaving.contains(&id) => self.fetch(id, cx, task),
            _ => self.waiting.entry(id).or_default().push(task),
        }
    }
}

/// Sends nothing more, and answers nobody: the company is dropped from memory.
impl Handler<Dismiss> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, Dismiss { gone }: Dismiss, cx: &mut Self::Context) {
        self.retire();
        self.begin_anew();
        self.count(Waiting::default());
        if let Some(alarm) = self.alarm.take() {
            cx.cancel_future(alarm);
        }
        // Whoever waited may have given up.
        let _ = gone.send(());
    }
}
