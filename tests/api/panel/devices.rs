//! Devices that are known for a person, and cookies that anybody can write.

use hotline_actors::clock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{OwnApp, PASSWORD, Person, Reply, TestApp};

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

/// How many of so many tries were not sent away.
async fn looked_at(person: &Person, body: &Value, times: usize) -> usize {
    let replies = futures_util::future::join_all((0..times).map(|_| person.post("/session", body.clone()))).await;
    assert!(replies.iter().all(|reply| [200, 401, 429].contains(&reply.status.as_u16())), "{replies:?}");
    replies.iter().filter(|reply| reply.status != 429).count()
}

#[actix_web::test]
async fn a_known_device_has_ten_tries_a_minute_and_a_new_cookie_gives_it_no_more() {
    let app = OwnApp::start().await;
    // No try comes back while the test looks.
    clock::stop();
    Person::give_password(&app, app.company.ana).await;
    let wrong = json!({"email": "ana@example.com", "password": "a wrong one 4711"});
    let right = json!({"email": "ANA@example.com", "password": PASSWORD});
    let mut cookie = device(&Person::nobody(&app).post("/session", right.clone()).await);
    // Each time it signs in, it is given another cookie.
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
    assert_eq!(looked_at(&browser(&app, &cookie), &wrong, 3).await, 0);
    // Devices that are not known have the tries of the account: nine are left, and each of nine that sign in is a device of its
    // own. All of them together have thirty, of which ten are gone.
    let mut others = Vec::new();
    for _ in 0..9 {
        others.push(device(&Person::nobody(&app).post("/session", right.clone()).await));
    }
    assert_eq!(looked_at(&Person::nobody(&app), &wrong, 3).await, 0);
    let mut left = 0;
    for other in &others {
        left += looked_at(&browser(&app, other), &wrong, 12).await;
    }
    assert_eq!(left, 20);
    // A minute later there are as many again, and not more.
    clock::advance(std::time::Duration::from_secs(60));
    assert_eq!(looked_at(&browser(&app, &cookie), &wrong, 12).await, 10);
    app.stop().await;
}

#[actix_web::test]
async fn a_cookie_changes_nothing_for_another_person_of_the_same_email() {
    let app = OwnApp::start().await;
    clock::stop();
    let (other, other_api) = app.another_company().await;
    let (root, _) = Person::admin(&app, "ana@example.com").await;
    drop(root);
    // A company of one's own, in which the victim's e-mail is a user with a password one knows.
    let own = json!({"password": "the attackers own 4711"});
    other_api.put(&format!("/users/{}", other.ana), own).await.data(200);
    Person::give_password(&app, app.company.ana).await;
    let mine = json!({"email": "ana@example.com", "password": "the attackers own 4711", "companyId": other.id});
    let mut cookie = device(&Person::nobody(&app).post("/session", mine.clone()).await);
    let guess = |more: Value| {
        let mut body = json!({"email": "ana@example.com", "password": "a guess 0815"});
        body.as_object_mut().expect("a body").extend(more.as_object().cloned().unwrap_or_default());
        body
    };
    let of_company = guess(json!({"companyId": app.company.id}));
    let of_installation = guess(json!({"admin": true}));
    // What is left of the account's ten: one was root's own sign-in, one the attacker's.
    let mut tried = 0;
    for _ in 0..5 {
        let reply = browser(&app, &cookie).post("/session", mine.clone()).await;
        cookie = device(&reply);
        tried += looked_at(&browser(&app, &cookie), &of_company, 3).await;
        tried += looked_at(&browser(&app, &cookie), &of_installation, 3).await;
    }
    assert_eq!(tried, 8);
    // Naming nobody, the attacker's own is let in, and nobody else's password is compared: that the right one of another
    // fits is not told.
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
    assert_eq!(entries, 8, "every guess is in the log of whom it was about");
    app.stop().await;
}

#[actix_web::test]
async fn who_has_two_memberships_changes_between_them_on_a_known_device() {
    let app = OwnApp::start().await;
    clock::stop();
    let (other, other_api) = app.another_company().await;
    other_api.put(&format!("/users/{}", other.ana), json!({"password": PASSWORD})).await.data(200);
    Person::give_password(&app, app.company.ana).await;
    let of = |company| json!({"email": "ana@example.com", "password": PASSWORD, "companyId": company});
    let first = device(&Person::nobody(&app).post("/session", of(app.company.id)).await);
    let both = device(&browser(&app, &first).post("/session", of(other.id)).await);
    // Strangers use up what devices have that nobody knows.
    let wrong = json!({"email": "ana@example.com", "password": "a wrong one 4711"});
    looked_at(&Person::nobody(&app), &wrong, 12).await;
    for company in [app.company.id, other.id] {
        browser(&app, &both).post("/session", of(company)).await.data(200);
    }
    let any = json!({"email": "ana@example.com", "password": PASSWORD});
    let reply = browser(&app, &both).post("/session", any.clone()).await;
    assert_eq!(reply.data(200)["state"], "choose");
    // Where it is known for one of them, that one is let in.
    let reply = browser(&app, &first).post("/session", any).await;
    assert_eq!(reply.data(200)["company"]["id"], json!(app.company.id));
    app.stop().await;
}

