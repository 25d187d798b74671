//! Merges of tickets of one contact and channel.

use std::collections::BTreeSet;

use hotline_persistence::tables::erasures::{self, Erasure, RemovedCounts, Traces};
use serde_json::{Value, json};

use super::{merge_tickets, texts};
use crate::organization::opened;
use crate::plain::{created, deleted};
use crate::steps::{NOBODY, close, history, id, sent, ticket};
use crate::support::{TestApp, check_events};

const ANA: &str = "5511900000001";

#[actix_web::test]
async fn a_merge_moves_a_closed_tickets_messages_and_history_into_another() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let contact = app.contact(ANA).await;
    let text = |body: &str| json!({"channelId": app.company.phone, "contactId": contact, "type": "text", "body": body});
    let first = sent(api, text("one")).await["ticketId"].as_i64().expect("ticket");
    let board = id(api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let card = json!({"boardId": board, "name": "Deal", "ticketId": first});
    let card = id(api.post("/crm/cards", card).await.data(201));
    close(api, first).await;
    let second = sent(api, text("two")).await["ticketId"].as_i64().expect("ticket");
    assert_ne!(first, second);
    // An open ticket is not merged into a closed one: new messages would have no ticket.
    let refused = merge_tickets(api, first, second).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "open_ticket");
    let merged = merge_tickets(api, second, first).await;
    assert_eq!(merged.data(200), &ticket(api, second).await);
    assert_eq!(merged.data(200)["status"], "open");
    assert_eq!(texts(api, second).await, ["one", "two"]);
    let kinds: Vec<String> = history(api, second).await.into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, ["opened", "closed", "opened", "merged"]);
    assert_eq!(history(api, second).await[3].1, json!({"ticketId": first}));
    assert_eq!(api.get(&format!("/crm/cards/{card}")).await.data(200)["ticketId"], second);
    let refused = api.post(&format!("/tickets/{first}/reopen"), json!({})).await;
    assert_eq!(refused.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": second}));
    for list in ["/messages", "/crm/cards"] {
        let refused = api.get(&format!("{list}?ticketId={first}")).await;
        assert_eq!(refused.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": second}), "{list}");
    }
    let refused = api.put(&format!("/crm/cards/{card}"), json!({"ticketId": first})).await;
    assert_eq!(refused.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": second}));
    assert_eq!(sent(api, text("three")).await["ticketId"], second);
    let events = api.get("/events?types=ticket.merged,card.updated").await;
    let types: Vec<_> = events.data(200).as_array().expect("events").iter().map(|event| &event["type"]).collect();
    assert_eq!(types, ["ticket.merged", "card.updated"]);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_closed_ticket_takes_over_the_user_of_another_and_an_open_one_does_not() {
    let app = TestApp::shared().await;
    let (api, ana) = (&app.api, app.company.ana);
    let first = opened(&app, ANA, json!({"userId": ana})).await;
    close(api, first).await;
    let second = opened(&app, ANA, json!({})).await;
    close(api, second).await;
    merge_tickets(api, second, first).await.data(200);
    deleted(api, &format!("/users/{ana}")).await;
    assert_eq!(ticket(api, second).await["assignedTo"], json!({"id": ana, "name": "Ana"}));
    let third = opened(&app, ANA, json!({})).await;
    let merged = merge_tickets(api, third, second).await;
    assert_eq!((&merged.data(200)["status"], &merged.data(200)["assignedTo"]), (&json!("open"), &Value::Null));
    assert_eq!(ticket(api, third).await["assignedTo"], Value::Null);
    app.stop().await;
}

#[actix_web::test]
async fn an_open_ticket_does_not_get_the_queue_of_a_closed_one() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let queue = created(api, "/queues", json!({"name": "Short"})).await;
    let closed = opened(&app, ANA, json!({"queueId": queue})).await;
    close(api, closed).await;
    // No ticket can be opened in this queue, or transferred to it.
    api.put(&format!("/queues/{queue}"), json!({"active": false})).await.data(200);
    let open = opened(&app, ANA, json!({})).await;
    let merged = merge_tickets(api, open, closed).await;
    assert_eq!((&merged.data(200)["status"], &merged.data(200)["queue"]), (&json!("open"), &Value::Null));
    assert_eq!(ticket(api, open).await["queue"], Value::Null);
    app.stop().await;
}

#[actix_web::test]
async fn a_job_has_all_its_messages_even_if_those_of_a_merged_ticket_lie_between() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let contact = app.contact(ANA).await;
    let text = |body: &str| json!({"channelId": app.company.phone, "contactId": contact, "type": "text", "body": body});
    let first = sent(api, text("first of the job")).await;
    let ticket = first["ticketId"].as_i64().expect("ticket");
    close(api, ticket).await;
    let other = sent(api, text("between")).await["ticketId"].as_i64().expect("ticket");
    // At least as many messages as a job can have.
    for _ in 0..10 {
        sent(api, text("between")).await;
    }
    merge_tickets(api, other, ticket).await.data(200);
    // As if both tickets had numbered their messages at the same time.
    let last = sent(api, text("last of the job")).await;
    sqlx::query("update messages set job_id = $2, status = 'failed' where company_id = $1 and id = $3")
        .bind(app.company.id)
        .bind(id(&first))
        .bind(id(&last))
        .execute(&app.db)
        .await
        .expect("the job has two messages");
    let job = api.get(&format!("/messages/jobs/job_{}", id(&first))).await;
    assert_eq!(job.data(200)["status"], "failed", "the last message of the job is missing");
    app.stop().await;
}

#[actix_web::test]
async fn an_erasure_covers_the_tickets_that_were_merged_into_others() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let contact = app.contact(ANA).await;
    let text = || json!({"channelId": app.company.phone, "contactId": contact, "type": "text", "body": "x"});
    let first = sent(api, text()).await["ticketId"].as_i64().expect("ticket");
    close(api, first).await;
    let second = sent(api, text()).await["ticketId"].as_i64().expect("ticket");
    merge_tickets(api, second, first).await.data(200);
    close(api, second).await;
    let third = sent(api, text()).await["ticketId"].as_i64().expect("ticket");
    merge_tickets(api, third, second).await.data(200);
    let mut erasure = Erasure {
        company_id: app.company.id,
        contact_id: contact,
        traces: Traces::default(),
        removed: RemovedCounts::new(),
        failure: None,
        done_at: None,
        is_readable: true,
    };
    assert!(erasures::collect_traces(&app.db, &mut erasure).await.expect("collected"));
    assert_eq!(erasure.traces.tickets, BTreeSet::from([first, second, third]));
    assert_eq!(erasure.removed["tickets"], 1);
    app.stop().await;
}

#[actix_web::test]
async fn tickets_of_different_conversations_are_not_merged() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let (one, other) = (app.ticket(ANA).await.0, app.ticket("5511900000002").await.0);
    assert_eq!(merge_tickets(api, one, one).await.invalid_fields(), ["fromTicketId"]);
    let refused = merge_tickets(api, one, other).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "other_conversation");
    for (into, from) in [(one, NOBODY), (NOBODY, one)] {
        merge_tickets(api, into, from).await.error(404, "ERR_API_NOT_FOUND");
    }
    let (company, neighbour) = app.another_company().await;
    let contact = id(neighbour.post("/contacts", json!({"name": "Theirs"})).await.data(201));
    let open = neighbour.post("/tickets", json!({"channelId": company.webchat, "contactId": contact})).await;
    let theirs = id(open.data(201));
    merge_tickets(api, one, theirs).await.error(404, "ERR_API_NOT_FOUND");
    merge_tickets(&neighbour, theirs, one).await.error(404, "ERR_API_NOT_FOUND");
    // The refused merges have changed nothing.
    assert_eq!((ticket(api, one).await["status"].clone(), texts(api, one).await.len()), (json!("open"), 0));
    app.stop().await;
}
