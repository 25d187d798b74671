//! The command line, on a stopped service and on a running one.

mod accounts;
mod archive;
mod channels;
mod companies;
mod config_file;
mod data_page;
mod erasure;
mod exit_codes;
mod lost_keys;
mod records;
mod refusals;
mod reports;
mod retention;
mod secrets;
mod start;
mod tokens;
mod webhooks;
mod written;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Process, run};
use crate::support::template::prepared_folder;
use crate::support::{Api, TestDatabase, eventually};

/// Runs a command with `--json`, which must succeed; what it printed.
fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[arguments, &["--json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?} printed no JSON: {error}"))
}

/// Runs a command, which must fail and print nothing to stdout; what it printed to stderr.
fn failure(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    assert!(output.stdout.is_empty(), "{arguments:?} printed {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until a running service has seen a change that was just made; how long that took.
async fn wait_until_seen<F: Future<Output = bool>>(what: &str, condition: impl FnMut() -> F) -> Duration {
    let changed_at = Instant::now();
    eventually(what, condition).await;
    changed_at.elapsed()
}

/// The value of `--database-url` for a test's database.
fn url(database: &TestDatabase) -> String {
    crate::support::database::url(&database.options)
}

#[actix_web::test]
async fn companies_tokens_and_channels_are_made_on_a_stopped_service_and_seen_by_a_running_one() {
    let folder = prepared_folder();
    let company = json(folder.path(), &["company", "create", "Acme"]);
    let id = company["id"].to_string();
    assert_eq!(company["name"], "Acme");
    let token = json(folder.path(), &["token", "create", "crm", "--company", &id, "--all"]);
    let key = token["key"].as_str().expect("key");
    assert!(key.starts_with("sk_live_") && key.len() == 40, "{key}");
    assert_eq!(token["prefix"].as_str(), Some(&key[..16]));

    let process = Process::serve(folder.path());
    let api = Api::new(process.address, key);
    assert!(api.get("/channels").await.data(200).as_array().is_some_and(Vec::is_empty));
    // The running service sees what is created from here on.
    let channel = json(folder.path(), &["channel", "create", "Website", "--company", &id, "--type", "webchat"]);
    assert!(channel["publicKey"].is_string() && channel["type"] == "webchat", "{channel}");
    wait_until_seen("the channel takes sessions", || async {
        api.post("/webchat/sessions", serde_json::json!({"channelId": channel["id"]})).await.status == 201
    })
    .await;

    let reader = json(folder.path(), &["token", "create", "reader", "--company", &id, "--permission", "channels:GET"]);
    let reader = api.with_key(reader["key"].as_str().expect("key"));
    wait_until_seen("the token is seen", || async { reader.get("/channels").await.status == 200 }).await;
    reader.get("/tickets").await.error(403, "ERR_API_FORBIDDEN_SCOPE");

    assert_eq!(json(folder.path(), &["company", "list"])["companies"][0]["id"], company["id"]);
    let tokens = json(folder.path(), &["token", "list", "--company", &id]);
    assert_eq!(tokens["tokens"].as_array().map(Vec::len), Some(2));
    assert!(!tokens.to_string().contains(key), "a key shows in the list");
    assert_eq!(json(folder.path(), &["channel", "list"])["channels"][0]["publicKey"], channel["publicKey"]);
    process.kill();
}

/// The contract says: within a second.
#[actix_web::test]
async fn what_the_command_line_changes_is_seen_within_a_second_measured() {
    let folder = prepared_folder();
    let path = folder.path();
    let id = json(path, &["company", "create", "Acme"])["id"].to_string();
    let process = Process::serve(path);
    let token = json(path, &["token", "create", "crm", "--company", &id, "--all"]);
    let api = Api::new(process.address, token["key"].as_str().expect("key"));
    let has_status = async |wanted: u16| api.get("/channels").await.status.as_u16() == wanted;
    let mut times = vec![wait_until_seen("the token", || has_status(200)).await];
    let channel = json(path, &["channel", "create", "Website", "--company", &id, "--type", "webchat"]);
    let opens_session =
        || async { api.post("/webchat/sessions", serde_json::json!({"channelId": channel["id"]})).await.status == 201 };
    times.push(wait_until_seen("the channel", opens_session).await);
    json(path, &["company", "update", &id, "--active=false"]);
    times.push(wait_until_seen("the company is not served", || has_status(403)).await);
    json(path, &["company", "update", &id, "--active=true"]);
    times.push(wait_until_seen("the company is served again", || has_status(200)).await);
    json(path, &["token", "revoke", &token["id"].to_string()]);
    times.push(wait_until_seen("the token is revoked", || has_status(401)).await);
    assert!(times.iter().all(|time| *time < Duration::from_secs(1)), "{times:?}");
    process.kill();
}

#[actix_web::test]
async fn the_demo_serves_and_its_printed_lines_work_as_pasted() {
    let folder = prepared_folder();
    let (mut process, printed) = Process::demo(folder.path());
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| ["curl", "session=", "ticket="].iter().any(|start| line.starts_with(start)))
        .collect();
    assert!(lines.len() >= 6, "{printed}");
    // The command that streams events runs in the background until it is stopped, as in another terminal. The others
    // follow once the stream is open.
    let (head, events) = (folder.path().join("head"), folder.path().join("events"));
    let (head_at, events_at) = (head.display(), events.display());
    let (streams, calls): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.starts_with("curl -sN"));
    assert_eq!(streams.len(), 1, "{printed}");
    let stream = format!("{} -D {head_at} -o {events_at}", streams[0]);
    let script = format!(
        "set -e\n{stream} & listener=$!\ntrap 'kill $listener' EXIT\nuntil [ -s {head_at} ]; do sleep 0.05; done\n{}\n\
         until grep -q '^event: ticket.closed' {events_at}; do sleep 0.05; done",
        calls.join("\necho\n")
    );
    let output = std::process::Command::new("sh").arg("-c").arg(&script).output().expect("sh runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8_lossy(&output.stdout);
    for expected in [
        "Is anybody there?",
        "how can I help?",
        "\"status\":\"closed\"",
        "\"type\":\"opened\"",
        "\"monthlyGoal\":25000",
        "Carport",
        "\"totalPrice\":",
    ] {
        assert!(stdout.contains(expected), "{expected} is missing in {stdout}");
    }
    assert!(!stdout.contains("\"error\":{"), "{stdout}");
    let events = std::fs::read_to_string(&events).expect("what was streamed");
    for expected in ["event: ticket.opened", "event: message.received", "event: message.created"] {
        assert!(events.contains(expected), "{expected} is missing in {events}");
    }
    process.terminate();
    assert!(process.wait().success());
}
