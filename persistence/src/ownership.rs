//! Which companies this process serves, and the work in progress for each of them.
//!
//! A standalone process serves every company; a cluster member serves the companies of its open slots ([`Gates`]). A
//! company is closed only while its state is dropped from memory: during that time its requests wait and no background
//! work begins for it. Every timer, sweep and scan checks [`Ownership::owns`] before it works for a company; callers
//! need not know why it is not served.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::cluster::{Gates, Slot, SlotFilter};
use crate::{CompanyId, Error, Result};

/// How long work waits for a closed company before it is refused: longer than dropping a company's state takes, shorter
/// than a caller waits for an answer.
const ENTER_TIME_MAX: Duration = Duration::from_secs(5);

/// How long closing waits for work in progress. If it takes longer, the company stays with this process.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// The companies this process serves. Cheap to clone.
#[derive(Clone, Default)]
pub struct Ownership(Arc<OwnershipState>);

#[derive(Default)]
struct OwnershipState {
    /// One for each company that ever had work here: about a hundred bytes each.
    company_gates: DashMap<CompanyId, Arc<CompanyGate>>,
    /// Number of companies that are closing, closed or shut. Usually 0; then no gate is looked up.
    closing: AtomicUsize,
    /// The slots of a cluster member; unset in a standalone process.
    slot_gates: OnceLock<Gates>,
}

/// A company's work in progress, and whether more may begin.
#[derive(Default)]
struct CompanyGate {
    /// Number of pieces of work in progress, and in the highest bits the three flags.
    state: AtomicUsize,
    /// Notified when the last work at a closing gate ends, and when the gate opens again.
    changed: Notify,
}

/// Only work that follows from work in progress may begin.
const CLOSING: usize = 1 << (usize::BITS - 1);
/// No work is in progress, and none may begin.
const CLOSED: usize = 1 << (usize::BITS - 2);
/// The log refuses entries as well.
const SHUT: usize = 1 << (usize::BITS - 3);
const FLAGS: usize = CLOSING | CLOSED | SHUT;

impl CompanyGate {
    /// Counts one more piece of work, unless one of `blocking_flags` is set. Returns whether it was counted.
    fn enter(&self, blocking_flags: usize) -> bool {
        let increment = |state: usize| (state & blocking_flags == 0).then_some(state + 1);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, increment).is_ok()
    }

    fn leave(&self) {
        let before = self.state.fetch_sub(1, Ordering::AcqRel);
        if before & CLOSING != 0 && before & !FLAGS == 1 {
            self.changed.notify_waiters();
        }
    }

    /// Closes a closing gate if no work is in progress; returns whether it did.
    fn try_close(&self) -> bool {
        self.state.compare_exchange(CLOSING, CLOSING | CLOSED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Retries after each change until `attempt` succeeds.
    async fn wait_for(&self, attempt: impl Fn() -> bool) {
        loop {
            // Subscribe before checking, so that no change in between is missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if attempt() {
                return;
            }
            changed.await;
        }
    }
}

/// A piece of work of a company; it lasts until this is dropped.
pub struct Presence(Arc<CompanyGate>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A company with no work in progress, for which none can begin. Dropping it opens the company again.
pub struct Closed(Closing);

/// A gate that is closing or closed.
struct Closing {
    ownership: Ownership,
    gate: Arc<CompanyGate>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.gate.state.fetch_and(!FLAGS, Ordering::AcqRel);
        self.ownership.0.closing.fetch_sub(1, Ordering::AcqRel);
        self.gate.changed.notify_waiters();
    }
}

impl Ownership {
    /// Whether this process serves a company now. Timers and scans must check this before they do anything for a
    /// company.
    pub fn owns(&self, company: CompanyId) -> bool {
        self.is_placed_here(company) && !self.has_flag(company, CLOSING)
    }

    /// Whether this process serves the company's slot, even if the company is closed for the moment.
    pub fn is_placed_here(&self, company: CompanyId) -> bool {
        self.0.slot_gates.get().is_none_or(|gates| gates.is_open(company))
    }

    /// A filter for statements that search the companies served here. Check [`Ownership::owns`] again for each result:
    /// a slot may close meanwhile.
    pub fn slot_filter(&self) -> SlotFilter {
        self.0.slot_gates.get().map_or_else(SlotFilter::all, |gates| SlotFilter::only(gates.open_slots()))
    }

