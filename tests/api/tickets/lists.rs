//! The lists of tickets, which never show records of other companies.

use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use crate::check_list::{check_list, check_span};
use crate::steps::{NOBODY, channel, history, id, listed, sent, ticket};
use crate::support::TestApp;

#[actix_web::test]
async fn every_filter_finds_its_tickets_and_no_others() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let (other, other_api) = app.another_company().await;
    let message = json!({"channelId": other.phone, "number": "5511900000001", "type": "text", "body": "x"});
    sent(&other_api, message).await;

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
    let app = TestApp::shared().await;
    let company = &app.company;
    let (other, other_api) = app.another_company().await;
    let foreign =
        sent(&other_api, json!({"channelId": other.phone, "number": "5511900000009", "type": "text", "body": "x"}))
            .await;
    let (foreign_ticket, foreign_contact) = (foreign["ticketId"].clone(), foreign["contactId"].clone());
    let open = app.ticket("5511900000001").await.0;
    let contact = ticket(&app.api, open).await["contact"]["id"].clone();
    let missing = app.api.get(&format!("/tickets/{NOBODY}")).await;
    missing.error(404, "ERR_API_NOT_FOUND");
    let missing = missing.body;

    for path in ["", "/messages", "/events"] {
        for absent in [&foreign_ticket, &json!(NOBODY)] {
            assert_eq!(app.api.get(&format!("/tickets/{absent}{path}")).await.body, missing, "{path}");
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
            assert_eq!(app.api.post(&format!("/tickets/{absent}/{verb}"), body.clone()).await.body, missing, "{verb}");
        }
    }
    let body = json!({"wrapupTypeId": company.sold});
    assert_eq!(app.api.put(&format!("/tickets/{foreign_ticket}/wrapup"), body).await.body, missing);

    for absent in [json!(other.support), json!(NOBODY), json!(-1)] {
        let body = json!({"queueId": absent});
        assert_eq!(app.api.post(&format!("/tickets/{open}/transfer"), body).await.body, missing, "queueId {absent}");
        let body = json!({"channelId": company.webchat, "contactId": contact, "queueId": absent});
        assert_eq!(app.api.post("/tickets", body).await.body, missing, "queueId {absent}");
    }
    for absent in [json!(other.ana), json!(NOBODY)] {
        let body = json!({"userId": absent});
        assert_eq!(app.api.post(&format!("/tickets/{open}/transfer"), body).await.body, missing, "userId {absent}");
    }
    for absent in [json!(other.sold), json!(NOBODY)] {
        let body = json!({"wrapupTypeId": absent});
        assert_eq!(app.api.post(&format!("/tickets/{open}/close"), body).await.body, missing, "wrapupTypeId {absent}");
    }
    for (channel, contact) in [(json!(other.phone), contact.clone()), (json!(company.webchat), foreign_contact.clone())]
    {
        let body = json!({"channelId": channel, "contactId": contact});
        assert_eq!(app.api.post("/tickets", body).await.body, missing);
    }
    for (filter, foreign) in [
        ("queueId", json!(other.support)),
        ("userId", json!(other.ana)),
        ("contactId", foreign_contact),
        ("channelId", json!(other.phone)),
        ("wrapupTypeId", json!(other.sold)),
    ] {
        for absent in [foreign, json!(NOBODY), json!(-1)] {
            assert_eq!(app.api.get(&format!("/tickets?{filter}={absent}")).await.body, missing, "{filter}={absent}");
        }
    }
    assert_eq!(listed(&app.api, "/tickets").await, [open]);
    assert_eq!(history(&app.api, open).await.len(), 1, "a refused request added an event");
    assert_eq!(ticket(&other_api, foreign_ticket.as_i64().expect("id")).await["status"], "open");
    app.stop().await;
}

#[actix_web::test]
async fn messages_and_events_of_a_ticket_are_paged_and_filtered_like_every_list() {
    let app = TestApp::shared().await;
    let social = channel(&app, "Social", ChannelType::Messenger).await;
    let contact = app.contact("5511900000001").await;
    let body = json!({"channelId": social, "contactId": contact});
    let other_ticket = id(app.api.post("/tickets", body).await.data(201));
    app.api.post(&format!("/tickets/{other_ticket}/notes"), json!({"body": "elsewhere"})).await.data(201);

    let open = app.ticket("5511900000001").await.0;
    let mut messages = Vec::new();
    for round in 0..3 {
        let body = json!({"ticketId": open, "type": "text", "body": format!("message {round}")});
        messages.push(id(&sent(&app.api, body).await));
        let note = app.api.post(&format!("/tickets/{open}/notes"), json!({"body": format!("note {round}")})).await;
        messages.push(id(note.data(201)));
    }
    check_list(&app, &format!("/tickets/{open}/messages"), &messages, &["created", "updated"]).await;
    let events = listed(&app.api, &format!("/tickets/{open}/events")).await;
    assert_eq!(events.len(), 4);
    check_list(&app, &format!("/tickets/{open}/events"), &events, &["created"]).await;
    app.stop().await;
}
