//! Each kind of `Change` is first read by one release, and written only by the next, so that the previous release can
//! replay the journal. The table in `docs/durability.md` has both releases of each kind; the code must comply with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A release, by its first two numbers: `0.1`.
type Release = (u32, u32);

/// The first release.
const FIRST: Release = (0, 1);

/// Exceptions: the first release that reads them also writes them. `docs/durability.md` says how to downgrade then.
const WRITTEN_AT_ONCE: [&str; 2] = ["Attempt", "Revision"];

/// A row of the table in `docs/durability.md`.
#[derive(Clone, Debug)]
struct Kind {
    name: String,
    /// The database table that it is written into.
    table: String,
    read_since: Release,
    written_since: Release,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the repository")
}

fn parse_release(text: &str) -> Release {
    let mut numbers = text.split('.').map(|number| number.parse().expect("a number"));
    (numbers.next().expect("major"), numbers.next().expect("minor"))
}

/// The rows of the table in `docs/durability.md`.
fn documented_kinds() -> Vec<Kind> {
    let page = read("docs/durability.md");
    let section = page.split("\n## What a change can be\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, table, read_since, written_since] = cells[..] else { panic!("not five cells: {row}") };
        Kind {
            name: name.trim_matches('`').to_owned(),
            table: table.trim_matches('`').to_owned(),
            read_since: parse_release(read_since),
            written_since: parse_release(written_since),
        }
    })
    .collect()
}

/// The variants of `Change`.
fn variants() -> BTreeSet<String> {
    let code = read("persistence/src/change.rs");
    let body = code.split("pub enum Change {").nth(1).and_then(|rest| rest.split("\n}").next()).expect("the enum");
    let names = body.lines().filter(|line| !line.trim_start().starts_with("//"));
    names.filter_map(|line| line.trim().split_once('(').map(|(name, _)| name.to_owned())).collect()
}

/// The files that could write a change: all but the tests and those that define, read and store changes.
fn writers() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let is_skipped = path.ends_with("change.rs") || path.ends_with("persister") || path.ends_with("tests");
            if path.is_dir() && !is_skipped {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_skipped {
                let text = std::fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    ["src", "actors/src", "persistence/src"].iter().for_each(|folder| walk(&root().join(folder), &mut found));
    found
}

/// The rules that the kinds violate in this release.
fn violations(kinds: &[Kind], current: Release, writers: &[(PathBuf, String)]) -> Vec<String> {
    let mut violations = Vec::new();
    for Kind { name, read_since, written_since, .. } in kinds {
        if WRITTEN_AT_ONCE.contains(&&**name) {
            continue;
        }
        if *written_since <= *read_since && *written_since != FIRST {
            violations.push(format!("{name} is written by the first release that reads it, or by an earlier one"));
        }
        if *written_since > current {
            let construction = format!("Change::{name}(");
            let early = writers.iter().filter(|(_, text)| text.contains(&construction));
            violations.extend(early.map(|(path, _)| format!("{name} is written too early, in {}", path.display())));
        }
    }
    violations
}

#[test]
fn every_kind_of_change_is_read_by_one_release_and_written_by_the_next() {
    let kinds = documented_kinds();
    let named: BTreeSet<String> = kinds.iter().map(|kind| kind.name.clone()).collect();
    assert_eq!(named, variants(), "the kinds in docs/durability.md are not the variants of `Change`");
    assert_eq!(named.len(), kinds.len(), "a kind has two rows");
    let tables = read("docs/schema.md");
    for Kind { name, table, .. } in &kinds {
        assert!(tables.contains(&format!("- **{table}** (")), "{name}: there is no table {table}");
    }
    let (current, writers) = (parse_release(env!("CARGO_PKG_VERSION")), writers());
    let violations = violations(&kinds, current, &writers);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    // The search for writers works: it finds one of each kind that is written by now.
    let is_written = |kind: &Kind| writers.iter().any(|(_, text)| text.contains(&format!("Change::{}(", kind.name)));
    for kind in kinds.iter().filter(|kind| kind.written_since <= current) {
        assert!(is_written(kind), "no file writes {}", kind.name);
    }
}

#[test]
fn a_kind_that_is_written_too_early_is_a_violation() {
    let kind = |read_since, written_since| {
        [Kind { name: "Moved".to_owned(), table: "tickets".to_owned(), read_since, written_since }]
    };
    let writes = [(PathBuf::from("move.rs"), "cx.record(Change::Moved(row));".to_owned())];
    assert!(violations(&kind((0, 3), (0, 4)), (0, 3), &[]).is_empty(), "read, and not written yet");
    assert!(violations(&kind((0, 3), (0, 4)), (0, 4), &writes).is_empty(), "written by the next release");
    assert_eq!(violations(&kind((0, 3), (0, 4)), (0, 3), &writes).len(), 1, "written too early");
    assert_eq!(violations(&kind((0, 3), (0, 3)), (0, 3), &writes).len(), 1, "read and written by one release");
    assert_eq!(violations(&kind((0, 3), (0, 2)), (0, 3), &writes).len(), 1, "written before it was read");
}
