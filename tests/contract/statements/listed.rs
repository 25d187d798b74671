//! The statements whose texts the sources do not contain.

use hotline_persistence::tables::cascades::{Cascade, Reference};

/// The file, the function, and why its statements are not prepared.
pub const LISTED: &[(&str, &str, &str)] = &[
    ("persistence/src/archive/export.rs", "rows", "the columns are those of the table; a test exports every table"),
    ("persistence/src/archive/import.rs", "advance_sequence", "the tables are the archived ones; a test imports them"),
    ("persistence/src/archive/import.rs", "create_company", "the columns are those of the archive"),
    ("persistence/src/archive/import.rs", "insert", "the columns are those of the archive"),
    (
        "persistence/src/error.rs",
        "set_statement_timeout",
        "a number of milliseconds; PostgreSQL takes no parameter there",
    ),
    ("persistence/src/error.rs", "find", "the names are those of a table's `UNIQUE`; tests of taken values execute it"),
    (
        "persistence/src/migration/mod.rs",
        "begin_without_transaction",
        "drops an index that PostgreSQL names; a test with an interrupted build executes it",
    ),
    ("persistence/src/partitions.rs", "execute_in_transaction", "names and bounds of partitions are times"),
    ("persistence/src/select.rs", "new", "the beginning of a list's statement; filters and order follow"),
    ("persistence/src/table/mod.rs", "exists_in", "a filter refers to any of the tables, all of which are prepared"),
    ("persistence/src/table/mod.rs", "insert", "the columns are those of the request"),
    ("persistence/src/table/mod.rs", "update", "the columns are those of the request"),
    ("persistence/src/tables/messages/columns.rs", "insert_rows", "built from `COLUMNS`, as the statement of `COPY`"),
    ("persistence/src/tables/reports/rebuild.rs", "compare", "a temporary table's query takes no parameters"),
    ("persistence/src/tables/reports/rebuild.rs", "correct", "reads the temporary table that `compare` creates"),
    (
        "persistence/src/tables/tickets/sorted.rs",
        "list_sorted",
        "the beginning of a list's statement; a test lists in each order",
    ),
    (
        "persistence/src/tables/user_metrics.rs",
        "statement_start",
        "the beginning of a list's statement; filters and order follow",
    ),
    (
        "persistence/src/tables/visible_cards.rs",
        "count_assigned",
        "the columns are those of any `DeletionBlocker`; it is called for those of cards",
    ),
];

/// Statements that a function of the sources builds: the file, the function that executes them, and their texts.
pub fn built_statements() -> [(&'static str, &'static str, Vec<String>); 5] {
    const STEPS: &str = "persistence/src/tables/cascades/steps.rs";
    let references: Vec<&Reference> = Cascade::EVERY.iter().flat_map(|cascade| cascade.references()).collect();
    [
        (STEPS, "lock_record", Cascade::EVERY.iter().map(|cascade| cascade.lock_sql()).collect()),
        (STEPS, "find_ids", references.iter().map(|reference| reference.find_sql()).collect()),
        (STEPS, "lock_owners", references.iter().map(|reference| reference.lock_owners_sql()).collect()),
        (STEPS, "remove_references", references.iter().map(|reference| reference.remove_sql()).collect()),
        (STEPS, "touch", references.iter().filter_map(|reference| reference.touch_sql()).collect()),
    ]
}
