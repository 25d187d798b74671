//! Who may use a connection next: fair shares by company, granted in memory before a connection is asked for.
//!
//! A pool alone serves who comes first, so one company with enough requests takes all of it. Here each company has a
//! share of the connections, and a smaller one for statements that may be long; who waits in line at the pool is at
//! most one share of each company. A company that has used up its share waits for itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::CompanyId;

/// How much a piece of work may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It reads or writes a handful of rows: milliseconds.
    Light,
    /// It may read many rows to show a few, or writes many.
    Heavy,
}

/// The shares, in pieces of work at a time, and how many may wait.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Of all companies together.
    pub all: usize,
    /// Of one company.
    pub company: usize,
    /// Transactions of all companies together: fewer than `all`, so that a statement beside an open one finds a turn.
    pub changes: usize,
    /// Transactions of one company: fewer than `company`, for the same reason.
    pub company_changes: usize,
    /// Heavy ones of all companies together.
    pub heavy: usize,
    /// Heavy ones of one company.
    pub company_heavy: usize,
    /// Those of one company that wait, light and heavy.
    pub company_waiting: usize,
    /// Heavy ones of one company that wait: each may hold a large body.
    pub company_heavy_waiting: usize,
    /// How long one waits.
    pub wait: Duration,
}

impl Shares {
    /// Of work that is all of one kind, and opens no transactions: so much of all companies together, of one, and so
    /// much of one that waits.
    pub fn of_one_kind(all: usize, company: usize, company_waiting: usize, wait: Duration) -> Self {
        Self {
            all,
            company,
            changes: all,
            company_changes: company,
            heavy: all,
            company_heavy: company,
            company_waiting,
            company_heavy_waiting: company_waiting,
            wait,
        }
    }
}

/// Grants permits by company.
#[derive(Debug)]
pub struct Scheduler {
    shares: Shares,
    all: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    /// Those companies that have or want a permit right now.
    companies: DashMap<CompanyId, Arc<Company>>,
}

#[derive(Debug)]
struct Company {
    all: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    waiting: AtomicUsize,
    heavy_waiting: AtomicUsize,
}

/// A company's leave to do one piece of work; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    scheduler: Arc<Scheduler>,
    id: CompanyId,
    company: Option<Arc<Company>>,
    /// In the reverse order of how they were had.
    held: Vec<OwnedSemaphorePermit>,
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// More of this company's work waits than is kept in memory.
    #[error("too many requests of this company wait already")]
    TooMany,
    /// None was free in time.
    #[error("no turn was free in time")]
    TooLong,
    /// The service stops.
    #[error("the service is stopping")]
    Closed,
}

impl From<Denied> for sqlx::Error {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::TooMany => Self::Io(io::Error::other(denied)),
            Denied::TooLong => Self::PoolTimedOut,
            Denied::Closed => Self::PoolClosed,
        }
    }
}

impl From<Denied> for crate::Error {
    fn from(denied: Denied) -> Self {
        Self::Unavailable(denied.to_string())
    }
}

impl Scheduler {
    /// Grants these shares.
    pub fn new(shares: Shares) -> Arc<Self> {
        Arc::new(Self {
            shares,
            all: Arc::new(Semaphore::new(shares.all)),
            changes: Arc::new(Semaphore::new(shares.changes)),
            heavy: Arc::new(Semaphore::new(shares.heavy)),
            companies: DashMap::new(),
        })
    }

    /// Waits for a company's turn.
    ///
    /// # Errors
    /// [`Denied`] when too many of the company wait, or none was free in time.
    pub async fn permit(self: &Arc<Self>, id: CompanyId, weight: Weight) -> Result<Permit, Denied> {
        self.grant(id, weight, false).await
    }

    /// Waits for a company's turn to open a transaction. Who holds one may wait for a turn of a statement elsewhere, so
    /// transactions never have them all: else those who hold one could all wait for each other.
    ///
    /// # Errors
    /// As [`Scheduler::permit`].
    pub async fn permit_change(self: &Arc<Self>, id: CompanyId, weight: Weight) -> Result<Permit, Denied> {
        self.grant(id, weight, true).await
    }

