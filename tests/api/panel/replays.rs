//! Retries by people and integrations: no secret is stored for them, and no caller gets another's answer.

use std::path::Path;

use hotline::routes;
use hotline::web::response::schema::Schemas;
use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::{OwnApp, Person, Reply, eventually};

/// How many recorded answers contain this text.
async fn count_recorded(app: &OwnApp, text: &str) -> i64 {
    sqlx::query_scalar("select count(*) from idempotency_keys where strpos(body, $1) > 0")
        .bind(text)
        .fetch_one(&app.db)
        .await
        .expect("a count")
}

/// Whether a text is in any file of the folder, the journal's among them.
fn is_on_disk(folder: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).any(|path| {
        if path.is_dir() {
            return is_on_disk(&path, text);
        }
        // A file may be removed meanwhile.
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

/// The first parts of the paths outside of any company, where idempotency keys are ignored.
const OUTSIDE: [&str; 5] = ["session", "links", "account", "companies", "installation"];

#[test]
fn every_change_in_a_company_is_recorded_for_retries() {
    let operations = routes::panel_operations(&mut Schemas::new());
    let is_inside = |path: &str| !OUTSIDE.contains(&path.split('/').nth(1).unwrap_or_default());
    let inside: Vec<_> = operations.iter().filter(|operation| is_inside(&operation.path)).collect();
    assert!(inside.iter().any(|operation| operation.path == "/users/{userId}/invitation"));
    for operation in inside {
        let is_change = ["POST", "PUT"].contains(&operation.method);
        assert_eq!(operation.records_idempotency_key, is_change, "{} {}", operation.method, operation.path);
    }
}

#[actix_web::test]
async fn a_retry_is_answered_with_the_record_and_null_in_place_of_its_secret() {
    let app = OwnApp::start().await;
    Person::give_profile(&app, app.company.ana, "Administrator").await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let token =
        id(&ana.post("/tokens", json!({"name": "x", "permissions": {"tags": ["GET"]}})).await.data(201)["token"]);
    let webhook = id(app
        .api
        .post("/webhooks", json!({"url": "https://127.0.0.1/x", "types": ["ticket.opened"]}))
        .await
        .data(201));
    let (webchat, ben) = (app.company.webchat, app.company.ben);
    let webhook_body = json!({"url": "https://127.0.0.1/y", "types": ["ticket.opened"]});
    let token_body = json!({"name": "Shop", "permissions": {"tags": ["GET"]}});
    // The caller, the path, the body, and the names of the secrets in the answer.
    let cases: [(&str, &str, Value, &[&str]); 9] = [
        ("panel", "/tokens", token_body.clone(), &["key"]),
        ("panel", "/%74okens", token_body, &["key"]),
        ("panel", &format!("/tokens/{token}/rotate"), json!({}), &["key"]),
        ("panel", &format!("/channels/{webchat}/identity-secret"), json!({}), &["identitySecret"]),
        ("panel", &format!("/users/{ben}/invitation"), json!({}), &["url", "token"]),
        ("panel", "/webhooks", webhook_body.clone(), &["secret"]),
        ("api", "/webhooks", webhook_body, &["secret"]),
        ("api", &format!("/webhooks/{webhook}/rotate-secret"), json!({}), &["secret"]),
        ("api", "/webchat/sessions", json!({"channelId": webchat}), &["token"]),
    ];
    let mut shown = Vec::new();
    for (number, (who, path, body, secrets)) in cases.iter().enumerate() {
        let key = format!("key-{number}");
        let ask = || {
            let request = match *who {
                "panel" => ana.request(Method::POST, path),
                _ => app.api.request(Method::POST, path),
            };
            Reply::of(request.header("idempotency-key", &key).json(body))
        };
        let (first, second) = (ask().await, ask().await);
        assert!(first.status.is_success() && !first.is_replay(), "{path}: {}", first.body);
        assert!(second.is_replay() && second.status == first.status, "{path}: {}", second.body);
        let mut expected = first.body.clone();
        for secret in *secrets {
            let value = first.body["data"][*secret].as_str().unwrap_or_else(|| panic!("{path}: {}", first.body));
            shown.push(value.to_owned());
            expected["data"][*secret] = Value::Null;
        }
        assert_eq!(second.body, expected, "{path}");
    }
    // All answers are recorded, and no secret is anywhere in them.
    eventually("the answers are in the table", || async {
        count_recorded(&app, "\"data\"").await == cases.len() as i64
    })
    .await;
    for secret in shown {
        assert_eq!(count_recorded(&app, &secret).await, 0, "{secret}");
        assert!(!is_on_disk(app.folder.path(), &secret), "{secret}");
    }
    // Each request took effect only once.
    let tokens: i64 = sqlx::query_scalar("select count(*) from tokens where name = 'Shop'")
        .fetch_one(&app.db)
        .await
        .expect("a count");
    assert_eq!(tokens, 2);
    app.stop().await;
}

#[actix_web::test]
async fn each_person_has_their_own_idempotency_keys_and_a_companys_tokens_share_theirs() {
    let app = OwnApp::start().await;
    for user in [app.company.ana, app.company.ben] {
        Person::give_profile(&app, user, "Administrator").await;
    }
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let ben = Person::user(&app, app.company.ben, "ben@example.com").await;
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let root = root.in_company(app.company.id);
    let body = json!({"name": "Once"});
    let create_by =
        |person: &Person| person.request(Method::POST, "/contacts").header("idempotency-key", "k").json(&body);
    let mut made = Vec::new();
    for person in [&ana, &ben, &root] {
        let (first, second) = (Reply::of(create_by(person)).await, Reply::of(create_by(person)).await);
        assert!(!first.is_replay() && second.is_replay() && first.body == second.body, "{}", first.body);
        made.push(id(first.data(201)));
    }
    let by_token =
        |key: String| Reply::of(app.api.with_key(&key).keyed(Method::POST, "/contacts", "k", body.to_string()));
    let other = json!({"name": "y", "permissions": {"contacts": ["POST"]}});
    let other = ana.post("/tokens", other).await.data(201)["key"].as_str().expect("a key").to_owned();
    let (first, second) = (by_token(app.company.key.clone()).await, by_token(other).await);
    assert!(!first.is_replay() && second.is_replay() && first.body == second.body, "{}", second.body);
    made.push(id(first.data(201)));
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), 4, "two callers got the same contact: {made:?}");
    app.stop().await;
}
