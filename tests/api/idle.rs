//! Actors that retire: their state is in the tables, and no client notices.

use std::time::Duration;

use futures_util::future::join_all;
use hotline_actors::{EngineOptions, clock};
use serde_json::{Value, json};

use crate::steps::{close, history, id, listed, sent, ticket};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, eventually};

/// A year, so that no session ends because its visitor is away, even while a test moves the clock.
const SESSION_IDLE_AFTER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A service whose actors retire after this time, once what they did is in the tables.
async fn start_with_idle_time(idle_after: Duration, sweep_every: Duration) -> OwnApp {
    let session_idle_after = SESSION_IDLE_AFTER;
    let engine = EngineOptions { idle_after, session_idle_after, sweep_every, ..TestOptions::default().engine };
    OwnApp::start_with(TestOptions { engine, ..TestOptions::default() }).await
}

async fn wait_until_retired(app: &OwnApp) {
    eventually("every actor has retired", || async { app.service.app.engine.hot() == (0, 0) }).await;
}

#[actix_web::test]
async fn an_idle_ticket_retires_and_comes_back_as_it_was() {
    let idle_after = TestOptions::default().engine.idle_after;
    let app = start_with_idle_time(idle_after, Duration::from_millis(50)).await;
    let retire_all = async || {
        clock::advance(idle_after);
        eventually("every actor has retired", || async {
            // An actor that is used meanwhile retires a little later.
            clock::advance(Duration::from_secs(1));
            app.service.app.engine.hot() == (0, 0)
        })
        .await;
    };
    let company = &app.company;
    let open = app.ticket("5511900000001").await.0;
    let body = json!({"queueId": company.support, "userId": company.ana});
    app.api.post(&format!("/tickets/{open}/transfer"), body).await.data(200);
    sent(&app.api, json!({"ticketId": open, "type": "text", "body": "hello"})).await;
    let closed = app.ticket("5511900000002").await.0;
    let body = json!({"wrapupTypeId": company.sold, "wrapupNote": "done"});
    app.api.post(&format!("/tickets/{closed}/close"), body).await.data(200);
    let (session, _) = app.session("visitor").await;
    let message = json!({"body": "hi", "clientId": "c-1"});
    let first = app.api.post(&format!("/webchat/sessions/{session}/messages"), message.clone()).await.data(201).clone();
    let webchat_ticket = first["ticketId"].as_i64().expect("ticket");
    assert_ne!(app.service.app.engine.hot(), (0, 0));

    let mut before = Vec::new();
    for ticket_id in [open, closed, webchat_ticket] {
        before.push((ticket(&app.api, ticket_id).await, history(&app.api, ticket_id).await));
    }
    let session_before = app.api.get(&format!("/webchat/sessions/{session}")).await.body;
    retire_all().await;
    for (shown, events) in before {
        assert_eq!(ticket(&app.api, id(&shown)).await, shown);
        assert_eq!(history(&app.api, id(&shown)).await, events);
    }
    assert_eq!(app.api.get(&format!("/webchat/sessions/{session}")).await.body, session_before);
    retire_all().await;

    // Actors that come back decide as before: they know open tickets, messages and their ids.
    let contact = ticket(&app.api, open).await["contact"]["id"].clone();
    let again = app.api.post("/tickets", json!({"channelId": company.phone, "contactId": contact})).await;
    assert_eq!(again.error(409, "ERR_API_CONFLICT")["ticketId"], open);
    let repeated = app.api.post(&format!("/webchat/sessions/{session}/messages"), message).await;
    assert_eq!(repeated.data(201), &first);
    let answer = sent(&app.api, json!({"ticketId": webchat_ticket, "type": "text", "body": "welcome"})).await;
    assert_eq!(answer["ticketId"], webchat_ticket);
    let to = json!({"channelId": company.phone, "number": "5511900000002", "type": "text", "body": "x", "reopenTicket": true});
    assert_eq!(sent(&app.api, to).await["ticketId"], closed);
    assert_eq!(ticket(&app.api, closed).await["reopenCount"], 1);
    app.stop().await;
}

