//! A company's open tickets by queue, user and channel and in each order in which they are listed, in memory while they
//! are queried.
//!
//! A company's dashboards and inboxes query its open tickets every few seconds. To count or sort fifteen thousand of
//! them in the tables reads all of them each time. So the first query reads the tables, and triggers one load of the
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

pub(crate) use self::open_ticket_query::OpenTicketQuery;

use self::open_ticket_times::{GroupKey, OpenTicketTimes};
use self::open_tickets::{Listing, OpenTicketOrders};
use crate::id_map::IdMap;

/// How long an overview stays in memory after the last query.
const RETAINED_FOR: Duration = Duration::from_secs(600);

/// Pause before the tables are read again after a failure, and after an overview that was too large.
const LOAD_PAUSE: Duration = Duration::from_secs(10);
const SIZE_PAUSE: Duration = Duration::from_secs(300);

/// Maximum open tickets in memory of a company, some 25 MiB. A company with more is counted and listed in the tables at
/// each query.
pub(crate) const TICKETS_MAX: usize = 200_000;

/// Maximum open tickets in memory of all companies, some 120 MiB. Beyond it, companies with more than [`SHARE`] are
/// counted and listed in the tables.
const ALL_TICKETS_MAX: usize = 1_000_000;

/// Open tickets in memory that each company may always have, however many other companies have.
const SHARE: usize = 10_000;

/// Maximum tickets that a list examines before it lets the log record changes: some tens of microseconds.
const LISTED_AT_ONCE: usize = 2_000;

/// The companies that are being queried.
#[derive(Default)]
pub(crate) struct Overviews {
    companies: IdMap<CompanyId, Arc<Overview>>,
    /// The number of open tickets in memory, of all companies.
    tickets: Arc<AtomicUsize>,
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
    open: OpenTicketOrders,
    load_state: LoadState,
    last_query: Instant,
    /// The number of open tickets in memory, of all companies.
    all_tickets: Arc<AtomicUsize>,
}

/// How far the open tickets are loaded.
enum LoadState {
    /// No query has asked for them yet.
    Idle,
    /// The tables are being read; these tickets have changed since.
    Running(HashSet<TicketId>),
    /// The tables could not be read, or had too many tickets: they are not read again before this moment.
    FailedUntil(Instant),
    Done,
}

impl Overviews {
    /// The number of open tickets in memory, of all companies.
    pub(crate) fn ticket_count(&self) -> usize {
        self.tickets.load(Ordering::Relaxed)
    }

    /// The overview of a company that is queried now, and whether it can answer.
    pub(crate) fn query(&self, company: CompanyId, now: Instant) -> (Arc<Overview>, OverviewStatus) {
        let overview = self.of(company).unwrap_or_else(|| {
            let new = || Arc::new(Overview::new(now, self.tickets.clone()));
            self.companies.entry(company).or_insert_with(new).clone()
        });
        let status = overview.state.lock().query(now);
        (overview, status)
    }

    /// Records every decision once it is durable. Runs on the log's thread, so it must not block.
    pub(crate) fn on_commit(&self, changes: &[Change]) {
        for change in changes {
            if let Change::Ticket(row) = change
                && let Some(overview) = self.of(row.company_id)
            {
                overview.state.lock().record(row, last_message_of(row, changes));
            }
        }
    }

    /// Drops a company's overview: tickets were deleted with their contact, or the company is dropped from memory.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { companies, tickets: _ } = self;
        companies.remove(&company);
    }

    /// Drops overviews that were not queried for long.
    pub(crate) fn sweep(&self, now: Instant) {
        let overviews: Vec<_> = self.companies.iter().map(|entry| (*entry.key(), entry.value().clone())).collect();
        // The clones are dropped last, outside the map, because that takes a while. The map waits only for overviews
        // that were unused, and are hardly locked.
        for (company, _) in overviews.iter().filter(|(_, overview)| overview.state.lock().is_unused(now)) {
            self.companies.remove_if(company, |_, overview| overview.state.lock().end_if_unused(now));
        }
    }

    /// The overview of a company, if it has one. A clone, so that the map is not locked while it is in use.
    fn of(&self, company: CompanyId) -> Option<Arc<Overview>> {
        self.companies.get(&company).map(|overview| overview.clone())
    }
}

