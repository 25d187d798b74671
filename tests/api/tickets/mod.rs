//! Tickets: what every call answers, the history it leaves, and what the lists find.

mod search;

use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use crate::check_list::{check_list, check_span};
use crate::steps::{NOBODY, assert_timestamp, channel, close, history, id, listed, sent, sql, ticket};
use crate::support::{TestApp, eventually};

/// An event's `type`, `from` and `to`.
fn event(kind: &str, from: Value, to: Value) -> (String, Value, Value) {
    (kind.to_owned(), from, to)
}

#[actix_web::test]
async fn an_opened_ticket_shows_all_its_fields_everywhere() {
    let app = TestApp::start().await;
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
            "creationSource": "api",
            "unreadCount": 0,
            "lastMessage": null,
            "wrapupType": null,
            "wrapupNote": null,
            "reopenCount": 0,
            "openedAt": at,
            "firstResponseAt": null,
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
async fn a_ticket_without_a_queue_named_goes_to_the_channels_queue() {
    let app = TestApp::start().await;
    let contact = app.contact("5511900000001").await;
    let on = async |channel: Value| {
        let reply = app.api.post("/tickets", json!({"channelId": channel, "contactId": contact})).await;
        reply.data(201)["queue"].clone()
    };
    assert_eq!(on(json!(app.company.phone)).await, Value::Null);
    assert_eq!(on(json!(app.company.webchat)).await, json!({"id": app.company.support, "name": "Support"}));
    app.stop().await;
}

#[actix_web::test]
async fn a_second_opening_is_told_the_open_ticket() {
    let app = TestApp::start().await;
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
async fn an_opening_takes_only_a_user_of_the_queue() {
    let app = TestApp::start().await;
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
async fn a_transfer_moves_the_ticket_and_says_from_where_to_where() {
    let app = TestApp::start().await;
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
        // Who does not work in the new queue loses the ticket; who does keeps it.
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

    for nothing in [json!({}), json!({"queueId": null})] {
        assert_eq!(transfer(nothing).await.invalid_fields(), ["queueId"]);
    }
    for outsider in [json!({"userId": company.ana}), json!({"queueId": company.sales, "userId": company.ana})] {
        assert_eq!(transfer(outsider).await.invalid_fields(), ["userId"]);
    }
    assert_eq!(history(&app.api, open).await, expected, "a refused transfer left a trace");
    app.stop().await;
}

#[actix_web::test]
async fn a_closing_records_what_came_of_the_ticket() {
    let app = TestApp::start().await;
    let company = &app.company;
    let open = app.ticket("5511900000001").await.0;
    let body = json!({"wrapupTypeId": company.sold, "wrapupNote": "  two boxes "});
    let reply = app.api.post(&format!("/tickets/{open}/close"), body).await;
    let closed = reply.data(200);
    let sold = json!({"id": company.sold, "name": "Sold"});
    assert_eq!(closed["status"], "closed");
    assert_eq!(closed["wrapupType"], sold);
    assert_eq!(closed["wrapupNote"], "two boxes");
    assert_timestamp(&closed["closedAt"]);
    assert_eq!(closed["closedAt"], closed["updatedAt"]);
    assert_eq!(closed, &ticket(&app.api, open).await);
    let to = json!({"status": "closed", "wrapupType": sold, "wrapupNote": "two boxes"});
    assert_eq!(history(&app.api, open).await[1..], [event("closed", json!({"status": "open"}), to)]);
    app.stop().await;
}

#[actix_web::test]
async fn a_closing_takes_an_active_wrapup_of_the_tickets_queue_where_one_is_required() {
    let app = TestApp::start().await;
    let company = &app.company;
    let open = app.ticket("5511900000001").await.0;
    let close = async |body: Value| app.api.post(&format!("/tickets/{open}/close"), body).await;
    app.api.post(&format!("/tickets/{open}/transfer"), json!({"queueId": company.support})).await.data(200);
    assert_eq!(close(json!({})).await.invalid_fields(), ["wrapupTypeId"]);
    assert_eq!(close(json!({"wrapupTypeId": company.sold})).await.invalid_fields(), ["wrapupTypeId"]);
    assert_eq!(ticket(&app.api, open).await["status"], "open");

    sql(&app, "update wrapup_types set active = false where id = $1", company.solved.0).await;
    let directory = app.service.app.engine.directory();
    eventually("the type is inactive", || async {
        directory.company(company.id).is_some_and(|seen| !seen.wrapup_types[&company.solved].active)
    })
    .await;
    assert_eq!(close(json!({"wrapupTypeId": company.solved})).await.invalid_fields(), ["wrapupTypeId"]);
    // Without a queue any active type is good, and an inactive one is not.
    let free = app.ticket("5511900000002").await.0;
    let inactive = app.api.post(&format!("/tickets/{free}/close"), json!({"wrapupTypeId": company.solved})).await;
    assert_eq!(inactive.invalid_fields(), ["wrapupTypeId"]);
    app.api.post(&format!("/tickets/{free}/close"), json!({"wrapupTypeId": company.sold})).await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_reopening_clears_what_the_closing_recorded() {
    let app = TestApp::start().await;
    let company = &app.company;
    let number = "5511900000001";
    let first = app.ticket(number).await.0;
    sent(&app.api, json!({"ticketId": first, "type": "text", "body": "hello"})).await;
    let body = json!({"wrapupTypeId": company.sold, "wrapupNote": "done"});
    app.api.post(&format!("/tickets/{first}/close"), body).await.data(200);
    let reply = app.api.post(&format!("/tickets/{first}/reopen"), json!({})).await;
    let reopened = reply.data(200);
    assert_eq!(reopened["status"], "open");
    assert_eq!(reopened["reopenCount"], 1);
    for cleared in ["wrapupType", "wrapupNote", "closedAt", "firstResponseAt"] {
        assert_eq!(reopened[cleared], Value::Null, "{cleared}");
    }
    assert_eq!(reopened["openedAt"], reopened["updatedAt"], "openedAt is not of the current opening");
    assert_eq!(reopened["lastMessage"]["body"], "hello");
    assert_eq!(reopened, &ticket(&app.api, first).await);
    let from = json!({"status": "closed", "wrapupType": {"id": company.sold, "name": "Sold"}, "wrapupNote": "done"});
    assert_eq!(history(&app.api, first).await[2..], [event("reopened", from, json!({"status": "open"}))]);

    app.api.post(&format!("/tickets/{first}/reopen"), json!({})).await.error(409, "ERR_API_CONFLICT");
    close(&app.api, first).await;
    let second = app.ticket(number).await.0;
    let refused = app.api.post(&format!("/tickets/{first}/reopen"), json!({})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["ticketId"], second);
    assert_eq!(ticket(&app.api, first).await["reopenCount"], 1);
    app.stop().await;
}

#[actix_web::test]
async fn the_wrapup_of_a_closed_ticket_can_be_changed_and_of_an_open_one_not() {
    let app = TestApp::start().await;
    let company = &app.company;
    let open = app.ticket("5511900000001").await.0;
    let set = async |body: Value| app.api.put(&format!("/tickets/{open}/wrapup"), body).await;
    set(json!({"wrapupTypeId": company.sold})).await.error(409, "ERR_API_CONFLICT");
    close(&app.api, open).await;

    let sold = json!({"id": company.sold, "name": "Sold"});
    let solved = json!({"id": company.solved, "name": "Solved"});
    let steps = [
        (
            json!({"wrapupTypeId": company.sold, "wrapupNote": "first"}),
            json!({"wrapupType": sold, "wrapupNote": "first"}),
        ),
        (json!({"wrapupTypeId": company.solved}), json!({"wrapupType": solved, "wrapupNote": "first"})),
        (
            json!({"wrapupTypeId": company.solved, "wrapupNote": null}),
            json!({"wrapupType": solved, "wrapupNote": null}),
        ),
    ];
    let mut before = json!({"wrapupType": null, "wrapupNote": null});
    let mut expected = history(&app.api, open).await;
    for (body, after) in steps {
        let reply = set(body).await;
        let changed = reply.data(200);
        assert_eq!(json!({"wrapupType": changed["wrapupType"], "wrapupNote": changed["wrapupNote"]}), after);
        assert_eq!(changed["status"], "closed");
        expected.push(event("wrapup_changed", before, after.clone()));
        before = after;
    }
    assert_eq!(history(&app.api, open).await, expected);
    app.stop().await;
}

#[actix_web::test]
async fn a_note_is_a_message_nobody_is_sent() {
    let app = TestApp::start().await;
    let open = app.ticket("5511900000001").await.0;
    let before = ticket(&app.api, open).await;
    let reply = app.api.post(&format!("/tickets/{open}/notes"), json!({"body": " call back "})).await;
    let note = reply.data(201);
    assert_timestamp(&note["createdAt"]);
    assert_eq!(
        note,
        &json!({
            "id": id(note), "jobId": null, "ticketId": open, "contactId": before["contact"]["id"],
            "channelId": app.company.phone, "direction": "internal", "type": "note", "body": "call back",
            "media": null, "template": null, "interactive": null, "quotedMessageId": null, "status": "sent",
            "error": null, "user": null, "integration": note["integration"], "source": "api",
            "createdAt": note["createdAt"], "sentAt": note["createdAt"],
            "deliveredAt": null, "readAt": null,
        })
    );
    assert_eq!(app.api.all(&format!("/tickets/{open}/messages")).await, std::slice::from_ref(note));
    let after = ticket(&app.api, open).await;
    assert_eq!(after["lastMessage"], Value::Null);
    assert_eq!(after["firstResponseAt"], Value::Null);
    assert_eq!(after["unreadCount"], 0);
    let to = json!({"messageId": id(note)});
    assert_eq!(history(&app.api, open).await[1..], [event("note_added", Value::Null, to)]);
    app.stop().await;
}

#[actix_web::test]
async fn reading_a_ticket_counts_its_unread_messages_down_once() {
    let app = TestApp::start().await;
    let (session, _) = app.session("visitor").await;
    let path = format!("/webchat/sessions/{session}/messages");
    let first = app.api.post(&path, json!({"body": "one"})).await.data(201).clone();
    let second = app.api.post(&path, json!({"body": "two"})).await.data(201).clone();
    let open = first["ticketId"].as_i64().expect("ticket");
    let unread = ticket(&app.api, open).await;
    assert_eq!(unread["unreadCount"], 2);
    assert_eq!(unread["creationSource"], "contact");
    assert_eq!(
        unread["lastMessage"],
        json!({"id": id(&second), "body": "two", "direction": "inbound", "createdAt": second["createdAt"]})
    );

    for _ in 0..2 {
        let reply = app.api.post(&format!("/tickets/{open}/read"), json!({})).await;
        assert_eq!(reply.data(200)["unreadCount"], 0);
    }
    let read = event("read", json!({"unreadCount": 2}), json!({"unreadCount": 0}));
    assert_eq!(history(&app.api, open).await[1..], [read]);
    for message in app.api.all(&format!("/tickets/{open}/messages")).await {
        assert_timestamp(&message["readAt"]);
        assert_eq!(message["status"], "received");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_closed_ticket_says_so_to_what_only_an_open_one_takes() {
    let app = TestApp::start().await;
    let closed = app.ticket("5511900000001").await.0;
    close(&app.api, closed).await;
    let before = (ticket(&app.api, closed).await, history(&app.api, closed).await);
    for (verb, body) in [
        ("transfer", json!({"queueId": app.company.sales})),
        ("close", json!({})),
        ("notes", json!({"body": "too late"})),
    ] {
        let refused = app.api.post(&format!("/tickets/{closed}/{verb}"), body).await;
        assert_eq!(refused.error(409, "ERR_API_TICKET_CLOSED")["ticketId"], closed, "{verb}");
    }
    let sent = app.api.post("/messages", json!({"ticketId": closed, "type": "text", "body": "too late"})).await;
    assert_eq!(sent.error(409, "ERR_API_TICKET_CLOSED")["ticketId"], closed);
    assert_eq!((ticket(&app.api, closed).await, history(&app.api, closed).await), before);
    app.stop().await;
}

#[actix_web::test]
async fn a_closing_needs_no_body() {
    let app = TestApp::start().await;
    let open = app.ticket("5511900000001").await.0;
    let request = app.api.request(reqwest::Method::POST, &format!("/tickets/{open}/close"));
    assert_eq!(crate::support::Reply::of(request).await.data(200)["status"], "closed");
    let request = app.api.request(reqwest::Method::POST, &format!("/tickets/{open}/reopen"));
    assert_eq!(crate::support::Reply::of(request).await.data(200)["status"], "open");
    app.stop().await;
}

#[actix_web::test]
async fn every_filter_finds_its_tickets_and_no_others() {
    let app = TestApp::start().await;
    let company = &app.company;
    let (other, other_api) = app.another_company().await;
    let other_contact = json!({"channelId": other.phone, "number": "5511900000001", "type": "text", "body": "x"});
    sent(&other_api, other_contact).await;

    let open = async |channel: Value, number: &str, queue: Value, user: Value| {
        let contact = app.contact(number).await;
        let body = json!({"channelId": channel, "contactId": contact, "queueId": queue, "userId": user});
        (id(app.api.post("/tickets", body).await.data(201)), contact)
    };
    let phone = json!(company.phone);
    let (plain, contact) = open(phone.clone(), "5511900000001", Value::Null, Value::Null).await;
    let (support, _) = open(phone.clone(), "5511900000002", json!(company.support), json!(company.ana)).await;
    let (sales, _) = open(phone.clone(), "5511900000003", json!(company.sales), json!(company.ben)).await;
    let (web, _) = open(json!(company.webchat), "5511900000001", Value::Null, Value::Null).await;
    let (sold, _) = open(phone.clone(), "5511900000004", json!(company.sales), Value::Null).await;
    let body = json!({"wrapupTypeId": company.sold});
    app.api.post(&format!("/tickets/{sold}/close"), body).await.data(200);
    let (solved, _) = open(phone, "5511900000005", json!(company.support), json!(company.ben)).await;
    let body = json!({"wrapupTypeId": company.solved});
    app.api.post(&format!("/tickets/{solved}/close"), body).await.data(200);

    let cases = [
        ("".to_owned(), vec![plain, support, sales, web, sold, solved]),
        ("status=open".to_owned(), vec![plain, support, sales, web]),
        ("status=closed".to_owned(), vec![sold, solved]),
        (format!("queueId={}", company.support), vec![support, web, solved]),
        (format!("queueId={}", company.sales), vec![sales, sold]),
        (format!("userId={}", company.ana), vec![support]),
        (format!("userId={}", company.ben), vec![sales, solved]),
        (format!("contactId={contact}"), vec![plain, web]),
        (format!("channelId={}", company.webchat), vec![web]),
        ("unassigned=true".to_owned(), vec![plain, web, sold]),
        ("unassigned=false".to_owned(), vec![support, sales, solved]),
        (format!("wrapupTypeId={}", company.sold), vec![sold]),
        (format!("wrapupTypeId={}", company.solved), vec![solved]),
        (format!("queueId={}&status=closed&unassigned=true", company.sales), vec![sold]),
        (format!("queueId={}&userId={}", company.sales, company.ana), vec![]),
    ];
    for (query, expected) in cases {
        assert_eq!(listed(&app.api, &format!("/tickets?{query}")).await, expected, "{query}");
    }
    check_list(&app, "/tickets", &[plain, support, sales, web, sold, solved], &["created", "updated"]).await;
    check_list(&app, "/tickets?status=open", &[plain, support, sales, web], &["created", "updated"]).await;
    check_span(&app, "/tickets", "opened").await;
    check_span(&app, "/tickets", "closed").await;
    app.stop().await;
}

#[actix_web::test]
async fn what_belongs_to_another_company_looks_like_what_does_not_exist() {
    let app = TestApp::start().await;
    let company = &app.company;
    let (other, other_api) = app.another_company().await;
    let foreign =
        sent(&other_api, json!({"channelId": other.phone, "number": "5511900000009", "type": "text", "body": "x"}))
            .await;
    let (foreign_ticket, foreign_contact) = (foreign["ticketId"].clone(), foreign["contactId"].clone());
    let open = app.ticket("5511900000001").await.0;
    let contact = ticket(&app.api, open).await["contact"]["id"].clone();
    let nobody = app.api.get(&format!("/tickets/{NOBODY}")).await;
    nobody.error(404, "ERR_API_NOT_FOUND");
    let nobody = nobody.body;

    for path in ["", "/messages", "/events"] {
        for absent in [&foreign_ticket, &json!(NOBODY)] {
            assert_eq!(app.api.get(&format!("/tickets/{absent}{path}")).await.body, nobody, "{path}");
        }
    }
    for (verb, body) in [
        ("transfer", json!({"userId": null})),
        ("close", json!({})),
        ("reopen", json!({})),
        ("read", json!({})),
        ("notes", json!({"body": "x"})),
    ] {
        for absent in [&foreign_ticket, &json!(NOBODY)] {
            assert_eq!(app.api.post(&format!("/tickets/{absent}/{verb}"), body.clone()).await.body, nobody, "{verb}");
        }
    }
    let body = json!({"wrapupTypeId": company.sold});
    assert_eq!(app.api.put(&format!("/tickets/{foreign_ticket}/wrapup"), body).await.body, nobody);

    for absent in [json!(other.support), json!(NOBODY), json!(-1)] {
        let body = json!({"queueId": absent});
        assert_eq!(app.api.post(&format!("/tickets/{open}/transfer"), body).await.body, nobody, "queueId {absent}");
        let body = json!({"channelId": company.webchat, "contactId": contact, "queueId": absent});
        assert_eq!(app.api.post("/tickets", body).await.body, nobody, "queueId {absent}");
    }
    for absent in [json!(other.ana), json!(NOBODY)] {
        let body = json!({"userId": absent});
        assert_eq!(app.api.post(&format!("/tickets/{open}/transfer"), body).await.body, nobody, "userId {absent}");
    }
    for absent in [json!(other.sold), json!(NOBODY)] {
        let body = json!({"wrapupTypeId": absent});
        assert_eq!(app.api.post(&format!("/tickets/{open}/close"), body).await.body, nobody, "wrapupTypeId {absent}");
    }
    for (channel, contact) in [(json!(other.phone), contact.clone()), (json!(company.webchat), foreign_contact.clone())]
    {
        let body = json!({"channelId": channel, "contactId": contact});
        assert_eq!(app.api.post("/tickets", body).await.body, nobody);
    }
    for (filter, foreign) in [
        ("queueId", json!(other.support)),
        ("userId", json!(other.ana)),
        ("contactId", foreign_contact),
        ("channelId", json!(other.phone)),
        ("wrapupTypeId", json!(other.sold)),
    ] {
        for absent in [foreign, json!(NOBODY), json!(-1)] {
            assert_eq!(app.api.get(&format!("/tickets?{filter}={absent}")).await.body, nobody, "{filter}={absent}");
        }
    }
    assert_eq!(listed(&app.api, "/tickets").await, [open]);
    assert_eq!(history(&app.api, open).await.len(), 1, "something was changed");
    assert_eq!(ticket(&other_api, foreign_ticket.as_i64().expect("id")).await["status"], "open");
    app.stop().await;
}

#[actix_web::test]
async fn messages_and_events_of_a_ticket_are_listed_as_every_list_is() {
    let app = TestApp::start().await;
    let social = channel(&app, "Social", ChannelType::Messenger).await;
    let contact = app.contact("5511900000001").await;
    let body = json!({"channelId": social, "contactId": contact});
    let elsewhere = id(app.api.post("/tickets", body).await.data(201));
    app.api.post(&format!("/tickets/{elsewhere}/notes"), json!({"body": "elsewhere"})).await.data(201);

    let open = app.ticket("5511900000001").await.0;
    let mut messages = Vec::new();
    for round in 0..3 {
        let body = json!({"ticketId": open, "type": "text", "body": format!("message {round}")});
        messages.push(id(&sent(&app.api, body).await));
        let note = app.api.post(&format!("/tickets/{open}/notes"), json!({"body": format!("note {round}")})).await;
        messages.push(id(note.data(201)));
    }
    check_list(&app, &format!("/tickets/{open}/messages"), &messages, &["created"]).await;
    let events = listed(&app.api, &format!("/tickets/{open}/events")).await;
    assert_eq!(events.len(), 4);
    check_list(&app, &format!("/tickets/{open}/events"), &events, &["created"]).await;
    app.stop().await;
}
