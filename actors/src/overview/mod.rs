//! Keeps a company's open tickets in memory while they are queried: by queue, user and channel, and in each order in
//! which they are listed.
//!
//! A company's dashboards and inboxes query its open tickets every few seconds. Counting or sorting fifteen thousand
//! of them in the tables reads all of them each time. So the first query reads the tables, and triggers one load of the
//! open tickets for the following queries. From then on every decision is recorded when it becomes durable, before it
//! is acknowledged. Companies that are not queried cost nothing.

mod open_ticket_query;
mod open_ticket_times;
mod open_tickets;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hotline_persistence::select::TimePosition;
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::tables::reports::desk::{OpenTicket, OpenTicketCounts};
use hotline_persistence::tables::tickets::{TicketRow, TicketStatus};
use hotline_persistence::{Change, CompanyId, TicketId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use self::open_ticket_query::OpenTicketQuery;

use self::open_ticket_times::{GroupKey, OpenTicketTimes};
use self::open_tickets::{Listing, OpenTicketOrders};
use crate::id_map::IdMap;

/// How long an overview stays in memory after the last query.
const RETAINED_FOR: Duration = Duration::from_secs(600);

/// Pause before the tables are read again after a failure, and after an overview that was too large.
const LOAD_PAUSE: Duration = Duration::from_secs(10);
const SIZE_PAUSE: Duration = Duration::from_secs(300);

/// Maximum open tickets in memory of a company, about 25 MiB. A company with more is counted and listed in the tables
/// at each query.
const TICKETS_MAX: usize = 200_000;

/// Maximum combinations of queue, user and channel that a company's open tickets in memory may have: all are counted
/// for a dashboard, in about a millisecond, while the log waits. Each takes up to 324 bytes.
const GROUPS_MAX: usize = 20_000;

/// Maximum open tickets in memory of all companies, about 120 MiB. Beyond it, companies with more than
/// [`COMPANY_SHARE`] are counted and listed in the tables.
const ALL_TICKETS_MAX: usize = 1_000_000;

/// Number of open tickets that each company may always have in memory, however many other companies have.
const COMPANY_SHARE: usize = 10_000;

/// Maximum tickets that a list examines before it lets the log record changes: a few tens of microseconds.
const LISTED_AT_ONCE: usize = 2_000;

/// Maximum loads at once, each of up to 25 MiB.
const LOADS_MAX: usize = 2;

/// Maximum changes made during a load that are applied at once, while the log waits: about a millisecond.
const CHANGES_AT_ONCE: usize = 1_000;

/// The overviews of the companies that are being queried.
pub(crate) struct Overviews {
    companies: IdMap<CompanyId, Arc<Overview>>,
    /// The number of open tickets in memory, of all companies.
    all_tickets: Arc<AtomicUsize>,
    /// Permits for the loads of all companies.
    loads: Arc<Semaphore>,
}

/// The open tickets of one company.
pub(crate) struct Overview {
    state: Mutex<OverviewState>,
}

/// Whether a query can be answered from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverviewStatus {
    Loaded,
    /// Not loaded yet, or too many: read the tables.
    ReadTables,
    /// As [`Self::ReadTables`], and the caller must load the open tickets for later queries.
    Load,
}

struct OverviewState {
    tickets: OpenTicketOrders,
    load_state: LoadState,
    last_query: Instant,
    /// The number of open tickets in memory, of all companies.
    all_tickets: Arc<AtomicUsize>,
}

/// The state of loading the open tickets.
enum LoadState {
    /// No query has asked for them yet.
    Idle,
    /// The tables are being read; these tickets have changed since.
    Running(HashSet<TicketId>),
    /// The tables could not be read, or had too many tickets: they are not read again before this moment.
    PausedUntil(Instant),
    Done,
}

/// The result of a load: the open tickets in the tables, or why the overview has none.
pub(crate) enum LoadOutcome {
    All(Vec<OpenTicket>),
    /// There is no room for them in memory.
    TooMany,
    /// They could not be read.
    Failed,
}

impl Default for Overviews {
    fn default() -> Self {
        Self { companies: IdMap::default(), all_tickets: Arc::default(), loads: Arc::new(Semaphore::new(LOADS_MAX)) }
    }
}