/// The last message of a ticket, if it is new.
fn last_message_of<'a>(row: &TicketRow, changes: &'a [Change]) -> Option<&'a MessageRow> {
    let id = row.last_message_id?;
    changes.iter().find_map(|change| match change {
        Change::Message(message) if message.id == id && message.company_id == row.company_id => Some(&**message),
        _ => None,
    })
}

impl Overview {
    fn new(now: Instant, all_tickets: Arc<AtomicUsize>) -> Self {
        let (open, load_state) = (OpenTicketOrders::default(), LoadState::Idle);
        Self { state: Mutex::new(OverviewState { open, load_state, last_query: now, all_tickets }) }
    }

    /// Ends a load with the open tickets in the tables; `None`: they could not be read. More than [`TICKETS_MAX`]
    /// tickets count as a failure. The tickets are put in order without the lock, because the log would wait for it,
    /// and on a thread that may block.
    pub(crate) async fn end_load(&self, open: Option<Vec<OpenTicket>>) {
        let Some(open) = open else { return self.state.lock().fail(LOAD_PAUSE) };
        if open.len() > TICKETS_MAX {
            return self.state.lock().fail(SIZE_PAUSE);
        }
        let Ok(loaded) = tokio::task::spawn_blocking(move || OpenTicketOrders::of(open)).await else {
            return self.state.lock().fail(LOAD_PAUSE);
        };
        let recorded = self.state.lock().install(loaded);
        drop(recorded);
    }

    /// The open tickets by queue and user, one row for each channel with any; `None`: read the tables.
    pub(crate) fn counts(&self) -> Option<Vec<OpenTicketCounts>> {
        let state = self.state.lock();
        state.is_loaded().then(|| state.open.counts())
    }

