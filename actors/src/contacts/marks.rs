//! Marks of contacts that are being deleted or merged, or whose conversations are being deleted. While a contact is
//! marked, its tickets are not opened or changed and its sessions do not begin: the attempt waits until the outcome is
//! known, and is retried.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::mapref::entry::Entry;
use tokio::sync::watch;

use super::ContactKey;
use crate::Refusal;
use crate::id_map::IdMap;

/// How long to wait for a mark to be removed. A deletion or a merge takes a few milliseconds; one that takes longer
/// than the time limit of its statements may mean that the database is unavailable.
const WAIT_TIME_MAX: Duration = hotline_persistence::error::STATEMENT_TIME_MAX;

/// The marked contacts.
#[derive(Default)]
pub(crate) struct ContactMarks {
    marks: IdMap<ContactKey, watch::Receiver<()>>,
    /// The number of marks, so that conversations need no look-up while there are none.
    count: AtomicUsize,
}

/// Marks a contact until dropped.
pub(crate) struct ContactMark {
    marks: Arc<ContactMarks>,
    key: ContactKey,
    /// Closed when the mark is dropped, which wakes those that wait.
    _removal: watch::Sender<()>,
}

impl ContactMarks {
    /// Marks a contact, once an earlier mark is removed.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when that takes too long.
    pub(crate) async fn mark(self: &Arc<Self>, key: ContactKey) -> Result<ContactMark, Refusal> {
        loop {
            if let Some(guard) = self.try_mark(key) {
                return Ok(guard);
            }
            self.wait_until_unmarked(key).await?;
        }
    }

    /// Marks a contact; `None` if it is marked already.
    pub(crate) fn try_mark(self: &Arc<Self>, key: ContactKey) -> Option<ContactMark> {
        let Entry::Vacant(vacant) = self.marks.entry(key) else { return None };
        let (removal, removed) = watch::channel(());
        self.count.fetch_add(1, Ordering::AcqRel);
        vacant.insert(removed);
        Some(ContactMark { marks: self.clone(), key, _removal: removal })
    }

    /// Whether a contact is marked.
    pub(crate) fn is_marked(&self, key: ContactKey) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.marks.contains_key(&key)
    }

    /// Runs `work` unless the contact is marked; no mark can be set meanwhile.
    ///
    /// # Errors
    /// [`Refusal::ContactChanging`], or the error of `work`.
    pub(crate) fn unless_marked<T>(
        &self,
        key: ContactKey,
        work: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match self.marks.entry(key) {
            Entry::Occupied(_) => Err(Refusal::ContactChanging(key.1)),
            Entry::Vacant(vacant) => {
                let outcome = work();
                drop(vacant);
                outcome
            }
        }
    }

    /// Waits until a contact is no longer marked.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when that takes too long.
    pub(crate) async fn wait_until_unmarked(&self, key: ContactKey) -> Result<(), Refusal> {
        let Some(mut removed) = self.marks.get(&key).map(|mark| mark.clone()) else { return Ok(()) };
        // The value never changes; the channel closes.
        match tokio::time::timeout(WAIT_TIME_MAX, removed.changed()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Refusal::Unavailable("the contact is being deleted or merged".to_owned())),
        }
    }
}

impl Drop for ContactMark {
    fn drop(&mut self) {
        self.marks.marks.remove(&self.key);
        self.marks.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::{CompanyId, ContactId};

    use super::*;

    const KEY: ContactKey = (CompanyId::new(1), ContactId::new(2));

    #[tokio::test]
    async fn a_marked_contact_blocks_work_and_waiters_wake_when_the_mark_is_removed() {
        let marks = Arc::new(ContactMarks::default());
        assert!(!marks.is_marked(KEY));
        assert_eq!(marks.unless_marked(KEY, || Ok(7)), Ok(7));
        assert!(marks.wait_until_unmarked(KEY).await.is_ok(), "no contact is marked");
        let guard = marks.mark(KEY).await.expect("marked");
        assert!(marks.is_marked(KEY));
        assert!(!marks.is_marked((CompanyId::new(2), ContactId::new(2))), "another company's");
        assert_eq!(marks.unless_marked(KEY, || Ok(7)), Err(Refusal::ContactChanging(ContactId::new(2))));
        assert!(marks.try_mark(KEY).is_none(), "already marked");
        let waiting = tokio::spawn({
            let marks = marks.clone();
            async move { marks.mark(KEY).await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(guard);
        assert!(waiting.await.expect("the task ends").is_ok(), "the next one may mark it");
        assert!(!marks.is_marked(KEY));
    }
}
