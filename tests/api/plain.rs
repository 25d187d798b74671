//! What holds for every plain resource: unique values at any concurrency, creations that happen once, and nothing of
//! anybody else.

use std::collections::HashMap;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::Value;

use crate::steps::{NOBODY, id, listed};
use crate::support::{Api, Reply, TestApp};

/// Creates and answers the id.
pub async fn created(api: &Api, path: &str, body: Value) -> i64 {
    id(api.post(path, body).await.data(201))
}

/// Deletes.
pub async fn deleted(api: &Api, path: &str) {
    let reply = api.delete(path).await;
    assert_eq!((reply.status.as_u16(), reply.bytes.len()), (204, 0), "{path}: {}", reply.body);
}

/// Checks that of fifty creations at once with one unique value a single one comes through.
pub async fn check_unique(app: &TestApp, path: &str, body: &Value, field: &str) {
    let before = listed(&app.api, path).await;
    let replies = join_all((0..50).map(|_| app.api.post(path, body.clone()))).await;
    let mut made = Vec::new();
    for reply in &replies {
        if reply.status == 201 {
            made.push(id(reply.data(201)));
        } else {
            assert_eq!(reply.error(409, "ERR_API_CONFLICT")["field"], field, "{path}");
        }
    }
    assert_eq!(made.len(), 1, "{path}: one of {} was to come through", replies.len());
    assert_eq!(listed(&app.api, path).await, [before, made].concat(), "{path}");
}

/// Checks that a creation with a key happens once, one after the other and all at the same time.
pub async fn check_created_once(app: &TestApp, path: &str, body: &Value, other: &Value) {
    let before = listed(&app.api, path).await.len();
    let create = |body: &Value| Reply::of(app.api.keyed(Method::POST, path, "create-once", body.to_string()));
    let replies = join_all((0..10).map(|_| create(body))).await;
    let first = &replies[0];
    first.data(201);
    for reply in &replies {
        assert_eq!((reply.status, &reply.bytes), (first.status, &first.bytes), "{path}");
    }
    assert_eq!(replies.iter().filter(|reply| !reply.is_replay()).count(), 1, "{path}");
    create(other).await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    assert_eq!(listed(&app.api, path).await.len(), before + 1, "{path}");
}

/// Checks that one record of a company is, to another company, the same as one that nobody has.
pub async fn check_foreign(app: &TestApp, path: &str, id: i64, change: &Value) {
    let (_, other) = app.another_company().await;
    let (theirs, nobodys) = (format!("{path}/{id}"), format!("{path}/{NOBODY}"));
    let kept = app.api.get(&theirs).await;
    let no_ids = [format!("{path}/x"), format!("{path}/1.5"), format!("{path}/99999999999999999999")];
    for path in [&theirs, &nobodys].into_iter().chain(&no_ids) {
        for reply in [other.get(path).await, other.put(path, change.clone()).await, other.delete(path).await] {
            assert!(reply.error(404, "ERR_API_NOT_FOUND").is_null(), "{path}");
            assert_eq!(reply.body["error"]["message"], "record not found", "{path}");
        }
    }
    assert_eq!(listed(&other, path).await, [0; 0], "{path}");
    assert_eq!(app.api.get(&theirs).await.data(200), kept.data(200), "{path}");
}

/// Checks that each search finds exactly these names of `ids`, in ascending order.
pub async fn check_searches(app: &TestApp, path: &str, ids: &HashMap<&str, i64>, searches: &[(&str, &[&str])]) {
    for (search, names) in searches {
        let query: String = form_urlencoded::byte_serialize(search.as_bytes()).collect();
        let mut expected: Vec<i64> = names.iter().map(|name| ids[name]).collect();
        expected.sort_unstable();
        assert_eq!(listed(&app.api, &format!("{path}?search={query}")).await, expected, "{path}: {search:?}");
    }
    for bad in ["%00".to_owned(), "x".repeat(256)] {
        assert_eq!(app.api.get(&format!("{path}?search={bad}")).await.invalid_fields(), ["search"], "{path}");
    }
}

/// Checks that each body is refused for exactly these fields, and that nothing was made or changed by it.
pub async fn check_refused(app: &TestApp, method: Method, path: &str, bodies: Vec<(Value, &[&str])>) {
    let list = path.split('/').take(2).collect::<Vec<_>>().join("/");
    let before = app.api.all(&list).await;
    for (body, fields) in bodies {
        let reply = Reply::of(app.api.request(method.clone(), path).json(&body)).await;
        assert_eq!(reply.invalid_fields(), fields, "{method} {path} with {body}");
    }
    assert_eq!(app.api.all(&list).await, before, "{method} {path}");
}
