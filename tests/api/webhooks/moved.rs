//! Deliveries of a company that moves to another process.

use std::collections::BTreeSet;
use std::time::Duration;

use hotline::service::Service;
use serde_json::json;

use super::{add_webhook, deliveries, wait_for_deliveries};
use crate::members::{owner_of, start_second_service};
use crate::support::service::TestOptions;
use crate::support::{Conduct, OwnApp, Receiver, TestApp, eventually};

/// How many events there are: more than are under way at once, so that some are answered, some under way and some
/// in memory.
const EVENTS: usize = 80;

/// How long an answer takes: long enough that many are under way when the company moves, and less than a courier (a
/// webhook's delivery task) waits for them before it retires.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Moves the company's slot to the other process, and waits until it has moved. A move that takes too long, as on a
/// machine that stalls, is canceled; it is then requested again.
pub async fn move_company(app: &TestApp, owner: &Service) {
    let (store, db) = (owner.app.engine.store(), &app.db);
    let life = store.membership().expect("a member").life;
    let slot = owner.app.engine.directory().slot(app.company.id).expect("a slot");
    let to_move = "update slots set next = (select life from lives where life <> $1) where slot = $2 and life = $1";
    eventually("it has moved", || async {
        let state = "select life <> $1, next is not null from slots where slot = $2";
        let state = sqlx::query_as::<_, (bool, bool)>(state).bind(life).bind(slot.column());
        let (has_moved, is_moving) = state.fetch_one(db).await.expect("a slot");
        if !has_moved && !is_moving {
            sqlx::query(to_move).bind(life).bind(slot.column()).execute(db).await.expect("it is to move");
        }
        has_moved
    })
    .await;
}

/// Moves a company while its events are delivered. Returns how many requests had been sent when it had moved, and the
/// ids of the events of all requests.
async fn move_while_delivering() -> (usize, Vec<i64>) {
    let options = TestOptions { member: true, ..TestOptions::default() };
    let app = OwnApp::start_with(options.clone()).await;
    let (second, _folder) = start_second_service(&app, &options).await;
    let owner = owner_of(app.company.id, [&app.service, &second]);
    let receiver = Receiver::start().await;
    receiver.behave(Conduct::Late(ANSWER_TIME));
    let webhook = add_webhook(&app.api, &receiver.url(), &["contact.created"]).await;
    for number in 0..EVENTS {
        let contact = json!({"name": format!("Contact {number}"), "number": format!("55119{number:08}")});
        app.api.post("/contacts", contact).await.data(201);
    }
    // Some deliveries are answered, and their outcomes are about to be written; others are under way.
    receiver.has(20).await;
    move_company(&app, owner).await;
    let sent = receiver.count();
    wait_for_deliveries(&app.api, webhook, "delivered", EVENTS).await;
    assert!(deliveries(&app.api, webhook, "pending").await.is_empty());
    let ids = receiver.ids();
    let distinct: BTreeSet<i64> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), EVENTS);
    second.stop().await.expect("a clean stop");
    app.stop().await;
    (sent, ids)
}

/// On a machine that stalls for longer than a retiring courier waits, some events that were under way are sent again.
#[actix_web::test]
async fn a_company_that_moves_gets_each_event() {
    let (sent, ids) = move_while_delivering().await;
    for id in &ids {
        let count = ids.iter().filter(|other| *other == id).count();
        assert!(count == 1 || (count == 2 && ids[..sent].contains(id)), "{id} is sent {count} times: {ids:?}");
    }
}

#[actix_web::test]
async fn a_company_that_moves_gets_each_event_once_measured() {
    let (sent, ids) = move_while_delivering().await;
    assert!(sent < EVENTS, "every event was sent before the company had moved");
    assert_eq!(ids.len(), EVENTS, "an event was sent twice: {ids:?}");
}

#[actix_web::test]
async fn an_endpoint_that_hangs_does_not_keep_a_company_from_moving() {
    let options = TestOptions { member: true, ..TestOptions::default() };
    let app = OwnApp::start_with(options.clone()).await;
    let (second, _folder) = start_second_service(&app, &options).await;
    let owner = owner_of(app.company.id, [&app.service, &second]);
    let receiver = Receiver::start().await;
    receiver.behave(Conduct::Hang);
    let webhook = add_webhook(&app.api, &receiver.url(), &["contact.created"]).await;
    app.api.post("/contacts", json!({"name": "Ana", "number": "5511900000001"})).await.data(201);
    receiver.has(1).await;
    receiver.behave(Conduct::status(200));
    move_company(&app, owner).await;
    wait_for_deliveries(&app.api, webhook, "delivered", 1).await;
    let ids = receiver.ids();
    assert_eq!((ids.len(), ids[0]), (2, ids[1]), "the request without an answer was not sent again");
    second.stop().await.expect("a clean stop");
    app.stop().await;
}
