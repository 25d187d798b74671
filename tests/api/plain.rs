//! What holds for every plain resource: values stay unique under concurrency, a request with an idempotency key is
//! carried out once, and other companies' records are not found.

use std::collections::HashMap;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::steps::{NOBODY, assert_timestamp, id, listed};
use crate::support::{Api, Reply, TestApp, until_blocked};

/// Creates a record, and returns its id.
pub async fn created(api: &Api, path: &str, body: Value) -> i64 {
    id(api.post(path, body).await.data(201))
}

/// Deletes a record.
pub async fn deleted(api: &Api, path: &str) {
    let reply = api.delete(path).await;
    assert_eq!((reply.status.as_u16(), reply.bytes.len()), (204, 0), "{path}: {}", reply.body);
}

/// Checks that exactly one of fifty concurrent creations with the same unique value succeeds.
pub async fn check_unique(app: &TestApp, path: &str, body: &Value, field: &str) {
    let before = listed(&app.api, path).await;
    // Each waits until the one before has succeeded or failed, so some may be answered as busy at first.
    let replies = join_all((0..50).map(|_| app.api.post_while_busy(path, body))).await;
    let mut made = Vec::new();
    for reply in &replies {
        if reply.status == 201 {
            made.push(id(reply.data(201)));
        } else {
            assert_eq!(reply.error(409, "ERR_API_CONFLICT")["field"], field, "{path}");
        }
    }
    assert_eq!(made.len(), 1, "{path}: {} of {} creations succeeded", made.len(), replies.len());
    assert_eq!(listed(&app.api, path).await, [before, made].concat(), "{path}");
}

/// Checks that concurrent creations with one idempotency key create one record, and that another body is refused.
pub async fn check_created_once(app: &TestApp, path: &str, body: &Value, other: &Value) {
    let before = listed(&app.api, path).await.len();
    let create = |body: &Value| Reply::of(app.api.keyed(Method::POST, path, "create-once", body.to_string()));
    let replies = join_all((0..10).map(|_| create(body))).await;
    let first = &replies[0];
    first.data(201);
    let has_secret = first.body["data"].get("secret").is_some();
    for reply in &replies {
        if has_secret {
            // The secret is in the first answer alone.
            assert_eq!(without_secret(reply), without_secret(first), "{path}");
            assert_eq!(reply.body["data"]["secret"].is_null(), reply.is_replay(), "{path}");
        } else {
            assert_eq!((reply.status, &reply.bytes), (first.status, &first.bytes), "{path}");
        }
    }
    assert_eq!(replies.iter().filter(|reply| !reply.is_replay()).count(), 1, "{path}");
    create(other).await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    assert_eq!(listed(&app.api, path).await.len(), before + 1, "{path}");
}

fn without_secret(reply: &Reply) -> Value {
    let mut body = reply.body.clone();
    body["data"]["secret"] = Value::Null;
    body
}

/// Checks that one company's record looks to another company like one that does not exist.
pub async fn check_foreign(app: &TestApp, path: &str, id: i64, change: &Value) {
    let (_, other) = app.another_company().await;
    let (theirs, unknown) = (format!("{path}/{id}"), format!("{path}/{NOBODY}"));
    let own = listed(&other, path).await;
    assert!(!own.contains(&id), "{path}");
    let kept = app.api.get(&theirs).await;
    let non_ids = [format!("{path}/x"), format!("{path}/1.5"), format!("{path}/99999999999999999999")];
    for path in [&theirs, &unknown].into_iter().chain(&non_ids) {
        for reply in [other.get(path).await, other.put(path, change.clone()).await, other.delete(path).await] {
            assert!(reply.error(404, "ERR_API_NOT_FOUND").is_null(), "{path}");
            assert_eq!(reply.body["error"]["message"], "record not found", "{path}");
        }
    }
    assert_eq!(listed(&other, path).await, own, "{path}");
    assert_eq!(app.api.get(&theirs).await.data(200), kept.data(200), "{path}");
}

/// Checks that each search finds exactly the records that have these names in `ids`, by ascending id.
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
    // The list of `/tags/7` is `/tags`; that of `/crm/boards/7` is `/crm/boards`.
    let parts = if path.starts_with("/crm/") { 3 } else { 2 };
    let list = path.split('/').take(parts).collect::<Vec<_>>().join("/");
    let before = app.api.all(&list).await;
    for (body, fields) in bodies {
        let reply = Reply::of(app.api.request(method.clone(), path).json(&body)).await;
        assert_eq!(reply.invalid_fields(), fields, "{method} {path} with {body}");
    }
    assert_eq!(app.api.all(&list).await, before, "{method} {path}");
}

