//! Removes references to deleted records in steps, after the deletion has been answered ([decision
//! 50](../../../docs/decisions/0050-shared-records-are-deleted-in-steps.md)).
//!
//! A table lists the pending deletions, so a kill or an outage only delays this. Companies are processed concurrently;
//! each uses its share of the connections, for at most half of the time.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hotline_persistence::tables::cascades::{self, Cascade, DeletedRecord};
use hotline_persistence::tables::events::act_as;
use hotline_persistence::{CompanyId, Database};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::schedules::Schedules;
use crate::Refusal;
use crate::base::Base;

/// Maximum companies whose steps are taken concurrently, and maximum that are read at once; the others follow.
const COMPANIES_MAX: usize = 8;

/// Maximum deleted records of a company in one turn, and maximum steps for each; then the next company has its turn.
const RECORDS_MAX: i64 = 20;
const STEPS_MAX: usize = 10;

/// Failed steps of a record after which the operator is warned. A single failure may be due to an outage or a deadlock.
const FAILURES_BEFORE_WARNING: i32 = 3;

/// Removes the references to deleted records.
pub struct Cascades {
    base: Arc<Base>,
    schedules: Arc<Schedules>,
    /// Notified when a deletion may be pending.
    wake: Notify,
    /// Steps that failed while the database answered.
    failures: AtomicU64,
}

/// The outcome of a company's turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnOutcome {
    /// Nothing is left.
    Done,
    /// More is left.
    HasMore,
    /// Nothing can be done now: an outage, a failure, or another process serves the company.
    Blocked,
}

impl Cascades {
    pub(super) fn new(base: Arc<Base>, schedules: Arc<Schedules>) -> Self {
        Self { base, schedules, wake: Notify::new(), failures: AtomicU64::new(0) }
    }

    /// Takes the first step after a record was deleted; if few records refer to it, this is also the last. Further
    /// steps, and the retry of a failed one, follow after the deletion has been answered.
    pub async fn begin(&self, company: CompanyId, cascade: Cascade) {
        let first_step = async {
            let Some(deletion) = cascades::find(self.base.db(company), company, cascade).await? else {
                return Ok(false);
            };
            let outcome = self.step(&deletion).await;
            if let Err(refusal) = &outcome {
                self.record_failure(&deletion, refusal).await;
            }
            outcome
        };
        if !matches!(first_step.await, Ok(false)) {
            self.wake.notify_one();
        }
    }

