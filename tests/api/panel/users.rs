//! Changes to users' passwords, emails, activity and profiles: which end sessions and links, and which are refused.

use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::people::links::{self, LinkKind};
use serde_json::json;

use crate::steps::id;
use crate::support::{OwnApp, PASSWORD, Person, Reply, TestApp, until_blocked};

/// A profile of the test's company by its name.
async fn profile(app: &TestApp, name: &str) -> i64 {
    let profiles = app.api.all("/profiles").await;
    id(profiles.iter().find(|profile| profile["name"] == name).expect("a profile"))
}

/// A link with which a person chooses a password, valid when it is created.
struct PersonLink<'a> {
    app: &'a TestApp,
    token: String,
}

impl<'a> PersonLink<'a> {
    async fn create(app: &'a TestApp, person: PersonId) -> Self {
        let (token, _) = links::make(&app.db, person, LinkKind::Invitation).await.expect("a link");
        let link = Self { app, token };
        assert!(link.is_valid().await);
        link
    }

    async fn is_valid(&self) -> bool {
        links::find(&self.app.db, &self.token).await.expect("an answer").is_some()
    }
}

#[actix_web::test]
async fn a_change_of_password_or_email_or_a_deactivation_ends_a_users_sessions_and_voids_their_link() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let (ana, path) = (app.company.ana, format!("/users/{}", app.company.ana));
    let person = PersonId::User(app.company.id, ana);
    let ben = Person::user(&app, app.company.ben, "ben@example.com").await;
    let bens_link = PersonLink::create(&app, PersonId::User(app.company.id, app.company.ben)).await;
    for (change, back) in [
        (json!({"password": "another battery"}), json!({"password": PASSWORD})),
        (json!({"email": "anna@example.com"}), json!({"email": "ana@example.com"})),
        (json!({"active": false}), json!({"active": true})),
        (json!({"password": null}), json!({"password": PASSWORD})),
    ] {
        for by_token in [true, false] {
            let signed_in = Person::user(&app, ana, "ana@example.com").await;
            let link = PersonLink::create(&app, person).await;
            let changed = if by_token {
                app.api.put(&path, change.clone()).await
            } else {
                admin.put(&path, change.clone()).await
            };
            changed.data(200);
            signed_in.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
            app.api.put(&path, back.clone()).await.data(200);
            signed_in.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
            assert!(!link.is_valid().await, "{change}");
        }
    }
    // A change that does not affect signing in ends nothing, and other people's sessions and links are as they were.
    let signed_in = Person::user(&app, ana, "ana@example.com").await;
    let link = PersonLink::create(&app, person).await;
    let same = json!({"name": "Anna", "email": "ANA@example.com", "active": true, "queueIds": [app.company.sales]});
    admin.put(&path, same).await.data(200);
    signed_in.get("/session").await.data(200);
    ben.get("/session").await.data(200);
    assert!(link.is_valid().await && bens_link.is_valid().await);
    app.stop().await;
}

#[actix_web::test]
async fn a_link_is_void_once_its_person_has_chosen_a_password_in_their_account() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let link = PersonLink::create(&app, PersonId::User(app.company.id, app.company.ana)).await;
    let change = json!({"currentPassword": PASSWORD, "password": "another battery"});
    assert_eq!(ana.put("/account/password", change.clone()).await.status, 204);
    assert!(!link.is_valid().await);
    let (root, admin) = Person::admin(&app, "root@example.com").await;
    let link = PersonLink::create(&app, PersonId::Admin(admin)).await;
    assert_eq!(root.put("/account/password", change).await.status, 204);
    assert!(!link.is_valid().await);
    app.stop().await;
}

