//! The credentials of channels at rest, and `hotline secret`.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use hotline_persistence::PgPool;
use reqwest::Method;
use serde_json::Value;
use sqlx::AssertSqlSafe;

use super::{failure, json, url, wait_until_seen};
use crate::process::{Process, command, data_folder, hotline, run, with_database};
use crate::support::provider::hooks::{Phone, signature, text};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Provider, Reply, TestDatabase, eventually};

/// An access token, an app secret and a verify token, which no other record contains.
pub const CREDENTIALS: [&str; 3] = ["Hidden-Access-Token-7Qx", "Hidden-App-Secret-8Ry", "Hidden-Verify-Token-9Sz"];

/// The provider's id of the phone channel's number.
const PHONE_ID: &str = "7001";

/// Every value of every column that could hold text: its table and column, and the value as text.
async fn text_values(db: &PgPool) -> Vec<(String, String)> {
    let columns: Vec<(String, String)> = sqlx::query_as(
        "select c.table_name::text, c.column_name::text from information_schema.columns c
         join information_schema.tables t using (table_schema, table_name)
         where c.table_schema = 'public' and t.table_type = 'BASE TABLE'
           and c.data_type not in ('bigint', 'integer', 'smallint', 'boolean', 'timestamp with time zone', 'date')",
    )
    .fetch_all(db)
    .await
    .expect("the columns");
    assert!(columns.len() > 50, "few columns: {columns:?}");
    let mut found = Vec::new();
    for (table, column) in columns {
        // Bytes are read as characters, so that a text in them is found.
        let statement = format!(
            r#"select case when pg_typeof("{column}") = 'bytea'::regtype then encode("{column}"::text::bytea, 'escape')
                else "{column}"::text end from "{table}" where "{column}" is not null"#
        );
        let values: Vec<String> = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_all(db).await.expect("the values");
        found.extend(values.into_iter().map(|value| (format!("{table}.{column}"), value)));
    }
    found
}

pub fn place_file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, format!("{text}\n")).expect("written");
    path.display().to_string()
}

/// Creates a channel of each type on the command line, with credentials from files and from standard input.
pub fn create_channels(folder: &Path, company: &str, provider: &str) -> Vec<Value> {
    let [token, secret, verify] = CREDENTIALS;
    let (token, verify) = (place_file(folder, "token", token), place_file(folder, "verify", verify));
    let mut channels = vec![json(folder, &["channel", "create", "Site", "--company", company, "--type", "webchat"])];
    for (kind, option, id) in [
        ("whatsapp", "--phone-number-id", PHONE_ID),
        ("messenger", "--page-id", "7002"),
        ("instagram", "--page-id", "7003"),
    ] {
        let mut create =
            command(folder, &["channel", "create", kind, "--company", company, "--type", kind, option, id, "--json"]);
        create.args(["--access-token-file", &token, "--verify-token-file", &verify, "--app-secret-file", "-"]);
        create.args(["--provider-url", provider]);
        let mut child =
            create.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotline runs");
        writeln!(child.stdin.take().expect("stdin"), "{secret}").expect("the secret is given");
        let output = child.wait_with_output().expect("output");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && stderr.is_empty(), "{stderr}");
        channels.push(serde_json::from_slice(&output.stdout).expect("json"));
    }
    assert!(channels.iter().all(|channel| channel["status"] == "connected"), "{channels:?}");
    channels
}

/// Whether the running service accepts the verify token of a channel.
pub async fn accepts_verify_token(api: &Api, channel: &Value) -> bool {
    let (key, verify) = (channel["publicKey"].as_str().expect("key"), CREDENTIALS[2]);
    let challenge = format!("/hooks/{key}?hub.mode=subscribe&hub.verify_token={verify}&hub.challenge=421");
    Reply::of(api.anonymous(Method::GET, &challenge)).await.status == 200
}

/// Uses every credential of a phone channel: it verifies, takes a call, and sends with its token.
pub async fn use_channel(api: &Api, provider: &Provider, channel: &Value, from: &str) {
    let key = channel["publicKey"].as_str().expect("key");
    let [_, secret, _] = CREDENTIALS;
    assert!(accepts_verify_token(api, channel).await, "the verify token is refused");
    let phone = Phone { id: PHONE_ID.to_owned(), number: "15550783881".to_owned() };
    let body = phone.message(from, "Maria", text(&format!("wamid.{from}"), "Hello")).to_string();
    let signature = signature(secret, body.as_bytes());
    let call =
        api.anonymous(Method::POST, &format!("/hooks/{key}")).header("x-hub-signature-256", signature).body(body);
    assert_eq!(Reply::of(call).await.status, 200);
    let send = serde_json::json!({"channelId": channel["id"], "number": from, "type": "text", "body": "Hi"});
    let job = api.post("/messages", send).await.data(202)["jobId"].clone();
    let job = format!("/messages/jobs/{}", job.as_str().map_or_else(|| job.to_string(), str::to_owned));
    eventually("the message is sent", || async { api.get(&job).await.body["data"]["status"] == "sent" }).await;
    assert!(!provider.accepted(PHONE_ID).is_empty(), "sent with another token");
}

