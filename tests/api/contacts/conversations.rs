//! Contacts that change while their tickets are hot.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{PATH, change_contact, create_contact, shown};
use crate::steps::{close, id, sent, ticket};
use crate::support::{OwnApp, TestApp};

#[actix_web::test]
async fn a_hot_ticket_shows_a_changed_contact_as_soon_as_the_change_is_answered() {
    let app = OwnApp::start().await;
    let ana = create_contact(&app.api, json!({"name": "Ana", "number": "5511900000001"})).await;
    let open = json!({"channelId": app.company.phone, "contactId": ana});
    // Three hot tickets: a closed one, an open one, and one on another channel.
    let first = id(app.api.post("/tickets", open.clone()).await.data(201));
    close(&app.api, first).await;
    let second = id(app.api.post("/tickets", open).await.data(201));
    let webchat = json!({"channelId": app.company.webchat, "contactId": ana});
    let third = id(app.api.post("/tickets", webchat).await.data(201));
    let hot = app.service.app.engine.hot();
    for round in 0..30 {
        let name = format!("Ana {round}");
        let number = format!("55119000{round:05}");
        let change = match round % 3 {
            0 => json!({"name": name, "number": number}),
            1 => json!({"name": name}),
            _ => json!({"name": name, "number": null}),
        };
        let now = change_contact(&app.api, ana, change).await;
        let expected = json!({"id": ana, "name": name, "number": now["number"]});
        for id in [first, second, third] {
            assert_eq!(ticket(&app.api, id).await["contact"], expected);
        }
        for listed in app.api.all(&format!("/tickets?contactId={ana}")).await {
            assert_eq!(listed["contact"], expected);
        }
    }
    assert_eq!(app.service.app.engine.hot(), hot, "a change loaded or evicted an actor");
    app.stop().await;
}

#[actix_web::test]
async fn a_send_to_a_number_finds_the_contact_that_has_it_now() {
    let app = TestApp::shared().await;
    let send = |number: &str| json!({"channelId": app.company.phone, "number": number, "type": "text", "body": "x"});
    let first = sent(&app.api, send("5511900000001")).await;
    let ana = first["contactId"].as_i64().expect("contact");
    change_contact(&app.api, ana, json!({"name": "Ana", "number": "5511900000002"})).await;
    let again = sent(&app.api, send("5511900000002")).await;
    assert_eq!((&again["contactId"], &again["ticketId"]), (&first["contactId"], &first["ticketId"]));
    let other = sent(&app.api, send("5511900000001")).await;
    assert_ne!(other["contactId"], first["contactId"], "the number still finds the contact that gave it up");
    // A contact without a number is not reached by phone, neither in the hot ticket nor in a new one.
    change_contact(&app.api, ana, json!({"number": null})).await;
    let to_contact = json!({"channelId": app.company.phone, "contactId": ana, "type": "text", "body": "x"});
    app.api.post("/messages", to_contact.clone()).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    let in_ticket = json!({"ticketId": first["ticketId"], "type": "text", "body": "x"});
    app.api.post("/messages", in_ticket).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    change_contact(&app.api, ana, json!({"number": "5511900000003"})).await;
    app.api.post("/messages", to_contact).await.data(202);
    app.stop().await;
}

#[actix_web::test]
async fn an_open_ticket_shows_its_contact_as_an_import_changed_it() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    let rows = json!([{"number": "5511900000001", "name": "Imported"}]);
    app.api.post("/contacts/import", json!({"contacts": rows})).await.data(200);
    assert_eq!(ticket(&app.api, open).await["contact"]["name"], "Imported");
    app.stop().await;
}

#[actix_web::test]
async fn the_last_change_of_a_contact_is_what_its_tickets_show() {
    let app = TestApp::shared().await;
    let ana = create_contact(&app.api, json!({"name": "Ana", "number": "5511900000001"})).await;
    let ticket_of = |reply: &Value| reply["ticketId"].as_i64().expect("ticket");
    for round in 0..12 {
        // Openings, closings and many changes at once.
        let renames = (0..8).map(async |index| {
            let name = json!({"name": format!("{round}/{index}")});
            app.api.put_while_busy(&format!("{PATH}/{ana}"), &name).await.data(200);
        });
        let sends = (0..8).map(async |_| {
            let body = json!({"channelId": app.company.phone, "contactId": ana, "type": "text", "body": "x", "closeTicket": false});
            let reply = app.api.post_while_busy("/messages", &body).await;
            let job = reply.data(202)["jobId"].as_str().expect("a job");
            let job = app.api.get_while_busy(&format!("/messages/jobs/{job}")).await;
            app.api.post(&format!("/tickets/{}/close", ticket_of(job.data(200))), json!({})).await;
        });
        tokio::join!(join_all(renames), join_all(sends));
        let name = shown(&app.api, ana).await["name"].clone();
        for listed in app.api.all(&format!("/tickets?contactId={ana}")).await {
            assert_eq!(listed["contact"]["name"], name);
            assert_eq!(ticket(&app.api, id(&listed)).await["contact"]["name"], name, "round {round}");
        }
        let open = json!({"channelId": app.company.phone, "contactId": ana});
        let opened = app.api.post("/tickets", open).await;
        if opened.status == 201 {
            assert_eq!(opened.data(201)["contact"]["name"], name);
            close(&app.api, id(opened.data(201))).await;
        }
    }
    app.stop().await;
}
