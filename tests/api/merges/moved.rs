//! After a merge, everything that referred to the merged contact refers to the one that stays.

use std::time::Duration;

use hotline_actors::clock;
use serde_json::json;

use super::{create_contact, merge, shown};
use crate::campaigns::{create_campaign, fast, list, post_verb};
use crate::outbox::Office;
use crate::steps::{id, listed};
use crate::support::{TestApp, check_plain_events, eventually};

const ANA: &str = "5511900000001";
const OTHER: &str = "5511900000002";

#[actix_web::test]
async fn cards_lists_and_scheduled_messages_move_to_the_contact_that_stays() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let into = create_contact(api, json!({"name": "Ana", "number": ANA})).await;
    let from = create_contact(api, json!({"name": "Other", "number": OTHER})).await;
    let board = id(api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let card = async |contacts: &[i64]| {
        let body = json!({"boardId": board, "name": "Deal", "contactIds": contacts});
        id(api.post("/crm/cards", body).await.data(201))
    };
    let (of_from, of_both) = (card(&[from]).await, card(&[into, from]).await);
    let (one, both) = (list(api, &[from]).await, list(api, &[into, from]).await);
    let later =
        json!({"contactId": from, "channelId": app.company.phone, "body": "later", "sendAt": "2099-01-31T12:00:00Z"});
    let schedule = id(api.post("/schedules", later).await.data(201));
    merge(api, into, from).await.data(200);
    for card in [of_from, of_both] {
        let card = api.get(&format!("/crm/cards/{card}")).await;
        let contacts = card.data(200)["contacts"].as_array().expect("contacts");
        assert_eq!(contacts.iter().map(id).collect::<Vec<_>>(), [into]);
    }
    for list in [one, both] {
        assert_eq!(listed(api, &format!("/contact-lists/{list}/contacts")).await, [into]);
    }
    let path = format!("/schedules/{schedule}");
    let moved = api.get(&path).await.data(200).clone();
    assert_eq!((&moved["contact"]["id"], &moved["status"]), (&json!(into), &json!("pending")));
    // The message can be changed and canceled as before, although it was in memory with the other contact.
    let changed = api.put(&path, json!({"body": "much later"})).await;
    assert_eq!((&changed.data(200)["contact"]["id"], &changed.data(200)["body"]), (&json!(into), &json!("much later")));
    assert_eq!(api.delete(&path).await.status, 204);
    let events = api.get("/events?types=card.updated,schedule.updated,schedule.canceled&limit=100").await;
    let logged: Vec<_> = events
        .data(200)
        .as_array()
        .expect("events")
        .iter()
        .map(|event| (&event["type"], &event["data"]["id"]))
        .collect();
    assert!(logged.contains(&(&json!("schedule.updated"), &json!(schedule))), "{logged:?}");
    for card in [of_from, of_both] {
        assert!(logged.contains(&(&json!("card.updated"), &json!(card))), "{logged:?}");
    }
    check_plain_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_visitors_session_continues_with_the_contact_that_stays() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let into = create_contact(api, json!({"name": "Ana", "number": ANA})).await;
    let (session, visitor) = app.session("visitor").await;
    let say = async |body: &str| {
        let path = format!("/webchat/sessions/{session}/messages");
        api.post(&path, json!({"body": body})).await.data(201).clone()
    };
    let first = say("one").await;
    merge(api, into, visitor.0).await.data(200);
    assert_eq!(shown(api, into).await["verified"], true);
    let second = say("two").await;
    assert_eq!((&second["ticketId"], &second["contactId"]), (&first["ticketId"], &json!(into)));
    let path = format!("/webchat/sessions/{session}");
    assert_eq!(api.get(&path).await.data(200)["contact"]["id"], into);
    // The visitor sees the answer, and is found by the website's id.
    let body = json!({"ticketId": first["ticketId"], "type": "text", "body": "three"});
    api.post("/messages", body).await.data(202);
    assert_eq!(listed(api, &format!("{path}/messages")).await.len(), 3);
    assert_eq!(app.session("visitor").await.1.0, into);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_that_was_a_recipient_twice_gets_one_message() {
    let office = Office::open().await;
    let (app, api) = (&office.app, &office.app.api);
    let channel = office.phone("1801").await.0;
    let into = create_contact(api, json!({"name": "Ana", "number": ANA})).await;
    let from = create_contact(api, json!({"name": "Other", "number": OTHER})).await;
    let last = create_contact(api, json!({"name": "Last", "number": "5511900000003"})).await;
    let everybody = list(api, &[into, from, last]).await;
    let mut body = fast(everybody, channel, "Hello {{name}}");
    // The second recipient's turn is a second later, and does not come while the clock stands still.
    body["ratePerMinute"] = json!(60);
    let campaign = create_campaign(api, body).await;
    clock::stop();
    post_verb(api, campaign, "start").await;
    post_verb(api, campaign, "pause").await;
    // The merge is refused while a message to one of them is on its way.
    eventually("no message is on its way, and the merge succeeds", || async {
        merge(api, into, from).await.status == 200
    })
    .await;
    post_verb(api, campaign, "resume").await;
    eventually("the campaign is completed", || async {
        clock::advance(Duration::from_secs(1));
        api.get(&format!("/campaigns/{campaign}")).await.data(200)["status"] == "completed"
    })
    .await;
    let recipients = api.all(&format!("/campaigns/{campaign}/recipients")).await;
    let contacts: Vec<_> = recipients.iter().map(|recipient| recipient["contact"]["id"].clone()).collect();
    assert_eq!(contacts, [json!(into), json!(last)], "{recipients:?}");
    let calls = office.provider.accepted("1801");
    let to_last = calls.iter().filter(|call| call.to == "5511900000003").count();
    // Before the campaign was paused either of the two may have been written to.
    assert!(to_last == 1 && (2..=3).contains(&calls.len()), "{} calls", calls.len());
    assert_eq!(app.api.get(&format!("/contacts/{from}")).await.status, 404);
    office.close().await;
}

#[actix_web::test]
async fn of_two_recipients_the_one_that_was_written_to_stays() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let channel = app.company.phone;
    // Each recipient's status, and whether it has a message; then the reason of a refusal, or the status that stays.
    let cases = [
        (("pending", true), ("unknown", true), Err("campaign")),
        (("unknown", true), ("unknown", true), Err("campaign")),
        (("skipped", false), ("sent", true), Ok("sent")),
        (("failed", false), ("unknown", true), Ok("unknown")),
        (("read", true), ("unknown", true), Ok("unknown")),
        (("sent", true), ("pending", false), Ok("sent")),
        (("pending", false), ("delivered", true), Ok("delivered")),
        // A recipient who is still to be written to stays.
        (("pending", false), ("skipped", false), Ok("pending")),
    ];
    for (case, (into_state, from_state, outcome)) in cases.into_iter().enumerate() {
        let into = create_contact(api, json!({"name": "Ana"})).await;
        let from = create_contact(api, json!({"name": "Other"})).await;
        let both = list(api, &[into, from]).await;
        let campaign = create_campaign(api, fast(both, channel.0, "Hello")).await;
        for (contact, (status, has_message)) in [(into, into_state), (from, from_state)] {
            // No message has this id: only the recipients matter.
            let message = has_message.then_some(contact);
            let insert = sqlx::query(
                "insert into campaign_recipients (company_id, campaign_id, contact_id, status, message_id)
                 values ($1, $2, $3, $4, $5)",
            );
            let insert = insert.bind(app.company.id).bind(campaign).bind(contact).bind(status).bind(message);
            insert.execute(&app.db).await.expect("a recipient");
        }
        let reply = merge(api, into, from).await;
        let recipients = async || -> Vec<(i64, String, Option<i64>)> {
            let select = sqlx::query_as(
                "select contact_id, status, message_id from campaign_recipients
                 where company_id = $1 and campaign_id = $2 order by contact_id",
            );
            select.bind(app.company.id).bind(campaign).fetch_all(&app.db).await.expect("recipients")
        };
        match outcome {
            Err(reason) => {
                assert_eq!(reply.error(409, "ERR_API_CONFLICT")["reason"], reason, "{case}");
                assert_eq!(recipients().await.len(), 2, "{case}");
            }
            Ok(status) => {
                reply.data(200);
                let written_to =
                    [(into, into_state), (from, from_state)].into_iter().find(|(_, state)| *state == (status, true));
                let message = written_to.map(|(contact, _)| contact);
                assert_eq!(recipients().await, [(into, status.to_owned(), message)], "{case}");
            }
        }
    }
    app.stop().await;
}
