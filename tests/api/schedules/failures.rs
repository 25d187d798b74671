//! Scheduled messages that are refused at once, and those that fail when their time comes.

use futures_util::future::join;
use serde_json::{Value, json};

use super::{TEN_MINUTES_MS, in_ms, move_clock_to, request_to, schedule, shown, time, wait_for_status};
use crate::steps::{NOBODY, channel, id, listed, sql};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, TestApp, eventually};
use hotline_persistence::tables::channels::ChannelType;

#[actix_web::test]
async fn every_wrong_field_is_named_and_unknown_records_are_not_found() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await.0;
    let good = request_to(&app, contact, "hello", &in_ms(3_600_000));
    let existing_id = schedule(&app, good.clone()).await;
    let path = format!("/schedules/{existing_id}");
    let before = shown(&app, existing_id).await;
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    let all = ["contactId", "channelId", "body", "sendAt"];
    assert_eq!(app.api.post("/schedules", json!({})).await.invalid_fields(), all);
    let wrong =
        json!({"contactId": "x", "channelId": 1.5, "body": " ", "sendAt": "soon", "queueId": "x", "userId": []});
    let named = ["contactId", "channelId", "body", "queueId", "sendAt", "userId"];
    assert_eq!(app.api.post("/schedules", wrong).await.invalid_fields(), named);
    for (field, values) in [
        (
            "sendAt",
            vec![json!(in_ms(-1)), json!("2020-01-01T00:00:00Z"), json!(7), Value::Null, json!("9999999-01-01")],
        ),
        ("body", vec![json!(""), json!("x".repeat(65_537)), json!("a\0b"), Value::Null]),
        ("contactId", vec![Value::Null, json!("1")]),
        ("channelId", vec![Value::Null, json!("1")]),
    ] {
        for value in values {
            let refused = app.api.post("/schedules", with(field, value.clone())).await;
            assert_eq!(refused.invalid_fields(), [field], "{value}");
            let refused = app.api.put(&path, json!({field: value})).await;
            assert_eq!(refused.invalid_fields(), [field], "{value}");
        }
    }
    for field in ["contactId", "channelId", "queueId", "userId"] {
        app.api.post("/schedules", with(field, json!(NOBODY))).await.error(404, "ERR_API_NOT_FOUND");
        if field != "userId" {
            app.api.put(&path, json!({field: NOBODY})).await.error(404, "ERR_API_NOT_FOUND");
        }
    }
    for absent in [NOBODY.to_string(), "x".to_owned(), i64::MAX.to_string()] {
        let path = format!("/schedules/{absent}");
        let replies =
            [app.api.get(&path).await, app.api.delete(&path).await, app.api.put(&path, json!({"body": "x"})).await];
        for reply in replies {
            reply.error(404, "ERR_API_NOT_FOUND");
        }
    }
    assert_eq!(shown(&app, existing_id).await, before);
    assert_eq!(listed(&app.api, "/schedules").await, [existing_id]);
    app.stop().await;
}

