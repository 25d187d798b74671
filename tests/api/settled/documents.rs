//! An unreadable row never prevents the reading of other rows. Tested with every column that holds JSON.

use hotline::routes::operations;
use hotline_persistence::cluster::lives;
use hotline_persistence::tables::erasures;
use hotline_persistence::tables::tokens::{self, NewToken};
use hotline_persistence::{CompanyId, ContactId, PgPool};
use serde_json::{Value, json};

use crate::steps::{restarted, ticket};
use crate::support::{OwnApp, TestApp, eventually};

/// An object of numbers that PostgreSQL writes out in 309 digits, which are read as infinity. `peers` and `tickets` are
/// also fields of columns whose JSON has a fixed form.
const POISON: &str =
    "(select jsonb_object_agg(name, 1.7976931348623157e308) from unnest(array['a', 'peers', 'tickets']) name)";

/// Columns that are never read, and those of rows that are deleted before anything could spoil them
/// (`an_unreadable_note…` in `tests/api/events/removed.rs`).
const WRITTEN_ONLY: &[(&str, &str)] = &[("rejected_changes", "change"), ("cascades", "by"), ("cascades", "shown")];

/// The contact whose erasure is spoiled, and the one whose erasure is not.
const SPOILED: i64 = 7777;
const ERASABLE: i64 = 7778;

/// Inserts two processes of a cluster, each with a report.
async fn insert_two_reports(db: &PgPool) {
    for node in ["one", "two"] {
        sqlx::query(
            "with begun as (insert into lives (node, address, speaks, draining) values ($1, $1, 1, true) returning life)
             insert into beats (life, cores, report, reported_at) select life, 1, '{\"folder\": \"x\"}', now() from begun",
        )
        .bind(node)
        .execute(db)
        .await
        .expect("a report");
    }
}

/// Asserts that the readable report is read, that the readable erasure is carried out, and that the other erasure says
/// what to do.
async fn assert_others_are_served(db: &PgPool, company: CompanyId) {
    let reports = lives::reports(db).await.expect("the reports");
    let folders: Vec<_> =
        reports.into_iter().map(|(life, report)| (life.node, report.map(|report| report.folder))).collect();
    assert_eq!(folders, [("one".to_owned(), None), ("two".to_owned(), Some(Some("x".to_owned())))]);
    let (spoiled, erasable) = (ContactId::new(SPOILED), ContactId::new(ERASABLE));
    erasures::request(db, company, erasable).await.expect("it is requested");
    let find = async |contact| erasures::find(db, company, contact).await.expect("it is read").expect("it exists");
    eventually("the erasure beside the spoiled one is done", || async { find(erasable).await.done_at.is_some() }).await;
    eventually("the spoiled erasure says what to do", || async {
        let failure = find(spoiled).await.failure.unwrap_or_default();
        failure.contains("unreadable") && failure.contains("`traces`")
    })
    .await;
    assert_eq!(
        find(spoiled).await.done_at,
        None,
        "the spoiled erasure was carried out without the records that it names"
    );
}

/// Requests every list that needs no id.
async fn request_every_list(app: &TestApp) {
    let mut lists = 0;
    for operation in operations(&mut std::collections::BTreeMap::new()) {
        if operation.method == "GET" && !operation.path.contains('{') {
            let reply = app.api.get(&operation.path).await;
            assert_eq!(reply.status, 200, "{}: {}", operation.path, reply.body);
            lists += 1;
        }
    }
    assert!(lists >= 12, "only {lists} lists were requested");
}