impl Overviews {
    /// The number of open tickets in memory, of all companies.
    pub(crate) fn ticket_count(&self) -> usize {
        self.all_tickets.load(Ordering::Relaxed)
    }

    /// The overview of a company that is queried now, and whether it can answer.
    pub(crate) fn query(&self, company: CompanyId, now: Instant) -> (Arc<Overview>, OverviewStatus) {
        let overview = self.get(company).unwrap_or_else(|| {
            let new = || Arc::new(Overview::new(now, self.all_tickets.clone()));
            self.companies.entry(company).or_insert_with(new).clone()
        });
        let status = overview.state.lock().query(now);
        (overview, status)
    }

    /// Records every decision once it is durable. Runs on the log's thread, so it must not block.
    pub(crate) fn on_commit(&self, changes: &[Change]) {
        for change in changes {
            if let Change::Ticket(row) = change
                && let Some(overview) = self.get(row.company_id)
            {
                overview.state.lock().record(row, last_message_of(row, changes));
            }
        }
    }

    /// A permit for one load; `None` while [`LOADS_MAX`] others are running.
    pub(crate) fn begin_load(&self) -> Option<OwnedSemaphorePermit> {
        self.loads.clone().try_acquire_owned().ok()
    }

    /// Whether this number of open tickets may be loaded for a company that has none in memory yet.
    pub(crate) fn has_room(&self, tickets: usize) -> bool {
        !is_too_many(tickets, self.ticket_count() + tickets)
    }

    /// Whether a company still has this overview, so that commits reach it.
    pub(crate) fn is_current(&self, company: CompanyId, overview: &Arc<Overview>) -> bool {
        self.get(company).is_some_and(|current| Arc::ptr_eq(&current, overview))
    }

    /// Updates tickets that a merge has changed in the tables; `open` has those of them that are open now.
    pub(crate) fn replace(&self, company: CompanyId, tickets: &[TicketId], open: &[OpenTicket]) {
        if let Some(overview) = self.get(company) {
            overview.state.lock().replace(tickets, open);
        }
    }

    /// Drops a company's overview, because the company is dropped from memory.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { companies, all_tickets: _, loads: _ } = self;
        companies.remove(&company);
    }

    /// Drops overviews that have not been queried for a long time.
    pub(crate) fn sweep(&self, now: Instant) {
        let overviews: Vec<_> = self.companies.iter().map(|entry| (*entry.key(), entry.value().clone())).collect();
        // The clones live until the end, so that no overview is dropped while the map is locked: a drop takes a while.
        // The map waits only for the locks of unused overviews, which are hardly ever held.
        for (company, _) in overviews.iter().filter(|(_, overview)| overview.state.lock().is_unused(now)) {
            self.companies.remove_if(company, |_, overview| overview.state.lock().end_if_unused(now));
        }
    }

    /// The overview of a company, if it has one. A clone, so that the map is not locked while it is in use.
    fn get(&self, company: CompanyId) -> Option<Arc<Overview>> {
        self.companies.get(&company).map(|overview| overview.clone())
    }
}

/// Whether a company has more open tickets than may be in memory, while all companies together have `all`.
const fn is_too_many(own: usize, all: usize) -> bool {
    own > TICKETS_MAX || own > COMPANY_SHARE && all > ALL_TICKETS_MAX
}

/// The last message of a ticket, if it is among these changes.
fn last_message_of<'a>(row: &TicketRow, changes: &'a [Change]) -> Option<&'a MessageRow> {
    let id = row.last_message_id?;
    changes.iter().find_map(|change| match change {
        Change::Message(message) if message.id == id && message.company_id == row.company_id => Some(&**message),
        _ => None,
    })
}

impl Overview {
    fn new(now: Instant, all_tickets: Arc<AtomicUsize>) -> Self {
        let (tickets, load_state) = (OpenTicketOrders::default(), LoadState::Idle);
        Self { state: Mutex::new(OverviewState { tickets, load_state, last_query: now, all_tickets }) }
    }

