//! Admission to every operation of the panel's API: without a session, from another website, with a token, without a
//! permission, and beyond the rate limits.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use hotline::openapi::{Access, Operation};
use hotline::web::admission::modules::MODULES;
use hotline::web::response::schema::Schemas;
use hotline_actors::clock;
use hotline_persistence::ProfileId;
use hotline_persistence::tables::profiles::{self, NewProfile};
use hotline_persistence::tables::tokens::Permissions;
use reqwest::Method;
use serde_json::json;
use sqlx::types::Json;

use crate::support::service::TestOptions;
use crate::support::{OwnApp, PASSWORD, Person, Reply, TestApp};

/// Every operation of the panel's API, with its method and a path to it.
fn operations() -> Vec<(Operation, Method, String)> {
    let operations = hotline::routes::panel_operations(&mut Schemas::new());
    let addressed = operations.into_iter().map(|operation| {
        let method = Method::from_bytes(operation.method.as_bytes()).expect("a method");
        let parts = operation.path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
        let path = parts.collect::<Vec<&str>>().join("/");
        (operation, method, path)
    });
    addressed.collect()
}

/// Whether an operation requires a session.
fn requires_session(operation: &Operation) -> bool {
    operation.access == Access::Person || operation.access == Access::Company
}

#[actix_web::test]
async fn no_operation_is_served_without_a_session_or_to_a_token_and_no_session_reaches_the_api() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let anonymous = Person::nobody(&app);
    let operations = operations();
    assert!(operations.len() > 160, "{}", operations.len());
    for (operation, method, path) in &operations {
        if requires_session(operation) {
            let with_body = |request: reqwest::RequestBuilder| request.json(&json!({}));
            Reply::of(with_body(anonymous.request(method.clone(), path))).await.error(401, "ERR_API_UNAUTHORIZED");
            let with_token = anonymous.request(method.clone(), path).bearer_auth(&app.company.key);
            Reply::of(with_body(with_token)).await.error(401, "ERR_API_UNAUTHORIZED");
        }
        let cookie = ana.cookie.as_deref().expect("a cookie");
        let at_api = app.api.anonymous(method.clone(), &format!("/api/v1{path}")).header("cookie", cookie);
        Reply::of(at_api.json(&json!({}))).await.error(401, "ERR_API_UNAUTHORIZED");
    }
    // Nor can paths be probed.
    anonymous.get("/nothing").await.error(401, "ERR_API_UNAUTHORIZED");
    ana.get("/nothing").await.error(404, "ERR_API_NOT_FOUND");
    let guess =
        Person { cookie: Some(format!("hotline_session={}.{}", app.company.id, "x".repeat(32))), ..anonymous.clone() };
    guess.get("/contacts").await.error(401, "ERR_API_UNAUTHORIZED");
    for cookie in ["hotline_session=", "hotline_session=x", "hotline_session=9999999999999999999.x"] {
        let guess = Person { cookie: Some(cookie.to_owned()), ..anonymous.clone() };
        guess.get("/contacts").await.error(401, "ERR_API_UNAUTHORIZED");
    }
    app.stop().await;
}

/// The maximum size of a body that needs no session.
const UNAUTHENTICATED_BYTES_MAX: usize = 16 * 1024;

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).expect("compressed");
    encoder.finish().expect("compressed")
}

#[actix_web::test]
async fn a_body_that_needs_no_session_has_at_most_16_kib_even_decompressed() {
    let app = OwnApp::start().await;
    let anonymous = Person::nobody(&app);
    let is_sign_in_path = |path: &str| path.starts_with("/session") || path.starts_with("/links");
    let mut tried = 0;
    for (operation, method, path) in operations() {
        if operation.body.is_none() || !is_sign_in_path(&operation.path) {
            continue;
        }
        assert_eq!(operation.body_bytes_max, Some(UNAUTHENTICATED_BYTES_MAX), "{path}");
        tried += 1;
        // Without a session, this operation is refused.
        if requires_session(&operation) {
            continue;
        }
        for (size, status) in [(UNAUTHENTICATED_BYTES_MAX, 422_u16), (UNAUTHENTICATED_BYTES_MAX + 1, 413)] {
            // Spaces after the object are part of the body.
            let mut body = b"{}".to_vec();
            body.resize(size, b' ');
            let json = || anonymous.request(method.clone(), &path).header("content-type", "application/json");
            let compressed = json().header("content-encoding", "gzip").body(gzip(&body));
            for request in [json().body(body), compressed] {
                let reply = Reply::of(request).await;
                assert_eq!(reply.status, status, "{path}: {}", reply.body);
            }
        }
    }
    assert_eq!(tried, 5);
    app.stop().await;
}

