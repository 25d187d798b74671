//! `hotline channel`.

use hotline_persistence::sealed::without_secrets;
use hotline_persistence::tables::channels::CHANNELS_MAX;
use serde_json::{Value, json as to_json};

use super::{failure, json, wait_until_seen};
use crate::process::{Process, run, with_database};
use crate::support::Api;
use crate::support::template::prepared_folder;

const CREDENTIALS: [&str; 6] =
    ["--access-token", "hidden-one", "--app-secret", "hidden-two", "--verify-token", "hidden-three"];

/// The stored settings of a channel, with its sealed secrets.
async fn stored(folder: &std::path::Path, id: &str) -> Value {
    let id: i64 = id.parse().expect("id");
    with_database(folder, async |db| {
        sqlx::query_scalar("select settings from channels where id = $1")
            .bind(id)
            .fetch_one(db)
            .await
            .expect("settings")
    })
    .await
}

#[actix_web::test]
async fn channels_take_what_their_type_needs_and_show_no_secret() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let mut printed = String::new();
    let create = |kind: &str, options: &[&str]| {
        let create = ["channel", "create", kind, "--company", &company, "--type", kind];
        json(path, &[&create, options].concat())
    };
    // On a stopped service.
    let phone = create(
        "whatsapp",
        &[&["--phone-number-id", "1065", "--number", "+55 11 99999-0000"][..], &CREDENTIALS].concat(),
    );
    assert_eq!((&phone["type"], &phone["status"]), (&"whatsapp".into(), &"connected".into()));
    assert!(phone["publicKey"].is_string() && phone["name"] == "whatsapp" && phone["number"] == "5511999990000");
    let phone_id = phone["id"].to_string();
    printed += &phone.to_string();
    let renamed = json(path, &["channel", "update", &phone_id, "--name", "Phone", "--number", ""]);
    assert_eq!((&renamed["name"], &renamed["number"]), (&"Phone".into(), &Value::Null));
    assert_eq!((&renamed["status"], &renamed["publicKey"]), (&"connected".into(), &phone["publicKey"]));
    let appearance = ["--color", "#0F766E", "--title", "Shop", "--greeting", "Hello", "--position", "left"];
    let website = create(
        "webchat",
        &[&appearance[..], &["--allow-origin", "https://Shop.example", "--pre-chat-field", "name"]].concat(),
    );
    let website_id = website["id"].to_string();
    assert_eq!(
        stored(path, &website_id).await,
        to_json!({"allowedOrigins": ["https://shop.example"], "color": "#0f766e", "title": "Shop", "greeting": "Hello",
            "position": "left", "preChatFields": ["name"]})
    );

    // On a running service.
    let process = Process::serve(path);
    let token = json(path, &["token", "create", "crm", "--company", &company, "--all"]);
    let api = Api::new(process.address, token["key"].as_str().expect("key"));
    let (messenger, instagram) = (create("messenger", &["--page-id", "7"]), create("instagram", &CREDENTIALS));
    assert_eq!((&messenger["status"], &instagram["status"]), (&"disconnected".into(), &"disconnected".into()));
    let id = messenger["id"].to_string();
    let connected = json(path, &[&["channel", "update", &id][..], &CREDENTIALS].concat());
    printed += &connected.to_string();
    assert_eq!(connected["status"], "connected");
    wait_until_seen("the channel is connected", || async {
        api.get(&format!("/channels/{id}")).await.body["data"]["status"] == "connected"
    })
    .await;
    let sealed = stored(path, &id).await;
    assert_eq!(without_secrets(&sealed), to_json!({"pageId": "7"}));
    assert_eq!(sealed.as_object().map(serde_json::Map::len), Some(4), "{sealed}");
    // The stored token is not sent to another address than the one it was set for.
    let moved = failure(path, &["channel", "update", &id, "--provider-url", "http://127.0.0.1:9/"]);
    assert!(moved.contains("--access-token"), "{moved}");
    assert_eq!(stored(path, &id).await, sealed);
    printed += &sealed.to_string();

    let queue: i64 = with_database(path, async |db| {
        let fault = "update channels set status = 'error', last_error = 'token expired' where id = $1";
        sqlx::query(fault).bind(messenger["id"].as_i64()).execute(db).await.expect("fault");
        let queue = "insert into queues (company_id, name) values ($1, 'Support') returning id";
        sqlx::query_scalar(queue).bind(company.parse::<i64>().expect("id")).fetch_one(db).await.expect("queue")
    })
    .await;
    let queue = queue.to_string();
    let update = |options: &[&str]| json(path, &[&["channel", "update", &id], options].concat());
    let queued = update(&["--queue", &queue, "--app-secret", "hidden-four"]);
    assert_eq!(queued["queueId"].to_string(), queue);
    assert_eq!((&queued["status"], &queued["lastError"]), (&"error".into(), &"token expired".into()));
    let reconnected =
        update(&["--queue", "", "--access-token", "hidden-five", "--provider-url", "http://127.0.0.1:9/"]);
    assert_eq!((&reconnected["status"], &reconnected["lastError"]), (&"connected".into(), &Value::Null));
    assert_eq!((&reconnected["queueId"], &reconnected["settings"]["pageId"]), (&Value::Null, &"7".into()));
    assert_eq!(reconnected["settings"]["providerUrl"], "http://127.0.0.1:9");
    let disconnected = update(&["--access-token", ""]);
    assert_eq!(disconnected["status"], "disconnected");

    // A refusal names the option and changes nothing.
    let before = json(path, &["channel", "list"]);
    for (id, options, word) in [
        (&website_id, ["--access-token", "hidden-six"], "--access-token"),
        (&website_id, ["--phone-number-id", "1"], "--phone-number-id"),
        (&website_id, ["--allow-origin", "https://shop.example/page"], "--allow-origin"),
        (&website_id, ["--color", "red"], "--color"),
        (&website_id, ["--pre-chat-field", "age"], "--pre-chat-field"),
        (&phone_id, ["--page-id", "1"], "--page-id"),
        (&phone_id, ["--phone-number-id", "../me"], "--phone-number-id"),
        (&phone_id, ["--business-account-id", "1?x="], "--business-account-id"),
        (&phone_id, ["--greeting", "Hello"], "--greeting"),
        (&phone_id, ["--access-token", "hidden six"], "--access-token"),
        (&phone_id, ["--number", "12"], "--number"),
        (&id, ["--phone-number-id", "1"], "--phone-number-id"),
        (&id, ["--queue", "999"], "queue"),
    ] {
        let refusal = failure(path, &[&["channel", "update", id.as_str(), "--name", "Other"], &options[..]].concat());
        assert!(refusal.contains(word), "{options:?}: {refusal}");
        printed += &refusal;
    }
    assert_eq!(json(path, &["channel", "list"]), before);
    assert!(failure(path, &["channel", "update", "999", "--name", "x"]).contains("channel"));
    assert!(failure(path, &["channel", "update", &id]).contains("nothing to change"));
    printed += &before.to_string();
    printed += &String::from_utf8_lossy(&run(path, &["channel", "list"]).stdout);
    printed += &process.log();
    assert!(!printed.contains("hidden"), "a secret is shown");
    process.kill();
}

