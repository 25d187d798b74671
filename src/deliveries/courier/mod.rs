//! The courier of one webhook: it reads the log, starts the deliveries of its events, and writes their outcomes. It
//! runs one statement at a time, beside many attempts. Its only timers are for what is due, so an idle webhook costs
//! nothing.

mod work;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hotline_actors::clock;
use hotline_persistence::tables::events::After;
use hotline_persistence::tables::webhooks::Endpoint;
use hotline_persistence::tables::webhooks::deliveries::DeliveryStatus;
use hotline_persistence::{CompanyId, LoggedEventId, Presence};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use self::work::{Known, NOT_SERVED, Recorded, Unwritten, Work, due, switch_off, write};
use super::Shared;
use super::line::{Consequence, Failing, Letter, Line, Why};
use super::log::{self, Page};
use super::places::Place;
use crate::metrics::AttemptEnd;
use crate::webhooks::Tried;

/// How long outcomes are collected before they are written, so that each costs only a part of a transaction.
const WRITE_EVERY: Duration = Duration::from_millis(100);

/// Outcomes that are written at once, without further delay.
const WRITTEN_AT_ONCE: usize = 64;

/// How often the position is written while the webhook only skips events that it does not want.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Minimum room for reading more events, so that the cost of a read is shared by many.
const READ_MIN: usize = 64;

/// Deliveries that are read from the table at once.
const DUE_AT_ONCE: usize = 64;

/// Pause after a failed statement.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How long a courier that is to rest waits for the answers to attempts under way. Nearly every endpoint answers in this
/// time, and it is less than the 5 s that requests wait for a company that moves. What is not answered by then is sent
/// again by the next owner.
const REST_TIME_MAX: Duration = Duration::from_secs(2);

/// What is shown of an event that is withheld.
const WITHHELD: &str = "the webhook's creator may not see every card";

/// An event and how its attempt ended; `None`: it is withheld.
type Attempts = FuturesUnordered<BoxFuture<'static, (i64, Option<Tried>)>>;

/// The courier of one webhook.
pub(super) struct Courier {
    shared: Arc<Shared>,
    news: watch::Receiver<Arc<Endpoint>>,
    /// Notified when the courier is to rest.
    rest: Arc<Notify>,
    endpoint: Arc<Endpoint>,
    line: Line,
    /// Held while anything is in memory: the company is closed only after the outcomes are written.
    presence: Option<Presence>,
    after: After,
    /// Whether the log may contain further events.
    is_behind: bool,
    /// When the next delivery in the table is due.
    due_at: Option<DateTime<Utc>>,
    /// The age of the oldest delivery in the table.
    oldest_in_table: Option<DateTime<Utc>>,
    /// When something in memory must be noted in the table.
    note_at: Option<DateTime<Utc>>,
    written_at: Instant,
    /// No statements before this time.
    paused_until: Option<Instant>,
}

impl Courier {
    pub(super) fn new(shared: Arc<Shared>, news: watch::Receiver<Arc<Endpoint>>, rest: Arc<Notify>) -> Self {
        let endpoint = news.borrow().clone();
        let failing = endpoint.failing_since.map(|since| Failing { since, last: endpoint.failed_at.unwrap_or(since) });
        Self {
            shared,
            news,
            rest,
            line: Line::new(endpoint.told_to, failing),
            presence: None,
            after: After::event(LoggedEventId::new(endpoint.told_to)),
            endpoint,
            is_behind: true,
            due_at: Some(clock::now()),
            oldest_in_table: None,
            note_at: None,
            written_at: Instant::now(),
            paused_until: None,
        }
    }

    fn company(&self) -> CompanyId {
        self.endpoint.company
    }

