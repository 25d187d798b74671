//! A service without its key file works, except for what needs a stored secret. `hotline secret abandon` gives
//! up the secrets of a lost key.

use std::path::Path;

use serde_json::{Value, json};

use super::secrets::{CREDENTIALS, accepts_verify_token, create_channels, place_file, use_channel};
use super::{failure, json as run_json, wait_until_seen};
use crate::process::{Process, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Provider, Receiver, eventually};

/// Lets webhooks be delivered to this machine.
const ALLOW_LOCAL: [&str; 2] = ["--webhook-allow-network", "127.0.0.0/8"];

fn serve(folder: &Path) -> Process {
    Process::try_serve(folder, &ALLOW_LOCAL).unwrap_or_else(|log| panic!("hotline does not start: {log}"))
}

fn stop(mut process: Process) {
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

/// The warnings and errors in a log, except that the service runs as root.
fn warnings(process: &Process) -> Vec<String> {
    let is_warning =
        |line: &&str| (line.contains("\"WARN\"") || line.contains("\"ERROR\"")) && !line.contains("hotline::cli::root");
    process.log().lines().filter(is_warning).map(str::to_owned).collect()
}

/// The stored settings of channels, and the other stored secrets.
async fn stored_secrets(folder: &Path) -> Vec<String> {
    with_database(folder, async |db| {
        let all = "select settings::text from channels union all select secret from webhooks
             union all select encode(key, 'hex') from installation_keys union all select secret from second_factors
             order by 1";
        sqlx::query_scalar(all).fetch_all(db).await.expect("the stored secrets")
    })
    .await
}

/// Checks what a service without its key shows and refuses.
async fn check_without_key(process: &Process, api: &Api, channels: &[Value], webhook_id: &Value, key: &str) {
    let warned = warnings(process);
    assert_eq!(warned.len(), 1, "{warned:#?}");
    assert!(warned[0].contains("keys that encrypt credentials are missing"), "{warned:?}");
    assert!(warned[0].contains(key) && warned[0].contains("hotline secret abandon"), "{warned:?}");
    let listed = api.get("/channels?order=asc").await.data(200).clone();
    let statuses: Vec<&Value> = listed.as_array().expect("channels").iter().map(|channel| &channel["status"]).collect();
    assert_eq!(statuses, ["connected", "disconnected", "disconnected", "disconnected"], "{listed}");
    assert!(listed[1]["lastError"].as_str().is_some_and(|error| error.contains("missing")), "{listed}");
    // What does not need a secret works.
    let contact = api.post("/contacts", json!({"name": "Maria", "number": "5511900000001"})).await.data(201).clone();
    api.post("/webchat/sessions", json!({"channelId": channels[0]["id"]})).await.data(201);
    // A send waits, as on any disconnected channel.
    let send = json!({"channelId": channels[1]["id"], "contactId": contact["id"], "type": "text", "body": "Hi"});
    let job = api.post("/messages", send).await.data(202)["jobId"].clone();
    let job = api.get(&format!("/messages/jobs/{}", job.as_str().expect("id"))).await.data(200).clone();
    assert_eq!((&job["status"], &job["waitingFor"]["code"]), (&json!("queued"), &json!("channel_disconnected")));
    let webhook = api.get(&format!("/webhooks/{webhook_id}")).await.data(200).clone();
    assert_eq!(webhook["active"], false);
    assert!(webhook["disabledReason"].as_str().is_some_and(|reason| reason.contains("missing")), "{webhook}");
    for verb in ["test", "rotate-secret"] {
        let refused = api.post(&format!("/webhooks/{webhook_id}/{verb}"), json!({})).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "key_missing", "{verb}");
    }
    let new = api.post("/webhooks", json!({"url": "https://example.com/hook"})).await;
    assert_eq!(new.error(409, "ERR_API_CONFLICT")["reason"], "key_missing");
    api.post("/tags", json!({"name": "vip"})).await.data(201);
}