    async fn grant(self: &Arc<Self>, id: CompanyId, weight: Weight, is_change: bool) -> Result<Permit, Denied> {
        let mut permit = self.apply(id);
        let company = permit.company.clone().ok_or(Denied::Closed)?;
        let _waits = Waits::begin(&company, weight, &self.shares)?;
        // What is scarce for the company comes first: who waits at what is everybody's has all its company can give,
        // and so a line there holds no more of a company than its share.
        let granted = async {
            let mut held = Vec::with_capacity(6);
            if is_change {
                held.push(company.changes.clone().acquire_owned().await);
            }
            if weight == Weight::Heavy {
                held.push(company.heavy.clone().acquire_owned().await);
                held.push(self.heavy.clone().acquire_owned().await);
            }
            held.push(company.all.clone().acquire_owned().await);
            if is_change {
                held.push(self.changes.clone().acquire_owned().await);
            }
            held.push(self.all.clone().acquire_owned().await);
            held.into_iter().rev().collect::<Result<Vec<_>, _>>()
        };
        let granted = timeout(self.shares.wait, granted).await.map_err(|_| Denied::TooLong)?;
        permit.held = granted.map_err(|_| Denied::Closed)?;
        Ok(permit)
    }

    fn apply(self: &Arc<Self>, id: CompanyId) -> Permit {
        let company = self.companies.entry(id).or_insert_with(|| Arc::new(Company::new(&self.shares))).clone();
        Permit { scheduler: self.clone(), id, company: Some(company), held: Vec::new() }
    }

    /// Grants nothing any more.
    pub fn close(&self) {
        self.all.close();
        self.changes.close();
        self.heavy.close();
    }

    /// Companies that have or want a permit right now.
    pub fn companies(&self) -> usize {
        self.companies.len()
    }

    /// Pieces of work that wait, of all companies.
    pub fn waiting(&self) -> usize {
        self.companies.iter().map(|company| company.waiting.load(Ordering::Relaxed)).sum()
    }
}

impl Company {
    fn new(shares: &Shares) -> Self {
        Self {
            all: Arc::new(Semaphore::new(shares.company)),
            changes: Arc::new(Semaphore::new(shares.company_changes)),
            heavy: Arc::new(Semaphore::new(shares.company_heavy)),
            waiting: AtomicUsize::new(0),
            heavy_waiting: AtomicUsize::new(0),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.held.clear();
        self.company = None;
        // The map holds one reference; holders and waiters of a permit have others, and then the entry stays.
        self.scheduler.companies.remove_if(&self.id, |_, company| Arc::strong_count(company) == 1);
    }
}

/// One that waits, for as long as it does.
struct Waits<'a> {
    company: &'a Company,
    weight: Weight,
}

impl<'a> Waits<'a> {
    fn begin(company: &'a Company, weight: Weight, shares: &Shares) -> Result<Self, Denied> {
        let waits = Self { company, weight };
        let before = company.waiting.fetch_add(1, Ordering::Relaxed);
        let heavy_before = waits.heavy().fetch_add(usize::from(weight == Weight::Heavy), Ordering::Relaxed);
        let is_full = before >= shares.company_waiting
            || (weight == Weight::Heavy && heavy_before >= shares.company_heavy_waiting);
        // Dropped, it counts no more.
        if is_full { Err(Denied::TooMany) } else { Ok(waits) }
    }

