//! A request about a conversation during its deletion finds all of it or nothing.

use std::time::Duration;

use futures_util::future::join;
use hotline_persistence::Database;
use hotline_persistence::pool::request_shares;
use hotline_persistence::tables::retentions;
use serde_json::json;

use super::{DAYS, FIRST_ID, frequent_sweeps, insert_closed, rows, wait_for_removal};
use crate::support::{OwnApp, Reply, TestApp, eventually};

/// The minimum number of rounds. Each uses one conversation while it is removed.
const ROUNDS: i64 = 48;

/// A conversation is used at a random moment, at most this many microseconds from the estimated moment at which it is
/// as likely to be removed as to stay.
const OFFSET_US_MAX: i64 = 12_000;
/// By how much each round corrects the estimate.
const CORRECTION_US: i64 = 1_000;

/// The rows of a whole conversation.
const WHOLE: (i64, i64, i64) = (1, 3, 2);

/// Uses a conversation; returns whether the request names the ticket, and the reply.
async fn use_conversation(app: &TestApp, round: i64, contact: i64, ticket: i64) -> (bool, Reply) {
    let text = |to: &str, id: i64, reopen: bool| json!({"channelId": app.company.phone, to: id, "type": "text", "body": "again", "reopenTicket": reopen});
    let to_ticket = |id: i64| json!({"ticketId": id, "type": "text", "body": "again", "reopenTicket": true});
    match round % 6 {
        0 => (false, app.api.post("/messages", text("contactId", contact, true)).await),
        1 => (false, app.api.post("/messages", text("contactId", contact, false)).await),
        2 => (true, app.api.post("/messages", to_ticket(ticket)).await),
        3 => (true, app.api.post(&format!("/tickets/{ticket}/reopen"), json!({})).await),
        4 => (true, app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "again"})).await),
        _ => {
            let wrapup = json!({"wrapupTypeId": app.company.sold});
            (true, app.api.put(&format!("/tickets/{ticket}/wrapup"), wrapup).await)
        }
    }
}

#[actix_web::test]
async fn a_request_during_a_removal_finds_the_conversation_whole_or_gone() {
    let app = OwnApp::start_with(frequent_sweeps()).await;
    let (db, company_and_channel) = (&app.db, (app.company.id, app.company.phone));
    let (mut kept, mut removed) = (0, 0);
    let mut after_us = OFFSET_US_MAX;
    for round in 0.. {
        if round >= ROUNDS && kept > 0 && removed > 0 {
            break;
        }
        retentions::set(db, app.company.id, None).await.expect("the retention is set");
        let ticket = FIRST_ID + round;
        let contact = app.contact(&format!("551190000{round:04}")).await.0;
        insert_closed(db, company_and_channel, contact, ticket, 40).await;
        // Two of three tickets are in memory.
        if round % 3 > 0 {
            app.api.post(&format!("/tickets/{ticket}/read"), json!({})).await.data(200);
        }
        // The moment is random on purpose: at any moment of the removal one of the two outcomes must hold.
        let moment_us = after_us + rand::random_range(-OFFSET_US_MAX..=OFFSET_US_MAX);
        let sleep = |us: i64| tokio::time::sleep(Duration::from_micros(us.max(0).unsigned_abs()));
        let use_it = async {
            sleep(moment_us).await;
            use_conversation(&app, round, contact, ticket).await
        };
        let set = async {
            sleep(-moment_us).await;
            retentions::set(db, app.company.id, Some(DAYS)).await.expect("the retention is set")
        };
        let ((names_ticket, reply), _) = join(use_it, set).await;
        wait_for_removal(&app, app.company.id).await;
        let log = &app.service.app.engine.store().log;
        log.wait_until_flushed(log.appended()).await.expect("the tables have all of it");
        let found = rows(&app, ticket).await;
        let status = reply.status.as_u16();
        if found == (0, 0, 0) {
            removed += 1;
            after_us -= CORRECTION_US;
            app.api.get(&format!("/tickets/{ticket}")).await.error(404, "ERR_API_NOT_FOUND");
            // The ticket was used before its removal, in a way that does not make it younger, or it was not found.
            assert!(
                if names_ticket { status == 404 || [4, 5].contains(&(round % 6)) } else { status == 202 },
                "round {round}: {status} {}",
                reply.body
            );
        } else {
            kept += 1;
            after_us += CORRECTION_US;
            assert!([200, 201, 202].contains(&status), "round {round}: {status} {}", reply.body);
            assert!(found.1 >= WHOLE.1 && found.2 >= WHOLE.2 && found.0 == 1, "round {round}: {found:?} is left");
            app.api.get(&format!("/tickets/{ticket}")).await.data(200);
        }
        if round % 6 < 2 {
            // The ticket that the message was added to is there.
            let job = reply.data(202)["jobId"].as_str().expect("job").to_owned();
            let message = app.api.get(&format!("/messages/jobs/{job}")).await.data(200)["messageId"].clone();
            let message = app.api.get(&format!("/messages/{message}")).await;
            app.api.get(&format!("/tickets/{}", message.data(200)["ticketId"])).await.data(200);
        }
    }
    println!("{kept} kept, {removed} gone");
    // No row was refused: `stop` checks that.
    app.stop().await;
}

