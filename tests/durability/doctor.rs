//! `hotline doctor` names what has to be done about the machine, the database and the network.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use hotline_persistence::tables::channels::ChannelType;
use serde_json::Value;

use crate::process::{Process, command, keys_of, run, with_database};
use crate::support::database::url;
use crate::support::seed::{ACCESS_TOKEN, provided};
use crate::support::template::prepared_folder;
use crate::support::{
    Company, Conduct, PATIENCE, Provider, Receiver, TestDatabase, empty_folder, eventually, free_address, patience,
};

const ACCOUNT: &str = "106540352242922";

/// A check in the output of a doctor.
#[derive(Debug)]
struct Check {
    name: String,
    result: String,
    found: String,
}

/// Runs a doctor; its exit code and its checks.
async fn examine(mut command: Command) -> (Option<i32>, Vec<Check>) {
    command.arg("--json");
    let output = tokio::task::spawn_blocking(move || command.output().expect("hotline runs")).await.expect("output");
    let printed: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = printed["checks"].as_array().expect("checks").iter();
    let checks = checks.map(|check| Check {
        name: text(&check["check"]),
        result: text(&check["result"]),
        found: text(&check["found"]),
    });
    (output.status.code(), checks.collect())
}

/// The same, repeated until exactly these checks find a problem: on a busy machine, a doctor gives up on a late answer,
/// and takes a late answer of the database for a difference between the clocks.
async fn examine_until(doctor: impl Fn() -> Command, expected: &[&str]) -> (Option<i32>, Vec<Check>) {
    let deadline = Instant::now() + patience(PATIENCE);
    loop {
        let is_late = Instant::now() >= deadline;
        let (code, checks) = examine(doctor()).await;
        let is_expected = problems(&checks).iter().map(|(name, _)| *name).eq(expected.iter().copied());
        if is_expected || is_late {
            return (code, checks);
        }
    }
}

/// The names and texts of the checks that found a problem, except `disk sync`, which depends on the machine.
fn problems(checks: &[Check]) -> Vec<(&str, &str)> {
    let problems = checks.iter().filter(|check| check.result == "problem" && check.name != "disk sync");
    problems.map(|check| (check.name.as_str(), check.found.as_str())).collect()
}

fn find_check<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no {name}: {checks:?}"))
}

fn doctor(folder: &Path, options: &[&str]) -> Command {
    command(folder, &[&["doctor"], options].concat())
}

#[actix_web::test]
async fn a_doctor_names_a_taken_port_a_refused_credential_and_an_endpoint_that_does_not_answer() {
    let folder = prepared_folder();
    let folder = folder.path();
    let (provider, receiver) = (Provider::start().await, Receiver::start().await);
    provider.only_token(ACCOUNT, ACCESS_TOKEN);
    let process = Process::serve(folder);
    let company = with_database(folder, async |db| {
        let company = Company::create(db, "Acme").await;
        provided(db, &keys_of(folder), company.id, ChannelType::Whatsapp, ACCOUNT, &provider.url).await;
        company
    })
    .await;
    let id = company.id.to_string();
    let networks = ["--webhook-allow-network", "127.0.0.0/8"];
    let create = ["webhook", "create", &receiver.url(), "--company", &id];
    let created = run(folder, &[&create[..], &networks].concat());
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let address = process.address.to_string();
    let options = [&["--listen", &address], &networks[..], &["--min-free-space", "0"]].concat();
    let (_, checks) = examine_until(|| doctor(folder, &options), &[]).await;
    assert_eq!(problems(&checks), []);
    for (name, word) in [
        ("port", "served by a Hotline"),
        ("encoding", "UTF8"),
        ("extensions", "installed"),
        ("database TLS", "not needed"),
        ("channels", "1 answered"),
        ("webhooks", "1 answered"),
    ] {
        let check = find_check(&checks, name);
        assert!(check.result == "ok" && check.found.contains(word), "{check:?}");
    }

    provider.only_token(ACCOUNT, "another");
    let endpoint = receiver.url();
    let endpoint = endpoint.trim_start_matches("http://").split('/').next().expect("an address").to_owned();
    drop(receiver);
    let has_stopped = || async { tokio::net::TcpStream::connect(&endpoint).await.is_err() };
    eventually("the endpoint has stopped", has_stopped).await;
    let taken = Receiver::start_at(&free_address().to_string()).await;
    let address = taken.address.to_string();
    let options = [&["--listen", &address], &networks[..], &["--min-free-space", "0"]].concat();
    let expected = ["port", "channels", "webhooks"];
    let (code, checks) = examine_until(|| doctor(folder, &options), &expected).await;
    let found = problems(&checks);
    assert_eq!(code, Some(1));
    assert_eq!(found.iter().map(|(check, _)| *check).collect::<Vec<_>>(), expected, "{found:?}");
    assert!(found[0].1.contains("another program") && found[1].1.contains("of company"), "{found:?}");
    assert!(!format!("{checks:?}").contains(ACCESS_TOKEN), "a token is printed");

    // A program whose answer is longer than what is read of it, and a key file that others may read.
    taken.behave(Conduct::Answer(200, " ".repeat(4 << 20) + "hotline_"));
    std::fs::set_permissions(folder.join("secrets.key"), std::fs::Permissions::from_mode(0o644)).expect("mode");
    let expected = ["port", "keys", "webhooks"];
    let (_, checks) = examine_until(|| doctor(folder, &options), &expected).await;
    let found = problems(&checks);
    let names: Vec<&str> = found.iter().map(|(check, _)| *check).collect();
    assert_eq!(names, expected, "{found:?}");
    assert!(found[1].1.contains("secrets.key") && found[1].1.contains("chmod"), "{found:?}");

    let options = ["--offline", "--min-free-space", "0", "--listen", &address];
    let (_, checks) = examine_until(|| doctor(folder, &options), &["port"]).await;
    assert_eq!(problems(&checks).len(), 1, "{checks:?}");
    assert_eq!(find_check(&checks, "backup").result, "note", "no backup was made: {checks:?}");
    assert_eq!(find_check(&checks, "alert rules").result, "note", "no metrics are served: {checks:?}");
    assert!(checks.iter().all(|check| check.name != "channels" && check.name != "webhooks"), "{checks:?}");
    process.kill();
}

