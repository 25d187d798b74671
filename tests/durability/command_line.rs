//! The command line, on a stopped service and on a running one.

use serde_json::Value;

use crate::process::{Process, data_folder, run};
use crate::support::{Api, eventually};

/// Runs a command with `--json`, which must succeed, and answers what it printed.
fn json(folder: &std::path::Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[arguments, &["--json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?} printed no JSON: {error}"))
}

#[actix_web::test]
async fn companies_tokens_and_channels_are_made_on_a_stopped_service_and_seen_by_a_running_one() {
    let folder = data_folder();
    let company = json(folder.path(), &["company", "create", "Acme"]);
    let id = company["id"].to_string();
    assert_eq!(company["name"], "Acme");
    let token = json(folder.path(), &["token", "create", "--company", &id, "--name", "crm", "--all"]);
    let key = token["key"].as_str().expect("key");
    assert!(key.starts_with("sk_live_") && key.len() == 40, "{key}");
    assert_eq!(token["prefix"].as_str(), Some(&key[..16]));

    let process = Process::serve(folder.path());
    let api = Api::new(process.address, key);
    assert!(api.get("/channels").await.data(200).as_array().is_some_and(Vec::is_empty));
    // On the running service: seen within a second.
    let started = std::time::Instant::now();
    let channel =
        json(folder.path(), &["channel", "create", "--company", &id, "--type", "webchat", "--name", "Website"]);
    assert!(channel["publicKey"].is_string() && channel["type"] == "webchat", "{channel}");
    let made = std::time::Instant::now();
    eventually("the channel takes sessions", || async {
        api.post("/webchat/sessions", serde_json::json!({"channelId": channel["id"]})).await.status == 201
    })
    .await;
    assert!(made.elapsed() < std::time::Duration::from_secs(1), "seen after {:?}", made.elapsed());
    println!("made in {:?}, seen after {:?}", made - started, made.elapsed());

    let reader =
        json(folder.path(), &["token", "create", "--company", &id, "--name", "reader", "--permission", "channels:GET"]);
    let reader = api.with_key(reader["key"].as_str().expect("key"));
    eventually("the token is seen", || async { reader.get("/channels").await.status == 200 }).await;
    reader.get("/tickets").await.error(403, "ERR_API_FORBIDDEN_SCOPE");

    assert_eq!(json(folder.path(), &["company", "list"])["companies"][0]["id"], company["id"]);
    let tokens = json(folder.path(), &["token", "list", "--company", &id]);
    assert_eq!(tokens["tokens"].as_array().map(Vec::len), Some(2));
    assert!(!tokens.to_string().contains(key), "a key shows in the list");
    assert_eq!(json(folder.path(), &["channel", "list"])["channels"][0]["publicKey"], channel["publicKey"]);
    process.kill();
}

#[test]
fn what_a_command_cannot_do_it_says_and_fails() {
    let folder = data_folder();
    for (arguments, word) in [
        (vec!["token", "create", "--company", "7", "--name", "x", "--all"], "company"),
        (vec!["channel", "create", "--company", "7", "--type", "webchat", "--name", "x"], "company"),
        (vec!["token", "create", "--company", "7", "--name", "x", "--permission", "nothing:GET"], "nothing"),
        (vec!["token", "create", "--company", "7", "--name", "x", "--all", "--allow-ip", "::1"], "::1"),
        (vec!["company", "create", "  "], "blank"),
    ] {
        let output = run(folder.path(), &arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[actix_web::test]
async fn the_demo_serves_and_its_printed_lines_work_as_pasted() {
    let folder = data_folder();
    let (mut process, printed) = Process::demo(folder.path());
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| ["curl", "session=", "ticket="].iter().any(|start| line.starts_with(start)))
        .collect();
    assert!(lines.len() >= 6, "{printed}");
    let script = format!("set -e\n{}", lines.join("\necho\n"));
    let output = std::process::Command::new("sh").arg("-c").arg(&script).output().expect("sh runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    for expected in ["Is anybody there?", "How can I help?", "\"status\":\"closed\"", "\"type\":\"opened\""] {
        assert!(said.contains(expected), "{expected} is missing in {said}");
    }
    assert!(!said.contains("\"error\":{"), "{said}");
    process.terminate();
    assert!(process.wait().success());
}
