//! Every write begins with the fence (decision 43), which fails once the life of the process is over, or is named here
//! with the reason why it does no harm after that.
//!
//! The sessions of a process of a cluster are read-only except in transactions that begin with the fence: PostgreSQL
//! refuses a write without it. Only a few pools may write without the fence: code that makes such a pool, or writes
//! through a pool, is found here by its words. Code that takes `impl Database`, or a connection, writes within its
//! caller's transaction.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

const AT_THE_START: &str = "done before the life begins, by a process that has nothing in memory yet";
const STANDALONE: &str = "of a standalone process, which has an epoch and no life";
const BY_HAND: &str = "of the command line, which has nothing in memory that could be stale";

/// Functions that write through a pool without the fence, with the reason.
const HARMLESS: [(&str, &str, &str); 29] = [
    ("persistence/src/archive/import.rs", "begin", BY_HAND),
    ("persistence/src/cluster/lives.rs", "begin", "begins the life"),
    ("persistence/src/cluster/lives.rs", "beat", "takes the lock of the fence itself"),
    ("persistence/src/cluster/lives.rs", "join", "changes the row of its life, which is gone with it"),
    (
        "persistence/src/cluster/lives.rs",
        "drain",
        "changes the row of a life, which is gone with it; also of the command line",
    ),
    ("persistence/src/cluster/lives.rs", "forget_seals", "deletes only seals that were completed over a minute ago"),
    ("persistence/src/cluster/lives/reports.rs", "save_report", "changes the row of its life, which is gone with it"),
    ("persistence/src/id_blocks.rs", "reserve", STANDALONE),
    ("persistence/src/id_blocks.rs", "give_back", STANDALONE),
    ("persistence/src/persister/ahead.rs", "begin", STANDALONE),
    ("persistence/src/recovery.rs", "begin_direct", STANDALONE),
    ("persistence/src/recovery.rs", "find_watermark", STANDALONE),
    ("persistence/src/recovery.rs", "take_ownership", STANDALONE),
    ("persistence/src/tables/admins.rs", "insert", BY_HAND),
    ("persistence/src/tables/channels/missing_keys.rs", "reconnect_readable", STANDALONE),
    ("persistence/src/tables/channels/missing_keys.rs", "disconnect_unreadable", STANDALONE),
    ("persistence/src/tables/channels/reseal.rs", "reseal", BY_HAND),
    ("persistence/src/tables/companies.rs", "insert", BY_HAND),
    ("persistence/src/tables/installation_keys.rs", "reseal", BY_HAND),
    ("persistence/src/tables/people/factors.rs", "reseal", BY_HAND),
    ("persistence/src/tables/secret_keys.rs", "abandon", BY_HAND),
    ("persistence/src/tables/secret_keys.rs", "forget", BY_HAND),
    ("persistence/src/tables/secret_keys.rs", "reconcile", AT_THE_START),
    ("persistence/src/tables/secret_keys.rs", "rotate", BY_HAND),
    ("persistence/src/tables/tokens.rs", "revoke", BY_HAND),
    ("persistence/src/tables/tokens.rs", "rotate", BY_HAND),
    ("persistence/src/tables/webhooks/missing_keys.rs", "disable_unreadable", STANDALONE),
    ("persistence/src/tables/webhooks/missing_keys.rs", "enable_readable", STANDALONE),
    ("persistence/src/tables/webhooks/mod.rs", "reseal", BY_HAND),
];

/// Files that make connections which may write without the fence, or that let others write.
const MAKERS: [(&str, &str, &str); 10] = [
    ("persistence/src/cluster/lives.rs", "begin read write", "the fence itself"),
    ("persistence/src/migration/mod.rs", "transaction_read_only", "checks whether a session is read-only"),
    ("persistence/src/pool.rs", "transaction_read_only", "makes sessions read-only"),
    ("persistence/src/requirements.rs", "transaction_read_only", "checks whether sessions are read-only"),
    ("persistence/src/store/open.rs", "connect_housekeeping", "at the start; read-only once the life has begun"),
    ("persistence/src/store/open.rs", "connect_member", "for the life's own rows: its writes are listed above"),
    ("persistence/src/store/open.rs", "connect_replay", STANDALONE),
    ("persistence/src/store/open.rs", "connect_shared_writer", "for the persister"),
    ("persistence/src/store/open.rs", "connect_writer", STANDALONE),
    ("src/cli/database.rs", "pool::connect", BY_HAND),
];

/// The functions that make such connections.
const CONNECT_FUNCTIONS: [&str; 5] =
    ["connect_housekeeping", "connect_member", "connect_replay", "connect_shared_writer", "connect_writer"];

