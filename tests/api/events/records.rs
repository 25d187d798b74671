//! One event for each change, with the record as its own endpoint shows it.

use serde_json::{Value, json};

use super::{after, ids, newest, types};
use crate::support::TestApp;

#[actix_web::test]
async fn each_change_of_a_ticket_is_an_event_with_the_ticket_as_of_then() {
    let app = TestApp::shared().await;
    let (support, sales, ana) = (app.company.support, app.company.sales, app.company.ana);
    let contact = app.contact("5511900000001").await;
    let mut last = newest(&app.api).await;
    let opened = app
        .api
        .post("/tickets", json!({"channelId": app.company.phone, "contactId": contact, "queueId": support}))
        .await
        .data(201)
        .clone();
    let path = |verb: &str| format!("/tickets/{}/{verb}", opened["id"]);
    let mut check_event = async |kind: &str, shown: &Value, previous: Value| {
        let events = after(&app.api, last).await;
        assert_eq!(types(&events), [kind]);
        let event = &events[0];
        assert_eq!(event["id"], last + 1, "the ids have a gap");
        assert_eq!(&event["data"], shown, "{kind}");
        assert_eq!(event["previous"], previous, "{kind}");
        assert_eq!(event["createdAt"], shown["updatedAt"], "{kind}");
        assert_eq!(event.as_object().expect("an object").len(), 6, "{event}");
        assert_eq!(event["by"]["type"], "integration", "{event}");
        last += 1;
    };
    let reference = |id: i64, name: &str| json!({"id": id, "name": name});
    check_event("ticket.opened", &opened, Value::Null).await;
    let assigned = app.api.post(&path("transfer"), json!({"userId": ana})).await.data(200).clone();
    check_event("ticket.assigned", &assigned, json!({"assignedTo": null})).await;
    let moved = app.api.post(&path("transfer"), json!({"queueId": sales})).await.data(200).clone();
    let was = json!({"queue": reference(support.0, "Support"), "assignedTo": reference(ana.0, "Ana")});
    check_event("ticket.transferred", &moved, was).await;
    let closed = app.api.post(&path("close"), json!({})).await.data(200).clone();
    let was = json!({"status": "open", "closedAt": null, "lastActivityAt": moved["lastActivityAt"]});
    check_event("ticket.closed", &closed, was).await;
    let wrapped = app.api.put(&path("wrapup"), json!({"wrapupTypeId": app.company.sold})).await.data(200).clone();
    check_event("ticket.wrapup_changed", &wrapped, json!({"wrapupType": null})).await;
    let reopened = app.api.post(&path("reopen"), json!({})).await.data(200).clone();
    let was = json!({"status": "closed", "wrapupType": reference(app.company.sold.0, "Sold"), "reopenCount": 0,
        "openedAt": opened["openedAt"], "closedAt": closed["closedAt"], "lastActivityAt": closed["lastActivityAt"]});
    check_event("ticket.reopened", &reopened, was).await;
    // A request that changes nothing makes no event.
    app.api.post(&path("read"), json!({})).await.data(200);
    app.api.post(&path("transfer"), json!({"queueId": sales})).await.data(200);
    assert!(after(&app.api, last).await.is_empty());
    app.stop().await;
}

#[actix_web::test]
async fn messages_notes_and_reads_are_events() {
    let app = TestApp::shared().await;
    let (session, _) = app.session("visitor").await;
    let begin = newest(&app.api).await;
    let message = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
    let ticket = message.data(201)["ticketId"].as_i64().expect("ticket");
    let events = after(&app.api, begin).await;
    assert_eq!(types(&events), ["ticket.opened", "message.received"]);
    assert_eq!(events[0]["data"]["lastMessage"]["body"], "hello");
    assert_eq!(events[0]["data"], app.api.get(&format!("/tickets/{ticket}")).await.body["data"]);
    let mut received = events[1]["data"].clone();
    let fields = received.as_object_mut().expect("an object");
    let support = json!({"id": app.company.support, "name": "Support"});
    let in_ticket = json!({"id": ticket, "status": "open", "queue": support, "assignedTo": null});
    assert_eq!(fields.remove("ticket"), Some(in_ticket));
    let contact = app.api.get(&format!("/tickets/{ticket}")).await.body["data"]["contact"].clone();
    let contact = json!({"id": contact["id"], "name": contact["name"]});
    assert_eq!(fields.remove("contact"), Some(contact.clone()));
    assert_eq!(events[1]["by"], json!({"type": "contact", "id": contact["id"], "name": contact["name"]}));
    assert_eq!(received, app.api.get(&format!("/messages/{}", received["id"])).await.body["data"]);

    app.api.post(&format!("/tickets/{ticket}/read"), json!({})).await.data(200);
    let note = app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "VIP"})).await.data(201).clone();
    let send = json!({"ticketId": ticket, "type": "text", "body": "welcome"});
    app.api.post("/messages", send).await.data(202);
    let rest = after(&app.api, begin + 2).await;
    assert_eq!(types(&rest)[..3], ["ticket.read", "note.added", "message.created"]);
    assert_eq!(rest[0]["previous"], json!({"unreadCount": 1}));
    assert_eq!(rest[1]["data"], note);
    // The event shows the message as it was received, although it has been read since.
    let again = after(&app.api, begin).await;
    assert_eq!(again[1], events[1]);
    assert_eq!(ids(&again), (begin + 1..=begin + i64::try_from(again.len()).expect("few")).collect::<Vec<_>>());
    app.stop().await;
}
