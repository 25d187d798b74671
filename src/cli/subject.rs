//! The name of a new record, given as a positional argument or, in the old spelling, by `--name`.

use clap::Args;

/// The name of a new record.
#[derive(Args)]
pub struct NameArgs {
    /// Name
    #[arg(required_unless_present = "name_option")]
    name: Option<String>,
    /// Old spelling of NAME
    #[arg(long = "name", value_name = "NAME", hide = true, conflicts_with = "name")]
    name_option: Option<String>,
}

impl NameArgs {
    /// The name: one of the two is always given.
    pub fn get(&self) -> &str {
        self.name.as_deref().or(self.name_option.as_deref()).unwrap_or_default()
    }
}
