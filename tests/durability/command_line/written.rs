//! Documented commands work: those in README.md, CONTRIBUTING.md, `docs/` and `--help` are run, or at least parsed.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hotline_postgres::{Cluster, ClusterOptions};

use super::json;
use crate::process::{Process, binary, data_folder, hotline};
use crate::support::template::{prepare, prepared_folder};

/// Commands that are parsed but not run here, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("hotline serve", "runs until it is stopped: every test of this folder runs it, on a port that is free"),
    ("hotline demo", "runs until it is stopped: `the_first_conversation_of_the_readme_works_as_written` runs it"),
    ("hotline health", "fails where nobody serves: `lifecycle/starting.rs` runs it"),
    ("hotline cluster check", "fails where nobody serves: `cluster.rs` runs it"),
    ("hotline cluster drain", "needs processes that serve"),
    ("hotline admin delete", "refuses the last administrator: `records.rs` runs it"),
    ("hotline profile delete", "refuses the last profile that administers: `records.rs` runs it"),
    ("hotline secret delete", "needs the id of a key: `secrets.rs` runs it"),
];

/// The beginnings of shell blocks that have tests of their own.
const BLOCKS: [&str; 3] = ["key=…", "psql -h", "export HOTLINE_URL"];

/// Placeholders, and a value for each.
const VALUES: &[(&str, &str)] = &[
    ("ID", "1"),
    ("NAME", "Written"),
    ("EMAIL", "written@example.com"),
    ("TYPE", "webchat"),
    ("MODULE:METHODS", "tickets:GET"),
];

/// Values of options whose value is written as `…`.
const OPTIONS: &[(&str, &str)] =
    &[("--expires", "2099-01-01T00:00:00Z"), ("--allow-ip", "203.0.113.7"), ("--allow-origin", "https://shop.example")];

/// A command as it is written in a document.
#[derive(Clone, Debug)]
struct DocumentedCommand {
    file: PathBuf,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the repository")
}

fn documents() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).expect("docs").map(|entry| entry.expect("entry").path());
    let mut found: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    found.extend(["README.md", "CONTRIBUTING.md", "benches/README.md"].map(|path| root().join(path)));
    found.sort();
    found
}

/// The text outside of fenced blocks, and the language and text of each block.
fn split_blocks(text: &str) -> (String, Vec<(String, String)>) {
    let (mut prose, mut blocks): (String, Vec<(String, String)>) = Default::default();
    let mut is_fenced = false;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), is_fenced) {
            (Some(language), false) => blocks.push((language.to_owned(), String::new())),
            (Some(_), true) => {}
            (None, true) => {
                if let Some((_, block)) = blocks.last_mut() {
                    *block += &format!("{line}\n");
                }
            }
            (None, false) => prose += &format!("{line}\n"),
        }
        is_fenced ^= line.trim_start().starts_with("```");
    }
    (prose, blocks)
}

fn is_command(text: &str) -> bool {
    let first = text.split_whitespace().find(|word| !word.contains('='));
    first.is_some_and(|word| ["hotline", "make", "cargo", "curl", "psql", "openssl"].contains(&word))
        && text.split_whitespace().count() > 1
}

/// Every command that is written in prose or in a block.
fn commands() -> Vec<DocumentedCommand> {
    let mut found = Vec::new();
    for file in documents() {
        let text = read(&file);
        // `tests/contract/written.rs` compares the generated part with `--help`.
        let text = text.split("<!-- made by").next().unwrap_or_default();
        let (prose, blocks) = split_blocks(text);
        let mut add =
            |text: &str| found.push(DocumentedCommand { file: file.clone(), text: text.trim().replace('\n', " ") });
        let pieces: Vec<&str> = prose.split('`').collect();
        let mut noun = String::new();
        for (index, span) in pieces.iter().enumerate().skip(1).step_by(2) {
            if is_command(span) {
                noun = span.split_whitespace().take(2).collect::<Vec<&str>>().join(" ");
                add(span);
            } else if pieces[index - 1] == " · " && noun.starts_with("hotline ") {
                // `hotline token create …` · `list` · `rotate ID`
                add(&format!("{noun} {span}"));
            }
        }
        for (language, block) in
            blocks.iter().filter(|(language, _)| ["sh", "console", "bash"].contains(&language.as_str()))
        {
            if BLOCKS.iter().any(|begin| block.starts_with(begin)) {
                continue;
            }
            // A command that continues in the next line is one command.
            let block = block.replace("\\\n", " ");
            for line in block.lines().filter(|line| !line.trim().is_empty()) {
                let command = line.split(" #").next().unwrap_or_default().trim();
                assert!(is_command(command), "{}: this test cannot check this {language}: {line}", file.display());
                add(command);
            }
        }
    }
    found
}

