//! Which records a removal of old conversations deletes, and which stay.

use std::time::Instant;

use hotline::service::EventOptions;
use hotline_persistence::tables::retentions;
use serde_json::{Value, json};

use super::{DAYS, FIRST_ID, frequent_sweeps, insert_closed, keep_for, rows};
use crate::media::{MediaFixture, PNG, url};
use crate::plain::created;
use crate::steps::{close, id, listed, restarted, sent};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, TestApp, eventually};

/// Restarts the service, which flushes everything into the tables, and makes these tickets this many days older there,
/// with their events and messages.
async fn age_tickets(app: OwnApp, tickets: &[i64], days: i64) -> OwnApp {
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
async fn a_conversation_is_removed_with_its_own_records_and_nothing_else() {
    let fixture = MediaFixture::start().await;
    let picture = fixture.sent("a.png", "image/png", PNG).await;
    close_with_wrapup(&fixture.app, fixture.ticket).await;
    fixture.api().post(&format!("/webchat/sessions/{}/end", fixture.session), json!({})).await.data(200);
    let MediaFixture { app, ticket, contact, session } = fixture;
    let company = &app.company;
    let board = created(&app.api, "/crm/boards", json!({"name": "Sales", "crmBoardLists": [{"label": "First"}]})).await;
    let card = created(&app.api, "/crm/cards", json!({"boardId": board, "name": "A card", "ticketId": ticket})).await;
    // An open ticket of the same age, a younger closed one, and a later ticket of the same contact.
    let open = app.ticket("5511900000001").await.0;
    let younger = app.ticket("5511900000002").await.0;
    close(&app.api, younger).await;
    let later = json!({"channelId": company.webchat, "contactId": contact, "type": "text", "body": "later"});
    let later = sent(&app.api, later).await;
    let later_ticket = later["ticketId"].as_i64().expect("ticket");
    assert_ne!(later_ticket, ticket);
    // Without scheme and host: the next start listens on another port.
    let file_path = format!("/{}", url(&picture).splitn(4, '/').nth(3).expect("a path"));
    let app = age_tickets(app, &[ticket, open], 31).await;
    let app = age_tickets(app, &[younger], 29).await;
    let (other, other_api) = app.another_company().await;
    let message = json!({"channelId": other.phone, "number": "5511900000009", "type": "text", "body": "x"});
    let other_contact = sent(&other_api, message).await["contactId"].as_i64().expect("contact");
    insert_closed(&app.db, (other.id, other.webchat), other_contact, FIRST_ID, 400).await;
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
    eventually("the file is deleted", || async { app.stored_files().is_empty() }).await;
    let response = app.api.anonymous(reqwest::Method::GET, &file_path).send().await.expect("a response");
    assert_eq!(response.status().as_u16(), 404);
    assert_eq!(rows(&app, FIRST_ID).await, (1, 3, 2), "the other company's conversation stays");
    other_api.get(&format!("/tickets/{FIRST_ID}")).await.data(200);

    // The webchat still reaches the contact: the next message opens a new ticket.
    close_with_wrapup(&app, later_ticket).await;
    let next = json!({"channelId": app.company.webchat, "contactId": contact, "type": "text", "body": "next"});
    assert_ne!(sent(&app.api, next).await["ticketId"], json!(ticket));
    let rules = retentions::all(&app.db).await.expect("a list");
    assert_eq!((rules.len(), rules[0].removed, rules[0].due), (1, 1, 0));
    app.stop().await;
}

/// Closes a ticket of the webchat, whose queue requires a wrap-up.
async fn close_with_wrapup(app: &TestApp, ticket: i64) {
    let solved = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{ticket}/close"), solved).await.data(200);
}

#[actix_web::test]
async fn a_queued_message_or_an_active_visitor_defers_the_removal() {
    let app = OwnApp::start_with(TestOptions { metrics: true, ..frequent_sweeps() }).await;
    let (db, channel) = (&app.db, (app.company.id, app.company.phone));
    let contact = app.contact("5511900000001").await.0;
    let began = Instant::now();
    for ticket in 0..4 {
        insert_closed(db, channel, contact, FIRST_ID + ticket, 40 - ticket).await;
    }
    // The first message of the oldest of these conversations.
    let set_queued = "update messages set status = 'queued' where id = $1";
    sqlx::query(set_queued).bind(FIRST_ID * 3).execute(db).await.expect(set_queued);
    let (session, visitor) = app.session("visitor").await;
    app.api.post(&format!("/webchat/sessions/{}/messages", session.0), json!({"body": "hello"})).await.data(201);
    // The session's row must exist before it is assigned to the old conversation.
    let log = &app.service.app.engine.store().log;
    log.wait_until_flushed(log.appended()).await.expect("the session is in the tables");
    insert_closed(db, (app.company.id, app.company.webchat), visitor.0, FIRST_ID + 9, 50).await;
    let set_ticket = "update webchat_sessions set ticket_id = $1";
    sqlx::query(set_ticket).bind(FIRST_ID + 9).execute(db).await.expect(set_ticket);

    keep_for(&app, app.company.id, DAYS).await;
    let read_metrics = async || {
        let address = app.service.metrics_listener.as_ref().expect("metrics are served").address;
        crate::support::metrics::ScrapedMetrics::of(address).await
    };
    assert_eq!((rows(&app, FIRST_ID).await.0, rows(&app, FIRST_ID + 9).await.0), (1, 1));
    for ticket in 1..4 {
        assert_eq!(rows(&app, FIRST_ID + ticket).await, (0, 0, 0));
    }
    let metrics = read_metrics().await;
    assert_eq!(metrics.value("hotline_retention_removed_total"), 3.0);
    // The visitor's conversation was closed 50 days ago, and was due after 30.
    let overdue = metrics.value("hotline_retention_oldest_due_seconds") - 20.0 * 86_400.0;
    assert!((-1.0..began.elapsed().as_secs_f64() + 1.0).contains(&overdue), "{overdue} s");
    // The message is sent, and the visitor's session ends.
    let set_sent = "update messages set status = 'sent' where id = $1";
    sqlx::query(set_sent).bind(FIRST_ID * 3).execute(db).await.expect(set_sent);
    let set_ended = "update webchat_sessions set status = 'ended'";
    sqlx::query(set_ended).execute(db).await.expect(set_ended);
    keep_for(&app, app.company.id, DAYS).await;
    assert_eq!((rows(&app, FIRST_ID).await.0, rows(&app, FIRST_ID + 9).await.0), (0, 0));
    let metrics = read_metrics().await;
    assert_eq!(metrics.value("hotline_retention_removed_total"), 5.0);
    assert_eq!(metrics.value("hotline_retention_oldest_due_seconds"), 0.0);
    app.stop().await;
}

#[actix_web::test]
async fn old_events_are_removed_with_old_conversations() {
    // The events are younger than this, so that only the company's own rule removes them.
    let events = EventOptions { retention_days: 366, ..EventOptions::default() };
    let app = OwnApp::start_with(TestOptions { events, ..frequent_sweeps() }).await;
    let (_, other_api) = app.another_company().await;
    let event_ids = async |api: &crate::support::Api| -> Vec<i64> {
        let reply = api.get("/events?after=0&limit=100").await;
        reply.data(200).as_array().expect("events").iter().map(|event| event["id"].as_i64().expect("id")).collect()
    };
    other_api.post("/contacts", json!({"name": "Ana"})).await.data(201);
    let ticket = app.ticket("5511900000001").await.0;
    close(&app.api, ticket).await;
    eventually("all events are readable", || async { event_ids(&app.api).await.len() >= 3 }).await;
    let old_ids = event_ids(&app.api).await;
    let age_events = "update events set created_at = created_at - interval '40 days'";
    sqlx::query(age_events).execute(&app.db).await.expect(age_events);
    let other_ids = event_ids(&other_api).await;
    app.ticket("5511900000002").await;
    eventually("later events are readable", || async { event_ids(&app.api).await.len() > old_ids.len() }).await;
    keep_for(&app, app.company.id, DAYS).await;
    let ids_left = event_ids(&app.api).await;
    assert!(!ids_left.is_empty() && ids_left.iter().all(|id| !old_ids.contains(id)), "{old_ids:?}, {ids_left:?}");
    assert_eq!(event_ids(&other_api).await, other_ids, "the other company's events stay");
    // The next event continues their ids.
    let last = *ids_left.last().expect("an event");
    app.api.post("/contacts", json!({"name": "Ben"})).await.data(201);
    eventually("the event is readable", || async { event_ids(&app.api).await.contains(&(last + 1)) }).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_campaign_keeps_its_outcomes_and_a_pending_schedule_stays() {
    let app = OwnApp::start_with(frequent_sweeps()).await;
    let (db, channel) = (&app.db, (app.company.id, app.company.phone));
    let contact = app.contact("5511900000001").await.0;
    insert_closed(db, channel, contact, FIRST_ID, 40).await;
    // Every statement is given company, channel, ticket and contact. PostgreSQL infers the types of its parameters from
    // their use, so those that a statement does not need are compared with 0.
    for statement in [
        "update messages set source = case id when $3 * 3 then 'campaign' else 'schedule' end
         where ticket_id = $3 and $2 > 0 and $1 > 0 and $4 > 0",
        "insert into campaigns (company_id, name, status, contact_list_id, channel_id, scheduled_at, message)
         select $1, 'Some', 'completed', 1, $2, now(), 'Some text' where $3 + $4 > 0",
        "insert into campaign_recipients (company_id, campaign_id, contact_id, status, message_id)
         select $1, max(id), $4, 'read', $3 * 3 from campaigns where $2 > 0",
        "insert into schedules (company_id, id, contact_id, channel_id, body, send_at, status, message_id, created_at,
             updated_at)
         select $1, k, $4, $2, 'Some text', now() + k * interval '1 year', case k when 1 then 'sent' else 'pending' end,
             case k when 1 then $3 * 3 + 1 end, now(), now() from generate_series(1, 2) k",
    ] {
        let query = sqlx::query(statement).bind(app.company.id).bind(app.company.phone).bind(FIRST_ID).bind(contact);
        query.execute(db).await.expect(statement);
    }
    keep_for(&app, app.company.id, DAYS).await;
    assert_eq!(rows(&app, FIRST_ID).await, (0, 0, 0));
    let campaigns = app.api.all("/campaigns").await;
    let campaign = id(&campaigns[0]);
    let recipients = app.api.all(&format!("/campaigns/{campaign}/recipients")).await;
    assert_eq!((&recipients[0]["status"], &recipients[0]["messageId"]), (&json!("read"), &Value::Null));
    let read: i64 = sqlx::query_scalar("select read from campaigns").fetch_one(db).await.expect("a count");
    assert_eq!(read, 1);
    assert_eq!(listed(&app.api, "/schedules").await, [2], "the sent schedule is removed, the pending one is not");
    app.stop().await;
}
