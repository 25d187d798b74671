//! The alert rules and the runbook are those of this release: every metric in a rule exists, every alert and every
//! condition has its row, and every log line in the runbook is written by the service.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hotline::telemetry::conditions::Condition;

use crate::floors::CRATES;

const RULES: &str = "packaging/prometheus/hotline.rules.yml";
const RUNBOOK: &str = "docs/operate/runbook.md";

/// Metrics that Prometheus makes itself.
const PROMETHEUS_METRICS: [&str; 1] = ["up"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The values of a key of the rules, in order; a folded value becomes one line.
fn values(rules: &str, key: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = rules.lines().collect();
    let found = lines.iter().enumerate().filter_map(|(index, line)| {
        let value = line.trim_start_matches([' ', '-']).strip_prefix(key)?.trim();
        if value != ">-" {
            return Some(value.to_owned());
        }
        let folded = lines[index + 1..].iter().take_while(|next| indent(next) > indent(line));
        Some(folded.map(|next| next.trim()).collect::<Vec<_>>().join(" "))
    });
    found.collect()
}

/// The names in a text that may be metrics.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.filter(|word| word.starts_with("hotline_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// The first cells of the rows below a heading of the runbook.
fn rows(runbook: &str, heading: &str) -> Vec<String> {
    let section = runbook.split("\n## ").find(|section| section.starts_with(heading)).expect("the section");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    cells.map(|(cell, _)| cell.to_owned()).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            found.push(entry);
        }
    }
}

#[test]
fn every_metric_of_the_alert_rules_is_documented() {
    let documented = names(&read("docs/metrics.md"));
    let rules = read(RULES);
    let expressions = values(&rules, "expr:");
    assert!(expressions.len() > 20, "{expressions:?}");
    for expression in expressions {
        let used = names(&expression);
        assert!(!used.is_empty() || PROMETHEUS_METRICS.iter().any(|name| expression.starts_with(name)), "{expression}");
        let unknown: Vec<_> = used.difference(&documented).collect();
        assert!(unknown.is_empty(), "{expression}: {unknown:?}");
        // With a condition that does not exist, it would never alert.
        for label in expression.split("condition=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(Condition::ALL.iter().any(|condition| condition.name() == label), "{expression}");
        }
    }
}

#[test]
fn every_metric_of_the_pages_for_operators_is_documented() {
    let documented = names(&read("docs/metrics.md"));
    for page in
        ["docs/operate/runbook.md", "docs/operate/monitoring.md", "docs/operate/sizing.md", "docs/benchmarks.md"]
    {
        let used = names(&read(page));
        let unknown: Vec<_> = used.difference(&documented).collect();
        assert!(unknown.is_empty(), "{page}: {unknown:?}");
    }
    assert!(names(&read("docs/operate/monitoring.md")).len() > 5);
}

#[test]
fn every_alert_and_every_condition_has_a_row_in_the_runbook() {
    let (rules, runbook) = (read(RULES), read(RUNBOOK));
    let mut alerts = values(&rules, "alert:");
    let mut described = rows(&runbook, "Alerts");
    alerts.sort();
    described.sort();
    assert_eq!(alerts, described);
    let lines = rows(&runbook, "Log lines");
    let expressions = values(&rules, "expr:");
    for condition in Condition::ALL {
        assert!(lines.iter().any(|line| line == condition.message()), "no row for: {}", condition.message());
        let expression = match condition {
            // Its metric names the process that is not reached.
            Condition::Peer => "hotline_cluster_peer_reachable == 0".to_owned(),
            condition => format!("hotline_condition{{condition=\"{}\"}} == 1", condition.name()),
        };
        assert!(expressions.contains(&expression), "no alert for {}", condition.name());
    }
    // Every alert that a row refers to exists.
    for name in runbook.split('`').skip(1).step_by(2).filter(|code| code.starts_with("Hotline") && !code.contains(' '))
    {
        assert!(alerts.iter().any(|alert| alert == name), "{name} is not an alert");
    }
}

#[test]
fn every_log_line_of_the_runbook_is_in_the_sources() {
    let mut files = Vec::new();
    CRATES.iter().for_each(|folder| sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files));
    let all: String = files.iter().map(|file| std::fs::read_to_string(file).expect("a file")).collect();
    let lines = rows(&read(RUNBOOK), "Log lines");
    assert!(lines.len() > 20, "{lines:?}");
    for line in lines {
        // A long line ends with what to do, which the row has in other words.
        let is_written = [&format!("\"{line}\""), &format!("\"{line}:")].iter().any(|text| all.contains(*text));
        assert!(is_written, "no source writes: {line}");
    }
}

/// The least number of faults whose test and line are compared.
const FAULTS_MIN: usize = 25;

#[test]
fn each_fault_has_a_test_and_the_log_line_of_its_row_in_the_runbook() {
    let lines = rows(&read(RUNBOOK), "Log lines");
    let faults = read("tests/contract/faults.tsv");
    let faults: Vec<Vec<&str>> =
        faults.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect()).collect();
    assert!(faults.len() >= FAULTS_MIN, "{}", faults.len());
    for fault in faults {
        let [fault, test, line] = fault[..] else { panic!("not three columns: {fault:?}") };
        let (file, name) = test.split_once(' ').expect("a file and a test");
        let text = read(file);
        assert!(text.contains(&format!("async fn {name}()")), "{fault}: {file} has no test {name}");
        if line == "-" {
            continue;
        }
        assert!(lines.iter().any(|row| row == line), "{fault}: no row in {RUNBOOK} for: {line}");
        assert!(text.contains(line), "{fault}: {file} does not look for: {line}");
    }
}

#[test]
fn the_page_of_the_metrics_lists_every_condition() {
    let metrics = read("docs/metrics.md");
    let row = metrics.lines().find(|line| line.contains("hotline_condition{condition}")).expect("its row");
    for condition in Condition::ALL {
        assert!(row.contains(&format!("`{}`", condition.name())), "{} is not documented", condition.name());
    }
}
