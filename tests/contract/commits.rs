//! `tools/check-commits` accepts commit messages of the form that CONTRIBUTING.md describes, and refuses others.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::NamedTempFile;

/// Whether the script accepts a message, and what it writes about it.
fn check(message: &str) -> (bool, String) {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(message.as_bytes()).expect("written");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/check-commits");
    let output = Command::new(script).arg("--message").arg(file.path()).output().expect("the script runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_message_with_a_scope_and_an_imperative_is_accepted() {
    let longest = format!("docs: explain {}", "ü".repeat(58));
    assert_eq!(longest.chars().count(), 72);
    for message in [
        "tickets: refuse a second close",
        "tickets, web: process what waits\n\nA reason.\n",
        "\n# A comment of git's.\nactors/sending: need one look-up\n# Another.\n",
        "web: name `Route`\n# ------------------------ >8 ------------------------\ndiff of what is recorded",
        "Merge branch 'outbox'",
        "Revert \"tickets: refuse a second close\"",
        "fixup! tickets: refuse a second close",
        // Git itself refuses an empty message.
        "",
        longest.as_str(),
    ] {
        let (is_accepted, report) = check(message);
        assert!(is_accepted && report.is_empty(), "{message}: {report}");
    }
}

/// Messages that are refused, and a part of each reason.
const REFUSED: &[(&str, &[&str])] = &[
    ("Refuse a second close", &["does not begin with a scope"]),
    ("Tickets: refuse a second close", &["does not begin with a scope"]),
    ("tickets: refused a second close.", &["`refused` does not look like", "ends with a period"]),
    ("tickets: refuses a second close", &["`refuses` does not look like"]),
    ("tickets: refusing a second close", &["`refusing` does not look like"]),
    ("tickets: a second close is refused", &["`a` does not look like"]),
    ("tickets: refuse a second close\nA reason.", &["the line after the subject is not empty"]),
    (
        "tickets: refuse a second close of a ticket that an agent has closed already",
        &["the subject has 75 characters; at most 72"],
    ),
];

#[test]
fn a_message_of_another_form_is_refused_with_each_reason() {
    for (message, reasons) in REFUSED {
        let (is_accepted, report) = check(message);
        assert!(!is_accepted, "{message} is accepted");
        for reason in *reasons {
            assert!(report.contains(reason), "{message}: {report}");
        }
        // The report has the subject, the reasons, and a line that names CONTRIBUTING.md.
        assert_eq!(report.lines().count(), reasons.len() + 2, "{message}: {report}");
    }
}
