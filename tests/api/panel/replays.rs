//! Retries by people and integrations: no secret is stored for them, and no caller gets another's answer.

use std::path::Path;

use hotline::routes;
use hotline::web::response::schema::Schemas;
use hotline_persistence::tables::idempotency_keys::Digest;
use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::service::TestOptions;
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

/// The first parts of the paths where idempotency keys are ignored.
const OUTSIDE: [&str; 4] = ["session", "links", "account", "installation"];

#[test]
fn every_change_of_a_company_and_in_it_is_recorded_for_retries() {
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

/// A request with this idempotency key.
async fn keyed(person: &Person, method: Method, path: &str, key: &str, body: Value) -> Reply {
    Reply::of(person.request(method, path).header("idempotency-key", key).json(&body)).await
}

/// How many companies have this name.
async fn count_companies(app: &OwnApp, name: &str) -> i64 {
    let count = sqlx::query_scalar("select count(*) from companies where name = $1").bind(name);
    count.fetch_one(&app.db).await.expect("a count")
}

#[actix_web::test]
async fn a_company_is_created_once_although_its_answer_is_lost() {
    let app = OwnApp::start().await;
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let (other, _) = Person::admin(&app, "other@example.com").await;
    let create = |person: Person, name: &'static str| async move {
        keyed(&person, Method::POST, "/companies", "k", json!({"name": name})).await
    };
    fail::cfg("once_commit_lost", "1*return").expect("failpoint");
    create(root.clone(), "Once").await.error(503, "ERR_API_UNAVAILABLE");
    let (first, second) = (create(root.clone(), "Once").await, create(root.clone(), "Once").await);
    assert!(first.is_replay() && second.is_replay() && first.body == second.body, "{}", second.body);
    assert_eq!(first.data(201)["name"], "Once");
    assert_eq!(count_companies(&app, "Once").await, 1);
    create(root.clone(), "Other").await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    assert_eq!(count_companies(&app, "Other").await, 0);

    // Another administrator's keys are their own, and without a key each request creates a company.
    let others = create(other, "Once").await;
    assert!(!others.is_replay() && id(others.data(201)) != id(first.data(201)), "{}", others.body);
    root.post("/companies", json!({"name": "Once"})).await.data(201);
    assert_eq!(count_companies(&app, "Once").await, 3);
    app.stop().await;
}

#[actix_web::test]
async fn a_repeated_change_of_a_company_undoes_no_later_one_and_a_refusal_is_replayed() {
    let app = OwnApp::start().await;
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let path = format!("/companies/{}", app.company.id);
    let first = keyed(&root, Method::PUT, &path, "k", json!({"name": "First"})).await;
    assert!(!first.is_replay() && first.data(200)["name"] == "First", "{}", first.body);
    root.put(&path, json!({"name": "Later"})).await.data(200);
    let again = keyed(&root, Method::PUT, &path, "k", json!({"name": "First"})).await;
    assert!(again.is_replay() && again.body == first.body, "{}", again.body);
    assert_eq!(root.get(&path).await.data(200)["name"], "Later");
    for is_replay in [false, true] {
        let refused = keyed(&root, Method::POST, "/companies", "refused", json!({})).await;
        refused.error(422, "ERR_API_VALIDATION");
        assert_eq!(refused.is_replay(), is_replay, "{}", refused.body);
    }
    // What a user of the company may not do is refused each time, and their key is not used up.
    let ana = super::administrator(&app).await;
    for name in ["x", "y"] {
        let refused = keyed(&ana, Method::POST, "/companies", "k", json!({"name": name})).await;
        refused.error(403, "ERR_API_FORBIDDEN_SCOPE");
    }
    app.stop().await;
}

#[actix_web::test]
async fn in_a_cluster_a_company_is_created_once_whichever_process_is_asked() {
    let app = OwnApp::start_with(TestOptions { member: true, ..TestOptions::default() }).await;
    let (root, admin) = Person::admin(&app, "root@example.com").await;
    let first = keyed(&root, Method::POST, "/companies", "elsewhere", json!({"name": "Once"})).await;
    // As if another process had served the request: this one's memory does not have the key.
    let digest = |key: &[u8]| Digest::of(&[b"\0admin\0", &admin.0.to_be_bytes(), b"\0", key]);
    let moved = sqlx::query("update idempotency_keys set key = $1 where company_id = 0 and key = $2")
        .bind(digest(b"k"))
        .bind(digest(b"elsewhere"))
        .execute(&app.db)
        .await
        .expect("moved");
    assert_eq!(moved.rows_affected(), 1);
    let again = keyed(&root, Method::POST, "/companies", "k", json!({"name": "Once"})).await;
    assert!(again.is_replay() && again.body == first.body, "{}", again.body);
    assert_eq!(count_companies(&app, "Once").await, 1);
    for is_replay in [false, true] {
        let refused = keyed(&root, Method::POST, "/companies", "refused", json!({})).await;
        refused.error(422, "ERR_API_VALIDATION");
        assert_eq!(refused.is_replay(), is_replay, "{}", refused.body);
    }
    app.stop().await;
}
