//! Boolean options, all in one form: `--flag`, `--flag=true` and `--flag=false`.

use std::any::TypeId;

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};

/// Gives each boolean option of the command and of those below it this form, unless it declares another one.
pub fn complete(command: Command) -> Command {
    command
        .mut_args(|option| if is_plain(&option) { complete_option(option) } else { option })
        .mut_subcommands(complete)
}

fn is_plain(option: &Arg) -> bool {
    let is_boolean = option.get_value_parser().type_id() == TypeId::of::<bool>();
    let is_set = matches!(option.get_action(), ArgAction::Set | ArgAction::SetTrue);
    is_boolean && is_set && option.get_num_args().is_none()
}

fn complete_option(option: Arg) -> Arg {
    // `Option<bool>` has no default: without the option, the stored value stays.
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    let option = option
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .value_name("true|false")
        .value_parser(BoolishValueParser::new())
        .hide_possible_values(true);
    if is_flag { option.default_value("false").hide_default_value(true) } else { option }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_and_an_optional_flag_take_an_optional_value() {
        let flag = Arg::new("flag").long("flag").action(ArgAction::SetTrue).value_parser(clap::value_parser!(bool));
        let change = Arg::new("change").long("change").value_parser(clap::value_parser!(bool));
        let command = complete(Command::new("hotline").no_binary_name(true).args([flag, change]));
        let read = |line: &[&str]| {
            let matches =
                command.clone().try_get_matches_from(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            (matches.get_one::<bool>("flag").copied(), matches.get_one::<bool>("change").copied())
        };
        assert_eq!(read(&[]), (Some(false), None));
        assert_eq!(read(&["--flag", "--change"]), (Some(true), Some(true)));
        assert_eq!(read(&["--flag=false", "--change=false"]), (Some(false), Some(false)));
        assert_eq!(read(&["--flag=true", "--change=yes"]), (Some(true), Some(true)));
        for line in [&["--flag=perhaps"][..], &["--change", "false"]] {
            assert!(command.clone().try_get_matches_from(line).is_err(), "{line:?}");
        }
    }
}