    /// Ends a load. The tickets are put in order without the lock, because the log would wait for it, and on a thread
    /// that may block.
    pub(crate) async fn end_load(self: &Arc<Self>, outcome: LoadOutcome) {
        let open = match outcome {
            LoadOutcome::All(open) => open,
            LoadOutcome::TooMany => return self.state.lock().unload(SIZE_PAUSE),
            LoadOutcome::Failed => return self.state.lock().unload(LOAD_PAUSE),
        };
        let overview = self.clone();
        if tokio::task::spawn_blocking(move || overview.install(OpenTicketOrders::of(open))).await.is_err() {
            self.state.lock().unload(LOAD_PAUSE);
        }
    }

    /// Leaves a load to a later query.
    pub(crate) fn postpone_load(&self) {
        self.state.lock().unload(Duration::ZERO);
    }

    /// Applies the changes made during the load to the loaded tickets, which then replace those in memory. Many changes
    /// are applied without the lock: the log may record others meanwhile.
    fn install(&self, mut loaded: OpenTicketOrders) {
        loop {
            let changed = self.state.lock().take_changed_if_many();
            let Some(changed) = changed else { break };
            for ids in changed.chunks(CHANGES_AT_ONCE) {
                let recorded = self.state.lock().recorded_times(ids);
                recorded.into_iter().for_each(|(id, times)| loaded.apply(id, times));
            }
        }
        let replaced = self.state.lock().install(loaded);
        drop(replaced);
    }

    /// The open tickets by queue and user, one row for each channel with any; `None` if the tables must be read.
    pub(crate) fn counts(&self) -> Option<Vec<OpenTicketCounts>> {
        let state = self.state.lock();
        state.is_loaded().then(|| state.tickets.counts())
    }

    /// The open tickets that a query asks for, in its order; `None` if the tables must be read. The lock is released
    /// after every [`LISTED_AT_ONCE`] tickets: one that moves in the order meanwhile may be missed, but is not listed
    /// twice.
    pub(crate) async fn list(&self, query: &OpenTicketQuery) -> Option<Vec<TimePosition>> {
        let matching = {
            let state = self.state.lock();
            if !state.is_loaded() {
                return None;
            }
            state.tickets.matching_if_few(query)
        };
        if let Some(matching) = matching {
            return Some(query.page_of(matching));
        }
        let mut listing = Listing::new(query);
        loop {
            let has_ended = {
                let state = self.state.lock();
                if !state.is_loaded() {
                    return None;
                }
                let has_ended = state.tickets.continue_list(query, &mut listing, LISTED_AT_ONCE);
                // The log may be waiting for the lock.
                MutexGuard::unlock_fair(state);
                has_ended
            };
            if has_ended {
                return Some(listing.found);
            }
            tokio::task::yield_now().await;
        }
    }
}

impl OverviewState {
    const fn is_loaded(&self) -> bool {
        matches!(self.load_state, LoadState::Done)
    }

    fn query(&mut self, now: Instant) -> OverviewStatus {
        self.last_query = now;
        match self.load_state {
            LoadState::Done => OverviewStatus::Loaded,
            LoadState::Running(_) => OverviewStatus::ReadTables,
            LoadState::PausedUntil(until) if now < until => OverviewStatus::ReadTables,
            LoadState::Idle | LoadState::PausedUntil(_) => {
                // Changes are recorded from now on, and the tables are read after that, so that no change is missed.
                self.load_state = LoadState::Running(HashSet::new());
                OverviewStatus::Load
            }
        }
    }

    /// Ends an overview that has not been queried for a long time: a query that still has it then reads the tables,
    /// because commits no longer reach it.
    fn end_if_unused(&mut self, now: Instant) -> bool {
        let is_unused = self.is_unused(now);
        if is_unused {
            self.load_state = LoadState::Idle;
        }
        is_unused
    }

