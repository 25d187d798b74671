//! Links with which a person chooses a password.

use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::people::links::{self, LinkKind};
use serde_json::json;

use crate::steps::assert_timestamp;
use crate::support::{OwnApp, PASSWORD, Person};

#[actix_web::test]
async fn a_link_is_valid_once_and_until_it_expires() {
    let app = OwnApp::start().await;
    let db = &app.db;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let person = PersonId::User(app.company.id, app.company.ana);
    let anonymous = Person::nobody(&app);
    let (first, _) = links::make(db, person, LinkKind::Invitation).await.expect("a link");
    let (token, expires_at) = links::make(db, person, LinkKind::Reset).await.expect("a link");
    assert!((expires_at - chrono::Utc::now()).num_minutes() >= 58);
    // The earlier link is no longer valid.
    anonymous.post("/links/read", json!({"token": first})).await.error(403, "ERR_API_LINK_EXPIRED");
    let read = anonymous.post("/links/read", json!({"token": token})).await;
    let link = read.data(200);
    assert_timestamp(&link["expiresAt"]);
    assert_eq!(
        link,
        &json!({"kind": "reset", "name": "Ana", "email": "ana@example.com", "companyName": "Acme", "expiresAt": link["expiresAt"]})
    );
    for wrong in ["", "x", "1.x", "999.x", &token[..token.len() - 1]] {
        let reply = anonymous.post("/links/read", json!({"token": wrong})).await;
        assert!(reply.status == 422 || reply.status == 403, "{wrong}: {}", reply.body);
    }
    let choose = |password: &str| json!({"token": token, "password": password});
    assert_eq!(anonymous.post("/links/use", choose("password1234")).await.invalid_fields(), ["password"]);
    // Of two uses at once, one succeeds.
    let both = futures_util::future::join(
        anonymous.post("/links/use", choose("another battery")),
        anonymous.post("/links/use", choose("another battery")),
    );
    let (one, other) = both.await;
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 403]);
    ana.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    Person::nobody(&app).sign_in("ana@example.com", json!({})).await.error(401, "ERR_API_SIGN_IN");
    Person::nobody(&app).sign_in("ana@example.com", json!({"password": "another battery"})).await.data(200);

    let (expired, _) = links::make(db, person, LinkKind::Invitation).await.expect("a link");
    sqlx::query("update person_links set expires_at = now() - interval '1 second'")
        .execute(db)
        .await
        .expect("a change");
    for (path, body) in
        [("/links/read", json!({"token": expired})), ("/links/use", json!({"token": expired, "password": PASSWORD}))]
    {
        anonymous.post(path, body).await.error(403, "ERR_API_LINK_EXPIRED");
    }
    // A deactivated person's link is invalid.
    let (token, _) = links::make(db, person, LinkKind::Invitation).await.expect("a link");
    app.api.put(&format!("/users/{}", app.company.ana), json!({"active": false})).await.data(200);
    anonymous.post("/links/read", json!({"token": token})).await.error(403, "ERR_API_LINK_EXPIRED");

    let (_, admin) = Person::admin(&app, "root@example.com").await;
    let (token, _) = links::make(db, PersonId::Admin(admin), LinkKind::Reset).await.expect("a link");
    assert_eq!(anonymous.post("/links/read", json!({"token": token})).await.data(200)["companyName"], json!(null));
    assert_eq!(anonymous.post("/links/use", json!({"token": token, "password": "one more battery"})).await.status, 204);
    Person::nobody(&app).sign_in("root@example.com", json!({"password": "one more battery"})).await.data(200);
    app.stop().await;
}
