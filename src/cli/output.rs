//! The output of commands: text for people, or one JSON object.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use clap::Args;
use serde::Serialize;
use serde_json::Value;

/// The format of the output.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputArgs {
    /// Print the result as JSON
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
}

impl OutputArgs {
    /// Prints one record: one line per field, or as JSON.
    pub fn one(self, record: impl Serialize) -> Result<(), super::Failure> {
        let record = serde_json::to_value(record)?;
        if self.json {
            print(record)?;
        } else if let Some(fields) = record.as_object() {
            for (name, value) in fields {
                print(format_args!("{name:<16} {}", plain_text(value)))?;
            }
        }
        Ok(())
    }

    /// Prints a list: a header and one line per record, or `{"<noun>": […]}`.
    pub fn many(self, noun: &str, columns: &[&str], records: impl Serialize) -> Result<(), super::Failure> {
        self.lists([(noun, columns, serde_json::to_value(records)?)])
    }

    /// Prints several lists, with an empty line in between, or all of them in one object.
    pub fn lists<'a>(
        self,
        lists: impl IntoIterator<Item = (&'a str, &'a [&'a str], Value)>,
    ) -> Result<(), super::Failure> {
        if self.json {
            let all: serde_json::Map<_, _> =
                lists.into_iter().map(|(noun, _, records)| (noun.to_owned(), records)).collect();
            return print(Value::Object(all));
        }
        for (index, (_, columns, records)) in lists.into_iter().enumerate() {
            if index > 0 {
                print("")?;
            }
            print_table(columns, &records)?;
        }
        Ok(())
    }
}

/// Prints a line. It is not an error if the reader of standard output has ended, as `head` does when it has enough
/// lines.
pub fn print(line: impl Display) -> Result<(), super::Failure> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints a header and one line per record.
fn print_table(columns: &[&str], records: &Value) -> Result<(), super::Failure> {
    let names = columns.iter().map(|name| (*name).to_owned()).collect();
    let values = |record: &Value| columns.iter().map(|name| plain_text(&record[*name])).collect();
    let rows: Vec<Vec<String>> =
        std::iter::once(names).chain(records.as_array().into_iter().flatten().map(values)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        print(cells.collect::<Vec<String>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Array(values) if values.is_empty() => "-".to_owned(),
        Value::Array(values) => values.iter().map(plain_text).collect::<Vec<String>>().join(","),
        other => other.to_string(),
    }
}
