//! Refusals name what stands in the way: the record in conflict, the reason or the file.

use serde_json::json;

use crate::steps::{close, id};
use crate::support::TestApp;
use crate::support::form::Form;

#[actix_web::test]
async fn a_conflict_names_the_record_or_counts_what_stands_in_the_way() {
    let app = TestApp::shared().await;
    let api = &app.api;
    // A value that another record has: in a creation and in a change.
    for (path, first, second, field) in [
        ("/tags", json!({"name": "VIP"}), json!({"name": "Other"}), "name"),
        ("/queues", json!({"name": "Billing"}), json!({"name": "Other"}), "name"),
        ("/wrapup-categories", json!({"name": "Result"}), json!({"name": "Other"}), "name"),
        (
            "/quick-messages",
            json!({"shortcut": "/hi", "message": "x"}),
            json!({"shortcut": "/o", "message": "x"}),
            "shortcut",
        ),
        ("/global-variables", json!({"key": "hours", "value": "x"}), json!({}), "key"),
        (
            "/users",
            json!({"name": "D", "email": "d@example.com"}),
            json!({"name": "E", "email": "e@example.com"}),
            "email",
        ),
        ("/contacts", json!({"number": "5511900000077"}), json!({"number": "5511900000078"}), "number"),
    ] {
        let holder = id(api.post(path, first.clone()).await.data(201));
        let refused = api.post(path, first.clone()).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &json!({"field": field, "id": holder}), "{path}");
        if !second.as_object().expect("object").is_empty() {
            let other = id(api.post(path, second).await.data(201));
            let refused = api.put(&format!("{path}/{other}"), json!({field: first[field]})).await;
            assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &json!({"field": field, "id": holder}), "{path}");
        }
    }
    // The state of a ticket.
    let open = app.ticket("5511900000001").await.0;
    let contact = api.get(&format!("/tickets/{open}")).await.data(200)["contact"]["id"].clone();
    let ticket_conflict = |reason: &str| json!({"ticketId": open, "field": "ticketId", "id": open, "reason": reason});
    let again = api.post("/tickets", json!({"channelId": app.company.phone, "contactId": contact})).await;
    let mut expected = ticket_conflict("ticket_open");
    expected["by"] = json!([{"type": "ticket", "count": 1}]);
    assert_eq!(again.error(409, "ERR_API_CONFLICT"), &expected);
    let refused = api.post(&format!("/tickets/{open}/reopen"), json!({})).await;
    let details = refused.error(409, "ERR_API_CONFLICT");
    assert_eq!(
        (&details["field"], &details["id"], &details["reason"]),
        (&json!("ticketId"), &json!(open), &json!("open"))
    );
    close(api, open).await;
    let refused = api.post(&format!("/tickets/{open}/notes"), json!({"body": "x"})).await;
    assert_eq!(refused.error(409, "ERR_API_TICKET_CLOSED"), &ticket_conflict("closed"));
    // The state of a session.
    let (session, _) = app.session("visitor").await;
    api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200);
    let refused = api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "x"})).await;
    let details = refused.error(409, "ERR_API_CONFLICT");
    assert_eq!(
        (&details["field"], &details["id"], &details["reason"]),
        (&json!("sessionId"), &json!(session.0), &json!("ended"))
    );
    // Other records that refer to the record.
    let category = api.all("/wrapup-categories").await.into_iter().next().expect("a category");
    let refused = api.delete(&format!("/wrapup-categories/{}", id(&category))).await;
    let details = refused.error(409, "ERR_API_CONFLICT");
    assert_eq!((&details["reason"], &details["by"][0]["type"]), (&json!("in_use"), &json!("wrapupType")));
    app.stop().await;
}

#[actix_web::test]
async fn a_send_to_an_unreachable_contact_is_refused_with_the_reason() {
    let app = TestApp::shared().await;
    let no_number = id(app.api.post("/contacts", json!({"name": "No number"})).await.data(201));
    let numbered = app.contact("5511900000001").await;
    let send = async |channel: i64, contact: i64| {
        let body = json!({"channelId": channel, "contactId": contact, "type": "text", "body": "x"});
        let reply = app.api.post("/messages", body).await;
        let message = reply.body["error"]["message"].as_str().expect("a message").to_owned();
        (reply.error(422, "ERR_API_CONTACT_UNREACHABLE")["reason"].as_str().expect("a reason").to_owned(), message)
    };
    let (reason, message) = send(app.company.phone.0, no_number).await;
    assert_eq!(reason, "no_number");
    assert!(message.contains("no phone number"), "{message}");
    assert_eq!(send(app.company.webchat.0, numbered.0).await.0, "no_session");
    app.stop().await;
}

#[actix_web::test]
async fn a_file_that_is_refused_is_named() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await;
    let form = Form::default().text("type", "media").text("ticketId", open);
    let good: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let refused =
        app.api.send_form(form.file("good.png", "image/png", good).file("bad.png", "image/png", b"%PDF-1.7\n")).await;
    let details = refused.error(400, "ERR_API_MEDIA_TYPE_MISMATCH");
    assert_eq!(details, &json!({"field": "medias[1]", "fileName": "bad.png", "mimeType": "image/png"}));
    assert!(refused.body["error"]["message"].as_str().is_some_and(|text| text.starts_with("bad.png: ")));
    app.stop().await;
}
