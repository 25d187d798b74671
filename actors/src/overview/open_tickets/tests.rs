use hotline_persistence::select::{PageRequest, Place};
use hotline_persistence::tables::tickets::{SortedPage, TicketFilter, TicketStatus};
use hotline_persistence::{ChannelId, QueueId, UserId};
use peak_alloc::PeakAlloc;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// More than [`SORTED_MAX`], so that the orders are read for some queries.
const TICKETS: i64 = 3_000;

/// Open tickets of a large company.
const MANY: i64 = 100_000;

/// Maximum bytes that each of [`MANY`] tickets takes in the orders and groups after a load, when the nodes of
/// their trees are full.
const LOADED_BYTES_MAX: usize = 100;

/// Maximum bytes that each takes after [`MANY`] changes.
const CHANGED_BYTES_MAX: usize = 140;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn random_times(random: &mut StdRng) -> OpenTicketTimes {
    // Few different times, so that many tickets have the same one.
    let at = |random: &mut StdRng| DateTime::from_timestamp_millis(random.random_range(1..500)).unwrap_or_default();
    let group = GroupKey {
        queue_id: random.random_bool(0.8).then(|| QueueId::new(random.random_range(1..4))),
        user_id: random.random_bool(0.5).then(|| UserId::new(random.random_range(1..30))),
        channel_id: ChannelId::new(random.random_range(1..3)),
    };
    let waiting_since = random.random_bool(0.6).then(|| at(random));
    OpenTicketTimes { group, last_activity_at: at(random), waiting_since }
}

fn open_ticket(id: TicketId, times: OpenTicketTimes) -> OpenTicket {
    let OpenTicketTimes { group, last_activity_at, waiting_since } = times;
    let GroupKey { queue_id, user_id, channel_id } = group;
    OpenTicket { id, queue_id, user_id, channel_id, waiting_since, last_activity_at }
}

fn random_query(random: &mut StdRng, sort: TicketSort, after: Option<TimePosition>) -> OpenTicketQuery {
    let filter = TicketFilter {
        status: Some(TicketStatus::Open),
        queue_id: random.random_bool(0.3).then(|| QueueId::new(random.random_range(1..4))),
        user_id: random.random_bool(0.2).then(|| UserId::new(random.random_range(1..30))),
        channel_id: random.random_bool(0.3).then(|| ChannelId::new(random.random_range(1..3))),
        unassigned: random.random_bool(0.2).then(|| random.random_bool(0.5)),
        ..TicketFilter::default()
    };
    let is_by_cursor = after.is_some() || random.random_bool(0.5);
    let by_id = after.filter(|_| sort == TicketSort::Id).map(|after| after.id);
    let place = if is_by_cursor { Place::Cursor(by_id) } else { Place::Number(random.random_range(1..9)) };
    let page = PageRequest { place, size: random.random_range(1..200), descending: random.random_bool(0.5) };
    OpenTicketQuery::of(&filter, SortedPage { sort, page, after }).expect("the query is answered from memory")
}

#[test]
fn an_open_ticket_takes_a_hundred_bytes_when_loaded_and_little_more_after_changes() {
    let mut random = StdRng::seed_from_u64(41);
    let loaded: Vec<OpenTicket> =
        (1..=MANY).map(|id| open_ticket(TicketId::new(id), random_times(&mut random))).collect();
    let before = ALLOCATOR.current_usage() - size_of_val(&loaded[..]);
    let mut orders = OpenTicketOrders::of(loaded);
    let bytes_each = |before: usize| (ALLOCATOR.current_usage() - before) / MANY as usize;
    let as_loaded = bytes_each(before);
    for _ in 0..MANY {
        orders.insert(TicketId::new(random.random_range(1..=MANY)), random_times(&mut random));
    }
    assert_eq!(orders.len(), MANY as usize);
    let after_changes = bytes_each(before);
    println!("an open ticket takes {as_loaded} bytes as loaded, {after_changes} after {MANY} changes");
    assert!(as_loaded <= LOADED_BYTES_MAX, "{as_loaded} bytes");
    assert!(after_changes <= CHANGED_BYTES_MAX, "{after_changes} bytes");
}

