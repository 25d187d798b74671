//! Shares the database's connections fairly among companies, by permits that are granted in memory before a connection
//! is requested.
//!
//! A plain pool serves requests in arrival order, so one company with enough requests could take all connections. Here
//! each company has a limited share, and a smaller one for heavy statements. So a company queues for the shared
//! connections with at most its share; its further requests wait only for its own earlier ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::CompanyId;
use crate::limits::Denied;

/// The cost class of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Reads or writes a handful of rows, within milliseconds.
    Light,
    /// May read many rows to return a few, or writes many.
    Heavy,
}

/// What a permit is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PermitUse {
    Statement,
    Transaction,
}

/// Limits on concurrent and on waiting work.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Total for all companies.
    pub all: usize,
    /// For one company.
    pub company: usize,
    /// Transactions of all companies: fewer than `all`, so that a single statement next to an open transaction can
    /// still get a permit.
    pub transactions: usize,
    /// Transactions of one company: fewer than `company`, for the same reason.
    pub company_transactions: usize,
    /// Heavy work of all companies.
    pub heavy: usize,
    /// Heavy work of one company.
    pub company_heavy: usize,
    /// Waiting work of one company, light and heavy.
    pub company_waiting: usize,
    /// Waiting heavy work of one company: each piece may hold a large body in memory.
    pub company_heavy_waiting: usize,
    /// Maximum waiting time.
    pub wait: Duration,
}

/// Grants permits by company.
#[derive(Debug)]
pub struct Scheduler {
    shares: Shares,
    all: Arc<Semaphore>,
    transactions: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    /// Heavy transactions: those that wait for `heavy` leave transactions to light work.
    heavy_transactions: Arc<Semaphore>,
    /// Companies that hold or wait for a permit.
    companies: DashMap<CompanyId, Arc<CompanyShare>>,
}

#[derive(Debug)]
struct CompanyShare {
    all: Arc<Semaphore>,
    transactions: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    waiting: AtomicUsize,
    heavy_waiting: AtomicUsize,
}

/// A company's permit for one piece of work; returned when dropped.
#[derive(Debug)]
pub struct Permit {
    scheduler: Arc<Scheduler>,
    company: CompanyId,
    /// `None` only while the permit is being dropped.
    share: Option<Arc<CompanyShare>>,
    /// Released in the reverse order of acquisition.
    permits: Vec<OwnedSemaphorePermit>,
}

impl Scheduler {
    /// Creates a scheduler with these shares.
    pub fn new(shares: Shares) -> Arc<Self> {
        Arc::new(Self {
            shares,
            all: Arc::new(Semaphore::new(shares.all)),
            transactions: Arc::new(Semaphore::new(shares.transactions)),
            heavy: Arc::new(Semaphore::new(shares.heavy)),
            heavy_transactions: Arc::new(Semaphore::new(shares.heavy)),
            companies: DashMap::new(),
        })
    }

    /// Waits for a permit for a single statement.
    ///
    /// # Errors
    /// [`Denied`] when too much work of the company is waiting, or no permit was free in time.
    pub async fn permit(self: &Arc<Self>, company: CompanyId, weight: Weight) -> Result<Permit, Denied> {
        self.grant(company, weight, PermitUse::Statement).await
    }

    /// Waits for a permit for a transaction. The holder of a transaction may wait for another permit for a single
    /// statement, so transactions can never take all permits: otherwise their holders could deadlock.
    ///
    /// # Errors
    /// As [`Scheduler::permit`].
    pub async fn permit_transaction(self: &Arc<Self>, company: CompanyId, weight: Weight) -> Result<Permit, Denied> {
        self.grant(company, weight, PermitUse::Transaction).await
    }

    async fn grant(
        self: &Arc<Self>,
        company: CompanyId,
        weight: Weight,
        permit_use: PermitUse,
    ) -> Result<Permit, Denied> {
        let is_transaction = permit_use == PermitUse::Transaction;
        let mut permit = self.register(company);
        let share = permit.share.clone().ok_or(Denied::Closed)?;
        let _wait = WaitGuard::begin(&share, weight, &self.shares)?;
        // Acquire the company's own permits before the shared ones: work that waits for its company holds nothing that
        // others need, and the queue for the shared permits contains at most one share per company. The holders of
        // transactions cannot deadlock when they need a statement: work with a shared heavy permit waits only for
        // `self.all`, of which transactions leave some to statements, and so it always ends.
        let acquire = async {
            let mut permits = Vec::with_capacity(7);
            if is_transaction {
                permits.push(share.transactions.clone().acquire_owned().await);
            }
            if weight == Weight::Heavy {
                permits.push(share.heavy.clone().acquire_owned().await);
            }
            permits.push(share.all.clone().acquire_owned().await);
            if is_transaction && weight == Weight::Heavy {
                permits.push(self.heavy_transactions.clone().acquire_owned().await);
            }
            if is_transaction {
                permits.push(self.transactions.clone().acquire_owned().await);
            }
            if weight == Weight::Heavy {
                permits.push(self.heavy.clone().acquire_owned().await);
            }
            permits.push(self.all.clone().acquire_owned().await);
            permits.into_iter().rev().collect::<Result<Vec<_>, _>>()
        };
        let permits = timeout(self.shares.wait, acquire).await.map_err(|_| Denied::TooLong)?;
        permit.permits = permits.map_err(|_| Denied::Closed)?;
        Ok(permit)
    }

