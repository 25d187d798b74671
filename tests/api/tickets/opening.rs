//! Opening and transferring tickets.

use serde_json::{Value, json};

use super::event;
use crate::steps::{assert_timestamp, close, history, id, listed, ticket};
use crate::support::TestApp;

#[actix_web::test]
async fn an_opened_ticket_shows_all_its_fields_everywhere() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let contact = app.contact("5511900000001").await;
    let body =
        json!({"channelId": company.phone, "contactId": contact, "queueId": company.support, "userId": company.ana});
    let opened = app.api.post("/tickets", body).await.data(201).clone();
    let at = opened["createdAt"].clone();
    assert_timestamp(&at);
    assert_eq!(
        opened,
        json!({
            "id": id(&opened),
            "status": "open",
            "channel": {"id": company.phone, "name": "Phone", "type": "whatsapp"},
            "contact": {"id": contact, "name": "5511900000001", "number": "5511900000001"},
            "verified": false,
            "queue": {"id": company.support, "name": "Support"},
            "assignedTo": {"id": company.ana, "name": "Ana"},
            "handledBy": null, "creationSource": "api",
            "unreadCount": 0,
            "lastMessage": null,
            "wrapupType": null,
            "wrapupNote": null,
            "reopenCount": 0,
            "openedAt": at,
            "firstResponseAt": null,
            "lastActivityAt": at,
            "waitingSince": null,
            "closedAt": null,
            "createdAt": at,
            "updatedAt": at,
        })
    );
    assert_eq!(ticket(&app.api, id(&opened)).await, opened);
    assert_eq!(app.api.all("/tickets").await, std::slice::from_ref(&opened));

    let events = app.api.all(&format!("/tickets/{}/events", id(&opened))).await;
    let to = json!({
        "status": "open",
        "queue": {"id": company.support, "name": "Support"},
        "assignedTo": {"id": company.ana, "name": "Ana"},
    });
    assert_eq!(
        events,
        [json!({
            "id": id(&events[0]), "type": "opened", "from": null, "to": to, "user": null,
            "integration": events[0]["integration"], "source": "api", "createdAt": at,
        })]
    );
    app.stop().await;
}

#[actix_web::test]
async fn a_ticket_opened_without_a_queue_is_in_the_channels_queue() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await;
    let queue_on = async |channel: Value| {
        let reply = app.api.post("/tickets", json!({"channelId": channel, "contactId": contact})).await;
        reply.data(201)["queue"].clone()
    };
    assert_eq!(queue_on(json!(app.company.phone)).await, Value::Null);
    assert_eq!(queue_on(json!(app.company.webchat)).await, json!({"id": app.company.support, "name": "Support"}));
    app.stop().await;
}

#[actix_web::test]
async fn a_second_opening_is_refused_with_the_id_of_the_open_ticket() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await;
    let contact = ticket(&app.api, open.0).await["contact"]["id"].clone();
    let again = json!({"channelId": app.company.phone, "contactId": contact});
    let refused = app.api.post("/tickets", again.clone()).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["ticketId"], open.0);
    close(&app.api, open.0).await;
    let next = app.api.post("/tickets", again).await;
    assert!(id(next.data(201)) > open.0);
    app.stop().await;
}

#[actix_web::test]
async fn a_ticket_is_opened_only_for_a_user_of_its_queue() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let contact = app.contact("5511900000001").await;
    let open = async |queue: Value, user: Value| {
        app.api
            .post(
                "/tickets",
                json!({"channelId": company.phone, "contactId": contact, "queueId": queue, "userId": user}),
            )
            .await
    };
    assert_eq!(open(json!(company.sales), json!(company.ana)).await.invalid_fields(), ["userId"]);
    assert_eq!(listed(&app.api, "/tickets").await, [0; 0], "a refused opening left a ticket");
    let opened = open(Value::Null, json!(company.ana)).await;
    assert_eq!(opened.data(201)["assignedTo"]["id"], company.ana.0);
    app.stop().await;
}

#[actix_web::test]
async fn a_transfer_moves_the_ticket_and_records_the_old_and_the_new_place() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let open = app.ticket("5511900000001").await.0;
    let transfer = async |body: Value| app.api.post(&format!("/tickets/{open}/transfer"), body).await;
    let support = json!({"id": company.support, "name": "Support"});
    let sales = json!({"id": company.sales, "name": "Sales"});
    let ana = json!({"id": company.ana, "name": "Ana"});
    let ben = json!({"id": company.ben, "name": "Ben"});
    let steps = [
        (json!({"queueId": company.support}), (&support, &Value::Null)),
        (json!({"userId": company.ana}), (&support, &ana)),
        // A ticket that moves to a queue in which its user does not work is unassigned; otherwise the user keeps it.
        (json!({"queueId": company.sales}), (&sales, &Value::Null)),
        (json!({"queueId": company.support, "userId": company.ben}), (&support, &ben)),
        (json!({"queueId": company.sales}), (&sales, &ben)),
        (json!({"userId": null}), (&sales, &Value::Null)),
    ];
    let mut before = json!({"queue": null, "assignedTo": null});
    let mut expected = history(&app.api, open).await;
    for (body, (queue, user)) in steps {
        let reply = transfer(body.clone()).await;
        let moved = reply.data(200);
        assert_eq!((&moved["queue"], &moved["assignedTo"]), (queue, user), "after {body}");
        assert_eq!(moved, &ticket(&app.api, open).await);
        let after = json!({"queue": queue, "assignedTo": user});
        expected.push(event("transferred", before, after.clone()));
        before = after;
    }
    assert_eq!(history(&app.api, open).await, expected);

    for no_change in [json!({}), json!({"queueId": null})] {
        assert_eq!(transfer(no_change).await.invalid_fields(), ["queueId"]);
    }
    for outsider in [json!({"userId": company.ana}), json!({"queueId": company.sales, "userId": company.ana})] {
        assert_eq!(transfer(outsider).await.invalid_fields(), ["userId"]);
    }
    assert_eq!(history(&app.api, open).await, expected, "a refused transfer added an event");
    app.stop().await;
}
