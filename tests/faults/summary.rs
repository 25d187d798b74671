//! The table of results: each run is a row, and the file is complete after each run.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::checker::Verdict;

const HEAD: &str = "| fault | promised | seen | acknowledged | refused | unknown | lost | s | |\n\
                    |---|---|---|--:|--:|--:|--:|--:|---|\n";

/// How a row ends, and how the totals find it.
const PASSED: &str = "| passed |";
const NOT_RUN: &str = "| **not run** |";
/// The run contradicts an acknowledgement: another run that passes does not undo that.
const CONTRADICTED: &str = "| **failed**, and stays so |";

/// The row of one run. It shows the run as failed until the result is written.
pub struct Row {
    /// Its place in the table.
    place: u32,
    fault: &'static str,
    promised: &'static str,
    begun: Instant,
}

impl Row {
    /// Begins the row of a run. A run that failed for lack of time may be tried again; one whose record was
    /// contradicted fails for good.
    pub fn begin(place: u32, fault: &'static str, promised: &'static str) -> Self {
        let row = Self { place, fault, promised, begun: Instant::now() };
        let before = fs::read_to_string(row.file()).unwrap_or_default();
        assert!(!before.trim_end().ends_with(CONTRADICTED), "the record of an earlier try was contradicted: {before}");
        row.write("it did not come to an end", "| | | | ", "| **failed** |");
        row
    }

    /// Notes what was seen, and fails the test unless the record holds.
    #[track_caller]
    pub fn end(self, verdict: &Verdict, seen: &str) {
        let Verdict { acknowledged, refused, unknown, lost, .. } = verdict;
        let counts = format!("| {acknowledged} | {refused} | {unknown} | {lost} ");
        let result = if verdict.contradictions.is_empty() { PASSED } else { CONTRADICTED };
        self.write(seen, &counts, result);
        println!("{}: {seen}; {verdict:?}", self.fault);
        let shown = &verdict.contradictions[..verdict.contradictions.len().min(SHOWN_MAX)];
        assert!(shown.is_empty(), "{} contradictions, among them {shown:#?}", verdict.contradictions.len());
    }

    /// The run is not possible on this machine.
    pub fn not_run(self, why: &str) {
        println!("NOT RUN: {}: {why}", self.fault);
        self.write(why, "| | | | ", NOT_RUN);
    }

    fn write(&self, seen: &str, counts: &str, result: &str) {
        let Self { fault, promised, begun, .. } = self;
        let seen = seen.replace(['|', '\n'], " ");
        let row = format!("| {fault} | {promised} | {seen} {counts}| {:.0} {result}\n", begun.elapsed().as_secs_f64());
        let folder = folder();
        let rows = folder.join("rows");
        fs::create_dir_all(&rows).expect("the summary's folder");
        fs::write(self.file(), row).expect("a row");
        fs::write(folder.join("summary.md"), summary(&rows)).expect("the summary");
    }

    fn file(&self) -> PathBuf {
        folder().join("rows").join(format!("{:02}.md", self.place))
    }
}

/// How many contradictions a failure shows; the first ones are the most useful.
const SHOWN_MAX: usize = 20;

/// The folder of the summary, below `target`.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join(crate::SUMMARY_FOLDER)
}

fn summary(rows: &Path) -> String {
    let mut files: Vec<PathBuf> = fs::read_dir(rows).expect("rows").map(|row| row.expect("a row").path()).collect();
    files.sort();
    let rows: String = files.iter().map(|row| fs::read_to_string(row).expect("a row")).collect();
    let count = |end: &str| rows.lines().filter(|row| row.ends_with(end)).count();
    let (passed, not_run) = (count(PASSED), count(NOT_RUN));
    let failed = files.len() - passed - not_run;
    let mut text = format!("# Fault runs\n\n{HEAD}{rows}\n");
    writeln!(text, "{} runs: {passed} passed, {failed} failed, {not_run} not run.", files.len()).expect("a string");
    text
}
