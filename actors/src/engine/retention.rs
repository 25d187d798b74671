//! Retention: conversations that have been closed for longer than their company keeps them are deleted with all their
//! data. Contacts and the figures of reports stay ([decision
//! 47](../../../docs/decisions/0047-conversations-are-deleted-while-their-contact-is-locked.md)).
//!
//! The deletion has the lowest priority. It works in steps, pauses after each in proportion to its time in the
//! database, and takes companies in turns. The contacts of a step are marked while it runs, like contacts that are
//! being deleted: no decision is made for them until the outcome is known. So no one changes a conversation that is
//! being deleted, and no entry of the log restores one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hotline_persistence::tables::events;
use hotline_persistence::tables::retentions::{self, ExpiredConversation, RemovedConversations, RetentionRule};
use hotline_persistence::{CompanyId, ContactId, Database, Db, Error, PlainTransaction, SessionId, TicketId};
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;

use super::sessions::Sessions;
use crate::Refusal;
use crate::base::Base;
use crate::base::retry::until_finished;
use crate::clock::now;
use crate::contacts::{ContactCache, ContactMark};
use crate::ticket_actor::{TicketDeleted, TicketScope};

/// Maximum number of tickets of the first step, and of any step. Their contacts wait during the step, so it must be too
/// short to be noticed.
const TICKETS_INITIAL: i64 = 25;
const TICKETS_MAX: i64 = 200;

/// A step whose time in the database is shorter than the low limit doubles the size of the next; one longer than the
/// high limit halves it. The wait for the persister does not count: it takes as long for one ticket as for many.
const STEP_TIME_LOW: Duration = Duration::from_millis(50);
const STEP_TIME_HIGH: Duration = Duration::from_millis(200);

/// The length of the pause after a step, in multiples of its time in the database: other work has the database for four
/// fifths of the time.
const PAUSE_FACTOR: u32 = 4;

/// Maximum rows of events deleted in one step. A row may take up to 64 KiB.
const EVENT_ROWS_MAX: i64 = 1_000;

/// Pause between a company's runs. Ages are counted in days, so a delay of minutes does not matter.
const RUN_PAUSE: Duration = Duration::from_secs(600);

/// Deletes expired conversations.
pub struct Retention {
    base: Arc<Base>,
    contacts: Arc<ContactCache>,
    tickets: Arc<TicketScope>,
    sessions: Arc<Sessions>,
    runs: Mutex<HashMap<CompanyId, RetentionRun>>,
    removed: AtomicU64,
}

/// Statistics of what was deleted since the start, and of what is overdue.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetentionStats {
    /// Deleted conversations.
    pub removed: u64,
    /// How long the oldest remaining conversation has been overdue.
    pub longest_overdue: Duration,
}

/// One run over a company, from the conversation that was closed longest ago.
#[derive(Clone, Debug)]
struct RetentionRun {
    rule: RetentionRule,
    started_at: Instant,
    /// The last ticket that was examined.
    after: (DateTime<Utc>, TicketId),
    tickets_max: i64,
    /// The closing time of the first ticket that this run has skipped.
    oldest_skipped: Option<DateTime<Utc>>,
    /// The closing time of the first ticket of the current step; before the first step, of what the last run skipped.
    oldest_examined: Option<DateTime<Utc>>,
    /// What this run has deleted.
    tickets: u64,
    messages: u64,
    events: u64,
    /// `None` until the run has ended.
    ended_at: Option<Instant>,
}

/// The outcome of a step.
struct RetentionStepOutcome {
    /// Whether the company's run takes no further step in this round.
    is_over: bool,
    /// How long it used the database, without waiting for the persister.
    database_time: Duration,
}

impl RetentionRun {
    fn of(rule: RetentionRule) -> Self {
        Self {
            rule,
            started_at: Instant::now(),
            after: (DateTime::UNIX_EPOCH, TicketId::new(0)),
            tickets_max: TICKETS_INITIAL,
            oldest_skipped: None,
            oldest_examined: None,
            tickets: 0,
            messages: 0,
            events: 0,
            ended_at: None,
        }
    }

    /// The run to continue now: this one, a new one, or none yet.
    fn next(&self, rule: RetentionRule) -> Option<Self> {
        match self.ended_at {
            _ if self.rule != rule => Some(Self::of(rule)),
            None => Some(self.clone()),
            Some(ended_at) if ended_at.elapsed() >= RUN_PAUSE => {
                // What this run skipped is still overdue, so it counts until the new run has examined a ticket.
                Some(Self { oldest_examined: self.oldest_skipped, ..Self::of(rule) })
            }
            Some(_) => None,
        }
    }