    fn register(self: &Arc<Self>, company: CompanyId) -> Permit {
        let share = self.companies.entry(company).or_insert_with(|| Arc::new(CompanyShare::new(&self.shares))).clone();
        Permit { scheduler: self.clone(), company, share: Some(share), permits: Vec::new() }
    }

    /// Stops granting permits.
    pub fn close(&self) {
        self.all.close();
        self.transactions.close();
        self.heavy.close();
        self.heavy_transactions.close();
    }

    /// Number of companies that hold or wait for a permit.
    pub fn companies(&self) -> usize {
        self.companies.len()
    }

    /// Number of waiting pieces of work of all companies.
    pub fn waiting(&self) -> usize {
        self.companies.iter().map(|share| share.waiting.load(Ordering::Relaxed)).sum()
    }
}

impl CompanyShare {
    fn new(shares: &Shares) -> Self {
        Self {
            all: Arc::new(Semaphore::new(shares.company)),
            transactions: Arc::new(Semaphore::new(shares.company_transactions)),
            heavy: Arc::new(Semaphore::new(shares.company_heavy)),
            waiting: AtomicUsize::new(0),
            heavy_waiting: AtomicUsize::new(0),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.clear();
        self.share = None;
        // The map holds one reference. If holders or waiters of permits hold others, the entry stays.
        self.scheduler.companies.remove_if(&self.company, |_, share| Arc::strong_count(share) == 1);
    }
}

/// Counts a waiting piece of work until the guard is dropped.
struct WaitGuard<'a> {
    share: &'a CompanyShare,
    weight: Weight,
}

impl<'a> WaitGuard<'a> {
    fn begin(share: &'a CompanyShare, weight: Weight, shares: &Shares) -> Result<Self, Denied> {
        let guard = Self { share, weight };
        let before = share.waiting.fetch_add(1, Ordering::Relaxed);
        let heavy_before = guard.heavy_waiting().fetch_add(usize::from(weight == Weight::Heavy), Ordering::Relaxed);
        let is_full = before >= shares.company_waiting
            || (weight == Weight::Heavy && heavy_before >= shares.company_heavy_waiting);
        // On a refusal, dropping `guard` undoes both additions.
        if is_full { Err(Denied::TooMany) } else { Ok(guard) }
    }

