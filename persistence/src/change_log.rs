//! The log through which decided changes become durable, and the two levels of durability.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

use crate::change::encode;
use crate::durable::{Durable, SyncSignal};
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
}

impl FromStr for Durability {
    type Err = String;
    fn from_str(word: &str) -> std::result::Result<Self, String> {
        match word {
            "journal" => Ok(Self::Journal),
            "database" => Ok(Self::Database),
            _ => Err("must be journal or database".to_owned()),
        }
    }
}

/// Orders decided changes, makes them durable and passes them to the persister. Cheap to clone.
#[derive(Clone)]
pub struct ChangeLog {
    inner: Arc<LogState>,
}

struct LogState {
    backend: Backend,
    queue: Arc<FlushQueue>,
    /// The companies whose entries are accepted.
    ownership: Ownership,
    /// The last entry of each company. Before its records are listed, the tables must have its entries up to this one,
    /// or up to the newest durable one if that is older.
    last_entries: DashMap<CompanyId, Seq>,
    /// Number of reservations that the journal or the queue has refused.
    refused_count: AtomicU64,
}

enum Backend {
    Journal(Journal<PendingEntry>),
    /// Entries are durable once they are in the tables. Contains the newest assigned sequence.
    Database(Arc<AtomicU64>),
}

/// The data attached to an entry while the journal syncs it.
pub(crate) struct PendingEntry {
    pub(crate) changes: Vec<Change>,
    pub(crate) signal: SyncSignal,
}

impl ChangeLog {
    pub(crate) fn through_journal(journal: Journal<PendingEntry>, queue: Arc<FlushQueue>) -> Self {
        Self::new(Backend::Journal(journal), queue)
    }

    pub(crate) fn through_database(queue: Arc<FlushQueue>) -> Self {
        Self::new(Backend::Database(Arc::new(AtomicU64::new(0))), queue)
    }

    fn new(backend: Backend, queue: Arc<FlushQueue>) -> Self {
        let (ownership, last_entries) = (Ownership::default(), DashMap::new());
        Self { inner: Arc::new(LogState { backend, queue, ownership, last_entries, refused_count: AtomicU64::new(0) }) }
    }

    /// Reserves room for a company's entry before a command decides, so that a refusal changes nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the queue or the journal is full, the log is closing, or this process no longer
    /// accepts the company's entries; without a journal also when the database is down.
    pub fn reserve(&self, company: CompanyId) -> Result<Reservation> {
        if self.inner.ownership.is_shut(company) {
            return Err(not_served());
        }
        let reservation = self.reserve_backend().inspect_err(|_| {
            self.inner.refused_count.fetch_add(1, Ordering::Relaxed);
        })?;
        Ok(Reservation { log: self.clone(), company, reservation })
    }

    /// Whether a reservation for a served company would succeed now.
    pub fn has_room(&self) -> bool {
        self.check_room().is_ok()
    }

    /// Checks that a reservation for a served company would succeed now.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason.
    pub fn check_room(&self) -> Result<()> {
        self.reserve_backend().map(drop)
    }

    /// Number of reservations since startup that the journal or the queue has refused.
    pub fn refused_count(&self) -> u64 {
        self.inner.refused_count.load(Ordering::Relaxed)
    }

    fn reserve_backend(&self) -> Result<BackendReservation> {
        match &self.inner.backend {
            Backend::Journal(journal) => journal
                .reserve()
                .map(BackendReservation::Journal)
                .map_err(|refused| Error::Unavailable(refused.to_string())),
            Backend::Database(appended) => {
                self.inner.queue.check_room()?;
                Ok(BackendReservation::Database(appended.clone()))
            }
        }
    }

    /// The companies this process serves.
    pub fn ownership(&self) -> &Ownership {
        &self.inner.ownership
    }

    /// Sets the listener for every decision that becomes durable. Can be set once; entries recovered at startup are not
    /// reported.
    pub fn set_commit_listener(&self, listener: CommitListener) {
        self.inner.queue.set_listener(listener);
    }

    /// The last appended entry of a company; 0 if there was none since startup.
    pub fn last_of(&self, company: CompanyId) -> Seq {
        self.inner.last_entries.get(&company).map_or(0, |seq| *seq)
    }

    /// Drops the state of a closed company whose entries are all in the tables.
    pub fn forget(&self, company: CompanyId) {
        // `backend` and `queue` hold only entries, which the tables have by now; `ownership` keeps the company closed.
        let LogState { backend: _, queue: _, ownership: _, last_entries, refused_count: _ } = &*self.inner;
        last_entries.remove(&company);
    }

    /// The newest durable entry.
    pub fn durable(&self) -> Seq {
        match &self.inner.backend {
            Backend::Journal(journal) => journal.synced(),
            Backend::Database(_) => self.inner.queue.flushed(),
        }
    }

    /// The newest assigned sequence.
    pub fn appended(&self) -> Seq {
        match &self.inner.backend {
            Backend::Journal(journal) => journal.appended(),
            Backend::Database(appended) => appended.load(Ordering::Acquire),
        }
    }

    /// Waits until everything up to `seq` is durable.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the log does not catch up in time.
    pub async fn wait_until_durable(&self, seq: Seq) -> Result<()> {
        match &self.inner.backend {
            _ if self.durable() >= seq => Ok(()),
            Backend::Journal(_) => self.inner.queue.wait_synced(seq).await,
            Backend::Database(_) => self.inner.queue.wait_flushed_despite_outage(seq).await,
        }
    }