#[actix_web::test]
async fn another_websites_page_changes_nothing() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let counts =
        "select (select count(*) from contacts) + (select count(*) from tags) + (select count(*) from person_sessions)";
    let count = async || sqlx::query_scalar::<_, i64>(counts).fetch_one(&app.db).await.expect("a count");
    let before = count().await;
    let foreign_headers: [&[(&str, &str)]; 6] = [
        &[],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1")],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
    ];
    for (_, method, path) in operations().iter().filter(|(_, method, _)| method != Method::GET) {
        for headers in &foreign_headers {
            let mut request = admin.request_from_any_page(method.clone(), path).json(&json!({"name": "x"}));
            for (name, value) in *headers {
                request = request.header(*name, *value);
            }
            Reply::of(request).await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
        }
    }
    // A form of another page, in the types that a browser sends without a preflight request.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let request = admin.request_from_any_page(Method::POST, "/tags").header("content-type", kind);
        let request = request.header("sec-fetch-site", "cross-site").body(r#"{"name": "x"}"#);
        Reply::of(request).await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
    }
    // Another page cannot read either.
    let read = admin.request_from_any_page(Method::GET, "/tags").header("sec-fetch-site", "cross-site");
    Reply::of(read).await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
    assert_eq!(count().await, before);
    // A browser that sends only the origin is served.
    let address = app.address;
    let own = admin.request_from_any_page(Method::POST, "/tags").header("origin", format!("http://{address}"));
    Reply::of(own.json(&json!({"name": "x"}))).await.data(201);
    // No other origin is allowed to read.
    let reply = Reply::of(admin.request(Method::GET, "/tags").header("origin", "https://evil.example")).await;
    assert!(reply.headers.get("access-control-allow-origin").is_none());
    app.stop().await;
}

/// A person whose profile has the permissions that a test sets.
struct Permitted<'a> {
    app: &'a TestApp,
    profile: ProfileId,
    person: Person,
}

impl<'a> Permitted<'a> {
    async fn new(app: &'a TestApp, name: &str) -> Self {
        let new = NewProfile { name, sees_all_cards: true, ..NewProfile::default() };
        let profile = profiles::insert(&app.db, app.company.id, new).await.expect("a profile").id;
        let email = format!("{name}@example.com");
        let user = json!({"name": name, "email": email, "password": PASSWORD, "profileId": profile});
        app.api.post("/users", user).await.data(201);
        let mut person = Person::nobody(app);
        person.sign_in(&email, json!({})).await.data(200);
        Self { app, profile, person }
    }

    /// Sets the profile's permissions, from the next request on.
    async fn set_permissions(&self, permissions: Permissions) {
        sqlx::query("update profiles set permissions = $2 where id = $1")
            .bind(self.profile)
            .bind(Json(permissions))
            .execute(&self.app.db)
            .await
            .expect("a change");
    }
}

/// Each module is tried with one of this many parts of the operations: a company's rate limit allows no more a minute.
const PARTS: usize = 4;

#[actix_web::test]
async fn a_profile_permits_methods_of_modules_and_nothing_else() {
    let app = OwnApp::start().await;
    let operations = operations();
    let of_modules = || operations.iter().filter(|(operation, ..)| operation.access == Access::Company);
    let unpermitted = Permitted::new(&app, "nothing").await;
    unpermitted.set_permissions([].into()).await;
    let mut tried = 0;
    for (operation, method, path) in of_modules() {
        let refused = Reply::of(unpermitted.person.request(method.clone(), path).json(&json!({}))).await;
        refused.error(403, "ERR_API_FORBIDDEN_SCOPE");
        let module = operation.module().expect("a module");
        let message = format!("your profile has no permission for {method} in the module {module}");
        assert_eq!(refused.body["error"]["message"], message, "{path}");
        tried += 1;
    }
    assert!(tried >= 150, "{tried}");
    for (turn, module) in MODULES.iter().enumerate() {
        try_module(&app, module, |number| number % PARTS == turn % PARTS).await;
    }
    app.stop().await;
}