#[actix_web::test]
async fn a_service_without_its_key_serves_and_a_key_that_is_found_changes_nothing() {
    let folder = prepared_folder();
    let path = folder.path();
    let provider = Provider::start().await;
    let company = run_json(path, &["company", "create", "Acme"])["id"].to_string();
    let channels = create_channels(path, &company, &provider.url);
    let token = run_json(path, &["token", "create", "crm", "--company", &company, "--all"])["key"].clone();
    let token = token.as_str().expect("key");
    let receiver = Receiver::start().await;
    let webhook =
        run_json(path, &[&["webhook", "create", &receiver.url(), "--company", &company][..], &ALLOW_LOCAL].concat());
    let key = run_json(path, &["secret", "list"])["keys"][0]["id"].as_str().expect("id").to_owned();
    stop(serve(path));
    let before = stored_secrets(path).await;
    let (file, aside) = (path.join("secrets.key"), path.join("aside.key"));
    std::fs::rename(&file, &aside).expect("moved");

    let process = serve(path);
    let api = Api::new(process.address, token);
    check_without_key(&process, &api, &channels, &webhook["id"], &key).await;
    let listed = run_json(path, &["secret", "list"])["keys"].clone();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["inFile"], &listed[0]["current"]),
        (&json!(key), &json!(false), &json!(false)),
        "{listed}"
    );
    assert!(listed[0]["secretCount"].as_i64().is_some_and(|count| count > 9), "{listed}");
    let stderr = failure(path, &["secret", "abandon", &key]);
    assert!(stderr.contains("--yes") && stderr.contains(&key), "{stderr}");
    assert!(!file.exists(), "another key was made");
    stop(process);
    assert_eq!(stored_secrets(path).await, before, "a secret was changed");
    // A second start without the key warns again.
    let process = serve(path);
    assert_eq!(warnings(&process).len(), 1, "{:#?}", warnings(&process));
    stop(process);

    std::fs::rename(&aside, &file).expect("moved");
    let process = serve(path);
    assert_eq!(warnings(&process), [""; 0]);
    let api = Api::new(process.address, token);
    use_channel(&api, &provider, &channels[1], "5511987654321").await;
    let listed = api.get("/channels").await.data(200).clone();
    let is_connected = |channel: &Value| channel["status"] == "connected" && channel["lastError"].is_null();
    assert!(listed.as_array().expect("channels").iter().all(is_connected), "{listed}");
    eventually("the message that waited is sent", || async { provider.accepted("7001").len() == 2 }).await;
    eventually("the webhook has what happened meanwhile", || async {
        receiver.received().iter().any(|request| request.event()["type"] == "contact.created")
    })
    .await;
    let stderr = failure(path, &["secret", "abandon", &key, "--yes"]);
    assert!(stderr.contains("is not lost") && stderr.contains("secrets.key"), "{stderr}");
    stop(process);
}