#[actix_web::test]
async fn a_person_changes_their_own_password_email_and_activity_only_in_their_account() {
    let app = OwnApp::start().await;
    let administrator = Person::give_profile(&app, app.company.ana, "Administrator").await;
    let (own, bens) = (format!("/users/{}", app.company.ana), format!("/users/{}", app.company.ben));
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    for (body, fields) in [
        (json!({"password": "another battery"}), &["password"][..]),
        (json!({"password": null}), &["password"]),
        (json!({"email": "anna@example.com", "active": false, "name": "Anna"}), &["email", "active"]),
    ] {
        assert_eq!(ana.put(&own, body).await.invalid_fields(), fields);
    }
    for end in ["invitation", "password-reset", "second-factor/remove"] {
        ana.post(&format!("{own}/{end}"), json!({})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    }
    // A person's own form may repeat the current values.
    let form = json!({"name": "Anna", "email": "ana@example.com", "active": true, "profileId": administrator});
    assert_eq!(ana.put(&own, form).await.data(200)["name"], "Anna");
    ana.get("/session").await.data(200);
    // An administrator may change those of others.
    ana.put(&bens, json!({"password": PASSWORD, "email": "benny@example.com", "active": false})).await.data(200);
    // An administrator of the installation is not a user of the company, whatever their id.
    let (root, _) = Person::admin(&app, "root@example.com").await;
    root.in_company(app.company.id).put(&own, json!({"password": PASSWORD})).await.data(200);
    ana.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

#[actix_web::test]
async fn no_user_of_a_company_removes_its_last_administrator() {
    let app = OwnApp::start().await;
    let (administrator, agent) = (profile(&app, "Administrator").await, profile(&app, "Agent").await);
    let (own, bens) = (format!("/users/{}", app.company.ana), format!("/users/{}", app.company.ben));
    Person::give_profile(&app, app.company.ana, "Administrator").await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let assert_refused = |reply: Reply| {
        let details = json!({"state": "last", "reason": "last_administrator"});
        assert_eq!(reply.error(409, "ERR_API_CONFLICT"), &details);
    };
    let spare = json!({"name": "Spare", "permissions": {}, "administers": true});
    ana.post("/profiles", spare).await.data(201);
    assert_refused(ana.put(&own, json!({"profileId": agent})).await);
    assert_refused(ana.put(&own, json!({"profileId": null})).await);
    assert_refused(ana.delete(&own).await);
    // Another profile administers, but no user has it.
    assert_refused(ana.put(&format!("/profiles/{administrator}"), json!({"administers": false})).await);
    // A deactivated user administers nothing.
    ana.put(&bens, json!({"profileId": administrator, "active": false})).await.data(200);
    assert_refused(ana.delete(&own).await);
    assert_eq!(ana.get("/session").await.data(200)["administers"], true);
    // One of two administrators may lose the right, and other changes are allowed.
    ana.put(&bens, json!({"active": true})).await.data(200);
    ana.put(&bens, json!({"active": false})).await.data(200);
    ana.put(&bens, json!({"active": true})).await.data(200);
    ana.put(&own, json!({"profileId": agent})).await.data(200);
    assert_eq!(ana.get("/session").await.data(200)["administers"], false);
    // An administrator of the installation can give the right back, and so may take it.
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let root = root.in_company(app.company.id);
    root.put(&bens, json!({"profileId": agent})).await.data(200);
    root.put(&bens, json!({"profileId": administrator})).await.data(200);
    assert_eq!(root.delete(&bens).await.status, 204);
    app.stop().await;
}

#[actix_web::test]
async fn of_two_administrators_who_remove_each_other_at_once_one_stays() {
    let app = OwnApp::start().await;
    let agent = profile(&app, "Agent").await;
    let (anas, bens) = (format!("/users/{}", app.company.ana), format!("/users/{}", app.company.ben));
    for user in [app.company.ana, app.company.ben] {
        Person::give_profile(&app, user, "Administrator").await;
    }
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let ben = Person::user(&app, app.company.ben, "ben@example.com").await;
    // Both requests are admitted before either reaches the tables.
    let mut blocker = app.db.begin().await.expect("a transaction");
    sqlx::query("select from profiles for update").execute(&mut *blocker).await.expect("a lock");
    let release = async {
        until_blocked(2, &mut blocker, &app.db).await;
        blocker.rollback().await.expect("a rollback");
    };
    let demote = json!({"profileId": agent});
    let (one, other, ()) =
        futures_util::future::join3(ana.put(&bens, demote.clone()), ben.delete(&anas), release).await;
    let statuses = [one.status.as_u16(), other.status.as_u16()];
    assert!(matches!(statuses, [200, 409] | [409, 204]), "{statuses:?}: {} {}", one.body, other.body);
    let administrators: i64 = sqlx::query_scalar(
        "select count(*) from users u join profiles p on p.id = u.profile_id where u.company_id = $1 and p.administers",
    )
    .bind(app.company.id)
    .fetch_one(&app.db)
    .await
    .expect("a count");
    assert_eq!(administrators, 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_user_who_becomes_an_administrator_during_a_colleagues_change_is_not_changed() {
    let app = OwnApp::start().await;
    let (ana, ben) = (app.company.ana, app.company.ben);
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let root = root.in_company(app.company.id);
    let leader_profile = json!({"name": "Leader", "permissions": {"users": ["GET", "PUT", "DELETE"]}});
    let leader_profile = id(root.post("/profiles", leader_profile).await.data(201));
    let small_profile = id(root.post("/profiles", json!({"name": "Small", "permissions": {}})).await.data(201));
    root.put(&format!("/users/{ana}"), json!({"profileId": leader_profile})).await.data(200);
    let leader = Person::user(&app, ana, "ana@example.com").await;
    let path = format!("/users/{ben}");
    let before = root.put(&path, json!({"profileId": small_profile})).await.data(200).clone();
    for is_deletion in [false, true] {
        // The request is admitted before the user has more rights than its caller.
        let mut blocker = app.db.begin().await.expect("a transaction");
        let promote = "update users set profile_id =
                (select id from profiles where company_id = $1 and name = 'Administrator')
            where company_id = $1 and id = $2";
        let promote = sqlx::query(promote).bind(app.company.id).bind(ben);
        promote.execute(&mut *blocker).await.expect("a change");
        let change = async {
            if is_deletion { leader.delete(&path).await } else { leader.put(&path, json!({"active": false})).await }
        };
        let finish = async {
            until_blocked(1, &mut blocker, &app.db).await;
            blocker.commit().await.expect("a commit");
        };
        let (reply, ()) = futures_util::future::join(change, finish).await;
        reply.error(403, "ERR_API_FORBIDDEN_SCOPE");
        let shown = root.get(&path).await.data(200).clone();
        assert_eq!((&shown["active"], &shown["profile"]["name"]), (&json!(true), &json!("Administrator")));
        assert_eq!(root.put(&path, json!({"profileId": small_profile})).await.data(200)["profile"], before["profile"]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_sign_in_during_a_change_of_password_email_or_activity_is_refused() {
    let app = OwnApp::start().await;
    app.api.put(&format!("/users/{}", app.company.ana), json!({"password": PASSWORD})).await.data(200);
    for change in ["password_hash = null", "email = 'anna@example.com'", "active = false"] {
        let query = sqlx::query_scalar::<_, Option<String>>("select password_hash from users where id = $1");
        let hash = query.bind(app.company.ana).fetch_one(&app.db).await.expect("a hash");
        let mut blocker = app.db.begin().await.expect("a transaction");
        let statement = format!("update users set {change} where id = $1");
        let statement = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(app.company.ana);
        statement.execute(&mut *blocker).await.expect("a change");
        let finish = async {
            until_blocked(1, &mut blocker, &app.db).await;
            blocker.commit().await.expect("a commit");
        };
        let mut ana = Person::nobody(&app);
        let (reply, ()) = futures_util::future::join(ana.sign_in("ana@example.com", json!({})), finish).await;
        reply.error(401, "ERR_API_SIGN_IN");
        let back = "update users set password_hash = $2, email = 'ana@example.com', active = true where id = $1";
        let back = sqlx::query(back).bind(app.company.ana).bind(hash);
        back.execute(&app.db).await.expect("a change");
        assert_eq!(Person::nobody(&app).sign_in("ana@example.com", json!({})).await.data(200)["state"], "open");
    }
    app.stop().await;
}
