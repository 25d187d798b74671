//! Tokens in the panel: their creation, permissions, addresses, expiry, rotation and revocation; and the limits of a
//! company's tokens, channels and queues.

use chrono::{TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::steps::{assert_timestamp, id};
use crate::support::{OwnApp, Person, Reply, eventually, until_blocked};

#[actix_web::test]
async fn a_token_is_created_restricted_rotated_and_revoked() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    // Permissions are by module and method; the expiry and the addresses may be left out.
    let body = json!({"name": " Shop ", "permissions": {"contacts": ["GET", "POST"], "crm": []}});
    let made = admin.post("/tokens", body).await;
    let (token, key) = (made.data(201)["token"].clone(), made.data(201)["key"].as_str().expect("a key").to_owned());
    // The form of a key and its visible prefix, and what is shown of the token.
    assert!(key.starts_with("sk_live_") && key.len() == "sk_live_".len() + 32, "{key}");
    assert!(key["sk_live_".len()..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_timestamp(&token["createdAt"]);
    assert_eq!(
        token,
        json!({"id": token["id"], "name": "Shop", "prefix": &key[..16], "status": "active",
            "permissions": {"contacts": ["GET", "POST"]}, "allowedIps": [], "expiresAt": null, "revokedAt": null,
            "lastUsedAt": null, "createdAt": token["createdAt"], "updatedAt": token["createdAt"]})
    );
    let path = format!("/tokens/{}", token["id"]);
    // The key is shown once: a retry with the same idempotency key gets `null` in its place.
    let create = || {
        admin
            .request(Method::POST, "/tokens")
            .header("idempotency-key", "t-1")
            .json(&json!({"name": "x", "permissions": {"tags": ["GET"]}}))
    };
    let (first, second) = (Reply::of(create()).await, Reply::of(create()).await);
    assert_ne!(first.data(201)["key"], second.data(201)["key"]);
    for reply in [admin.get(&path).await, admin.get("/tokens").await] {
        assert!(!reply.body.to_string().contains(&key[16..]), "{}", reply.body);
    }
    // The prefix is not secret: eight characters of the key, and no more.
    let stored: i64 = sqlx::query_scalar(
        "select (select count(*) from tokens where strpos(tokens::text, $1) > 0)
             + (select count(*) from idempotency_keys where body ~ 'sk_live_[A-Za-z0-9]{9}')",
    )
    .bind(&key[16..])
    .fetch_one(&app.db)
    .await
    .expect("a count");
    assert_eq!(stored, 0);
    // A new token works at once, in its own name, within its permissions.
    let api = app.api.with_key(&key);
    api.get("/contacts").await.data(200);
    api.delete("/contacts/1").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    api.get("/tickets").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    // No token can read tokens, anywhere.
    for path in ["/panel/api/v1/tokens", "/api/v1/tokens"] {
        let reply = Reply::of(app.api.anonymous(Method::GET, path).bearer_auth(&app.company.key)).await;
        assert!(reply.status == 401 || reply.status == 404, "{path}: {}", reply.status);
    }
    // The last use.
    eventually("the use is recorded", || async { admin.get(&path).await.data(200)["lastUsedAt"].is_string() }).await;

    // Addresses: IPv4 and its ranges, fifty at most.
    let too_many: Vec<String> = (0..51).map(|last| format!("10.0.0.{last}")).collect();
    for (ips, field) in [
        (json!(["::1"]), "allowedIps[0]"),
        (json!(["10.0.0.1", "10.0.0.0/33"]), "allowedIps[1]"),
        (json!(too_many), "allowedIps"),
        (json!("10.0.0.1"), "allowedIps"),
    ] {
        assert_eq!(admin.put(&path, json!({"allowedIps": ips})).await.invalid_fields(), [field]);
    }
    let restricted = admin.put(&path, json!({"allowedIps": ["10.1.2.3/8", "192.0.2.7"]})).await;
    assert_eq!(restricted.data(200)["allowedIps"], json!(["10.0.0.0/8", "192.0.2.7"]));
    // The response is the same whatever is wrong with a token.
    let refused = api.get("/contacts").await;
    let forged = app.api.with_key(&format!("sk_live_{}", "x".repeat(32))).get("/contacts").await;
    assert_eq!((refused.error(401, "ERR_API_UNAUTHORIZED"), &refused.body), (&Value::Null, &forged.body));
    let forwarded = Reply::of(api.request(Method::GET, "/contacts").header("x-forwarded-for", "10.0.0.1")).await;
    assert_eq!(forwarded.body, forged.body);
    admin.put(&path, json!({"allowedIps": ["127.0.0.1"]})).await.data(200);
    api.get("/contacts").await.data(200);
    admin.put(&path, json!({"allowedIps": []})).await.data(200);

    // It stops working as soon as it expires.
    let past = json!({"expiresAt": Utc::now() - TimeDelta::seconds(1)});
    assert_eq!(admin.put(&path, past).await.invalid_fields(), ["expiresAt"]);
    let soon = json!({"expiresAt": Utc::now() + TimeDelta::hours(1)});
    assert_timestamp(&admin.put(&path, soon).await.data(200)["expiresAt"]);
    sqlx::query("update tokens set expires_at = now() where name = 'Shop'").execute(&app.db).await.expect("a change");
    eventually("it has expired", || async { api.get("/contacts").await.status == 401 }).await;
    assert_eq!(admin.get(&path).await.data(200)["status"], "expired");
    assert_eq!(admin.get("/tokens?status=expired").await.data(200).as_array().map(Vec::len), Some(1));
    assert_eq!(admin.put(&path, json!({"expiresAt": null})).await.data(200)["status"], "active");
    api.get("/contacts").await.data(200);

    // Rotation: another key, the same token; the previous key stops working at once.
    let rotated = admin.post(&format!("{path}/rotate"), json!({})).await;
    let new = rotated.data(200)["key"].as_str().expect("a key").to_owned();
    assert_eq!(rotated.data(200)["token"]["permissions"], json!({"contacts": ["GET", "POST"]}));
    assert_eq!(rotated.data(200)["token"]["id"], token["id"]);
    assert_eq!(api.get("/contacts").await.body, forged.body);
    let api = app.api.with_key(&new);
    api.get("/contacts").await.data(200);

    // A revocation takes effect at once, and is permanent.
    assert_eq!(admin.post(&format!("{path}/revoke"), json!({})).await.data(200)["status"], "revoked");
    assert_eq!(api.get("/contacts").await.body, forged.body);
    let again = admin.post(&format!("{path}/revoke"), json!({})).await;
    assert_eq!(again.data(200)["revokedAt"], admin.get(&path).await.data(200)["revokedAt"]);
    for reply in [admin.post(&format!("{path}/rotate"), json!({})).await, admin.put(&path, json!({"name": "y"})).await]
    {
        assert_eq!(reply.error(409, "ERR_API_CONFLICT"), &json!({"state": "revoked", "reason": "revoked"}));
    }
    assert_eq!(admin.get("/tokens?status=revoked&search=SHOP").await.data(200)[0]["id"], token["id"]);
    assert_eq!(admin.get(&format!("/tokens?search={}", &new[8..16])).await.data(200)[0]["id"], token["id"]);

    // Invalid bodies are refused.
    for (body, fields) in [
        (json!({}), &["name", "permissions"][..]),
        (json!({"name": " ", "permissions": {}}), &["name", "permissions"]),
        (json!({"name": "x", "permissions": {"nothing": ["GET"]}}), &["permissions"]),
        (json!({"name": "x", "permissions": {"tags": ["PATCH"]}, "expiresAt": "x"}), &["permissions", "expiresAt"]),
    ] {
        assert_eq!(admin.post("/tokens", body).await.invalid_fields(), fields);
    }
    app.stop().await;
}

#[actix_web::test]
async fn only_administrators_of_a_company_manage_its_tokens() {
    let app = OwnApp::start().await;
    let (other, _) = app.another_company().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin_in_company = admin.in_company(app.company.id);
    let made = admin_in_company.post("/tokens", json!({"name": "Shop", "permissions": {"tags": ["GET"]}})).await;
    let path = format!("/tokens/{}", made.data(201)["token"]["id"]);
    let admin_in_other = admin.in_company(other.id);
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::PUT, path.clone()),
        (Method::POST, format!("{path}/rotate")),
        (Method::POST, format!("{path}/revoke")),
    ] {
        Reply::of(admin_in_other.request(method, &path).json(&json!({}))).await.error(404, "ERR_API_NOT_FOUND");
    }
    assert_eq!(admin_in_company.get(&path).await.data(200)["status"], "active");
    assert_eq!(admin_in_other.get("/tokens").await.data(200).as_array().map(Vec::len), Some(1));
    // A user whose profile does not administer is refused.
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    ana.get("/tokens").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    let fill = "insert into tokens (company_id, name, prefix, hash, permissions)
         select $1, 'x', 'sk_live_', sha256(n::text::bytea), '{}' from generate_series(1, 1000) n";
    sqlx::query(fill).bind(other.id).execute(&app.db).await.expect("tokens");
    let refused = admin_in_other.post("/tokens", json!({"name": "x", "permissions": {"tags": ["GET"]}})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "limit");
    app.stop().await;
}

