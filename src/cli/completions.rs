//! `hotline completions`: completions of the command line for shells.

use std::io::Write;

use clap::{Arg, Command};
use clap_complete::Shell;

use super::Failure;

/// Prints the completions for a shell.
pub fn run(shell: Shell) -> Result<(), Failure> {
    std::io::stdout().write_all(&script(shell))?;
    Ok(())
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&super::command()), "hotline", &mut script);
    script
}

/// The command without hidden options, which the generators do not leave out.
fn visible(command: &Command) -> Command {
    let options = command.get_arguments().filter(|option| !option.is_hide_set()).map(plain);
    let below = command.get_subcommands().map(visible);
    let visible = Command::new(command.get_name().to_owned()).args(options).subcommands(below);
    let visible = match command.get_version() {
        Some(version) => visible.version(version.to_owned()),
        None => visible,
    };
    match command.get_about() {
        Some(about) => visible.about(about.clone()),
        None => visible,
    }
}

/// An option without its relations to others, which may be hidden.
fn plain(option: &Arg) -> Arg {
    let plain = Arg::new(option.get_id().clone())
        .action(option.get_action().clone())
        .value_parser(option.get_value_parser().clone())
        .value_hint(option.get_value_hint())
        .require_equals(option.is_require_equals_set())
        .global(option.is_global_set());
    let plain = match option.get_help() {
        Some(help) => plain.help(help.clone()),
        None => plain,
    };
    let plain = match option.get_long() {
        Some(long) => plain.long(long.to_owned()),
        None => plain,
    };
    match option.get_num_args() {
        Some(count) => plain.num_args(count),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    /// Adds the options of a command and of its subcommands, and the names of the subcommands.
    fn words(command: &Command, is_hidden: bool, words: &mut Vec<String>) {
        for option in command.get_arguments() {
            let aliases = option.get_all_aliases().unwrap_or_default();
            let names = if is_hidden { aliases } else { Vec::new() };
            let name = option.get_long().filter(|_| option.is_hide_set() == is_hidden);
            words.extend(names.into_iter().chain(name).map(|name| format!("--{name}")));
        }
        for below in command.get_subcommands() {
            if !is_hidden {
                words.push(below.get_name().to_owned());
            }
            self::words(below, is_hidden, words);
        }
    }

    #[test]
    fn every_shell_completes_what_is_visible_and_nothing_else() {
        let command = crate::cli::command();
        let (mut visible, mut hidden) = (Vec::new(), Vec::new());
        words(&command, false, &mut visible);
        words(&command, true, &mut hidden);
        // An old spelling of one command may be the option of another, as `--name` is.
        hidden.retain(|word| !visible.contains(word));
        assert!(visible.len() > 100 && hidden.len() > 20, "{} and {}", visible.len(), hidden.len());
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).expect("text");
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            // Fish names options without hyphens.
            let found = |word: &str| {
                let bare = word.trim_start_matches('-');
                script.match_indices(bare).any(|(at, _)| {
                    let before = script[..at].trim_end_matches('-').chars().next_back();
                    let after = script[at + bare.len()..].chars().next();
                    !before.is_some_and(is_part) && !after.is_some_and(is_part)
                })
            };
            let missing: Vec<&String> = visible.iter().filter(|word| !found(word)).collect();
            assert!(missing.is_empty(), "{shell} does not complete {missing:?}");
            let surplus: Vec<&String> =
                hidden.iter().filter(|word| script.contains(word.as_str()) && found(word)).collect();
            assert!(surplus.is_empty(), "{shell} completes {surplus:?}");
        }
    }
}
