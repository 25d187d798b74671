//! Warns about `HOTLINE_…` variables that no option reads, because they are probably misspelled, and reads those in
//! old spellings.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Command};

/// The prefix of all variables.
const PREFIX: &str = "HOTLINE_";

/// Minimum similarity for suggesting a name; 1 means equal.
const SIMILARITY_MIN: f64 = 0.85;

/// Variables of hidden options that mean the opposite of a visible one, and what to set instead.
const OPPOSITES: [(&str, &str); 1] = [("HOTLINE_NO_EVENTS", "HOTLINE_EVENTS=false")];

/// Variables of the clients, which people set in the same shell.
const CLIENT_VARIABLES: [&str; 2] = ["HOTLINE_URL", "HOTLINE_API_KEY"];

/// Warns about each unknown variable, and suggests the most similar name.
pub fn warn_of_unknown(command: &Command) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for warning in warnings(command, names) {
        eprintln!("hotline: {warning}");
    }
}

fn warnings(command: &Command, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    collect_visible(command, &mut known);
    let mut replacements: BTreeMap<String, String> =
        OPPOSITES.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned())).collect();
    collect_old(command, &mut replacements);
    let is_of_other_program = |name: &str| CLIENT_VARIABLES.contains(&name) || is_set_by_kubernetes(name);
    let mut unknown: Vec<String> =
        names.filter(|name| name.starts_with(PREFIX) && !known.contains(name) && !is_of_other_program(name)).collect();
    unknown.sort_unstable();
    let warning = |name: String| {
        if let Some(new) = replacements.get(&name) {
            return format!("environment variable {name} is deprecated; use {new}");
        }
        let similarities =
            known.iter().map(|other| (strsim::jaro_winkler(&name[PREFIX.len()..], &other[PREFIX.len()..]), other));
        let nearest = similarities
            .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        match nearest {
            Some((_, nearest)) => format!("unknown environment variable {name}; did you mean {nearest}?"),
            None => format!("unknown environment variable {name}; see `hotline serve --help`"),
        }
    };
    unknown.into_iter().map(warning).collect()
}

/// The values of variables in old spellings, each with the name of its option; `get_variable` reads a variable. The
/// values become defaults, so that the variable in the new spelling overrides them.
pub fn old_values(command: &Command, get_variable: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let values = command.get_arguments().flat_map(|option| {
        let long = option.get_long().unwrap_or_default();
        old_variables(option)
            .into_iter()
            .filter_map(|name| Some((long.to_owned(), get_variable(&name)?)))
            .collect::<Vec<_>>()
    });
    values.collect()
}

/// The old spellings of an option's variable, derived from those of the option; none if the option has no variable.
fn old_variables(option: &Arg) -> Vec<String> {
    let has_variable = option.get_env().is_some();
    let aliases = option.get_all_aliases().unwrap_or_default().into_iter().filter(|_| has_variable);
    aliases.map(|alias| format!("{PREFIX}{}", alias.replace('-', "_").to_uppercase())).collect()
}

/// Collects the variables of the visible options.
fn collect_visible(command: &Command, known: &mut BTreeSet<String>) {
    // The variables of hidden options still work, but are never suggested.
    let visible = command.get_arguments().filter(|option| !option.is_hide_set());
    let variables = visible.filter_map(|option| option.get_env()?.to_str());
    known.extend(variables.map(str::to_owned));
    command.get_subcommands().for_each(|command| collect_visible(command, known));
}

/// Collects the variables in old spellings, with the new ones.
fn collect_old(command: &Command, replacements: &mut BTreeMap<String, String>) {
    for option in command.get_arguments() {
        let Some(new) = option.get_env().and_then(|name| name.to_str()) else { continue };
        replacements.extend(old_variables(option).into_iter().map(|name| (name, new.to_owned())));
    }
    command.get_subcommands().for_each(|command| collect_old(command, replacements));
}

/// For a service called `hotline`, Kubernetes sets these variables in every container, including the service's own.
fn is_set_by_kubernetes(name: &str) -> bool {
    let name = &name[PREFIX.len()..];
    name == "SERVICE_HOST" || name == "PORT" || name.starts_with("SERVICE_PORT") || name.starts_with("PORT_")
}

#[cfg(test)]
mod tests {
    use super::warnings;

    #[test]
    fn an_unknown_name_is_reported_with_the_most_similar_one() {
        let warning = |name: &str| warnings(&crate::cli::command(), [name.to_owned()].into_iter()).pop();
        for (name, suggested) in [
            ("HOTLINE_LISTN", "HOTLINE_LISTEN"),
            ("HOTLINE_DATABASE", "HOTLINE_DATABASE_URL"),
            ("HOTLINE_DATADIR", "HOTLINE_DATA_DIR"),
            ("HOTLINE_JOURNAL_MAXSIZE", "HOTLINE_JOURNAL_MAX_SIZE"),
            ("HOTLINE_KEYFILE", "HOTLINE_KEY_FILE"),
        ] {
            let warning = warning(name).unwrap_or_else(|| panic!("{name} is not reported"));
            assert!(warning.contains(name) && warning.contains(&format!("did you mean {suggested}?")), "{warning}");
        }
        assert!(warning("HOTLINE_QQQQ").is_some_and(|warning| warning.contains("--help")));
        let old = warning("HOTLINE_IDLE_AFTER_S");
        assert_eq!(
            old.as_deref(),
            Some("environment variable HOTLINE_IDLE_AFTER_S is deprecated; use HOTLINE_IDLE_AFTER")
        );
        assert!(warning("HOTLINE_NO_EVENTS").is_some_and(|warning| warning.ends_with("use HOTLINE_EVENTS=false")));
        let accepted = [
            "HOTLINE_URL",
            "HOTLINE_LISTEN",
            "HOTLINE_CONFIG",
            "LISTN",
            "HOTLINE_SERVICE_HOST",
            "HOTLINE_PORT_8080_TCP",
        ];
        for name in accepted {
            assert_eq!(warning(name), None, "{name}");
        }
    }
}
