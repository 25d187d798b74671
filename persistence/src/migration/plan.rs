//! What a migration locks and creates, read from its file.
//!
//! A file begins with comments: `-- no-transaction` if its statement cannot run in a transaction, then `-- Locks: …`.

use serde::Serialize;
use sqlx::migrate::Migration;

/// What precedes the names of locked tables in a file's comment.
const LOCKS_PREFIX: &str = "-- Locks:";

/// A migration as it is printed before it is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedMigration {
    /// Its number.
    pub number: i64,
    /// Its name.
    pub name: String,
    /// The tables that it locks, and how.
    pub locks: String,
}

impl PlannedMigration {
    pub(super) fn of(migration: &Migration) -> Self {
        let locks = locks(migration.sql.as_str()).map(str::to_owned);
        let default = || if migration.version == 1 { "none: creates the tables" } else { "unknown" }.to_owned();
        Self {
            number: migration.version,
            name: migration.description.to_string(),
            locks: locks.unwrap_or_else(default),
        }
    }
}

/// The text after `-- Locks:` in a migration's file; `None` if there is none.
pub fn locks(sql: &str) -> Option<&str> {
    let comments = sql.lines().take_while(|line| line.starts_with("--"));
    comments.filter_map(|line| line.strip_prefix(LOCKS_PREFIX)).map(str::trim).find(|locks| !locks.is_empty())
}

/// The name of the index that a statement creates concurrently; `None` if it creates none. A failed statement leaves an
/// invalid index.
pub(super) fn concurrent_index(sql: &str) -> Option<String> {
    let statement: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--")).collect();
    let statement = statement.join(" ").to_lowercase();
    let mut words = statement.split_whitespace().skip_while(|word| *word != "concurrently").skip(1);
    let is_name = |word: &&str| !["if", "not", "exists"].contains(word);
    words.find(is_name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_it_locks_before_its_first_statement() {
        let sql = "-- no-transaction\n-- Locks: messages (share update exclusive)\ncreate index concurrently if not exists\n    messages_x on messages (x)";
        assert_eq!(locks(sql), Some("messages (share update exclusive)"));
        assert_eq!(concurrent_index(sql).as_deref(), Some("messages_x"));
        assert_eq!(locks("-- About tags.\nalter table tags add column x text;\n-- Locks: tags"), None);
        assert_eq!(locks("-- Locks:\n"), None);
        assert_eq!(concurrent_index("alter table tags add column x text"), None);
    }
}
