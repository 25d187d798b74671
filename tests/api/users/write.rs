//! Users are created, changed and deleted.

use futures_util::future::join_all;
use hotline_persistence::password;
use reqwest::Method;
use serde_json::{Value, json};

use crate::organization::{check_absent, opened};
use crate::plain::{check_created_once, check_refused, check_unique, created, deleted};
use crate::steps::{NOBODY, assert_timestamp, id, listed};
use crate::support::{Reply, TestApp};

const PATH: &str = "/users";

async fn password_hash(app: &TestApp, user: i64) -> Option<String> {
    sqlx::query_scalar("select password_hash from users where id = $1")
        .bind(user)
        .fetch_one(&app.db)
        .await
        .expect("a user")
}

#[actix_web::test]
async fn a_user_is_created_read_changed_and_deleted() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let support = json!({"id": company.support, "name": "Support"});
    let sales = json!({"id": company.sales, "name": "Sales"});
    let profiles = app.api.all("/profiles").await;
    let profile = |row: &Value| json!({"id": row["id"], "name": row["name"]});
    let body = json!({
        "name": " Carla ", "email": " Carla@Example.com ", "password": "correct horse battery",
        "profileId": profiles[2]["id"], "queueIds": [company.sales, company.support, company.sales], "id": 1,
    });
    let reply = app.api.post(PATH, body).await;
    let user = reply.data(201);
    assert_timestamp(&user["createdAt"]);
    assert_timestamp(&user["updatedAt"]);
    let mut expected = json!({
        "id": user["id"], "name": "Carla", "email": "Carla@Example.com", "active": true,
        "profile": profile(&profiles[2]), "queues": [support, sales],
        "createdAt": user["createdAt"], "updatedAt": user["updatedAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}), "a password is never shown");
    let path = format!("{PATH}/{}", id(user));
    assert_eq!(app.api.get(&path).await.data(200), user);
    for (body, field, value) in [
        (json!({"name": "Carla Dias"}), "name", json!("Carla Dias")),
        (json!({"email": "carla.dias@example.com"}), "email", json!("carla.dias@example.com")),
        (json!({"password": "another horse battery"}), "active", json!(true)),
        (json!({"profileId": profiles[1]["id"]}), "profile", profile(&profiles[1])),
        (json!({"profileId": null}), "profile", profile(&profiles[2])),
        (json!({"queueIds": [company.support]}), "queues", json!([support])),
        (json!({"queueIds": [company.sales, company.support]}), "queues", json!([support, sales])),
        (json!({"queueIds": []}), "queues", json!([])),
        (json!({"active": false}), "active", json!(false)),
        (json!({"unknown": 1}), "active", json!(false)),
    ] {
        let reply = app.api.put(&path, body.clone()).await;
        expected[field] = value;
        expected["updatedAt"] = reply.data(200)["updatedAt"].clone();
        assert_eq!(reply.data(200), &expected, "after {body}");
        assert_eq!(app.api.get(&path).await.data(200), &expected);
    }
    // A token cannot make a user an administrator.
    app.api.put(&path, json!({"profileId": profiles[0]["id"]})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    assert_eq!(app.api.get(&path).await.data(200), &expected);
    deleted(&app.api, &path).await;
    for reply in [app.api.get(&path).await, app.api.put(&path, json!({})).await, app.api.delete(&path).await] {
        reply.error(404, "ERR_API_NOT_FOUND");
    }
    let bare = app.api.post(PATH, json!({"name": "Dora", "email": "dora@example.com", "active": false})).await;
    let bare = bare.data(201);
    assert_eq!(
        (&bare["active"], &bare["profile"]["name"], &bare["queues"]),
        (&json!(false), &json!("Agent"), &json!([]))
    );
    app.stop().await;
}

#[actix_web::test]
async fn a_password_is_kept_as_a_hash_of_exactly_what_was_typed() {
    let app = TestApp::shared().await;
    let typed = "  tést horse battery ";
    let body = json!({"name": "Carla", "email": "carla@example.com", "password": typed});
    let carla = created(&app.api, PATH, body).await;
    let path = format!("{PATH}/{carla}");
    let hash = password_hash(&app, carla).await.expect("a hash");
    assert!(password::matches_hash(typed, &hash) && !password::matches_hash(typed.trim(), &hash), "{hash}");
    app.api.put(&path, json!({"name": "Carla Dias"})).await.data(200);
    assert_eq!(password_hash(&app, carla).await, Some(hash));
    // The longest password: 200 letters of two bytes each, without a repeated pattern, which would be refused.
    let letter =
        |index: u32| if index.is_power_of_two() { 'é' } else { char::from_u32(0xe0 + index * 7 % 23).unwrap_or('é') };
    let longest: String = (0..200).map(letter).collect();
    app.api.put(&path, json!({"password": longest})).await.data(200);
    assert!(password::matches_hash(&longest, &password_hash(&app, carla).await.expect("a hash")));
    app.api.put(&path, json!({"password": null})).await.data(200);
    assert_eq!(password_hash(&app, carla).await, None);
    let dora = created(&app.api, PATH, json!({"name": "Dora", "email": "dora@example.com"})).await;
    assert_eq!(password_hash(&app, dora).await, None);
    app.stop().await;
}

#[actix_web::test]
async fn invalid_fields_of_a_user_are_refused() {
    let app = TestApp::shared().await;
    let (other_company, other_api) = app.another_company().await;
    let all_fields = &["name", "email", "password", "profileId", "queueIds", "active"][..];
    let wrong = json!({
        "name": " ", "email": "carla", "password": "elevenchars", "profileId": "1", "queueIds": {}, "active": "yes",
    });
    let with_password = |password: Value| {
        (json!({"name": "Carla", "email": "carla@example.com", "password": password}), &["password"][..])
    };
    let many: Vec<i64> = (0..1001).collect();
    let bodies = vec![
        (json!({}), &["name", "email"][..]),
        (wrong.clone(), all_fields),
        with_password(json!("x".repeat(201))),
        with_password(json!(" ".repeat(12))),
        with_password(json!("a\u{0}bcdefghijklm")),
        with_password(json!(123_456_789_012_i64)),
        (json!({"name": "Carla", "email": "a b@example.com", "queueIds": many}), &["email", "queueIds"]),
    ];
    check_refused(&app, Method::POST, PATH, bodies).await;
    let path = format!("{PATH}/{}", app.company.ana);
    let null = json!({"name": null, "email": null, "queueIds": null, "active": null});
    let bodies = vec![(wrong, all_fields), (null, &["name", "email", "queueIds", "active"][..])];
    check_refused(&app, Method::PUT, &path, bodies).await;

    let before = app.api.all(PATH).await;
    let foreign = id(&other_api.all("/profiles").await[0]);
    let mut calls = Vec::new();
    for reference in [
        json!({"profileId": foreign}),
        json!({"profileId": NOBODY}),
        json!({"queueIds": [other_company.support]}),
        json!({"queueIds": [app.company.sales, NOBODY]}),
    ] {
        let mut body = json!({"name": "Carla", "email": "carla@example.com"});
        body.as_object_mut().expect("an object").extend(reference.as_object().expect("an object").clone());
        calls.push((Method::POST, PATH.to_owned(), Some(body.clone())));
        calls.push((Method::PUT, path.clone(), Some(body)));
    }
    check_absent(&app, calls).await;
    assert_eq!(app.api.all(PATH).await, before, "a refused request has changed a user");
    app.stop().await;
}

#[actix_web::test]
async fn an_email_is_unique_within_its_company_whatever_its_case() {
    let app = TestApp::shared().await;
    let (other_company, other_api) = app.another_company().await;
    let taken = json!({"field": "email", "id": app.company.ana});
    for email in ["ana@example.com", "ANA@Example.Com"] {
        let refused = app.api.post(PATH, json!({"name": "Ana", "email": email})).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken);
        let ben = format!("{PATH}/{}", app.company.ben);
        let refused = app.api.put(&ben, json!({"name": "Ana", "email": email})).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken);
        assert_eq!(app.api.get(&ben).await.data(200)["name"], "Ben");
    }
    // A user may change the case of their own address.
    let ana = format!("{PATH}/{}", app.company.ana);
    assert_eq!(app.api.put(&ana, json!({"email": "Ana@example.com"})).await.data(200)["email"], "Ana@example.com");
    // The same person is another user in another company.
    assert_ne!(other_company.ana, app.company.ana);
    let carla = json!({"name": "Carla", "email": "carla@example.com"});
    assert_ne!(created(&app.api, PATH, carla.clone()).await, created(&other_api, PATH, carla).await);
    check_unique(&app, PATH, &json!({"name": "Race", "email": "race@example.com"}), "email").await;
    let once = json!({"name": "Once", "email": "once@example.com", "password": "correct horse battery"});
    check_created_once(&app, PATH, &once, &json!({"name": "Once", "email": "twice@example.com"})).await;
    app.stop().await;
}

#[actix_web::test]
async fn of_many_concurrent_creations_with_one_email_only_one_succeeds() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let create = |number: usize| {
        let body = json!({
            "name": "Race", "email": if number.is_multiple_of(2) { "EVEN@example.com" } else { "even@example.com" },
            "password": "correct horse battery",
        });
        // A request whose password cannot be hashed soon is refused, and is sent again.
        async move { api.retry_while_busy(|| api.request(Method::POST, PATH).json(&body)).await }
    };
    let replies = join_all((0..50).map(create)).await;
    let count = |status: u16| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!((count(201), count(409)), (1, 49));
    app.stop().await;
}