#[actix_web::test]
async fn a_message_whose_records_are_deleted_before_it_is_due_fails_with_the_reason_and_delays_no_other() {
    let app = OwnApp::start().await;
    let deleted_channel = channel(&app, "Fax", ChannelType::Whatsapp).await;
    let deleted_queue = app.api.post("/queues", json!({"name": "Gone"})).await.data(201)["id"].clone();
    let deleted_contact = app.contact("5511900000001").await.0;
    let contact = app.contact("5511900000002").await.0;
    let no_number = app.api.post("/contacts", json!({"name": "Nobody"})).await.data(201)["id"].clone();
    let at = in_ms(TEN_MINUTES_MS);
    let with = |change: Value| {
        let mut body = request_to(&app, contact, "hello", &at);
        for (field, value) in change.as_object().expect("fields") {
            body[field] = value.clone();
        }
        body
    };
    let cases = [
        (with(json!({"contactId": deleted_contact})), "ERR_API_CONTACT_NOT_FOUND", "the contact was deleted"),
        (with(json!({"channelId": deleted_channel})), "ERR_API_NOT_FOUND", "the channel was deleted"),
        (with(json!({"queueId": deleted_queue})), "ERR_API_NOT_FOUND", "the queue was deleted"),
        (
            with(json!({"contactId": no_number})),
            "ERR_API_CONTACT_UNREACHABLE",
            "the contact cannot receive on this channel: they have no phone number",
        ),
        (
            with(json!({"channelId": app.company.webchat})),
            "ERR_API_CONTACT_UNREACHABLE",
            "the contact cannot receive on this channel: they have never opened a session in this webchat",
        ),
        (
            with(json!({"body": "{{nothing}} "})),
            "ERR_API_VALIDATION",
            "body must not be blank once its variables are filled in",
        ),
    ];
    let mut schedule_ids = Vec::new();
    for (body, ..) in &cases {
        schedule_ids.push(schedule(&app, body.clone()).await);
    }
    let good = schedule(&app, with(json!({}))).await;
    let canceled = schedule(&app, with(json!({"contactId": deleted_contact}))).await;
    app.api.delete(&format!("/schedules/{canceled}")).await;

    assert_eq!(app.api.delete(&format!("/contacts/{deleted_contact}")).await.status, 204);
    assert_eq!(app.api.delete(&format!("/queues/{deleted_queue}")).await.status, 204);
    sql(&app, "delete from channels where id = $1", deleted_channel).await;
    app.refreshed().await;
    move_clock_to(time(&json!(at)));
    for (schedule_id, (body, code, message)) in schedule_ids.iter().zip(&cases) {
        let failed = wait_for_status(&app, *schedule_id, "failed").await;
        assert_eq!(failed["error"], json!({"code": code, "message": message}), "{body}");
        assert_eq!(failed["messageId"], Value::Null);
        assert_eq!(failed["contact"].is_null(), body["contactId"] == deleted_contact, "{failed}");
        let refused = app.api.delete(&format!("/schedules/{schedule_id}")).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "failed");
    }
    let sent = wait_for_status(&app, good, "sent").await;
    assert_eq!(listed(&app.api, "/messages").await, [sent["messageId"].as_i64().expect("a message")]);
    // The canceled message was deleted with its contact.
    app.api.get(&format!("/schedules/{canceled}")).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

/// The deletion of a contact changes other records in steps. If a message is due before a step has changed it, its
/// sending fails, with the error that the step would have set.
#[actix_web::test]
async fn a_message_that_is_due_while_its_contact_is_being_deleted_fails_with_the_same_error() {
    let app = OwnApp::start().await;
    let contact = app.contact("5511900000001").await.0;
    let at = in_ms(TEN_MINUTES_MS);
    let scheduled = schedule(&app, request_to(&app, contact, "hello", &at)).await;
    let before = shown(&app, scheduled).await;
    let board = id(app.api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let card = json!({"boardId": board, "name": "Chairs", "contactIds": [contact]});
    let card = id(app.api.post("/crm/cards", card).await.data(201));
    // The first step waits for this card.
    let mut blocker = app.db.begin().await.expect("a transaction");
    let hold = "select from cards where company_id = $1 and id = $2 for update";
    sqlx::query(hold).bind(app.company.id).bind(card).execute(&mut *blocker).await.expect("a lock");
    let path = format!("/contacts/{contact}");
    let send_meanwhile = async {
        eventually("the contact was deleted", || async { app.api.get(&path).await.status == 404 }).await;
        move_clock_to(time(&json!(at)));
        wait_for_status(&app, scheduled, "failed").await;
        blocker.rollback().await.expect("the lock is released");
    };
    let (deleted, ()) = join(app.api.delete(&path), send_meanwhile).await;
    assert_eq!(deleted.status, 204);
    let events = async || app.api.get("/events?types=schedule.failed").await.data(200).clone();
    let is_listed = || async { events().await.as_array().is_some_and(|events| !events.is_empty()) };
    eventually("the failure is in the list of events", is_listed).await;
    let events = events().await;
    assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
    let previous = json!({"contact": before["contact"], "error": null, "status": "pending"});
    assert_eq!((&events[0]["previous"], &events[0]["data"]["contact"]), (&previous, &Value::Null));
    assert_eq!((&events[0]["by"]["type"], &events[0]["by"]["name"]), (&json!("integration"), &json!("test")));
    app.stop().await;
}

#[actix_web::test]
async fn a_due_message_is_sent_although_the_read_of_due_messages_panicked_once() {
    let app = OwnApp::start().await;
    let contact = app.contact("5511900000001").await.0;
    let scheduled = schedule(&app, request_to(&app, contact, "hello", &in_ms(TEN_MINUTES_MS))).await;
    let app = app
        .restarted(&TestOptions::default(), async |database| {
            let make_due = sqlx::query("update schedules set send_at = now() where id = $1").bind(scheduled);
            make_due.execute(&database.db).await.expect("it is due");
            fail::cfg("schedules_read", "1*panic(a defect)").expect("failpoint");
        })
        .await;
    wait_for_status(&app, scheduled, "sent").await;
    app.stop().await;
}
