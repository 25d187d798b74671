//! The courier of one webhook: it reads the log, starts the deliveries of its events, and writes their outcomes. It
//! runs one statement at a time, concurrently with many attempts. Its timers are only for due work, so an idle webhook
//! costs nothing.

mod attempt;
mod statements;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hotline_actors::clock;
use hotline_persistence::tables::events::After;
use hotline_persistence::tables::webhooks::Endpoint;
use hotline_persistence::tables::webhooks::deliveries::{DeliveryStatus, DueDelivery};
use hotline_persistence::{CompanyId, EventListener, LoggedEventId, Presence};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep, timeout_at};

use self::statements::{
    NOT_SERVED, QueueContents, StatementResult, WriteFailure, WriteResult, disable, read_due, write_outcomes,
};
use super::Shared;
use super::log::{self, EventBatch};
use super::queue::{Consequence, DeliveryQueue, DisableReason, FailurePeriod, OutgoingEvent};
use crate::metrics::AttemptOutcome;
use crate::webhooks::AttemptResult;

/// How long outcomes are collected before they are written, so that each costs only a part of a transaction.
const WRITE_EVERY: Duration = Duration::from_millis(100);

/// Number of collected outcomes that are written without further delay.
const WRITE_BATCH_FULL: usize = 64;

/// How often the position is written while the webhook only skips events that it does not want.
const POSITION_EVERY: Duration = Duration::from_secs(1);

/// Minimum room in the queue for reading more events, so that each read returns many.
const READ_MIN: usize = 64;

/// Maximum number of due deliveries per read of the table.
const DUE_BATCH_MAX: usize = 64;

/// Pause after a failed statement.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How long a courier that retires waits for the responses to running attempts. Nearly every endpoint responds in this
/// time, and it is less than the 5 s that requests wait for a company that moves. Deliveries without a response by then
/// are repeated by the next owner.
const RETIRE_TIME_MAX: Duration = Duration::from_secs(2);

/// The error of a delivery that is withheld.
const WITHHELD: &str = "the webhook's creator may not see every card";

/// The running attempts. Each returns its event's id and its result; `None`: the event is withheld.
type Attempts = FuturesUnordered<BoxFuture<'static, (i64, Option<AttemptResult>)>>;

/// What a courier is waiting for.
struct Running {
    statement: Option<JoinHandle<StatementResult>>,
    attempts: Attempts,
}

/// Why a courier stops delivering.
enum CourierEnd {
    /// The webhook is deleted or disabled, another courier follows, or the service stops.
    Over,
    /// The webhook must be disabled.
    Disable(DisableReason),
    /// The courier must retire. It waits for responses until this time.
    Retire(Instant),
    /// A statement has panicked.
    Failed(JoinError),
}

/// The courier of one webhook.
pub(super) struct Courier {
    shared: Arc<Shared>,
    updates: watch::Receiver<Arc<Endpoint>>,
    /// Notified when the courier must retire, because its company's deliveries are paused.
    retire: Arc<Notify>,
    endpoint: Arc<Endpoint>,
    queue: DeliveryQueue,
    /// Held while anything is in memory: the company is closed only after the outcomes are written.
    presence: Option<Presence>,
    /// The position for the next read of the log.
    after: After,
    /// Whether the log may contain further events.
    is_behind: bool,
    /// When the next delivery in the table is due.
    due_at: Option<DateTime<Utc>>,
    /// When the event of the oldest delivery in the table happened.
    oldest_in_table: Option<DateTime<Utc>>,
    /// When the next event in memory must be saved in the table. `None`: there is none, or the time must be determined.
    spill_at: Option<DateTime<Utc>>,
    written_at: Instant,
    /// No statements before this time.
    paused_until: Option<Instant>,
}

