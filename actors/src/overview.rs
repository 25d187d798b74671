//! A company's open tickets by queue and user, in memory while they are queried.
//!
//! A company with fifteen thousand open tickets is queried every few seconds, and a count in the tables reads all of
//! them each time. So the first query reads the tables, and triggers one load of the open tickets for the following
//! queries. From then on every decision is recorded when it becomes durable, before it is acknowledged. Companies that
//! are not queried cost nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hotline_persistence::tables::reports::desk::{OpenTicket, OpenTickets};
use hotline_persistence::tables::tickets::{TicketRow, TicketStatus};
use hotline_persistence::{Change, CompanyId, QueueId, TicketId, UserId};
use parking_lot::Mutex;

use crate::id_map::IdMap;

/// How long it stays in memory after the last query.
const RETAINED_FOR: Duration = Duration::from_secs(600);

/// Pause before the tables are read again after a failure, or after an overview that was too large.
const LOAD_PAUSE: Duration = Duration::from_secs(10);

/// Maximum open tickets in memory of a company, some 20 MiB. A company with more is counted in the tables at each
/// query.
pub(crate) const TICKETS_MAX: usize = 200_000;

/// The companies that are being queried.
#[derive(Default)]
pub(crate) struct Overviews {
    companies: IdMap<CompanyId, Arc<Overview>>,
}

/// The open tickets of one company.
pub(crate) struct Overview {
    state: Mutex<OverviewState>,
}

/// The result of a query.
#[derive(Debug, PartialEq)]
pub(crate) enum OverviewQuery {
    /// The open tickets.
    Known(Vec<OpenTickets>),
    /// Not loaded yet, or too many: read the tables.
    ReadTables,
    /// The same, and the caller must load the open tickets for later queries.
    Load,
}

struct OverviewState {
    open: HashMap<TicketId, OpenPosition>,
    groups: HashMap<(Option<QueueId>, Option<UserId>), Group>,
    load_state: LoadState,
    last_query: Instant,
}

/// The position of an open ticket.
#[derive(Clone, Copy)]
struct OpenPosition {
    group: (Option<QueueId>, Option<UserId>),
    waiting_since: Option<DateTime<Utc>>,
}

/// The open tickets of one queue and user.
#[derive(Default)]
struct Group {
    open: i64,
    /// Tickets in which the contact waits, the longest wait first.
    waiting: BTreeSet<(DateTime<Utc>, TicketId)>,
}

/// The state of the overview.
enum LoadState {
    Idle,
    /// The tables are being read; these tickets have changed since.
    Running(HashSet<TicketId>),
    /// The tables could not be read, or had too many tickets.
    Failed(Instant),
    Done,
}

impl Overviews {
    /// Queries a company.
    pub(crate) fn query(&self, company: CompanyId, now: Instant) -> (Arc<Overview>, OverviewQuery) {
        let overview = self
            .of(company)
            .unwrap_or_else(|| self.companies.entry(company).or_insert_with(|| Arc::new(Overview::new(now))).clone());
        let query = overview.state.lock().query(now);
        (overview, query)
    }

    /// Records every decision once it is durable. Runs on the log's thread, so it must not block.
    pub(crate) fn on_commit(&self, changes: &[Change]) {
        for change in changes {
            if let Change::Ticket(row) = change
                && let Some(overview) = self.of(row.company_id)
            {
                overview.state.lock().record(row);
            }
        }
    }

    /// Drops a company's overview: tickets were deleted with their contact, or the company is dropped from memory.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { companies } = self;
        companies.remove(&company);
    }

    /// Drops overviews that were not queried for long.
    pub(crate) fn sweep(&self, now: Instant) {
        self.companies
            .retain(|_, overview| now.saturating_duration_since(overview.state.lock().last_query) < RETAINED_FOR);
    }

    /// Not locked within the map, so that a company's query does not block other companies.
    fn of(&self, company: CompanyId) -> Option<Arc<Overview>> {
        self.companies.get(&company).map(|overview| overview.clone())
    }
}

impl Overview {
    fn new(now: Instant) -> Self {
        let (open, groups) = (HashMap::new(), HashMap::new());
        Self { state: Mutex::new(OverviewState { open, groups, load_state: LoadState::Idle, last_query: now }) }
    }

    /// Ends a read with the contents of the tables; none when they could not be read. More than [`TICKETS_MAX`] tickets
    /// count as a failure.
    pub(crate) fn end_load(&self, open: Option<Vec<OpenTicket>>, now: Instant) {
        self.state.lock().end_load(open, now);
    }
}

impl OverviewState {
    fn query(&mut self, now: Instant) -> OverviewQuery {
        self.last_query = now;
        match self.load_state {
            LoadState::Done => OverviewQuery::Known(self.groups.iter().map(|(at, group)| group.counts(*at)).collect()),
            LoadState::Running(_) => OverviewQuery::ReadTables,
            LoadState::Failed(at) if now.saturating_duration_since(at) < LOAD_PAUSE => OverviewQuery::ReadTables,
            LoadState::Idle | LoadState::Failed(_) => {
                // Changes are recorded from now on, and the tables are read after that, so that no change is missed.
                self.load_state = LoadState::Running(HashSet::new());
                OverviewQuery::Load
            }
        }
    }

    fn record(&mut self, row: &TicketRow) {
        match &mut self.load_state {
            LoadState::Idle | LoadState::Failed(_) => return,
            LoadState::Running(changed) => drop(changed.insert(row.id)),
            LoadState::Done => {}
        }
        let is_open = row.status == TicketStatus::Open;
        let position = OpenPosition { group: (row.queue_id, row.user_id), waiting_since: row.waiting_since };
        self.set_position(row.id, is_open.then_some(position));
        if self.open.len() > TICKETS_MAX {
            self.fail(Instant::now());
        }
    }

