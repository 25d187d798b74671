//! Devices that are known for a person, and forged cookies.

use hotline_actors::clock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{OwnApp, PASSWORD, Person, Reply, TestApp, until_blocked};

/// The device cookie that an answer sets.
fn device(reply: &Reply) -> String {
    let lines = reply.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok());
    let line = lines.into_iter().find(|line| line.starts_with("hotline_device=")).expect("a device");
    line.split(';').next().expect("a cookie").to_owned()
}

/// A browser with these cookies.
fn browser(app: &TestApp, cookie: &str) -> Person {
    Person { cookie: Some(cookie.to_owned()), ..Person::nobody(app) }
}

/// How many of these attempts to sign in were admitted, whether their password was right or not. Under load, an
/// admitted attempt may wait too long for its password to be compared: 503.
async fn count_admitted(person: &Person, body: &Value, times: usize) -> usize {
    let replies = futures_util::future::join_all((0..times).map(|_| person.post("/session", body.clone()))).await;
    assert!(replies.iter().all(|reply| [200, 401, 429, 503].contains(&reply.status.as_u16())), "{replies:?}");
    replies.iter().filter(|reply| reply.status != 429).count()
}

#[actix_web::test]
async fn a_known_device_has_ten_attempts_a_minute_and_a_new_cookie_adds_none() {
    let app = OwnApp::start().await;
    // No attempt is restored while the clock stands still.
    clock::stop();
    Person::give_password(&app, app.company.ana).await;
    let wrong = json!({"email": "ana@example.com", "password": "a wrong one 4711"});
    let right = json!({"email": "ANA@example.com", "password": PASSWORD});
    let mut cookie = device(&Person::nobody(&app).post("/session", right.clone()).await);
    // Each sign-in renews the cookie.
    let mut served = 0;
    for _ in 0..12 {
        let reply = browser(&app, &cookie).post("/session", right.clone()).await;
        if reply.status == 200 {
            served += 1;
            assert_ne!(device(&reply), cookie);
            cookie = device(&reply);
        }
    }
    assert_eq!(served, 10);
    assert_eq!(count_admitted(&browser(&app, &cookie), &wrong, 3).await, 0);
    // Unknown devices share the account's ten attempts, of which nine are left: nine devices sign in, and become known.
    // All known devices together have thirty attempts, of which ten are used up.
    let mut others = Vec::new();
    for _ in 0..9 {
        others.push(device(&Person::nobody(&app).post("/session", right.clone()).await));
    }
    assert_eq!(count_admitted(&Person::nobody(&app), &wrong, 3).await, 0);
    let mut left = 0;
    for other in &others {
        left += count_admitted(&browser(&app, other), &wrong, 12).await;
    }
    assert_eq!(left, 20);
    // A minute later the device has ten attempts again, and not more.
    clock::advance(std::time::Duration::from_secs(60));
    assert_eq!(count_admitted(&browser(&app, &cookie), &wrong, 12).await, 10);
    app.stop().await;
}

#[actix_web::test]
async fn a_device_cookie_adds_no_attempts_on_others_with_the_same_email() {
    let app = OwnApp::start().await;
    clock::stop();
    let (other, other_api) = app.another_company().await;
    let (root, _) = Person::admin(&app, "ana@example.com").await;
    drop(root);
    // The attacker's own company has a user with the victim's e-mail, and a password that the attacker knows.
    let own = json!({"password": "the attackers own 4711"});
    other_api.put(&format!("/users/{}", other.ana), own).await.data(200);
    Person::give_password(&app, app.company.ana).await;
    let of_attacker = json!({"email": "ana@example.com", "password": "the attackers own 4711", "companyId": other.id});
    let mut cookie = device(&Person::nobody(&app).post("/session", of_attacker.clone()).await);
    let guess = |more: Value| {
        let mut body = json!({"email": "ana@example.com", "password": "a guess 0815"});
        body.as_object_mut().expect("a body").extend(more.as_object().cloned().unwrap_or_default());
        body
    };
    let of_company = guess(json!({"companyId": app.company.id}));
    let of_installation = guess(json!({"admin": true}));
    // Eight of the account's ten attempts are left, after the administrator's sign-in and the attacker's.
    let mut admitted = 0;
    for _ in 0..5 {
        let reply = browser(&app, &cookie).post("/session", of_attacker.clone()).await;
        cookie = device(&reply);
        // One after another: each guess that is admitted has to be compared for its entry in the audit log.
        for guess in [&of_company, &of_installation] {
            for _ in 0..3 {
                admitted += count_admitted(&browser(&app, &cookie), guess, 1).await;
            }
        }
    }
    assert_eq!(admitted, 8);
    // Without a company, only the password of the attacker's own account is compared: the response does not reveal
    // that this one is the victim's.
    let unnamed = json!({"email": "ana@example.com", "password": PASSWORD});
    let reply = browser(&app, &cookie).post("/session", unnamed).await;
    reply.error(401, "ERR_API_SIGN_IN");
    let entries: i64 = sqlx::query_scalar(
        "select count(*) from audit_log where action = 'signIn' and company_id in (0, $1) and status = 401",
    )
    .bind(app.company.id)
    .fetch_one(&app.db)
    .await
    .expect("a count");
    assert_eq!(entries, 8, "every guess is in the audit log of its target");
    app.stop().await;
}