#[actix_web::test]
async fn a_doctor_names_what_a_database_lacks() {
    let database = TestDatabase::migrated().await;
    let folder = crate::process::data_folder();
    let url = url(&database.options);
    let address = free_address().to_string();
    let (code, checks) = examine(doctor(folder.path(), &["--database-url", &url, "--listen", &address])).await;
    assert_eq!(code, Some(1));
    let found = problems(&checks);
    assert!(found.iter().any(|(check, found)| *check == "settings" && found.contains("fsync is off")), "{found:?}");

    // Tables that cannot be read are not reported as missing.
    for statement in
        ["alter table schema_needs rename to needs", "create view schema_needs as select 1 / 0 as least, '' as release"]
    {
        sqlx::query(statement).execute(&database.db).await.expect("executed");
    }
    let (code, checks) = examine(doctor(folder.path(), &["--database-url", &url, "--listen", &address])).await;
    let schema = find_check(&checks, "schema");
    assert!(code == Some(1) && schema.result == "problem" && schema.found.contains("SQLSTATE 22012"), "{schema:?}");
    let empty = TestDatabase::create().await;
    let url = crate::support::database::url(&empty.options);
    let (_, checks) = examine(doctor(folder.path(), &["--database-url", &url, "--listen", &address])).await;
    let schema = find_check(&checks, "schema");
    assert!(schema.result == "note" && schema.found.contains("no tables"), "{schema:?}");
    empty.drop().await;

    let unreachable = "postgres://hotline:hidden@127.0.0.1:1/hotline";
    let (code, checks) = examine(doctor(folder.path(), &["--database-url", unreachable, "--listen", &address])).await;
    let found = problems(&checks);
    assert!(code == Some(1) && found.iter().any(|(check, _)| *check == "database"), "{found:?}");
    assert!(!format!("{checks:?}").contains("hidden"), "a password is printed");

    // A private PostgreSQL whose lock cannot be opened: the cause is named, not only the attempt.
    for name in ["postgres", "postgres.lock"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let (_, checks) = examine(doctor(folder.path(), &["--offline", "--listen", &address])).await;
    let found = problems(&checks);
    assert!(found.iter().any(|(check, found)| *check == "database" && found.contains("(os error ")), "{found:?}");
    database.drop().await;
}

#[actix_web::test]
async fn a_doctor_names_an_old_backup_and_the_alert_rules() {
    let folder = prepared_folder();
    let (address, metrics, backups) = (free_address().to_string(), free_address().to_string(), empty_folder());
    let options = ["--offline", "--min-free-space", "0", "--listen", &address, "--metrics-listen", &metrics];
    let backup = run(folder.path(), &["backup", backups.path().to_str().expect("a path")]);
    assert!(backup.status.success(), "{}", String::from_utf8_lossy(&backup.stderr));
    let (code, checks) = examine_until(|| doctor(folder.path(), &options), &[]).await;
    assert_eq!(
        (problems(&checks), find_check(&checks, "backup").result.as_str()),
        (Vec::new(), "ok"),
        "{code:?}: {checks:?}"
    );
    let rules = find_check(&checks, "alert rules");
    assert_eq!(rules.result, "ok", "{rules:?}");
    let files = rules.found.split([' ', ',']).filter(|word| word.ends_with(".rules.yml")).collect::<Vec<_>>();
    assert_eq!(files.len(), 2, "{rules:?}");
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(files[0]).is_file(), "{files:?}");
    let packaged =
        include_str!("../../Cargo.toml").lines().find(|line| line.contains(files[0])).expect("the rules are packaged");
    let (directory, name) = files[1].trim_start_matches('/').rsplit_once('/').expect("a path");
    assert!(packaged.contains(directory) && packaged.contains(name), "{packaged}");

    // As if the last backup was two days old.
    let record = folder.path().join("backup.json");
    let mut old: Value = serde_json::from_slice(&std::fs::read(&record).expect("the record")).expect("JSON");
    old["completedAt"] = (chrono::Utc::now() - chrono::TimeDelta::days(2)).to_rfc3339().into();
    std::fs::write(&record, old.to_string()).expect("written");
    let (code, checks) = examine_until(|| doctor(folder.path(), &options), &["backup"]).await;
    assert_eq!(code, Some(1));
    let found = problems(&checks);
    assert!(found.len() == 1 && found[0].0 == "backup" && found[0].1.contains("48 h ago"), "{found:?}");
}
