//! A person's own account.

use chrono::{DateTime, Utc};
use hotline_persistence::tables::people::{self, PersonId};
use reqwest::Method;
use serde_json::json;

use crate::steps::assert_timestamp;
use crate::support::{OwnApp, PASSWORD, Person, eventually};

#[actix_web::test]
async fn an_account_is_shown_and_changed_by_its_owner() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let shown = ana.get("/account").await;
    let account = shown.data(200);
    assert_timestamp(&account["createdAt"]);
    assert_eq!(
        account,
        &json!({"kind": "user", "id": app.company.ana, "name": "Ana", "email": "ana@example.com", "language": null,
            "secondFactor": false, "recoveryCodesLeft": null, "createdAt": account["createdAt"]})
    );
    let changed = ana.put("/account", json!({"name": " Ana Lima ", "language": "pt", "email": "x@example.com"})).await;
    let (name, language, email) =
        (&changed.data(200)["name"], &changed.data(200)["language"], &changed.data(200)["email"]);
    assert_eq!((name, language, email), (&json!("Ana Lima"), &json!("pt"), &json!("ana@example.com")));
    // The company's users show the name at once.
    assert_eq!(app.api.get(&format!("/users/{}", app.company.ana)).await.data(200)["name"], "Ana Lima");
    assert_eq!(ana.put("/account", json!({"language": null})).await.data(200)["language"], json!(null));
    assert_eq!(
        ana.put("/account", json!({"name": null, "language": "fr"})).await.invalid_fields(),
        ["name", "language"]
    );

    let (admin, _) = Person::admin(&app, "root@example.com").await;
    assert_eq!(admin.put("/account", json!({"name": "Root"})).await.data(200)["name"], "Root");
    assert_eq!(admin.get("/session").await.data(200)["person"]["name"], "Root");
    app.stop().await;
}

#[actix_web::test]
async fn an_update_of_an_account_with_its_current_values_moves_no_updated_at() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    for (person, statement) in [
        (ana, "select updated_at from users where email = 'ana@example.com'"),
        (admin, "select updated_at from admins where email = 'root@example.com'"),
    ] {
        let updated_at =
            async || -> DateTime<Utc> { sqlx::query_scalar(statement).fetch_one(&app.db).await.expect("a person") };
        person.put("/account", json!({"name": "Some", "language": "pt"})).await.data(200);
        let mut before = updated_at().await;
        for body in [json!({}), json!({"name": " Some ", "language": "pt"}), json!({"language": "pt"})] {
            person.put("/account", body.clone()).await.data(200);
            assert_eq!(updated_at().await, before, "{body}");
        }
        for change in [json!({"language": null}), json!({"name": "Other"}), json!({"name": "Third", "language": "es"})]
        {
            person.put("/account", change.clone()).await.data(200);
            let after = updated_at().await;
            assert!(after > before, "{change}: {after}");
            before = after;
        }
        person.put("/account", json!({"language": null})).await.data(200);
        let without_language = updated_at().await;
        person.put("/account", json!({"language": null})).await.data(200);
        assert_eq!(updated_at().await, without_language);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_password_change_ends_the_other_sessions() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let mut phone = Person::nobody(&app);
    phone.sign_in("ana@example.com", json!({})).await.data(200);
    let change = |current: &str, password: &str| json!({"currentPassword": current, "password": password});
    for (body, fields) in [
        (json!({}), &["currentPassword", "password"][..]),
        (change("not hers at all", "another battery"), &["currentPassword"]),
        (change(PASSWORD, "elevenchars"), &["password"]),
        (change(PASSWORD, "Qwertyuiop[]"), &["password"]),
    ] {
        assert_eq!(ana.put("/account/password", body).await.invalid_fields(), fields);
    }
    phone.get("/session").await.data(200);
    assert_eq!(ana.put("/account/password", change(PASSWORD, "another battery")).await.status, 204);
    ana.get("/session").await.data(200);
    phone.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    Person::nobody(&app).sign_in("ana@example.com", json!({})).await.error(401, "ERR_API_SIGN_IN");
    let again = Person::nobody(&app).sign_in("ana@example.com", json!({"password": "another battery"})).await;
    again.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_password_change_under_way_does_not_undo_an_administrators_reset() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let person = PersonId::User(app.company.id, app.company.ana);
    // The change compares the current password before the reset is committed, and is saved after it.
    let mut reset = app.db.begin().await.expect("a transaction");
    people::set_password(&mut reset, person, "of the reset").await.expect("a password");
    people::shut_out(&mut reset, person).await.expect("ended sessions");
    let change = ana.put("/account/password", json!({"currentPassword": PASSWORD, "password": "another battery"}));
    let meanwhile = async {
        let query = "select exists (select from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock' and query like '%users%')";
        let is_waiting = async || -> bool { sqlx::query_scalar(query).fetch_one(&app.db).await.expect("an answer") };
        eventually("the change waits", is_waiting).await;
        reset.commit().await.expect("a reset");
    };
    let (changed, ()) = futures_util::future::join(change, meanwhile).await;
    changed.error(401, "ERR_API_UNAUTHORIZED");
    let stored = people::find(&app.db, person).await.expect("an answer").expect("Ana");
    assert_eq!(stored.password_hash.as_deref(), Some("of the reset"));
    app.stop().await;
}

