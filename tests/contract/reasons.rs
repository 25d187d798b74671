//! Every reason for which a field is refused has a code for programs.

use std::path::{Path, PathBuf};

use hotline::web::response::error::{OTHER_REASON, code_of_reason, reason_codes};

/// What a reason begins with: it is a phrase that follows the name of a field.
const BEGINNINGS: [&str; 11] =
    ["must", "is", "are", "cannot", "has", "names", "holds", "does", "contains", "would", "makes"];

/// Where texts with these beginnings are not reasons for callers of the API: the command line, configuration and its
/// files, logs, documents.
const ELSEWHERE: [&str; 9] = [
    "src/cli/",
    "src/config/",
    "src/mail/",
    "src/media/storage.rs",
    "src/metrics/",
    "src/openapi/",
    "src/web/response/error/",
    "src/cluster/",
    "src/panel/channels/secret.rs",
];

pub fn collect_sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            collect_sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

/// The texts in quotation marks of a file, without its tests and comments.
pub fn texts(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut texts = Vec::new();
    let mut characters = code.chars().peekable();
    let mut before = ' ';
    while let Some(character) = characters.next() {
        // The character literal `'"'` does not begin a text.
        if character == '"' && before != '\'' {
            let mut text = String::new();
            while let Some(character) = characters.next() {
                match character {
                    '"' => break,
                    '\\' if characters.peek() == Some(&'\n') => {
                        while characters.peek().is_some_and(|next| next.is_whitespace()) {
                            characters.next();
                        }
                    }
                    '\\' => text.extend(characters.next()),
                    other => text.push(other),
                }
            }
            texts.push(text);
        }
        before = character;
    }
    texts
}

/// The text with a number instead of each `{…}`.
fn filled(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |filled, part| filled + "7" + part.split_once('}').map_or("", |(_, rest)| rest))
}

#[test]
fn every_reason_in_the_code_has_a_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src/api", "src/panel", "src/templates", "src/visitors", "src/web", "src/webhooks", "actors/src"] {
        collect_sources(&root.join(folder), &mut files);
    }
    files.extend(["persistence/src/amount.rs", "persistence/src/password.rs"].map(|file| root.join(file)));
    let (mut seen, mut without_code) = (0, Vec::new());
    for file in files {
        let name = file.strip_prefix(root).expect("below the root").display().to_string();
        if name.contains("tests") || ELSEWHERE.iter().any(|elsewhere| name.starts_with(elsewhere)) {
            continue;
        }
        for text in texts(&std::fs::read_to_string(&file).expect("a file")) {
            let Some((first, _)) = text.split_once(' ') else { continue };
            if BEGINNINGS.contains(&first) {
                seen += 1;
                if code_of_reason(&filled(&text)).0 == OTHER_REASON {
                    without_code.push(format!("{name}: {text}"));
                }
            }
        }
    }
    assert!(seen > 100, "only {seen} reasons were found");
    assert!(
        without_code.is_empty(),
        "src/web/response/error/reasons.rs lacks a form of these:\n{}",
        without_code.join("\n")
    );
}

#[test]
fn every_code_is_in_the_document() {
    let document = hotline::routes::document();
    let listed = document["components"]["schemas"]["FieldError"]["properties"]["code"]["enum"].clone();
    assert_eq!(listed, serde_json::json!(reason_codes()));
}