fn active_at(queue: i64, second: i64) -> OpenTicketTimes {
    let group = GroupKey { queue_id: Some(QueueId::new(queue)), user_id: None, channel_id: ChannelId::new(1) };
    let last_activity_at = DateTime::from_timestamp(second, 0).unwrap_or_default();
    OpenTicketTimes { group, last_activity_at, waiting_since: None }
}

fn query_by_activity(limit: i64) -> OpenTicketQuery {
    let filter = TicketFilter { status: Some(TicketStatus::Open), ..TicketFilter::default() };
    let page = PageRequest::first(limit);
    OpenTicketQuery::of(&filter, SortedPage { sort: TicketSort::Activity, page, after: None })
        .expect("the query is answered from memory")
}

#[test]
fn a_ticket_that_moves_while_a_list_is_read_is_listed_once() {
    let mut orders = OpenTicketOrders::default();
    (1..=3).for_each(|id| orders.insert(TicketId::new(id), active_at(1, id)));
    let query = query_by_activity(10);
    let mut listing = Listing::new(&query);
    assert!(!orders.continue_list(&query, &mut listing, 1), "the list has not ended");
    orders.insert(TicketId::new(1), active_at(1, 4));
    assert!(orders.continue_list(&query, &mut listing, 10));
    assert_eq!(listing.found.iter().map(|found| found.id).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn groups_that_are_empty_again_do_not_count() {
    let mut orders = OpenTicketOrders::default();
    let tickets = EXAMINED_GROUPS_MAX as i64 + 1;
    (1..=tickets).for_each(|id| orders.insert(TicketId::new(id), active_at(id, id)));
    assert!(orders.matching_if_few(&query_by_activity(10)).is_none(), "too many groups are examined");
    (2..=tickets).for_each(|id| orders.remove(TicketId::new(id)));
    assert_eq!(orders.matching_if_few(&query_by_activity(10)).map(|matching| matching.len()), Some(1));
    assert_eq!(orders.counts().len(), 1);
}

#[test]
fn an_order_lists_what_sorting_all_tickets_lists() {
    let mut random = StdRng::seed_from_u64(40);
    let mut all: BTreeMap<_, _> = (1..=TICKETS / 3).map(|id| (TicketId::new(id), random_times(&mut random))).collect();
    let mut orders = OpenTicketOrders::of(all.iter().map(|(id, times)| open_ticket(*id, *times)).collect());
    for _ in 0..3 * TICKETS {
        let id = TicketId::new(random.random_range(1..=TICKETS));
        if random.random_bool(0.2) {
            orders.remove(id);
            all.remove(&id);
        } else {
            let times = random_times(&mut random);
            orders.insert(id, times);
            all.insert(id, times);
        }
    }
    assert_eq!(orders.len(), all.len());
    assert_eq!(orders.counts().iter().map(|group| group.open).sum::<i64>(), all.len() as i64);
    let waiting = all.values().filter(|times| times.waiting_since.is_some()).count();
    assert_eq!(orders.counts().iter().map(|group| group.waiting).sum::<i64>(), waiting as i64);
    let earliest = all.values().filter_map(|times| times.waiting_since).min();
    assert_eq!(orders.counts().iter().filter_map(|group| group.waiting_since).min(), earliest);
    for _ in 0..2_000 {
        let sort = TicketSort::ALL[random.random_range(0..3)];
        let mut after = None;
        if random.random_bool(0.6) {
            let times = random_times(&mut random);
            let at = match sort {
                TicketSort::Id => None,
                TicketSort::Activity => Some(times.last_activity_at),
                TicketSort::Waiting => times.waiting_since,
            };
            after = Some(TimePosition { at, id: random.random_range(0..=TICKETS) });
        }
        let query = random_query(&mut random, sort, after);
        let matching: Vec<_> =
            all.iter().map(|(id, times)| (*id, *times)).filter(|(_, times)| query.matches(times.group)).collect();
        let count = matching.len();
        let expected = query.page_of(matching);
        let mut listing = Listing::new(&query);
        while !orders.continue_list(&query, &mut listing, 7) {}
        assert_eq!(listing.found, expected, "{query:?}");
        match orders.matching_if_few(&query) {
            Some(matching) => assert_eq!(query.page_of(matching), expected, "{query:?}"),
            None => {
                assert!(count > SORTED_MAX || count * count > (query.skip + query.limit) * all.len(), "{query:?}")
            }
        }
    }
}
