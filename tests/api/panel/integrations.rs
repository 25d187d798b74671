//! What an integration may not do: change a user who administers the company, or make a user an administrator.

use serde_json::{Value, json};

use crate::steps::id;
use crate::support::{OwnApp, PASSWORD, Person, TestApp, until_blocked};

/// A user's e-mail, password hash, state and profile, or `None` if there is no such user.
async fn stored_user(app: &TestApp, user: i64) -> Option<(String, Option<String>, bool, i64)> {
    sqlx::query_as("select email, password_hash, active, profile_id from users where company_id = $1 and id = $2")
        .bind(app.company.id)
        .bind(user)
        .fetch_optional(&app.db)
        .await
        .expect("a user")
}

#[actix_web::test]
async fn a_token_cannot_change_an_administrator_or_make_a_user_one() {
    let app = OwnApp::start().await;
    let administrator = Person::give_profile(&app, app.company.ana, "Administrator").await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let boss = ana.post("/profiles", json!({"name": "Boss", "permissions": {}, "administers": true})).await;
    let (boss, agent) = (id(boss.data(201)), agent_profile(&app).await);
    let (ana_id, ben_id) = (app.company.ana.0, app.company.ben.0);
    let check_refused = async |user: i64, body: Value| {
        let before = stored_user(&app, user).await;
        let reply = app.api.put(&format!("/users/{user}"), body.clone()).await;
        reply.error(403, "ERR_API_FORBIDDEN_SCOPE");
        assert_eq!(stored_user(&app, user).await, before, "{body}");
    };
    // A user who administers, active and inactive.
    for active in [true, false] {
        let set_active = "update users set active = $2 where id = $1";
        sqlx::query(set_active).bind(ana_id).bind(active).execute(&app.db).await.expect("a change");
        for body in [
            json!({"password": "another battery"}),
            json!({"password": null}),
            json!({"email": "mine@example.com"}),
            json!({"profileId": agent}),
            json!({"profileId": null}),
            json!({"profileId": boss}),
            json!({"active": !active}),
            json!({"name": "Anna", "queueIds": [], "password": PASSWORD}),
        ] {
            check_refused(ana_id, body).await;
        }
        app.api.delete(&format!("/users/{ana_id}")).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
        // Repeating a value is not a change, and values that do not affect signing in may change.
        let same = json!({"name": "Anna", "email": "ANA@example.com", "active": active, "profileId": administrator,
            "queueIds": [app.company.support]});
        assert_eq!(app.api.put(&format!("/users/{ana_id}"), same).await.data(200)["name"], "Anna");
    }
    sqlx::query("update users set active = true where id = $1").bind(ana_id).execute(&app.db).await.expect("a change");
    // A user who does not administer gets no profile that does: alone, with a password, or as a new user.
    for profile in [administrator, boss] {
        check_refused(ben_id, json!({"profileId": profile})).await;
        check_refused(ben_id, json!({"profileId": profile, "password": "another battery"})).await;
        let new = json!({"name": "x", "email": "x@example.com", "password": PASSWORD, "profileId": profile});
        app.api.post("/users", new).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    }
    // A user without a profile gets the agent's, even when that administers.
    ana.put(&format!("/profiles/{agent}"), json!({"administers": true})).await.data(200);
    app.api.post("/users", json!({"name": "x", "email": "x@example.com"})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    check_refused(ben_id, json!({"password": "another battery"})).await;
    ana.put(&format!("/profiles/{agent}"), json!({"administers": false})).await.data(200);
    // Other users are changed as before.
    app.api
        .put(&format!("/users/{ben_id}"), json!({"password": "another battery", "email": "b@example.com"}))
        .await
        .data(200);
    app.api.put(&format!("/users/{ben_id}"), json!({"active": false, "profileId": null})).await.data(200);
    assert_eq!(app.api.delete(&format!("/users/{ben_id}")).await.status, 204);
    app.api.put("/users/987654321", json!({"password": PASSWORD})).await.error(404, "ERR_API_NOT_FOUND");
    // Every refusal is in the audit log.
    let log = ana.get("/audit-log?order=desc&perPage=100").await;
    let entries = log.data(200).as_array().expect("entries").iter();
    let by_token = entries.filter(|entry| entry["actor"]["kind"] == "integration" && entry["status"] == 403).count();
    assert_eq!(by_token, 2 * 9 + 2 * 3 + 2);
    app.stop().await;
}

#[actix_web::test]
async fn a_tokens_change_of_an_administrators_email_is_found_by_the_case_that_signing_in_ignores() {
    let app = TestApp::shared().await;
    let ana = app.company.ana;
    Person::give_profile(&app, ana, "Administrator").await;
    let set = "update users set email = 'νικος@example.com' where company_id = $1 and id = $2";
    sqlx::query(set).bind(app.company.id).bind(ana).execute(&app.db).await.expect("a change");
    // PostgreSQL's lower case of `Σ` is `σ`, also at the end of a word, so this is another e-mail.
    let path = format!("/users/{ana}");
    app.api.put(&path, json!({"email": "ΝΙΚΟΣ@example.com"})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    assert_eq!(stored_user(&app, ana.0).await.expect("a user").0, "νικος@example.com");
    app.api.put(&path, json!({"email": "νικος@EXAMPLE.com"})).await.data(200);
    app.stop().await;
}

async fn agent_profile(app: &TestApp) -> i64 {
    let profiles = app.api.all("/profiles").await;
    id(profiles.iter().find(|profile| profile["name"] == "Agent").expect("agents"))
}

#[actix_web::test]
async fn a_user_who_becomes_an_administrator_during_a_tokens_change_is_not_changed() {
    let app = OwnApp::start().await;
    let ben = app.company.ben;
    let mut promotion = app.db.begin().await.expect("a transaction");
    sqlx::query(
        "update users set profile_id = (select id from profiles where company_id = $1 and name = 'Administrator')
         where company_id = $1 and id = $2",
    )
    .bind(app.company.id)
    .bind(ben)
    .execute(&mut *promotion)
    .await
    .expect("a change");
    let finish = async {
        until_blocked(1, &mut promotion, &app.db).await;
        promotion.commit().await.expect("a commit");
    };
    let path = format!("/users/{ben}");
    let change = app.api.put(&path, json!({"password": "another battery"}));
    let (reply, ()) = futures_util::future::join(change, finish).await;
    reply.error(403, "ERR_API_FORBIDDEN_SCOPE");
    assert_eq!(stored_user(&app, ben.0).await.expect("a user").1, None);
    app.stop().await;
}

#[actix_web::test]
async fn weak_passwords_and_malformed_e_mail_addresses_are_refused() {
    let app = TestApp::shared().await;
    let new = |email: &str, password: &str| json!({"name": "Dora Lima", "email": email, "password": password});
    for weak in ["123456789012", "passwordpassword", "dora@example.com", "DoraLima2026", "aaaaaaaaaaaa", "short"] {
        let reply = app.api.post("/users", new("dora@example.com", weak)).await;
        assert_eq!(reply.invalid_fields(), ["password"], "{weak}");
    }
    for email in ["<a@b.co>", "a@b.co>", "=?utf-8?q?x?=@b.co", "a@b..co", "a b@c.co"] {
        assert_eq!(app.api.post("/users", new(email, PASSWORD)).await.invalid_fields(), ["email"], "{email}");
    }
    let made = app.api.post("/users", new("dora@example.com", PASSWORD)).await;
    let path = format!("/users/{}", id(made.data(201)));
    // The password is also checked against the values that a change leaves as they are.
    assert_eq!(app.api.put(&path, json!({"password": "dora@example.com"})).await.invalid_fields(), ["password"]);
    assert_eq!(app.api.put(&path, json!({"password": "lima-dora-77"})).await.invalid_fields(), ["password"]);
    let both = json!({"password": "marie@example.org", "email": "marie@example.org"});
    assert_eq!(app.api.put(&path, both).await.invalid_fields(), ["password"]);
    assert_eq!(app.api.put(&path, json!({"email": "<x@b.co>"})).await.invalid_fields(), ["email"]);
    app.api.put(&path, json!({"password": "another battery"})).await.data(200);
    app.stop().await;
}