    /// Delivers until the webhook is deleted, disabled or repositioned, until the company's deliveries are to rest, or
    /// until the service stops.
    pub(super) async fn run(mut self) {
        let Some(mut listening) = self.shared.app.engine.listen(self.company()) else { return };
        let shared = self.shared.clone();
        let mut stopping = shared.stopping.clone();
        let mut attempts: Attempts = FuturesUnordered::new();
        let mut work: Option<JoinHandle<Work>> = None;
        let rest = self.rest.clone();
        let mut rests_until = None;
        let mut ends = loop {
            let freed = shared.places.freed();
            tokio::pin!(freed);
            // Enabled before a place is requested, so that a release in between is not missed.
            freed.as_mut().enable();
            let is_refused = self.begin_attempts(&mut attempts);
            let now = clock::now();
            if self.note_at.is_none_or(|at| at <= now) {
                self.note_at = self.line.note(now);
            }
            if work.is_none() {
                work = self.begin_work(now);
            }
            if work.is_none() && self.line.is_empty() {
                self.presence = None;
            }
            let wake_in = self.wake_in(now, work.is_some());
            tokio::select! {
                Some((event, tried)) = attempts.next(), if !attempts.is_empty() => {
                    if let Some(why) = self.tried(event, tried.as_ref()) {
                        break Some(why);
                    }
                }
                done = async { match &mut work { Some(work) => work.await, None => std::future::pending().await } } => {
                    work = None;
                    match done {
                        Ok(done) => {
                            if !self.did(done) {
                                break None;
                            }
                        }
                        Err(error) => {
                            tracing::error!(%error, webhook.id = %self.endpoint.id, "webhook worker failed unexpectedly");
                            break None;
                        }
                    }
                }
                () = listening.changed() => self.is_behind = true,
                changed = self.news.changed() => {
                    if changed.is_err() || self.leads_elsewhere() {
                        break None;
                    }
                }
                () = rest.notified() => {
                    rests_until = Some(Instant::now() + REST_TIME_MAX);
                    break None;
                }
                _ = stopping.wait_for(|is_stopping| *is_stopping) => break None,
                () = &mut freed, if is_refused => {}
                () = tokio::time::sleep(wake_in.unwrap_or_default()), if wake_in.is_some() => {}
            }
        };
        if let Some(until) = rests_until {
            while let Ok(Some((event, tried))) = timeout_at(until, attempts.next()).await {
                ends = ends.or(self.tried(event, tried.as_ref()));
            }
        }
        drop(attempts);
        if let Some(Ok(done)) = match work {
            Some(work) => Some(work.await),
            None => None,
        } {
            self.did(done);
        }
        if rests_until.is_some() {
            // Otherwise the next owner would begin before those that were not delivered, and repeat the others.
            self.line.note_all(clock::now());
        }
        self.end(ends, rests_until).await;
    }

    /// Takes what the webhook is now. Whether it leads somewhere else: then another courier begins, and what is under way is
    /// sent there.
    fn leads_elsewhere(&mut self) -> bool {
        let endpoint = self.news.borrow_and_update().clone();
        let is_elsewhere = endpoint.url != self.endpoint.url;
        if is_elsewhere || endpoint.failing_since.is_none() {
            // It may be that the table has not been told yet that it fails: then it fails from its next failure on.
            self.line.forgive();
        }
        self.endpoint = endpoint;
        self.line.ask();
        self.due_at = Some(clock::now());
        self.is_behind = true;
        is_elsewhere
    }

    /// Starts all attempts that are possible now. Returns whether a place was refused.
    fn begin_attempts(&mut self, attempts: &mut Attempts) -> bool {
        while self.line.has_next() && self.may_act() {
            let Some(place) = self.shared.places.take(self.company()) else { return true };
            match self.line.next() {
                Some(letter) => {
                    attempts.push(Box::pin(attempt(self.shared.clone(), self.endpoint.clone(), letter, place)))
                }
                None => break,
            }
        }
        false
    }

    /// Whether an attempt may begin. Without the lease another process may have taken over, and would try the same; of a
    /// company that is about to move, nothing may begin that the move would wait for.
    fn may_act(&self) -> bool {
        let store = self.shared.app.engine.store();
        store.may_act() && store.ownership().owns(self.company())
    }

    /// Ensures that the company is not closed before what is to be in memory is written. `false`: it is not served now, or
    /// about to move.
    fn enter(&mut self) -> bool {
        let ownership = self.shared.app.engine.store().ownership();
        if self.presence.is_none() {
            self.presence = ownership.try_enter(self.company());
        }
        self.presence.is_some() && ownership.owns(self.company())
    }

