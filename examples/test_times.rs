//! Where the time of a test run went: the slowest tests and the slowest files, from the JUnit reports that are named.
//!
//! `cargo run -q --example test_times -- target/nextest/default/junit.xml target/nextest/browser.xml`; `make test` ends with it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// How many tests, and how many files, are listed.
const SLOWEST: usize = 50;

type Problem = Box<dyn std::error::Error>;

/// A test that was run.
struct Test {
    /// The file it is in, as far as its name shows.
    file: String,
    name: String,
    seconds: f64,
}

fn main() -> Result<(), Problem> {
    let mut tests = Vec::new();
    for report in std::env::args().skip(1) {
        match std::fs::read_to_string(&report) {
            Ok(xml) => read(&xml, &mut tests).map_err(|error| format!("{report}: {error}"))?,
            Err(error) => println!("{report} is not counted: {error}"),
        }
    }
    let total: f64 = tests.iter().map(|test| test.seconds).sum();
    tests.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    println!("== the {SLOWEST} slowest of {} tests, which took {total:.0} s together ==", tests.len());
    for Test { file, name, seconds } in tests.iter().take(SLOWEST) {
        println!("{seconds:8.2} s  {file}  {name}");
    }
    let mut files: HashMap<&str, (f64, usize)> = HashMap::new();
    for test in &tests {
        let (seconds, count) = files.entry(&test.file).or_default();
        *seconds += test.seconds;
        *count += 1;
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|(_, (one, _)), (_, (other, _))| other.total_cmp(one));
    println!("== the {SLOWEST} slowest of {} files ==", files.len());
    for (file, (seconds, count)) in files.iter().take(SLOWEST) {
        println!("{seconds:8.2} s  {count:4} tests  {file}");
    }
    Ok(())
}

/// Reads the tests of a report.
fn read(xml: &str, tests: &mut Vec<Test>) -> Result<(), Problem> {
    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event()? {
            Event::Start(element) | Event::Empty(element) if element.name().as_ref() == b"testcase" => {
                tests.push(parse_test(&element)?);
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

fn parse_test(element: &BytesStart<'_>) -> Result<Test, Problem> {
    let attribute = |name: &str| -> Result<Option<String>, Problem> {
        let Some(found) = element.try_get_attribute(name)? else { return Ok(None) };
        Ok(Some(found.normalized_value(XmlVersion::Implicit1_0)?.into_owned()))
    };
    let name = attribute("name")?.unwrap_or_default();
    let binary = attribute("classname")?.unwrap_or_default();
    let file = attribute("file")?.unwrap_or_else(|| file_of(&binary, &name));
    let seconds = attribute("time")?.unwrap_or_default().parse()?;
    Ok(Test { file, name, seconds })
}

/// The file of a test by its binary, as nextest names it, and the modules of its name.
fn file_of(binary: &str, name: &str) -> String {
    let folder = match binary.split_once("::") {
        Some((_, target)) => Path::new("tests").join(target),
        None => match binary {
            "hotline" => PathBuf::from("src"),
            "hotline-actors" => PathBuf::from("actors/src"),
            "hotline-persistence" => PathBuf::from("persistence/src"),
            "hotline-postgres" => PathBuf::from("persistence/postgres/src"),
            other => PathBuf::from(other),
        },
    };
    let mut modules: Vec<&str> = name.split("::").collect();
    while modules.pop().is_some() {
        let module = modules.iter().fold(folder.clone(), |path, module| path.join(module));
        let found = [module.with_extension("rs"), module.join("mod.rs")].into_iter().find(|file| file.is_file());
        if let Some(file) = found {
            return file.display().to_string();
        }
    }
    folder.display().to_string()
}