    fn is_unused(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last_query) >= RETAINED_FOR
    }

    /// Records a ticket as it is now. `message` is its last message, if that is new.
    fn record(&mut self, row: &TicketRow, message: Option<&MessageRow>) {
        match &mut self.load_state {
            LoadState::Idle | LoadState::PausedUntil(_) => return,
            LoadState::Running(changed) => drop(changed.insert(row.id)),
            LoadState::Done => {}
        }
        let earlier_activity_at = self.tickets.get(row.id).map(|times| times.last_activity_at);
        let last_message_at = message.map(|message| message.created_at).or(earlier_activity_at);
        let times = (row.status == TicketStatus::Open).then(|| OpenTicketTimes {
            group: GroupKey { queue_id: row.queue_id, user_id: row.user_id, channel_id: row.channel_id },
            last_activity_at: last_message_at.map_or(row.opened_at, |at| row.opened_at.max(at)),
            waiting_since: row.waiting_since,
        });
        self.set_ticket(row.id, times);
        if self.is_too_large() {
            self.unload(SIZE_PAUSE);
        }
    }

    /// Adds or moves an open ticket, or removes one that is closed.
    fn set_ticket(&mut self, ticket: TicketId, times: Option<OpenTicketTimes>) {
        let before = self.tickets.len();
        match times {
            Some(times) => self.tickets.insert(ticket, times),
            None => self.tickets.remove(ticket),
        }
        self.all_tickets.fetch_add(self.tickets.len(), Ordering::Relaxed);
        self.all_tickets.fetch_sub(before, Ordering::Relaxed);
    }

    /// Updates tickets that a merge has changed; `open` has those of them that are open now.
    fn replace(&mut self, tickets: &[TicketId], open: &[OpenTicket]) {
        match &mut self.load_state {
            LoadState::Idle | LoadState::PausedUntil(_) => return,
            LoadState::Running(changed) => changed.extend(tickets),
            LoadState::Done => {}
        }
        for id in tickets {
            self.set_ticket(*id, open.iter().find(|ticket| ticket.id == *id).map(OpenTicketTimes::from));
        }
        if self.is_too_large() {
            self.unload(SIZE_PAUSE);
        }
    }

    /// The tickets that have changed since the load began, if they are too many to be applied at once. From then on,
    /// only later changes are collected.
    fn take_changed_if_many(&mut self) -> Option<Vec<TicketId>> {
        let LoadState::Running(changed) = &mut self.load_state else { return None };
        (changed.len() > CHANGES_AT_ONCE).then(|| std::mem::take(changed).into_iter().collect())
    }

    /// What the log has recorded of these tickets during the load; `None` if the ticket is closed.
    fn recorded_times(&self, tickets: &[TicketId]) -> Vec<(TicketId, Option<OpenTicketTimes>)> {
        tickets.iter().map(|id| (*id, self.tickets.get(*id))).collect()
    }

    /// Replaces the tickets in memory with the loaded ones, after applying the remaining changes to the loaded ones.
    /// Returns tickets for the caller to drop without the lock.
    fn install(&mut self, mut loaded: OpenTicketOrders) -> OpenTicketOrders {
        let LoadState::Running(changed) = std::mem::replace(&mut self.load_state, LoadState::Done) else {
            // The overview has become too large meanwhile.
            self.unload(SIZE_PAUSE);
            return loaded;
        };
        for id in changed {
            loaded.apply(id, self.tickets.get(id));
        }
        self.all_tickets.fetch_add(loaded.len(), Ordering::Relaxed);
        self.all_tickets.fetch_sub(self.tickets.len(), Ordering::Relaxed);
        let replaced = std::mem::replace(&mut self.tickets, loaded);
        if self.is_too_large() {
            self.unload(SIZE_PAUSE);
        }
        replaced
    }

    fn is_too_large(&self) -> bool {
        let changed = if let LoadState::Running(changed) = &self.load_state { changed.len() } else { 0 };
        let all = self.all_tickets.load(Ordering::Relaxed);
        is_too_many(self.tickets.len(), all) || self.tickets.group_count() > GROUPS_MAX || changed > TICKETS_MAX
    }

    /// Drops the open tickets. After `pause` they may be loaded from the tables again.
    fn unload(&mut self, pause: Duration) {
        self.all_tickets.fetch_sub(self.tickets.len(), Ordering::Relaxed);
        let open = std::mem::take(&mut self.tickets);
        self.load_state = LoadState::PausedUntil(Instant::now() + pause);
        if open.len() == 0 {
            return;
        }
        // Dropped on another thread, because the caller holds the lock, and the log's thread may be waiting for it. If
        // no thread can be started, the closure is dropped here.
        if let Err(error) = std::thread::Builder::new().spawn(move || drop(open)) {
            tracing::debug!(%error, "dropped the open tickets of a company on the log's thread");
        }
    }
}

impl Drop for OverviewState {
    fn drop(&mut self) {
        self.all_tickets.fetch_sub(self.tickets.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