/// The words of a command, with a value for each placeholder, every optional part, and the first part of each choice.
fn fill_placeholders(text: &str) -> Vec<String> {
    let mut text = text.replace("\\|", "|").replace(['[', ']'], " ");
    while let Some((before, rest)) = text.split_once('(') {
        let (choice, after) = rest.split_once(')').expect("a choice ends");
        text = format!("{before} {} {after}", choice.split('|').next().unwrap_or_default());
    }
    // `[--all | --permission …] [--sees-all-cards]`: the first alternative, and what follows the choice.
    let mut words: Vec<String> = Vec::new();
    let mut skips_alternative = false;
    for word in text.split_whitespace() {
        match word {
            "|" => skips_alternative = true,
            _ if skips_alternative && !word.starts_with("--sees") => {}
            "…" => {
                let value = words.last().and_then(|last| OPTIONS.iter().find(|(option, _)| option == last));
                words.extend(value.map(|(_, value)| (*value).to_owned()));
            }
            word => {
                skips_alternative = false;
                let value = VALUES.iter().find(|(name, _)| *name == word).map_or(word, |(_, value)| value);
                words.push(value.trim_matches('\'').to_owned());
            }
        }
    }
    if words.get(2).is_some_and(|verb| verb == "update") && !words.iter().any(|word| word.starts_with("--")) {
        words.extend(["--name", "Written"].map(str::to_owned));
    }
    words
}