#[actix_web::test]
async fn a_removal_whose_outcome_is_unclear_leaves_nothing_half_done() {
    let app = OwnApp::start_with(frequent_sweeps()).await;
    let (db, company_and_channel) = (&app.db, (app.company.id, app.company.phone));
    for (number, point) in (0..).zip(["retention_unclear", "retention_lost"]) {
        retentions::set(db, app.company.id, None).await.expect("the retention is set");
        let ticket = FIRST_ID + number;
        let contact = app.contact(&format!("551190000000{number}")).await.0;
        insert_closed(db, company_and_channel, contact, ticket, 40).await;
        app.api.post(&format!("/tickets/{ticket}/read"), json!({})).await.data(200);
        fail::cfg(point, "1*return").expect("failpoint");
        retentions::set(db, app.company.id, Some(DAYS)).await.expect("the retention is set");
        wait_for_removal(&app, app.company.id).await;
        fail::remove(point);
        assert_eq!(rows(&app, ticket).await, (0, 0, 0), "{point}");
        let reopen = format!("/tickets/{ticket}/reopen");
        app.api.post(&reopen, json!({})).await.error(404, "ERR_API_NOT_FOUND");
    }
    assert_eq!(app.service.app.engine.hot().0, 0, "a removed ticket is still in memory");
    app.stop().await;
}

/// Reports, searches and imports of a company take turns with its removals. Its conversations do not.
#[actix_web::test]
async fn a_removal_that_waits_for_its_turn_holds_up_no_conversation() {
    let app = OwnApp::start_with(frequent_sweeps()).await;
    let (store, id) = (app.service.app.engine.store(), app.company.id);
    let contact = app.contact("5511900000001").await.0;
    insert_closed(&app.db, (id, app.company.phone), contact, FIRST_ID, 40).await;
    let mut heavy_work = Vec::new();
    for _ in 0..request_shares().company_heavy {
        heavy_work.push(store.db(id).heavy().begin().await.expect("a turn"));
    }
    retentions::set(&app.db, id, Some(DAYS)).await.expect("the retention is set");
    let waits = || store.connections().waiting > 0;
    // A removal that waits too long gives up, and is tried again later. While it has marked the contact, the read would
    // be refused.
    eventually("the ticket is marked as read while the removal waits", || async {
        eventually("the removal waits for its turn", || async { waits() }).await;
        app.api.post(&format!("/tickets/{FIRST_ID}/read"), json!({})).await.data(200);
        waits()
    })
    .await;
    drop(heavy_work);
    wait_for_removal(&app, id).await;
    assert_eq!(rows(&app, FIRST_ID).await, (0, 0, 0), "the conversation was not removed, though its turn came");
    app.stop().await;
}
