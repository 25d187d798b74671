//! A token that is not valid gets the same answer, byte for byte, whatever the reason and the endpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use hotline::cli::everything;
use hotline_actors::clock;
use hotline_persistence::key::new_key;
use hotline_persistence::tables::tokens::{self, NewToken};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, RequestBuilder};

use super::table::{anonymous, create_token, operations, wait_until_known};
use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, Reply, TestApp, eventually};

/// A token that may do everything.
fn unrestricted_token() -> NewToken<'static> {
    NewToken { name: "another", permissions: everything(), ..NewToken::default() }
}

/// A token that may do everything, from these addresses alone.
fn token_from(allowed: &[&str]) -> NewToken<'static> {
    NewToken { allowed_ips: allowed.iter().map(|range| (*range).to_owned()).collect(), ..unrestricted_token() }
}

/// Every way in which a token can be invalid, with the header to send; `None` means no header.
async fn invalid_tokens(app: &OwnApp) -> Vec<(&'static str, Option<HeaderValue>)> {
    let db = &app.db;
    let (revoked, revoked_key) = create_token(app, unrestricted_token()).await;
    tokens::revoke(db, revoked.id).await.expect("revoked");
    let past = Utc::now() - TimeDelta::milliseconds(1);
    let (_, expired) = create_token(app, NewToken { expires_at: Some(past), ..unrestricted_token() }).await;
    let (_, elsewhere) = create_token(app, token_from(&["10.0.0.0/8", "128.0.0.1", "127.0.0.2"])).await;
    let (rotated, old) = create_token(app, unrestricted_token()).await;
    let (_, new) = tokens::rotate(db, rotated.id).await.expect("rotated");
    wait_until_known(app, &new).await;
    let own = &app.company.key;
    let bearer = |key: &str| Some(HeaderValue::from_str(&format!("Bearer {key}")).expect("header"));
    let bytes = |bytes: &[u8]| Some(HeaderValue::from_bytes(bytes).expect("header"));
    let mut not_ascii = format!("Bearer {own}").into_bytes();
    not_ascii.splice(20..22, "é".bytes());
    vec![
        ("no header", None),
        ("an empty header", bytes(b"")),
        ("another scheme", bytes(format!("Basic {own}").as_bytes())),
        ("no scheme", bytes(own.as_bytes())),
        ("a scheme alone", bytes(b"Bearer")),
        ("a scheme and a blank", bytes(b"Bearer ")),
        ("a prefix alone", bearer("sk_live_")),
        ("too short", bearer(&own[..own.len() - 1])),
        ("too long", bearer(&format!("{own}a"))),
        ("far too long", bearer(&own.repeat(100))),
        ("two keys", bearer(&format!("{own} {own}"))),
        ("another prefix", bearer(&own.replace("sk_live_", "sk_test_"))),
        ("another case", bearer(&format!("{}{}", "SK_LIVE_", &own["sk_live_".len()..]))),
        ("bytes beyond ASCII", bytes(&not_ascii)),
        ("bytes that are no text", bytes(b"Bearer \xff\xfe\x80")),
        ("unknown", bearer(&new_key("sk_live_"))),
        ("revoked", bearer(&revoked_key)),
        ("expired", bearer(&expired)),
        ("from elsewhere", bearer(&elsewhere)),
        ("rotated away", bearer(&old)),
    ]
}

/// The parts of an answer that must be the same for every reason.
#[derive(Debug, PartialEq)]
struct ComparedReply {
    status: u16,
    headers: BTreeMap<String, Vec<u8>>,
    body: Vec<u8>,
}

impl ComparedReply {
    async fn of(request: RequestBuilder) -> Self {
        let reply = Reply::of(request).await;
        // A connection with an unread request body is closed, whatever the token is.
        let is_compared = |name: &&str| !matches!(*name, "x-request-id" | "date" | "connection");
        let names = reply.headers.keys().map(|name| name.as_str()).filter(is_compared);
        let headers = names.map(|name| (name.to_owned(), reply.headers[name].as_bytes().to_vec())).collect();
        assert!(reply.headers.contains_key("x-request-id"), "no request id");
        Self { status: reply.status.as_u16(), headers, body: reply.bytes }
    }
}