/// Runs a program with `input` on its stdin, in this folder and on the installation in it.
fn run_in(folder: &Path, mut command: Command, input: &str) -> Output {
    command.current_dir(folder).env("HOTLINE_DATA_DIR", folder.join("hotline-data"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // A command that reads nothing closes its stdin, and the write fails.
    let _ = child.stdin.take().expect("stdin").write_all(input.as_bytes());
    child.wait_with_output().expect("output")
}

/// A folder with an installation in `hotline-data`, with a company, a queue, a token, a channel and a webhook, each
/// with the id 1; and its PostgreSQL, which already runs, so that no command has to start it.
async fn installation() -> (tempfile::TempDir, Cluster) {
    let folder = data_folder();
    let data = folder.path().join("hotline-data");
    prepare(&data);
    let cluster = Cluster::start(ClusterOptions::new(&data)).await.expect("the private PostgreSQL starts");
    json(&data, &["company", "create", "Acme"]);
    json(&data, &["token", "create", "first", "--company", "1", "--all"]);
    json(&data, &["channel", "create", "Website", "--company", "1", "--type", "webchat"]);
    json(&data, &["webhook", "create", "https://example.com/hotline", "--company", "1"]);
    let queue = "insert into queues (company_id, name) values (1, 'Support')";
    let db = crate::support::database::pool(cluster.connect_options());
    sqlx::query(queue).execute(&db).await.expect("a queue");
    db.close().await;
    for (name, text) in [
        ("token.txt", "access-token"),
        ("secret.txt", "app-secret"),
        ("verify.txt", "verify-token"),
        ("password.txt", "a-password-that-is-long-enough"),
    ] {
        std::fs::write(folder.path().join(name), format!("{text}\n")).expect("written");
    }
    (folder, cluster)
}

#[actix_web::test]
async fn every_command_in_the_documents_is_accepted_and_run_where_it_can_be() {
    let (folder, cluster) = installation().await;
    let makefile = read("Makefile");
    let targets: BTreeSet<&str> = makefile
        .lines()
        .filter(|line| !line.starts_with('\t'))
        .filter_map(|line| line.split_once(':'))
        .map(|(target, _)| target)
        .collect();
    let (mut wrong, mut run_count, mut not_run) = (Vec::new(), 0, BTreeSet::new());
    let all = commands();
    for DocumentedCommand { file, text } in &all {
        let words = fill_placeholders(text);
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.drain(..words.iter().take_while(|word| word.contains('=')).count());
        let mut report = |reason: &str| wrong.push(format!("{}: `{text}`: {reason}", file.display()));
        match words[..] {
            ["hotline", noun]
                if hotline::cli::command().find_subcommand(noun).is_some_and(|noun| noun.has_subcommands()) => {}
            ["hotline", ..] => {
                if let Err(error) = hotline::cli::command().try_get_matches_from(&words)
                    && error.kind() != clap::error::ErrorKind::DisplayHelp
                {
                    report(&error.to_string());
                    continue;
                }
                let line = words.join(" ");
                if let Some((command, _)) = NOT_RUN.iter().find(|(command, _)| line.starts_with(command)) {
                    not_run.insert(*command);
                    continue;
                }
                let mut command = hotline();
                command.args(&words[1..]);
                let output = run_in(folder.path(), command, "a-password-that-is-long-enough\n");
                let stderr = String::from_utf8_lossy(&output.stderr);
                // The e-mail of an administrator is refused the second time.
                if !output.status.success() && !stderr.contains("already") {
                    report(&stderr);
                }
                run_count += 1;
            }
            ["make", target, ..] => {
                if !targets.contains(target) {
                    report("there is no such target");
                }
            }
            ["cargo", ..] => {
                for pair in words.windows(2) {
                    let is_there = match pair {
                        ["--example", name] => {
                            read("Cargo.toml").contains(&format!("name = \"{name}\""))
                                || root().join(format!("examples/{name}.rs")).exists()
                        }
                        ["--bench", name] => [format!("benches/{name}.rs"), format!("benches/{name}/main.rs")]
                            .iter()
                            .any(|path| root().join(path).exists()),
                        ["-p", name] => ["hotline", "hotline-actors", "hotline-persistence"].contains(name),
                        _ => true,
                    };
                    if !is_there {
                        report(&format!("there is no {}", pair[1]));
                    }
                }
            }
            ["curl", .., address] => {
                let path = url::Url::parse(address).map(|url| url.path().to_owned()).unwrap_or_default();
                if hotline::routes::document()["paths"][&path].is_null() {
                    report("the service has no such path");
                }
            }
            ["openssl", "rand", "-hex", "32"] => {
                // What a key file has to contain.
                let output = run_in(folder.path(), Command::new("sh"), text);
                let line = String::from_utf8_lossy(&output.stdout);
                if line.trim().len() != 64 || !line.trim().bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    report("it makes no key");
                }
            }
            _ => report("this test cannot check it"),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(run_count >= 15 && all.len() >= 50, "few commands are found: {run_count} run of {}", all.len());
    let known: BTreeSet<&str> = NOT_RUN.iter().map(|(command, _)| *command).collect();
    assert_eq!(not_run, known, "a command of NOT_RUN is in no document");
    cluster.stop().await.expect("the private PostgreSQL stops");
}

#[actix_web::test]
async fn every_example_of_the_help_works() {
    fn examples(command: &clap::Command, found: &mut Vec<String>) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default().replace("\\\n", " ");
        found.extend(text.lines().map(str::trim).filter(|line| line.starts_with("hotline ")).map(str::to_owned));
        command.get_subcommands().for_each(|command| examples(command, found));
    }
    let (folder, cluster) = installation().await;
    let mut found = Vec::new();
    examples(&hotline::cli::command(), &mut found);
    assert!(found.len() >= 7, "few examples are found: {found:?}");
    let mut emails = BTreeSet::new();
    for (index, example) in found.iter().enumerate() {
        // Two examples create an administrator with the same address.
        let line = match example.starts_with("hotline admin create ana@") && !emails.insert("ana") {
            true => example.replace("ana@", &format!("ana{index}@")),
            false => example.clone(),
        };
        let mut shell = Command::new("sh");
        let path = format!("{}:/usr/bin:/bin", binary().parent().expect("a folder").display());
        shell.args(["-c", &line]).env("PATH", path);
        let output = run_in(folder.path(), shell, "");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{example}: {stderr}");
    }
    cluster.stop().await.expect("the private PostgreSQL stops");
    // The keys of the configuration file that the help shows.
    let help = hotline::cli::command().get_after_help().map(ToString::to_string).expect("help");
    let keys: Vec<&str> =
        help.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(" = ")).map(|(key, _)| key).collect();
    assert!(keys.len() >= 4, "{keys:?}");
    let command = hotline::cli::command();
    let serve = command.find_subcommand("serve").expect("serve");
    for key in keys {
        let long = key.replace('_', "-");
        let mut options = serve.get_arguments().chain(command.get_arguments());
        assert!(options.any(|option| option.get_long() == Some(&long)), "there is no key {key}");
    }
}

#[actix_web::test]
async fn the_first_conversation_of_the_readme_works_as_written() {
    let folder = prepared_folder();
    let (mut process, printed) = Process::demo(folder.path());
    let after = |begin: &str| {
        let rest = printed.split(begin).nth(1).unwrap_or_else(|| panic!("{begin} is not printed: {printed}"));
        rest.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect::<String>()
    };
    let (key, webchat, wrapup_type) = (after(", token "), after("\"channelId\":"), after("\"wrapupTypeId\":"));
    let (_, blocks) = split_blocks(&read("README.md"));
    let (_, block) = blocks.into_iter().find(|(_, block)| block.starts_with(BLOCKS[0])).expect("the conversation");
    let lines = block.lines().map(|line| match line.split_once('=').map(|(name, _)| name) {
        Some("key") => format!("key={key}"),
        Some("webchat") => format!("webchat={webchat}"),
        Some("wrapup_type") => format!("wrapup_type={wrapup_type}"),
        Some("api") => format!("api=http://{}/api/v1", process.address),
        _ => line.to_owned(),
    });
    let script = lines.collect::<Vec<String>>().join("\n");
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &script]);
    let output = run_in(folder.path(), shell, "");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    for expected in ["Is anybody there?", "how can I help?", "\"status\":\"closed\"", "\"type\":\"opened\""] {
        assert!(stdout.contains(expected), "{expected} is missing in {stdout}");
    }
    assert!(!stdout.contains("\"error\":{"), "{stdout}");
    process.terminate();
    assert!(process.wait().success());
}

