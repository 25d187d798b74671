//! Which companies this process serves, and what is under way for each of them.
//!
//! One process alone serves every company. It pauses one only while all that memory holds of the company is dropped: its
//! requests wait at the door for that long, and no work of its own begins for it. With several processes the same
//! question, [`Ownership::owns`], will have another answer for the companies of other processes; so every timer, sweep
//! and scan that comes upon a company asks it, and no caller looks behind it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock as BlockingLock};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::{CompanyId, Error, Result};

/// How long work waits at a closed door before it is refused: longer than a company takes to be dropped, and shorter
/// than a caller waits for an answer.
const ENTER_TIME_MAX: Duration = Duration::from_secs(5);

/// How long the door waits for the work that is under way. What takes longer keeps the company here.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// The companies this process serves. Cheap to clone.
#[derive(Clone, Default)]
pub struct Ownership(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Of every company that was ever at work here: read by its work, written by who closes it.
    doors: DashMap<CompanyId, Arc<RwLock<()>>>,
    closing: Marks,
    shut: Marks,
}

/// A few companies; most of the time there is none, and then a look is one atomic read.
#[derive(Default)]
struct Marks {
    count: AtomicUsize,
    companies: BlockingLock<HashSet<CompanyId>>,
}

impl Marks {
    fn has(&self, company: CompanyId) -> bool {
        self.count.load(Ordering::Acquire) > 0
            && self.companies.read().unwrap_or_else(PoisonError::into_inner).contains(&company)
    }

    /// False: it was marked before.
    fn mark(&self, company: CompanyId) -> bool {
        let is_new = self.companies.write().unwrap_or_else(PoisonError::into_inner).insert(company);
        if is_new {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
        is_new
    }

    fn unmark(&self, company: CompanyId) {
        if self.companies.write().unwrap_or_else(PoisonError::into_inner).remove(&company) {
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Work of a company is under way for as long as this lives.
pub struct Presence {
    _door: OwnedRwLockReadGuard<()>,
}

/// A company for which nothing is under way and nothing begins. Dropping it opens the company again.
pub struct Closed {
    closing: Closing,
    _door: OwnedRwLockWriteGuard<()>,
}

/// The mark of a company that is about to be closed, or is.
struct Closing {
    ownership: Ownership,
    company: CompanyId,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.ownership.0.shut.unmark(self.company);
        self.ownership.0.closing.unmark(self.company);
    }
}

impl Ownership {
    /// Whether this process serves a company now. Whatever comes by the clock, or finds companies by itself, asks before
    /// it does anything for one.
    pub fn owns(&self, company: CompanyId) -> bool {
        !self.0.closing.has(company)
    }

    /// Begins work of a company, after whoever has closed it. To be held until the work has ended, and not to be taken
    /// twice by the same work: who closes may stand in between.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the company stays closed for long.
    pub async fn enter(&self, company: CompanyId) -> Result<Presence> {
        let door = self.door(company);
        let door = match door.clone().try_read_owned() {
            Ok(door) => door,
            Err(_) => tokio::time::timeout(ENTER_TIME_MAX, door.read_owned())
                .await
                .map_err(|_| Error::Unavailable("the company is not served at the moment".to_owned()))?,
        };
        Ok(Presence { _door: door })
    }

    /// Closes a company: no work of it begins any more, and what is under way has ended. The log still takes entries of
    /// it, until [`Closed::shut`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it is being closed already, or work does not end in time; it is then open as before.
    pub async fn close(&self, company: CompanyId) -> Result<Closed> {
        if !self.0.closing.mark(company) {
            return Err(Error::Unavailable("the company is being closed already".to_owned()));
        }
        let closing = Closing { ownership: self.clone(), company };
        let door = tokio::time::timeout(CLOSE_TIME_MAX, self.door(company).write_owned()).await;
        let door = door.map_err(|_| Error::Unavailable("work of the company does not end".to_owned()))?;
        Ok(Closed { closing, _door: door })
    }

    /// Whether the log refuses entries of a company.
    pub(crate) fn is_shut(&self, company: CompanyId) -> bool {
        self.0.shut.has(company)
    }

    fn door(&self, company: CompanyId) -> Arc<RwLock<()>> {
        if let Some(door) = self.0.doors.get(&company) {
            return door.clone();
        }
        self.0.doors.entry(company).or_default().clone()
    }
}

impl Closed {
    /// From here on the log refuses entries of the company, whoever still has one.
    pub fn shut(&self) {
        self.closing.ownership.0.shut.mark(self.closing.company);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::poll_immediate;

    use super::*;

    const COMPANY: CompanyId = CompanyId::new(1);
    const OTHER: CompanyId = CompanyId::new(2);

    #[tokio::test]
    async fn a_company_is_closed_once_its_work_has_ended_and_work_waits_until_it_is_open_again() {
        let ownership = Ownership::default();
        let (first, second) = (ownership.enter(COMPANY).await, ownership.enter(COMPANY).await);
        assert!(first.is_ok() && second.is_ok(), "work does not wait for other work");
        let mut closing = Box::pin(ownership.close(COMPANY));
        assert!(poll_immediate(&mut closing).await.is_none(), "two are at work");
        assert!(!ownership.owns(COMPANY) && ownership.owns(OTHER));
        let mut third = Box::pin(ownership.enter(COMPANY));
        assert!(poll_immediate(&mut third).await.is_none(), "none begins meanwhile");
        assert!(ownership.enter(OTHER).now_or_never().is_some_and(|entered| entered.is_ok()), "another company's does");
        assert!(ownership.close(COMPANY).await.is_err(), "one at a time");
        drop((first, second));
        let closed = closing.await.expect("nobody is at work");
        assert!(poll_immediate(&mut third).await.is_none());
        closed.shut();
        assert!(ownership.is_shut(COMPANY) && !ownership.is_shut(OTHER));
        drop(closed);
        assert!(third.await.is_ok());
        assert!(ownership.owns(COMPANY) && !ownership.is_shut(COMPANY));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_end_keeps_the_company_and_a_door_that_stays_closed_refuses() {
        let ownership = Ownership::default();
        let work = ownership.enter(COMPANY).await;
        assert!(matches!(ownership.close(COMPANY).await, Err(Error::Unavailable(_))));
        assert!(ownership.owns(COMPANY), "it is open as before");
        assert!(ownership.enter(COMPANY).now_or_never().is_some_and(|entered| entered.is_ok()));
        drop(work);
        let closed = ownership.close(COMPANY).await;
        assert!(closed.is_ok());
        assert!(matches!(ownership.enter(COMPANY).await, Err(Error::Unavailable(_))));
        assert!(!ownership.is_shut(COMPANY), "what has begun may still be recorded");
    }
}