/// A plain noun as its test describes it, for [`check_plain`].
pub struct Noun<'a> {
    /// The path of all its records.
    pub path: &'a str,
    /// Whether one record can be read by its id; if not, the path with the id has no `GET`.
    pub is_shown: bool,
    /// A body, and every field of the created record but its id and times.
    pub new: (Value, Value),
    /// Other valid bodies, and some fields of the created records.
    pub good: Vec<(Value, Value)>,
    /// Valid changes, made one after the other, and the fields that each changes.
    pub changes: Vec<(Value, Value)>,
    /// Bodies that a creation refuses, and the fields that the refusal names.
    pub bad: Vec<(Value, &'a [&'a str])>,
    /// The same for changes.
    pub bad_changes: Vec<(Value, &'a [&'a str])>,
    /// The field that no two records of a company share.
    pub unique: &'a str,
    /// Whether the unique field can never be changed.
    pub is_fixed: bool,
    /// A valid body with this text in the unique field.
    pub named: fn(&str) -> Value,
    /// At least three records to be listed, each with the name that `searches` has for it.
    pub listed: Vec<(&'a str, Value)>,
    /// Searches, and the names of the listed records that each finds.
    pub searches: &'a [(&'a str, &'a [&'a str])],
}

/// Checks that records of a plain noun are created, read, listed, changed and deleted by the rules of all plain nouns.
pub async fn check_plain(noun: Noun<'_>) {
    let app = TestApp::shared().await;
    check_life(&app, &noun).await;
    check_refusals(&app, &noun).await;
    check_names(&app, &noun).await;
    check_heads(&app, &noun).await;
    check_created_once(&app, noun.path, &(noun.named)("once"), &(noun.named)("twice")).await;
    check_changed_once(&app, &noun).await;
    if noun.is_shown {
        let one = created(&app.api, noun.path, (noun.named)("ours")).await;
        check_foreign(&app, noun.path, one, &(noun.named)("stolen")).await;
    }
    app.stop().await;

    let app = TestApp::shared().await;
    let mut all = listed(&app.api, noun.path).await;
    let mut ids = HashMap::new();
    for (name, body) in &noun.listed {
        ids.insert(*name, created(&app.api, noun.path, body.clone()).await);
    }
    all.extend(ids.values());
    all.sort_unstable();
    check_list(&app, noun.path, &all, &["created", "updated"]).await;
    check_searches(&app, noun.path, &ids, noun.searches).await;
    assert_eq!(listed(&app.api, &format!("{}?search=", noun.path)).await, all, "an empty search finds everything");
    app.stop().await;
}

/// One record, read by itself or, where that is not possible, from the list.
async fn read(app: &TestApp, noun: &Noun<'_>, record: i64) -> Value {
    if noun.is_shown {
        return app.api.get(&format!("{}/{record}", noun.path)).await.data(200).clone();
    }
    let all = app.api.all(noun.path).await;
    all.into_iter().find(|row| id(row) == record).expect("the list has it")
}

/// The record with these fields replaced.
fn with(record: &Value, fields: &Value) -> Value {
    let mut record = record.clone();
    for (field, value) in fields.as_object().expect("an object") {
        record[field] = value.clone();
    }
    record
}