    /// Records the outcome of an attempt; returns why the webhook must be disabled, if so.
    fn tried(&mut self, event: i64, tried: Option<&Tried>) -> Option<Why> {
        let Some(tried) = tried else {
            self.line.withheld(event, WITHHELD, clock::now());
            return None;
        };
        let (status, consequence) =
            self.line.ended(event, tried.verdict(), tried.attempt(), &self.shared.app.webhooks.plan, clock::now());
        self.shared.app.figures.webhooks.ended(match status {
            DeliveryStatus::Delivered => AttemptEnd::Delivered,
            DeliveryStatus::Pending => AttemptEnd::Retried,
            DeliveryStatus::Failed => AttemptEnd::Failed,
        });
        match consequence {
            Consequence::None => None,
            Consequence::SwitchOff(why) => Some(why),
        }
    }

    /// The next statement, if there is one.
    fn begin_work(&mut self, now: DateTime<Utc>) -> Option<JoinHandle<Work>> {
        if self.paused_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        self.paused_until = None;
        let shared = self.shared.clone();
        let endpoint = self.endpoint.clone();
        let background = self.shared.app.engine.background().clone();
        if self.is_to_be_written() {
            let writing = self.line.writing();
            let known = self.known();
            return Some(
                background.spawn(async move { Work::Written(write(&shared, &endpoint, writing, known).await) }),
            );
        }
        let room = self.line.room();
        let is_due = self.line.may_wait() && self.due_at.is_some_and(|at| at <= now) && room > 0;
        let is_to_be_read = self.is_behind && room >= READ_MIN;
        if (is_due || is_to_be_read) && !self.enter() {
            self.pause(NOT_SERVED);
            return None;
        }
        if is_due {
            let (known, limit) = (self.known(), room.min(DUE_AT_ONCE));
            return Some(background.spawn(async move { Work::Due(due(&shared, &endpoint, now, known, limit).await) }));
        }
        if is_to_be_read {
            self.is_behind = false;
            let (after, may_wait) = (self.after, self.line.may_wait());
            return Some(background.spawn(async move {
                let Some(_presence) = shared.app.engine.store().ownership().follow(endpoint.company) else {
                    return Work::Read(Err(NOT_SERVED.to_owned()));
                };
                Work::Read(log::page(&shared.app, &endpoint, after, room, may_wait).await)
            }));
        }
        None
    }

    fn known(&self) -> Known {
        Known { read_to: self.line.read_to(), held: self.line.held() }
    }

    fn is_to_be_written(&self) -> bool {
        let since = self.written_at.elapsed();
        self.line.is_unwritten() && (self.line.unwritten() >= WRITTEN_AT_ONCE || since >= self.write_after())
    }

    /// How long outcomes may be collected before they are written.
    fn write_after(&self) -> Duration {
        if self.line.is_asked() {
            Duration::ZERO
        } else if self.line.unwritten() == 0 {
            NOTE_EVERY
        } else {
            WRITE_EVERY
        }
    }

    /// When the next timer fires. While a statement is running, its result is awaited instead.
    fn wake_in(&self, now: DateTime<Utc>, is_working: bool) -> Option<Duration> {
        let at = |time: DateTime<Utc>| (time - now).to_std().unwrap_or_default();
        let mut next: Vec<Duration> = Vec::with_capacity(4);
        next.extend(self.note_at.map(at));
        if self.line.has_next() && !self.may_act() {
            next.push(RETRY_AFTER);
        }
        if !is_working {
            if let Some(until) = self.paused_until {
                next.push(until.saturating_duration_since(Instant::now()));
            } else {
                if self.line.is_unwritten() {
                    next.push(self.write_after().saturating_sub(self.written_at.elapsed()));
                }
                if self.line.may_wait() && self.line.room() > 0 {
                    next.extend(self.due_at.map(at));
                }
            }
        }
        // A clock that is set back must not cause a busy loop.
        next.into_iter().min().map(|pause| pause.max(Duration::from_millis(1)))
    }

