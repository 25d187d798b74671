//! `docs/events.md` has every operation that changes something, with its events or the reason why there are none.

use std::collections::{BTreeMap, BTreeSet};

use hotline::web::response::schema::Schemas;
use hotline_persistence::tables::events::EventKind;

const PAGE: &str = include_str!("../../docs/events.md");

/// Operations that only read, although their method is not `GET`.
const READING: [&str; 0] = [];

/// The events of each operation, or `nothing: ` and the reason, from the table of the page.
fn read_table() -> BTreeMap<String, String> {
    let section =
        PAGE.split("\n## What tells what\n").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the section");
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |line: &str| {
        let (name, events) = line.trim_matches('|').split_once('|').expect("two cells");
        (name.trim().trim_matches('`').to_owned(), events.trim().to_owned())
    };
    let rows: Vec<_> = rows.map(cells).collect();
    let table: BTreeMap<_, _> = rows.iter().cloned().collect();
    assert_eq!(table.len(), rows.len(), "an operation is there twice");
    table
}

#[test]
fn every_operation_that_changes_something_has_its_events_or_a_reason() {
    let table = read_table();
    let mut operations = hotline::routes::operations(&mut Schemas::new());
    operations.extend(hotline::routes::operations_outside_api(&mut Schemas::new()));
    let changing: BTreeSet<String> = operations
        .iter()
        .filter(|operation| operation.method != "GET" && !READING.contains(&operation.id.as_ref()))
        .map(|operation| operation.id.to_string())
        .collect();
    // Two rows are not operations of the API.
    let documented: BTreeSet<String> =
        table.keys().filter(|name| !["by itself", "hotline channel"].contains(&name.as_str())).cloned().collect();
    assert_eq!(documented, changing, "docs/events.md does not have exactly the operations that change something");
    let mut found = BTreeSet::new();
    for (name, events) in &table {
        if let Some(why) = events.strip_prefix("nothing: ") {
            assert!(why.len() > 10, "{name} has no reason for having no events");
            continue;
        }
        for kind in events.split(", ") {
            let word = kind.trim_matches('`');
            let kind: EventKind = word.parse().unwrap_or_else(|()| panic!("{name}: there is no event `{word}`"));
            found.insert(kind.as_str());
        }
    }
    let all: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(found, all, "docs/events.md has no operation for some kinds of events");
}