#[actix_web::test]
async fn no_send_is_lost_while_actors_retire_all_the_time() {
    const WAVES: usize = 6;
    const CLIENTS: usize = 16;
    const CONTACTS: usize = 4;
    let app = start_with_idle_time(Duration::ZERO, Duration::from_millis(2)).await;
    let mut expected: Vec<String> = Vec::new();
    for wave in 0..WAVES {
        let clients = (0..CLIENTS).map(|client| {
            let api = app.api.clone();
            let phone = app.company.phone;
            async move {
                for round in 0..4 {
                    let number = format!("551190000000{}", (client + round) % CONTACTS);
                    let body = format!("{wave}/{client}/{round}");
                    let send = json!({"channelId": phone, "number": number, "type": "text", "body": body});
                    // Under load, some of many concurrent requests are answered as busy at first.
                    api.post_while_busy("/messages", &send).await.data(202);
                }
            }
        });
        join_all(clients).await;
        expected.extend((0..CLIENTS).flat_map(|client| (0..4).map(move |round| format!("{wave}/{client}/{round}"))));
        wait_until_retired(&app).await;
    }
    let messages = app.api.all("/messages").await;
    let mut bodies: Vec<String> =
        messages.iter().map(|message| message["body"].as_str().expect("body").to_owned()).collect();
    bodies.sort();
    expected.sort();
    assert_eq!(bodies, expected);
    let tickets = app.api.all("/tickets").await;
    assert_eq!(tickets.len(), CONTACTS, "a contact got a second ticket");
    for shown in &tickets {
        let last = messages.iter().filter(|message| message["ticketId"] == shown["id"]).map(id).max();
        assert_eq!(shown["lastMessage"]["id"].as_i64(), last, "an older state overwrote a newer one");
        assert_eq!(&ticket(&app.api, id(shown)).await, shown);
    }
    app.stop().await;
}

#[actix_web::test]
async fn no_count_is_lost_while_actors_retire_all_the_time() {
    const VISITORS: usize = 4;
    const WAVES: usize = 5;
    const MESSAGES: usize = 8;
    let app = start_with_idle_time(Duration::ZERO, Duration::from_millis(2)).await;
    let mut sessions = Vec::new();
    for visitor in 0..VISITORS {
        sessions.push(app.session(&format!("visitor-{visitor}")).await.0);
    }
    for wave in 0..WAVES {
        let api = &app.api;
        let sends = sessions.iter().flat_map(|session| {
            (0..MESSAGES).map(move |index| {
                let body = json!({"body": format!("{wave}/{index}"), "clientId": format!("{wave}/{index}")});
                let path = format!("/webchat/sessions/{session}/messages");
                async move {
                    let first = api.post_while_busy(&path, &body).await.data(201).clone();
                    assert_eq!(api.post_while_busy(&path, &body).await.data(201), &first, "a message was stored twice");
                }
            })
        });
        join_all(sends).await;
        wait_until_retired(&app).await;
    }
    let tickets = app.api.all("/tickets").await;
    assert_eq!(tickets.len(), VISITORS);
    for shown in &tickets {
        assert_eq!(shown["unreadCount"], WAVES * MESSAGES, "{shown}");
        assert_eq!(listed(&app.api, &format!("/tickets/{}/messages", shown["id"])).await.len(), WAVES * MESSAGES);
    }
    app.stop().await;
}

#[actix_web::test]
async fn at_most_one_ticket_is_open_while_actors_retire_all_the_time() {
    let app = start_with_idle_time(Duration::ZERO, Duration::from_millis(2)).await;
    let contact = app.contact("5511900000001").await;
    let body = json!({"channelId": app.company.phone, "contactId": contact});
    let clients = (0..12).map(|_| {
        let api = app.api.clone();
        let body = body.clone();
        async move {
            for _ in 0..8 {
                let reply = api.post_while_busy("/tickets", &body).await;
                let ticket: Value = match reply.status.as_u16() {
                    201 => reply.body["data"]["id"].clone(),
                    _ => reply.error(409, "ERR_API_CONFLICT")["ticketId"].clone(),
                };
                let closed = api.post_while_busy(&format!("/tickets/{ticket}/close"), &json!({})).await;
                assert!([200, 409].contains(&closed.status.as_u16()), "{}", closed.body);
                let reopened = api.post_while_busy(&format!("/tickets/{ticket}/reopen"), &json!({})).await;
                assert!([200, 409].contains(&reopened.status.as_u16()), "{}", reopened.body);
            }
        }
    });
    join_all(clients).await;
    let open = listed(&app.api, "/tickets?status=open").await;
    assert!(open.len() <= 1, "{open:?}");
    for shown in app.api.all("/tickets").await {
        let events = history(&app.api, id(&shown)).await;
        let mut opened = events.iter().map(|(kind, ..)| kind != "closed");
        assert!(opened.clone().enumerate().all(|(index, opened)| opened == (index % 2 == 0)), "{events:?}");
        assert_eq!(opened.next_back(), Some(shown["status"] == "open"), "{shown} after {events:?}");
    }
    for ticket in open {
        close(&app.api, ticket).await;
    }
    wait_until_retired(&app).await;
    app.api.post("/tickets", body).await.data(201);
    app.stop().await;
}