#[actix_web::test]
async fn no_table_holds_a_credential_and_a_key_is_rotated_while_the_service_runs() {
    let folder = prepared_folder();
    let path = folder.path();
    let provider = Provider::start().await;
    provider.only_token(PHONE_ID, CREDENTIALS[0]);
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let mut channels = create_channels(path, &company, &provider.url);
    let mode = |name: &str| std::fs::metadata(path.join(name)).expect(name).permissions().mode() & 0o7777;
    assert_eq!(mode("secrets.key"), 0o600);
    let process = Process::serve(path);
    // Commands use the same key while the service runs.
    channels.extend(create_channels(path, &company, &provider.url));
    let key = json(path, &["token", "create", "crm", "--company", &company, "--all"])["key"].clone();
    let key = key.as_str().expect("key");
    let api = Api::new(process.address, key);
    wait_until_seen("the last channel is seen", || async { api.get("/channels").await.status == 200 }).await;
    use_channel(&api, &provider, &channels[5], "5511987654321").await;

    let first = json(path, &["secret", "list"])["keys"].as_array().expect("keys").clone();
    assert_eq!(first.len(), 1, "{first:?}");
    // Three secrets of each of six channels, and the keys for the addresses of files and for the cursors of lists.
    assert_eq!(
        (&first[0]["secretCount"], &first[0]["current"], &first[0]["inFile"]),
        (&20.into(), &true.into(), &true.into())
    );
    let old = first[0]["id"].as_str().expect("id").to_owned();
    let in_use = failure(path, &["secret", "delete", &old]);
    assert!(in_use.contains(&old) && in_use.contains("rotate"), "{in_use}");

    let rotated = json(path, &["secret", "rotate"]);
    let new = rotated["id"].as_str().expect("id").to_owned();
    assert_eq!(rotated["reencrypted"], 20);
    assert_eq!(mode("secrets.key"), 0o600);
    // The running service continues without a break, and a new channel is sealed with the new key.
    use_channel(&api, &provider, &channels[5], "5511987654322").await;
    let late = create_channels(path, &company, &provider.url);
    wait_until_seen("the new channel is seen", || async {
        api.get(&format!("/channels/{}", late[1]["id"])).await.status == 200
    })
    .await;
    let listed = json(path, &["secret", "list"]);
    assert_eq!(
        (&listed["keys"][0]["id"], &listed["keys"][0]["secretCount"]),
        (&new.as_str().into(), &29.into()),
        "{listed}"
    );
    assert_eq!((&listed["keys"][1]["id"], &listed["keys"][1]["secretCount"]), (&old.as_str().into(), &0.into()));

    json(path, &["secret", "delete", &old]);
    assert_eq!(json(path, &["secret", "list"])["keys"].as_array().map(Vec::len), Some(1));
    assert_eq!(json(path, &["secret", "reencrypt"])["reencrypted"], 29);
    use_channel(&api, &provider, &channels[5], "5511987654323").await;

    let values = with_database(path, text_values).await;
    assert!(
        values.iter().any(|(_, value)| value.contains("$sealed") && value.contains(&new)),
        "no value is sealed with the new key"
    );
    for secret in CREDENTIALS.iter().chain([&key]) {
        let found: BTreeSet<&String> =
            values.iter().filter(|(_, value)| value.contains(*secret)).map(|(column, _)| column).collect();
        assert!(found.is_empty(), "a secret is stored in clear in {found:?}");
    }
    let shown = process.log() + &String::from_utf8_lossy(&run(path, &["channel", "list", "--json"]).stdout);
    assert!(CREDENTIALS.iter().all(|secret| !shown.contains(secret)), "a secret is printed or logged");
    process.kill();

    // Without the key nothing can be sealed, and the command says so. `lost_keys` tests the service.
    let (file, aside) = (path.join("secrets.key"), path.join("aside.key"));
    std::fs::rename(&file, &aside).expect("moved");
    let update = ["channel", "update", &channels[1]["id"].to_string(), "--name", "Phone"].map(str::to_owned);
    let update: Vec<&str> = update.iter().map(String::as_str).collect();
    let stderr = failure(path, &update);
    assert!(stderr.contains(&new) && stderr.contains("secrets.key") && stderr.contains("--key-file"), "{stderr}");
    assert!(!file.exists(), "another key was made");
    // A command that needs no secret works.
    assert_eq!(json(path, &["channel", "list"])["channels"].as_array().map(Vec::len), Some(12));
    // The key of another installation is not accepted.
    let other = place_file(path, "other.key", &"0b".repeat(32));
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).expect("mode");
    let stderr = failure(path, &[&update[..], &["--key-file", &other]].concat());
    assert!(stderr.contains(&new) && stderr.contains("other.key") && stderr.contains("it contains"), "{stderr}");
    // Nor is a key file that others may read.
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o644)).expect("mode");
    let key_file = aside.display().to_string();
    let stderr = Process::try_serve(path, &["--key-file", &key_file]).err().expect("no start");
    assert!(stderr.contains("0644") && stderr.contains("chmod"), "{stderr}");
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600)).expect("mode");
    let mut process = Process::try_serve(path, &["--key-file", &key_file])
        .unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    use_channel(&Api::new(process.address, key), &provider, &channels[5], "5511987654324").await;
    process.terminate();
    assert!(process.wait().success());
}