    fn set_position(&mut self, ticket: TicketId, position: Option<OpenPosition>) {
        let before = match position {
            Some(position) => self.open.insert(ticket, position),
            None => self.open.remove(&ticket),
        };
        if let Some(before) = before
            && let Some(group) = self.groups.get_mut(&before.group)
        {
            group.open -= 1;
            if let Some(since) = before.waiting_since {
                group.waiting.remove(&(since, ticket));
            }
            if group.open == 0 {
                self.groups.remove(&before.group);
            }
        }
        if let Some(position) = position {
            let group = self.groups.entry(position.group).or_default();
            group.open += 1;
            group.waiting.extend(position.waiting_since.map(|since| (since, ticket)));
        }
    }

    fn end_load(&mut self, open: Option<Vec<OpenTicket>>, now: Instant) {
        let Some(open) = open.filter(|open| open.len() + self.open.len() <= TICKETS_MAX) else {
            return self.fail(now);
        };
        let LoadState::Running(changed) = std::mem::replace(&mut self.load_state, LoadState::Done) else {
            return self.fail(now);
        };
        for ticket in open {
            // A change recorded meanwhile is newer.
            if !changed.contains(&ticket.id) {
                let position =
                    OpenPosition { group: (ticket.queue_id, ticket.user_id), waiting_since: ticket.waiting_since };
                self.set_position(ticket.id, Some(position));
            }
        }
    }

    /// Drops the recorded changes; the tables have them at the next read.
    fn fail(&mut self, now: Instant) {
        (self.open, self.groups, self.load_state) = (HashMap::new(), HashMap::new(), LoadState::Failed(now));
    }
}

impl Group {
    fn counts(&self, (queue_id, user_id): (Option<QueueId>, Option<UserId>)) -> OpenTickets {
        let waiting = i64::try_from(self.waiting.len()).unwrap_or(i64::MAX);
        let waiting_since = self.waiting.first().map(|(since, _)| *since);
        OpenTickets { queue_id, user_id, open: self.open, waiting, waiting_since }
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::tables::source::Source;
    use hotline_persistence::{ChannelId, ContactId};

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
        OpenTicket { id: TicketId::new(id), queue_id: queue.map(QueueId::new), user_id: None, waiting_since }
    }

    /// Queue, number open, number waiting, and the start of the longest wait.
    type QueueCounts = (Option<i64>, i64, i64, Option<DateTime<Utc>>);

    fn known(overviews: &Overviews, now: Instant) -> Vec<QueueCounts> {
        let (_, OverviewQuery::Known(groups)) = overviews.query(COMPANY, now) else { panic!("it is known") };
        let counts_of =
            |group: OpenTickets| (group.queue_id.map(|id| id.0), group.open, group.waiting, group.waiting_since);
        let mut counts: Vec<_> = groups.into_iter().map(counts_of).collect();
        counts.sort_by_key(|counts| counts.0);
        counts
    }

    #[test]
    fn changes_during_the_load_take_precedence() {
        let (overviews, now, at) = (Overviews::default(), Instant::now(), clock::now());
        overviews.on_commit(&[Change::Ticket(row(1, Some(5), None, TicketStatus::Open))]);
        let (overview, query) = overviews.query(COMPANY, now);
        assert_eq!(query, OverviewQuery::Load, "what nobody looks at is not kept");
        overviews.on_commit(&[
            Change::Ticket(row(2, None, Some(at), TicketStatus::Closed)),
            Change::Ticket(row(3, Some(6), Some(at), TicketStatus::Open)),
        ]);
        assert_eq!(overviews.query(COMPANY, now).1, OverviewQuery::ReadTables, "one reads for all");
        let earlier = at - chrono::TimeDelta::seconds(60);
        let tables = vec![listed(1, Some(5), None), listed(2, None, Some(earlier)), listed(3, Some(5), None)];
        overview.end_load(Some(tables), now);
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
        assert_eq!(overviews.query(COMPANY, now).1, OverviewQuery::Load);
    }

    #[test]
    fn a_failed_load_is_repeated_later_and_an_unused_overview_is_dropped() {
        let (overviews, now) = (Overviews::default(), Instant::now());
        let (overview, query) = overviews.query(COMPANY, now);
        assert_eq!(query, OverviewQuery::Load);
        overview.end_load(None, now);
        assert_eq!(overviews.query(COMPANY, now).1, OverviewQuery::ReadTables);
        let later = now + LOAD_PAUSE;
        assert_eq!(overviews.query(COMPANY, later).1, OverviewQuery::Load);
        let many = (0..=TICKETS_MAX as i64).map(|id| listed(id, None, None)).collect();
        overview.end_load(Some(many), later);
        assert_eq!(overviews.query(COMPANY, later).1, OverviewQuery::ReadTables);
        assert_eq!(overviews.query(COMPANY, later + LOAD_PAUSE).1, OverviewQuery::Load);
        overview.end_load(Some(vec![listed(1, None, None)]), later);
        assert_eq!(known(&overviews, later), [(None, 1, 0, None)]);
        overviews.sweep(later + RETAINED_FOR - Duration::from_secs(1));
        assert_eq!(known(&overviews, later), [(None, 1, 0, None)]);
        overviews.sweep(later + RETAINED_FOR);
        assert_eq!(overviews.query(COMPANY, later).1, OverviewQuery::Load);
    }
}
