//! `hotline token`.

use super::{failure, json, wait_until_seen};
use crate::process::{Process, run, with_database};
use crate::support::Api;
use crate::support::template::prepared_folder;

#[actix_web::test]
async fn tokens_are_rotated_and_revoked_on_a_stopped_service_and_on_a_running_one() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let create = |name: &str, options: &[&str]| {
        let create = ["token", "create", name, "--company", &company];
        json(path, &[&create, options].concat())
    };
    // On a stopped service.
    let limits = ["--expires", "2099-01-01T00:00:00Z", "--permission", "channels:GET"];
    let ips = ["--allow-ip", "127.0.0.1", "--allow-ip", "127.0.0.1/32", "--allow-ip", "10.1.2.3/8"];
    let made = create("crm", &[&limits[..], &ips].concat());
    let (id, first) = (made["id"].to_string(), made["key"].as_str().expect("key").to_owned());
    let rotated = json(path, &["token", "rotate", &id]);
    let second = rotated["key"].as_str().expect("key").to_owned();
    assert_ne!(first, second);
    assert_eq!(
        (&rotated["id"], &rotated["companyId"], &rotated["name"]),
        (&made["id"], &made["companyId"], &"crm".into())
    );
    assert_eq!(rotated["prefix"].as_str(), Some(&second[..16]));

    // On a running service.
    let process = Process::serve(path);
    let api = Api::new(process.address, &second);
    api.get("/channels").await.data(200);
    api.get("/tickets").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    api.with_key(&first).get("/channels").await.error(401, "ERR_API_UNAUTHORIZED");
    let third = json(path, &["token", "rotate", &id])["key"].as_str().expect("key").to_owned();
    wait_until_seen("the old key is refused", || async { api.get("/channels").await.status == 401 }).await;
    let api = api.with_key(&third);
    api.get("/channels").await.data(200);

    let revoked = json(path, &["token", "revoke", &id]);
    assert_eq!((&revoked["id"], &revoked["status"]), (&made["id"], &"revoked".into()));
    wait_until_seen("the token is revoked", || async { api.get("/channels").await.status == 401 }).await;
    assert_eq!(
        json(path, &["token", "revoke", &id])["revokedAt"],
        revoked["revokedAt"],
        "the second revocation changed the time"
    );
    let stderr = failure(path, &["token", "rotate", &id]);
    assert!(stderr.contains("revoked") && stderr.contains(&id), "{stderr}");
    assert!(failure(path, &["token", "rotate", "999"]).contains("token"));

    create("shop", &["--all"]);
    let listed = json(path, &["token", "list", "--company", &company]);
    let [crm, shop] = listed["tokens"].as_array().expect("tokens").as_slice() else { panic!("{listed}") };
    assert_eq!(crm["allowedIps"], serde_json::json!(["127.0.0.1", "10.0.0.0/8"]), "a rotation changed the addresses");
    assert_eq!(crm["permissions"], serde_json::json!({"channels": ["GET"]}));
    assert!(crm["expiresAt"].as_str().is_some_and(|expiry| expiry.starts_with("2099-01-01T00:00:00")), "{crm}");
    assert_eq!((&crm["status"], &shop["status"]), (&"revoked".into(), &"active".into()));
    assert!(crm.as_object().is_some_and(|token| token.contains_key("lastUsedAt")), "{crm}");
    let past = "update tokens set expires_at = now() - interval '1 second' where name = 'shop'";
    with_database(path, async |db| sqlx::query(past).execute(db).await.expect("expired")).await;
    assert_eq!(json(path, &["token", "list"])["tokens"][1]["status"], "expired");
    for key in [&first, &second, &third] {
        assert!(!listed.to_string().contains(key.as_str()), "a key shows in the list");
    }
    let table = String::from_utf8(run(path, &["token", "list"]).stdout).expect("text");
    for word in ["status", "revoked", "expired", "2099-01-01", "10.0.0.0/8", "lastUsedAt"] {
        assert!(table.contains(word), "{word} is missing in\n{table}");
    }
    process.kill();

    // On a stopped service again.
    assert_eq!(json(path, &["token", "revoke", &shop["id"].to_string()])["status"], "revoked");
    assert_eq!(json(path, &["token", "list"])["tokens"][1]["status"], "revoked");
}

#[actix_web::test]
async fn a_key_is_printed_also_if_the_private_postgresql_does_not_stop() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    // The stop begins with a lock on this file, which a folder refuses.
    let guests = path.join("postgres.guests.lock");
    std::fs::remove_file(&guests).expect("the lock of the first command");
    std::fs::create_dir(&guests).expect("a folder");
    let created = run(path, &["token", "create", "crm", "--all", "--company", &company, "--json"]);
    let refused = run(path, &["token", "rotate", "999"]);
    std::fs::remove_dir(&guests).expect("removed");
    // Adopts the PostgreSQL that is still running, and stops it.
    let listed = json(path, &["token", "list"]);

    let warning = "warning: the private PostgreSQL was not stopped: could not open `";
    let stderr = String::from_utf8_lossy(&created.stderr);
    assert!(created.status.success() && stderr.contains(warning), "{stderr}");
    let printed: serde_json::Value = serde_json::from_slice(&created.stdout).expect("the key");
    let key = printed["key"].as_str().expect("key");
    assert_eq!(listed["tokens"][0]["prefix"].as_str(), Some(&key[..16]));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && stderr.contains(warning), "{stderr}");
    assert!(stderr.contains("no such token"), "the failure of the command itself is missing: {stderr}");
}

#[actix_web::test]
async fn the_tokens_and_channels_of_a_company_are_limited() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let fill = [
        "insert into tokens (company_id, name, prefix, hash, permissions)
            select $1, 'x', 'sk_live_', sha256(n::text::bytea), '{}' from generate_series(1, 999) n",
        "insert into channels (company_id, name, type, status, public_key)
            select $1, 'x', 'webchat', 'connected', 'ch_' || n from generate_series(1, 999) n",
    ];
    let id: i64 = company.parse().expect("an id");
    with_database(path, async |db| {
        for statement in fill {
            sqlx::query(statement).bind(id).execute(db).await.expect("rows");
        }
    })
    .await;
    for create in [
        &["token", "create", "crm", "--all", "--company", &company][..],
        &["channel", "create", "Site", "--type", "webchat", "--company", &company],
    ] {
        json(path, create);
        assert!(failure(path, create).contains("maximum number of"), "{create:?}");
    }
}
