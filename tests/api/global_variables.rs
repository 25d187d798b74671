//! Global variables, over HTTP and as the directory holds them.

use std::collections::HashMap;

use hotline_persistence::tables::global_variables::{self, BUILT_IN};
use serde_json::json;

use crate::plain::{Noun, check_plain, created, deleted};
use crate::steps::sql;
use crate::support::{Api, OwnApp, eventually};

const PATH: &str = "/global-variables";

async fn create_variable(api: &Api, key: &str, description: Option<&str>) -> i64 {
    created(api, PATH, json!({"key": key, "value": "x", "description": description})).await
}

/// The company's variables in the directory, which a send uses.
fn loaded_variables(app: &OwnApp) -> HashMap<String, String> {
    let company = app.service.app.engine.directory().company(app.company.id);
    company.expect("the company is known").global_variables.clone()
}

fn pairs(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[actix_web::test]
async fn a_variable_is_created_listed_changed_and_deleted() {
    let long = "x".repeat(61);
    let bad_keys = ["1a", "_a", "a-b", "a b", "ação", "a.b", "{{a}}", &long];
    let bad_keys = bad_keys.iter().chain(BUILT_IN).map(|bad| (json!({"key": bad, "value": "x"}), &["key"][..]));
    let longest = json!({"key": format!("x{}", "_9".repeat(29) + "Z"), "value": "é".repeat(10_000)});
    let listed = [("openingHours", Some("Atenção: 100%\nof it")), ("a_b", None), ("axb", Some("Opening")), ("z", None)];
    let body = |key: &str, description: Option<&str>| json!({"key": key, "value": "x", "description": description});
    check_plain(Noun {
        path: PATH,
        is_shown: true,
        new: (
            json!({"key": " openingHours ", "value": " from 9\nto 18 ", "description": " Phone "}),
            json!({"key": "openingHours", "value": "from 9\nto 18", "description": "Phone"}),
        ),
        good: vec![(json!({"key": "a", "value": "1"}), json!({"description": null})), (longest.clone(), longest)],
        changes: vec![
            (json!({"value": "from 10"}), json!({"value": "from 10"})),
            (json!({"description": "Shop"}), json!({"description": "Shop"})),
            (json!({"description": null}), json!({"description": null})),
            // The key never changes, but may be repeated.
            (json!({"key": "openingHours", "value": "from 11"}), json!({"value": "from 11"})),
        ],
        bad: [
            (json!({}), &["key", "value"][..]),
            (json!({"key": "", "value": " ", "description": 7}), &["key", "value", "description"]),
            (json!({"key": null, "value": null}), &["key", "value"]),
            (json!({"key": "a", "value": "x".repeat(10_001)}), &["value"]),
            (json!({"key": "a", "value": "x", "description": "x".repeat(10_001)}), &["description"]),
            (json!({"key": "a", "value": "a\u{0}b"}), &["value"]),
        ]
        .into_iter()
        .chain(bad_keys)
        .collect(),
        bad_changes: vec![
            (json!({"value": null}), &["value"]),
            (json!({"value": "", "description": []}), &["value", "description"]),
            (json!({"key": "other", "value": "from 12"}), &["key"]),
        ],
        unique: "key",
        is_fixed: true,
        named: |key| json!({"key": key, "value": "x"}),
        listed: listed.map(|(key, description)| (key, body(key, description))).into(),
        searches: &[
            ("OPENING", &["openingHours", "axb"]),
            ("atencao", &["openingHours"]),
            ("100%\nOF", &["openingHours"]),
            ("%", &["openingHours"]),
            ("a_b", &["a_b"]),
            ("_", &["a_b"]),
            ("x", &["axb"]),
        ],
    })
    .await;
}

#[actix_web::test]
async fn a_change_is_in_the_directory_at_once() {
    let app = OwnApp::start().await;
    let (_, other) = app.another_company().await;
    create_variable(&other, "theirs", None).await;
    let hours = create_variable(&app.api, "hours", None).await;
    assert_eq!(loaded_variables(&app), pairs(&[("hours", "x")]));
    app.api.put(&format!("{PATH}/{hours}"), json!({"value": "from 9"})).await.data(200);
    assert_eq!(loaded_variables(&app), pairs(&[("hours", "from 9")]));
    create_variable(&app.api, "shop", None).await;
    deleted(&app.api, &format!("{PATH}/{hours}")).await;
    assert_eq!(loaded_variables(&app), pairs(&[("shop", "x")]));
    let stored = global_variables::of_companies(&app.db, &[app.company.id]).await.expect("variables");
    let stored = stored.into_iter().map(|(_, key, value)| (key, value)).collect();
    assert_eq!(loaded_variables(&app), stored);
    app.stop().await;
}

#[actix_web::test]
async fn a_change_made_in_the_database_is_loaded() {
    let app = OwnApp::start().await;
    let company = app.company.id.0;
    sql(&app, "insert into global_variables (company_id, key, value) values ($1, 'hours', '9')", company).await;
    eventually("the new variable is seen", || async { loaded_variables(&app) == pairs(&[("hours", "9")]) }).await;
    sql(&app, "update global_variables set value = '10' where company_id = $1", company).await;
    eventually("the change is seen", || async { loaded_variables(&app) == pairs(&[("hours", "10")]) }).await;
    sql(&app, "delete from global_variables where company_id = $1", company).await;
    eventually("the removal is seen", || async { loaded_variables(&app).is_empty() }).await;
    app.stop().await;
}