#[actix_web::test]
async fn another_companys_user_is_not_found() {
    let app = TestApp::shared().await;
    let (other_company, other_api) = app.another_company().await;
    let foreign_profile = id(&other_api.all("/profiles").await[0]);
    let mut calls = Vec::new();
    let other_user = other_company.ana.to_string();
    for absent in [other_user, NOBODY.to_string(), "x".to_owned(), "1.5".to_owned(), "-1".to_owned()] {
        calls.push((Method::GET, format!("{PATH}/{absent}"), None));
        calls.push((Method::PUT, format!("{PATH}/{absent}"), Some(json!({"name": "Stolen"}))));
        calls.push((Method::DELETE, format!("{PATH}/{absent}"), None));
    }
    for (filter, foreign) in [("queueId", other_company.support.0), ("profileId", foreign_profile)] {
        calls.push((Method::GET, format!("{PATH}?{filter}={foreign}"), None));
        calls.push((Method::GET, format!("{PATH}?{filter}={NOBODY}"), None));
    }
    for (filter, foreign) in [("queueId", other_company.support.0), ("userId", other_company.ana.0)] {
        calls.push((Method::GET, format!("{PATH}/metrics?{filter}={foreign}"), None));
        calls.push((Method::GET, format!("{PATH}/metrics?{filter}={NOBODY}"), None));
    }
    check_absent(&app, calls).await;
    assert_eq!(listed(&other_api, PATH).await, [other_company.ana.0, other_company.ben.0]);
    app.stop().await;
}

