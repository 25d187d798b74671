//! What the log says about requests, and what it never contains.

use hotline_persistence::tables::channels::ChannelType;
use reqwest::Method;
use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::process::{Process, command, keys_of, with_database};
use crate::support::seed::provided;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Provider, Reply, eventually};

/// Every level of our own crates, and `debug` of libraries, whose `trace` logs single bytes.
const FILTER: &str = "debug,hotline=trace,hotline_actors=trace,hotline_persistence=trace";

/// Personal data, texts and secrets. All differ, so that a failure shows which of them was logged.
const BODY: &str = "SecretOfTheBody";
const NAME: &str = "SecretOfTheName";
const NUMBER: &str = "5511987654321";
const SEARCHED: &str = "SecretOfTheQuery";
const KEY: &str = "SecretOfTheRetry";
const WRONG_TOKEN: &str = "sk_live_SecretOfTheWrongToken00000000000";

#[actix_web::test]
async fn the_log_contains_no_text_of_messages_no_personal_data_and_no_token() {
    let folder = prepared_folder();
    let mut process = Process::serve_logging(folder.path(), FILTER);
    let company = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        // PostgreSQL's error quotes a value that it cannot convert, both when a live row is rejected after the answer
        // and when a plain change fails.
        for (table, column, bad) in [("messages", "body", "Poison"), ("tags", "name", "Poison")] {
            let statement = format!("alter table {table} add check ({column} not like '%{bad}%' or {column}::int > 0)");
            sqlx::query(AssertSqlSafe(statement)).execute(db).await.expect("constraint");
        }
        company
    })
    .await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async {
        api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2)
    })
    .await;

    // Requests that are accepted.
    let send = json!({"channelId": company.phone, "number": NUMBER, "name": NAME, "type": "text", "body": BODY});
    let keyed = || api.request(Method::POST, "/messages").header("idempotency-key", KEY).json(&send);
    let job = Reply::of(keyed()).await.data(202)["jobId"].as_str().expect("job").to_owned();
    assert_eq!(Reply::of(keyed()).await.headers["idempotent-replay"], "true");
    let ticket = api.get(&format!("/messages/jobs/{job}")).await.data(200)["ticketId"].clone();
    api.post(&format!("/tickets/{ticket}/notes"), json!({"body": BODY})).await.data(201);
    let visitor = json!({"name": NAME, "externalId": "visitor", "phone": NUMBER});
    let session = api.post("/webchat/sessions", json!({"channelId": company.webchat, "visitor": visitor})).await;
    let visitor_token = session.data(201)["token"].as_str().expect("token").to_owned();
    let path = format!("/webchat/sessions/{}/messages", session.data(201)["id"].as_str().expect("id"));
    api.post(&path, json!({"body": BODY, "clientId": "1"})).await.data(201);
    api.get(&path).await.data(200);

    // Requests that are refused for a field, for the form of the body, or for the token.
    let bad = json!({"channelId": NUMBER, "number": format!("{NUMBER}x"), "type": BODY, "body": {"text": BODY}});
    assert_eq!(api.post("/messages", bad).await.status, 422);
    let truncated = api.request(Method::POST, "/messages").header("content-type", "application/json");
    assert_eq!(Reply::of(truncated.body(format!("{{\"body\": \"{BODY}"))).await.status, 400);
    assert_eq!(api.post(&format!("/tickets/{ticket}/close"), json!({"wrapupNote": [BODY]})).await.status, 422);
    assert_eq!(api.with_key(WRONG_TOKEN).get(&format!("/contacts?search={SEARCHED}")).await.status, 401);

    // Searches.
    for list in ["contacts", "tickets", "messages", "channels", "nothing"] {
        api.get(&format!("/{list}?search={SEARCHED}&number={NUMBER}&contactId={SEARCHED}")).await;
    }

    // Rows that the database refuses, before the answer and after it.
    api.post("/tags", json!({"name": format!("{BODY} Poison"), "color": "#336699"}))
        .await
        .error(500, "ERR_API_INTERNAL");
    let poison = json!({"ticketId": ticket, "type": "text", "body": format!("{BODY} Poison")});
    api.post("/messages", poison).await.data(202);
    eventually("the row is rejected", || async { process.log().contains("rejected a row") }).await;

    process.terminate();
    assert!(process.wait().success());
    let log = process.log();
    let secrets = [BODY, NAME, NUMBER, SEARCHED, KEY, WRONG_TOKEN, &company.key, &visitor_token];
    for line in log.lines() {
        for secret in secrets {
            assert!(!line.contains(secret), "`{secret}` is in the log: {line}");
        }
        assert!(!line.to_lowercase().contains("bearer"), "a token's header is in the log: {line}");
    }
    for expected in [
        "answered",
        "request failed with an internal error",
        "rejected a row",
        "SQLSTATE 22P02",
        "all changes are written",
    ] {
        assert!(log.contains(expected), "the log does not say `{expected}`: {log}");
    }
}

