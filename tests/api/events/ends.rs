//! A reader who may no longer read events loses open streams, and answers held until there is an event, at once.

use std::time::Instant;

use futures_util::{Stream, StreamExt};
use hotline::cli::everything;
use reqwest::Method;
use serde_json::json;
use sqlx::types::Json;

use super::{comments_due, newest};
use crate::support::{OwnApp, Person, Reader, Reply, TestApp, eventually};

/// The name of each change, its statement, and the status of the next answer.
const CHANGES: [(&str, &str, u16); 7] = [
    ("the allowed addresses", "update tokens set allowed_ips = '{203.0.113.0/24}' where company_id = $1", 401),
    ("the plan", "update companies set api_enabled = false where id = $1", 403),
    ("the permission", "update tokens set permissions = '{\"contacts\": [\"GET\"]}' where company_id = $1", 403),
    ("the key", "update tokens set hash = sha256(hash) where company_id = $1", 401),
    ("the token", "update tokens set revoked_at = now() where company_id = $1", 401),
    ("the expiry", "update tokens set expires_at = now() where company_id = $1", 401),
    ("the company", "update companies set active = false where id = $1", 403),
];

/// Reads a stream to its end. Asserts that it sends no event, and no more comments than these: a stream that is not
/// ended at once sends one more, up to fifteen seconds later, before it notices that its reader has lost access.
async fn assert_ends(stream: &mut Reader, comments_max: u64, what: &str) {
    let mut comments = 0;
    while let Some(block) = stream.next_block().await {
        assert!(block.starts_with(':'), "{what}: {block}");
        comments += 1;
        assert!(comments <= comments_max, "{what}: the stream was still open fifteen seconds later");
    }
}

/// Like [`assert_ends`], for the rest of a stream that may still send events.
async fn assert_rest_ends(
    mut pieces: impl Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin,
    comments_max: u64,
    what: &str,
) {
    let mut rest = String::new();
    while let Some(Ok(piece)) = pieces.next().await {
        rest.push_str(&String::from_utf8_lossy(&piece));
        let comments = rest.matches(":\nid:").count() as u64;
        assert!(comments <= comments_max, "{what}: the stream was still open fifteen seconds later: {rest}");
    }
}

