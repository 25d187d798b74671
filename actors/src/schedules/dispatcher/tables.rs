//! Reads from the tables: one message, the next pending ones, and the data that messages will need when they are sent.

use std::mem;
use std::time::{Duration, Instant};

use actix::{AsyncContext, Context as Mailbox, Handler, Message};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use hotline_persistence::tables::schedules::{self, Due, ScheduleRow};
use hotline_persistence::{CompanyId, ScheduleId};

use super::super::agenda::{HORIZON_MAX, HORIZON_MIN, MessageLookup};
use super::send;
use super::{OUTAGE_PAUSE, PREFETCH_MAX, ScheduleDispatcher, ScheduleScope, Task};
use crate::Refusal;
use crate::base::due_work::{DueWork, catch_panic};
use crate::clock::now;

/// Maximum rows of a load: up to 13 MiB, because a text may have 64 KiB.
const LOAD_ROWS_MAX: i64 = 200;

/// Interval between prefetches, shorter than the default time after which an idle conversation retires.
const PREFETCH_EVERY: Duration = Duration::from_secs(120);

/// Concurrent prefetches: a small part of the company's share of the database.
const PREFETCH_CONCURRENCY: usize = 4;

/// The result of reading one message.
#[derive(Message)]
#[rtype(result = "()")]
struct Fetched {
    generation: u64,
    id: ScheduleId,
    found: Result<Option<ScheduleRow>, Refusal>,
}

/// The result of reading the next pending messages.
#[derive(Message)]
#[rtype(result = "()")]
struct PendingLoaded {
    generation: u64,
    after: Due,
    found: Result<PendingPage, Refusal>,
}

struct PendingPage {
    rows: Vec<ScheduleRow>,
    until: Due,
    has_more: bool,
}

/// The prefetch has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct PrefetchEnded;

impl ScheduleDispatcher {
    /// Reads a message from the tables, and then runs the task. Tasks that arrive meanwhile share the read.
    pub(super) fn fetch(&mut self, id: ScheduleId, cx: &mut Mailbox<Self>, task: Task) {
        let tasks = self.tasks.entry(id).or_default();
        tasks.push(task);
        if tasks.len() > 1 {
            return;
        }
        self.agenda.begin_read();
        let (scope, company, generation) = (self.scope.clone(), self.company, self.generation);
        let dispatcher = cx.address();
        actix::spawn(async move {
            let found = catch_panic("reading a scheduled message", find_row(&scope, company, id)).await;
            dispatcher.do_send(Fetched { generation, id, found });
        });
    }

    /// Handles the result of reading one message, and runs the tasks that wait for it.
    fn handle_fetch(&mut self, id: ScheduleId, found: Result<Option<ScheduleRow>, Refusal>, cx: &mut Mailbox<Self>) {
        let refusal_if_unknown = match found {
            Ok(Some(row)) => {
                self.agenda.add_found(row);
                Refusal::NotFound
            }
            Ok(None) => Refusal::NotFound,
            Err(refusal) => refusal,
        };
        for task in self.tasks.remove(&id).unwrap_or_default() {
            match self.agenda.look_up(id) {
                MessageLookup::Idle(row) => task(self, Ok(row)),
                MessageLookup::Sending => self.run_task(id, cx, task),
                MessageLookup::Unknown => task(self, Err(refusal_if_unknown.clone())),
            }
        }
        self.agenda.end_read(now());
    }

    pub(super) fn load(&mut self, now: DateTime<Utc>, instant: Instant, cx: &mut Mailbox<Self>) {
        let may_begin = !self.is_loading && self.load_paused_until.is_none_or(|at| at <= instant);
        if !may_begin || !self.agenda.needs_load(now) {
            return;
        }
        let Some(presence) = self.enter() else { return };
        self.is_loading = true;
        self.agenda.begin_read();
        let (scope, company, after, generation) =
            (self.scope.clone(), self.company, self.agenda.until(), self.generation);
        let dispatcher = cx.address();
        actix::spawn(async move {
            let _presence = presence;
            let load = load_pending(&scope, company, after, now + HORIZON_MAX);
            let found = catch_panic("reading scheduled messages", load).await;
            dispatcher.do_send(PendingLoaded { generation, after, found });
        });
    }

