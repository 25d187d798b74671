//! What the text of a migration would do to large tables.

use std::collections::{BTreeMap, BTreeSet};

use hotline_persistence::migration::locks;
use sqlx::migrate::Migration;

use super::{LARGE, later, sample};

/// The statements of a text: in lower case, without comments, with single spaces.
fn statements(sql: &str) -> Vec<String> {
    let (mut statements, mut current) = (Vec::new(), String::new());
    let mut rest = sql;
    // Each step takes a comment, a string, a dollar-quoted body or one character.
    while let Some(character) = rest.chars().next() {
        let quoted = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
        let end = match character {
            '-' if rest.starts_with("--") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '\'' => quoted("'", 1),
            '$' => match rest[1..].find('$') {
                Some(tag) if rest[1..=tag].chars().all(|letter| letter.is_alphanumeric() || letter == '_') => {
                    quoted(&rest[..tag + 2], tag + 2)
                }
                _ => 1,
            },
            ';' => {
                statements.push(std::mem::take(&mut current));
                rest = &rest[1..];
                continue;
            }
            character => character.len_utf8(),
        };
        current.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    statements.push(current);
    let plain = |text: String| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    statements.into_iter().map(plain).filter(|text| !text.is_empty()).collect()
}

/// The actions of `alter table`, which commas outside of parentheses and strings separate.
fn split_actions(actions: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut is_in_string, mut begin) = (Vec::new(), 0, false, 0);
    for (at, character) in actions.char_indices() {
        match character {
            '\'' => is_in_string = !is_in_string,
            '(' if !is_in_string => depth += 1,
            ')' if !is_in_string => depth -= 1,
            ',' if !is_in_string && depth == 0 => {
                parts.push(&actions[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&actions[begin..]);
    parts
}

/// The first word after one of these beginnings.
fn word_after<'a>(statement: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    let rest = beginnings.iter().find_map(|beginning| statement.strip_prefix(beginning))?;
    rest.split([' ', '(', ',']).next()
}

/// The large table that a statement changes.
fn large_table(statement: &str, beginnings: &[&str]) -> Option<&'static str> {
    let table = word_after(statement, beginnings)?.trim_matches('"');
    let table = table.rsplit('.').next().unwrap_or(table);
    LARGE.into_iter().find(|large| *large == table)
}

const ALTER: [&str; 4] = ["alter table if exists only ", "alter table if exists ", "alter table only ", "alter table "];

/// Whether the default of a new column is the same for every row, so that PostgreSQL stores it once.
fn is_constant(default: &str) -> bool {
    let word = default.split([' ', ',']).next().unwrap_or_default();
    let is_literal = word.starts_with('\'') || word.parse::<f64>().is_ok();
    is_literal || ["true", "false", "null", "now()", "current_timestamp"].contains(&word)
}

/// The `is not null` checks that earlier statements have added.
#[derive(Default)]
struct Earlier {
    /// The column of each check, by table and name of the check.
    checks: BTreeMap<(String, String), String>,
    /// Columns that a validated check proves to be not null.
    proved: BTreeSet<(String, String)>,
}

impl Earlier {
    /// Why a migration would interrupt a running release.
    fn read(&mut self, migration: &Migration) -> Vec<String> {
        let sql = migration.sql.as_str();
        let statements = statements(sql);
        let mut refusals = Vec::new();
        if locks(sql).is_none() {
            refusals.push("does not name its locks: begin the file with `-- Locks: …`".to_owned());
        }
        if migration.no_tx && statements.len() != 1 {
            refusals.push("has several statements without a transaction".to_owned());
        }
        let altered: BTreeSet<_> = statements.iter().filter_map(|statement| large_table(statement, &ALTER)).collect();
        if altered.len() > 1 {
            refusals.push(format!("locks several large tables at once: {altered:?}"));
        }
        for statement in &statements {
            let reasons = self.check_statement(statement, migration.no_tx);
            refusals.extend(reasons.into_iter().map(|reason| format!("{reason}: {statement}")));
        }
        let has = |words: &str| statements.iter().any(|statement| statement.contains(words));
        if has(" add constraint ") && has(" validate constraint ") {
            refusals.push("validates a constraint under the lock of its creation: use a later file".to_owned());
        }
        refusals
    }

    fn check_statement(&mut self, statement: &str, has_no_transaction: bool) -> Vec<&'static str> {
        if statement.starts_with("create index ") || statement.starts_with("create unique index ") {
            return check_index(statement, has_no_transaction);
        }
        let mut reasons = Vec::new();
        let writes = ["update only ", "update ", "delete from only ", "delete from "];
        if large_table(statement, &writes).is_some()
            || (statement.starts_with("with ")
                && LARGE.iter().any(|table| writes.iter().any(|write| statement.contains(&format!("{write}{table} ")))))
        {
            reasons.push("changes the rows of a large table in one transaction");
        }
        if large_table(
            statement,
            &["lock table only ", "lock table ", "lock ", "cluster ", "truncate table ", "truncate "],
        )
        .is_some()
        {
            reasons.push("locks a large table");
        }
        let heavy = ["vacuum full", "reindex table ", "reindex index ", "refresh materialized view "];
        if heavy.iter().any(|heavy| statement.starts_with(heavy)) && !statement.contains("concurrently") {
            reasons.push("locks a table for as long as it takes");
        }
        if let Some(table) = large_table(statement, &ALTER) {
            let (_, actions) = statement.split_once(table).unwrap_or_default();
            split_actions(actions).into_iter().for_each(|action| reasons.extend(self.check_action(table, action)));
        }
        reasons
    }

    /// An action of `alter table` on a large table.
    fn check_action(&mut self, table: &str, action: &str) -> Option<&'static str> {
        let action = action.trim_start();
        let words: Vec<&str> = action.split(' ').collect();
        let begins_with = |beginning: &str| action.starts_with(beginning);
        let (table, name) = (table.to_owned(), words.get(2).copied().unwrap_or_default().to_owned());
        if begins_with("alter ") && (action.contains(" type ") || action.contains(" add generated ")) {
            return Some("rewrites a large table");
        }
        if begins_with("alter ") && action.ends_with(" set not null") {
            let column = words.iter().rev().nth(3).copied().unwrap_or_default().to_owned();
            return (!self.proved.contains(&(table, column))).then_some(
                "reads the whole table: add a check `is not null` as `not valid`, validate it in a later file",
            );
        }
        if begins_with("add constraint ") {
            let column = action.split_once("check (").and_then(|(_, check)| check.split_once(" is not null"));
            if let Some((column, _)) = column.filter(|_| action.contains("not valid")) {
                self.checks.insert((table, name), column.trim_matches('(').to_owned());
            }
            let is_quick = action.contains("not valid") || action.contains(" using index ");
            return (!is_quick).then_some("reads the whole table: use `not valid` or `using index`");
        }
        if begins_with("validate constraint ") {
            let proved = self.checks.get(&(table.clone(), name)).cloned();
            self.proved.extend(proved.map(|column| (table, column)));
            return None;
        }
        if begins_with("add column ") || (begins_with("add ") && !begins_with("add constraint ")) {
            return check_new_column(action);
        }
        let rewrites = ["set logged", "set unlogged", "set tablespace ", "set access method ", "set with"];
        rewrites.iter().any(|rewrite| begins_with(rewrite)).then_some("rewrites a large table")
    }
}

