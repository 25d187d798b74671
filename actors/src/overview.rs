//! A company's open tickets by queue and user, in memory while its desk is being looked at.
//!
//! A desk with fifteen thousand open tickets is queried every few seconds, and a count in the tables takes all of them
//! each time. So the first query reads the tables, and triggers one more read of the open tickets for the following
//! queries. From then on every decision is recorded when it becomes durable, before it is acknowledged. Companies that
//! are not looked at cost nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hotline_persistence::tables::reports::desk::{OpenTicket, OpenTickets};
use hotline_persistence::tables::tickets::{TicketRow, TicketStatus};
use hotline_persistence::{Change, CompanyId, QueueId, TicketId, UserId};

use crate::map::IdMap;

/// How long it stays in memory after the last query.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// Pause before the tables are read again after a failure, or after an overview that was too large.
const READ_PAUSE: Duration = Duration::from_secs(10);

/// Maximum open tickets in memory of a company, some 20 MiB. A company with more is counted in the tables at each
/// query.
pub(crate) const TICKETS_MAX: usize = 200_000;

/// The companies that are being looked at.
#[derive(Default)]
pub(crate) struct Overviews {
    companies: IdMap<CompanyId, Arc<Overview>>,
}

/// The open tickets of one company.
pub(crate) struct Overview {
    state: Mutex<State>,
}

/// The result of a query.
#[derive(Debug, PartialEq)]
pub(crate) enum Look {
    /// The open tickets.
    Known(Vec<OpenTickets>),
    /// Not known yet, or too many: read the tables.
    Tables,
    /// The same, and the caller must read the open tickets for later queries.
    Begins,
}

struct State {
    open: HashMap<TicketId, Place>,
    groups: HashMap<(Option<QueueId>, Option<UserId>), Group>,
    reading: Reading,
    looked_at: Instant,
}

/// The position of an open ticket.
#[derive(Clone, Copy)]
struct Place {
    at: (Option<QueueId>, Option<UserId>),
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
enum Reading {
    Not,
    /// The tables are being read; these tickets have changed since.
    Begun(HashSet<TicketId>),
    /// The tables could not be read, or had too many tickets.
    Failed(Instant),
    Done,
}

impl Overviews {
    /// Queries a company.
    pub(crate) fn look(&self, company: CompanyId, now: Instant) -> (Arc<Overview>, Look) {
        let overview = self
            .of(company)
            .unwrap_or_else(|| self.companies.entry(company).or_insert_with(|| Arc::new(Overview::new(now))).clone());
        let look = overview.lock().look(now);
        (overview, look)
    }