    /// Processes the result of a statement. `false`: this courier's work is over.
    fn did(&mut self, work: Work) -> bool {
        match work {
            Work::Written(Ok(Recorded { stands, waiting })) => {
                self.written_at = Instant::now();
                if let Some(waiting) = waiting {
                    if waiting.oldest.is_none() {
                        self.line.none_waits();
                    }
                    self.due_at = waiting.next_at;
                    self.oldest_in_table = waiting.oldest;
                }
                self.tell_lag();
                return stands;
            }
            Work::Written(Err(Unwritten { writing, reason })) => {
                self.line.not_written(writing);
                self.pause(&reason);
            }
            Work::Due(Ok(due)) => {
                // Deliveries beyond the limit are due as soon as there is room.
                self.due_at = (due.len() >= DUE_AT_ONCE).then(clock::now);
                let now = clock::now();
                for (due, letter) in due {
                    match letter {
                        Some(letter) => self.line.take_due(&due, letter, now),
                        None => self.line.give_up(due, "the event has expired", now),
                    }
                }
                // The next write also asks what is due after these.
                self.line.look_again();
            }
            Work::Due(Err(reason)) => self.pause(&reason),
            Work::Read(Ok(Page { letters, next, has_more, busy })) => {
                self.after = next;
                self.is_behind |= has_more;
                self.line.take(letters, next.id.0, &busy, clock::now());
                self.note_at = None;
                self.tell_lag();
            }
            Work::Read(Err(reason)) => {
                self.is_behind = true;
                self.pause(&reason);
            }
        }
        true
    }

    fn pause(&mut self, reason: &str) {
        tracing::debug!(reason, webhook.id = %self.endpoint.id, "webhook worker is waiting for the database");
        self.paused_until = Some(Instant::now() + RETRY_AFTER);
    }

    fn tell_lag(&self) {
        let oldest = [self.line.oldest(), self.oldest_in_table].into_iter().flatten().min();
        self.shared.app.figures.webhooks.waits(self.company(), self.endpoint.id.0, oldest);
    }

    /// Writes all known outcomes, and disables the webhook if required. What cannot be written is tried again until then,
    /// if a time is given; whatever is not written is sent again.
    async fn end(mut self, why: Option<Why>, until: Option<Instant>) {
        let (shared, endpoint) = (self.shared.clone(), self.endpoint.clone());
        shared.app.figures.webhooks.waits(endpoint.company, endpoint.id.0, None);
        let mut writing = self.line.is_unwritten().then(|| self.line.writing());
        let known = self.known();
        let background = shared.app.engine.background().clone();
        let ending = background.spawn(async move {
            while let Some(unwritten) = writing.take() {
                let Err(Unwritten { writing: again, reason }) =
                    write(&shared, &endpoint, unwritten, known.clone()).await
                else {
                    break;
                };
                if until.is_none_or(|until| Instant::now() >= until) {
                    tracing::debug!(reason, webhook.id = %endpoint.id, "could not save delivery results; the last deliveries may be repeated");
                    break;
                }
                writing = Some(again);
                sleep(RETRY_AFTER).await;
            }
            if let Some(why) = why {
                switch_off(&shared, &endpoint, why).await;
            }
        });
        drop(ending.await);
        drop(self.presence);
    }
}

async fn attempt(shared: Arc<Shared>, endpoint: Arc<Endpoint>, letter: Letter, place: Place) -> (i64, Option<Tried>) {
    if !work::may_tell(&shared, &endpoint, &letter).await {
        return (letter.event, None);
    }
    let id = format!("evt_{}_{}", endpoint.company, letter.event);
    let figures = &shared.app.figures.webhooks;
    figures.set_under_way(shared.places.count());
    let secrets = endpoint.secrets_at(clock::now());
    let tried = shared.app.webhooks.deliver(&endpoint.url, secrets, &id, letter.json).await;
    drop(place);
    figures.set_under_way(shared.places.count());
    (letter.event, Some(tried))
}
