//! The actor of a company's scheduled messages. It serializes sending, changing and canceling each of them, so that no
//! message is sent after its cancellation was acknowledged.
//!
//! A message is sent through its conversation like any other, and its new status is in the same entry of the log. While
//! it is being sent, changes wait. The actor reads the clock at least once a second, so that a clock change or a
//! suspended machine is noticed within that time.

mod commands;
mod outcomes;
mod send;
mod tables;

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context as Mailbox, Handler};
use chrono::{DateTime, Utc};
use hotline_persistence::tables::schedules::{ScheduleRow, ScheduleStatus};
use hotline_persistence::{Change, CompanyId, Durable, Presence, ScheduleId};

use self::outcomes::DispatchEnded;
use super::agenda::{Agenda, HORIZON_MIN, MessageLookup, ScheduleCounts};
use super::messages::ReloadAgenda;
use crate::Refusal;
use crate::base::Base;
use crate::base::due_work::{DueWork, DueWorkState, Readiness, TICK};
use crate::clock::now;
use crate::registry::{ActorHandle, ActorStatus, Dismiss, Registered, Registry};
use crate::services::{Contacts, Sending};

/// Maximum messages of a company that are sent concurrently: enough to share the journal's syncs, and enough that
/// messages that wait for the database do not block the others.
const CONCURRENT_SENDS_MAX: usize = 256;

/// Pause before a retry after an outage: half of the time by which a message may be late.
pub(super) const OUTAGE_PAUSE: Duration = Duration::from_millis(2500);

/// Maximum messages for which data is prefetched: their conversations stay in memory.
pub(super) const PREFETCH_MAX: usize = 2000;

/// Interval between updates of the gauges.
const COUNT_EVERY: Duration = Duration::from_millis(500);

/// How long the actor of a company without scheduled messages stays, in seconds.
const IDLE_AFTER_S: u64 = 60;

/// State shared by the companies' dispatchers, and their registry.
pub(crate) struct ScheduleScope {
    pub(crate) base: Arc<Base>,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) sending: Arc<Sending>,
    pub(crate) hot: Registry<CompanyId, ScheduleDispatcher>,
    /// Messages sent since the process started.
    pub(crate) sent: AtomicU64,
    /// Messages that have failed since the process started.
    pub(crate) failed: AtomicU64,
}

/// Approximate gauges of a company, for metrics.
#[derive(Debug, Default)]
pub struct ScheduleGauges {
    /// Pending messages in memory.
    pub pending: AtomicUsize,
    /// Messages that are due.
    pub due: AtomicUsize,
    /// Messages that have been due for more than five seconds.
    pub late: AtomicUsize,
}

/// The actor of a company's scheduled messages.
pub struct ScheduleDispatcher {
    pub(super) scope: Arc<ScheduleScope>,
    pub(super) company: CompanyId,
    pub(super) agenda: Agenda,
    /// Messages being sent; tracked apart from the agenda, which may be restarted.
    pub(super) pending_sends: HashSet<ScheduleId>,
    /// Tasks that wait for a message that is being sent or read.
    pub(super) tasks: HashMap<ScheduleId, Vec<Task>>,
    /// Incremented when the agenda restarts: results of earlier reads are then ignored.
    pub(super) generation: u64,
    pub(super) is_loading: bool,
    pub(super) load_paused_until: Option<Instant>,
    pub(super) prefetch: PrefetchState,
    work_state: DueWorkState,
    counted_at: Option<Instant>,
    pub(super) status: Arc<ActorStatus<ScheduleGauges>>,
}

/// The state of prefetching the data that messages will need.
#[derive(Default)]
pub(super) struct PrefetchState {
    pub(super) is_running: bool,
    /// Messages whose data the next prefetch loads.
    pub(super) rows: Vec<Arc<ScheduleRow>>,
    /// When `rows` is filled again with all messages that are due soon; `None` means now.
    pub(super) refill_at: Option<Instant>,
}