    /// Records every decision once it is durable. Runs on the log's thread, so it must not block.
    pub(crate) fn on_commit(&self, changes: &[Change]) {
        for change in changes {
            if let Change::Ticket(row) = change
                && let Some(overview) = self.of(row.company_id)
            {
                overview.lock().note(row);
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
        self.companies.retain(|_, overview| now.saturating_duration_since(overview.lock().looked_at) < KEPT_FOR);
    }

    /// Not locked within the map, so that a company's query does not block other companies.
    fn of(&self, company: CompanyId) -> Option<Arc<Overview>> {
        self.companies.get(&company).map(|overview| overview.clone())
    }
}

impl Overview {
    fn new(now: Instant) -> Self {
        let (open, groups) = (HashMap::new(), HashMap::new());
        Self { state: Mutex::new(State { open, groups, reading: Reading::Not, looked_at: now }) }
    }

    /// Ends a read with the contents of the tables; none when they could not be read. More than [`TICKETS_MAX`] tickets
    /// count as a failure.
    pub(crate) fn end_reading(&self, open: Option<Vec<OpenTicket>>, now: Instant) {
        self.lock().end_reading(open, now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn look(&mut self, now: Instant) -> Look {
        self.looked_at = now;
        match self.reading {
            Reading::Done => Look::Known(self.groups.iter().map(|(at, group)| group.shown(*at)).collect()),
            Reading::Begun(_) => Look::Tables,
            Reading::Failed(at) if now.saturating_duration_since(at) < READ_PAUSE => Look::Tables,
            Reading::Not | Reading::Failed(_) => {
                // Changes are recorded from now on, and the tables are read after that, so that no change is missed.
                self.reading = Reading::Begun(HashSet::new());
                Look::Begins
            }
        }
    }

    fn note(&mut self, row: &TicketRow) {
        match &mut self.reading {
            Reading::Not | Reading::Failed(_) => return,
            Reading::Begun(changed) => drop(changed.insert(row.id)),
            Reading::Done => {}
        }
        let is_open = row.status == TicketStatus::Open;
        let place = Place { at: (row.queue_id, row.user_id), waiting_since: row.waiting_since };
        self.put(row.id, is_open.then_some(place));
        if self.open.len() > TICKETS_MAX {
            self.drop_all(Instant::now());
        }
    }

    fn put(&mut self, ticket: TicketId, place: Option<Place>) {
        let before = match place {
            Some(place) => self.open.insert(ticket, place),
            None => self.open.remove(&ticket),
        };
        if let Some(before) = before
            && let Some(group) = self.groups.get_mut(&before.at)
        {
            group.open -= 1;
            if let Some(since) = before.waiting_since {
                group.waiting.remove(&(since, ticket));
            }
            if group.open == 0 {
                self.groups.remove(&before.at);
            }
        }
        if let Some(place) = place {
            let group = self.groups.entry(place.at).or_default();
            group.open += 1;
            group.waiting.extend(place.waiting_since.map(|since| (since, ticket)));
        }
    }

    fn end_reading(&mut self, open: Option<Vec<OpenTicket>>, now: Instant) {
        let Some(open) = open.filter(|open| open.len() + self.open.len() <= TICKETS_MAX) else {
            return self.drop_all(now);
        };
        let Reading::Begun(changed) = std::mem::replace(&mut self.reading, Reading::Done) else {
            return self.drop_all(now);
        };
        for ticket in open {
            // A change recorded meanwhile is newer.
            if !changed.contains(&ticket.id) {
                let place = Place { at: (ticket.queue_id, ticket.user_id), waiting_since: ticket.waiting_since };
                self.put(ticket.id, Some(place));
            }
        }
    }

    /// Drops the recorded changes; the tables have them at the next read.
    fn drop_all(&mut self, now: Instant) {
        (self.open, self.groups, self.reading) = (HashMap::new(), HashMap::new(), Reading::Failed(now));
    }
}

impl Group {
    fn shown(&self, (queue_id, user_id): (Option<QueueId>, Option<UserId>)) -> OpenTickets {
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
            created_at: at,
            updated_at: at,
        }
    }

    fn listed(id: i64, queue: Option<i64>, waiting_since: Option<DateTime<Utc>>) -> OpenTicket {
        OpenTicket { id: TicketId::new(id), queue_id: queue.map(QueueId::new), user_id: None, waiting_since }
    }

    /// Queue, number open, number waiting, and the start of the longest wait.
    type Shown = (Option<i64>, i64, i64, Option<DateTime<Utc>>);

    fn known(overviews: &Overviews, now: Instant) -> Vec<Shown> {
        let (_, Look::Known(groups)) = overviews.look(COMPANY, now) else { panic!("it is known") };
        let shown =
            |group: OpenTickets| (group.queue_id.map(|id| id.0), group.open, group.waiting, group.waiting_since);
        let mut shown: Vec<_> = groups.into_iter().map(shown).collect();
        shown.sort_by_key(|group| group.0);
        shown
    }

    #[test]
    fn what_has_changed_while_the_tables_were_read_is_known_better() {
        let (overviews, now, at) = (Overviews::default(), Instant::now(), clock::now());
        overviews.on_commit(&[Change::Ticket(row(1, Some(5), None, TicketStatus::Open))]);
        let (overview, look) = overviews.look(COMPANY, now);
        assert_eq!(look, Look::Begins, "what nobody looks at is not kept");
        overviews.on_commit(&[
            Change::Ticket(row(2, None, Some(at), TicketStatus::Closed)),
            Change::Ticket(row(3, Some(6), Some(at), TicketStatus::Open)),
        ]);
        assert_eq!(overviews.look(COMPANY, now).1, Look::Tables, "one reads for all");
        let earlier = at - chrono::TimeDelta::seconds(60);
        let tables = vec![listed(1, Some(5), None), listed(2, None, Some(earlier)), listed(3, Some(5), None)];
        overview.end_reading(Some(tables), now);
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
        assert_eq!(overviews.look(COMPANY, now).1, Look::Begins);
    }

    #[test]
    fn what_could_not_be_read_or_is_too_much_is_read_again_later_and_what_nobody_looks_at_is_dropped() {
        let (overviews, now) = (Overviews::default(), Instant::now());
        let (overview, look) = overviews.look(COMPANY, now);
        assert_eq!(look, Look::Begins);
        overview.end_reading(None, now);
        assert_eq!(overviews.look(COMPANY, now).1, Look::Tables);
        let later = now + READ_PAUSE;
        assert_eq!(overviews.look(COMPANY, later).1, Look::Begins);
        let many = (0..=TICKETS_MAX as i64).map(|id| listed(id, None, None)).collect();
        overview.end_reading(Some(many), later);
        assert_eq!(overviews.look(COMPANY, later).1, Look::Tables);
        assert_eq!(overviews.look(COMPANY, later + READ_PAUSE).1, Look::Begins);
        overview.end_reading(Some(vec![listed(1, None, None)]), later);
        assert_eq!(known(&overviews, later), [(None, 1, 0, None)]);
        overviews.sweep(later + KEPT_FOR - Duration::from_secs(1));
        assert_eq!(known(&overviews, later), [(None, 1, 0, None)]);
        overviews.sweep(later + KEPT_FOR);
        assert_eq!(overviews.look(COMPANY, later).1, Look::Begins);
    }
}