    /// Records the outcome of a step.
    fn record_step(&mut self, expired: &[ExpiredConversation], removed: &RemovedConversations) {
        if let Some(last) = expired.last() {
            self.after = (last.closed_at, last.id);
        }
        let skipped = expired.iter().find(|conversation| !removed.tickets.contains(&conversation.id));
        self.oldest_skipped = self.oldest_skipped.or(skipped.map(|conversation| conversation.closed_at));
        self.tickets += removed.tickets.len() as u64;
        self.messages += removed.messages;
    }

    /// Halves the next step. A single ticket that fails is skipped until the next run, so that it blocks no other.
    fn record_failure(&mut self, expired: &[ExpiredConversation]) {
        if self.tickets_max == 1 {
            self.record_step(expired, &RemovedConversations::default());
        }
        self.tickets_max = (self.tickets_max / 2).max(1);
    }

    /// Adapts the size of the next step to how long this one used the database.
    fn adapt_size(&mut self, database_time: Duration) {
        if database_time > STEP_TIME_HIGH {
            self.tickets_max = (self.tickets_max / 2).max(1);
        } else if database_time < STEP_TIME_LOW {
            self.tickets_max = (self.tickets_max * 2).min(TICKETS_MAX);
        }
    }

    /// Logs what the run has deleted, if anything.
    fn log_removals(&self) {
        let Self { rule, tickets, messages, events, .. } = *self;
        if tickets + events == 0 {
            return;
        }
        let duration_ms = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(
            company.id = %rule.company_id, days = rule.days, conversations = tickets, messages, events, duration_ms,
            "removed conversations past their retention"
        );
    }
}

impl Retention {
    pub(super) fn new(
        base: Arc<Base>,
        contacts: Arc<ContactCache>,
        tickets: Arc<TicketScope>,
        sessions: Arc<Sessions>,
    ) -> Self {
        Self { base, contacts, tickets, sessions, runs: Mutex::default(), removed: AtomicU64::new(0) }
    }

    /// Deletes expired conversations for as long as the process runs. Calls `on_orphaned_files` when files have lost
    /// their messages.
    pub async fn run(&self, on_orphaned_files: impl Fn() + Send + Sync) {
        let mut ticks = tokio::time::interval(self.base.options.sweep_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let store = &self.base.store;
            match retentions::rules(&store.housekeeping, &store.ownership().slot_filter()).await {
                Ok(rules) => self.run_round(rules, &on_orphaned_files).await,
                Err(error) => tracing::debug!(%error, "could not read retention rules; will retry"),
            }
        }
    }

    /// Works on all companies that have something left, in turns, until the retention rules are due to be read again.
    async fn run_round(&self, rules: Vec<RetentionRule>, on_orphaned_files: &(impl Fn() + Send + Sync)) {
        self.runs.lock().retain(|company, _| rules.iter().any(|rule| rule.company_id == *company));
        let started_at = Instant::now();
        let mut rules_left = rules;
        while !rules_left.is_empty() {
            let mut unfinished = Vec::new();
            for rule in rules_left {
                let Some(presence) = self.base.store.ownership().try_enter(rule.company_id) else { continue };
                let run = self
                    .runs
                    .lock()
                    .get(&rule.company_id)
                    .map_or_else(|| Some(RetentionRun::of(rule)), |run| run.next(rule));
                let Some(run) = run else { continue };
                let step_started_at = Instant::now();
                let database_time = match self.step(run, on_orphaned_files).await {
                    Ok(step) => {
                        if !step.is_over {
                            unfinished.push(rule);
                        }
                        step.database_time
                    }
                    Err(refusal) => {
                        tracing::debug!(%refusal, company.id = %rule.company_id, "retention run will be retried");
                        step_started_at.elapsed()
                    }
                };
                drop(presence);
                tokio::time::sleep(database_time * PAUSE_FACTOR).await;
            }
            rules_left = if started_at.elapsed() < self.base.options.sweep_every { unfinished } else { Vec::new() };
        }
    }

