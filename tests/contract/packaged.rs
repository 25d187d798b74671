//! The configuration file of the package explains every option of the service, as `--help` does, and the service reads
//! it as it is.

use std::any::TypeId;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command};

use crate::support::process::hotline as hotline_command;
use crate::written::own_options;

/// The options whose values the package sets.
const PACKAGE_VALUES: [(&str, &str); 1] = [("data-dir", "/var/lib/hotline")];

/// How wide a line is at most, if its words allow it.
const WIDTH: usize = 100;

fn configuration_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/hotline.toml")
}

/// The text as comments.
fn comment(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("a line");
        if !last.is_empty() && last.len() + 1 + word.len() > WIDTH - 2 {
            lines.push(word.to_owned());
            continue;
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines.iter().map(|line| format!("# {line}\n")).collect()
}

/// Whether a value is written without quotes.
fn is_bare(parser: &ValueParser) -> bool {
    let numbers = [TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<i64>(), TypeId::of::<bool>()];
    numbers.iter().any(|number| parser.type_id() == *number)
}

/// The option as a line, and whether it is a default that the service would read.
fn line(option: &Arg) -> (String, bool) {
    let long = option.get_long().expect("options have names");
    let set = PACKAGE_VALUES.iter().find(|(name, _)| *name == long).map(|(_, value)| (*value).to_owned());
    let defaults: Vec<_> =
        option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let names = option.get_value_names().unwrap_or_default();
    let placeholder = names.first().map(ToString::to_string).unwrap_or_default();
    let value = set.clone().or_else(|| (!defaults.is_empty()).then(|| defaults.join(",")));
    let is_default = value.is_some();
    let value = value.unwrap_or(placeholder);
    let value = if is_bare(option.get_value_parser()) { value } else { format!("\"{value}\"") };
    let value = if matches!(option.get_action(), ArgAction::Append) { format!("[{value}]") } else { value };
    let key = long.replace('-', "_");
    (format!("{}{key} = {value}\n", if set.is_some() { "" } else { "#" }), is_default && set.is_none())
}

fn options(cli: &Command) -> Vec<&Arg> {
    let serve = cli.find_subcommand("serve").expect("serve");
    let of_database = own_options(cli).filter(|option| option.get_help_heading() == Some("Database"));
    of_database.chain(own_options(serve)).collect()
}

/// The file as it should be.
fn configuration() -> String {
    let mut text = "# The configuration of the Hotline service: every option, with its default or the form of its value.\n\
                    # Remove the `#` of a line to change it, then run `systemctl restart hotline`.\n\
                    #\n\
                    # Variables in /etc/default/hotline override this file. It may hold passwords: it belongs to root, and\n\
                    # only the group hotline reads it. https://github.com/hotline-hq/hotline/blob/main/docs/configuration.md\n"
        .to_owned();
    let cli = hotline::cli::command();
    let mut heading = None;
    for option in options(&cli) {
        if option.get_help_heading() != heading {
            heading = option.get_help_heading();
            let heading = heading.expect("each option of the service has a heading");
            write!(text, "\n\n# {heading}\n# {}\n", "-".repeat(heading.len())).expect("written");
        }
        let meaning = option.get_help().map(ToString::to_string).unwrap_or_default();
        write!(text, "\n{}{}", comment(&meaning), line(option).0).expect("written");
    }
    text
}

#[test]
fn the_packages_file_explains_every_option() {
    let expected = configuration();
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(configuration_path(), expected).expect("written");
        return;
    }
    let written = std::fs::read_to_string(configuration_path()).unwrap_or_default();
    assert!(written == expected, "packaging/hotline.toml differs from --help: run `make configuration`");
    let cli = hotline::cli::command();
    assert!(options(&cli).len() > 40, "few options are found");
}

#[test]
fn each_default_of_the_packages_file_is_read_by_the_service() {
    let cli = hotline::cli::command();
    let lines = options(&cli).into_iter().map(line).filter(|(_, is_default)| *is_default);
    let defaults: String = lines.map(|(line, _)| line.trim_start_matches('#').to_owned()).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hotline.toml");
    std::fs::write(&file, defaults).expect("written");
    // Any command would do: each of them reads the file, and refuses a key or a value that it does not know.
    let read = hotline_command().args(["completions", "bash", "--config"]).arg(&file).output().expect("hotline runs");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    std::fs::write(&file, "idle_after = \"never\"\n").expect("written");
    let refused =
        hotline_command().args(["completions", "bash", "--config"]).arg(&file).output().expect("hotline runs");
    assert!(!refused.status.success(), "the file is not read");
}