/// The rows of all tables, except those that a service writes by the clock: its beats, and when it last swept files.
async fn rows_by_table(app: &TestApp) -> Vec<(String, Option<String>)> {
    let names: Vec<String> = sqlx::query_scalar(
        "select tablename from pg_tables where schemaname = 'public'
            and tablename not in ('_sqlx_migrations', 'beats', 'media_sweep') order by 1",
    )
    .fetch_all(&app.db)
    .await
    .expect("tables");
    let mut rows_by_table = Vec::new();
    for name in names {
        let rows = format!("select string_agg(t::text, E'\\n' order by t::text) from {name} t");
        let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(&app.db).await.expect("rows");
        rows_by_table.push((name, rows));
    }
    rows_by_table
}

#[actix_web::test]
async fn an_invalid_token_is_answered_alike_everywhere_and_changes_nothing() {
    let app = OwnApp::start().await;
    // The records that the requests name exist: the first contact, ticket, tag.
    app.ticket("5511900000001").await;
    app.api.post("/tags", serde_json::json!({"name": "VIP"})).await.data(201);
    let invalid_tokens = invalid_tokens(&app).await;
    let log = app.service.app.engine.store().log.clone();
    let key = hotline_persistence::key::hash(&app.company.key);
    let used = app.service.app.engine.directory().token(&key).expect("token").row.id;
    eventually("everything is written", || async {
        let row = tokens::find(&app.db, used).await.expect("token").expect("token");
        row.last_used_at.is_some() && log.flushed() == log.appended()
    })
    .await;
    app.service.app.engine.directory().write_uses(&app.db, |_| true).await.expect("uses");
    // No partition is created for the next hours while the clock stands still.
    clock::stop();
    let (before, appended) = (rows_by_table(&app).await, log.appended());

    let plain = ComparedReply::of(app.api.anonymous(Method::GET, "/api/v1/tickets")).await;
    assert_eq!(plain.status, 401);
    let body = r#"{"error":{"code":"ERR_API_UNAUTHORIZED","message":"the token is missing or invalid"}}"#;
    assert_eq!(String::from_utf8_lossy(&plain.body), body);
    let operations = operations();
    for (reason, header) in &invalid_tokens {
        let with = |request: RequestBuilder| match header {
            Some(header) => request.header(AUTHORIZATION, header.clone()),
            None => request,
        };
        let mut asked: Vec<(String, RequestBuilder)> = operations
            .iter()
            .map(|operation| (super::table::name(operation), anonymous(&app.api, operation)))
            .collect();
        for path in ["/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v1/tickets/1/nothing"] {
            asked.push((path.to_owned(), app.api.anonymous(Method::GET, path)));
        }
        for method in [Method::PATCH, Method::OPTIONS, Method::DELETE] {
            asked.push((method.to_string(), app.api.anonymous(method, "/api/v1/tickets")));
        }
        asked.push(("no JSON".to_owned(), app.api.anonymous(Method::POST, "/api/v1/tickets").body("{")));
        let keyed = app.api.anonymous(Method::POST, "/api/v1/tickets").header("idempotency-key", "k").body("{}");
        asked.push(("a key".to_owned(), keyed));
        let (names, requests): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let answers = join_all(requests.into_iter().map(|request| ComparedReply::of(with(request)))).await;
        for (name, answer) in names.iter().zip(answers) {
            assert_eq!(answer, plain, "{reason}: {name}");
        }
    }
    assert_eq!(log.appended(), appended, "a refused request was journaled");
    app.service.app.engine.directory().write_uses(&app.db, |_| true).await.expect("uses");
    assert_eq!(rows_by_table(&app).await, before, "a refused request changed a row");
    app.stop().await;
}

#[actix_web::test]
async fn the_scheme_is_case_insensitive_and_the_key_is_not() {
    let app = OwnApp::start().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let header = format!("{scheme} {}", app.company.key);
        let request = app.api.anonymous(Method::GET, "/api/v1/tickets").header(AUTHORIZATION, header);
        assert_eq!(Reply::of(request).await.status, 200, "{scheme}");
    }
    let folded = format!("sk_live_{}", app.company.key["sk_live_".len()..].to_lowercase());
    app.api.with_key(&folded).get("/tickets").await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