#[actix_web::test]
async fn secrets_that_an_earlier_release_stored_in_clear_are_sealed_by_the_first_start() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    with_database(path, async |db| {
        let [token, secret, verify] = CREDENTIALS;
        let settings = serde_json::json!({"phoneNumberId": "whatsapp", "accessToken": token, "appSecret": secret,
            "verifyToken": verify, "laterKey": {"kept": true}});
        sqlx::query(
            "insert into channels (company_id, name, type, status, public_key, settings)
             values ($1, 'Phone', 'whatsapp', 'connected', 'ch_old', $2)",
        )
        .bind(company.parse::<i64>().expect("id"))
        .bind(settings)
        .execute(db)
        .await
        .expect("a channel");
        let link = "insert into installation_keys (name, key) values ('media_links', decode(repeat('ab', 64), 'hex'))";
        sqlx::query(link).execute(db).await.expect("a key");
    })
    .await;
    let process = Process::serve(path);
    let api = Api::new(process.address, "none");
    let challenge = format!("/hooks/ch_old?hub.mode=subscribe&hub.verify_token={}&hub.challenge=421", CREDENTIALS[2]);
    assert_eq!(Reply::of(api.anonymous(Method::GET, &challenge)).await.status, 200);
    let values = with_database(path, text_values).await;
    for secret in CREDENTIALS.iter().chain([&"\\xab\\xab"]).chain([&"\\253\\253"]) {
        assert!(values.iter().all(|(_, value)| !value.contains(secret)), "{secret} is stored in clear");
    }
    assert!(values.iter().any(|(column, value)| column == "channels.settings" && value.contains("\"kept\": true")));
    process.kill();
}

#[actix_web::test]
async fn a_command_on_another_machine_creates_no_key() {
    let database = TestDatabase::migrated().await;
    let company = Company::create(&database.db, "Acme").await.id.to_string();
    let url = url(&database);
    let folder = data_folder();
    let path = folder.path();
    let nowhere = path.join("nowhere").display().to_string();
    let token = place_file(path, "token", CREDENTIALS[0]);
    let create = |more: &[&str]| {
        let mut command = hotline();
        command.args(["channel", "create", "Phone", "--company", &company, "--type", "whatsapp"]);
        command.args(["--access-token-file", &token, "--database-url", &url]).args(more);
        let output = command.stdin(Stdio::null()).output().expect("hotline runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // Without a data folder there is no key, as on a machine other than the service's.
    let (has_succeeded, stderr) = create(&["--data-dir", &nowhere]);
    assert!(!has_succeeded && stderr.contains("--key-file") && stderr.contains("another machine"), "{stderr}");
    assert!(!Path::new(&nowhere).exists());
    let file = path.join("service.key").display().to_string();
    let (has_succeeded, stderr) = create(&["--data-dir", &nowhere, "--key-file", &file]);
    assert!(has_succeeded && Path::new(&file).exists(), "{stderr}");
    // From now on every command needs that key.
    let (has_succeeded, stderr) = create(&["--data-dir", &path.display().to_string()]);
    assert!(
        !has_succeeded && stderr.contains("encrypted with the key") && !path.join("secrets.key").exists(),
        "{stderr}"
    );
    database.drop().await;
}

#[actix_web::test]
async fn a_credential_is_read_from_a_file_or_standard_input_and_never_printed() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let empty = place_file(path, "empty", "");
    let two_words = place_file(path, "words", "Hidden words");
    let token = place_file(path, "token", CREDENTIALS[0]);
    // One byte more than a credential may have, after spaces, and far more.
    let long = place_file(path, "long", &format!("        Hidden{}", "x".repeat(4097 - "Hidden".len())));
    let longer = place_file(path, "longer", &"Hidden".repeat(1000));
    let create = ["channel", "create", "Phone", "--company", &company, "--type", "whatsapp"];
    for (options, reason) in [
        (&["--access-token-file", &empty][..], "--access-token-file"),
        (&["--access-token-file", "/nowhere/token"], "/nowhere/token"),
        (&["--access-token-file", &two_words], "one word"),
        (&["--access-token-file", &long], "at most 4096 bytes"),
        (&["--access-token-file", &longer], "the first line has more than"),
        (&["--access-token-file", "-", "--app-secret-file", "-"], "standard input"),
        (&["--access-token-file", &token, "--access-token", "x"], "--access-token"),
        (&["--verify-token-file", "-"], "the first line is empty"),
    ] {
        let stderr = failure(path, &[&create[..], options].concat());
        assert!(stderr.contains(reason) && !stderr.contains("Hidden"), "{options:?}: {stderr}");
    }
    // A credential given as an argument is accepted, with a warning.
    let output = run(path, &[&create[..], &["--access-token", CREDENTIALS[0]]].concat());
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && warned.contains("--access-token-file") && !warned.contains("Hidden"),
        "{warned}"
    );
}
