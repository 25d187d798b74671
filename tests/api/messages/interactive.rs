//! Interactive objects: a webchat checks and shows them; on other channels they reach the provider unchanged.

use serde_json::{Value, json};

use super::visited;
use crate::steps::{id, listed, sent};
use crate::support::{Reply, TestApp};

fn buttons() -> Value {
    json!({"type": "button", "header": {"type": "text", "text": "Delivery"}, "body": {"text": "Tomorrow?"},
        "footer": {"text": "Acme"}, "action": {"buttons": [
            {"type": "reply", "reply": {"id": "yes", "title": "Yes, please"}},
            {"type": "reply", "reply": {"id": "no", "title": "No"}}]}})
}

fn list() -> Value {
    json!({"type": "list", "body": {"text": "Which fruit?"}, "action": {"button": "Choose", "sections": [
        {"title": "Red", "rows": [{"id": "apple", "title": "An apple", "description": "from here"}]},
        {"title": "Green", "rows": [{"id": "lime", "title": "A lime"}]}]}})
}

fn carousel() -> Value {
    let card = |action: Value| {
        json!({"header": {"type": "image", "image": {"link": "https://shop.example/a.png"}},
        "body": {"text": "A card"}, "action": action})
    };
    json!({"type": "carousel", "body": {"text": "Our best"}, "action": {"cards": [
        card(json!({"buttons": [{"type": "quick_reply", "quick_reply": {"id": "red", "title": "The red one"}}]})),
        card(json!({"name": "cta_url", "parameters": {"display_text": "Shop", "url": "https://shop.example"}}))]}})
}

fn interactive(ticket: i64, interactive: &Value) -> Value {
    json!({"ticketId": ticket, "type": "interactive", "interactive": interactive})
}

/// The field and the reason of each detail, after status and code were checked.
#[track_caller]
fn invalid_details(reply: &Reply) -> Vec<(String, String)> {
    let details = reply.error(422, "ERR_API_INTERACTIVE_INVALID").as_array().expect("details are a list");
    let text = |detail: &Value, name: &str| detail[name].as_str().expect("a text").to_owned();
    details.iter().map(|detail| (text(detail, "field"), text(detail, "reason"))).collect()
}