impl Courier {
    pub(super) fn new(shared: Arc<Shared>, updates: watch::Receiver<Arc<Endpoint>>, retire: Arc<Notify>) -> Self {
        let endpoint = updates.borrow().clone();
        let failing = endpoint
            .failing_since
            .map(|since| FailurePeriod { since, last_failed_at: endpoint.failed_at.unwrap_or(since) });
        Self {
            shared,
            updates,
            retire,
            queue: DeliveryQueue::new(endpoint.delivered_through, failing),
            presence: None,
            after: After::event(LoggedEventId::new(endpoint.delivered_through)),
            endpoint,
            is_behind: true,
            due_at: Some(clock::now()),
            oldest_in_table: None,
            spill_at: None,
            written_at: Instant::now(),
            paused_until: None,
        }
    }

    fn company(&self) -> CompanyId {
        self.endpoint.company
    }

    /// Delivers until the webhook is deleted or disabled, until its URL, types or position are changed, until the
    /// company's deliveries are paused, or until the service stops.
    pub(super) async fn run(mut self) {
        let Some(mut log_changes) = self.shared.app.engine.listen(self.company()) else { return };
        hotline_persistence::fail_point!("courier_started");
        let mut running = Running { statement: None, attempts: FuturesUnordered::new() };
        let end = self.deliver(&mut log_changes, &mut running).await;
        let Running { mut attempts, statement } = running;
        let has_failed = matches!(end, CourierEnd::Failed(_));
        let (mut disable_reason, retire_until) = match end {
            CourierEnd::Over => (None, None),
            CourierEnd::Disable(reason) => (Some(reason), None),
            CourierEnd::Retire(until) => (None, Some(until)),
            CourierEnd::Failed(error) => {
                tracing::error!(%error, webhook.id = %self.endpoint.id, "webhook worker failed unexpectedly");
                (None, None)
            }
        };
        if let Some(until) = retire_until {
            while let Ok(Some((event_id, result))) = timeout_at(until, attempts.next()).await {
                disable_reason = disable_reason.or(self.record_attempt(event_id, result.as_ref()));
            }
        }
        drop(attempts);
        if let Some(statement) = statement
            && let Ok(result) = statement.await
        {
            self.handle_result(result);
        }
        if retire_until.is_some() {
            // Otherwise the next owner would begin at the first undelivered event, and repeat later ones that were
            // delivered.
            self.queue.spill_all(clock::now());
        }
        self.end(disable_reason, retire_until).await;
        if has_failed {
            // The next courier may begin with the same statement.
            sleep(RETRY_AFTER).await;
        }
    }

    /// Starts attempts and statements, and handles their results. Returns why the courier stops delivering; what still
    /// runs then is left in `running`.
    async fn deliver(&mut self, log_changes: &mut EventListener, running: &mut Running) -> CourierEnd {
        let Running { statement, attempts } = running;
        let (shared, retire) = (self.shared.clone(), self.retire.clone());
        let mut stopping = shared.stopping.clone();
        loop {
            let released = shared.attempt_limit.released();
            tokio::pin!(released);
            // Enabled before a permit is requested, so that a release in between is not missed.
            released.as_mut().enable();
            let at_limit = self.start_attempts(attempts);
            let now = clock::now();
            self.start_due_work(statement, now);
            let wake_after = self.wake_after(now, statement.is_some());
            tokio::select! {
                Some((event_id, result)) = attempts.next(), if !attempts.is_empty() => {
                    if let Some(reason) = self.record_attempt(event_id, result.as_ref()) {
                        return CourierEnd::Disable(reason);
                    }
                }
                result = await_statement(statement) => {
                    *statement = None;
                    match result.map(|result| self.handle_result(result)) {
                        Ok(true) => {}
                        Ok(false) => return CourierEnd::Over,
                        Err(error) => return CourierEnd::Failed(error),
                    }
                }
                () = log_changes.changed() => self.is_behind = true,
                changed = self.updates.changed() => {
                    if changed.is_err() || self.update_requires_restart() {
                        return CourierEnd::Over;
                    }
                }
                () = retire.notified() => return CourierEnd::Retire(Instant::now() + RETIRE_TIME_MAX),
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return CourierEnd::Over,
                () = &mut released, if at_limit => {}
                () = tokio::time::sleep(wake_after.unwrap_or_default()), if wake_after.is_some() => {}
            }
        }
    }