#[actix_web::test]
async fn the_local_disk_holds_what_the_documents_list_and_nothing_else() {
    let folder = data_folder();
    let data = folder.path().join("hotline-data");
    prepare(&data);
    json(&data, &["company", "create", "Acme"]);
    let mut process = Process::serve(&data);
    process.terminate();
    assert!(process.wait().success());
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect()
    };
    let page = read("docs/durability.md");
    let table = page.split("\n## What the local disk holds\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = table.expect("the section").lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').nth(1).expect("a cell"));
    let documented: BTreeSet<String> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        // These are files of a backup, of a restore, and below `media`.
        .filter(|path| !["backup.json", "restore.unfinished", "media/incoming/"].contains(path))
        .map(|path| path.trim_end_matches('/').to_owned())
        .collect();
    let mut held = names(&data);
    assert!(held.remove("service.log"), "the log that the test itself writes is missing");
    assert_eq!(held, documented);
    assert_eq!(names(&data.join("media")), BTreeSet::from(["incoming".to_owned()]));
    assert!(names(&data.join("media/incoming")).is_empty());
}

#[actix_web::test]
async fn the_sql_of_the_documents_runs_on_the_database_of_a_running_service() {
    let folder = data_folder();
    let data = folder.path().join("hotline-data");
    prepare(&data);
    json(&data, &["company", "create", "Acme"]);
    let process = Process::serve(&data);
    let (prose, blocks) = split_blocks(&read("docs/durability.md"));
    let (_, connect) = blocks.iter().find(|(_, block)| block.starts_with(BLOCKS[1])).expect("how to connect");
    let mut statements: Vec<String> =
        blocks.iter().filter(|(language, _)| language == "sql").map(|(_, block)| block.clone()).collect();
    statements
        .extend(prose.split('`').skip(1).step_by(2).filter(|span| span.starts_with("select ")).map(str::to_owned));
    assert!(statements.len() >= 3, "{statements:?}");
    for statement in statements {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &format!("{} -v ON_ERROR_STOP=1", connect.trim())]);
        let output = run_in(folder.path(), shell, &statement);
        assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
    }
    process.kill();
}
