//! What is removed, and what stays.

use hotline::service::EventOptions;
use hotline_persistence::tables::retentions;
use serde_json::{Value, json};

use super::{DAYS, FIRST_ID, keep_for, old, quick, rows};
use crate::media::{PNG, Scene, url};
use crate::plain::created;
use crate::steps::{close, id, listed, restarted, sent};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, TestApp, eventually};

/// Moves a conversation back by so many days, under a service that has stopped and starts again.
async fn moved_back(app: OwnApp, tickets: &[i64], days: i64) -> OwnApp {
    let app = restarted(app).await;
    for statement in [
        "update tickets set created_at = created_at - $2, opened_at = opened_at - $2, closed_at = closed_at - $2,
             updated_at = updated_at - $2 where id = any ($1)",
        "update ticket_events set created_at = created_at - $2 where ticket_id = any ($1)",
        "update messages set created_at = created_at - $2, sent_at = sent_at - $2 where ticket_id = any ($1)",
    ] {
        let days = chrono::TimeDelta::days(days);
        sqlx::query(statement).bind(tickets).bind(days).execute(&app.db).await.expect(statement);
    }
    app
}

#[actix_web::test]
async fn a_conversation_goes_with_everything_that_is_its_own_and_nothing_else() {
    let scene = Scene::set().await;
    let solved = json!({"wrapupTypeId": scene.app.company.solved});
    let picture = scene.sent("a.png", "image/png", PNG).await;
    scene.api().post(&format!("/tickets/{}/close", scene.ticket), solved).await.data(200);
    scene.api().post(&format!("/webchat/sessions/{}/end", scene.session), json!({})).await.data(200);
    let Scene { app, ticket, contact, session } = scene;
    let company = &app.company;
    let board = created(&app.api, "/crm/boards", json!({"name": "Sales", "crmBoardLists": [{"label": "First"}]})).await;
    let card = created(&app.api, "/crm/cards", json!({"boardId": board, "name": "A card", "ticketId": ticket})).await;
    // A ticket that is as old but open, a closed one that is younger, and a later message to the same contact.
    let open = app.ticket("5511900000001").await.0;
    let younger = app.ticket("5511900000002").await.0;
    close(&app.api, younger).await;
    let later = json!({"channelId": company.webchat, "contactId": contact, "type": "text", "body": "later"});
    let later = sent(&app.api, later).await;
    let later_ticket = later["ticketId"].as_i64().expect("ticket");
    assert_ne!(later_ticket, ticket);
    // Without the address, which the next start changes.
    let file = format!("/{}", url(&picture).splitn(4, '/').nth(3).expect("a path"));
    let app = moved_back(app, &[ticket, open], 31).await;
    let app = moved_back(app, &[younger], 29).await;
    let (other, other_api) = app.another_company().await;
    let elsewhere = json!({"channelId": other.phone, "number": "5511900000009", "type": "text", "body": "x"});
    let elsewhere = sent(&other_api, elsewhere).await["contactId"].as_i64().expect("contact");
    old(&app.db, (other.id, other.webchat), elsewhere, FIRST_ID, 400).await;
    assert_eq!(app.stored_files().len(), 1);

    keep_for(&app, app.company.id, DAYS).await;
    for path in [
        format!("/tickets/{ticket}"),
        format!("/tickets/{ticket}/messages"),
        format!("/tickets/{ticket}/events"),
        format!("/messages/{}", id(&picture)),
    ] {
        app.api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
    }
    for path in [format!("/tickets/{ticket}/reopen"), format!("/tickets/{ticket}/notes")] {
        app.api.post(&path, json!({"body": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    }
    assert_eq!(rows(&app, ticket).await, (0, 0, 0));
    let mut tickets = listed(&app.api, "/tickets").await;
    tickets.sort_unstable();
    assert_eq!(tickets, [open, younger, later_ticket]);
    assert_eq!(listed(&app.api, &format!("/tickets?contactId={contact}")).await, [later_ticket]);
    assert_eq!(listed(&app.api, &format!("/messages?contactId={contact}")).await, [id(&later)]);
    assert_eq!(app.api.all("/messages?type=media").await, Vec::<Value>::new());
    app.api.get(&format!("/contacts/{contact}")).await.data(200);
    assert_eq!(app.api.get(&format!("/crm/cards/{card}")).await.data(200)["ticketId"], Value::Null);
    let shown = app.api.get(&format!("/webchat/sessions/{session}")).await;
    assert_eq!((&shown.data(200)["status"], &shown.data(200)["ticketId"]), (&json!("ended"), &Value::Null));
    eventually("the file is gone", || async { app.stored_files().is_empty() }).await;
    let read = app.api.anonymous(reqwest::Method::GET, &file).send().await.expect("an answer");
    assert_eq!(read.status().as_u16(), 404);
    assert_eq!(rows(&app, FIRST_ID).await, (1, 3, 2), "another company keeps what it has");
    other_api.get(&format!("/tickets/{FIRST_ID}")).await.data(200);

    // The webchat still reaches the contact, and what comes next is a conversation of its own.
    close_any(&app, later_ticket).await;
    let next = json!({"channelId": app.company.webchat, "contactId": contact, "type": "text", "body": "next"});
    assert_ne!(sent(&app.api, next).await["ticketId"], json!(ticket));
    let rules = retentions::all(&app.db).await.expect("a list");
    assert_eq!((rules.len(), rules[0].removed, rules[0].due), (1, 1, 0));
    app.stop().await;
}

async fn close_any(app: &TestApp, ticket: i64) {
    let solved = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{ticket}/close"), solved).await.data(200);
}

#[actix_web::test]
async fn what_waits_for_its_provider_or_has_a_visitor_in_it_stays_until_it_has_not() {
    let app = OwnApp::start_with(TestOptions { metrics: true, ..quick() }).await;
    let (db, here) = (&app.db, (app.company.id, app.company.phone));
    let contact = app.contact("5511900000001").await.0;
    for ticket in 0..4 {
        old(db, here, contact, FIRST_ID + ticket, 40 - ticket).await;
    }
    let waits = "update messages set status = 'queued' where id = $1";
    sqlx::query(waits).bind(FIRST_ID * 3).execute(db).await.expect(waits);
    let (session, visitor) = app.session("visitor").await;
    app.api.post(&format!("/webchat/sessions/{}/messages", session.0), json!({"body": "hello"})).await.data(201);
    let log = &app.service.app.engine.store().log;
    log.wait_until_flushed(log.appended()).await.expect("it is in the tables");
    old(db, (app.company.id, app.company.webchat), visitor.0, FIRST_ID + 9, 50).await;
    let talks = "update webchat_sessions set ticket_id = $1";
    sqlx::query(talks).bind(FIRST_ID + 9).execute(db).await.expect(talks);

    keep_for(&app, app.company.id, DAYS).await;
    let figures = async || {
        let address = app.service.metrics.as_ref().expect("figures are served").address;
        crate::support::figures::Figures::of(address).await
    };
    assert_eq!((rows(&app, FIRST_ID).await.0, rows(&app, FIRST_ID + 9).await.0), (1, 1));
    for ticket in 1..4 {
        assert_eq!(rows(&app, FIRST_ID + ticket).await, (0, 0, 0));
    }
    let seen = figures().await;
    assert_eq!(seen.value("hotline_retention_removed_total"), 3.0);
    let oldest_due = seen.value("hotline_retention_oldest_due_seconds");
    assert!((oldest_due - 20.0 * 86_400.0).abs() < 60.0, "{oldest_due} s");
    // The message is sent, and the visitor's session has ended.
    let sent = "update messages set status = 'sent' where id = $1";
    sqlx::query(sent).bind(FIRST_ID * 3).execute(db).await.expect(sent);
    let ended = "update webchat_sessions set status = 'ended'";
    sqlx::query(ended).execute(db).await.expect(ended);
    keep_for(&app, app.company.id, DAYS).await;
    assert_eq!((rows(&app, FIRST_ID).await.0, rows(&app, FIRST_ID + 9).await.0), (0, 0));
    let seen = figures().await;
    assert_eq!(seen.value("hotline_retention_removed_total"), 5.0);
    assert_eq!(seen.value("hotline_retention_oldest_due_seconds"), 0.0);
    app.stop().await;
}

#[actix_web::test]
async fn old_events_go_with_old_conversations() {
    let events = EventOptions { retention_days: 366, ..EventOptions::default() };
    let app = OwnApp::start_with(TestOptions { events, ..quick() }).await;
    let (_, other_api) = app.another_company().await;
    let event_ids = async |api: &crate::support::Api| -> Vec<i64> {
        let reply = api.get("/events?after=0&limit=100").await;
        reply.data(200).as_array().expect("events").iter().map(|event| event["id"].as_i64().expect("id")).collect()
    };
    other_api.post("/contacts", json!({"name": "Ana"})).await.data(201);
    let ticket = app.ticket("5511900000001").await.0;
    close(&app.api, ticket).await;
    eventually("all events are readable", || async { event_ids(&app.api).await.len() >= 3 }).await;
    let early = event_ids(&app.api).await;
    let passed = "update events set created_at = created_at - interval '40 days'";
    sqlx::query(passed).execute(&app.db).await.expect(passed);
    let others = event_ids(&other_api).await;
    app.ticket("5511900000002").await;
    eventually("later events are readable", || async { event_ids(&app.api).await.len() > early.len() }).await;
    keep_for(&app, app.company.id, DAYS).await;
    let late = event_ids(&app.api).await;
    assert!(!late.is_empty() && late.iter().all(|id| !early.contains(id)), "{early:?}, {late:?}");
    assert_eq!(event_ids(&other_api).await, others, "another company's stay");
    // The next event continues their ids.
    let last = *late.last().expect("an event");
    app.api.post("/contacts", json!({"name": "Ben"})).await.data(201);
    eventually("the event is readable", || async { event_ids(&app.api).await.contains(&(last + 1)) }).await;
    app.stop().await;
}

#[actix_web::test]
async fn what_a_campaign_and_a_schedule_came_to_is_still_known() {
    let app = OwnApp::start_with(quick()).await;
    let (db, here) = (&app.db, (app.company.id, app.company.phone));
    let contact = app.contact("5511900000001").await.0;
    old(db, here, contact, FIRST_ID, 40).await;
    for statement in [
        "update messages set source = case id when $3 * 3 then 'campaign' else 'schedule' end where ticket_id = $3 and $2 > 0 and $1 > 0 and $4 > 0",
        "insert into campaigns (company_id, name, status, contact_list_id, channel_id, scheduled_at, message)
         select $1, 'Some', 'completed', 1, $2, now(), 'Some text' where $3 + $4 > 0",
        "insert into campaign_recipients (company_id, campaign_id, contact_id, status, message_id)
         select $1, max(id), $4, 'read', $3 * 3 from campaigns where $2 > 0",
        "insert into schedules (company_id, id, contact_id, channel_id, body, send_at, status, message_id, created_at,
             updated_at)
         select $1, k, $4, $2, 'Some text', now() + k * interval '1 year', case k when 1 then 'sent' else 'pending' end,
             case k when 1 then $3 * 3 + 1 end, now(), now() from generate_series(1, 2) k",
    ] {
        let done = sqlx::query(statement).bind(app.company.id).bind(app.company.phone).bind(FIRST_ID).bind(contact);
        done.execute(db).await.expect(statement);
    }
    keep_for(&app, app.company.id, DAYS).await;
    assert_eq!(rows(&app, FIRST_ID).await, (0, 0, 0));
    let campaigns = app.api.all("/campaigns").await;
    let campaign = id(&campaigns[0]);
    let recipients = app.api.all(&format!("/campaigns/{campaign}/recipients")).await;
    assert_eq!((&recipients[0]["status"], &recipients[0]["messageId"]), (&json!("read"), &Value::Null));
    let read: i64 = sqlx::query_scalar("select read from campaigns").fetch_one(db).await.expect("a count");
    assert_eq!(read, 1);
    assert_eq!(listed(&app.api, "/schedules").await, [2], "the text that was sent is gone, the one to come is not");
    app.stop().await;
}
