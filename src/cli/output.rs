//! What a command prints: for people, or one JSON object.

use clap::Args;
use serde::Serialize;
use serde_json::Value;

/// How a command answers.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputArgs {
    /// Answer one JSON object
    #[arg(long)]
    pub json: bool,
}

impl OutputArgs {
    /// Prints one record: its fields a line each, or as they are.
    pub fn one(self, record: impl Serialize) -> Result<(), super::Failure> {
        let record = serde_json::to_value(record)?;
        if self.json {
            println!("{record}");
        } else if let Some(fields) = record.as_object() {
            for (name, value) in fields {
                println!("{name:<16} {}", plain(value));
            }
        }
        Ok(())
    }

    /// Prints a list: a line each, with the fields named, or `{"<noun>": […]}`.
    pub fn many(self, noun: &str, shown: &[&str], records: impl Serialize) -> Result<(), super::Failure> {
        let records = serde_json::to_value(records)?;
        if self.json {
            println!("{}", serde_json::json!({ noun: records }));
            return Ok(());
        }
        for record in records.as_array().into_iter().flatten() {
            let columns: Vec<String> = shown.iter().map(|name| plain(&record[*name])).collect();
            println!("{}", columns.join("  "));
        }
        Ok(())
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
