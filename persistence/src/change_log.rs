//! The log through which decided changes become durable, and the three levels of durability.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

use crate::change::encode;
use crate::durable::{Durable, Synced};
use crate::journal::{self, Journal, Seq};
use crate::ownership::not_served;
use crate::persister::{CommitListener, Entry, FlushQueue};
use crate::{Change, CompanyId, Error, Ownership, Result};

/// When a change counts as durable and its caller is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the local journal has synced it. Survives a killed process, a machine crash, and any database outage.
    Journal,
    /// After PostgreSQL has committed it. Survives the loss of this machine's disk; unavailable while the database is
    /// down.
    Database,
    /// Immediately. Survives nothing: for benchmarks only.
    Memory,
}

impl FromStr for Durability {
    type Err = String;
    fn from_str(word: &str) -> std::result::Result<Self, String> {
        match word {
            "journal" => Ok(Self::Journal),
            "database" => Ok(Self::Database),
            "memory" => Ok(Self::Memory),
            _ => Err("must be journal, database or memory".to_owned()),
        }
    }
}

/// Orders decided changes, makes them durable and passes them to the persister. Cheap to clone.
#[derive(Clone)]
pub struct ChangeLog {
    inner: Arc<Inner>,
}

struct Inner {
    way: Way,
    queue: Arc<FlushQueue>,
    /// Decides which companies' entries are accepted.
    ownership: Ownership,
    /// The last entry of each company, which its lists must wait for.
    last: DashMap<CompanyId, Seq>,
}

enum Way {
    Journal(Journal<Waiting>),
    Direct { durability: Durability, appended: AtomicU64 },
}

/// The data attached to an entry while the journal syncs it.
pub(crate) struct Waiting {
    pub(crate) changes: Vec<Change>,
    pub(crate) synced: Synced,
}

impl ChangeLog {
    pub(crate) fn through_journal(journal: Journal<Waiting>, queue: Arc<FlushQueue>) -> Self {
        Self::new(Way::Journal(journal), queue)
    }

    pub(crate) fn direct(durability: Durability, queue: Arc<FlushQueue>) -> Self {
        Self::new(Way::Direct { durability, appended: AtomicU64::new(0) }, queue)
    }

    fn new(way: Way, queue: Arc<FlushQueue>) -> Self {
        Self { inner: Arc::new(Inner { way, queue, ownership: Ownership::default(), last: DashMap::new() }) }
    }

    /// Reserves room for a company's entry before a command decides, so that overload changes nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the queue or the journal is full, the log is closing, or the company is shut.
    pub fn reserve(&self, company: CompanyId) -> Result<Reservation> {
        if self.inner.ownership.is_shut(company) {
            return Err(not_served());
        }
        Ok(Reservation { log: self.clone(), company, seat: self.seat()? })
    }

    /// Whether a reservation would succeed now.
    pub fn has_room(&self) -> bool {
        self.seat().is_ok()
    }

    fn seat(&self) -> Result<Permit> {
        match &self.inner.way {
            Way::Journal(journal) => {
                journal.reserve().map(Permit::Journal).map_err(|refused| Error::Unavailable(refused.to_string()))
            }
            Way::Direct { durability, .. } => {
                self.inner.queue.has_room(*durability == Durability::Database)?;
                Ok(Permit::Direct)
            }
        }
    }

    /// The companies this process serves.
    pub fn ownership(&self) -> &Ownership {
        &self.inner.ownership
    }

    /// Sets the listener for every decision that becomes durable. Can be set once; entries recovered at startup are not
    /// reported.
    pub fn set_witness(&self, witness: CommitListener) {
        self.inner.queue.set_witness(witness);
    }

    /// The last appended entry of a company; 0 if there was none since startup.
    pub fn last_of(&self, company: CompanyId) -> Seq {
        self.inner.last.get(&company).map_or(0, |seq| *seq)
    }

    /// Drops the state of a closed company whose entries are all in the tables.
    pub fn forget(&self, company: CompanyId) {
        // `way` and `queue` only hold entries, which are in the tables by now; `ownership` only counts work.
        let Inner { way: _, queue: _, ownership: _, last } = &*self.inner;
        last.remove(&company);
    }

    /// The newest durable entry.
    pub fn durable(&self) -> Seq {
        match &self.inner.way {
            Way::Journal(journal) => journal.synced(),
            Way::Direct { durability: Durability::Database, .. } => self.inner.queue.flushed(),
            Way::Direct { appended, .. } => appended.load(Ordering::Acquire),
        }
    }

    /// The newest assigned sequence.
    pub fn appended(&self) -> Seq {
        match &self.inner.way {
            Way::Journal(journal) => journal.appended(),
            Way::Direct { appended, .. } => appended.load(Ordering::Acquire),
        }
    }

    /// Waits until everything up to `seq` is durable.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the log stops earlier.
    pub async fn synced(&self, seq: Seq) -> Result<()> {
        match &self.inner.way {
            _ if self.durable() >= seq => Ok(()),
            Way::Direct { durability: Durability::Database, .. } => self.inner.queue.wait_committed(seq).await,
            _ => self.inner.queue.wait_synced(seq).await,
        }
    }

    /// Waits until everything up to `seq` is in the tables, so that a list includes changes that were acknowledged
    /// before.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database is down, or does not catch up in time.
    pub async fn reached(&self, seq: Seq) -> Result<()> {
        self.inner.queue.wait_flushed(seq).await
    }

