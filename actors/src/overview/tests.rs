use chrono::{DateTime, Utc};
use hotline_persistence::select::PageRequest;
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::tickets::{SortedPage, TicketFilter, TicketSort};
use hotline_persistence::{ChannelId, ContactId, QueueId};

use super::*;
use crate::clock;

const COMPANY: CompanyId = CompanyId::new(1);

fn ticket_row(id: i64, queue: Option<i64>, waiting_since: Option<DateTime<Utc>>, status: TicketStatus) -> TicketRow {
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

fn open_ticket(id: i64, queue: Option<i64>, waiting_since: Option<DateTime<Utc>>) -> OpenTicket {
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

fn loaded_counts(overviews: &Overviews, now: Instant) -> Vec<QueueCounts> {
    let (overview, status) = overviews.query(COMPANY, now);
    assert_eq!(status, OverviewStatus::Loaded);
    let groups = overview.counts().expect("the overview is loaded");
    let counts_of =
        |group: OpenTicketCounts| (group.queue_id.map(|id| id.0), group.open, group.waiting, group.waiting_since);
    let mut counts: Vec<_> = groups.into_iter().map(counts_of).collect();
    counts.sort_by_key(|counts| counts.0);
    counts
}

#[actix::test]
async fn changes_during_the_load_take_precedence() {
    let (overviews, now, at) = (Overviews::default(), Instant::now(), clock::now());
    overviews.on_commit(&[Change::Ticket(ticket_row(1, Some(5), None, TicketStatus::Open))]);
    let (overview, status) = overviews.query(COMPANY, now);
    assert_eq!(status, OverviewStatus::Load, "a change before the first query was recorded");
    overviews.on_commit(&[
        Change::Ticket(ticket_row(2, None, Some(at), TicketStatus::Closed)),
        Change::Ticket(ticket_row(3, Some(6), Some(at), TicketStatus::Open)),
    ]);
    assert_eq!(overviews.query(COMPANY, now).1, OverviewStatus::ReadTables, "the second query loads too");
    let earlier = at - chrono::TimeDelta::seconds(60);
    let tables =
        vec![open_ticket(1, Some(5), None), open_ticket(2, None, Some(earlier)), open_ticket(3, Some(5), None)];
    overview.end_load(LoadOutcome::All(tables)).await;
    assert_eq!(loaded_counts(&overviews, now), [(Some(5), 1, 0, None), (Some(6), 1, 1, Some(at))]);
    overviews.on_commit(&[
        Change::Ticket(ticket_row(4, Some(6), Some(earlier), TicketStatus::Open)),
        Change::Ticket(ticket_row(1, Some(6), None, TicketStatus::Open)),
    ]);
    assert_eq!(loaded_counts(&overviews, now), [(Some(6), 3, 2, Some(earlier))]);
    overviews.on_commit(&[
        Change::Ticket(ticket_row(4, Some(6), None, TicketStatus::Open)),
        Change::Ticket(ticket_row(3, Some(6), None, TicketStatus::Closed)),
    ]);
    assert_eq!(loaded_counts(&overviews, now), [(Some(6), 2, 0, None)]);
    overviews.forget_company(COMPANY);
    assert_eq!(overviews.query(COMPANY, now).1, OverviewStatus::Load);
}

#[actix::test]
async fn a_failed_load_is_repeated_later_and_an_unused_overview_is_dropped() {
    let (overviews, now) = (Overviews::default(), Instant::now());
    let (overview, status) = overviews.query(COMPANY, now);
    assert_eq!(status, OverviewStatus::Load);
    overview.end_load(LoadOutcome::Failed).await;
    assert_eq!(overviews.query(COMPANY, now).1, OverviewStatus::ReadTables);
    let later = Instant::now() + LOAD_PAUSE;
    assert_eq!(overviews.query(COMPANY, later).1, OverviewStatus::Load);
    assert!(overviews.has_room(TICKETS_MAX) && !overviews.has_room(TICKETS_MAX + 1));
    overview.end_load(LoadOutcome::TooMany).await;
    assert_eq!(overviews.query(COMPANY, Instant::now() + LOAD_PAUSE).1, OverviewStatus::ReadTables);
    let later = Instant::now() + SIZE_PAUSE;
    assert_eq!(overviews.query(COMPANY, later).1, OverviewStatus::Load);
    overview.end_load(LoadOutcome::All(vec![open_ticket(1, None, None)])).await;
    assert_eq!(loaded_counts(&overviews, later), [(None, 1, 0, None)]);
    overviews.sweep(later + RETAINED_FOR - Duration::from_secs(1));
    assert_eq!(loaded_counts(&overviews, later), [(None, 1, 0, None)]);
    overviews.sweep(later + RETAINED_FOR);
    assert!(overview.counts().is_none(), "a query that holds the dropped overview reads the tables");
    assert_eq!(overviews.query(COMPANY, later).1, OverviewStatus::Load);
}

#[actix::test]
async fn a_ticket_that_changes_during_the_load_keeps_its_last_message() {
    let (overviews, now, at) = (Overviews::default(), Instant::now(), clock::now());
    let (overview, _) = overviews.query(COMPANY, now);
    let hour = chrono::TimeDelta::hours(1);
    let changed = TicketRow { opened_at: at - hour, ..ticket_row(1, Some(5), None, TicketStatus::Open) };
    overviews.on_commit(&[Change::Ticket(changed)]);
    let tables = [(1, at), (2, at - hour)]
        .map(|(id, last_activity_at)| OpenTicket { last_activity_at, ..open_ticket(id, None, None) });
    overview.end_load(LoadOutcome::All(tables.to_vec())).await;
    let filter = TicketFilter { status: Some(TicketStatus::Open), ..TicketFilter::default() };
    let page = PageRequest { descending: true, ..PageRequest::first(10) };
    let request = SortedPage { sort: TicketSort::Activity, page, after: None };
    let query = OpenTicketQuery::of(&filter, request).expect("the query is answered from memory");
    let found = overview.list(&query).await.expect("the overview is loaded");
    assert_eq!(found.iter().map(|position| position.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(overviews.all_tickets.load(Ordering::Relaxed), 2);
    overviews.forget_company(COMPANY);
    drop(overview);
    assert_eq!(overviews.all_tickets.load(Ordering::Relaxed), 0);
}

#[actix::test]
async fn many_changes_during_a_load_are_all_applied() {
    let (overviews, now, at) = (Overviews::default(), Instant::now(), clock::now());
    let (overview, _) = overviews.query(COMPANY, now);
    let count = 2 * CHANGES_AT_ONCE as i64 + 1;
    for id in 1..=count {
        let status = if id % 2 == 0 { TicketStatus::Closed } else { TicketStatus::Open };
        overviews.on_commit(&[Change::Ticket(ticket_row(id, Some(6), Some(at), status))]);
    }
    overview.end_load(LoadOutcome::All((1..=count + 1).map(|id| open_ticket(id, Some(5), None)).collect())).await;
    let open = count / 2 + 1;
    assert_eq!(loaded_counts(&overviews, now), [(Some(5), 1, 0, None), (Some(6), open, open, Some(at))]);
    assert_eq!(overviews.ticket_count() as i64, open + 1);
}

#[actix::test]
async fn a_merge_replaces_its_tickets_also_during_a_load() {
    let (overviews, now) = (Overviews::default(), Instant::now());
    let (overview, _) = overviews.query(COMPANY, now);
    let ids = [1, 2].map(TicketId::new);
    overviews.replace(COMPANY, &ids, &[open_ticket(2, Some(6), None)]);
    overview.end_load(LoadOutcome::All((1..=3).map(|id| open_ticket(id, Some(5), None)).collect())).await;
    assert_eq!(loaded_counts(&overviews, now), [(Some(5), 1, 0, None), (Some(6), 1, 0, None)]);
    overviews.replace(COMPANY, &ids, &[open_ticket(1, Some(7), None)]);
    assert_eq!(loaded_counts(&overviews, now), [(Some(5), 1, 0, None), (Some(7), 1, 0, None)]);
}

#[actix::test]
async fn two_loads_run_at_once_and_too_many_groups_are_not_kept() {
    let (overviews, now) = (Overviews::default(), Instant::now());
    let permits = [overviews.begin_load(), overviews.begin_load()];
    assert!(permits.iter().all(Option::is_some) && overviews.begin_load().is_none());
    let (overview, status) = overviews.query(COMPANY, now);
    assert_eq!(status, OverviewStatus::Load);
    overview.postpone_load();
    drop(permits);
    assert_eq!(overviews.query(COMPANY, Instant::now()).1, OverviewStatus::Load);
    let count = GROUPS_MAX as i64;
    overview.end_load(LoadOutcome::All((1..=count).map(|id| open_ticket(id, Some(id), None)).collect())).await;
    assert_eq!(loaded_counts(&overviews, now).len(), GROUPS_MAX);
    overviews.on_commit(&[Change::Ticket(ticket_row(1, Some(count + 1), None, TicketStatus::Open))]);
    assert_eq!(loaded_counts(&overviews, now).len(), GROUPS_MAX, "the group without tickets was not removed");
    overviews.on_commit(&[Change::Ticket(ticket_row(count + 1, Some(1), None, TicketStatus::Open))]);
    assert_eq!(overviews.query(COMPANY, now).1, OverviewStatus::ReadTables);
    assert_eq!(overviews.ticket_count(), 0);
}
