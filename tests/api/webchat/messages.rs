//! Messages of visitors: texts, and choices of offered options.

use futures_util::future::join_all;
use serde_json::json;

use super::{ask, contact_of, open, say, session_id, visible_ids};
use crate::steps::{NOBODY, assert_timestamp, id, restarted, ticket};
use crate::support::{OwnApp, TestApp};

#[actix_web::test]
async fn the_first_message_opens_the_ticket_in_the_channels_queue() {
    let app = TestApp::shared().await;
    let opened = open(&app, json!({"name": "Vera"})).await;
    let session = session_id(&opened);
    let first = say(&app.api, &session, json!({"body": "  hello "})).await;
    assert_timestamp(&first["createdAt"]);
    assert_eq!(
        first,
        json!({
            "id": id(&first), "jobId": null, "ticketId": first["ticketId"], "contactId": contact_of(&opened),
            "channelId": app.company.webchat, "direction": "inbound", "type": "text", "body": "hello", "media": null,
            "template": null, "interactive": null, "content": null, "author": null, "editedAt": null, "edits": [], "deletedAt": null,
            "reactions": [], "quotedMessageId": null, "status": "received", "error": null,
            "user": null, "integration": null, "source": "contact", "via": null, "app": null, "createdAt": first["createdAt"], "sentAt": null, "deliveredAt": null,
            "readAt": null, "updatedAt": first["createdAt"],
        })
    );
    let second = say(&app.api, &session, json!({"body": "anybody there?"})).await;
    assert_eq!(second["ticketId"], first["ticketId"]);
    let opened = ticket(&app.api, first["ticketId"].as_i64().expect("ticket")).await;
    assert_eq!(opened["queue"], json!({"id": app.company.support, "name": "Support"}));
    assert_eq!(opened["creationSource"], "contact");
    assert_eq!(opened["unreadCount"], 2);
    let shown = app.api.get(&format!("/webchat/sessions/{session}")).await;
    assert_eq!(shown.data(200)["ticketId"], first["ticketId"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_message_after_the_ticket_was_closed_opens_another_one() {
    let app = TestApp::shared().await;
    let session = session_id(&open(&app, json!({})).await);
    let first = say(&app.api, &session, json!({"body": "hello"})).await["ticketId"].clone();
    let body = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{first}/close"), body).await.data(200);
    let second = say(&app.api, &session, json!({"body": "one more thing"})).await["ticketId"].clone();
    assert_ne!(first, second);
    assert_eq!(app.api.get(&format!("/webchat/sessions/{session}")).await.data(200)["ticketId"], second);
    assert_eq!(visible_ids(&app.api, &session).await.len(), 2, "the visitor does not see both messages");
    app.stop().await;
}

#[actix_web::test]
async fn a_choice_is_a_text_with_the_options_title_quoting_the_question() {
    let app = TestApp::shared().await;
    let session = session_id(&open(&app, json!({})).await);
    let text = say(&app.api, &session, json!({"body": "hello"})).await;
    let longest = "i".repeat(256);
    let buttons = json!({"buttons": [
        {"type": "reply", "reply": {"id": "y", "title": "Yes"}},
        {"type": "reply", "reply": {"id": longest, "title": "Longest"}},
    ]});
    let rows = json!({"button": "Open", "sections": [
        {"title": "Fruit", "rows": [{"id": "a", "title": "Apples"}]},
        {"title": "Other", "rows": [{"id": "b", "title": "Bread"}]},
    ]});
    let button = ask(&app, &text, 1_000_000_000, buttons).await;
    let list = ask(&app, &text, 1_000_000_001, rows).await;
    for (question, option, title) in
        [(button, "y", "Yes"), (list, "a", "Apples"), (list, "b", "Bread"), (button, &longest, "Longest")]
    {
        let chosen = say(&app.api, &session, json!({"reply": {"messageId": question, "id": option}})).await;
        assert_eq!(chosen["type"], "text");
        assert_eq!(chosen["body"], title);
        assert_eq!(chosen["quotedMessageId"], question);
        let reply = json!({"id": option, "payload": null, "title": title});
        assert_eq!(chosen["content"], json!({"kind": "reply", "reply": reply}));
        assert_eq!(chosen["direction"], "inbound");
        assert_eq!(chosen["ticketId"], text["ticketId"]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_option_is_chosen_by_its_exact_id_before_its_trimmed_id() {
    let app = TestApp::shared().await;
    let session = session_id(&open(&app, json!({})).await);
    let text = say(&app.api, &session, json!({"body": "hello"})).await;
    let option = |id: &str, title: &str| json!({"type": "reply", "reply": {"id": id, "title": title}});
    let buttons = json!({"buttons": [option("a", "Plain"), option(" a", "Before"), option("b ", "After")]});
    let question = ask(&app, &text, 1_000_000_000, buttons).await;
    for (sent, id, title) in
        [("a", "a", "Plain"), (" a", " a", "Before"), ("b ", "b ", "After"), ("  a ", "a", "Plain")]
    {
        let chosen = say(&app.api, &session, json!({"reply": {"messageId": question, "id": sent}})).await;
        assert_eq!(chosen["body"], title, "{sent:?}");
        assert_eq!(chosen["content"]["reply"]["id"], id, "{sent:?}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_choice_that_the_question_does_not_offer_is_refused() {
    let app = TestApp::shared().await;
    let session = session_id(&open(&app, json!({})).await);
    let text = say(&app.api, &session, json!({"body": "hello"})).await;
    let another = session_id(&open(&app, json!({})).await);
    let elsewhere = say(&app.api, &another, json!({"body": "hello"})).await;
    let buttons = json!({"buttons": [{"type": "reply", "reply": {"id": "y", "title": "Yes"}}]});
    let question = ask(&app, &text, 1_000_000_000, buttons.clone()).await;
    let not_asked_here = ask(&app, &elsewhere, 1_000_000_001, buttons).await;
    let path = format!("/webchat/sessions/{session}/messages");
    let choose = async |message: i64, option: &str| {
        app.api.post(&path, json!({"reply": {"messageId": message, "id": option}})).await
    };
    assert_eq!(choose(question, "n").await.invalid_fields(), ["reply.id"]);
    assert_eq!(choose(question, "Yes").await.invalid_fields(), ["reply.id"]);
    assert_eq!(choose(id(&text), "y").await.invalid_fields(), ["reply.id"], "a text has options");
    for absent in [NOBODY, not_asked_here] {
        choose(absent, "y").await.error(404, "ERR_API_NOT_FOUND");
    }
    let both = json!({"body": "x", "reply": {"messageId": question, "id": "y"}});
    assert_eq!(app.api.post(&path, both).await.invalid_fields(), ["reply"]);
    assert_eq!(
        ticket(&app.api, text["ticketId"].as_i64().expect("id")).await["unreadCount"],
        1,
        "a refused choice was stored"
    );
    app.stop().await;
}

#[actix_web::test]
async fn a_message_sent_again_under_its_client_id_returns_the_first_one() {
    let app = OwnApp::start().await;
    let session = session_id(&open(&app, json!({})).await);
    let first = say(&app.api, &session, json!({"body": "hello", "clientId": "c-1"})).await;
    let again = say(&app.api, &session, json!({"body": "hello", "clientId": "c-1"})).await;
    assert_eq!(again, first);
    let other = say(&app.api, &session, json!({"body": "hello", "clientId": "c-2"})).await;
    assert_ne!(id(&other), id(&first));

    let racing = join_all((0..24).map(|_| say(&app.api, &session, json!({"body": "racing", "clientId": "c-3"})))).await;
    assert!(racing.iter().all(|message| message == &racing[0]), "a message was stored twice");
    assert_eq!(visible_ids(&app.api, &session).await, [id(&first), id(&other), id(&racing[0])]);
    assert_eq!(ticket(&app.api, first["ticketId"].as_i64().expect("id")).await["unreadCount"], 3);

    // The client ids of another visitor are separate.
    let another = session_id(&open(&app, json!({})).await);
    let theirs = say(&app.api, &another, json!({"body": "hello", "clientId": "c-1"})).await;
    assert_ne!(id(&theirs), id(&first));

    let app = restarted(app).await;
    assert_eq!(say(&app.api, &session, json!({"body": "hello", "clientId": "c-1"})).await, first);
    let new = say(&app.api, &session, json!({"body": "new", "clientId": "c-4"})).await;
    assert_eq!(visible_ids(&app.api, &session).await, [id(&first), id(&other), id(&racing[0]), id(&new)]);
    app.stop().await;
}

#[actix_web::test]
async fn a_client_id_is_remembered_however_many_messages_follow() {
    let app = TestApp::shared().await;
    let session = session_id(&open(&app, json!({})).await);
    let first = say(&app.api, &session, json!({"body": "first", "clientId": "first"})).await;
    for round in 0..10 {
        let writes = (0..32).map(|index| {
            let body = json!({"body": "more", "clientId": format!("{round}-{index}")});
            say(&app.api, &session, body)
        });
        join_all(writes).await;
    }
    assert_eq!(say(&app.api, &session, json!({"body": "first", "clientId": "first"})).await, first);
    assert_eq!(ticket(&app.api, first["ticketId"].as_i64().expect("id")).await["unreadCount"], 321);
    app.stop().await;
}