    fn handle_load(&mut self, after: Due, found: Result<PendingPage, Refusal>) {
        self.is_loading = false;
        match found {
            Ok(PendingPage { rows, until, has_more }) => {
                if !rows.is_empty() {
                    self.prefetch.refill_at = None;
                }
                self.agenda.add_loaded(after, rows, until, has_more);
            }
            Err(refusal) => {
                if refusal.is_transient() {
                    tracing::debug!(%refusal, company.id = %self.company, "loading scheduled messages will be retried");
                } else {
                    tracing::error!(%refusal, company.id = %self.company, "could not load scheduled messages");
                }
                self.load_paused_until = Some(Instant::now() + OUTAGE_PAUSE);
            }
        }
        self.agenda.end_read(now());
    }

    /// Prefetches the data of messages: periodically for all that are due soon, and at once for new ones.
    pub(super) fn run_prefetch(&mut self, now: DateTime<Utc>, instant: Instant, cx: &mut Mailbox<Self>) {
        if self.prefetch.is_running {
            return;
        }
        if self.prefetch.refill_at.is_none_or(|at| at <= instant) {
            self.prefetch.refill_at = Some(instant + PREFETCH_EVERY);
            self.prefetch.rows = self.agenda.due_by(now + HORIZON_MIN, PREFETCH_MAX);
        }
        if self.prefetch.rows.is_empty() {
            return;
        }
        let Some(presence) = self.enter() else { return };
        self.prefetch.is_running = true;
        let (rows, scope, dispatcher) = (mem::take(&mut self.prefetch.rows), self.scope.clone(), cx.address());
        actix::spawn(async move {
            let _presence = presence;
            let prefetch = stream::iter(rows).map(Ok).try_for_each_concurrent(PREFETCH_CONCURRENCY, |row| {
                let scope = &scope;
                async move {
                    match send::prefetch(scope, &row).await {
                        Err(refusal) if refusal.is_transient() => Err(refusal),
                        // Other refusals are handled when the message is sent.
                        _ => Ok(()),
                    }
                }
            });
            if let Err(refusal) = catch_panic("prefetching for scheduled messages", prefetch).await {
                tracing::debug!(%refusal, "prefetch for scheduled messages failed");
            }
            dispatcher.do_send(PrefetchEnded);
        });
    }
}

/// One message from the tables, once these have all earlier decisions.
pub(super) async fn find_row(
    scope: &ScheduleScope,
    company: CompanyId,
    id: ScheduleId,
) -> Result<Option<ScheduleRow>, Refusal> {
    Ok(schedules::find(scope.base.reads().tables(company).await?, company, id).await?)
}

/// The first pending messages that are due after the position `after`, up to the time `until`.
async fn load_pending(
    scope: &ScheduleScope,
    company: CompanyId,
    after: Due,
    until: DateTime<Utc>,
) -> Result<PendingPage, Refusal> {
    hotline_persistence::fail_point!("schedules_read");
    let db = scope.base.reads().tables(company).await?;
    let rows = schedules::due(db, company, after, until, LOAD_ROWS_MAX).await?;
    match rows.last() {
        Some(last) if rows.len() as i64 >= LOAD_ROWS_MAX => Ok(PendingPage { until: last.due(), rows, has_more: true }),
        _ => {
            let has_more = schedules::next_due_at(db, company, until).await?.is_some();
            Ok(PendingPage { rows, until: (until, ScheduleId::new(i64::MAX)), has_more })
        }
    }
}

impl Handler<Fetched> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, Fetched { generation, id, found }: Fetched, cx: &mut Self::Context) {
        if self.is_current(generation) {
            self.supervise(cx, |this, cx| this.handle_fetch(id, found, cx));
        }
    }
}

impl Handler<PendingLoaded> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, PendingLoaded { generation, after, found }: PendingLoaded, cx: &mut Self::Context) {
        if self.is_current(generation) {
            self.supervise(cx, |this, _| this.handle_load(after, found));
        }
    }
}

impl Handler<PrefetchEnded> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, _: PrefetchEnded, cx: &mut Self::Context) {
        self.supervise(cx, |this, _| this.prefetch.is_running = false);
    }
}
