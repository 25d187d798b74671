//! What the log says of requests, and what it never says.

use reqwest::Method;
use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::process::{Process, data_folder, with_database};
use crate::support::{Api, Company, Reply, eventually};

/// Everything there is of our own, and what others say that is not about single bytes.
const FILTER: &str = "debug,hotline=trace,hotline_actors=trace,hotline_persistence=trace";

/// What people wrote and who they are; each shows by itself where it comes from.
const SAID: &str = "SecretOfTheBody";
const NAME: &str = "SecretOfTheName";
const NUMBER: &str = "5511987654321";
const SEARCHED: &str = "SecretOfTheQuery";
const KEY: &str = "SecretOfTheRetry";
const WRONG_TOKEN: &str = "sk_live_SecretOfTheWrongToken00000000000";

#[actix_web::test]
async fn no_line_holds_what_was_said_who_it_was_or_a_token() {
    let folder = data_folder();
    let mut process = Process::serve_logging(folder.path(), FILTER);
    let company = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        // PostgreSQL quotes a value it cannot read as another type: in the message of a row that is refused behind
        // the answer, and in that of a plain change.
        for (table, column, but) in [("messages", "body", "Poison"), ("tags", "name", "Poison")] {
            let statement = format!("alter table {table} add check ({column} not like '%{but}%' or {column}::int > 0)");
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

    // What is taken.
    let send = json!({"channelId": company.phone, "number": NUMBER, "name": NAME, "type": "text", "body": SAID});
    let keyed = || api.request(Method::POST, "/messages").header("idempotency-key", KEY).json(&send);
    let job = Reply::of(keyed()).await.data(202)["jobId"].as_str().expect("job").to_owned();
    assert_eq!(Reply::of(keyed()).await.headers["idempotent-replay"], "true");
    let ticket = api.get(&format!("/messages/jobs/{job}")).await.data(200)["ticketId"].clone();
    api.post(&format!("/tickets/{ticket}/notes"), json!({"body": SAID})).await.data(201);
    let visitor = json!({"name": NAME, "externalId": "visitor", "phone": NUMBER});
    let session = api.post("/webchat/sessions", json!({"channelId": company.webchat, "visitor": visitor})).await;
    let visitor_token = session.data(201)["token"].as_str().expect("token").to_owned();
    let path = format!("/webchat/sessions/{}/messages", session.data(201)["id"].as_str().expect("id"));
    api.post(&path, json!({"body": SAID, "clientId": "1"})).await.data(201);
    api.get(&path).await.data(200);

    // What is refused: the field, the form, the token, the permission to exist.
    let bad = json!({"channelId": NUMBER, "number": format!("{NUMBER}x"), "type": SAID, "body": {"text": SAID}});
    assert_eq!(api.post("/messages", bad).await.status, 422);
    let torn = api.request(Method::POST, "/messages").header("content-type", "application/json");
    assert_eq!(Reply::of(torn.body(format!("{{\"body\": \"{SAID}"))).await.status, 400);
    assert_eq!(api.post(&format!("/tickets/{ticket}/close"), json!({"wrapupNote": [SAID]})).await.status, 422);
    assert_eq!(api.with_key(WRONG_TOKEN).get(&format!("/contacts?search={SEARCHED}")).await.status, 401);

    // What is asked for.
    for list in ["contacts", "tickets", "messages", "channels", "nothing"] {
        api.get(&format!("/{list}?search={SEARCHED}&number={NUMBER}&contactId={SEARCHED}")).await;
    }

    // What the database refuses, in front of the answer and behind it.
    api.post("/tags", json!({"name": format!("{SAID} Poison"), "color": "#336699"}))
        .await
        .error(500, "ERR_API_INTERNAL");
    let poison = json!({"ticketId": ticket, "type": "text", "body": format!("{SAID} Poison")});
    api.post("/messages", poison).await.data(202);
    eventually("the row is set aside", || async { process.log().contains("refused a row") }).await;

    process.terminate();
    assert!(process.wait().success());
    let log = process.log();
    let secrets = [SAID, NAME, NUMBER, SEARCHED, KEY, WRONG_TOKEN, &company.key, &visitor_token];
    for line in log.lines() {
        for secret in secrets {
            assert!(!line.contains(secret), "`{secret}` is in the log: {line}");
        }
        assert!(!line.to_lowercase().contains("bearer"), "a token's header is in the log: {line}");
    }
    for expected in ["answered", "a request met a defect", "refused a row", "SQLSTATE 22P02", "everything is flushed"] {
        assert!(log.contains(expected), "the log does not say `{expected}`: {log}");
    }
}