/// Words that let a session or a transaction write.
const WRITE_MODES: [&str; 3] = ["begin read write", "transaction read write", "transaction_read_only"];

#[test]
fn whatever_writes_without_the_fence_is_named_with_its_reason() {
    let (mut writers, mut makers) = (Vec::new(), Vec::new());
    for (file, text) in sources() {
        let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
        let found = Found::of(stream);
        // The command line has nothing in memory that could be stale.
        let unfenced = found.unfenced.into_iter().filter(|_| !file.starts_with("src/cli/"));
        writers.extend(unfenced.map(|name| (file.clone(), name)));
        // The definition of such a function is not a use of it.
        let is_defined = |word: &str| file == "persistence/src/pool.rs" && CONNECT_FUNCTIONS.contains(&word);
        makers.extend(found.makers.into_iter().filter(|word| !is_defined(word)).map(|word| (file.clone(), word)));
    }
    check("writes without the fence", &mut writers, &HARMLESS);
    check("makes connections that write", &mut makers, &MAKERS);
}

/// Fails unless the entries of this file are exactly what was found.
#[track_caller]
fn check(what: &str, found: &mut Vec<(String, String)>, named: &[(&str, &str, &str)]) {
    found.sort();
    found.dedup();
    let is_named = |(file, name): &&(String, String)| named.iter().any(|row| (row.0, row.1) == (file, name));
    let new: Vec<_> = found.iter().filter(|row| !is_named(row)).collect();
    assert!(new.is_empty(), "no entry in this file for what {what}: {new:#?}");
    let is_there = |row: &&(&str, &str, &str)| found.iter().any(|(file, name)| (row.0, row.1) == (file, name));
    let missing: Vec<_> = named.iter().filter(|row| !is_there(row)).collect();
    assert!(missing.is_empty(), "an entry in this file for nothing that {what}: {missing:#?}");
}

#[test]
fn what_writes_through_a_pool_is_found() {
    let unfenced = |text: &str| Found::of(text.parse().expect("tokens")).unfenced;
    let one = |signature: &str, body: &str| format!("async fn one({signature}) {{ {body} }}");
    for statement in [
        "insert into tags values (1)",
        "with x as (delete\n from tags) select 1",
        "update tags t set a = 1",
        "drop table t",
    ] {
        let body = format!("sqlx::query(\"{statement}\").execute(db)");
        assert_eq!(unfenced(&one("db: &PgPool", &body)), ["one"], "{statement}");
        assert!(unfenced(&one("db: impl Database<'_>", &body)).is_empty(), "its caller has the fence");
        assert!(unfenced(&one("db: &PgPool", &format!("db.begin_with(begin_fenced(life)); {body}"))).is_empty());
        assert!(unfenced(&format!("#[cfg(test)] mod tests {{ {} }}", one("db: &PgPool", &body))).is_empty());
    }
    assert_eq!(unfenced(&one("db: &PgPool", "db.begin()")), ["one"]);
    assert_eq!(unfenced(&format!("impl A {{ {} }}", one("&self", "self.db.begin()"))), ["one"]);
    assert!(unfenced("impl A { fn a(&self) { let savepoint = self.db.begin(); } }").is_empty());
    assert!(unfenced(&one("db: &PgPool", "sqlx::query(\"select updated_at from tags for share\")")).is_empty());
    let makers = |text: &str| Found::of(text.parse().expect("tokens")).makers;
    assert_eq!(makers(&one("", "pool::connect(options)")), ["pool::connect"]);
    assert_eq!(
        makers(&one("", "f(\"begin read write\"); pool::connect_member(x)")),
        ["begin read write", "connect_member"]
    );
    assert_eq!(
        makers(&one("", "f(\"begin read write\"); f(\"set default_transaction_read_only = off\")")),
        ["begin read write", "transaction_read_only"]
    );
}

/// What must be named of one file.
#[derive(Default)]
struct Found {
    /// Functions that write through a pool, and do not begin with the fence.
    unfenced: Vec<String>,
    /// Words that make a connection which may write without the fence, or that let others write.
    makers: Vec<String>,
}

impl Found {
    fn of(stream: TokenStream) -> Self {
        let mut found = Self::default();
        found.read(stream);
        found
    }