/// Like the test above, but with every operation for each module: more requests than a company has in a minute, so the
/// clock is advanced.
#[actix_web::test]
async fn a_profile_permits_one_module_and_none_of_the_others_measured() {
    let app = OwnApp::start().await;
    for module in MODULES {
        clock::advance(Duration::from_mins(1));
        try_module(&app, module, |_| true).await;
    }
    app.stop().await;
}

/// Gives a person one method of this module, and tries all its operations and the chosen ones of other modules. All
/// that the method does not cover is refused as not permitted.
async fn try_module(app: &TestApp, module: &str, is_chosen: impl Fn(usize) -> bool) {
    // Each person has a rate limit of their own.
    let somebody = Permitted::new(app, module).await;
    for permitted in ["GET", "DELETE"] {
        somebody.set_permissions([(module.to_owned(), [permitted.to_owned()].into())].into()).await;
        let operations = operations();
        let of_modules = operations.iter().filter(|(operation, ..)| operation.access == Access::Company);
        for (number, (operation, method, path)) in of_modules.enumerate() {
            let is_harmless = method == Method::GET || method == Method::DELETE;
            let is_own = operation.module() == Some(module);
            let is_selected = is_own || is_chosen(number);
            let is_excluded = path == "/events/stream" || operation.id == "removeUser";
            if !is_harmless || !is_selected || is_excluded {
                continue;
            }
            let reply = Reply::of(somebody.person.request(method.clone(), path)).await;
            let is_refused = reply.body["error"]["code"] == "ERR_API_FORBIDDEN_SCOPE";
            let is_covered = is_own && operation.method == permitted;
            assert_eq!(is_refused, !is_covered, "{permitted} {module}: {method} {path}: {}", reply.body);
        }
    }
}