#[actix_web::test]
async fn a_cookie_that_names_a_company_costs_it_nothing() {
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
    // Every look-up hangs.
    let mut held = app.db.begin().await.expect("a transaction");
    sqlx::query("lock table person_sessions in access exclusive mode").execute(&mut *held).await.expect("a lock");
    let strangers: Vec<Person> = (0..300).map(forged).collect();
    let flood = futures_util::future::join_all(
        strangers
            .iter()
            .enumerate()
            .map(|(number, stranger)| stranger.get(if number % 3 == 0 { "/session" } else { "/contacts" })),
    );
    let neighbour = async {
        // The company is served as if there were none of them.
        for _ in 0..30 {
            app.api.get("/tags").await.data(200);
        }
        let waiting = "select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query like '%person_sessions%'";
        let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&app.db).await.expect("a count");
        held.rollback().await.expect("an end");
        waiting
    };
    let (replies, waiting) = futures_util::future::join(flood, neighbour).await;
    assert!(waiting > 0, "some are looked up, at nobody's expense");
    assert!(replies.iter().all(|reply| [401, 503].contains(&reply.status.as_u16())), "{:?}", replies[0]);
    // What an address may have looked up in a minute is used up: no other is, whatever the tables would say.
    sqlx::query("alter table person_sessions rename to hidden").execute(&app.db).await.expect("a change");
    for number in 300..360 {
        forged(number).get("/contacts").await.error(401, "ERR_API_UNAUTHORIZED");
        forged(number).get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    }
    assert!(ana.get("/contacts").await.status.is_server_error(), "a session of ours is looked up");
    sqlx::query("alter table hidden rename to person_sessions").execute(&app.db).await.expect("a change");
    // And nobody is kept out who has signed in, nor who does.
    ana.get("/contacts").await.data(200);
    browser(&app, &own).post("/session", json!({"email": "ana@example.com", "password": PASSWORD})).await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_of_a_release_before_is_taken_and_one_that_has_ended_is_looked_up_once() {
    let app = OwnApp::start().await;
    clock::stop();
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let own = ana.cookie.clone().expect("a cookie");
    let before = browser(&app, own.split('~').next().expect("a text"));
    before.get("/account").await.data(200);
    assert_eq!(ana.delete("/session").await.status, 204);
    for person in [&ana, &before] {
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
async fn who_knows_the_password_alone_ends_no_session_of_whom_it_is() {
    let app = OwnApp::start().await;
    let mut ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let begun = ana.post("/account/second-factor", json!({"password": PASSWORD})).await;
    let secret = begun.data(200)["secret"].as_str().expect("a secret");
    let secret = hotline_persistence::totp::from_base32(secret).expect("a secret");
    let code = hotline_persistence::totp::code(&secret, clock::now()).expect("a code");
    let confirmed = ana.post("/account/second-factor/confirm", json!({"code": code})).await;
    let recovery = confirmed.data(200)["recoveryCodes"].clone();
    // Idle for hours, as over night.
    let idle = "update person_sessions set seen_at = now() - interval '11 hours'";
    sqlx::query(idle).execute(&app.db).await.expect("a change");
    let mut half = Person::nobody(&app);
    for _ in 0..30 {
        // A try comes back each six seconds.
        clock::advance(std::time::Duration::from_secs(6));
        assert_eq!(half.sign_in("ana@example.com", json!({})).await.data(200)["state"], "secondFactor");
    }
    ana.get("/account").await.data(200);
    // Nor does it use up her requests.
    let mut refused = 0;
    for _ in 0..700 {
        refused += usize::from(half.get("/account").await.status == 429);
    }
    assert!(refused >= 600, "{refused}");
    ana.get("/account").await.data(200);
    clock::advance(std::time::Duration::from_secs(60));
    // Of open ones there are twenty at most, also when a half is opened.
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
    half.post("/session/second-factor", json!({"recoveryCode": recovery[0]})).await.data(200);
    let open = "select count(*) from person_sessions where state = 'open'";
    assert_eq!(sqlx::query_scalar::<_, i64>(open).fetch_one(&app.db).await.expect("a count"), 20);
    // Halves go with their ten minutes.
    let old = "update person_sessions set created_at = now() - interval '11 minutes' where state <> 'open'";
    sqlx::query(old).execute(&app.db).await.expect("a change");
    clock::advance(std::time::Duration::from_secs(60));
    Person::nobody(&app).sign_in("ana@example.com", json!({})).await.data(200);
    let halves = "select count(*) from person_sessions where state <> 'open'";
    assert_eq!(sqlx::query_scalar::<_, i64>(halves).fetch_one(&app.db).await.expect("a count"), 1);
    ana.cookie = None;
    app.stop().await;
}