#[actix_web::test]
async fn a_visitor_chooses_and_the_choice_quotes_the_question() {
    let app = TestApp::shared().await;
    let (session, _, open) = visited(&app, "visitor").await;
    let messages_path = format!("/webchat/sessions/{session}/messages");
    for (question, option, title) in [
        (buttons(), "no", "No"),
        (list(), "apple", "An apple"),
        (list(), "lime", "A lime"),
        (carousel(), "red", "The red one"),
    ] {
        let asked = sent(&app.api, interactive(open, &question)).await;
        assert_eq!((&asked["type"], &asked["interactive"]), (&json!("interactive"), &question));
        assert_eq!((&asked["body"], &asked["status"]), (&question["body"]["text"], &json!("sent")));
        let shown = app.api.all(&messages_path).await;
        assert_eq!(
            shown.last().expect("the question")["interactive"],
            question,
            "the visitor does not see the question"
        );

        let reply = app.api.post(&messages_path, json!({"reply": {"messageId": id(&asked), "id": option}})).await;
        let chosen = reply.data(201);
        assert_eq!((&chosen["type"], &chosen["body"]), (&json!("text"), &json!(title)));
        assert_eq!((&chosen["direction"], &chosen["quotedMessageId"]), (&json!("inbound"), &asked["id"]));
        assert_eq!(chosen["interactive"], Value::Null);
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_option_of_another_message_is_refused() {
    let app = TestApp::shared().await;
    let (session, _, open) = visited(&app, "visitor").await;
    let messages_path = format!("/webchat/sessions/{session}/messages");
    let asked = id(&sent(&app.api, interactive(open, &buttons())).await);
    let other = id(&sent(&app.api, interactive(open, &list())).await);
    let text = id(&sent(&app.api, json!({"ticketId": open, "type": "text", "body": "no options"})).await);
    for (message, option) in [(asked, "apple"), (other, "yes"), (text, "yes"), (asked, "Yes, please"), (asked, " ")] {
        let reply = app.api.post(&messages_path, json!({"reply": {"messageId": message, "id": option}})).await;
        assert_eq!(reply.invalid_fields(), ["reply.id"], "{option:?} of {message}");
    }
    assert_eq!(listed(&app.api, "/messages?direction=inbound").await.len(), 1, "a refused choice was stored");
    app.stop().await;
}

#[actix_web::test]
async fn an_object_that_a_webchat_cannot_show_is_refused_with_its_invalid_fields_and_creates_nothing() {
    let app = TestApp::shared().await;
    let company = &app.company;
    // A contact who can be reached, without a ticket.
    let (_, visitor) = app.session("visitor").await;
    let send = async |interactive: Value| {
        let body = json!({"channelId": company.webchat, "contactId": visitor, "type": "interactive", "interactive": interactive});
        app.api.post("/messages", body).await
    };
    let invalid = json!({"type": "button", "footer": {"text": "x".repeat(61)}, "action": {"buttons": [
        {"type": "reply", "reply": {"id": "a", "title": "x".repeat(21)}},
        {"type": "reply", "reply": {"id": "a", "title": "No"}}]}});
    let refused = send(invalid).await;
    let expected = [
        ("interactive.body", "is required"),
        ("interactive.footer.text", "must have at most 60 characters"),
        ("interactive.action.buttons[0].reply.title", "must have at most 20 characters"),
        ("interactive.action.buttons[1].reply.id", "must be unique"),
    ];
    assert_eq!(invalid_details(&refused), expected.map(|(field, reason)| (field.to_owned(), reason.to_owned())));
    let message = refused.body["error"]["message"].as_str().expect("a message");
    for (field, reason) in expected {
        assert!(message.contains(&format!("{field} {reason}")), "{message}");
    }
    for kind in [
        "flow",
        "product",
        "product_list",
        "catalog_message",
        "address_message",
        "voice_call",
        "call_permission_request",
    ] {
        let refused = send(json!({"type": kind, "body": {"text": "x"}, "action": {}})).await;
        let expected = ("interactive.type".to_owned(), "does not exist on the webchat".to_owned());
        assert_eq!(invalid_details(&refused), [expected], "{kind}");
    }
    assert_eq!(listed(&app.api, "/messages").await, [0; 0]);
    assert_eq!(listed(&app.api, "/tickets").await, [0; 0]);
    send(buttons()).await.data(202);
    app.stop().await;
}

#[actix_web::test]
async fn variables_in_an_objects_texts_are_replaced_within_the_limits() {
    let app = TestApp::shared().await;
    let (_, _, open) = visited(&app, "Maria Lima").await;
    let mut question = buttons();
    question["header"]["text"] = json!("{{company}}");
    question["body"]["text"] = json!("Tomorrow, {{firstName}}? {{unknown}}");
    // Options keep their ids and titles: a program recognizes them.
    question["action"]["buttons"][0]["reply"] = json!({"id": "{{name}}", "title": "{{name}}"});
    let asked = sent(&app.api, interactive(open, &question)).await;
    question["header"]["text"] = json!("Acme");
    question["body"]["text"] = json!("Tomorrow, Maria? ");
    assert_eq!((&asked["interactive"], &asked["body"]), (&question, &json!("Tomorrow, Maria? ")));

    app.api.post("/global-variables", json!({"key": "long", "value": "x".repeat(60)})).await.data(201);
    let mut question = buttons();
    question["footer"]["text"] = json!("{{long}}");
    sent(&app.api, interactive(open, &question)).await;
    question["footer"]["text"] = json!("{{long}}!");
    let refused = app.api.post("/messages", interactive(open, &question)).await;
    assert_eq!(invalid_details(&refused)[0].0, "interactive.footer.text");
    question["footer"]["text"] = json!("{{unknown}}");
    let refused = app.api.post("/messages", interactive(open, &question)).await;
    assert_eq!(invalid_details(&refused), [("interactive.footer.text".to_owned(), "must not be blank".to_owned())]);
    app.stop().await;
}

#[actix_web::test]
async fn on_other_channels_an_object_is_not_checked() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    for object in [
        json!({"type": "flow", "body": {"text": "Fill this in"}, "action": {"name": "flow", "parameters": {"flow_id": "1"}}}),
        json!({"type": "button", "body": {"text": "x".repeat(5000)}, "action": {"buttons": []}}),
        json!({"anything": [1, 2.5, null, {"else": true}]}),
        json!({}),
    ] {
        let message = sent(&app.api, interactive(open, &object)).await;
        assert_eq!(message["interactive"], object);
        assert_eq!(message["body"], object["body"]["text"]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn on_every_channel_interactive_must_be_an_object_no_larger_than_a_text() {
    let app = TestApp::shared().await;
    let (_, _, web) = visited(&app, "visitor").await;
    let phone = app.ticket("5511900000001").await.0;
    for ticket in [web, phone] {
        for bad in
            [json!("text"), json!([]), json!(7), json!(true), json!({"a": "\u{0}"}), json!({"a": "x".repeat(65_536)})]
        {
            let refused = app.api.post("/messages", interactive(ticket, &bad)).await;
            assert_eq!(refused.invalid_fields(), ["interactive"], "{bad:.80}");
        }
        let missing = app.api.post("/messages", json!({"ticketId": ticket, "type": "interactive", "body": "x"})).await;
        assert_eq!(missing.invalid_fields(), ["interactive"]);
    }
    app.stop().await;
}
