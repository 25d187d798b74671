//! `hotline profile` and `hotline admin`.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use hotline_persistence::password;
use serde_json::Value;

use super::{failure, json};
use crate::process::{Process, command, with_database};
use crate::support::template::prepared_folder;

/// Runs `hotline admin create` with this line on its standard input.
fn create_admin(folder: &Path, email: &str, line: &str) -> Output {
    let mut command = command(folder, &["admin", "create", email, "--password-stdin", "--json"]);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("hotline runs");
    child.stdin.take().expect("stdin").write_all(line.as_bytes()).expect("a line");
    child.wait_with_output().expect("hotline ends")
}

async fn hash_of(folder: &Path, email: &str) -> String {
    with_database(folder, async |db| {
        let hash = "select password_hash from admins where email = $1";
        sqlx::query_scalar(hash).bind(email).fetch_one(db).await.expect("hash")
    })
    .await
}

#[actix_web::test]
async fn profiles_and_administrators_are_made_on_a_stopped_service_and_on_a_running_one() {
    let folder = prepared_folder();
    let path = folder.path();
    // The stopped service.
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let listed = json(path, &["profile", "list", "--company", &company]);
    let [administrator, supervisor, agent] = listed["profiles"].as_array().expect("profiles").as_slice() else {
        panic!("{listed}")
    };
    assert_eq!(administrator["name"], "Administrator");
    let everything = serde_json::to_value(hotline::cli::everything()).expect("json");
    assert_eq!(administrator["permissions"], everything, "a new module needs a migration of the default profiles");
    assert_eq!(supervisor["name"], "Supervisor");
    assert_eq!(supervisor["permissions"]["users"], serde_json::json!(["GET"]));
    assert!(!supervisor["permissions"].to_string().contains("DELETE"));
    assert_eq!(agent["name"], "Agent");
    assert_eq!(agent["permissions"]["tickets"], serde_json::json!(["GET", "POST", "PUT"]));
    assert_eq!(
        (&agent["permissions"]["tags"], &agent["permissions"]["reports"]),
        (&serde_json::json!(["GET"]), &Value::Null)
    );
    let sees_all_cards: Vec<&Value> =
        [administrator, supervisor, agent].iter().map(|profile| &profile["seesAllCards"]).collect();
    assert_eq!(sees_all_cards, [true, true, false]);

    let generated = json(path, &["admin", "create", "Ana@example.com"]);
    let password = generated["password"].as_str().expect("a password");
    assert!(password.len() >= 12 && generated["id"].is_i64() && generated["email"] == "Ana@example.com", "{generated}");
    let hash = hash_of(path, "Ana@example.com").await;
    assert!(hash.starts_with("$argon2id$") && password::matches_hash(password, &hash), "{hash}");

    // The running service.
    let process = Process::serve(path);
    let create = ["profile", "create", "Sales", "--company", &company];
    let made = json(path, &[&create[..], &["--permission", "crm:GET,POST", "--sees-all-cards"]].concat());
    assert_eq!(made["permissions"], serde_json::json!({"crm": ["GET", "POST"]}));
    assert!(made["seesAllCards"] == true && made["companyId"] == company.parse::<i64>().expect("id"), "{made}");
    assert!(failure(path, &create).contains("`Sales`"));
    assert!(failure(path, &["profile", "create", "x", "--company", "999"]).contains("company"));
    assert!(failure(path, &[&create[..], &["--permission", "crm:PATCH"]].concat()).contains("PATCH"));
    assert_eq!(json(path, &["profile", "list"])["profiles"].as_array().map(Vec::len), Some(4));

    let stderr = failure(path, &["admin", "create", "ana@EXAMPLE.com"]);
    assert!(stderr.contains("ana@EXAMPLE.com"), "{stderr}");
    assert_eq!(hash_of(path, "Ana@example.com").await, hash, "the existing administrator was changed");
    assert!(failure(path, &["admin", "create", "nobody"]).contains("e-mail"));
    let short = create_admin(path, "ben@example.com", "elevenchars\n");
    assert!(!short.status.success() && String::from_utf8_lossy(&short.stderr).contains("12 characters"));
    // No sign-in accepts such a password.
    for line in ["correct\u{1}horse battery\n", "\u{1b}[Acorrect horse battery\n"] {
        let refused = create_admin(path, "ben@example.com", line);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && stderr.contains("control characters"), "{stderr}");
    }
    let chosen = create_admin(path, "ben@example.com", "correct horse battery\nnot this\n");
    let made: Value = serde_json::from_slice(&chosen.stdout).expect("json");
    assert!(made["email"] == "ben@example.com" && made.get("password").is_none(), "{made}");
    assert!(password::matches_hash("correct horse battery", &hash_of(path, "ben@example.com").await));
    // A new password ends the sessions that were begun with the previous one.
    let begun = "insert into person_sessions (company_id, person_id, hash, state, expires_at)
         select 0, id, '\\x01', 'open', now() + interval '1 day' from admins where email = 'ben@example.com'";
    let factor = "insert into second_factors (company_id, person_id, secret, confirmed_at)
         select 0, id, 'v1.x.y', now() from admins where email = 'ben@example.com'";
    with_database(path, async |db| {
        for statement in [begun, factor] {
            sqlx::query(statement).execute(db).await.expect("a row");
        }
    })
    .await;
    let count_sessions_and_factors = async || -> (i64, i64) {
        with_database(path, async |db| {
            let counts = "select (select count(*) from person_sessions), (select count(*) from second_factors)";
            sqlx::query_as(counts).fetch_one(db).await.expect("counts")
        })
        .await
    };
    let reset = json(path, &["admin", "reset-password", "BEN@example.com"]);
    let generated = reset["password"].as_str().expect("a password");
    assert!(password::matches_hash(generated, &hash_of(path, "ben@example.com").await), "{reset}");
    assert_eq!(count_sessions_and_factors().await, (0, 1));
    json(path, &["admin", "reset-password", "ben@example.com", "--remove-second-factor"]);
    assert_eq!(count_sessions_and_factors().await, (0, 0));
    assert!(failure(path, &["admin", "reset-password", "nobody@example.com"]).contains("nobody@example.com"));
    process.kill();

    // The stopped service again.
    json(path, &["profile", "create", "Everything", "--company", &company, "--all"]);
    assert_eq!(json(path, &["profile", "list"])["profiles"][4]["permissions"], everything);
}