#[actix_web::test]
async fn sessions_are_listed_and_ended_only_by_their_owner() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let ben = Person::user(&app, app.company.ben, "ben@example.com").await;
    let mut phone = Person::nobody(&app);
    let body = json!({"email": "ana@example.com", "password": PASSWORD});
    let request = phone.request(Method::POST, "/session").header("user-agent", "Phone/1").json(&body);
    let reply = crate::support::Reply::of(request).await;
    phone.keep_cookie(&reply);

    let listed = ana.get("/account/sessions").await;
    let rows = listed.data(200).as_array().expect("sessions");
    assert_eq!((rows.len(), &listed.body["meta"]["hasMore"]), (2, &json!(false)));
    let of_phone = rows.iter().find(|row| row["userAgent"] == "Phone/1").expect("the phone");
    let own = rows.iter().find(|row| row["current"] == true).expect("this one");
    for time in ["createdAt", "lastSeenAt", "expiresAt"] {
        assert_timestamp(&of_phone[time]);
    }
    assert_eq!((&of_phone["current"], &of_phone["address"]), (&json!(false), &json!("127.0.0.1")));
    let path = format!("/account/sessions/{}", of_phone["id"]);
    ben.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    phone.get("/session").await.data(200);
    assert_eq!(ana.delete(&path).await.status, 204);
    phone.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    ana.delete(&path).await.error(404, "ERR_API_NOT_FOUND");

    phone.sign_in("ana@example.com", json!({})).await.data(200);
    assert_eq!(ana.post("/account/sessions/end-others", json!({})).await.status, 204);
    phone.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(ana.get("/account/sessions").await.data(200)[0]["id"], own["id"]);
    ben.get("/session").await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_cursor_of_a_persons_sessions_is_invalid_for_other_people() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let ben = Person::user(&app, app.company.ben, "ben@example.com").await;
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let mut second_sessions = Vec::new();
    for email in ["ana@example.com", "ben@example.com", "root@example.com"] {
        let mut session = Person::nobody(&app);
        session.sign_in(email, json!({})).await.data(200);
        second_sessions.push(session);
    }
    // A use is recorded if the last one is older than a minute; that would change the order between two pages.
    let just_used = "update person_sessions set seen_at = seen_at + interval '1 hour'";
    sqlx::query(just_used).execute(&app.db).await.expect("a change");
    let people = [&ana, &ben, &root];
    for (index, person) in people.iter().enumerate() {
        let first = person.get("/account/sessions?perPage=1&cursor=").await;
        let shown = first.data(200)[0]["id"].clone();
        let cursor = first.body["meta"]["nextCursor"].as_str().expect("a cursor").to_owned();
        let path = format!("/account/sessions?perPage=1&cursor={cursor}");
        for other in people.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other) {
            assert_eq!(other.get(&path).await.invalid_fields(), ["cursor"]);
        }
        // The cursor is valid in another session of the same person.
        let next = second_sessions[index].get(&path).await;
        assert_eq!((next.data(200).as_array().map(Vec::len), &next.body["meta"]["hasMore"]), (Some(1), &json!(false)));
        assert_ne!(next.data(200)[0]["id"], shown);
    }
    app.stop().await;
}