#[actix_web::test]
async fn new_credentials_are_accepted_after_a_key_is_abandoned() {
    let folder = prepared_folder();
    let path = folder.path();
    let provider = Provider::start().await;
    let company = run_json(path, &["company", "create", "Acme"])["id"].to_string();
    let channels = create_channels(path, &company, &provider.url);
    let token = run_json(path, &["token", "create", "crm", "--company", &company, "--all"])["key"].clone();
    let token = token.as_str().expect("key");
    let receiver = Receiver::start().await;
    let webhook =
        run_json(path, &[&["webhook", "create", &receiver.url(), "--company", &company][..], &ALLOW_LOCAL].concat());
    let key = run_json(path, &["secret", "list"])["keys"][0]["id"].as_str().expect("id").to_owned();
    assert!(failure(path, &["secret", "abandon", "0011223344556677", "--yes"]).contains("no such key"));
    std::fs::remove_file(path.join("secrets.key")).expect("lost");

    // The key is abandoned while a service runs that was started without it.
    let process = serve(path);
    let api = Api::new(process.address, token);
    let abandoned = run_json(path, &["secret", "abandon", &key, "--yes"]);
    let ids: Vec<&Value> = channels[1..].iter().map(|channel| &channel["id"]).collect();
    assert_eq!(
        (&abandoned["id"], &abandoned["channels"], &abandoned["channelSecrets"], &abandoned["webhooks"]),
        (&json!(key), &json!(ids), &json!(9), &json!([webhook["id"]])),
        "{abandoned}"
    );
    let keys = run_json(path, &["secret", "list"])["keys"].clone();
    assert_eq!((keys.as_array().map(Vec::len), &keys[0]["id"]), (Some(1), &abandoned["current"]), "{keys}");
    assert!(
        !stored_secrets(path).await.iter().any(|value| value.contains(&key)),
        "a value encrypted with the abandoned key is left"
    );
    // New credentials are accepted at once, from the command line and over the API.
    let files = CREDENTIALS.map(|secret| place_file(path, secret, secret));
    let id = channels[1]["id"].to_string();
    let update = ["channel", "update", &id, "--access-token-file", &files[0], "--app-secret-file", &files[1]];
    let updated = run_json(path, &[&update[..], &["--verify-token-file", &files[2]]].concat());
    assert_eq!((&updated["status"], &updated["lastError"]), (&json!("connected"), &Value::Null), "{updated}");
    wait_until_seen("the new verify token is accepted", || async { accepts_verify_token(&api, &channels[1]).await })
        .await;
    use_channel(&api, &provider, &channels[1], "5511987654321").await;
    let rotated = api.post(&format!("/webhooks/{}/rotate-secret", webhook["id"]), json!({})).await.data(200).clone();
    assert!(rotated["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{rotated}");
    api.put(&format!("/webhooks/{}", webhook["id"]), json!({"active": true})).await.data(200);
    api.post("/contacts", json!({"name": "Maria", "number": "5511900000002"})).await.data(201);
    eventually("a delivery arrives", || async { receiver.count() > 0 }).await;
    stop(process);
    let process = serve(path);
    assert_eq!(warnings(&process), [""; 0]);
    use_channel(&Api::new(process.address, token), &provider, &channels[1], "5511987654322").await;
    stop(process);
}

#[actix_web::test]
async fn a_key_can_be_abandoned_while_another_secret_is_stored_in_clear() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = run_json(path, &["company", "create", "Acme"])["id"].to_string();
    create_channels(path, &company, "http://127.0.0.1:9");
    let key = run_json(path, &["secret", "list"])["keys"][0]["id"].as_str().expect("id").to_owned();
    std::fs::remove_file(path.join("secrets.key")).expect("lost");
    with_database(path, async |db| {
        for statement in [
            // As an earlier release stored it: bytes that are not text.
            "insert into installation_keys (name, key) values ('media_links', decode(repeat('ff', 64), 'hex'))",
            // Of the conditions of an `and`, PostgreSQL evaluates the cheapest first.
            "alter function length(bytea) cost 1000000",
        ] {
            sqlx::query(statement).execute(db).await.expect(statement);
        }
    })
    .await;
    let abandoned = run_json(path, &["secret", "abandon", &key, "--yes"]);
    assert_eq!((&abandoned["id"], &abandoned["channelSecrets"]), (&json!(key), &json!(9)), "{abandoned}");
    assert!(stored_secrets(path).await.contains(&"ff".repeat(64)), "the other secret is kept");
}

#[actix_web::test]
async fn a_key_of_another_installation_seals_nothing() {
    let folder = prepared_folder();
    let path = folder.path();
    let provider = Provider::start().await;
    let company = run_json(path, &["company", "create", "Acme"])["id"].to_string();
    let channels = create_channels(path, &company, &provider.url);
    let token = run_json(path, &["token", "create", "crm", "--company", &company, "--all"])["key"].clone();
    let own = run_json(path, &["secret", "list"])["keys"][0]["id"].as_str().expect("id").to_owned();
    let other = place_file(path, "other.key", &"0b".repeat(32));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&other, mode).expect("mode");
    let process =
        Process::try_serve(path, &["--key-file", &other]).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let api = Api::new(process.address, token.as_str().expect("key"));
    let new = api.post("/webhooks", json!({"url": "https://example.com/hook"})).await;
    assert_eq!(new.error(409, "ERR_API_CONFLICT")["reason"], "key_missing");
    stop(process);
    let keys = run_json(path, &["secret", "list"])["keys"].clone();
    assert_eq!((keys.as_array().map(Vec::len), &keys[0]["id"]), (Some(1), &json!(own)), "{keys}");
    let process = serve(path);
    use_channel(&Api::new(process.address, token.as_str().expect("key")), &provider, &channels[1], "5511987654321")
        .await;
    stop(process);
}
