//! Contacts that are being deleted, or conversations of theirs. While one is marked, no ticket of theirs is opened or changed
//! and no session of theirs begins: the attempt waits until it is known what is gone, and is repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::mapref::entry::Entry;
use tokio::sync::watch;

use super::Key;
use crate::Refusal;
use crate::map::IdMap;

/// How long somebody waits to hear what became of a contact. A deletion takes some milliseconds; one that takes longer
/// than its statements may means the database is away.
const LEAVING_TIME_MAX: Duration = hotline_persistence::error::STATEMENT_TIME_MAX;

/// The marks.
#[derive(Default)]
pub(crate) struct PendingDeletions {
    marks: IdMap<Key, watch::Receiver<()>>,
    /// How many there are, so that conversations need not look while there is none.
    count: AtomicUsize,
}

/// A contact is marked for as long as this lives.
pub(crate) struct DeletionGuard {
    leaving: Arc<PendingDeletions>,
    key: Key,
    /// Closed with the mark: that is what others wait for.
    _gone: watch::Sender<()>,
}

impl PendingDeletions {
    /// Marks a contact, after an earlier mark is removed.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when that takes too long.
    pub(crate) async fn mark(self: &Arc<Self>, key: Key) -> Result<DeletionGuard, Refusal> {
        loop {
            if let Some(mark) = self.try_mark(key) {
                return Ok(mark);
            }
            self.left(key).await?;
        }
    }

    /// Marks a contact that nobody has marked.
    pub(crate) fn try_mark(self: &Arc<Self>, key: Key) -> Option<DeletionGuard> {
        let Entry::Vacant(free) = self.marks.entry(key) else { return None };
        let (gone, seen) = watch::channel(());
        self.count.fetch_add(1, Ordering::AcqRel);
        free.insert(seen);
        Some(DeletionGuard { leaving: self.clone(), key, _gone: gone })
    }

    /// Whether a contact is marked.
    pub(crate) fn is_marked(&self, key: Key) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.marks.contains_key(&key)
    }

    /// Does something that must not happen while a contact is marked: no mark comes in between.
    ///
    /// # Errors
    /// [`Refusal::ContactLeaving`], or what `work` says.
    pub(crate) fn unless_marked<T>(&self, key: Key, work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        match self.marks.entry(key) {
            Entry::Occupied(_) => Err(Refusal::ContactLeaving(key.1)),
            Entry::Vacant(free) => {
                let outcome = work();
                drop(free);
                outcome
            }
        }
    }

    /// Waits until a contact is not marked any more.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when that takes too long.
    pub(crate) async fn left(&self, key: Key) -> Result<(), Refusal> {
        let Some(mut seen) = self.marks.get(&key).map(|mark| mark.clone()) else { return Ok(()) };
        // It never changes; it closes.
        match tokio::time::timeout(LEAVING_TIME_MAX, seen.changed()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Refusal::Unavailable("something of the contact is being deleted".to_owned())),
        }
    }
}

impl Drop for DeletionGuard {
    fn drop(&mut self) {
        self.leaving.marks.remove(&self.key);
        self.leaving.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::{CompanyId, ContactId};

    use super::*;

    const KEY: Key = (CompanyId::new(1), ContactId::new(2));

    #[tokio::test]
    async fn nothing_happens_while_a_contact_is_marked_and_who_waits_hears_of_the_end() {
        let leaving = Arc::new(PendingDeletions::default());
        assert!(!leaving.is_marked(KEY));
        assert_eq!(leaving.unless_marked(KEY, || Ok(7)), Ok(7));
        assert!(leaving.left(KEY).await.is_ok(), "nobody leaves");
        let mark = leaving.mark(KEY).await.expect("marked");
        assert!(leaving.is_marked(KEY));
        assert!(!leaving.is_marked((CompanyId::new(2), ContactId::new(2))), "another company's");
        assert_eq!(leaving.unless_marked(KEY, || Ok(7)), Err(Refusal::ContactLeaving(ContactId::new(2))));
        assert!(leaving.try_mark(KEY).is_none(), "one has a turn");
        let waiting = tokio::spawn({
            let leaving = leaving.clone();
            async move { leaving.mark(KEY).await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(mark);
        assert!(waiting.await.expect("the task ends").is_ok(), "the next one has its turn");
        assert!(!leaving.is_marked(KEY));
    }
}