    /// Saves old events in the table, and starts the next statement if none is running. If nothing is in memory, the
    /// company may be closed.
    fn start_due_work(&mut self, statement: &mut Option<JoinHandle<StatementResult>>, now: DateTime<Utc>) {
        if self.spill_at.is_none_or(|at| at <= now) {
            self.spill_at = self.queue.spill_old(now);
        }
        if statement.is_none() {
            *statement = self.start_statement(now);
        }
        if statement.is_none() && self.queue.is_empty() {
            self.presence = None;
        }
    }

    /// Reads the current settings of the webhook. Returns whether its URL or its types have changed: then this courier
    /// ends, and the new one repeats running deliveries with the new URL, and reads the log again with the new types.
    fn update_requires_restart(&mut self) -> bool {
        let endpoint = self.updates.borrow_and_update().clone();
        let url_changed = endpoint.url != self.endpoint.url;
        if url_changed || endpoint.failing_since.is_none() {
            // A failure that is not in the table yet is cleared too: then the period begins with the next failure.
            self.queue.clear_failure();
        }
        if url_changed || endpoint.types != self.endpoint.types {
            // `self.endpoint` stays as it is: the last write needs the settings with which the log was read.
            return true;
        }
        self.endpoint = endpoint;
        self.queue.request_check();
        self.due_at = Some(clock::now());
        self.is_behind = true;
        false
    }

    /// Starts all attempts that are possible now. Returns whether a permit was refused.
    fn start_attempts(&mut self, attempts: &mut Attempts) -> bool {
        while self.queue.has_ready() && self.may_act() {
            let permit = self.shared.attempt_limit.try_acquire(self.company(), attempts.is_empty());
            let Some(permit) = permit else { return true };
            match self.queue.start_next() {
                Some(event) => {
                    attempts.push(Box::pin(attempt::run(self.shared.clone(), self.endpoint.clone(), event, permit)))
                }
                None => break,
            }
        }
        false
    }

    /// Whether an attempt may begin. Without the lease, another process may have taken over and would make the same
    /// attempt; for a company that is about to move, nothing may begin that the move would wait for.
    fn may_act(&self) -> bool {
        let store = self.shared.app.engine.store();
        store.may_act() && store.ownership().owns(self.company())
    }

    /// Ensures that the company is not closed before the outcomes of events that are read from now on are written.
    /// `false`: it is not served now, or is about to move.
    fn enter_company(&mut self) -> bool {
        let ownership = self.shared.app.engine.store().ownership();
        if self.presence.is_none() {
            self.presence = ownership.try_enter(self.company());
        }
        self.presence.is_some() && ownership.owns(self.company())
    }

    /// Records the outcome of an attempt; returns why the webhook must be disabled, if so.
    fn record_attempt(&mut self, event_id: i64, result: Option<&AttemptResult>) -> Option<DisableReason> {
        let Some(result) = result else {
            self.queue.withhold(event_id, WITHHELD, clock::now());
            return None;
        };
        let (status, consequence) = self.queue.finish(
            event_id,
            result.verdict(),
            result.attempt(),
            &self.shared.app.webhooks.retry_policy,
            clock::now(),
        );
        self.shared.app.metrics.webhooks.add_attempt(match status {
            DeliveryStatus::Delivered => AttemptOutcome::Delivered,
            DeliveryStatus::Pending => AttemptOutcome::Retried,
            DeliveryStatus::Failed => AttemptOutcome::Failed,
        });
        match consequence {
            Consequence::None => None,
            Consequence::Disable(reason) => Some(reason),
        }
    }

