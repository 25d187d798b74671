//! The second factor.

use chrono::TimeDelta;
use hotline_actors::clock;
use hotline_persistence::tables::people::{self, PersonId, factors};
use hotline_persistence::tables::users;
use hotline_persistence::{UserId, totp};
use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::{OwnApp, PASSWORD, Person, TestApp, until_blocked};

/// The code that an app with this secret shows this many periods of 30 seconds from now.
fn code(secret: &str, periods: i64) -> String {
    let secret = totp::from_base32(secret).expect("a secret");
    totp::code(&secret, clock::now() + TimeDelta::seconds(30 * periods)).expect("a code")
}

/// Sets a second factor up; returns its secret and the recovery codes. From here on the service's clock stands still,
/// so that no code becomes too old while a test is slow.
async fn enrol(person: &Person) -> (String, Vec<String>) {
    clock::stop();
    let begun = person.post("/account/second-factor", json!({"password": PASSWORD})).await;
    let secret = begun.data(200)["secret"].as_str().expect("a secret").to_owned();
    let uri = begun.data(200)["uri"].as_str().expect("an address");
    assert!(uri.starts_with("otpauth://totp/Hotline:") && uri.contains(&format!("secret={secret}&")), "{uri}");
    // The code of the previous period, because the tests need this one's.
    let made = person.post("/account/second-factor/confirm", json!({"code": code(&secret, -1)})).await;
    let codes: Vec<String> = serde_json::from_value(made.data(200)["recoveryCodes"].clone()).expect("codes");
    assert_eq!(codes.len(), 10);
    (secret, codes)
}

#[actix_web::test]
async fn a_second_factor_is_required_and_no_code_is_accepted_twice() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let mut other = Person::nobody(&app);
    other.sign_in("ana@example.com", json!({})).await.data(200);
    let begin = |password: &str| json!({"password": password});
    assert_eq!(ana.post("/account/second-factor", begin("not hers at all")).await.invalid_fields(), ["password"]);
    let confirm = |code: String| json!({"code": code});
    assert_eq!(ana.post("/account/second-factor/confirm", confirm("123456".into())).await.invalid_fields(), ["code"]);
    ana.post("/account/second-factor/remove", begin(PASSWORD)).await.error(409, "ERR_API_CONFLICT");
    let (secret, recovery) = enrol(&ana).await;
    // A session that was opened without the second factor has ended.
    other.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    ana.post("/account/second-factor", begin(PASSWORD)).await.error(409, "ERR_API_CONFLICT");
    assert_eq!(ana.get("/account").await.data(200)["recoveryCodesLeft"], json!(10));
    // The secret is sealed, the codes are hashes.
    let stored: String = sqlx::query_scalar("select second_factors::text from second_factors")
        .fetch_one(&app.db)
        .await
        .expect("a factor");
    assert!(stored.contains("v1.") && !stored.contains(&secret) && !stored.contains(&recovery[0]), "{stored}");

    // The password alone opens nothing.
    let mut half_open = Person::nobody(&app);
    let reply = half_open.sign_in("ana@example.com", json!({})).await;
    assert_eq!((&reply.data(200)["state"], &reply.data(200)["person"]), (&json!("secondFactor"), &Value::Null));
    assert_eq!(half_open.get("/session").await.data(200)["state"], "secondFactor");
    for path in ["/contacts", "/account", "/account/sessions", "/account/second-factor"] {
        half_open.get(path).await.error(403, "ERR_API_SECOND_FACTOR");
    }
    half_open
        .post("/account/second-factor/confirm", confirm(code(&secret, 0)))
        .await
        .error(403, "ERR_API_SECOND_FACTOR");
    let used_code = code(&secret, 0);
    let before = half_open.cookie.clone();
    half_open.post("/session/second-factor", json!({"code": "000000"})).await.error(401, "ERR_API_SIGN_IN");
    let opened = half_open.post("/session/second-factor", json!({"code": used_code})).await;
    assert_eq!(opened.data(200)["state"], "open");
    half_open.keep_cookie(&opened);
    // The session has another key: a copy of the earlier cookie is worthless.
    assert_ne!(half_open.cookie, before);
    half_open.get("/account").await.data(200);
    let stolen = Person { cookie: before, ..half_open.clone() };
    stolen.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");

    // The code is used up: a person who has read it over her shoulder cannot sign in with it.
    let mut thief = Person::nobody(&app);
    thief.sign_in("ana@example.com", json!({})).await.data(200);
    thief.post("/session/second-factor", json!({"code": used_code})).await.error(401, "ERR_API_SIGN_IN");
    assert_eq!(thief.post("/session/second-factor", json!({})).await.invalid_fields(), ["code"]);
    // Each recovery code is valid once, however it is typed.
    let typed = recovery[0].to_uppercase().replace('-', " ");
    assert_eq!(thief.post("/session/second-factor", json!({"recoveryCode": typed})).await.data(200)["state"], "open");
    let mut again = Person::nobody(&app);
    again.sign_in("ana@example.com", json!({})).await.data(200);
    again.post("/session/second-factor", json!({"recoveryCode": recovery[0]})).await.error(401, "ERR_API_SIGN_IN");
    assert_eq!(ana.get("/account").await.data(200)["recoveryCodesLeft"], json!(9));
    // An open session cannot be opened again.
    ana.post("/session/second-factor", json!({"recoveryCode": recovery[1]})).await.error(401, "ERR_API_SIGN_IN");

    let renewed = ana.post("/account/second-factor/recovery-codes", begin(PASSWORD)).await;
    assert_eq!(renewed.data(200)["recoveryCodes"].as_array().map(Vec::len), Some(10));
    again.post("/session/second-factor", json!({"recoveryCode": recovery[2]})).await.error(401, "ERR_API_SIGN_IN");
    assert_eq!(ana.post("/account/second-factor/remove", begin(PASSWORD)).await.status, 204);
    assert_eq!(ana.get("/account").await.data(200)["recoveryCodesLeft"], Value::Null);
    assert_eq!(Person::nobody(&app).sign_in("ana@example.com", json!({})).await.data(200)["state"], "open");
    app.stop().await;
}

