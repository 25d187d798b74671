//! What deleted records leave on others goes in steps, behind the answer to the deletion ([decision
//! 50](../../../docs/decisions/0050-shared-records-are-deleted-in-steps.md)).
//!
//! A table lists what is left, so a kill or an outage only delays this. Companies work beside each other, each on its share
//! of the connections and for half of the time.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hotline_persistence::tables::cascades::{self, Cascade, Gone};
use hotline_persistence::tables::events::acting;
use hotline_persistence::{CompanyId, Database};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::schedules::Schedules;
use crate::Refusal;
use crate::base::Base;

/// Maximum companies that take steps at a time, and maximum that are read at once; others have their turn after these.
const COMPANIES_MAX: usize = 8;

/// Maximum deleted records of a company in one turn, and maximum steps of each: then the next company has its turn.
const RECORDS_MAX: i64 = 20;
const STEPS_MAX: usize = 10;

/// Failed steps of a record after which its operator is warned. One may be the end of an outage, or a deadlock.
const FAILURES_WARNED: i32 = 3;

/// The steps that deleted records leave.
pub struct Cascades {
    base: Arc<Base>,
    schedules: Arc<Schedules>,
    /// Something may be left.
    left: Notify,
    /// Steps that failed while the database answered.
    failures: AtomicU64,
}

/// What a company's turn has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Nothing may be left.
    Done,
    /// More is left.
    HasMore,
    /// Nothing can be done now.
    Rests,
}

impl Cascades {
    pub(super) fn new(base: Arc<Base>, schedules: Arc<Schedules>) -> Self {
        Self { base, schedules, left: Notify::new(), failures: AtomicU64::new(0) }
    }

    /// Takes the first step after a record was deleted; for a record that few others show it is the last. What is left, also
    /// of a step that fails, goes behind the answer.
    pub async fn begin(&self, company: CompanyId, cascade: Cascade) {
        let begun = async {
            let Some(gone) = cascades::find(self.base.db(company), company, cascade).await? else { return Ok(false) };
            let stepped = self.step(&gone).await;
            if let Err(refusal) = &stepped {
                self.failed(&gone, refusal).await;
            }
            stepped
        };
        if !matches!(begun.await, Ok(false)) {
            self.left.notify_one();
        }
    }

    /// Steps that failed while the database answered. Each is retried.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Puts a record whose step has failed behind the others of its company, so that it holds up none.
    async fn failed(&self, gone: &Gone, refusal: &Refusal) {
        match cascades::count_failure(self.base.db(gone.company), gone).await {
            Ok(failures) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                if failures == Some(FAILURES_WARNED) {
                    tracing::warn!(
                        %refusal, company.id = %gone.company, record = ?gone.cascade,
                        "could not remove references to a deleted record; they stay hidden, and removal will be retried"
                    );
                }
            }
            Err(error) => {
                tracing::debug!(%error, company.id = %gone.company, "cleanup after a deletion will be retried");
            }
        }
    }

    /// Takes the steps of all companies, as long as the engine lives.
    pub(super) async fn run(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.base.options.sweep_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut turns, mut busy, mut after) = (JoinSet::new(), HashSet::new(), CompanyId::new(0));
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.left.notified() => {}
                Some(ended) = turns.join_next_with_id(), if !turns.is_empty() => {
                    let (task, turn) = match ended {
                        Ok((task, turn)) => (task, turn),
                        // It panicked, which was logged.
                        Err(error) => (error.id(), Turn::Rests),
                    };
                    busy.retain(|(_, of)| *of != task);
                    // An outage is not met again at once.
                    if turn == Turn::Rests {
                        continue;
                    }
                }
            }
            let (store, room) = (&self.base.store, COMPANIES_MAX - busy.len());
            let limit = i64::try_from(COMPANIES_MAX).unwrap_or(i64::MAX);
            let of = store.ownership().of_slots();
            let found = match cascades::companies(&store.housekeeping, &of, after, limit).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::debug!(%error, "cleanup after deletions will be retried");
                    continue;
                }
            };
            let is_free = |company: &CompanyId| !busy.iter().any(|(at_work, _)| at_work == company);
            let next: Vec<CompanyId> = found.into_iter().filter(is_free).take(room).collect();
            for company in next {
                let this = self.clone();
                let task = turns.spawn_on(async move { this.turn(company).await }, &self.base.background);
                busy.insert((company, task.id()));
                after = company;
            }
        }
    }

    /// Some steps of each of a company's deleted records, or of the first of them.
    async fn turn(&self, company: CompanyId) -> Turn {
        let left = match self.base.store.ownership().try_enter(company) {
            // Another process serves it, and takes its steps.
            None => return Turn::Rests,
            Some(_presence) => cascades::unfinished(self.base.db(company), company, RECORDS_MAX).await,
        };
        let left = match left {
            Ok(left) => left,
            Err(error) => {
                tracing::debug!(%error, company.id = %company, "cleanup after deletions will be retried");
                return Turn::Rests;
            }
        };
        let (mut has_more, mut has_failed) = (i64::try_from(left.len()).is_ok_and(|read| read >= RECORDS_MAX), false);
        for gone in &left {
            match self.some_steps(gone).await {
                Ok(is_left) => has_more |= is_left,
                // It holds up no other.
                Err(refusal) => {
                    self.failed(gone, &refusal).await;
                    has_failed = true;
                }
            }
        }
        match (has_more, has_failed) {
            (_, true) => Turn::Rests,
            (true, false) => Turn::HasMore,
            (false, false) => Turn::Done,
        }
    }

    /// Returns whether more is left.
    async fn some_steps(&self, gone: &Gone) -> Result<bool, Refusal> {
        for _ in 0..STEPS_MAX {
            let began = Instant::now();
            let Some(presence) = self.base.store.ownership().try_enter(gone.company) else { return Ok(false) };
            if !self.step(gone).await? {
                return Ok(false);
            }
            drop(presence);
            // Others of the company have the database for half of the time.
            tokio::time::sleep(began.elapsed()).await;
        }
        Ok(true)
    }

    /// One step, by the author of the deletion. Returns whether more is left.
    async fn step(&self, gone: &Gone) -> Result<bool, Refusal> {
        acting(gone.by.clone(), async {
            let mut change = self.base.db(gone.company).heavy().begin().await?;
            let has_more = cascades::step(change.connection()?, gone).await?;
            let is_contact = matches!(gone.cascade, Cascade::Contact(_));
            if !has_more && !is_contact {
                cascades::end(change.connection()?, gone).await?;
            }
            hotline_persistence::fail_point!("cascade_step", |_| std::process::abort());
            change.commit().await?;
            hotline_persistence::fail_point!("cascade_stepped", |_| std::process::abort());
            if let (false, Cascade::Contact(contact)) = (has_more, gone.cascade) {
                self.schedules.fail_of_contact(gone.company, contact, gone.contact_was()).await?;
                cascades::end(self.base.db(gone.company), gone).await?;
            }
            Ok(has_more)
        })
        .await
    }
}