    /// The newest entry the persister has written.
    pub fn flushed(&self) -> Seq {
        self.inner.queue.flushed()
    }

    /// The queue between this log and the persister, for metrics.
    pub fn queue(&self) -> &FlushQueue {
        &self.inner.queue
    }

    /// The same queue, shared with the persister.
    pub(crate) fn shared_queue(&self) -> Arc<FlushQueue> {
        self.inner.queue.clone()
    }

    /// The journal's fill level, if there is a journal.
    pub fn journal_stats(&self) -> Option<journal::Stats> {
        match &self.inner.way {
            Way::Journal(journal) => Some(journal.stats()),
            Way::Direct { .. } => None,
        }
    }

    pub(crate) fn journal(&self) -> Option<&Journal<Waiting>> {
        match &self.inner.way {
            Way::Journal(journal) => Some(journal),
            Way::Direct { .. } => None,
        }
    }

    fn append(&self, company: CompanyId, seat: Permit, changes: Vec<Change>) -> Result<(Seq, Durable)> {
        if let Some(other) = changes.iter().map(Change::company).find(|other| *other != company) {
            let reason = format!("it is of company {company} and holds a change of company {other}");
            return Err(Error::Entry { seq: 0, reason });
        }
        let is_empty = changes.is_empty();
        let appended = match seat {
            Permit::Journal(place) => {
                let bytes = encode(&changes)?;
                let (synced, durable) = Durable::pending();
                let seq = place
                    .append(&bytes, Waiting { changes, synced })
                    .map_err(|_| Error::Unavailable("the change is too large for the journal".to_owned()))?;
                (seq, durable)
            }
            Permit::Direct => self.append_directly(changes),
        };
        if !is_empty {
            self.inner.last.entry(company).and_modify(|last| *last = (*last).max(appended.0)).or_insert(appended.0);
        }
        Ok(appended)
    }

    fn append_directly(&self, changes: Vec<Change>) -> (Seq, Durable) {
        let Way::Direct { durability, appended } = &self.inner.way else { return (0, Durable::already()) };
        let (done, durable) = match durability {
            Durability::Database => {
                let (done, durable) = Durable::pending();
                (Some(done), durable)
            }
            _ => (None, Durable::already()),
        };
        // The sequence is assigned under the queue's lock: the persister must receive entries in sequence order.
        let seq = self.inner.queue.push_numbered(appended, changes, done);
        (seq, durable)
    }
}

/// Reserved room in the log. Dropping it returns it.
pub struct Reservation {
    log: ChangeLog,
    company: CompanyId,
    seat: Permit,
}

enum Permit {
    Journal(journal::Reservation<Waiting>),
    Direct,
}

impl Reservation {
    /// Appends the changes of one decision, all of the company the reservation is for. They become durable together or
    /// not at all.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the entry is larger than the journal accepts, [`Error::Entry`] when a change belongs
    /// to another company; in both cases nothing was appended.
    pub fn append(self, changes: Vec<Change>) -> Result<(Seq, Durable)> {
        self.log.append(self.company, self.seat, changes)
    }
}

/// Passes synced entries to the persister, then wakes their waiters.
pub(crate) fn pass_on(queue: &FlushQueue, synced: &mut Vec<(Seq, Waiting)>) {
    for (_, waiting) in synced.iter() {
        queue.on_durable(&waiting.changes);
    }
    let mut released = Vec::with_capacity(synced.len());
    queue.push(synced.drain(..).map(|(seq, waiting)| {
        released.push(waiting.synced);
        Entry { seq, changes: waiting.changes, done: None }
    }));
    for waiting in released {
        waiting.reached();
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::tables::contacts::ContactChannel;
    use crate::{ChannelId, ContactId};

    fn talked(company: i64) -> Change {
        Change::ContactChannel(ContactChannel {
            company_id: CompanyId::new(company),
            contact_id: ContactId::new(1),
            channel_id: ChannelId::new(1),
            at: DateTime::UNIX_EPOCH,
        })
    }

    #[test]
    fn an_entry_is_of_the_company_its_place_was_taken_for() {
        let log = ChangeLog::direct(Durability::Memory, Arc::new(FlushQueue::new(0, false)));
        let append = |changes| log.reserve(CompanyId::new(1)).and_then(|place| place.append(changes));
        assert!(log.has_room());
        assert!(append(vec![talked(1), talked(1)]).is_ok());
        let last = log.last_of(CompanyId::new(1));
        assert!(last > 0);
        for mixed in [vec![talked(1), talked(2)], vec![talked(2)]] {
            assert!(matches!(append(mixed), Err(Error::Entry { .. })));
        }
        assert_eq!((log.last_of(CompanyId::new(1)), log.last_of(CompanyId::new(2)), log.appended()), (last, 0, last));
    }

    #[tokio::test]
    async fn a_company_that_is_shut_has_no_place_for_an_entry() {
        let log = ChangeLog::direct(Durability::Memory, Arc::new(FlushQueue::new(0, false)));
        let closed = log.ownership().close(CompanyId::new(1)).await.expect("nobody is at work");
        assert!(log.reserve(CompanyId::new(1)).is_ok(), "what has begun is recorded");
        closed.shut();
        assert!(matches!(log.reserve(CompanyId::new(1)), Err(Error::Unavailable(_))));
        assert!(log.reserve(CompanyId::new(2)).is_ok());
        drop(closed);
        assert!(log.reserve(CompanyId::new(1)).is_ok());
    }
}
