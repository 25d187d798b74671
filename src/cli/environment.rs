//! Warns about `HOTLINE_…` variables that no option reads, because they are probably misspelled.

use std::collections::BTreeSet;

use clap::Command;

/// The prefix of all variables.
const PREFIX: &str = "HOTLINE_";

/// Minimum similarity for suggesting a name; 1 means equal.
const SIMILARITY_MIN: f64 = 0.85;

/// Warns about each unknown variable, and suggests the most similar name.
pub fn warn(command: &Command) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for warning in warnings(command, names) {
        eprintln!("hotline: {warning}");
    }
}

fn warnings(command: &Command, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    collect(command, &mut known);
    let mut unknown: Vec<String> =
        names.filter(|name| name.starts_with(PREFIX) && !known.contains(name) && !is_of_kubernetes(name)).collect();
    unknown.sort_unstable();
    let warning = |name: String| {
        let similarities =
            known.iter().map(|known| (strsim::jaro_winkler(&name[PREFIX.len()..], &known[PREFIX.len()..]), known));
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

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|option| option.get_env()?.to_str());
    known.extend(variables.map(str::to_owned));
    command.get_subcommands().for_each(|command| collect(command, known));
}

/// Kubernetes sets these variables in every container for a service called `hotline`, also in the service's own.
fn is_of_kubernetes(name: &str) -> bool {
    let name = &name[PREFIX.len()..];
    name == "SERVICE_HOST" || name == "PORT" || name.starts_with("SERVICE_PORT") || name.starts_with("PORT_")
}

#[cfg(test)]
mod tests {
    use super::warnings;

    #[test]
    fn a_name_that_means_nothing_is_told_with_the_nearest_that_does() {
        let warning = |name: &str| warnings(&crate::cli::command(), [name.to_owned()].into_iter()).pop();
        for (name, meant) in [
            ("HOTLINE_LISTN", "HOTLINE_LISTEN"),
            ("HOTLINE_DATABASE", "HOTLINE_DATABASE_URL"),
            ("HOTLINE_DATADIR", "HOTLINE_DATA_DIR"),
            ("HOTLINE_JOURNAL_MAX_MB", "HOTLINE_JOURNAL_MAX_MIB"),
            ("HOTLINE_KEYFILE", "HOTLINE_KEY_FILE"),
        ] {
            let warning = warning(name).unwrap_or_else(|| panic!("{name} is not told"));
            assert!(warning.contains(name) && warning.contains(&format!("did you mean {meant}?")), "{warning}");
        }
        assert!(warning("HOTLINE_QQQQ").is_some_and(|warning| warning.contains("--help")));
        let silent = ["HOTLINE_LISTEN", "HOTLINE_CONFIG", "LISTN", "HOTLINE_SERVICE_HOST", "HOTLINE_PORT_8080_TCP"];
        for name in silent {
            assert_eq!(warning(name), None, "{name}");
        }
    }
}
