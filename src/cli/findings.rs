//! The output of commands that examine an installation, like `doctor`: a line for each check with what to do, and
//! an exit code.

use serde::Serialize;

use super::output::OutputArgs;
use super::{Failure, Refusal};
use crate::exit_code::Exit;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    /// Worth knowing; nothing is wrong.
    Note,
    Problem,
}

/// A line of the output.
#[derive(Debug, Serialize)]
pub struct Finding {
    check: &'static str,
    result: Outcome,
    found: String,
    /// What to do.
    next: Option<String>,
}

impl Finding {
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, result: Outcome::Ok, found: found.into(), next: None }
    }

    pub fn note(check: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, result: Outcome::Note, found: found.into(), next: Some(next.into()) }
    }

    pub fn problem(check: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, result: Outcome::Problem, found: found.into(), next: Some(next.into()) }
    }
}

/// Prints the findings.
///
/// # Errors
/// If there is a problem.
pub fn print_findings(findings: Vec<Finding>, output: OutputArgs) -> Result<(), Failure> {
    let problems = findings.iter().filter(|finding| finding.result == Outcome::Problem);
    let problems = problems.map(|finding| finding.check).collect::<Vec<_>>().join(", ");
    output.many("checks", &["check", "result", "found", "next"], findings)?;
    if problems.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(Exit::Finding, format!("checks with a problem: {problems}")).into())
}