    /// Takes one step of a company's run.
    async fn step(
        &self,
        mut run: RetentionRun,
        on_orphaned_files: &(impl Fn() + Send + Sync),
    ) -> Result<RetentionStepOutcome, Refusal> {
        let (rule, company) = (run.rule, run.rule.company_id);
        let db = self.base.reads().tables(company).await?;
        let started_at = Instant::now();
        let expired = retentions::due(db, &rule, run.after, run.tickets_max).await?;
        run.oldest_examined = expired.first().map(|conversation| conversation.closed_at);
        self.runs.lock().insert(company, run.clone());
        let mut database_time = started_at.elapsed();
        if expired.is_empty() {
            self.remove_events(db, &mut run).await?;
            database_time = started_at.elapsed();
        } else {
            let (removed, deletion_time) = match self.remove(&rule, &expired).await {
                Ok(Some(removed)) => removed,
                // The company's rule has changed; it is read again soon.
                Ok(None) => return Ok(RetentionStepOutcome { is_over: true, database_time }),
                Err(refusal) => {
                    run.record_failure(&expired);
                    self.runs.lock().insert(company, run);
                    return Err(refusal);
                }
            };
            if removed.files > 0 {
                on_orphaned_files();
            }
            self.removed.fetch_add(removed.tickets.len() as u64, Ordering::Relaxed);
            run.record_step(&expired, &removed);
            database_time += deletion_time;
            run.adapt_size(database_time);
        }
        let is_over = run.ended_at.is_some();
        self.runs.lock().insert(company, run);
        Ok(RetentionStepOutcome { is_over, database_time })
    }

    /// Deletes old events, and ends the run if no more are left.
    async fn remove_events(&self, db: Db<'_>, run: &mut RetentionRun) -> Result<(), Refusal> {
        let (rule, company) = (run.rule, run.rule.company_id);
        let events = events::remove_old(db.heavy(), company, rule.days, EVENT_ROWS_MAX).await?;
        if events > 0 {
            self.base.store.publish_removal(company);
        }
        run.events += events;
        if events < EVENT_ROWS_MAX.unsigned_abs() {
            retentions::record_run(db, &rule).await?;
            run.ended_at = Some(Instant::now());
            run.log_removals();
        }
        Ok(())
    }

    /// Deletes the conversations of `expired` that are still expired, and returns how long that took in the database.
    /// `None` if the company's rule has changed meanwhile.
    async fn remove(
        &self,
        rule: &RetentionRule,
        expired: &[ExpiredConversation],
    ) -> Result<Option<(RemovedConversations, Duration)>, Refusal> {
        let company = rule.company_id;
        // Begun before contacts are marked: it may wait for other heavy work, and conversations must not wait with it.
        let mut transaction = self.base.db(company).heavy().begin().await?;
        let marks = self.mark_contacts(company, expired);
        let removable = expired.iter().filter(|conversation| marks.contains_key(&conversation.contact_id));
        let tickets: Vec<TicketId> = removable.map(|conversation| conversation.id).collect();
        let marked: Vec<ContactId> = marks.keys().copied().collect();
        // After both waits, earlier decisions are in the tables; the marks prevent new ones.
        self.base.arbiters.wait_for_current_messages().await;
        self.base.reads().tables(company).await?;
        // Without actors the tickets are read from the tables, where one commit deletes all their rows.
        self.end_actors(company, &tickets).await;
        let deletion_started_at = Instant::now();
        let Some(removed) = retentions::remove(transaction.connection()?, rule, (&tickets, &marked)).await? else {
            return Ok(None);
        };
        hotline_persistence::fail_point!("retention_removed", |_| std::process::abort());
        if let Err(error) = commit(transaction).await {
            // The deletion may have been committed. The marks stay until that is known.
            let check = || retentions::wait_for_outcome(self.base.db(company), company, &removed.tickets);
            until_finished(company, "a deletion of conversations", check).await;
            self.forget(company, &removed.tickets, &removed.sessions).await;
            return Err(error.into());
        }
        hotline_persistence::fail_point!("retention_committed", |_| std::process::abort());
        let deletion_time = deletion_started_at.elapsed();
        self.forget(company, &removed.tickets, &removed.sessions).await;
        drop(marks);
        Ok(Some((removed, deletion_time)))
    }

    /// Marks the contacts of these conversations. A contact that is marked already is skipped: if it is being deleted,
    /// its tickets are deleted with it.
    fn mark_contacts(&self, company: CompanyId, expired: &[ExpiredConversation]) -> HashMap<ContactId, ContactMark> {
        let mut marks: HashMap<ContactId, ContactMark> = HashMap::new();
        for ExpiredConversation { contact_id, .. } in expired {
            if !marks.contains_key(contact_id)
                && let Some(mark) = self.contacts.marks.try_mark((company, *contact_id))
            {
                marks.insert(*contact_id, mark);
            }
        }
        marks
    }