#[actix_web::test]
async fn a_company_has_as_many_channels_as_the_panel_allows() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let id: i64 = company.parse().expect("id");
    with_database(path, async |db| {
        let fill = "insert into channels (company_id, name, type, status, public_key)
             select $1, 'Site ' || number, 'webchat', 'connected', 'ch_' || number from generate_series(1, $2) number";
        sqlx::query(fill).bind(id).bind(CHANNELS_MAX - 1).execute(db).await.expect("channels");
    })
    .await;
    let create = ["channel", "create", "Site", "--company", &company, "--type", "webchat"];
    json(path, &create);
    let message = failure(path, &create);
    assert!(message.contains("maximum number of channels (1000)"), "{message}");
}

#[actix_web::test]
async fn an_identity_secret_is_shown_once_and_two_are_valid() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let create = |kind: &str, options: &[&str]| {
        let create = ["channel", "create", kind, "--company", &company, "--type", kind];
        json(path, &[&create, options].concat())
    };
    let website = create("webchat", &["--allow-origin", "https://*.shop.example/", "--require-identity"]);
    let id = website["id"].to_string();
    assert_eq!(website["settings"]["requireIdentity"], true);
    assert_eq!(website["settings"]["allowedOrigins"], to_json!(["https://*.shop.example"]));
    assert_eq!(website["identitySecrets"], 0);
    let mut secrets = Vec::new();
    for valid in [1, 2, 2] {
        let secret = json(path, &["channel", "rotate-identity-secret", &id]);
        assert_eq!((&secret["id"], &secret["identitySecrets"]), (&website["id"], &to_json!(valid)));
        secrets.push(secret["identitySecret"].as_str().expect("a secret").to_owned());
    }
    assert!(secrets.iter().all(|secret| secret.len() >= 64), "{secrets:?}");
    assert!(secrets[0] != secrets[1] && secrets[1] != secrets[2]);
    let process = Process::serve(path);
    let open_session = |secret: &str| {
        let claims = to_json!({"sub": "v-1", "exp": hotline_actors::clock::now().timestamp() + 60});
        let secret = hotline_persistence::tables::channels::Secret(secret.to_owned());
        let identity = hotline::visitors::identity::sign(&secret, &claims).expect("signed");
        let url =
            format!("http://{}/webchat/{}/sessions", process.address, website["publicKey"].as_str().expect("key"));
        let request =
            hotline::tls::client().build().expect("client").post(url).header("origin", "https://www.shop.example");
        async move { request.json(&to_json!({"identity": identity})).send().await.expect("answer").status().as_u16() }
    };
    assert_eq!(
        (open_session(&secrets[2]).await, open_session(&secrets[1]).await, open_session(&secrets[0]).await),
        (201, 201, 401)
    );
    // A running service sees the new secret within a second, and that the previous one is no longer valid.
    let last = json(path, &["channel", "rotate-identity-secret", &id, "--revoke-previous"]);
    assert_eq!(last["identitySecrets"], 1);
    let last = last["identitySecret"].as_str().expect("a secret").to_owned();
    wait_until_seen("the new secret is accepted", || async { open_session(&last).await == 201 }).await;
    assert_eq!(open_session(&secrets[2]).await, 401);
    let updated = json(path, &["channel", "update", &id, "--require-identity=false"]);
    assert_eq!(updated["settings"].get("requireIdentity"), None);
    // Only the command that made a secret shows it.
    let listed = json(path, &["channel", "list"]).to_string() + &updated.to_string() + &process.log();
    assert!(listed.contains("\"identitySecrets\":1"), "{listed}");
    for secret in secrets.iter().chain([&last]) {
        assert!(!listed.contains(secret.as_str()), "a secret is shown again");
    }
    let phone = create("whatsapp", &[])["id"].to_string();
    let refused = failure(path, &["channel", "rotate-identity-secret", &phone]);
    assert!(refused.contains("a whatsapp channel has no identity secret"), "{refused}");
    let refused = failure(path, &["channel", "update", &phone, "--require-identity"]);
    assert!(refused.contains("--require-identity does not apply to a whatsapp channel"), "{refused}");
    let refused = failure(path, &["channel", "update", &id, "--allow-origin", "https://*.com"]);
    assert!(refused.contains("would allow every website under .com"), "{refused}");
}