#[actix_web::test]
async fn a_token_ends_the_moment_it_expires() {
    let app = OwnApp::start().await;
    let expiry = clock::now() + TimeDelta::hours(1);
    let (_, key) = create_token(&app, NewToken { expires_at: Some(expiry), ..unrestricted_token() }).await;
    wait_until_known(&app, &key).await;
    let api = app.api.with_key(&key);
    clock::stop();
    let left = (expiry - clock::now()).to_std().expect("it is valid for most of an hour");
    for passed in [Duration::ZERO, left - Duration::from_millis(1)] {
        clock::advance(passed);
        assert_eq!(api.get("/tickets").await.status, 200, "the token is refused before its expiry");
    }
    clock::advance(Duration::from_millis(1));
    assert_eq!(clock::now(), expiry);
    api.get("/tickets").await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

#[actix_web::test]
async fn a_rotated_token_keeps_its_permissions_and_addresses() {
    let app = OwnApp::start().await;
    let new = NewToken { permissions: super::table::only("tickets", &["GET"]), ..token_from(&["127.0.0.1"]) };
    let (row, old) = create_token(&app, new).await;
    wait_until_known(&app, &old).await;
    let (rotated, new) = tokens::rotate(&app.db, row.id).await.expect("rotated");
    assert_eq!((rotated.name, &rotated.allowed_ips), (row.name, &row.allowed_ips));
    wait_until_known(&app, &new).await;
    app.api.with_key(&old).get("/tickets").await.error(401, "ERR_API_UNAUTHORIZED");
    app.api.with_key(&new).get("/tickets").await.data(200);
    app.api.with_key(&new).get("/contacts").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    app.stop().await;
}

async fn status_when_forwarded(api: &Api, lines: &[&str]) -> u16 {
    let request = api.request(Method::GET, "/tickets");
    let request = lines.iter().fold(request, |request, line| request.header("x-forwarded-for", *line));
    let reply = Reply::of(request).await;
    if reply.status != 200 {
        reply.error(401, "ERR_API_UNAUTHORIZED");
    }
    reply.status.as_u16()
}

#[actix_web::test]
async fn what_a_caller_says_of_its_origin_counts_for_nothing() {
    let app = OwnApp::start().await;
    let (_, here) = create_token(&app, token_from(&["10.0.0.0/8", "127.0.0.1"])).await;
    let (_, near) = create_token(&app, token_from(&["127.0.0.0/30"])).await;
    let (_, elsewhere) = create_token(&app, token_from(&["10.1.2.3", "192.168.0.0/16"])).await;
    wait_until_known(&app, &elsewhere).await;
    let [here, near, elsewhere] = [here, near, elsewhere].map(|key| app.api.with_key(&key));
    for lines in [&[][..], &["10.1.2.3"], &["192.168.7.7", "10.1.2.3"], &["127.0.0.1, 10.1.2.3"], &["nonsense"]] {
        assert_eq!(status_when_forwarded(&here, lines).await, 200, "{lines:?}");
        assert_eq!(status_when_forwarded(&near, lines).await, 200, "{lines:?}");
        assert_eq!(status_when_forwarded(&elsewhere, lines).await, 401, "{lines:?}");
    }
    for header in ["forwarded", "x-real-ip", "x-client-ip", "true-client-ip"] {
        let value = if header == "forwarded" { "for=10.1.2.3" } else { "10.1.2.3" };
        let reply = Reply::of(elsewhere.request(Method::GET, "/tickets").header(header, value)).await;
        assert_eq!(reply.status, 401, "{header}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_trusted_proxy_says_where_a_request_comes_from() {
    let trusted_proxies = vec!["127.0.0.0/8".parse().expect("range")];
    let app = OwnApp::start_with(TestOptions { trusted_proxies, ..TestOptions::default() }).await;
    let (_, one) = create_token(&app, token_from(&["10.1.2.3"])).await;
    let (_, range) = create_token(&app, token_from(&["192.168.4.0/30", "10.9.9.9"])).await;
    let (_, proxy) = create_token(&app, token_from(&["127.0.0.1"])).await;
    wait_until_known(&app, &proxy).await;
    let [one, range, proxy] = [one, range, proxy].map(|key| app.api.with_key(&key));
    for (lines, expected) in [
        (&["10.1.2.3"][..], 200),
        (&["10.1.2.4"], 401),
        (&[], 401),
        // Entries further left were written by the caller itself.
        (&["10.1.2.3, 8.8.8.8"], 401),
        (&["10.1.2.3", "8.8.8.8"], 401),
        (&["8.8.8.8, 10.1.2.3"], 200),
        (&["8.8.8.8", "10.1.2.3"], 200),
        (&["nonsense, 10.1.2.3"], 200),
        (&["10.1.2.3, nonsense"], 401),
        // Another trusted proxy in between.
        (&["8.8.8.8, 10.1.2.3, 127.0.0.9"], 200),
        (&["10.1.2.3, 8.8.8.8, 127.0.0.9"], 401),
        (&["10.1.2.3:4711"], 200),
        (&["::ffff:10.1.2.3"], 200),
        (&["2001:db8::1"], 401),
    ] {
        assert_eq!(status_when_forwarded(&one, lines).await, expected, "{lines:?}");
    }
    for (last, expected) in [(0, 200), (3, 200), (4, 401)] {
        assert_eq!(status_when_forwarded(&range, &[&format!("192.168.4.{last}")]).await, expected, "{last}");
    }
    assert_eq!(status_when_forwarded(&range, &["192.168.3.255"]).await, 401);
    assert_eq!(status_when_forwarded(&range, &["10.9.9.9"]).await, 200);
    assert_eq!(status_when_forwarded(&proxy, &[]).await, 200, "a request of the proxy itself is refused");
    assert_eq!(status_when_forwarded(&proxy, &["10.1.2.3"]).await, 401, "the proxy's own address covers its callers");
    app.stop().await;
}

/// Guessing is slowed by address, but a valid token passes from the same address. A wrong token is always `401`: an
/// integration whose token was rotated must not be answered that it sends too many requests.
#[actix_web::test]
async fn an_address_that_guesses_is_cut_off_with_the_same_answer_and_a_good_token_passes_from_it() {
    let trusted_proxies = vec!["127.0.0.1/32".parse().expect("range")];
    let app =
        OwnApp::start_with(TestOptions { wrong_tokens_per_minute: 5, trusted_proxies, ..TestOptions::default() }).await;
    // No attempt is restored during the test.
    clock::stop();
    let ask = async |key: &str, address: &str| {
        let api = app.api.with_key(key);
        Reply::of(api.request(Method::GET, "/channels").header("x-forwarded-for", address)).await
    };
    let mut first = None;
    for _ in 0..5 {
        let refused = ask(&new_key("sk_live_"), "192.0.2.1").await;
        refused.error(401, "ERR_API_UNAUTHORIZED");
        assert!(!refused.headers.contains_key("connection"), "{:?}", refused.headers);
        first = Some(refused.body["error"]["message"].clone());
    }
    // What callers write before the proxy's own entry does not give them another address.
    for from in ["192.0.2.1", "192.0.2.1", "9.9.9.9, 192.0.2.1"] {
        let refused = ask(&new_key("sk_live_"), from).await;
        refused.error(401, "ERR_API_UNAUTHORIZED");
        assert_eq!(
            (Some(&refused.body["error"]["message"]), &refused.headers["connection"]),
            (first.as_ref(), &text("close"))
        );
        assert!(!refused.headers.contains_key("retry-after"), "{:?}", refused.headers);
    }
    let mut forged = b"\xe9, ".to_vec();
    forged.extend_from_slice(b"192.0.2.1");
    let forged = HeaderValue::from_bytes(&forged).expect("header");
    let request = app.api.with_key("sk_live_wrong").request(Method::GET, "/channels");
    let refused = Reply::of(request.header("x-forwarded-for", forged)).await;
    refused.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(refused.headers["connection"], text("close"));

    let good = ask(&app.company.key, "192.0.2.1").await;
    good.data(200);
    assert!(!good.headers.contains_key("connection"), "{:?}", good.headers);
    ask(&new_key("sk_live_"), "192.0.2.2").await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

fn text(text: &'static str) -> HeaderValue {
    HeaderValue::from_static(text)
}