    /// Steps that failed while the database answered. Each is retried.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Moves a record whose step has failed behind the others of its company, so that it blocks none.
    async fn record_failure(&self, deletion: &DeletedRecord, refusal: &Refusal) {
        match cascades::count_failure(self.base.db(deletion.company), deletion).await {
            Ok(failures) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                if failures == Some(FAILURES_BEFORE_WARNING) {
                    tracing::warn!(
                        %refusal, company.id = %deletion.company, record = ?deletion.cascade,
                        "could not remove references to a deleted record; they stay hidden and removal is retried: correct what the error names"
                    );
                }
            }
            Err(error) => {
                tracing::debug!(%error, company.id = %deletion.company, "cleanup after a deletion will be retried");
            }
        }
    }

    /// Takes the steps of all companies, as long as the engine lives.
    pub(super) async fn run(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.base.options.sweep_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut turns, mut busy, mut last_started) = (JoinSet::new(), HashSet::new(), CompanyId::new(0));
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.wake.notified() => {}
                Some(ended) = turns.join_next_with_id(), if !turns.is_empty() => {
                    // An error: the turn panicked, which was logged.
                    let (task, turn) = ended.unwrap_or_else(|error| (error.id(), TurnOutcome::Blocked));
                    busy.retain(|(_, busy_task)| *busy_task != task);
                    // What is blocked is not retried at once, but at the next tick or deletion.
                    if turn == TurnOutcome::Blocked {
                        continue;
                    }
                }
            }
            let (store, starts_max) = (&self.base.store, COMPANIES_MAX - busy.len());
            let limit = i64::try_from(COMPANIES_MAX).unwrap_or(i64::MAX);
            let slots = store.ownership().slot_filter();
            let found = match cascades::companies(&store.housekeeping, &slots, last_started, limit).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::debug!(%error, "cleanup after deletions will be retried");
                    continue;
                }
            };
            let is_free = |company: &CompanyId| !busy.iter().any(|(busy_company, _)| busy_company == company);
            let next: Vec<CompanyId> = found.into_iter().filter(is_free).take(starts_max).collect();
            for company in next {
                let cascades = self.clone();
                let task = turns.spawn_on(async move { cascades.turn(company).await }, &self.base.background);
                busy.insert((company, task.id()));
                last_started = company;
            }
        }
    }

    /// Takes some steps of each of a company's deleted records, or of the first [`RECORDS_MAX`] of them.
    async fn turn(&self, company: CompanyId) -> TurnOutcome {
        let deletions = match self.base.store.ownership().try_enter(company) {
            // Another process serves the company, and takes its steps.
            None => return TurnOutcome::Blocked,
            Some(_presence) => cascades::unfinished(self.base.db(company), company, RECORDS_MAX).await,
        };
        let deletions = match deletions {
            Ok(deletions) => deletions,
            Err(error) => {
                tracing::debug!(%error, company.id = %company, "cleanup after deletions will be retried");
                return TurnOutcome::Blocked;
            }
        };
        let (mut has_more, mut has_failed) =
            (i64::try_from(deletions.len()).is_ok_and(|read| read >= RECORDS_MAX), false);
        for deletion in &deletions {
            match self.take_steps(deletion).await {
                Ok(is_unfinished) => has_more |= is_unfinished,
                // A failed step does not block other records.
                Err(refusal) => {
                    self.record_failure(deletion, &refusal).await;
                    has_failed = true;
                }
            }
        }
        match (has_more, has_failed) {
            (_, true) => TurnOutcome::Blocked,
            (true, false) => TurnOutcome::HasMore,
            (false, false) => TurnOutcome::Done,
        }
    }

    /// Takes some steps of a record. Returns whether more is left.
    async fn take_steps(&self, deletion: &DeletedRecord) -> Result<bool, Refusal> {
        for _ in 0..STEPS_MAX {
            let started_at = Instant::now();
            // If the company is not served here now, its next process finds the rest in the table.
            let Some(presence) = self.base.store.ownership().try_enter(deletion.company) else { return Ok(false) };
            if !self.step(deletion).await? {
                return Ok(false);
            }
            drop(presence);
            // Leaves the database to the company's other work for half of the time.
            tokio::time::sleep(started_at.elapsed()).await;
        }
        Ok(true)
    }

    /// Takes one step, in the name of the deletion's author. Returns whether more is left.
    async fn step(&self, deletion: &DeletedRecord) -> Result<bool, Refusal> {
        act_as(deletion.by.clone(), async {
            let mut transaction = self.base.db(deletion.company).heavy().begin().await?;
            let has_more = cascades::step(transaction.connection()?, deletion).await?;
            let is_contact = matches!(deletion.cascade, Cascade::Contact(_));
            if !has_more && !is_contact {
                cascades::finish(transaction.connection()?, deletion).await?;
            }
            hotline_persistence::fail_point!("cascade_step", |_| std::process::abort());
            transaction.commit().await?;
            hotline_persistence::fail_point!("cascade_stepped", |_| std::process::abort());
            // A contact's scheduled messages are failed by their actor, outside the transaction. Until that is done,
            // the deletion stays listed.
            if let (false, Cascade::Contact(contact)) = (has_more, deletion.cascade) {
                self.schedules.fail_messages_to(deletion.company, contact, deletion.deleted_contact()).await?;
                cascades::finish(self.base.db(deletion.company), deletion).await?;
            }
            Ok(has_more)
        })
        .await
    }
}
