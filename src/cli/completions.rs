//! `hotline completions`: prints the command line's completions for a shell.

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
    clap_complete::generate(shell, &mut without_hidden_options(&super::command()), "hotline", &mut script);
    script
}

/// The command without hidden options, which the generators would include.
fn without_hidden_options(command: &Command) -> Command {
    let options = command.get_arguments().filter(|option| !option.is_hide_set()).map(without_relations);
    let subcommands = command.get_subcommands().map(without_hidden_options);
    let visible = Command::new(command.get_name().to_owned()).args(options).subcommands(subcommands);
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
fn without_relations(option: &Arg) -> Arg {
    let option_alone = Arg::new(option.get_id().clone())
        .action(option.get_action().clone())
        .value_parser(option.get_value_parser().clone())
        .value_hint(option.get_value_hint())
        .require_equals(option.is_require_equals_set())
        .global(option.is_global_set());
    let option_alone = match option.get_help() {
        Some(help) => option_alone.help(help.clone()),
        None => option_alone,
    };
    let option_alone = match option.get_long() {
        Some(long) => option_alone.long(long.to_owned()),
        None => option_alone,
    };
    match option.get_num_args() {
        Some(count) => option_alone.num_args(count),
        None => option_alone,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    /// Adds the visible options and names of a command and its subcommands, or their hidden options and aliases.
    fn collect_words(command: &Command, is_hidden: bool, words: &mut Vec<String>) {
        for option in command.get_arguments() {
            let aliases = option.get_all_aliases().unwrap_or_default();
            let names = if is_hidden { aliases } else { Vec::new() };
            let name = option.get_long().filter(|_| option.is_hide_set() == is_hidden);
            words.extend(names.into_iter().chain(name).map(|name| format!("--{name}")));
        }
        for subcommand in command.get_subcommands() {
            if !is_hidden {
                words.push(subcommand.get_name().to_owned());
            }
            collect_words(subcommand, is_hidden, words);
        }
    }

    #[test]
    fn every_shell_completes_what_is_visible_and_nothing_else() {
        let command = crate::cli::command();
        let (mut visible, mut hidden) = (Vec::new(), Vec::new());
        collect_words(&command, false, &mut visible);
        collect_words(&command, true, &mut hidden);
        // An old spelling in one command may be an option of another, as `--name` is.
        hidden.retain(|word| !visible.contains(word));
        assert!(
            visible.len() > 100 && hidden.len() > 20,
            "{} visible and {} hidden words",
            visible.len(),
            hidden.len()
        );
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).expect("text");
            let is_word_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            // Fish names options without hyphens.
            let has_word = |word: &str| {
                let bare = word.trim_start_matches('-');
                script.match_indices(bare).any(|(at, _)| {
                    let before = script[..at].trim_end_matches('-').chars().next_back();
                    let after = script[at + bare.len()..].chars().next();
                    !before.is_some_and(is_word_part) && !after.is_some_and(is_word_part)
                })
            };
            let missing: Vec<&String> = visible.iter().filter(|word| !has_word(word)).collect();
            assert!(missing.is_empty(), "{shell} does not complete {missing:?}");
            let surplus: Vec<&String> =
                hidden.iter().filter(|word| script.contains(word.as_str()) && has_word(word)).collect();
            assert!(surplus.is_empty(), "{shell} completes {surplus:?}");
        }
    }
}