/// A task on one scheduled message, run once its state is known and it is not being sent.
pub(super) type Task = Box<dyn FnOnce(&mut ScheduleDispatcher, Result<Arc<ScheduleRow>, Refusal>) + Send>;

impl Actor for ScheduleDispatcher {
    type Context = Mailbox<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        self.supervise(cx, |_, _| ());
    }
}

impl Registered for ScheduleDispatcher {
    type Shared = ScheduleGauges;
}

impl ScheduleScope {
    /// Starts a company's actor.
    pub(crate) fn start(self: &Arc<Self>, company: CompanyId) -> ActorHandle<ScheduleDispatcher> {
        let status = Arc::new(ActorStatus::<ScheduleGauges>::default());
        let dispatcher = ScheduleDispatcher {
            scope: self.clone(),
            company,
            agenda: Agenda::default(),
            pending_sends: HashSet::new(),
            tasks: HashMap::new(),
            generation: 0,
            is_loading: false,
            load_paused_until: None,
            prefetch: PrefetchState::default(),
            work_state: DueWorkState::default(),
            counted_at: None,
            status: status.clone(),
        };
        let arbiter = self.base.arbiters.of(company.0);
        ActorHandle { addr: ScheduleDispatcher::start_in_arbiter(&arbiter, |_| dispatcher), status }
    }
}

/// Clears the gauges, however the actor ends.
impl Drop for ScheduleDispatcher {
    fn drop(&mut self) {
        self.publish_counts(ScheduleCounts::default());
    }
}

impl DueWork for ScheduleDispatcher {
    fn work_state(&mut self) -> &mut DueWorkState {
        &mut self.work_state
    }

    fn readiness(&self) -> Readiness {
        self.scope.base.readiness(self.company)
    }

    fn run_due_work(&mut self, cx: &mut Mailbox<Self>) {
        let (now, instant) = (now(), Instant::now());
        let is_active = self.scope.base.is_active(self.company);
        if is_active {
            self.send_due(now, instant, cx);
        }
        self.load(now, instant, cx);
        if is_active {
            self.run_prefetch(now, instant, cx);
        }
        self.update_gauges(now, instant, is_active);
        if self.agenda.is_done() && self.pending_sends.is_empty() && self.tasks.is_empty() {
            match self.status.idle_s() {
                IDLE_AFTER_S.. => self.retire(cx),
                idle_s => self.schedule_tick(Duration::from_secs(IDLE_AFTER_S - idle_s), cx),
            }
            return;
        }
        // While the company is inactive, what is due waits for a later tick.
        let delay = if is_active { self.next_delay(now, instant) } else { TICK };
        self.schedule_tick(delay, cx);
    }

    fn recover(&mut self) {
        tracing::error!(company.id = %self.company, "schedule dispatcher failed unexpectedly; restarting it");
        self.restart();
        self.load_paused_until = Some(Instant::now() + TICK);
    }

    fn leave(&mut self) {
        self.scope.hot.remove(&self.company, &self.status);
        self.restart();
        self.publish_counts(ScheduleCounts::default());
    }
}

impl ScheduleDispatcher {
    /// Sends the messages that are due.
    fn send_due(&mut self, now: DateTime<Utc>, instant: Instant, cx: &mut Mailbox<Self>) {
        while self.pending_sends.len() < CONCURRENT_SENDS_MAX
            && let Some(presence) = self.enter()
            && let Some(row) = self.agenda.take_due(now, instant)
        {
            // After a restart, an earlier send of this message may still be running: its outcome must arrive first.
            if self.pending_sends.insert(row.id) {
                let (scope, dispatcher) = (self.scope.clone(), cx.address());
                actix::spawn(async move {
                    let _presence = presence;
                    dispatcher.do_send(DispatchEnded(send::dispatch(scope, row).await));
                });
            }
        }
    }