#[actix_web::test]
async fn an_unreadable_value_in_any_json_column_stops_neither_a_list_nor_a_start() {
    let app = OwnApp::start().await;
    let db = app.db.clone();
    let company = app.company.id;
    // Every column that holds JSON gets a value.
    let new = NewToken { name: "second", permissions: hotline::cli::everything(), ..Default::default() };
    let (second, key) = tokens::insert(&db, company, new).await.expect("token");
    let api = app.api.with_key(&key);
    eventually("the token is seen", || async { api.get("/tags").await.status == 200 }).await;
    let field = json!({"name": "Size", "application": "contact", "type": "select", "options": ["S"]});
    app.api.post("/custom-fields", field).await.data(201);
    let body = json!({"channelId": app.company.webchat, "page": {"url": "https://a.example"}, "utm": {"source": "s"}});
    let opened = app.api.post("/webchat/sessions", body).await;
    let session = opened.data(201)["id"].as_str().expect("an id").to_owned();
    let contact = opened.data(201)["contact"]["id"].clone();
    let written = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "x"})).await;
    let ticket_id = written.data(201)["ticketId"].as_i64().expect("a ticket");
    let good = app.api.post(&format!("/tickets/{ticket_id}/notes"), json!({"body": "good"})).await;
    let good = good.data(201)["id"].clone();
    app.api.get("/messages").await.data(200);
    sqlx::query(
        "insert into early_statuses (company_id, channel_id, provider_message_id, status, error, at)
         values ($1, $2, 'wamid.1', 'failed', '{}', now())",
    )
    .bind(company)
    .bind(app.company.phone)
    .execute(&db)
    .await
    .expect("an early status");

    let later = json!({"contactId": contact, "channelId": app.company.webchat, "body": "later", "sendAt": "2099-01-01T00:00:00Z"});
    app.api.post("/schedules", later).await.data(201);
    let list = app.api.post("/contact-lists", json!({"name": "Everybody"})).await.data(201)["id"].clone();
    app.api.post(&format!("/contact-lists/{list}/contacts"), json!({"contactIds": [contact]})).await.data(200);
    let campaign = json!({"name": "Sale", "contactListId": list, "channelId": app.company.webchat, "message": "hello",
        "scheduledAt": "2099-01-01T00:00:00Z"});
    let campaign = app.api.post("/campaigns", campaign).await.data(201)["id"].clone();
    app.api.post(&format!("/campaigns/{campaign}/start"), json!({})).await.data(200);
    let webhook = app.api.post("/webhooks", json!({"url": "https://x.example", "active": false})).await;
    let webhook = webhook.data(201)["id"].clone();
    sqlx::query(
        "insert into webhook_deliveries (company_id, webhook_id, event_id, type, lane, status, created_at)
         select company_id, id, 1, 'ticket.opened', 'ticket:1', 'failed', now() from webhooks",
    )
    .execute(&db)
    .await
    .expect("a delivery");
    sqlx::query("insert into erasures (company_id, contact_id, done_at) values ($1, $2, now())")
        .bind(company)
        .bind(SPOILED)
        .execute(&db)
        .await
        .expect("an erasure");
    insert_two_reports(&db).await;
    sqlx::query(
        "insert into early_revisions (company_id, channel_id, provider_message_id, kind, key, revision, at)
         values ($1, $2, 'wamid.unknown', 'deleted', '', '{}', now())",
    )
    .bind(company)
    .bind(app.company.phone)
    .execute(&db)
    .await
    .expect("a revision of an unknown message");

    let columns: Vec<(String, String)> = sqlx::query_as(
        "select table_name::text, column_name::text from information_schema.columns
         where table_schema = 'public' and data_type = 'jsonb' order by 1, 2",
    )
    .fetch_all(&db)
    .await
    .expect("columns");
    assert!(columns.len() >= 14, "{columns:?}");
    for (table, column) in &columns {
        if WRITTEN_ONLY.contains(&(table, column)) {
            continue;
        }
        // One token of the company and one message stay readable.
        let condition = match table.as_str() {
            "tokens" => format!("id = {}", second.id),
            "messages" => format!("id <> {good}"),
            "beats" => "life = (select min(life) from beats)".to_owned(),
            _ => "true".to_owned(),
        };
        // An erasure that is done is not read again.
        let pending = if table == "erasures" { ", done_at = null" } else { "" };
        let poison = format!("update {table} set \"{column}\" = {POISON}{pending} where {condition}");
        let poisoned = sqlx::query(sqlx::AssertSqlSafe(poison)).execute(&db).await.expect("poisoned");
        assert!(poisoned.rows_affected() > 0, "nothing is in {table}.{column}: add it above");
        request_every_list(&app).await;
    }
    let check_reads = async |app: &OwnApp| {
        request_every_list(app).await;
        for path in [
            format!("/tickets/{ticket_id}"),
            format!("/webhooks/{webhook}/deliveries"),
            format!("/tickets/{ticket_id}/messages"),
            format!("/tickets/{ticket_id}/events"),
            format!("/webchat/sessions/{session}"),
            format!("/webchat/sessions/{session}/messages"),
        ] {
            let reply = app.api.get(&path).await;
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        }
        assert_eq!(app.api.get(&format!("/messages/{good}")).await.data(200)["body"], "good");
        let events = app.api.all(&format!("/tickets/{ticket_id}/events")).await;
        assert!(events.len() >= 2 && events.iter().all(|event| event["to"] == Value::Null), "{events:?}");
    };
    check_reads(&app).await;
    assert_others_are_served(&db, company).await;
    eventually("a token whose row is unreadable permits nothing", || async { api.get("/tags").await.status == 403 })
        .await;
    // A restart loads everything again.
    let app = restarted(app).await;
    check_reads(&app).await;
    app.api.post(&format!("/tickets/{ticket_id}/notes"), json!({"body": "on"})).await.data(201);
    assert_eq!(ticket(&app.api, ticket_id).await["status"], "open");
    app.stop().await;
}
