//! Reads of the tables: one message, the next pending ones, and the data that messages will need when they are sent.

use std::mem;

use std::time::{Duration, Instant};

use actix::{AsyncContext, Context as Mailbox, Handler, Message};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use hotline_persistence::tables::schedules::{self, Due, ScheduleRow};
use hotline_persistence::{CompanyId, ScheduleId};

use super::super::agenda::{AHEAD_MAX, AHEAD_MIN, Look};
use super::leaving;
use super::{LOOK_AHEAD_MAX, OUTAGE_PAUSE, ScheduleDispatcher, ScheduleScope, Task};
use crate::Refusal;
use crate::clock::now;

/// Maximum rows of a load. A text may have 64 KiB.
const LOAD_ROWS: i64 = 200;

/// Interval between rounds of loading ahead: unused conversations are evicted before their messages are due.
const LOOK_AHEAD_EVERY: Duration = Duration::from_secs(120);

/// Concurrent look-ups ahead: a small part of the company's share of the database.
const LOOK_AHEAD_AT_ONCE: usize = 4;

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
struct Loaded {
    generation: u64,
    after: Due,
    found: Result<Pending, Refusal>,
}

struct Pending {
    rows: Vec<ScheduleRow>,
    until: Due,
    has_beyond: bool,
}

/// The loading ahead has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct LookedAhead;

impl ScheduleDispatcher {
    pub(super) fn fetch(&mut self, id: ScheduleId, cx: &mut Mailbox<Self>, task: Task) {
        let waiting = self.waiting.entry(id).or_default();
        waiting.push(task);
        if waiting.len() > 1 {
            return;
        }
        self.agenda.begin_read();
        let (scope, company, generation) = (self.scope.clone(), self.company, self.generation);
        let home = cx.address();
        actix::spawn(async move {
            let found = row_of(&scope, company, id).await;
            home.do_send(Fetched { generation, id, found });
        });
    }

    /// Handles the result of reading one message, and runs the tasks that wait for it.
    fn fetched(&mut self, id: ScheduleId, found: Result<Option<ScheduleRow>, Refusal>, cx: &mut Mailbox<Self>) {
        let missing = match found {
            Ok(Some(row)) => {
                self.agenda.found(row);
                Refusal::NotFound
            }
            Ok(None) => Refusal::NotFound,
            Err(refusal) => refusal,
        };
        for task in self.waiting.remove(&id).unwrap_or_default() {
            match self.agenda.look(id) {
                Look::Settled(row) => task(self, Ok(row)),
                Look::Leaving => self.with(id, cx, task),
                Look::Unknown => task(self, Err(missing.clone())),
            }
        }
        self.agenda.end_read(now());
    }

    pub(super) fn load(&mut self, now: DateTime<Utc>, clock: Instant, cx: &mut Mailbox<Self>) {
        let may_begin = !self.is_loading && self.loads_after.is_none_or(|at| at <= clock);
        if !may_begin || !self.agenda.wants_more(now) {
            return;
        }
        let Some(presence) = self.enter() else { return };
        self.is_loading = true;
        self.agenda.begin_read();
        let (scope, company, after, generation) =
            (self.scope.clone(), self.company, self.agenda.until(), self.generation);
        let home = cx.address();
        actix::spawn(async move {
            let _presence = presence;
            let found = pending(&scope, company, after, now + AHEAD_MAX).await;
            home.do_send(Loaded { generation, after, found });
        });
    }

    fn loaded(&mut self, after: Due, found: Result<Pending, Refusal>) {
        self.is_loading = false;
        match found {
            Ok(Pending { rows, until, has_beyond }) => {
                if !rows.is_empty() {
                    self.looking.all_at = None;
                }
                self.agenda.loaded(after, rows, until, has_beyond);
            }
            Err(refusal) => {
                if refusal.is_passing() {
                    tracing::debug!(%refusal, company.id = %self.company, "loading scheduled messages will be retried");
                } else {
                    tracing::error!(%refusal, company.id = %self.company, "could not load scheduled messages");
                }
                self.loads_after = Some(Instant::now() + OUTAGE_PAUSE);
            }
        }
        self.agenda.end_read(now());
    }

    /// Loads ahead: periodically for all messages that are due soon, and at once for new ones.
    pub(super) fn look_ahead(&mut self, now: DateTime<Utc>, clock: Instant, cx: &mut Mailbox<Self>) {
        if self.looking.is_under_way {
            return;
        }
        if self.looking.all_at.is_none_or(|at| at <= clock) {
            self.looking.all_at = Some(clock + LOOK_AHEAD_EVERY);
            self.looking.next = self.agenda.before(now + AHEAD_MIN, LOOK_AHEAD_MAX);
        }
        if self.looking.next.is_empty() {
            return;
        }
        let Some(presence) = self.enter() else { return };
        self.looking.is_under_way = true;
        let (rows, scope, home) = (mem::take(&mut self.looking.next), self.scope.clone(), cx.address());
        actix::spawn(async move {
            let _presence = presence;
            let ahead = stream::iter(rows).map(Ok).try_for_each_concurrent(LOOK_AHEAD_AT_ONCE, |row| {
                let scope = &scope;
                async move {
                    match leaving::look_ahead(scope, &row).await {
                        Err(refusal) if refusal.is_passing() => Err(refusal),
                        // Other refusals are handled when the message is sent.
                        _ => Ok(()),
                    }
                }
            });
            if let Err(refusal) = ahead.await {
                tracing::debug!(%refusal, "prefetch for scheduled messages failed");
            }
            home.do_send(LookedAhead);
        });
    }
}

/// One message from the tables, once these have all earlier decisions.
pub(super) async fn row_of(
    scope: &ScheduleScope,
    company: CompanyId,
    id: ScheduleId,
) -> Result<Option<ScheduleRow>, Refusal> {
    Ok(schedules::find(scope.base.reads().tables(company).await?, company, id).await?)
}

/// The messages pending after a point and up to a time.
async fn pending(
    scope: &ScheduleScope,
    company: CompanyId,
    after: Due,
    until: DateTime<Utc>,
) -> Result<Pending, Refusal> {
    let db = scope.base.reads().tables(company).await?;
    let rows = schedules::due(db, company, after, until, LOAD_ROWS).await?;
    match rows.last() {
        Some(last) if rows.len() as i64 >= LOAD_ROWS => Ok(Pending { until: last.due(), rows, has_beyond: true }),
        _ => {
            let has_beyond = schedules::next(db, company, until).await?.is_some();
            Ok(Pending { rows, until: (until, ScheduleId::new(i64::MAX)), has_beyond })
        }
    }
}

impl Handler<Fetched> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, Fetched { generation, id, found }: Fetched, cx: &mut Self::Context) {
        if self.is_current(generation) {
            self.guarded(cx, |this, cx| this.fetched(id, found, cx));
        }
    }
}

impl Handler<Loaded> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, Loaded { generation, after, found }: Loaded, cx: &mut Self::Context) {
        if self.is_current(generation) {
            self.guarded(cx, |this, _| this.loaded(after, found));
        }
    }
}

impl Handler<LookedAhead> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, _: LookedAhead, cx: &mut Self::Context) {
        self.guarded(cx, |this, _| this.looking.is_under_way = false);
    }
}
