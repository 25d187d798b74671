//! What users read is in standard words: the API document, the help of the command line, messages and log lines, and
//! the texts of the panel, the widget and the demo.

use std::path::{Path, PathBuf};

use clap::Command;
use serde_json::Value;

use crate::reasons::{collect_sources, texts};

/// Words of a private dialect, and the usual ones.
const WORDS: &[(&str, &str)] = &[
    ("a defect", "an internal error"),
    ("afresh", "again"),
    ("anew", "again"),
    ("any more", "no longer"),
    ("are good", "are valid"),
    ("as it likes", "without limit"),
    ("as they like", "without limit"),
    ("at hand", "available"),
    ("became of", "result, status"),
    ("become of", "result, status"),
    ("becomes of", "result, status"),
    ("behind", "late, after, lag"),
    ("blanks", "spaces"),
    ("by itself", "automatically"),
    ("called off", "canceled"),
    ("calls off", "cancels"),
    ("came to", "total, result"),
    ("comes to", "total, result"),
    ("cut off", "disconnected"),
    ("everybody", "everyone, all"),
    ("for ever", "permanently"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("gone", "deleted, missing, no longer exists"),
    ("good for", "valid for"),
    ("good no longer", "no longer valid"),
    ("has to do with", "concerns"),
    ("heard", "received"),
    ("heard of", "seen, available"),
    ("how far", "status, progress"),
    ("in force", "enabled, valid"),
    ("in words", "message"),
    ("is asked for", "is requested"),
    ("is good", "is valid"),
    ("is there", "exists"),
    ("it is no", "it is not a"),
    ("kept long", "retention"),
    ("leads elsewhere", "has another address"),
    ("leads into", "points to"),
    ("let in", "admitted, signed in"),
    ("lets in", "admits"),
    ("looks into", "searches, matches"),
    ("met a", "failed"),
    ("no good", "invalid"),
    ("nobody", "no one, none"),
    ("nothing of", "does not apply, none of"),
    ("obeyed", "applied"),
    ("obeys", "applies"),
    ("one's own", "your"),
    ("put into", "add to"),
    ("said", "sent, reported"),
    ("somebody", "someone, a user"),
    ("speaks", "type, language"),
    ("stands", "is shown"),
    ("switched off", "disabled"),
    ("switched on", "enabled"),
    ("switches off", "disables"),
    ("switches on", "enables"),
    ("tells", "reports, sends"),
    ("this is no", "this is not a"),
    ("to be known", "description"),
    ("told", "sent, notified"),
    ("under way", "in progress"),
    ("was asked for", "was requested"),
    ("went on", "continued"),
    ("what is to be", "name it"),
    ("whatever", "any, all"),
    ("whoever", "anyone who"),
    ("whom", "name the person's role"),
];

/// Where one of them is right, and why.
const EXEMPT: &[(&str, &str)] = &[("410 Gone", "the name of the HTTP status")];

/// The beginnings of texts in the code that are SQL statements or parts of them, not messages.
const STATEMENTS: &[&str] = &[
    "alter ",
    "and ",
    "begin",
    "copy ",
    "create ",
    "delete from",
    "from ",
    "group by",
    "insert into",
    "join ",
    "limit ",
    "order by",
    "returning",
    "select",
    "set ",
    "union",
    "update ",
    "values",
    "where ",
    "with ",
];

/// What only statements contain.
const IN_STATEMENTS: &[&str] =
    &["$1", "$2", "$3", "::", "company_id", " select ", " order by ", " for update", " for key"];

/// Where the texts of the pages are.
const PAGES: [&str; 3] = ["src/panel/pages", "src/visitors/assets/widget/source", "src/visitors/assets/demo"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text in lower case, between single spaces, without what is in backticks or braces. Punctuation is a word, so
/// that words of two sentences are not read as one phrase.
fn plain(text: &str) -> String {
    let exempt = EXEMPT.iter().fold(text.to_owned(), |text, (right, _)| text.replace(*right, ""));
    let outside = exempt.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let (mut depth, mut plain) = (0_usize, String::new());
    for character in outside.to_lowercase().chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            '’' => plain.push('\''),
            '\'' | '-' | '_' => plain.push(character),
            _ if character.is_alphanumeric() => plain.push(character),
            _ if character.is_whitespace() => plain.push(' '),
            _ => plain.push_str(" . "),
        }
    }
    format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The words in a text that users should not read, with the usual ones.
fn dialect_words(text: &str) -> Vec<String> {
    let text = plain(text);
    let found = WORDS.iter().filter(|(word, _)| text.contains(&format!(" {word} ")));
    found.map(|(word, usual)| format!("`{word}` ({usual})")).collect()
}

/// A text, and where it is.
type Found = (String, String);

/// The descriptions and summaries of a document.
fn collect_descriptions(place: &str, value: &Value, found: &mut Vec<Found>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                match inner {
                    Value::String(text) if ["description", "summary"].contains(&key.as_str()) => {
                        found.push((place.to_owned(), text.clone()));
                    }
                    inner => collect_descriptions(&format!("{place}/{key}"), inner, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|inner| collect_descriptions(place, inner, found)),
        _ => {}
    }
}

/// The help of a command and of those below it.
fn collect_help(command: &Command, found: &mut Vec<Found>) {
    let place = format!("--help of {}", command.get_name());
    let mut add = |text: Option<String>| found.extend(text.map(|text| (place.clone(), text)));
    add(command.get_about().map(ToString::to_string));
    add(command.get_long_about().map(ToString::to_string));
    add(command.get_after_help().map(ToString::to_string));
    add(command.get_after_long_help().map(ToString::to_string));
    for argument in command.get_arguments() {
        add(argument.get_help().map(ToString::to_string));
        add(argument.get_long_help().map(ToString::to_string));
    }
    command.get_subcommands().for_each(|below| collect_help(below, found));
}

fn is_statement(text: &str) -> bool {
    let text = text.trim_start();
    STATEMENTS.iter().any(|start| text.starts_with(start)) || IN_STATEMENTS.iter().any(|part| text.contains(part))
}

/// The messages, log lines and other texts in the code of the service: what is in quotation marks, of several words.
fn collect_messages(found: &mut Vec<Found>) {
    let mut files = Vec::new();
    for folder in ["src", "actors/src", "persistence/src", "persistence/postgres/src"] {
        collect_sources(&root().join(folder), &mut files);
    }
    for file in files {
        let place = file.strip_prefix(root()).expect("below the root").display().to_string();
        if place.contains("tests") {
            continue;
        }
        let texts = texts(&std::fs::read_to_string(&file).expect("a file")).into_iter();
        let texts = texts.filter(|text| text.contains(' ') && !is_statement(text));
        found.extend(texts.map(|text| (place.clone(), text)));
    }
}

fn collect_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() { collect_files(&entry, found) } else { found.push(entry) }
    }
}

