//! A defect in one command affects that command alone.

use serde_json::json;

use crate::support::OwnApp;
use crate::support::metrics::ScrapedMetrics;
use crate::support::service::TestOptions;

#[actix_web::test]
async fn a_panic_in_an_actor_costs_one_call_and_nothing_else() {
    let app = OwnApp::start_with(TestOptions { metrics: true, ..TestOptions::default() }).await;
    let metrics = app.service.metrics_listener.as_ref().expect("metrics are served").address;
    let errors = async || ScrapedMetrics::of(metrics).await.value("hotline_http_internal_errors_total");
    assert_eq!(errors().await, 0.0);
    let ticket = app.ticket("5511900000001").await;
    let other = app.ticket("5511900000002").await;
    let send = |ticket, body: &str| json!({"ticketId": ticket, "type": "text", "body": body});
    app.api.post("/messages", send(ticket, "before")).await.data(202);

    fail::cfg("ticket_decided", "1*panic(a defect)").expect("failpoint");
    let broken = app.api.post(&format!("/tickets/{ticket}/transfer"), json!({"queueId": app.company.sales})).await;
    broken.error(500, "ERR_API_INTERNAL");
    assert!(!broken.body.to_string().contains("a defect"), "the response reveals the defect: {}", broken.body);
    assert_eq!(errors().await, 1.0);

    // The next call finds the last durable state: the message is there, the transfer is not.
    let shown = app.api.get(&format!("/tickets/{ticket}")).await;
    assert_eq!(shown.data(200)["lastMessage"]["body"], "before");
    assert!(shown.data(200)["queue"].is_null(), "{}", shown.body);
    app.api.post("/messages", send(ticket, "after")).await.data(202);
    app.api.post(&format!("/tickets/{ticket}/transfer"), json!({"queueId": app.company.sales})).await.data(200);
    app.api.post("/messages", send(other, "untouched")).await.data(202);
    assert_eq!(app.api.all(&format!("/tickets/{ticket}/messages")).await.len(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn a_panic_while_a_ticket_is_opened_leaves_the_contact_free() {
    let app = OwnApp::start().await;
    let contact = app.contact("5511900000003").await;
    let open = json!({"channelId": app.company.phone, "contactId": contact});
    fail::cfg("ticket_opened", "1*panic(a defect)").expect("failpoint");
    app.api.post("/tickets", open.clone()).await.error(500, "ERR_API_INTERNAL");
    app.api.post("/tickets", open.clone()).await.data(201);
    app.api.post("/tickets", open).await.error(409, "ERR_API_CONFLICT");
    app.stop().await;
}