/// The command line's entries in the audit log of a company, or of the installation (0): the action, the id and the
/// name of its target, and the status.
async fn log_of(folder: &Path, company: i64) -> Vec<(String, Option<String>, Option<String>, Option<i16>)> {
    with_database(folder, async |db| {
        let log = "select action, target_id, target_name, status from audit_log
             where company_id = $1 and actor_kind = 'admin' and actor_id = 0 and actor_name = 'command line' order by id";
        sqlx::query_as(log).bind(company).fetch_all(db).await.expect("a log")
    })
    .await
}

#[actix_web::test]
async fn what_the_command_line_does_is_in_the_audit_log() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].as_i64().expect("an id");
    let id = company.to_string();
    json(path, &["company", "update", &id, "--name", "Acme Ltd"]);
    json(path, &["admin", "create", "ana@example.com"]);
    json(path, &["admin", "reset-password", "ana@example.com"]);
    assert!(failure(path, &["admin", "reset-password", "nobody@example.com"]).contains("nobody"));
    json(path, &["secret", "rotate"]);
    json(path, &["secret", "reencrypt"]);
    let seen: Vec<(String, Option<String>, Option<i16>)> =
        log_of(path, 0).await.into_iter().map(|(action, _, name, status)| (action, name, status)).collect();
    let entry = |action: &str, name: Option<&str>, status| (action.to_owned(), name.map(str::to_owned), Some(status));
    assert_eq!(
        seen,
        [
            entry("createCompany", Some("Acme"), 200),
            entry("updateCompany", Some("Acme Ltd"), 200),
            entry("createAdmin", Some("ana@example.com"), 200),
            entry("resetAdmin", Some("ana@example.com"), 200),
            entry("resetAdmin", None, 400),
            entry("rotateSecretKey", None, 200),
            entry("resealSecrets", None, 200),
        ]
    );

    let token = json(path, &["token", "create", "Shop", "--company", &id, "--all"])["id"].to_string();
    json(path, &["token", "rotate", &token]);
    json(path, &["token", "revoke", &token]);
    json(path, &["profile", "create", "Night", "--company", &id]);
    let create = ["channel", "create", "Site", "--company", &id, "--type", "webchat"];
    let channel = json(path, &[&create[..], &["--allow-origin", "https://shop.example"]].concat())["id"].to_string();
    json(path, &["channel", "update", &channel, "--name", "Website"]);
    json(path, &["channel", "rotate-identity-secret", &channel]);
    let made = json(path, &["webhook", "create", "https://example.com/hotline", "--company", &id]);
    let webhook = made["id"].to_string();
    json(path, &["webhook", "update", &webhook, "--active=false"]);
    json(path, &["webhook", "rotate-secret", &webhook]);
    json(path, &["webhook", "delete", &webhook]);
    json(path, &["retention", "set", "--company", &id, "--after", "365d"]);
    json(path, &["retention", "delete", "--company", &id]);
    // A failure for an unknown token or company is in no company's log.
    failure(path, &["token", "revoke", "999"]);
    failure(path, &["profile", "create", "x", "--company", "999"]);
    assert_eq!(log_of(path, 999).await, []);
    let seen = log_of(path, company).await;
    let seen: Vec<(&str, &str)> =
        seen.iter().map(|(action, id, _, _)| (action.as_str(), id.as_deref().unwrap_or_default())).collect();
    let profile = seen.iter().find(|(action, _)| *action == "createProfile").map_or("", |(_, id)| id);
    assert_eq!(
        seen,
        [
            ("createToken", &*token),
            ("rotateToken", &token),
            ("revokeToken", &token),
            ("createProfile", profile),
            ("createChannel", &channel),
            ("updateChannel", &channel),
            ("rotateIdentitySecret", &channel),
            ("createWebhook", &webhook),
            ("updateWebhook", &webhook),
            ("rotateWebhookSecret", &webhook),
            ("deleteWebhook", &webhook),
            ("setRetention", &id),
            ("endRetention", &id),
        ]
    );
}
