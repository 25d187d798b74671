//! `hotline webhook`.

use serde_json::{Value, json};

use super::{failure, json as run_json};
use crate::process::{Process, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Conduct, Receiver, eventually};

/// Lets webhooks be delivered to this machine.
const ALLOW_LOCAL: [&str; 2] = ["--webhook-allow-network", "127.0.0.0/8"];

#[actix_web::test]
async fn a_webhook_is_made_changed_tested_replayed_and_deleted_beside_a_running_service() {
    let folder = prepared_folder();
    let path = folder.path();
    let mut process =
        Process::try_serve(path, &ALLOW_LOCAL).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let company = with_database(path, async |db| Company::create(db, "Acme").await).await;
    let api = Api::new(process.address, &company.key);
    let ready = || async { api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2) };
    eventually("the company is seen", ready).await;
    let receiver = Receiver::start().await;
    let (company_id, url) = (company.id.to_string(), receiver.url());
    let create = ["webhook", "create", &url, "--company", &company_id, "--type", "note.added", "--description", "Desk"];
    let made = run_json(path, &[&create[..], &ALLOW_LOCAL].concat());
    let id = made["id"].to_string();
    assert!(made["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{made}");
    assert_eq!(
        (&made["types"], &made["active"], &made["description"]),
        (&json!(["note.added"]), &json!(true), &json!("Desk"))
    );
    let stderr = failure(path, &["webhook", "create", &url, "--company", &company_id]);
    assert!(stderr.contains("URL is not allowed"), "{stderr}");
    for (arguments, reason) in [
        (vec!["webhook", "create", "http://example.com", "--company", &company_id], "must start with https://"),
        (
            vec!["webhook", "create", "https://example.com", "--company", &company_id, "--type", "x"],
            "unknown event type `x`",
        ),
        (vec!["webhook", "update", "999999", "--active"], "no such webhook"),
        (vec!["webhook", "update", &id], "required"),
        (vec!["webhook", "update", &id, "--description", "a\nb"], "description"),
        (vec!["webhook", "replay", &id], "required"),
        (vec!["webhook", "replay", &id, "--delivery", "999"], "has no delivery 999"),
    ] {
        let stderr = failure(path, &arguments);
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    }

    // The running service finds the webhook by itself.
    let contact =
        api.post("/contacts", json!({"name": "Maria", "number": "5511900000001"})).await.data(201)["id"].clone();
    let ticket = json!({"contactId": contact, "channelId": company.phone});
    let ticket = api.post("/tickets", ticket).await.data(201)["id"].clone();
    let note = async |text: &str| {
        api.post(&format!("/tickets/{ticket}/notes"), json!({"body": text})).await.data(201);
    };
    note("first").await;
    receiver.has(1).await;
    let listed = run_json(path, &["webhook", "list", "--company", &company_id])["webhooks"].clone();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["companyId"], listed[0].get("secret")),
        (&made["id"], &json!(company.id), None)
    );
    let deliveries = || run_json(path, &["webhook", "deliveries", &id, "--status", "delivered"])["deliveries"].clone();
    eventually("the delivery is recorded", || async { deliveries().as_array().is_some_and(|all| all.len() == 1) })
        .await;
    let delivery = deliveries()[0]["id"].to_string();
    assert_eq!(run_json(path, &["webhook", "replay", &id, "--delivery", &delivery]), json!({"deliveries": 1}));
    let received = receiver.has(2).await;
    assert_eq!(received[0].body, received[1].body);
    assert_eq!(
        run_json(path, &["webhook", "replay", &id, "--failed-since", "2026-01-01T00:00:00Z"]),
        json!({"deliveries": 0})
    );

    receiver.behave(Conduct::Answer(201, "hello".to_owned()));
    // The endpoint answers on this thread, so the command is waited for on another.
    let (folder_path, webhook_id) = (path.to_owned(), id.clone());
    let test = move || run_json(&folder_path, &["webhook", "test", &webhook_id, ALLOW_LOCAL[0], ALLOW_LOCAL[1]]);
    let tested = tokio::task::spawn_blocking(test).await.expect("the command ends");
    assert_eq!(
        (&tested["status"], &tested["body"], &tested["delivered"]),
        (&json!(201), &json!("hello"), &json!(true))
    );
    let refused = run_json(path, &["webhook", "test", &id]);
    assert_eq!((&refused["status"], &refused["delivered"]), (&Value::Null, &json!(false)));
    let rotated = run_json(path, &["webhook", "rotate-secret", &id]);
    assert_ne!(rotated["secret"], made["secret"]);
    eventually("both secrets sign", || async {
        let before = receiver.count();
        note("again").await;
        receiver.has(before + 1).await.last().is_some_and(|last| last.header("webhook-signature").contains(' '))
    })
    .await;

    let updated = run_json(path, &["webhook", "update", &id, "--active=false", "--type", "", "--description", ""]);
    assert_eq!(
        (&updated["active"], &updated["types"], &updated["description"]),
        (&json!(false), &json!([]), &Value::Null)
    );
    assert_eq!(run_json(path, &["webhook", "delete", &id]), json!({"id": made["id"], "deleted": true}));
    assert_eq!(run_json(path, &["webhook", "list"]), json!({"webhooks": []}));
    process.terminate();
    assert!(process.wait().success());
}