#[actix_web::test]
async fn a_token_that_is_revoked_during_a_rotation_gets_no_new_key() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let made = admin.post("/tokens", json!({"name": "Shop", "permissions": {"tags": ["GET"]}})).await;
    let token = id(&made.data(201)["token"]);
    // The rotation reads the token before the revocation is committed, and changes it afterwards.
    let mut revocation = app.db.begin().await.expect("a transaction");
    let revoke = sqlx::query("update tokens set revoked_at = now() where id = $1").bind(token);
    revoke.execute(&mut *revocation).await.expect("a change");
    let path = format!("/tokens/{token}/rotate");
    let rotate = admin.post(&path, json!({}));
    let meanwhile = async {
        until_blocked(1, &mut revocation, &app.db).await;
        revocation.commit().await.expect("it is revoked");
    };
    let (rotated, ()) = futures_util::future::join(rotate, meanwhile).await;
    assert_eq!(rotated.error(409, "ERR_API_CONFLICT"), &json!({"state": "revoked", "reason": "revoked"}));
    let prefix = admin.get(&format!("/tokens/{token}")).await.data(200)["prefix"].clone();
    assert_eq!(prefix, made.data(201)["token"]["prefix"]);
    app.stop().await;
}

#[actix_web::test]
async fn two_creations_at_once_do_not_exceed_a_limit() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let token = json!({"name": "x", "permissions": {"tags": ["GET"]}});
    for (table, columns, values, path, body) in [
        (
            "tokens",
            "name, prefix, hash, permissions",
            "'x', 'sk_live_', sha256(n::text::bytea), '{}'",
            "/tokens",
            token,
        ),
        (
            "channels",
            "name, type, status, public_key",
            "'x', 'webchat', 'connected', 'ch_' || n",
            "/channels",
            json!({"type": "webchat", "name": "x"}),
        ),
        ("queues", "name", "'x' || n", "/queues", json!({"name": "x"})),
    ] {
        // Together with its existing rows, the company has one fewer than the limit.
        let fill = format!(
            "insert into {table} (company_id, {columns}) select $1, {values}
             from generate_series(1, 999 - (select count(*) from {table} where company_id = $1)) n"
        );
        sqlx::query(AssertSqlSafe(fill)).bind(app.company.id).execute(&app.db).await.expect("rows");
        // Neither creation is committed before the other one has begun.
        let mut blocker = app.db.begin().await.expect("a transaction");
        let lock = format!("lock table {table} in share row exclusive mode");
        sqlx::query(AssertSqlSafe(lock)).execute(&mut *blocker).await.expect("a lock");
        let names = ["one", "other"].map(|name| {
            let mut body = body.clone();
            body["name"] = json!(name);
            body
        });
        let [one, other] = names.map(|body| admin.post(path, body));
        let meanwhile = async {
            until_blocked(2, &mut blocker, &app.db).await;
            blocker.rollback().await.expect("a rollback");
        };
        let (one, other, ()) = futures_util::future::join3(one, other, meanwhile).await;
        let (made, refused) = if one.status == 201 { (one, other) } else { (other, one) };
        made.data(201);
        assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "limit", "{table}");
    }
    app.stop().await;
}
