//! Quick messages.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::json;

use crate::check_list::check_list;
use crate::plain::{check_created_once, check_foreign, check_refused, check_searches, check_unique, created, deleted};
use crate::steps::{assert_timestamp, id, listed};
use crate::support::{Api, TestApp};

const PATH: &str = "/quick-messages";

async fn quick(api: &Api, shortcut: &str, message: &str) -> i64 {
    created(api, PATH, json!({"shortcut": shortcut, "message": message})).await
}

#[actix_web::test]
async fn a_quick_message_is_created_read_changed_and_deleted() {
    let app = TestApp::start().await;
    let reply = app.api.post(PATH, json!({"shortcut": " /oi ", "message": " Hello,\n{{name}}! ", "id": 1})).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    assert_timestamp(&made["updatedAt"]);
    let mut expected = json!({
        "id": made["id"], "shortcut": "/oi", "message": "Hello,\n{{name}}!",
        "createdAt": made["createdAt"], "updatedAt": made["updatedAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let path = format!("{PATH}/{}", id(made));
    assert_eq!(app.api.get(&path).await.data(200), made);

    for (field, value) in [("shortcut", "/olá"), ("message", "Bye")] {
        let reply = app.api.put(&path, json!({field: value})).await;
        expected[field] = json!(value);
        expected["updatedAt"] = reply.data(200)["updatedAt"].clone();
        assert_eq!(reply.data(200), &expected, "more than {field} has changed");
        assert_eq!(app.api.get(&path).await.data(200), &expected);
    }

    deleted(&app.api, &path).await;
    app.api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
    app.api.put(&path, json!({"message": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    app.api.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(listed(&app.api, PATH).await, [0; 0]);
    app.stop().await;
}

#[actix_web::test]
async fn what_a_quick_message_cannot_be_is_refused_field_by_field() {
    let app = TestApp::start().await;
    let hi = quick(&app.api, "/hi", "Hi").await;
    let both = &["shortcut", "message"][..];
    check_refused(
        &app,
        Method::POST,
        PATH,
        vec![
            (json!({}), both),
            (json!({"shortcut": "", "message": "  "}), both),
            (json!({"shortcut": null, "message": null}), both),
            (json!({"shortcut": "a b", "message": 7}), both),
            (json!({"shortcut": "a\u{a0}b", "message": "\u{0}"}), both),
            (json!({"shortcut": "a\nb", "message": []}), both),
            (json!({"shortcut": "x".repeat(61), "message": "x".repeat(10_001)}), both),
        ],
    )
    .await;
    let path = format!("{PATH}/{hi}");
    let bodies = vec![
        (json!({"shortcut": null, "message": null}), both),
        (json!({"shortcut": " ", "message": ""}), both),
        (json!({"message": "Changed", "shortcut": "a\tb"}), &["shortcut"]),
    ];
    check_refused(&app, Method::PUT, &path, bodies).await;
    let longest = json!({"shortcut": "é".repeat(60), "message": "é".repeat(10_000)});
    let reply = app.api.put(&path, longest.clone()).await;
    assert_eq!(reply.data(200)["shortcut"], longest["shortcut"]);
    assert_eq!(reply.data(200)["message"], longest["message"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_shortcut_is_unique_within_its_company() {
    let app = TestApp::start().await;
    let (_, other) = app.another_company().await;
    let hi = quick(&app.api, "/hi", "Hi").await;
    let bye = quick(&app.api, "/bye", "Bye").await;
    quick(&app.api, "/HI", "HI").await;
    quick(&other, "/hi", "Hi").await;
    let taken = json!({"field": "shortcut", "id": hi});
    let again = app.api.post(PATH, json!({"shortcut": "/hi", "message": "x"})).await;
    assert_eq!(again.error(409, "ERR_API_CONFLICT"), &taken);
    let path = format!("{PATH}/{bye}");
    let refused = app.api.put(&path, json!({"shortcut": "/hi", "message": "x"})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken);
    assert_eq!(app.api.get(&path).await.data(200)["message"], "Bye");
    app.api.put(&path, json!({"shortcut": "/bye"})).await.data(200);
    deleted(&app.api, &format!("{PATH}/{hi}")).await;
    app.api.put(&path, json!({"shortcut": "/hi"})).await.data(200);
    check_unique(&app, PATH, &json!({"shortcut": "/race", "message": "x"}), "shortcut").await;
    app.stop().await;
}

#[actix_web::test]
async fn quick_messages_are_created_once_and_are_nobody_elses() {
    let app = TestApp::start().await;
    let hi = quick(&app.api, "/hi", "Hi").await;
    let once = json!({"shortcut": "/once", "message": "x"});
    check_created_once(&app, PATH, &once, &json!({"shortcut": "/once", "message": "y"})).await;
    check_foreign(&app, PATH, hi, &json!({"message": "Stolen"})).await;
    app.stop().await;
}

#[actix_web::test]
async fn quick_messages_are_listed_and_found() {
    let app = TestApp::start().await;
    let mut ids = HashMap::new();
    for (shortcut, message) in [
        ("/preço", "It costs 100% of it"),
        ("/x", "Promoção\nuntil Sunday"),
        ("/a_b", "promocional"),
        ("/axb", "100 times"),
    ] {
        ids.insert(shortcut, quick(&app.api, shortcut, message).await);
    }
    let mut all: Vec<i64> = ids.values().copied().collect();
    all.sort_unstable();
    check_list(&app, PATH, &all, &["created", "updated"]).await;
    check_searches(
        &app,
        PATH,
        &ids,
        &[
            ("PRECO", &["/preço"]),
            ("promoc", &["/x", "/a_b"]),
            ("PROMOÇÃO", &["/x"]),
            ("promocao\nUNTIL", &["/x"]),
            ("x\nPromo", &["/x"]),
            ("100%", &["/preço"]),
            ("100", &["/preço", "/axb"]),
            ("a_b", &["/a_b"]),
            ("_", &["/a_b"]),
            (r"\", &[]),
            ("", &["/preço", "/x", "/a_b", "/axb"]),
        ],
    )
    .await;
    app.stop().await;
}