/// The texts of the pages: in scripts, what is in quotation marks on one line; in HTML, what is between tags.
fn collect_pages(found: &mut Vec<Found>) {
    let mut all = Vec::new();
    PAGES.iter().for_each(|folder| collect_files(&root().join(folder), &mut all));
    for file in all {
        let place = file.strip_prefix(root()).expect("below the root").display().to_string();
        let ending = file.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
        if !["html", "js", "ts", "tsx"].contains(&ending.as_str()) {
            continue;
        }
        let source = std::fs::read_to_string(&file).expect("a file");
        let mut add = |text: &str| found.push((place.clone(), text.to_owned()));
        if ending == "html" {
            source.split('<').filter_map(|part| part.split_once('>')).for_each(|(_, text)| add(text));
            continue;
        }
        let is_comment = |line: &str| ["//", "/*", "*"].iter().any(|start| line.trim_start().starts_with(start));
        for line in source.lines().filter(|line| !is_comment(line)) {
            line.split('"').skip(1).step_by(2).filter(|text| text.contains(' ')).for_each(&mut add);
        }
    }
}

#[test]
fn users_read_standard_words() {
    let mut found = Vec::new();
    collect_descriptions("the API document", &hotline::routes::document(), &mut found);
    collect_descriptions("the panel's API document", &hotline::routes::panel_document(), &mut found);
    collect_help(&hotline::cli::command(), &mut found);
    let described = found.len();
    collect_messages(&mut found);
    let in_code = found.len() - described;
    collect_pages(&mut found);
    let in_pages = found.len() - described - in_code;
    assert!(described > 1000 && in_code > 500 && in_pages > 500, "{described}, {in_code} and {in_pages} texts");
    let mut wrong: Vec<String> = found
        .into_iter()
        .map(|(place, text)| (place, dialect_words(&text), text))
        .filter(|(_, words, _)| !words.is_empty())
        .map(|(place, words, text)| format!("{place}: {}: {text}", words.join(", ")))
        .collect();
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "users would not expect these words:\n{}", wrong.join("\n"));
}

#[test]
fn only_whole_words_outside_of_code_are_found() {
    for (text, words) in [
        ("The file is gone.", 1),
        ("Nobody was TOLD.", 2),
        ("responded with 410 Gone", 0),
        ("bygone", 0),
        ("delivered_through", 0),
        ("`told` and {told}", 0),
        ("as it is. Good morning", 0),
        ("one’s own", 1),
    ] {
        assert_eq!(dialect_words(text).len(), words, "{text}");
    }
}