#[actix_web::test]
async fn five_wrong_codes_end_a_session_and_a_company_may_require_a_second_factor() {
    let app = OwnApp::start().await;
    let db = &app.db;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let (secret, _) = enrol(&ana).await;
    let mut guesser = Person::nobody(&app);
    guesser.sign_in("ana@example.com", json!({})).await.data(200);
    for _ in 0..5 {
        guesser.post("/session/second-factor", json!({"code": "000000"})).await.error(401, "ERR_API_SIGN_IN");
    }
    let refused = guesser.post("/session/second-factor", json!({"code": code(&secret, 0)})).await;
    refused.error(401, "ERR_API_UNAUTHORIZED");
    // Ten minutes without a code end the session as well.
    guesser.sign_in("ana@example.com", json!({})).await.data(200);
    let back = "update person_sessions set created_at = now() - interval '11 minutes' where state = 'second_factor'";
    sqlx::query(back).execute(db).await.expect("a change");
    guesser.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");

    sqlx::query("update companies set second_factor_required = true").execute(db).await.expect("a change");
    let mut ben = Person::nobody(&app);
    app.api.put(&format!("/users/{}", app.company.ben), json!({"password": PASSWORD})).await.data(200);
    let reply = ben.sign_in("ben@example.com", json!({})).await;
    assert_eq!((&reply.data(200)["state"], &reply.data(200)["secondFactorRequired"]), (&json!("enrol"), &json!(true)));
    for (method, path) in [
        (Method::GET, "/contacts"),
        (Method::GET, "/account"),
        (Method::PUT, "/account/password"),
        (Method::POST, "/account/second-factor/remove"),
    ] {
        let refused = crate::support::Reply::of(ben.request(method, path).json(&json!({}))).await;
        refused.error(403, "ERR_API_SECOND_FACTOR");
    }
    enrol(&ben).await;
    assert_eq!(ben.get("/session").await.data(200)["state"], "open");
    ben.get("/contacts").await.data(200);
    let refused = ben.post("/account/second-factor/remove", json!({"password": PASSWORD})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &json!({"reason": "required"}));
    app.stop().await;
}