    /// Drops tickets and sessions of marked contacts from memory, and reports that content of their events was deleted.
    /// If they were not deleted after all, they are read from the tables again.
    async fn forget(&self, company: CompanyId, tickets: &[TicketId], sessions: &[SessionId]) {
        // Loading a ticket holds the read lock until its actor is registered. So actors that were loaded before are
        // ended here, and later ones are loaded from the current tables.
        let _lock = self.contacts.write_lock(company).await;
        self.end_actors(company, tickets).await;
        self.sessions.forget(company, sessions);
        self.base.store.publish_removal(company);
    }

    async fn end_actors(&self, company: CompanyId, tickets: &[TicketId]) {
        for ticket in tickets {
            if let Some(hot) = self.tickets.hot.get(&(company, *ticket)) {
                // The actor may have ended already.
                let _ = hot.addr.send(TicketDeleted).await;
            }
        }
    }

    /// Drops the run of a company that this process no longer serves.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, contacts: _, tickets: _, sessions: _, runs, removed: _ } = self;
        runs.lock().remove(&company);
    }

    /// Statistics of deletions, and of what is overdue.
    pub fn stats(&self) -> RetentionStats {
        let now = now();
        let due_since = |run: &RetentionRun| {
            run.oldest_skipped.into_iter().chain(run.oldest_examined).min().map(|closed_at| closed_at + run.rule.age())
        };
        let oldest = self.runs.lock().values().filter_map(due_since).min();
        let longest_overdue = oldest.and_then(|since| (now - since).to_std().ok()).unwrap_or_default();
        RetentionStats { removed: self.removed.load(Ordering::Relaxed), longest_overdue }
    }
}

async fn commit(transaction: PlainTransaction) -> Result<(), Error> {
    hotline_persistence::fail_point!("retention_unclear", |_| Err(Error::Unavailable("fail point".to_owned())));
    transaction.commit().await?;
    hotline_persistence::fail_point!("retention_lost", |_| Err(Error::Unavailable("fail point".to_owned())));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: RetentionRule =
        RetentionRule { company_id: CompanyId::new(1), days: 30, updated_at: DateTime::UNIX_EPOCH };

    fn expired(id: i64) -> ExpiredConversation {
        let closed_at = DateTime::from_timestamp(id, 0).unwrap_or_default();
        ExpiredConversation { id: TicketId::new(id), contact_id: ContactId::new(id), closed_at }
    }

    #[test]
    fn tickets_that_remain_are_skipped_and_a_long_step_shrinks_the_next() {
        let mut run = RetentionRun::of(RULE);
        let removed = RemovedConversations { tickets: vec![TicketId::new(1)], ..RemovedConversations::default() };
        run.record_step(&[expired(1), expired(2), expired(3)], &removed);
        run.record_step(&[expired(4)], &RemovedConversations::default());
        assert_eq!((run.after.1, run.oldest_skipped, run.tickets), (TicketId::new(4), Some(expired(2).closed_at), 1));
        run.adapt_size(STEP_TIME_LOW / 2);
        assert_eq!(run.tickets_max, 2 * TICKETS_INITIAL);
        for _ in 0..20 {
            run.adapt_size(STEP_TIME_HIGH * 2);
        }
        assert_eq!(run.tickets_max, 1);
        run.record_failure(&[expired(5)]);
        assert_eq!((run.after.1, run.tickets_max), (TicketId::new(5), 1), "a ticket that fails alone is skipped");
        for _ in 0..20 {
            run.adapt_size(Duration::ZERO);
        }
        assert_eq!(run.tickets_max, TICKETS_MAX);
    }

    #[test]
    fn a_run_continues_until_it_ends_and_restarts_when_the_rule_changes() {
        let mut run = RetentionRun::of(RULE);
        run.after = (DateTime::UNIX_EPOCH, TicketId::new(7));
        assert_eq!(run.next(RULE).map(|run| run.after.1), Some(TicketId::new(7)));
        run.ended_at = Some(Instant::now());
        assert!(run.next(RULE).is_none(), "the run has just ended");
        let changed = RetentionRule { updated_at: DateTime::UNIX_EPOCH + RULE.age(), ..RULE };
        assert_eq!(run.next(changed).map(|run| run.after.1), Some(TicketId::new(0)));
    }
}