    fn heavy_waiting(&self) -> &AtomicUsize {
        &self.share.heavy_waiting
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.share.waiting.fetch_sub(1, Ordering::Relaxed);
        self.heavy_waiting().fetch_sub(usize::from(self.weight == Weight::Heavy), Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A failed expectation fails the test.
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const SHARES: Shares = Shares {
        all: 3,
        company: 2,
        transactions: 2,
        company_transactions: 1,
        heavy: 2,
        company_heavy: 1,
        company_waiting: 4,
        company_heavy_waiting: 2,
        wait: Duration::from_secs(3),
    };
    const A: CompanyId = CompanyId::new(1);
    const B: CompanyId = CompanyId::new(2);

    async fn light_permit(scheduler: &Arc<Scheduler>, company: CompanyId) -> Permit {
        scheduler.permit(company, Weight::Light).await.expect("a permit")
    }

    /// Whether a permit is granted without waiting.
    fn is_free(scheduler: &Arc<Scheduler>, company: CompanyId, weight: Weight) -> bool {
        scheduler.permit(company, weight).now_or_never().is_some_and(|permit| permit.is_ok())
    }

    #[tokio::test]
    async fn a_company_has_its_share_and_leaves_the_rest_to_others() {
        let scheduler = Scheduler::new(SHARES);
        let permits = [light_permit(&scheduler, A).await, light_permit(&scheduler, A).await];
        assert!(!is_free(&scheduler, A, Weight::Light));
        assert!(is_free(&scheduler, B, Weight::Light));
        drop(permits);
        assert!(is_free(&scheduler, A, Weight::Light));
        assert_eq!((scheduler.companies(), scheduler.waiting()), (0, 0), "no company is registered");
    }

    #[tokio::test]
    async fn waiting_requests_of_one_company_hold_at_most_its_share() {
        let scheduler = Scheduler::new(Shares { all: 1, ..SHARES });
        let other = light_permit(&scheduler, B).await;
        // A's third request waits for A's share, not for the connection.
        let mut requests: Vec<_> = (0..3).map(|_| Box::pin(scheduler.permit(A, Weight::Light))).collect();
        for waiting in &mut requests {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let mut next = Box::pin(scheduler.permit(CompanyId::new(3), Weight::Light));
        assert!(next.as_mut().now_or_never().is_none());
        drop(other);
        for waiting in requests.drain(..2) {
            drop(waiting.await.expect("its turn"));
        }
        drop(next.await.expect("before A's third, which came earlier"));
    }

    #[tokio::test]
    async fn heavy_work_of_a_company_is_serialized_beside_its_light_work() {
        let scheduler = Scheduler::new(SHARES);
        let heavy = scheduler.permit(A, Weight::Heavy).await.expect("a permit");
        assert!(!is_free(&scheduler, A, Weight::Heavy));
        assert!(is_free(&scheduler, A, Weight::Light));
        assert!(is_free(&scheduler, B, Weight::Heavy));
        drop(heavy);
        assert!(is_free(&scheduler, A, Weight::Heavy));
    }

    #[tokio::test]
    async fn heavy_work_that_waits_for_its_company_takes_no_permit_from_others() {
        let scheduler = Scheduler::new(Shares { company: 1, heavy: 1, ..SHARES });
        let light = light_permit(&scheduler, A).await;
        let mut heavy = Box::pin(scheduler.permit(A, Weight::Heavy));
        assert!(heavy.as_mut().now_or_never().is_none(), "A uses all of its share");
        assert!(is_free(&scheduler, B, Weight::Heavy));
        drop(light);
        drop(heavy.await.expect("its turn"));
    }

    #[tokio::test]
    async fn heavy_transactions_that_wait_leave_transactions_to_light_work() {
        let scheduler = Scheduler::new(Shares { all: 4, heavy: 1, ..SHARES });
        let _heavy = scheduler.permit(B, Weight::Heavy).await.expect("a permit");
        let mut waiting: Vec<_> =
            [1, 3].map(|id| Box::pin(scheduler.permit_transaction(CompanyId::new(id), Weight::Heavy))).into();
        assert!(waiting.iter_mut().all(|permit| permit.as_mut().now_or_never().is_none()));
        let light = scheduler.permit_transaction(CompanyId::new(4), Weight::Light).now_or_never();
        assert!(light.is_some_and(|permit| permit.is_ok()));
    }

    #[tokio::test]
    async fn the_holder_of_a_transaction_gets_a_permit_for_a_statement() {
        let scheduler = Scheduler::new(SHARES);
        let transaction = scheduler.permit_transaction(A, Weight::Light).await.expect("a permit");
        let mut next = Box::pin(scheduler.permit_transaction(A, Weight::Light));
        assert!(next.as_mut().now_or_never().is_none(), "A has reached its limit of transactions");
        let other_transaction = scheduler.permit_transaction(B, Weight::Light).await.expect("a permit");
        let mut third = Box::pin(scheduler.permit_transaction(CompanyId::new(3), Weight::Light));
        assert!(third.as_mut().now_or_never().is_none(), "all companies together have reached theirs");
        assert!(is_free(&scheduler, A, Weight::Light) && is_free(&scheduler, B, Weight::Light));
        drop((transaction, other_transaction));
        drop(next.await.expect("its turn"));
        drop(third.await.expect("its turn"));
    }

    #[tokio::test]
    async fn requests_beyond_the_limit_are_refused_and_a_canceled_one_frees_its_place() {
        let scheduler = Scheduler::new(SHARES);
        let _permits = [light_permit(&scheduler, A).await, light_permit(&scheduler, A).await];
        let mut requests: Vec<_> = (0..4).map(|_| Box::pin(scheduler.permit(A, Weight::Light))).collect();
        for waiting in &mut requests {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        assert_eq!(scheduler.waiting(), 4);
        assert_eq!(scheduler.permit(A, Weight::Light).await.expect_err("too many"), Denied::TooMany);
        requests.pop();
        assert!(scheduler.permit(A, Weight::Light).now_or_never().is_none(), "it waits instead of being refused");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_has_a_time_limit_and_after_closing_nothing_is_granted() {
        let scheduler = Scheduler::new(SHARES);
        let _permit = scheduler.permit(A, Weight::Heavy).await.expect("a permit");
        assert_eq!(scheduler.permit(A, Weight::Heavy).await.expect_err("too long"), Denied::TooLong);
        scheduler.close();
        assert_eq!(scheduler.permit(B, Weight::Light).await.expect_err("closed"), Denied::Closed);
    }
}
