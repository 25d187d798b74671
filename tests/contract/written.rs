//! The documents are true: the paths that they name exist, options that exist are documented, figures and lists are
//! those of the code. Their commands are run by `tests/durability/command_line/written.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use hotline::exit_code::Exit;
use hotline::web::response::schema::Schemas;

/// The page that describes each option.
const CONFIGURATION: &str = "docs/configuration.md";

/// A test compares the text between these lines, or writes it.
const BEGIN: &str = "<!-- made by `make configuration`: -->";
const END: &str = "<!-- to here -->";

/// Files that the documents name and that are not in the repository, with where they are.
const ELSEWHERE: [(&str, &str); 6] = [
    ("backup.json", "in the data folder"),
    ("hotline.toml", "the operator has it"),
    ("restore.unfinished", "in the data folder"),
    ("/api/v1/openapi.json", "an address of the service"),
    ("/panel/api/v1/openapi.json", "an address of the service"),
    ("target/faults/summary.md", "in the build folder, after `make faults`"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files that git would have: everything but what is built or downloaded.
fn files() -> BTreeSet<PathBuf> {
    fn walk(folder: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if name == "target" || name == "node_modules" || name == "hotline-data" || name == ".git" {
                continue;
            }
            found.insert(path.strip_prefix(root()).expect("below").to_owned());
            if path.is_dir() {
                walk(&path, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(root(), &mut found);
    found
}

/// Every Markdown file, with its text outside of fenced blocks.
fn read_prose() -> Vec<(PathBuf, String)> {
    let markdown = files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
    markdown
        .map(|path| {
            let text = read(&path);
            let mut is_fenced = false;
            let prose = text.lines().filter(|line| {
                let is_fence = line.trim_start().starts_with("```");
                is_fenced ^= is_fence;
                !is_fence && !is_fenced
            });
            let prose = prose.collect::<Vec<&str>>().join("\n");
            (path, prose)
        })
        .collect()
}

/// The path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                normalized.pop();
            }
            std::path::Component::CurDir => {}
            other => normalized.push(other),
        }
    }
    normalized
}

#[test]
fn every_path_and_every_link_of_the_documents_exists() {
    let files = files();
    let (mut missing, mut paths, mut links) = (Vec::new(), 0, 0);
    for (file, text) in read_prose() {
        let folder = file.parent().unwrap_or(Path::new(""));
        let is_existing_path = |path: &str| {
            let path = Path::new(path.trim_end_matches('/'));
            files.contains(path)
                || files.contains(&normalized(&folder.join(path)))
                // `routes.rs` may stand for `src/routes.rs`.
                || files.iter().any(|known| known.ends_with(path))
        };
        let ends = [".rs", ".md", ".sql", ".tsv", ".toml", ".mjs", ".js", ".json", ".sh", ".py", ".lua"];
        let begins = ["src/", "actors/", "persistence/", "tests/", "benches/", "docs/", "examples/"];
        for span in text.split('`').skip(1).step_by(2) {
            let is_word = span.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-/".contains(letter));
            let is_path = ends.iter().any(|end| span.ends_with(end) && span.len() > end.len())
                || begins.iter().any(|begin| span.starts_with(begin));
            if !is_word || !is_path || ELSEWHERE.iter().any(|(elsewhere, _)| *elsewhere == span) {
                continue;
            }
            paths += 1;
            if !is_existing_path(span) {
                missing.push(format!("{}: `{span}`", file.display()));
            }
        }
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(' ') {
                continue;
            }
            links += 1;
            if !files.contains(&normalized(&folder.join(target))) {
                missing.push(format!("{}: link {link}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "named, but missing:\n{}", missing.join("\n"));
    assert!(paths > 100 && links > 50, "few are found: {paths} paths and {links} links");
}

/// An option of the service as a row of the documents, which do not repeat its variable and its key.
fn row(option: &Arg) -> String {
    let long = option.get_long().expect("options have names");
    let variable = option.get_env().and_then(|name| name.to_str());
    let expected = format!("HOTLINE_{}", long.to_uppercase().replace('-', "_"));
    assert_eq!(variable, Some(expected.as_str()), "{CONFIGURATION} says how variables are named");
    let defaults: Vec<_> = option.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = if defaults.is_empty() { "–".to_owned() } else { format!("`{}`", defaults.join(",")) };
    format!("| `--{long}` | {default} | {} |\n", cell(option.get_help()))
}

/// A text of `--help` as a cell of a table.
fn cell(text: Option<&impl ToString>) -> String {
    text.map(ToString::to_string).unwrap_or_default().replace('|', "\\|")
}

/// The options of a command, without hidden ones (old spellings), `--help` and `--version`.
pub fn own_options(command: &Command) -> impl Iterator<Item = &Arg> {
    let options = command.get_arguments().filter(|option| !option.is_hide_set());
    options.filter(|option| option.get_long().is_some_and(|long| !["help", "version"].contains(&long)))
}

/// The options of the service and the commands, as a document.
fn configuration() -> String {
    let cli = hotline::cli::command();
    let serve = cli.find_subcommand("serve").expect("serve");
    let mut text = "\n## Options of the service and the database\n".to_owned();
    let of_database = own_options(&cli).filter(|option| option.get_help_heading() == Some("Database"));
    let mut heading = None;
    for option in of_database.chain(own_options(serve)) {
        if option.get_help_heading() != heading {
            heading = option.get_help_heading();
            let heading = heading.expect("each option of the service has a heading");
            text += &format!("\n### {heading}\n\n| option | default | meaning |\n|---|---|---|\n");
        }
        text += &row(option);
    }
    text += "\n## Commands\n\n`hotline NOUN VERB --help` shows the options of a command.\n\n\
             | noun | meaning | verbs |\n|---|---|---|\n";
    for noun in cli.get_subcommands().filter(|noun| noun.has_subcommands()) {
        let verbs: Vec<_> = noun.get_subcommands().map(|verb| format!("`{}`", verb.get_name())).collect();
        text += &format!("| `{}` | {} | {} |\n", noun.get_name(), cell(noun.get_about()), verbs.join(" "));
    }
    text + "\n"
}

#[test]
fn every_option_of_the_service_is_documented_with_its_default() {
    let text = read(CONFIGURATION);
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of what is generated");
    let (generated, after) = rest.split_once(END).expect("the end of what is generated");
    let expected = configuration();
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(root().join(CONFIGURATION), format!("{before}{BEGIN}{expected}{END}{after}")).expect("written");
        return;
    }
    assert!(generated == expected, "{CONFIGURATION} differs from --help: run `make configuration`");
    assert!(expected.matches("\n| `--").count() > 60, "few options are found");
}

#[test]
fn every_exit_code_is_documented_with_its_meaning() {
    let text = read(CONFIGURATION);
    for exit in Exit::ALL {
        let row = format!("| {} | {} |", exit.code(), exit.meaning());
        assert!(text.contains(&row), "{CONFIGURATION} has no row {row}");
    }
}

#[test]
fn every_option_says_what_it_is_for() {
    fn walk(command: &Command, found: &mut Vec<String>) {
        for option in command.get_arguments().filter(|option| option.get_help().is_none()) {
            found.push(format!("{} {}", command.get_name(), option.get_id()));
        }
        if command.get_about().is_none() {
            found.push(command.get_name().to_owned());
        }
        command.get_subcommands().for_each(|command| walk(command, found));
    }
    let mut silent = Vec::new();
    walk(&hotline::cli::command(), &mut silent);
    assert!(silent.is_empty(), "without a word of help: {silent:?}");
}

#[test]
fn the_readme_counts_the_endpoints_that_are_served() {
    let lines = |list: &str| list.lines().skip(1).filter(|line| !line.is_empty()).count();
    let (promised, beyond) = (lines(include_str!("endpoints.tsv")), lines(include_str!("beyond.tsv")));
    let served = hotline::routes::operations(&mut Schemas::new()).len() - beyond;
    let readme = read("README.md");
    let sentence = format!("{served} of the contract's {promised} endpoints and {beyond} beyond it");
    assert!(readme.contains(&sentence), "README.md does not say \"{sentence}\"");
    // The section also has the first word of every path.
    let section = readme.split("## What is served today").nth(1).and_then(|rest| rest.split("\n\n").nth(1));
    let section = section.expect("the section").to_lowercase().replace('\n', " ");
    for operation in hotline::routes::operations(&mut Schemas::new()) {
        let path = operation.path.trim_start_matches('/');
        let noun = path.split('/').next().expect("a noun").replace('-', " ").replace("wrapup", "wrap-up");
        assert!(section.contains(&noun), "README.md does not name {noun} among what is served");
    }
}

#[test]
fn the_documented_kinds_of_refused_rows_are_those_the_code_writes() {
    let mut kinds = BTreeSet::new();
    for file in files().into_iter().filter(|file| file.starts_with("persistence/src")) {
        if file.extension().is_some_and(|end| end == "rs") {
            let text = read(&file);
            // `Refused { …, kind: "name", … }`
            let refused = text.split(", kind: \"").skip(1).filter_map(|rest| rest.split('"').next());
            kinds.extend(refused.map(str::to_owned));
            if !file.starts_with("persistence/src/persister") {
                continue;
            }
            // `const NAME: &'static str = "name";`, and of receipts `Kind "name" path;`
            let named = text.split("const NAME: &'static str = \"").skip(1).filter_map(|rest| rest.split('"').next());
            kinds.extend(named.map(str::to_owned));
            let receipts =
                text.split("\nreceipt_kinds! {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap_or_default();
            kinds.extend(receipts.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    assert!(kinds.len() >= 12, "few kinds are found: {kinds:?}");
    let text = read("docs/durability.md");
    let list = text.split("`kind` is one of ").nth(1).and_then(|rest| rest.split(';').next()).expect("the list");
    let documented: BTreeSet<String> = list.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(documented, kinds);
}

/// The names of metrics in a text, without the `_bucket` of histograms.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let names = text.match_indices("hotline_").map(|(at, _)| {
        let name = text[at..].split(|letter| !is_part(letter)).next().unwrap_or_default();
        name.strip_suffix("_bucket").unwrap_or(name).to_owned()
    });
    names.collect()
}

#[test]
fn the_dashboard_shows_every_metric_that_is_documented_and_no_other() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("docs/grafana/hotline.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let shown = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let shown = shown.flat_map(|target| metrics_in(target["expr"].as_str().expect("a query"))).collect::<BTreeSet<_>>();
    let manual = read("docs/metrics.md");
    // A name in backticks, possibly with its labels.
    let documented = manual.split('`').skip(1).step_by(2).filter(|code| code.starts_with("hotline_"));
    let documented = documented.flat_map(metrics_in).collect::<BTreeSet<_>>();
    assert!(documented.len() > 50, "{documented:?}");
    assert_eq!(shown, documented);
}

#[test]
fn the_code_map_names_every_folder_of_the_service() {
    let map = read("ARCHITECTURE.md");
    let mut folders = 0;
    for folder in ["src", "actors/src", "persistence/src"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            if !entry.path().is_dir() {
                continue;
            }
            folders += 1;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            assert!(map.contains(&name), "ARCHITECTURE.md does not name {name}/");
        }
    }
    assert!(folders > 30, "few folders are found: {folders}");
}
