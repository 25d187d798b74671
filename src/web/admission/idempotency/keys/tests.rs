use std::cell::Cell;
use std::future::ready;

use futures_util::FutureExt;
use hotline_persistence::Error;
use hotline_persistence::cluster::{Gates, Slot};

use super::*;

const A: CompanyId = CompanyId::new(1);
const B: CompanyId = CompanyId::new(2);

fn key(text: &str) -> Digest {
    Digest::of(&[text.as_bytes()])
}

#[test]
fn when_memory_is_full_the_keys_of_the_company_with_the_most_are_looked_up() {
    let keys = Keys::with_entries_max(4);
    assert!(!keys.may_have_been_used(A, key("1")));
    keys.mark_used(B, key("1"));
    for used in ["1", "2", "3"] {
        keys.mark_used(A, key(used));
    }
    assert!(keys.may_have_been_used(A, key("1")) && !keys.may_have_been_used(A, key("4")));
    assert!(!keys.may_have_been_used(B, key("2")), "companies do not share keys");
    keys.mark_used(A, key("4"));
    assert!(keys.may_have_been_used(A, key("1")), "it was dropped, and is looked up");
    assert!(keys.may_have_been_used(A, key("5")), "an unknown key may have been used");
    assert!(
        keys.may_have_been_used(B, key("1")) && !keys.may_have_been_used(B, key("2")),
        "a company with few keys loses none"
    );
    keys.0.used.lock().expire(clock::now().timestamp() + 1);
    assert!(!keys.may_have_been_used(A, key("1")) && !keys.may_have_been_used(B, key("1")), "all have expired");
    let used = keys.0.used.lock();
    assert_eq!((used.entries, used.companies.len()), (0, 0));
}

#[test]
fn only_the_companies_with_the_most_keys_lose_some() {
    for (counts, remaining, count_max) in [
        (&[10, 3, 4][..], 16, 9),
        (&[10, 9, 4], 20, 8),
        (&[4, 4, 4], 11, 3),
        (&[1, 2, 3], 6, usize::MAX),
        (&[], 0, usize::MAX),
    ] {
        assert_eq!(count_max_per_company(counts.iter().copied(), remaining), count_max, "{counts:?} in {remaining}");
    }
    let keys = Keys::with_entries_max(4);
    for used in ["1", "2", "3", "4"] {
        keys.mark_used(A, key(used));
    }
    keys.mark_used(B, key("1"));
    assert!(keys.may_have_been_used(A, key("5")), "the first keys of A were dropped");
    assert!(!keys.may_have_been_used(B, key("2")));
    let used = keys.0.used.lock();
    assert_eq!(used.entries, used.companies.values().map(SeenSet::len).sum::<usize>());
}

#[test]
fn companies_whose_keys_exceed_the_limit_of_a_statement_are_looked_up() {
    let keys = Keys::with_entries_max(10);
    let now = clock::now();
    let at = |seconds_ago| now - chrono::TimeDelta::seconds(seconds_ago);
    // As the statement returns them: the newest of each company, then the second of each.
    let stored = [(A, "a1", 0), (B, "b1", 5), (A, "a2", 1), (A, "a3", 2), (A, "a4", 3)];
    let stored = stored.map(|(company, name, seconds_ago)| (company, key(name), at(seconds_ago)));
    keys.add_stored(&stored, 6);
    assert!(!keys.may_have_been_used(A, key("a5")), "the limit was not reached");
    keys.add_stored(&stored, 5);
    assert!(keys.may_have_been_used(A, key("a5")), "A has more keys than were read");
    assert!(keys.may_have_been_used(B, key("b1")) && !keys.may_have_been_used(B, key("b2")), "all keys of B were read");
    keys.0.used.lock().expire(at(2).timestamp());
    assert!(keys.may_have_been_used(A, key("a3")) && keys.0.used.lock().entries == 3, "the oldest have expired first");
}

#[test]
fn only_companies_that_are_placed_here_are_loaded() {
    let ownership = Ownership::default();
    ownership.use_gates(Gates::new(Box::new(|company| Some(Slot::of_new(company)))));
    ownership.open_slots(&[Slot::of_new(A)]);
    assert!(!ownership.is_placed_here(B), "A and B must have different slots");
    let keys = Keys::with_entries_max(10);
    keys.forget_all(&HashSet::from([A, B]));
    let here = keys.unloaded_here(&ownership);
    assert_eq!(here.iter().map(|(company, _)| *company).collect::<Vec<_>>(), [A]);
    keys.0.used.lock().mark_loaded(&here);
    assert!(!keys.may_have_been_used(A, key("a")));
    assert!(keys.may_have_been_used(B, key("a")), "the keys of B stay unloaded");
}

/// Loads the missing keys as a sweep does, where those of `failing` cannot be read. Returns the number of statements.
fn load_all_but(keys: &Keys, failing: &HashSet<CompanyId>) -> usize {
    let statements = Cell::new(0);
    let load = |companies: Vec<CompanyDrop>| {
        statements.set(statements.get() + 1);
        if companies.iter().any(|(company, _)| failing.contains(company)) {
            return ready(Err(Error::Unavailable("no response".to_owned())));
        }
        keys.0.used.lock().mark_loaded(&companies);
        ready(Ok(()))
    };
    let unloaded = keys.unloaded_here(&Ownership::default());
    keys.load_in_chunks(&unloaded, load).now_or_never().expect("`load` completes at once");
    statements.get()
}

#[test]
fn companies_whose_keys_cannot_be_loaded_do_not_block_others() {
    let companies: HashSet<CompanyId> = (1..=4 * LOADED_AT_ONCE as i64).map(CompanyId::new).collect();
    let failing: HashSet<CompanyId> = (1..=5).map(CompanyId::new).collect();
    let keys = Keys::default();
    keys.forget_all(&companies);
    for _ in 0..10 {
        load_all_but(&keys, &failing);
    }
    let unloaded: HashSet<CompanyId> = keys.0.used.lock().unloaded.keys().copied().collect();
    assert_eq!(unloaded, failing);
    load_all_but(&keys, &HashSet::new());
    assert!(keys.0.used.lock().unloaded.is_empty());
}

#[test]
fn an_unavailable_database_is_not_queried_for_every_company() {
    let companies: HashSet<CompanyId> = (1..=4 * LOADED_AT_ONCE as i64).map(CompanyId::new).collect();
    let keys = Keys::default();
    keys.forget_all(&companies);
    assert_eq!(load_all_but(&keys, &companies), 1 + FAILURES_MAX);
}

#[test]
fn keys_of_a_company_that_was_dropped_are_looked_up_until_they_are_loaded() {
    let keys = Keys::with_entries_max(10);
    for company in [A, B] {
        keys.mark_used(company, key("a"));
    }
    keys.forget(A);
    assert!(keys.may_have_been_used(A, key("b")) && !keys.may_have_been_used(B, key("b")), "A's keys are unknown");
    keys.0.used.lock().unloaded.remove(&A);
    assert!(!keys.may_have_been_used(A, key("a")), "the keys from before the drop were removed");
    assert!(keys.may_have_been_used(B, key("a")));
    keys.mark_used(A, key("a"));
    assert!(keys.may_have_been_used(A, key("a")));
}
