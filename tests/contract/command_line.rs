//! The command line is in one style (`hotline NOUN VERB SUBJECT --options`), and accepts the spellings it had before.

use std::any::TypeId;
use std::ops::RangeInclusive;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command};

/// Verbs of nouns.
const VERBS: [&str; 22] = [
    "abandon",
    "check",
    "create",
    "delete",
    "deliveries",
    "drain",
    "erase",
    "list",
    "print",
    "rebuild",
    "reencrypt",
    "replay",
    "reset-password",
    "revoke",
    "rotate",
    "rotate-identity-secret",
    "rotate-secret",
    "set",
    "show",
    "status",
    "test",
    "update",
];

/// Verbs of the whole installation.
const BARE_VERBS: [&str; 12] = [
    "serve",
    "demo",
    "export",
    "import",
    "backup",
    "restore",
    "check",
    "doctor",
    "health",
    "migrate",
    "completions",
    "man",
];

/// Endings that no option's name may have: the value names the unit.
const UNITS: [&str; 8] = ["-s", "-ms", "-kib", "-mib", "-gib", "-minutes", "-hours", "-days"];

/// Subjects of commands that create something, and of the others.
const NEW_SUBJECTS: [&str; 3] = ["NAME", "EMAIL", "URL"];
const SUBJECTS: [&str; 3] = ["ID", "EMAIL", "NODE|LIFE"];

/// How many values a boolean takes: `--flag` and `--flag=false`.
const OPTIONAL_VALUE: RangeInclusive<usize> = 0..=1;

/// Command lines in old spellings. Those of `serve` are tried by the unit tests of the configuration file.
const OLD_SPELLINGS: &[&str] = &[
    "token create --company 1 --name x --all",
    "profile create --company 1 --name x",
    "channel create --company 1 --type webchat --name x",
    "channel create x --company 1 --type webchat --color red --title x --greeting x --position left --pre-chat-field name",
    "channel create x --company 1 --type whatsapp --recipient-interval-ms 700",
    "channel update 1 --color red --title x --greeting x --position left --pre-chat-field name",
    "channel update 1 --recipient-interval-ms 700",
    "channel update 1 --no-queue",
    "channel identity-secret 1",
    "webhook create --company 1 --url https://x.example",
    "webhook update 1 --all-types",
    "webhook update 1 --active false",
    "company update 1 --active true --api-enabled false",
    "retention set 1 --days 365",
    "retention off 1",
    "retention show 1",
    "reports rebuild",
    "secrets list",
    "secrets rotate",
    "secrets reseal",
    "secrets forget 0011223344556677",
    "admin reset ana@example.com --second-factor",
];

/// Collects the commands without subcommands, each with its path.
fn collect_leaves(command: &Command, path: &[&str], found: &mut Vec<(Vec<String>, Command)>) {
    for subcommand in command.get_subcommands() {
        let path = [path, &[subcommand.get_name()]].concat();
        if subcommand.has_subcommands() {
            collect_leaves(subcommand, &path, found);
        } else {
            found.push((path.iter().map(ToString::to_string).collect(), subcommand.clone()));
        }
    }
}

fn all_commands() -> Vec<(Vec<String>, Command)> {
    let mut found = Vec::new();
    collect_leaves(&hotline::cli::command(), &[], &mut found);
    assert!(found.len() > 40, "few commands are found: {}", found.len());
    found
}

fn value_name(argument: &Arg) -> String {
    argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn commands_are_nouns_with_verbs_and_a_subject() {
    for (path, command) in all_commands() {
        let subjects: Vec<String> =
            command.get_positionals().filter(|subject| !subject.is_hide_set()).map(value_name).collect();
        match path.as_slice() {
            [verb] => assert!(BARE_VERBS.contains(&verb.as_str()), "{verb} is not a verb of the installation"),
            [noun, verb] => {
                assert!(!noun.ends_with('s'), "{noun} is not singular");
                assert!(VERBS.contains(&verb.as_str()), "{noun} {verb}: an unknown verb");
                let known = if verb == "create" { NEW_SUBJECTS } else { SUBJECTS };
                let is_known = subjects.iter().all(|subject| known.contains(&subject.as_str()));
                assert!(subjects.len() <= 1 && is_known, "{noun} {verb} has the subjects {subjects:?}");
                assert!(verb != "create" || subjects.len() == 1, "{noun} create has no subject");
            }
            _ => panic!("{path:?} is not a noun with a verb"),
        }
    }
}

#[test]
fn options_have_one_form() {
    let cli = hotline::cli::command();
    for (path, command) in all_commands() {
        for option in command.get_arguments().chain(cli.get_arguments()).filter(|option| !option.is_hide_set()) {
            let name = option.get_id();
            let long = option.get_long().unwrap_or_default();
            assert!(UNITS.iter().all(|unit| !long.ends_with(unit)), "{path:?}: --{long} names a unit");
            assert!(path != ["serve"] || option.get_help_heading().is_some(), "--{long} has no heading");
            let is_boolean = option.get_value_parser().type_id() == TypeId::of::<bool>();
            if is_boolean {
                let count = option.get_num_args().map(|count| count.min_values()..=count.max_values());
                assert_eq!(count, Some(OPTIONAL_VALUE), "{path:?}: {name} takes no `=false`");
                assert!(matches!(option.get_action(), ArgAction::Set), "{path:?}: {name}");
            }
            let value = value_name(option);
            let is_example = value.contains('|') || value.contains("://");
            assert!(is_example || value == value.to_uppercase(), "{path:?}: {name} has the value {value}");
        }
    }
}

#[test]
fn old_spellings_are_accepted_and_all_of_them_are_tried() {
    let cli = hotline::cli::command();
    let mut tried = Vec::new();
    for line in OLD_SPELLINGS {
        let words: Vec<&str> = std::iter::once("hotline").chain(line.split_whitespace()).collect();
        let matches = cli.clone().try_get_matches_from(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
        let (noun, matches) = matches.subcommand().expect("a noun");
        let (verb, matches) = matches.subcommand().expect("a verb");
        let explicit: Vec<String> = matches
            .ids()
            .map(ToString::to_string)
            .filter(|id| matches.try_contains_id(id).is_ok())
            .filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine))
            .collect();
        tried.push((noun.to_owned(), verb.to_owned(), words, explicit));
    }
    let mut missing = Vec::new();
    for noun in cli.get_subcommands().filter(|noun| noun.has_subcommands()) {
        for alias in noun.get_all_aliases() {
            let is_tried = tried.iter().any(|(known, _, words, _)| known == noun.get_name() && words[1] == alias);
            if !is_tried {
                missing.push(alias.to_owned());
            }
        }
        for verb in noun.get_subcommands() {
            let of_verb = || tried.iter().filter(|(n, v, ..)| n == noun.get_name() && v == verb.get_name());
            let mut require = |is_tried: bool, name: &str| {
                if !is_tried {
                    missing.push(format!("{} {} {name}", noun.get_name(), verb.get_name()));
                }
            };
            for alias in verb.get_all_aliases() {
                require(of_verb().any(|(_, _, words, _)| words[2] == alias), alias);
            }
            for argument in verb.get_arguments() {
                for alias in argument.get_all_aliases().unwrap_or_default() {
                    let word = format!("--{alias}");
                    require(of_verb().any(|(_, _, words, _)| words.contains(&word.as_str())), &word);
                }
                if argument.is_hide_set() {
                    let id = argument.get_id().as_str();
                    require(of_verb().any(|(.., explicit)| explicit.iter().any(|known| known == id)), id);
                }
            }
        }
    }
    assert!(missing.is_empty(), "not tried: {missing:?}");
}