    /// Waits until everything up to `seq` is in the tables, so that a list includes changes that were acknowledged
    /// before.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database is down, or does not catch up in time.
    pub async fn wait_until_flushed(&self, seq: Seq) -> Result<()> {
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

    /// The queue as shared with the persister.
    pub(crate) fn shared_queue(&self) -> Arc<FlushQueue> {
        self.inner.queue.clone()
    }

    /// The journal's fill level, if there is a journal.
    pub fn journal_stats(&self) -> Option<journal::Stats> {
        match &self.inner.backend {
            Backend::Journal(journal) => Some(journal.stats()),
            Backend::Database(_) => None,
        }
    }

    pub(crate) fn journal(&self) -> Option<&Journal<PendingEntry>> {
        match &self.inner.backend {
            Backend::Journal(journal) => Some(journal),
            Backend::Database(_) => None,
        }
    }

    fn append(
        &self,
        company: CompanyId,
        reservation: BackendReservation,
        changes: Vec<Change>,
    ) -> Result<(Seq, Durable)> {
        if let Some(other) = changes.iter().map(Change::company).find(|other| *other != company) {
            let reason = format!("the entry is of company {company} and contains a change of company {other}");
            return Err(Error::InvalidEntry(reason));
        }
        let is_empty = changes.is_empty();
        let (seq, durable) = match reservation {
            BackendReservation::Journal(reservation) => {
                let bytes = encode(&changes)?;
                let (signal, durable) = Durable::pending();
                let seq = reservation
                    .append(&bytes, PendingEntry { changes, signal })
                    .map_err(|_| Error::Unavailable("the change is too large for the journal".to_owned()))?;
                (seq, durable)
            }
            BackendReservation::Database(newest_seq) => {
                let (signal, durable) = Durable::pending();
                // The sequence is assigned under the queue's lock: the persister must receive entries in sequence
                // order.
                (self.inner.queue.push_numbered(&newest_seq, changes, signal), durable)
            }
        };
        if !is_empty {
            self.inner.last_entries.entry(company).and_modify(|last| *last = (*last).max(seq)).or_insert(seq);
        }
        Ok((seq, durable))
    }
}

/// Reserved room in the log. Dropping the reservation frees the room.
pub struct Reservation {
    log: ChangeLog,
    company: CompanyId,
    reservation: BackendReservation,
}

enum BackendReservation {
    Journal(journal::JournalReservation<PendingEntry>),
    /// The newest assigned sequence, shared with [`Backend::Database`].
    Database(Arc<AtomicU64>),
}

impl Reservation {
    /// Appends the changes of one decision, which must all belong to the reservation's company. They become durable
    /// together or not at all.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the entry is larger than the journal accepts, [`Error::InvalidEntry`] when a change
    /// belongs to another company; in both cases nothing was appended.
    pub fn append(self, changes: Vec<Change>) -> Result<(Seq, Durable)> {
        self.log.append(self.company, self.reservation, changes)
    }
}

/// Passes synced entries to the persister, then wakes their waiters.
pub(crate) fn publish_synced(queue: &FlushQueue, entries: &mut Vec<(Seq, PendingEntry)>) {
    for (_, entry) in entries.iter() {
        queue.on_durable(&entry.changes);
    }
    let mut signals = Vec::with_capacity(entries.len());
    queue.push(entries.drain(..).map(|(seq, entry)| {
        signals.push(entry.signal);
        Entry { seq, changes: entry.changes, signal: None }
    }));
    for signal in signals {
        signal.complete();
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::tables::contacts::ContactChannel;
    use crate::{ChannelId, ContactId};

    fn change(company: i64) -> Change {
        Change::ContactChannel(ContactChannel {
            company_id: CompanyId::new(company),
            contact_id: ContactId::new(1),
            channel_id: ChannelId::new(1),
            at: DateTime::UNIX_EPOCH,
        })
    }

    #[test]
    fn an_entry_of_another_company_is_refused() {
        let log = ChangeLog::through_database(Arc::new(FlushQueue::new(0, false)));
        let append = |changes| log.reserve(CompanyId::new(1)).and_then(|reservation| reservation.append(changes));
        assert!(log.has_room());
        assert!(append(vec![change(1), change(1)]).is_ok());
        let last = log.last_of(CompanyId::new(1));
        assert!(last > 0);
        for mixed in [vec![change(1), change(2)], vec![change(2)]] {
            assert!(matches!(append(mixed), Err(Error::InvalidEntry(_))));
        }
        assert_eq!((log.last_of(CompanyId::new(1)), log.last_of(CompanyId::new(2)), log.appended()), (last, 0, last));
    }

    #[tokio::test]
    async fn a_closed_company_gets_no_reservation() {
        let log = ChangeLog::through_database(Arc::new(FlushQueue::new(0, false)));
        let closed = log.ownership().close(CompanyId::new(1)).await.expect("no work is in progress");
        assert!(log.reserve(CompanyId::new(1)).is_ok(), "work in progress may still append");
        closed.shut();
        assert!(matches!(log.reserve(CompanyId::new(1)), Err(Error::Unavailable(_))));
        assert!(log.reserve(CompanyId::new(2)).is_ok());
        drop(closed);
        assert!(log.reserve(CompanyId::new(1)).is_ok());
    }
}