    fn heavy(&self) -> &AtomicUsize {
        &self.company.heavy_waiting
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.company.waiting.fetch_sub(1, Ordering::Relaxed);
        self.heavy().fetch_sub(usize::from(self.weight == Weight::Heavy), Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const SHARES: Shares = Shares {
        all: 3,
        company: 2,
        changes: 2,
        company_changes: 1,
        heavy: 2,
        company_heavy: 1,
        company_waiting: 4,
        company_heavy_waiting: 2,
        wait: Duration::from_secs(3),
    };
    const A: CompanyId = CompanyId::new(1);
    const B: CompanyId = CompanyId::new(2);

    async fn light(scheduler: &Arc<Scheduler>, company: CompanyId) -> Permit {
        scheduler.permit(company, Weight::Light).await.expect("a permit")
    }

    /// Whether one is had without waiting.
    fn is_free(scheduler: &Arc<Scheduler>, company: CompanyId, weight: Weight) -> bool {
        scheduler.permit(company, weight).now_or_never().is_some_and(|permit| permit.is_ok())
    }

    #[tokio::test]
    async fn a_company_has_its_share_and_leaves_the_rest_to_others() {
        let scheduler = Scheduler::new(SHARES);
        let held = [light(&scheduler, A).await, light(&scheduler, A).await];
        assert!(!is_free(&scheduler, A, Weight::Light));
        assert!(is_free(&scheduler, B, Weight::Light));
        drop(held);
        assert!(is_free(&scheduler, A, Weight::Light));
        assert_eq!((scheduler.companies(), scheduler.waiting()), (0, 0), "nothing is kept of who wants nothing");
    }

    #[tokio::test]
    async fn a_line_of_one_company_holds_no_more_than_its_share() {
        let scheduler = Scheduler::new(Shares { all: 1, ..SHARES });
        let taken = light(&scheduler, B).await;
        // A's third waits for A, not for the connection.
        let mut line: Vec<_> = (0..3).map(|_| Box::pin(scheduler.permit(A, Weight::Light))).collect();
        for waiting in &mut line {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let mut next = Box::pin(scheduler.permit(CompanyId::new(3), Weight::Light));
        assert!(next.as_mut().now_or_never().is_none());
        drop(taken);
        for waiting in line.drain(..2) {
            drop(waiting.await.expect("its turn"));
        }
        drop(next.await.expect("before A's third, which came earlier"));
    }

    #[tokio::test]
    async fn heavy_work_of_a_company_goes_one_after_the_other_beside_its_light_work() {
        let scheduler = Scheduler::new(SHARES);
        let heavy = scheduler.permit(A, Weight::Heavy).await.expect("a permit");
        assert!(!is_free(&scheduler, A, Weight::Heavy));
        assert!(is_free(&scheduler, A, Weight::Light));
        assert!(is_free(&scheduler, B, Weight::Heavy));
        drop(heavy);
        assert!(is_free(&scheduler, A, Weight::Heavy));
    }

    #[tokio::test]
    async fn who_has_opened_a_transaction_finds_a_turn_for_a_statement() {
        let scheduler = Scheduler::new(SHARES);
        let change = scheduler.permit_change(A, Weight::Light).await.expect("a permit");
        let mut next = Box::pin(scheduler.permit_change(A, Weight::Light));
        assert!(next.as_mut().now_or_never().is_none(), "A has opened all it may");
        let of_another = scheduler.permit_change(B, Weight::Light).await.expect("a permit");
        let mut third = Box::pin(scheduler.permit_change(CompanyId::new(3), Weight::Light));
        assert!(third.as_mut().now_or_never().is_none(), "all together have");
        assert!(is_free(&scheduler, A, Weight::Light) && is_free(&scheduler, B, Weight::Light));
        drop((change, of_another));
        drop(next.await.expect("its turn"));
        drop(third.await.expect("its turn"));
    }

    #[tokio::test]
    async fn more_than_may_wait_are_refused_at_once_and_who_gives_up_makes_room() {
        let scheduler = Scheduler::new(SHARES);
        let _held = [light(&scheduler, A).await, light(&scheduler, A).await];
        let mut line: Vec<_> = (0..4).map(|_| Box::pin(scheduler.permit(A, Weight::Light))).collect();
        for waiting in &mut line {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        assert_eq!(scheduler.waiting(), 4);
        assert_eq!(scheduler.permit(A, Weight::Light).await.expect_err("too many"), Denied::TooMany);
        line.pop();
        assert!(scheduler.permit(A, Weight::Light).now_or_never().is_none(), "there is room to wait again");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let scheduler = Scheduler::new(SHARES);
        let _held = scheduler.permit(A, Weight::Heavy).await.expect("a permit");
        assert_eq!(scheduler.permit(A, Weight::Heavy).await.expect_err("too long"), Denied::TooLong);
        scheduler.close();
        assert_eq!(scheduler.permit(B, Weight::Light).await.expect_err("closed"), Denied::Closed);
    }
}
