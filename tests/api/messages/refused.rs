//! Bodies that are refused, in JSON and in forms.

use serde_json::{Value, json};

use crate::steps::listed;
use crate::support::TestApp;
use crate::support::form::Form;

#[actix_web::test]
async fn each_type_needs_its_own_field_and_no_other() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    for (kind, expected) in [
        (json!("text"), "body"),
        (json!("template"), "template"),
        (json!("interactive"), "interactive"),
        // Files of a media message are sent in a form.
        (json!("media"), "medias"),
        (json!("note"), "type"),
        (json!("TEXT"), "type"),
        (json!(""), "type"),
        (json!(7), "type"),
        (Value::Null, "type"),
    ] {
        let refused = app.api.post("/messages", json!({"ticketId": open, "type": kind})).await;
        assert_eq!(refused.invalid_fields(), [expected], "{kind}");
    }
    // Fields of other types are ignored.
    let text = json!({"ticketId": open, "type": "text", "body": "hello", "interactive": {}, "template": {"name": "x"}});
    app.api.post("/messages", text).await.data(202);
    assert_eq!(listed(&app.api, "/messages").await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn an_answer_names_every_invalid_field_at_once() {
    let app = TestApp::shared().await;
    let refused = app
        .api
        .post(
            "/messages",
            json!({"type": "template", "channelId": "7", "number": "123", "contactName": 7, "body": 7,
                "template": {"language": 7}, "interactive": [], "reopenTicket": "yes", "queueId": 1.5,
                "closeTicket": 1, "wrapupTypeId": {}, "wrapupNote": 7}),
        )
        .await;
    let expected = [
        "channelId",
        "number",
        "contactName",
        "body",
        "template.name",
        "template.language",
        "interactive",
        "reopenTicket",
        "queueId",
        "closeTicket",
        "wrapupTypeId",
        "wrapupNote",
    ];
    assert_eq!(refused.invalid_fields(), expected);
    app.stop().await;
}

#[actix_web::test]
async fn a_form_takes_the_same_fields_as_text_and_takes_files_for_media_only() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    let text =
        Form::default().text("ticketId", open).text("type", "text").text("body", "hello").text("closeTicket", false);
    app.api.send_form(text.clone()).await.data(202);
    let object = json!({"type": "flow", "body": {"text": "x"}});
    let interactive = Form::default().text("ticketId", open).text("type", "interactive").text("interactive", &object);
    app.api.send_form(interactive).await.data(202);
    let messages = app.api.all("/messages").await;
    assert_eq!((&messages[0]["body"], &messages[1]["interactive"]), (&json!("hello"), &object));

    let with_a_file = text.file("a.txt", "text/plain", b"hello");
    assert_eq!(app.api.send_form(with_a_file).await.invalid_fields(), ["medias"]);
    let without = Form::default().text("ticketId", open).text("type", "media").text("body", "a caption");
    assert_eq!(app.api.send_form(without).await.invalid_fields(), ["medias"]);
    let broken = Form::default().text("ticketId", open).text("type", "interactive").text("interactive", "{");
    assert_eq!(app.api.send_form(broken).await.invalid_fields(), ["interactive"]);
    let broken = Form::default().text("ticketId", open).text("type", "template").text("template", "{");
    assert_eq!(app.api.send_form(broken).await.invalid_fields(), ["template"]);
    assert_eq!(listed(&app.api, "/messages").await.len(), 2);
    app.stop().await;
}
