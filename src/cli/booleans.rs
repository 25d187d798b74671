//! Gives all boolean options the same form: `--flag`, `--flag=true` and `--flag=false`.

use std::any::TypeId;

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};

/// Gives the boolean options of a command and of its subcommands this form, except options that declare another one.
pub fn unify_booleans(command: Command) -> Command {
    command
        .mut_args(|option| if has_default_form(&option) { unify_option(option) } else { option })
        .mut_subcommands(unify_booleans)
}

fn has_default_form(option: &Arg) -> bool {
    let is_boolean = option.get_value_parser().type_id() == TypeId::of::<bool>();
    let sets_value = matches!(option.get_action(), ArgAction::Set | ArgAction::SetTrue);
    is_boolean && sets_value && option.get_num_args().is_none()
}

fn unify_option(option: Arg) -> Arg {
    // Only a flag has a default: if an option of type `Option<bool>` is omitted, the stored value stays.
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
        let command = unify_booleans(Command::new("hotline").no_binary_name(true).args([flag, change]));
        let parse = |arguments: &[&str]| {
            let matches = command
                .clone()
                .try_get_matches_from(arguments)
                .unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
            (matches.get_one::<bool>("flag").copied(), matches.get_one::<bool>("change").copied())
        };
        assert_eq!(parse(&[]), (Some(false), None));
        assert_eq!(parse(&["--flag", "--change"]), (Some(true), Some(true)));
        assert_eq!(parse(&["--flag=false", "--change=false"]), (Some(false), Some(false)));
        assert_eq!(parse(&["--flag=true", "--change=yes"]), (Some(true), Some(true)));
        for arguments in [&["--flag=perhaps"][..], &["--change", "false"]] {
            assert!(command.clone().try_get_matches_from(arguments).is_err(), "{arguments:?}");
        }
    }
}
