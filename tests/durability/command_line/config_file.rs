//! The configuration file (TOML), and what overrides it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hotline_persistence::tables::companies;
use serde_json::Value;

use super::url;
use crate::process::{data_folder, hotline};
use crate::support::TestDatabase;

/// A command of the binary in this folder, without variables of Hotline in the environment, except that of PostgreSQL's
/// folder.
fn hotline_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = hotline();
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HOTLINE_") && name != "HOTLINE_PG_BIN") {
        command.env_remove(name);
    }
    command
}

fn failure_message(output: Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `company list`; returns the name of the company, which says which database the command has used.
fn company_of(command: &mut Command) -> String {
    let output = command.output().expect("hotline runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed: Value = serde_json::from_slice(&output.stdout).expect("json");
    listed["companies"][0]["name"].as_str().expect("a company").to_owned()
}

async fn database_of(company: &str) -> TestDatabase {
    let database = TestDatabase::migrated().await;
    companies::insert(&database.db, company).await.expect("company");
    database
}

#[actix_web::test]
async fn the_command_line_wins_over_the_environment_and_the_environment_over_the_file() {
    let folder = data_folder();
    let path = folder.path();
    let (filed, other) = (database_of("filed").await, database_of("other").await);
    let (environment, line) = (database_of("environment").await, database_of("line").await);
    let write = |name: &str, text: &str| std::fs::write(path.join(name), text).expect("file");
    write("hotline.toml", &format!("database_url = \"{}\"\nrate_per_minute = 7\n", url(&filed)));
    write("other.toml", &format!("database-url = \"{}\"\nlisten = \"192.0.2.1:1\"\n", url(&other)));
    let list = ["company", "list", "--json"];
    assert_eq!(company_of(&mut hotline_in(path, &list)), "filed");
    assert_eq!(company_of(hotline_in(path, &list).arg("--config=other.toml")), "other");
    assert_eq!(company_of(hotline_in(path, &list).env("HOTLINE_CONFIG", "other.toml")), "other");
    let from_environment = |arguments: &[&str]| {
        let mut command = hotline_in(path, arguments);
        command.env("HOTLINE_DATABASE_URL", url(&environment));
        command
    };
    assert_eq!(company_of(&mut from_environment(&list)), "environment");
    assert_eq!(company_of(from_environment(&list).args(["--database-url", &url(&line)])), "line");
    // An empty variable counts as not set.
    for empty in ["", " "] {
        assert_eq!(company_of(hotline_in(path, &list).env("HOTLINE_DATABASE_URL", empty)), "filed");
    }
    write("private.toml", "postgres_memory = \"1GiB\"\n");
    let private = ["config", "check", "--config", "private.toml", "--database-url="];
    let checked = hotline_in(path, &private).env("HOTLINE_SMTP_URL", "").output().expect("hotline runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    // The file's `rate_per_minute` is an option of `serve`, and not of `company update`.
    let update =
        hotline_in(path, &["company", "update", "1", "--name", "filed", "--json"]).output().expect("hotline runs");
    let updated: Value = serde_json::from_slice(&update.stdout).expect("json");
    assert_eq!(updated["ratePerMinute"], Value::Null);

    // The service takes its database from the file, and its address from the environment.
    let mut serve = hotline_in(path, &["serve", "--config", "other.toml"]);
    serve.env("HOTLINE_LISTEN", "127.0.0.1:0").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut service = serve.spawn().expect("hotline runs");
    let mut ready = String::new();
    BufReader::new(service.stdout.take().expect("stdout")).read_line(&mut ready).expect("a line");
    service.kill().expect("kill");
    service.wait().expect("status");
    assert!(ready.starts_with("hotline is ready on http://127.0.0.1:"), "{ready}");

    for (text, words) in [
        ("lissten = \"127.0.0.1:1\"", ["`lissten`", "bad.toml"]),
        ("listen = \"nowhere\"", ["`listen`", "bad.toml"]),
        ("per_page_max = 1001", ["`per_page_max`", "bad.toml"]),
        ("listen =", ["line 1", "bad.toml"]),
    ] {
        write("bad.toml", text);
        // Every command reports a wrong file, even if only the service uses the wrong key.
        let stderr = failure_message(
            hotline_in(path, &["company", "list", "--config", "bad.toml"]).output().expect("hotline runs"),
        );
        assert!(words.iter().all(|word| stderr.contains(word)), "{text}: {stderr}");
    }
    let stderr =
        failure_message(hotline_in(path, &["serve", "--config", "missing.toml"]).output().expect("hotline runs"));
    assert!(stderr.contains("missing.toml"), "{stderr}");
    write("hotline.toml", "nothing = 1");
    let stderr = failure_message(hotline_in(path, &list).output().expect("hotline runs"));
    assert!(stderr.contains("hotline.toml") && stderr.contains("`nothing`"), "{stderr}");
    let help = hotline_in(path, &["serve", "--help"]).output().expect("hotline runs");
    assert!(help.status.success(), "a broken file hides the help");
    for database in [filed, other, environment, line] {
        database.drop().await;
    }
}