#[actix_web::test]
async fn administrators_of_the_installation_may_be_required_to_have_a_second_factor() {
    let options = crate::support::service::TestOptions {
        panel: hotline::panel::PanelOptions { admins_need_second_factor: true, ..Default::default() },
        ..Default::default()
    };
    let app = OwnApp::start_with(options).await;
    let hash = hotline_persistence::password::Password::parse(PASSWORD.to_owned()).expect("a password").hash();
    let hash = hash.expect("a hash");
    hotline_persistence::tables::admins::insert(&app.db, "root@example.com", &hash).await.expect("an administrator");
    let mut root = Person::nobody(&app);
    let reply = root.sign_in("root@example.com", json!({})).await;
    assert_eq!((&reply.data(200)["state"], &reply.data(200)["secondFactorRequired"]), (&json!("enrol"), &json!(true)));
    let root_in_company = root.in_company(app.company.id);
    for (person, path) in [(&root, "/companies"), (&root, "/installation/figures"), (&root_in_company, "/contacts")] {
        person.get(path).await.error(403, "ERR_API_SECOND_FACTOR");
    }
    let (secret, _) = enrol(&root).await;
    assert_eq!(root.get("/session").await.data(200)["state"], "open");
    root.get("/companies").await.data(200);
    root_in_company.get("/contacts").await.data(200);
    let refused = root.post("/account/second-factor/remove", json!({"password": PASSWORD})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &json!({"reason": "required"}));
    let mut again = Person::nobody(&app);
    assert_eq!(again.sign_in("root@example.com", json!({})).await.data(200)["state"], "secondFactor");
    // The password alone makes no device known.
    assert!(!again.cookie.as_deref().expect("a cookie").contains("device"));
    let opened = again.post("/session/second-factor", json!({"code": code(&secret, 0)})).await;
    assert_eq!((&opened.data(200)["state"], opened.headers.get_all("set-cookie").iter().count()), (&json!("open"), 2));
    // Users need one only if their company requires it.
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    ana.get("/contacts").await.data(200);
    app.stop().await;
}

/// A person's second factor as stored, or `None`.
async fn stored_factor(app: &TestApp, user: UserId) -> Option<String> {
    let stored = sqlx::query_scalar("select f::text from second_factors f where company_id = $1 and person_id = $2");
    stored.bind(app.company.id).bind(user).fetch_optional(&app.db).await.expect("an answer")
}

#[actix_web::test]
async fn changes_to_a_second_factor_under_way_do_not_undo_an_administrators_reset() {
    let app = OwnApp::start().await;
    let carl = app.api.post("/users", json!({"name": "Carl", "email": "carl@example.com"})).await;
    let carl = UserId::new(id(carl.data(201)));
    for (user, email, path, has_factor) in [
        (app.company.ana, "ana@example.com", "/account/second-factor", false),
        (app.company.ben, "ben@example.com", "/account/second-factor/recovery-codes", true),
        (carl, "carl@example.com", "/account/second-factor/remove", true),
    ] {
        let signed_in = Person::user(&app, user, email).await;
        if has_factor {
            enrol(&signed_in).await;
        }
        let before = stored_factor(&app, user).await;
        let person = PersonId::User(app.company.id, user);
        // The change compares the password before the reset is committed, and is saved after it.
        let mut reset = app.db.begin().await.expect("a transaction");
        people::set_password(&mut reset, person, "of the reset").await.expect("a password");
        people::shut_out(&mut reset, person).await.expect("ended sessions");
        let meanwhile = async {
            until_blocked(1, &mut reset, &app.db).await;
            reset.commit().await.expect("a reset");
        };
        let change = signed_in.post(path, json!({"password": PASSWORD}));
        let (changed, ()) = futures_util::future::join(change, meanwhile).await;
        changed.error(401, "ERR_API_UNAUTHORIZED");
        assert_eq!(stored_factor(&app, user).await, before, "{path}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_administrator_removes_a_second_factor_that_is_being_set_up() {
    let app = OwnApp::start().await;
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let (root, ana) = (root.in_company(app.company.id), app.company.ana);
    // As in a setup: the person is locked first.
    let mut setup = app.db.begin().await.expect("a transaction");
    users::lock(&mut setup, app.company.id, ana).await.expect("a lock");
    let keys = &app.service.app.engine.store().keys;
    factors::begin(&mut *setup, keys, PersonId::User(app.company.id, ana)).await.expect("a secret");
    let meanwhile = async {
        until_blocked(1, &mut setup, &app.db).await;
        setup.commit().await.expect("a setup");
    };
    let path = format!("/users/{ana}/second-factor/remove");
    let (removed, ()) = futures_util::future::join(root.post(&path, json!({})), meanwhile).await;
    assert_eq!(removed.status, 204, "{}", removed.body);
    assert_eq!(stored_factor(&app, ana).await, None, "the secret of the setup is still stored");
    app.stop().await;
}