fn check_new_column(action: &str) -> Option<&'static str> {
    let default = action.split_once(" default ").map(|(_, default)| default);
    if default.is_some_and(|default| !is_constant(default)) {
        return Some("rewrites a large table: the default differs by row");
    }
    let rewrites = [" generated always ", " generated by default ", "serial"];
    if rewrites.iter().any(|rewrite| action.contains(rewrite)) {
        return Some("rewrites a large table");
    }
    let scans = [
        " unique",
        " primary key",
        " references ",
        " check (",
        "add unique",
        "add primary",
        "add foreign",
        "add check",
    ];
    scans.iter().any(|scan| action.contains(scan)).then_some("reads the whole table: add the constraint as `not valid`")
}

fn check_index(statement: &str, has_no_transaction: bool) -> Vec<&'static str> {
    let table = statement.split(" on ").nth(1).unwrap_or_default();
    let is_concurrent = statement.contains(" concurrently ");
    let mut reasons = Vec::new();
    if large_table(table, &["only ", ""]).is_some() && !is_concurrent {
        reasons.push("blocks writes until it is built: use `concurrently`");
    }
    if is_concurrent && !has_no_transaction {
        reasons.push("needs `-- no-transaction` in the first line");
    }
    if is_concurrent && !statement.contains(" if not exists ") {
        reasons.push("cannot be repeated: use `if not exists`");
    }
    reasons
}