    /// Starts the next statement, if there is one.
    fn start_statement(&mut self, now: DateTime<Utc>) -> Option<JoinHandle<StatementResult>> {
        if self.paused_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        self.paused_until = None;
        let shared = self.shared.clone();
        let endpoint = self.endpoint.clone();
        let background = self.shared.app.engine.background().clone();
        if self.must_write() {
            let batch = self.queue.take_batch();
            let contents = self.contents();
            return Some(background.spawn(async move {
                StatementResult::Written(write_outcomes(&shared, &endpoint, batch, contents).await)
            }));
        }
        let room = self.queue.room();
        let is_due = self.queue.may_have_waiting() && self.due_at.is_some_and(|at| at <= now) && room > 0;
        let must_read = self.is_behind && room >= READ_MIN;
        if (is_due || must_read) && !self.enter_company() {
            self.pause(NOT_SERVED);
            return None;
        }
        if is_due {
            let (contents, limit) = (self.contents(), room.min(DUE_BATCH_MAX));
            return Some(
                background.spawn(async move {
                    StatementResult::Due(read_due(&shared, &endpoint, now, contents, limit).await)
                }),
            );
        }
        must_read.then(|| self.start_log_read(room))
    }

    /// Starts to read further events from the log, as many as there is room for.
    fn start_log_read(&mut self, room: usize) -> JoinHandle<StatementResult> {
        self.is_behind = false;
        let (shared, endpoint) = (self.shared.clone(), self.endpoint.clone());
        let (after, may_have_waiting) = (self.after, self.queue.may_have_waiting());
        self.shared.app.engine.background().spawn(async move {
            let Some(_presence) = shared.app.engine.store().ownership().follow(endpoint.company) else {
                return StatementResult::Read(Err(NOT_SERVED.to_owned()));
            };
            StatementResult::Read(log::page(&shared.app, &endpoint, after, room, may_have_waiting).await)
        })
    }

    fn contents(&self) -> QueueContents {
        QueueContents { read_to: self.queue.read_to(), event_ids: self.queue.event_ids() }
    }

    fn must_write(&self) -> bool {
        let since = self.written_at.elapsed();
        self.queue.has_batch() && (self.queue.unwritten_count() >= WRITE_BATCH_FULL || since >= self.write_after())
    }

    /// How long outcomes may be collected before they are written.
    fn write_after(&self) -> Duration {
        if self.queue.must_check() {
            Duration::ZERO
        } else if self.queue.unwritten_count() == 0 {
            POSITION_EVERY
        } else {
            WRITE_EVERY
        }
    }

    /// The pause until the next timer; `None`: there is none. While a statement is running, the times of further
    /// statements do not count: its result is awaited.
    fn wake_after(&self, now: DateTime<Utc>, has_statement: bool) -> Option<Duration> {
        let delay_until = |time: DateTime<Utc>| (time - now).to_std().unwrap_or_default();
        let mut next: Vec<Duration> = Vec::with_capacity(4);
        next.extend(self.spill_at.map(delay_until));
        if self.queue.has_ready() && !self.may_act() {
            next.push(RETRY_AFTER);
        }
        if !has_statement {
            if let Some(until) = self.paused_until {
                next.push(until.saturating_duration_since(Instant::now()));
            } else {
                if self.queue.has_batch() {
                    next.push(self.write_after().saturating_sub(self.written_at.elapsed()));
                }
                if self.queue.may_have_waiting() && self.queue.room() > 0 {
                    next.extend(self.due_at.map(delay_until));
                }
            }
        }
        // A clock that is set back must not cause a busy loop.
        next.into_iter().min().map(|pause| pause.max(Duration::from_millis(1)))
    }