    /// The time until the next message is due or retried, at most [`TICK`].
    fn next_delay(&self, now: DateTime<Utc>, instant: Instant) -> Duration {
        let (due, retry) = self.agenda.next_times();
        let due = due.filter(|_| self.pending_sends.len() < CONCURRENT_SENDS_MAX);
        let due = due.map(|at| (at - now).to_std().unwrap_or(Duration::ZERO));
        let retry = retry.map(|at| at.saturating_duration_since(instant));
        [due, retry].into_iter().flatten().min().unwrap_or(TICK).min(TICK)
    }

    fn restart(&mut self) {
        self.agenda = Agenda::default();
        for task in mem::take(&mut self.tasks).into_values().flatten() {
            task(self, Err(Refusal::Retired));
        }
        self.generation += 1;
        self.is_loading = false;
        self.prefetch = PrefetchState::default();
    }

    /// Whether the result of a read is still usable.
    pub(super) fn is_current(&self, generation: u64) -> bool {
        generation == self.generation && !self.work_state.is_retired()
    }

    /// Begins work of the company, if this process serves it now.
    pub(super) fn enter(&self) -> Option<Presence> {
        self.scope.base.try_enter(self.company)
    }

    fn update_gauges(&mut self, now: DateTime<Utc>, instant: Instant, is_active: bool) {
        if self.counted_at.is_none_or(|at| instant.saturating_duration_since(at) >= COUNT_EVERY) {
            self.counted_at = Some(instant);
            let counts = self.agenda.count(now);
            // Messages of an inactive company are not late: they wait by intention.
            let waiting = ScheduleCounts { pending: counts.pending, ..ScheduleCounts::default() };
            self.publish_counts(if is_active { counts } else { waiting });
        }
    }

    fn publish_counts(&self, counts: ScheduleCounts) {
        let gauges = &self.status.shared;
        gauges.pending.store(counts.pending, Ordering::Relaxed);
        gauges.due.store(counts.due, Ordering::Relaxed);
        gauges.late.store(counts.late, Ordering::Relaxed);
    }

    /// Records the new state of a message, in a log entry of its own.
    pub(super) fn append(
        &mut self,
        row: Arc<ScheduleRow>,
        attached: impl FnOnce() -> Result<Vec<Change>, Refusal>,
    ) -> Result<Durable, Refusal> {
        let contact = (self.company, row.contact_id);
        // Nothing awaits between this check and the append, as in a ticket's actor.
        if self.scope.contacts.cache().marks.is_marked(contact) {
            return Err(Refusal::ContactChanging(contact.1));
        }
        let reservation = self.scope.base.store.log.reserve(self.company)?;
        let mut changes = vec![Change::Schedule(Box::new(ScheduleRow::clone(&row)))];
        changes.extend(attached()?);
        let (seq, durable) = reservation.append(changes)?;
        self.status.record_append(seq);
        let is_soon = row.status == ScheduleStatus::Pending && row.send_at <= now() + HORIZON_MIN;
        if is_soon && self.prefetch.rows.len() < PREFETCH_MAX {
            self.prefetch.rows.push(row.clone());
        }
        self.agenda.apply(row, now());
        Ok(durable)
    }

    /// Runs a task on a message once its state is known and it is not being sent.
    pub(super) fn run_task(&mut self, id: ScheduleId, cx: &mut Mailbox<Self>, task: Task) {
        if self.work_state.is_retired() {
            return task(self, Err(Refusal::Retired));
        }
        match self.agenda.look_up(id) {
            MessageLookup::Idle(row) if !self.pending_sends.contains(&id) => task(self, Ok(row)),
            MessageLookup::Unknown if !self.pending_sends.contains(&id) => self.fetch(id, cx, task),
            _ => self.tasks.entry(id).or_default().push(task),
        }
    }
}

impl Handler<ReloadAgenda> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, ReloadAgenda: ReloadAgenda, cx: &mut Self::Context) {
        self.supervise(cx, |this, _| this.restart());
    }
}

impl Handler<Dismiss> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, dismiss: Dismiss, cx: &mut Self::Context) {
        self.dismiss(dismiss, cx);
    }
}