#[test]
fn a_migration_reads_and_rewrites_no_large_table_under_its_lock() {
    let mut earlier = Earlier::default();
    let refused: Vec<String> = later()
        .iter()
        .flat_map(|migration| {
            let reasons = earlier.read(migration).into_iter();
            reasons.map(|reason| format!("migration {}: {reason}", migration.version)).collect::<Vec<_>>()
        })
        .collect();
    assert!(refused.is_empty(), "it would interrupt a running release:\n{}", refused.join("\n"));
}

#[test]
fn what_would_interrupt_a_release_is_refused() {
    for (sql, reason) in [
        ("create index on messages (body)", "concurrently"),
        ("create unique index x on only tickets (id)", "concurrently"),
        ("create index concurrently if not exists x on messages (body)", "-- no-transaction"),
        ("-- no-transaction\ncreate index concurrently x on messages (body)", "if not exists"),
        ("-- no-transaction\nselect 1; select 2", "several statements"),
        ("alter table messages alter column body type varchar(9)", "rewrites"),
        ("ALTER TABLE public.messages\n  alter body set data type varchar(9)", "rewrites"),
        ("alter table contacts add column x timestamptz default clock_timestamp()", "differs by row"),
        ("alter table contacts add x uuid not null default gen_random_uuid()", "differs by row"),
        ("alter table contacts add column x text generated always as (name) stored", "rewrites"),
        ("alter table contacts add column x bigserial", "rewrites"),
        ("alter table tickets add column x bigint references queues (id)", "not valid"),
        ("alter table tickets alter column closed_at set not null", "is not null"),
        ("alter table tickets add constraint x check (id > 0)", "not valid"),
        ("alter table tickets add primary key (id)", "not valid"),
        ("alter table tickets add constraint x unique (id)", "using index"),
        ("alter table tickets set unlogged", "rewrites"),
        ("update messages set body = ''", "rows of a large table"),
        ("with x as (select 1) update messages set body = ''", "rows of a large table"),
        ("delete from only tickets where id = 1", "rows of a large table"),
        ("lock table tickets in exclusive mode", "locks a large table"),
        ("truncate zones", "locks a large table"),
        ("vacuum full tags", "as long as it takes"),
        (
            "alter table tickets add constraint x check (id > 0) not valid; alter table tickets validate constraint x",
            "later file",
        ),
        ("alter table tickets add column x text; alter table messages add column x text", "several large tables"),
    ] {
        let (head, body) = sql.split_once('\n').filter(|(head, _)| head.starts_with("--")).unwrap_or(("", sql));
        let migration = sample(format!("{head}\n-- Locks: some\n{body}").trim_start());
        let refusals = Earlier::default().read(&migration);
        assert!(refusals.iter().any(|refusal| refusal.contains(reason)), "{sql}: {refusals:?}");
    }
    let refusals = Earlier::default().read(&sample("alter table tags add column x text"));
    assert!(refusals.iter().any(|refusal| refusal.contains("-- Locks:")), "{refusals:?}");
}

#[test]
fn what_takes_a_moment_is_accepted() {
    let mut earlier = Earlier::default();
    for sql in [
        "-- Locks: messages\nalter table messages add column x text;",
        "-- Locks: messages\nalter table messages add column y text not null default 'a, b; c', add column z int default 0;",
        "-- Locks: messages\nalter table messages add constraint z check (y in ('a', 'b')) not valid;",
        "-- Locks: tags\ncreate index on tags (name); update tags set name = name; alter table tags alter name type text;",
        "-- no-transaction\n-- Locks: messages\ncreate index concurrently if not exists x on messages (body);",
        "-- Locks: tickets\nalter table tickets add constraint x check (closed_at is not null) not valid;",
        "-- Locks: tickets\nalter table tickets validate constraint x;",
        "-- Locks: tickets\nalter table tickets alter column closed_at set not null;",
        "-- Locks: none\ncreate function f() returns int language sql as $body$ update messages set body = ''; select 1 $body$;",
        "-- Locks: none\n-- update messages set body = '';\ncreate table notes (id bigint primary key, body text);",
    ] {
        assert_eq!(earlier.read(&sample(sql)), [""; 0], "{sql}");
    }
}

#[test]
fn semicolons_in_strings_and_bodies_do_not_end_a_statement() {
    let sql = "select 'a;b'; -- c;d\ndo $$ begin; end $$;\nselect $1;";
    assert_eq!(statements(sql), ["select 'a;b'", "do $$ begin; end $$", "select $1"]);
}