    /// Processes the result of a statement. `false`: this courier's work is over.
    fn handle_result(&mut self, result: StatementResult) -> bool {
        match result {
            StatementResult::Written(Ok(WriteResult { stored, waiting })) => {
                self.written_at = Instant::now();
                self.queue.note_stored_failure(stored.failing_since);
                if let Some(waiting) = waiting {
                    if waiting.oldest.is_none() {
                        self.queue.clear_waiting();
                    }
                    self.due_at = waiting.next_at;
                    self.oldest_in_table = waiting.oldest;
                }
                self.report_lag();
                return stored.is_current;
            }
            StatementResult::Written(Err(WriteFailure { batch, reason })) => {
                self.queue.restore(batch);
                self.pause(&reason);
            }
            StatementResult::Due(Ok(due)) => self.push_due(due),
            StatementResult::Due(Err(reason)) => self.pause(&reason),
            StatementResult::Read(Ok(EventBatch { events, next, has_more, busy })) => {
                self.after = next;
                self.is_behind |= has_more;
                self.queue.push_page(events, next.id.0, &busy, clock::now());
                self.spill_at = None;
                self.report_lag();
            }
            StatementResult::Read(Err(reason)) => {
                self.is_behind = true;
                self.pause(&reason);
            }
        }
        true
    }

    /// Adds deliveries that were read from the table because they are due.
    fn push_due(&mut self, due: Vec<(DueDelivery, Option<OutgoingEvent>)>) {
        // Deliveries beyond the limit are due as soon as there is room.
        self.due_at = (due.len() >= DUE_BATCH_MAX).then(clock::now);
        let now = clock::now();
        for (due, event) in due {
            match event {
                Some(event) => self.queue.push_due(&due, event, now),
                None => self.queue.expire(due, "the event has expired", now),
            }
        }
        // The next write also queries what is due after these.
        self.queue.request_due_check();
    }

    fn pause(&mut self, reason: &str) {
        tracing::debug!(reason, webhook.id = %self.endpoint.id, "webhook worker is waiting for the database");
        self.paused_until = Some(Instant::now() + RETRY_AFTER);
    }

    fn report_lag(&self) {
        let oldest = [self.queue.oldest(), self.oldest_in_table].into_iter().flatten().min();
        self.shared.app.metrics.webhooks.set_oldest_waiting(self.company(), self.endpoint.id.0, oldest);
    }

    /// Writes all outcomes in memory, and disables the webhook if there is a reason. Failed writes are retried until
    /// `retry_until`; deliveries whose outcome is not written are repeated.
    async fn end(mut self, disable_reason: Option<DisableReason>, retry_until: Option<Instant>) {
        let (shared, endpoint) = (self.shared.clone(), self.endpoint.clone());
        shared.app.metrics.webhooks.set_oldest_waiting(endpoint.company, endpoint.id.0, None);
        let mut batch = self.queue.has_batch().then(|| self.queue.take_batch());
        let contents = self.contents();
        let background = shared.app.engine.background().clone();
        let task = background.spawn(async move {
            while let Some(unwritten) = batch.take() {
                let Err(WriteFailure { batch: unwritten_batch, reason }) =
                    write_outcomes(&shared, &endpoint, unwritten, contents.clone()).await
                else {
                    break;
                };
                if retry_until.is_none_or(|until| Instant::now() >= until) {
                    tracing::debug!(reason, webhook.id = %endpoint.id, "could not save delivery results; the last deliveries may be repeated");
                    break;
                }
                batch = Some(unwritten_batch);
                sleep(RETRY_AFTER).await;
            }
            if let Some(reason) = disable_reason {
                disable(&shared, &endpoint, reason).await;
            }
        });
        drop(task.await);
        drop(self.presence);
    }
}

/// Waits for the running statement, forever if there is none.
async fn await_statement(statement: &mut Option<JoinHandle<StatementResult>>) -> Result<StatementResult, JoinError> {
    match statement {
        Some(statement) => statement.await,
        None => std::future::pending().await,
    }
}