#[actix_web::test]
async fn conversations_use_the_current_state_of_users() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let ticket = opened(&app, "5511900000001", json!({"queueId": company.sales})).await;
    let transfer = format!("/tickets/{ticket}/transfer");
    for round in 0..20 {
        let body = json!({"name": "Carla", "email": format!("carla{round}@example.com"), "queueIds": [company.sales]});
        let carla = created(&app.api, PATH, body).await;
        let path = format!("{PATH}/{carla}");
        let to_carla = json!({"userId": carla});
        let assigned = app.api.post(&transfer, to_carla.clone()).await;
        assert_eq!(assigned.data(200)["assignedTo"], json!({"id": carla, "name": "Carla"}));
        app.api.put(&path, json!({"name": "Carla Dias", "active": false})).await.data(200);
        let shown = app.api.get(&format!("/tickets/{ticket}")).await;
        assert_eq!(shown.data(200)["assignedTo"], json!({"id": carla, "name": "Carla Dias"}), "inactive");
        app.api.post(&transfer, to_carla.clone()).await.data(200);
        app.api.post(&transfer, json!({"userId": null})).await.data(200);
        assert_eq!(app.api.post(&transfer, to_carla.clone()).await.invalid_fields(), ["userId"], "inactive");
        app.api.put(&path, json!({"active": true, "queueIds": []})).await.data(200);
        assert_eq!(app.api.post(&transfer, to_carla.clone()).await.invalid_fields(), ["userId"], "not in the queue");
        app.api.put(&path, json!({"queueIds": [company.support, company.sales]})).await.data(200);
        app.api.post(&transfer, to_carla.clone()).await.data(200);
        assert_eq!(Reply::of(app.api.request(Method::DELETE, &path)).await.status, 204);
        app.api.post(&transfer, to_carla).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}