    /// From now on only companies of opened slots are served. Call it once, before anything is served.
    pub fn use_gates(&self, gates: Gates) {
        // Only the first gates are stored.
        let _ = self.0.slot_gates.set(gates);
    }

    /// Starts serving the companies of these slots.
    pub fn open_slots(&self, slots: &[Slot]) {
        let Some(gates) = self.0.slot_gates.get() else { return };
        slots.iter().for_each(|slot| gates.open(*slot));
        // One pass for all slots: a takeover opens hundreds of them, and there is a gate for each company.
        for gate in self.0.company_gates.iter().filter(|gate| gates.is_open(*gate.key())) {
            gate.changed.notify_waiters();
        }
    }

    /// Stops new work for the companies of a slot. Work in progress continues until each company is closed.
    pub fn close_slot(&self, slot: Slot) {
        self.0.slot_gates.get().into_iter().for_each(|gates| gates.close(slot));
    }

    /// Makes the log refuse entries of a slot whose companies were all closed.
    pub fn shut_slot(&self, slot: Slot) {
        self.0.slot_gates.get().into_iter().for_each(|gates| gates.shut(slot));
    }

    /// Begins work of a company if it is served now: for periodic work, which simply runs again later.
    pub fn try_enter(&self, company: CompanyId) -> Option<Presence> {
        let gate = self.gate(company);
        self.enter_gate(&gate, company).then(|| Presence(gate))
    }

    /// Begins work of a company, unless its gate or its slot's gate is closed.
    fn enter_gate(&self, gate: &CompanyGate, company: CompanyId) -> bool {
        if !gate.enter(CLOSING) {
            return false;
        }
        let is_open = self.is_placed_here(company);
        if !is_open {
            gate.leave();
        }
        is_open
    }

    /// Begins work of a company, waiting while it is closed. Hold the result until the work has ended. Work in progress
    /// must use [`Ownership::follow`] instead: closing waits for that work, so entering again would deadlock.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the company stays closed for too long; [`Error::Elsewhere`] at once when another
    /// process serves it.
    pub async fn enter(&self, company: CompanyId) -> Result<Presence> {
        match self.try_enter(company) {
            Some(presence) => Ok(presence),
            None if !self.is_placed_here(company) => Err(Error::Elsewhere),
            None => timeout(ENTER_TIME_MAX, self.enter_without_limit(company)).await.map_err(|_| not_served()),
        }
    }

    /// As [`Ownership::enter`] without a time limit, for work whose caller was already answered.
    pub async fn enter_without_limit(&self, company: CompanyId) -> Presence {
        let gate = self.gate(company);
        gate.wait_for(|| self.enter_gate(&gate, company)).await;
        Presence(gate)
    }

    /// Begins work that follows from work in progress and may outlast it; closing waits for it as well. `None` when
    /// no work is in progress.
    pub fn follow(&self, company: CompanyId) -> Option<Presence> {
        let gate = self.gate(company);
        if !gate.enter(CLOSED) {
            return None;
        }
        let presence = Presence(gate);
        // Whether there is work besides this presence.
        let has_other_work = presence.0.state.load(Ordering::Acquire) & !FLAGS > 1;
        (has_other_work || self.is_placed_here(company)).then_some(presence)
    }

    /// Closes a company: waits until no work is in progress, and lets none begin. The log still accepts its entries
    /// until [`Closed::shut`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it is already being closed, or when work does not end in time; in the latter case it
    /// is reopened.
    pub async fn close(&self, company: CompanyId) -> Result<Closed> {
        let gate = self.gate(company);
        if gate.state.fetch_or(CLOSING, Ordering::AcqRel) & CLOSING != 0 {
            return Err(Error::Unavailable("the company is already being closed".to_owned()));
        }
        self.0.closing.fetch_add(1, Ordering::AcqRel);
        let closing = Closing { ownership: self.clone(), gate };
        let close = closing.gate.wait_for(|| closing.gate.try_close());
        let result = timeout(CLOSE_TIME_MAX, close).await;
        result.map_err(|_| Error::Unavailable("the company's work did not finish in time".to_owned()))?;
        Ok(Closed(closing))
    }