    fn read(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_test_only(&tokens, at) {
                at += tokens[at..].iter().take_while(|token| !is_end(token)).count() + 1;
                continue;
            }
            match &tokens[at] {
                TokenTree::Ident(word) if word == "fn" => {
                    let signature: Vec<_> = tokens[at..].iter().take_while(|token| !is_end(token)).cloned().collect();
                    at += signature.len();
                    if let Some(TokenTree::Group(body)) = tokens.get(at) {
                        self.read_function(&signature, body.stream());
                    }
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => self.read(group.stream()),
                // The text of a constant.
                token @ (TokenTree::Group(_) | TokenTree::Literal(_)) => self.find_write_modes(token.clone().into()),
                _ => {}
            }
            at += 1;
        }
    }

    fn find_write_modes(&mut self, stream: TokenStream) {
        let mut texts = Vec::new();
        literals(stream, &mut texts);
        let write_modes = WRITE_MODES.iter().filter(|words| texts.iter().any(|text| text.contains(**words)));
        self.makers.extend(write_modes.map(|words| (*words).to_owned()));
    }

    fn read_function(&mut self, signature: &[TokenTree], body: TokenStream) {
        let signature = spaced(&signature.iter().cloned().collect());
        let words = spaced(&body);
        self.find_write_modes(body.clone());
        let mut texts = Vec::new();
        literals(body, &mut texts);
        for function in CONNECT_FUNCTIONS {
            if words.contains(&format!(" {function} (")) {
                self.makers.push(function.to_owned());
            }
        }
        if words.contains(" pool : : connect (") {
            self.makers.push("pool::connect".to_owned());
        }
        let has_pool = signature.contains(" PgPool ") && !signature.contains(" Database ");
        let writes = has_pool && (texts.iter().any(|text| may_write(text)) || words.contains(" . begin ("));
        // The persister takes the fence with its watermark.
        let is_fenced = [" begin_fenced ", "fence . begin", " move_watermark ("].iter().any(|way| words.contains(way));
        let begins_transaction = words.replace(" savepoint = self . db . begin (", "").contains(" self . db . begin (");
        if (writes || begins_transaction) && !is_fenced {
            let name = signature.split_whitespace().nth(1).unwrap_or_default();
            self.unfenced.push(name.to_owned());
        }
    }
}

/// Whether the item at this place is only for tests.
fn is_test_only(tokens: &[TokenTree], at: usize) -> bool {
    matches!(&tokens[at], TokenTree::Punct(sign) if sign.as_char() == '#')
        && matches!(tokens.get(at + 1), Some(TokenTree::Group(group)) if spaced(&group.stream()).trim() == "cfg ( test )")
}

/// Whether an item ends here, with its body or without one.
fn is_end(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(sign) => sign.as_char() == ';',
        _ => false,
    }
}

/// Every token, with spaces between and around them; a literal is `_`.
fn spaced(stream: &TokenStream) -> String {
    fn write(stream: TokenStream, text: &mut String) {
        for token in stream {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    text.push_str(open);
                    text.push(' ');
                    write(group.stream(), text);
                    text.push_str(close);
                }
                // The content of a literal is not code.
                TokenTree::Literal(_) => text.push('_'),
                token => text.push_str(&token.to_string()),
            }
            text.push(' ');
        }
    }
    let mut text = " ".to_owned();
    write(stream.clone(), &mut text);
    text
}

/// Every text in quotes, with one space between its words.
fn literals(stream: TokenStream, texts: &mut Vec<String>) {
    for token in stream {
        match token {
            TokenTree::Group(group) => literals(group.stream(), texts),
            TokenTree::Literal(literal) => {
                let text = literal.to_string().replace(['\\', '"'], " ").to_lowercase();
                texts.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Whether a statement changes something, by its words.
fn may_write(text: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "insert into ",
        "delete from ",
        "merge into ",
        "create table ",
        "drop table ",
        "alter table ",
        "truncate ",
        "nextval",
        "setval",
    ];
    let words: Vec<&str> = text.split(' ').collect();
    // `update <table> [<alias>] set`.
    let updates = words.iter().enumerate().any(|(at, word)| {
        word.ends_with("update") && words[at + 1..].iter().skip(1).take(2).any(|word| *word == "set")
    });
    updates || BEGINNINGS.iter().any(|beginning| text.contains(beginning))
}

/// The source files of the services and of the command line, with their paths; without modules of tests.
pub fn sources() -> Vec<(String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["src", "actors/src", "persistence/src"] {
        collect(&root.join(folder), &root, &mut found);
    }
    assert!(found.len() > 100, "{} sources", found.len());
    found
}

fn collect(folder: &Path, root: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        let is_test_module = path.file_stem().is_some_and(|stem| stem == "tests");
        if is_test_module {
            continue;
        }
        if path.is_dir() {
            collect(&path, root, found);
        } else if name.ends_with(".rs") {
            found.push((name, fs::read_to_string(&path).expect("a source")));
        }
    }
}