#[actix_web::test]
async fn a_persons_rate_is_limited_whatever_the_companys_rate_is() {
    let options = crate::support::service::TestOptions { rate_per_minute: 3, ..Default::default() };
    let app = OwnApp::start_with(options).await;
    // No allowance returns during the test.
    clock::stop();
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let first = ana.get("/account").await;
    assert_eq!(
        (&first.headers["ratelimit-limit"], &first.headers["ratelimit-remaining"]),
        (&"600".parse().expect("text"), &"599".parse().expect("text"))
    );
    let mut refused = None;
    for _ in 0..800 {
        let reply = ana.get("/account/sessions").await;
        if reply.status == 429 {
            refused = Some(reply);
            break;
        }
        reply.data(200);
    }
    let refused = refused.expect("a refused request");
    refused.error(429, "ERR_API_RATE_LIMITED");
    assert!(refused.headers.contains_key("retry-after"));
    // The company's own rate is untouched.
    app.api.get("/contacts").await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_signed_in_persons_requests_count_also_at_endpoints_without_a_session() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let ben = Person::user(&app, app.company.ben, "ben@example.com").await;
    // No allowance returns during the test.
    clock::stop();
    let code = json!({"code": "123456"});
    let ask = async |turn: usize| match turn % 3 {
        0 => (200_u16, ana.get("/session").await),
        1 => (401, ana.post("/session/second-factor", code.clone()).await),
        _ => (200, ana.get("/session/options").await),
    };
    for turn in 0..600 {
        let (status, reply) = ask(turn).await;
        assert_eq!(reply.status, status, "{turn}: {}", reply.body);
        let left = reply.headers["ratelimit-remaining"].to_str().expect("text").to_owned();
        assert_eq!(left, (599 - turn).to_string());
    }
    for turn in 0..3 {
        let (_, refused) = ask(turn).await;
        refused.error(429, "ERR_API_RATE_LIMITED");
        assert!(refused.headers.contains_key("retry-after"), "{turn}");
    }
    // All endpoints of people share this allowance, which is this person's alone; a session can still be ended.
    ana.get("/account").await.error(429, "ERR_API_RATE_LIMITED");
    ana.delete("/session/nothing").await.error(429, "ERR_API_RATE_LIMITED");
    ben.get("/session").await.data(200);
    assert_eq!(Person::nobody(&app).get("/session/options").await.status, 200);
    assert_eq!(ana.delete("/session").await.status, 204);
    ana.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

#[actix_web::test]
async fn the_people_of_a_company_share_a_limit_and_answers_name_the_limit_used_up_first() {
    let app = OwnApp::start_with(TestOptions { rate_per_minute: 30, ..Default::default() }).await;
    let third = json!({"name": "Cleo", "email": "cleo@example.com"});
    let third = app.api.post("/users", third).await.data(201)["id"].as_i64().expect("an id").into();
    let (_, other_api) = app.another_company().await;
    let people = [
        Person::user(&app, app.company.ana, "ana@example.com").await,
        Person::user(&app, app.company.ben, "ben@example.com").await,
        Person::user(&app, third, "cleo@example.com").await,
    ];
    // No allowance returns during the test.
    clock::stop();
    let (mut served, mut limits) = (0, Vec::new());
    let refused = 'all: loop {
        for person in &people {
            let reply = person.get("/account").await;
            limits.push(reply.headers["ratelimit-limit"].to_str().expect("text").to_owned());
            if reply.status == 429 {
                break 'all reply;
            }
            reply.data(200);
            served += 1;
        }
    };
    refused.error(429, "ERR_API_RATE_LIMITED");
    assert_eq!(refused.headers["ratelimit-remaining"], "0");
    assert_eq!(served, 1_200, "the limit of the company is 1,200, that of three people 1,800");
    assert_eq!(
        (limits[0].as_str(), limits[served].as_str()),
        ("600", "1200"),
        "an answer does not name the limit that is used up first"
    );
    // The tokens of the company, and other companies, have allowances of their own.
    app.api.get("/contacts").await.data(200);
    other_api.get("/contacts").await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_that_has_ended_keeps_nobody_from_signing_in() {
    let options = TestOptions { wrong_tokens_per_minute: 3, ..TestOptions::default() };
    let app = OwnApp::start_with(options).await;
    let mut ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let stale = ana.cookie.clone();
    assert_eq!(ana.delete("/session").await.status, 204);
    for _ in 0..10 {
        ana.cookie.clone_from(&stale);
        ana.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
        assert_eq!(ana.get("/session/options").await.status, 200);
    }
    assert_eq!(ana.sign_in("ana@example.com", json!({})).await.data(200)["state"], "open");
    // Other endpoints refuse the ended session too, however often it is sent.
    ana.cookie = stale;
    for _ in 0..5 {
        ana.get("/account").await.error(401, "ERR_API_UNAUTHORIZED");
    }
    app.stop().await;
}

#[actix_web::test]
async fn answers_to_people_are_not_cached() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let anonymous = Person::nobody(&app);
    for (who, method, path, status) in [
        (&ana, Method::GET, "/session", 200),
        (&anonymous, Method::GET, "/session", 401),
        (&anonymous, Method::GET, "/session/options", 200),
        (&anonymous, Method::POST, "/links/read", 422),
        (&ana, Method::GET, "/account", 200),
        (&anonymous, Method::GET, "/account", 401),
        (&ana, Method::GET, "/contacts", 200),
        (&ana, Method::POST, "/contacts", 201),
        (&ana, Method::GET, "/contacts/999", 404),
        (&ana, Method::GET, "/tokens", 403),
        (&ana, Method::GET, "/nothing", 404),
        (&anonymous, Method::GET, "/contacts", 401),
    ] {
        let reply = Reply::of(who.request(method.clone(), path).json(&json!({"name": "Maria"}))).await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
        let cache_control: Vec<_> = reply.headers.get_all("cache-control").iter().collect();
        assert_eq!(cache_control, ["no-store"], "{method} {path}");
    }
    // An answer that sets its own `cache-control` keeps it.
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let stream =
        admin.in_company(app.company.id).request(Method::GET, "/events/stream").send().await.expect("a stream");
    assert_eq!(stream.headers()["cache-control"], "no-cache");
    drop(stream);
    app.stop().await;
}