#[actix_web::test]
async fn a_person_with_two_memberships_switches_between_them_on_a_known_device() {
    let app = OwnApp::start().await;
    clock::stop();
    let (other, other_api) = app.another_company().await;
    other_api.put(&format!("/users/{}", other.ana), json!({"password": PASSWORD})).await.data(200);
    Person::give_password(&app, app.company.ana).await;
    let of = |company| json!({"email": "ana@example.com", "password": PASSWORD, "companyId": company});
    let first = device(&Person::nobody(&app).post("/session", of(app.company.id)).await);
    let both = device(&browser(&app, &first).post("/session", of(other.id)).await);
    // Strangers use up the attempts of unknown devices.
    let wrong = json!({"email": "ana@example.com", "password": "a wrong one 4711"});
    count_admitted(&Person::nobody(&app), &wrong, 12).await;
    for company in [app.company.id, other.id] {
        browser(&app, &both).post("/session", of(company)).await.data(200);
    }
    let any = json!({"email": "ana@example.com", "password": PASSWORD});
    let reply = browser(&app, &both).post("/session", any.clone()).await;
    assert_eq!(reply.data(200)["state"], "choose");
    // A device that is known for one membership is signed in to that one.
    let reply = browser(&app, &first).post("/session", any).await;
    assert_eq!(reply.data(200)["company"]["id"], json!(app.company.id));
    app.stop().await;
}