    /// The open tickets that a query asks for, in its order; `None`: read the tables. The lock is released after every
    /// [`LISTED_AT_ONCE`] tickets: one that moves in the order meanwhile may be missed, but is not listed twice.
    pub(crate) async fn list(&self, query: &OpenTicketQuery) -> Option<Vec<TimePosition>> {
        let few = {
            let state = self.state.lock();
            if !state.is_loaded() {
                return None;
            }
            state.open.few(query)
        };
        if let Some(few) = few {
            return Some(query.page_of(few));
        }
        let mut listing = Listing::new(query);
        loop {
            let has_ended = {
                let state = self.state.lock();
                if !state.is_loaded() {
                    return None;
                }
                let has_ended = state.open.continue_list(query, &mut listing, LISTED_AT_ONCE);
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
            LoadState::FailedUntil(until) if now < until => OverviewStatus::ReadTables,
            LoadState::Idle | LoadState::FailedUntil(_) => {
                // Changes are recorded from now on, and the tables are read after that, so that no change is missed.
                self.load_state = LoadState::Running(HashSet::new());
                OverviewStatus::Load
            }
        }
    }

    /// Ends an overview that was not queried for long: a query that still has it then reads the tables, because commits
    /// do not reach it any more.
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
            LoadState::Idle | LoadState::FailedUntil(_) => return,
            LoadState::Running(changed) => drop(changed.insert(row.id)),
            LoadState::Done => {}
        }
        let earlier = self.open.get(row.id).map(|earlier| earlier.last_activity_at);
        let last_message_at = message.map(|message| message.created_at).or(earlier);
        let times = (row.status == TicketStatus::Open).then(|| OpenTicketTimes {
            group: GroupKey { queue_id: row.queue_id, user_id: row.user_id, channel_id: row.channel_id },
            last_activity_at: last_message_at.map_or(row.opened_at, |at| row.opened_at.max(at)),
            waiting_since: row.waiting_since,
        });
        self.set(row.id, times);
        if self.is_too_large() {
            self.fail(SIZE_PAUSE);
        }
    }

    /// Adds or moves an open ticket, or removes one that is closed.
    fn set(&mut self, ticket: TicketId, times: Option<OpenTicketTimes>) {
        let before = self.open.len();
        match times {
            Some(times) => self.open.insert(ticket, times),
            None => self.open.remove(ticket),
        }
        self.all_tickets.fetch_add(self.open.len(), Ordering::Relaxed);
        self.all_tickets.fetch_sub(before, Ordering::Relaxed);
    }

    /// Takes over the loaded tickets, except those that have changed since. Returns tickets for the caller to drop
    /// without the lock.
    fn install(&mut self, mut loaded: OpenTicketOrders) -> OpenTicketOrders {
        let LoadState::Running(changed) = std::mem::replace(&mut self.load_state, LoadState::Done) else {
            // The overview has become too large meanwhile.
            self.fail(SIZE_PAUSE);
            return loaded;
        };
        for id in changed {
            let Some(recorded) = self.open.get(id) else {
                loaded.remove(id);
                continue;
            };
            // The change may have been recorded without the ticket's last message.
            let at = loaded.get(id).map_or(recorded.last_activity_at, |loaded| loaded.last_activity_at);
            loaded.insert(id, OpenTicketTimes { last_activity_at: recorded.last_activity_at.max(at), ..recorded });
        }
        self.all_tickets.fetch_add(loaded.len(), Ordering::Relaxed);
        self.all_tickets.fetch_sub(self.open.len(), Ordering::Relaxed);
        let recorded = std::mem::replace(&mut self.open, loaded);
        if self.is_too_large() {
            self.fail(SIZE_PAUSE);
        }
        recorded
    }

    fn is_too_large(&self) -> bool {
        let (own, all) = (self.open.len(), self.all_tickets.load(Ordering::Relaxed));
        own > TICKETS_MAX || own > SHARE && all > ALL_TICKETS_MAX
    }

    /// Drops the open tickets. After this pause they may be loaded from the tables again.
    fn fail(&mut self, pause: Duration) {
        self.all_tickets.fetch_sub(self.open.len(), Ordering::Relaxed);
        let open = std::mem::take(&mut self.open);
        self.load_state = LoadState::FailedUntil(Instant::now() + pause);
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
        self.all_tickets.fetch_sub(self.open.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use hotline_persistence::select::PageRequest;
    use hotline_persistence::tables::source::Source;
    use hotline_persistence::tables::tickets::{SortedPage, TicketFilter, TicketSort};
    use hotline_persistence::{ChannelId, ContactId, QueueId};

    use super::*;
    use crate::clock;

    const COMPANY: CompanyId = CompanyId::new(1);

    fn row(id: i64, queue: Option<i64>, waiting_since: Option<DateTime<Utc>>, status: TicketStatus) -> TicketRow {
        let at = clock::now();
        TicketRow {
            company_id: COMPANY,
            id: TicketId::new(id),
            channel_id: ChannelId::new(1),
            contact_id: ContactId::new(id),
            queue_id: queue.map(QueueId::new),
            user_id: None,
            status,
            creation_source: Source::Contact,
            unread_count: 0,
            last_message_id: None,
            wrapup_type_id: None,
            wrapup_note: None,
            reopen_count: 0,
            opened_at: at,
            first_response_at: None,
            closed_at: None,
            waiting_since,
            answer_id: None,
            handled_by: Default::default(),
            created_at: at,
            updated_at: at,
        }
    }

    fn listed(id: i64, queue: Option<i64>, waiting_since: Option<DateTime<Utc>>) -> OpenTicket {
        OpenTicket {
            id: TicketId::new(id),
            queue_id: queue.map(QueueId::new),
            user_id: None,
            channel_id: ChannelId::new(1),
            waiting_since,
            last_activity_at: clock::now(),
        }
    }

    /// Queue, number open, number waiting, and the start of the longest wait.
    type QueueCounts = (Option<i64>, i64, i64, Option<DateTime<Utc>>);

    fn known(overviews: &Overviews, now: Instant) -> Vec<QueueCounts> {
        let (overview, status) = overviews.query(COMPANY, now);
        assert_eq!(status, OverviewStatus::Loaded);
        let groups = overview.counts().expect("it is loaded");
        let counts_of =
            |group: OpenTicketCounts| (group.queue_id.map(|id| id.0), group.open, group.waiting, group.waiting_since);
        let mut counts: Vec<_> = groups.into_iter().map(counts_of).collect();
        counts.sort_by_key(|counts| counts.0);
        counts
    }

    #[actix::test]
    async fn changes_during_the_load_take_precedence() {
        let (overviews, now, at) = (Overviews::default(), Instant::now(), clock::now());
        overviews.on_commit(&[Change::Ticket(row(1, Some(5), None, TicketStatus::Open))]);
        let (overview, query) = overviews.query(COMPANY, now);
        assert_eq!(query, OverviewStatus::Load, "what nobody looks at is not kept");
        overviews.on_commit(&[
            Change::Ticket(row(2, None, Some(at), TicketStatus::Closed)),
            Change::Ticket(row(3, Some(6), Some(at), TicketStatus::Open)),
        ]);
        assert_eq!(overviews.query(COMPANY, now).1, OverviewStatus::ReadTables, "one reads for all");
        let earlier = at - chrono::TimeDelta::seconds(60);
        let tables = vec![listed(1, Some(5), None), listed(2, None, Some(earlier)), listed(3, Some(5), None)];
        overview.end_load(Some(tables)).await;
        assert_eq!(known(&overviews, now), [(Some(5), 1, 0, None), (Some(6), 1, 1, Some(at))]);
        overviews.on_commit(&[
            Change::Ticket(row(4, Some(6), Some(earlier), TicketStatus::Open)),
            Change::Ticket(row(1, Some(6), None, TicketStatus::Open)),
        ]);
        assert_eq!(known(&overviews, now), [(Some(6), 3, 2, Some(earlier))]);
        overviews.on_commit(&[
            Change::Ticket(row(4, Some(6), None, TicketStatus::Open)),
            Change::Ticket(row(3, Some(6), None, TicketStatus::Closed)),
        ]);
        assert_eq!(known(&overviews, now), [(Some(6), 2, 0, None)]);
        overviews.forget_company(COMPANY);
        assert_eq!(overviews.query(COMPANY, now).1, OverviewStatus::Load);
    }

    #[actix::test]
    async fn a_failed_load_is_repeated_later_and_an_unused_overview_is_dropped() {
        let (overviews, now) = (Overviews::default(), Instant::now());
        let (overview, query) = overviews.query(COMPANY, now);
        assert_eq!(query, OverviewStatus::Load);
        overview.end_load(None).await;
        assert_eq!(overviews.query(COMPANY, now).1, OverviewStatus::ReadTables);
        let later = Instant::now() + LOAD_PAUSE;
        assert_eq!(overviews.query(COMPANY, later).1, OverviewStatus::Load);
        let many = (0..=TICKETS_MAX as i64).map(|id| listed(id, None, None)).collect();
        overview.end_load(Some(many)).await;
        assert_eq!(overviews.query(COMPANY, Instant::now() + LOAD_PAUSE).1, OverviewStatus::ReadTables);
        let later = Instant::now() + SIZE_PAUSE;
        assert_eq!(overviews.query(COMPANY, later).1, OverviewStatus::Load);
        overview.end_load(Some(vec![listed(1, None, None)])).await;
        assert_eq!(known(&overviews, later), [(None, 1, 0, None)]);
        overviews.sweep(later + RETAINED_FOR - Duration::from_secs(1));
        assert_eq!(known(&overviews, later), [(None, 1, 0, None)]);
        overviews.sweep(later + RETAINED_FOR);
        assert!(overview.counts().is_none(), "a query that still has it reads the tables");
        assert_eq!(overviews.query(COMPANY, later).1, OverviewStatus::Load);
    }

    #[actix::test]
    async fn a_ticket_that_changes_during_the_load_keeps_its_last_message() {
        let (overviews, now, at) = (Overviews::default(), Instant::now(), clock::now());
        let (overview, _) = overviews.query(COMPANY, now);
        let hour = chrono::TimeDelta::hours(1);
        let changed = TicketRow { opened_at: at - hour, ..row(1, Some(5), None, TicketStatus::Open) };
        overviews.on_commit(&[Change::Ticket(changed)]);
        let tables = [(1, at), (2, at - hour)]
            .map(|(id, last_activity_at)| OpenTicket { last_activity_at, ..listed(id, None, None) });
        overview.end_load(Some(tables.to_vec())).await;
        let filter = TicketFilter { status: Some(TicketStatus::Open), ..TicketFilter::default() };
        let page = PageRequest { descending: true, ..PageRequest::first(10) };
        let request = SortedPage { sort: TicketSort::Activity, page, after: None };
        let query = OpenTicketQuery::of(&filter, request).expect("memory knows it");
        let found = overview.list(&query).await.expect("it is loaded");
        assert_eq!(found.iter().map(|position| position.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(overviews.tickets.load(Ordering::Relaxed), 2);
        overviews.forget_company(COMPANY);
        drop(overview);
        assert_eq!(overviews.tickets.load(Ordering::Relaxed), 0);
    }
}
