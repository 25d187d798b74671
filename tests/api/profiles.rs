//! Permission profiles, which the public API only reads.

use std::collections::HashMap;

use hotline_persistence::tables::profiles::{self, NewProfile};
use reqwest::Method;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::organization::{check_absent, ids_by};
use crate::plain::check_searches;
use crate::steps::{NOBODY, assert_timestamp, id, listed};
use crate::support::{Reply, TestApp};

#[actix_web::test]
async fn a_profile_shows_what_it_permits() {
    let app = TestApp::shared().await;
    let permissions = [("tickets".to_owned(), ["PUT".to_owned(), "GET".to_owned()].into())].into();
    let new = NewProfile { name: "Night shift", permissions, sees_all_cards: true };
    let row = profiles::insert(&app.db, app.company.id, new).await.expect("profile");
    let reply = app.api.get(&format!("/profiles/{}", row.id)).await;
    let shown = reply.data(200);
    assert_timestamp(&shown["createdAt"]);
    assert_eq!(
        reply.body,
        json!({"data": {
            "id": row.id, "name": "Night shift", "permissions": {"tickets": ["GET", "PUT"]}, "seesAllCards": true,
            "createdAt": shown["createdAt"], "updatedAt": shown["createdAt"],
        }})
    );
    assert_eq!(app.api.all("/profiles").await.last(), Some(shown));
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let path = if method == Method::POST { "/profiles".to_owned() } else { format!("/profiles/{}", row.id) };
        let refused = Reply::of(app.api.request(method, &path).json(&json!({"name": "x"}))).await;
        refused.error(405, "ERR_API_METHOD_NOT_ALLOWED");
        assert_eq!(refused.headers["allow"], "GET, HEAD");
    }
    app.stop().await;
}

#[actix_web::test]
async fn profiles_are_listed_and_found() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    let default_profiles = app.api.all("/profiles").await;
    let name = |row: &Value| row["name"].as_str().expect("a name").to_owned();
    assert_eq!(default_profiles.iter().map(name).collect::<Vec<_>>(), ["Administrator", "Supervisor", "Agent"]);
    let mut ids = HashMap::from([
        ("Administrator", id(&default_profiles[0])),
        ("Supervisor", id(&default_profiles[1])),
        ("Agent", id(&default_profiles[2])),
    ]);
    for name in ["Sócio 100%", "a_b", "axb"] {
        let new = NewProfile { name, ..NewProfile::default() };
        let row = profiles::insert(&app.db, app.company.id, new).await.expect("profile");
        ids.insert(name, row.id.0);
    }
    let all = ids_by(&ids, &["Administrator", "Supervisor", "Agent", "Sócio 100%", "a_b", "axb"]);
    check_list(&app, "/profiles", &all, &["created", "updated"]).await;
    let searches: &[(&str, &[&str])] = &[
        ("SOCIO", &["Sócio 100%"]),
        ("%", &["Sócio 100%"]),
        ("a_b", &["a_b"]),
        ("or", &["Administrator", "Supervisor"]),
    ];
    check_searches(&app, "/profiles", &ids, searches).await;

    let theirs = listed(&other, "/profiles").await;
    assert_eq!(theirs.len(), 3);
    let absent = [theirs[0].to_string(), NOBODY.to_string(), "x".to_owned()];
    check_absent(&app, absent.iter().map(|id| (Method::GET, format!("/profiles/{id}"), None)).collect()).await;
    app.stop().await;
}
