//! The answer to a send, and what its job shows later.

use serde_json::json;

use super::{text, visited};
use crate::steps::{NOBODY, assert_timestamp, id, listed, sent, ticket};
use crate::support::TestApp;

#[actix_web::test]
async fn a_send_is_answered_with_a_job_and_stores_the_message() {
    let app = TestApp::shared().await;
    let phone = app.company.phone;
    let reply = app.api.post("/messages", text(json!({"channelId": phone, "number": "5511900000001"}))).await;
    let accepted = reply.data(202);
    let job_id = accepted["jobId"].as_str().expect("job");
    assert_eq!(accepted, &json!({"jobId": job_id, "status": "queued"}));

    let job = app.api.get(&format!("/messages/jobs/{job_id}")).await;
    let job = job.data(200);
    let message = app.api.get(&format!("/messages/{}", job["messageId"])).await;
    let message = message.data(200);
    assert_eq!(
        job,
        &json!({"jobId": job_id, "status": "queued", "messageId": id(message), "ticketId": message["ticketId"], "error": null,
            "waitingFor": job["waitingFor"], "attempts": 0, "outcome": null})
    );
    assert_timestamp(&message["createdAt"]);
    let opened = ticket(&app.api, message["ticketId"].as_i64().expect("ticket")).await;
    assert_eq!(
        message,
        &json!({
            "id": job["messageId"], "jobId": job_id, "ticketId": id(&opened), "contactId": opened["contact"]["id"],
            "channelId": phone, "direction": "outbound", "type": "text", "body": "hello", "media": null,
            "template": null, "interactive": null, "content": null, "author": null, "editedAt": null, "edits": [], "deletedAt": null,
            "reactions": [], "quotedMessageId": null, "status": "queued", "error": null,
            "user": null, "integration": message["integration"], "source": "api", "via": null, "app": null, "createdAt": message["createdAt"],
            "updatedAt": message["createdAt"], "sentAt": null, "deliveredAt": null, "readAt": null,
        })
    );
    assert_eq!(opened["creationSource"], "api");
    assert_eq!(opened["unreadCount"], 0);
    assert_eq!(
        opened["lastMessage"],
        json!({"id": id(message), "body": "hello", "direction": "outbound", "createdAt": message["createdAt"]})
    );
    assert_eq!(app.api.all("/messages").await, std::slice::from_ref(message));
    app.stop().await;
}

#[actix_web::test]
async fn a_job_is_found_by_its_own_id_only() {
    let app = TestApp::shared().await;
    let (_, _, open) = visited(&app, "visitor").await;
    let inbound = listed(&app.api, "/messages").await[0];
    let message = sent(&app.api, text(json!({"ticketId": open}))).await;
    let job_id = message["jobId"].as_str().expect("job");
    let job = app.api.get(&format!("/messages/jobs/{job_id}")).await;
    assert_eq!(
        job.data(200),
        &json!({"jobId": job_id, "status": "sent", "messageId": id(&message), "ticketId": open, "error": null,
            "waitingFor": null, "attempts": 1, "outcome": null})
    );
    let not_found = app.api.get(&format!("/messages/{NOBODY}")).await.body;
    for unknown in [&format!("job_{NOBODY}"), &format!("job_{inbound}"), &id(&message).to_string(), "job_", "abc"] {
        let reply = app.api.get(&format!("/messages/jobs/{unknown}")).await;
        reply.error(404, "ERR_API_NOT_FOUND");
        assert_eq!(reply.body, not_found, "{unknown}");
    }
    app.stop().await;
}