#[actix_web::test]
async fn a_forged_cookie_that_names_a_company_does_not_disturb_it() {
    let app = OwnApp::start().await;
    clock::stop();
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let own = ana.cookie.clone().expect("a cookie");
    let company = app.company.id;
    let proof = own.split_once('~').expect("a proof").1.to_owned();
    let forged = |number: usize| {
        let text = format!("hotline_session={company}.{number:032}");
        browser(&app, &if number.is_multiple_of(2) { text } else { format!("{text}~{proof}") })
    };
    // Every look-up of a session hangs.
    let mut held = app.db.begin().await.expect("a transaction");
    sqlx::query("lock table person_sessions in access exclusive mode").execute(&mut *held).await.expect("a lock");
    let strangers: Vec<Person> = (0..300).map(forged).collect();
    let flood = futures_util::future::join_all(
        strangers
            .iter()
            .enumerate()
            .map(|(number, stranger)| stranger.get(if number % 3 == 0 { "/session" } else { "/contacts" })),
    );
    let own_requests = async {
        until_blocked(1, &mut held, &app.db).await;
        // Some forged cookies are looked up; the company's own requests are served as usual meanwhile.
        for _ in 0..30 {
            app.api.get("/tags").await.data(200);
        }
        held.rollback().await.expect("a rollback");
    };
    let (replies, ()) = futures_util::future::join(flood, own_requests).await;
    assert!(replies.iter().all(|reply| [401, 503].contains(&reply.status.as_u16())), "{:?}", replies[0]);
    // The address has used up its look-ups of a minute: further forged cookies are refused without one.
    sqlx::query("alter table person_sessions rename to hidden").execute(&app.db).await.expect("a change");
    for number in 300..360 {
        forged(number).get("/contacts").await.error(401, "ERR_API_UNAUTHORIZED");
        forged(number).get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    }
    assert!(ana.get("/contacts").await.status.is_server_error(), "a signed cookie is looked up");
    sqlx::query("alter table hidden rename to person_sessions").execute(&app.db).await.expect("a change");
    // People who have signed in, or sign in now, are served.
    ana.get("/contacts").await.data(200);
    browser(&app, &own).post("/session", json!({"email": "ana@example.com", "password": PASSWORD})).await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_of_an_earlier_release_is_accepted_and_an_ended_one_looked_up_once() {
    let app = OwnApp::start().await;
    clock::stop();
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let own = ana.cookie.clone().expect("a cookie");
    let earlier = browser(&app, own.split('~').next().expect("a text"));
    earlier.get("/account").await.data(200);
    assert_eq!(ana.delete("/session").await.status, 204);
    for person in [&ana, &earlier] {
        person.get("/account").await.error(401, "ERR_API_UNAUTHORIZED");
    }
    sqlx::query("alter table person_sessions rename to hidden").execute(&app.db).await.expect("a change");
    for _ in 0..5 {
        Reply::of(ana.request(Method::GET, "/account")).await.error(401, "ERR_API_UNAUTHORIZED");
    }
    sqlx::query("alter table hidden rename to person_sessions").execute(&app.db).await.expect("a change");
    app.stop().await;
}

#[actix_web::test]
async fn the_password_alone_ends_no_session_of_its_owner() {
    let app = OwnApp::start().await;
    // No code becomes too old, and no allowance returns, while the clock stands still.
    clock::stop();
    let mut ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let begun = ana.post("/account/second-factor", json!({"password": PASSWORD})).await;
    let secret = begun.data(200)["secret"].as_str().expect("a secret");
    let secret = hotline_persistence::totp::from_base32(secret).expect("a secret");
    let code = hotline_persistence::totp::code(&secret, clock::now()).expect("a code");
    let confirmed = ana.post("/account/second-factor/confirm", json!({"code": code})).await;
    let recovery = confirmed.data(200)["recoveryCodes"].clone();
    // Idle for hours, as overnight.
    let idle = "update person_sessions set seen_at = now() - interval '11 hours'";
    sqlx::query(idle).execute(&app.db).await.expect("a change");
    // Signed in with the password, without the second factor.
    let mut half_open = Person::nobody(&app);
    for _ in 0..30 {
        // An attempt is restored every six seconds.
        clock::advance(std::time::Duration::from_secs(6));
        assert_eq!(half_open.sign_in("ana@example.com", json!({})).await.data(200)["state"], "secondFactor");
    }
    ana.get("/account").await.data(200);
    // Requests of a half-open session do not count against the person's open ones.
    let mut refused = 0;
    for _ in 0..700 {
        refused += usize::from(half_open.get("/account").await.status == 429);
    }
    assert!(refused >= 600, "{refused}");
    ana.get("/account").await.data(200);
    clock::advance(std::time::Duration::from_secs(60));
    // A person has at most twenty open sessions, also after a half-open one was opened.
    sqlx::query(
        "insert into person_sessions (company_id, person_id, hash, state, expires_at, seen_at)
         select $1, $2, sha256(n::text::bytea), 'open', now() + interval '1 day', now() - interval '1 hour'
         from generate_series(1, 40) n",
    )
    .bind(app.company.id)
    .bind(app.company.ana)
    .execute(&app.db)
    .await
    .expect("sessions");
    half_open.post("/session/second-factor", json!({"recoveryCode": recovery[0]})).await.data(200);
    let open = "select count(*) from person_sessions where state = 'open'";
    assert_eq!(sqlx::query_scalar::<_, i64>(open).fetch_one(&app.db).await.expect("a count"), 20);
    // Half-open sessions are deleted after ten minutes.
    let old = "update person_sessions set created_at = now() - interval '11 minutes' where state <> 'open'";
    sqlx::query(old).execute(&app.db).await.expect("a change");
    clock::advance(std::time::Duration::from_secs(60));
    Person::nobody(&app).sign_in("ana@example.com", json!({})).await.data(200);
    let half_open_count = "select count(*) from person_sessions where state <> 'open'";
    assert_eq!(sqlx::query_scalar::<_, i64>(half_open_count).fetch_one(&app.db).await.expect("a count"), 1);
    ana.cookie = None;
    app.stop().await;
}
