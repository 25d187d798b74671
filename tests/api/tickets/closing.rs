//! Closing and reopening tickets, and their wrap-ups.

use serde_json::{Value, json};

use super::event;
use crate::steps::{assert_timestamp, close, history, sent, sql, ticket};
use crate::support::TestApp;

#[actix_web::test]
async fn a_closing_records_the_wrapup_and_the_time() {
    let app = TestApp::shared().await;
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
async fn a_queue_that_requires_a_wrapup_accepts_only_its_own_active_types() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let open = app.ticket("5511900000001").await.0;
    let close = async |body: Value| app.api.post(&format!("/tickets/{open}/close"), body).await;
    app.api.post(&format!("/tickets/{open}/transfer"), json!({"queueId": company.support})).await.data(200);
    assert_eq!(close(json!({})).await.invalid_fields(), ["wrapupTypeId"]);
    assert_eq!(close(json!({"wrapupTypeId": company.sold})).await.invalid_fields(), ["wrapupTypeId"]);
    assert_eq!(ticket(&app.api, open).await["status"], "open");

    sql(&app, "update wrapup_types set active = false where id = $1", company.solved.0).await;
    app.refreshed().await;
    assert_eq!(close(json!({"wrapupTypeId": company.solved})).await.invalid_fields(), ["wrapupTypeId"]);
    // Without a queue any active type is accepted, and an inactive one is refused.
    let free = app.ticket("5511900000002").await.0;
    let inactive = app.api.post(&format!("/tickets/{free}/close"), json!({"wrapupTypeId": company.solved})).await;
    assert_eq!(inactive.invalid_fields(), ["wrapupTypeId"]);
    app.api.post(&format!("/tickets/{free}/close"), json!({"wrapupTypeId": company.sold})).await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_reopening_clears_what_the_closing_recorded() {
    let app = TestApp::shared().await;
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
    assert_eq!(reopened["openedAt"], reopened["updatedAt"], "openedAt is not the time of the reopening");
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
async fn only_the_wrapup_of_a_closed_ticket_can_be_changed() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let open = app.ticket("5511900000001").await.0;
    let set_wrapup = async |body: Value| app.api.put(&format!("/tickets/{open}/wrapup"), body).await;
    set_wrapup(json!({"wrapupTypeId": company.sold})).await.error(409, "ERR_API_CONFLICT");
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
        let reply = set_wrapup(body).await;
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
async fn requests_that_need_an_open_ticket_are_refused_for_a_closed_one() {
    let app = TestApp::shared().await;
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
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    let request = app.api.request(reqwest::Method::POST, &format!("/tickets/{open}/close"));
    assert_eq!(crate::support::Reply::of(request).await.data(200)["status"], "closed");
    let request = app.api.request(reqwest::Method::POST, &format!("/tickets/{open}/reopen"));
    assert_eq!(crate::support::Reply::of(request).await.data(200)["status"], "open");
    app.stop().await;
}