#[actix_web::test]
async fn a_token_that_loses_access_loses_its_streams_and_held_answers_at_once() {
    let app = TestApp::shared().await;
    for (what, change, status) in CHANGES {
        let (company, api) = app.another_company().await;
        let last = newest(&api).await;
        let opened = Instant::now();
        let mut stream = Reader::open(&api, "", None).await;
        let held = Reply::of(api.request(Method::GET, &format!("/events?after={last}&wait=30")));
        let changed = async {
            sqlx::query(sqlx::AssertSqlSafe(change)).bind(company.id).execute(&app.db).await.expect("a change");
        };
        let (held, ()) = tokio::join!(held, changed);
        assert_eq!(held.status.as_u16(), status, "{what}: {}", held.body);
        assert_ends(&mut stream, comments_due(opened), what).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_person_who_loses_access_loses_their_streams_at_once() {
    let app = OwnApp::start().await;
    let company = app.company.id;
    let profile = permit_all_to_ana(&app).await;
    for what in ["signed out", "a password", "permission", "deactivated"] {
        let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
        let opened = Instant::now();
        let stream = ana.request(Method::GET, "/events/stream").send().await.expect("an answer");
        assert_eq!(stream.status(), 200, "{what}");
        let mut pieces = stream.bytes_stream();
        let first = pieces.next().await.expect("a beginning").expect("bytes");
        assert!(first.starts_with(b"retry:"), "{first:?}");
        match what {
            "signed out" => drop(ana.delete("/session").await),
            "a password" => {
                app.api
                    .put(&format!("/users/{}", app.company.ana), json!({"password": "another long password"}))
                    .await
                    .data(200);
            }
            "permission" => {
                let none = "update profiles set permissions = '{}' where company_id = $1 and id = $2";
                sqlx::query(none).bind(company).bind(profile).execute(&app.db).await.expect("a change");
            }
            _ => {
                app.api.put(&format!("/users/{}", app.company.ana), json!({"active": false})).await.data(200);
            }
        }
        eventually("the next request is refused", || async { ana.get("/contacts").await.status != 200 }).await;
        assert_rest_ends(pieces, comments_due(opened), what).await;
        if what == "permission" {
            let all = "update profiles set permissions = $3 where company_id = $1 and id = $2";
            sqlx::query(all)
                .bind(company)
                .bind(profile)
                .bind(Json(everything()))
                .execute(&app.db)
                .await
                .expect("a change");
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_token_that_expires_ends_its_streams_and_held_answers_without_an_event() {
    let app = TestApp::shared().await;
    let (company, api) = app.another_company().await;
    let last = newest(&api).await;
    let opened = Instant::now();
    let mut stream = Reader::open(&api, "", None).await;
    let held = Reply::of(api.request(Method::GET, &format!("/events?after={last}&wait=30")));
    let soon = async {
        let soon = "update tokens set expires_at = now() + interval '1 second' where company_id = $1";
        sqlx::query(soon).bind(company.id).execute(&app.db).await.expect("a change");
    };
    let (held, ()) = tokio::join!(held, soon);
    held.error(401, "ERR_API_UNAUTHORIZED");
    assert_ends(&mut stream, comments_due(opened), "a token that expires").await;
    app.stop().await;
}

#[actix_web::test]
async fn a_session_that_expires_ends_its_streams_at_their_next_check() {
    let app = OwnApp::start().await;
    permit_all_to_ana(&app).await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let opened = Instant::now();
    let stream = ana.request(Method::GET, "/events/stream").send().await.expect("an answer");
    assert_eq!(stream.status(), 200);
    let mut pieces = stream.bytes_stream();
    pieces.next().await.expect("a beginning").expect("bytes");
    let soon = "update person_sessions set expires_at = now() + interval '1 second' where company_id = $1";
    sqlx::query(soon).bind(app.company.id).execute(&app.db).await.expect("a change");
    // A stream is not notified that a session expires sooner: it checks again with this event.
    app.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
    eventually("the session has expired", || async {
        let valid = "select count(*) from person_sessions where company_id = $1 and expires_at > now()";
        let valid = sqlx::query_scalar::<_, i64>(valid).bind(app.company.id).fetch_one(&app.db);
        valid.await.expect("a count") == 0
    })
    .await;
    assert_rest_ends(pieces, comments_due(opened), "a session that expires").await;
    ana.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

#[actix_web::test]
async fn a_second_factor_that_becomes_required_ends_the_streams_of_people_without_one() {
    let app = OwnApp::start().await;
    permit_all_to_ana(&app).await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let opened = Instant::now();
    let stream = ana.request(Method::GET, "/events/stream").send().await.expect("an answer");
    assert_eq!(stream.status(), 200);
    let mut pieces = stream.bytes_stream();
    pieces.next().await.expect("a beginning").expect("bytes");
    let required = "update companies set second_factor_required = true where id = $1";
    sqlx::query(required).bind(app.company.id).execute(&app.db).await.expect("a change");
    eventually("the next request is refused", || async { ana.get("/contacts").await.status == 403 }).await;
    assert_rest_ends(pieces, comments_due(opened), "a required second factor").await;
    ana.get("/contacts").await.error(403, "ERR_API_SECOND_FACTOR");
    app.stop().await;
}

/// Gives Ana's profile every permission, and returns its id.
async fn permit_all_to_ana(app: &TestApp) -> i64 {
    let ana = app.api.get(&format!("/users/{}", app.company.ana)).await;
    let profile = ana.data(200)["profile"]["id"].as_i64().expect("a profile");
    let all = "update profiles set permissions = $3 where company_id = $1 and id = $2";
    sqlx::query(all)
        .bind(app.company.id)
        .bind(profile)
        .bind(Json(everything()))
        .execute(&app.db)
        .await
        .expect("a change");
    profile
}
