//! Webhooks as records: created, shown, changed, deleted, refused.

use serde_json::{Value, json};

use super::read_webhook;
use crate::plain::{check_created_once, check_foreign, check_refused};
use crate::steps::{assert_timestamp, id, listed};
use crate::support::{Api, TestApp};

const URL: &str = "https://hooks.example.com/a?b=c";

async fn create_webhook(api: &Api, body: Value) -> Value {
    api.post("/webhooks", body).await.data(201).clone()
}

#[actix_web::test]
async fn a_webhook_is_made_shown_listed_changed_and_deleted_and_shows_its_secret_once() {
    let app = TestApp::shared().await;
    let body = json!({"url": format!(" {URL} "), "description": " Warehouse ", "types": ["ticket.opened", "note.added", "ticket.opened"], "active": false});
    let mut webhook = create_webhook(&app.api, body).await;
    let secret = webhook["secret"].take();
    assert!(secret.as_str().is_some_and(|secret| secret.starts_with("whsec_") && secret.len() == 50), "{secret}");
    assert_timestamp(&webhook["createdAt"]);
    let id = id(&webhook);
    let expected = json!({
        "id": id, "url": URL, "description": "Warehouse", "types": ["ticket.opened", "note.added"], "active": false,
        "disabledReason": null, "createdAt": webhook["createdAt"], "updatedAt": webhook["createdAt"], "secret": null,
    });
    assert_eq!(webhook, expected);
    let without_secret = |mut shown: Value| {
        shown["secret"] = Value::Null;
        shown
    };
    let one = read_webhook(&app.api, id).await;
    assert!(one.get("secret").is_none(), "{one}");
    assert_eq!(without_secret(one), expected);
    let all = app.api.all("/webhooks").await;
    assert!(all.len() == 1 && all[0].get("secret").is_none());

    let path = format!("/webhooks/{id}");
    for (change, expected) in [
        (json!({"active": true}), json!(true)),
        (json!({"url": "https://other.example.com/"}), json!("https://other.example.com/")),
        (json!({"description": null}), json!(null)),
        (json!({"types": []}), json!([])),
    ] {
        let field = change.as_object().expect("an object").keys().next().expect("a field").clone();
        let reply = app.api.put(&path, change).await;
        assert_eq!(reply.data(200)[&field], expected, "{field}");
        assert!(reply.data(200).get("secret").is_none());
        assert_eq!(read_webhook(&app.api, id).await[&field], expected);
    }
    // A second webhook, with the defaults of fields that the request does not set.
    let other = create_webhook(&app.api, json!({"url": URL})).await;
    assert_eq!((&other["types"], &other["active"], &other["description"]), (&json!([]), &json!(true), &Value::Null));
    assert_ne!(other["secret"], secret);
    let other = crate::steps::id(&other);
    assert_eq!(listed(&app.api, "/webhooks").await, [id, other]);
    assert_eq!(listed(&app.api, "/webhooks?order=desc&perPage=1").await, [other, id]);
    app.api.put(&path, json!({"active": false})).await.data(200);
    assert_eq!(listed(&app.api, "/webhooks?active=true").await, [other]);
    assert_eq!(listed(&app.api, "/webhooks?active=false").await, [id]);
    assert_eq!(listed(&app.api, "/webhooks?createdFrom=2099-01-01T00:00:00Z").await, [0_i64; 0]);
    assert_eq!(listed(&app.api, "/webhooks?updatedTo=2099-01-01T00:00:00Z").await, [id, other]);
    app.api.put(&path, json!({"description": "Armazém"})).await.data(200);
    assert_eq!(listed(&app.api, "/webhooks?search=ARMAZEM").await, [id]);
    assert_eq!(listed(&app.api, "/webhooks?search=other.example").await, [id]);
    assert_eq!(listed(&app.api, "/webhooks?search=nowhere").await, [0_i64; 0]);
    assert_eq!(app.api.get("/webhooks?active=maybe").await.invalid_fields(), ["active"]);

    assert_eq!(app.api.delete(&path).await.status, 204);
    for reply in [
        app.api.get(&path).await,
        app.api.put(&path, json!({"active": true})).await,
        app.api.delete(&path).await,
        app.api.post(&format!("{path}/rotate-secret"), json!({})).await,
        app.api.post(&format!("{path}/test"), json!({})).await,
        app.api.get(&format!("{path}/deliveries")).await,
        app.api.post(&format!("{path}/replay"), json!({"after": 0})).await,
    ] {
        reply.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_invalid_webhook_is_refused_with_every_wrong_field() {
    let app = TestApp::shared().await;
    let webhook = id(&create_webhook(&app.api, json!({"url": URL})).await);
    let many: Vec<&str> = vec!["ticket.opened"; 100];
    let bad: Vec<(Value, &[&str])> = vec![
        (json!({}), &["url"]),
        (json!({"url": null}), &["url"]),
        (json!({"url": " "}), &["url"]),
        (
            json!({"url": 7, "description": 7, "types": "x", "active": "yes"}),
            &["url", "description", "types", "active"],
        ),
        (json!({"url": "example.com"}), &["url"]),
        (json!({"url": "http://example.com/"}), &["url"]),
        (json!({"url": "ftp://example.com/"}), &["url"]),
        (json!({"url": "https://"}), &["url"]),
        (json!({"url": "https:x"}), &["url"]),
        (json!({"url": "https:/x"}), &["url"]),
        (json!({"url": "https:\\\\x"}), &["url"]),
        (json!({"url": "https://./"}), &["url"]),
        (json!({"url": "https://a..b/"}), &["url"]),
        (json!({"url": format!("https://example.com/{}", "x".repeat(2_000))}), &["url"]),
        (json!({"url": URL, "description": "a\nb"}), &["description"]),
        (json!({"url": URL, "types": ["ticket.opened", "ticket.exploded", 7]}), &["types[1]", "types[2]"]),
        (json!({"url": URL, "types": ["webhook.test"]}), &["types[0]"]),
        (json!({"url": URL, "types": many}), &["types"]),
    ];
    check_refused(&app, reqwest::Method::POST, "/webhooks", bad).await;
    let bad: Vec<(Value, &[&str])> = vec![
        (json!({"url": null, "types": null, "active": null}), &["url", "types", "active"]),
        (json!({"url": "http://example.com", "types": ["x"]}), &["url", "types[0]"]),
    ];
    check_refused(&app, reqwest::Method::PUT, &format!("/webhooks/{webhook}"), bad).await;
    let path = format!("/webhooks/{webhook}/replay");
    for (body, fields) in [
        (json!({}), vec!["after"]),
        (
            json!({"after": 1, "deliveryId": 1, "failedSince": "2026-01-31T12:00:00Z"}),
            vec!["deliveryId", "failedSince"],
        ),
        (json!({"after": "x"}), vec!["after"]),
        (json!({"deliveryId": 1.5}), vec!["deliveryId"]),
        (json!({"failedSince": "yesterday"}), vec!["failedSince"]),
    ] {
        assert_eq!(app.api.post(&path, body.clone()).await.invalid_fields(), fields, "{body}");
    }
    app.api.post(&path, json!({"deliveryId": 999_999})).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn a_company_has_twenty_webhooks_and_no_more_however_many_are_made_at_once() {
    let app = TestApp::shared().await;
    let create = || app.api.post("/webhooks", json!({"url": URL}));
    let replies = futures_util::future::join_all((0..25).map(|_| create())).await;
    let (made, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 201);
    assert_eq!(made.len(), 20);
    for reply in refused {
        let details = reply.error(409, "ERR_API_CONFLICT");
        assert_eq!((&details["reason"], &details["by"]), (&json!("limit"), &json!([{"type": "webhook", "count": 20}])));
    }
    app.api.delete(&format!("/webhooks/{}", id(made[0].data(201)))).await;
    create().await.data(201);
    app.stop().await;
}

#[actix_web::test]
async fn a_creation_with_a_key_happens_once_and_its_secret_is_never_stored_in_clear_text() {
    let app = TestApp::shared().await;
    check_created_once(&app, "/webhooks", &json!({"url": URL}), &json!({"url": "https://other.example.com"})).await;
    let keyed = || app.api.keyed(reqwest::Method::POST, "/webhooks", "shown", json!({"url": URL}).to_string());
    let first = crate::support::Reply::of(keyed()).await;
    let webhook = id(first.data(201));
    let rotate = format!("/webhooks/{webhook}/rotate-secret");
    let rotated = |key: &str| app.api.keyed(reqwest::Method::POST, &rotate, key, "{}");
    let (second, again) =
        (crate::support::Reply::of(rotated("a")).await, crate::support::Reply::of(rotated("a")).await);
    let mut shown = second.data(200).clone();
    shown["secret"] = Value::Null;
    assert_eq!(again.data(200), &shown, "a retry makes another secret, or shows it again");
    assert!(again.is_replay());
    let secrets = [first.data(201)["secret"].clone(), second.data(200)["secret"].clone()];
    assert_ne!(secrets[0], secrets[1]);
    let stored_rows: Vec<String> =
        sqlx::query_scalar("select w::text from webhooks w union all select k::text from idempotency_keys k")
            .fetch_all(&app.db)
            .await
            .expect("rows");
    assert!(stored_rows.len() >= 4);
    for secret in secrets {
        let secret = secret.as_str().expect("a secret").trim_start_matches("whsec_").to_owned();
        assert!(stored_rows.iter().all(|row| !row.contains(&secret)), "a secret is stored in clear text");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_webhook_of_another_company_is_not_found() {
    let app = TestApp::shared().await;
    let webhook = id(&create_webhook(&app.api, json!({"url": URL})).await);
    check_foreign(&app, "/webhooks", webhook, &json!({"active": false})).await;
    let (_, other) = app.another_company().await;
    for path in ["rotate-secret", "test", "replay"] {
        let reply = other.post(&format!("/webhooks/{webhook}/{path}"), json!({"after": 0})).await;
        reply.error(404, "ERR_API_NOT_FOUND");
    }
    other.get(&format!("/webhooks/{webhook}/deliveries")).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}
