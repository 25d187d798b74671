//! Lists of messages: filters, order and `updatedAt`.

use serde_json::{Value, json};

use super::{text, visited};
use crate::check_list::check_list;
use crate::steps::{id, listed, sent};
use crate::support::{TestApp, eventually};

#[actix_web::test]
async fn every_filter_finds_its_messages_and_no_others() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let (other, other_api) = app.another_company().await;
    sent(&other_api, text(json!({"channelId": other.phone, "number": "5511900000001"}))).await;

    let (_, visitor, web) = visited(&app, "visitor").await;
    let inbound = listed(&app.api, "/messages").await[0];
    let answer = id(&sent(&app.api, text(json!({"ticketId": web}))).await);
    let note = id(app.api.post(&format!("/tickets/{web}/notes"), json!({"body": "note"})).await.data(201));
    let first = sent(&app.api, text(json!({"channelId": company.phone, "number": "5511900000001"}))).await;
    let second = id(&sent(&app.api, text(json!({"channelId": company.phone, "number": "5511900000002"}))).await);
    let first_id = id(&first);

    let everything = [inbound, answer, note, first_id, second];
    for (query, expected) in [
        (String::new(), everything.to_vec()),
        (format!("ticketId={web}"), vec![inbound, answer, note]),
        (format!("ticketId={}", first["ticketId"]), vec![first_id]),
        (format!("contactId={visitor}"), vec![inbound, answer, note]),
        (format!("contactId={}", first["contactId"]), vec![first_id]),
        (format!("channelId={}", company.phone), vec![first_id, second]),
        ("direction=inbound".to_owned(), vec![inbound]),
        ("direction=outbound".to_owned(), vec![answer, first_id, second]),
        ("direction=internal".to_owned(), vec![note]),
        ("type=text".to_owned(), vec![inbound, answer, first_id, second]),
        ("type=note".to_owned(), vec![note]),
        ("type=media".to_owned(), vec![]),
        ("status=queued".to_owned(), vec![first_id, second]),
        ("status=sent".to_owned(), vec![answer, note]),
        (format!("direction=outbound&channelId={}", company.webchat), vec![answer]),
        (format!("ticketId={web}&direction=outbound&status=queued"), vec![]),
    ] {
        assert_eq!(listed(&app.api, &format!("/messages?{query}")).await, expected, "{query}");
    }
    let received = listed(&app.api, "/messages?status=received").await;
    assert!(received.contains(&inbound) && !received.contains(&answer), "{received:?}");
    check_list(&app, "/messages", &everything, &["created", "updated"]).await;
    check_list(&app, &format!("/messages?ticketId={web}"), &everything[..3], &["created", "updated"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn messages_of_a_ticket_are_in_the_order_they_were_accepted() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    let mut accepted = Vec::new();
    for index in 0..20 {
        let reply =
            app.api.post("/messages", json!({"ticketId": open, "type": "text", "body": index.to_string()})).await;
        accepted.push(reply.data(202)["jobId"].clone());
    }
    let messages = app.api.all(&format!("/tickets/{open}/messages")).await;
    assert_eq!(messages.iter().map(|message| message["jobId"].clone()).collect::<Vec<_>>(), accepted);
    app.stop().await;
}

#[actix_web::test]
async fn a_change_of_status_updates_a_message_and_the_list_finds_it_by_its_time() {
    let app = TestApp::shared().await;
    let (session, _) = app.session("v-1").await;
    let path = format!("/webchat/sessions/{session}/messages");
    let question = app.api.post(&path, json!({"body": "Hello"})).await.data(201).clone();
    let ticket = question["ticketId"].as_i64().expect("a ticket");
    let answer = sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "Hi"})).await;
    assert_eq!(question["updatedAt"], question["createdAt"]);
    let shown = async |message: &Value| app.api.get(&format!("/messages/{}", message["id"])).await.data(200).clone();
    let updated_since = async |message: &Value| {
        let time = message["updatedAt"].as_str().expect("a time").to_owned();
        listed(&app.api, &format!("/messages?updatedFrom={time}")).await
    };
    // Listing the visitor's messages delivers the answer.
    let before = shown(&answer).await;
    app.api.get(&path).await.data(200);
    eventually("the answer is delivered", || async { shown(&answer).await["status"] == "delivered" }).await;
    let delivered = shown(&answer).await;
    assert!(delivered["updatedAt"].as_str() > before["updatedAt"].as_str(), "{delivered}");
    assert_eq!(updated_since(&delivered).await, [id(&answer)]);
    // Reading the ticket changes the contact's messages.
    app.api.post(&format!("/tickets/{ticket}/read"), json!({})).await.data(200);
    eventually("the question is read", || async { shown(&question).await["readAt"].is_string() }).await;
    let read = shown(&question).await;
    assert!(read["updatedAt"].as_str() > question["updatedAt"].as_str(), "{read}");
    assert!(updated_since(&read).await.contains(&id(&question)));
    // Doing both again changes nothing.
    app.api.get(&path).await.data(200);
    app.api.post(&format!("/tickets/{ticket}/read"), json!({})).await.data(200);
    assert_eq!((shown(&answer).await, shown(&question).await), (delivered, read));
    app.stop().await;
}
