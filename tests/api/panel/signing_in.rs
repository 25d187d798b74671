//! Signing in: with which accounts, cookies and companies, and the answers to failed attempts.

use std::time::Instant;

use hotline_actors::clock;
use hotline_persistence::tables::companies::{self, CompanyChanges};
use hotline_persistence::tables::users;
use serde_json::{Value, json};

use crate::support::{OwnApp, PASSWORD, Person, eventually};

#[actix_web::test]
async fn a_user_and_an_administrator_sign_in_and_out() {
    let app = OwnApp::start().await;
    app.api.put(&format!("/users/{}", app.company.ana), json!({"password": PASSWORD})).await.data(200);
    let mut ana = Person::nobody(&app);
    let reply = ana.sign_in("ANA@example.com", json!({})).await;
    let cookie = reply.headers["set-cookie"].to_str().expect("a cookie").to_owned();
    assert!(cookie.starts_with("hotline_session="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict"), "{cookie}");
    let agent = app.api.all("/profiles").await.into_iter().find(|profile| profile["name"] == "Agent").expect("agent");
    let expected = json!({
        "state": "open", "choices": [],
        "person": {"kind": "user", "id": app.company.ana, "name": "Ana", "email": "ana@example.com", "language": null,
            "secondFactor": false},
        "company": {"id": app.company.id, "name": "Acme", "timeZone": "UTC"},
        "permissions": agent["permissions"], "administers": false, "seesAllCards": false, "secondFactorRequired": false,
    });
    assert_eq!(reply.data(200), &expected);
    assert_eq!(ana.get("/session").await.data(200), &expected);
    // The key in the cookie is not in the database.
    let key = ana.cookie.clone().expect("a cookie").replace("hotline_session=", "");
    let found: i64 =
        sqlx::query_scalar("select count(*) from person_sessions where strpos(person_sessions::text, $1) > 0")
            .bind(key.split('~').next().and_then(|text| text.split('.').next_back()))
            .fetch_one(&app.db)
            .await
            .expect("a count");
    assert_eq!(found, 0);

    let signed_out = ana.delete("/session").await;
    assert_eq!(signed_out.status, 204);
    assert!(
        signed_out.headers["set-cookie"].to_str().expect("a cookie").starts_with("hotline_session=; Path=/; Max-Age=0")
    );
    // A copy of the cookie is worthless.
    ana.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    ana.get("/contacts").await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(ana.delete("/session").await.status, 204);

    let (admin, id) = Person::admin(&app, "root@example.com").await;
    let shown = admin.get("/session").await;
    assert_eq!(
        shown.data(200)["person"],
        json!({"kind": "admin", "id": id, "name": "root@example.com", "email": "root@example.com", "language": null, "secondFactor": false})
    );
    assert_eq!((&shown.data(200)["company"], &shown.data(200)["administers"]), (&Value::Null, &json!(true)));
    assert_eq!(shown.data(200)["permissions"], serde_json::to_value(hotline::cli::everything()).expect("json"));
    app.stop().await;
}

#[actix_web::test]
async fn behind_an_https_proxy_the_cookie_is_bound_to_the_host() {
    let options = crate::support::service::TestOptions {
        trusted_proxies: vec!["127.0.0.0/8".parse().expect("network")],
        ..Default::default()
    };
    let app = OwnApp::start_with(options).await;
    let mut ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let plain = ana.cookie.clone();
    let body = json!({"email": "ana@example.com", "password": PASSWORD});
    let request = ana.request(reqwest::Method::POST, "/session").header("x-forwarded-proto", "https").json(&body);
    let reply = crate::support::Reply::of(request).await;
    let line = reply.headers["set-cookie"].to_str().expect("a cookie").to_owned();
    assert!(line.starts_with("__Host-hotline=") && line.ends_with("; SameSite=Strict; Secure"), "{line}");
    ana.keep_cookie(&reply);
    let https_request = || ana.request(reqwest::Method::GET, "/session").header("x-forwarded-proto", "https");
    crate::support::Reply::of(https_request()).await.data(200);
    ana.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    ana.cookie = plain;
    let refused = ana.request(reqwest::Method::GET, "/session").header("x-forwarded-proto", "https");
    crate::support::Reply::of(refused).await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

#[actix_web::test]
async fn with_a_public_https_url_the_cookie_is_bound_to_the_host() {
    let mut options = crate::support::service::TestOptions::default();
    options.media.public_url = Some("https://desk.example".to_owned());
    let app = OwnApp::start_with(options).await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let mut again = Person::nobody(&app);
    let reply = again.sign_in("ana@example.com", json!({})).await;
    let lines: Vec<&str> = reply.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok()).collect();
    assert!(lines[0].starts_with("__Host-hotline=") && lines[0].ends_with("; SameSite=Strict; Secure"), "{lines:?}");
    assert!(lines[1].starts_with("__Secure-hotline-device=") && lines[1].ends_with("; Secure"), "{lines:?}");
    assert_eq!(ana.get("/session").await.data(200)["person"]["name"], Value::from("Ana"));
    app.stop().await;
}

#[actix_web::test]
async fn every_failed_sign_in_gets_the_same_answer_and_is_delayed() {
    let app = OwnApp::start().await;
    Person::user(&app, app.company.ana, "ana@example.com").await;
    let ben = app.company.ben;
    app.api.put(&format!("/users/{ben}"), json!({"password": PASSWORD, "active": false})).await.data(200);
    let carl = json!({"name": "Carl", "email": "carl@example.com"});
    app.api.post("/users", carl).await.data(201);
    let guest = Person::nobody(&app);
    let mut bodies = Vec::new();
    for (what, body) in [
        ("wrong", json!({"email": "ana@example.com", "password": "another battery"})),
        ("unknown", json!({"email": "nobody@example.com", "password": PASSWORD})),
        ("deactivated", json!({"email": "ben@example.com", "password": PASSWORD})),
        ("without a password", json!({"email": "carl@example.com", "password": PASSWORD})),
        (
            "another company",
            json!({"email": "ana@example.com", "password": PASSWORD, "companyId": app.company.id.0 + 1}),
        ),
        ("not an administrator", json!({"email": "ana@example.com", "password": PASSWORD, "admin": true})),
    ] {
        let began = Instant::now();
        let reply = guest.post("/session", body).await;
        let took_ms = began.elapsed().as_millis();
        reply.error(401, "ERR_API_SIGN_IN");
        assert!(took_ms >= 400, "{what}: {took_ms} ms");
        assert!(reply.headers.get("set-cookie").is_none(), "{what}");
        bodies.push(reply.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let reply = guest.post("/session", json!({})).await;
    assert_eq!(reply.invalid_fields(), ["email", "password"]);
    let reply = guest.post("/session", json!({"email": "x", "password": "", "companyId": 1, "admin": true})).await;
    assert_eq!(reply.invalid_fields(), ["email", "password", "companyId"]);
    app.stop().await;
}

#[actix_web::test]
async fn wrong_attempts_use_up_the_limit_even_for_a_person_who_knows_the_password() {
    let app = OwnApp::start().await;
    // No attempt is restored during the test.
    clock::stop();
    app.api.put(&format!("/users/{}", app.company.ana), json!({"password": PASSWORD})).await.data(200);
    let signed_in = Person::nobody(&app).sign_in("ana@example.com", json!({})).await;
    let cookies = signed_in.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok());
    let device = cookies.into_iter().find(|line| line.starts_with("hotline_device=")).expect("a device");
    assert!(device.ends_with("; Path=/panel/api/v1/session; Max-Age=34560000; HttpOnly; SameSite=Strict"), "{device}");
    let device = device.split(';').next().expect("a cookie").to_owned();
    let guest = Person::nobody(&app);
    let tries = (0..20).map(|_| guest.post("/session", json!({"email": "Ana@example.com", "password": "a wrong one"})));
    let replies = futures_util::future::join_all(tries).await;
    let refused = replies.iter().filter(|reply| reply.status == 429).count();
    // Of ten attempts a minute, her own sign-in has used one.
    assert_eq!(refused, 11);
    for reply in replies.iter().filter(|reply| reply.status == 429) {
        reply.error(429, "ERR_API_RATE_LIMITED");
        assert!(reply.headers["retry-after"].to_str().expect("seconds").parse::<u64>().is_ok_and(|wait| wait >= 1));
    }
    // The passwords of the others are compared; under load, one may wait too long for its turn: 503.
    assert_eq!(replies.iter().filter(|reply| [401, 503].contains(&reply.status.as_u16())).count(), 20 - refused);
    // A device from which she has signed in is still served, with its own limit, and does not help with other accounts.
    let mut on_device = Person::nobody(&app);
    on_device.cookie = Some(device.clone());
    on_device.sign_in("ana@example.com", json!({})).await.data(200);
    let wrong = json!({"email": "ana@example.com", "password": "a wrong one"});
    let person_with_cookie = |cookie: &str| Person { cookie: Some(cookie.to_owned()), ..guest.clone() };
    let (known_device, forged_device) = (person_with_cookie(&device), person_with_cookie(&device[..device.len() - 2]));
    forged_device.post("/session", wrong.clone()).await.error(429, "ERR_API_RATE_LIMITED");
    let tries = futures_util::future::join_all((0..20).map(|_| known_device.post("/session", wrong.clone()))).await;
    let refused = tries.iter().filter(|reply| reply.status == 429).count();
    // One of its ten was used by signing in.
    assert_eq!(refused, 11);
    // Attempts on an unknown account are limited alike.
    let tries = (0..12).map(|_| guest.post("/session", json!({"email": "no@example.com", "password": "a wrong one"})));
    let replies = futures_util::future::join_all(tries).await;
    assert!(replies.iter().filter(|reply| reply.status == 429).count() >= 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_person_with_several_memberships_chooses_one_and_stays_in_it() {
    let app = OwnApp::start().await;
    let (other, other_api) = app.another_company().await;
    for (api, user) in [(&app.api, app.company.ana), (&other_api, other.ana)] {
        api.put(&format!("/users/{user}"), json!({"password": PASSWORD})).await.data(200);
    }
    Person::admin(&app, "boss@example.com").await;
    let mut ana = Person::nobody(&app);
    let reply = ana.sign_in("ana@example.com", json!({})).await;
    assert_eq!(reply.data(200)["state"], "choose");
    assert_eq!(
        reply.data(200)["choices"],
        json!([
            {"companyId": app.company.id, "companyName": "Acme", "admin": false},
            {"companyId": other.id, "companyName": "Other", "admin": false},
        ])
    );
    assert!(ana.cookie.is_none() && reply.data(200)["person"].is_null());
    let reply = ana.sign_in("ana@example.com", json!({"companyId": other.id})).await;
    assert_eq!(reply.data(200)["company"]["id"], json!(other.id));
    // A password of one company opens nothing of another.
    app.api.put(&format!("/users/{}", app.company.ana), json!({"password": "a different one"})).await.data(200);
    let reply = Person::nobody(&app).sign_in("ana@example.com", json!({})).await;
    assert_eq!(reply.data(200)["company"]["id"], json!(other.id));
    ana.in_company(app.company.id).get("/contacts").await.error(404, "ERR_API_NOT_FOUND");
    ana.in_company(other.id).get("/contacts").await.data(200);

    // A deactivated company lets no one sign in or stay signed in.
    let deactivation = CompanyChanges { active: Some(false), ..CompanyChanges::default() };
    companies::update(&app.db, other.id, deactivation).await.expect("a change");
    eventually("the company is inactive", || async { ana.get("/contacts").await.status == 403 }).await;
    ana.get("/account").await.error(403, "ERR_API_COMPANY_INACTIVE");
    Person::nobody(&app).sign_in("ana@example.com", json!({})).await.error(401, "ERR_API_SIGN_IN");
    app.stop().await;
}

#[actix_web::test]
async fn a_session_ends_when_it_expires_and_when_its_person_may_not_sign_in() {
    let app = OwnApp::start().await;
    let db = &app.db;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    for (what, back) in [
        ("unused", "seen_at = now() - interval '12 hours 1 second'"),
        ("old", "expires_at = now() - interval '1 second'"),
    ] {
        let mut again = Person::nobody(&app);
        again.sign_in("ana@example.com", json!({})).await.data(200);
        let statement = format!("update person_sessions set {back} where id = (select max(id) from person_sessions)");
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(db).await.expect("a change");
        assert_eq!(again.get("/session").await.status, 401, "{what}");
    }
    // The next sign-in deletes such sessions.
    Person::nobody(&app).sign_in("ana@example.com", json!({})).await.data(200);
    let left: i64 = sqlx::query_scalar("select count(*) from person_sessions").fetch_one(db).await.expect("a count");
    assert_eq!(left, 2);
    // A use is recorded, to the minute.
    sqlx::query("update person_sessions set seen_at = now() - interval '2 hours'").execute(db).await.expect("a change");
    ana.get("/session").await.data(200);
    let seen = "select count(*) from person_sessions where seen_at > now() - interval '1 minute'";
    assert_eq!(sqlx::query_scalar::<_, i64>(seen).fetch_one(db).await.expect("a count"), 1);
    // A person has at most twenty sessions.
    let hash: String = sqlx::query_scalar("select password_hash from users where email = 'ana@example.com'")
        .fetch_one(db)
        .await
        .expect("a hash");
    assert!(hash.starts_with("$argon2id$"));
    sqlx::query(
        "insert into person_sessions (company_id, person_id, hash, state, expires_at, seen_at)
         select $1, $2, sha256(n::text::bytea), 'open', now() + interval '1 day', now() - interval '1 hour'
         from generate_series(1, 40) n",
    )
    .bind(app.company.id)
    .bind(app.company.ana)
    .execute(db)
    .await
    .expect("sessions");
    Person::nobody(&app).sign_in("ana@example.com", json!({})).await.data(200);
    let left: i64 = sqlx::query_scalar("select count(*) from person_sessions").fetch_one(db).await.expect("a count");
    assert_eq!(left, 20);

    // Sessions end when their person is deactivated, and when removed.
    let ben = Person::user(&app, app.company.ben, "ben@example.com").await;
    app.api.put(&format!("/users/{}", app.company.ana), json!({"active": false})).await.data(200);
    ana.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(app.api.delete(&format!("/users/{}", app.company.ben)).await.status, 204);
    ben.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    let left: i64 = sqlx::query_scalar("select count(*) from person_sessions where person_id = $1")
        .bind(app.company.ben)
        .fetch_one(db)
        .await
        .expect("a count");
    assert_eq!(left, 0);
    assert!(users::remove(db, app.company.id, app.company.ben).await.is_err());
    app.stop().await;
}