async fn check_life(app: &TestApp, noun: &Noun<'_>) {
    let path = noun.path;
    let before = listed(&app.api, path).await;
    let (body, shown) = &noun.new;
    // A body cannot set these.
    let body = with(body, &json!({"id": 1, "companyId": 2, "unknown": true}));
    let reply = app.api.post(path, body).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    assert_timestamp(&made["updatedAt"]);
    let stamps = json!({"id": made["id"], "createdAt": made["createdAt"], "updatedAt": made["updatedAt"]});
    assert_eq!(reply.body, json!({"data": with(shown, &stamps)}), "{path}");
    assert_eq!(&read(app, noun, id(made)).await, made, "{path}");
    assert_eq!(app.api.all(path).await.last(), Some(made), "{path}");

    let one = format!("{path}/{}", id(made));
    let mut expected = made.clone();
    let unchanged = [json!({}), json!({"unknown": 1})].map(|body| (body, json!({})));
    for (body, different) in noun.changes.iter().cloned().chain(unchanged) {
        let reply = app.api.put(&one, body.clone()).await;
        let after = reply.data(200);
        assert!(after["updatedAt"].as_str() >= expected["updatedAt"].as_str(), "{path} after {body}");
        expected = with(&expected, &different);
        expected["updatedAt"] = after["updatedAt"].clone();
        assert_eq!(after, &expected, "{path} after {body}");
        assert_eq!(read(app, noun, id(made)).await, expected, "{path} after {body}");
    }

    let mut others = Vec::new();
    for (body, shown) in &noun.good {
        let reply = app.api.post(path, body.clone()).await;
        assert_eq!(reply.data(201), &with(reply.data(201), shown), "{path} with {body}");
        others.push(id(reply.data(201)));
    }
    deleted(&app.api, &one).await;
    let absent =
        [app.api.put(&one, json!({})).await, app.api.put(&one, (noun.named)("x")).await, app.api.delete(&one).await];
    absent.iter().for_each(|reply| assert!(reply.error(404, "ERR_API_NOT_FOUND").is_null(), "{one}"));
    if noun.is_shown {
        app.api.get(&one).await.error(404, "ERR_API_NOT_FOUND");
    } else {
        app.api.get(&one).await.error(405, "ERR_API_METHOD_NOT_ALLOWED");
    }
    assert_eq!(listed(&app.api, path).await, [before, others.clone()].concat(), "{path}");
    for other in others {
        deleted(&app.api, &format!("{path}/{other}")).await;
    }
}

async fn check_refusals(app: &TestApp, noun: &Noun<'_>) {
    let one = created(&app.api, noun.path, (noun.named)("kept")).await;
    let non_objects = [json!([]), json!("x"), json!(7), Value::Null].map(|body| (body, &["body"][..]));
    check_refused(app, Method::POST, noun.path, noun.bad.iter().cloned().chain(non_objects.clone()).collect()).await;
    let path = format!("{}/{one}", noun.path);
    check_refused(app, Method::PUT, &path, noun.bad_changes.iter().cloned().chain(non_objects).collect()).await;
}

async fn check_names(app: &TestApp, noun: &Noun<'_>) {
    let (path, field) = (noun.path, noun.unique);
    let (_, other) = app.another_company().await;
    let first = created(&app.api, path, (noun.named)("first")).await;
    let second = created(&app.api, path, (noun.named)("second")).await;
    created(&app.api, path, (noun.named)("FIRST")).await;
    created(&other, path, (noun.named)("first")).await;
    let taken = json!({"field": field, "id": first});
    for again in ["first", " first "] {
        let refused = app.api.post(path, (noun.named)(again)).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken, "{path}");
    }
    if !noun.is_fixed {
        let before = read(app, noun, second).await;
        let one = format!("{path}/{second}");
        let refused = app.api.put(&one, (noun.named)("first")).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken, "{path}");
        assert_eq!(read(app, noun, second).await, before, "{path}");
        // A record may repeat its own value, and take one that is free again.
        app.api.put(&one, (noun.named)("second")).await.data(200);
        deleted(&app.api, &format!("{path}/{first}")).await;
        assert_eq!(app.api.put(&one, (noun.named)("first")).await.data(200)[field], "first");
    } else {
        deleted(&app.api, &format!("{path}/{first}")).await;
        created(&app.api, path, (noun.named)("first")).await;
    }
    check_unique(app, path, &(noun.named)("race"), field).await;
}

/// `HEAD` has the status and the headers of `GET`, and no body.
async fn check_heads(app: &TestApp, noun: &Noun<'_>) {
    let one = created(&app.api, noun.path, (noun.named)("head")).await;
    for path in [noun.path.to_owned(), format!("{}/{one}", noun.path), format!("{}/{NOBODY}", noun.path)] {
        let (head, get) = (Reply::of(app.api.request(Method::HEAD, &path)).await, app.api.get(&path).await);
        assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
        assert_eq!(head.headers["content-length"], get.headers["content-length"], "{path}");
    }
}

