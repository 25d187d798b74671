//! `hotline config`: the options with which `serve` would run, and where each comes from.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command as Declaration, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::masking::{MASK, masked_url};
use super::{Cli, Failure, GlobalArgs, Refusal, config_file, failure};
use crate::telemetry;

/// Options whose whole value is masked if it is not a URL.
const SECRET_OPTIONS: [&str; 2] = ["database-url", "smtp-url"];

#[derive(Subcommand)]
pub enum Command {
    /// Check the options of `serve` that the environment and the configuration file set; exits with status 78 if one is
    /// invalid
    Check,
    /// Print every option of `serve` with its value and where it is set; passwords are masked
    Print,
}

/// An option, with the value that is in effect.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct EffectiveOption {
    option: String,
    value: Option<String>,
    source: &'static str,
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    let invalid = |failure: Failure| Refusal::configuration(failure::message_with_causes(&*failure));
    let service = Cli::read_service().map_err(invalid)?;
    match command {
        Command::Check => {
            service.args.settings(&service.database).map_err(|error| invalid(error.into()))?;
            telemetry::filter(service.args.logs.log_filter.as_deref()).map_err(|error| invalid(error.into()))?;
            global.output.one(json!({"configuration": "valid"}))
        }
        Command::Print => global.output.many("options", &["option", "value", "source"], service.options),
    }
}

/// The options that are set, for the log.
pub(super) fn explicit_options_text(options: &[EffectiveOption]) -> String {
    let set_options = options.iter().filter(|option| option.source != "default");
    let texts = set_options.map(|EffectiveOption { option, value, source }| {
        format!("{option}={} ({source})", value.as_deref().unwrap_or_default())
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Every option of the service in these matches; `options_in_file` are those that the configuration file sets.
pub(super) fn effective_options(
    declaration: &Declaration,
    matches: &ArgMatches,
    options_in_file: &[String],
) -> Vec<EffectiveOption> {
    let serve_options = declaration.find_subcommand("serve").into_iter().flat_map(Declaration::get_arguments);
    let database_options = declaration.get_arguments().filter(|option| config_file::is_database_option(option));
    let visible = database_options.chain(serve_options).filter(|option| !option.is_hide_set());
    visible.filter_map(|option| effective_option(option, matches, options_in_file)).collect()
}

fn effective_option(option: &Arg, matches: &ArgMatches, options_in_file: &[String]) -> Option<EffectiveOption> {
    let (id, long) = (option.get_id().as_str(), option.get_long()?);
    let values = matches.try_get_raw(id).ok().flatten();
    let value = values.map(|values| {
        let values = values.map(|value| mask_password(long, &value.to_string_lossy()));
        values.collect::<Vec<_>>().join(",")
    });
    let source = match matches.value_source(id) {
        Some(ValueSource::CommandLine) => "command line",
        Some(ValueSource::EnvVariable) => "environment",
        _ if options_in_file.iter().any(|name| name == long) => "file",
        _ => "default",
    };
    Some(EffectiveOption { option: long.to_owned(), value, source })
}

/// The value without passwords.
fn mask_password(option: &str, value: &str) -> String {
    match masked_url(value) {
        Some(url) => url,
        None if SECRET_OPTIONS.contains(&option) => MASK.to_owned(),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_and_everything_else_is_shown() {
        for (option, value, shown) in [
            ("database-url", "postgres://hotline:hidden@db/hotline", "postgres://hotline:***@db/hotline"),
            (
                "database-url",
                "postgres://db/hotline?password=hidden&sslmode=require",
                "postgres://db/hotline?password=***&sslmode=require",
            ),
            ("database-url", "host=db password=hidden", "***"),
            ("database-url", "hotline:hidden@db.example", "***"),
            ("database-url", "postgres://hotline:/hidden@db/hotline", "***"),
            ("smtp-url", "smtps://desk:12/hidden@relay", "***"),
            ("smtp-url", "smtp//user:hidden@relay", "***"),
            ("smtp-url", "user:hidden@relay:465", "***"),
            ("smtp-url", "smtps://user:hidden@relay:465", "smtps://user:***@relay:465"),
            ("listen", "127.0.0.1:8080", "127.0.0.1:8080"),
            ("public-url", "https://support.example", "https://support.example"),
        ] {
            assert_eq!(mask_password(option, value), shown);
        }
    }
}
