//! Global variables, over HTTP and as the directory holds them.

use std::collections::HashMap;

use hotline_persistence::tables::global_variables::{self, BUILT_IN};
use reqwest::Method;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::plain::{check_created_once, check_foreign, check_refused, check_searches, check_unique, created, deleted};
use crate::steps::{assert_timestamp, id, listed, sql};
use crate::support::{Api, TestApp, eventually};

const PATH: &str = "/global-variables";

async fn variable(api: &Api, key: &str, description: Option<&str>) -> i64 {
    created(api, PATH, json!({"key": key, "value": "x", "description": description})).await
}

/// What a send would find.
fn held(app: &TestApp) -> HashMap<String, String> {
    let company = app.service.app.engine.directory().company(app.company.id);
    company.expect("the company is known").global_variables.clone()
}

fn pairs(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[actix_web::test]
async fn a_variable_is_created_read_changed_and_deleted() {
    let app = TestApp::start().await;
    let body = json!({"key": " openingHours ", "value": " from 9\nto 18 ", "description": " Phone ", "id": 1});
    let reply = app.api.post(PATH, body).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    assert_timestamp(&made["updatedAt"]);
    let mut expected = json!({
        "id": made["id"], "key": "openingHours", "value": "from 9\nto 18", "description": "Phone",
        "createdAt": made["createdAt"], "updatedAt": made["updatedAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let path = format!("{PATH}/{}", id(made));
    assert_eq!(app.api.get(&path).await.data(200), made);
    for (body, changed, value) in [
        (json!({"value": "from 10"}), "value", json!("from 10")),
        (json!({"description": "Shop"}), "description", json!("Shop")),
        (json!({"description": null}), "description", Value::Null),
        // Fixed: whatever is sent as a key is not looked at.
        (json!({"key": "other", "value": "from 11"}), "value", json!("from 11")),
    ] {
        let reply = app.api.put(&path, body.clone()).await;
        expected[changed] = value;
        expected["updatedAt"] = reply.data(200)["updatedAt"].clone();
        assert_eq!(reply.data(200), &expected, "{body}");
        assert_eq!(app.api.get(&path).await.data(200), &expected);
    }
    let bare = app.api.post(PATH, json!({"key": "a", "value": "1"})).await;
    assert!(bare.data(201)["description"].is_null());

    deleted(&app.api, &path).await;
    app.api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
    app.api.put(&path, json!({"value": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    app.api.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(listed(&app.api, PATH).await, [id(bare.data(201))]);
    app.stop().await;
}

#[actix_web::test]
async fn what_a_variable_cannot_be_is_refused_field_by_field() {
    let app = TestApp::start().await;
    let first = variable(&app.api, "first", None).await;
    let mut bodies = vec![
        (json!({}), &["key", "value"][..]),
        (json!({"key": "", "value": " ", "description": 7}), &["key", "value", "description"]),
        (json!({"key": null, "value": null}), &["key", "value"]),
        (json!({"key": "a", "value": "x".repeat(10_001)}), &["value"]),
        (json!({"key": "a", "value": "x", "description": "x".repeat(10_001)}), &["description"]),
        (json!({"key": "a", "value": "a\u{0}b"}), &["value"]),
    ];
    let long = "x".repeat(61);
    for bad in ["1a", "_a", "a-b", "a b", "ação", "a.b", "{{a}}", &long].iter().chain(BUILT_IN) {
        bodies.push((json!({"key": bad, "value": "x"}), &["key"]));
    }
    check_refused(&app, Method::POST, PATH, bodies).await;
    let bodies = vec![
        (json!({"value": null}), &["value"][..]),
        (json!({"value": "", "description": []}), &["value", "description"]),
    ];
    check_refused(&app, Method::PUT, &format!("{PATH}/{first}"), bodies).await;
    let longest = format!("x{}", "_9".repeat(29) + "Z");
    let made = app.api.post(PATH, json!({"key": longest, "value": "é".repeat(10_000)})).await;
    assert_eq!(made.data(201)["key"], longest);
    app.stop().await;
}

#[actix_web::test]
async fn a_key_is_unique_within_its_company() {
    let app = TestApp::start().await;
    let (_, other) = app.another_company().await;
    let hours = variable(&app.api, "hours", None).await;
    variable(&app.api, "Hours", None).await;
    variable(&other, "hours", None).await;
    let again = app.api.post(PATH, json!({"key": "hours", "value": "x"})).await;
    assert_eq!(again.error(409, "ERR_API_CONFLICT"), &json!({"field": "key", "id": hours}));
    deleted(&app.api, &format!("{PATH}/{hours}")).await;
    variable(&app.api, "hours", None).await;
    check_unique(&app, PATH, &json!({"key": "race", "value": "x"}), "key").await;
    app.stop().await;
}

#[actix_web::test]
async fn variables_are_created_once_and_are_nobody_elses() {
    let app = TestApp::start().await;
    let hours = variable(&app.api, "hours", None).await;
    let once = json!({"key": "once", "value": "x"});
    check_created_once(&app, PATH, &once, &json!({"key": "once", "value": "y"})).await;
    check_foreign(&app, PATH, hours, &json!({"value": "Stolen"})).await;
    app.stop().await;
}

#[actix_web::test]
async fn variables_are_listed_and_found() {
    let app = TestApp::start().await;
    let mut ids = HashMap::new();
    for (key, description) in
        [("openingHours", Some("Atenção: 100%\nof it")), ("a_b", None), ("axb", Some("Opening")), ("z", None)]
    {
        ids.insert(key, variable(&app.api, key, description).await);
    }
    let mut all: Vec<i64> = ids.values().copied().collect();
    all.sort_unstable();
    check_list(&app, PATH, &all, &["created", "updated"]).await;
    check_searches(
        &app,
        PATH,
        &ids,
        &[
            ("OPENING", &["openingHours", "axb"]),
            ("atencao", &["openingHours"]),
            ("100%\nOF", &["openingHours"]),
            ("%", &["openingHours"]),
            ("a_b", &["a_b"]),
            ("_", &["a_b"]),
            ("x", &["axb"]),
            ("", &["openingHours", "a_b", "axb", "z"]),
        ],
    )
    .await;
    app.stop().await;
}

#[actix_web::test]
async fn a_change_is_there_for_messages_at_once() {
    let app = TestApp::start().await;
    let (_, other) = app.another_company().await;
    variable(&other, "theirs", None).await;
    let hours = variable(&app.api, "hours", None).await;
    assert_eq!(held(&app), pairs(&[("hours", "x")]));
    app.api.put(&format!("{PATH}/{hours}"), json!({"value": "from 9"})).await.data(200);
    assert_eq!(held(&app), pairs(&[("hours", "from 9")]));
    variable(&app.api, "shop", None).await;
    deleted(&app.api, &format!("{PATH}/{hours}")).await;
    assert_eq!(held(&app), pairs(&[("shop", "x")]));
    let stored = global_variables::all(&app.database.db, app.company.id).await.expect("variables");
    assert_eq!(stored, held(&app));
    app.stop().await;
}

#[actix_web::test]
async fn a_change_beside_the_service_is_heard_of() {
    let app = TestApp::start().await;
    let company = app.company.id.0;
    sql(&app, "insert into global_variables (company_id, key, value) values ($1, 'hours', '9')", company).await;
    eventually("the new variable is seen", || async { held(&app) == pairs(&[("hours", "9")]) }).await;
    sql(&app, "update global_variables set value = '10' where company_id = $1", company).await;
    eventually("the change is seen", || async { held(&app) == pairs(&[("hours", "10")]) }).await;
    sql(&app, "delete from global_variables where company_id = $1", company).await;
    eventually("the removal is seen", || async { held(&app).is_empty() }).await;
    app.stop().await;
}