    /// Whether the log refuses entries of a company.
    pub(crate) fn is_shut(&self, company: CompanyId) -> bool {
        self.has_flag(company, SHUT) || self.0.slot_gates.get().is_some_and(|gates| gates.is_shut(company))
    }

    fn has_flag(&self, company: CompanyId, flag: usize) -> bool {
        self.0.closing.load(Ordering::Acquire) > 0
            && self.0.company_gates.get(&company).is_some_and(|gate| gate.state.load(Ordering::Acquire) & flag != 0)
    }

    fn gate(&self, company: CompanyId) -> Arc<CompanyGate> {
        if let Some(gate) = self.0.company_gates.get(&company) {
            return gate.clone();
        }
        self.0.company_gates.entry(company).or_default().clone()
    }
}

/// The error for work of a company that is not served.
pub(crate) fn not_served() -> Error {
    Error::Unavailable("the company is not being served".to_owned())
}

impl Closed {
    /// From now on the log refuses entries of the company, including those from existing callers.
    pub fn shut(&self) {
        self.0.gate.state.fetch_or(SHUT, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use futures_util::FutureExt;
    use futures_util::future::poll_immediate;

    use super::*;

    const COMPANY: CompanyId = CompanyId::new(1);
    const OTHER: CompanyId = CompanyId::new(2);

    /// Consecutive failed attempts to enter or to close after which a test with real threads fails. One attempt may
    /// fail because a busy machine did not run a thread within the time limit.
    const ATTEMPTS_MAX: usize = 12;

    async fn enter_company(ownership: &Ownership) -> Presence {
        for _ in 1..ATTEMPTS_MAX {
            if let Ok(presence) = ownership.enter(COMPANY).await {
                return presence;
            }
        }
        ownership.enter(COMPANY).await.expect("it opens again")
    }

    async fn close_company(ownership: &Ownership) -> Closed {
        for _ in 1..ATTEMPTS_MAX {
            if let Ok(closed) = ownership.close(COMPANY).await {
                return closed;
            }
        }
        ownership.close(COMPANY).await.expect("work ends")
    }

    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_work_and_new_work_waits_for_reopening() {
        let ownership = Ownership::default();
        let (first, second) = (ownership.enter(COMPANY).await, ownership.enter(COMPANY).await);
        assert!(first.is_ok() && second.is_ok(), "work does not wait for other work");
        let mut closing = Box::pin(ownership.close(COMPANY));
        assert!(poll_immediate(&mut closing).await.is_none(), "two pieces of work are in progress");
        assert!(!ownership.owns(COMPANY) && ownership.owns(OTHER));
        let mut third = Box::pin(ownership.enter(COMPANY));
        assert!(poll_immediate(&mut third).await.is_none(), "none begins while the company is closing");
        assert!(
            ownership.enter(OTHER).now_or_never().is_some_and(|entered| entered.is_ok()),
            "another company is open"
        );
        assert!(ownership.try_enter(COMPANY).is_none() && ownership.try_enter(OTHER).is_some());
        assert!(ownership.close(COMPANY).await.is_err(), "it is already being closed");
        let followed = ownership.follow(COMPANY);
        assert!(followed.is_some(), "work in progress may be followed by more");
        drop((first, second));
        assert!(poll_immediate(&mut closing).await.is_none());
        drop(followed);
        let closed = closing.await.expect("no work is in progress");
        assert!(poll_immediate(&mut third).await.is_none() && ownership.follow(COMPANY).is_none());
        closed.shut();
        assert!(ownership.is_shut(COMPANY) && !ownership.is_shut(OTHER));
        drop(closed);
        assert!(third.await.is_ok());
        assert!(ownership.owns(COMPANY) && !ownership.is_shut(COMPANY));
    }

    #[tokio::test]
    async fn companies_of_closed_slots_are_served_elsewhere() {
        let slot = Slot::of_new(COMPANY);
        let ownership = Ownership::default();
        ownership.use_gates(Gates::new(Box::new(|company| (company == COMPANY).then(|| Slot::of_new(company)))));
        assert!(!ownership.owns(COMPANY) && ownership.try_enter(COMPANY).is_none() && ownership.is_shut(COMPANY));
        assert!(matches!(ownership.enter(COMPANY).await, Err(Error::Elsewhere)));
        assert!(ownership.follow(COMPANY).is_none(), "no work is in progress that it could follow");
        let mut waiting = Box::pin(ownership.enter_without_limit(COMPANY));
        assert!(poll_immediate(&mut waiting).await.is_none());
        ownership.open_slots(&[slot]);
        let work = waiting.await;
        assert!(ownership.owns(COMPANY) && !ownership.is_shut(COMPANY));
        assert!(!ownership.owns(OTHER) && ownership.try_enter(OTHER).is_none(), "this company has no slot");
        ownership.close_slot(slot);
        assert!(!ownership.owns(COMPANY) && ownership.try_enter(COMPANY).is_none());
        assert!(!ownership.is_shut(COMPANY), "work in progress may still write entries");
        let followed = ownership.follow(COMPANY);
        assert!(followed.is_some());
        let mut closing = Box::pin(ownership.close(COMPANY));
        assert!(poll_immediate(&mut closing).await.is_none());
        drop((work, followed));
        drop(closing.await.expect("no work is in progress"));
        assert!(ownership.follow(COMPANY).is_none() && ownership.try_enter(COMPANY).is_none(), "the gate stays closed");
        ownership.shut_slot(slot);
        assert!(ownership.is_shut(COMPANY));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_work_runs_while_a_slot_is_closed() {
        const ROUNDS: usize = 500;
        let slot = Slot::of_new(COMPANY);
        let (ownership, working, is_over) =
            (Ownership::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        ownership.use_gates(Gates::new(Box::new(|company| Some(Slot::of_new(company)))));
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (ownership, working, is_over) = (ownership.clone(), working.clone(), is_over.clone());
                tokio::spawn(async move {
                    while !is_over.load(Ordering::SeqCst) {
                        let presence = ownership.try_enter(COMPANY);
                        working.fetch_add(usize::from(presence.is_some()), Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        working.fetch_sub(usize::from(presence.is_some()), Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for round in 0..ROUNDS {
            ownership.open_slots(&[slot]);
            tokio::task::yield_now().await;
            ownership.close_slot(slot);
            drop(close_company(&ownership).await);
            ownership.shut_slot(slot);
            assert_eq!(working.load(Ordering::SeqCst), 0, "work was in progress in round {round}");
            tokio::task::yield_now().await;
            assert_eq!(working.load(Ordering::SeqCst), 0, "work began in round {round}");
        }
        is_over.store(true, Ordering::SeqCst);
        for worker in workers {
            worker.await.expect("no worker fails");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn closing_and_entering_time_out() {
        let ownership = Ownership::default();
        let work = ownership.enter(COMPANY).await;
        assert!(matches!(ownership.close(COMPANY).await, Err(Error::Unavailable(_))));
        assert!(ownership.owns(COMPANY), "a failed close reopens the company");
        assert!(ownership.enter(COMPANY).now_or_never().is_some_and(|entered| entered.is_ok()));
        drop(work);
        let closed = ownership.close(COMPANY).await;
        assert!(closed.is_ok());
        assert!(matches!(ownership.enter(COMPANY).await, Err(Error::Unavailable(_))));
        assert!(!ownership.is_shut(COMPANY), "the log accepts entries until `shut`");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_work_runs_while_a_company_is_closed_and_none_starves() {
        const WORKERS: usize = 8;
        const ROUNDS: usize = 2000;
        let (ownership, working, closed) =
            (Ownership::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (ownership, working, closed) = (ownership.clone(), working.clone(), closed.clone());
                tokio::spawn(async move {
                    let mut rounds = 0;
                    // At least until the company was closed twice, however late the closing thread runs.
                    while rounds < ROUNDS || closed.load(Ordering::SeqCst) < 2 {
                        rounds += 1;
                        let presence = enter_company(&ownership).await;
                        working.fetch_add(1, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        working.fetch_sub(1, Ordering::SeqCst);
                        drop(presence);
                    }
                })
            })
            .collect();
        while !workers.iter().all(tokio::task::JoinHandle::is_finished) {
            let _closed = close_company(&ownership).await;
            assert_eq!(working.load(Ordering::SeqCst), 0, "work was in progress");
            tokio::task::yield_now().await;
            assert_eq!(working.load(Ordering::SeqCst), 0, "work began");
            closed.fetch_add(1, Ordering::SeqCst);
        }
        for worker in workers {
            worker.await.expect("no worker fails");
        }
    }
}