/// A change with an idempotency key happens once: its retry has the same answer, and undoes no change made in between.
async fn check_changed_once(app: &TestApp, noun: &Noun<'_>) {
    let Some((body, _)) = noun.changes.first() else { return };
    let one = created(&app.api, noun.path, (noun.named)("changed")).await;
    let path = format!("{}/{one}", noun.path);
    let change = || Reply::of(app.api.keyed(Method::PUT, &path, "change-once", body.to_string()));
    let first = change().await;
    first.data(200);
    let between = if noun.is_fixed { noun.changes[1].0.clone() } else { (noun.named)("between") };
    app.api.put(&path, between).await.data(200);
    let between = read(app, noun, one).await;
    let retry = change().await;
    assert_eq!((retry.status, &retry.bytes, retry.is_replay()), (first.status, &first.bytes, true), "{path}");
    assert_eq!(read(app, noun, one).await, between, "{path}");
}

#[actix_web::test]
async fn the_variables_and_wrapup_types_that_a_company_has_in_memory_are_limited() {
    let app = TestApp::shared().await;
    let fill = "insert into global_variables (company_id, key, value)
        select $1, 'key' || number, 'x' from generate_series(1, 999) number";
    sqlx::query(fill).bind(app.company.id).execute(&app.db).await.expect("variables");
    let add = async |key: &str| app.api.post("/global-variables", json!({"key": key, "value": "x"})).await;
    add("last").await.data(201);
    let refused = add("more").await;
    let details = refused.error(409, "ERR_API_CONFLICT");
    assert_eq!((&details["reason"], &details["by"][0]["count"]), (&json!("limit"), &json!(1000)));
    // Another company has its own limit.
    let (_, other_api) = app.another_company().await;
    other_api.post("/global-variables", json!({"key": "first", "value": "x"})).await.data(201);
    let category = id(app.api.post("/wrapup-categories", json!({"name": "Sales"})).await.data(201));
    let fill = "insert into wrapup_types (company_id, name, category_id)
        select $1, 'type' || number, $2 from generate_series(1, 1000) number";
    sqlx::query(fill).bind(app.company.id).bind(category).execute(&app.db).await.expect("wrap-up types");
    let refused = app.api.post("/wrapup-types", json!({"name": "more", "categoryId": category})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["by"], json!([{"type": "wrap-up type", "count": 1000}]));
    app.stop().await;
}

#[actix_web::test]
async fn the_links_to_queues_that_a_company_has_in_memory_are_limited() {
    let app = TestApp::shared().await;
    let company = app.company.id;
    for fill in [
        "insert into queues (company_id, name) select $1, 'queue' || number from generate_series(1, 500) number",
        "insert into users (company_id, name, email)
         select $1, 'user' || number, 'user' || number || '@example.com' from generate_series(1, 300) number",
        "insert into queue_users (company_id, queue_id, user_id)
         select q.company_id, q.id, u.id from queues q join users u on u.company_id = q.company_id
         where q.company_id = $1 and q.name like 'queue%' and u.name like 'user%' order by u.id, q.id
         limit 99999 - (select count(*) from queue_users where company_id = $1)",
    ] {
        sqlx::query(fill).bind(company).execute(&app.db).await.expect(fill);
    }
    let last = "select id from users where company_id = $1 order by id desc limit 2";
    let last: Vec<i64> = sqlx::query_scalar(last).bind(company).fetch_all(&app.db).await.expect("users");
    let add =
        |user: i64| Reply::of(app.api.request(Method::PUT, &format!("/queues/{}/users/{user}", app.company.sales)));
    let details = json!({"state": "the company has reached its maximum number of links to queues", "reason": "limit",
        "by": [{"type": "queueLink", "count": 100_000}]});
    // Neither of two additions is committed before the other one has begun.
    let mut blocker = app.db.begin().await.expect("a transaction");
    let lock = sqlx::query("select from queues where company_id = $1 and id = $2 for update");
    lock.bind(company).bind(app.company.sales).execute(&mut *blocker).await.expect("a lock");
    let meanwhile = async {
        until_blocked(2, &mut blocker, &app.db).await;
        blocker.rollback().await.expect("a rollback");
    };
    let (one, other, ()) = futures_util::future::join3(add(last[0]), add(last[1]), meanwhile).await;
    let (added, refused) = if one.status == 204 { (one, other) } else { (other, one) };
    assert_eq!(added.status, 204);
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &details);
    let queues = json!({"name": "New", "email": "new@example.com", "queueIds": [app.company.sales]});
    assert_eq!(app.api.post("/users", queues).await.error(409, "ERR_API_CONFLICT"), &details);
    app.api.post("/users", json!({"name": "New", "email": "new@example.com"})).await.data(201);
    app.stop().await;
}
