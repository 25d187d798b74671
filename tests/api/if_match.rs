//! Changes that are made only if the record is still as the caller has read it: `ETag` and `If-Match`.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::steps::id;
use crate::support::{Api, Reply, TestApp};

/// A record that has an `ETag`: its path, and the body of its change with a given number.
struct Record {
    path: String,
    change: fn(usize) -> Value,
}

async fn etag(api: &Api, path: &str) -> String {
    let reply = api.get(path).await;
    let tag = reply.headers.get("etag").expect("an ETag").to_str().expect("text").to_owned();
    assert_eq!(tag, format!("{}", reply.data(200)["updatedAt"]), "the tag is not `updatedAt` in quotation marks");
    tag
}

/// Changes a record if it has this tag. Many changes at once wait for each other: one answered as busy is sent again.
async fn change(api: &Api, record: &Record, number: usize, tag: &str) -> Reply {
    let body = (record.change)(number);
    api.retry_while_busy(|| api.request(Method::PUT, &record.path).header("if-match", tag).json(&body)).await
}

/// Creates one record of each kind that has an `ETag`.
async fn create_records(app: &TestApp) -> Vec<Record> {
    let contact = id(app.api.post("/contacts", json!({"name": "Maria"})).await.data(201));
    let board = id(app.api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let card = id(app.api.post("/crm/cards", json!({"boardId": board, "name": "Maria"})).await.data(201));
    let change = |number| json!({"name": format!("Maria {number}")});
    vec![Record { path: format!("/contacts/{contact}"), change }, Record { path: format!("/crm/cards/{card}"), change }]
}

#[actix_web::test]
async fn a_change_with_an_outdated_etag_is_refused_and_nothing_is_written() {
    let app = TestApp::shared().await;
    for record in create_records(&app).await {
        let path = &record.path;
        let read = etag(&app.api, path).await;
        app.api.put(path, (record.change)(1)).await.data(200);
        let shown = app.api.get(path).await.body;
        for stale in [read.as_str(), "\"x\"", "W/\"2000-01-01T00:00:00.000Z\"", "\"a\", \"b\"", ""] {
            change(&app.api, &record, 2, stale).await.error(412, "ERR_API_PRECONDITION_FAILED");
            let removal = app.api.request(Method::DELETE, path).header("if-match", stale);
            Reply::of(removal).await.error(412, "ERR_API_PRECONDITION_FAILED");
        }
        assert_eq!(app.api.get(path).await.body, shown, "{path}");
        // The current tag as it is, as a weak one and as one of several, and `*`.
        for (number, form) in (3..).zip(["{}", "W/{}", "\"x\", {}", "*"]) {
            let current = etag(&app.api, path).await;
            change(&app.api, &record, number, &form.replace("{}", &current)).await.data(200);
        }
        let current = etag(&app.api, path).await;
        let removal = app.api.request(Method::DELETE, path).header("if-match", current.as_str());
        assert_eq!(Reply::of(removal).await.status, 204, "{path}");
        change(&app.api, &record, 9, &current).await.error(404, "ERR_API_NOT_FOUND");
        change(&app.api, &record, 9, "*").await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}

#[actix_web::test]
async fn of_many_concurrent_changes_with_one_etag_a_single_one_is_made() {
    let app = TestApp::shared().await;
    for record in create_records(&app).await {
        let read = etag(&app.api, &record.path).await;
        let replies = join_all((0..20).map(|number| change(&app.api, &record, number, &read))).await;
        let made: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(made.len(), 1, "{}", record.path);
        assert!(replies.iter().all(|reply| [200, 412].contains(&reply.status.as_u16())), "{}", record.path);
        assert_eq!(app.api.get(&record.path).await.data(200)["name"], made[0].data(200)["name"]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn each_change_gives_another_etag_however_fast_they_follow() {
    let app = TestApp::shared().await;
    let tag = id(app.api.post("/tags", json!({"name": "VIP"})).await.data(201));
    for record in create_records(&app).await {
        let mut etags = BTreeSet::from([etag(&app.api, &record.path).await]);
        let mut last = etags.first().cloned();
        for number in 0..20 {
            app.api.put(&record.path, (record.change)(number)).await.data(200);
            let now = etag(&app.api, &record.path).await;
            assert!(last.as_ref() < Some(&now), "{}: {now} after {last:?}", record.path);
            last = Some(now.clone());
            etags.insert(now);
        }
        // Tags are a part of a contact.
        if record.path.starts_with("/contacts") {
            for _ in 0..3 {
                let path = format!("{}/tags/{tag}", record.path);
                assert!(app.api.put(&path, json!({})).await.status.is_success());
                etags.insert(etag(&app.api, &record.path).await);
                assert!(app.api.delete(&path).await.status.is_success());
                etags.insert(etag(&app.api, &record.path).await);
            }
            assert_eq!(etags.len(), 27);
        } else {
            assert_eq!(etags.len(), 21);
        }
    }
    app.stop().await;
}

/// The tag is a time in milliseconds, and yet differs after every change: also after one in the same millisecond, which
/// would leave the time as it is, and after several in one transaction, which share a time.
#[actix_web::test]
async fn a_change_in_the_millisecond_of_the_one_before_gives_another_etag() {
    let app = TestApp::shared().await;
    for record in create_records(&app).await {
        let (table, id) = match record.path.rsplit_once('/').expect("an id") {
            ("/contacts", id) => ("contacts", id),
            (_, id) => ("cards", id),
        };
        let id: i64 = id.parse().expect("an id");
        let read = etag(&app.api, &record.path).await;
        let write = async |name: &str, times: usize| {
            let mut transaction = app.db.begin().await.expect("a transaction");
            for number in 0..times {
                let statement =
                    format!("update {table} set name = $3, updated_at = $4 where company_id = $1 and id = $2");
                let at: DateTime<Utc> = read.trim_matches('"').parse().expect("a time");
                let write = sqlx::query(AssertSqlSafe(statement)).bind(app.company.id).bind(id);
                let write = write.bind(format!("{name} {number}")).bind(at);
                write.execute(&mut *transaction).await.expect("a change");
            }
            transaction.commit().await.expect("a commit");
            etag(&app.api, &record.path).await
        };
        let mut etags = vec![read.clone()];
        etags.push(write("one", 1).await);
        etags.push(write("many", 3).await);
        assert!(etags.is_sorted_by(|before, after| before < after), "{}: {etags:?}", record.path);
        change(&app.api, &record, 1, &read).await.error(412, "ERR_API_PRECONDITION_FAILED");
        change(&app.api, &record, 1, &etags[2]).await.data(200);
    }
    app.stop().await;
}

/// Every change of a record with an `ETag` takes `If-Match`, and may be answered with `412`.
#[test]
fn the_document_lists_if_match_where_it_is_accepted() {
    let document = hotline::routes::document();
    let mut tagged = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let has_tag = item["get"]["responses"]["200"]["headers"].get("ETag").is_some();
        for method in ["put", "delete"] {
            let Some(operation) = item.get(method) else { continue };
            let parameters = operation["parameters"].as_array();
            let accepted = parameters.is_some_and(|all| all.iter().any(|parameter| parameter["name"] == "If-Match"));
            assert_eq!(accepted, has_tag, "{method} {path}");
            assert_eq!(operation["responses"].get("412").is_some(), has_tag, "{method} {path}");
        }
        if has_tag {
            tagged.push(path.as_str());
        }
    }
    tagged.sort_unstable();
    assert_eq!(tagged, ["/api/v1/contacts/{contactId}", "/api/v1/crm/cards/{cardId}"]);
}