/// Both formats name the request in each of its lines, even if it continues in a task of its own.
#[actix_web::test]
async fn every_line_of_a_request_names_it() {
    for format in ["json", "pretty"] {
        let folder = prepared_folder();
        let mut serving = command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--log", format]);
        let process = Process::start(folder.path(), serving.env("RUST_LOG", "hotline=debug")).expect("hotline starts");
        let company = with_database(folder.path(), async |db| {
            let company = Company::create(db, "Acme").await;
            // PostgreSQL rejects such a tag, and its request fails with an internal error.
            let poison = "alter table tags add check (name not like '%Poison%' or name::int > 0)";
            sqlx::query(poison).execute(db).await.expect("constraint");
            company
        })
        .await;
        let api = Api::new(process.address, &company.key);
        eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
        let named = |id: &'static str| api.request(Method::POST, "/tags?page=7").header("x-request-id", id);
        let body = |name: &str| json!({"name": name, "color": "#336699"});
        assert_eq!(Reply::of(named("plain-one").json(&body("One"))).await.status, 201);
        assert_eq!(Reply::of(named("broken-two").json(&body("Poison"))).await.status, 500);
        let keyed = named("keyed-three").header("idempotency-key", "three").json(&body("Poison too"));
        assert_eq!(Reply::of(keyed).await.status, 500);

        let log = process.log();
        let lines_of = |id: &str| log.lines().filter(|line| line.contains(id)).collect::<Vec<_>>();
        for (id, message) in [
            ("plain-one", "answered"),
            ("broken-two", "request failed with an internal error"),
            ("broken-two", "answered"),
            ("keyed-three", "request failed with an internal error"),
            ("keyed-three", "answered"),
        ] {
            let line = lines_of(id).into_iter().find(|line| line.contains(message));
            let line = line.unwrap_or_else(|| panic!("{format}: no line `{message}` names {id}: {log}"));
            if format == "json" {
                let line: serde_json::Value = serde_json::from_str(line).expect("one object a line");
                let span = json!({"name": "request", "id": id, "method": "POST", "path": "/api/v1/tags"});
                assert_eq!(line["span"], span);
                assert!(["DEBUG", "ERROR"].contains(&line["level"].as_str().expect("level")), "{line}");
                assert!(line["target"].as_str().expect("target").starts_with("hotline"), "{line}");
                let at = line["timestamp"].as_str().expect("timestamp");
                assert!(chrono::DateTime::parse_from_rfc3339(at).is_ok(), "{line}");
            } else {
                let span = format!("request{{id=\"{id}\" method=\"POST\" path=\"/api/v1/tags\"}}");
                assert!(line.contains(&span), "{line}");
            }
        }
        // A line that belongs to no request names none.
        let startup_line = log.lines().find(|line| line.contains("recovered")).expect("the start is logged");
        assert!(!startup_line.contains("/api/v1") && !startup_line.contains("request"), "{startup_line}");
    }
}

#[actix_web::test]
async fn an_account_with_more_templates_than_the_limit_is_logged() {
    const ACCOUNT: &str = "106540352242922";
    let folder = prepared_folder();
    let provider = Provider::start().await;
    let template = |number: usize| {
        let components = json!([{"type": "BODY", "text": "Hi"}]);
        json!({"name": format!("t{number}"), "language": "en", "category": "UTILITY", "status": "APPROVED",
            "components": components})
    };
    // At most 24 pages are read, and this provider has two on a page.
    provider.has_templates(ACCOUNT, (0..49).map(template).collect());
    let process = Process::serve(folder.path());
    let (company, channel) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let keys = keys_of(folder.path());
        let channel = provided(db, &keys, company.id, ChannelType::Whatsapp, ACCOUNT, &provider.url).await;
        (company, channel)
    })
    .await;
    let api = Api::new(process.address, &company.key);
    let templates = format!("/channels/{}/templates", channel.id);
    eventually("the templates are listed", || async { api.get(&templates).await.status == 200 }).await;
    assert_eq!(api.get(&templates).await.data(200).as_array().map(Vec::len), Some(48));
    let is_logged = || async { process.log().contains("account has more templates than the limit") };
    eventually("the warning is logged", is_logged).await;
    process.kill();
}
