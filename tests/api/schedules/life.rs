//! The life of a scheduled message, from its creation to its end.

use reqwest::Method;
use serde_json::{Value, json};

use super::{TEN_MINUTES_MS, in_ms, move_clock_to, request_to, schedule, shown, time, wait_for_status};
use crate::check_list::{check_list, check_span};
use crate::steps::{assert_timestamp, id, listed, ticket};
use crate::support::{OwnApp, Person, Reply, TestApp, eventually};

#[actix_web::test]
async fn a_message_is_scheduled_changed_and_canceled() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await.0;
    let other = app.contact("5511900000002").await.0;
    let at = in_ms(3_600_000);
    let body = json!({
        "contactId": contact, "channelId": app.company.phone, "body": " Hello {{name}} ", "queueId": app.company.sales,
        "sendAt": at, "userId": app.company.ana, "id": 1, "status": "sent", "companyId": 2, "unknown": true,
    });
    let reply = app.api.post("/schedules", body).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    let expected = json!({
        "id": made["id"], "contact": {"id": contact, "name": "5511900000001", "number": "5511900000001"},
        "channelId": app.company.phone, "body": "Hello {{name}}", "queueId": app.company.sales, "sendAt": at,
        "status": "pending", "messageId": null, "error": null,
        "userCreated": {"id": app.company.ana, "name": "Ana"},
        "createdAt": made["createdAt"], "updatedAt": made["createdAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    assert_eq!(&shown(&app, id(made)).await, made);
    assert_eq!(app.api.all("/schedules").await, std::slice::from_ref(made));

    let path = format!("/schedules/{}", id(made));
    let later = in_ms(7_200_000);
    let mut current = made.clone();
    for (change, different) in [
        (json!({}), json!({})),
        (json!({"body": "Bye"}), json!({"body": "Bye"})),
        (json!({"queueId": null}), json!({"queueId": null})),
        (json!({"queueId": app.company.support}), json!({"queueId": app.company.support})),
        (json!({"channelId": app.company.webchat}), json!({"channelId": app.company.webchat})),
        (
            json!({"contactId": other}),
            json!({"contact": {"id": other, "name": "5511900000002", "number": "5511900000002"}}),
        ),
        // A change of the author or of the status is ignored.
        (json!({"sendAt": later, "userId": app.company.ben, "status": "sent"}), json!({"sendAt": later})),
    ] {
        let reply = app.api.put(&path, change.clone()).await;
        let after = reply.data(200);
        for (field, value) in different.as_object().expect("fields") {
            current[field] = value.clone();
        }
        assert!(time(&after["updatedAt"]) >= time(&current["updatedAt"]), "{change}");
        current["updatedAt"] = after["updatedAt"].clone();
        assert_eq!(after, &current, "{change}");
        assert_eq!(shown(&app, id(made)).await, current, "{change}");
    }

    let deletion = app.api.delete(&path).await;
    assert_eq!((deletion.status.as_u16(), deletion.bytes.len()), (204, 0));
    let canceled = shown(&app, id(made)).await;
    current["status"] = json!("canceled");
    current["updatedAt"] = canceled["updatedAt"].clone();
    assert_eq!(canceled, current);
    let conflict = json!({
        "state": "the scheduled message was canceled", "reason": "canceled", "field": "scheduleId", "id": made["id"],
    });
    for refused in [app.api.delete(&path).await, app.api.put(&path, json!({"body": "x"})).await] {
        assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &conflict);
    }
    assert_eq!(shown(&app, id(made)).await, current);
    assert_eq!(listed(&app.api, "/messages").await, [0; 0]);
    app.stop().await;
}

#[actix_web::test]
async fn a_scheduled_message_is_sent_at_its_time_in_its_conversation() {
    let app = OwnApp::start().await;
    let (_, contact) = app.session("visitor").await;
    let at = in_ms(TEN_MINUTES_MS);
    let body = json!({
        "contactId": contact, "channelId": app.company.webchat, "body": "Hello {{firstName}}, from {{agent}}{{company}}",
        "queueId": app.company.sales, "sendAt": at, "userId": app.company.ana,
    });
    let made = schedule(&app, body).await;
    // Variables are filled in when the message is sent.
    app.api.put(&format!("/contacts/{contact}"), json!({"name": "Maria Lima"})).await.data(200);
    assert_eq!(shown(&app, made).await["status"], "pending");
    move_clock_to(time(&json!(at)));
    let sent = wait_for_status(&app, made, "sent").await;
    assert_eq!(
        (&sent["error"], &sent["sendAt"], sent["contact"]["name"].as_str()),
        (&Value::Null, &json!(at), Some("Maria Lima"))
    );
    let reply = app.api.get(&format!("/messages/{}", sent["messageId"])).await;
    let message = reply.data(200);
    assert_eq!(message["body"], "Hello Maria, from Acme");
    assert_eq!((&message["source"], &message["status"]), (&json!("schedule"), &json!("sent")));
    assert_eq!(message["user"], json!({"id": app.company.ana, "name": "Ana"}));
    assert_eq!(message["integration"]["name"], "test");
    assert_eq!(message["createdAt"], at);
    let opened = ticket(&app.api, message["ticketId"].as_i64().expect("ticket")).await;
    assert_eq!((&opened["creationSource"], &opened["status"]), (&json!("schedule"), &json!("open")));
    assert_eq!(opened["queue"]["id"], json!(app.company.sales));
    assert_eq!(opened["contact"]["id"], json!(contact));

    let path = format!("/schedules/{made}");
    for refused in [app.api.delete(&path).await, app.api.put(&path, json!({"sendAt": in_ms(60_000)})).await] {
        let conflict = refused.error(409, "ERR_API_CONFLICT");
        assert_eq!((&conflict["reason"], &conflict["id"]), (&json!("sent"), &json!(made)));
    }
    // The next message is sent in the ticket that is open.
    let at = in_ms(TEN_MINUTES_MS);
    let next = json!({"contactId": contact, "channelId": app.company.webchat, "body": "Again", "sendAt": at});
    let next = schedule(&app, next).await;
    move_clock_to(time(&json!(at)));
    let next = wait_for_status(&app, next, "sent").await;
    let reply = app.api.get(&format!("/messages/{}", next["messageId"])).await;
    assert_eq!(reply.data(200)["ticketId"], message["ticketId"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_change_reschedules_a_message_and_a_retry_repeats_no_request() {
    let app = OwnApp::start().await;
    let contact = app.contact("5511900000001").await.0;
    let far = schedule(&app, request_to(&app, contact, "far", &in_ms(86_400_000))).await;
    let near = schedule(&app, request_to(&app, contact, "near", &in_ms(60_000))).await;
    // One message moves from a time that only the tables hold to one that memory holds, the other the opposite way.
    let soon = in_ms(TEN_MINUTES_MS);
    app.api.put(&format!("/schedules/{far}"), json!({"sendAt": soon, "body": "moved"})).await.data(200);
    app.api.put(&format!("/schedules/{near}"), json!({"sendAt": in_ms(86_400_000)})).await.data(200);
    move_clock_to(time(&json!(soon)));
    let sent = wait_for_status(&app, far, "sent").await;
    assert_eq!(app.api.get(&format!("/messages/{}", sent["messageId"])).await.data(200)["body"], "moved");
    assert_eq!(shown(&app, near).await["status"], "pending");
    app.api.delete(&format!("/schedules/{near}")).await;

    let body = request_to(&app, contact, "once", &in_ms(60_000)).to_string();
    let make = || Reply::of(app.api.keyed(Method::POST, "/schedules", "make", body.as_str()));
    let (first, retry) = (make().await, make().await);
    assert_eq!((first.data(201), retry.is_replay()), (retry.data(201), true));
    let path = format!("/schedules/{}", id(first.data(201)));
    let change = || Reply::of(app.api.keyed(Method::PUT, &path, "change", r#"{"body":"changed"}"#));
    let first = change().await;
    app.api.put(&path, json!({"body": "between"})).await.data(200);
    let retry = change().await;
    assert_eq!((first.data(200), retry.is_replay()), (retry.data(200), true));
    assert_eq!(app.api.get(&path).await.data(200)["body"], "between");
    assert_eq!(listed(&app.api, "/schedules").await.len(), 3);
    app.stop().await;
}

#[actix_web::test]
async fn the_list_has_every_filter() {
    let app = TestApp::shared().await;
    let (first, second) = (app.contact("5511900000001").await.0, app.contact("5511900000002").await.0);
    let mut all = Vec::new();
    for (contact, hours) in [(first, 3), (second, 1), (first, 2), (second, 4), (first, 5)] {
        all.push(schedule(&app, request_to(&app, contact, "hello", &in_ms(hours * 3_600_000))).await);
    }
    let on_webchat = json!({"channelId": app.company.webchat});
    app.api.put(&format!("/schedules/{}", all[4]), on_webchat).await.data(200);
    app.api.delete(&format!("/schedules/{}", all[3])).await;
    let (_, api) = app.another_company().await;
    assert_eq!(listed(&api, "/schedules").await, [0; 0]);
    check_list(&app, "/schedules", &all, &["created", "updated"]).await;
    check_span(&app, "/schedules", "send").await;
    for (query, wanted) in [
        ("status=pending".to_owned(), vec![0, 1, 2, 4]),
        ("status=canceled".to_owned(), vec![3]),
        ("status=sent".to_owned(), vec![]),
        ("status=failed".to_owned(), vec![]),
        (format!("contactId={first}"), vec![0, 2, 4]),
        (format!("channelId={}", app.company.phone), vec![0, 1, 2, 3]),
        (format!("channelId={}&contactId={first}", app.company.webchat), vec![4]),
        (format!("sendFrom={}&sendTo={}&status=pending", in_ms(5_400_000), in_ms(12_600_000)), vec![0, 2]),
    ] {
        let wanted: Vec<i64> = wanted.into_iter().map(|index: usize| all[index]).collect();
        assert_eq!(listed(&app.api, &format!("/schedules?{query}")).await, wanted, "{query}");
    }
    app.stop().await;
}

/// No request sends a scheduled message at its time, yet its events name who scheduled it.
#[actix_web::test]
async fn events_of_a_scheduled_message_name_who_scheduled_it() {
    let app = OwnApp::start().await;
    Person::give_profile(&app, app.company.ana, "Administrator").await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let first = app.contact("5511900000001").await.0;
    let second = app.contact("5511900000002").await.0;
    let at = in_ms(TEN_MINUTES_MS);
    let of_token = schedule(&app, request_to(&app, first, "from the shop", &at)).await;
    let of_ana = id(ana.post("/schedules", request_to(&app, second, "from Ana", &at)).await.data(201));
    // This text is blank once its variables are filled in.
    let blank = "{{nothing}} ";
    let blank_of_token = schedule(&app, request_to(&app, first, blank, &at)).await;
    let blank_of_ana = id(ana.post("/schedules", request_to(&app, second, blank, &at)).await.data(201));
    move_clock_to(time(&json!(at)));
    for (schedule, status) in
        [(of_token, "sent"), (of_ana, "sent"), (blank_of_token, "failed"), (blank_of_ana, "failed")]
    {
        wait_for_status(&app, schedule, status).await;
    }
    let types = "message.created,ticket.opened,schedule.sent,schedule.failed";
    let listed = async || app.api.get(&format!("/events?types={types}")).await.data(200).clone();
    let are_listed = || async { listed().await.as_array().is_some_and(|events| events.len() == 8) };
    eventually("all eight events are listed", are_listed).await;
    let ana = json!({"type": "user", "id": app.company.ana, "name": "Ana"});
    for event in listed().await.as_array().expect("a list") {
        let contact = event["data"].get("contactId").unwrap_or(&event["data"]["contact"]["id"]);
        if *contact == second {
            assert_eq!(event["by"], ana, "{event}");
        } else {
            assert_eq!(
                (&event["by"]["type"], &event["by"]["name"]),
                (&json!("integration"), &json!("test")),
                "{event}"
            );
        }
    }
    app.stop().await;
}
